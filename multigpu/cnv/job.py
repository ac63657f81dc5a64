"""A copy-number run: checked, prepared, sent to the workers, put together."""

import logging
import os
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.codec import Codec
from multigpu.cluster.workers.worker import Outcome
from multigpu.cnv import advice
from multigpu.cnv.backends import normalization_options
from multigpu.cnv.calls import assemble
from multigpu.cnv.chromosome import CnvPart, CnvSpan
from multigpu.cnv.options import CnvOptions, copy_number_lanes
from multigpu.cnv.output import matrices
from multigpu.cnv.output.windows import Window
from multigpu.cnv.plan import CnvPlan, Shape, plan_cnv
from multigpu.cnv.result import CnvResult
from multigpu.cnv.samples import genomes, sex
from multigpu.cnv.source import CountsSource, InFile, InMemory, Shared, filed
from multigpu.cnv.work import PART_CLASSES, CnvWorkload
from multigpu.errors import UsageError, quoted, several, shown
from multigpu.formats.alignments.alignments import without_chr
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables.counts import Counts
from multigpu.kernels.normalization import NormalizationError
from multigpu.kernels.normalization import cpu as normalization
from multigpu.run import fitness
from multigpu.run.fitness import Expected
from multigpu.run.job import Crew, Job, JobFacts, check_unchanged, describe_inputs
from multigpu.run.options import Lanes, RunOptions

logger = logging.getLogger(__name__)

SEPARATORS = "\t\r\n"  # of the tables that are written
FEW_REGIONS = 100  # below it R warns that normalization may not be applicable
FEWEST_SEGMENTED = 6  # regions in all; with fewer there is no segmentation
SHOWN_REGIONS = 10  # in the report


@dataclass
class CnvFacts(JobFacts):
    """What a run has done so far; a chunk is a chromosome."""

    cnvs: int = 0

    def add(self, outcome: Outcome[CnvPart]) -> None:
        super().add(outcome)
        self.cnvs += int(outcome.part.called.sum())


