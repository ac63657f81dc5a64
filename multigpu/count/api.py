"""Reads of alignment files in regions: the stage function `count`, which the command calls too."""

import os
import uuid
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, fields, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.plan import balanced
from multigpu.count.work import CountPart, CountSpan, CountWorkload
from multigpu.errors import InputError, UsageError, quoted
from multigpu.formats.alignments.alignments import (
    RG,
    Alignments,
    check_references,
    files_of,
    inspect,
    numbers_of,
    sample_of,
    with_index,
)
from multigpu.formats.alignments.regions import LONGEST, Regions, read_bed, windows
from multigpu.formats.tables.counts import Counts
from multigpu.formats.tables.counts_cache import CountsCache
from multigpu.kernels.counting.types import Counting
from multigpu.run.job import Job, Paths, path_list
from multigpu.run.keywords import run_options
from multigpu.run.options import RunOptions

WINDOW = 25_000  # bases
HIGHEST_MAPQ = 255


@dataclass(frozen=True)
class CountOptions:
    """What is counted where; the name in R in brackets.

    window        bases of a window [WL]; not used with `regions`
    chromosomes   the references to take, in this order [refSeqNames]; none: all, in the file's
    regions       a BED file instead of windows [GR]
    sample_names  instead of the files' names [sampleNames]; `@RG`: those in their read groups
    counting      which reads count, and what they cover
    rename        auto: names of chromosomes that differ by `chr` are the same
    compat_r      windows as R makes them: see `multigpu.formats.alignments.regions.windows`
    index         use indexes, and make those that are missing
    cache         a folder that keeps the counts of each sample
    """

    window: int = WINDOW
    chromosomes: tuple[str, ...] = ()
    regions: str | None = None
    sample_names: tuple[str, ...] = ()
    counting: Counting = field(default_factory=Counting)
    rename: Literal["none", "auto"] = "none"
    compat_r: bool = False
    index: bool = True
    cache: str | None = None

    @classmethod
    def of(cls, **given: Any) -> Self:
        """From the parameters of `count`: those of `counting` stand beside the others."""
        reads = {f.name: given.pop(f.name) for f in fields(Counting) if f.name in given}
        for name in ("chromosomes", "sample_names"):
            if name in given:
                given[name] = _names(given[name])
        for name in ("regions", "cache"):
            if given.get(name) is not None:
                given[name] = os.fspath(given[name])
        return cls(**given, counting=Counting(**reads))

    def parameters(self) -> dict[str, Any]:
        """What `of` takes."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "counting"}
        return own | asdict(self.counting)

    def __post_init__(self) -> None:
        given = self.parameters()
        for name in ("window", "min_mapq", "read_width"):
            if not isinstance(value := given[name], Integral):
                raise UsageError(f"{name} is {quoted(str(value))}: it must be a whole number")
            if int(value) >= LONGEST:
                raise UsageError(f"{name} is {quoted(str(value))}: no chromosome is as long")
        if self.window < 1:
            raise UsageError(f"windows of {self.window} bases are not possible")
        if not 0 <= self.counting.min_mapq <= HIGHEST_MAPQ:
            raise UsageError(f"min_mapq is {self.counting.min_mapq}: it lies within 0 to 255")
        if self.counting.read_width < 1:
            raise UsageError(f"reads cannot cover {self.counting.read_width} bases")
        if self.rename not in ("none", "auto"):
            raise UsageError(f"rename is {self.rename!r}; it can be none or auto")
        if self.regions is not None and self.chromosomes:
            raise UsageError("give regions or chromosomes, not both")
        if self.regions is not None and self.window != WINDOW:
            raise UsageError("give regions or a window, not both")


class CountJob(Job):
    """A count: opened (all files looked at), and run once, on CPUs also where there are GPUs."""

    def __init__(
        self, files: Sequence[str], options: CountOptions, run: RunOptions, client: Any = None
    ) -> None:
        if not files:
            raise UsageError("no alignment files given")
        super().__init__(replace(run, gpus="none"), client=client, devices=())
        self.options = options
        self.files = [inspect(path) for path in files_of(files)]
        self.samples = _sample_names(self.files, options.sample_names)
        check_references(self.files, self._rename)
        self.regions, self.numbers, self.notes = self._asked()
        self.reads = 0  # mapped ones seen so far

    @property
    def _rename(self) -> bool:
        return self.options.rename == "auto"

    def _asked(self) -> tuple[Regions, list[int], tuple[str, ...]]:
        """The regions, the references that their chromosomes stand for, and notes."""
        file, options = self.files[0], self.options
        if options.regions is not None:
            regions, notes = read_bed(options.regions)
            numbers = numbers_of(regions.names, file, self._rename, options.regions, regions)
            return regions, numbers, (*notes, *_beyond(regions, numbers, file))
        names = options.chromosomes or tuple(name for name, _ in file.references)
        numbers = numbers_of(names, file, self._rename, "--chromosomes")
        references = [file.references[number] for number in numbers]
        if options.compat_r:
            _check_lengths(file, references)
        if not any(length for _, length in references):
            raise InputError(file.path, "its references have no bases: there are no windows")
        return windows(references, options.window, options.compat_r), numbers, ()

    @property
    def lengths(self) -> dict[str, int]:
        """Bases of the references, under the names that the regions have for them."""
        references = (self.files[0].references[number] for number in self.numbers)
        sizes = [length for _, length in references]
        return dict(zip(self.regions.names, sizes, strict=True))

    def counts(self) -> Counts:
        """The table. Raises what stopped the count."""
        cache = self._cache()
        values = np.zeros((len(self.regions), len(self.files)), np.int32)
        missing = []
        for number, file in enumerate(self.files):
            kept = cache.get(file.path) if cache else None
            if kept is None:
                missing.append(number)
            else:
                values[:, number] = kept
        for number in self._counted(missing, values):
            if cache:
                cache.put(self.files[number].path, values[:, number])
        return Counts(self.regions, self.samples, values, (*self.notes, *self._empty(values)))

    def _cache(self) -> CountsCache | None:
        options = self.options
        if options.cache is None:
            return None
        return CountsCache(options.cache, self.regions, self.numbers, options.counting)

    def _counted(self, numbers: Sequence[int], values: NDArray[np.int32]) -> Iterator[int]:
        """Fills the columns of these files; gives each number when its column is complete."""
        waiting = deque(numbers)
        for part in self._parts(numbers):
            while waiting[0] < part.file:
                yield waiting.popleft()
            values[part.rows, part.file] += part.counts
            self.reads += part.reads
        yield from waiting

    def _parts(self, numbers: Sequence[int]) -> Iterator[CountPart]:
        """The parts of these files in order."""
        if not numbers:
            return
        files = self._visible()
        with ExitStack() as stack:
            crew = self.crew(stack, [files[number].path for number in numbers])
            workload = CountWorkload(
                uuid.uuid4().hex, files, self.regions, self.numbers, self.options.counting,
                crew.expected,
            )  # fmt: skip
            stored = sum(Path(files[number].path).stat().st_size for number in numbers)
            size = balanced(stored, self.run.chunk_bytes(), crew.capacity.threads)
            spans = self.skip_finished(self._spans(workload, numbers, size))
            for outcome in self.run_spans(crew, workload, spans):
                yield outcome.part

    def _spans(
        self, workload: CountWorkload, numbers: Sequence[int], size: int
    ) -> Iterator[CountSpan]:
        """Indexes that are missing are made here, while files before are counted."""
        for number in numbers:
            file = self.files[number]
            if self.options.index:
                file = with_index(file, self.deployment.threads)
            else:
                file = replace(file, index=None)
            yield from workload.spans(number, file, size)

    def _visible(self) -> list[Alignments]:
        """The files with paths that mean the same elsewhere."""
        if not self.remote:
            return self.files
        return [replace(file, path=str(Path(file.path).absolute())) for file in self.files]

    def _empty(self, values: NDArray[np.int32]) -> Iterator[str]:
        for number in np.flatnonzero(~values.any(axis=0)).tolist():
            yield f"{self.files[number].path}: no read counts: {self.samples[number]} is all zero"


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Several, or a text with commas between, as on the command line."""
    return tuple(given.split(",")) if isinstance(given, str) else tuple(given)


