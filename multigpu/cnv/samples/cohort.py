"""Cases and controls: which options are for which of them, names that they share, their facts."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from multigpu.cnv.samples import inputs, sex
from multigpu.errors import NAMED, UsageError, quoted, several, shown
from multigpu.formats.alignments.alignments import RG, without_chr
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.storage.inlets import STDIN
from multigpu.formats.tables.counts import Counts

if TYPE_CHECKING:
    from multigpu.cnv.job import CnvJob
    from multigpu.count.options import CountOptions

COUNTING = {  # parameters of `multigpu.count` and how the command calls them
    "window": "--window", "chromosomes": "--chromosomes", "regions": "--regions",
    "sample_names": "--sample-names", "min_mapq": "--min-mapq",
    "remove_duplicates": "--remove-duplicates", "read_width": "--read-width",
    "get_width": "--get-width", "stranded_start": "--stranded-start", "rename": "--rename",
    "index": "--no-index", "cache": "--counts-cache",
}  # fmt: skip


@dataclass(frozen=True)
class Given:
    """What a run was given, for its summary and its report.

    cases, controls  the files
    counting         parameters of counting: all of them where there are alignments, else those that
                     were given
    samples          names of the cases and then the controls
    counted          whether the cases were alignments, whose counts were written
    """

    cases: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    counting: Mapping[str, Any] = field(default_factory=dict)
    samples: tuple[str, ...] = ()
    counted: bool = False


@dataclass(frozen=True)
class Facts:
    """Of all samples and then controls; see `ploidies` and `sexes`."""

    ploidy: tuple[int, ...] | None
    sexes: tuple[str, ...] | None


def check_counting(given: Iterable[str], table: str, others: str | None) -> None:
    """Raises UsageError for options of counting where there is nothing to count.

    given   the parameters in COUNTING that were given
    table   that of the cases; empty: they are alignments
    others  the same of the controls; None: there are none
    """
    if not table:
        return
    useless = [name for name in COUNTING if name in set(given) - {"chromosomes"}]
    if others == "":
        useless = [name for name in useless if name == "sample_names"]  # which is of the cases
    elif "rename" in useless and (others or "chromosomes" in given):
        useless.remove("rename")
    if useless:
        options = ", ".join(COUNTING[name] for name in useless)
        raise UsageError(f"{options}: for alignments only, and {table} is a counts table")


def selected(counts: Counts, names: Sequence[str], rename: bool, source: str) -> Counts:
    """The chromosomes of these names, in this order; all of them where no name is given.

    rename  names that differ by `chr` are the same
    source  what the counts are, for the error
    """
    if not names:
        return counts
    regions = counts.regions
    blocks = {regions.names[regions.chrom[rows.start]]: rows for rows in regions.blocks}
    wanted = [_called(name, tuple(blocks), rename, source) for name in names]
    if twice := [name for name in wanted if wanted.count(name) > 1]:
        raise UsageError(f"--chromosomes: {shown(twice[0])} is there twice")
    rows = np.concatenate([np.r_[blocks[name]] for name in wanted])
    sizes = [blocks[name].stop - blocks[name].start for name in wanted]
    chrom = np.repeat(np.arange(len(wanted), dtype=np.int32), sizes)
    chosen = Regions(tuple(wanted), chrom, regions.start[rows], regions.end[rows])
    return Counts(chosen, counts.samples, counts.values[rows], counts.notes)


def _called(name: str, there: Sequence[str], rename: bool, source: str) -> str:
    """What this table calls a chromosome."""
    if name in there:
        return name
    alike = [theirs for theirs in there if without_chr(theirs) == without_chr(name)]
    if alike and rename:
        return alike[0]
    if alike:
        problem = f"{name} is called {alike[0]} in {source}: --rename auto takes them as the same"
        raise UsageError(f"--chromosomes: {problem}")
    has = f"it has {several(there)}"
    raise UsageError(f"--chromosomes: {source} has no chromosome {shown(name)}: {has}")


def of_controls(counting: "CountOptions") -> "CountOptions":
    """How controls are counted: the names that were given are those of the cases."""
    by_group = counting.sample_names == (RG,)
    return counting if by_group else replace(counting, sample_names=())


def as_controls(controls: Counts, cases: Counts, counting: "CountOptions") -> Counts:
    """Under the cases' names of chromosomes, where that was asked for."""
    return renamed(controls, cases) if counting.rename == "auto" else controls


