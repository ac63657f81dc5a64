"""Plans, and the spans that follow from them."""

import json
import pickle
from pathlib import Path

import pytest
from support.docked import COUNT
from support.program import Run

from multigpu.cli import cli
from multigpu.cluster.engine.plan import Capacity, Cost
from multigpu.formats.molecules import ligands
from multigpu.formats.molecules.pockets import read_pocket
from multigpu.formats.storage.sources import Source, inspect_source
from multigpu.run.options import RunOptions
from multigpu.workloads.dock import plan as dock_plan
from multigpu.workloads.dock.options import DockOptions
from multigpu.workloads.dock.search import field_of, search_of


def test_plan__shows_the_search(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(library / "ligands.sdf"), "--pocket", str(library / "pocket.npz")]
    cli.main(["plan", "dock", *files, "--gpus", "none", "--json"], standalone_mode=False)
    facts = json.loads(capsys.readouterr().out)
    assert facts["rotations"] == 36**3
    assert facts["poses_tried"] == 36**3 / 2
    assert facts["pose_spans"] == 1
    assert facts["chunk_ligands"] == dock_plan.CPU_POSES // (36**3 // 2)
    cli.main(["plan", "dock", *files, "--gpus", "none"], standalone_mode=False)
    assert "46,656 rotations × 1 shifts" in capsys.readouterr().out


def test_plan__looks_at_a_cluster(library: Path, scheduler: str, main: Run) -> None:
    files = [str(library / "ligands.sdf"), "--pocket", str(library / "pocket.npz")]
    ended = main("plan", "dock", *files, "--scheduler", scheduler)
    assert (ended.status, ended.err) == (0, "")
    assert [line.split()[0] for line in ended.out.splitlines()[:3]] == 2 * ["worker"] + ["pocket"]
    ended = main("plan", "dock", *files, "--scheduler", scheduler, "--json")
    workers = json.loads(ended.out)["workers"]
    assert [(worker["gpu"], worker["problems"]) for worker in workers] == 2 * [(False, [])]


@pytest.mark.parametrize(
    ("megabytes", "chunks"), [(3, 3), (240, 240), (960, 480), (9600, 480)]
)  # fmt: skip
def test_plan__has_a_twentieth_in_progress(library: Path, megabytes: int, chunks: int) -> None:
    """There are 24 threads; chunks below 1 MiB would not repay the engine's work on them."""
    options, pocket = DockOptions(), read_pocket(str(library / "pocket.npz"))
    field, search = field_of(pocket, options), search_of(options, pocket, None)
    source = Source("ligands.pdbqt", megabytes << 20, "none", "pdbqt")
    here = Capacity(100 << 30, 24, 6, gpu=True)
    plan = dock_plan.plan_dock([source], field, search, None, here, RunOptions())
    assert -(-(megabytes << 20) // plan.chunk_bytes) == chunks


@pytest.mark.parametrize("block", [1 << 20, 3000, 700])
def test_spans__hold_their_text(library: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(ligands, "READ_BYTES", block)
    path = library / "ligands.sdf"
    source = inspect_source(str(path), ligands.LIGANDS)
    sizes = {"chunk_bytes": 2000, "chunk_ligands": 7, "budget": 0, "lanes": 2}
    plan = dock_plan.DockPlan(pose_spans=((0, 100),), cost=Cost(1, 0), **sizes)
    spans = list(dock_plan.dock_spans(ligands.read_records(0, source), plan))
    assert len(spans) > COUNT // 7
    assert all(sum(map(len, span.records)) <= 7 for span in spans)
    assert all(sum(len(each.text) for each in span.records) <= 2000 for span in spans)
    assert not [each for span in spans for each in span.records if "ends" in vars(each)]
    sent = pickle.loads(pickle.dumps(spans))
    assert b"".join(each.text for span in sent for each in span.records) == path.read_bytes()
