"""Size factors: which statistic of which regions, whatever measures it.

The method is that of the R package cn.mops (Klambauer et al., Nucleic Acids Research 2012, 40:e69);
its answers, not its code, are followed.
"""

from collections.abc import Sequence

import numpy as np

from kernels.normalization.types import (
    DIPLOID,
    Backend,
    Floats,
    Mask,
    Normalization,
    NormalizationError,
    SizeFactors,
    Statistics,
)


def size_factors(
    backend: Backend,
    blocks: Sequence[slice],
    options: Normalization,
    names: Sequence[str],
    totals: Floats | None = None,
) -> SizeFactors:
    """One row for each of `blocks`, the chromosomes; `names` are theirs, for notes and errors.

    totals: float64[samples], reads of each everywhere, where the backend has some chromosomes only.

    Samples of the same ploidy are normalized together, and the groups then scaled so that the
    medians of their normalized counts relate as the ploidies do. A sample that is the only one of
    its ploidy is only scaled.
    """
    ploidy = options.ploidies(backend.shape[1])
    totals = backend.totals() if totals is None else totals
    if not totals.all():
        raise NormalizationError(f"sample {np.argmin(totals) + 1} has no reads")
    factors = np.ones((len(blocks), backend.shape[1]))
    notes: list[str] = []
    medians: dict[float, float] = {}
    rows: Mask = np.ones(0, bool)
    for group in sorted(set(ploidy.tolist()), key=lambda each: (each != DIPLOID, each)):
        members = np.flatnonzero(ploidy == group)
        if len(members) > 1:
            each = _Group(backend, blocks, members.tolist(), totals[members], options)
            factors[:, members] = each.factors(names, notes)
            rows = each.rows
        if len(set(ploidy.tolist())) > 1:
            medians[group] = backend.median(rows, members.tolist(), blocks, factors)
    for group, median in medians.items():
        scaled = medians[DIPLOID] * group / DIPLOID
        if group != DIPLOID and median != scaled:
            factors[:, ploidy == group] *= _ratio(scaled, median)
    return SizeFactors(factors, tuple(dict.fromkeys(notes)))


def _ratio(wanted: float, found: float) -> float:
    if not found or not wanted:
        raise NormalizationError("a ploidy's samples have a median of 0: they cannot be scaled")
    return wanted / found


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
        self.rows: Mask = np.ones(0, bool)  # those of the last chromosome that has any, repeated

    def factors(self, names: Sequence[str], notes: list[str]) -> Floats:
        """float64[chromosomes, samples of the group]; appends to `notes`."""
        out = np.ones((len(self._blocks), len(self._samples)))
        for row, block, name in zip(out, self._blocks, names, strict=True):
            statistics = self._backend.statistics(block, self._samples)
            used = statistics.used()
            if used.any():
                self.rows = np.resize(used, self._backend.shape[0])
                row[:], note = self._of_one(statistics, int(used.sum()), name)
                notes += [note] if note else []
        return out

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
            sample = self._samples[int(np.argmin(factors))]
            raise NormalizationError(
                f"{name}: the size factor of sample {sample + 1} is 0; leave out samples or "
                "chromosomes with so few reads, chromosome Y for example"
            )
        scale = self._target(statistics, factors) / factors
        if self._options.norm_type == "poisson":
            dispersion = statistics.dispersion(scale)
            if np.isnan(dispersion):
                raise NormalizationError(
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
                return float(factors.mean())
