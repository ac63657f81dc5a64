"""A copy-number run on alignments that are not counted yet: what can be known of it before."""

from multigpu.cnv.chromosome import CnvSpan
from multigpu.cnv.options import CnvOptions
from multigpu.cnv.plan import CnvPlan, Shape, plan_cnv
from multigpu.cnv.samples.genomes import X_NAMES
from multigpu.count.job import CountJob
from multigpu.formats.tables.counts import Counts
from multigpu.run.job import Crew, Job
from multigpu.run.options import Lanes, RunOptions


class Uncounted(Job):
    """Opened, never run: files and windows are known, and how chromosomes come to devices.

    Sexes that are inferred are not: a chromosome may be looked at in fewer samples.

    cases, controls  counts that are there already, or the job that would count them
    infers           whether sexes are to be inferred
    """

    def __init__(
        self,
        cases: CountJob | Counts,
        controls: CountJob | Counts | None,
        options: CnvOptions,
        run: RunOptions,
        lanes: Lanes,
        infers: bool = False,
    ) -> None:
        super().__init__(run, lanes)
        both = [cases] if controls is None else [cases, controls]
        self.options, self.regions, self.samples = options, cases.regions, cases.samples
        self.names = tuple(name for each in both for name in each.samples)
        self.notes = [note for each in both for note in each.notes]
        taken = options.norm != 0 and options.model != "haplo" and not options.compat_r
        has_x = any(name in X_NAMES for name in self.regions.names)
        self.infers_sexes = infers and taken and has_x
        self.files = [f.path for each in both if isinstance(each, CountJob) for f in each.files]

    def spans(self) -> list[CnvSpan]:
        regions = self.regions
        names = [regions.names[regions.chrom[block.start]] for block in regions.blocks]
        found = enumerate(zip(names, regions.blocks, strict=True))
        return [CnvSpan(number, name, rows.start, rows.stop) for number, (name, rows) in found]

    def plan(self, crew: Crew | None = None) -> CnvPlan:
        """As `CnvJob.plan`; counts of alignments are whole numbers."""
        shape = Shape(len(self.regions), len(self.names), len(self.samples))
        here = crew.capacity if crew else self.capacity
        return plan_cnv(self.spans(), shape, self.options, self.run, here, self.in_process)
