"""Arrays that are copied to a GPU in pieces."""

from typing import Any

import numpy as np
import pytest
from support.backends import DEVICES, backend_of, on_host

ROWS = 1000


@pytest.fixture
def module(device: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module `upload`, emulated or real, with pieces of 96 rows."""
    upload = backend_of("cnmops", device).upload
    monkeypatch.setitem(upload.__globals__, "PIECE", 96 * 7 * 4 + 5)
    return upload.__globals__


@pytest.mark.parametrize("device", DEVICES[1:])
def test_upload__rows_of_a_span_are_there_once_it_is_yielded(module: Any) -> None:
    array = np.random.default_rng(1).integers(0, 1 << 30, (ROWS, 7), np.int32)
    for _ in range(2):  # the second time in rooms that were used
        there, spans = module["upload"](array)
        end = 0
        for begin, stop in spans:
            assert (begin, stop) == (end, min(end + 96, ROWS))
            np.testing.assert_array_equal(on_host(there[begin:stop]), array[begin:stop])
            end = stop
        assert end == ROWS
        np.testing.assert_array_equal(on_host(there), array)


@pytest.mark.parametrize("device", DEVICES[1:])
def test_upload__rooms_come_back_from_a_caller_that_stops(module: Any) -> None:
    free = module["_rooms"]._free
    for _ in range(3):
        _, spans = module["upload"](np.zeros((ROWS, 7)))
        next(iter(spans))
        del spans
        assert len(free) == module["ROOMS"]


@pytest.mark.parametrize("device", DEVICES[1:])
def test_upload__what_fits_into_a_piece_is_copied_at_once(module: Any) -> None:
    array = np.arange(90 * 7, dtype=np.int32).reshape(90, 7)
    there, spans = module["upload"](array)
    assert list(spans) == [(0, 90)]
    np.testing.assert_array_equal(on_host(there), array)


@pytest.mark.gpu
def test_upload__gigabytes_in_pieces_of_the_usual_size() -> None:
    upload = backend_of("cnmops", "cuda").upload
    array = np.arange(100_000 * 2500, dtype=np.int32).reshape(-1, 2500)
    there, spans = upload(array)
    assert sum(stop - begin for begin, stop in spans) == len(array)
    np.testing.assert_array_equal(on_host(there), array)
