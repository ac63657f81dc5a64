"""Signs that a ligand was not prepared for docking: drawn flat, or without its hydrogens."""

from multigpu.formats.molecules.molecules import Molecule, Positions

FLAT = (
    "all its atoms have z = {:g}, so it is drawn in two dimensions: make 3D coordinates first, as"
    " with `obabel IN -O OUT --gen3d`, or take it as it is with --allow-flat"
)
DIMENSION = slice(20, 22)  # columns in the second line of SDF
FEWEST, FEWEST_DRAWN = 4, 2  # atoms: three are always in a plane
HYDROGENS = {"H", "D", "T"}


def is_drawn(text: bytes, layout: str, positions: Positions) -> bool:
    """Whether a record holds a drawing instead of coordinates in space.

    All z are the same there. SDF says whether it is 2D or 3D, which decides. Where it does not, and
    in MOL2, PDB and PDBQT, four atoms in such a plane are a drawing: a flat molecule in space lies
    askew, or says that it is 3D. In XYZ they are none: quantum chemistry lays flat molecules there.
    """
    z = positions[:, 2]
    if layout == "xyz" or (z != z[0]).any():
        return False
    said = _dimension(text) if layout == "sdf" else b""
    return said != b"3D" and len(z) >= (FEWEST_DRAWN if said == b"2D" else FEWEST)


def _dimension(text: bytes) -> bytes:
    """What the header says: 2D, 3D or something else."""
    return b"".join(text.split(b"\n", 2)[1:2])[DIMENSION].upper()


def lacks_hydrogens(molecule: Molecule) -> bool:
    """Whether it has carbon and no hydrogen: nearly always they were left out.

    PDBQT has only polar ones, which a molecule need not have.
    """
    elements = set(molecule.elements)
    return molecule.layout != "pdbqt" and "C" in elements and elements.isdisjoint(HYDROGENS)
