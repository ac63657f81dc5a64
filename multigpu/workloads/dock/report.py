"""The report of a docking job: one page that opens without a network."""

from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
import plotly.graph_objects as plot
from markupsafe import Markup
from plotly.offline import get_plotlyjs
from rdkit.Chem import rdDepictor as depictor

from multigpu.cluster.files import atomic_output
from multigpu.errors import UsageError
from multigpu.formats.molecules.pockets import Pocket
from multigpu.formats.molecules.sdf import SDF
from multigpu.formats.optional import quiet_rdkit
from multigpu.run.report import literal, shown
from multigpu.workloads.dock.poses import BestLigand

if TYPE_CHECKING:
    from multigpu.workloads.dock.job import DockJob

try:
    from rdkit.Chem.Draw import rdMolDraw2D as drawing
except ImportError as error:  # small containers lack libXrender; this is said before hours of work
    problem = f"--report: RDKit cannot draw: {error}"
    raise UsageError(f"{problem}; on Debian and Ubuntu: apt-get install libxrender1") from error

BINS = 60
SKIPPED = 20  # ligands in the table, at most
GRID_POINTS = 40_000  # of the surface, at most: a larger grid is drawn coarser
SURFACE = 0.97  # quantile of the scores on the surface, which encloses the best 3 % of the volume
CARBON = ("C", "A")  # the map of AutoGrid that is drawn: the first of these that is there
WIDTH, HEIGHT = 260, 190  # pixels of a depiction
INK, BRAND = "#23313f", "#2a6f97"
COLOURS = {
    "C": "#555555", "H": "#c8c8c8", "N": "#3050f8", "O": "#e02020", "S": "#c9a800", "P": "#ff8000",
    "F": "#70c040", "Cl": "#1fb01f", "Br": "#a62929", "I": "#940094",
}  # fmt: skip
OTHER_COLOUR = "#b060b0"
NO_DRAWING = "(cannot be drawn)"


def write_report(path: str, job: "DockJob", summary: dict[str, Any]) -> None:
    """Write scores, depictions of the best ligands, and their poses in the pocket.

    What cannot be drawn is left out: the poses are written, so the job has not failed.
    """
    environment = jinja2.Environment(
        autoescape=True, finalize=shown, trim_blocks=True, lstrip_blocks=True
    )
    template = files("multigpu.workloads.dock").joinpath("report.html.j2").read_text("utf-8")
    scores = np.concatenate([np.empty(0), *job.stats.scores])
    html = environment.from_string(template).render(
        plotly=Markup(get_plotlyjs()),
        facts=_facts(job, summary, scores),
        histogram=_html(_histogram(scores), "scores"),
        view=_html(_view(job.pocket, job.best), "pocket"),
        best=[(best, _depiction(best)) for best in job.best],
        skipped=job.stats.skipped[:SKIPPED],
        skipped_count=len(job.stats.skipped),
    )
    with atomic_output(path) as file:
        file.write(html.encode())


def _facts(job: "DockJob", summary: dict[str, Any], scores: Any) -> list[tuple[str, str]]:
    where = ", ".join(f"GPU {d.index} ({d.name})" for d in job.devices) or "CPU"
    points = " × ".join(map(str, job.pocket.shape))
    seconds = summary["seconds"]["wall"]
    return [
        ("ligands", f"{job.stats.ligands:,} docked, {len(job.stats.skipped):,} skipped"),
        ("best score", f"{scores.max():.4f} ({job.best[0].ligand})"),
        ("median score", f"{np.median(scores):.4f}"),
        ("pocket", f"{job.pocket.path}: {points} points of {job.pocket.spacing[0]:g} Å"),
        ("maps", ", ".join(job.pocket.types) or "one score for every atom"),
        ("search", f"{job.search.stop:,} poses of each ligand"),
        ("interpolation", f"{job.options.interpolation}, outside: {job.field.outside}"),
        ("time", f"{seconds:.1f} s, {job.stats.ligands / max(seconds, 1e-9):,.1f} ligands/s"),
        ("where", f"{where}, {len(summary['workers'])} worker(s)"),
        ("program", f"multigpu {summary['program']['multigpu']}, {summary['started']}"),
    ]


# ---- plots ------------------------------------------------------------------------------------


