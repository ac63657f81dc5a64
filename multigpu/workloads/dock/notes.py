"""Notes that the user of a docking job should read although nothing is wrong."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from multigpu.errors import option
from multigpu.kernels.rotation.types import PENALTY
from multigpu.workloads.dock.stats import DockStats, Outliers

if TYPE_CHECKING:
    from multigpu.workloads.dock.job import DockJob

LOPSIDED, WELL = 100, -0.1  # a grid of energies has high walls and shallow wells, below this
OUTLYING = {"energy": " kcal/mol", "heavy atoms": ""}  # with units
NAMED = 3  # ligands far from the others
OUTSIDE = {
    "clamp": "as at its border",
    "zero": "nothing",
    "penalty": f"-{PENALTY:,.0f} for each Å² from its middle",
}
COSTLY = f"+{PENALTY:,.0f} kcal/mol for each Å² from its middle, hydrogens without a map nothing"


def _of(stats: DockStats, count: int, one: str, more: str) -> str:
    """Return how many of the ligands, and what follows of one or of more."""
    noun = "ligand" if stats.ligands == 1 else "ligands"
    return f"{count:,} of {stats.ligands:,} {noun} {one if count == 1 else more}"


def result_notes(job: "DockJob") -> Iterator[str]:
    """Yield a note for everything that the user of a job probably did not mean."""
    stats, pocket, has_energies = job.stats, job.pocket, job.with_energies
    if stats.without_hydrogens:
        yield (
            f"{_of(stats, stats.without_hydrogens, 'has', 'have')} no hydrogens and"
            f" {'was' if stats.without_hydrogens == 1 else 'were'} docked without them: to add them"
            " first, try `obabel IN -O OUT -h`"
        )
    low, high = float(pocket.values.min()), float(pocket.values.max())
    if not pocket.types and ((stats.best_score or 0) < 0 or WELL > low > -high / LOPSIDED):
        yield (
            "values of the grid are scores, of which the highest win: if they are energies, turn"
            f" their sign (the grid has values from {low:.4g} to {high:.4g}, the best pose scores"
            f" {stats.best_score:.4g})"
        )
    if stats.parts:
        yield (
            f"{_of(stats, stats.parts, 'was', 'were')} docked without other atoms of the record:"
            f" counter-ions and waters ({option('fragments')} skip skips such ligands), or flexible"
            " side chains of a receptor (BEGIN_RES)"
        )
    if job.reference and stats.others:
        others, path = _of(stats, stats.others, "is", "are"), job.reference.path
        yield f"{others} another molecule than {path}, so rmsd_to_reference is empty there"
    if has_energies and (count := int((stats.values < 0).sum())):
        worst = int(stats.values.argmin())
        yield (
            f"{_of(stats, count, 'has', 'have')} no room in the box: energies above 0, up to"
            f" {-stats.values[worst]:.4g} kcal/mol ({stats.names[worst]}); is the box too small?"
        )
    for what, unit in OUTLYING.items() if has_energies else ():
        values = -stats.values if what == "energy" else stats.heavy_atoms
        far = Outliers.of(values)
        if count := len(far.ligands):
            named = [*zip(far.ligands, far.values, strict=True)][:NAMED]
            shown = ", ".join(f"{stats.names[ligand]} ({value:.4g})" for ligand, value in named)
            yield (
                f"{_of(stats, count, 'is', 'are')} far from the others by {what}: {shown}"
                f"{', …' * (count > NAMED)}; the median is {far.median:.4g}{unit}"
            )
    if stats.reaching_out:
        atoms, name = stats.most_outside
        outside, is_placed = job.field.outside, job.search.center is not None
        how = COSTLY if has_energies and outside == "penalty" else OUTSIDE[outside]
        middle = ",".join(f"{x:.4g}" for x in pocket.center)
        cure = "" if is_placed else f"; {option('center')} {middle} puts all in its middle"
        yield (
            f"the best poses of {stats.reaching_out} of {stats.ligands} ligands have atoms outside"
            f" of the grid, up to {atoms} ({name}); these score {how}: see the column atoms_outside"
            f"{cure}"
        )
