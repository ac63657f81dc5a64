"""Third stage: signed I/NI of every sample to segments."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from multigpu.kernels.segmentation import Circular, Segmentation, SegmentedTracks
from multigpu.kernels.segmentation.cpu import cbs
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import Indices, SegmentTable
from multigpu.workloads.cnv.results.intervals import last_bases
from multigpu.workloads.cnv.stages.backends import Array, KernelBackend
from multigpu.workloads.cnv.stages.chromosome import Chromosome

CBS_WIDEST = 5  # widest least width of a segment that circular binary segmentation takes


@dataclass(frozen=True)
class Segment:
    """Segments of the samples, and of I/NI where robust regions are wanted.

    threads       of the CPU, for circular binary segmentation: each of its tests waits for the
                  one before
    is_segmented  whether the job has enough regions for a segmentation
    """

    options: CnvOptions
    backend: KernelBackend
    threads: int
    is_segmented: bool
    name: ClassVar[str] = "segment"

    def run(self, chromosome: Chromosome) -> Chromosome:
        """Add `segments`, `robust`, and notes."""
        if not self.is_segmented:
            return chromosome
        found, notes = self._segment_samples(chromosome)
        robust, ini = chromosome.robust, chromosome.modelled["ini"]
        if self.options.robust:  # with 0 they are found from the CNVs
            how = Segmentation(
                min_segment=self.options.robust_min_width, thresholds=self.options.robust
            )
            offsets = np.array([0, len(ini)], np.int64)
            each = self.backend.segment(self.backend.put(ini), offsets, how)
            robust = self._table(chromosome, each, np.zeros(1, np.int32))
        return replace(chromosome, segments=found, robust=robust, notes=(*chromosome.notes, *notes))

    def _segment_samples(self, chromosome: Chromosome) -> tuple[SegmentTable, tuple[str, ...]]:
        """Return the segments of every case, and notes."""
        sini: Array = chromosome.modelled["sini"]
        regions, cases = sini.shape
        estimates = self.options.segmentation == "fast" and self.options.seg_limits is None
        if regions == 1 and estimates and not self.options.compat_r:
            # R stops here: one value has no deviation, by which it estimates thresholds.
            note = f"{chromosome.span.name}: one region only, nothing is called there"
            return SegmentTable.empty(), (note,)
        rows = chromosome.piece_rows
        at_a_time = cases if regions <= rows else max(1, rows * cases // regions)
        how = segmentation_options(self.options)
        found: list[SegmentTable] = []
        notes: list[str] = []
        for first in range(0, cases, at_a_time):
            some = sini[:, first : first + at_a_time]
            # A sample's values lie side by side, so this is no copy where all came in one piece.
            values = some.T.reshape(-1)
            values = values if values.flags.c_contiguous else values.copy()
            offsets = np.arange(some.shape[1] + 1, dtype=np.int64) * regions
            if isinstance(how, Circular):
                each = cbs(self.backend.get(values), offsets, how, self.threads)
            else:
                each = self.backend.segment(self.backend.put(values), offsets, how)
            found.append(self._table(chromosome, each, chromosome.places[first:]))
            notes += each.notes
        return SegmentTable.joined(found), tuple(dict.fromkeys(notes))

    def _table(
        self, chromosome: Chromosome, found: SegmentedTracks, samples: Indices
    ) -> SegmentTable:
        """Return the kernel's segments of tracks; `samples` has the number of each track's."""
        begin = found.track * len(chromosome.start)
        first, stop = found.start - begin, found.end - begin
        return SegmentTable.uncalled(
            chrom=np.full(len(found), chromosome.span.chrom, np.int32),
            sample=samples[found.track],
            first=first,
            stop=stop,
            start=chromosome.start[first],
            end=last_bases(chromosome.end, first, stop, self.options.compat_r),
            mean=found.mean,
            median=found.median,
        )


def segmentation_options(options: CnvOptions) -> Segmentation | Circular:
    """Return the options of R's fast segmentation, or of circular binary segmentation."""
    if options.segmentation == "cbs":
        return Circular(min_width=min(max(options.min_width, 2), CBS_WIDEST), seed=options.seed)
    return Segmentation(
        alpha=options.seg_alpha,
        eps=options.seg_eps,
        delta=options.seg_delta,
        max_window=options.seg_max_window,
        min_segment=options.min_width,
        cyber_weight=options.seg_cyber_weight,
        thresholds=options.seg_limits,
    )
