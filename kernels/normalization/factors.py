"""Size factors: which statistic of which regions, whatever measures it.

The method is that of the R package cn.mops (Klambauer et al., Nucleic Acids Research 2012, 40:e69);
its answers, not its code, are followed.
"""

from collections.abc import Sequence
from statistics import mean

import numpy as np

from multigpu.kernels.normalization.types import (
    DIPLOID,
    SAMPLE,
    Backend,
    ChromosomeError,
    Floats,
    Mask,
    Normalization,
    NormalizationError,
    SizeFactors,
    Statistics,
    groups,
)


def size_factors(
    backend: Backend,
    blocks: Sequence[slice],
    options: Normalization,
    names: Sequence[str] | None = None,
    totals: Floats | None = None,
    leaves_out: bool = False,
) -> SizeFactors:
    """Return a row for each of `blocks`, the chromosomes; `names` are theirs, for notes and errors.

    totals: float64[samples], reads of each everywhere, where the backend has some chromosomes only.
    leaves_out: the factors are NaN on a chromosome that cannot be normalized, instead of an error

    Samples of the same ploidy are normalized together, and the groups then scaled so that the
    medians of their normalized counts relate as the ploidies do. A sample that is the only one of
    its ploidy is only scaled. Raises NormalizationError.
    """
    ploidy = options.ploidies(backend.shape[1])
    names = [f"chromosome {i + 1}" for i in range(len(blocks))] if names is None else names
    totals = backend.totals() if totals is None else totals
    if not totals.all():
        raise NormalizationError(f"{SAMPLE} has no reads", int(np.argmin(totals)))
    factors = np.ones((len(blocks), backend.shape[1]))
    notes: list[str] = []
    used: Mask = np.ones(1, bool)
    together = groups(ploidy)
    medians = []
    for members in together:
        if len(members) > 1:
            used = np.ones(1, bool)  # of the last chromosome that has any
            for row, block, name in zip(factors, blocks, names, strict=True):
                statistics = backend.statistics(block, members)
                if not statistics.used().any():
                    continue
                used = statistics.used()
                try:
                    one = _of_chromosome(statistics, members, totals[members], options, name)
                except ChromosomeError:
                    if not leaves_out:
                        raise
                    one = np.full(len(members), np.nan), ""
                row[members], note = one
                notes += [note] if note else []
        if len(together) > 1:
            # R keeps the used regions of the last chromosome and repeats them for all others.
            rows = np.resize(used, backend.shape[0])
            kept = np.flatnonzero(np.isfinite(factors).all(axis=1)).tolist()
            some = [blocks[number] for number in kept]
            medians.append(backend.median(rows, members, some, factors[kept]))
    for members, median in zip(together[1:], medians[1:], strict=True):
        wanted = medians[0] * ploidy[members[0]] / DIPLOID
        if not median or not wanted:
            raise NormalizationError("a ploidy's samples have a median of 0: they cannot be scaled")
        factors[:, members] *= wanted / median
    return SizeFactors(factors, tuple(dict.fromkeys(notes)))


def _of_chromosome(
    statistics: Statistics, samples: list[int], totals: Floats, options: Normalization, name: str
) -> tuple[Floats, str]:
    """Return float64[samples], and a note or nothing."""
    ones = np.ones(len(samples))
    if statistics.used().sum() < 2:
        return ones, f"{name}: too few regions with reads, not normalized"
    note = ""
    factors = _measured(statistics, options)
    if np.isnan(factors).any():
        factors = totals
        note = f"{name}: a sample has no reads, all are normalized by their reads elsewhere"
    if not factors.all():
        raise ChromosomeError(
            f"{name}: the size factor of {SAMPLE} is 0; leave out samples or chromosomes with "
            "so few reads, chromosome Y for example",
            samples[int(np.argmin(factors))],
        )
    scale = _target(statistics, factors, options) / factors
    if options.norm_type == "poisson":
        dispersion = statistics.dispersion(scale)
        if np.isnan(dispersion):
            raise ChromosomeError(
                f"{name}: all samples have the same counts, no variance can be estimated"
            )
        if np.isinf(dispersion):
            raise ChromosomeError(
                f"{name}: the variance is over a million times the mean: a count may be wrong"
            )
        if not dispersion:
            return ones, f"{name}: the variance is mostly far below the mean, not normalized"
        scale = scale / dispersion
    return scale, note


def _measured(statistics: Statistics, options: Normalization) -> Floats:
    match options.statistic:
        case "mean":
            return statistics.means()
        case "median":
            return statistics.quantiles(0.5)
        case "quant":
            return statistics.quantiles(options.size_factor_quantile)
        case _:
            return statistics.modes()


def _target(statistics: Statistics, factors: Floats, options: Normalization) -> float:
    match options.norm_type:
        case "median":
            return float(np.median(factors))
        case "quant":
            return float(np.quantile(factors, options.norm_quantile))
        case "mode":
            return statistics.mode()
        case _:
            return float(mean(factors.tolist()))  # exact, rounded once: R's has 64 bits
