"""The best poses of rigid bodies in a score field: every rotation, every shift.

`reference.py`, `cpu.py` and `cuda.py` each have a `PoseSearcher(field, search)` with
`best(ligands, span=None)`, and give the same answer to the last bit:

* `reference.py` and `cpu.py` score every pose in double precision.
* `cuda.py` scores every pose in single precision, and then those in double precision that could
  still be the best; docs/dock.md proves which these are.
"""
