"""A docking job: opened, planned and run once."""

import logging
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from multigpu.cluster.engine.journal import Codec
from multigpu.cluster.workers.worker import Outcome
from multigpu.errors import InputError, UsageError, option, spelled
from multigpu.formats.molecules.ligands import LigandRecords, open_sources, read_records
from multigpu.formats.molecules.pockets import Pocket, read_pocket
from multigpu.formats.molecules.poses import ReferencePose
from multigpu.formats.storage.fingerprints import digest
from multigpu.kernels.rotation.rotations import ListedRotations, covering_radius
from multigpu.run import fitness
from multigpu.run.job import Crew, Job, check_unchanged, describe_inputs
from multigpu.workloads.dock.ligands import LigandLoader, read_first
from multigpu.workloads.dock.notes import result_notes
from multigpu.workloads.dock.parts import (
    PART_CLASSES,
    BestLigand,
    DockedLigands,
    DockPart,
    SearchedPoses,
    Skipped,
)
from multigpu.workloads.dock.plan import DockPlan, dock_spans, plan_dock
from multigpu.workloads.dock.pocket import make_pocket, with_other_types
from multigpu.workloads.dock.request import DockRequest
from multigpu.workloads.dock.rows import BOX_SCORES, REFINED, SCORES, Formats
from multigpu.workloads.dock.search import field_of, grouping_of, search_of, whole_box_of
from multigpu.workloads.dock.stats import DockStats, Listing
from multigpu.workloads.dock.work import DockWorkload

logger = logging.getLogger(__name__)
LONGEST_NAME = 80  # characters of a ligand's name in a message


