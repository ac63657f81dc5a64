"""Streams that are read ahead by a thread of their own.

Decompressing one cannot be divided, so it may begin before the job is known.
"""

import contextlib
import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from multigpu.formats.storage.sources import Block, Source, blocks

LARGEST_BLOCK = 8 << 20  # many of them wait where they were read
BLOCKS_AHEAD = 32  # about what is decompressed while the program loads

T = TypeVar("T")


class ReadAhead(Generic[T]):
    """Iterator of items that another thread produces, up to `depth` before they are taken."""

    def __init__(self, items: Iterable[T], depth: int) -> None:
        self._ready: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(depth)
        self._stopped = threading.Event()
        threading.Thread(target=self._produce, args=(items,), daemon=True).start()

    def _produce(self, items: Iterable[T]) -> None:
        try:
            for item in items:
                self._put(item, None)
                if self._stopped.is_set():
                    return
            self._put(None, StopIteration())
        except BaseException as error:  # noqa: BLE001 - it is raised where the items are taken
            self._put(None, error)

    def _put(self, item: T | None, error: BaseException | None) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(queue.Full):
                self._ready.put((item, error), timeout=0.1)
                return

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if self._stopped.is_set():
            raise StopIteration
        item, error = self._ready.get()
        if error is not None:
            self.close()
            raise error
        return item  # type: ignore[return-value]

    def close(self) -> None:
        """Read and give nothing more."""
        self._stopped.set()


def read_ahead(source: Source, size: int = LARGEST_BLOCK) -> ReadAhead[Block]:
    """Begin to read the content in blocks of `size` bytes; to be closed.

    Errors are raised where the blocks are taken.
    """
    return ReadAhead(blocks(source, size), BLOCKS_AHEAD)
