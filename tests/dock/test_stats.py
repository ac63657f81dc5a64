"""Ligands far from the others, and the best ones as a report lists them."""

import numpy as np
import pytest
from support.docked import rows_with

from multigpu.workloads.dock import stats
from multigpu.workloads.dock.rows import REFINED, ROW_COLUMNS, PoseBatch
from multigpu.workloads.dock.stats import Listing, Outliers, are_far


def test_outliers__are_beyond_the_fences_the_farthest_first() -> None:
    assert not are_far(np.array([1.0, 2.0, 900.0])).any()
    assert not are_far(np.array([1.0] * 20 + [2.0])).any()
    values = np.append(np.arange(101.0), [-400.0, 600.0, 999.0, 150.0])
    assert Outliers.of(values) == ([103, 102, 101], [999.0, 600.0, -400.0], 51.0)


TEXTS = ("ligand", "source")


def rows_of(ligands: range, scores: np.ndarray) -> PoseBatch:
    """Return the poses of some ligands. scores: of all ligands and poses."""
    poses = scores.shape[1]
    many = np.zeros(len(ligands) * poses, np.int64)
    given = {name: getattr(rows_with(), name) for name in ROW_COLUMNS}
    columns = {name: values[many] for name, values in given.items() if name not in TEXTS}
    columns["ligand_index"] = np.repeat(ligands, poses)
    columns["pose"] = np.tile(np.arange(1, poses + 1), len(ligands))
    columns["score"] = scores[ligands.start : ligands.stop].ravel()
    names = [f"l{i}" for i in columns["ligand_index"].tolist()]
    return rows_with(**columns, ligand=names, source=names)


@pytest.mark.parametrize("chunk", [1, 7, 40])
def test_listing__does_not_depend_on_chunks(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "POSES", 3)
    monkeypatch.setattr(stats, "ROWS", 16)
    # Scores that are often equal.
    drawn = np.random.default_rng(5).integers(0, 9, (40, 4))
    scores, found = -np.sort(-drawn, axis=1).astype(np.float64), Listing(columns=REFINED)
    for begin in range(0, 40, chunk):
        found.take(rows_of(range(begin, min(begin + chunk, 40)), scores))
    table, rank = found.table()
    order = sorted(range(40), key=lambda i: (-scores[i, 0], i))[:6]
    wanted = [(f"l{i}", pose) for i in order for pose in (1, 2, 3)][:16]
    assert [*zip(table["ligand"], table["pose"].tolist(), strict=True)] == wanted
    assert [order[k - 1] for k in rank.tolist()] == [int(name[1:]) for name, _ in wanted]
