"""The best poses of rigid bodies in a score field: every rotation, every shift.

`reference.py`, `cpu.py` and `cuda.py` each have a `PoseSearcher(field, search)` with
`best(ligands, span=None)`, and give the same answer to the last bit:

* `reference.py` and `cpu.py` score every pose in double precision.
* `cuda.py` scores every pose in single precision, and then those in double precision that could
  still be the best; `bounds.py` proves which these are.
"""

from multigpu.kernels.rotation.rotations import (
    EulerRotations,
    ListedRotations,
    Shifts,
    covering_radius,
    near_uniform,
    quaternions,
)
from multigpu.kernels.rotation.types import (
    PENALTY,
    BandFinder,
    Field,
    Ligands,
    Placements,
    PoseFinder,
    PoseRefiner,
    Poses,
    PoseSearch,
    atoms_of,
    energy_channels,
    energy_terms,
    placed,
)

__all__ = [
    "PENALTY",
    "BandFinder",
    "EulerRotations",
    "Field",
    "Ligands",
    "ListedRotations",
    "Placements",
    "PoseFinder",
    "PoseRefiner",
    "PoseSearch",
    "Poses",
    "Shifts",
    "atoms_of",
    "covering_radius",
    "energy_channels",
    "energy_terms",
    "near_uniform",
    "placed",
    "quaternions",
]
