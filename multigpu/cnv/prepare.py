"""What a worker does while a table of counts is read.

The command names this before it loads anything else, so that workers start early: nothing heavy is
imported here.
"""

FEW = 256  # regions


def prepare(gpu: str | None) -> None:
    """Load what the first chromosome on a worker would wait for: modules, context and kernels.

    The model's kernel is made for a number of samples, which nobody knows yet.
    """
    import numpy as np

    from multigpu.cluster.workers import worker
    from multigpu.cnv import backends
    from multigpu.cnv.options import CnvOptions

    options = CnvOptions()
    backend = backends.backend_of(worker.place_of(gpu), 1)
    normalization = backends.normalization_options(options, None)
    segmentation = backends.segmentation_options(options)
    counts = (np.arange(2 * FEW, dtype=np.int32) * 37 % 50 + 50).reshape(FEW, 2)
    with backend.active():
        backend.normalization.size_factors(
            backend.put(counts), [slice(0, FEW)], normalization, ["few"],
            totals=counts.sum(axis=0), **backend.more,
        )  # fmt: skip
        values = backend.put(np.log2(counts.T.reshape(-1) / 75))
        tracks = np.arange(3, dtype=np.int64) * FEW
        backend.segmentation.segment(values, tracks, segmentation, **backend.more)
