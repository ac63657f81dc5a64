"""Kinds of values that options have: what Python gives, what a user types, what both become."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from math import nan
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any

from multigpu.errors import UsageError, option

LONGEST_VALUE = 60  # characters of a wrong value in a message
SLICE_FORM = re.compile(r"([+-]?[0-9]+)?:([+-]?[0-9]+)?")
FARTHEST = 1e5  # Å; the limit of the kernels, which are too heavy to import here
SETTING = re.compile(r"^\s*(\w+)\s*=\s*([^\s#]+)", re.MULTILINE)
TRIPLE = re.compile(r"[^,\s]+(,[^,\s]+){2}")
LAYOUT = re.compile(r"(-?\d+(?:\.\d+)?) ?([kmg]?)(i?)(b|bp|)", re.IGNORECASE)


@dataclass(frozen=True)
class Kind:
    """Kind of value of an option.

    must     what such a value must be, in words
    metavar  its name in the help, where the option gives none
    convert  returns a value of Python as the program has it; raises any error for another
    parse    returns the value of a text of the command line; raises ValueError, with the problem
             where there is more to say than what it must be
    texts    what stands for each value on the command line, where there are only some
    """

    must: str
    metavar: str
    convert: Callable[[Any], Any]
    parse: Callable[[str], Any] = str
    texts: Mapping[str, object] | None = None


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError
    return int(value)


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError
    return float(value)


def _reals(value: Any) -> tuple[float, ...]:
    return tuple(map(_real, value))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _names(value: Any) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else tuple(value)
    return tuple(map(_text, names)) if value else ()


def _gpus(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_gpus, value)) or "none"
    return str(value) if type(value) is int else _text(value)


def size(unit: str) -> Kind:
    """Return the kind of a number of bases or bytes: 25000, 25k, 25kb, 1.5Mb; 64M, 64MiB, 64MB.

    k, M and G are powers of 1,000; for bytes of 1,024 where no B follows, and with an i anyhow.
    """

    def parse(text: str) -> int:
        size = Decimal(nan)
        if found := LAYOUT.fullmatch(text.strip()):
            number, prefix, binary, last = found.groups()
            base = 1024 if binary or (unit == "bytes" and not last) else 1000
            size = Decimal(number) * base ** " kmg".index(prefix.lower() or " ")
        if size != size.to_integral_value():  # `%` raises for large ones
            good = "64M" if unit == "bytes" else "25kb"
            raise ValueError(f"{text!r} is no number of {unit}: give one like 25000 or {good}")
        return int(size)

    return Kind("a whole number", "N", _whole, parse)


def count_or_share(whole: str) -> Kind:
    """Return the kind of a number of bases, or, as a float below 1, a share of all of them."""

    def convert(value: Any) -> int | float:
        if isinstance(value, float) and 0 <= value < 1:
            return value
        if _whole(value) < 0:
            raise ValueError
        return int(value)

    def parse(text: str) -> int | float:
        try:
            return int(text) if text.lstrip("+-").isdecimal() else float(text)
        except ValueError:
            problem = "is neither a number of bases, e.g. 2, nor a share, e.g. 0.1"
            raise ValueError(f"{text!r} {problem}") from None

    must = "a whole number of bases, e.g. 2, or a share of the {} from 0.0 to below 1, e.g. 0.05"
    return Kind(must.format(whole), "K", convert, parse)


def parse_slice(text: str) -> tuple[int | None, int | None]:
    """Return the borders of a slice as Python has it. Raises ValueError for another text."""
    if not (found := SLICE_FORM.fullmatch(text)):
        raise ValueError
    first, last = (None if each is None else int(each) for each in found.groups())
    return first, last


def _slice(value: Any) -> str:
    parse_slice(value)
    return _text(value)


def _range(value: Any) -> str:
    first, last = parse_slice(value)
    if not 0 <= (first or 0) <= (first or 0 if last is None else last):
        raise ValueError
    return _text(value)


def choice(texts: Mapping[str, object], in_python: bool = False) -> Kind:
    """Return the kind of one of several values.

    texts     what stands for each on the command line
    in_python whether these texts mean the values in Python, too
    """

    def convert(value: Any) -> Any:
        if isinstance(value, str | int) and value in texts.values():
            return value
        if in_python:
            return texts[value]
        raise ValueError

    def parse(text: str) -> Any:
        if text not in texts:
            raise ValueError(f"{text!r} is not one of {', '.join(map(repr, texts))}.")
        return texts[text]

    return Kind(" or ".join(texts), f"[{'|'.join(texts)}]", convert, parse, texts)


def numbers(
    must: str = "numbers", metavar: str = "X,…", convert: Callable[[Any], Any] = _reals
) -> Kind:
    """Return the kind of numbers with commas between them on the command line."""

    def parse(text: str) -> Any:
        try:
            return convert(list(map(float, text.split(","))))
        except ValueError:
            raise ValueError from None

    return Kind(must, metavar, convert, parse)


def vector(form: str) -> Kind:
    """Return the kind of as many numbers as `form` has names, X,Y,Z for instance."""
    count = form.count(",") + 1

    def convert(value: Any) -> tuple[float, ...]:
        found = _reals(value)
        if len(found) != count:
            raise ValueError
        return found

    return numbers(f"{count} numbers", form, convert)


def _box(value: Any) -> Any:
    if isinstance(value, str | os.PathLike):
        value = _read_box(os.fspath(value))
    given = tuple(value)
    box = SIX.convert((*given[0], *given[1]) if len(given) == 2 else given)
    if not all(abs(x) <= FARTHEST for x in box) or min(box[3:]) <= 0:
        shown = ",".join(f"{x:g}" for x in box)
        raise ValueError(f"{shown}: the lengths must be above 0, nothing beyond {FARTHEST:g} Å")
    return box


def _read_box(text: str) -> list[float]:
    """Return center and size, six numbers in a text or in the configuration file of Vina there."""
    with suppress(ValueError):
        return [float(word) for word in text.replace(",", " ").split()]
    found = dict.fromkeys(BOX_NAMES, "")
    try:
        found |= dict(SETTING.findall(Path(text).read_text("utf-8-sig", "replace")))
        return [float(found[name]) for name in BOX_NAMES]
    except OSError:
        raise ValueError from None
    except ValueError:
        lacking = [name for name in BOX_NAMES if not found[name]] or BOX_NAMES
        names = ", ".join(lacking)
        raise ValueError(f"{text} does not say {names}, as a configuration of Vina does") from None


WHOLE = Kind("a whole number", "N", _whole, int)
NUMBER = Kind("a number", "X", _real, float)
SWITCH = choice({"False": False, "True": True})  # --x, and where it is on --no-x
TEXT = Kind("text", "TEXT", _text)
FILE = Kind("a path", "FILE", lambda value: _text(os.fspath(value)))
POCKET = replace(FILE, must="a path, to which multigpu.write_pocket writes a Pocket")
BORDERS = "two whole numbers of which any may be left out"
SLICE = Kind(f"BEGIN:END, {BORDERS}, e.g. 0:10 or -30:", "BEGIN:END", _slice)
RANGE = Kind(f"MIN:MAX, {BORDERS}, MIN not above MAX, e.g. 200:600", "MIN:MAX", _range)
ANYTHING = Kind("something else", "FILE", lambda value: value)  # checked by whoever uses it
BOX_NAMES = ("center_x", "center_y", "center_z", "size_x", "size_y", "size_z")
SIX = vector("X,Y,Z,SX,SY,SZ")
BOX = Kind(
    "a center and lengths above 0, or a configuration file of Vina", "X,Y,Z SX,SY,SZ", _box, _box
)
NAMES = Kind("names", "NAME,…", _names)
GPUS = Kind("text", "WHICH", _gpus)  # as `--gpus` takes them; in Python numbers, too, or a list

StrPath = str | os.PathLike[str]
FilePath = Annotated[StrPath, FILE]
PocketPath = Annotated[StrPath, POCKET]
TextPath = Annotated[str, FILE]  # of the command line
Paths = Annotated[StrPath | Sequence[StrPath], ANYTHING]
Bases = Annotated[int, size("bases")]
Bytes = Annotated[int, size("bytes")]
Gpus = Annotated[str | int | Sequence[str | int], GPUS]
NameList = Annotated[Sequence[str], NAMES]
Box = Annotated[tuple[float, ...], BOX]  # x, y, z of the center, then of the size, Å
Vector = Annotated[tuple[float, float, float], vector("X,Y,Z")]


def converted(kind: Kind, name: str, value: Any) -> Any:
    """Return the value of a parameter as `kind` has it. Raises UsageError where it is another."""
    try:
        return kind.convert(value)
    except (TypeError, ValueError, OverflowError, LookupError):
        problem = f"{abbreviate(value)}; it must be {kind.must}"
        raise UsageError(f"{option(name)} is {problem}") from None


def texts_of(paths: object, name: str) -> list[str]:
    """Return one path or several as texts. Raises UsageError for anything else."""
    given: Any = paths
    if isinstance(given, str | bytes | os.PathLike) or not isinstance(given, Iterable):
        given = [given]
    return [converted(FILE, name, path) for path in given]


def path_list(paths: object, name: str) -> list[str]:
    """Return one path or several as texts. Raises UsageError for none, or for anything else."""
    if not (found := texts_of(paths, name)):
        raise UsageError(f"no {name} given")
    return found


def abbreviate(value: object) -> str:
    """Return a value for a message: on one line, cut when long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"
