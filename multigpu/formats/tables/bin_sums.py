"""Sums of neighbouring bins of a matrix of counts (bincov), of several sizes in one pass.

The matrix is text: `#Chr Start End`, from 0 and half open, and the samples. It is never in memory
as a whole: threads sum blocks of its lines. Bins lie on a grid that begins with the first line of
their chromosome, so that a gap makes bins of fewer lines; one without lines is left out.
"""

import mmap
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from io import BufferedReader

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.devices.memory import free_bytes
from multigpu.errors import Failure, InputError, first_line, quoted
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.names import name_problem
from multigpu.formats.storage.read_ahead import ReadAhead
from multigpu.formats.storage.sources import open_content
from multigpu.formats.tables.counts import LARGEST, Counts, check_room
from multigpu.formats.tables.counts_tsv import read_header
from multigpu.kernels.compiled.text.count_lines import sum_lines

TWO_PLACES = "the rows of {} are in two places: sort them"
NO_BIN = "is no bin as wide as the first one and after the one before, with counts below 2 million"
TIMES = " ×"  # between the name of a chromosome and the size of its bins
BLOCK = 16 << 20  # bytes of text that a thread sums at a time
MOST_THREADS = 8  # more wait for the text, and hold blocks of it
LEAST_MAPPED = 1 << 20  # bytes of a copy that is mapped

Places = NDArray[np.int64]
Keep = Callable[[str, Places, Places], NDArray[np.bool_]]  # chromosome, starts, ends → bool[n]


def read_bin_sums(path: str, sizes: Sequence[int], chosen: Collection[str], keep: Keep) -> Counts:
    """Return the counts of all bins: those of the first size, then those of the next ones.

    sizes   lines in a bin where none is missing
    chosen  chromosomes to read; empty: all
    keep    tells which bins are wanted

    The regions have a name for each chromosome and size, as "chr1 ×10". Raises InputError with the
    row of a line that does not fit.
    """
    threads = min(MOST_THREADS, len(os.sched_getaffinity(0)))
    try:
        with open_content(path) as file, ThreadPoolExecutor(threads, "sums") as pool:
            samples = read_header(path, file)
            if not chosen:
                check_room(path, file, len(samples), sum(1 / size for size in sizes))
            every, sums_of = [_Bins(size) for size in sizes], _Summer(len(samples), sizes)
            rooms, ends = list[bytearray](), dict[str, int]()
            stretches = _stretches(path, file, chosen, rooms)
            tasks = (pool.submit(sums_of.stretch, each) for each in stretches)
            with closing(ReadAhead(tasks, threads)) as ahead:
                row, room = 1, bytearray()
                for found in (task.result() for task in ahead):
                    stretch = found.stretch
                    if stretch.room is not room:  # all of the one before is summed
                        rooms.append(room)
                        room = stretch.room
                    if stretch.start < ends.get(stretch.name, 0):
                        raise InputError(path, NO_BIN, f"row {row}")
                    row += found.lines
                    if found.wrong is not None:
                        raise _line_error(path, stretch, row, found.wrong, 3 + len(samples))
                    if threads * sum(sums.nbytes for _, sums in found.bins) > free_bytes(None):
                        raise MemoryError("the sums of its bins alone")
                    for bins, (numbers, sums) in zip(every, found.bins, strict=False):
                        bins.add(stretch, numbers, sums)
                        ends[stretch.name] = found.end
        if missing := [name for name in chosen if name not in ends]:
            raise InputError(path, f"has no chromosome {quoted(missing[0])}")
        if not ends:
            raise InputError(path, "there are no regions")
        regions, values = _join(every, len(samples), ends, keep, threads)
        return Counts(regions, samples, values)
    except MemoryError as error:
        raise Failure(f"{path}: does not fit into memory ({first_line(error)})") from error


def read_samples(path: str) -> tuple[str, ...]:
    """Return the samples of a matrix. Raises InputError for a file that is none."""
    with open_content(path) as file:
        return read_header(path, file)


