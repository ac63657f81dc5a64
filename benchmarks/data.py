"""Inputs of the benchmarks: generated files, and data sets in memory.

Files are made once and used again: a file has its name only when it is complete.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import common
import numpy as np
from numpy.typing import NDArray
from searches import Letters

from multigpu.formats.sequences.fastq import FASTQ
from multigpu.formats.sequences.signatures import read_signatures
from multigpu.kernels.compiled.text.records import LENGTH, gather
from multigpu.workloads.scan import simulate

GZIP_LEVEL = 1
READ_BASES = 150
READS_PER_BLOCK = 250_000
LETTERS = np.frombuffer(b"ACGT", np.uint8)
FOURS = LETTERS[np.arange(256)[:, None] >> np.array([0, 2, 4, 6]) & 3]
FOURS = FOURS.view("<u4").ravel()  # uint32[256]: the four letters that a random byte stands for
N = ord("N")
CODES = np.full(256, 255, np.uint8)  # numbers of the four letters
CODES[LETTERS] = range(4)
MARKS = (np.arange(256) * 21 // 256 + 33 + 10).astype(np.uint8)  # random byte -> Phred 10..30


def made(path: Path, write: Callable[[Path], None]) -> Path:
    """Return `path`, after `write` has made it where it does not exist."""
    if not path.exists():
        common.say(f"  making {path}")
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        write(part)
        part.rename(path)
    return path


def in_page_cache(path: Path) -> Path:
    """Read the whole file once; return its path."""
    buffer = bytearray(8 << 20)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return path


# ---- the default data set ---------------------------------------------------------------------


@dataclass(frozen=True)
class DefaultSet:
    """Files of the default data set, smaller where `scale` is below 1."""

    folder: Path
    n_percent: int
    scale: float

    @property
    def clean(self) -> int:
        return max(1, round(2000 * self.scale))

    @property
    def infected(self) -> int:
        return max(1, round(20 * self.scale))

    @property
    def signatures(self) -> Path:
        def write(path: Path) -> None:
            with path.open("wb") as out:
                simulate.signatures(out, 1000, 3000, 10_000, self.n_percent / 100, seed=1)

        return made(self.folder / f"signatures-{self.n_percent}n.fasta", write)

    @property
    def samples(self) -> Path:
        """Samples, by another seed than the signatures: else both are the same random letters."""

        def write(path: Path) -> None:
            planted = read_signatures([str(self.signatures)]).letters
            quantities = (self.clean, self.infected, 1, 2, 100_000, 200_000, 10, 30)
            with path.open("wb") as out:
                simulate.samples(out, planted, *quantities, self.n_percent / 100, seed=2)

        return made(self.folder / f"samples-{self.n_percent}n.fastq", write)

    def copies(self, count: int) -> Path:
        """Return the samples `count` times; those of copy 3 are named c03_smp0, c03_smp1, …."""
        path = self.folder / f"samples-{self.n_percent}n-{count}times.fastq"
        return made(path, lambda part: _write_copies(part, self.samples, count))

    def gzipped(self, copies: int) -> Path:
        """Return the samples as a gzip file of `copies` equal members."""
        path = self.folder / f"samples-{self.n_percent}n-{copies}times.fastq.gz"
        return made(path, lambda part: _write_gzip(part, self.samples, copies))


def copy_prefix(number: int) -> bytes:
    return b"c%02d_" % number


def _write_copies(target: Path, samples: Path, count: int) -> None:
    raw = samples.read_bytes()  # no quality is as high as 31, which is written as @
    with target.open("wb") as out:
        for number in range(count):
            out.write(raw.replace(b"@", b"@" + copy_prefix(number)))


def _write_gzip(target: Path, samples: Path, copies: int) -> None:
    from isal import igzip

    member = igzip.compress(samples.read_bytes(), GZIP_LEVEL)
    with target.open("wb") as out:
        for _ in range(copies):
            out.write(member)


def parsed(raw: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the table of a FASTQ's records (see `multigpu.kernels.compiled.text.records`)."""
    return FASTQ.parse(raw, True, 33).table


