"""Quality of the samples of a cohort: reads, noise, sex, and with which sample each varies."""

from collections.abc import Iterator

import numpy as np

from multigpu.formats.tables.counts_zarr import CountsStore
from multigpu.workloads.cnv.samples.noise import neighbour_noise
from multigpu.workloads.cnv.samples.sex import cohort_coverage

COLUMNS = ("sample", "reads", "noise", "nearest", "correlation", "sex", "x", "y")
MISSING = "NA"


def qc_lines(store: CountsStore) -> Iterator[str]:
    """Yield a header, and a line for every sample: its columns with tabs between them."""
    counts = store.counts()
    alike = store.read("correlation").astype(np.float64)
    np.fill_diagonal(alike, -np.inf)
    noise = neighbour_noise(counts.values, counts.regions.chrom)
    coverage = cohort_coverage(counts, None, None)
    yield "\t".join(COLUMNS)
    for k, name in enumerate(store.samples):
        nearest = int(alike[k].argmax())
        x, y = coverage.shares()[k] if coverage else (np.nan, np.nan)
        cells = [
            name,
            f"{counts.values[:, k].sum(dtype=np.float64):.0f}",
            _text(noise[k]),
            store.samples[nearest] if nearest != k else MISSING,
            _text(alike[k, nearest]),
            (coverage.sexes()[k] if coverage else "") or MISSING,
            _text(x),
            _text(y),
        ]
        yield "\t".join(cells)


def _text(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else MISSING