def renamed(controls: Counts, cases: Counts) -> Counts:
    """The controls, with the cases' names of chromosomes that differ by `chr` only."""
    ours = {without_chr(name): name for name in cases.regions.names}
    theirs = controls.regions
    names = tuple(
        name if name in cases.regions.names else ours.get(without_chr(name), name)
        for name in theirs.names
    )
    if len(set(names)) < len(names):
        return controls  # two would become one: they differ by more
    regions = Regions(names, theirs.chrom, theirs.start, theirs.end)
    return Counts(regions, controls.samples, controls.values, controls.notes)


# ---- facts of samples ---------------------------------------------------------------------------


def ploidies(given: Any, names: Sequence[str]) -> tuple[int, ...] | None:
    """Of all samples and then controls.

    given  a file, a mapping, a number for each of them, a number for all, or None
    """
    if given is None:
        return None
    if isinstance(given, int) and not isinstance(given, bool):
        given = str(given)
    if isinstance(given, str) and given.isdigit() and not os.path.lexists(given):
        return inputs.ploidies(dict.fromkeys(names, given), names)
    _check_there("--ploidy", given, "a whole number for all samples", "number")
    facts = _facts(given)
    if facts is None and isinstance(given, Iterable):
        numbers = list(given)
        if len(numbers) != len(names):
            raise UsageError(f"--ploidy: {len(numbers)} numbers for {len(names)} samples")
        facts = dict(zip(names, numbers, strict=True))
    if facts is None:
        raise UsageError(
            f"--ploidy is {_value(given)}; it can be a file, a mapping of samples, or a number for"
            " each"
        )
    return inputs.ploidies(facts, names)


def sexes(given: Any, names: Sequence[str]) -> tuple[str, ...] | None:
    """Of all samples and then controls; none where they play no part, None: to be inferred.

    given  "infer", "none", "male" or "female" for all, a file, a mapping, or None, which is "none"
    """
    if given is None or (isinstance(given, str) and given == "none"):
        return ()
    if isinstance(given, str) and given == "infer":
        return None
    if isinstance(given, str) and given in (sex.MALE, sex.FEMALE) and not os.path.lexists(given):
        return inputs.sexes(dict.fromkeys(names, given), names)
    _check_there("--sex", given, "infer, none, male or female for all samples", "sex")
    facts = _facts(given)
    if facts is None:
        raise UsageError(
            f"--sex is {_value(given)}; it can be infer, none, male, female, a file, or a mapping"
            " of samples"
        )
    return inputs.sexes({name: str(fact) for name, fact in facts.items()}, names)


def sexes_unused(given: Any, job: "CnvJob", infer: bool) -> Iterator[str]:
    """A note where sexes are asked for and play no part; see `sexes`."""
    names = [name for name in job.regions.names if sex.is_sexual(name)]
    if not names or given is None or job.ploidy is not None:
        return
    taken = job.options.norm and job.options.model != "haplo"
    if given not in ("infer", "none") and not taken:
        yield "--sex: without effect on --norm 0 and --model haplo"
    if given == "infer" and infer and taken and not any(job.sexes):
        yield (
            f"{' and '.join(names)}: all samples are taken alike, as their sexes cannot be inferred"
            " without reads on X and on other chromosomes: --sex FILE gives them"
        )


def sexes_in_doubt(coverage: sex.Coverage, names: Sequence[str]) -> Iterator[str]:
    """A note where X and Y say different things of samples."""
    rows, assigned = coverage.disagreements(), coverage.sexes()
    if not rows:
        return
    assert coverage.y is not None
    each = [
        f"{shown(names[k])} (X {coverage.x[k]:.2f}, Y {coverage.y[k]:.2f} of the autosomes'"
        f" coverage: taken as {assigned[k]})"
        for k in rows[:NAMED]
    ]
    more = f" and {len(rows) - NAMED:,} more" if len(rows) > NAMED else ""
    yield f"X and Y disagree on the sex of {', '.join(each)}{more}: --sex FILE corrects it"


def _check_there(option: str, given: Any, words: str, fact: str) -> None:
    """Raises UsageError for a word that is neither a file nor what else the option takes.

    What looks like the path of a file is left to who reads it.
    """
    if not isinstance(given, str) or given == STDIN or "/" in given or os.path.lexists(given):
        return
    if not Path(given).suffix[1:].isalpha():
        raise UsageError(
            f"{option} is {quoted(given)}: expected {words}, or a file with lines `sample TAB"
            f" {fact}`, and there is no such file"
        )


def _facts(given: Any) -> Mapping[str, Any] | None:
    """Of samples, from a file or a mapping; None for what is something else."""
    if isinstance(given, str | os.PathLike):
        return inputs.read_facts(os.fspath(given))
    return given if isinstance(given, Mapping) else None


def _value(given: Any) -> str:
    return quoted(repr(given))[1:-1]
