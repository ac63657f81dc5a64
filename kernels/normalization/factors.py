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
    names: Sequence[str],
    totals: Floats | None = None,
    leaves_out: bool = False,
) -> SizeFactors:
    """Return a row for each of `blocks`, the chromosomes; `names` are theirs, for notes and errors.

    totals: float64[samples], reads of each everywhere, where the backend has some chromosomes only.
    leaves_out: the factors are NaN on a chromosome that cannot be normalized, instead of an error

    Samples of the same ploidy are normalized together, and the groups then scaled so that the
    medians of their normalized counts relate as the ploidies do. A sample that is the only one of
    its ploidy is only scaled.
    """
    ploidy = options.ploidies(backend.shape[1])
    totals = backend.totals() if totals is None else totals
    if not totals.all():
        raise NormalizationError(f"{SAMPLE} has no reads", int(np.argmin(totals)))
    factors = np.ones((len(blocks), backend.shape[1]))
    notes: list[str] = []
    rows: Mask = np.ones(0, bool)
    together = groups(ploidy)
    medians = []
    for members in together:
        if len(members) > 1:
            group = _Group(backend, blocks, members, totals[members], options)
            factors[:, members] = group.factors(names, notes, leaves_out)
            rows = group.rows
        if len(together) > 1:
            kept = np.flatnonzero(np.isfinite(factors).all(axis=1)).tolist()
            some = [blocks[number] for number in kept]
            medians.append(backend.median(rows, members, some, factors[kept]))
    for members, median in zip(together[1:], medians[1:], strict=True):
        factors[:, members] *= _ratio(medians[0] * ploidy[members[0]] / DIPLOID, median)
    return SizeFactors(factors, tuple(dict.fromkeys(notes)))


def _ratio(wanted: float, found: float) -> float:
    if not found or not wanted:
        raise NormalizationError("a ploidy's samples have a median of 0: they cannot be scaled")
    return float(wanted / found)


class _Group:
    """Samples of one ploidy."""

    def __init__(
        self,
        backend: Backend,
        blocks: Sequence[slice],
        samples: Sequence[int],
        totals: Floats,
        options: Normalization,
    ) -> None:
        self._backend, self._blocks, self._samples = backend, blocks, samples
        self._totals, self._options = totals, options
        self._used: Mask = np.ones(1, bool)  # of the last chromosome that has any

    def factors(self, names: Sequence[str], notes: list[str], leaves_out: bool) -> Floats:
        """Return float64[chromosomes, samples of the group]; appends to `notes`."""
        out = np.ones((len(self._blocks), len(self._samples)))
        for row, block, name in zip(out, self._blocks, names, strict=True):
            statistics = self._backend.statistics(block, self._samples)
            used = statistics.used()
            if used.any():
                self._used = used
                try:
                    row[:], note = self._of_one(statistics, int(used.sum()), name)
                except ChromosomeError:
                    if not leaves_out:
                        raise
                    row[:], note = np.nan, ""
                notes += [note] if note else []
        return out

    @property
    def rows(self) -> Mask:
        """bool[regions]: those of all chromosomes that R takes medians over.

        R keeps the used regions of the last chromosome and repeats them until there are enough.
        """
        return np.resize(self._used, self._backend.shape[0])

    def _of_one(self, statistics: Statistics, used: int, name: str) -> tuple[Floats, str]:
        ones = np.ones(len(self._samples))
        if used < 2:
            return ones, f"{name}: too few regions with reads, not normalized"
        note = ""
        factors = self._measured(statistics)
        if np.isnan(factors).any():
            factors = self._totals
            note = f"{name}: a sample has no reads, all are normalized by their reads elsewhere"
        if not factors.all():
            raise ChromosomeError(
                f"{name}: the size factor of {SAMPLE} is 0; leave out samples or chromosomes with "
                "so few reads, chromosome Y for example",
                self._samples[int(np.argmin(factors))],
            )
        scale = self._target(statistics, factors) / factors
        if self._options.norm_type == "poisson":
            dispersion = statistics.dispersion(scale)
            if np.isnan(dispersion):
                raise ChromosomeError(
                    f"{name}: all samples have the same counts, no variance can be estimated"
                )
            if not dispersion:
                return ones, f"{name}: the variance is mostly far below the mean, not normalized"
            scale = scale / dispersion
        return scale, note

    def _measured(self, statistics: Statistics) -> Floats:
        match self._options.statistic:
            case "mean":
                return statistics.means()
            case "median":
                return statistics.quantiles(0.5)
            case "quant":
                return statistics.quantiles(self._options.size_factor_quantile)
            case _:
                return statistics.modes()

    def _target(self, statistics: Statistics, factors: Floats) -> float:
        match self._options.norm_type:
            case "median":
                return float(np.median(factors))
            case "quant":
                return float(np.quantile(factors, self._options.norm_quantile))
            case "mode":
                return statistics.mode()
            case _:
                return float(mean(factors.tolist()))  # exact, rounded once: R's has 64 bits
