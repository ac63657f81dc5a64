"""The CUDA kernels of copy numbers on one emulated GPU."""

from typing import Any

import numpy as np
import pytest
from emulation import emulated

from multigpu.workloads.cnv import work
from multigpu.workloads.cnv.stages.backends import Fetch, KernelBackend, Staging


class EmulatedBackend(KernelBackend):
    """All kernels on one emulated GPU, on which arrays stay."""

    def __init__(self) -> None:
        gpu, normalizer = emulated.load("normalization")
        names = ("cnmops", "segmentation", "hmm")
        others = [emulated.load(name, gpu)[1] for name in names]
        self.use(normalizer, *others)
        self._cupy = normalizer.cupy
        self._staging = Staging(lambda size: np.full(size, 255, np.uint8))

    def put(self, array: Any) -> Any:
        return self._cupy.asarray(array)

    def get(self, array: Any) -> Any:
        return array.get() if hasattr(array, "get") else array

    def assign(self, whole: Any, rows: slice, values: Any) -> None:
        whole[rows] = self.get(values)

    def fetch(self, array: Any) -> Fetch:
        return self._staging.fetch(array)

    def close(self) -> None:
        self._staging.close()


def use_emulated_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs in this process use an emulated GPU, or skip the test where there is none."""
    if emulated.why_not():
        pytest.skip(emulated.why_not())
    device = EmulatedBackend()
    monkeypatch.setattr(work, "open_backend", lambda place, threads: device)
