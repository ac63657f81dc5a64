"""Plan of a docking job: spans of the input, and the memory that they take."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from multigpu.cluster.engine.dispatch import LINE_PER_THREAD
from multigpu.cluster.engine.plan import Capacity, Cost
from multigpu.formats.molecules.ligands import READ_BYTES, LigandRecords
from multigpu.formats.storage.sources import Source
from multigpu.kernels.rotation.memory import band_bytes, fixed_bytes, working_bytes
from multigpu.kernels.rotation.rotations import ListedRotations
from multigpu.kernels.rotation.thinning import MOST_LISTED, SHORTLIST_BYTES
from multigpu.kernels.rotation.types import Field, PoseSearch
from multigpu.run.options import RunOptions
from multigpu.run.plan import ChunkPlan, largest_chunk, memory_budget
from multigpu.workloads.dock.grouping import EACH_ALONE, Grouping
from multigpu.workloads.dock.search import WholeBox

# Poses of a span, of all its ligands: they take a core a second with some dozens of atoms, a GPU a
# tenth of a second, so that all devices finish at about the same time.
GPU_POSES = 1 << 30
CPU_POSES = 1 << 20
CHUNK_CONFORMERS = 256  # that are made: one or two seconds of a core
# Many, so that little unfinished work is lost when a long run is stopped.
CHUNKS_PER_THREAD = 20
DEVICE_BYTES_PER_BYTE = 1.0  # atoms and results on a device, by the bytes of the ligands' text

PROGRAM_BYTES = 400 << 20  # of host memory: Python, NumPy, Numba while it compiles, RDKit
DEVICE_PROGRAM_BYTES = 1 << 30  # CUDA and CuPy with its compiler
LISTED_BYTES = 192  # of a listed rotation while the list is made
FIELD_COPIES = 4  # while it is read and searched
LARGE_LIGAND = 16 << 10  # bytes of text; few are larger
LOADED_BYTES_PER_BYTE = 5  # of text: that, its atoms as they are read and searched, names
POSE_BYTES_PER_BYTE = 3  # of text, for each pose: its row, and its text with notes
LOOKED_AT = 0.01  # share of the poses of a whole box that takes as long as all of its bounds
USUAL_KINDS = 48  # of atoms of a ligand, with different types or charges
CPU_BYTES = 1 << 26  # of a thread that searches there


@dataclass(frozen=True, slots=True, kw_only=True)
class DockSpan:
    """Consecutive ligands of one format, and the range of their poses to search."""

    first: int  # index of the first record in the whole input
    records: tuple[LigandRecords, ...]
    poses: tuple[int, int]  # begin and end


@dataclass(frozen=True, slots=True, kw_only=True)
class DockPlan(ChunkPlan):
    """Sizes by which ligands and their poses are cut into spans."""

    chunk_ligands: int  # most ligands of a span
    pose_spans: tuple[tuple[int, int], ...]  # begin and end of each span of a ligand's poses
    threads: int = 1  # threads of all workers
    top: int = 1  # poses of each ligand
    once_bytes: int = PROGRAM_BYTES  # that a process takes once: program, field, listed rotations

    def spans_by(self) -> dict[str, Any]:
        """Return what decides where spans begin and end."""
        names = ("chunk_bytes", "chunk_ligands", "pose_spans")
        return {name: getattr(self, name) for name in names}

    @property
    def host_bytes(self) -> int:
        """Most bytes of host memory of a process, if no ligand has more than 16 KiB of text.

        The sum of what it takes once, and of the chunks in progress and in line.
        """
        text = min(self.chunk_bytes, self.chunk_ligands * LARGE_LIGAND)
        scored = max(end - begin for begin, end in self.pose_spans)
        listed = SHORTLIST_BYTES * min(3 * MOST_LISTED, scored) if self.top > 1 else 0
        chunk = text * (LOADED_BYTES_PER_BYTE + POSE_BYTES_PER_BYTE * self.top)
        chunks = self.process_chunks + LINE_PER_THREAD * self.threads
        return self.once_bytes + chunks * chunk + self.process_chunks * listed


def plan_dock(
    sources: Sequence[Source],
    field: Field,
    search: PoseSearch,
    whole: WholeBox | None,
    here: Capacity,
    run: RunOptions,
    conformers: int = 0,
) -> DockPlan:
    """Return how the input is cut for workers of this capacity.

    conformers: that are made of each ligand; 0: it is docked as it is

    Raises TooLittleMemory where not even one ligand fits.
    """
    working = CPU_BYTES
    if here.gpu:
        working = band_bytes(field, search, USUAL_KINDS) if whole else working_bytes()
    cost = Cost(DEVICE_BYTES_PER_BYTE, fixed_bytes(field), working)
    chunk_bytes, lanes = largest_chunk(
        sources, cost, here, run, chunks_per_thread=CHUNKS_PER_THREAD
    )
    share = GPU_POSES if here.gpu else CPU_POSES
    tried = search.stop if whole is None else max(1, int(search.stop * LOOKED_AT))
    # Several poses of a ligand are chosen by their distances from each other, so spans of poses
    # could not be merged.
    pieces = -(-tried // share) if whole is None and search.top == 1 else 1
    borders = [search.stop * i // pieces for i in range(pieces + 1)]
    ligands = share // (tried * max(1, conformers))
    if conformers:
        ligands = min(ligands, CHUNK_CONFORMERS // conformers)
    listed = search.rotations.count if isinstance(search.rotations, ListedRotations) else 0
    held = FIELD_COPIES * field.values.nbytes + fixed_bytes(field) + LISTED_BYTES * listed
    program = PROGRAM_BYTES + DEVICE_PROGRAM_BYTES * here.gpu
    return DockPlan(
        chunk_bytes=chunk_bytes,
        chunk_ligands=max(1, ligands),
        pose_spans=tuple(pairwise(borders)),
        budget=memory_budget(here, run),
        cost=cost,
        lanes=lanes,
        process_chunks=here.chunks_in_process,
        threads=here.threads,
        top=search.top,
        once_bytes=program + held + 4 * READ_BYTES,  # streams are read in blocks
    )


def dock_spans(
    records: Iterable[LigandRecords], plan: DockPlan, grouping: Grouping = EACH_ALONE
) -> Iterator[DockSpan]:
    """Yield spans of consecutive records; the spans of a ligand's poses follow each other.

    grouping: which records are one ligand, and stay together
    """
    first = 0
    for group in _record_groups(records, plan, grouping):
        for poses in plan.pose_spans:
            yield DockSpan(first=first, records=group, poses=poses)
        first += sum(map(len, group))


def _record_groups(
    records: Iterable[LigandRecords], plan: DockPlan, grouping: Grouping
) -> Iterator[tuple[LigandRecords, ...]]:
    """Yield as many records of one format as a span may have, and what the last ligand has more."""
    group: list[LigandRecords] = []
    count = size = 0
    for block in records:
        done, ends = 0, block.ends
        while done < len(block):
            before = int(ends[done - 1]) if done else 0
            fit = int(np.searchsorted(ends, before + plan.chunk_bytes - size, "right")) - done
            fit = min(fit, plan.chunk_ligands - count)
            if count and (fit < 1 or block.layout != group[0].layout):
                fit = grouping.continued(group, block[done:])
                if not fit:
                    yield tuple(group)
                    group, count, size = [], 0, 0
                    continue
            group.append(block[done : done + max(1, fit)])
            count, size = count + len(group[-1]), size + len(group[-1].text)
            done += len(group[-1])
    if group:
        yield tuple(group)
