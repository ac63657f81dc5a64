"""Rigid docking: the best rotations and shifts of every ligand in the score grid of a pocket.

Call the package: `multigpu.dock(...)` is the function `multigpu.dock.api.dock`.
"""

from multigpu.callable_package import make_callable

__all__ = ["dock"]

make_callable(__name__)
