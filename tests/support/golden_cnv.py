"""The golden copy-number cases as the program's input: tables, options, expected rows."""

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from multigpu.kernels.cnmops.types import FOLD_CHANGES, Model

OPTIONS = {  # R's parameters as options of the command
    "I": "fold-changes", "classes": "classes", "priorImpact": "prior-impact", "cyc": "cycles",
    "norm": "norm", "normType": "norm-type", "sizeFactor": "size-factor",
    "normQu": "norm-quantile", "quSizeFactor": "size-factor-quantile",
    "upperThreshold": "upper", "lowerThreshold": "lower", "minWidth": "min-width",
    "segAlgorithm": "segmentation", "minReadCount": "min-read-count", "useMedian": "use-median",
    "returnPosterior": "posterior", "alpha": "seg-alpha", "eps": "seg-eps", "delta": "seg-delta",
    "maxInt": "seg-max-window", "cyberWeight": "seg-cyber-weight", "segMedianT": "seg-median",
}  # fmt: skip
OF_R_ALONE = {"parallel", "verbose"}
MODELS = {
    "cn.mops": "cn.mops", "haplocn.mops": "haplo", "exomecn.mops": "exome",
    "singlecn.mops": "single", "referencecn.mops": "reference",
}  # fmt: skip
R_MODELS = {  # defaults
    "cn.mops": Model(),
    "haplo": Model(
        fold_changes=(0.025, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0), main=1, min_read_count=1
    ),
    "exome": Model(prior_impact=10, min_read_count=1),
    "single": Model(min_read_count=1, kind="single"),
    "reference": Model(
        fold_changes=(*FOLD_CHANGES, 8.0, 16.0, 32.0, 64.0), min_read_count=1, kind="reference"
    ),
}
SEGMENTATIONS = {"fast": "fast", "DNAcopy": "cbs"}

Row = tuple[str, ...]


def r_model(function: str, **changes: Any) -> Model:
    """Return R's defaults of a function, by our name, with changes."""
    return replace(R_MODELS[function], **changes)


@dataclass(frozen=True)
class Case:
    """One folder of golden data; `facts` is its case.json."""

    folder: Path
    facts: dict[str, Any]

    @property
    def samples(self) -> list[str]:
        """Return names of cases and then controls; R invents them where there are none."""
        count = self.facts["n_columns"]
        given = self.facts.get("column_names") or [f"Sample_{k + 1}" for k in range(count)]
        named = self.facts.get("sample_names", given)
        return [*named, *given[len(named) :]]

    @property
    def cases(self) -> int:
        return int(self.facts.get("n_cases", self.facts["n_columns"]))

    def write(self, folder: Path) -> list[str]:
        """Write the tables to `folder`; return the arguments that name them."""
        with np.load(self.folder / "input.npz") as arrays:
            counts, chrom = arrays["counts"], arrays["chrom"].tolist()
            start, end = np.maximum(arrays["start"] - 1, 0).tolist(), arrays["end"].tolist()
        places = [f"{c}\t{s}\t{e}" for c, s, e in zip(chrom, start, end, strict=True)]
        _write(folder / "counts.tsv", self.samples[: self.cases], places, counts[:, : self.cases])
        if self.cases == counts.shape[1]:
            return [str(folder / "counts.tsv")]
        _write(folder / "control.tsv", self.samples[self.cases :], places, counts[:, self.cases :])
        return [str(folder / "counts.tsv"), "--controls", str(folder / "control.tsv")]

    def options(self) -> list[str]:
        """Return the parameters of the R call as options."""
        given = {**self.facts["parameters"], **self.facts.get("further_arguments", {})}
        words = ["--compat", "r", "--model", MODELS[self.facts["function"]]]
        for name, value in given.items():
            if name not in OF_R_ALONE:
                words += _option(name, value)
        return words

    def rows(self, name: str) -> list[Row]:
        """Return a table of the folder without its header; no rows where R made none."""
        path = self.folder / f"{name}.tsv"
        if not path.exists():
            return []
        return [tuple(line.split("\t")) for line in path.read_text().splitlines()[1:]]

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        with np.load(self.folder / "expected.npz") as stored:
            return dict(stored)


def _option(name: str, value: Any) -> list[str]:
    option = f"--{OPTIONS[name]}"
    if isinstance(value, bool):
        return [option] if value else []
    if isinstance(value, list):
        return [option, ",".join(map(str, value))]
    return [option, SEGMENTATIONS.get(value, str(value)) if name == "segAlgorithm" else str(value)]


def _write(path: Path, samples: list[str], places: list[str], counts: Any) -> None:
    rows = ["\t".join([at, *map(repr, r)]) for at, r in zip(places, counts.tolist(), strict=True)]
    path.write_text("\n".join(["\t".join(["chrom", "start", "end", *samples]), *rows, ""]))


@cache
def load(golden: Path, name: str) -> Case:
    folder = golden / "cnv" / name
    return Case(folder, json.loads((folder / "case.json").read_bytes()))


def names(golden: Path) -> list[str]:
    """Return the names of all cases that call a function of the package on a table."""
    found = sorted(path.parent.name for path in golden.glob("cnv/*/case.json"))
    return [name for name in found if load(golden, name).facts["kind"] == "pipeline"]


def one_based(rows: list[Row]) -> list[Row]:
    """Return rows of our tables with positions as R writes them: from 1, inclusive."""
    return [(row[0], str(int(row[1]) + 1), *row[2:]) for row in rows]


def from_zero(rows: list[Row]) -> list[Row]:
    """Return R's rows with a region that began at 0, which is no position, as if it began at 1."""
    return [(row[0], str(max(1, int(row[1]))), *row[2:]) for row in rows]
