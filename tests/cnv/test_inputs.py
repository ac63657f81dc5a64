"""Inputs: options for alignments, chromosomes chosen and renamed, facts about samples."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.cohorts import cohort, of_sexes

from multigpu import UsageError
from multigpu.errors import several
from multigpu.formats.alignments.files import renamed_as
from multigpu.workloads.cnv.samples import inputs
from multigpu.workloads.cnv.samples.annotations import read_ploidies, read_sexes
from multigpu.workloads.cnv.samples.inputs import CohortInput, check_counting, select_chromosomes

USELESS = [  # given, table of the cases, table of the controls, options in the message
    (["window"], "t", None, "window"),
    (["min_mapq", "window", "chromosomes"], "t", "c", "window, min_mapq"),
    (["index", "min_mapq"], "t", None, "index=False, min_mapq"),
    (["rename"], "t", None, "rename"),
    (["sample_names", "window"], "t", "", "sample_names"),
    (["chromosomes", "rename"], "t", None, None),
    (["rename"], "t", "c", None),
    (["window", "sample_names"], "", None, None),
    (["window", "sample_names"], "", "c", None),
    ([], "t", None, None),
    (["regions"], "t", "c", None),
]


def input_named(table: str) -> CohortInput:
    """Return a table of this name, or alignments without one."""
    return CohortInput((table or "a.bam",), is_alignments=not table)


@pytest.mark.parametrize(("given", "table", "others", "useless"), USELESS)
def test_counting__is_refused_where_nothing_is_counted(
    given: list[str], table: str, others: str | None, useless: str | None
) -> None:
    cases = input_named(table)
    controls = None if others is None else input_named(others)
    if useless is None:
        check_counting(given, cases, controls)
        return
    with pytest.raises(UsageError) as error:
        check_counting(given, cases, controls)
    assert str(error.value) == f"{useless}: for alignments only, and t is a counts table"


def test_selected__chromosomes_in_the_order_asked_for() -> None:
    table = of_sexes()
    found = select_chromosomes(table, ("chrY", "chr1"), False, "t")
    assert found.regions.names == ("chrY", "chr1")
    assert [block.stop - block.start for block in found.regions.blocks] == [200, 200]
    assert (found.values == np.concatenate([table.values[400:], table.values[:200]])).all()
    assert (found.regions.start == np.tile(table.regions.start[:200], 2)).all()
    assert select_chromosomes(table, (), False, "t") is table
    assert select_chromosomes(table, ("X",), True, "t").regions.names == ("chrX",)


WRONG = [
    (("chr9",), True, "t has no chromosome chr9: it has chr1, chrX, chrY"),
    (("X",), False, "X is called chrX in t: rename auto takes them as the same"),
    (("X", "chrX"), True, "chrX is listed twice"),
]


@pytest.mark.parametrize(("names", "rename", "problem"), WRONG)
def test_selected__refused(names: tuple[str, ...], rename: bool, problem: str) -> None:
    with pytest.raises(UsageError) as error:
        select_chromosomes(of_sexes(), names, rename, "t")
    assert str(error.value) == f"chromosomes: {problem}"


def test_renamed__as_the_cases_are() -> None:
    table = of_sexes()
    theirs = replace(table, regions=replace(table.regions, names=("1", "chrX", "Z")))
    assert renamed_as(theirs.regions, table.regions).names == ("chr1", "chrX", "Z")
    both = replace(table, regions=replace(table.regions, names=("1", "chr1", "Z")))
    assert renamed_as(both.regions, table.regions).names == ("1", "chr1", "Z")


def test_several__the_first_ones_and_how_many_more() -> None:
    assert several("abc") == "a, b, c"
    assert several("abcdefg") == "a, b, c, d, e and 2 others"
    assert len(several(["x" * 999])) < 70


def test_facts__from_files_mappings_and_lists(tmp_path: Path) -> None:
    names = of_sexes().samples
    (path := tmp_path / "facts").write_text("s0\t3\n")
    for given in (path, str(path), {"s0": 3}, (3, 2, 2, 2, 2, 2), np.array([3, 2, 2, 2, 2, 2])):
        assert read_ploidies(given, names) == (3, 2, 2, 2, 2, 2)
    assert read_ploidies(None, names) is None
    assert read_sexes("infer", names) is None
    assert read_sexes("none", names) == read_sexes(None, names) == ()
    assert (read_sexes("male", names), read_ploidies("4", names)) == (("male",) * 6, (4,) * 6)
    with pytest.raises(UsageError, match=r"^sex names sample '7', which is not in the counts"):
        read_sexes({7: "male"}, names)
    for end in ("\n", "\r\n", "\r"):
        path.write_bytes(end.join(["\ufeffs0\tmale", "# x", "s1\tfemale", ""]).encode())
        for given in (path, str(path), {"s0": "male", "s1": "female"}, {"s0": 1, "s1": 2}):
            assert read_sexes(given, names) == ("male", "female", *[""] * 4)


@pytest.mark.parametrize("separator", ["\t", "  "])
def test_facts__sexes_of_a_pedigree(tmp_path: Path, separator: str) -> None:
    rows = ["#fam id father mother sex status", "f s0 p m 1 2", "f s3 p m 2 2", "f p 0 0 1 1"]
    rows += ["f s4 0 0 other 0 A C"]
    (tmp_path / "x.ped").write_text("\n".join(rows).replace(" ", separator))
    found = read_sexes(str(tmp_path / "x.ped"), of_sexes().samples)
    assert found == ("male", "", "", "female", "", "")
    with pytest.raises(UsageError, match="none of the samples in its second column"):
        read_sexes(str(tmp_path / "x.ped"), ["p0"])
    with pytest.raises(UsageError, match=r"is listed twice|expected a sample, a tab, and"):
        read_ploidies(str(tmp_path / "x.ped"), of_sexes().samples)
    (tmp_path / "x.ped").write_text("f s0 0 0 Male 1\nf s1 0 0 F 1\nf s2 0 0 -9 1\n")
    found = read_sexes(str(tmp_path / "x.ped"), of_sexes().samples) or ()
    assert found[:3] == ("male", "female", "")
    twice = "line 3: 's0' is listed twice, with different sexes"
    for text, problem in (
        ("f s0 0 0 1 1\nf s0 0 0 1 1\nf s0 0 0 2 1\n", twice),
        ("f s0 0 0 1 1\nf\ts1\t0\n", "line 2: has 3 columns, where PED has 6"),
    ):
        (tmp_path / "x.ped").write_text(text)
        with pytest.raises(UsageError, match=problem):
            read_sexes(str(tmp_path / "x.ped"), of_sexes().samples)


def test_read_length__names_the_file_without_depths(tmp_path: Path) -> None:
    (path := tmp_path / "x.regions.bed").write_text("chr1\t0\t9\t-1\n")
    with pytest.raises(UsageError, match=rf"^read_length: .*, and {path} has none .* read"):
        inputs.inputs_of(str(path), None, 150)


@pytest.mark.parametrize("given", [True, [2] * 5, 2.5])
def test_facts__refused(given: object) -> None:
    counts, _ = cohort()
    with pytest.raises(UsageError, match=r"^ploidy"):
        read_ploidies(given, counts.samples)
    with pytest.raises(UsageError, match="it can be infer, none, male, female, a file, or "):
        read_sexes(given, counts.samples)
