"""The truth table of copy numbers: what counts as found and as false, and a quick run of it."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.program import ROOT, run_python

BENCHMARKS = ROOT / "benchmarks"
EVENT = (10, 20, 0, 1)  # first, stop, sample, copies


@pytest.fixture
def truth(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("cnv_truth")


def calls_of(truth: Any, *rows: tuple[int, int, int, int], genotypes: Any = None) -> Any:
    """Return calls of (first, stop, sample, sign)."""
    first, stop, sample, sign = np.array(rows, np.int64).reshape(-1, 4).T
    return truth.Calls(first=first, stop=stop, sample=sample, sign=sign, genotypes=genotypes)


def cohort_of(truth: Any) -> Any:
    """Return 40 regions of three samples; the first has lost one copy of the regions of EVENT."""
    kind = truth.KINDS[0]
    usual = np.full((40, 3), 2, np.int8)
    copies = usual.copy()
    copies[10:20, 0] = 1
    module, real = import_module("cohorts"), kind.cohort(1, 0)
    events = module.Events.of([(*EVENT, 0)])
    given = {"copies": copies, "usual": usual, "events": events}
    return module.Cohort(counts=real.counts, gc=real.gc, **given)


@pytest.mark.parametrize(
    ("calls", "found", "false"),
    [
        ([(10, 20, 0, -1)], 1, 0),
        ([(10, 15, 0, -1)], 1, 0),
        ([(10, 14, 0, -1)], 0, 0),
        ([(10, 13, 0, -1), (16, 18, 0, -1)], 1, 0),
        ([(5, 15, 0, -1)], 1, 0),
        ([(4, 15, 0, -1)], 0, 1),
        ([(10, 20, 0, 1)], 0, 1),
        ([(10, 20, 1, -1)], 0, 1),
        ([], 0, 0),
    ],
    ids=["exact", "half", "less", "pieces", "half outside", "more", "gain", "other", "none"],
)
def test_found_and_false__are_as_defined(truth: Any, calls: Any, found: int, false: int) -> None:
    cohort, kind, tally = cohort_of(truth), truth.KINDS[0], truth.Tally()
    tally.add(kind, cohort, calls_of(truth, *calls), seconds=0.0)
    cells = [cell for cell in tally.cells.values() if cell.planted]
    assert [(cell.planted, cell.found) for cell in cells] == [(1, found)]
    assert tally.false == false


def test_genotypes__are_compared_where_a_sample_has_copies(truth: Any) -> None:
    cohort, tally = cohort_of(truth), truth.Tally()
    given = np.array([[1, 2, 1]], np.int8)
    tally.add(truth.KINDS[0], cohort, calls_of(truth, (8, 20, 0, -1), genotypes=given), seconds=0.0)
    assert (tally.pairs, tally.right, tally.carriers, tally.copies) == (3, 2, 1, 1)


def test_quick_run__finds_more_with_presets(tmp_path: Path) -> None:
    path, script = tmp_path / "answers.json", str(BENCHMARKS / "cnv_truth.py")
    kinds = ["panel, 600", "genome, common"]
    callers = ["--callers", "r", "preset", "--json", str(path)]
    ended = run_python(script, "--quick", "--kinds", *kinds, *callers, timeout=290)
    assert ended.status == 0, ended.err
    assert "| three exons gained " in ended.out
    for kind in json.loads(path.read_text())["answers"].values():
        least = {"one exon lost": 0.85, "one exon gained": 0.55}
        for label, cell in kind["preset"]["cells"].items():
            assert cell["found"] >= least.get(label, 0.95) * cell["planted"], label
            assert cell["found"] > kind["r"]["cells"][label]["found"], label
        assert kind["preset"]["false"] <= 0.05 * kind["preset"]["samples"]
        assert kind["preset"]["right"] >= 0.95 * kind["preset"]["pairs"]
