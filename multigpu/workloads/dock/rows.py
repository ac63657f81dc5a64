"""Rows of the table of scores, one for each pose: as columns, as text, as Arrow."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.tables.arrow import numbers, pyarrow, strings
from multigpu.formats.tables.texts import replace_undecodable

if TYPE_CHECKING:
    import pyarrow as pa

Formats = Mapping[str, str]  # of each column of a table in text

ANGLES, PLACE = ("alpha", "beta", "gamma"), ("x", "y", "z")
ENERGIES = ("energy", "energy_unrefined", "energy_electrostatic", "energy_other")
NULLABLE = ("rmsd_to_input", "strain", "rmsd_to_reference")
# Columns of a batch that are several columns of the table.
SPLIT = {"angles": ANGLES, "quaternion": ("qw", "qx", "qy", "qz"), "place": PLACE}
# In a grid of scores.
SCORES = {
    "ligand": "%s", "pose": "%d", "score": "%r", **dict.fromkeys(ANGLES, "%s"),
    **dict.fromkeys(SPLIT["quaternion"], "%.9f"), **dict.fromkeys(PLACE, "%.4f"),
    "rmsd_to_input": "%s", "rotation": "%d", "atoms": "%d", "source": "%s", "atoms_outside": "%d",
}  # fmt: skip
# In a whole box of energies, kcal/mol. A refined pose is none of the numbered ones: its place has
# more decimals, and it began at a rotation.
REFINED = {
    "ligand": "%s", "conformer": "%d", "pose": "%d", **dict.fromkeys((*ENERGIES, "score"), "%r"),
    **dict.fromkeys(("efficiency", "strain", "rmsd_to_reference"), "%s"),
    **dict.fromkeys(SPLIT["quaternion"], "%.9f"), **dict.fromkeys(PLACE, "%.6f"),
    "rmsd_to_input": "%s", "rotation": "%d", "atoms": "%d", "source": "%s",
    "atoms_outside": "%d",
}  # fmt: skip
# In a whole box of scores.
BOX_SCORES = {
    "ligand": "%s", "conformer": "%d", "pose": "%d", "score": "%r", "score_unrefined": "%r",
    "strain": "%s", **SCORES, **dict.fromkeys(PLACE, "%.6f"),
}  # fmt: skip
LINE_BREAKS = str.maketrans("\t\n\r", "???")


@dataclass(frozen=True, eq=False, kw_only=True)
class PoseBatch:
    """Poses, one in each row: best first for every ligand, ligands in the order of the input.

    ligand         n names, free of tabs and line ends
    source         n paths
    ligand_index   int64[n]       order of the ligand in the whole input, from 0
    conformer      int32[n]       of the ligand, from 1
    pose           int32[n]       1 for the best pose of a ligand, and so on
    rotation       int64[n]       index in the set of rotations; of a refined pose, before that
    score          float64[n]     higher is better; of energies, −kcal/mol
    unrefined      float64[n]     the score before the pose was refined
    electrostatic  float64[n]     kcal/mol: part of the energy; 0 in a grid of scores
    angles         float64[n, 3]  α, β, γ in degrees; NaN where rotations are not made of angles
    quaternion     float64[n, 4]  w x y z, w not negative
    place          float64[n, 3]  where the centroid is, Å
    rmsd_to_input  float64[n]     Å over all atoms, as numbered; NaN for conformers made here
    rmsd_to_reference  float64[n] Å over heavy atoms, of the best symmetry; NaN without reference
    strain         float64[n]     kcal/mol of the conformer above the lowest; NaN where unknown
    atoms          int32[n]
    heavy          int32[n]       how many of them are no hydrogen
    atoms_outside  int32[n]       how many of them are outside of the grid
    coordinates    float64[k, 3]  Å: of the atoms, as numbered, pose after pose; none at all where
                                  the poses are known as texts
    """

    ligand: list[str]
    source: list[str]
    ligand_index: NDArray[np.int64]
    conformer: NDArray[np.int32]
    pose: NDArray[np.int32]
    rotation: NDArray[np.int64]
    score: NDArray[np.float64]
    unrefined: NDArray[np.float64]
    electrostatic: NDArray[np.float64]
    angles: NDArray[np.float64]
    quaternion: NDArray[np.float64]
    place: NDArray[np.float64]
    rmsd_to_input: NDArray[np.float64]
    rmsd_to_reference: NDArray[np.float64]
    strain: NDArray[np.float64]
    atoms: NDArray[np.int32]
    heavy: NDArray[np.int32]
    atoms_outside: NDArray[np.int32]
    coordinates: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.ligand)

    def __repr__(self) -> str:
        return f"<PoseBatch: {len(self):,} poses>"

    @property
    def positions(self) -> list[NDArray[np.float64]]:
        """Return float64[atoms, 3] of each pose, Å."""
        return np.split(self.coordinates, np.cumsum(self.atoms)[:-1]) if len(self) else []


ROW_COLUMNS = [each.name for each in fields(PoseBatch) if each.name != "coordinates"]


def header(formats: Formats) -> str:
    """Return the first line of a table."""
    return "\t".join(formats) + "\n"


def as_tsv(rows: PoseBatch, formats: Formats = SCORES) -> bytes:
    """Return the rows as lines of text.

    Scores are the shortest decimals that read back equal. Angles are empty where rotations are not
    made of angles.
    """
    columns = columns_of(rows, formats)
    for name in columns.keys() & {*ANGLES}:
        columns[name] = ["" if np.isnan(x) else f"{x:.10g}" for x in columns[name].tolist()]
    for name in columns.keys() & {"efficiency", *NULLABLE}:
        columns[name] = ["" if np.isnan(x) else f"{x:.4f}" for x in columns[name].tolist()]
    for name in PLACE:
        # Its decimals would show a small negative number as -0.0000.
        least = 0.5 * 10.0 ** -int(formats[name][2])
        columns[name] = np.where(np.abs(columns[name]) < least, 0.0, columns[name])
    columns["source"] = [path.translate(LINE_BREAKS) for path in rows.source]
    values = [each if isinstance(each, list) else each.tolist() for each in columns.values()]
    line = "\t".join(formats.values()) + "\n"
    return "".join(map(line.__mod__, zip(*values, strict=True))).encode("utf-8", "replace")


def one_line(text: str) -> str:
    """Return text without tabs and line breaks."""
    return " ".join(text.split())


def to_arrow(batches: Sequence[PoseBatch], names: Collection[str] = SCORES) -> "pa.Table":
    """Return columns of the table in full precision.

    Angles are null where rotations are not made of angles.
    """
    pa = pyarrow()
    types = {"ligand": pa.string(), "source": pa.string(), "rotation": pa.int64()}
    types |= dict.fromkeys(("conformer", "pose", "atoms", "atoms_outside"), pa.int32())
    schema = pa.schema([pa.field(name, types.get(name, pa.float64())) for name in names])
    columns = (columns_of(rows, names).values() for rows in batches)
    tables = [pa.Table.from_arrays([*map(_arrow_array, each)], schema=schema) for each in columns]
    return pa.concat_tables(tables) if tables else pa.Table.from_batches([], schema)


def _arrow_array(column: "list[str] | NDArray[Any]") -> "pa.Array":
    if isinstance(column, list):
        return strings([replace_undecodable(text) for text in column])
    return numbers(column, nan_is_null=column.dtype.kind == "f")


def columns_of(rows: PoseBatch, names: Collection[str]) -> dict[str, Any]:
    """Return columns of the table by name."""
    energy, unrefined = 0.0 - rows.score, 0.0 - rows.unrefined  # no -0.0
    parts = energy, unrefined, rows.electrostatic, energy - rows.electrostatic
    columns = {name: getattr(rows, name) for name in ROW_COLUMNS}
    columns |= {**dict(zip(ENERGIES, parts, strict=True)), "score_unrefined": rows.unrefined}
    columns["efficiency"] = np.where(rows.heavy, energy / np.maximum(rows.heavy, 1), np.nan)
    for whole, parts_of in SPLIT.items():
        columns |= zip(parts_of, np.ascontiguousarray(columns[whole].T), strict=True)
    return {name: columns[name] for name in names}