def _sample_names(files: Sequence[Alignments], given: Sequence[str]) -> tuple[str, ...]:
    """Those given, or the files' names without their suffix. Raises UsageError for a name twice."""
    by_group = tuple(given) == (RG,)
    if by_group:
        given = [sample_of(file) for file in files]
    if given and len(given) != len(files):
        raise UsageError(f"there are {len(given)} sample names for {len(files)} files")
    names = tuple(_text(name) for name in given or [Path(file.path).stem for file in files])
    for name, times in Counter(names).items():
        if times > 1:
            other = "" if given else f", or --sample-names {RG} for the names in their read groups"
            here = "are called" if not by_group else "are, by their read groups, called"
            problem = f"{times} samples {here} {name}"
            raise UsageError(f"{problem}: give --sample-names NAME,…, one for each file{other}")
    return names


def _text(name: str) -> str:
    """Tables are UTF-8: bytes of a file's name that are not become U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace")


def _check_lengths(file: Alignments, references: Sequence[tuple[str, int]]) -> None:
    """R takes windows by length, and stops where two references have the same."""
    seen: dict[int, str] = {}
    for name, length in references:
        if length in seen:
            problem = f"{seen[length]} and {name} have the same length, at which R stops"
            raise InputError(file.path, f"{problem}: leave out --compat r, or one of them")
        seen[length] = name


def _beyond(regions: Regions, numbers: Sequence[int], file: Alignments) -> Iterator[str]:
    """A note where regions end behind their reference: those of another assembly often do."""
    lengths = np.array([file.references[number][1] for number in numbers], np.int64)
    rows = np.flatnonzero(regions.end > lengths[regions.chrom])
    if len(rows):
        name = regions.names[regions.chrom[rows[0]]]
        where = f"{name}:{regions.start[rows[0]]}-{regions.end[rows[0]]}"
        yield f"regions that end behind their reference: {len(rows):,}, the first one is {where}"


def count(
    files: Paths,
    *,
    window: int = WINDOW,
    chromosomes: Sequence[str] = (),
    regions: str | os.PathLike[str] | None = None,
    sample_names: Sequence[str] = (),
    min_mapq: int = 1,
    remove_duplicates: bool = False,
    read_width: int = 1,
    get_width: bool = False,
    stranded_start: bool = False,
    rename: Any = "none",
    compat_r: bool = False,
    index: bool = True,
    cache: str | os.PathLike[str] | None = None,
    client: Any = None,
    **run: Any,
) -> Counts:
    """Return the reads of BAM or CRAM files in windows or regions.

    files    one a sample, all with the same references
    client   a `dask.distributed.Client` to use instead of this machine
    run      fields of `multigpu.run.options.RunOptions`, and `workers`: worker processes on this
             machine; GPUs are not used
    others   as in `CountOptions` and `multigpu.kernels.counting.types.Counting`

    Raises UsageError and InputError for what is wrong with options and files.
    """
    running = run_options(count, run)
    options = CountOptions.of(
        window=window, chromosomes=chromosomes, regions=regions, sample_names=sample_names,
        min_mapq=min_mapq, remove_duplicates=remove_duplicates, read_width=read_width,
        get_width=get_width, stranded_start=stranded_start, rename=rename, compat_r=compat_r,
        index=index, cache=cache,
    )  # fmt: skip
    return CountJob(path_list(files), options, running, client).counts()
