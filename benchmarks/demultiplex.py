"""The figures of demultiplexing: results are checked against cutadapt's, then runs are timed.

    python benchmarks/demultiplex.py [--only plain gzip] [--device cpu|gpu] [--json FILE]

Prints one Markdown table. 20 million pairs of 150 bases with 96 dual barcodes, of which at most one
base each may differ; `--scale 0.1` takes 2 million. cutadapt 5 is timed where it is installed.
"""

import resource
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path

import common
import numpy as np
from common import Figure, cores, require
from data import (
    MARKS,
    READ_BASES,
    READS_PER_BLOCK,
    in_page_cache,
    made,
    other_letters,
    random_bytes,
    random_letters,
)
from numpy.typing import NDArray
from processes import process, python

PAIRS = 20_000_000
BARCODES, BARCODE_BASES, DISTANCE = 96, 10, 4
MANY_BARCODES = 150
BASES_AT = 11  # bytes of a record before them
CHECKED = 1_000_000  # pairs that are compared with all barcodes
ERRORS, STRANGERS = 0.01, 0.05  # share of bases that differ; of pairs that are of no sample
TIMES_AS_FAST, TIMES_AS_FAST_GZIP = 8, 6
FEW_CORES, TIMES_AS_FAST_FEW = 2, 3


@dataclass(frozen=True)
class PairSet:
    """Pairs of reads that begin with the barcodes of their sample, with errors; a fixed seed."""

    folder: Path
    pairs: int
    samples: int

    @property
    def _name(self) -> str:
        return f"barcoded-{self.samples}-{self.pairs}"

    @cached_property
    def barcodes(self) -> NDArray[np.uint8]:
        """uint8[2, samples, bases]: letters, those of a column at least `DISTANCE` apart."""
        random = np.random.default_rng(31)
        chosen = []
        for _ in range(2):
            column = np.empty((0, BARCODE_BASES), np.uint8)
            while len(column) < self.samples:
                new = random_letters(BARCODE_BASES, random)
                if ((column != new).sum(axis=1) >= DISTANCE).all():
                    column = np.vstack([column, new])
            chosen.append(column)
        return np.stack(chosen)

    @property
    def sheet(self) -> Path:
        def write(path: Path) -> None:
            rows = [
                f"s{n:03d}\t{one.tobytes().decode()}\t{other.tobytes().decode()}\n"
                for n, (one, other) in enumerate(zip(*self.barcodes, strict=True))
            ]
            path.write_text("sample\tbarcode1\tbarcode2\n" + "".join(rows))

        return made(self.folder / f"{self._name}.tsv", write)

    def fasta(self, column: int) -> Path:
        """Return the barcodes of a column as cutadapt takes them."""

        def write(path: Path) -> None:
            letters = self.barcodes[column]
            path.write_bytes(
                b"".join(b">s%03d\n%b\n" % (n, each.tobytes()) for n, each in enumerate(letters))
            )

        return made(self.folder / f"{self._name}-{column + 1}.fasta", write)

    def reads(self, suffix: str = "") -> list[Path]:
        """Return both files, compressed where the suffix is .gz."""
        plain = [self.folder / f"{self._name}_R{mate}.fastq" for mate in (1, 2)]
        if not all(path.exists() for path in plain):
            made(plain[1], partial(self._write, plain[0]))
        if not suffix:
            return plain
        return [made(Path(f"{path}{suffix}"), partial(_compress, path)) for path in plain]

    def expected(self, count: int) -> Iterator[tuple[str, bytes]]:
        """Yield the name of each file, without suffix, and its records of the first pairs."""
        mates = [np.memmap(path, np.uint8, "r").reshape(self.pairs, -1) for path in self.reads()]
        sample = np.full((2, count), -1)
        for number, (mate, column) in enumerate(zip(mates, self.barcodes, strict=True)):
            letters = mate[:count, BASES_AT : BASES_AT + BARCODE_BASES]
            for s, barcode in enumerate(column):
                sample[number, (letters != barcode).sum(axis=1) <= 1] = s
        sample[:, sample[0] != sample[1]] = -1
        for s in range(-1, self.samples):
            name = "unknown" if s < 0 else f"s{s:03d}"
            for number, mate in enumerate(mates):
                yield f"{name}.{number + 1}", mate[:count][sample[number] == s].tobytes()

    def _write(self, first: Path, second: Path) -> None:
        random = np.random.default_rng(32)
        with first.open("wb") as one, second.open("wb") as other:
            for begin in range(0, self.pairs, READS_PER_BLOCK):
                count = min(READS_PER_BLOCK, self.pairs - begin)
                sample = random.integers(0, self.samples, count)
                is_stranger = random.random(count) < STRANGERS
                for file, column in zip((one, other), self.barcodes, strict=True):
                    letters = column[sample]
                    wrong = random.random(letters.shape) < ERRORS
                    letters[wrong] = other_letters(letters[wrong], random)
                    strange = random_letters(letters.size, random).reshape(letters.shape)
                    letters[is_stranger] = strange[is_stranger]
                    file.write(_records(begin, letters, random).tobytes())


