"""The dispatcher before modelled workers: what fails, hangs or lags costs little, loses nothing."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from simulate_cluster import Job, Run, simulate
from simulated_workers import WORKER_TIMEOUT, Cluster, SimulatedWorkers

from multigpu.cluster.engine.dispatch import LINE_PER_THREAD, Faults
from multigpu.cluster.errors import Failure, WorkerDied
from multigpu.cluster.workers.worker import Outcome

FOREVER = 1e6  # times as long
DEVICES = 50
CHUNKS = 60 * DEVICES
STEADY = Cluster(DEVICES)
USUAL = Job(CHUNKS, 10.0)


def twice(run: Run) -> int:
    return run.events["started"] - run.chunks


# ---- the dispatcher ---------------------------------------------------------------------------


def test_equal_devices__take_the_ideal_time_and_nothing_runs_twice() -> None:
    run = simulate(STEADY, USUAL)
    assert 1.0 <= run.ratio < 1.02
    assert twice(run) == 0
    assert run.waiting < 2 * DEVICES


def test_failures__of_a_tenth_of_the_devices_an_hour_cost_little() -> None:
    run = simulate(replace(STEADY, failures=0.5), USUAL, seed=3)
    assert run.failures > 0
    assert run.events["retried"] > 0
    assert run.events["left"] == run.failures
    assert run.ratio < 1.05


def test_failure__that_is_noticed_late_does_not_hold_the_others_up() -> None:
    run = simulate(replace(STEADY, failures=0.5, noticed=300.0), USUAL, seed=3)
    assert run.failures > 0
    assert run.ratio < 1.1


@pytest.mark.parametrize("late", [0, 300, CHUNKS - 1])
def test_chunk__that_hangs_is_run_elsewhere_before_all_wait_for_it(late: int) -> None:
    run = simulate(STEADY, replace(USUAL, late=(late,), times=FOREVER))
    assert run.events["moved"] >= 1
    assert run.ratio < 1.1
    assert twice(run) < CHUNKS // 50


def test_chunk__whose_second_attempt_hangs_too_is_begun_a_third_time() -> None:
    class Unlucky(Job):
        def work(self, chunk: int, attempt: int) -> float:
            hangs = chunk == 300 and attempt < 2
            return super().work(chunk, attempt) * (FOREVER if hangs else 1.0)

    run = simulate(STEADY, Unlucky(CHUNKS, 10.0))
    assert run.ratio < 1.2


def test_slow_devices__do_not_hold_the_others_up() -> None:
    run = simulate(replace(STEADY, speeds=(0.1, *[1.0] * (DEVICES - 1))), USUAL)
    assert run.ratio < 1.1


@pytest.mark.parametrize("threads", [1, 6])
def test_devices_of_different_speed__get_work_by_their_speed(threads: int) -> None:
    """Within two chunks of the slowest device, which the last ones may be."""
    run = simulate(Cluster(48, threads, speeds=(1, 2, 4)), replace(USUAL, chunks=6000))
    assert run.makespan < run.ideal + 2 * 10.0 * threads
    assert twice(run) < 6000 // 20


def test_devices__that_join_get_work_and_that_go_lose_none() -> None:
    run = simulate(replace(STEADY, changes=((60.0, 50), (200.0, -50))), USUAL)
    assert run.events["joined"] == run.events["left"] == 50
    assert run.ratio < 1.1


def test_line__never_holds_more_than_its_bound() -> None:
    run = simulate(STEADY, replace(USUAL, heavy=(300,), times=50.0))
    assert run.line == LINE_PER_THREAD * DEVICES


def test_chunk_timeout__decides_alone_when_a_chunk_is_late() -> None:
    hangs = replace(USUAL, late=(300,), times=FOREVER)
    run = simulate(STEADY, hangs, faults=Faults(chunk_timeout=500.0))
    assert run.events["moved"] == 1
    assert run.makespan > 500.0


def test_devices__that_are_many_cost_no_more_for_a_chunk() -> None:
    """Nothing is done for each chunk under way when one of them ends."""
    few, many = (simulate(Cluster(n), Job(8000, 1.0)).cpu_seconds for n in (10, 2000))
    assert many < 10 * few


def test_simulation__of_one_seed_is_always_the_same() -> None:
    one, two = (
        replace(simulate(Cluster(30, threads=6, failures=0.5), USUAL, seed=5), cpu_seconds=0.0)
        for _ in range(2)
    )
    assert one == two


# ---- the model --------------------------------------------------------------------------------


class Reports:
    """What one worker's tasks report, in a cluster without a dispatcher."""

    def __init__(self, cluster: Cluster, seconds: float = 10.0) -> None:
        self.workers = SimulatedWorkers(cluster, lambda chunk, attempt: seconds)
        self.inbox = self.workers.inbox()

    def submit(self, chunk: int, apart_from: object = None) -> object:
        def report(outcome: Outcome[int] | None, error: Exception | None) -> None:
            who = outcome.worker if outcome else error
            self.inbox.put((self.workers.clock(), chunk, who))

        return self.workers.submit(report, print, "key", None, chunk, apart_from=apart_from)

    def take(self, count: int) -> list[tuple[float, int, object]]:
        return [self.inbox.get(timeout=math.inf) for _ in range(count)]


