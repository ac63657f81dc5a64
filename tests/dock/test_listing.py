"""Ligands as a report lists them."""

import numpy as np
import pytest
from support.docked import rows_with

from multigpu.workloads.dock import listing
from multigpu.workloads.dock.listing import Listing
from multigpu.workloads.dock.rows import ROW_COLUMNS, PoseBatch


def library(ligands: int, poses: int) -> PoseBatch:
    """Return rows with scores that are often equal."""
    rng = np.random.default_rng(5)
    one = rows_with().take(np.zeros(ligands * poses, np.int64))
    scores = -np.sort(-rng.integers(0, 9, (ligands, poses)), axis=1).astype(np.float64)
    columns = {name: getattr(one, name) for name in ROW_COLUMNS}
    columns["ligand"] = [f"l{i}" for i in range(ligands) for _ in range(poses)]
    columns["ligand_index"] = np.repeat(np.arange(ligands), poses)
    columns["pose"] = np.tile(np.arange(1, poses + 1), ligands)
    return PoseBatch(**{**columns, "score": scores.ravel(), "coordinates": np.empty((0, 3))})


@pytest.mark.parametrize("chunk", [1, 7, 40])
def test_listing__does_not_depend_on_chunks(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "POSES", 3)
    monkeypatch.setattr(listing, "ROWS", 16)
    rows, found = library(40, 4), Listing()
    for begin in range(0, 40, chunk):
        found.take(rows.take(np.flatnonzero(rows.ligand_index // chunk == begin // chunk)))
    table, rank = found.table()
    best = rows.score[::4]
    order = sorted(range(40), key=lambda i: (-best[i], i))[:6]
    wanted = [(i, pose) for i in order for pose in (1, 2, 3)][:16]
    assert [*zip(table.ligand_index.tolist(), table.pose.tolist(), strict=True)] == wanted
    assert rank.tolist() == [order.index(i) + 1 for i, _ in wanted]