def letters_of(samples: Path) -> Letters:
    """Return the bases of a FASTQ file, in ordinary memory."""
    raw = np.fromfile(samples, np.uint8)
    table = parsed(raw)
    offsets = np.concatenate([[0], np.cumsum(table[:, LENGTH])])
    letters = np.empty(offsets[-1], np.uint8)
    gather(raw, table, letters, 0)
    return Letters(letters, offsets)


# ---- many short reads -------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadSet:
    """Reads of 150 bases, 0.1 % N, one in a hundred with one of 1,000 short signatures."""

    folder: Path
    count: int

    @property
    def signatures(self) -> Path:
        def write(path: Path) -> None:
            with path.open("wb") as out:
                simulate.signatures(out, 1000, 24, 40, 0.0, seed=1)

        return made(self.folder / "signatures-short.fasta", write)

    def changed_signatures(self, mismatches: int) -> Path:
        """Return the signatures, each with some other bases than those that were planted."""

        def write(path: Path) -> None:
            random = np.random.default_rng(8)
            signatures = read_signatures([str(self.signatures)])
            with path.open("wb") as out:
                for name, planted in zip(signatures.names, signatures.letters, strict=True):
                    letters = planted.copy()
                    places = random.choice(len(letters), mismatches, replace=False)
                    letters[places] = other_letters(letters[places], random)
                    out.write(b">%b\n%b\n" % (name, letters.tobytes()))

        return made(self.folder / f"signatures-short-{mismatches}x.fasta", write)

    @property
    def reads(self) -> Path:
        return made(self.folder / f"reads-{self.count}.fastq", self._write)

    @property
    def planted(self) -> NDArray[np.int64]:
        """Planted signatures, int64[n, 3]: read, signature, start, in the order of the reads."""
        return np.load(self.folder / f"reads-{self.count}.npy")

    def _write(self, target: Path) -> None:
        signatures = read_signatures([str(self.signatures)]).letters
        with target.open("wb") as file, ThreadPoolExecutor(common.cores()) as pool:

            def write(first: int) -> NDArray[np.int64]:
                count = min(READS_PER_BLOCK, self.count - first)
                block, planted = _read_block(first, count, signatures)
                os.pwrite(file.fileno(), block.tobytes(), first * block.shape[1])
                return planted

            planted = list(pool.map(write, range(0, self.count, READS_PER_BLOCK)))
        np.save(self.folder / f"reads-{self.count}.npy", np.concatenate(planted))


