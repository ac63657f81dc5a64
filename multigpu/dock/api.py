"""Docking from Python; the command calls it too."""

import logging
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.codec import Codec
from multigpu.cluster.workers.worker import Outcome
from multigpu.dock.options import COMPRESSION, DockOptions, docking_lanes
from multigpu.dock.plan import DockPlan, DockSpan, dock_spans, field_of, plan_dock, search_of
from multigpu.dock.scores import Skipped, to_arrow
from multigpu.dock.work import PART_CLASSES, Best, DockPart, DockWorkload, FoundPart, Part
from multigpu.errors import InputError
from multigpu.formats.molecules.autodock import NO_MAP
from multigpu.formats.molecules.ligands import (
    INPUT_BEGIN,
    LIGANDS,
    LigandRecords,
    RecordBorder,
    open_sources,
    read_records,
)
from multigpu.formats.molecules.pockets import Vector, read_pocket
from multigpu.formats.storage.sources import (
    Source,
    check_stdin,
    expand,
    is_repeatable,
    plain_bytes,
)
from multigpu.formats.tables.batch import PoseBatch
from multigpu.kernels.rotation import PENALTY, ListedRotations, covering_radius
from multigpu.run import fitness
from multigpu.run.job import (
    Crew,
    Job,
    JobFacts,
    Paths,
    check_unchanged,
    describe_inputs,
    journal_path,
    path_list,
)
from multigpu.run.keywords import run_options
from multigpu.run.options import Lanes, RunOptions
from multigpu.run.report import DeviceChart
from multigpu.run.values import path_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

logger = logging.getLogger(__name__)
LONGEST_NAME = 80  # letters of a ligand's name in a message
OUTSIDE = {
    "clamp": "as at its border",
    "zero": "nothing",
    "penalty": f"-{PENALTY:,.0f} for each Å² from its middle",
}
SMALL = 1 << 16  # bytes of a file: opening it again would take longer than to hand them over


@dataclass
class DockFacts(JobFacts):
    """What a docking run has done so far.

    scores  float64 arrays: the best of every ligand, in the order of the input
    """

    ligands: int = 0
    poses: int = 0  # written
    outside: int = 0  # ligands that are placed beside the grid, and the farthest of them
    farthest: tuple[float, str] = (0.0, "")
    bare: int = 0  # ligands that lack hydrogens
    reaching: int = 0  # ligands whose best pose has atoms outside, and the one with the most
    most_outside: tuple[int, str] = (0, "")
    text_bytes: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    scores: list[NDArray[np.float64]] = field(default_factory=list)

    def take(self, part: DockPart) -> None:
        """Count the ligands of a part, which may have come in several spans."""
        self.ligands += len(part.names)
        self.poses += len(part.rows)
        self.text_bytes += part.text_bytes
        self.skipped += part.skipped
        self.bare += part.bare
        self.scores.append(part.rows.score[part.rows.pose == 1])
        self.outside += int((part.outside > 0).sum())
        if len(part.outside):
            most = int(part.outside.argmax())
            self.farthest = max(self.farthest, (float(part.outside[most]), part.names[most]))
        self._take_outside(part.rows)

    def _take_outside(self, rows: PoseBatch) -> None:
        best = np.flatnonzero(rows.pose == 1)
        atoms = rows.atoms_outside[best]
        self.reaching += int((atoms > 0).sum())
        if atoms.max(initial=0) > self.most_outside[0]:
            most = int(atoms.argmax())
            self.most_outside = int(atoms[most]), rows.ligand[best[most]]