# ---- text to stretches of one chromosome ------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _LineStretch:
    """Lines of one chromosome, and the memory in which they lie, with others perhaps.

    origin, width, start  of its grid, and of the first line, in bases
    """

    is_chosen: bool
    name: str
    origin: int
    width: int
    start: int
    text: memoryview
    room: bytearray


def _stretches(
    path: str, file: BufferedReader, chosen: Collection[str], rooms: list[bytearray]
) -> Iterator[_LineStretch]:
    """Yield all lines. Raises InputError for a chromosome in two places.

    rooms  memory that is free again: new pages would take as long as the sums
    """
    grids: dict[str, tuple[int, int]] = {}
    before, left, is_last = "", b"", False
    while not is_last:
        text = rooms.pop() if rooms else bytearray()
        if len(text) <= len(left) + BLOCK:
            text = bytearray(len(left) + BLOCK + 1)  # and a newline
        text[: len(left)] = left
        count = len(left) + file.readinto(memoryview(text)[len(left) : -1])
        if is_last := count < len(text) - 1:
            text[count:] = b"" if not count or text[count - 1] == ord("\n") else b"\n"
            count = len(text)
        stop = text.rfind(b"\n", 0, count) + 1
        left = bytes(text[stop:count])
        for begin, end in _chromosomes(text, stop):
            line = bytes(text[begin : text.find(b"\n", begin)])
            fields = [*line.split(b"\t", 3), b"", b""]
            name = fields[0].decode("utf-8", "replace")
            # What is no number is found with its row, by who sums the lines.
            start, border = (int(x) if x.isdigit() and len(x) < 19 else 0 for x in fields[1:3])
            if name != before and name in grids:
                raise InputError(path, TWO_PLACES.format(quoted(name)))
            unnamed = "it has no name" if line.startswith(b"\t") else ""
            if problem := name_problem(name) or unnamed:
                raise InputError(path, f"{quoted(name)} is no chromosome: {problem}")
            before, is_chosen = name, not chosen or name in chosen
            if not is_chosen and grids.keys() >= {*chosen}:
                return  # what is chosen was before
            origin, width = grids.setdefault(name, (start, max(1, border - start)))
            lines = memoryview(text)[begin:end]
            yield _LineStretch(is_chosen, name, origin, width, start, lines, text)


def _chromosomes(text: bytearray, stop: int) -> Iterator[tuple[int, int]]:
    """Yield where the lines of each chromosome begin and end."""
    begin = 0
    while begin < stop:
        name, end = text[begin : text.find(b"\t", begin) + 1], stop
        if not text.startswith(name, max(begin, text.rfind(b"\n", begin, stop - 1) + 1)):
            end = begin
            while text.startswith(name, end):
                end = text.find(b"\n", end) + 1
        yield begin, end
        begin = end


# ---- stretches to sums, in threads ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _StretchSums:
    """Sums of a stretch.

    bins   for each size, if it is chosen: numbers of bins on its grid, and int32[bins, samples]
    lines  that fit
    end    of the last of them, in bases
    wrong  the first line that does not fit
    """

    stretch: _LineStretch
    bins: list[tuple[Places, NDArray[np.int32]]]
    lines: int
    end: int
    wrong: bytes | None


