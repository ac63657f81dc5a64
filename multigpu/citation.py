"""Texts to cite; `CITATION.cff` says the same to other programs."""

from multigpu import __version__

PROGRAM = f"multigpu {__version__}, by the maintainers of multigpu (Apache License 2.0)."
CN_MOPS = """\
Klambauer G, Schwarzbauer K, Mayr A, Clevert D-A, Mitterecker A, Bodenhofer U, Hochreiter S:
cn.MOPS: mixture of Poissons for discovering copy number variations in next-generation
sequencing data with a low false discovery rate. Nucleic Acids Research 40(9): e69, 2012.
doi:10.1093/nar/gks003"""
