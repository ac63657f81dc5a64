"""Rigid docking: the best poses of every ligand in a pocket."""
