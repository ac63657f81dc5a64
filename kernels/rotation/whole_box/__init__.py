"""Every pose of a whole box whose score is within a band of the best, without scoring most.

`../reference.py`, `cpu.py` and `cuda.py` each have a `BandSearcher(field, search, width)` with
`best(bodies, ligand_of)`, and give the same answer to the last bit. Bounds of blocks of poses
(`bounds.py` for the CPU) leave out nearly all; docs/dock.md proves that none is missed.
"""
