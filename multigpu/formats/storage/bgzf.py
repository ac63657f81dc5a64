"""BGZF by several threads: its blocks say how long they are, so each can be read alone."""

import io
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.storage.decompress import (
    HEADER,
    Members,
    NamedStream,
    bgzf_size,
    damage_error,
)
from multigpu.formats.storage.stored_streams import errors_named

BATCH = 2 << 20  # stored bytes that one thread takes together
SHORTEST = 26  # bytes of a block: header, no data, checksum and length
LENGTH, LARGEST = 4, 64 << 10  # bytes of the length of its content, and of this
BORDERS = 512  # of blocks, which are looked for together

Memory = NDArray[np.uint8]


class BgzfContent:
    """Content of a BGZF file. What is no BGZF block is read as other gzip data.

    Blocks are read and cut here, in order; batches of some dozens of them are decompressed by
    threads, a few ahead of what is taken, into memory that is used again and again: new pages
    would cost as much as the decompression.
    """

    def __init__(self, stream: NamedStream, threads: int) -> None:
        self._stream = stream
        self._pool = ThreadPoolExecutor(threads, "bgzf")
        self._most = threads + 1  # batches in progress
        self._coming: deque[Future[tuple[Memory, int]]] = deque()
        self._room = self._piece = np.empty(0, np.uint8)  # of a batch; what is left of it
        self._free: list[Memory] = []  # rooms of batches that were taken
        self._left = b""  # of what was read, after the last whole block
        self._last = b""  # block
        self._blocks_follow = True
        self._rest: Members | None = None

    def readinto(self, out: memoryview) -> int:
        while not len(self._piece):
            while self._blocks_follow and len(self._coming) < self._most:
                self._submit()
            if not self._coming:
                # What follows the blocks: nothing, zeros, or other gzip data.
                if self._rest is None:
                    self._pool.shutdown(wait=False)
                    self._rest = Members(self._stream, "gzip", self._left, self._last)
                return self._rest.readinto(out)
            self._free.append(self._room)
            try:
                self._room, size = self._coming.popleft().result()
            except Exception as error:
                raise damage_error(self._stream.path, "gzip", error) from error
            self._piece = self._room[:size]
        count = min(len(out), len(self._piece))
        # Unlike a memoryview's, this copy lets other threads run.
        np.copyto(np.frombuffer(out, np.uint8, count), self._piece[:count])
        self._piece = self._piece[count:]
        return count

    def _submit(self) -> None:
        """Give the next blocks to a thread."""
        left = len(self._left)
        room = memoryview(bytearray(left + BATCH))
        room[:left] = self._left
        new = self._stream.readinto(room[left:]) or 0
        last, stop, size, good = _whole_blocks(room[: left + new])
        self._blocks_follow = good and new > 0
        self._left = bytes(room[stop : left + new])
        if stop:
            self._last = bytes(room[last:stop])
            free = self._free.pop() if self._free else self._room[:0]
            self._coming.append(self._pool.submit(_decompress, room[:stop], size, free))


def block_borders(path: str) -> Iterator[tuple[int, int]]:
    """Yield where each block of a file begins, in the file and in its content.

    The last of them is where no whole block follows: at the end, or at other data.
    """
    from multigpu.kernels.compiled.bgzf import HEADER, LENGTH, follow_blocks

    room, borders = np.empty(LENGTH + HEADER, np.uint8), np.zeros((BORDERS, 2), np.int64)
    count = BORDERS
    with errors_named(path), io.FileIO(path) as file:
        while count == BORDERS:
            count = follow_blocks(file.fileno(), room, borders)
            yield from zip(*borders[: count - 1].T.tolist(), strict=True)
            borders[0] = borders[count - 1]
    yield int(borders[0, 0]), int(borders[0, 1])


def least_content(path: str) -> int:
    """Return about how many bytes a local file holds: by its first blocks, or as many as it has."""
    *_, (stored, content) = islice(block_borders(path), 100)
    size = Path(path).stat().st_size
    return size * content // stored if stored else size


def _whole_blocks(stored: memoryview) -> tuple[int, int, int, bool]:
    """Return where the last whole block begins and ends, and whether another may follow.

    Before the last one, the bytes that all whole blocks hold.
    """
    last = stop = content = 0
    while len(stored) - stop >= HEADER:
        size = bgzf_size(bytes(stored[stop : stop + HEADER])) or 0
        if size >= SHORTEST and stop + size > len(stored):
            break
        length = int.from_bytes(stored[stop + size - LENGTH : stop + size], "little")
        if size < SHORTEST or length > LARGEST:
            return last, stop, content, False
        last, stop, content = stop, stop + size, content + length
    return last, stop, content, True


def _decompress(blocks: memoryview, size: int, room: Memory) -> tuple[Memory, int]:
    """Return memory with the content of blocks, this room if it is enough, and their bytes."""
    from isal.isal_zlib import _GzipReader  # the class under `igzip.open`

    room = room if size <= len(room) else np.empty(size, np.uint8)
    reader: Any = _GzipReader(blocks, len(blocks))  # type: ignore[arg-type]
    count = 0
    while count < size and (more := reader.readinto(room[count:size])):
        count += more
    if reader.readinto(bytearray(1)):  # which looks at the last checksum, too
        raise OSError("a block is longer than it says")
    return room, count
