"""Damaged files, and what the program says of them.

As a process: `python mutants.py FOLDER SEED FORMAT … [--mutants N | --seconds S]`. It makes a small
file of each format, and of it mutants by chance, each from the seed and its number alone, which
the program reads in this process. A line of JSON on standard output tells of a mutant that was
answered otherwise than by a result or by an error of the program's own; its file stays in the
folder, as does the last one where the process crashed or hung. The last line counts the mutants.
"""

import argparse
import faulthandler
import json
import logging
import re
import resource
import shutil
import sys
import time
import traceback
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from faults import mutant_formats  # noqa: E402
from faults.mutant_formats import Format  # noqa: E402

from multigpu.errors import Failure  # noqa: E402

HANGS = 20.0  # seconds
HANGS_ON_BOMB = 120.0  # which is gigabytes to decompress
MEMORY = 2 << 30  # bytes more than were taken before
LONGEST_MESSAGE = 2000  # characters: longer ones repeat what is in the file
NO_MEMORY = "memory"  # is what a record of gigabytes may be refused for
Chance = np.random.Generator

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
ABSURD_TEXTS = (
    b"-1", b"0", b"1", b"1e308", b"-1e308", b"1e-320", b"nan", b"inf", b"-inf", b"", b"x", b"1_0",
    b"99999999999999999999", b"2147483647", b"2147483648", b"4294967296", b"9223372036854775807",
    b"9223372036854775808", b"-2147483649", b"1" * 400, b"0.1.2", b"1e999", b"+5", b"\xff",
    b"1000000",
)  # fmt: skip
ABSURD_WORDS = (
    -1, 0, 1, 2, 255, 65_536, 1_000_000_000, 2**31 - 1, -(2**31), -2, 2**30, 2**24, 100,
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """kind: how it was made; inner: whether the content was mutated, not what is stored."""

    content: bytes
    kind: str
    inner: bool


# ---- making them ------------------------------------------------------------------------------


def flipped(content: bytes, chance: Chance) -> bytes:
    """With one to eight bits changed."""
    changed = bytearray(content)
    for at in chance.integers(8 * len(content), size=chance.integers(1, 9)).tolist():
        changed[at // 8] ^= 1 << at % 8
    return bytes(changed)


def cut(content: bytes, chance: Chance) -> bytes:
    """A part from the beginning, often up to the end of a line."""
    at = int(chance.integers(1, max(2, len(content))))
    if chance.random() < 0.3:
        at = max(1, content.rfind(b"\n", 0, at) + 1)
    return content[:at]


def spliced(content: bytes, chance: Chance) -> bytes:
    """The beginning, and then from somewhere else on to the end."""
    a, b = chance.integers(len(content) + 1, size=2).tolist()
    return content[:a] + content[b:]


def repeated(content: bytes, chance: Chance) -> bytes:
    """With a block of it there several times."""
    a, b = _block(content, chance)
    return content[:b] + content[a:b] * int(chance.integers(1, 5)) + content[b:]


def shortened(content: bytes, chance: Chance) -> bytes:
    """Without a block."""
    a, b = _block(content, chance)
    return content[:a] + content[b:]


def _block(content: bytes, chance: Chance) -> tuple[int, int]:
    at = int(chance.integers(len(content) + 1))
    return at, min(len(content), at + int(chance.integers(1, 200)))


def absurd_text(content: bytes, chance: Chance) -> bytes:
    """With one to three numbers replaced."""
    for _ in range(chance.integers(1, 4)):
        places = [match.span() for match in NUMBER.finditer(content)]
        if places:
            a, b = places[int(chance.integers(len(places)))]
            absurd = ABSURD_TEXTS[int(chance.integers(len(ABSURD_TEXTS)))]
            content = content[:a] + absurd + content[b:]
    return content


def absurd_words(content: bytes, chance: Chance) -> bytes:
    """With one to three numbers of four bytes overwritten, of two or eight now and then."""
    changed = bytearray(content)
    near = 256 if chance.random() < 0.5 else len(content)  # headers are in front
    for _ in range(chance.integers(1, 4)):
        size = int(chance.choice([2, 4, 4, 4, 8]))
        at = int(chance.integers(max(1, min(near, len(content)) - size)))
        at -= at % 4 if chance.random() < 0.7 else 0
        word = ABSURD_WORDS[int(chance.integers(len(ABSURD_WORDS)))]
        changed[at : at + size] = (word % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(changed[: len(content)])


BINARY = (flipped, flipped, cut, spliced, repeated, shortened, absurd_words, absurd_words)
TEXT = (flipped, cut, cut, spliced, repeated, shortened, absurd_text, absurd_text, absurd_text)


def mutant_of(given: Format, seed: int, number: int) -> Mutant:
    """The one of this number."""
    chance = np.random.default_rng([seed, zlib.crc32(given.name.encode()), number])
    inner = given.wrap is not None and chance.random() < 0.6
    content, is_text = (
        (given.inner, given.inner_is_text) if inner else (given.content, given.is_text)
    )
    kinds = TEXT if is_text else BINARY
    kind = kinds[int(chance.integers(len(kinds)))]
    changed = kind(content, chance)
    if inner:
        assert given.wrap is not None
        changed = given.wrap(changed)
    return Mutant(changed, kind.__name__, inner)


# ---- reading them -----------------------------------------------------------------------------


def problem_of(given: Format, mutant: Mutant, usual: Any) -> str:
    """What is wrong with how the program answers; nothing where all is well."""
    try:
        answer = (given.parse_inner or given.parse)() if mutant.inner else given.parse()
    except Failure as error:
        return _wrong_refusal(error, mutant)
    except BaseException as error:  # noqa: BLE001 - each is a finding
        return f"{type(error).__name__}: {error} | {_where(error)}"
    if mutant.content == given.content:
        return ""
    if mutant.kind == "cut" and _is_truncated(given, mutant):
        return "a truncated file was accepted"
    sound = given.is_checked and not mutant.inner and mutant.kind in ("flipped", "cut")
    return "the answer is another one" if sound and answer != usual else ""


def _is_truncated(given: Format, mutant: Mutant) -> bool:
    """Whether it can be told that the file, or what is in it, ends early."""
    if mutant.inner:
        return given.inner_cut_is_seen(given.unwrap(mutant.content))
    return given.cut_is_seen(mutant.content)


def _wrong_refusal(error: Failure, mutant: Mutant) -> str:
    if mutant.kind == "bomb" and NO_MEMORY in str(error):
        return ""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError):
            return f"MemoryError: {error} | {_where(cause)}"
        cause = cause.__cause__
    said = str(error)
    if not said or len(said) > LONGEST_MESSAGE:
        return f"a message of {len(said)} characters: {said[:200]}"
    return ""


def _where(error: BaseException) -> str:
    """The last lines of the program that it went through."""
    frames = [
        f"{Path(frame.filename).name}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    return " ".join(frames[-6:])


def try_all(
    given: Format, mutants: Iterator[tuple[int, Mutant]], seed: int, folder: Path, end: float
) -> None:
    """Print a line for each finding, and one with how many mutants there were.

    mutants  and their numbers
    end      when no other is begun
    """
    usual = given.parse()
    tried = problems = 0
    limit_memory()
    for number, mutant in mutants:
        if time.monotonic() > end:
            break
        given.place(mutant.content)
        waits = HANGS_ON_BOMB if mutant.kind == "bomb" else HANGS
        faulthandler.dump_traceback_later(waits, exit=True)
        problem = problem_of(given, mutant, usual)
        faulthandler.cancel_dump_traceback_later()
        tried += 1
        if problem:
            problems += 1
            kept = folder / f"{given.name}-{seed}-{number}{given.path.suffix}"
            kept.write_bytes(mutant.content)
            what = {"format": given.name, "number": number, "kind": mutant.kind}
            print(json.dumps({**what, "inner": mutant.inner, "problem": problem}), flush=True)
    print(json.dumps({"format": given.name, "mutants": tried, "problems": problems}), flush=True)


def limit_memory() -> None:
    """To what the process has now, and MEMORY."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("seed", type=int)
    parser.add_argument("formats", nargs="+", choices=mutant_formats.FORMATS)
    parser.add_argument("--mutants", type=int, help="of each format")
    parser.add_argument("--seconds", type=float, help="of all formats")
    parser.add_argument("--only", type=int, help="the mutant of this number")
    parser.add_argument("--bomb", type=int, help="only the file of this number that is huge inside")
    given = parser.parse_args()
    faulthandler.enable()
    logging.disable()
    warnings.simplefilter("error")  # it would be a line more than the answer
    for name in given.formats:
        place = given.folder / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        made = mutant_formats.FORMATS[name](place)
        end = time.monotonic() + (given.seconds or np.inf) / len(given.formats)
        numbers = count() if given.mutants is None else iter(range(given.mutants))
        numbers = numbers if given.only is None else iter([given.only])
        mutants = ((number, mutant_of(made, given.seed, number)) for number in numbers)
        if given.bomb is not None:
            mutants = ((n, Mutant(made.bombs[n](), "bomb", True)) for n in (given.bomb,))
        try_all(made, mutants, given.seed, given.folder, end)


if __name__ == "__main__":
    main()
