"""The dispatcher at work for up to 10,000 devices, which exist in a model only.

python benchmarks/simulate_cluster.py [--only scale faults lanes uneven scheduler] [--json FILE]

The time of a run is compared with the ideal: all work divided by all speed. What is modelled is
said in `simulated_workers.py`; the dispatcher is the program's own, and so is its time.
"""

import argparse
import itertools
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import common
import numpy as np
from common import markdown, require, say
from numpy.typing import NDArray
from simulated_workers import Cluster, SimulatedWorkers

from multigpu.cluster.engine.dispatch import Faults, dispatch
from multigpu.cluster.engine.events import Event

AS_USUAL = Faults()
SPREAD = 0.1  # standard deviation of the logarithm of a chunk's time
LOTS = 4  # attempts of a chunk that may get stuck
ASKED = 1.10  # times the ideal


@dataclass(frozen=True)
class Job:
    """Chunks of about `seconds` device-seconds each, their times log-normally spread.

    stuck       share of the attempts that take `times` as long; another attempt at the same
                chunk most likely does not
    late        chunks whose first attempt does, by their numbers
    heavy       chunks that do in every attempt
    """

    chunks: int
    seconds: float
    spread: float = SPREAD
    stuck: float = 0.0
    late: tuple[int, ...] = ()
    heavy: tuple[int, ...] = ()
    times: float = 10.0

    def work(self, chunk: int, attempt: int) -> float:
        """Device-seconds."""
        slowed = (
            chunk in self.heavy
            or (attempt == 0 and chunk in self.late)
            or (attempt < LOTS and self._lots[attempt, chunk] < self.stuck)
        )
        return float(self._usual[chunk]) * (self.times if slowed else 1.0)

    @property
    def total(self) -> float:
        """Of the chunks as they should be: what is slow by accident is not in it."""
        more = sum(float(self._usual[chunk]) for chunk in self.heavy) * (self.times - 1.0)
        return float(self._usual.sum()) + more

    @cached_property
    def _usual(self) -> NDArray[np.float64]:
        return self.seconds * np.random.default_rng(1).lognormal(0.0, self.spread, self.chunks)

    @cached_property
    def _lots(self) -> NDArray[np.float64]:
        return np.random.default_rng(2).random((LOTS, self.chunks))


@dataclass(frozen=True)
class Run:
    """What came of a simulated run. Peaks are numbers of chunks on the client."""

    makespan: float
    ideal: float
    line: int  # spans held: chunks taken up and not yet given out
    waiting: int  # parts held: those of them that are done
    chunks: int
    messages: int
    failures: int
    events: Counter[str]  # by name
    cpu_seconds: float  # really taken, by the dispatcher and the model together

    @property
    def ratio(self) -> float:
        return self.makespan / self.ideal


@dataclass
class _Client:
    """What the client holds, seen from outside of the dispatcher."""

    chunks: int
    taken: int = 0
    given: int = 0
    line: int = 0
    waiting: int = 0
    events: Counter[str] = field(default_factory=Counter)

    def spans(self) -> Iterator[int]:
        for number in range(self.chunks):
            self.taken += 1
            self.line = max(self.line, self.taken - self.given)
            yield number

    def hear(self, event: Event) -> None:
        self.events[event.name] += 1
        self.waiting = max(self.waiting, self.events["finished"] - self.given)


class Numbers:
    """A workload without work: spans and parts are the numbers of the chunks."""

    key = "simulated"

    def open(self, place: Any) -> Any:
        raise NotImplementedError("nothing runs")

    def name(self, span: int) -> str:
        return f"chunk {span}"

    def correct(self, span: int | None, part: int) -> None:
        """Every span is cut where it should be."""


def simulate(cluster: Cluster, job: Job, seed: int = 0, faults: Faults = AS_USUAL) -> Run:
    """Run it, and check that every part came once and in its turn."""
    begin = time.process_time()
    workers = SimulatedWorkers(cluster, job.work, seed)
    client = _Client(job.chunks)
    for outcome in dispatch(workers, Numbers(), client.spans(), None, faults, client.hear):
        require(outcome.part == client.given, f"part {client.given} comes in its turn")
        client.given += 1
    require(client.given == job.chunks, "all parts come")
    return Run(
        workers.now, ideal(cluster, job.total), client.line, client.waiting, job.chunks,
        workers.traffic.messages, workers.traffic.failures, client.events,
        time.process_time() - begin,
    )  # fmt: skip


def ideal(cluster: Cluster, work: float) -> float:
    """Seconds until devices that never fail nor wait have done the work."""
    speeds = [cluster.speeds[i % len(cluster.speeds)] for i in range(cluster.devices)]
    speed, now = sum(speeds), 0.0
    for when, devices in sorted(cluster.changes):
        if work <= (when - now) * speed:
            break
        work -= (when - now) * speed
        now, speed = when, speed + devices * cluster.speeds[0]
    return now + work / speed


# ---- what is simulated ------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """What is simulated. asked: the ratio of makespan and ideal that must not be passed."""

    name: str
    cluster: Cluster
    job: Job
    asked: float | None = None


SLOW_1 = (0.1, *[1.0] * 99)  # speeds of which one in a hundred is a tenth of the others
SLOW_5 = (0.1, *[1.0] * 19)
HOUR = 60_000  # chunks of 60 s that keep 1,000 devices busy for an hour
TEN_MINUTES = 60_000  # chunks of 10 s

THOUSAND = Cluster(1000)

