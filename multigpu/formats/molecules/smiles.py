"""SMILES, one molecule a line with its name: the only ligands without coordinates.

`conformers` makes coordinates of them.
"""

import re
from typing import NoReturn

from multigpu.errors import option
from multigpu.formats.molecules import fields
from multigpu.formats.molecules.molecule import LigandFormat, MoleculeError

NO_PLACES = (
    f"SMILES has no 3D coordinates: {option('conformers')} 20 makes some, or make them first, as"
    " with `obabel IN.smi -O OUT.sdf --gen3d -h`"
)
# A line with a molecule: none that is blank, a comment, or the title of the columns.
RECORD = re.compile(rb"^(?![ \t]*(?:#|\r?$|smiles\b))[^\n]+(?:\n|\Z)", re.MULTILINE | re.IGNORECASE)
EXTENSION = re.compile(r"\|[^|]*\|\s*")  # of CXSMILES, between the SMILES and the name


def find_ends(text: bytes, final: bool) -> list[int]:
    """Return the ends of lines with a molecule; other lines belong to the record after them."""
    return [line.end() for line in RECORD.finditer(text) if final or line[0].endswith(b"\n")]


def read_smiles(text: bytes) -> tuple[str, str]:
    """Return SMILES and name of a record; "" where it has none."""
    line = fields.decode(b"".join(RECORD.findall(text)[-1:]))
    smiles, _, rest = line.replace("\t", " ").partition(" ")
    return smiles, EXTENSION.sub("", rest.strip(), count=1)


def read_name(text: bytes) -> str:
    """Return what comes after the SMILES."""
    return read_smiles(text)[1]


def _refuse(*_: object) -> NoReturn:
    """Raise MoleculeError: whatever needs coordinates finds none."""
    raise MoleculeError(NO_PLACES)


SMILES = LigandFormat(
    name="smiles",
    suffixes=(".smi", ".smiles", ".ism", ".can"),
    signature=re.compile(rb"(?!)"),  # any text may be SMILES: the suffix decides
    find_ends=find_ends,
    parse=_refuse,
    read_name=read_name,
    rewrite=_refuse,
    keep_atoms=_refuse,
    bond_graph=_refuse,
)