def test_model__runs_as_many_at_a_time_as_there_are_threads() -> None:
    reports = Reports(Cluster(1, threads=2, speeds=(2.0,)))
    for chunk in range(4):
        reports.submit(chunk)
    assert [(at, chunk) for at, chunk, _ in reports.take(4)] == [(10, 0), (10, 1), (20, 2), (20, 3)]


def test_model__gives_work_to_the_worker_that_has_least() -> None:
    reports = Reports(Cluster(2, speeds=(1.0, 4.0)))
    for chunk in range(6):
        reports.submit(chunk)
    assert [chunk for _, chunk, who in reports.take(6) if who == "worker-0"] == [0, 2]


def test_model__steals_for_a_worker_that_is_idle() -> None:
    reports = Reports(Cluster(2, speeds=(1.0, 10.0)))
    for chunk in range(4):
        reports.submit(chunk)
    assert {who for _, chunk, who in reports.take(4) if chunk == 2} == {"worker-1"}
    assert reports.workers.traffic.stolen == 1


def test_model__keeps_a_second_attempt_apart_from_the_first() -> None:
    reports = Reports(Cluster(2))
    reports.submit(0)
    task = reports.submit(1)
    assert reports.workers.advance(1.0) is None
    reports.submit(1, apart_from=task)
    assert {who for _, chunk, who in reports.take(3) if chunk == 1} == {"worker-0", "worker-1"}


def test_model__reports_the_death_of_a_worker_for_all_that_it_had() -> None:
    reports = Reports(Cluster(1, changes=((5.0, -1),)))
    reports.submit(0)
    reports.submit(1)
    died = reports.take(2)
    assert [(at, chunk) for at, chunk, _ in died] == [(5.0, 0), (5.0, 1)]
    assert all(isinstance(who, WorkerDied) for _, _, who in died)
    reports.workers.advance(WORKER_TIMEOUT + 1.0)
    with pytest.raises(Failure, match=r"^no worker is left$"):
        reports.workers.present()


def test_model__drops_what_is_cancelled_before_it_runs() -> None:
    reports = Reports(Cluster(1))
    reports.submit(0)
    waiting = reports.submit(1)
    reports.submit(2)
    reports.workers.advance(1.0)
    waiting.cancel()
    assert [chunk for _, chunk, _ in reports.take(2)] == [0, 2]


def test_model__lets_the_scheduler_deal_with_one_message_at_a_time() -> None:
    reports = Reports(Cluster(10, message=1.0), seconds=0.5)
    for chunk in range(3):
        reports.submit(chunk)
    assert [at for at, _, _ in reports.take(3)] == [4.0, 5.0, 6.0]
