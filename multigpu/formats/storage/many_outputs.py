"""Many output files, written together, plain or as BGZF, which is compressed in parallel.

A BGZF file is gzip made of blocks, each compressed by itself. They have a fixed size of content,
counted from the file's beginning, so the bytes of a file do not depend on the pieces in which its
content comes, or on threads.
"""

import os
import resource
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Self

from multigpu.cluster.files import (
    clear_folder,
    failures_named,
    hidden_path,
    hold_folder,
    sync_directory,
    sync_folder,
    take_mode,
)
from multigpu.formats.storage.compressed import compression_of
from multigpu.formats.storage.decompress import BGZF_END

BLOCK = 0xFF00  # bytes of content, as bgzip has them
BGZF_HEADER = struct.Struct("<4BI2B4H")
BGZF_FOOTER = struct.Struct("<2I")
FAST = 1  # level of igzip: the next one takes as long and gains nothing on reads
TASK_BLOCKS = 16  # blocks that a thread compresses before another may take its turn
SPARE_FILES = 256  # open files that are left to the rest of the program

Piece = tuple[int, memoryview]  # number of a file, and what is appended to it


@contextmanager
def atomic_outputs(name: str, paths: Sequence[str]) -> Iterator["ManyOutputs"]:
    """Yield the files, of which all get their names when the block ends without an exception.

    `ManyOutputs.finish` is to be called before.

    They are BGZF where `name` ends in .gz. Folders that are missing are made. After an exception no
    path has changed, unless it comes while the files get their names. Raises UsageError where
    another run writes these outputs, and Failure where the disk is full or broken.

    name  of all of them, for messages; an existing folder, and a name in it
    """
    scratch = hidden_path(Path(name).resolve(), "part")
    with hold_folder(scratch, name):
        try:
            with failures_named(name):
                clear_folder(scratch)  # a run that was killed may have left something
            with ManyOutputs(scratch, paths, compression_of(name) == "gzip") as files:
                yield files
            with failures_named(name):
                sync_folder(scratch)
            _publish(scratch, paths)
        finally:
            with suppress(OSError):  # what went wrong before is what is reported
                clear_folder(scratch)


def _publish(scratch: Path, paths: Sequence[str]) -> None:
    """Give all files their names. A symbolic link stays one: its target is replaced."""
    folders = set()
    for number, path in enumerate(paths):
        target = Path(path).resolve()
        with failures_named(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            take_mode(scratch / str(number), target)
            (scratch / str(number)).replace(target)
        folders.add(target.parent)
    for folder in folders:
        sync_directory(folder)


class ManyOutputs:
    """Files in a scratch folder, named by their numbers, that content is appended to.

    As many as may be are kept open, the others are opened for each piece.
    """

    def __init__(self, scratch: Path, paths: Sequence[str], compressed: bool) -> None:
        self._scratch, self._paths, self._compressed = scratch, paths, compressed
        self._threads = len(os.sched_getaffinity(0))
        self._pool = ThreadPoolExecutor(self._threads, "output")
        self._waiting: dict[int, bytes] = {}  # content of a file, less than a block
        self._open: dict[int, FileIO] = {}
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most_open = max(0, min(len(paths), limit // 2 - SPARE_FILES))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()
        for file in self._open.values():
            with suppress(OSError):
                file.close()

    def write(self, pieces: Iterable[Piece]) -> None:
        """Append pieces to their files, each file once. Raises Failure for one that cannot be."""
        if self._compressed:
            self._write_blocks(pieces)
        else:
            self._append([(number, [piece]) for number, piece in pieces])

    def finish(self) -> None:
        """Write what is held back; files without content are made, too."""
        rest = [(number, memoryview(content)) for number, content in self._waiting.items()]
        self._waiting = {}
        self._write_blocks(rest, final=True)
        end = [BGZF_END] if self._compressed else []
        self._append([(number, end) for number in range(len(self._paths))])

    def _write_blocks(self, pieces: Iterable[Piece], final: bool = False) -> None:
        """Compress and append whole blocks, or, at the end, all that there is."""
        tasks = []
        for number, piece in pieces:
            before = self._waiting.pop(number, b"")
            content = memoryview(before + bytes(piece)) if before else piece
            stop = len(content) if final else len(content) // BLOCK * BLOCK
            if stop < len(content):
                self._waiting[number] = bytes(content[stop:])
            for at in range(0, stop, TASK_BLOCKS * BLOCK):
                some = content[at : min(stop, at + TASK_BLOCKS * BLOCK)]
                tasks.append((number, self._pool.submit(_compress, some)))
        ready: dict[int, list[bytes]] = {}
        for number, task in tasks:
            ready.setdefault(number, []).append(task.result())
        self._append(list(ready.items()))

    def _append(self, contents: Sequence[tuple[int, Sequence[bytes | memoryview]]]) -> None:
        """Append to files, several at a time."""
        shares = [contents[k :: self._threads] for k in range(self._threads)]
        for _ in self._pool.map(self._append_some, filter(None, shares)):
            pass

    def _append_some(self, contents: Sequence[tuple[int, Sequence[bytes | memoryview]]]) -> None:
        for number, pieces in contents:
            with failures_named(self._paths[number]):
                file = self._open.get(number) or FileIO(str(self._scratch / str(number)), "a")
                try:
                    for piece in pieces:
                        left = memoryview(piece)
                        while left:
                            left = left[file.write(left) :]
                finally:
                    if number < self._most_open:
                        self._open[number] = file
                    else:
                        file.close()


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
