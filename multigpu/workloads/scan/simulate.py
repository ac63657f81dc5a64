"""Generated signatures and samples: the same seed gives the same bytes, on every machine.

The quantities are those of the classical course generators, whose defaults are
`gen_sig 1000 3000 10000 0.1` and `gen_sample sig.fasta 2000 20 1 2 100000 200000 10 30 0.1`.

All randomness is taken from the raw words of PCG64, which NumPy keeps the same on every platform
and in every version; each part (lengths, bases, Ns, qualities, planting) has its own stream.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.random import PCG64, SeedSequence
from numpy.typing import NDArray

from multigpu.errors import UsageError
from multigpu.formats.storage.compressed import Compressed
from multigpu.run.values import abbreviate

# uint8[256, 4]: the four letters that a random byte stands for.
BASES = np.frombuffer(b"ACGT", np.uint8)[np.arange(256)[:, None] >> np.array([0, 2, 4, 6]) & 3]
N = ord("N")
LOWEST_QUALITY = ord("!")  # the letter of Phred score 0
HIGHEST_PHRED = ord("~") - LOWEST_QUALITY
BLOCK_BASES = 1 << 20  # bases made at a time, unless one record is longer
WORDS = 1 << 16  # values of a random uint16
LIMIT = 1 << 32  # lengths and counts stay below
DEMO_SEED = 1

Letters = NDArray[np.uint8]

# Numbers of the streams of random numbers: changing one changes what every seed gives.
SIGNATURES, SAMPLES = range(2)
LENGTHS, LETTERS, NS, QUALITIES, ORDER, PLANTS = range(6)


def signatures(
    out: BinaryIO | Compressed,
    count: int,
    min_length: int,
    max_length: int,
    n_ratio: float,
    seed: int,
) -> None:
    """Write `count` random signatures sig0, sig1, … as FASTA, one line a sequence.

    out         gets whole records, about a megabyte at a time
    min_length  bases of the shortest; lengths are uniform up to and with `max_length`
    n_ratio     chance of a base to be N, 0..1, to within 1/65536
    raises      UsageError for impossible quantities, before anything is written
    """
    records = _Records(SIGNATURES, min_length, max_length, n_ratio, seed)
    _check_count("count", count)
    ns = records.stream(NS)
    for first, letters, each in records.blocks(count):
        _put_ns(letters, n_ratio, ns)
        out.write(_fasta(b"sig", first, each))


def samples(
    out: BinaryIO | Compressed,
    signatures: Sequence[Letters],
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
    records = _Records(SAMPLES, min_length, max_length, n_ratio, seed)
    _check_count("clean", clean)
    _check_count("infected", infected)
    _check_range("phred", min_phred, max_phred, 0, HIGHEST_PHRED)
    if infected:
        _check_planting(signatures, min_signatures, max_signatures, min_length)
    is_infected = _choose(infected, clean + infected, records.stream(ORDER))
    spread = max_signatures - min_signatures + 1
    plants, ns, scores = map(records.stream, (PLANTS, NS, QUALITIES))
    for first, letters, each in records.blocks(clean + infected):
        for record in np.flatnonzero(is_infected[first : first + len(each)]).tolist():
            wanted = min_signatures + plants.below(spread, 1).item()
            _plant(each[record], signatures, wanted, plants)
        _put_ns(letters, n_ratio, ns)
        if fasta:
            out.write(_fasta(b"smp", first, each))
        else:
            out.write(_fastq(first, each, _qualities(letters.size, min_phred, max_phred, scores)))


def write_demo(folder: str | Path) -> tuple[Path, Path]:
    """Write samples.fastq and signatures.fasta: a few megabytes, a third of the samples infected.

    folder  made where it is missing; files of these names are replaced

    Returns the paths of both, in this order.
    """
    sample_file, signature_file = Path(folder, "samples.fastq"), Path(folder, "signatures.fasta")
    sample_file.parent.mkdir(parents=True, exist_ok=True)
    with signature_file.open("wb") as out:
        signatures(out, count=40, min_length=300, max_length=1000, n_ratio=0.1, seed=DEMO_SEED)
    planted = signature_file.read_bytes().split(b"\n")[1::2]
    with sample_file.open("wb") as out:
        samples(
            out,
            [np.frombuffer(letters, np.uint8) for letters in planted],
            clean=40,
            infected=20,
            min_signatures=1,
            max_signatures=3,
            min_length=20_000,
            max_length=60_000,
            min_phred=10,
            max_phred=30,
            n_ratio=0.1,
            seed=DEMO_SEED,
        )
    return sample_file, signature_file


# ---- records ------------------------------------------------------------------------------------


class _Stream:
    """A stream of random numbers."""

    def __init__(self, seed: int, *key: int) -> None:
        self._bits = PCG64(SeedSequence(seed, spawn_key=key))

    def bytes(self, count: int) -> Letters:
        """Return uint8[count]."""
        words: NDArray[np.uint64] = self._bits.random_raw(-(-count // 8))
        return words.astype("<u8", copy=False).view(np.uint8)[:count]

    def words(self, count: int) -> NDArray[np.uint16]:
        """Return uint16[count]."""
        return self.bytes(2 * count).view("<u2")

    def below(self, limit: int | NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """Return int64[count], each 0 <= x < limit <= 2^32; one limit, or one for each."""
        halves: NDArray[np.uint64] = self._bits.random_raw(count) >> np.uint64(32)
        return ((halves * np.asarray(limit, np.uint64)) >> np.uint64(32)).astype(np.int64)


@dataclass(frozen=True)
class _Records:
    """Quantities that all records of a file share. Raises UsageError for impossible ones."""

    kind: int
    min_length: int
    max_length: int
    n_ratio: float
    seed: int

    def __post_init__(self) -> None:
        _check_range("length", self.min_length, self.max_length, 1, LIMIT - 1)
        if self.seed < 0:
            raise UsageError(f"seed is {abbreviate(self.seed)}; it must be 0 or more")
        if not 0 <= self.n_ratio <= 1:
            raise UsageError(f"n-ratio is {self.n_ratio}; it must be 0 to 1")

    def stream(self, part: int) -> _Stream:
        """Return a stream of random numbers: signatures and samples of one seed share nothing."""
        return _Stream(self.seed, self.kind, part)

    def blocks(self, count: int) -> Iterator[tuple[int, Letters, list[Letters]]]:
        """Yield `count` records of random bases, in blocks: one long record or many short ones.

        A block is the number of its first record, the letters of all, and those of each: views.
        """
        lengths, bases = self.stream(LENGTHS), self.stream(LETTERS)
        size = max(1, BLOCK_BASES // self.max_length)
        spread = self.max_length - self.min_length + 1
        for first in range(0, count, size):
            here = self.min_length + lengths.below(spread, min(size, count - first))
            total = int(here.sum())
            letters = BASES[bases.bytes(-(-total // 4))].ravel()[:total]
            yield first, letters, np.split(letters, np.cumsum(here[:-1]))


def _fasta(prefix: bytes, first: int, records: Sequence[Letters]) -> bytes:
    """Return records as FASTA; `first` is the number of the first one."""
    numbered = enumerate(records, first)
    return b"".join([b">%b%d\n%b\n" % (prefix, i, record.tobytes()) for i, record in numbered])


def _fastq(first: int, records: Sequence[Letters], qualities: Letters) -> bytes:
    """Return samples as FASTQ; the qualities of all stand one after the other."""
    lines, marks, begin = [], qualities.tobytes(), 0
    for number, record in enumerate(records, first):
        end = begin + record.size
        lines.append(b"@smp%d\n%b\n+\n%b\n" % (number, record.tobytes(), marks[begin:end]))
        begin = end
    return b"".join(lines)


# ---- letters ------------------------------------------------------------------------------------


def _put_ns(letters: Letters, ratio: float, random: _Stream) -> None:
    """Turn about `ratio` of the letters into N, in place."""
    limit = round(ratio * WORDS)
    if limit:
        letters[random.words(letters.size) < limit] = N


def _qualities(size: int, low: int, high: int, random: _Stream) -> Letters:
    """Return uint8[size]: FASTQ letters of Phred scores low..high, each as likely."""
    scores = random.words(size).astype(np.uint32)
    scores *= high - low + 1
    scores >>= 16
    scores += low + LOWEST_QUALITY
    return scores.astype(np.uint8)


def _choose(count: int, total: int, random: _Stream) -> NDArray[np.bool]:
    """Return bool[total] with `count` true ones, every choice as likely."""
    rarer = min(count, total - count)
    chosen = np.zeros(total, np.bool)
    while missing := rarer - int(np.count_nonzero(chosen)):
        chosen[random.below(total, missing)] = True
    return chosen if rarer == count else ~chosen


# ---- planting -----------------------------------------------------------------------------------


def _plant(sample: Letters, signatures: Sequence[Letters], wanted: int, random: _Stream) -> None:
    """Plant `wanted` different signatures in a sample, in random order; Ns keep what is there."""
    # The first steps of a shuffle.
    numbers = list(range(len(signatures)))
    left = len(numbers) - np.arange(wanted)
    for at, step in enumerate(random.below(left, wanted).tolist()):
        numbers[at], numbers[at + step] = numbers[at + step], numbers[at]
    planted = [signatures[number] for number in numbers[:wanted]]
    free = sample.size - sum(letters.size for letters in planted)
    start = 0
    for letters, gap in zip(planted, np.sort(random.below(free + 1, wanted)), strict=True):
        place = sample[start + gap : start + gap + letters.size]
        np.copyto(place, letters, where=letters | 32 != ord("n"))
        start += letters.size


def _check_planting(signatures: Sequence[Letters], low: int, high: int, shortest: int) -> None:
    """Raise UsageError where a sample of `shortest` bases may not hold low..high signatures."""
    count = len(signatures)
    _check_range("signatures", low, high, 0, LIMIT - 1)
    if high > count:
        raise UsageError(f"max-signatures is {high}, but there are {count} signatures")
    lengths = [letters.size for letters in signatures]
    for number, length in enumerate(lengths, 1):
        if high and length > shortest:
            raise UsageError(
                f"signature {number} of {count} ({length:,} bases) is longer than the "
                f"shortest sample (min-length {shortest:,} bases)"
            )
    if (together := sum(sorted(lengths, reverse=True)[:high])) > shortest:
        raise UsageError(
            f"{high} signatures can have {together:,} bases together and do not fit "
            f"into the shortest sample (min-length {shortest:,} bases)"
        )


# ---- checks -------------------------------------------------------------------------------------


def _check_count(what: str, value: int) -> None:
    if not 0 <= value < LIMIT:
        raise UsageError(f"{what} is {abbreviate(value)}; it must be 0 to {LIMIT - 1:,}")


def _check_range(what: str, low: int, high: int, least: int, most: int) -> None:
    """Raise UsageError where low..high is empty, or not within least..most."""
    if low > high:
        raise UsageError(f"min-{what} {low} is more than max-{what} {high}")
    if low < least or high > most:
        raise UsageError(f"{what} {low} to {high}; it must lie within {least} to {most}")
