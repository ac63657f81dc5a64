"""SDF of V2000, many ligands at once: columns to arrays, and poses to text."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.molecules.autodock import Atoms
from multigpu.formats.molecules.molecules import Positions
from multigpu.formats.molecules.plain import Plain, arrays_of
from multigpu.formats.tables.columns import glued, labelled
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.compiled.text import sdf as compiled


def read(texts: Texts, wanted: NDArray[np.bool_]) -> Plain:
    """The wanted ones of these records, as far as they are plain; without types and charges."""
    positions, sizes, titles, named, bare = compiled.read_records(arrays_of(texts), wanted)
    nothing = np.zeros(len(positions))
    atoms = Atoms(positions, nothing.astype(np.int32), nothing, sizes)
    return Plain(atoms, Texts(texts.raw, texts.begins, titles), named, bare)


def posed(
    texts: Texts, atoms: NDArray[np.int64], positions: Positions, names: Sequence[str],
    facts: Mapping[str, Texts],
) -> Texts:  # fmt: skip
    """Plain records with other coordinates, and what is said of the poses as data items.

    atoms: int64[n], how many of the positions, float64[sum, 3], are of each. names: "" for one that
    says its own. Empty where a coordinate is too long for its columns. As `poses.render`.
    """
    tails = glued(*labelled(facts, b"> <multigpu_%b>\n", b"\n\n"), b"$$$$\n")
    titles = Texts.of_words(names)
    raw, lengths = compiled.write_poses(
        arrays_of(texts), arrays_of(titles), arrays_of(tails), atoms, positions
    )
    return Texts.one_after_the_other(raw, lengths)
