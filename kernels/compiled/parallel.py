"""A kernel over spans of its rows, in several threads."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def cores() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def over_spans(work: Callable[[int, int], object], rows: int, threads: int, least: int) -> None:
    """Call work(begin, stop) until all rows are done, each once.

    The calls run at the same time where there are several threads, which helps when `work` lets go
    of the GIL; a span has at least `least` rows but for the last.
    """
    spans = max(1, min(threads, rows // least))
    borders = [rows * i // spans for i in range(spans + 1)]
    if spans == 1:
        work(0, rows)
        return
    with ThreadPoolExecutor(spans, "span") as pool:
        for _ in pool.map(work, borders[:-1], borders[1:]):
            pass