class DockJob(Job):
    """A docking job. All inputs are inspected when it is opened.

    report     number of the best ligands that are drawn in a report; 0: there is none
    maps       folder in which the maps of a receptor are kept, or None
    placement  what `multigpu.run.job.Job` takes besides: client, devices, coming, journal
    """

    def __init__(
        self, request: DockRequest, *, report: int = 0, maps: Path | None = None, **placement: Any
    ) -> None:
        options = request.options
        super().__init__(request.run, request.lanes, **placement)
        self.request, self.options, self.report = request, options, report
        self.stats: DockStats = DockStats()
        self.chunk_plan: DockPlan | None = None
        self.best: list[BestLigand] = []
        # What is cheap to check comes first: a receptor takes seconds.
        skip = options.on_error == "skip"
        self.sources, self._broken_sources = open_sources(request.files, skip, request.kind)
        self.reference = None
        if request.reference is not None:
            path = str(request.reference)
            self.reference = ReferencePose(path=path, molecule=read_first(path))
        self.pocket = self._open_pocket(maps)
        self.whole = whole_box_of(options, self.pocket)
        self.grouping = grouping_of(options, self.whole)
        if self.reference is not None and not self.with_energies:
            problem = "is for a whole box of energies: no other search gives RMSDs to it"
            raise UsageError(f"{option('reference')} {problem}")
        self.listing = Listing(columns=self.columns)
        self.field = field_of(self.pocket, options)
        self.search = search_of(options, self.pocket, self.whole)

    def _open_pocket(self, folder: Path | None) -> Pocket:
        """Return the pocket in a file, or that of a receptor, which is kept in a folder."""
        request = self.request
        if request.receptor is not None:
            return make_pocket(request, self.devices, folder)
        pocket = read_pocket(str(request.pocket), request.origin, request.spacing)
        return with_other_types(pocket, request.other_types)

    @cached_property
    def covering_radius(self) -> float | None:
        """Degrees from any rotation to the nearest that is tried; None for rotations by angles."""
        rotations = self.search.rotations
        return covering_radius(rotations) if isinstance(rotations, ListedRotations) else None

    def plan(self, crew: Crew | None = None) -> DockPlan:
        """Return how the input is cut for a crew, else for this machine."""
        about = (self.sources, self.field, self.search, self.whole)
        conformers = self.options.conformers or 0
        return self.fit(crew, lambda here: plan_dock(*about, here, self.run, conformers))

    @property
    def with_energies(self) -> bool:
        """Whether poses have columns of energies, kcal/mol."""
        return self.whole is not None and bool(self.pocket.types)

    @property
    def columns(self) -> Formats:
        """Return the columns of the table of scores."""
        if self.whole is None:
            return SCORES
        return REFINED if self.with_energies else BOX_SCORES

    def parts(self, pose_format: str | None = None) -> Iterator[DockedLigands]:
        """Yield docked ligands in the order of the input.

        pose_format: of the poses' text; None: no text

        Raises what stopped the job: with `on_error` "stop" the first ligand that cannot be docked,
        else InputError where no ligand could be docked.
        """
        with ExitStack() as stack:
            # Workers are sent the text of the ligands: they need no files.
            crew = self.crew(stack, [])
            plan, about = self.plan(crew), self._journal_facts(pose_format)
            kept = self.open_journal(about, plan.spans_by(), Codec(PART_CLASSES))
            self.chunk_plan = plan = replace(plan, **kept)
            loader = LigandLoader(
                sources=self.sources,
                types=self.pocket.types,
                options=self.options,
                grouping=self.grouping,
                pose_format=pose_format,
            )
            workload = DockWorkload(
                key=uuid.uuid4().hex,
                loader=loader,
                field=self.field,
                search=self.search,
                whole=self.whole,
                reference=self.reference,
                report=self.report,
                expected=crew.expected,
            )
            spans = self.skip_finished(dock_spans(self._records(), plan, self.grouping))
            outcomes = self.run_spans(crew, workload, spans, **kept)
            for docked in _merge_spans(workload, outcomes):
                self._take(docked)
                yield docked
            check_unchanged(about, self.request.files)
        self._conclude()

    def _journal_facts(self, pose_format: str | None) -> dict[str, str]:
        """Return what must be the same for another run to continue with the journal of this one."""
        pocket = digest(replace(self.pocket, path="", layout="", receptor="", prepared=None))
        return {
            "program": fitness.program(),
            "job": "dock",
            "poses": pose_format or "columns",
            "report": str(self.report),
            **{f"option {name}": str(value) for name, value in asdict(self.options).items()},
            "pocket": f"content {pocket}",
            "reference": f"content {digest(self.reference and self.reference.molecule.text)}",
            "poses tried": f"content {digest(self.search)}",
            **describe_inputs(self.request.files),
        }

    def _records(self) -> Iterator[LigandRecords]:
        broken = {each.source: each for each in self._broken_sources}
        for number, source in enumerate(self.sources):
            if number in broken:
                yield broken[number]
            else:
                yield from read_records(number, source)

    def _take(self, docked: DockedLigands) -> None:
        self.stats.take(docked)
        if docked.skipped and self.options.on_error == "stop":
            raise _input_error(docked.skipped[0])
        if self.report:
            self.listing.take(docked.rows)
        best = [*self.best, *docked.best]
        best.sort(key=lambda each: (-each.scores[0], each.ligand_index))
        self.best = best[: self.report]

    def _conclude(self) -> None:
        """Warn of what the user probably did not mean. Raises InputError without any ligand."""
        stats = self.stats
        if not stats.ligands:
            raise _input_error(
                stats.skipped[0], f" (none of {len(stats.skipped)} ligands could be docked)"
            )
        for note in result_notes(self):
            logger.warning("multigpu: %s", spelled(note))

    def summary_entries(self) -> dict[str, Any]:
        pocket, stats = self.pocket, self.stats
        return {
            "pocket": {
                "path": pocket.path,
                "layout": pocket.layout,
                "points": list(pocket.shape),
                "origin": pocket.origin.tolist(),
                "spacing": pocket.spacing.tolist(),
                "types": list(pocket.types),
            },
            "sources": [asdict(source) for source in self.sources],
            "rotations": self.search.rotations.count,
            "covering_radius_degrees": self.covering_radius,
            "shifts": self.search.shifts.count,
            # Of each ligand; all others repeat one of these.
            "poses_tried": self.search.stop,
            "whole_box": None if self.whole is None else asdict(self.whole),
            "ligands": stats.ligands,
            "skipped": len(stats.skipped),
            "without_hydrogens": stats.without_hydrogens,
            "poses": stats.poses,
            **({"best_ligands": stats.best_ligands} if self.with_energies else {}),
        }

    @property
    def chunks(self) -> int | None:
        """Estimated number of chunks, from the bytes of the ligands so far; None: unknown."""
        stats, sizes = self.stats, [source.size for source in self.sources if source.cuttable]
        if not stats.text_bytes or len(sizes) < len(self.sources):
            return None
        done = stats.text_bytes / max(1, sum(size or 0 for size in sizes))
        return max(stats.chunks, round(stats.chunks / done))


def _input_error(skipped: Skipped, more: str = "") -> InputError:
    name = skipped.ligand[:LONGEST_NAME] + "…" * (len(skipped.ligand) > LONGEST_NAME)
    where = f"record {skipped.number} ({name})"
    return InputError(skipped.path, skipped.reason + more, where)


def _merge_spans(
    workload: DockWorkload, outcomes: Iterator[Outcome[DockPart]]
) -> Iterator[DockedLigands]:
    """Yield docked ligands: the parts of their spans of poses are merged."""
    searched: list[SearchedPoses] = []
    for outcome in outcomes:
        part = outcome.part
        if isinstance(part, DockedLigands):
            yield part
            continue
        searched.append(part)
        if part.span.poses[1] == workload.search.stop:
            yield workload.merge(searched)
            searched = []
