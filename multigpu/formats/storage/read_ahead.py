"""Items that are produced ahead by a thread of their own, as the blocks of a stream."""

import threading
from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from typing import Generic, TypeVar

LARGEST_BLOCK = 8 << 20  # many of them wait where they were read
BLOCKS_AHEAD = 16

T = TypeVar("T")


class ReadAhead(Generic[T]):
    """Iterator of items that another thread produces, up to `depth` before they are taken.

    Errors are raised where the items are taken.
    """

    def __init__(self, items: Iterable[T], depth: int) -> None:
        self._ready: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()
        self._room = threading.Semaphore(depth)
        self._closed = False
        threading.Thread(target=self._produce, args=(items,), daemon=True).start()

    def _produce(self, items: Iterable[T]) -> None:
        end: BaseException = StopIteration()
        try:
            for item in items:
                self._ready.put((item, None))
                self._room.acquire()
                if self._closed:
                    return
        except BaseException as error:  # noqa: BLE001 - it is raised where the items are taken
            end = error
        self._ready.put((None, end))

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if self._closed:
            raise StopIteration
        item, error = self._ready.get()
        if error is not None:
            self.close()
            raise error
        self._room.release()
        return item  # type: ignore[return-value]

    def close(self) -> None:
        """Read and give nothing more."""
        self._closed = True
        self._room.release()
