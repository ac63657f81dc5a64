"""Summary of a copy-number run as JSON: the entries that only this kind of run has."""

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from multigpu.formats.storage.compressed import compressed_output
from multigpu.run.job import Job
from multigpu.run.summary import summary
from multigpu.workloads.cnv.output.folder import COUNTS, FILES
from multigpu.workloads.cnv.request import CnvRequest
from multigpu.workloads.cnv.results.qc import known_value
from multigpu.workloads.cnv.results.result import CnvResult


def write_cnv_summary(
    path: str, job: Job, result: CnvResult, request: CnvRequest, folder: str, started: float
) -> None:
    """Write the summary of a finished run; `started` is a time of `events.now`."""
    finished = SimpleNamespace(
        devices=job.devices,
        options=result.options,
        stats=job.stats,
        chunk_plan=SimpleNamespace(
            chunk_bytes=job.run.chunk_bytes(),
            lanes=job.capacity.lanes,
            device_bytes=None,
            # Only workers elsewhere know their memory.
            budget=None if job.remote else int(job.capacity.free * job.run.memory_fraction),
        ),
        summary_entries=partial(_entries, job, result, request),
    )
    facts = summary(finished, folder, "folder", started)
    names = (*FILES, *([COUNTS] if request.cases.is_alignments else []))
    files = [Path(folder) / name for name in names]
    inside = [path for place in files if place.is_dir() for path in place.rglob("*")]
    facts["output"]["bytes"] = sum(_file_bytes(path) or 0 for path in (*files, *inside))
    with compressed_output(path) as file:
        file.write(json.dumps(facts, indent=2).encode() + b"\n")


def _entries(job: Job, result: CnvResult, request: CnvRequest) -> dict[str, Any]:
    names = (*result.samples, *result.controls)

    def by_name(values: Sequence[Any]) -> dict[str, Any]:  # the cases come first
        return dict(zip(names, values, strict=False))

    shares = result.sex_coverage.shares() if result.sex_coverage else []
    xy = [{"x": known_value(x), "y": known_value(y)} for x, y in shares]
    cnvs_of = np.bincount(result.called.sample, minlength=len(result.samples)).tolist()
    return {
        "inputs": [_file(path) for path in request.cases.paths],
        "control_inputs": [_file(path) for path in request.control_paths],
        "counting": request.counting_parameters,
        "samples": list(result.samples),
        "controls": list(result.controls),
        "sex": by_name(result.sex),
        "sex_coverage": by_name(xy),
        "ploidy": None if result.ploidy is None else by_name(result.ploidy),
        "regions": len(result.regions),
        "chromosomes": job.stats.chunks,
        "resumed": job.stats.resumed,
        "segments": len(result.segments),
        "cnvs": len(result.called),
        "cnv_regions": len(result.called_regions),
        "cnvs_by_sample": by_name(cnvs_of),
        "qc": result.qc.records(),
        "notes": list(result.notes),
    }


def _file(path: str) -> dict[str, Any]:
    return {"path": path, "size": _file_bytes(Path(path))}


def _file_bytes(path: Path) -> int | None:
    """Return the size of a file; None for a pipe, and for a file that is gone."""
    with suppress(OSError):
        return path.stat().st_size if path.is_file() else None
    return None
