"""Runs of the program in which one call to the file system goes wrong.

As a process (`python kill_points.py`) it takes a request a line on standard input and answers each
with a line on standard output, both JSON. A run is a fork of this process, which has loaded all
modules before: no run waits for that again.
"""

import errno
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
CALLS = (
    "open", "mkdir", "rename", "replace", "link", "symlink", "unlink", "remove", "rmdir", "fsync",
    "write", "ftruncate",
)  # fmt: skip
KILLED = -signal.SIGKILL
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # while nothing runs


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
    """How a run ended. calls: name and path of each; modules: that it has loaded."""

    status: int
    err: str
    calls: list[list[str]]
    modules: list[str]


class Forks:
    """A process that forks runs of the program."""

    def __init__(self) -> None:
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
        self._process = subprocess.Popen(
            [sys.executable, __file__], cwd=ROOT, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def load(self, modules: Sequence[str]) -> int:
        """Import modules; how many threads the process has then."""
        return int(self._asked({"load": list(modules)})["threads"])

    def run(self, folder: Path, arguments: Sequence[str], point: Point | None = None) -> Ended:
        """A run in `folder`, to its end."""
        asked = {"folder": str(folder), "arguments": list(arguments)}
        answer = self._asked({**asked, "point": asdict(point) if point else None})
        return Ended(**answer)

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)

    def _asked(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


# ---- in the process ---------------------------------------------------------------------------


class Watch:
    """Counts the calls of a run, and makes the one at `point` go wrong."""

    def __init__(self, point: Point | None) -> None:
        self.calls: list[tuple[str, str]] = []
        self._point, self._lock = point, threading.Lock()

    def begin(self) -> None:
        from multigpu.cluster import files
        from multigpu.workloads.cnv.output import matrices, plots

        for name in CALLS:
            setattr(os, name, self._watched(name, getattr(os, name)))
        plots.draw = _drawn
        sync = self._watched("syncfs", files.sync_file_system)
        files.sync_file_system = matrices.sync_file_system = sync

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


def _drawn(_result: object, folder: Path, kind: str, _palette: object) -> None:
    """Figures that take no seconds: what is in them makes no difference to their publishing."""
    for name in ("cnvs", "size_factors"):
        (folder / f"{name}.{kind}").write_text(name)


def _run(request: dict[str, Any], report: Path) -> NoReturn:
    """In a fork: the program, as its command line begins it."""
    errors = os.open(report.with_suffix(".err"), os.O_WRONLY | os.O_CREAT, 0o600)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor, number in ((nothing, 0), (nothing, 1), (errors, 2)):
        os.dup2(descriptor, number)
    os.chdir(request["folder"])
    from multigpu.cli import main
    from multigpu.run import signals

    point = Point(**request["point"]) if request["point"] else None
    watch, end = Watch(point), os._exit

    def leave(status: int) -> NoReturn:
        with report.open("w") as file:
            json.dump({"calls": watch.calls, "modules": sorted(sys.modules)}, file)
        end(status)

    os._exit = leave  # type: ignore[assignment]
    signals.listen()
    watch.begin()
    main(request["arguments"])


def _forked(request: dict[str, Any], place: Path) -> dict[str, Any]:
    report = place / "report"
    for old in place.iterdir():
        old.unlink()
    child = os.fork()
    if not child:
        try:
            _run(request, report)
        finally:
            os._exit(99)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = json.loads(report.read_text()) if report.exists() else {"calls": [], "modules": []}
    return {"status": status, "err": report.with_suffix(".err").read_text(), **found}


def _load(modules: Sequence[str]) -> int:
    for name in modules:
        if not name.startswith(("__main__", "pytest", "_pytest")):
            try:
                importlib.import_module(name)
            except Exception:  # noqa: BLE001, S112 - what a run made of itself
                continue
    return len(list(Path("/proc/self/task").iterdir()))


def serve() -> None:
    """Answer requests until there are no more."""
    with tempfile.TemporaryDirectory(prefix="kill-points-") as place:
        for line in sys.stdin:
            request = json.loads(line)
            if "load" in request:
                answer: dict[str, Any] = {"threads": _load(request["load"])}
            else:
                answer = _forked(request, Path(place))
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    serve()
