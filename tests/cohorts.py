"""Small simulated cohorts and what comes of them."""

from functools import cache
from typing import Any

from multigpu.config import RunOptions
from multigpu.copynumber import matrices
from multigpu.copynumber.job import CnvJob
from multigpu.copynumber.options import CnvOptions
from multigpu.copynumber.result import CnvResult
from multigpu.io.counts import Counts
from multigpu.simulate_counts import Cohort, Truth, cohort_counts

SMALL: dict[str, Any] = {
    "regions": 1500, "samples": 6, "chromosomes": 3, "coverage": 80.0, "dispersion": 0.005,
    "cnvs": 12, "min_length": 5, "max_length": 40, "max_carriers": 2, "width": 25_000, "seed": 1,
}  # fmt: skip
CPU = RunOptions(gpus="none")


@cache
def cohort(**changes: Any) -> tuple[Counts, Truth]:
    """Counts and what was planted."""
    return cohort_counts(Cohort(**{**SMALL, **changes}))


@cache
def result(**changes: Any) -> CnvResult:
    """All matrices and some figures of a small cohort, with the defaults of cn.mops."""
    counts, _ = cohort(**changes)
    job = CnvJob(counts, CnvOptions(), CPU)
    return job.result(keep=matrices.names(posterior=False), shown=4)
