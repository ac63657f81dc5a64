"""Golden copy-number cases with the CUDA kernels on an emulated GPU: arrays stay on the device."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emulation import emulated
from support.cohorts import CPU, SEXES, of_sexes
from support.golden_cnv import load

from multigpu.formats.tables.counts import read_counts
from multigpu.run.options import RunOptions
from multigpu.workloads.cnv import work as cnv
from multigpu.workloads.cnv.backends import Backend, CpuBackend, Fetch, Staging
from multigpu.workloads.cnv.job import CnvJob
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.output import matrices
from multigpu.workloads.cnv.result import CnvResult

CASES: dict[str, dict[str, Any]] = {
    "two_samples": {},
    "norm2": {"norm": 2},
    "reference_multi_posterior": {"model": "reference", "prior_impact": 5.0, "posterior": True,
                                  "segmentation": "fast"},
    "reference_norm2": {"model": "reference", "norm": 2, "segmentation": "fast"},
    "single_granges": {"model": "single", "posterior": True},
}  # fmt: skip
LIMIT = 1e-9

Job = Callable[..., CnvResult]


class EmulatedBackend(CpuBackend):
    """The three CUDA kernels on one emulated GPU."""

    def __init__(self) -> None:
        gpu, self.normalization = emulated.load("normalization")
        _, self.cnmops = emulated.load("cnmops", gpu)
        _, self.segmentation = emulated.load("segmentation", gpu)
        self.kernel_arguments = self.normalization_arguments = {}
        self._staging = Staging(lambda size: np.full(size, 255, np.uint8))

    def put(self, array: Any) -> Any:
        return self.normalization.cupy.asarray(array)

    def get(self, array: Any) -> Any:
        return array.get() if hasattr(array, "get") else array

    def fetch(self, array: Any) -> Fetch:
        return self._staging.fetch(array)

    def close(self) -> None:
        self._staging.close()


@pytest.fixture(scope="module")
def device() -> Backend:
    if emulated.why_not():
        pytest.skip(emulated.why_not())
    return EmulatedBackend()


@pytest.mark.parametrize("chunk", [1 << 26, 3000], ids=["whole", "pieces"])
@pytest.mark.parametrize("name", CASES)
def test_emulated__as_on_the_cpu(
    name: str, chunk: int, golden: Any, device: Backend, tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    written = load(golden, name).write(tmp_path)
    options = CnvOptions.of(compat_r=True, **{"model": "cn.mops", **CASES[name]})
    controls = read_counts(written[2]) if len(written) > 1 else None
    run = RunOptions(gpus="none", max_chunk_bytes=chunk)

    def result() -> CnvResult:
        job = CnvJob(read_counts(written[0]), options, run, controls=controls)
        return job.result(keep=matrices.names(options.posterior))

    here = result()
    monkeypatch.setattr(cnv, "open_backend", lambda place, threads: device)
    there = result()
    assert there.cnvs.num_rows == here.cnvs.num_rows > 0
    for table in ("segmentation", "cnv_regions"):
        ours, theirs = getattr(there, table), getattr(here, table)
        for column in set(ours.column_names) - {"mean", "median"}:
            assert ours[column].equals(theirs[column])
    for matrix, values in here.matrices.items():
        np.testing.assert_allclose(there.matrices[matrix], values, rtol=LIMIT, atol=1e-12)


def test_emulated__sex_chromosomes(device: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    def result() -> CnvResult:
        return CnvJob(of_sexes(), CnvOptions(), CPU, sexes=SEXES).result(keep=("normalized",))

    here = result().matrices["normalized"]
    monkeypatch.setattr(cnv, "open_backend", lambda place, threads: device)
    np.testing.assert_allclose(result().matrices["normalized"], here, rtol=1e-12)
