"""Files of samples: folders, lists, sample sheets."""

from pathlib import Path

import pytest

from multigpu.errors import InputError, UsageError
from multigpu.formats.tables.file_lists import COUNTS, ListedFile, list_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    for name in ("a.tsv", "b.tsv", "b.regions.bed.gz", "b.per-base.bed.gz", "c.cnn"):
        (tmp_path / "data" / name).write_text("chrom\tstart\tend\ta\n")
    return tmp_path


def test_list__paths_folders_and_lists_in_order(folder: Path) -> None:
    data = folder / "data"
    a, b, bed = (str(data / name) for name in ("a.tsv", "b.tsv", "b.regions.bed.gz"))
    (folder / "list").write_text("# two\ndata/b.tsv\n\n" + f"{data}/a.tsv\n")
    assert list_files([str(folder / "list")]) == [ListedFile(path=b), ListedFile(path=a)]
    found = [file.path for file in list_files([str(data), a, str(data / "*.tsv")], COUNTS)]
    assert found == [a, bed, b, a, a, b]
    with pytest.raises(InputError, match="the directory has no alignment files"):
        list_files([str(data)])
    (data / "x.bam").write_text("")
    assert list_files([str(data)], COUNTS) == [ListedFile(path=str(data / "x.bam"))]


@pytest.mark.parametrize("separator", ["\t", ","])
def test_sheet__has_names_sexes_and_groups(folder: Path, separator: str) -> None:
    rows = ["Name,path,group,SEX", "x 1,data/a.tsv,Controls,F", "y,data/b.tsv,,male"]
    (folder / "sheet").write_text("\n".join(rows).replace(",", separator))
    assert list_files([str(folder / "sheet")]) == [
        ListedFile(path=str(folder / "data/a.tsv"), name="x 1", sex="F", is_control=True),
        ListedFile(path=str(folder / "data/b.tsv"), name="y", sex="male"),
    ]
    with pytest.raises(UsageError, match=r"no name is given for .*: name all files, or none"):
        list_files([str(folder / "sheet"), str(folder / "data/a.tsv")])


@pytest.mark.parametrize(("text", "problem"), [
    ("path,barcode\ndata/a.tsv,A\n", "the columns of a sample sheet .* not b"),
    ("path,name\ndata/a.tsv\n", "line 2: has 1 columns, not 2"),
    ("path,name\n\ndata/z.tsv,z\n", r"line 3: there is no file 'data/z\.tsv'"),
    ("path,group\ndata/a.tsv,batch7\n", "line 2: the group is 'batch7': a group is case or c"),
    ("path,name\ndata/a.tsv,a\x07\n", "line 2: .* control character"),
    ("path\n", "names no file"),
    ("# list\ndata/z.tsv\ndata/a.tsv\n", r"line 2: there is no file 'data/z\.tsv'"),
])  # fmt: skip
def test_sheet__what_is_wrong(folder: Path, text: str, problem: str) -> None:
    (folder / "sheet").write_text(text)
    with pytest.raises(InputError, match=problem):
        list_files([str(folder / "sheet")])
