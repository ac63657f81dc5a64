"""What a scan was, as JSON."""

import json
import platform
import time
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multigpu import __version__
from multigpu.io.compressed import compressed_output

if TYPE_CHECKING:
    from multigpu.api import ScanJob

PACKAGES = ("numpy", "numba", "dask", "distributed", "dask-cuda", "cupy-cuda12x", "cupy-cuda13x")


def write_summary(path: str, job: "ScanJob", fmt: str, output: str | None, started: float) -> None:
    """Write the facts of a finished scan; `started`: time.time() of its beginning."""
    with compressed_output(path) as file:
        file.write(json.dumps(_summary(job, fmt, output, started), indent=2).encode() + b"\n")


def _summary(job: "ScanJob", fmt: str, output: str | None, started: float) -> dict[str, Any]:
    facts, plan = job.facts, job.chunk_plan
    assert plan is not None  # it ran
    finished = time.time()
    return {
        "version": 1,
        "program": {"multigpu": __version__, "python": platform.python_version(), **versions()},
        "options": asdict(job.options),
        "samples": [asdict(source) for source in job.sources],
        "signatures": len(job.signatures),
        "records": facts.records,
        "bases": facts.bases,
        "hits": facts.hits,
        "output": {
            "path": output,
            "format": fmt,
            "bytes": Path(output).stat().st_size if output and Path(output).is_file() else None,
        },
        "devices": [asdict(device) for device in job.devices],
        "workers": sorted({worker for worker, *_ in facts.spans}),
        "chunks": {"run": facts.chunks, "bytes": plan.chunk_bytes, "lanes": plan.lanes},
        "memory": {"device_bytes": plan.device_bytes, "budget_bytes": plan.budget},
        "seconds": {
            "wall": finished - started,
            **{f"{name} (all threads)": value for name, value in facts.seconds.items()},
        },
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
    }


def versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
