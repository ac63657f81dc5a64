"""The function `multigpu.cnv`: inputs and parameters that it takes, and its errors for others."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bams import random_rows, write_alignments
from support.cohorts import cohort, of_sexes

import multigpu
from multigpu import CnvResult, Counts, UsageError
from multigpu.formats.tables import arrow


def cnv(given: Any, **options: Any) -> CnvResult:
    return multigpu.cnv(given, gpus="none", keep_matrices=False, **options)


def table_of_x() -> Counts:
    """Return counts without chromosome Y, which needs known sexes to be normalized."""
    return of_sexes(("chr1", "chrX"))


def as_arrow(counts: Counts) -> Any:
    regions = counts.regions
    chrom = arrow.strings([regions.names[k] for k in regions.chrom])
    columns = zip(counts.samples, counts.values.T.copy(), strict=True)
    return arrow.table([("chrom", chrom), ("start", regions.start), ("end", regions.end), *columns])


def test_names__of_the_command_are_taken(tmp_path: Path) -> None:
    found = cnv(table_of_x(), compat="r", seg_median=0.3, workers=0)
    assert found.options.compat_r
    assert found.options.seg_median == (0.3, -0.3)
    assert found.sex == ()
    assert cnv(table_of_x(), compat_r=True).options.compat_r
    chosen = cnv(table_of_x(), chromosomes="X,1", rename="auto")
    assert chosen.regions.names == ("chrX", "chr1")
    paths = [write_alignments(tmp_path / f"{seed}.bam", random_rows(900, seed)) for seed in (1, 2)]
    counted = cnv(paths, window=10_000, sample_names="a,b")
    assert counted.samples == ("a", "b")
    assert len(counted.regions) == 52


def test_controls__take_the_names_of_the_cases_chromosomes() -> None:
    table = table_of_x()
    regions = replace(table.regions, names=("1", "X"))
    others = Counts(regions, tuple("abcdef"), table.values)
    options = {"model": "reference", "segmentation": "fast"}
    with pytest.raises(UsageError, match="rename auto takes them as the same"):
        cnv(table, controls=others, **options)
    assert len(cnv(table, controls=others, rename="auto", **options).segments)
    cnv(table, controls=others, rename="auto", chromosomes=["chr1"], **options)


def test_notes__name_parameters_without_effect() -> None:
    counts, _ = cohort()
    found = cnv(counts, segmentation="cbs", seg_delta=20)
    assert found.notes[0] == "seg_delta has no effect: used only with segmentation fast"
    assert not any("seg" in note for note in cnv(counts, segmentation="cbs").notes)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"window": 5}, "^window: for alignments only, and what was given is a counts table"),
    ({"preset": "other"}, "preset is 'other'; it must be r or panel or exome"),
    ({"compat": "R"}, "compat_r is 'R'; it must be none or r"),
    ({"chromosomes": "chr9"}, "has no chromosome chr9"),
    ({"ploidy": [2] * 7}, "7 numbers for 6 samples"),
    ({"genome": 38}, "genome is 38; it must be text"),
    ({"window": "5"}, "window is '5'; it must be a whole number"),
]


@pytest.mark.parametrize(("options", "problem"), REFUSED, ids=[problem for _, problem in REFUSED])
def test_refused__options(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        cnv(of_sexes(), **options)


@pytest.mark.parametrize("given", [np.zeros((3, 3)), None, {"a": 1}, 5, b"x", [1]])
def test_refused__inputs_of_other_types(given: Any) -> None:
    with pytest.raises(UsageError, match=r"an input of type .* has no regions"):
        cnv(given)
    with pytest.raises(UsageError, match="no INPUT given"):
        cnv([])


def test_frames__of_pyarrow_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    counts, _ = cohort()
    assert cnv(as_arrow(counts)).segmentation.equals(cnv(counts).segmentation)
    # What is refused.
    counts, _ = cohort()
    table = as_arrow(counts)
    with pytest.raises(UsageError, match="column smp: it cannot hold string"):
        cnv(table.append_column("smp", table["chrom"]))
    missing = arrow.numbers(np.where(counts.values[:, 0] > 60, np.nan, 1.0), nan_is_null=True)
    with pytest.raises(UsageError, match=r"row \d+, column smp: nan is no count"):
        cnv(table.append_column("smp", missing))
    with pytest.raises(UsageError, match=r"the sample '.*' is listed twice"):
        cnv(table.append_column(counts.samples[0], table["end"]))


def test_frames__of_pandas_in_any_order() -> None:
    pandas = pytest.importorskip("pandas")
    counts, _ = cohort()
    columns = {name: as_arrow(counts)[name].to_pylist() for name in as_arrow(counts).column_names}
    frame = pandas.DataFrame(columns)
    assert cnv(frame).segmentation.equals(cnv(counts).segmentation)
    mixed = cnv(frame.iloc[[1, 0, *range(2, len(frame))]])
    assert mixed.segmentation.equals(cnv(counts).segmentation)
    assert mixed.notes[0] == "the table: the regions are not in order: they are sorted"


class Frame:
    """Least that a table in memory needs."""

    def __init__(self, **columns: list[Any]) -> None:
        usual = {"chrom": ["chr1", "chr1"], "start": [0, 5], "end": [5, 9], "a": [1, 2]}
        self.values = {**usual, **columns}
        self.columns = [name for name, values in self.values.items() if values]

    def __getitem__(self, name: str) -> Any:
        return np.array(self.values[name])


FRAMES = [
    ({"end": []}, "the table: is no counts table: its columns are chrom, start, end and samples"),
    ({"a": []}, "the table: there are no samples"),
    ({"a": [1, -1]}, "row 2, column a: -1 is no count"),
    ({"a": [1.0, float("nan")]}, "row 2, column a: nan is no count"),
    ({"a": ["x", "y"]}, "column a: it cannot hold string"),
    ({"start": [0, 0.5]}, "column start: it cannot hold double"),
    ({"start": [0, 9]}, "row 2: 9 to 9 is no region"),
    ({"chrom": [1, 1]}, "column chrom: it cannot hold int64"),
    ({"chrom": ["a", ""]}, "row 2, column chrom: the chromosome has no name"),
]


@pytest.mark.parametrize(("columns", "problem"), FRAMES, ids=[problem for _, problem in FRAMES])
def test_frames__refused(columns: dict[str, list[Any]], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        cnv(Frame(**columns))
