"""Preparation of patterns on a CPU before the search: how much of it, and when."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.scan_cases import SINGLE, array, chunk_of

from multigpu.kernels.scan import Patterns, ScanRules, TooManyPatternsError, cpu

MANY = 50_000


def random_patterns(count: int, length: int) -> Patterns:
    letters = array(SINGLE)[np.random.default_rng(1).integers(0, 4, count * length)]
    return Patterns.of_joined(letters, np.arange(count + 1) * length)


def arrays(*holders: Any) -> Iterator[NDArray[Any]]:
    """All arrays of some tuples, each once."""
    found = {id(value): value for holder in holders for value in holder}
    return (value for value in found.values() if isinstance(value, np.ndarray))


@pytest.mark.parametrize("ambiguous", [0.0, 0.002])
def test_patterns__of_31_bases_take_less_than_300_bytes_in_all(ambiguous: float) -> None:
    """Names and letters take up to 70 more."""
    scanner = cpu.ExactScanner(random_patterns(MANY, 31), ScanRules(), bases=100 * MANY)
    index = scanner.index(ambiguous)
    assert index.stride == 4
    held = arrays(scanner._packed, index)
    assert sum(each.nbytes for each in held) < 230 * MANY


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3])
def test_strict__ambiguous_bases_of_samples_cost_nothing(share: float) -> None:
    """Ambiguous bases match no seed, so no bases are tried."""
    scanner = cpu.ExactScanner(random_patterns(1000, 16), ScanRules(strict=True))
    assert scanner.index(share) is scanner.index(0.0)


def test_index__is_that_of_all_chunks_with_about_as_many_ambiguous_bases() -> None:
    scanner = cpu.ExactScanner(random_patterns(1000, 16), ScanRules())
    shares = (0.0005, 0.001, 0.002, 0.004)
    assert len({id(scanner.index(share)) for share in shares}) <= 2


def test_patterns__too_many_are_no_matter_of_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A MemoryError would have the chunk halved again and again, and the index tried each time."""

    def none(*_: Any) -> None:
        raise MemoryError("Unable to allocate 9 GiB")

    monkeypatch.setattr(cpu, "make_index", none)
    scanner = cpu.ExactScanner(random_patterns(10, 16), ScanRules())
    with pytest.raises(TooManyPatternsError, match=r"^Unable to allocate 9 GiB$"):
        scanner.scan(chunk_of([array("ACGT" * 10)]))
