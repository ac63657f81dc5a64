"""Counts of samples made comparable, chromosome by chromosome.

`factors.py` decides what is measured and what becomes of it; `reference.py` (plain NumPy), `cpu.py`
and `cuda.py` measure. Each of the three has

    size_factors(counts, blocks, options, names)  -> SizeFactors

with counts [regions, samples], float64 or int32, and blocks: one slice of regions a chromosome.
The first two also have `coverages(counts) -> float64[samples]`.
"""
