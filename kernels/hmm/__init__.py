"""A hidden Markov model over copy numbers: what each sample should have, and its likeliest path.

Regions are steps, states are copy numbers relative to the usual one (`types.STATES`), emissions are
negative binomials around a mean of reference samples, and moves depend on the distance between
regions (`moves.py`). Scores are whole numbers, so that maxima of sums are exact and every way to
divide the work gives the same path. `reference.py` is the method in plain NumPy, `cpu.py` (Numba)
and `cuda.py` with `expect.cu` and `paths.cu` do it fast. Each of the three has

    expect(counts, model, inside=None)                                -> ExpectedCounts
    paths(counts, expected, model, moves, inside=None)                -> int8[regions, samples]
    log2_ratios(counts, expected, samples)                            -> float32[regions, samples]

`moves.py` makes the moves; `qualities.py` has genotypes and qualities of calls, on the host.
"""
