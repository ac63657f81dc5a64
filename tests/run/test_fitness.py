"""Workers that are examined: what must be the same there as here."""

import os
import platform
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from multigpu.formats.storage.fingerprints import content_digest, fingerprint_or_none
from multigpu.run import fitness
from multigpu.run.fitness import Expected, Fitness


def test_examination__tells_a_file_that_is_missing_or_other(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"1")
    wanted = fitness.expected([str(path)])
    assert fitness.examine(wanted, None).problems == ()
    path.write_bytes(b"2")
    (problem,) = fitness.examine(wanted, None).problems
    other = f"{path}: not the same file as here (on {platform.node()}, by size, content or time)"
    assert problem == other
    path.unlink()
    assert fitness.examine(wanted, None).problems == (f"{path}: does not exist there",)


class Machines:
    """Workers of two processes on each of some machines, where the files of one lie elsewhere."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folders: dict[str, str]) -> None:
        self.folders, self.patch, self.read = folders, monkeypatch, Counter[str]()

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        places = [(name, pid) for name in self.folders for pid in (1, 2)]
        return {f"{name}{pid}": self.on(name, pid, function, *arguments) for name, pid in places}

    def on(self, name: str, pid: int, function: Callable[..., Any], *arguments: Any) -> Any:
        def moved(path: str) -> str:
            return path.replace("/here/", f"/{self.folders[name]}/")

        def read(path: str) -> str:
            self.read[name] += 1
            return content_digest(moved(path))

        with self.patch.context() as patch:
            patch.setattr(platform, "node", lambda: name)
            patch.setattr(os, "getpid", lambda: pid)
            patch.setattr(fitness, "fingerprint_or_none", lambda p: fingerprint_or_none(moved(p)))
            patch.setattr(fitness, "content_digest", read)
            return function(*arguments)

    def problems(self, name: str, wanted: Expected) -> tuple[str, ...]:
        found: Fitness = self.on(name, 1, fitness.examine, wanted, None)
        return found.problems


def test_copies__are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A genome that is masked somewhere has the size, the beginning, middle and end of its own."""
    genome = np.random.default_rng(1).choice(np.frombuffer(b"ACGT", np.uint8), 12 << 20)
    for folder in ("here", "same", "masked", "kept"):
        (tmp_path / folder).mkdir()
        genome[3 << 20 : 4 << 20] = genome[: 1 << 20] if folder != "masked" else ord("N")
        genome.tofile(tmp_path / folder / "g.fa")
    path = str(tmp_path / "here" / "g.fa")
    now = os.stat(path)  # noqa: PTH116
    for folder, later in (("same", 1), ("masked", 2), ("kept", 0)):
        time = now.st_mtime_ns + later * 1_000_000_000
        os.utime(tmp_path / folder / "g.fa", ns=(time, time))
    machines = Machines(monkeypatch, {"a": "kept", "b": "same", "c": "masked"})
    plain = fitness.expected([path])
    wanted = fitness.compare_copies(machines, plain)  # type: ignore[arg-type]
    assert machines.read == {"b": 1, "c": 1}
    assert [machines.problems(name, wanted) for name in "ab"] == [(), ()]
    (problem,) = machines.problems("c", wanted)
    assert problem.startswith(f"{path}: not the same file as here (on c, ")
    assert machines.read == {"b": 1, "c": 1}
    machines.folders |= {"d": "same", "e": "masked"}  # they join later
    assert [len(machines.problems(name, wanted)) for name in "de"] == [0, 1]
    assert machines.read == {"b": 1, "c": 1, "d": 1, "e": 1}
    assert len(machines.problems("d", plain)) == 1  # nothing was compared, so nothing is known


def test_examination__tries_to_write(tmp_path: Path) -> None:
    folders = (str(tmp_path), str(tmp_path / "absent"), "/sys")
    problems = fitness.examine(fitness.expected([], folders), None).problems
    assert [problem.partition(":")[0] for problem in problems] == list(folders[1:])
    assert all(": cannot be written: " in problem for problem in problems)
    assert list(tmp_path.iterdir()) == []
    # All that is wrong is said at once.
    absent = str(tmp_path / "absent")
    path = tmp_path / "input"
    path.touch()
    files = fitness.expected([str(path)]).files
    path.unlink()
    problems = fitness.examine(Expected("another", files, (absent,), gpu=True), None).problems
    assert [problem.split(" (")[0].split(":")[0] for problem in problems] == [
        f"runs multigpu {fitness.__version__}", "has no GPU that can be used", str(path), absent,
    ]  # fmt: skip
