"""Runs of `multigpu scan` on the benchmark's inputs, for the parts of `scan.py`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import common
from common import require
from data import DefaultSet
from processes import Ran, process, python

NAMES = {10: "10 % N", 0: "without N"}


class Bench(common.Bench):
    """Bench of the scan."""

    def default(self, n_percent: int) -> DefaultSet:
        return DefaultSet(self.folder, n_percent, self.scale)

    @property
    def gpus(self) -> str:
        """Value of `--gpus` for the command line."""
        return "0" if self.gpu else "none"

    def copies(self, count: int) -> int:
        return max(1, round(count * min(1.0, self.scale * 10)))


def scan_once(
    bench: Bench,
    samples: Path,
    signatures: Path,
    gpus: str,
    *more: str,
    use_cores: int | None = None,
) -> tuple[Ran, bytes]:
    """Run the command once; return how it ran and the output."""
    target = bench.output / "out.tsv"
    target.unlink(missing_ok=True)
    command = python("-m", "multigpu", "scan", str(samples), "-s", str(signatures))
    ran = process([*command, "-o", str(target), "--gpus", gpus, "-q", *more], use_cores)
    return ran, target.read_bytes()


def scan_again(
    bench: Bench, runs: int, expected: bytes | None, *arguments: Any, **options: Any
) -> list[Ran]:
    """Run the command `runs` times, after one run that is checked and not timed."""
    _, out = scan_once(bench, *arguments, **options)
    require(expected is None or out == expected, "the output differs")
    return [scan_once(bench, *arguments, **options)[0] for _ in range(runs)]


def seconds_of(ran: Sequence[Ran]) -> list[float]:
    return [r.seconds for r in ran]
