"""Streams that are read ahead by a thread of their own.

Decompressing one cannot be divided, so it begins first, and others wait for it.
"""

import contextlib
import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.storage.sources import Source, blocks, expand, inspect_source, is_regular

LARGEST_BLOCK = 8 << 20  # many of them wait where they were read
BLOCKS_AHEAD = 32  # about what is decompressed while the program loads

T = TypeVar("T")
Block = NDArray[np.uint8]


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


class Streams:
    """Blocks of streams, read ahead; the first stream may begin before the job is known."""

    def __init__(self) -> None:
        self._begun: dict[Source, ReadAhead[Block]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for content in self._begun.values():
            content.close()

    def begin(self, paths: Sequence[str]) -> None:
        """Begin to read the first file, if it is a stream. Errors are raised by `blocks`."""
        with contextlib.suppress(InputError):
            for path in expand(paths[:1])[:1]:
                if not is_regular(path):
                    return  # it may be read only once
                source = inspect_source(path)
                if not source.cuttable:
                    self._begun[source] = _read(source, LARGEST_BLOCK)

    def blocks(self, source: Source, size: int) -> ReadAhead[Block]:
        """Return the content in blocks of `size` bytes; to be closed."""
        if size == LARGEST_BLOCK and source in self._begun:
            return self._begun.pop(source)
        return _read(source, size)


def _read(source: Source, size: int) -> ReadAhead[Block]:
    return ReadAhead(blocks(source, size), BLOCKS_AHEAD)
