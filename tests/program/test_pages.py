"""The commands of our pages, in their order, in an empty folder; the drawing in one of them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cohorts import cohort
from support.markup import read
from support.readme import Command, commands, printed
from support.small_complex import small_complex

import multigpu
from multigpu.kernels import bases
from multigpu.kernels.scan.approximate.reference import distances, edit_hits

ROOT = Path(__file__).resolve().parents[2]
OF_THIS_MACHINE = ("multigpu plan", "multigpu doctor")  # what they print differs


def test_commands__are_found_with_what_they_print() -> None:
    page = "text\n```\n$ a\n1\n2\n$ b\n```\n$ no\n```\n$ c\n3\n$ d <<'END'\n5\nEND\n6\n```\n"
    page += "```\n$ e \\\n  f\n7\n$ g \\\n h <<'END'\n8\\\nEND\n```\n"
    assert [(c.line, c.text, c.shown) for c in commands(page)] == [
        (3, "a", ("1", "2")), (6, "b", ()), (10, "c", ("3",)),
        (14, "d <<'END'\n5\nEND", ("6",)), (19, "e \\\n  f", ("7",)),
        (24, "g \\\n h <<'END'\n8\\\nEND", ()),
    ]  # fmt: skip


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("page", "least"), [
    pytest.param("README.md", 7, marks=pytest.mark.slow),
    pytest.param("docs/tour.md", 16, marks=pytest.mark.slow),
    ("docs/scan-errors.md", 6),
    ("docs/recipes.md", 20),
])  # fmt: skip
def test_page__prints_what_it_shows(page: str, least: int, tmp_path: Path) -> None:
    wanted = list(commands((ROOT / page).read_text(encoding="utf-8")))
    assert len(wanted) >= least
    said = tmp_path / "stderr"
    with said.open("wb") as errors:
        outputs = printed(wanted, tmp_path, 500, errors.fileno())
    for command, lines in zip(wanted, outputs, strict=True):
        shown = list(command.shown)
        if command.text.startswith(OF_THIS_MACHINE):
            assert len(lines) >= len(shown) - 2, command  # some notes are not on every machine
        elif shown:
            assert lines == shown, (command, said.read_text()[-2000:])


@pytest.mark.slow
def test_tutorial__leads_from_a_pdb_file_to_ranked_poses(tmp_path: Path) -> None:
    """The commands of docs/dock.md, with a structure of ours instead of what curl fetches."""
    (tmp_path / "small.pdb").write_text(small_complex())
    curl = Command(0, 'curl() { cp small.pdb "$(basename "${@: -1}")"; }', ())
    wanted = [*commands((ROOT / "docs" / "dock.md").read_text(encoding="utf-8"))][:5]
    assert [each.text.split()[0] for each in wanted] == ["curl", "grep", "echo", "multigpu", "cut"]
    said = tmp_path / "stderr"
    with said.open("wb") as errors:
        *_, rows = printed([curl, *wanted], tmp_path, 280, errors.fileno())
    names, *poses = [row.split("\t") for row in rows]
    assert names == ["ligand", "conformer", "pose", "energy"], said.read_text()
    assert [(name, pose) for name, _, pose, _ in poses] == [("biotin", str(k)) for k in (1, 2, 3)]
    energies = [float(energy) for *_, energy in poses]
    assert energies == sorted(energies)
    assert energies[0] < -3
    (scene,) = read((tmp_path / "report.html").read_bytes()).scenes
    assert any(part.get("is_thin") for part in scene)


def test_stages__are_functions_of_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    multigpu.write_counts("counts.parquet", cohort()[0])
    page = (ROOT / "docs" / "cnv.md").read_text(encoding="utf-8")
    (stages,) = re.findall(r"```python\n(from multigpu\.kernels.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {"multigpu": multigpu, "numpy": np}
    exec(stages, names)  # noqa: S102 - our own page
    sini = multigpu.cnv("counts.parquet", sex="none", gpus="none").matrices["sini"]
    assert names["found"].sini.tolist() == sini.values[names["block"]].tolist()


def test_drawing__is_what_the_reference_says() -> None:
    page = (ROOT / "docs" / "scan-errors.md").read_text(encoding="utf-8")
    sample, signature = "TTACGTATTACGTCCTCCGTATT", "ACGTA"
    assert f">sample\\n{sample}\\n" in page
    assert f">sig\\n{signature}\\n" in page
    assert f"```\n{drawing(sample, signature, most=1)}\n```" in page


def drawing(sample: str, signature: str, most: int) -> str:
    """Return the ends of a sample, the bases between them, d(e), and a mark under each hit."""
    given = (np.frombuffer(each.encode(), np.uint8) for each in (sample, signature))
    text, pattern = map(bases.encode, given)
    exact, strict = 0, False
    edits = [cell[0] for cell in distances(text, pattern, exact, exact, strict)[-1]]
    hits = {hit.end for hit in edit_hits(text, pattern, most, exact, exact, strict)}
    rows = {
        "end e": [str(end) for end in range(len(edits))],
        "sample": [f"  {base}" for base in sample],
        "d(e)": [str(count) for count in edits],
        "hits": ["^" if end in hits else "" for end in range(len(edits))],
    }
    lines = [f"{name:8}" + "".join(f"{cell:3}" for cell in row) for name, row in rows.items()]
    return "\n".join(line.rstrip() for line in lines)
