"""Generated signatures and samples: the same seed gives the same bytes, on every machine.

The quantities are those of the classical course generators, whose defaults are
`gen_sig 1000 3000 10000 0.1` and `gen_sample sig.fasta 2000 20 1 2 100000 200000 10 30 0.1`.

All randomness is taken from the raw words of PCG64, which NumPy keeps the same on every platform
and in every version; each part (lengths, bases, Ns, qualities, planting) has a stream of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.random import PCG64, SeedSequence
from numpy.typing import NDArray

from multigpu.errors import UsageError

BASES = b"ACGT"
N = ord("N")
LOWEST_QUALITY = ord("!")  # the letter of Phred score 0
HIGHEST_PHRED = ord("~") - LOWEST_QUALITY
BLOCK_BASES = 1 << 20  # bases of a block, unless one record is longer
STEP = 1 << 17  # bases made at a time; a multiple of the bases one random word gives
WORDS = 1 << 16  # values of a random uint16
LIMIT = 1 << 32  # lengths and counts stay below


class Sink(Protocol):
    """Where the text goes: a binary file, or something that compresses."""

    def write(self, data: bytes, /) -> Any: ...


def signatures(
    out: Sink, count: int, min_length: int, max_length: int, n_ratio: float, seed: int
) -> None:
    """Write `count` random signatures sig0, sig1, … as FASTA, one line a sequence.

    out         gets whole records, about a megabyte at a time
    min_length  bases of the shortest; lengths are uniform up to and with `max_length`
    n_ratio     chance of a base to be N, 0..1, to within 1/65536
    raises      UsageError for impossible quantities, before anything is written
    """
    shape = _Shape(min_length, max_length, n_ratio, seed, _SIGNATURES)
    _check_count("count", count)
    places = shape.stream(_NS)
    for block in _blocks(count, shape):
        _put_ns(block.letters, n_ratio, places)
        out.write(block.fasta(b"sig"))


def samples(
    out: Sink,
    signatures: Sequence[NDArray[np.uint8]],
    clean: int,
    infected: int,
    min_signatures: int,
    max_signatures: int,
    min_length: int,
    max_length: int,
    min_phred: int,
    max_phred: int,
    n_ratio: float,
    seed: int,
    fasta: bool = False,
) -> None:
    """Write samples smp0, smp1, … as FASTQ: `clean` random ones and `infected` ones, shuffled.

    out             gets whole records, a few megabytes at a time
    signatures      uint8[length] each, ASCII letters; an infected sample holds min_signatures to
                    max_signatures different ones at random places that do not overlap, an N of
                    theirs as a random base
    min_length      bases of the shortest sample; lengths are uniform up to and with `max_length`
    min_phred       qualities are uniform from here up to and with `max_phred`, 0..93
    n_ratio         chance of a base of the finished sample to be N, 0..1, to within 1/65536
    fasta           the same sequences as FASTA, without qualities
    raises          UsageError for impossible quantities, before anything is written; among them
                    signatures that would not fit into the shortest sample
    """
    shape = _Shape(min_length, max_length, n_ratio, seed, _SAMPLES)
    _check_count("clean", clean)
    _check_count("infected", infected)
    _check_range("phred", min_phred, max_phred, 0, HIGHEST_PHRED)
    planter = _Planter(signatures, min_signatures, max_signatures, shape.stream(_PLANTS))
    if infected:
        planter.check(min_length)
    chosen = _choose(infected, clean + infected, shape.stream(_ORDER))
    places, scores = shape.stream(_NS), shape.stream(_QUALITIES)
    for block in _blocks(clean + infected, shape):
        here = chosen[block.first : block.first + len(block)]
        for record in np.flatnonzero(here).tolist():
            planter.plant(block.record(record))
        _put_ns(block.letters, n_ratio, places)
        if fasta:
            out.write(block.fasta(b"smp"))
        else:
            qualities = _qualities(block.letters.size, min_phred, max_phred, scores)
            out.write(block.fastq(b"smp", qualities))


def _check_count(what: str, value: int) -> None:
    _check_at_least(0, what, value)
    if value >= LIMIT:
        raise UsageError(f"{what} must be less than {LIMIT:,}")


def _check_at_least(least: int, what: str, value: int) -> None:
    if value < least:
        raise UsageError(f"{what} is {value}: it must be at least {least}")


def _check_range(what: str, low: int, high: int, least: int, most: int) -> None:
    if low > high:
        raise UsageError(f"min-{what} {low} is more than max-{what} {high}")
    if low < least or high > most:
        raise UsageError(f"{what} {low} to {high}: it must lie within {least} to {most}")


_SIGNATURES, _SAMPLES = range(2)
_LENGTHS, _LETTERS, _NS, _QUALITIES, _ORDER, _PLANTS = range(6)  # streams: never renumber


class _Stream:
    """One stream of random numbers."""

    def __init__(self, seed: int, *place: int) -> None:
        self._bits = PCG64(SeedSequence(seed, spawn_key=place))

    def bytes(self, count: int) -> NDArray[np.uint8]:
        """uint8[count]"""
        words: NDArray[np.uint64] = self._bits.random_raw(-(-count // 8))
        return words.astype("<u8", copy=False).view(np.uint8)[:count]

    def words(self, count: int) -> NDArray[np.uint16]:
        """uint16[count], little-endian"""
        return self.bytes(2 * count).view("<u2")

    def below(self, limit: int | NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """int64[count], each 0 <= x < limit <= 2^32; one limit, or one for each."""
        halves: NDArray[np.uint64] = self._bits.random_raw(count) >> np.uint64(32)
        return ((halves * np.asarray(limit, np.uint64)) >> np.uint64(32)).astype(np.int64)


@dataclass(frozen=True)
class _Shape:
    """What the records of a file have in common. Raises UsageError where that is impossible."""

    min_length: int
    max_length: int
    n_ratio: float
    seed: int
    kind: int  # signatures and samples of one seed have nothing in common

    def __post_init__(self) -> None:
        _check_range("length", self.min_length, self.max_length, 1, LIMIT - 1)
        _check_at_least(0, "seed", self.seed)
        if not 0 <= self.n_ratio <= 1:
            raise UsageError(f"n-ratio is {self.n_ratio}: it must lie within 0 to 1")

    def stream(self, part: int) -> _Stream:
        return _Stream(self.seed, self.kind, part)

    def lengths(self, count: int, random: _Stream) -> NDArray[np.int64]:
        """int64[count], in bases"""
        return self.min_length + random.below(self.max_length - self.min_length + 1, count)


@dataclass(frozen=True)
class _Block:
    """Consecutive records.

    first    number of the first
    borders  int64[records + 1]    record i has the letters borders[i] up to borders[i + 1]
    letters  uint8[borders[-1]]    ASCII, writeable
    """

    first: int
    borders: NDArray[np.int64]
    letters: NDArray[np.uint8]

    def __len__(self) -> int:
        return self.borders.size - 1

    def record(self, number: int) -> NDArray[np.uint8]:
        """The letters of a record of the block, counted from 0: a view."""
        return self.letters[self.borders[number] : self.borders[number + 1]]

    def _places(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """Every record's number in the file, where it begins and where it ends."""
        return enumerate(pairwise(self.borders.tolist()), self.first)

    def fasta(self, prefix: bytes) -> bytes:
        text = self.letters.tobytes()
        return b"".join([b">%b%d\n%b\n" % (prefix, i, text[a:b]) for i, (a, b) in self._places()])

    def fastq(self, prefix: bytes, qualities: NDArray[np.uint8]) -> bytes:
        text, marks = self.letters.tobytes(), qualities.tobytes()
        return b"".join(
            [
                b"@%b%d\n%b\n+\n%b\n" % (prefix, i, text[a:b], marks[a:b])
                for i, (a, b) in self._places()
            ]
        )


