"""Second stage: the mixture of Poissons that tells how unusual each region of a sample is."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from multigpu.kernels.cnmops import Model, ModelError
from multigpu.kernels.cnmops.reference import level_of_sample
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import Floats
from multigpu.workloads.cnv.stages.backends import Array, KernelBackend
from multigpu.workloads.cnv.stages.chromosome import Chromosome, NotComparable, true_runs

NEEDED = ("sini", "ini")  # results that the next stage takes


@dataclass(frozen=True)
class RunModel:
    """The model of all regions.

    fetched  names of the results that come back to the host
    """

    options: CnvOptions
    backend: KernelBackend
    fetched: tuple[str, ...]
    name: ClassVar[str] = "model"

    def run(self, chromosome: Chromosome) -> Chromosome:
        """Add `level` and `modelled`: on the host where it comes piece by piece and is large."""
        level = self._level(chromosome)
        modelled = self._all_pieces(chromosome, level)
        self.backend.wait()  # else its time is that of the next stage
        return replace(chromosome, level=level, modelled=modelled)

    def _level(self, chromosome: Chromosome) -> Array | None:
        """Return float64[regions]: the level of the controls or of a single sample, or None."""
        counts, cases, par = chromosome.on_device, chromosome.cases, chromosome.par
        if self.options.model == "single":
            try:
                level = level_of_sample(chromosome.counts[~par])
            except ModelError as error:
                raise NotComparable(f"{chromosome.span.name}: {error}") from error
            return self.backend.put(np.full(len(counts), level))
        if self.options.model != "reference":
            return None
        factors = chromosome.scale[cases:] if chromosome.columns.coverages is None else None
        usual, par_usual = (each[cases:] for each in chromosome.coverages)
        level_of = self.backend.level_of_controls
        found = level_of(counts[:, cases:].copy(), factors, usual)
        for rows in true_runs(par):
            found[rows] = level_of(counts[rows, cases:].copy(), factors, par_usual)
        return found

    def _all_pieces(self, chromosome: Chromosome, level: Array | None) -> dict[str, Array]:
        counts, cases, rows = chromosome.on_device, chromosome.cases, chromosome.piece_rows
        has_coverages = chromosome.columns.coverages is not None
        scale = np.ones(cases) if has_coverages else chromosome.scale[:cases]
        x = counts if counts.shape[1] == cases else counts[:, :cases].copy()
        coverages, par_coverages = (each[:cases] for each in chromosome.coverages)
        if self.options.model == "haplo":  # R's haploid model of all regions takes no coverages
            coverages = par_coverages = np.ones(cases)

        def model(piece: slice, coverages: Floats) -> dict[str, Array]:
            return self._model(x[piece], None if level is None else level[piece], coverages, scale)

        whole: dict[str, Array] = {}
        for begin in range(0, len(x), rows):
            piece = slice(begin, min(begin + rows, len(x)))
            found = model(piece, coverages)
            for run in true_runs(chromosome.par[piece]):
                again = model(slice(begin + run.start, begin + run.stop), par_coverages)
                for name, values in again.items():
                    found[name][run] = values
            if len(x) <= rows:
                return found
            for name in sorted({*self.fetched, *NEEDED} & set(found)):
                if not begin:
                    shape = len(x), *found[name].shape[1:]
                    whole[name] = self.backend.empty(shape, found[name].dtype)
                self.backend.assign(whole[name], piece, found[name])
        return whole

    def _model(
        self, counts: Array, level: Array | None, coverages: Floats, scale: Floats
    ) -> dict[str, Array]:
        how = coverages, model_options(self.options), scale
        if level is None:
            result = self.backend.model(counts, *how)
        else:
            result = self.backend.model_against(counts, level, *how)
        found: dict[str, Any] = {
            name: getattr(result, name) for name in ("sini", "ini", "alpha", "posterior")
        }
        found["copy_number"] = result.cn_index
        if "lambda" in self.fetched:
            found["lambda"] = result.lambda_
        return {name: values for name, values in found.items() if values is not None}


def model_options(options: CnvOptions) -> Model:
    """Return the options of the mixture model."""
    return Model(
        fold_changes=options.fold_changes,
        main=options.main,
        prior_impact=options.prior_impact,
        cycles=options.cycles,
        min_read_count=options.min_read_count,
        posterior=options.posterior,
        kind=options.model if options.model in ("single", "reference") else "cohort",
        compat_r=options.compat_r,
    )
