"""The mixture of Poissons of cn.MOPS: copy-number classes of every region and sample.

Klambauer et al., Nucleic Acids Research 2012, 40:e69. `reference.py` is the method in plain NumPy,
`cpu.py` (Numba) and `cuda.py` with `model.cu` do it fast. Each of the three has

    model(counts, cov, options, scale=None)                 -> Result   levels are estimated
    model_against(counts, level, cov, options, scale=None)  -> Result   levels are given
    level_of_controls(controls, scale=None, cov=None)       -> float64[regions]
"""