SCALE = [
    Scenario(
        f"{devices:,} devices, 10 chunks of 10 s each", Cluster(devices), Job(10 * devices, 10)
    )
    for devices in (1, 10, 100, 1_000, 10_000)
]
FAULTS = [
    Scenario(
        f"1,000 devices for an hour, {what}", replace(THOUSAND, **changes), Job(HOUR, 60), ASKED
    )
    for what, changes in {
        "nothing happens": {},
        "1 % failures an hour": {"failures": 0.01},
        "1 % failures an hour, noticed after 300 s": {"failures": 0.01, "noticed": 300.0},
        "10 % failures an hour": {"failures": 0.1},
    }.items()
]
LANES = [
    Scenario(
        f"{devices:,} devices for an hour, 1 % failures an hour, 6 chunks on a device,"
        f" {6 * seconds} s each",
        Cluster(devices, threads=6, failures=0.01),
        Job(devices * 3600 // seconds, seconds),
        ASKED,
    )
    for devices, seconds in ((300, 20), (1000, 60))
]
UNEVEN = [
    Scenario("speeds 1:2:4", Cluster(999, speeds=(1, 2, 4)), Job(TEN_MINUTES, 10), ASKED),
    Scenario("speeds 1:2:4, 6 chunks on a device", Cluster(999, 6, speeds=(1, 2, 4)),
             Job(TEN_MINUTES * 4, 10), ASKED),
    Scenario("1 % of the devices 10 × slower", Cluster(1000, speeds=SLOW_1), Job(TEN_MINUTES, 10),
             ASKED),
    Scenario("5 % of the devices 10 × slower", Cluster(1000, speeds=SLOW_5), Job(TEN_MINUTES, 10),
             ASKED),
    Scenario("1 % of the devices 10 × slower, worker-saturation 1.0",
             Cluster(1000, speeds=SLOW_1, saturation=1.0), Job(TEN_MINUTES, 10), ASKED),
    Scenario("5 % of the devices 10 × slower, worker-saturation 1.0",
             Cluster(1000, speeds=SLOW_5, saturation=1.0), Job(TEN_MINUTES, 10), ASKED),
    Scenario("1 % of the attempts 10 × slower", THOUSAND, Job(TEN_MINUTES, 10, stuck=0.01)),
    Scenario("one attempt in 1,000 hangs", THOUSAND,
             Job(TEN_MINUTES, 10, stuck=0.001, times=1e6)),
    Scenario("an early chunk hangs", THOUSAND, Job(TEN_MINUTES, 10, late=(300,), times=1e6),
             ASKED),
    Scenario("the last chunk hangs", THOUSAND,
             Job(TEN_MINUTES, 10, late=(TEN_MINUTES - 1,), times=1e6), ASKED),
    Scenario("an early chunk has 10 × the work", THOUSAND, Job(TEN_MINUTES, 10, heavy=(300,))),
    Scenario("500 devices, 500 join at 100 s, 500 go at 300 s",
             Cluster(500, changes=((100, 500), (300, -500))), Job(TEN_MINUTES, 10), ASKED),
]  # fmt: skip
SCHEDULER = [
    Scenario(f"{devices:,} devices, chunks of {seconds} s, 0.25 ms of the scheduler a message",
             Cluster(devices, message=0.00025), Job(10 * devices, seconds))
    for devices, seconds in ((100, 0.1), (1000, 1), (1000, 10), (10_000, 10), (10_000, 60))
]  # fmt: skip
GROUPS = {
    "scale": SCALE,
    "faults": FAULTS,
    "lanes": LANES,
    "uneven": UNEVEN,
    "scheduler": SCHEDULER,
}
HEADER = [
    "what", "makespan / ideal", "ideal", "chunks", "spans held", "parts held", "messages a chunk",
    "failures", "run twice", "client a chunk",
]  # fmt: skip


def cells(scenario: Scenario, run: Run) -> list[str]:
    """A row of the table."""
    asked = "" if scenario.asked is None else f" (≤ {scenario.asked:.2f})"
    twice = run.events["started"] - run.chunks
    return [
        scenario.name, f"{run.ratio:.3f}{asked}", f"{run.ideal:,.0f} s", f"{run.chunks:,}",
        f"{run.line:,}", f"{run.waiting:,}", f"{run.messages / run.chunks:.2f}",
        str(run.failures), f"{twice:,}", f"{1e6 * run.cpu_seconds / run.chunks:.0f} µs",
    ]  # fmt: skip


def simulated(names: Iterable[str], details: dict[str, Any]) -> Iterator[list[str]]:
    for scenario in itertools.chain.from_iterable(GROUPS[name] for name in names):
        run = simulate(scenario.cluster, scenario.job)
        say(" | ".join(cells(scenario, run)))
        details[scenario.name] = {**vars(run), "ratio": run.ratio, "asked": scenario.asked}
        yield cells(scenario, run)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--json", type=Path, help="write the figures and the machine here")
    options = parser.parse_args()
    facts = common.machine()
    details: dict[str, Any] = {}
    rows = list(simulated(options.only, details))
    print(common.machine_line(facts), "\n")
    print(markdown(rows, HEADER))
    if options.json:
        options.json.write_text(json.dumps({"machine": facts, "runs": details}, indent=1) + "\n")
    missed = [name for name, run in details.items() if run["asked"] and run["ratio"] > run["asked"]]
    if missed:
        raise SystemExit(f"not within what is asked: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
