"""Paths of files of records: a template, in which {file}, {signature} and others stand for names.

A name becomes a part of a path with all but letters, digits and some signs as %XX, as in URLs. So
different names stay different, and none leaves the folder, is hidden, or is one of `RESERVED`.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from pathlib import PurePath
from string import Formatter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.files import STDOUT, check_output
from multigpu.errors import UsageError, option
from multigpu.formats.names import file_name
from multigpu.formats.sequences.registry import SEQUENCES
from multigpu.formats.storage.input_paths import suffix_of
from multigpu.workloads.scan.options import existing_name

FIELDS = ("file", "sample", "signature", "mate")
TIED, UNKNOWN = RESERVED = ("tied", "unknown")
MOST_BYTES = 255  # of the name of a file


def escape(name: bytes) -> str:
    """Return a name as a part of a path, which is none of `RESERVED`."""
    text = file_name(name)
    return f"%{ord(text[0]):02X}{text[1:]}" if text in RESERVED else text


def bare_name(path: str) -> str:
    """Return a sample file's name without its folder and the suffixes of format and compression."""
    name = PurePath(path.partition("?")[0] if "://" in path else path).name
    suffix = suffix_of(name, SEQUENCES)
    return name[: name.lower().rindex(suffix)] if suffix else name


def name_of_file(path: str) -> str:
    """Return the bare name of a sample file as a part of a path."""
    return escape(os.fsencode(bare_name(path)))


@dataclass(frozen=True)
class RecordPaths:
    """The files that a template stands for, one for each combination of its fields' values.

    option    that the template is the value of
    template  path, with fields of `FIELDS` in braces; "{{" stands for a brace
    values    of each field, as they stand in paths

    Raises UsageError for a template that is no path with fields that have values.
    """

    option: str
    template: str
    values: Mapping[str, Sequence[str]]

    def __post_init__(self) -> None:
        for name in self.fields:
            if name not in FIELDS:
                known = ", ".join(f"{{{each}}}" for each in FIELDS)
                raise self._error(f"{{{name}}} is unknown; there are {known}, and {{{{ for a brace")
            if name not in self.values:
                needs = {"sample": "a sample sheet", "mate": "pairs of reads"}[name]
                raise self._error(f"{{{name}}} needs {needs}")

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields in the template."""
        return tuple(dict.fromkeys(name for _, name in self._parts if name is not None))

    @cached_property
    def _parts(self) -> list[tuple[str, str | None]]:
        """The template as text and the field after it; None after the last."""
        try:
            parts = list(Formatter().parse(self.template))
        except ValueError as error:
            raise self._error(f"{error}; {{{{ stands for a brace") from None
        if wrong := next((f"{name}{'!' if x else ':'}" for _, name, y, x in parts if y or x), ""):
            raise self._error(f"{{{wrong}…}} is unknown: there is nothing to say how a name looks")
        return [(text, name) for text, name, _, _ in parts]

    def __len__(self) -> int:
        return prod(len(self.values[name]) for name in self.fields)

    @property
    def title(self) -> str:
        """A path for all of the files, in the folder where they or their folders are made."""
        return existing_name(self.template)

    def numbers(self, **indices: int | NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of the file for an index into the values of each field, or 0."""
        number: Any = np.int64(0)
        for name in self.fields:
            number = number * len(self.values[name]) + indices.get(name, 0)
        return np.asarray(number, np.int64)

    def names(self, number: int) -> dict[str, str]:
        """Return the names in the path of a file, by their fields."""
        sizes = [len(self.values[name]) for name in self.fields]
        which = np.unravel_index(number, sizes) if sizes else ()
        return {name: self.values[name][int(i)] for name, i in zip(self.fields, which, strict=True)}

    def paths(self) -> list[str]:
        """Return all files, by their numbers. Raises UsageError where two have one path."""
        chosen = product(*(self.values[name] for name in self.fields))
        paths = [
            self.template.format_map(dict(zip(self.fields, names, strict=True))) for names in chosen
        ]
        if len(set(paths)) < len(paths):
            (path, _), *_ = Counter(paths).most_common(1)
            raise self._error(f"different records would go to one file, {path}")
        return paths

    def check(self, others: Iterable[str]) -> None:
        """Raise UsageError for paths that cannot be written, or that are among others.

        others  inputs and other outputs
        """
        if self.template in STDOUT:
            raise self._error("records go to files, not to standard output")
        check_output(self.title)
        kept = {os.path.realpath(path) for path in others}
        for path in self.paths():
            if os.path.realpath(path) in kept:
                raise self._error(f"a run would replace {path}, which is named twice")
            if os.path.lexists(path) and not os.path.isfile(path):  # noqa: PTH113
                raise self._error(f"{path} is there, and no regular file")
            if max(map(len, os.fsencode(path).split(b"/"))) > MOST_BYTES:
                raise self._error(f"{path} has a name of more than {MOST_BYTES} bytes")

    def _error(self, problem: str) -> UsageError:
        return UsageError(f"{option(self.option)} {self.template}: {problem}")
