"""BGZF by several threads: its blocks say how long they are, so each can be read alone."""

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

from multigpu.formats.storage.decompress import (
    BGZF_END,
    GZIP_MAGIC,
    GzipContent,
    Stored,
    bgzf_size,
    check_bgzf_end,
    followed,
    gzip_errors_named,
)

BATCH = 1 << 20  # stored bytes that one thread takes together
HEADER = 64  # bytes at the front of a block, in which its length is looked for
SHORTEST = 26  # bytes of a block: header, no data, checksum and length


class BgzfContent:
    """Content of a BGZF file. What is no BGZF block is read as other gzip data.

    Blocks are read and cut here, in order; batches of some dozens of them are decompressed by
    threads, a few ahead of what is taken.
    """

    def __init__(self, inlet: Stored, threads: int) -> None:
        self._inlet, self._path = inlet, inlet.path
        self._pool = ThreadPoolExecutor(threads, "bgzf")
        self._most = threads + 1  # batches in progress
        self._coming: deque[Future[bytes]] = deque()
        self._piece = memoryview(b"")
        self._left = b""  # of what was read, after the last whole block
        self._last = b""  # block
        self._blocks_follow = True
        self._rest: GzipContent | None = None

    def readinto(self, out: memoryview) -> int:
        while not self._piece:
            while self._blocks_follow and len(self._coming) < self._most:
                self._submit()
            if not self._coming:
                return self._read_rest(out)
            with gzip_errors_named(self._path):
                self._piece = memoryview(self._coming.popleft().result())
        count = min(len(out), len(self._piece))
        out[:count] = self._piece[:count]
        self._piece = self._piece[count:]
        return count

    def _submit(self) -> None:
        """Give the next blocks to a thread."""
        new = self._read()
        stored = self._left + new
        last, stop, good = _whole_blocks(stored)
        self._blocks_follow = good and bool(new)
        self._left = stored[stop:]
        if stop:
            self._last = stored[last:stop]
            self._coming.append(self._pool.submit(_decompress, stored[:stop]))

    def _read(self) -> bytes:
        room = bytearray(BATCH)
        return bytes(room[: self._inlet.readinto(memoryview(room)) or 0])

    def _read_rest(self, out: memoryview) -> int:
        """Read what follows the blocks: nothing, zeros, or data for GzipContent."""
        if self._rest is None:
            self._pool.shutdown(wait=False)
            zeros = 0
            while not (solid := self._left.lstrip(b"\0")):
                zeros += len(self._left)
                self._left = self._read()
                if not self._left:
                    check_bgzf_end(self._path, self._last, zeros)
                    return 0
            if self._last == BGZF_END and not GZIP_MAGIC.startswith(solid[:2]):
                raise followed(self._path, "gzip")
            self._rest = GzipContent(_Again(self._inlet, solid))
        return self._rest.readinto(out)


class _Again:
    """Stream with bytes put back before it."""

    def __init__(self, inlet: Stored, before: bytes) -> None:
        self.path, self._inlet, self._before = inlet.path, inlet, before

    def readinto(self, out: memoryview) -> int:
        if not self._before:
            return self._inlet.readinto(out) or 0
        count = min(len(out), len(self._before))
        out[:count] = self._before[:count]
        self._before = self._before[count:]
        return count


def _whole_blocks(stored: bytes) -> tuple[int, int, bool]:
    """Return where the last whole block begins and ends, and whether another may follow."""
    last = stop = 0
    while len(stored) - stop >= HEADER:
        size = bgzf_size(stored[stop : stop + HEADER])
        if size is None or size < SHORTEST:
            return last, stop, False
        if stop + size > len(stored):
            break
        last, stop = stop, stop + size
    return last, stop, True


def _decompress(blocks: bytes) -> bytes:
    from isal import igzip

    content: bytes = igzip.decompress(blocks)  # type: ignore[no-untyped-call]
    return content


def threads_for_bgzf() -> int:
    """Return half of the number of processors: the others compute."""
    return max(1, len(os.sched_getaffinity(0)) // 2)
