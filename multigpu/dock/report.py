"""The report of a docking run: one page that opens without a network."""

from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from multigpu.cluster.engine.output import atomic_output
from multigpu.dock.work import Best
from multigpu.formats.molecules.molecule import Bond, Molecule, MoleculeError
from multigpu.formats.molecules.pockets import Pocket
from multigpu.formats.molecules.registry import parse
from multigpu.formats.optional import import_package
from multigpu.run.report import literal

if TYPE_CHECKING:
    from multigpu.dock.api import DockJob

BINS = 60
GRID_POINTS = 40_000  # of the pocket's surface, at most: it is drawn coarser
SURFACE = 0.97  # quantile of the scores whose surface is drawn: the best 3 % of the volume
CARBON = ("C", "A")  # maps whose surface stands for a pocket of several
WIDTH, HEIGHT = 260, 190  # of a depiction
INK, BRAND = "#23313f", "#2a6f97"
COLOURS = {
    "C": "#555555", "H": "#c8c8c8", "N": "#3050f8", "O": "#e02020", "S": "#c9a800", "P": "#ff8000",
    "F": "#70c040", "Cl": "#1fb01f", "Br": "#a62929", "I": "#940094",
}  # fmt: skip
OTHER_COLOUR = "#b060b0"
NO_DRAWING = "(cannot be drawn)"


def check_packages() -> None:
    """Raises UsageError with the remedy where something is missing: before hours of work."""
    for module in ("plotly.graph_objects", "jinja2", "rdkit.Chem"):
        import_package(module, "reports")


def write_report(path: str, job: "DockJob", facts: dict[str, Any]) -> None:
    """Scores of the library, depictions of the best ligands, their poses in the pocket.

    What cannot be drawn is left out: the poses are written, so the run has not failed.

    facts: as in the summary
    """
    jinja2 = import_package("jinja2", "reports")
    template = files("multigpu.dock").joinpath("report.html").read_text("utf-8")
    page = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    scores = np.concatenate([np.empty(0), *job.facts.scores])
    html = page.from_string(template).render(
        script=_plotly_script(),
        facts=_told(job, facts, scores),
        histogram=_html(_histogram(scores), "scores"),
        view=_html(_view(job.pocket, job.best), "pocket"),
        best=[(best, _depiction(best)) for best in job.best],
        devices=import_package("markupsafe", "reports").Markup(job.chart.svg()),
        skipped=job.facts.skipped[:20],
        skipped_count=len(job.facts.skipped),
    )
    with atomic_output(path) as file:
        file.write(html.encode())


def _told(job: "DockJob", facts: dict[str, Any], scores: Any) -> list[tuple[str, str]]:
    where = ", ".join(f"GPU {d.index} ({d.name})" for d in job.devices) or "CPU"
    points = " × ".join(map(str, job.pocket.shape))
    seconds = facts["seconds"]["wall"]
    return [
        ("ligands", f"{job.facts.ligands:,} docked, {len(job.facts.skipped):,} skipped"),
        ("best score", f"{scores.max():.4f} ({job.best[0].ligand})"),
        ("median score", f"{np.median(scores):.4f}"),
        ("pocket", f"{job.pocket.path}: {points} points of {job.pocket.spacing[0]:g} Å"),
        ("maps", ", ".join(job.pocket.types) or "one score for every atom"),
        ("search", f"{job.search.stop:,} poses of each ligand"),
        ("interpolation", f"{job.options.interpolation}, outside: {job.field.outside}"),
        ("time", f"{seconds:.1f} s, {job.facts.ligands / max(seconds, 1e-9):,.1f} ligands/s"),
        ("where", f"{where}, {len(facts['workers'])} worker(s)"),
        ("program", f"multigpu {facts['program']['multigpu']}, {facts['started']}"),
    ]


# ---- plots ------------------------------------------------------------------------------------


def _plotly_script() -> Any:
    """The library, once for all plots."""
    markup: Any = import_package("markupsafe", "reports").Markup
    return markup(import_package("plotly.offline", "reports").get_plotlyjs())


def _html(figure: Any, name: str) -> Any:
    """The figure as a part of a page; plotly escapes what could end its script."""
    markup: Any = import_package("markupsafe", "reports").Markup
    figure.update_layout(
        template="plotly_white", margin={"l": 50, "r": 20, "t": 20, "b": 45},
        font={"color": INK, "family": "system-ui, sans-serif"},
    )  # fmt: skip
    config = {"displaylogo": False, "responsive": True}
    return markup(
        figure.to_html(full_html=False, include_plotlyjs=False, div_id=name, config=config)
    )


def _histogram(scores: Any) -> Any:
    plot = import_package("plotly.graph_objects", "reports")
    counts, edges = _binned(scores)
    figure = plot.Figure(
        plot.Bar(
            x=(edges[1:] + edges[:-1]) / 2, y=counts, width=np.diff(edges), marker_color=BRAND,
            hovertemplate="score %{x:.3f}: %{y} ligands<extra></extra>",
        )
    )  # fmt: skip
    figure.update_layout(
        xaxis_title="best score of a ligand", yaxis_title="ligands", height=320, bargap=0.02
    )
    return figure


