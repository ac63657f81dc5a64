"""Rows of the table of scores."""

import numpy as np
from support.docked import rows_with

from multigpu.workloads.dock.rows import ENERGIES, REFINED, SCORES, as_tsv, to_arrow


def test_scores__as_text_read_back_equal_and_show_no_negative_zeros() -> None:
    first = (
        "lig é", "1", "0.1", "0", "12.5", "350", "1.000000000", "0.000000000", "0.000000000",
        "0.000000000", "0.0000", "2.0001", "-3.0000", "0.0000", "7", "3", "a?b.pdbqt", "0",
    )  # fmt: skip
    second = (
        "b", "2", "-1e-20", "", "", "", "0.500000000", "-0.500000000", "0.500000000",
        "-0.500000000", "100000000.0000", "0.0000", "0.0000", "1.2500", str(1 << 40), "4",
        "b?.pdbqt", "4",
    )  # fmt: skip
    lines = as_tsv(rows_with()).decode().splitlines()
    assert [tuple(line.split("\t")) for line in lines] == [first, second]


def test_scores__in_arrow_have_full_precision_and_no_angles_where_there_are_none() -> None:
    table = to_arrow([rows_with(score=np.array([1 / 3, 2 / 3]))])
    assert table.column_names == [*SCORES]
    found = table.to_pydict()
    assert found["score"] == [1 / 3, 2 / 3]
    assert found["alpha"] == [0.0, None]
    assert found["source"] == ["a\tb.pdbqt", "b?.pdbqt"]


def test_energies__have_parts_that_add_up_and_places_with_six_decimals() -> None:
    rows = rows_with(score=np.array([0.75, 0.0]))
    first, second = as_tsv(rows, REFINED).decode().splitlines()
    assert first.split("\t") == [
        "lig é", "1", "1", "-0.75", "0.0", "-0.25", "-0.5", "0.75", "-0.2500", "", "1.5000",
        "1.000000000", "0.000000000", "0.000000000", "0.000000000", "-0.000040", "2.000060",
        "-3.000000", "0.0000", "7", "3", "a?b.pdbqt", "0",
    ]  # fmt: skip
    parts = ["3", "2", "0.0", "0.5", "0.5", "-0.5", "0.0"]
    assert second.split("\t")[1:11] == [*parts, "", "0.0000", ""]
    table = to_arrow([rows], REFINED)
    assert table.column_names[3:7] == [*ENERGIES]
    assert table["energy"].to_pylist() == [-0.75, 0.0]
    assert table["efficiency"].to_pylist() == [-0.25, None]
    assert table["rmsd_to_reference"].to_pylist() == [1.5, None]
