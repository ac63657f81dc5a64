"""The Zarr store: chunks written by whoever has them, read by xarray."""

from pathlib import Path

import numpy as np
import pytest

from multigpu.formats.alignments.regions import windows
from multigpu.workloads.cnv.results import matrices

SAMPLES = ("a", "b", "c")
CLASSES = ("CN1", "CN2")


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(matrices, "CHUNK_BYTES", 1)
    return matrices.chunk_rows(len(SAMPLES))


@pytest.mark.parametrize("lengths", [(1,), (64,), (65, 3), (10, 20, 200, 1, 1), (640, 128)])
def test_store__has_every_row(lengths: tuple[int, ...], small_chunks: int, tmp_path: Path) -> None:
    # Imported here, because every process that collects tests would wait for it.
    import xarray as xr

    assert small_chunks == 64
    regions = windows([(f"chr{k}", 10 * n) for k, n in enumerate(lengths)], 10)
    values = np.random.default_rng(1).random((len(regions), 3))
    path = tmp_path / "store.zarr"
    matrices.create(path, regions, SAMPLES, CLASSES, ("sini", "ini"))
    rest = []
    for block in reversed(regions.blocks):
        here = {"sini": np.asfortranarray(values[block]), "ini": values[block, 0]}
        rest += matrices.write(path, block.start, here, 3)
    matrices.write_rest(path, rest)
    with xr.open_zarr(path) as store:
        assert (store["sini"].values == values).all()
        assert (store["ini"].values == values[:, 0]).all()
        assert store["sample"].values.tolist() == list(SAMPLES)
        assert store["start"].values.tolist() == regions.start.tolist()
        assert store["chrom"].values.tolist() == [regions.names[k] for k in regions.chrom]
        assert set(store.coords) == {"chrom", "start", "end", "sample", "class"}


def test_write__leaves_only_the_ends_to_the_client(small_chunks: int, tmp_path: Path) -> None:
    regions = windows([("chr1", 10 * 1000)], 10)
    matrices.create(tmp_path / "s", regions, SAMPLES, CLASSES, ("ini",))
    rest = matrices.write(tmp_path / "s", 70, {"ini": np.ones(500)}, 3)
    assert [(first, len(rows["ini"])) for first, rows in rest] == [(70, 58), (512, 58)]
    assert all(rows["ini"].base is None for _, rows in rest)  # nothing else is kept alive
