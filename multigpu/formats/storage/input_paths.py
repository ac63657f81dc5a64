"""Paths that a user gives, and the files that they stand for."""

import fnmatch
import glob
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from multigpu.errors import InputError
from multigpu.formats.storage.sources import COMPRESSED, FileKind
from multigpu.formats.storage.stored_streams import (
    STDIN,
    errors_named,
    is_regular,
    is_remote,
    status_of,
)

MAGIC = "*?["  # signs of a pattern


def expand(paths: Sequence[str], kind: FileKind) -> list[str]:
    """Return the paths that files, directories, patterns, URLs and "-" stand for, in order.

    A directory stands for its own files of this kind by name; a pattern for what a shell would make
    of it. Raises InputError where one is missing, unreadable or stands for nothing.
    """
    check_stdin(paths)
    return [found for path in paths for found in _expand_one(path, kind)]


def expand_one(path: str, kind: FileKind) -> str:
    """Return the path of the file that a path stands for. Raises InputError where it has more."""
    first, *others = expand([path], kind)
    if others:
        raise InputError(path, f"it stands for {len(others) + 1:,} {kind.name} files: name one")
    return first


def check_stdin(paths: Sequence[object]) -> None:
    """Raise InputError where a run reads standard input several times."""
    if list(paths).count(STDIN) > 1:
        raise InputError(STDIN, "standard input can be given only once")


def plain_bytes(paths: Sequence[str], compressed: int = 0) -> int:
    """Estimate the bytes in files, which may be URLs and "-", too; errors are left to the reader.

    compressed  for how many bytes a byte of a compressed file counts
    """
    size = 0
    with suppress(InputError, OSError, ValueError):
        for path in filter(is_regular, paths):
            weight = compressed if path.lower().endswith(COMPRESSED[1:]) else 1
            size += weight * status_of(path).st_size
    return size


def _expand_one(path: str, kind: FileKind) -> list[str]:
    if path == STDIN or is_remote(path):
        return [path]
    if not os.path.lexists(path):
        if path.startswith("~"):
            problem = "there is no such file; no shell has expanded the ~: leave out the quotes"
            raise InputError(path, problem)
        if "," in path and all(map(os.path.lexists, path.split(","))):
            raise InputError(path, "there is no such file; separate files by spaces, not by commas")
    if is_pattern(path):
        found = sorted(glob.glob(path, recursive=True))  # noqa: PTH207  (Path.glob: no "/…/*.fq")
        if not found:
            raise InputError(path, "no file matches this pattern")
        return [file for match in found for file in _files(match, kind)]
    if (problem := kind.missing(path)) and not os.path.lexists(path):
        raise InputError(path, f"there is no such file; {problem}")
    return _files(path, kind)


def is_pattern(path: str) -> bool:
    """Whether a path is a pattern, and no file of this name."""
    return any(sign in path for sign in MAGIC) and not os.path.lexists(path)


def stands_for_others(path: str) -> bool:
    """Whether a path is a directory or a pattern."""
    return is_pattern(path) or os.path.isdir(path)  # noqa: PTH112  (a Path fails at a long name)


def would_read(given: str, new: str, kind: FileKind) -> bool:
    """Whether a directory or a pattern will stand for a path, once a file of its name is there."""
    if is_remote(given) or not stands_for_others(given):
        return False
    folder, name = os.path.split(os.path.abspath(new))  # noqa: PTH100
    is_of_kind = bool(suffix_of(name, kind))
    if not is_pattern(given):
        return is_of_kind and os.path.realpath(folder) == os.path.realpath(given)
    wanted = Path(os.path.abspath(given)).parts  # noqa: PTH100
    fixed = next(i for i, part in enumerate(wanted) if any(sign in part for sign in MAGIC))
    real = Path(os.path.realpath(Path(*wanted[:fixed]))).parts + wanted[fixed:]
    for pattern, below in ((wanted, folder), (real, os.path.realpath(folder))):
        parts = Path(below).parts
        if _is_match(pattern, (*parts, name)) or (is_of_kind and _is_match(pattern, parts)):
            return True
    return False


def _is_match(patterns: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a path matches a pattern as `glob` has it, both in parts."""
    if not patterns or not names:
        return not names and all(each == "**" for each in patterns)
    first, *others = patterns
    is_seen = first.startswith(".") or not names[0].startswith(".")
    if first == "**":
        return _is_match(others, names) or (is_seen and _is_match(patterns, names[1:]))
    return is_seen and fnmatch.fnmatchcase(names[0], first) and _is_match(others, names[1:])


def _files(path: str, kind: FileKind) -> list[str]:
    """Return the readable file itself, or the files of this kind in a directory."""
    with errors_named(path):
        is_directory = stat.S_ISDIR(status_of(path).st_mode)
    if is_directory:
        return _files_in(path, kind)
    if not os.access(path, os.R_OK):
        raise InputError(path, "cannot be read: permission denied")
    return [path]


def _files_in(directory: str, kind: FileKind) -> list[str]:
    with errors_named(directory):
        paths = [path for path in Path(directory).iterdir() if suffix_of(path.name, kind)]
    files = sorted(str(path) for path in paths if not os.path.isdir(path))  # noqa: PTH112
    if not files:
        problem = f"the directory has no {kind.name} files ({kind.suffixes[0]}, …)"
        raise InputError(directory, problem)
    return [readable for file in files for readable in _files(file, kind)]


def suffix_of(name: str, kind: FileKind) -> str:
    """Return the kind's suffix with which a name ends, compressed or not; else nothing."""
    small = name.lower()
    found = (end for end in kind.suffixes for more in COMPRESSED if small.endswith(end + more))
    return "" if name.startswith(".") else next(found, "")
