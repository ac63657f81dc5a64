"""Preparation of patterns on a CPU before the search: how much of it, and when."""

from unittest.mock import Mock

import numpy as np
import pytest
from support.scan_cases import SINGLE, array, chunk_of

from multigpu.kernels.scan import Patterns, ScanRules, TooManyPatternsError, cpu

MANY = 50_000


def random_patterns(count: int, length: int) -> Patterns:
    letters = array(SINGLE)[np.random.default_rng(1).integers(0, 4, count * length)]
    return Patterns.of_joined(letters, np.arange(count + 1) * length)


@pytest.mark.parametrize("ambiguous", [0.0, 0.002])
def test_patterns__of_31_bases_take_less_than_300_bytes_in_all(ambiguous: float) -> None:
    """Names and letters take up to 70 more."""
    scanner = cpu.ExactScanner(random_patterns(MANY, 31), ScanRules(), bases=100 * MANY)
    index = scanner.index(ambiguous)
    assert index.stride == 4
    held = {id(value): getattr(value, "nbytes", 0) for value in (*scanner._packed, *index)}
    assert sum(held.values()) < 230 * MANY


def test_index__is_that_of_all_chunks_with_about_as_many_ambiguous_bases() -> None:
    """Strictly, ambiguous bases match no seed, so no bases are tried."""
    scanner = cpu.ExactScanner(random_patterns(1000, 16), ScanRules())
    shares = (0.0005, 0.001, 0.002, 0.004)
    assert len({id(scanner.index(share)) for share in shares}) <= 2
    strict = cpu.ExactScanner(random_patterns(1000, 16), ScanRules(strict=True))
    assert {id(strict.index(share)) for share in (0.0, 0.001, 0.3)} == {id(strict.index(0.0))}


def test_patterns__too_many_are_no_matter_of_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A MemoryError would have the chunk halved again and again, and the index tried each time."""
    fail = Mock(side_effect=MemoryError("Unable to allocate 9 GiB"))
    monkeypatch.setattr(cpu, "make_index", fail)
    scanner = cpu.ExactScanner(random_patterns(10, 16), ScanRules())
    with pytest.raises(TooManyPatternsError, match=r"^Unable to allocate 9 GiB$"):
        scanner.scan(chunk_of([array("ACGT" * 10)]))
