"""What a docking job searches, and how it is cut into spans."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from multigpu.cluster.engine.dispatch import LINE_PER_THREAD
from multigpu.cluster.engine.plan import Capacity, Cost, balanced, chunk_units
from multigpu.dock.options import DockOptions
from multigpu.errors import InputError, UsageError
from multigpu.formats.molecules.ligands import READ_BYTES, LigandRecords, RecordBorder
from multigpu.formats.molecules.pockets import Pocket
from multigpu.formats.molecules.rotations import read_quaternions
from multigpu.formats.storage.sources import Source
from multigpu.kernels.rotation import (
    EulerRotations,
    Field,
    ListedRotations,
    Search,
    Shifts,
    energy_channels,
    near_uniform,
)
from multigpu.kernels.rotation.memory import fixed_bytes, working_bytes
from multigpu.kernels.rotation.shortlist import MOST_LISTED, SHORTLIST_BYTES
from multigpu.run.options import RunOptions

# Poses of a span, of all its ligands: a second of work of a core with some dozens of atoms, and a
# tenth of a second of a GPU, so that all GPUs end together.
GPU_POSES = 1 << 30
CPU_POSES = 1 << 20
CHUNKS_PER_THREAD = 20  # so that little is in hand, and lost, when a long run is stopped
DEVICE_BYTES_PER_BYTE = 1.0  # atoms and results, of the bytes of the ligands' text

PROGRAM_BYTES = 400 << 20  # on a host: Python, NumPy, Numba while it compiles, RDKit
DEVICE_PROGRAM_BYTES = 1 << 30  # CUDA and CuPy besides, with a compiler of their own
LISTED_BYTES = 192  # of a rotation of a list, while it is made
FIELD_COPIES = 4  # as it is read, and as it is searched
LARGE_LIGAND, SMALL_LIGAND = 16 << 10, 512  # bytes of text; few are larger or smaller
LOADED_BYTES_PER_BYTE = 4  # of the text: itself, atoms as they are read and as they are searched
NAMED_BYTES = 512  # of a ligand: its name, and what is known of it
POSE_BYTES = 1024  # of a pose: its row, as numbers and as text, and what its text says of it
SCORES = 1 << 24  # float32, that a thread of a CPU holds at most


# ---- what is searched -------------------------------------------------------------------------


def field_of(pocket: Pocket, options: DockOptions) -> Field:
    """The pocket as the kernels see it. Raises InputError for what they refuse."""
    values = pocket.values
    if pocket.types:
        values = energy_channels(values[:-2], values[-2], values[-1])
    try:
        outside = options.outside_of(pocket.types)
        return Field(values, pocket.origin, pocket.spacing, options.interpolation, outside)
    except ValueError as error:
        raise InputError(pocket.path, str(error)) from error


def search_of(options: DockOptions) -> Search:
    """The poses that are tried. Raises UsageError where they are too many."""
    shifts = Shifts(*options.translations) if options.translations else Shifts()
    try:
        rotations = _rotations(options)
        return Search(rotations, shifts, options.center, options.top, options.min_rmsd)
    except ValueError as error:
        raise UsageError(f"this cannot be searched: {error}: take larger steps") from error


def _rotations(options: DockOptions) -> EulerRotations | ListedRotations:
    if options.rotation_file is not None:
        return ListedRotations(read_quaternions(options.rotation_file))
    if options.rotations is not None:
        return near_uniform(options.rotations)
    return EulerRotations(options.step)


# ---- how it is cut ----------------------------------------------------------------------------


@dataclass(frozen=True)
class DockSpan:
    """Ligands, and which poses of theirs.

    first   index of the first record in the whole input
    records with their text, or without it where whoever docks them can read it
    poses   begin and end
    last    no more poses of these ligands come
    whole   these are all poses
    """

    first: int
    records: tuple[LigandRecords, ...]
    poses: tuple[int, int]
    last: bool
    whole: bool

    @property
    def behind(self) -> RecordBorder:
        """Where the next ligands begin; those of a source that is broken off, in the next one."""
        records = self.records[-1]
        first = self.first + sum(map(len, self.records))
        if records.error:
            return RecordBorder(source=records.source + 1, first=first)
        return RecordBorder(
            source=records.source,
            at=records.at + records.size,
            before=records.last,
            first=first,
        )


@dataclass(frozen=True)
class DockPlan:
    """How the input is going to be cut.

    chunk_bytes    text of the ligands of a span, and
    chunk_ligands  how many they may be, at most
    pose_spans     begin and end of the spans into which a ligand's poses are cut
    budget         memory that the spans may take where there is least of it
    lanes          spans in hand at a time on each device
    in_hand        by the process that has most; threads: of all
    top            poses of each ligand
    once_bytes     of a process: the program, the field and listed rotations
    """

    chunk_bytes: int
    chunk_ligands: int
    pose_spans: tuple[tuple[int, int], ...]
    budget: int
    cost: Cost
    lanes: int
    in_hand: int = 1
    threads: int = 1
    top: int = 1
    once_bytes: int = PROGRAM_BYTES

    def spans_by(self) -> dict[str, Any]:
        """What decides how spans are cut."""
        return {
            "chunk_bytes": self.chunk_bytes,
            "chunk_ligands": self.chunk_ligands,
            "pose_spans": self.pose_spans,
        }

    @property
    def device_bytes(self) -> int:
        """What the spans take where they are computed."""
        return self.cost.fixed_bytes + int(self.lanes * self.chunk_bytes * self.cost.unit_bytes)

    @property
    def host_bytes(self) -> int:
        """What a process takes at most, if ligands have up to 16 KiB of text.

        That is the program, the field, the spans in hand with their ligands and poses, and those
        in line, each with the text of its ligands, or that of its poses and their rows.
        """
        text = min(self.chunk_bytes, self.chunk_ligands * LARGE_LIGAND)
        ligands = min(self.chunk_ligands, -(-text // SMALL_LIGAND))
        poses = self.top * (text + ligands * POSE_BYTES)
        scored = max(end - begin for begin, end in self.pose_spans)
        scores = 4 * min(SCORES, scored)
        if self.top > 1:
            scores += SHORTLIST_BYTES * min(3 * MOST_LISTED, scored)
        loaded = LOADED_BYTES_PER_BYTE * text + NAMED_BYTES * ligands
        line = LINE_PER_THREAD * self.threads * (text + poses)
        return self.once_bytes + self.in_hand * (loaded + poses + scores) + line


def plan_dock(
    sources: Sequence[Source], field: Field, search: Search, here: Capacity, run: RunOptions
) -> DockPlan:
    budget = int(here.free * run.memory_fraction)
    fixed = here.lanes * working_bytes() + fixed_bytes(field)
    cost = Cost(DEVICE_BYTES_PER_BYTE, fixed)
    most = chunk_units(cost, budget, here.lanes, run.chunk_bytes())
    known = [source.size or 0 for source in sources if source.cuttable]
    # Small chunks, so that little is lost when a run is stopped.
    size = balanced(sum(known), most, here.threads, CHUNKS_PER_THREAD) if known else most
    share = GPU_POSES if here.gpu else CPU_POSES
    ligands = max(1, share // search.stop)
    # Poses that keep a distance from each other are chosen one by one: not in spans.
    pieces = -(-search.stop // share) if search.top == 1 else 1
    return DockPlan(
        size, ligands, _pose_spans(search.stop, pieces), budget, cost, here.lanes,
        here.chunks_in_process, here.threads, search.top, _once_bytes(field, search, here),
    )  # fmt: skip


def _once_bytes(field: Field, search: Search, here: Capacity) -> int:
    """What a process of the host takes whatever its spans are; a stream is read in blocks."""
    rotations = search.rotations
    listed = rotations.count if isinstance(rotations, ListedRotations) else 0
    program = PROGRAM_BYTES + DEVICE_PROGRAM_BYTES * here.gpu
    held = FIELD_COPIES * field.values.nbytes + fixed_bytes(field) + LISTED_BYTES * listed
    return program + held + 4 * READ_BYTES


def _pose_spans(stop: int, pieces: int) -> tuple[tuple[int, int], ...]:
    """`pieces` consecutive spans of nearly the same length."""
    borders = [stop * i // pieces for i in range(pieces + 1)]
    return tuple(pairwise(borders))


def dock_spans(
    records: Iterable[LigandRecords], plan: DockPlan, first: int = 0
) -> Iterator[DockSpan]:
    """Consecutive records as spans; those of poses follow each other.

    first: index of the first record, with which a span begins
    """
    for begin, group in _groups(records, plan, first):
        for poses in plan.pose_spans:
            whole = len(plan.pose_spans) == 1
            yield DockSpan(begin, group, poses, poses == plan.pose_spans[-1], whole)


Group = tuple[LigandRecords, ...]


def _groups(
    records: Iterable[LigandRecords], plan: DockPlan, first: int
) -> Iterator[tuple[int, Group]]:
    """As many records as a span may have, and the index of the first."""
    count, size = 0, 0
    group: list[LigandRecords] = []
    for some in records:
        done, ends = 0, np.cumsum(some.lengths)
        while done < len(some):
            before = int(ends[done - 1]) if done else 0
            fit = int(np.searchsorted(ends, before + plan.chunk_bytes - size, "right")) - done
            fit = min(fit, plan.chunk_ligands - count)
            if fit < 1 and count:
                yield first, tuple(group)
                first, count, size, group = first + count, 0, 0, []
                continue
            alone = fit >= len(some) and not isinstance(some.text, memoryview)
            group.append(some if alone else some[done : done + max(1, fit)])
            count, size = count + len(group[-1]), size + group[-1].size
            done += len(group[-1])
    if group:
        yield first, tuple(group)
