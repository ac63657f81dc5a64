"""Signs that a ligand was not prepared for docking: drawn flat, or without its hydrogens."""

from multigpu.formats.molecules.molecule import Molecule, Positions
from multigpu.formats.molecules.registry import FORMATS

FLAT = (
    "all its atoms have z = {:g}, so it is drawn in two dimensions: make 3D coordinates first, as"
    " with `obabel IN -O OUT --gen3d`, or take it as it is with --allow-flat"
)
HYDROGENS = {"H", "D", "T"}


def is_drawn(text: bytes, layout: str, positions: Positions) -> bool:
    """Whether a record holds a drawing instead of coordinates in space.

    All z are the same there. SDF says whether it is 2D or 3D, which decides. Where it does not, and
    in MOL2, PDB and PDBQT, four atoms in such a plane are a drawing: a flat molecule in space lies
    askew, or says that it is 3D. In XYZ they are none: quantum chemistry lays flat molecules there.
    """
    z = positions[:, 2]
    return bool((z == z[0]).all()) and len(z) >= FORMATS[layout].fewest_flat_atoms(text)


def lacks_hydrogens(molecule: Molecule) -> bool:
    """Whether a molecule has carbon and no hydrogen: nearly always they were left out.

    PDBQT has only polar ones, which a molecule need not have.
    """
    if molecule.format.has_polar_hydrogens_only:
        return False
    elements = set(molecule.elements)
    return "C" in elements and elements.isdisjoint(HYDROGENS)
