"""Summary of a finished job, as JSON."""

import json
import platform
import time
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from multigpu import __version__
from multigpu.cluster.engine.events import now
from multigpu.formats.storage.compressed import compressed_output

PACKAGES = (
    "numpy", "numba", "dask", "distributed", "dask-cuda", "cupy", "cupy-cuda12x",
    "cupy-cuda13x", "rdkit",
)  # fmt: skip


def write_summary(path: str, job: Any, output: str | None, fmt: str, started: float) -> None:
    """Write the summary of a finished job; `started`: when it began, by `now`."""
    with compressed_output(path) as file:
        text = json.dumps(summary(job, output, fmt, started), indent=2)
        file.write(text.encode() + b"\n")


def summary(job: Any, output: str | None, fmt: str, started: float) -> dict[str, Any]:
    """Return the summary of a finished job of any workload, ready for JSON."""
    stats, plan = job.stats, job.chunk_plan
    finished = now()
    return {
        "version": 1,
        "program": {"multigpu": __version__, "python": platform.python_version(), **versions()},
        "options": asdict(job.options),
        **job.summary_entries(),
        "output": {
            "path": output,
            "format": fmt,
            "bytes": Path(output).stat().st_size if output and Path(output).is_file() else None,
        },
        "devices": [asdict(device) for device in job.devices],
        "workers": dict(sorted(stats.workers.items())),
        "events": stats.events,
        "chunks": {
            "run": stats.chunks,
            "resumed": stats.resumed,
            "bytes": plan.chunk_bytes,
            "lanes": plan.lanes,
        },
        "memory": {"device_bytes": plan.device_bytes, "budget_bytes": plan.budget},
        "seconds": {
            "wall": finished - started,
            **{f"{name} (all threads)": value for name, value in stats.seconds.items()},
        },
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
    }


def versions() -> dict[str, str]:
    """Return the versions of the installed packages that results or speed depend on."""
    found = {}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