def _blocks(count: int, shape: _Shape) -> Iterator[_Block]:
    """`count` records of random bases, in blocks: one long record or many short ones."""
    lengths, letters = shape.stream(_LENGTHS), shape.stream(_LETTERS)
    size = max(1, BLOCK_BASES // shape.max_length)
    for first in range(0, count, size):
        borders = np.zeros(min(size, count - first) + 1, np.int64)
        np.cumsum(shape.lengths(borders.size - 1, lengths), out=borders[1:])
        yield _Block(first, borders, _random_letters(int(borders[-1]), letters))


def _steps(size: int) -> Iterator[slice]:
    """Slices of at most STEP that cover `size`: temporary arrays stay in the cache."""
    return (slice(start, min(start + STEP, size)) for start in range(0, size, STEP))


def _four_letters() -> NDArray[np.uint32]:
    """uint32[256], little-endian: the four letters that a random byte stands for."""
    numbers = np.arange(256)[:, None] >> np.array([0, 2, 4, 6]) & 3
    table: NDArray[np.uint32] = np.frombuffer(BASES, np.uint8)[numbers].view("<u4").ravel()
    return table


def _random_letters(size: int, random: _Stream) -> NDArray[np.uint8]:
    """uint8[size] of A, C, G and T, as likely each."""
    table = _four_letters()
    letters = np.empty(size, np.uint8)
    for part in _steps(size):
        bases = letters[part]
        fours = np.take(table, random.bytes(-(-bases.size // 4)))
        bases[:] = fours.view(np.uint8)[: bases.size]
    return letters


def _put_ns(letters: NDArray[np.uint8], ratio: float, random: _Stream) -> None:
    """Turn about `ratio` of the letters into N, in place."""
    limit = round(ratio * WORDS)
    if limit == 0:
        return
    for part in _steps(letters.size):
        bases = letters[part]
        np.putmask(bases, random.words(bases.size) <= np.uint16(limit - 1), N)


def _qualities(size: int, low: int, high: int, random: _Stream) -> NDArray[np.uint8]:
    """uint8[size]: FASTQ letters of Phred scores low..high, as likely each."""
    qualities = np.empty(size, np.uint8)
    for part in _steps(size):
        marks = qualities[part]
        scores = random.words(marks.size).astype(np.uint32)
        scores *= high - low + 1
        scores >>= 16
        scores += low + LOWEST_QUALITY
        marks[:] = scores
    return qualities


def _choose(count: int, total: int, random: _Stream) -> NDArray[np.bool]:
    """bool[total] with `count` true ones, every choice as likely."""
    rarer = min(count, total - count)
    chosen = np.zeros(total, np.bool)
    while missing := rarer - int(np.count_nonzero(chosen)):
        chosen[random.below(total, missing)] = True
    return chosen if rarer == count else ~chosen


class _Planter:
    """Puts signatures into samples."""

    def __init__(
        self, signatures: Sequence[NDArray[np.uint8]], low: int, high: int, random: _Stream
    ) -> None:
        self._signatures = [np.ascontiguousarray(letters, np.uint8) for letters in signatures]
        self._fixed = [(letters | 32) != ord("n") for letters in self._signatures]
        self._low, self._high, self._random = low, high, random

    def check(self, shortest: int) -> None:
        """Raise UsageError where a sample of `shortest` bases may not hold what it should."""
        count = len(self._signatures)
        _check_range("signatures", self._low, self._high, 0, LIMIT - 1)
        if self._high > count:
            raise UsageError(f"max-signatures is {self._high}, but there are {count} signatures")
        lengths = sorted((letters.size for letters in self._signatures), reverse=True)
        for number, letters in enumerate(self._signatures, 1):
            if self._high and letters.size > shortest:
                raise UsageError(
                    f"signature {number} of {count} ({letters.size:,} bases) is longer than the "
                    f"shortest sample (min-length {shortest:,} bases)"
                )
        if (together := sum(lengths[: self._high])) > shortest:
            raise UsageError(
                f"{self._high} signatures can have {together:,} bases together and do not fit "
                f"into the shortest sample (min-length {shortest:,} bases)"
            )

    def plant(self, sample: NDArray[np.uint8]) -> None:
        """Plant signatures in a sample of random bases, in place."""
        start = 0
        for number, gap in self._draw(sample.size):
            letters = self._signatures[number]
            place = sample[start + gap : start + gap + letters.size]
            np.copyto(place, letters, where=self._fixed[number])
            start += letters.size

    def _draw(self, size: int) -> list[tuple[int, int]]:
        """Different signatures in random order, each with the bases no signature took before it."""
        wanted = self._low + int(self._random.below(self._high - self._low + 1, 1)[0])
        numbers = self._some(wanted)
        free = size - sum(self._signatures[number].size for number in numbers)
        gaps = np.sort(self._random.below(free + 1, wanted)).tolist()
        return list(zip(numbers, gaps, strict=True))

    def _some(self, wanted: int) -> list[int]:
        """The numbers of `wanted` different signatures, by the first steps of a shuffle."""
        numbers = list(range(len(self._signatures)))
        left = len(numbers) - np.arange(wanted)
        for place, step in enumerate(self._random.below(left, wanted).tolist()):
            other = place + step
            numbers[place], numbers[other] = numbers[other], numbers[place]
        return numbers[:wanted]
