"""Results with CNVs that a test chooses, and bcftools to read what is written of them."""

import shutil
import subprocess
from dataclasses import replace
from typing import Any

import numpy as np
import pysam.bcftools

from multigpu.formats.alignments.regions import Regions
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import SegmentTable
from multigpu.workloads.cnv.results.copy_numbers import classes_by_usual_copies
from multigpu.workloads.cnv.results.result import CnvResult
from support.cohorts import result


def with_cnvs(
    *rows: tuple[int, int, str, int], names: tuple[str, ...] = ("chr1",),
    usual: tuple[int, ...] = (2, 2, 2), **changes: Any,
) -> CnvResult:  # fmt: skip
    """A result with CNVs (start, end, sample, class) of samples a, b, c on the last chromosome."""
    samples, count = ("a", "b", "c"), len(rows)
    start, end = (np.array([row[k] for row in rows], np.int64) for k in (0, 1))
    base = int(start.min())
    sample = np.array([samples.index(row[2]) for row in rows], np.int32)
    copies = np.array([row[3] for row in rows], np.int32)
    chrom = np.full(count, len(names) - 1, np.int32)
    mean = (copies - 2) / 2
    own = np.array(usual)[sample]
    segments = SegmentTable.uncalled(
        chrom=chrom, sample=sample, first=(start - base) // 10, stop=(end - base) // 10,
        start=start, end=end, mean=mean, median=mean + 0.25,
    )  # fmt: skip
    table = replace(
        segments, copy_number=copies, shown=classes_by_usual_copies(CnvOptions())[own, copies],
        cnv=np.ones(count, np.bool_),
    )  # fmt: skip
    begins = np.arange(base, end.max(), 10)
    place = Regions(names, np.full(len(begins), len(names) - 1, np.int32), begins, begins + 10)
    changes.setdefault("classes", np.full((count, 3), 2, np.int8))
    every = np.tile(np.array(usual, np.int8), (count, 1))
    return replace(result(), regions=place, samples=samples, segments=table, usual=every, **changes)


def bcftools(command: str, *arguments: str) -> str:
    """Return what bcftools writes; it must not complain. pysam brings it along, too."""
    if program := shutil.which("bcftools"):
        words = [program, command, *arguments]
        run = subprocess.run(words, check=False, capture_output=True, text=True)
        assert (run.returncode, run.stderr) == (0, "")
        return run.stdout
    own = getattr(pysam.bcftools, command)
    written = str(own(*arguments))
    assert own.get_messages() in ("", None)
    return written