class DockJob(Job):
    """A docking run: opened (all input looked at), planned, and run once.

    report  how many of the best ligands are kept for a report
    lanes   with which workers were started; more: see `Job`
    """

    def __init__(
        self,
        ligands: Sequence[str],
        pocket: str,
        options: DockOptions,
        run: RunOptions,
        origin: Vector | None = None,
        spacing: float | None = None,
        report: int = 0,
        lanes: Lanes | None = None,
        **more: Any,
    ) -> None:
        lanes = lanes or docking_lanes(options, plain_bytes(ligands, LIGANDS, COMPRESSION))
        super().__init__(run, lanes, **more)
        self.options, self.report = options, report
        self.facts: DockFacts = DockFacts()
        self.chunk_plan: DockPlan | None = None
        self.best: list[Best] = []
        self.chart = DeviceChart()
        if report:
            self.listeners.append(self.chart)
        check_stdin([*ligands, options.rotation_file])
        self._paths = expand(ligands, LIGANDS)
        self.pocket = read_pocket(pocket, origin, spacing)
        self.field, self.search = field_of(self.pocket, options), search_of(options)
        self.sources, self._bad = open_sources(self._paths, options.on_error == "skip")
        if not all(map(is_repeatable, self._paths)):
            self._journal_path = None
        self._note_center()

    @cached_property
    def covering_radius(self) -> float | None:
        """Degrees from any rotation to the nearest that is tried; None for a grid of angles."""
        rotations = self.search.rotations
        return covering_radius(rotations) if isinstance(rotations, ListedRotations) else None

    def _note_center(self) -> None:
        if self.options.center is None:
            return
        distance = self.pocket.distance(np.array(self.options.center))
        if distance > 0:
            logger.warning("multigpu: the center lies %.4g Å outside of the grid", distance)

    def plan(self, crew: Crew | None = None) -> DockPlan:
        """The chunk plan; without a crew, that of this machine."""
        here = crew.capacity if crew else self.capacity
        return plan_dock(self.sources, self.field, self.search, here, self.run)

    def parts(self, fmt: str | None = None, lines: bool = False) -> Iterator[DockPart]:
        """The parts in order, with poses as text where `fmt` names its format.

        lines: with lines for a table of scores

        Raises what stopped the run: with `on_error` "stop" the first ligand that cannot be
        docked, else InputError where none could.
        """
        with ExitStack() as stack:
            crew = self.crew(stack, [])  # workers of other machines get the text of the ligands
            plan, about = self.plan(crew), self._about(fmt, lines)
            held = self.open_journal(about, plan.spans_by(), Codec(PART_CLASSES))
            self.chunk_plan = plan = replace(plan, **held)
            workload = DockWorkload(
                uuid.uuid4().hex, self.sources, self.field, self.pocket.types, self.search, fmt,
                lines, self.report, crew.expected, self.options.allow_flat,
            )  # fmt: skip
            outcomes = self.run_spans(crew, workload, self._spans(plan), **held)
            for part in _whole_parts(workload, outcomes):
                self._take(part)
                yield part
            check_unchanged(about, self._paths)
        self._conclude()

    def _about(self, fmt: str | None, lines: bool) -> dict[str, str]:
        """What must be the same for another run to go on with this one's journal."""
        digest = blake2b(digest_size=16)
        for array in (self.field.values, self.field.origin, self.field.spacing):
            digest.update(np.ascontiguousarray(array).data)
        if isinstance(self.search.rotations, ListedRotations):
            digest.update(self.search.rotations.quaternions.data)
        return {
            "program": fitness.program(),
            "job": "dock",
            "poses": fmt or "columns",
            "scores": "text" if lines else "columns",
            "report": str(self.report),
            **{f"option {name}": str(value) for name, value in asdict(self.options).items()},
            "pocket and rotations": digest.hexdigest()[:16],
            **describe_inputs(self._paths),
        }

    def _spans(self, plan: DockPlan) -> Iterator[DockSpan]:
        """Those that are left, without a look at what is before them between two ligands."""
        border: RecordBorder | None = getattr(self.last_finished(), "behind", None)
        if border is None:
            return self.skip_finished(dock_spans(self._records(INPUT_BEGIN), plan))
        return dock_spans(self._records(border), plan, border.first)

    def _records(self, begin: RecordBorder) -> Iterator[LigandRecords]:
        bad, in_process = {each.source: each for each in self._bad}, self.in_process
        for number in range(begin.source, len(self.sources)):
            source = self.sources[number]
            if number in bad:
                yield bad[number]
            else:
                sent = self._sends_text_of(source, in_process)
                yield from read_records(number, source, sent, begin)
            begin = INPUT_BEGIN

    def _sends_text_of(self, source: Source, in_process: bool) -> bool:
        """Whether those who dock its ligands cannot read it, or not as fast."""
        in_hand = in_process and (source.size or 0) <= SMALL
        return self.remote or not source.cuttable or in_hand

    def _take(self, part: DockPart) -> None:
        self.facts.take(part)
        if part.skipped and self.options.on_error == "stop":
            raise _input_error(part.skipped[0])
        best = sorted([*self.best, *part.best], key=lambda best: (-best.score, best.ligand_index))
        self.best = best[: self.report]

    def _conclude(self) -> None:
        facts = self.facts
        self._note_absent_maps()
        if not facts.ligands:
            raise _input_error(
                facts.skipped[0], f" (none of {len(facts.skipped)} ligands could be docked)"
            )
        if facts.bare:
            logger.warning(
                "multigpu: %d of %d ligands have no hydrogens and were docked without them: to add"
                " them first, try `obabel IN -O OUT -h`", facts.bare, facts.ligands,
            )  # fmt: skip
        if facts.outside and self.options.center is None:
            distance, name = facts.farthest
            middle = ",".join(f"{x:.4g}" for x in self.pocket.center)
            logger.warning(
                "multigpu: %d of %d ligands have their centroid outside of the grid, up to %.4g Å"
                " (%s), where scores mean nothing: --center %s puts them all in its middle",
                facts.outside, facts.ligands, distance, name, middle,
            )  # fmt: skip
        if facts.reaching:
            atoms, name = facts.most_outside
            logger.warning(
                "multigpu: the best poses of %d of %d ligands have atoms outside of the grid, up to"
                " %d (%s); these score %s: see the column atoms_outside", facts.reaching,
                facts.ligands, atoms, name, OUTSIDE[self.field.outside],
            )  # fmt: skip

    def _note_absent_maps(self) -> None:
        """Only where ligands were skipped that may have needed them."""
        lacking = any(each.reason.startswith(NO_MAP) for each in self.facts.skipped)
        if lacking and self.pocket.absent:
            names = ", ".join(self.pocket.absent)
            logger.warning(
                "multigpu: %s names maps of %s, which are not there", self.pocket.path, names
            )

    def summary_entries(self) -> dict[str, Any]:
        """What only docking has to tell in a summary."""
        return {
            "pocket": {
                "path": self.pocket.path, "layout": self.pocket.layout,
                "points": list(self.pocket.shape), "origin": self.pocket.origin.tolist(),
                "spacing": self.pocket.spacing.tolist(), "types": list(self.pocket.types),
            },
            "sources": [asdict(source) for source in self.sources],
            "rotations": self.search.rotations.count,
            "covering_radius_degrees": self.covering_radius,
            "shifts": self.search.shifts.count,
            "poses_tried": self.search.stop,  # of each ligand: all others repeat one of these
            "ligands": self.facts.ligands,
            "skipped": len(self.facts.skipped),
            "without_hydrogens": self.facts.bare,
            "poses": self.facts.poses,
        }  # fmt: skip

    @property
    def chunks(self) -> int | None:
        """About how many there are going to be, from the bytes of the ligands so far."""
        facts, known = self.facts, [source.size for source in self.sources if source.cuttable]
        if not facts.text_bytes or len(known) < len(self.sources):
            return None
        done = facts.text_bytes / max(1, sum(size or 0 for size in known))
        return max(facts.chunks, round(facts.chunks / done))


