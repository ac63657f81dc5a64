"""Contents of the report on docking: what `multigpu.report` makes a page of."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.files import atomic_output
from multigpu.errors import InputError, printable
from multigpu.formats.molecules.bonds import near_bonds
from multigpu.formats.molecules.molecule import Positions
from multigpu.formats.molecules.pdbqt import element_of_type
from multigpu.formats.molecules.pockets import Pocket
from multigpu.formats.molecules.receptors import RECEPTORS, atom_label
from multigpu.formats.molecules.registry import FORMATS
from multigpu.formats.storage.sources import inspect_source
from multigpu.kernels.maps import Receptor
from multigpu.report.figures import (
    DrawnMolecule,
    Figure,
    Scene,
    Surface,
    axis,
    bar_figure,
    bars,
    literal,
    rounded,
)
from multigpu.report.page import Card, Column, Page, Provenance, Section, Table
from multigpu.workloads.dock.parts import Skipped
from multigpu.workloads.dock.stats import Outliers, are_far

if TYPE_CHECKING:
    from multigpu.workloads.dock.job import DockJob


BINS = 60
SKIPPED = 1000  # ligands in the table, at most
NAMED_POINTS = 2000  # of a figure; of more ligands, those that are near each other are one point
LEVELS = 100  # of these, over the range of the values
FAR = 20  # ligands far from the others that are named, at most
POSES = (
    "The best ligands. Turn the view with the mouse, zoom with its wheel, tick what to see; an atom"
    " under the mouse shows its name. Where a file has no bonds (PDB, PDBQT, XYZ), atoms near each"
    " other are drawn with single ones. Drawn by 3Dmol.js (BSD 3-clause licence, in the source of"
    " this page)."
)
LOWER = "kcal/mol, lower is better"
# Columns of the table besides rank, ligand, and what ligands are compared by: heading, unit,
# decimals.
LISTED = {
    "pose": ("pose", "of the ligand, 1 is its best", 0),
    "conformer": ("conformer", "of the ligand", 0),
    "energy_electrostatic": ("electrostatic", f"part of the energy, {LOWER}", 3),
    "energy_other": ("other", f"part of the energy, {LOWER}", 3),
    "energy_unrefined": ("unrefined", LOWER, 3),
    "efficiency": ("efficiency", f"energy of a heavy atom, {LOWER}", 3),
    "strain": ("strain", f"of the conformer, {LOWER}", 2),
    "rmsd_to_reference": ("RMSD to the reference", "Å", 2),
    "rmsd_to_input": ("RMSD to the input", "Å", 2),
    "heavy_atoms": ("heavy atoms", "of the ligand", 0),
    "atoms_outside": ("atoms outside", "of the pocket's box", 0),
}
NEAR = 6.0  # Å: residues of the receptor with an atom nearer to a pose are drawn
GRID_POINTS = 200_000  # of the surface, at most: a larger grid is drawn coarser
SURFACE = 0.97  # quantile of the scores on the surface, which encloses the best 3 % of the volume
CARBON = ("C", "A", "C_H", "C_P")  # the map that is drawn: the first of these that is there
OF = " of "  # between an atom and its residue
TITLE = f"receptor, residues within {NEAR:g} Å"


class Measure(NamedTuple):
    """Number by which ligands are compared."""

    name: str
    unit: str
    better: str
    sign: int  # of a value, for that of a score

    @property
    def heading(self) -> str:
        return ", ".join(filter(None, (self.unit, self.better)))

    @property
    def title(self) -> str:
        return f"{self.name} ({self.heading})"

    def shown(self, value: float) -> str:
        return f"{value:.3f} {self.unit}".rstrip()


ENERGY = Measure("energy", "kcal/mol", "lower is better", -1)  # in AutoGrid's maps
SCORE = Measure("score", "", "higher is better", 1)  # in a plain grid


def write_report(path: str, job: "DockJob", summary: dict[str, Any]) -> None:
    """Write energies or scores, the best ligands drawn, and their poses in the pocket.

    What cannot be drawn is left out: the poses are written, so the job has not failed.
    """
    contents = _DockContents(job)
    page = Page(
        title="Docking report",
        method="Exhaustive rigid docking",
        inputs=job.request.paths,
        cards=[*contents.cards()],
        sections=[
            *contents.sections(),
            *_skipped(job.stats.skipped),
            Section(title="How it was computed", facts=[*_facts(job, summary)]),
        ],
        provenance=Provenance.of_this_run(),
    )
    with atomic_output(path) as file:
        file.write(page.html())


class _DockContents:
    """Cards, tables and figures of the ligands of a job.

    measure  what they are compared by
    names    of the ligands
    values   float64[ligands]: of the best pose of each, by the measure
    sizes    int32[ligands]: heavy atoms
    is_far   bool[ligands]: whether the value is far from those of most
    """

    def __init__(self, job: "DockJob") -> None:
        self.job, self.names = job, job.stats.names
        self.measure = ENERGY if job.pocket.types else SCORE
        self.values = self.measure.sign * job.stats.values
        self.sizes = job.stats.heavy_atoms
        self.is_far = are_far(self.values)

    def cards(self) -> Iterator[Card]:
        stats, measure, best = self.job.stats, self.measure, self.job.best[0]
        yield Card("Docked ligands", f"{stats.ligands:,}")
        yield Card("Skipped ligands", f"{len(stats.skipped):,}")
        value = measure.shown(measure.sign * best.scores[0])
        yield Card(f"Best {measure.name}", value, f"{best.ligand}; {measure.better}")
        if len(self.values) > 1:
            middle = measure.shown(float(np.median(self.values)))
            yield Card(f"Median {measure.name}", middle, measure.better)
        yield Card("Poses tried", f"{self.job.search.stop:,}", "of each ligand")

    def sections(self) -> Iterator[Section]:
        job, measure, name = self.job, self.measure, self.measure.name.capitalize()
        pocket, poses = job.pocket, [*self._poses()]
        # A receptor that was not prepared here is that of the file which the maps name.
        receptor = pocket.prepared or _stored(pocket.receptor)
        around = [_around(receptor, [each.positions for each in poses])] if receptor else []
        scene: Scene = [*poses, *around, _surface(pocket)]
        yield Section(title="Poses in the pocket", text=POSES, scene=scene)
        yield self._table()
        by_value = self._far(measure.title, self.values)
        if lines := [*by_value, *self._far("heavy atoms", self.sizes)]:
            yield Section(title="Ligands far from the others", items=lines)
        if len(self.values) == 1:
            return
        text = "Of the best pose of each ligand"
        if number := np.count_nonzero(self.is_far):
            text += f"; {number:,} far from the others: not in the bars, red at the border"
        figures = {f"{name} of the ligands": self._histogram(), f"{name} and size": self._by_size()}
        for title, figure in figures.items():
            yield Section(title=title, text=f"{text}.", figures=[figure], is_half=True)

    def _poses(self) -> Iterator[DrawnMolecule]:
        """Yield the poses of the best ligands; the first is shown to begin with."""
        for rank, each in enumerate(self.job.best, 1):
            bonds = [(a, b, order) for a, b, order in each.bonds.tolist()]
            for k, (score, places) in enumerate(zip(each.scores, each.positions, strict=True), 1):
                pose = f", pose {k}" if each.scores[1:] else ""
                value = self.measure.shown(self.measure.sign * score)
                title, is_shown = f"{rank}. {each.ligand}{pose}: {value}", rank == k == 1
                yield DrawnMolecule(title, each.elements, places, bonds, is_shown=is_shown)

    def _table(self) -> Section:
        found, rank = self.job.listing.table()
        measure, written = self.measure, self.job.stats.poses
        empty = {name for name in found.keys() & {*LISTED} if np.isnan(found[name]).all()}
        if not found.get("energy_electrostatic", rank).any():  # Vina has none
            empty |= {"energy_electrostatic", "energy_other"}
        listed = {name: found[name] for name in LISTED if name in found.keys() - empty}
        columns = [
            Column("rank", "of the ligand", is_number=True),
            Column("ligand"),
            Column(measure.name, measure.heading, is_number=True),
            *(Column(*LISTED[name][:2], is_number=True) for name in listed),
        ]
        given = [
            rank.tolist(),
            found["ligand"].tolist(),
            _decimals(measure.sign * found["score"], 3),
            *(_decimals(values, LISTED[name][2]) for name, values in listed.items()),
        ]
        count = len(rank)
        few = f"The best {count:,} of {written:,} poses" if count < written else "All poses"
        return Section(
            title="Ligands and poses",
            text=f"{few}; click a heading to sort.",
            table=Table("ligands", columns, [*zip(*given, strict=True)]),
        )

    def _far(self, what: str, values: NDArray[Any]) -> Iterator[str]:
        """Yield what values are far from those of most ligands, and whose they are."""
        far = Outliers.of(values)
        if count := len(far.ligands):
            yield f"{count:,} by {what}, where the median is {far.median:.4g}:"
        for ligand, value in [*zip(far.ligands, far.values, strict=True)][:FAR]:
            yield f"{self.names[ligand]}: {value:.4g}"

    def _histogram(self) -> Figure:
        """Return the distribution of the values that are not far from the others."""
        counts, edges = _binned(self.values[~self.is_far])
        trace = bars(
            ((edges[1:] + edges[:-1]) / 2).tolist(),
            counts.tolist(),
            width=np.diff(edges).tolist(),
            hovertemplate=f"{self.measure.name} %{{x:.3f}}: %{{y}} ligands<extra></extra>",
        )
        return bar_figure([trace], axis(self.measure.title), "number of ligands")

    def _by_size(self) -> Figure:
        """Return values and sizes. Those far from the others lie at the border, in red."""
        near = self.values[~self.is_far]
        margin = 0.04 * (near.max() - near.min()) or 1.0
        border = float(near.min() - margin), float(near.max() + margin)
        traces = []
        for mask, colour, symbol in (~self.is_far, "brand", "circle"), (self.is_far, "red", "x"):
            sizes, values, texts = self._points(np.flatnonzero(mask))
            traces.append({
                "type": "scatter", "mode": "markers", "x": sizes.tolist(),
                "y": rounded(np.clip(values, *border)), "hovertext": texts, "hoverinfo": "text",
                "marker": {"color": f"var(--{colour})", "symbol": symbol, "opacity": 0.7},
                "showlegend": False,
            })  # fmt: skip
        layout = {"xaxis": axis("heavy atoms of the ligand"), "yaxis": axis(self.measure.title)}
        return Figure(data=traces, layout=layout)

    def _points(
        self, ligands: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[np.float64], list[str]]:
        """Return sizes, values and texts of ligands; many of them are put together."""
        sizes, values = self.sizes[ligands], self.values[ligands]
        if len(ligands) <= NAMED_POINTS:
            shown = map(self.measure.shown, values.tolist())
            texts = [f"{literal(self.names[i])}: {x}" for i, x in zip(ligands, shown, strict=True)]
            return sizes, values, texts
        step = float(np.ptp(values)) / LEVELS or 1.0
        points = np.stack([sizes, np.round(values / step)], axis=1)
        found, counts = np.unique(points, axis=0, return_counts=True)
        return found[:, 0], found[:, 1] * step, [f"{count:,} ligands" for count in counts.tolist()]


def _decimals(values: NDArray[Any], digits: int) -> list[str]:
    """Return numbers as text, "" for NaN."""
    shown = (f"{value:.{digits}f}" for value in (values.round(digits) + 0.0).tolist())  # no -0.0
    return ["" if text == "nan" else text for text in shown]


def _skipped(skipped: Sequence[Skipped]) -> Iterator[Section]:
    if skipped:
        more = "; the first of them" if len(skipped) > SKIPPED else ""
        rows = [(each.path, each.number, each.ligand, each.reason) for each in skipped[:SKIPPED]]
        record = Column("record", "of the file, from 1", is_number=True)
        columns = [Column("file"), record, Column("ligand"), Column("reason")]
        yield Section(
            title="Skipped",
            text=f"{len(skipped):,} ligand(s) could not be docked{more}:",
            table=Table("skipped", columns, rows),
        )


def _facts(job: "DockJob", summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    pocket, seconds = job.pocket, summary["seconds"]["wall"]
    points = " × ".join(map(str, pocket.shape))
    where = ", ".join(f"GPU {d.index} ({d.name})" for d in job.devices) or "CPU"
    yield "pocket", f"{pocket.path}: {points} points of {pocket.spacing[0]:g} Å"
    yield "maps", ", ".join(pocket.types) or "one score for every atom"
    yield "search", ", ".join(_search(job))
    yield "interpolation", f"{job.options.interpolation}, outside: {job.field.outside}"
    yield "time", f"{seconds:.1f} s, {job.stats.ligands / max(seconds, 1e-9):,.1f} ligands/s"
    yield "where", f"{where}, {len(summary['workers'])} worker(s)"
    yield "started", summary["started"]


def _search(job: "DockJob") -> Iterator[str]:
    search, whole = job.search, job.whole
    yield f"{search.rotations.count:,} rotations"
    if job.covering_radius is not None:
        yield f"any other is within {job.covering_radius:.3g}°"
    yield f"{search.shifts.count:,} places"
    if whole is not None:
        unit = " kcal/mol" if job.with_energies else ""
        yield f"all poses within {whole.width:g}{unit} of the best"
        yield f"the best {whole.refined} refined as rigid bodies" if whole.refined else "unrefined"


def _binned(scores: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return how many scores lie in each bin, and the edges of the bins."""
    try:
        return np.histogram(scores, bins=min(BINS, max(1, len(scores))))
    except ValueError:  # less apart than bins could show
        return np.histogram(scores, bins=1, range=(scores.min() - 0.5, scores.max() + 0.5))


