"""Rigid minimisation of placements: uphill in score to a local maximum.

`reference.py`, `cpu.py` and `cuda.py` each have a `Refiner(field)` with `refine(bodies, found)`,
and give the same answer to the last bit. `pattern.py` says how it is found.
"""
