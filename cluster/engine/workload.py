"""What the engine knows of the work: spans in, parts out, three steps between.

A **span** says which consecutive piece of the input a task is about: where it stands, so that a
worker can open it by itself, or the data, some megabytes of a stream. A **part** is what comes
back. Both are the workload's own and must pickle; a part must also go through a `Codec`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

S = TypeVar("S")
P = TypeVar("P")
S_contra = TypeVar("S_contra", contravariant=True)
P_co = TypeVar("P_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session computes.

    worker      the worker's name
    gpu         CUDA's number of the device in this process, None for the CPU
    free_bytes  memory that is free there
    """

    worker: str
    gpu: int | None
    free_bytes: int


class Session(Protocol[S_contra, P_co]):
    """A workload set up on a device of a worker. Its steps run in several threads at once."""

    def load(self, span: S_contra) -> Any:
        """Read the span into host memory."""

    def compute(self, loaded: Any) -> Any:
        """Run the kernels. Raises MemoryError where `loaded` does not fit."""

    def need(self, loaded: Any) -> int:
        """Bytes of device memory that `compute` takes for it, at most."""

    def halves(self, loaded: Any) -> Sequence[Any]:
        """`loaded` as two smaller ones, or as one that takes less room; none where it is a unit."""

    def joined(self, loaded: Any, halves: Sequence[Any], computed: Sequence[Any]) -> Any:
        """What `compute` would have given for `loaded`, from what it gave for its halves."""

    def finish(self, loaded: Any, computed: Any) -> P_co:
        """Make the part, on the host."""

    def close(self) -> None:
        """Give everything back that is kept between spans."""


class Workload(Protocol[S, P]):
    """A job as the client describes it. It pickles, and it is sent to every worker once."""

    @property
    def key(self) -> str:
        """Unique to the job: workers keep one session for each, and each of their devices."""

    def open(self, place: Place) -> Session[S, P]:
        """Set up on a device of a worker, on several at once. Raises Unfit where it may not be."""

    def name(self, span: S) -> str:
        """The span, for people."""

    def correct(self, span: S | None, part: P) -> S | None:
        """The span to run instead, where `part` shows that `span` was cut in the wrong place.

        Called on the client, in the order of the input, once for every part. span: None where an
        earlier run has finished it; then it was right.
        """
