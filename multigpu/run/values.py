"""Kinds of values that options have: what Python gives, what a user types, what both become."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from math import nan
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Protocol

from multigpu.errors import UsageError, option

LONGEST_VALUE = 60  # characters of a wrong value in a message
LAYOUT = re.compile(r"(-?\d+(?:\.\d+)?) ?([kmg]?)(i?)(b|bp|)", re.IGNORECASE)


class Kind(Protocol):
    """Kind of value of an option.

    must     what such a value must be, in words
    metavar  its name in the help, where the option gives none
    """

    @property
    def must(self) -> str: ...

    @property
    def metavar(self) -> str: ...

    def convert(self, value: Any) -> Any:
        """Return a value of Python as the program has it. Raises any error for another."""

    def parse(self, text: str, example: str) -> Any:
        """Return the value of a text of the command line. Raises ValueError with the problem.

        example  the option with a value as it should be
        """


@dataclass(frozen=True)
class Whole:
    """Whole number."""

    must: str = "a whole number"
    metavar: str = "N"

    def convert(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise TypeError
        return int(value)

    def parse(self, text: str, example: str) -> int:
        return int(text)


@dataclass(frozen=True)
class Number:
    """Real number."""

    must: str = "a number"
    metavar: str = "X"

    def convert(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError
        return float(value)

    def parse(self, text: str, example: str) -> float:
        return float(text)


@dataclass(frozen=True)
class Size(Whole):
    """Number of bases or bytes as users write it: 25000, 25k, 25kb, 1.5Mb; 64M, 64MiB, 64MB.

    k, M and G are powers of 1,000; for bytes of 1,024 where no B follows, and with an i anyhow.
    """

    unit: str = "bytes"

    def parse(self, text: str, example: str) -> int:
        size = Decimal(nan)
        if found := LAYOUT.fullmatch(text.strip()):
            number, prefix, binary, last = found.groups()
            base = 1024 if binary or (self.unit == "bytes" and not last) else 1000
            size = Decimal(number) * base ** " kmg".index(prefix.lower() or " ")
        if size % 1 != 0:
            good = "64M" if self.unit == "bytes" else "25kb"
            raise ValueError(f"{text!r} is no number of {self.unit}: give one like 25000 or {good}")
        return int(size)


@dataclass(frozen=True)
class CountOrShare:
    """Whole number of bases, or, as a float below 1, a share of all of them."""

    whole: str
    metavar: str = "K"

    @property
    def must(self) -> str:
        return (
            f"a whole number of bases, e.g. 2, or a share of the {self.whole} from 0.0 to"
            " below 1, e.g. 0.05"
        )

    def convert(self, value: Any) -> int | float:
        if isinstance(value, float) and 0 <= value < 1:
            return value
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
            raise ValueError
        return int(value)

    def parse(self, text: str, example: str) -> int | float:
        try:
            return int(text) if text.lstrip("+-").isdecimal() else float(text)
        except ValueError:
            problem = "is neither a number of bases, e.g. 2, nor a share, e.g. 0.1"
            raise ValueError(f"{text!r} {problem}") from None


@dataclass(frozen=True)
class Choice:
    """One of several values.

    texts     what stands for each on the command line
    in_python whether these texts mean the values in Python, too
    """

    texts: Mapping[str, object]
    in_python: bool = False

    @property
    def must(self) -> str:
        return " or ".join(self.texts)

    @property
    def metavar(self) -> str:
        return f"[{'|'.join(self.texts)}]"

    def convert(self, value: Any) -> Any:
        if isinstance(value, str | int) and value in self.texts.values():
            return value
        if self.in_python:
            return self.texts[value]
        raise ValueError

    def parse(self, text: str, example: str) -> Any:
        return self.texts[text]


@dataclass(frozen=True)
class Switch(Choice):
    """True or False: --x, or --no-x where it is usually on."""

    texts: Mapping[str, object] = field(default_factory={"False": False, "True": True}.copy)


@dataclass(frozen=True)
class Text:
    """Text."""

    must: str = "text"
    metavar: str = "TEXT"

    def convert(self, value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError
        return value

    def parse(self, text: str, example: str) -> str:
        return text


@dataclass(frozen=True)
class Devices(Text):
    """GPUs as `--gpus` takes them; from Python they may be numbers, too, or a list."""

    metavar: str = "WHICH"

    def convert(self, value: Any) -> str:
        if isinstance(value, list | tuple):
            return ",".join(map(self.convert, value)) or "none"
        return str(value) if type(value) is int else super().convert(value)


@dataclass(frozen=True)
class File(Text):
    """Path, as a text."""

    must: str = "a path"
    metavar: str = "FILE"

    def convert(self, value: Any) -> str:
        return super().convert(os.fspath(value))


@dataclass(frozen=True)
class Anything:
    """Value that is checked by whoever uses it; a file on the command line."""

    must: str = "something else"
    metavar: str = "FILE"

    def convert(self, value: Any) -> Any:
        return value

    def parse(self, text: str, example: str) -> str | None:
        return text or None


@dataclass(frozen=True)
class Names:
    """Names, or on the command line and in a text: names with commas between them."""

    must: str = "names"
    metavar: str = "NAME,…"

    def convert(self, value: Any) -> tuple[str, ...]:
        names = value.split(",") if isinstance(value, str) else tuple(value)
        return tuple(map(Text().convert, names)) if value else ()

    def parse(self, text: str, example: str) -> tuple[str, ...]:
        return self.convert(text)


@dataclass(frozen=True)
class Numbers:
    """Numbers, with commas between them on the command line.

    form  their names, as many as there must be; None: any number of them
    """

    form: str | None = None
    metavar: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "metavar", self.form or "X,…")

    @property
    def must(self) -> str:
        return f"{self.form.count(',') + 1} numbers" if self.form else "numbers"

    def convert(self, value: Any) -> tuple[float, ...]:
        numbers = tuple(map(Number().convert, value))
        if self.form and len(numbers) != self.form.count(",") + 1:
            raise ValueError
        return numbers

    def parse(self, text: str, example: str) -> tuple[float, ...]:
        with suppress(ValueError):
            return self.convert(map(float, text.split(",")))
        wanted = f"{self.form}, e.g. {example}" if self.form else self.must
        raise ValueError(f"expected {wanted}; got {text!r}")


StrPath = str | os.PathLike[str]
FilePath = Annotated[StrPath, File()]
TextPath = Annotated[str, File()]  # of the command line
Paths = Annotated[StrPath | Sequence[StrPath], Anything()]
Bases = Annotated[int, Size(unit="bases")]
Bytes = Annotated[int, Size(unit="bytes")]
NameList = Annotated[Sequence[str], Names()]
Vector = Annotated[tuple[float, float, float], Numbers("X,Y,Z")]


def path_of(name: str, value: Any) -> str:
    """Return a path as text. Raises UsageError for anything else; `name`: the parameter's."""
    return str(converted(File(), name, value))


def converted(kind: Kind, name: str, value: Any) -> Any:
    """Return the value of a parameter as `kind` has it. Raises UsageError where it is another."""
    try:
        return kind.convert(value)
    except (TypeError, ValueError, OverflowError, LookupError):
        problem = f"{abbreviate(value)}; it must be {kind.must}"
        raise UsageError(f"{option(name)} is {problem}") from None


def texts_of(paths: Paths | None, name: str) -> list[str]:
    """Return one path or several as texts. Raises UsageError for anything else."""
    given: Any = paths
    if isinstance(given, str | bytes | os.PathLike) or not isinstance(given, Iterable):
        given = [given]
    return [path_of(name, path) for path in given]


def path_list(paths: Paths | None, name: str) -> list[str]:
    """Return one path or several as texts. Raises UsageError for none, or for anything else."""
    if not (found := texts_of(paths, name)):
        raise UsageError(f"no {name} given")
    return found


def journal_path(journal: StrPath | None) -> Path | None:
    """Return the path of a journal; None for None and for an empty text: no journal."""
    return None if journal in (None, "") else Path(path_of("journal", journal))


def abbreviate(value: object) -> str:
    """Return a value for a message: on one line, cut when long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"
