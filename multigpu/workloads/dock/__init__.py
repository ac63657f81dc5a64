"""Rigid docking: the best rotations and shifts of every ligand in the score grid of a pocket."""
