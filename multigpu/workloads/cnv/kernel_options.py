"""Options of a run as the options of each kernel."""

from multigpu.kernels.cnmops import Model
from multigpu.kernels.normalization import Normalization
from multigpu.kernels.segmentation import Circular, Segmentation
from multigpu.workloads.cnv.options import CnvOptions

CBS_WIDEST = 5  # widest least width of a segment that circular binary segmentation takes


def normalization_options(options: CnvOptions, ploidy: tuple[int, ...] | None) -> Normalization:
    """Return how counts are normalized, with the ploidy of each column."""
    return Normalization(
        norm_type=options.norm_type,
        size_factor=options.size_factor,
        norm_quantile=options.norm_quantile,
        size_factor_quantile=options.size_factor_quantile,
        ploidy=ploidy,
    )


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


def segmentation_options(options: CnvOptions) -> Segmentation:
    """Return the options of R's fast segmentation."""
    return Segmentation(
        alpha=options.seg_alpha,
        eps=options.seg_eps,
        delta=options.seg_delta,
        max_window=options.seg_max_window,
        min_segment=options.min_width,
        cyber_weight=options.seg_cyber_weight,
        thresholds=options.seg_limits,
    )


def cbs_options(options: CnvOptions) -> Circular:
    """Return the options of circular binary segmentation."""
    return Circular(min_width=min(max(options.min_width, 2), CBS_WIDEST), seed=options.seed)
