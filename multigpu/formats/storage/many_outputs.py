"""Many output files, written together, plain or as BGZF, which is compressed in parallel.

A BGZF file is gzip made of blocks, each compressed by itself. They have a fixed size of content,
counted from the file's beginning, so the bytes of a file do not depend on the pieces in which its
content comes, or on threads.
"""

import os
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Self

from multigpu.cluster.files import failures_named, take_mode, temporary_folder
from multigpu.formats.storage.compressed import compression_of
from multigpu.formats.storage.decompress import BGZF_END

BLOCK = 0xFF00  # bytes of content, as bgzip has them
BGZF_HEADER = struct.Struct("<4BI2B4H")
BGZF_FOOTER = struct.Struct("<2I")
FAST = 1  # level of igzip: the next one takes as long and gains nothing on reads
TASK_BYTES = 16 * BLOCK  # that a thread compresses before another may take its turn
BATCHES_AHEAD = 2  # calls of `write` whose content waits for a thread

Piece = tuple[int, memoryview]  # number of a file, and what is appended to it
Content = bytes | memoryview | Future[bytes]


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

    Threads write, each its share of the files, while the caller goes on. A file is open while it
    is written to: there may be more than a process may have open.
    """

    def __init__(self, scratch: Path, paths: Sequence[str], compressed: bool) -> None:
        self._scratch, self._paths, self._compressed = scratch, paths, compressed
        threads = len(os.sched_getaffinity(0))
        self._compressors = ThreadPoolExecutor(threads, "compress")
        # One thread each: so the pieces of a file keep their order.
        self._writers = [ThreadPoolExecutor(1, "output") for _ in range(threads)]
        self._batches: deque[list[Future[None]]] = deque()  # that are being written
        self._waiting: dict[int, bytes] = {}  # content of a file, less than a block

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in (*self._writers, self._compressors):
            pool.shutdown(cancel_futures=True)

    def write(self, pieces: Iterable[Piece]) -> None:
        """Append pieces to their files, each file once, by and by.

        Raises Failure for one that cannot be written, from a later call or from `finish`, too.
        """
        if self._compressed:
            self._write_blocks(pieces)
        else:
            self._append({number: [piece] for number, piece in pieces})

    def finish(self) -> None:
        """Write what is held back, and wait; files without content are made, too."""
        rest = [(number, memoryview(content)) for number, content in self._waiting.items()]
        self._waiting = {}
        self._write_blocks(rest, final=True)
        end = [BGZF_END] if self._compressed else []
        self._append(dict.fromkeys(range(len(self._paths)), end))
        self._wait(0)

    def _write_blocks(self, pieces: Iterable[Piece], final: bool = False) -> None:
        """Compress and append whole blocks, or, at the end, all that there is."""
        contents: dict[int, list[Content]] = {}
        for number, piece in pieces:
            before = self._waiting.pop(number, b"")
            content = memoryview(b"".join([before, piece])) if before else piece
            stop = len(content) if final else len(content) // BLOCK * BLOCK
            if stop < len(content):
                self._waiting[number] = bytes(content[stop:])
            contents[number] = [
                self._compressors.submit(_compress, content[at : min(stop, at + TASK_BYTES)])
                for at in range(0, stop, TASK_BYTES)
            ]
        self._append(contents)

    def _append(self, contents: Mapping[int, Sequence[Content]]) -> None:
        """Let the threads append to files."""
        self._batches.append(
            [
                self._writers[number % len(self._writers)].submit(self._append_to, number, pieces)
                for number, pieces in contents.items()
            ]
        )
        self._wait(BATCHES_AHEAD)

    def _wait(self, batches: int) -> None:
        """Wait until no more than so many batches are being written."""
        while len(self._batches) > batches:
            for task in self._batches.popleft():
                task.result()

    def _append_to(self, number: int, pieces: Sequence[Content]) -> None:
        path = str(self._scratch / str(number))
        with failures_named(self._paths[number]), FileIO(path, "a") as file:
            for piece in pieces:
                left = memoryview(piece.result() if isinstance(piece, Future) else piece)
                while left:
                    left = left[file.write(left) :]


def _compress(content: memoryview) -> bytes:
    """Return content as BGZF blocks."""
    borders = range(0, len(content), BLOCK)
    return b"".join([_bgzf_block(content[at : at + BLOCK]) for at in borders])


def _bgzf_block(content: memoryview) -> bytes:
    from isal import igzip_lib, isal_zlib

    data = igzip_lib.compress(content, FAST, igzip_lib.COMP_DEFLATE)
    size = BGZF_HEADER.size + len(data) + BGZF_FOOTER.size
    if size > 1 << 16:  # what cannot be compressed is stored
        deflate = zlib.compressobj(0, zlib.DEFLATED, -15)
        data = deflate.compress(content) + deflate.flush()
        size = BGZF_HEADER.size + len(data) + BGZF_FOOTER.size
    header = BGZF_HEADER.pack(31, 139, 8, 4, 0, 0, 255, 6, 0x4342, 2, size - 1)
    return header + data + BGZF_FOOTER.pack(isal_zlib.crc32(content), len(content))