def _input_error(skipped: Skipped, more: str = "") -> InputError:
    name = skipped.ligand[:LONGEST_NAME] + "…" * (len(skipped.ligand) > LONGEST_NAME)
    where = f"record {skipped.number} ({name})"
    return InputError(skipped.path, skipped.reason + more, where)


def _whole_parts(workload: DockWorkload, outcomes: Iterator[Outcome[Part]]) -> Iterator[DockPart]:
    """Parts of whole ligands: what was found in spans of poses is merged here."""
    found: list[FoundPart] = []
    for outcome in outcomes:
        part = outcome.part
        if isinstance(part, DockPart):
            yield part
            continue
        found.append(part)
        if part.span.last:
            yield workload.merged(found)
            found = []


class DockResult:
    """The poses of a docking run, computed as they are taken; they can be taken once.

    After that `skipped` names the ligands that could not be docked. Raises UsageError where they
    were taken already.
    """

    def __init__(self, job: DockJob) -> None:
        self._job = job

    def __repr__(self) -> str:
        return (
            f"<DockResult: {len(self._job.sources):,} ligand files;"
            " iterate over it, or call to_table()>"
        )

    @property
    def skipped(self) -> list[Skipped]:
        return self._job.facts.skipped

    def __iter__(self) -> Iterator[PoseBatch]:
        """Batches in the order of the input; `ligand_index` counts through all of it."""
        self._job.take_once("poses", "multigpu.dock")
        return self._batches()

    def _batches(self) -> Iterator[PoseBatch]:
        with self._job.keep_journal():
            for part in self._job.parts():
                yield part.rows

    def to_table(self) -> "pa.Table":
        """All poses as a pyarrow table with the columns of the table of scores."""
        return to_arrow(list(self))

    def to_pandas(self) -> "pd.DataFrame":
        """All poses as a pandas frame with the columns of the table of scores."""
        return self.to_table().to_pandas()


