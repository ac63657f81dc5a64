"""The Python function `multigpu.cnv`."""

from multigpu.errors import UsageError, option
from multigpu.run.declarations import function_of
from multigpu.workloads.cnv.opening import open_job
from multigpu.workloads.cnv.options import GATK_SV
from multigpu.workloads.cnv.request import CnvRequest
from multigpu.workloads.cnv.results import matrices
from multigpu.workloads.cnv.results.result import CnvResult


@function_of(CnvRequest)
def cnv(request: CnvRequest) -> CnvResult:
    """Return the copy-number variants of a cohort, by cn.MOPS or a hidden Markov model.

    {options}

    Raises UsageError and InputError for wrong options and files.
    """
    if request.preset == GATK_SV:
        command = "multigpu cnv MATRIX --preset gatk-sv -o DIR"
        raise UsageError(f"{option('preset')} {GATK_SV} is for the command line: {command}")
    keep = matrices.names(request.posterior) if request.keep_matrices else ()
    return open_job(request).result(keep)