def _records(
    begin: int, barcodes: NDArray[np.uint8], random: np.random.Generator
) -> NDArray[np.uint8]:
    """Return FASTQ records of one width as rows; their bases begin with the barcodes."""
    template = b"@r%08d\n%b\n+\n%b\n" % (0, bytes(READ_BASES), bytes(READ_BASES))
    block = np.empty((len(barcodes), len(template)), np.uint8)
    block[:] = np.frombuffer(template, np.uint8)
    numbers = np.arange(begin, begin + len(barcodes))
    for digit in range(8):
        block[:, 9 - digit] = numbers // 10**digit % 10 + ord("0")
    size = len(barcodes) * READ_BASES
    block[:, BASES_AT : BASES_AT + READ_BASES] = random_letters(size, random).reshape(
        -1, READ_BASES
    )
    block[:, BASES_AT : BASES_AT + BARCODE_BASES] = barcodes
    four = MARKS[np.array([0, 90, 180, 255])]
    block[:, -1 - READ_BASES : -1] = four[random_bytes(size, random) & 3].reshape(-1, READ_BASES)
    return block


def _compress(plain: Path, target: Path) -> None:
    from isal import igzip

    with plain.open("rb") as source, igzip.open(target, "wb", compresslevel=1) as out:
        shutil.copyfileobj(source, out, 8 << 20)


# ---- both programs ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spent:
    """Seconds that a process and its children took."""

    elapsed: float
    of_cores: float


@dataclass(frozen=True)
class Demultiplexing:
    """One set of pairs, taken apart by both programs into a file for each sample and mate."""

    bench: common.Bench
    files: PairSet
    suffix: str
    threads: int

    def folder(self, program: str) -> Path:
        """Return an empty folder."""
        path = self.bench.output / program
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def ours(self) -> Spent:
        folder, end = self.folder("multigpu"), f".fastq{self.suffix}"
        return self._spent(
            python(
                "-m", "multigpu", "scan", *map(str, self.files.reads(self.suffix)),
                "--pairs", "files", "--sample-sheet", str(self.files.sheet),
                "--max-mismatches", "1", "--matched", f"{folder}/{{sample}}.{{mate}}{end}",
                "--unmatched", f"{folder}/unknown.{{mate}}{end}",
            )
        )  # fmt: skip

    def cutadapt(self) -> Spent:
        folder, end = self.folder("cutadapt"), f".fastq{self.suffix}"
        return self._spent(
            python(
                "-m", "cutadapt", "-j", str(self.threads), "-e", "1", "--no-indels",
                "--pair-adapters", "--action", "none", "--quiet",
                "-g", f"^file:{self.files.fasta(0)}", "-G", f"^file:{self.files.fasta(1)}",
                "-o", f"{folder}/{{name}}.1{end}", "-p", f"{folder}/{{name}}.2{end}",
                *map(str, self.files.reads(self.suffix)),
            )
        )  # fmt: skip

    def _spent(self, command: list[str]) -> Spent:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = process(command, self.threads, limit=3600.0)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        of_cores = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Spent(ran.seconds, of_cores)

    def check(self) -> None:
        """Require that the files begin with the records of their samples."""
        for name, records in self.files.expected(min(CHECKED, self.files.pairs)):
            path = self.bench.output / "multigpu" / f"{name}.fastq{self.suffix}"
            content = _content(path) if path.exists() else b""
            require(content.startswith(records), f"{path} has other records")

    def check_rival(self) -> None:
        """Require that both programs wrote the same bytes."""
        for path in sorted((self.bench.output / "cutadapt").iterdir()):
            mine = self.bench.output / "multigpu" / path.name
            require(_content(mine) == _content(path), f"{mine} differs from {path}")

    def figures(self, part: str, asked: float, *, of_cores: bool) -> Iterator[Figure]:
        """Time both programs; `of_cores`: the seconds of all cores, not those elapsed, count."""
        for path in self.files.reads(self.suffix):
            in_page_cache(path)
        self.ours()
        self.check()
        rival = self.cutadapt() if find_spec("cutadapt") else None
        if rival:
            self.check_rival()
        runs = [self.ours() for _ in range(self.bench.runs)]
        pairs, kind = self.files.pairs / 1e6, self.suffix.removeprefix(".") or "plain"
        what = (
            f"{pairs:g} M pairs, {self.files.samples} dual barcodes, {kind}, {self.threads} cores"
        )
        if rival:
            counted = [each.of_cores if of_cores else each.elapsed for each in runs]
            against = rival.of_cores if of_cores else rival.elapsed
            yield Figure(
                part, f"{what}: times as fast as cutadapt{', CPU seconds' * of_cores}", "×",
                [against / each for each in counted], asked, at_most=False,
                note=f"cutadapt {rival.elapsed:.1f} s, {rival.of_cores:.1f} CPU s",
            )  # fmt: skip
        yield Figure(part, f"{what}: process", "s", [each.elapsed for each in runs])
        yield Figure(part, f"{what}: of all cores", "s", [each.of_cores for each in runs])


def _content(path: Path) -> bytes:
    if path.suffix != ".gz":
        return path.read_bytes()
    from isal import igzip

    with igzip.open(path) as file:
        return file.read()


# ---- the parts ----------------------------------------------------------------------------------


def part_files(bench: common.Bench, suffix: str, samples: int, asked: float) -> Iterator[Figure]:
    files = PairSet(bench.folder, round(PAIRS * bench.scale), samples)
    few = bench.no_gpu and cores() <= FEW_CORES
    run = Demultiplexing(bench, files, suffix, cores())
    yield from run.figures(
        suffix or "plain", TIMES_AS_FAST_FEW if few else asked, of_cores=bool(few)
    )


PARTS: dict[str, Callable[[common.Bench], Iterator[Figure]]] = {
    "plain": partial(part_files, suffix="", samples=BARCODES, asked=TIMES_AS_FAST),
    "gzip": partial(part_files, suffix=".gz", samples=MANY_BARCODES, asked=TIMES_AS_FAST_GZIP),
}


if __name__ == "__main__":
    common.measure_parts(common.options_of(__doc__, PARTS), PARTS, common.Bench)
