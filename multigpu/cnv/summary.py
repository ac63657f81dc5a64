"""What a copy-number run was, as JSON."""

import json
import platform
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from multigpu import __version__
from multigpu.cluster.engine.events import now
from multigpu.cnv.job import CnvJob
from multigpu.cnv.output.folder import COUNTS, OURS
from multigpu.cnv.result import CnvResult
from multigpu.cnv.samples.cohort import Given
from multigpu.formats.storage.compressed import compressed_output
from multigpu.run.summary import versions

COVERAGE_DIGITS = 4


def write(
    path: str, job: CnvJob, result: CnvResult, given: Given, output: str, started: float
) -> None:
    """Write the facts of a finished run; `started`: when it began, by `now`."""
    with compressed_output(path) as file:
        text = json.dumps(facts(job, result, given, output, started), indent=2)
        file.write(text.encode() + b"\n")


def facts(
    job: CnvJob, result: CnvResult, given: Given, output: str, started: float
) -> dict[str, Any]:
    done, calls = job.facts, result.called
    return {
        "version": 1,
        "program": {"multigpu": __version__, "python": platform.python_version(), **versions()},
        "options": asdict(job.options),
        **_told(job, result, given),
        "regions": len(result.regions),
        "chromosomes": done.chunks,
        "resumed": done.resumed,
        "events": done.events,
        "segments": len(result.segments),
        "cnvs": len(calls),
        "cnv_regions": len(result.called_regions),
        "cnvs_by_sample": _by_name(
            result.samples, np.bincount(calls.sample, minlength=len(result.samples)).tolist()
        ),
        "notes": list(result.notes),
        "output": {"path": output, "format": "folder", "bytes": _folder_bytes(output, given)},
        "devices": [asdict(device) for device in job.devices],
        "workers": dict(sorted(done.workers.items())),
        "chunks": {
            "run": done.chunks,
            "resumed": done.resumed,
            "bytes": job.run.chunk_bytes(),
            "lanes": job.capacity.lanes,
        },
        "memory": {"budget_bytes": _budget(job)},
        "seconds": {
            "wall": now() - started,
            **{f"{name} (all threads)": value for name, value in done.seconds.items()},
        },
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
    }


def _told(job: CnvJob, result: CnvResult, given: Given) -> dict[str, Any]:
    """What went in, and what is known of the samples."""
    return {
        "inputs": [_file(path) for path in given.cases],
        "control_inputs": [_file(path) for path in given.controls],
        "counting": dict(given.counting),
        "samples": list(result.samples),
        "controls": list(job.names[len(result.samples) :]),
        "sex": _by_name(job.names, job.sexes) if job.sexes else {},
        "sex_coverage": _coverages(job),
        "ploidy": None if job.ploidy is None else _by_name(job.names, job.ploidy),
    }


def _coverages(job: CnvJob) -> dict[str, Any]:
    """Of X and Y by that of the autosomes, of every sample whose sex was inferred."""
    if (found := job.coverage) is None:
        return {}
    y = found.y if found.y is not None else np.full(len(found.x), np.nan)
    pairs = zip(found.x.tolist(), y.tolist(), strict=True)
    return _by_name(job.names, [{"x": _known(x), "y": _known(y)} for x, y in pairs])


def _known(value: float) -> float | None:
    return None if np.isnan(value) else round(value, COVERAGE_DIGITS)


def _by_name(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(names, values, strict=True))


def _file(path: str) -> dict[str, Any]:
    """Its stored bytes; None for pipes, and where it is gone."""
    return {"path": path, "size": _bytes(Path(path))}


def _bytes(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_size if path.is_file() else None
    return None


def _folder_bytes(folder: str, given: Given) -> int:
    """Of the files that a run has written there."""
    names = [*OURS, *([COUNTS] if given.counted else [])]
    files = [Path(folder) / name for name in names]
    inside = [path for place in files if place.is_dir() for path in place.rglob("*")]
    return sum(_bytes(path) or 0 for path in (*files, *inside))


def _budget(job: CnvJob) -> int | None:
    """Bytes that chromosomes may take on a device; None where workers elsewhere know."""
    return None if job.remote else int(job.free_here() * job.run.memory_fraction)
