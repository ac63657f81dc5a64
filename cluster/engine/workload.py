"""The protocol between the engine and a workload: spans in, parts out, three steps between.

A **span** is a consecutive piece of the input, by position, so that a worker can open it by itself;
or the data, some megabytes of a stream. A **series** is the spans of an input that a worker opens
and reads to its end: nobody knows how many there are. It stays with one worker, where the input is
open; another one that gets a span of it opens the input too, and reads up to there. A **part** is
the result of a span. The workload defines them. Spans and parts must pickle, and a part must also
go through a `Codec`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

S = TypeVar("S")
P = TypeVar("P")
S_contra = TypeVar("S_contra", contravariant=True)
P_co = TypeVar("P_co", covariant=True)


@dataclass(frozen=True, eq=False)
class Series(Generic[S, P]):
    """Spans of one input, of which only their parts tell how many there are.

    The next span is taken before the part of the one before is there; what was taken after the
    end is thrown away.

    spans     in order; more than there are
    is_last   part → whether it is that of the last span
    size      part → bytes that it takes while it waits for its turn, about
    """

    spans: Iterator[S]
    is_last: Callable[[P], bool]
    size: Callable[[P], int]


@dataclass(frozen=True, slots=True)
class Place:
    """The device or host that a session computes on.

    worker      the worker's name
    gpu         CUDA's number of the device in this process, None for the CPU
    free_bytes  memory that is free there
    """

    worker: str
    gpu: int | None
    free_bytes: int


class Session(Protocol[S_contra, P_co]):
    """A workload set up on a device of a worker. Its steps run in several threads at once.

    A session that inherits from this one has only units, and keeps nothing between spans.
    """

    def load(self, span: S_contra) -> Any:
        """Read the span into host memory."""

    def compute(self, loaded: Any) -> Any:
        """Run the kernels. Raises MemoryError where `loaded` does not fit."""

    def need(self, loaded: Any) -> int:
        """Return the bytes of device memory that `compute` takes for it, at most."""

    def halves(self, loaded: Any) -> Sequence[Any]:
        """Return `loaded` as two smaller ones, or one that takes less room; () for a unit."""
        return ()

    def joined(self, loaded: Any, halves: Sequence[Any], computed: Sequence[Any]) -> Any:
        """Return what `compute` would give for `loaded`, from what it gave for its halves."""
        (only,) = computed
        return only

    def finish(self, loaded: Any, computed: Any) -> P_co:
        """Make the part, on the host."""

    def close(self) -> None:
        """Release everything that is kept between spans."""
        return


class Workload(Protocol[S, P]):
    """A job as the client describes it. It pickles, and is sent to every worker once."""

    @property
    def key(self) -> str:
        """A text that no other job has."""

    def open(self, place: Place) -> Session[S, P]:
        """Set up on the device that this thread uses; threads do so at once. Raises Unfit."""

    def name(self, span: S) -> str:
        """Return a name of the span for messages."""

    def correct(self, span: S | None, part: P) -> S | None:
        """Return the span to run instead, where `part` shows that `span` was cut wrongly.

        It is called on the client, in the order of the input, once for every part.

        span: None for a part of an earlier run, whose span was right
        """