class CnvJob(Job):
    """Stages 2 to 5 on a table of counts: opened (all is checked), and run once.

    controls  counts of the same regions, for the model "reference" and no other
    ploidy    of every sample and then control, on all chromosomes
    sexes     "male", "female" or "" of every sample and then control
    coverage  of X and Y, of each of these, where their sexes are inferred from it
    genome    its name; None: by the lengths of its chromosomes
    lengths   of chromosomes in bases, where alignments say them
    inputs    the files that the counts are from, which must not change until a run is resumed
    lanes     with which workers were started; more: see `Job`
    """

    def __init__(
        self,
        counts: Counts,
        options: CnvOptions,
        run: RunOptions,
        *,
        controls: Counts | None = None,
        ploidy: tuple[int, ...] | None = None,
        sexes: tuple[str, ...] = (),
        coverage: sex.Coverage | None = None,
        genome: str | None = None,
        lengths: Mapping[str, int] | None = None,
        inputs: Sequence[str] = (),
        lanes: Lanes | None = None,
        **more: Any,
    ) -> None:
        super().__init__(run, lanes or copy_number_lanes(counts.values.nbytes), **more)
        self.regions, self.samples, self.options = counts.regions, counts.samples, options
        self.ploidy, self.sexes, self.inputs = ploidy, sexes, inputs
        self.genome = genomes.known(genome, counts.regions)
        self._genome_said, self.coverage = genome, coverage
        self.lengths = genomes.lengths(self.genome, counts.regions, lengths)
        self.facts: CnvFacts = CnvFacts()
        check(counts, controls, options)
        self.values = _columns(counts, controls)
        self.blocks = self.regions.blocks
        self._sums = normalization.Counts(self.values, _cores()).sums()
        self.totals = self._sums.sum(axis=0)
        self.names = (*counts.samples, *(controls.samples if controls else ()))
        self._check_reads()
        self.notes = [*notes(counts, controls, options), *self._by_sex()]

    def _by_sex(self) -> Iterator[str]:
        """What is told of sexes, where any chromosome is looked at by them."""
        spans = [span for span in self.spans() if span.copies is not None]
        if spans:
            males, females = self.sexes.count(sex.MALE), self.sexes.count(sex.FEMALE)
            unknown = len(self.sexes) - males - females
            others = f", {unknown} of unknown sex taken as female" if unknown else ""
            yield (
                f"{' and '.join(span.name for span in spans)}: every sample is compared with what"
                f" is usual for its sex, {males} male and {females} female{others}: --sex FILE"
                f" corrects it, --sex none leaves it out{self._about_par(spans)}"
            )
        for span in spans:
            if span.columns == ():
                yield f"{span.name} is left out: too few samples have it to be compared"

    def _about_par(self, spans: Sequence[CnvSpan]) -> str:
        """What is told of the pseudoautosomal regions, where X is among these."""
        if not any(span.name in genomes.X_NAMES for span in spans):
            return ""
        said = self._genome_said
        if self.genome:
            why = ""
            if said and not genomes.named(said):
                why = f", by the lengths: {quoted(said)} is not known"
            return f"; two copies in the pseudoautosomal regions of {self.genome.name}{why}"
        if said:
            return f"; the pseudoautosomal regions of {quoted(said)} are not known"
        return "; --genome says where the pseudoautosomal regions are"

    def _check_reads(self) -> None:
        if self.options.norm == 0 or self.options.model == "single":
            return
        looked_at = np.zeros(len(self.names), np.bool_)
        for span in self.spans():
            looked_at[slice(None) if span.columns is None else list(span.columns)] = True
        if (without := np.flatnonzero(looked_at & (self.totals == 0))).size:
            raise UsageError(f"sample {self.names[without[0]]} has no reads: leave it out")

    @property
    def _kernel_threads(self) -> int:
        """Of a worker on a CPU: chromosomes take turns, and each has them all."""
        return max(1, (self.run.threads or _cores()) // max(1, self.run.processes))

    @property
    def chunks(self) -> int | None:
        return len(self.blocks)

    def spans(self) -> Iterator[CnvSpan]:
        """The chromosomes in the order of the input."""
        for number, block in enumerate(self.blocks):
            name = self.regions.names[self.regions.chrom[block.start]]
            facts = self._sexual(name, block) if self.ploidy is None else {"ploidy": self.ploidy}
            yield CnvSpan(number, name, block.start, block.stop, **facts)

    def _sexual(self, name: str, rows: slice) -> dict[str, Any]:
        """What a span says where the copies of a chromosome go by sex; see `CnvSpan`.

        Counts that are normalized already, and haploid genomes, are taken as they are; so is an X
        of pseudoautosomal regions alone.
        """
        options, regions = self.options, self.regions
        copies = sex.copies_on(name, self.sexes)
        if copies is None or options.model == "haplo" or not options.norm:
            return {}
        par = self._par if name in genomes.X_NAMES else ()
        if genomes.inside(par, regions.start[rows], regions.end[rows]).all():
            return {}
        columns = tuple(k for k, each in enumerate(copies) if each)
        cases = sum(k < len(self.samples) for k in columns)
        alone = cases < 2 if options.model not in ("single", "reference") else not cases
        if alone or (options.model == "reference" and cases == len(columns)):
            columns = ()  # there is nothing to compare with
        copies = tuple(copies[k] for k in columns)
        ploidy = sex.ploidy_of(copies) if options.model != "single" else None
        levelled = options.norm == 1 and not options.genome_wide and ploidy is None
        return {
            "columns": columns if len(columns) < len(self.names) else None,
            "ploidy": ploidy,
            "copies": copies,
            "shares": None if levelled else tuple(each / 2 for each in copies),
            "par": par,
        }

    @property
    def _par(self) -> genomes.Places:
        """The pseudoautosomal regions of X, where the genome is known."""
        return self.genome.par if self.genome else ()

    def plan(self, crew: Crew | None = None) -> CnvPlan:
        """How chromosomes come to the devices; without a crew, to those of this machine."""
        size, cases = self.values.itemsize, len(self.samples)
        shape = Shape(len(self.regions), len(self.names), cases, size)
        here, spans = crew.capacity if crew else self.capacity, list(self.spans())
        return plan_cnv(spans, shape, self.options, self.run, here, self.in_process)

    def result(
        self,
        keep: tuple[str, ...] = (),
        store: Path | None = None,
        shown: int = 0,
        scratch: Path | None = None,
    ) -> CnvResult:
        """Run it. Raises UsageError for what cannot be normalized, modelled or segmented.

        keep      matrices to keep in the result or, where `store` is given, to write there
        shown     CNV regions to keep for figures
        scratch   a folder that workers on other machines see; else that for temporary files
        """
        parts = self._parts(keep, store, shown, scratch)
        self._forget_counts()
        return self._assembled(parts, store, shown)

    def _forget_counts(self) -> None:
        """What is left to be done takes its own memory; to give gigabytes back takes a while."""
        held = [self.values]
        del self.values
        threading.Thread(target=held.clear, name="forgetting", daemon=True).start()

    def _parts(
        self, keep: tuple[str, ...], store: Path | None, shown: int, scratch: Path | None
    ) -> list[CnvPart]:
        """Of all chromosomes, in their order."""
        with ExitStack() as stack:
            source = self._source(stack, scratch)
            files = [source.path] if isinstance(source, InFile) else []
            crew = self.crew(stack, files, [str(store.parent)] if store else [])
            about = self._about(keep, store is not None, shown)
            self.open_journal(about, {}, Codec(PART_CLASSES))
            if store is not None:
                self._open_store(store, keep)
            workload = self._workload(source, keep, store, shown, crew.expected)
            outcomes = self.run_spans(crew, workload, self.skip_finished(self.spans()))
            parts = [outcome.part for outcome in outcomes]
            check_unchanged(about, self.inputs)
        return parts

    def _open_store(self, store: Path, keep: tuple[str, ...]) -> None:
        """Create the store of matrices, unless the run goes on with one."""
        if not self.resuming:
            matrices.create(store, self.regions, self.samples, self.options.classes, keep)
        elif not store.is_dir():
            raise UsageError(f"{store.name} is missing: start over, without --resume")

    def _about(self, keep: tuple[str, ...], stored: bool, shown: int) -> dict[str, str]:
        """What must be the same for another run to go on with this one's journal."""
        facts = repr((self.names, self.ploidy, self.sexes, self._par)).encode()
        return {
            "program": fitness.program(),
            "job": "cnv",
            "matrices": f"{', '.join(keep) or 'none'}, {'stored' if stored else 'kept'}",
            "figures": str(shown),
            **{f"option {name}": str(value) for name, value in asdict(self.options).items()},
            "samples": f"{len(self.names)}, content {blake2b(facts, digest_size=4).hexdigest()}",
            "regions": f"{len(self.regions):,} in {len(self.blocks)} chromosomes",
            "counts": f"content {self._content()}",
            **describe_inputs(self.inputs),
        }

    def _content(self) -> str:
        """A digest of the counts and their regions, by which a journal knows them.

        Of sums that are there anyway: a second is lost where all bytes of gigabytes go into it.
        """
        regions, blocks = self.regions, self.blocks
        ends = [(int(regions.start[b.start]), int(regions.end[b.stop - 1])) for b in blocks]
        about = [regions.names, self._names(blocks), blocks, ends]
        digest = blake2b(repr(about).encode(), digest_size=8)
        digest.update(np.ascontiguousarray(self._sums).data)
        return digest.hexdigest()

    def _source(self, stack: ExitStack, scratch: Path | None) -> CountsSource:
        """Where workers find the counts."""
        counts = InMemory(self.values, self.regions.start, self.regions.end)
        if self.in_process:
            return counts
        return stack.enter_context(filed(counts, scratch)) if self.remote else Shared(counts)

    def _workload(
        self,
        source: CountsSource,
        keep: tuple[str, ...],
        store: Path | None,
        shown: int,
        expected: Expected | None,
    ) -> CnvWorkload:
        return CnvWorkload(
            key=uuid.uuid4().hex,
            options=self.options,
            counts=source,
            samples=self.names,
            cases=len(self.samples),
            totals=self.totals,
            factors=self._factors(),
            cov=self._coverages(),
            segmented=len(self.values) >= FEWEST_SEGMENTED,
            keep=keep,
            store=store,
            shown=shown,
            threads=self._kernel_threads,
            chunk_bytes=self.run.chunk_bytes(),
            memory_fraction=self.run.memory_fraction,
            expected=expected,
        )

    def _factors(self) -> NDArray[np.float64] | None:
        """Size factors that need all chromosomes at once; None where workers find them."""
        options, blocks = self.options, self.blocks
        if options.norm == 0 or options.model == "single":
            return None
        if not (options.genome_wide or self.ploidy):
            return None
        values, wanted, names = self.values, blocks, self._names(blocks)
        if options.genome_wide:
            values = self._of_everybody()
            wanted, names = [slice(0, len(values))], ["the genome"]
        how = normalization_options(options, self.ploidy)
        try:
            found = normalization.size_factors(values, wanted, how, names, _cores())
        except NormalizationError as error:
            raise UsageError(error.told(self.names)) from error
        self.notes += found.notes
        return np.broadcast_to(found.factors, (len(blocks), found.factors.shape[1]))

    def _names(self, blocks: Sequence[slice]) -> list[str]:
        regions = self.regions
        return [regions.names[regions.chrom[block.start]] for block in blocks]

    def _coverages(self) -> NDArray[np.float64] | None:
        """float64[columns] where coverages are modelled."""
        if self.options.norm != 2 or self.options.model == "single":
            return None
        return np.asarray(normalization.coverages(self._of_everybody(), _cores()))

    def _of_everybody(self) -> NDArray[Any]:
        """[regions, columns]: the counts where all have two copies; all where that is nowhere.

        The others would say less of a sample's reads than of its sex. A copy, where they lie
        between these.
        """
        own = [slice(span.first, span.stop) for span in self.spans() if span.copies is None]
        if not own:
            return self.values
        if sum(rows.stop - rows.start for rows in own) == own[-1].stop - own[0].start:
            return self.values[own[0].start : own[-1].stop]
        return np.concatenate([self.values[rows] for rows in own])

    def _usual(self) -> sex.Usual | None:
        """The usual copies; None: two of all."""
        found = np.full((len(self.regions.names), len(self.names)), 2, np.int8)
        spans = [span for span in self.spans() if span.copies is not None]
        for span in spans:
            row = found[self.regions.chrom[span.first]]
            row[:] = 0
            row[slice(None) if span.columns is None else list(span.columns)] = span.copies
        x = genomes.number(self.regions, genomes.X_NAMES)
        return sex.Usual(found[:, : len(self.samples)], x, self._par) if spans else None

    def _assembled(self, parts: list[CnvPart], store: Path | None, shown: int) -> CnvResult:
        regions, samples, usual = self.regions, self.samples, self._usual()
        segments = assemble.segment_table(parts, regions, self.options, usual)
        place = (parts, regions, segments.take(segments.cnv), len(samples), self.options)
        pieces = [piece for part in parts for piece in part.pieces]
        if store is not None:
            matrices.write_rest(store, pieces)
            pieces = []
        found = [note for part in parts for note in part.notes]
        if not segments.cnv.any():
            reads = float(np.median(self.totals[: len(samples)])) / len(regions)
            found.append(advice.without_cnvs(segments, regions, self.options, reads))
        return CnvResult(
            self.options, regions, samples, segments,
            assemble.called_regions(*place, usual), assemble.robust_regions(*place, usual),
            self.sexes, self.ploidy, tuple(pieces), _largest(parts, shown),
            (*self.notes, *dict.fromkeys(found)), usual, self.lengths,
            self.coverage,
        )  # fmt: skip


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def check(counts: Counts, controls: Counts | None, options: CnvOptions) -> None:
    """Raises UsageError for tables that the model cannot take."""
    if not len(counts.regions):
        raise UsageError("there are no regions")
    for name in (*counts.regions.names, *counts.samples):
        if any(sign in name for sign in SEPARATORS):
            raise UsageError(f"{quoted(name)} cannot be a name in tables: rename it")
    check_samples(counts.samples, controls.samples if controls else None, options)
    if controls is not None and not same_regions(counts.regions, controls.regions):
        problem = different_regions(counts.regions, controls.regions)
        raise UsageError(f"the cases and the --controls have different regions: {problem}")


def check_samples(
    cases: Sequence[str], controls: Sequence[str] | None, options: CnvOptions
) -> None:
    """Raises UsageError for samples, by their names, that the model cannot take."""
    if options.model == "single" and len(cases) != 1:
        raise UsageError(f"--model single is for one sample, here are {len(cases)}: use cn.mops")
    if options.model not in ("single", "reference") and len(cases) < 2:
        raise UsageError(
            f"--model {options.model} compares samples, and there is only one: use"
            " --model single, or --model reference with --controls"
        )
    if options.model != "reference":
        if controls is not None:
            raise UsageError("--controls are for --model reference only")
        return
    if controls is None:
        raise UsageError("--model reference needs --controls")
    if both := sorted({*cases} & {*controls}):
        raise UsageError(
            f"{both[0]} is a case and a control: rename one of them, or leave one out"
            " (--sample-names are those of the cases)"
        )


def same_regions(a: Regions, b: Regions) -> bool:
    """Whether the same regions stand in the same order."""
    return (
        len(a) == len(b)
        and bool((a.start == b.start).all() and (a.end == b.end).all())
        and [a.names[k] for k in a.chrom[[s.start for s in a.blocks]]]
        == [b.names[k] for k in b.chrom[[s.start for s in b.blocks]]]
        and a.blocks == b.blocks
    )


def different_regions(cases: Regions, controls: Regions) -> str:
    """The first ones that differ, and what helps."""
    rows = min(len(cases), len(controls))
    ours = {name: number for number, name in enumerate(cases.names)}
    number = np.array([ours.get(name, -1) for name in controls.names], np.int64)
    differ = cases.chrom[:rows] != number[controls.chrom[:rows]]
    differ |= cases.start[:rows] != controls.start[:rows]
    differ |= cases.end[:rows] != controls.end[:rows]
    row = int(np.argmax(differ)) if differ.any() else rows
    found = f"region {row + 1} of the cases is {_region(cases, row)}"
    said = f"{found}, of the controls {_region(controls, row)}"
    if same_regions(_plain(cases), _plain(controls)):
        said += " (the names differ only by `chr`: --rename auto takes them as the same)"
    return said


def _region(regions: Regions, row: int) -> str:
    if row >= len(regions):
        return "missing"
    name = shown(regions.names[regions.chrom[row]])
    return f"{name}:{regions.start[row]}-{regions.end[row]}"


def _plain(regions: Regions) -> Regions:
    """Without the `chr` in names."""
    names = tuple(map(without_chr, regions.names))
    return Regions(names, regions.chrom, regions.start, regions.end)


def notes(counts: Counts, controls: Counts | None, options: CnvOptions) -> Iterator[str]:
    """What is to be said before anything is computed."""
    yield from counts.notes
    if controls is not None:
        yield from controls.notes
        yield f"{_group(counts.samples, 'case')} and {_group(controls.samples, 'control')}"
    if len(counts.regions) < FEW_REGIONS and options.model != "single":
        yield f"{len(counts.regions)} regions are few: normalization may not be applicable"
    if len(counts.regions) < FEWEST_SEGMENTED:
        yield "there are too few regions for a segmentation: nothing is called"


def _group(names: Sequence[str], word: str) -> str:
    return f"{len(names):,} {word}{'s' if len(names) > 1 else ''} ({several(names)})"


def _columns(counts: Counts, controls: Counts | None) -> NDArray[Any]:
    """[regions, samples and then controls], C-contiguous."""
    return counts.values if controls is None else np.hstack([counts.values, controls.values])


def _largest(parts: Sequence[CnvPart], count: int) -> tuple[Window, ...]:
    """The largest CNV regions of all chromosomes, in the order of the genome."""
    every = [window for part in parts for window in part.windows]
    order = sorted(range(len(every)), key=lambda k: (-every[k].length, k))[:count]
    return tuple(every[k] for k in sorted(order))
