"""Generated signatures and samples: the same seed gives the same bytes, on every machine.

The quantities are those of the classical course generators, whose defaults are
`gen_sig 1000 3000 10000 0.1` and `gen_sample sig.fasta 2000 20 1 2 100000 200000 10 30 0.1`.

All random numbers are those of NumPy's `RandomState`, which are the same on every platform and in
every version; each part (lengths, bases, Ns, qualities, planting) has its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.random import PCG64, RandomState, SeedSequence
from numpy.typing import NDArray

from multigpu.errors import UsageError, option
from multigpu.formats.storage.compressed import Compressed

BASES = np.frombuffer(b"ACGT", np.uint8)
N = ord("N")
LOWEST_QUALITY = ord("!")  # the letter of Phred score 0
BLOCK_BASES = 1 << 20  # bases made at a time, unless one record is longer

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
    raises      UsageError where a range is empty, before anything is written
    """
    records = _Records(SIGNATURES, min_length, max_length, n_ratio, seed)
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
    raises          UsageError where a range is empty, or signatures would not fit into the
                    shortest sample, before anything is written
    """
    records = _Records(SAMPLES, min_length, max_length, n_ratio, seed)
    _check_order("phred", min_phred, max_phred)
    if infected:
        _check_planting(signatures, min_signatures, max_signatures, min_length)
    is_infected = records.stream(ORDER).permutation(np.arange(clean + infected) < infected)
    plants, ns, scores = map(records.stream, (PLANTS, NS, QUALITIES))
    for first, letters, each in records.blocks(clean + infected):
        for record in np.flatnonzero(is_infected[first : first + len(each)]).tolist():
            wanted = plants.randint(min_signatures, max_signatures + 1)
            _plant(each[record], signatures, wanted, plants)
        _put_ns(letters, n_ratio, ns)
        if fasta:
            out.write(_fasta(b"smp", first, each))
        else:
            low, high = min_phred + LOWEST_QUALITY, max_phred + LOWEST_QUALITY
            marks = scores.randint(low, high + 1, letters.size, np.uint8)
            out.write(_fastq(first, each, marks))


def write_demo(folder: Path) -> tuple[str, str]:
    """Write samples.fastq and signatures.fasta, some megabytes; return their paths."""
    searched, wanted = folder / "samples.fastq", folder / "signatures.fasta"
    with wanted.open("wb") as out:
        signatures(out, 40, 300, 1000, 0.1, seed=1)
    planted = [np.frombuffer(line, np.uint8) for line in wanted.read_bytes().split(b"\n")[1::2]]
    with searched.open("wb") as out:
        samples(out, planted, 40, 20, 1, 3, 20_000, 60_000, 10, 30, 0.1, seed=1)
    return str(searched), str(wanted)


# ---- records ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Records:
    """Quantities that all records of a file share. Raises UsageError for an empty range."""

    kind: int
    min_length: int
    max_length: int
    n_ratio: float
    seed: int

    def __post_init__(self) -> None:
        _check_order("length", self.min_length, self.max_length)

    def stream(self, part: int) -> RandomState:
        """Return a source of random numbers: signatures and samples of one seed share nothing."""
        return RandomState(PCG64(SeedSequence(self.seed, spawn_key=(self.kind, part))))

    def blocks(self, count: int) -> Iterator[tuple[int, Letters, list[Letters]]]:
        """Yield `count` records of random bases, in blocks: one long record or many short ones.

        A block is the number of its first record, the letters of all, and those of each: views.
        """
        lengths, bases = self.stream(LENGTHS), self.stream(LETTERS)
        size = max(1, BLOCK_BASES // self.max_length)
        for first in range(0, count, size):
            some = min(size, count - first)
            here = lengths.randint(self.min_length, self.max_length + 1, some, np.int64)
            letters = BASES[bases.randint(0, 4, here.sum(), np.uint8)]
            yield first, letters, np.split(letters, np.cumsum(here[:-1]))


def _fasta(prefix: bytes, first: int, records: Sequence[Letters]) -> bytes:
    """Return records as FASTA; `first` is the number of the first one."""
    numbered = enumerate(records, first)
    return b"".join([b">%b%d\n%b\n" % (prefix, i, record.tobytes()) for i, record in numbered])


def _fastq(first: int, records: Sequence[Letters], qualities: Letters) -> bytes:
    """Return samples as FASTQ; the qualities of all stand one after the other."""
    ends = np.cumsum([record.size for record in records])
    numbered = enumerate(zip(records, np.split(qualities, ends[:-1]), strict=True), first)
    parts = [(i, record.tobytes(), marks.tobytes()) for i, (record, marks) in numbered]
    return b"".join([b"@smp%d\n%b\n+\n%b\n" % part for part in parts])


# ---- letters ------------------------------------------------------------------------------------


def _put_ns(letters: Letters, ratio: float, random: RandomState) -> None:
    """Turn about `ratio` of the letters into N, in place."""
    limit = round(ratio * (1 << 16))
    if limit:
        letters[random.randint(0, 1 << 16, letters.size, np.uint16) < limit] = N


# ---- planting -----------------------------------------------------------------------------------


def _plant(
    sample: Letters, signatures: Sequence[Letters], wanted: int, random: RandomState
) -> None:
    """Plant `wanted` different signatures in a sample, in random order; Ns keep what is there."""
    planted = [signatures[number] for number in random.permutation(len(signatures))[:wanted]]
    free = sample.size - sum(letters.size for letters in planted)
    start = 0
    gaps = np.sort(random.randint(0, free + 1, wanted, np.int64))
    for letters, gap in zip(planted, gaps, strict=True):
        place = sample[start + gap : start + gap + letters.size]
        np.copyto(place, letters, where=letters | 32 != ord("n"))
        start += letters.size


def _check_planting(signatures: Sequence[Letters], low: int, high: int, shortest: int) -> None:
    """Raise UsageError where a sample of `shortest` bases may not hold low..high signatures."""
    count = len(signatures)
    _check_order("signatures", low, high)
    if high > count:
        raise UsageError(f"{option('max_signatures')} is {high}, but there are {count} signatures")
    lengths = sorted((letters.size for letters in signatures), reverse=True)
    if (together := sum(lengths[:high])) > shortest:
        raise UsageError(
            f"{high} signatures can have {together:,} bases together and do not fit "
            f"into the shortest sample ({option('min_length')}, {shortest:,} bases)"
        )


def _check_order(what: str, low: int, high: int) -> None:
    """Raise UsageError where low..high is empty."""
    if low > high:
        raise UsageError(f"{option(f'min_{what}')} {low} is above {option(f'max_{what}')} {high}")
