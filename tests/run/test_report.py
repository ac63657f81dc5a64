"""The picture of busy devices."""

import re

import numpy as np
import pytest

from multigpu.cluster.engine.events import Event
from multigpu.run.report import BINS, DeviceChart, _covered


def finished(worker: str, *spans: tuple[float, float]) -> Event:
    steps = [["compute", begin, end, 1] for begin, end in spans] + [["load", 0.0, 99.0, 1]]
    return Event("finished", 0.0, {"worker": worker, "device": "gpu0", "steps": steps})


@pytest.mark.parametrize(
    ("spans", "share"),
    [
        ([(0, 1)], 1.0),
        ([(0, 0.5)], 0.5),
        ([(0, 0.5), (0.25, 0.5), (0.4, 0.75)], 0.75),  # lanes that compute at the same time
        ([(0.9, 1), (0, 0.1)], 0.2),
        ([(0.001, 0.0011)], 0.0001),
    ],
)
def test_covered__is_the_length_of_the_union(
    spans: list[tuple[float, float]], share: float
) -> None:
    covered = _covered(np.array(spans, float))
    assert covered.shape == (BINS,)
    assert covered.max() <= 1 + 1e-9
    assert covered.mean() == pytest.approx(share)


def test_chart__has_a_row_for_every_device_with_its_share() -> None:
    chart = DeviceChart()
    chart(finished("a<b", (10.0, 20.0)))
    chart(finished("b", (10.0, 12.0)))
    chart(finished("b", (14.0, 16.0)))
    chart(Event("planned"))
    svg = chart.svg()
    assert re.findall(r">([^<]*%)</text>", svg) == ["a&lt;b gpu0  100%", "b gpu0  40%"]
    assert ">10 s</text>" in svg
    assert svg.count("<rect") == pytest.approx(1.4 * BINS, abs=4)


def test_chart__counts_no_step_inside_of_another_twice() -> None:
    chart = DeviceChart()
    chart(finished("a", (10.0, 12.0)))
    chart(finished("a", (18.0, 20.0)))
    steps = [["segment", 12.0, 18.0, 1], ["compute", 12.0, 13.0, 1]]
    chart(Event("finished", 0.0, {"worker": "a", "device": "gpu0", "steps": steps}))
    assert ">a gpu0  50%</text>" in chart.svg()


def test_chart__of_nothing_is_nothing() -> None:
    assert DeviceChart().svg() == ""