def _html(figure: Any, name: str) -> Any:
    """Return the figure as a part of a page; plotly escapes what could end its script."""
    figure.update_layout(
        template="plotly_white",
        margin={"l": 50, "r": 20, "t": 20, "b": 45},
        font={"color": INK, "family": "system-ui, sans-serif"},
    )
    config = {"displaylogo": False, "responsive": True}
    return Markup(
        figure.to_html(full_html=False, include_plotlyjs=False, div_id=name, config=config)
    )


def _histogram(scores: Any) -> Any:
    counts, edges = _binned(scores)
    figure = plot.Figure(
        plot.Bar(
            x=(edges[1:] + edges[:-1]) / 2,
            y=counts,
            width=np.diff(edges),
            marker_color=BRAND,
            hovertemplate="score %{x:.3f}: %{y} ligands<extra></extra>",
        )
    )
    figure.update_layout(
        xaxis_title="best score of a ligand", yaxis_title="ligands", height=320, bargap=0.02
    )
    return figure


def _binned(scores: Any) -> tuple[Any, Any]:
    """Return how many scores lie in each bin, and the edges of the bins."""
    bins = min(BINS, max(1, len(scores)))
    low, high = min(scores, default=0), max(scores, default=0)
    if 0 < high - low < bins * np.spacing(max(abs(low), abs(high))):  # less than bins could show
        return np.histogram(scores, bins=1, range=(low - 0.5, high + 0.5))
    return np.histogram(scores, bins=bins)


def _view(pocket: Pocket, best: Sequence[BestLigand]) -> Any:
    """Return the surface of the best places with the best poses; the first one is visible."""
    figure = plot.Figure(_surface(pocket))
    for rank, each in enumerate(best, 1):
        molecule = SDF.parse(each.sdf.splitlines(keepends=True))
        name = f"{rank}. {literal(each.ligand)} ({each.score:.3f})"
        shown = True if rank == 1 else "legendonly"
        common = {"legendgroup": f"pose{rank}", "visible": shown, "hoverinfo": "text"}
        common |= {"text": name, "name": name}
        # All bonds as one line with gaps.
        ends = [(*molecule.positions[[a, b]].tolist(), [None] * 3) for a, b, _ in molecule.bonds]
        x, y, z = ([point[axis] for each in ends for point in each] for axis in range(3))
        line = {"width": 7, "color": INK}
        figure.add_scatter3d(x=x, y=y, z=z, mode="lines", line=line, **common)
        x, y, z = molecule.positions.T
        colours = [COLOURS.get(element, OTHER_COLOUR) for element in molecule.elements]
        marker = {"size": 5, "color": colours, "line": {"width": 0}}
        figure.add_scatter3d(
            x=x, y=y, z=z, mode="markers", showlegend=False, marker=marker, **common
        )
    axes = {name: {"title": {"text": f"{name[0]} / Å"}} for name in ("xaxis", "yaxis", "zaxis")}
    figure.update_layout(height=620, scene={**axes, "aspectmode": "data"})
    return figure


def _surface(pocket: Pocket) -> Any:
    """Return the surface around the highest scores of a plain grid, or of AutoGrid's carbon."""
    values, label = pocket.values[0], "score"
    if pocket.types:
        kind = next((name for name in CARBON if name in pocket.types), pocket.types[0])
        # AutoGrid's maps are energies.
        values, label = -pocket.values[pocket.types.index(kind)], f"score of {literal(kind)}"
    step = max(1, int(np.ceil((values.size / GRID_POINTS) ** (1 / 3))))
    values = values[::step, ::step, ::step].astype(np.float64)
    places = [
        start + width * step * np.arange(count)
        for start, width, count in zip(pocket.origin, pocket.spacing, values.shape, strict=True)
    ]
    x, y, z = (axis.ravel() for axis in np.meshgrid(*places, indexing="ij"))
    level = float(np.quantile(values, SURFACE))
    return plot.Isosurface(
        x=x,
        y=y,
        z=z,
        value=values.ravel(),
        isomin=level,
        isomax=level,
        surface_count=1,
        opacity=0.25,
        showscale=False,
        colorscale=[[0, BRAND], [1, BRAND]],
        caps={"x_show": False, "y_show": False, "z_show": False},
        name=f"{label} ≥ {level:.3g}",
        showlegend=True,
        hoverinfo="skip",
    )


# ---- depictions -------------------------------------------------------------------------------


def _depiction(best: BestLigand) -> Any:
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
