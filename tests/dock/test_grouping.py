"""Records of one ligand: numbered alike however the input is cut."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from support.docked import Dock, table
from support.ligand_texts import ETHANOL
from support.pocket_texts import autogrid

from multigpu import InputError, UsageError
from multigpu.cluster.engine.plan import Cost
from multigpu.formats.molecules.ligands import LigandRecords
from multigpu.workloads.dock import grouping, plan
from multigpu.workloads.dock.grouping import Grouping

TITLES = some.lists(some.sampled_from(["", "a", "a", "b", "b", "b"]), min_size=1, max_size=40)
TYPES = ("A", "C", "HD", "N", "NA", "OA", "H")
SMILES = b"CCO ethanol\nC( broken\nCC[O-].[Na+] salt\nO water\nCC(=O)N amide\n"


def records(titles: list[str], begin: int) -> LigandRecords:
    texts = [f"{title}\n{i}\n".encode() for i, title in enumerate(titles, begin)]
    lengths = np.array([*map(len, texts)], np.int64)
    text = b"".join(texts)
    return LigandRecords(source=0, layout="sdf", number=begin + 1, lengths=lengths, text=text)


@settings(deadline=None)
@given(
    titles=TITLES, cuts=some.sets(some.integers(1, 39)), chunk_bytes=some.integers(1, 60),
    chunk_ligands=some.integers(1, 12), most=some.integers(2, 5),
)  # fmt: skip
def test_spans__do_not_cut_a_ligand(
    titles: list[str], cuts: set[int], chunk_bytes: int, chunk_ligands: int, most: int
) -> None:
    rule = Grouping("title")
    sizes = {"chunk_bytes": chunk_bytes, "chunk_ligands": chunk_ligands, "budget": 0, "lanes": 1}
    cut_by = plan.DockPlan(pose_spans=((0, 1),), cost=Cost(1, 0), **sizes)
    borders = [0, *sorted(cut for cut in cuts if cut < len(titles)), len(titles)]
    blocks = [records(titles[a:b], a) for a, b in pairwise(borders)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "MOST_CONFORMERS", most)
        spans = list(plan.dock_spans(blocks, cut_by, rule))
        found, ligands = [], 0
        for span in spans:
            assert span.first == len(found)
            texts = [text for each in span.records for text in each.texts.each()]
            numbers = rule.number([rule.key(text, "sdf") for text in texts])
            found += (numbers + ligands).tolist()
            ligands = found[-1] + 1
            # What is more than fits belongs to the last ligand.
            fits = int(np.searchsorted(np.cumsum([*map(len, texts)]), chunk_bytes, "right"))
            fits = max(1, min(fits, chunk_ligands))
            assert len(texts) <= fits or numbers[fits - 1] == numbers[-1]
        assert found == rule.number(titles).tolist()
    texts = [each.text for span in spans for each in span.records]
    assert b"".join(texts) == b"".join(block.text for block in blocks)


def test_ligands__have_a_title_in_common() -> None:
    titles = ["a", "a", "", "", "b", "a", "a", "a"]
    assert Grouping("title").number(titles).tolist() == [0, 0, 1, 2, 3, 4, 4, 4]
    assert Grouping().key(b"a\n", "sdf") == ""
    assert Grouping("title").key(b"@<TRIPOS>MOLECULE\n*****\n", "mol2") == ""
    assert Grouping("smiles").key(b"OCC a", "smiles") == Grouping("smiles").key(b"CCO b", "smiles")


@pytest.fixture(scope="module")
def pocket(tmp_path_factory: pytest.TempPathFactory) -> str:
    def grid_of(number: int) -> np.ndarray:
        return np.random.default_rng(number).normal(0, 1, (7, 7, 7)).round(3)

    folder = tmp_path_factory.mktemp("maps")
    return autogrid(folder, TYPES, grid_of, (-1.5, -1.5, -1.5), 0.5)


def run(dock: Dock, pocket: str, of: str, out: str, *more: str) -> list[dict[str, str]]:
    options = "--rotations 20 --step 0.5 --top 3 --min-rmsd 0.2 --outside clamp"
    assert dock(*options.split(), *more, "-o", f"{out}.sdf", of=of, pocket=pocket) in (0, 3)
    return table(f"{out}.scores.tsv")


@pytest.mark.parametrize("conformers", [1, 4])
def test_run__with_conformers_is_the_same_cut(dock: Dock, pocket: str, conformers: int) -> None:
    Path("a.smi").write_bytes(SMILES)
    made = f"--conformers {conformers}".split()
    rows = run(dock, pocket, "a.smi", "one", *made, "--max-chunk-bytes", "100")
    run(dock, pocket, "a.smi", "two", *made, "--threads", "1")
    for name in ("sdf", "scores.tsv", "errors.tsv"):
        one, two = (Path(f"{out}.{name}").read_bytes() for out in ("one", "two"))
        assert one == two, name
    assert {row["ligand"] for row in rows} == {"ethanol", "salt", "water", "amide"}
    best = [row for row in rows if row["pose"] == "1"]
    assert len(best) == 4
    for row in rows:
        assert int(row["conformer"]) <= conformers
        heavy = {"ethanol": 3, "salt": 3, "water": 1, "amide": 4}[row["ligand"]]
        assert float(row["efficiency"]) == pytest.approx(float(row["energy"]) / heavy, abs=1e-4)
        assert float(row["strain"]) >= 0
        assert row["rmsd_to_reference"] == ""


def test_scores__of_a_whole_box_tell_conformers_and_what_refinement_gained(dock: Dock) -> None:
    Path("a.smi").write_bytes(b"CCO ethanol\n")
    options = "--rotations 20 --step 1 --top 20 --min-rmsd 0.2 --conformers 3 --refine rigid"
    assert dock(*options.split(), "-o", "a.sdf", of="a.smi") == 0
    rows = table("a.scores.tsv")
    assert {row["conformer"] for row in rows} == {"1", "2", "3"}
    assert "> <multigpu_conformer>" in Path("a.sdf").read_text()
    gains = [float(row["score"]) - float(row["score_unrefined"]) for row in rows]
    assert min(gains) >= 0
    assert max(gains) > 0
    assert {len(row["x"].partition(".")[2]) for row in rows} == {6}
    assert all(float(row["strain"]) >= 0 for row in rows)
    assert "energy" not in rows[0]


def test_run__ranks_conformers(dock: Dock, pocket: str, caplog: pytest.LogCaptureFixture) -> None:
    Path("a.smi").write_bytes(b"CCO ethanol\nCC(=O)N amide\n")
    run(dock, pocket, "a.smi", "made", "--conformers", "3", "--top", "50", "--min-rmsd", "0")
    # Poses of the conformers: other records of the same ligands.
    Path("many.sdf").write_bytes(Path("made.sdf").read_bytes())
    rows = run(dock, pocket, "many.sdf", "grouped", "--reference", "made.sdf")
    assert [row["ligand"] for row in rows] == ["ethanol"] * 3 + ["amide"] * 3
    assert [row["pose"] for row in rows] == ["1", "2", "3"] * 2
    assert {row["strain"] for row in rows} == {""}
    assert max(int(row["conformer"]) for row in rows) > 3
    assert [bool(row["rmsd_to_reference"]) for row in rows] == [True] * 3 + [False] * 3
    assert "1 of 2 ligands is another molecule than made.sdf" in caplog.text
    energies = [float(row["energy"]) for row in rows]
    assert energies[:3] == sorted(energies[:3])
    assert dock("--in-place", "-o", "turned.sdf", of="many.sdf", pocket=pocket) == 0
    turned = table("turned.scores.tsv")
    assert len(turned) > 6  # each record is a ligand where the box is not searched


def test_run__of_huge_ligands(dock: Dock, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each file begins a ligand, whatever its title."""
    tiny = autogrid(tmp_path, TYPES, lambda _: np.ones((3, 3, 3)), (0, 0, 0), 0.25)
    for name in ("a.sdf", "b.sdf"):
        Path(name).write_bytes(ETHANOL)
    assert dock("b.sdf", "--rotations", "5", "--step", "1", of="a.sdf", pocket=tiny) == 0
    (room,) = [note for note in caplog.messages if "have no room in the box" in note]
    assert "2 of 2 ligands have no room in the box: energies above 0, up to" in room
    assert "(ethanol); these score +1,000 kcal/mol for each Å² from its middle" in caplog.text


@pytest.mark.parametrize(("options", "problem"), [
    ("--conformers 3 --in-place", "conformers is for a whole box"),
    ("--group-by smiles --in-place", "group_by is for a whole box"),
    ("--conformers 3 --group-by title --step 1", "conformers makes every record a ligand"),
    ("--conformers 3", "and rotations asks for another search: give step, or leave"),
    ("--refine rigid --in-place", "refine is for a whole box, and in_place asks for another"),
    ("--refine rigid --in-place", "search: leave out one of them$"),
    ("--reference none.sdf --step 1", r"none\.sdf"),
])  # fmt: skip
def test_options__are_refused(dock: Dock, pocket: str, options: str, problem: str) -> None:
    Path("a.sdf").write_bytes(ETHANOL)
    with pytest.raises((UsageError, InputError), match=problem):
        dock(*options.split(), "--rotations", "20", "-o", "x.sdf", of="a.sdf", pocket=pocket)
