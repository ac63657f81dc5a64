"""Samples and signatures for the search, random ones too, and hits as rows."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from multigpu.kernels import bases
from multigpu.kernels.bases import encode, reverse_complement
from multigpu.kernels.scan import Chunk, Hits
from support.scanned import MEANING

SINGLE = b"ACGT"
AMBIGUOUS = b"NNNNNNNNRYSWKMBDHVnryswkmbdhvUuacgt"  # mostly N, as in life

Letters = NDArray[np.uint8]
Case = tuple[list[Letters], list[Letters]]


def array(text: bytes | str) -> Letters:
    return np.frombuffer(text.encode() if isinstance(text, str) else text, np.uint8).copy()


def chunk_of(records: Sequence[Letters]) -> Chunk:
    offsets = np.zeros(len(records) + 1, np.int64)
    np.cumsum([len(record) for record in records], out=offsets[1:])
    return Chunk(np.concatenate([np.empty(0, np.uint8), *records]), offsets)


def rows(hits: Hits) -> list[tuple[int, int, int]]:
    columns = (hits.record.tolist(), hits.pattern.tolist(), hits.start.tolist())
    return list(zip(*columns, strict=True))


def assert_same(got: Hits, expected: Hits) -> None:
    assert rows(got) == rows(expected)
    dtypes = (got.record.dtype, got.pattern.dtype, got.start.dtype)
    assert dtypes == (np.int32, np.int32, np.int64)


def random_letters(rng: np.random.Generator, size: int, ambiguous: float) -> Letters:
    letters = array(SINGLE)[rng.integers(0, 4, size)]
    chosen = rng.random(size) < ambiguous
    letters[chosen] = array(AMBIGUOUS)[rng.integers(0, len(AMBIGUOUS), int(chosen.sum()))]
    return letters


def planted(
    rng: np.random.Generator, size: int, signatures: list[Letters], ambiguous: float,
    plants: int | None = None,
) -> Letters:  # fmt: skip
    """Return a record with some signatures, on either strand, some damaged at one place."""
    record = random_letters(rng, size, ambiguous)
    for _ in range(int(rng.integers(0, 4)) if plants is None else plants):
        signature = signatures[rng.integers(len(signatures))]
        if len(signature) > size:
            continue
        if rng.integers(2):
            signature = written(reverse_complement(encode(signature)))
        start = int(rng.choice([0, size - len(signature), rng.integers(size - len(signature) + 1)]))
        record[start : start + len(signature)] = signature
        if rng.integers(3) == 0:
            record[start + rng.integers(len(signature))] = array(SINGLE)[rng.integers(4)]
    return record


def written(sets: NDArray[np.uint8]) -> Letters:
    """Return sets as capital letters."""
    letter_of = {bases.SETS[letter]: letter for letter in reversed(MEANING)}
    return array("".join(letter_of[value] for value in sets.tolist()))


@st.composite
def cases(draw: st.DrawFn, most_records: int = 6, most_signatures: int = 20) -> Case:
    """Draw (records, signatures), with sizes from a seed: Hypothesis draws mostly small ones."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    ambiguous = draw(st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.6, 0.9, 1.0]))
    longest = draw(st.sampled_from([40, 12, 70, 150, 3]))
    reads = draw(st.sampled_from([400, 150, 64, 20, 1]))
    signatures = [
        random_letters(rng, int(rng.integers(1, longest + 1)), ambiguous)
        for _ in range(rng.integers(1, most_signatures + 1))
    ]
    records = [
        planted(rng, int(rng.integers(0, reads + 1)), signatures, ambiguous)
        for _ in range(rng.integers(0, most_records + 1))
    ]
    return records, signatures


LEGAL = set(MEANING) | {letter.lower() for letter in MEANING}


# ---- what the reference rests on --------------------------------------------------------------

letters_of = st.text("".join(sorted(LEGAL)), max_size=30)
