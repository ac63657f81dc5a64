"""Quality of samples: what the table says, and who is an outlier."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.called import with_cnvs

from multigpu.workloads.cnv.output import text_files
from multigpu.workloads.cnv.records import SampleFacts
from multigpu.workloads.cnv.results.qc import QcTable
from multigpu.workloads.cnv.results.result import CnvResult
from multigpu.workloads.cnv.samples.sex import Coverage

CNVS = [(100, 300, "a", 1), (500, 600, "a", 3), (100, 900, "b", 4)]


def facts(**changes: Any) -> SampleFacts:
    """Facts about three samples that are much alike."""
    usual: dict[str, Any] = {"reads": [1e6, 1.1e6, 9e5], "references": [0, 0, 0]}
    usual |= {"correlation": [0.9, 0.91, 0.89], "noise": [0.1, 0.11, 0.09]}
    columns = {name: np.array(values, float) for name, values in {**usual, **changes}.items()}
    columns["references"] = columns["references"].astype(np.int32)
    return SampleFacts(**columns)


def table(found: CnvResult) -> list[dict[str, str]]:
    head, *lines = (line.split("\t") for line in text_files.qc_tsv(found.qc).decode().splitlines())
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_table__has_reads_noise_calls_and_sex() -> None:
    found = with_cnvs(
        *CNVS,
        facts=facts(references=[0, 2, 2]),
        sex=("male", "", "female"),
        sex_coverage=Coverage(x=np.array([0.5, np.nan, 1.0]), y=np.array([0.5, np.nan, 0.01])),
    )
    first, second, third = table(found)
    assert first == {
        "sample": "a", "reads": "1000000", "noise": "0.1", "correlation": "0.9",
        "references": "2", "losses": "1", "gains": "1", "bases": "300", "sex": "male",
        "x": "0.5", "y": "0.5", "outlier": "no",
    }  # fmt: skip
    assert (second["sex"], second["x"], second["y"], second["gains"]) == ("NA", "NA", "NA", "1")
    assert (third["losses"], third["gains"], third["bases"]) == ("0", "0", "0")
    rows = found.qc.records()
    assert (rows[0]["bases"], rows[1]["x"], rows[2]["y"]) == (300, None, 0.01)
    section = json.loads(text_files.qc_multiqc(found.qc))
    assert (section["plot_type"], list(section["data"])) == ("table", ["a", "b", "c"])
    assert section["data"]["a"]["reads"] == 1e6
    assert "x" not in section["data"]["b"]  # MultiQC shows a gap


@pytest.mark.parametrize(("changes", "why"), [
    ({"reads": [2e5, 1e6, 9e5]}, "few reads"),
    ({"noise": [0.3, 0.1, 0.1]}, "noisy"),
    ({"noise": [np.nan, 0.1, 0.1]}, ""),
    ({"correlation": [0.7, 0.9, 0.91]}, "low correlation"),
    ({"correlation": [0.85, 0.9, 0.91]}, ""),
    ({"reads": [2e5, 1e6, 9e5], "noise": [0.3, 0.1, 0.1]}, "few reads, noisy"),
])  # fmt: skip
def test_outliers__are_told_with_the_reason(changes: dict[str, Any], why: str) -> None:
    found = with_cnvs(*CNVS, facts=facts(**changes))
    assert found.qc.outlier.tolist() == [why, "", ""]


def test_outliers__of_calls() -> None:
    many = [(at, at + 10, "a", 1) for at in range(0, 220, 20)]
    assert with_cnvs(*many).qc.outlier.tolist() == ["many calls", "", ""]
    assert with_cnvs(*many[:10]).qc.outlier.tolist() == ["", "", ""]
    # Others are needed to be compared with.
    found = with_cnvs(*CNVS, facts=facts(reads=[1, 1e6, 1e6]))
    few = found.segments.take(found.segments.sample < 2)
    two = replace(found, samples=found.samples[:2], segments=few)
    assert QcTable.of(two).outlier.tolist() == ["", ""]
    assert all(
        line.endswith(b"\tNA") for line in text_files.qc_tsv(QcTable.of(two)).splitlines()[1:]
    )
