"""Mistakes of R's package that `--compat r` repeats; docs/cnv.md says what and why."""

import re
from collections.abc import Sequence

import numpy as np

from multigpu.cnv.calls.segments import Indices

SPECIAL = {"X": 1, "Y": 2, "M": 3, "MT": 3}  # order of the chromosomes that have no number


def level_order(names: Sequence[str]) -> list[int]:
    """Return the rank of each name in R's order: chr1, chr2, chr10, chrX, chrM, the others."""
    order = sorted(range(len(names)), key=lambda k: _level_key(names[k]))
    ranks = [0] * len(names)
    for rank, k in enumerate(order):
        ranks[k] = rank
    return ranks


def _level_key(name: str) -> tuple[int, int, int, str]:
    prefix, rest = re.fullmatch("(chr|CHR)?(.*)", name, re.DOTALL).groups()  # type: ignore[union-attr]
    group = 0 if prefix else 1
    if rest.isascii() and rest.isdigit():
        return group, 0, int(rest), rest
    return group, 1 + (rest not in SPECIAL), SPECIAL.get(rest, 0), rest


def region_chromosomes(chrom: Indices, names: Sequence[str]) -> Indices:
    """Return R's chromosome of every CNV region: all of them sorted, whatever the row."""
    ranks = np.array(level_order(names))
    return chrom[np.argsort(ranks[chrom], kind="stable")]
