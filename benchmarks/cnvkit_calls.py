"""Calls of CNVkit, in a Python that has it: a path of a cohort on each line in, calls of it out.

Run by `cnv_truth.py --cnvkit PYTHON`. As for germline panels in CNVkit's documents: a pooled
reference of all samples, without antitargets, GC from the cohort; segments by `hmm-germline`, and
copy numbers by its thresholds.
"""

import contextlib
import json
import logging
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import cnvlib
import numpy as np
import pandas as pd
from cnvlib import call, fix, reference, segmentation
from cnvlib.cnary import CopyNumArray

READ = 100  # bases, by which counts become depths
METHOD = "hmm-germline"
LEAST_LOG = -20.0  # CNVkit's logarithm of no depth


def write_depths(cohort: Any, sample: int, folder: str) -> str:
    """Write the depths of a sample, as `cnvkit.py coverage` does; return the path."""
    depth = cohort["counts"][:, sample] * READ / (cohort["end"] - cohort["start"])
    columns = {
        "chromosome": cohort["names"][cohort["chrom"]],
        "start": cohort["start"],
        "end": cohort["end"],
        "gene": "-",
        "gc": cohort["gc"],
        "depth": depth,
        "log2": np.log2(np.maximum(depth, 2.0**LEAST_LOG)),
    }
    path = str(Path(folder, f"s{sample:03}.targetcoverage.cnn"))
    pd.DataFrame(columns).to_csv(path, sep="\t", index=False)
    return path


def usual_copies(name: str, is_woman: bool) -> int:
    """Return the copies of a chromosome that are usual."""
    return {"chrX": 1 + is_woman, "chrY": 1 - is_woman}.get(name, 2)


def calls(path: str) -> list[tuple[int, int, int, int]]:
    """Return (first, stop, sample, sign) of every call in a cohort."""
    with np.load(path) as file:
        cohort = dict(file)
    begin = {name: np.searchsorted(cohort["chrom"], k) for k, name in enumerate(cohort["names"])}
    rows: list[tuple[int, int, int, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        paths = [write_depths(cohort, k, folder) for k in range(cohort["counts"].shape[1])]
        pool = reference.do_reference(paths, do_rmask=False)
        for sample, each in enumerate(paths):
            ratios = fix.do_fix(cnvlib.read(each), CopyNumArray([]), pool, do_rmask=False)
            segments = segmentation.do_segmentation(ratios, METHOD)
            is_woman = bool(segments.guess_xx(verbose=False) or "chrX" not in begin)
            found = call.do_call(segments, method="threshold", is_sample_female=is_woman)
            for row in found.data.itertuples():
                here = cohort["chrom"] == np.flatnonzero(cohort["names"] == row.chromosome)[0]
                first = np.searchsorted(cohort["start"][here], row.start)
                stop = np.searchsorted(cohort["start"][here], row.end)
                sign = int(np.sign(row.cn - usual_copies(row.chromosome, is_woman)))
                place = begin[row.chromosome]
                if sign and stop > first:
                    rows.append((int(place + first), int(place + stop), sample, sign))
    return rows


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable()
    for line in sys.stdin:
        with contextlib.redirect_stdout(sys.stderr):
            found = calls(line.strip())
        print(json.dumps(found), flush=True)


main()
