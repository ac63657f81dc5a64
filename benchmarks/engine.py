"""The engine's own time for a chunk, measured with a workload that does nothing.

python benchmarks/engine.py [--chunks N] [--runs N] [--json FILE]
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cloudpickle
import common
from common import Figure, require

from multigpu.cluster.deploy.deployment import Deployment
from multigpu.cluster.deploy.start import start_workers
from multigpu.cluster.engine.dispatch import dispatch
from multigpu.cluster.workers.threads import LocalWorkers, Workers

# The workers of a cluster cannot import this script, so its classes travel with what is sent.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

ASKED = 3.0  # ms, in process
DEPLOYMENTS = {
    "in process, 2 threads": Deployment(threads=2),
    "LocalCluster, 2 processes of 1 thread": Deployment(threads=2, processes=2),
    "LocalCluster, 2 processes of 6 threads": Deployment(threads=12, processes=2),
}


class Nothing:
    """A workload that is its own session; parts are the numbers that spans are."""

    key = "nothing"

    def open(self, place: Any) -> "Nothing":
        return self

    def name(self, span: int) -> str:
        return f"chunk {span}"

    def correct(self, span: int | None, part: int) -> None:
        """Return None: every span is cut where it should be."""

    def load(self, span: int) -> int:
        return span

    def compute(self, loaded: int) -> int:
        return loaded

    def need(self, loaded: int) -> int:
        return 0

    def halves(self, loaded: int) -> Sequence[int]:
        return ()

    def joined(self, loaded: int, halves: Sequence[int], computed: Sequence[int]) -> int:
        raise NotImplementedError("nothing is halved")

    def finish(self, loaded: int, computed: int) -> int:
        return computed

    def close(self) -> None:
        """Release nothing: nothing is kept."""


def overhead(name: str, crew: Workers, chunks: int, runs: int) -> list[Figure]:
    """Measure milliseconds a chunk, elapsed and of this process's CPU time, in warm runs.

    A cluster's scheduler is in this process too, its workers are not.
    """
    walls, cpus = [], []
    for counts in [False, *[True] * runs]:
        wall, cpu = time.perf_counter(), time.process_time()
        found = [outcome.part for outcome in dispatch(crew, Nothing(), range(chunks))]
        if counts:
            walls.append(1e3 * (time.perf_counter() - wall) / chunks)
            cpus.append(1e3 * (time.process_time() - cpu) / chunks)
        require(found == list(range(chunks)), "the parts come in order")
    asked = ASKED if isinstance(crew, LocalWorkers) else None
    return [
        Figure("engine", f"overhead per chunk, {name}", "ms", walls, asked),
        Figure("engine", "… CPU time of the client and the scheduler", "ms", cpus),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write figures and the machine here")
    options = parser.parse_args()
    report = common.report_of(options)
    for name, deployment in DEPLOYMENTS.items():
        with start_workers(deployment) as pending:
            report.figures += overhead(name, pending.wait(), options.chunks, options.runs)
    report.end(full_size=True)


if __name__ == "__main__":
    main()
