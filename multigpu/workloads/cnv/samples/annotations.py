"""Ploidies and sexes that a user gives: for all samples, in a file, or from Python."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from multigpu.errors import InputError, UsageError, option, quoted
from multigpu.formats.storage.sources import text_lines
from multigpu.formats.storage.stored_streams import STDIN
from multigpu.run import values
from multigpu.workloads.cnv.samples.sex import FEMALE, MALE

PLOIDY_DIGITS = 4
PED_COLUMNS = 6  # family, sample, father, mother, sex, phenotype; what follows is left out
SEX_WORDS = {
    "male": MALE, "m": MALE, "xy": MALE, "1": MALE,
    "female": FEMALE, "f": FEMALE, "xx": FEMALE, "2": FEMALE,
    "unknown": "", "": "", "0": "",
}  # fmt: skip


def read_ploidies(given: Any, samples: Sequence[str]) -> tuple[int, ...] | None:
    """Return the ploidy of every sample, 2 for those that are not named; None if none is given.

    given  a file, a mapping, a number for all samples, a number for each of them, or None

    Raises UsageError and InputError.
    """
    if given is None:
        return None
    if isinstance(given, int) and not isinstance(given, bool):
        given = str(given)
    if isinstance(given, str) and given.isdigit() and not os.path.lexists(given):
        given = dict.fromkeys(samples, given)
    elif isinstance(given, Iterable) and not isinstance(given, str | os.PathLike | Mapping):
        numbers = list(given)
        if len(numbers) != len(samples):
            raise UsageError(
                f"{option('ploidy')}: {len(numbers)} numbers for {len(samples)} samples"
            )
        given = dict(zip(samples, numbers, strict=True))
    expected = "a whole number for all samples, or a file with lines `sample TAB number`"
    kinds = "a file, a mapping of samples, or a number for each"
    facts = _facts(option("ploidy"), given, samples, expected, kinds)
    found = []
    for name in samples:
        text = str(facts.get(name, 2))
        if not text.isascii() or not text.isdigit():
            raise UsageError(f"the ploidy of {name} is {quoted(text)}, not a whole number")
        if len(text) > PLOIDY_DIGITS:
            raise UsageError(f"the ploidy of {name} is {quoted(text)}: no genome has as many sets")
        found.append(int(text))
    return tuple(found)


def read_sexes(given: Any, samples: Sequence[str]) -> tuple[str, ...] | None:
    """Return male, female or "" for every sample; () if sexes are not used, None to infer them.

    given  "infer", "none", "male" or "female" for all, a file, a mapping, or None, which is "none"

    Raises UsageError and InputError.
    """
    if given is None or (isinstance(given, str) and given == "none"):
        return ()
    if isinstance(given, str) and given == "infer":
        return None
    if isinstance(given, str) and given in (MALE, FEMALE) and not os.path.lexists(given):
        return (given,) * len(samples)
    expected = "infer, none, male or female for all samples, or a file with lines `sample TAB sex`"
    kinds = "infer, none, male, female, a file, or a mapping of samples"
    facts = _facts(option("sex"), given, samples, expected, kinds, may_be_pedigree=True)
    words = [str(facts.get(name, "")).lower() for name in samples]
    for name, word in zip(samples, words, strict=True):
        if word not in SEX_WORDS:
            raise UsageError(f"the sex of {name} is {quoted(word)}: male, female or unknown")
    return tuple(SEX_WORDS[word] for word in words)


def _facts(
    option: str,
    given: Any,
    samples: Sequence[str],
    expected: str,
    kinds: str,
    may_be_pedigree: bool = False,
) -> Mapping[str, Any]:
    """Return the facts of a file or a mapping, by sample.

    expected, kinds  what the option takes, for messages on a word and on anything else
    may_be_pedigree  whether a file may be PED

    Raises UsageError and InputError.
    """
    facts = given
    if isinstance(given, str | os.PathLike):
        name = os.fspath(given)
        # A word that looks like the path of a file is left to whoever reads it.
        looks_like_path = name == STDIN or "/" in name or Path(name).suffix[1:].isalpha()
        if isinstance(given, str) and not looks_like_path and not os.path.lexists(given):
            problem = f"expected {expected}, and there is no such file"
            raise UsageError(f"{option} is {quoted(given)}: {problem}")
        lines = [row for row in text_lines(name) if row[1] and not row[1].startswith("#")]
        is_pedigree = may_be_pedigree and len(_ped_cells(lines[0][1] if lines else "")) > 2
        facts = read_pedigree(name, lines, samples) if is_pedigree else read_facts(name, lines)
    if not isinstance(facts, Mapping):
        raise UsageError(f"{option} is {values.abbreviate(given)}; it can be {kinds}")
    if unknown := [name for name in facts if name not in samples]:
        name = quoted(str(unknown[0]))
        raise UsageError(f"{option} names sample {name}, which is not in the counts")
    return facts


def read_facts(path: str, lines: Iterable[tuple[int, str]]) -> dict[str, str]:
    """Return lines `sample TAB fact`, with their numbers, as a dictionary, which is not empty.

    Raises InputError for other lines.
    """
    facts: dict[str, str] = {}
    for number, text in lines:
        name, tab, fact = text.partition("\t")
        if not tab or name in facts:
            problem = f"expected a sample, a tab, and its sex or ploidy, not {quoted(text)}"
            problem = f"{quoted(name)} is listed twice" if tab else problem
            raise InputError(path, problem, f"line {number}")
        facts[name] = fact.strip()
    if not facts:
        problem = "names no sample: expected lines with a sample, a tab, and its sex or ploidy"
        raise InputError(path, problem)
    return facts


def read_pedigree(
    path: str, lines: Iterable[tuple[int, str]], samples: Sequence[str]
) -> dict[str, str]:
    """Return the sexes of these samples in lines of PED, of which others, parents say, are left.

    Sexes that are neither 1 and 2 nor words for them are unknown.

    Raises InputError for a line with other columns, for a sample with two sexes, and where no line
    is of the samples.
    """
    found: dict[str, str] = {}
    for number, text in lines:
        cells = _ped_cells(text)
        if len(cells) < PED_COLUMNS:
            problem = f"has {len(cells)} columns, where PED has {PED_COLUMNS}"
            raise InputError(path, problem, f"line {number}")
        if cells[1] in samples:
            sex = SEX_WORDS.get(cells[4].strip().lower(), "")
            if found.setdefault(cells[1], sex) != sex:
                problem = f"{quoted(cells[1])} is listed twice, with different sexes"
                raise InputError(path, problem, f"line {number}")
    if not found:
        raise InputError(path, "has none of the samples in its second column, as PED has them")
    return found


def _ped_cells(text: str) -> list[str]:
    """Return the columns of a line, by tabs if it has any, else by blanks."""
    return text.split("\t") if "\t" in text else text.split()
