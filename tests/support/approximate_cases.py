"""Samples and signatures for the search with errors, and its hits as rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from multigpu.kernels.scan import Chunk, Hits, Limits, Patterns
from multigpu.kernels.scan.approximate import cpu, seeds
from multigpu.kernels.scan.approximate.alignment import Layouts, align, align_layouts
from support.scan_cases import array, chunk_of, random_letters

Case = tuple[Chunk, Patterns, Limits, bool]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Samples and signatures, some of which are alike, with limits of every kind."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    ambiguous = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    signatures = [
        random_letters(rng, int(rng.integers(1, 14)), ambiguous) for _ in range(rng.integers(1, 5))
    ]
    records = [sample_with(rng, signatures, ambiguous) for _ in range(rng.integers(1, 5))]
    patterns = Patterns.of(signatures, draw(st.booleans()))
    most = draw(st.integers(0, 5) | st.floats(0, 0.6))
    exact = [draw(st.sampled_from([0, 0, 0, 1, 3, 20])) for _ in range(2)]
    return chunk_of(records), patterns, Limits.of(patterns, most, *exact), draw(st.booleans())


def sample_with(rng: np.random.Generator, signatures: list[Any], ambiguous: float) -> Any:
    pieces = [random_letters(rng, int(rng.integers(0, 20)), ambiguous)]
    for _ in range(rng.integers(0, 3)):
        chosen = signatures[int(rng.integers(len(signatures)))]
        pieces += [with_edits(rng, chosen, int(rng.integers(0, 3)))]
        pieces += [random_letters(rng, int(rng.integers(0, 6)), ambiguous)]
    return np.concatenate(pieces)


def with_edits(rng: np.random.Generator, letters: Any, count: int) -> Any:
    """Return letters with some of them changed, inserted or deleted."""
    changed = letters.tolist()
    for _ in range(count):
        at, kind = int(rng.integers(len(changed) + 1)), int(rng.integers(3))
        letter = int(array("ACGT")[rng.integers(4)])
        changed[at : at + (kind != 1)] = [letter] if kind else []
    return np.array(changed, np.uint8)


def rows(hits: Hits) -> list[tuple[int, ...]]:
    columns = (hits.record, hits.pattern, hits.start, hits.end, hits.errors)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def search(
    case: Case, *, edits: bool, wanted: Any = "all", backend: Any = cpu
) -> tuple[Hits, list[str]]:
    """Return the hits and their CIGARs."""
    chunk, patterns, limits, strict = case
    scanner = backend.ErrorScanner(patterns, limits, edits=edits, strict=strict, wanted=wanted)
    hits = scanner.scan(chunk)
    if not edits:
        layouts = Layouts(patterns.sets, patterns.offsets)
        compared = align_layouts(chunk.offsets, chunk.letters, layouts, hits, hits.pattern, strict)
        return hits, [text.decode() for text in compared.texts()]
    found = align(chunk.offsets, chunk.letters, patterns, limits, hits, strict)
    started = replace(hits, start=found.start)
    order = np.lexsort((hits.pattern, hits.end, found.start, hits.pattern // patterns.strands,
                        hits.record))  # fmt: skip
    texts = found.texts()
    return started.take(order), [texts[i].decode() for i in order.tolist()]


FREE = replace(
    seeds.CPU, position=0.0, lookup=0.0, candidate=0.0, settled=0.0, entry=0.0, mismatch=1e6,
    edit=1e6,
)  # fmt: skip
NEVER = replace(seeds.CPU, position=1e12)


def swept(case: Case, edits: bool) -> tuple[Hits, list[str]]:
    """Return what the sweep finds on a CPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "COSTS", NEVER)
        return search(case, edits=edits)
