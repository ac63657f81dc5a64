"""What the engine itself takes for a chunk: the real one, with a workload that does nothing.

python benchmarks/engine.py [--chunks N] [--runs N] [--json FILE]
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cloudpickle
import common
from common import Figure, Report, markdown, repeated, require

from cluster.deploy import Deployment, workers
from cluster.dispatch import dispatch
from cluster.workers import Workers

# The workers of a cluster cannot import this script, so its classes travel with what is sent.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

ASKED = 3.0  # ms
DEPLOYMENTS = {
    "in process, 2 threads": Deployment(threads=2),
    "LocalCluster, 2 processes of 1 thread": Deployment(threads=2, processes=2),
    "LocalCluster, 2 processes of 6 threads": Deployment(threads=12, processes=2),
}


class Nothing:
    """A workload, and its own session: parts are the numbers that spans are."""

    key = "nothing"

    def open(self, place: Any) -> "Nothing":
        return self

    def name(self, span: int) -> str:
        return f"chunk {span}"

    def correct(self, span: int, part: int) -> None:
        """Every span is cut where it should be."""

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
        """Nothing is kept."""


def overhead(name: str, crew: Workers, chunks: int, runs: int) -> Figure:
    """Milliseconds for a chunk, of a run that is warm."""

    def run() -> None:
        found = [outcome.part for outcome in dispatch(crew, Nothing(), range(chunks))]
        require(found == list(range(chunks)), "the parts come in order")

    values = [1e3 * seconds / chunks for seconds in repeated(run, runs)]
    return Figure("engine", f"engine overhead per chunk: {name}", "ms", values, ASKED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write figures and the machine here")
    options = parser.parse_args()
    settings = {key: str(value) for key, value in vars(options).items()}
    report = Report(common.machine(), settings, options.json)
    for name, deployment in DEPLOYMENTS.items():
        with workers(deployment) as crew:
            report.figures.append(overhead(name, crew, options.chunks, options.runs))
        report.write()
    print(common.machine_line(report.facts), "\n")
    print(markdown(figure.cells(full_size=True) for figure in report.figures))


if __name__ == "__main__":
    main()
