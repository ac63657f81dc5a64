"""Files of samples as they are given: paths, folders, patterns, lists, and sample sheets.

A list has a path a line. A sample sheet is a table, TSV or CSV, with a header: the column `path`,
and `name`, `sex`, `group` where they are wanted. Paths are relative to the file they are in.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from multigpu.errors import InputError, UsageError, quoted, several
from multigpu.formats.names import name_problem
from multigpu.formats.sequences.signature_formats import read_rows
from multigpu.formats.storage.input_paths import expand, stands_for_others
from multigpu.formats.storage.sources import ALIGNMENTS, FileKind, open_content, read_beginning
from multigpu.formats.storage.stored_streams import is_regular, is_remote
from multigpu.formats.tables.counts_zarr import is_store

COLUMNS = ("path", "name", "sex", "group")
GROUPS = {"": False, "case": False, "cases": False, "control": True, "controls": True}
LARGEST = 64 << 20  # bytes of a list: something else that was given by mistake may have any
COUNTS = FileKind(
    "counts",
    (".tsv", ".parquet", ".pq", ".hdf5", ".regions.bed", ".targetcoverage.cnn", ".rd.txt"),
    lambda *_: "counts",
    "no counts",
)


@dataclass(frozen=True, kw_only=True)
class ListedFile:
    """A file of samples, and what a list says of it: empty where it says nothing.

    is_control  whether its group is that of the controls
    """

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
        return [ListedFile(path=each) for each in _expand(path, kinds)]
    if is_regular(path):
        first = read_beginning(path).decode("utf-8", "surrogateescape").lstrip("\ufeff")
        lines = [line.strip() for line in first.split("\n") if line.strip() and line[0] != "#"]
        titles = _cells(lines[0]) if lines else []
        if COLUMNS[0] in titles:
            return _read_sheet(path)
        if (
            len(titles) == 1
            and "\0" not in first
            and Path(path).parent.joinpath(lines[0]).is_file()
        ):
            return _read_sheet(path, [COLUMNS[0]])
    return [ListedFile(path=path)]


def _expand(path: str, kinds: Sequence[FileKind]) -> list[str]:
    """Return the files of the first kind of which there are any."""
    errors = []
    for kind in kinds:
        try:
            return expand([path], kind)
        except InputError as error:
            errors.append(error)
    raise errors[0]


def _cells(line: str) -> list[str]:
    separator = "\t" if "\t" in line else ","
    return [cell.strip().strip('"').lower() for cell in line.split(separator)]


def _read_sheet(path: str, titles: Sequence[str] = ()) -> list[ListedFile]:
    """Return the files of a sheet, or of a list without a header, whose titles are given."""
    with open_content(path) as file:
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise InputError(path, f"has more than {LARGEST:,} bytes: is it a sample sheet?")
    rows = read_rows(path, text, "\t,")
    if not titles:
        titles = [cell.lower() for cell in rows.pop(0).cells]
    if unknown := [title for title in titles if title not in COLUMNS or titles.count(title) > 1]:
        columns = "the columns of a sample sheet are path and, each once, name, sex, group"
        raise InputError(path, f"{columns}, not {several(unknown)}", "line 1")
    found = []
    for number, cells in rows:
        where = f"line {number:,}"
        if len(cells) != len(titles):
            problem = f"has {len(cells):,} columns, not {len(titles):,}"
            raise InputError(path, problem, where)
        fields = dict(zip(titles, cells, strict=True))
        found.append(_file_of(path, fields, where))
    if not found:
        raise InputError(path, "names no file")
    return found


def _file_of(sheet: str, fields: dict[str, str], where: str) -> ListedFile:
    """Return the file of a row. Raises InputError where a field is wrong."""
    given, name, group = fields["path"], fields.get("name", ""), fields.get("group", "")
    place = given if is_remote(given) else os.path.join(os.path.dirname(sheet), given)  # noqa: PTH118, PTH120
    if not given or not (is_remote(place) or os.path.lexists(place)):
        raise InputError(sheet, f"there is no file {quoted(given)}", where)
    if problem := name_problem(name):
        raise InputError(sheet, f"{quoted(name)} is no name of a sample: {problem}", where)
    if group.lower() not in GROUPS:
        groups = "a group is case or control; other cohorts are runs of their own"
        raise InputError(sheet, f"the group is {quoted(group)}: {groups}", where)
    is_control = GROUPS[group.lower()]
    return ListedFile(path=place, name=name, sex=fields.get("sex", ""), is_control=is_control)
