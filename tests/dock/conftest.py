"""A library and a pocket, and the command on them."""

from pathlib import Path

import pytest
from support.docked import COUNT, Dock

from multigpu.cli import cli
from multigpu.errors import options_spelled
from multigpu.run.declarations import flag
from multigpu.workloads.dock.simulate import ligands, pocket


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ligands.sdf and pocket.npz."""
    folder = tmp_path_factory.mktemp("library")
    with (folder / "ligands.sdf").open("wb") as out:
        ligands(out, COUNT, 1, 12, seed=3)
    with (folder / "pocket.npz").open("wb") as out:
        pocket(out, points=24, spacing=0.75, wells=12, seed=3)
    return folder


@pytest.fixture
def dock(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dock:
    """The command in an empty directory; its exit status."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, of: str = str(library / "ligands.sdf"), pocket: str = "") -> int:
        given = pocket or str(library / "pocket.npz")
        command = ["dock", *of.split(), "--pocket", given, "--gpus", "none"]
        if not {"--rotations", "--rotation-file"} & {*arguments}:
            command += ["--precision", "30"]
        with options_spelled(flag):
            return int(cli.main([*command, *arguments], standalone_mode=False))

    return run
