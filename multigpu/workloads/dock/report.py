"""Contents of the report on docking: what `multigpu.report` makes a page of."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from rdkit.Chem import rdDepictor as depictor

from multigpu.cluster.files import atomic_output
from multigpu.errors import UsageError, option
from multigpu.formats.molecules.pockets import Pocket
from multigpu.formats.molecules.sdf import SDF
from multigpu.formats.optional import quiet_rdkit
from multigpu.report.figures import (
    Figure,
    Json,
    axis,
    bar_figure,
    bars,
    literal,
    rounded,
)
from multigpu.report.page import Card, Column, Page, Picture, Provenance, Section, Table
from multigpu.workloads.dock.parts import BestLigand

if TYPE_CHECKING:
    from multigpu.workloads.dock.job import DockJob

try:
    from rdkit.Chem.Draw import rdMolDraw2D as drawing
except ImportError as error:  # small containers lack libXrender; this is said before hours of work
    problem = f"{option('report')}: RDKit cannot draw: {error}"
    raise UsageError(f"{problem}; on Debian and Ubuntu: apt-get install libxrender1") from error

BINS = 60
SKIPPED = 1000  # ligands in the table, at most
GRID_POINTS = 40_000  # of the surface, at most: a larger grid is drawn coarser
SURFACE = 0.97  # quantile of the scores on the surface, which encloses the best 3 % of the volume
CARBON = ("C", "A")  # the map of AutoGrid that is drawn: the first of these that is there
WIDTH, HEIGHT = 260, 190  # pixels of a depiction
PLACES = 8  # digits of coordinates
BRAND = "var(--brand)"
COLOURS = {
    "C": "#808080", "H": "#c8c8c8", "N": "#3050f8", "O": "#e02020", "S": "#c9a800", "P": "#ff8000",
    "F": "#70c040", "Cl": "#1fb01f", "Br": "#a62929", "I": "#940094",
}  # fmt: skip
OTHER_COLOUR = "#b060b0"
NO_DRAWING = "(cannot be drawn)"
BEST = (
    "Scores: higher is better. Where a file has no bonds (PDB, PDBQT, XYZ), atoms near each other"
    " are drawn with single ones."
)
POSES = (
    "Turn the view with the mouse; click a name to show or hide a pose. The surface encloses the"
    " best places of the grid."
)


def write_report(path: str, job: "DockJob", summary: dict[str, Any]) -> None:
    """Write scores, depictions of the best ligands, and their poses in the pocket.

    What cannot be drawn is left out: the poses are written, so the job has not failed.
    """
    scores = np.concatenate([np.empty(0), *job.stats.scores])
    page = Page(
        title="Docking report",
        method="Exhaustive rigid docking",
        inputs=[*job.request.files, job.pocket.path],
        cards=[*_cards(job, scores)],
        sections=[*_sections(job, scores, summary)],
        provenance=Provenance.of_this_run(),
    )
    with atomic_output(path) as file:
        file.write(page.html())


def _cards(job: "DockJob", scores: NDArray[np.float64]) -> Iterator[Card]:
    yield Card("Docked ligands", f"{job.stats.ligands:,}")
    yield Card("Skipped ligands", f"{len(job.stats.skipped):,}")
    yield Card("Best score", f"{scores.max():.4f}", f"{job.best[0].ligand}; higher is better")
    yield Card("Median score", f"{np.median(scores):.4f}", "higher is better")
    yield Card("Poses tried", f"{job.search.stop:,}", "of each ligand")


def _sections(
    job: "DockJob", scores: NDArray[np.float64], summary: dict[str, Any]
) -> Iterator[Section]:
    yield Section(title="Scores", figures=[_histogram(scores)])
    pictures = [
        Picture(_depiction(each), f"{rank}. {each.ligand}", f"score {each.score:.4f}")
        for rank, each in enumerate(job.best, 1)
    ]
    yield Section(title="Best ligands", text=BEST, pictures=pictures)
    view = _view(job.pocket, job.best)
    yield Section(title="Poses in the pocket", text=POSES, figures=[view])
    if skipped := job.stats.skipped:
        more = "; the first of them" if len(skipped) > SKIPPED else ""
        rows = [(each.path, each.number, each.ligand, each.reason) for each in skipped[:SKIPPED]]
        record = Column("record", "of the file, from 1", is_number=True)
        columns = [Column("file"), record, Column("ligand"), Column("reason")]
        yield Section(
            title="Skipped",
            text=f"{len(skipped):,} ligand(s) could not be docked{more}:",
            table=Table("skipped", columns, rows),
        )
    yield Section(title="How it was computed", facts=[*_facts(job, summary)])


def _facts(job: "DockJob", summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    pocket, seconds = job.pocket, summary["seconds"]["wall"]
    points = " × ".join(map(str, pocket.shape))
    where = ", ".join(f"GPU {d.index} ({d.name})" for d in job.devices) or "CPU"
    yield "pocket", f"{pocket.path}: {points} points of {pocket.spacing[0]:g} Å"
    yield "maps", ", ".join(pocket.types) or "one score for every atom"
    yield "interpolation", f"{job.options.interpolation}, outside: {job.field.outside}"
    yield "time", f"{seconds:.1f} s, {job.stats.ligands / max(seconds, 1e-9):,.1f} ligands/s"
    yield "where", f"{where}, {len(summary['workers'])} worker(s)"
    yield "started", summary["started"]


# ---- figures ----------------------------------------------------------------------------------


def _histogram(scores: NDArray[np.float64]) -> Figure:
    counts, edges = _binned(scores)
    trace = bars(
        ((edges[1:] + edges[:-1]) / 2).tolist(),
        counts.tolist(),
        width=np.diff(edges).tolist(),
        hovertemplate="score %{x:.3f}: %{y} ligands<extra></extra>",
    )
    xaxis = axis("best score of a ligand (higher is better)")
    return bar_figure([trace], xaxis, "number of ligands")


def _binned(scores: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return how many scores lie in each bin, and the edges of the bins."""
    bins = min(BINS, max(1, len(scores)))
    low, high = min(scores, default=0), max(scores, default=0)
    if 0 < high - low < bins * np.spacing(max(abs(low), abs(high))):  # less than bins could show
        return np.histogram(scores, bins=1, range=(low - 0.5, high + 0.5))
    return np.histogram(scores, bins=bins)


