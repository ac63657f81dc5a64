"""Data of figures: surroundings of the largest CNV regions, and samples along a chromosome."""

import numpy as np

from multigpu.workloads.cnv.records import Floats, Indices, Mask, Rows, SampleTracks, SegmentTable

FLANK = 0.5  # of the CNV region's length, on either side
LEAST_FLANK = 10  # regions
MOST_POINTS = 600  # more are averaged with their neighbours
MOST_SAMPLES = 60  # shown; the carriers come first


def shown_samples(carriers: Indices, samples: Indices) -> Indices:
    """Return the samples to show: the carriers, and others as far as there is room."""
    others = np.setdiff1d(samples, carriers)
    kept = carriers[:MOST_SAMPLES]
    chosen = np.concatenate([kept, others[: MOST_SAMPLES - len(kept)]])
    return np.sort(chosen)


def surroundings(first: int, stop: int, breaks: Mask) -> slice:
    """Return the rows of a CNV region and its flanks, which end at breaks; see `Chromosome`."""
    flank, begins = max(LEAST_FLANK, int((stop - first) * FLANK)), np.flatnonzero(breaks)
    before, after = np.searchsorted(begins, first, "right"), np.searchsorted(begins, stop)
    return slice(
        max(0, first - flank, *begins[:before][-1:].tolist()),
        min(len(breaks), stop + flank, *begins[after:][:1].tolist()),
    )


def thinned(values: Floats, step: int = 0) -> Floats:
    """Return means of `step` neighbours; 0: of as few as leave at most MOST_POINTS rows."""
    step = step or -(-len(values) // MOST_POINTS)
    if step == 1:
        return values
    edges = np.arange(0, len(values), step)
    sums = np.add.reduceat(values, edges, axis=0)
    sizes = np.diff(np.r_[edges, len(values)])
    return np.asarray((sums.T / sizes).T)


def thinned_tracks(chrom: int, sini: Floats, samples: Indices, step: int) -> SampleTracks:
    """Return the tracks of a chromosome, with a point for every `step` regions."""
    first = np.arange(0, len(sini), step)
    stop = np.minimum(first + step, len(sini))
    values = thinned(sini, step).astype(np.float32)
    return SampleTracks(chrom=chrom, row=(first + stop - 1) // 2, samples=samples, values=values)


def drawn_segments(
    segments: SegmentTable, samples: Indices, rows: slice, start: Rows, end: Rows
) -> Floats:
    """Return float64[n, 4]: sample, start, end and mean of segments, cut at the window's ends."""
    kept = segments.take(
        np.isin(segments.sample, samples)
        & (segments.stop > rows.start)
        & (segments.first < rows.stop)
    )
    first, last = np.maximum(kept.first, rows.start), np.minimum(kept.stop, rows.stop) - 1
    return np.column_stack((kept.sample, start[first], end[last], kept.mean))
