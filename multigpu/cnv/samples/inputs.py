"""What a copy-number run begins with: counts, or alignments to count, and facts about samples."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from multigpu.cnv.samples import genomes, sex
from multigpu.errors import QUOTED, InputError, UsageError, quoted
from multigpu.formats.storage.sources import open_content, read_beginning, stands_for_others
from multigpu.formats.tables import misread
from multigpu.formats.tables.counts import Counts

PLOIDY_DIGITS = 4
ALIGNMENT_MAGIC = (b"BAM\1", b"CRAM")
SEX_WORDS = {
    "male": sex.MALE, "m": sex.MALE, "xy": sex.MALE, "1": sex.MALE,
    "female": sex.FEMALE, "f": sex.FEMALE, "xx": sex.FEMALE, "2": sex.FEMALE,
    "unknown": "", "": "", "0": "",
}  # fmt: skip


def are_alignments(paths: Sequence[str]) -> bool:
    """Whether these are files to count first. Raises UsageError for several of anything else."""
    alignments = read_beginning(paths[0])[:4] in ALIGNMENT_MAGIC
    if not alignments and len(paths) > 1:
        with open_content(paths[0]) as file:
            header = file.readline().decode("utf-8-sig", "replace")
        if problem := misread.identify(paths[0], header):
            raise InputError(paths[0], problem)
        raise UsageError(f"{paths[0]} is a counts table: give one table, or alignments")
    return alignments


def expanded(paths: Sequence[str]) -> list[str]:
    """The paths, with the alignments in directories and those that patterns stand for.

    Raises InputError for a directory without alignments.
    """
    if not any(map(stands_for_others, paths)):
        return list(paths)  # without what it takes to load this
    from multigpu.formats.alignments.alignments import files_of

    return files_of(paths)


def read_facts(path: str) -> dict[str, str]:
    """Lines `sample TAB fact` as a dictionary, not empty.

    Raises InputError for what is something else.
    """
    facts: dict[str, str] = {}
    with open_content(path) as file:
        for number, line in enumerate(file, 1):
            text = line.decode("utf-8-sig" if number == 1 else "utf-8", "replace").rstrip("\r\n")
            if not text or text.startswith("#"):
                continue
            name, tab, fact = text.partition("\t")
            if not tab or name in facts:
                problem = f"{quoted(name)} is there twice" if tab else "two columns are needed"
                raise InputError(path, problem, f"line {number}")
            facts[name] = fact.strip()
    if not facts:
        raise InputError(path, "names no sample: it has lines `sample TAB fact`")
    return facts


def ploidies(facts: Mapping[str, Any], samples: Sequence[str]) -> tuple[int, ...]:
    """The ploidy of every sample, 2 of those that are not named.

    Raises UsageError for a sample that is not there and for what is no whole number.
    """
    _check_names(facts, samples, "ploidy")
    found = []
    for name in samples:
        text = str(facts.get(name, 2))
        if not text.isascii() or not text.isdigit():
            raise UsageError(f"the ploidy of {name} is {quoted(text)}, not a whole number")
        if len(text) > PLOIDY_DIGITS:
            raise UsageError(f"the ploidy of {name} is {quoted(text)}: no genome has as many sets")
        found.append(int(text))
    return tuple(found)


def sexes(facts: Mapping[str, str], samples: Sequence[str]) -> tuple[str, ...]:
    """male, female or nothing of every sample; nothing of those that are not named."""
    _check_names(facts, samples, "sex")
    found = []
    for name in samples:
        word = facts.get(name, "").lower()
        if word not in SEX_WORDS:
            raise UsageError(f"the sex of {name} is {quoted(word)}: male, female or unknown")
        found.append(SEX_WORDS[word])
    return tuple(found)


def _check_names(facts: Mapping[str, Any], samples: Sequence[str], what: str) -> None:
    if unknown := [name for name in facts if name not in samples]:
        name = unknown[0]
        shown = name if name.isprintable() and len(name) <= QUOTED else quoted(name)
        raise UsageError(f"there is a {what} of {shown}, but no such sample")


def sex_coverage(
    counts: Counts, controls: Counts | None, genome: str | None
) -> sex.Coverage | None:
    """Of every sample and then control; None where it says nothing of their sexes."""
    if controls is not None and len(controls.regions) != len(counts.regions):
        return None  # they are refused by the job
    known = genomes.known(genome, counts.regions)
    par = known.par if known else ()
    tables = [table for table in (counts, controls) if table is not None]
    found = [sex.coverage(table.values, counts.regions, par) for table in tables]
    parts = [each for each in found if each is not None]
    return sex.Coverage.joined(parts) if parts else None


def paths_of(paths: Any) -> list[str]:
    """One path or several as texts; see `expanded`."""
    if isinstance(paths, str | os.PathLike):
        return expanded([os.fspath(paths)])
    return expanded([os.fspath(path) for path in paths])