def _read_block(
    first: int, count: int, signatures: list[NDArray[np.uint8]]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return FASTQ records of one width as rows, and what was planted in them."""
    random = np.random.default_rng([7, first])
    template = b"@r%08d\n%b\n+\n%b\n" % (0, bytes(READ_BASES), bytes(READ_BASES))
    block = np.empty((count, len(template)), np.uint8)
    block[:] = np.frombuffer(template, np.uint8)
    numbers = np.arange(first, first + count)
    for digit in range(8):
        block[:, 9 - digit] = numbers // 10**digit % 10 + ord("0")
    letters = random_letters(count * READ_BASES, random).reshape(count, READ_BASES)
    planted = _plant_reads(letters, first, signatures, random)
    put_ns(letters.reshape(-1), 0.001, random)
    block[:, 11 : 11 + READ_BASES] = letters
    block[:, -1 - READ_BASES : -1] = MARKS[random_bytes(letters.size, random)].reshape(count, -1)
    return block, planted


def _plant_reads(
    letters: NDArray[np.uint8],
    first: int,
    signatures: list[NDArray[np.uint8]],
    random: np.random.Generator,
) -> NDArray[np.int64]:
    chosen = np.flatnonzero(random.integers(0, 100, len(letters)) == 0)
    numbers = random.integers(0, len(signatures), len(chosen))
    lengths = np.array([len(signature) for signature in signatures])[numbers]
    starts = random.integers(0, READ_BASES - lengths + 1)
    for read, number, start in zip(chosen, numbers, starts, strict=True):
        letters[read, start : start + len(signatures[number])] = signatures[number]
    return np.stack([chosen + first, numbers, starts], axis=1)


# ---- a genome and guides ----------------------------------------------------------------------

CHROMOSOMES = 25
LINE_BASES = 50


@dataclass(frozen=True)
class Genome:
    """Random chromosomes without N, and signatures that nobody planted there; fixed seeds.

    bases  of a chromosome, whole lines
    """

    folder: Path
    bases: int

    @property
    def chromosomes(self) -> Path:
        """Return a folder of FASTA files."""
        return made(self.folder / f"genome-{self.bases}", self._write)

    def _write(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        random = np.random.default_rng(1)
        for number in range(1, CHROMOSOMES + 1):
            lines = np.full((self.bases // LINE_BASES, LINE_BASES + 1), ord("\n"), np.uint8)
            lines[:, :-1] = uniform_letters(self.bases, random).reshape(-1, LINE_BASES)
            with (folder / f"chr{number}.fa").open("wb") as out:
                out.write(b">chr%d\n" % number)
                out.write(lines.data)

    def start_of_first(self, size: int) -> NDArray[np.uint8]:
        """Return the first bases of chr1."""
        return uniform_letters(size, np.random.default_rng(1))

    def guides(self, count: int) -> Path:
        """Return guides of 20 bases and the motif NGG; fewer of them are the first of more."""
        return self._signatures(f"guides-{count}", count, 20, b"NGG", seed=5)

    def signatures(self, count: int) -> Path:
        """Return signatures of 23 bases."""
        return self._signatures(f"signatures-23-{count}", count, 23, b"", seed=6)

    def _signatures(self, name: str, count: int, length: int, end: bytes, seed: int) -> Path:
        def write(path: Path) -> None:
            random = np.random.default_rng(seed)
            with path.open("wb") as out:
                for number in range(count):
                    letters = LETTERS[random.integers(0, 4, length)].tobytes()
                    out.write(b">g%d\n%b\n" % (number, letters + end))

        return made(self.folder / f"{name}.fasta", write)


def uniform_letters(size: int, random: np.random.Generator) -> NDArray[np.uint8]:
    return LETTERS[random.integers(0, 4, size, dtype=np.uint8)]


# ---- sets in memory ---------------------------------------------------------------------------


def random_bytes(size: int, random: np.random.Generator) -> NDArray[np.uint8]:
    words = random.integers(0, 1 << 64, -(-size // 8), np.uint64)
    return words.view(np.uint8)[:size]


def random_letters(size: int, random: np.random.Generator) -> NDArray[np.uint8]:
    return np.take(FOURS, random_bytes(-(-size // 4), random)).view(np.uint8)[:size]


def put_ns(letters: NDArray[np.uint8], share: float, random: np.random.Generator) -> None:
    if share >= 1:
        letters[:] = N
    elif share > 0:
        chance = random_bytes(2 * letters.size, random).view(np.uint16)
        np.putmask(letters, chance < round(share * 65536), N)


@dataclass(frozen=True)
class Errors:
    """Shares of a planted signature's bases that differ."""

    substitutions: float = 0.0
    insertions: float = 0.0
    deletions: float = 0.0

    def apply(self, letters: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
        """Return letters with errors, none of them at an N."""
        chance = np.where(letters == N, 1.0, random.random(len(letters)))
        most = np.cumsum([self.substitutions, self.insertions, self.deletions])
        kind = np.searchsorted(most, chance, "right")
        changed = letters.copy()
        changed[kind == 0] = other_letters(letters[kind == 0], random)
        copies = np.array([1, 2, 0, 1])[kind]
        inserted = np.cumsum(copies)[kind == 1] - 1
        changed = np.repeat(changed, copies)
        changed[inserted] = random_letters(len(inserted), random)
        return changed


NO_ERRORS = Errors()


def other_letters(letters: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
    """Return another of the four letters for each."""
    return LETTERS[(CODES[letters] + random.integers(1, 4, len(letters))) % 4]


@dataclass(frozen=True)
class Shape:
    """Sizes and shares of a data set; lengths and counts are from the first to the second."""

    samples: int = 2020
    sample_length: tuple[int, int] = (100_000, 200_000)
    signatures: int = 1000
    signature_length: tuple[int, int] = (3000, 10_000)
    sample_n: float = 0.1
    signature_n: float = 0.1
    matching: float = 20 / 2020
    per_sample: tuple[int, int] = (1, 2)
    errors: Errors = NO_ERRORS

    @property
    def most_bases(self) -> int:
        return self.samples * self.sample_length[1]


@dataclass(frozen=True, eq=False)
class Set:
    """A data set in memory.

    planted  int64[n, 3]  record, signature and a start where it certainly occurs
    """

    data: Letters
    signatures: list[NDArray[np.uint8]]
    planted: NDArray[np.int64]


_OTHERS, _LETTERS, _NS = 1, 2, 3  # streams of randomness; not 0: [1, 0] is the same seed as [1]


def make_set(shape: Shape, seed: int, into: NDArray[np.uint8] | None = None) -> Set:
    """Return a data set in memory; its bases lie at the front of `into` where that is given."""
    random = np.random.default_rng([seed, _OTHERS])
    signatures = list(_signatures(shape, random))
    low, high = shape.sample_length
    offsets = np.zeros(shape.samples + 1, np.int64)
    np.cumsum(random.integers(low, high + 1, shape.samples), out=offsets[1:])
    total = int(offsets[-1])
    letters = np.empty(total, np.uint8) if into is None else into[:total]
    _each_block(letters, _fill, [seed, _LETTERS])
    planted = np.array(list(_plant(shape, letters, offsets, signatures, random)), np.int64)
    _each_block(letters, lambda block, own: put_ns(block, shape.sample_n, own), [seed, _NS])
    return Set(Letters(letters, offsets), signatures, planted.reshape(-1, 3))


def _fill(block: NDArray[np.uint8], random: np.random.Generator) -> None:
    block[:] = random_letters(len(block), random)


def _each_block(
    letters: NDArray[np.uint8],
    change: Callable[[NDArray[np.uint8], np.random.Generator], None],
    seed: list[int],
    size: int = 1 << 20,
) -> None:
    """Change every block of the letters on all cores, each with its own random numbers."""

    def work(begin: int) -> None:
        change(letters[begin : begin + size], np.random.default_rng([*seed, begin]))

    with ThreadPoolExecutor(common.cores()) as pool:
        list(pool.map(work, range(0, len(letters), size)))


def _signatures(shape: Shape, random: np.random.Generator) -> Iterator[NDArray[np.uint8]]:
    low, high = shape.signature_length
    for length in random.integers(low, high + 1, shape.signatures).tolist():
        letters = random_letters(length, random)
        put_ns(letters, shape.signature_n, random)
        yield letters


def _plant(
    shape: Shape,
    letters: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    signatures: list[NDArray[np.uint8]],
    random: np.random.Generator,
) -> Iterator[tuple[int, int, int]]:
    """Plant different signatures one after the other, as many as fit; an N stays random."""
    count = round(shape.matching * shape.samples)
    for record in np.sort(random.permutation(shape.samples)[:count]).tolist():
        wanted = int(random.integers(shape.per_sample[0], shape.per_sample[1] + 1))
        at, end = int(offsets[record]), int(offsets[record + 1])
        for number in random.permutation(len(signatures))[:wanted].tolist():
            signature = signatures[number]
            if shape.errors != NO_ERRORS:
                signature = shape.errors.apply(signature, random)
            if at + len(signature) > end:
                break
            place = letters[at : at + len(signature)]
            np.copyto(place, signature, where=signature != N)
            yield record, number, at - int(offsets[record])
            at += len(signature)