def _surface(pocket: Pocket) -> Surface:
    """Return the surface around the highest scores of a plain grid, or of the map of carbon."""
    values, what = pocket.values[0], "scores"
    if pocket.types:
        kind = next((name for name in CARBON if name in pocket.types), pocket.types[0])
        # Maps of atom types are energies.
        values, what = -pocket.values[pocket.types.index(kind)], f"energies of {kind}"
    step = max(1, int(np.ceil((values.size / GRID_POINTS) ** (1 / 3))))
    values = values[::step, ::step, ::step]
    level = np.quantile(values, SURFACE)
    title = f"{1 - SURFACE:.0%} of the box with the best {what}"
    return Surface(title, values >= level, pocket.origin, pocket.spacing * step)


def _around(receptor: Receptor, poses: Sequence[Positions]) -> DrawnMolecule:
    """Return the residues with an atom near a pose, and their bonds."""
    residues = [name.partition(OF)[2] for name in receptor.names]
    near = np.zeros(len(residues), np.bool_)
    for atom in np.concatenate([np.empty((0, 3)), *poses]):
        near |= ((receptor.positions - atom) ** 2).sum(axis=1) < NEAR * NEAR
    wanted = {residues[atom] for atom in np.flatnonzero(near).tolist()}
    kept = [atom for atom, residue in enumerate(residues) if residue in wanted]
    elements = [element_of_type(receptor.types[atom]) for atom in kept]
    labels = [printable(receptor.names[atom]) for atom in kept]
    places = receptor.positions[kept]
    bonds = near_bonds(elements, places)
    return DrawnMolecule(TITLE, elements, places, bonds, labels, is_thin=True)


def _stored(path: str) -> Receptor | None:
    """Return the atoms in a file of PDB or PDBQT; None where it has none, or is not there."""
    try:
        source = inspect_source(path, RECEPTORS)
        molecule = FORMATS[source.layout].parse(source.content().splitlines(keepends=True))
        return Receptor(
            positions=molecule.positions,
            charges=np.zeros(len(molecule.rows)),
            types=tuple(molecule.elements),
            names=tuple(atom_label(molecule.lines[row]) for row in molecule.rows),
        )
    except (InputError, ValueError, KeyError):  # mmCIF is read where maps are made
        return None
