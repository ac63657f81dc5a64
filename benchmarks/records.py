"""Records in pageable memory, each in memory of its own, and the way from them to matches."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import common
import numpy as np
from common import FIRST, GpuSearch, Letters
from data import parsed
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from multigpu.formats.sequences.signatures import Signatures
from multigpu.kernels.compiled.jit import lean
from multigpu.kernels.scan import Hits, Patterns


@dataclass(frozen=True, eq=False)
class Sample:
    """A record as the classical programs hold them."""

    name: str
    bases: NDArray[np.uint8]
    qualities: NDArray[np.uint8]


def samples_of(path: Path) -> list[Sample]:
    """All records of a FASTQ."""
    raw = np.fromfile(path, np.uint8)
    return [
        Sample(
            raw[name:name_end].tobytes().decode(),
            raw[first : first + length].copy(),
            raw[quality : quality + length].copy(),
        )
        for name, name_end, first, length, quality, _ in parsed(raw).tolist()
    ]


class FromRecords:
    """From samples in pageable memory to a list of matches, with buffers made before."""

    def __init__(self, samples: list[Sample], signatures: Signatures, pieces: int) -> None:
        from multigpu.kernels.device.pinned import pinned
        from multigpu.kernels.scan import cuda

        self._cuda = cuda
        self.samples, self.signatures = samples, signatures
        self.names = [name.decode() for name in signatures.names]
        offsets = np.zeros(len(samples) + 1, np.int64)
        np.cumsum([len(sample.bases) for sample in samples], out=offsets[1:])
        self.search = GpuSearch(Letters(pinned(int(offsets[-1])), offsets), pieces)
        self.pool = ThreadPoolExecutor(common.cores())

    def gather(self) -> list[list[Future[None]]]:
        """Start copying to pinned memory: for each piece, tasks to wait for; earlier ones first."""
        parts = max(1, common.cores() // 2)
        return [
            [self.pool.submit(self._copy, piece, part, parts) for part in range(parts)]
            for piece in self.search.pieces
        ]

    def gathered(self) -> None:
        """Copy all, and nothing else."""
        for tasks in self.gather():
            for task in tasks:
                task.result()

    def _copy(self, piece: common.Piece, part: int, parts: int) -> None:
        offsets, records = piece.chunk.offsets, len(piece.chunk.offsets) - 1
        first, stop = part * records // parts, (part + 1) * records // parts
        samples = self.samples[piece.first + first : piece.first + stop]
        places = [sample.bases.__array_interface__["data"][0] for sample in samples]
        _copy_all(np.array(places, np.int64), offsets[first : stop + 1], piece.chunk.letters)

    def index(self) -> Any:
        return self._cuda.Scanner(Patterns.of(self.signatures.letters), FIRST)

    def run(self) -> list[tuple[str, str, int, float]]:
        scanner, tasks = self.pool.submit(self.index), self.gather()
        for task_list, lane, piece in zip(
            tasks, self.search.lanes, self.search.pieces, strict=True
        ):
            for task in task_list:
                task.result()
            lane.upload(piece.chunk)
        hits = self.search.search(scanner.result())
        return [self._match(r, p, s) for r, p, s in hit_rows(hits)]

    def _match(self, record: int, pattern: int, start: int) -> tuple[str, str, int, float]:
        sample, length = self.samples[record], len(self.signatures.letters[pattern])
        total = int(sample.qualities[start : start + length].sum(dtype=np.int64))
        return sample.name, self.names[pattern], start, (total - 33 * length) / length


def hit_rows(hits: Hits) -> Iterator[tuple[int, int, int]]:
    """Record, pattern and start of each."""
    return zip(hits.record.tolist(), hits.pattern.tolist(), hits.start.tolist(), strict=True)


@intrinsic
def _copy_from(typing: Any, place: Any, target: Any, at: Any, count: Any) -> Any:
    """uint8 target[at : at + count] = what lies at the address `place` (C's memcpy)."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place, target, at, count = args
        byte, word = ir.IntType(8), ir.IntType(64)
        array = cgutils.create_struct_proxy(sig.args[1])(context, builder, value=target)
        to = builder.gep(array.data, [at])
        kind = ir.FunctionType(byte.as_pointer(), [byte.as_pointer(), byte.as_pointer(), word])
        memcpy = cgutils.get_or_insert_function(builder.module, kind, "memcpy")
        builder.call(memcpy, [to, builder.inttoptr(place, byte.as_pointer()), count])
        return context.get_dummy_value()

    return types.void(types.int64, target, types.int64, types.int64), generate


@lean
def _copy_all(places: Any, offsets: Any, target: Any) -> None:
    """One record after the other; without the GIL, which many threads would wait for."""
    for i in range(len(places)):
        _copy_from(places[i], target, offsets[i], offsets[i + 1] - offsets[i])
