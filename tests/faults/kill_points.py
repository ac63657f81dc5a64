"""Runs of the program in which one call to the file system goes wrong.

A run is a fork of a process that has loaded everything before: no run waits for that again.
"""

import errno
import json
import multiprocessing
import os
import pkgutil
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, NoReturn

import pytest

import multigpu

ROOT = Path(__file__).resolve().parents[2]
CALLS = (
    "open", "mkdir", "rename", "replace", "link", "symlink", "unlink", "remove", "rmdir", "fsync",
    "write", "ftruncate",
)  # fmt: skip
KILLED = -signal.SIGKILL
LIBRARIES = (
    "plotly", "pyarrow.parquet", "pysam", "rdkit.Chem", "xarray", "zarr",
)  # fmt: skip
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # while nothing runs
FORKS = multiprocessing.get_context("forkserver")


@dataclass(frozen=True)
class Point:
    """What happens at a call: the process ends ("end"), gets SIGTERM ("signal") or EIO ("error").

    number  of the call, from 1
    after   whether the call is made first; not with "error"
    """

    number: int
    fault: str
    after: bool = False

    def __str__(self) -> str:
        return f"{self.fault} {'after' if self.after else 'before'} call {self.number}"


@dataclass(frozen=True)
class Ended:
    """How a run ended. calls: name and path of each."""

    status: int
    err: str
    calls: list[list[str]]


def start_forks() -> None:
    """Start the process that forks runs of the program, unless there is one."""
    ours = [module.name for module in pkgutil.walk_packages(multigpu.__path__, "multigpu.")]
    ours.remove("multigpu.__main__")
    FORKS.set_forkserver_preload([*ours, *LIBRARIES])
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**ONE_THREAD, "PYTHONPATH": str(ROOT)}.items():
            patch.setenv(name, value)
        forkserver.ensure_running()


def run(folder: Path, arguments: Sequence[str], point: Point | None = None) -> Ended:
    """Run the program in `folder`, to its end."""
    calls, errors = (folder.with_name(f"{folder.name}.{name}") for name in ("calls", "err"))
    calls.unlink(missing_ok=True)
    process = FORKS.Process(target=_run, args=(folder, list(arguments), point, calls, errors))
    process.start()
    process.join()
    assert process.exitcode is not None
    found = json.loads(calls.read_text()) if calls.exists() else []
    return Ended(process.exitcode, errors.read_text(), found)


# ---- in the fork ------------------------------------------------------------------------------


class Watch:
    """Counts the calls of a run, and makes the one at `point` go wrong."""

    def __init__(self, point: Point | None) -> None:
        self.calls: list[tuple[str, str]] = []
        self._point, self._lock = point, threading.Lock()

    def begin(self) -> None:
        from multigpu.cluster import files
        from multigpu.workloads.cnv.output import folder
        from multigpu.workloads.cnv.results import matrices

        for name in CALLS:
            setattr(os, name, self._watched(name, getattr(os, name)))
        sync = self._watched("syncfs", files.sync_file_system)
        files.sync_file_system = matrices.sync_file_system = folder.sync_file_system = sync
        files._exchange = self._watched("exchange", files._exchange)

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **more: Any) -> Any:
            if name == "open" and not arguments[1] & os.O_CREAT:
                return call(*arguments, **more)
            path = _path(arguments[0], more.get("dir_fd"))
            point = self._point if self._count(name, path) else None
            if point is not None and not point.after:
                self._go_wrong(point)
            result = call(*arguments, **more)
            if point is not None and point.after:
                self._go_wrong(point)
            return result

        return watched

    def _count(self, name: str, path: str) -> bool:
        """Whether the call is the one that goes wrong."""
        with self._lock:
            self.calls.append((name, path))
            return self._point is not None and len(self.calls) == self._point.number

    def _go_wrong(self, point: Point) -> None:
        if point.fault == "error":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if point.fault == "signal":
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            os.kill(os.getpid(), signal.SIGKILL)


def _path(named: Any, folder: int | None) -> str:
    """Path of what a call is about: a path, or the number of an open file."""
    if isinstance(named, int):
        return str(Path(f"/proc/self/fd/{named}").readlink())
    inside = Path() if folder is None else Path(f"/proc/self/fd/{folder}").readlink()
    return str(inside / os.fspath(named))


def _run(folder: Path, words: list[str], point: Point | None, calls: Path, err: Path) -> NoReturn:
    """Run the program as its command line begins it."""
    file = os.open(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor, number in ((nothing, 0), (nothing, 1), (file, 2)):
        os.dup2(descriptor, number)
    os.chdir(folder)
    from multigpu.cli import main
    from multigpu.run import signals

    watch, end = Watch(point), os._exit

    def leave(status: int) -> NoReturn:
        with calls.open("w") as out:
            json.dump(watch.calls, out)
        end(status)

    os._exit = leave  # type: ignore[assignment]
    signals.listen()
    watch.begin()
    main(words)
