"""Spans of rows in threads."""

import threading

import pytest

from multigpu.kernels.compiled.parallel import over_spans


@pytest.mark.parametrize("rows", [0, 1, 9, 10, 11, 1000])
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_over_spans__does_every_row_once(rows: int, threads: int) -> None:
    done, lock = [], threading.Lock()

    def work(begin: int, stop: int) -> None:
        with lock:
            done.append((begin, stop))

    over_spans(work, rows, threads, least=10)
    assert sorted(row for begin, stop in done for row in range(begin, stop)) == list(range(rows))
    assert len(done) == max(1, min(threads, rows // 10))


def test_over_spans__raises_what_a_span_raises() -> None:
    with pytest.raises(ZeroDivisionError):
        over_spans(lambda _, stop: 1 // (100 - stop), 100, 3, least=10)
