"""Segments of tracks: spans of positions between changes of the level.

Two methods. The fast one is that of cn.mops (Klambauer et al., Nucleic Acids Research 2012,
40:e69): at every position where neighbours differ enough, a regularized t-test (Baldi and Long,
Bioinformatics 2001, 17:509) between growing windows on either side; the positions with the largest
statistic cut the track into pieces; neighbouring pieces that are all gains or all losses are
joined, and what lies between them becomes one segment. Circular binary segmentation (Olshen et al.,
Biostatistics 2004, 5:557) tests arcs against the rest instead, recursively.

`reference.py` says what is right, `cpu.py` does it fast, and `cuda.py` the first of the two.
"""
