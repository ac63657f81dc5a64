"""Files of samples as they are given: paths, folders, patterns, lists, and sample sheets.

A list has a path a line. A sample sheet is a table, TSV or CSV, with a header: the column `path`,
and `name`, `sex`, `group` where they are wanted. Paths are relative to the file they are in.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from multigpu.errors import InputError, UsageError, quoted, several
from multigpu.formats.names import name_problem
from multigpu.formats.storage.input_paths import expand, stands_for_others
from multigpu.formats.storage.sources import ALIGNMENTS, FileKind, read_beginning, text_lines
from multigpu.formats.storage.stored_streams import is_regular, is_remote
from multigpu.formats.tables.counts_zarr import is_store

LOOKED_AT = 3  # lines, one of which names a file in any list
COLUMNS = ("path", "name", "sex", "group")
GROUPS = {"": False, "case": False, "cases": False, "control": True, "controls": True}
COUNTS = FileKind(
    "counts",
    (".tsv", ".parquet", ".pq", ".hdf5", ".regions.bed", ".targetcoverage.cnn", ".rd.txt"),
    lambda *_: "counts",
    "no counts",
)


@dataclass(frozen=True, kw_only=True)
class ListedFile:
    """A file of samples, and what a list says of it: empty where it says nothing."""

    path: str
    name: str = ""
    sex: str = ""
    is_control: bool = False


def list_files(paths: Sequence[str], *others: FileKind) -> list[ListedFile]:
    """Return the files that paths, folders, patterns, lists and sample sheets stand for, in order.

    others  kinds of files that are taken from a folder which has no alignments

    Raises InputError where one stands for nothing, or a list is wrong; UsageError where only some
    files have a name.
    """
    found = [file for path in paths for file in _files_of(path, (ALIGNMENTS, *others))]
    unnamed = [file.path for file in found if not file.name]
    if 0 < len(unnamed) < len(found):
        raise UsageError(f"no name is given for {several(unnamed)}: name all files, or none")
    return found


def _files_of(path: str, kinds: Sequence[FileKind]) -> list[ListedFile]:
    if is_store(path):
        return [ListedFile(path=path)]
    if stands_for_others(path):
        for kind in kinds:
            with suppress(InputError):
                return [ListedFile(path=each) for each in expand([path], kind)]
        named = " or ".join(kind.name for kind in kinds)
        expand([path], replace(kinds[0], name=named))  # says what there is not
    if is_regular(path):
        start = read_beginning(path).decode("utf-8-sig", "surrogateescape").splitlines()
        first = [line for line in start if _has_row(line)][:LOOKED_AT]
        if first and COLUMNS[0] in map(str.lower, _cells(first[0])):
            return _read_sheet(path)
        places = [_place(path, line.strip()) for line in first if "\0" not in line]
        if any(map(os.path.isfile, places)):
            return _read_sheet(path, [COLUMNS[0]])
    return [ListedFile(path=path)]


def _has_row(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _cells(line: str) -> list[str]:
    separator = "\t" if "\t" in line else ","
    return [cell.strip().strip('"') for cell in line.split(separator)]


def _place(sheet: str, path: str) -> str:
    """Return a path that is relative to the folder of a sheet; a URL stays."""
    return path if is_remote(path) else os.path.join(os.path.dirname(sheet), path)  # noqa: PTH118, PTH120


def _read_sheet(path: str, titles: Sequence[str] = ()) -> list[ListedFile]:
    """Return the files of a sheet, or of a list without a header, whose titles are given."""
    rows = ((number, line) for number, line in text_lines(path) if _has_row(line))
    if not titles:
        titles = [cell.lower() for cell in _cells(next(rows)[1])]
    if unknown := [title for title in titles if title not in COLUMNS or titles.count(title) > 1]:
        columns = "the columns of a sample sheet are path and, each once, name, sex, group"
        raise InputError(path, f"{columns}, not {several(unknown)}")
    found = []
    for number, line in rows:
        cells = _cells(line) if len(titles) > 1 else [line.strip()]
        if len(cells) != len(titles):
            problem = f"has {len(cells):,} columns, not {len(titles):,}"
            raise InputError(path, problem, f"line {number:,}")
        found.append(_file_of(path, dict(zip(titles, cells, strict=True)), f"line {number:,}"))
    if not found:
        raise InputError(path, "names no file")
    return found


def _file_of(sheet: str, fields: dict[str, str], where: str) -> ListedFile:
    name, group, path = fields.get("name", ""), fields.get("group", ""), fields["path"]
    place = _place(sheet, path)
    if not path or not (is_remote(place) or os.path.lexists(place)):
        raise InputError(sheet, f"there is no file {quoted(path)}", where)
    if problem := name_problem(name):
        raise InputError(sheet, f"{quoted(name)} is no name of a sample: {problem}", where)
    if group.lower() not in GROUPS:
        groups = "a group is case or control; other cohorts are runs of their own"
        raise InputError(sheet, f"the group is {quoted(group)}: {groups}", where)
    is_control = GROUPS[group.lower()]
    return ListedFile(path=place, name=name, sex=fields.get("sex", ""), is_control=is_control)
