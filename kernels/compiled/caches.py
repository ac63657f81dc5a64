"""Compiled code: the folders it is kept in, which of it is up to date, who hears of it.

Whoever writes to such a folder can have their code run by who loads from it.
"""

import atexit
import hashlib
import logging
import os
import pwd
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from grp import getgrgid
from multiprocessing import parent_process
from pathlib import Path
from shutil import rmtree
from stat import S_ISVTX, S_IWGRP, S_IWOTH, S_IXGRP, S_IXOTH
from tempfile import TemporaryFile, mkdtemp

logger = logging.getLogger(__name__)

PRIVATE = 0o700
OTHERS = 0o077  # what users other than the owner may do
IN_MEMORY = "CUPY_CACHE_IN_MEMORY"  # set: CuPy neither reads nor writes its folder
KERNELS = Path(__file__).parents[1]
PACKAGE = "multigpu.kernels"
SUFFIXES = (".py", ".cu", ".cuh")
SHARED = ("compiled", "numerics")  # folders from which functions of any kernel may call others
# Called in the compiling thread when a function that is not in the cache begins to be compiled.
listeners: list[Callable[[], None]] = []


class Exposed(Exception):
    """Another user may change what is in a folder, or has; the text says where, and what to do."""

    def __init__(self, problem: str, folder: Path) -> None:
        cure = f"let nobody else write there and remove {folder}, as what is in it may be theirs"
        super().__init__(f"{problem}: {cure}")


def private(folder: Path) -> Path:
    """Make a folder of this user alone; return it without links. Raises Exposed, OSError."""
    for part in reversed([folder, *folder.parents]):
        if not part.exists():
            part.mkdir(PRIVATE, exist_ok=True)
    folder = folder.resolve()
    check(folder)
    if folder.stat().st_mode & OTHERS:
        folder.chmod(PRIVATE)
    return folder


def check(folder: Path) -> None:
    """Raise Exposed where others may change a folder or what is in it, or have done so.

    folder: absolute, without symbolic links
    """
    problem = ""
    for part in (folder, *folder.parents):
        status = part.stat()
        if _is_foreign(status):
            problem = f"{part} belongs to another user"
        elif _others_may_write(status) and (part == folder or not status.st_mode & S_ISVTX):
            problem = f"others may write to {part}"
        elif not status.st_mode & (S_IXGRP | S_IXOTH):
            problem = ""  # nobody else gets to what is inside
    if problem:
        raise Exposed(problem, folder)
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # another process has just renamed it
            if _is_foreign(path.lstat()):
                raise Exposed(f"{path} belongs to another user", folder)


def _is_foreign(status: os.stat_result) -> bool:
    return status.st_uid not in (0, os.geteuid())


def _others_may_write(status: os.stat_result) -> bool:
    if status.st_mode & S_IWGRP and not _is_own_group(status.st_gid):
        return True
    return bool(status.st_mode & S_IWOTH)


def _is_own_group(number: int) -> bool:
    """Whether a group is that of this user alone, which many systems make for every user."""
    try:
        user, group = pwd.getpwuid(os.geteuid()).pw_name, getgrgid(number)
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}


def secure_cupy() -> None:
    """Have CuPy keep its compiled kernels in memory where others may write to their folder.

    Where it cannot be written, too. CuPy makes the folder for all to read, and loads whatever has
    the right name.
    """
    folder = os.environ.get("CUPY_CACHE_DIR") or "~/.cupy/kernel_cache"
    if os.environ.get(IN_MEMORY, "0") not in ("", "0"):
        return
    try:
        place = Path(folder).expanduser().absolute()
        if place.exists():
            check(place.resolve())  # its owner may let others read it
        else:
            private(place)
        TemporaryFile(dir=place).close()  # a file in its place, a read-only file system
    except (Exposed, OSError, RuntimeError) as error:  # RuntimeError: there is no home
        os.environ[IN_MEMORY] = "1"
        warn("GPU kernels", str(error), "CUPY_CACHE_DIR")
        if not isinstance(error, Exposed):  # CuPy makes the folder when it is imported
            os.environ["CUPY_CACHE_DIR"] = own = mkdtemp(prefix="multigpu-")
            atexit.register(rmtree, own, ignore_errors=True)


@cache
def warn(what: str, why: str, variable: str) -> None:
    """Say once, and not in every worker process, that compiled code is not kept."""
    if parent_process() is None:
        logger.warning(
            "multigpu: compiled %s are neither loaded nor kept, as %s (%s may name a folder of"
            " your own)", what, why, variable,
        )  # fmt: skip


@cache
def digest() -> str:
    """Return a hash of all kernels: two machines with the same one compute the same."""
    return _hash(path for path in KERNELS.rglob("*") if path.suffix in SUFFIXES)


def digest_of(module: str) -> str:
    """Return a hash of all files that may be compiled into the functions of a module.

    Those of a kernel's folder are inlined there only, those in `SHARED` and directly in `kernels`
    everywhere. Nothing else compiles functions, apart from tests.
    """
    inside = module.startswith(f"{PACKAGE}.")
    folder = module.removeprefix(f"{PACKAGE}.").partition(".")[0] if inside else SHARED[0]
    return _digest_of_folder(folder)


@cache
def _digest_of_folder(folder: str) -> str:
    paths = list(KERNELS.glob("*.py"))
    for name in {folder, *SHARED}:
        paths += (KERNELS / name).rglob("*.py")
    return _hash(paths)


def _hash(paths: Iterable[Path]) -> str:
    found = hashlib.blake2b(digest_size=8)
    for path in sorted(paths):
        found.update(path.read_bytes())
    return found.hexdigest()


def compilation_begins() -> None:
    for listener in listeners:
        listener()
