"""Many output files, written together, plain or as BGZF, which is compressed in parallel.

A BGZF file is gzip made of blocks, each compressed by itself. They have a fixed size of content,
counted from the file's beginning, so its blocks do not depend on the pieces in which its content
comes, or on threads; libdeflate makes the same bytes of a block on every machine.
"""

import os
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit
from typing import Self

from multigpu.cluster.files import failures_named, take_mode, temporary_folder
from multigpu.formats.storage.compressed import compression_of
from multigpu.formats.storage.decompress import BGZF_END
from multigpu.kernels.compiled.parallel import cores

BLOCK = 0xFF00  # bytes of content, as bgzip has them
BGZF_HEADER = struct.Struct("<4BI2B4H")
GZIP_HEADER = 10  # bytes before deflated data
FAST = 1  # level of libdeflate: the next one takes twice as long and gains 2 % on reads
TASK_BYTES = 16 * BLOCK  # that one thread compresses; of more each helps
APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT
MOST_AT_ONCE = 1024  # pieces that the system takes in one call (IOV_MAX)

Piece = tuple[int, memoryview]  # number of a file, and what is appended to it


@contextmanager
def atomic_outputs(
    name: str, paths: Sequence[str], convert: Callable[[int, Path], None] | None = None
) -> Iterator["ManyOutputs"]:
    """Yield the files, of which all get their names when the block ends without an exception.

    `ManyOutputs.finish` is to be called before.

    They are BGZF where `name` ends in .gz. Folders that are missing are made. After an exception no
    path has changed, unless it comes while the files get their names. Raises UsageError where
    another run writes these outputs, and Failure where the disk is full or broken.

    Nobody waits for the disk, as their content can be made again: it is slower than a run by far.

    name     of all of them, for messages; an existing folder, and a name in it
    convert  replaces a file, given by number and path, when it is complete
    """
    with temporary_folder(Path(name).resolve(), name) as scratch:
        with ManyOutputs(scratch, paths, compression_of(name) == "gzip") as files:
            yield files
        if convert:
            for number in range(len(paths)):
                with failures_named(paths[number]):
                    convert(number, scratch / str(number))
        _publish(scratch, paths)


def _publish(scratch: Path, paths: Sequence[str]) -> None:
    """Give all files their names. A symbolic link stays one: its target is replaced."""
    for number, path in enumerate(paths):
        target = Path(path).resolve()
        with failures_named(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            take_mode(scratch / str(number), target)
            (scratch / str(number)).replace(target)


class ManyOutputs:
    """Files in a scratch folder, named by their numbers, that content is appended to.

    Content is held until it is to be written. Then threads compress and write it, each its share of
    the files, while the caller goes on: seldom and much at once, as each call of the system hands
    the interpreter to another thread, and waits for it. The first files stay open, as many as a
    quarter of those that a process may have, as other outputs may need as many; the rest is open
    while it is written.
    """

    def __init__(self, scratch: Path, paths: Sequence[str], compressed: bool) -> None:
        self._scratch, self._paths, self._compressed = scratch, paths, compressed
        threads = cores()
        self._writers = ThreadPoolExecutor(threads, "output")
        self._helpers = ThreadPoolExecutor(threads, "compress")  # for large pieces
        self._shares = [range(first, len(paths), threads) for first in range(threads)]
        self._stay, self._open = getrlimit(RLIMIT_NOFILE)[0] // 4, dict[int, int]()
        self._held: list[list[memoryview]] = [[] for _ in paths]  # content of each file
        self._rests = [b""] * len(paths)  # of each file, less than a block, to be compressed
        self._writing: list[Future[None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in (self._writers, self._helpers):
            pool.shutdown(cancel_futures=True)
        for file in self._open.values():  # an exception came before the last content
            with suppress(OSError):
                os.close(file)

    def hold(self, pieces: Iterable[Piece]) -> None:
        """Append pieces to their files when these are written next: they may not change before."""
        for number, piece in pieces:
            self._held[number].append(piece)

    def write(self, final: bool = False) -> None:
        """Write what is held, by and by, when all before is written.

        Raises Failure for a file that cannot be written, from a later call, too.
        """
        self._wait()
        held, self._held = self._held, [[] for _ in self._paths]
        self._writing = [
            self._writers.submit(self._append, [(n, held[n]) for n in share], final)
            for share in self._shares
        ]

    def finish(self) -> None:
        """Write what is held, and wait; files without content are made, too."""
        self.write(final=True)
        self._wait()

    def _wait(self) -> None:
        while self._writing:
            self._writing.pop().result()

    def _append(self, share: Iterable[tuple[int, list[memoryview]]], final: bool) -> None:
        for number, pieces in share:
            contents = self._blocks(number, pieces, final) if self._compressed else pieces
            if not (contents or final):
                continue
            with failures_named(self._paths[number]):
                file = self._open.pop(number, None)
                if file is None:  # with the mode less what `umask` says
                    file = os.open(f"{self._scratch}/{number}", APPEND, 0o666)
                try:
                    _write(file, deque(contents))
                finally:
                    if number < self._stay and not final:
                        self._open[number] = file
                    else:
                        os.close(file)

    def _blocks(
        self, number: int, pieces: Iterable[memoryview], final: bool
    ) -> Sequence[bytes | memoryview]:
        """Return whole blocks of a file, compressed; at the end all."""
        content = memoryview(b"".join([self._rests[number], *pieces]))
        stop = len(content) if final else len(content) // BLOCK * BLOCK
        self._rests[number] = bytes(content[stop:])
        parts = [content[at : min(stop, at + TASK_BYTES)] for at in range(0, stop, TASK_BYTES)]
        run = self._helpers.map if len(parts) > 1 else map
        return [*run(_compress, parts), *[BGZF_END] * final]


def _write(file: int, contents: deque[bytes | memoryview]) -> None:
    """Write all contents to a file, given by its descriptor."""
    while contents:
        done = os.writev(file, list(islice(contents, MOST_AT_ONCE)))
        while contents and done >= len(contents[0]):
            done -= len(contents.popleft())
        if done:
            contents[0] = memoryview(contents[0])[done:]


def _compress(content: memoryview) -> bytes:
    """Return content as BGZF blocks."""
    borders = range(0, len(content), BLOCK)
    return b"".join([_bgzf_block(content[at : at + BLOCK]) for at in borders])


def _bgzf_block(content: memoryview) -> bytes:
    from deflate import gzip_compress

    # One call makes the checksum, too: each gives the interpreter away, and waits for it.
    packed = gzip_compress(content, FAST)  # at most 31 bytes more: no block is too large
    size = BGZF_HEADER.size + len(packed) - GZIP_HEADER
    header = BGZF_HEADER.pack(31, 139, 8, 4, 0, 0, 255, 6, 0x4342, 2, size - 1)
    return header + packed[GZIP_HEADER:]
