"""Counts where workers find them: the same rows from each place, and nothing left behind."""

import multiprocessing
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from multigpu.formats.storage import shareable
from multigpu.workloads.cnv.stages import counts_source as source

ARRAYS = {"start": np.arange(7), "end": np.arange(7) + 5}


def counts(kind: type) -> dict[str, NDArray[Any]]:
    return {"values": np.arange(21).reshape(7, 3).astype(kind), **ARRAYS}


def same(a: source.LoadedRows, b: source.LoadedRows) -> bool:
    return all(x.dtype == y.dtype and np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def room(size: int) -> NDArray[np.uint8]:
    return np.empty(size, np.uint8)


@pytest.mark.process
@pytest.mark.parametrize("kind", [np.int32, np.float64])
@pytest.mark.parametrize("place", [source.share_memory, partial(source.copy_to_file, None)])
def test_rows__are_the_same_in_another_process(
    place: Callable[..., AbstractContextManager[source.CountsSource]], kind: type
) -> None:
    whole = source.CountsSource(**counts(kind))
    with place(**counts(kind)) as there, multiprocessing.get_context("spawn").Pool(1) as other:
        assert same(other.apply(there.rows, (2, 6, room)), whole.rows(2, 6, room))
        assert same(there.rows(0, 7, room), whole.rows(0, 7, room))


def test_shared__goes_with_the_block_and_copies_no_more_than_it_must() -> None:
    with source.share_memory(**counts(np.int32)) as there:
        (path,) = there.paths
        assert Path(path).exists()
    assert not Path(path).exists()
    whole = source.CountsSource(**counts(np.int32))
    values = shareable.empty((9, 3), np.int32)  # has a path
    values[:7] = np.arange(21).reshape(7, 3)
    with source.share_memory(values=values[2:], **ARRAYS) as found:
        assert found.rows(0, 1, room)[0].tolist() == [[6, 7, 8]]
    values = shareable.empty((7, 3), np.int32)
    values[:] = np.arange(21).reshape(7, 3)
    with source.share_memory(values=values, **ARRAYS) as found:
        values[3, 1] = 99
        assert found.rows(3, 4, room)[0].tolist() == [[9, 99, 11]]
        assert same(found.rows(0, 3, room), whole.rows(0, 3, room))


@pytest.mark.parametrize(("free", "size"), [(None, 1 << 43), (1 << 62, 1 << 60)])
def test_shareable__refuses_what_is_not_there_or_not_given(
    free: int | None, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = len(list(Path("/proc/self/fd").iterdir()))
    if free:
        monkeypatch.setattr("multigpu.formats.storage.shareable.free_bytes", lambda _: free)
    with pytest.raises(MemoryError, match=r"not enough memory: [\d,]+ bytes needed"):
        shareable.empty((size,), np.int8)
    assert len(list(Path("/proc/self/fd").iterdir())) == held


def test_filed__leaves_nothing_in_the_folder(tmp_path: Path) -> None:
    with source.copy_to_file(tmp_path, **counts(np.int32)) as there:
        assert tmp_path in Path(there.paths[0]).parents
    assert list(tmp_path.iterdir()) == []
