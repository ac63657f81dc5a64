"""PDBQT, many ligands at once: columns to arrays, and poses back to text."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.molecules.autodock import Atoms
from multigpu.formats.molecules.molecules import Positions
from multigpu.formats.molecules.plain import Plain, arrays_of
from multigpu.formats.molecules.poses import DROPPED, OUR_REMARK
from multigpu.formats.tables.columns import glued, labelled
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.compiled.text import pdbqt as compiled
from multigpu.kernels.compiled.text.words import word_table

DROPPED_WORDS = word_table(DROPPED)


def read(texts: Texts, wanted: NDArray[np.bool_], maps: Sequence[str]) -> Plain:
    """The wanted ones of these records, as far as they are plain. maps: () takes every type."""
    codes = np.array([compiled.type_code(name) for name in maps], np.int64)
    positions, charges, types, sizes, begins, lengths, named = compiled.read_records(
        arrays_of(texts), wanted, codes, DROPPED_WORDS
    )
    atoms = Atoms(positions, types, charges, sizes)
    bare = np.zeros(len(named), np.bool_)  # see `lacks_hydrogens`
    return Plain(atoms, Texts(texts.raw, begins, lengths), named, bare)


def posed(
    texts: Texts, atoms: NDArray[np.int64], positions: Positions, names: Sequence[str],
    facts: Mapping[str, Texts],
) -> Texts:  # fmt: skip
    """Plain records with other coordinates, and what is said of the poses before them.

    atoms: int64[n], how many of the positions, float64[sum, 3], are of each. names: "" for one that
    says its own. Empty where a coordinate is too long for its columns. As `poses.render`.
    """
    named = Texts.of_words(f"REMARK  Name = {name}\n" if name else "" for name in names)
    heads = glued(named, *labelled(facts, OUR_REMARK + b"%b ", b"\n"))
    first_atoms = np.cumsum(atoms) - atoms
    raw, lengths = compiled.write_poses(
        arrays_of(texts), arrays_of(heads), first_atoms, positions, DROPPED_WORDS
    )
    return Texts.one_after_the_other(raw, lengths)
