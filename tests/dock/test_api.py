"""Docking from Python."""

import gzip
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.docked import COUNT, Dock

import multigpu
from multigpu import UsageError
from multigpu.workloads.dock import plan as dock_plan

pytestmark = pytest.mark.process  # runs whole jobs

FINE: dict[str, Any] = {"precision": 30, "gpus": "none"}
COARSE: dict[str, Any] = {"precision": 60, "gpus": "none"}


@pytest.fixture
def inputs(library: Path) -> tuple[str, Path]:
    return str(library / "ligands.sdf"), library / "pocket.npz"


def test_api__gives_what_the_command_writes(dock: Dock, inputs: tuple[str, Path]) -> None:
    dock("-o", "poses.sdf", "--scores", "scores.parquet", "--top", "2")
    result = multigpu.dock(*inputs, top=2, **FINE)
    assert result.to_table().equals(pq.read_table("scores.parquet"))
    batches = list(multigpu.dock(*inputs, max_chunk_bytes=1, **FINE))
    assert sum(map(len, batches)) == COUNT
    assert batches[3].ligand_index.tolist() == [3]
    assert batches[3].positions[0].shape == (batches[3].atoms[0], 3)


@pytest.mark.parametrize(("name", "value"), [
    ("outside", "zero"), ("outside", "penalty"), ("interpolation", "nearest"),
    ("center", (8.0, 8.0, 8.0)), ("translations", (1.0, 0.5)), ("top", 3), ("min_rmsd", 0.5),
    ("min_rmsd", 2.5), ("rotations", 40), ("rotation_file", Path("rotations.txt")),
])  # fmt: skip
def test_api__heeds_options(dock: Dock, inputs: tuple[str, Path], name: str, value: Any) -> None:
    Path("rotations.txt").write_text("1 2 3 4\n0 1 0 2\n")
    usual = {**FINE, "center": [7, 7, 7], "top": 3 if name == "min_rmsd" else 1}  # some are outside
    given = {**usual, name: value}
    if name.startswith("rotation"):
        del given["precision"]
    words = {"center": (7, 7, 7), "top": usual["top"], name: value}
    options = [(f"--{key.replace('_', '-')}", v) for key, v in words.items()]
    texts = [(k, ",".join(map(str, v)) if isinstance(v, tuple) else str(v)) for k, v in options]
    dock("-o", "poses.sdf", "--scores", "s.parquet", *(word for pair in texts for word in pair))
    found = multigpu.dock(*inputs, **given).to_table()
    assert found.equals(pq.read_table("s.parquet"))
    assert not found.equals(multigpu.dock(*inputs, **usual).to_table())


def test_api__gives_the_poses_once(inputs: tuple[str, Path], tmp_path: Path) -> None:
    """As a table or a frame."""
    (tmp_path / "some.xyz").write_text("1\ngood\nC 0 0 0\n1\nbad\nC 0 nan 0\n")
    result = multigpu.dock(tmp_path / "some.xyz", inputs[1], **COARSE)
    assert result.to_table().num_rows == 1
    with pytest.raises(UsageError, match="the poses were read already, which works once"):
        result.to_table()
    assert [each.ligand for each in result.skipped] == ["bad"]
    frame = multigpu.dock(*inputs, **COARSE).to_pandas()
    assert frame["score"].is_monotonic_increasing is False
    assert frame["ligand"].tolist() == [f"lig{i}" for i in range(COUNT)]


def stop_and_resume(parts: int, journal: Path, *inputs: Any, **options: Any) -> Any:
    """Return the result of a job that was stopped after so many parts, and resumed."""
    stopped: Any = iter(multigpu.dock(*inputs, **options, journal=journal))
    for _ in range(parts):
        next(stopped)
    stopped.close()
    assert journal.stat().st_size > 0
    return multigpu.dock(*inputs, **options, journal=journal, resume=True)


def test_api__resumes_an_interrupted_job(
    inputs: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job may be stopped between the spans of a ligand's poses."""
    monkeypatch.setattr(dock_plan, "CPU_POSES", 30)
    options = {**COARSE, "max_chunk_bytes": 1}
    whole = multigpu.dock(*inputs, **options).to_table()
    assert stop_and_resume(5, tmp_path / "journal", *inputs, **options).to_table().equals(whole)
    assert not (tmp_path / "journal").exists()


@pytest.mark.parametrize("stop", range(1, 12))
def test_api__resumes_after_any_chunk(library: Path, tmp_path: Path, stop: int) -> None:
    """A source that is cut off is reported once."""
    text = (library / "ligands.sdf").read_bytes()
    for name, content in {
        "a.sdf": text, "b.sdf": b"", "c.sdf.gz": gzip.compress(text)[:-9], "d.sdf": text,
        "e.sdf.gz": gzip.compress(text), "f.txt": b"no ligands", "g.sdf": text,
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(content)
    given = [str(tmp_path / f"{letter}.*") for letter in "abcdefg"], str(library / "pocket.npz")
    options = {**COARSE, "max_chunk_bytes": 7000}
    first = multigpu.dock(*given, **options)
    whole, skipped = first.to_table(), first.skipped
    assert len({each.path for each in skipped}) == 3
    again = stop_and_resume(stop, tmp_path / "journal", *given, **options)
    assert again.to_table().equals(whole)
    assert again.skipped == skipped