def _binned(scores: Any) -> tuple[Any, Any]:
    """How many scores lie in each bin, and the edges of the bins."""
    try:
        return np.histogram(scores, bins=min(BINS, max(1, len(scores))))
    except ValueError:  # they differ by less than the bins could
        return np.histogram(scores, bins=1, range=(scores.min() - 0.5, scores.max() + 0.5))


def _view(pocket: Pocket, best: Sequence[Best]) -> Any:
    """The surface of the best places, and the best poses, the first of them shown."""
    plot = import_package("plotly.graph_objects", "reports")
    figure = plot.Figure(_surface(plot, pocket))
    for rank, each in enumerate(best, 1):
        molecule = _placed(each)
        if molecule is None:
            continue
        name, group = f"{rank}. {literal(each.ligand)} ({each.score:.3f})", f"pose{rank}"
        shown = True if rank == 1 else "legendonly"
        common = {"legendgroup": group, "visible": shown, "hoverinfo": "text", "text": name}
        x, y, z = _bond_lines(molecule.positions, molecule.bonds)
        figure.add_scatter3d(
            x=x, y=y, z=z, mode="lines", line={"width": 7, "color": INK}, name=name, **common
        )
        x, y, z = molecule.positions.T
        figure.add_scatter3d(
            x=x, y=y, z=z, mode="markers", showlegend=False, name=name,
            marker={"size": 5, "color": _colours(molecule), "line": {"width": 0}}, **common,
        )  # fmt: skip
    axes = {name: {"title": {"text": f"{name[0]} / Å"}} for name in ("xaxis", "yaxis", "zaxis")}
    figure.update_layout(height=620, scene={**axes, "aspectmode": "data"})
    return figure


def _placed(best: Best) -> Molecule | None:
    """The pose with its places; none where these are too far away for the columns of SDF."""
    try:
        return parse(best.sdf, "sdf")
    except MoleculeError:
        return None


def _surface(plot: Any, pocket: Pocket) -> Any:
    """Of the scores of a plain grid, or of AutoGrid's map of carbon, where they are highest."""
    values, label = pocket.values[0].astype(np.float64), "score"
    if pocket.types:
        kind = next((name for name in CARBON if name in pocket.types), pocket.types[0])
        values, label = (
            -pocket.values[pocket.types.index(kind)].astype(np.float64),
            f"score of {literal(kind)}",
        )
    step = max(1, int(np.ceil((values.size / GRID_POINTS) ** (1 / 3))))
    values = values[::step, ::step, ::step]
    places = [
        start + width * step * np.arange(count)
        for start, width, count in zip(pocket.origin, pocket.spacing, values.shape, strict=True)
    ]
    x, y, z = (axis.ravel() for axis in np.meshgrid(*places, indexing="ij"))
    level = float(np.quantile(values, SURFACE))
    return plot.Isosurface(
        x=x, y=y, z=z, value=values.ravel(), isomin=level, isomax=level, surface_count=1,
        opacity=0.25, showscale=False, colorscale=[[0, BRAND], [1, BRAND]],
        caps={"x_show": False, "y_show": False, "z_show": False},
        name=f"{label} ≥ {level:.3g}", showlegend=True, hoverinfo="skip",
    )  # fmt: skip


def _bond_lines(positions: Any, bonds: Sequence[Bond]) -> tuple[list[Any], ...]:
    """Coordinates of all bonds as one broken line."""
    ends = [(*positions[[a, b]].tolist(), (None, None, None)) for a, b, _ in bonds]
    points = [point for each in ends for point in each]
    return tuple([point[axis] for point in points] for axis in range(3))


def _colours(molecule: Molecule) -> list[str]:
    return [COLOURS.get(element, OTHER_COLOUR) for element in molecule.elements]


# ---- depictions -------------------------------------------------------------------------------


def _depiction(best: Best) -> Any:
    """Inline SVG of the structure, drawn flat, where RDKit can make sense of it; else words.

    It has no dummy atoms and lone pairs of other programs, for example.
    """
    with import_package("rdkit.rdBase", "reports").BlockLogs():
        try:
            svg = _drawn(best.sdf.decode("utf-8", "replace")) if _placed(best) else ""
        except (ValueError, RuntimeError):  # all that RDKit raises about molecules
            svg = ""
    markup: Any = import_package("markupsafe", "reports").Markup
    return markup(svg) if svg else NO_DRAWING


def _drawn(block: str) -> str:
    """The SVG; nothing where RDKit reads no molecule."""
    chem = import_package("rdkit.Chem", "reports")
    draw = import_package("rdkit.Chem.Draw.rdMolDraw2D", "reports")
    molecule = chem.MolFromMolBlock(block) or chem.MolFromMolBlock(block, sanitize=False)
    if molecule is None:
        return ""
    import_package("rdkit.Chem.rdDepictor", "reports").Compute2DCoords(molecule)
    drawer = draw.MolDraw2DSVG(WIDTH, HEIGHT)
    drawer.drawOptions().clearBackground = False
    drawer.drawOptions().prepareMolsBeforeDrawing = molecule.NeedsUpdatePropertyCache() is False
    drawer.DrawMolecule(molecule)
    drawer.FinishDrawing()
    svg: str = drawer.GetDrawingText().partition("?>")[2]
    return svg
