"""Records of one ligand: numbered alike however the input is cut."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from multigpu.cluster.engine.plan import Cost
from multigpu.formats.molecules.ligands import LigandRecords
from multigpu.workloads.dock import grouping, plan
from multigpu.workloads.dock.grouping import Grouping

TITLES = some.lists(some.sampled_from(["", "a", "a", "b", "b", "b"]), min_size=1, max_size=40)


def records(titles: list[str], begin: int) -> LigandRecords:
    texts = [f"{title}\n{i}\n".encode() for i, title in enumerate(titles, begin)]
    lengths = np.array([*map(len, texts)], np.int64)
    text = b"".join(texts)
    return LigandRecords(source=0, layout="sdf", number=begin + 1, lengths=lengths, text=text)


@settings(deadline=None)
@given(
    titles=TITLES,
    cuts=some.sets(some.integers(1, 39)),
    chunk_bytes=some.integers(1, 60),
    chunk_ligands=some.integers(1, 12),
    most=some.integers(2, 5),
)
def test_spans__do_not_cut_a_ligand(
    titles: list[str], cuts: set[int], chunk_bytes: int, chunk_ligands: int, most: int
) -> None:
    rule = Grouping("title")
    sizes = {"chunk_bytes": chunk_bytes, "chunk_ligands": chunk_ligands, "budget": 0, "lanes": 1}
    cut_by = plan.DockPlan(pose_spans=((0, 1),), cost=Cost(1, 0), **sizes)
    borders = [0, *sorted(cut for cut in cuts if cut < len(titles)), len(titles)]
    blocks = [records(titles[a:b], a) for a, b in pairwise(borders)]
    with pytest.MonkeyPatch.context() as patch:
        for module in (grouping, plan):
            patch.setattr(module, "MOST_CONFORMERS", most)
        spans = list(plan.dock_spans(blocks, cut_by, rule))
        found, ligands = [], 0
        for span in spans:
            assert span.first == len(found)
            texts = [text for each in span.records for text in each.texts.each()]
            numbers = rule.number([rule.key(text, "sdf") for text in texts])
            found += (numbers + ligands).tolist()
            ligands = found[-1] + 1
            # More than fits is one ligand.
            size = sum(map(len, texts))
            fits = size <= chunk_bytes and len(texts) <= chunk_ligands
            assert fits or numbers[-1] == 0
        assert found == rule.number(titles).tolist()
    assert b"".join(each.text for span in spans for each in span.records) == b"".join(
        block.text for block in blocks
    )


def test_ligands__have_a_title_in_common() -> None:
    titles = ["a", "a", "", "", "b", "a", "a", "a"]
    assert Grouping("title").number(titles).tolist() == [0, 0, 1, 2, 3, 4, 4, 4]
    assert Grouping().key(b"a\n", "sdf") == ""
    assert Grouping("smiles").key(b"OCC a", "smiles") == Grouping("smiles").key(b"CCO b", "smiles")
