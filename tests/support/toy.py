"""A toy workload for the engine: it squares numbers, and does whatever else a test wants.

The workers of a test cannot import this module, so its classes travel with what is sent.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import cloudpickle

from multigpu.cluster.deploy.deployment import Deployment
from multigpu.cluster.deploy.start import start_workers
from multigpu.cluster.workers.threads import Workers

cloudpickle.register_pickle_by_value(sys.modules[__name__])

Part = tuple[int, Any]  # the span, and what came of it


class Broken(Exception):
    pass


def squares(count: int) -> list[Part]:
    """Return the parts of numbers from 0."""
    return [(number, number * number) for number in range(count)]


@dataclass(frozen=True, eq=False)
class Bulky:
    """Span that consists of data."""

    number: int
    data: bytes = b"x" * 100_000


@dataclass
class Toy:
    """Workload that squares numbers. step: what else happens to a number, by name of step."""

    key: str
    step: dict[tuple[str, int], Callable[[], object]] = field(default_factory=dict)
    wrong: set[int] = field(default_factory=set)  # numbers whose first part is not right
    asked: list[int] = field(default_factory=list)

    def open(self, place: Any) -> "ToySession":
        return ToySession(self, place)

    def name(self, span: Any) -> str:
        return f"number {getattr(span, 'number', span)}"

    def correct(self, span: Any, part: Part) -> Any:
        self.asked.append(part[0])
        return -part[0] if part[0] in self.wrong else None


@dataclass
class ToySession:
    toy: Toy
    place: Any
    closed: bool = False

    def _do(self, step: str, number: int) -> None:
        assert not self.closed
        self.toy.step.get((step, number), int)()

    def load(self, span: Any) -> int:
        number = getattr(span, "number", span)  # the class is another one in a worker process
        self._do("load", number)
        return int(number)

    def compute(self, loaded: int) -> int:
        self._do("compute", loaded)
        return loaded * loaded

    def need(self, loaded: int) -> int:
        return 1

    def halves(self, loaded: int) -> tuple[()]:
        return ()

    def finish(self, loaded: int, computed: int) -> Part:
        self._do("finish", loaded)
        return loaded, computed

    def close(self) -> None:
        self.closed = True


@contextmanager
def workers(deployment: Deployment) -> Iterator[Workers]:
    """Yield the workers of a deployment, which end with the block."""
    with start_workers(deployment) as pending:
        yield pending.wait()
