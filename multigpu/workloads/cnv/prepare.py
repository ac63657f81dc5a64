"""Preparation of workers while a table of counts is read.

The command starts workers with it before it loads anything else: nothing heavy is imported here.
"""

REGIONS = 256


def prepare(gpu: str | None) -> None:
    """Load what the first chromosome on a worker would wait for: modules, context and kernels.

    The model's kernel is compiled for a number of samples, which is not known yet.
    """
    import numpy as np

    from multigpu.cluster.workers import worker
    from multigpu.workloads.cnv.options import CnvOptions
    from multigpu.workloads.cnv.stages.backends import open_backend
    from multigpu.workloads.cnv.stages.normalize import normalization_options
    from multigpu.workloads.cnv.stages.segment import segmentation_options

    options, backend = CnvOptions(), open_backend(worker.place_of(gpu), 1)
    counts = (np.arange(2 * REGIONS, dtype=np.int32) * 37 % 50 + 50).reshape(REGIONS, 2)
    with backend.active():
        how = normalization_options(options, None)
        backend.size_factors(backend.put(counts), "few", how, counts.sum(axis=0, dtype=np.float64))
        values = backend.put(np.log2(counts.T.reshape(-1) / 75))
        offsets = np.arange(3, dtype=np.int64) * REGIONS
        backend.segment(values, offsets, segmentation_options(options))
