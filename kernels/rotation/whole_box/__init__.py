"""Every pose of a whole box whose score is within a band of the best, without scoring most.

`reference.py`, `cpu.py` and `cuda.py` each have a `BandSearcher(field, search, width)` with
`best(bodies, ligand_of)`, and give the same answer to the last bit. `bounds.py` has what the last
two know of whole blocks of poses; docs/dock.md proves that none is missed.
"""
