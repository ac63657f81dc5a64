"""The Python function `multigpu.cnv`."""

from multigpu.run.functions import function_of
from multigpu.workloads.cnv.opening import open_job
from multigpu.workloads.cnv.options import SHOWN_REGIONS
from multigpu.workloads.cnv.output import matrices
from multigpu.workloads.cnv.request import CnvRequest
from multigpu.workloads.cnv.result import CnvResult


@function_of(CnvRequest)
def cnv(request: CnvRequest) -> CnvResult:
    """Return the copy-number variants of a cohort, by cn.MOPS.

    {options}

    Raises UsageError and InputError for wrong options and files.
    """
    keep = matrices.names(request.posterior) if request.keep_matrices else ()
    return open_job(request, client=request.client).result(keep, shown=SHOWN_REGIONS)