class _Summer:
    """Sums of stretches of so many samples, for each size of bins; every thread has its memory."""

    def __init__(self, samples: int, sizes: Sequence[int]) -> None:
        self._samples, self._sizes = samples, np.array(sizes, np.int64)
        self._thread = threading.local()

    def stretch(self, stretch: _LineStretch) -> _StretchSums:
        """Return the sums of a stretch."""
        text, samples, sizes = np.frombuffer(stretch.text, np.uint8), self._samples, self._sizes
        if not stretch.is_chosen:
            return _StretchSums(stretch, [], int(np.count_nonzero(text == ord("\n"))), 0, None)
        numbers, sums = self._room(len(text) // (2 * samples) + 1)  # a byte and a tab a count
        used, line = np.zeros(len(sizes), np.int64), np.empty(samples, np.int32)
        # So that no sum is too large.
        grid = stretch.origin, stretch.width, LARGEST // int(sizes.max())
        found = sum_lines(text, grid, stretch.start, sizes, line, numbers, sums, used)
        lines, end, wrong = found
        bad = None if wrong < 0 else bytes(stretch.text[wrong:]).partition(b"\n")[0]
        counts = used.tolist()
        bins = [(numbers[k, :n].copy(), _mapped(sums[k, :n])) for k, n in enumerate(counts)]
        return _StretchSums(stretch, bins, lines, end, bad)

    def _room(self, lines: int) -> tuple[Places, NDArray[np.int32]]:
        """Return memory for the numbers of bins and for their sums, one for each line at most."""
        mine = self._thread
        if not hasattr(mine, "numbers") or mine.numbers.shape[1] < lines:
            room = len(self._sizes), lines
            mine.numbers = np.empty(room, np.int64)
            mine.sums = np.empty((*room, self._samples), np.int32)
        return mine.numbers, mine.sums


def _mapped(rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return a copy whose memory the system has again once it is dropped; others Python keeps."""
    if rows.nbytes < LEAST_MAPPED:
        return rows.copy()
    memory = mmap.mmap(-1, rows.nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    found = np.frombuffer(memory, np.int32).reshape(rows.shape)
    found[:] = rows
    return found


def _line_error(
    path: str, stretch: _LineStretch, row: int, line: bytes, columns: int
) -> InputError:
    fields, where = line.rstrip(b"\r").split(b"\t"), f"row {row}"
    if len(fields) != columns:
        return InputError(path, f"{len(fields)} columns instead of {columns}", where)
    if fields[0] != stretch.name.encode():
        return InputError(path, TWO_PLACES.format(quoted(stretch.name)), where)
    for number, cell in enumerate(fields[1:], 2):
        if not cell.isdigit():
            problem = f"{quoted(cell)} is no whole number"
            return InputError(path, problem, f"{where}, column {number}")
    return InputError(path, NO_BIN, where)


# ---- sums to a table, in order ----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Bins:
    """Bins of one size, in parts: chromosome, starts, width, and the sums of each."""

    size: int
    parts: list[tuple[str, Places, int, NDArray[np.int32]]] = field(default_factory=list)

    def add(self, stretch: _LineStretch, numbers: Places, sums: NDArray[np.int32]) -> None:
        """Add the bins of the next stretch; a bin may have begun in the one before."""
        width = stretch.width * self.size
        start = stretch.origin + numbers * width
        if self.parts:
            name, starts, _, before = self.parts[-1]
            if name == stretch.name and starts[-1] == start[0]:
                sums[0] += before[-1]
                self.parts[-1] = name, starts[:-1], width, before[:-1]
        self.parts.append((stretch.name, start, width, sums))


def _join(
    every: Sequence[_Bins], samples: int, ends: Mapping[str, int], keep: Keep, threads: int
) -> tuple[Regions, NDArray[np.int32]]:
    """Return the wanted bins of all sizes; no bin ends after the last line of its chromosome."""
    names: dict[str, int] = {}
    chrom, start, end = [], [], []
    sums: list[tuple[NDArray[np.bool_], NDArray[np.int32]]] = []
    for bins in every:
        for name, first, width, values in bins.parts:
            kept = keep(name, first, first + width)
            number = names.setdefault(f"{name}{TIMES}{bins.size}", len(names))
            start.append(first[kept])
            chrom.append(np.full(len(start[-1]), number, np.int32))
            end.append(np.minimum(start[-1] + width, ends[name]))
            sums.append((kept, values))
        bins.parts.clear()
    firsts = np.cumsum([0, *map(len, start)])
    joined = np.empty((firsts[-1], samples), np.int32)

    def put(k: int) -> None:
        kept, values = sums[k]
        joined[firsts[k] : firsts[k + 1]] = values if kept.all() else values[kept]
        sums[k] = kept, joined[:0]  # its memory is free again: all of it would be there twice

    with ThreadPoolExecutor(threads, "sums") as pool:
        for _ in pool.map(put, range(len(sums))):
            pass
    columns = np.concatenate(chrom), np.concatenate(start), np.concatenate(end)
    return Regions(tuple(names), *columns), joined