def _view(pocket: Pocket, best: Sequence[BestLigand]) -> Figure:
    """Return the surface of the best places with the best poses; the first one is visible."""
    data = [_surface(pocket)]
    for rank, each in enumerate(best, 1):
        molecule = SDF.parse(each.sdf.splitlines(keepends=True))
        name = f"{rank}. {literal(each.ligand)} ({each.score:.3f})"
        common = {
            "type": "scatter3d", "legendgroup": f"pose{rank}", "hoverinfo": "text", "text": name,
            "name": name, "visible": True if rank == 1 else "legendonly",
        }  # fmt: skip
        # All bonds as one line with gaps.
        pairs = np.array([bond[:2] for bond in molecule.bonds], int).reshape(-1, 2)
        gap = np.full((len(pairs), 1, 3), np.nan)
        ends = np.concatenate([molecule.positions[pairs], gap], axis=1).reshape(-1, 3)
        line = {"mode": "lines", "line": {"width": 7, "color": "var(--ink)"}}
        colours = [COLOURS.get(element, OTHER_COLOUR) for element in molecule.elements]
        marker = {"size": 5, "color": colours, "line": {"width": 0}}
        data.append({**common, **_places(ends), **line})
        atoms = {"mode": "markers", "showlegend": False, "marker": marker}
        data.append({**common, **_places(molecule.positions), **atoms})
    axes = {f"{name}axis": axis(f"{name} / Å") for name in "xyz"}
    camera = {"eye": {"x": 1.6, "y": 1.6, "z": 1.1}}  # far enough to see the axes' titles
    scene = {**axes, "aspectmode": "data", "camera": camera}
    layout = {"scene": scene, "legend": {"y": 0, "yanchor": "top"}}
    return Figure(data=data, layout=layout, height=620)


def _places(positions: NDArray[np.float64]) -> Json:
    """Return float64[n, 3] as coordinates of a trace."""
    return {name: rounded(column, PLACES) for name, column in zip("xyz", positions.T, strict=True)}


def _surface(pocket: Pocket) -> Json:
    """Return the surface around the highest scores of a plain grid, or of AutoGrid's carbon."""
    values, label = pocket.values[0], "score"
    if pocket.types:
        kind = next((name for name in CARBON if name in pocket.types), pocket.types[0])
        # AutoGrid's maps are energies.
        values, label = -pocket.values[pocket.types.index(kind)], f"score of {literal(kind)}"
    step = max(1, int(np.ceil((values.size / GRID_POINTS) ** (1 / 3))))
    values = values[::step, ::step, ::step].astype(np.float64)
    nodes = np.indices(values.shape).reshape(3, -1).T
    level = float(np.quantile(values, SURFACE))
    return {
        "type": "isosurface", **_places(pocket.origin + pocket.spacing * step * nodes),
        "value": rounded(values.ravel(), PLACES), "isomin": level, "isomax": level,
        "surface": {"count": 1}, "opacity": 0.25, "showscale": False,
        "colorscale": [[0, BRAND], [1, BRAND]],
        "caps": {name: {"show": False} for name in "xyz"},
        "name": f"{label} ≥ {level:.3g}", "showlegend": True, "hoverinfo": "skip",
    }  # fmt: skip


# ---- depictions -------------------------------------------------------------------------------


def _depiction(best: BestLigand) -> Markup | str:
    """Return the structure as inline SVG, or words where RDKit cannot draw it.

    RDKit does not know the dummy atoms and lone pairs of other programs, for example.
    """
    block, drawer = best.sdf.decode("utf-8", "replace"), drawing.MolDraw2DSVG(WIDTH, HEIGHT)
    with quiet_rdkit() as chem:
        molecule = chem.MolFromMolBlock(block) or chem.MolFromMolBlock(block, sanitize=False)
        if molecule is None:
            return NO_DRAWING
        prepared = molecule.NeedsUpdatePropertyCache() is False
        drawer.drawOptions().clearBackground = False
        drawer.drawOptions().prepareMolsBeforeDrawing = prepared
        try:
            depictor.Compute2DCoords(molecule)
            drawer.DrawMolecule(molecule)
        except (ValueError, RuntimeError):  # all that RDKit raises about molecules
            return NO_DRAWING
    drawer.FinishDrawing()
    return Markup(drawer.GetDrawingText().partition("?>")[2])
