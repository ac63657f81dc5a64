"""The folder of a run: its files are published together, and interrupted runs leave no mess."""

from pathlib import Path

import pytest

from multigpu.cluster import files as engine
from multigpu.cluster.errors import UsageError
from multigpu.cluster.files import LOCK
from multigpu.workloads.cnv.output import folder as output


def fill(folder: Path, *names: str, text: str = "new") -> None:
    """Files of these names, and folders with a file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in (output.MATRICES, output.BY_SAMPLE):
            fill(folder / name, "inner", text=text)
        else:
            (folder / name).write_text(text)


def texts(folder: Path) -> dict[str, str]:
    """Return the text of all files that are not hidden."""
    files = [path for path in folder.rglob("*") if path.is_file() and output.PART not in path.parts]
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def test_publish__again_leaves_the_matrices_that_are_in_their_place(tmp_path: Path) -> None:
    """A run that was stopped after it had moved them writes all other files again."""
    fill(tmp_path, "cnvs.tsv", output.MATRICES, output.BY_SAMPLE, output.REPORT, text="old")
    part = tmp_path / output.PART
    fill(part, output.JOURNAL, "cnvs.tsv", output.MATRICES)
    assert output.store_path(part) == part / output.MATRICES
    output.publish(part)
    assert output.store_path(part) == tmp_path / output.MATRICES
    fill(part, "cnvs.tsv")
    fill(tmp_path, output.REPORT, text="old")
    assert output.publish(part) == [output.REPORT]  # what it removes, and no matrices
    assert texts(tmp_path) == {"cnvs.tsv": "new", f"{output.MATRICES}/inner": "new"}
    assert (part / output.JOURNAL).exists()


def test_publish__again_without_matrices_removes_those_of_an_earlier_run(tmp_path: Path) -> None:
    fill(tmp_path, output.MATRICES, text="old")
    part = tmp_path / output.PART
    fill(part, output.JOURNAL, "cnvs.tsv")
    for _ in range(2):
        fill(part, "cnvs.tsv")
        output.publish(part)
        fill(tmp_path, output.MATRICES, text="old")
        assert output.store_path(part) == part / output.MATRICES
    output.publish(part)
    assert texts(tmp_path) == {}


def test_folder__loses_its_journal_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal without what it is about could never be resumed."""
    part = tmp_path / output.PART
    fill(part, LOCK, output.JOURNAL, output.MATRICES, output.PUBLISHED)
    removed: list[str] = []
    for module in (output, engine):
        monkeypatch.setattr(module, "remove", lambda path: removed.append(path.name))
    with output.output_folder(str(tmp_path)):
        assert removed[0] == output.JOURNAL


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_folder__whose_hidden_name_a_stranger_has_is_left(tmp_path: Path, kind: str) -> None:
    (tmp_path / "mine").mkdir()
    part = tmp_path / "out" / output.PART
    part.parent.mkdir()
    part.symlink_to(tmp_path / "mine") if kind == "link" else part.mkdir()
    (part / "kept").touch()
    with pytest.raises(UsageError, match=r"/out: .*/out/\.part is in the way"):
        output.output_folder(f"{tmp_path}/out").__enter__()
    assert (part / "kept").exists()
    assert [path.name for path in part.parent.iterdir()] == [output.PART]


def test_files__keep_the_permissions_of_those_that_they_replace(tmp_path: Path) -> None:
    (tmp_path / "cnvs.tsv").touch(0o640)
    with output.output_folder(str(tmp_path)) as part:
        fill(part, "cnvs.tsv", "cnvs.bed")
        assert part.stat().st_mode & 0o777 == 0o700
        output.publish(part)
    (tmp_path / "new").touch()
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("cnvs.tsv", "cnvs.bed", "new")]
    assert modes[0] == 0o640
    assert modes[1] == modes[2]