def dock(
    ligands: Paths,
    pocket: str | os.PathLike[str],
    *,
    gpus: str = "auto",
    client: Any = None,
    journal: str | os.PathLike[str] | None = None,
    origin: Vector | None = None,
    spacing: float | None = None,
    precision: float | None = None,
    rotations: int | None = None,
    rotation_file: str | os.PathLike[str] | None = None,
    center: Vector | None = None,
    interpolation: Any = "linear",
    outside: Any = None,
    top: int = 1,
    min_rmsd: float = 1.0,
    translations: tuple[float, float] | None = None,
    on_error: Any = "skip",
    allow_flat: bool = False,
    **run: Any,
) -> DockResult:
    """Return the best poses of every ligand in a pocket.

    ligands          files, directories, patterns, URLs: SDF, MOL2, PDB, PDBQT, XYZ
    pocket           .maps.fld of AutoGrid, OpenDX, MRC or CCP4, .npy or .npz
    gpus             auto, all, none, or numbers and UUIDs as in `--gpus`
    client           a `dask.distributed.Client` to use instead of this machine
    journal          a file that keeps what is finished, until all poses were taken; with
                     `resume=True` a run that was stopped goes on with it
    origin, spacing  of a NumPy grid, Å: value [ix, iy, iz] at origin + spacing (ix, iy, iz)
    precision        degrees from one Euler angle to the next, else 10
    rotations        number of rotations, spread evenly, instead; or
    rotation_file    quaternions w x y z, one a line, instead
    center           where every ligand's centroid goes, Å; else it stays where it is
    interpolation    "linear" or "nearest"
    outside          "clamp", "zero" or "penalty": what atoms outside of the grid score; else
                     "penalty" in maps of AutoGrid, "clamp" in other grids
    top, min_rmsd    poses of each ligand, and how far they are apart at least, Å
    translations     radius and step of a cube of shifts to search as well, Å
    on_error         "skip" or "stop"
    allow_flat       dock drawings in two dimensions as they are
    run              the other fields of `multigpu.run.options.RunOptions`, and `workers`: worker
                     processes on this machine

    Raises UsageError and InputError here for what is wrong with the options, the pocket and the
    files' beginnings, and from the iteration for what shows later.
    """
    quaternions = None if rotation_file is None else path_of("rotation_file", rotation_file)
    options = DockOptions(
        precision, rotations, quaternions, center, interpolation, outside, top, min_rmsd,
        translations, on_error, allow_flat,
    )  # fmt: skip
    job = DockJob(
        path_list(ligands, "ligands"), path_of("pocket", pocket), options,
        run_options(dock, {"gpus": gpus, **run}), origin, spacing, client=client,
        journal=journal_path(journal),
    )  # fmt: skip
    return DockResult(job)
