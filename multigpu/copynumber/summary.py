"""What a copy-number run was, as JSON."""

import json
import platform
import time
from dataclasses import asdict
from typing import Any

import numpy as np

from multigpu import __version__
from multigpu.copynumber.job import CnvJob
from multigpu.copynumber.result import CnvResult
from multigpu.io.compressed import compressed_output
from multigpu.summary import versions


def write(path: str, job: CnvJob, result: CnvResult, started: float) -> None:
    """Write the facts of a finished run; `started`: time.time() of its beginning."""
    with compressed_output(path) as file:
        file.write(json.dumps(facts(job, result, started), indent=2).encode() + b"\n")


def facts(job: CnvJob, result: CnvResult, started: float) -> dict[str, Any]:
    done, calls = job.facts, result.called
    return {
        "version": 1,
        "program": {"multigpu": __version__, "python": platform.python_version(), **versions()},
        "options": asdict(job.options),
        "samples": list(result.samples),
        "sex": dict(zip(result.samples, result.sex, strict=False)),
        "regions": len(result.regions),
        "chromosomes": done.chunks,
        "resumed": done.resumed,
        "events": done.events,
        "segments": len(result.segments),
        "cnvs": len(calls),
        "cnv_regions": len(result.called_regions),
        "cnvs_by_sample": dict(
            zip(
                result.samples,
                np.bincount(calls.sample, minlength=len(result.samples)).tolist(),
                strict=True,
            )
        ),
        "notes": list(result.notes),
        "devices": [asdict(device) for device in job.devices],
        "workers": dict(sorted(done.workers.items())),
        "seconds": {
            "wall": time.time() - started,
            **{f"{name} (all threads)": value for name, value in done.seconds.items()},
        },
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
    }
