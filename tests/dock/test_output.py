"""Names of the files that a docking job writes."""

import pytest

from multigpu.workloads.dock.output import tables_beside


@pytest.mark.parametrize(("path", "name"), [
    ("a/poses.sdf", "a/poses"), ("poses.pdbqt.gz", "poses"), ("lib.sdf.A.sdf", "lib.sdf.A"),
    ("lib.sdf.B.sdf.zst", "lib.sdf.B"), ("q.sd", "q"), ("v1.2.SDF", "v1.2"),
])  # fmt: skip
def test_tables__have_the_name_of_the_poses_without_its_suffix(path: str, name: str) -> None:
    assert tables_beside(path) == (f"{name}.scores.tsv", f"{name}.errors.tsv")
