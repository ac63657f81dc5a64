"""Receptors: files to atoms with AutoDock's types and charges, of which maps are made.

`receptor` reads PDBQT, which says types and charges, and checks every receptor; `preparation` makes
PDBQT of PDB and mmCIF, by Meeko.
"""

from multigpu.formats.molecules.receptors.receptor import RECEPTORS, read_receptor

__all__ = ["RECEPTORS", "read_receptor"]
