"""What plain records of ligands have in common, whatever the format.

Plain records are read and written many at once by compiled functions, which make no objects for
atoms or lines and do not hold the interpreter. What is not plain is read and written one by one, by
`molecules` and `poses`, which also say what is wrong with it. There plain records come out the
same.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.molecules.autodock import Atoms
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.compiled.text.words import TextArrays


@dataclass(frozen=True, eq=False)
class Plain:
    """What was read of records.

    atoms  of each; none of one that is not plain
    names  what each calls itself; empty where it does not
    named  bool[n]: whether it still says a name, if an empty one, when it is written
    bare   bool[n]: whether it lacks hydrogens
    """

    atoms: Atoms
    names: Texts
    named: NDArray[np.bool_]
    bare: NDArray[np.bool_]


def arrays_of(texts: Texts) -> TextArrays:
    """Return texts as compiled functions take them."""
    return TextArrays(texts.raw, texts.begins, texts.lengths)
