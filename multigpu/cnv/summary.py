"""Summary of a copy-number run as JSON: the entries that only this kind of run has."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from multigpu.cnv.job import CnvJob
from multigpu.cnv.output.folder import COUNTS, FILES
from multigpu.cnv.request import CnvRequest
from multigpu.cnv.result import CnvResult
from multigpu.formats.storage.compressed import compressed_output
from multigpu.run.summary import summary

COVERAGE_DIGITS = 4


class FinishedCnvRun:
    """A run that has ended, as `multigpu.run.summary` takes it."""

    def __init__(self, job: CnvJob, result: CnvResult, request: CnvRequest) -> None:
        self.cohort, self.result, self.request = job.cohort, result, request
        self.devices, self.options, self.facts = job.devices, job.options, job.facts
        # Only workers elsewhere know their memory.
        budget = None if job.remote else int(job.free_here() * job.run.memory_fraction)
        self.chunk_plan = SimpleNamespace(
            chunk_bytes=job.run.chunk_bytes(),
            lanes=job.capacity.lanes,
            device_bytes=None,
            budget=budget,
        )

    def summary_entries(self) -> dict[str, Any]:
        """Return the input, the samples and the results, as JSON."""
        cohort, result, facts = self.cohort, self.result, self.facts
        cnvs_of = np.bincount(result.called.sample, minlength=len(result.samples)).tolist()
        names = cohort.names
        controls = self.request.controls.paths if self.request.controls else ()
        return {
            "inputs": [_file(path) for path in self.request.cases.paths],
            "control_inputs": [_file(path) for path in controls],
            "counting": self.request.counting_parameters,
            "samples": list(cohort.cases),
            "controls": list(cohort.controls),
            "sex": _by_name(names, cohort.sexes) if cohort.sexes else {},
            "sex_coverage": self._sex_coverage(),
            "ploidy": None if cohort.ploidy is None else _by_name(names, cohort.ploidy),
            "regions": len(result.regions),
            "chromosomes": facts.chunks,
            "resumed": facts.resumed,
            "segments": len(result.segments),
            "cnvs": len(result.called),
            "cnv_regions": len(result.called_regions),
            "cnvs_by_sample": _by_name(result.samples, cnvs_of),
            "notes": list(result.notes),
        }

    def _sex_coverage(self) -> dict[str, Any]:
        """Return the coverage of X and Y of every sample whose sex was inferred."""
        found = self.cohort.sex_coverage
        if found is None:
            return {}
        y = found.y if found.y is not None else np.full(len(found.x), np.nan)
        pairs = zip(found.x.tolist(), y.tolist(), strict=True)
        shares = [{"x": _number_or_none(x), "y": _number_or_none(y)} for x, y in pairs]
        return _by_name(self.cohort.names, shares)


def write_cnv_summary(
    path: str, job: CnvJob, result: CnvResult, request: CnvRequest, folder: str, started: float
) -> None:
    """Write the summary of a finished run; `started` is a time of `events.now`."""
    run = FinishedCnvRun(job, result, request)
    facts = summary(run, folder, "folder", started)
    facts["output"]["bytes"] = _written_bytes(folder, request.cases.is_alignments)
    with compressed_output(path) as file:
        file.write(json.dumps(facts, indent=2).encode() + b"\n")


def _number_or_none(value: float) -> float | None:
    return None if np.isnan(value) else round(value, COVERAGE_DIGITS)


def _by_name(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(names, values, strict=True))


def _file(path: str) -> dict[str, Any]:
    return {"path": path, "size": _file_bytes(Path(path))}


def _file_bytes(path: Path) -> int | None:
    """Return the size of a file; None for a pipe, and for a file that is gone."""
    with suppress(OSError):
        return path.stat().st_size if path.is_file() else None
    return None


def _written_bytes(folder: str, with_counts: bool) -> int:
    """Return the size of the files that a run has written."""
    files = [Path(folder) / name for name in (*FILES, *([COUNTS] if with_counts else []))]
    inside = [path for place in files if place.is_dir() for path in place.rglob("*")]
    return sum(_file_bytes(path) or 0 for path in (*files, *inside))
