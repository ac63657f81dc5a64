"""The figures of the scan with errors: results are checked, then runs are timed.

    python benchmarks/scan_errors.py [--only search long …] [--device cpu|gpu] [--json FILE]

Prints one Markdown table. Parts that take long on a CPU are skipped, with the reason, where there
is no GPU; `--device cpu --scale 0.01` tries all of them out.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import common
import numpy as np
from common import Figure, repeated, require, timed
from data import CHROMOSOMES, Errors, Genome, Set, Shape, in_page_cache, make_set
from numpy.typing import NDArray
from processes import on_cores
from scan import NAMES, Bench, part_reads, scan_once, seconds_of
from searches import Letters, Piece, check_hits_are_real, cut, places

from multigpu.formats.sequences.signatures import Signatures, read_signatures
from multigpu.kernels.bases import encode, reverse_complement
from multigpu.kernels.scan import Chunk, Hits, Limits, Patterns
from multigpu.kernels.scan.approximate import reference
from multigpu.kernels.scan.approximate.alignment import align
from multigpu.kernels.scan.approximate.bulges import BulgeRules, Variants

SEARCHED = 1_000_000_000  # bases on a GPU, a hundredth of it on a CPU
CHECKED = 2_000_000  # bases that are searched on a CPU, too
MOST_CHECKED = 4e9  # of these, signatures times bases
CHROMOSOME = 124_000_000
PLACES_OF_64 = 9548  # on the whole genome, found by another program, too
LONG_PIECES = 8
FEW_CORES = 2
MOST = 4  # errors of what sassy is compared with
AGAINST_SASSY = 100  # records of a million bases
Kind = Literal["mismatches", "edits"]


@dataclass(frozen=True)
class Rule:
    """A number or share of errors, and bases at the end of a signature that are exact.

    bulges  bases of a bulge, of either kind
    """

    kind: Kind
    most: int | float
    suffix: int = 0
    bulges: int = 0

    def limits(self, patterns: Patterns) -> Limits:
        return Limits.of(patterns, self.most, exact_suffix=self.suffix)

    def options(self) -> tuple[str, ...]:
        """Return the options of the command line."""
        suffix = ("--exact-suffix", str(self.suffix)) if self.suffix else ()
        bulges = (f"--max-{kind}-bulges={self.bulges}" for kind in ("dna", "rna") if self.bulges)
        return (f"--max-{self.kind}", str(self.most), *suffix, *bulges)

    def variants(self, signatures: Signatures) -> Variants:
        """Return signatures with bulges, on both strands."""
        rules = BulgeRules(most=self.most, suffix=self.suffix, dna=self.bulges, rna=self.bulges)
        return Variants.of(signatures.letters.joined, signatures.letters.offsets, rules, True)

    def __str__(self) -> str:
        share = f"{self.most:.0%}" if isinstance(self.most, float) else str(self.most)
        bulges = f", bulges of {self.bulges}" if self.bulges else ""
        suffix = f", exact suffix {self.suffix}" if self.suffix else ""
        return f"≤ {share} {self.kind}{bulges}{suffix}"


# ---- searches in memory -----------------------------------------------------------------------


@dataclass(frozen=True)
class Search:
    """A search for patterns in memory, by the scanner of CPUs or that of GPUs."""

    patterns: Patterns
    rule: Rule
    wanted: Literal["first", "all"]
    device: Literal["cpu", "cuda"] = "cpu"
    limits: Limits | None = None

    def scanner(self) -> Any:
        module = import_module(f"multigpu.kernels.scan.approximate.{self.device}")
        limits, edits = self.limits or self.rule.limits(self.patterns), self.rule.kind == "edits"
        return module.ErrorScanner(
            self.patterns, limits, edits=edits, strict=False, wanted=self.wanted
        )

    def run(self, pieces: Sequence[Piece], pool: ThreadPoolExecutor) -> Hits:
        """Search with a scanner that is made for it; pieces are whole records."""
        scanner = self.scanner()
        each = pool.map(lambda piece: scanner.scan(piece.chunk), pieces)
        moved = [
            replace(hits, record=hits.record + np.int32(piece.first))
            for piece, hits in zip(pieces, each, strict=True)
        ]
        scanner.close()
        return Hits.joined(moved)

    def starts(self, chunk: Chunk, hits: Hits) -> NDArray[np.int64]:
        if self.rule.kind == "mismatches":
            return hits.start
        limits = self.rule.limits(self.patterns)
        return align(chunk.offsets, chunk.letters, self.patterns, limits, hits, False).start


def device_of(bench: Bench) -> Literal["cpu", "cuda"]:
    return "cuda" if bench.gpu else "cpu"


def part_search(bench: Bench) -> Iterator[Figure]:
    """Time kernels without copies, on a CPU one thread."""
    size = round(SEARCHED * bench.scale * (1 if bench.gpu else 0.01))
    one = Shape(1, (size, size), 256, (23, 23), 0.0, 0.0, 1.0, (256, 256), Errors(0.05, 0.05, 0.05))
    made = make_set(one, seed=1, into=_pinned(bench, size))
    motif = np.frombuffer(b"NGG", np.uint8)
    with_motif = [np.r_[letters[:20], motif] for letters in made.signatures]
    for signatures, rule, asked in (
        (made.signatures, Rule("mismatches", 4), 5e12),
        (with_motif, Rule("mismatches", 4, 3), None),
        (made.signatures, Rule("edits", 4), 1e12),
    ):
        search = Search(Patterns.of(signatures), rule, "all", device_of(bench))
        scanner, chunk = search.scanner(), Chunk(made.data.letters, made.data.offsets)
        checked = min(CHECKED, size)
        start = Chunk(made.data.letters[:checked].copy(), np.array([0, checked]))
        expected = places(replace(search, device="cpu").scanner().scan(start), checked - 100)
        require(len(expected) > 0, "no hits, but signatures with errors are at the start")
        require(places(scanner.scan(chunk), checked - 100) == expected, "the hits differ")
        kernels, whole = [], []
        for _ in range(bench.runs):
            whole.append(timed(partial(scanner.scan, chunk)))
            kernels.append(scanner.seconds()["kernels"] if bench.gpu else whole[-1])
        yield Figure(
            "search", f"256 signatures of 23, {rule}, {size / 1e6:g} Mb, {_worker(bench)}", "/s",
            [256 * size / seconds for seconds in kernels], asked if bench.gpu else None,
            at_most=False, note=f"whole call {1e3 * np.median(whole):.3g} ms",
        )  # fmt: skip


def _worker(bench: Bench) -> str:
    return "one GPU" if bench.gpu else "one core"


def _pinned(bench: Bench, size: int) -> Any:
    if not bench.gpu:
        return None
    from multigpu.kernels.device.pinned import pinned

    return pinned(size)


# ---- long signatures --------------------------------------------------------------------------

MIXED = Errors(0.01, 0.005, 0.005)


def part_long(bench: Bench) -> Iterator[Figure]:
    """Time the default data set with errors in what is planted, from letters in memory to hits."""
    bench.need_gpu_or_time()
    for n_percent, errors, rule, asked in (
        (0, Errors(0.02), Rule("mismatches", 0.05), 25.0),
        (10, Errors(0.02), Rule("mismatches", 0.05), 100.0),
        (0, MIXED, Rule("edits", 0.05), 100.0),
    ):
        count = min(1.0, bench.scale)
        samples, share = max(2, round(2020 * count)), n_percent / 100
        shape = Shape(
            samples, signatures=max(2, round(1000 * count)), sample_n=share, signature_n=share,
            matching=max(0.01, 1 / samples), errors=errors,
        )  # fmt: skip
        made = make_set(shape, seed=1, into=_pinned(bench, shape.most_bases))
        search = Search(Patterns.of(made.signatures), rule, "first", device_of(bench))
        threads = LONG_PIECES if bench.gpu else common.cores()
        pieces = cut(made.data, threads)
        with ThreadPoolExecutor(threads) as pool:
            _check_long(made, search, search.run(pieces, pool))
            seconds = repeated(partial(search.run, pieces, pool), bench.runs)
        making = repeated(search.scanner, bench.runs)
        yield Figure(
            "long", f"default, {NAMES[n_percent]}, {rule}: copy in, index, search, copy out", "ms",
            [1e3 * each for each in seconds], asked if bench.gpu else None,
            note=f"index alone {1e3 * np.median(making):.3g} ms, {bench.where}",
        )  # fmt: skip


def _check_long(made: Set, search: Search, hits: Hits) -> None:
    """Require that what was planted is found, and that some records agree with a CPU."""
    ends = {(r, p): end for r, p, end, _ in places(hits)}
    for record, number, start in made.planted.tolist():
        length = len(made.signatures[number])
        latest = start + length * (1 + float(search.rule.most))
        require(ends.get((record, number), 1 << 62) <= latest, f"{record}, {number}: not found")
    if search.rule.kind == "mismatches":
        check_hits_are_real(made.data, search.patterns, hits)
    records = np.unique(np.r_[made.planted[:3, 0], len(made.data) - 1])
    letters = [made.data.record(record) for record in records.tolist()]
    few = Letters(np.concatenate(letters), np.cumsum([0, *map(len, letters)]))
    chosen = np.unique(np.r_[made.planted[:6, 1], 0 : len(made.signatures) : 200])
    patterns = Patterns.of([made.signatures[number] for number in chosen.tolist()])
    plain = replace(search, patterns=patterns, device="cpu")
    expected = plain.scanner().scan(Chunk(few.letters, few.offsets))
    is_chosen = np.isin(hits.record, records) & np.isin(hits.pattern, chosen)
    found = hits.take(is_chosen)
    renumbered = replace(
        found,
        record=np.searchsorted(records, found.record),
        pattern=np.searchsorted(chosen, found.pattern),
    )
    require(len(expected) > 0, "no hits")
    require(places(renumbered) == places(expected), "the hits differ")


# ---- whole processes --------------------------------------------------------------------------


def part_guides(bench: Bench) -> Iterator[Figure]:
    """Time the search for guides in a genome, both strands, all places."""
    genome, rule = _genome(bench), Rule("mismatches", 4, 3)
    for count, asked in ((64, 2.0), (1000, 3.0), (10_000, 8.0)):
        known = PLACES_OF_64 if count == 64 and genome.bases == CHROMOSOME else None
        guides = genome.guides(bench.copies(count))
        yield _on_genome(bench, "guides", genome, guides, rule, asked, known)


def part_bulges(bench: Bench) -> Iterator[Figure]:
    """Time the search for guides with bulges in a genome, both strands, all places."""
    genome, rule = _genome(bench), Rule("mismatches", 4, 3, bulges=1)
    _check_bulges(bench, replace(rule, bulges=2))
    yield _on_genome(bench, "bulges", genome, genome.guides(bench.copies(64)), rule, 5.0)


def _check_bulges(bench: Bench, rule: Rule) -> None:
    """Require the places of the plain search in a small genome where they were planted."""
    random, letters = np.random.default_rng(2), np.frombuffer(b"ACGT", np.uint8)
    guides = [np.r_[letters[random.integers(0, 4, 20)], letters[[2, 2, 2]]] for _ in range(2)]
    pieces = []
    for number in range(24):
        site = guides[number % 2].copy()
        site[random.integers(0, 20, 3)] = letters[random.integers(0, 4, 3)]
        at, kind = int(random.integers(2, 18)), number % 3
        site = np.insert(site, at, letters[number % 4]) if kind == 1 else site
        site = np.delete(site, at) if kind == 2 else site
        site = site if number % 4 < 2 else letters[3 - np.searchsorted(letters, site[::-1])]
        pieces += [letters[random.integers(0, 4, 10)], site]
    genome, signatures = bench.output / "small.fa", bench.output / "small-guides.fa"
    sample = np.concatenate(pieces)
    genome.write_bytes(b">c\n" + sample.tobytes() + b"\n")
    signatures.write_bytes(b"".join(b">%d\n%b\n" % (i, g.tobytes()) for i, g in enumerate(guides)))
    more = ("--strand", "both", "--hits", "all", *rule.options())
    lines = scan_once(bench, genome, signatures, bench.gpus, *more)[1].decode().splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    found = sorted((int(r[1]), r[4], int(r[2]), int(r[3]), int(r[6])) for r in rows)
    expected = []
    for strand, sets in (("+", encode(sample)), ("-", reverse_complement(encode(sample)))):
        for number, guide in enumerate(guides):
            more_rules = (int(rule.most), 0, rule.suffix, False, rule.bulges, rule.bulges)
            for place in reference.bulge_hits(sets, encode(guide), *more_rules):
                start, end = place.start, place.end
                if strand == "-":
                    start, end = len(sample) - end, len(sample) - start
                expected.append((number, strand, start, end, place.errors))
    require(len(found) > 24 and found == sorted(expected), "the places with bulges differ")


def part_edits(bench: Bench) -> Iterator[Figure]:
    """Time the search for signatures with edits in a genome, both strands, all places."""
    genome = _genome(bench)
    yield _on_genome(bench, "edits", genome, genome.signatures(312), Rule("edits", 3), 3.0)


def _genome(bench: Bench) -> Genome:
    bench.need_gpu_or_time()
    genome = Genome(bench.folder, round(CHROMOSOME * bench.scale / 50) * 50)
    for path in genome.chromosomes.iterdir():
        in_page_cache(path)
    return genome


def _on_genome(
    bench: Bench, part: str, genome: Genome, signatures: Path, rule: Rule, asked: float,
    known: int | None = None,
) -> Figure:  # fmt: skip
    """Return the figure of a whole process.

    known  the number of its rows
    """
    where = (genome.chromosomes, signatures, bench.gpus)
    more = ("--strand", "both", "--hits", "all", *rule.options())
    header, *rows = scan_once(bench, *where, *more)[1].decode().splitlines()
    require(known in (None, len(rows)), f"{len(rows)} places of {known}")
    check_rows(genome, signatures, rule, rows, header.split("\t").index(rule.kind))
    seconds = seconds_of([scan_once(bench, *where, *more)[0] for _ in range(bench.runs)])
    size, count = CHROMOSOMES * genome.bases / 1e9, len(read_signatures([str(signatures)]))
    return Figure(
        part, f"{count:,} signatures of 23, {size:.3g} Gb, {rule}: whole process, {bench.where}",
        "s", seconds, asked if bench.gpu else None, note=f"{len(rows):,} places",
    )  # fmt: skip


def check_rows(
    genome: Genome, signatures: Path, rule: Rule, rows: Sequence[str], errors_at: int
) -> None:
    """Require that places at the start of the genome are those of the kernel on a CPU.

    errors_at  number of the column with the errors
    """
    read = read_signatures([str(signatures)])
    patterns = Patterns.of(read.letters, both_strands=True)
    size = round(min(CHECKED, genome.bases, MOST_CHECKED / len(patterns)))
    before = size - 100  # what reaches further may be another run of ends there
    chunk = Chunk(genome.start_of_first(size), np.array([0, size]))
    search = Search(patterns, rule, "all")
    if rule.bulges:
        variants = rule.variants(read)
        search = replace(search, patterns=variants.patterns, limits=variants.limits)
        hits, _ = variants.merged(search.scanner().scan(chunk))
    else:
        hits = search.scanner().scan(chunk)
    columns = (hits.pattern, search.starts(chunk, hits), hits.end, hits.errors)
    expected = sorted(
        (read.names[p // 2].decode(), start, end, "+-"[p % 2], errors)
        for p, start, end, errors in zip(*(each.tolist() for each in columns), strict=True)
        if end < before
    )
    found = [row.split("\t") for row in rows if row.startswith("chr1\t")]
    given = sorted((row[1], int(row[2]), int(row[3]), row[4], int(row[errors_at])) for row in found)
    require([row for row in given if row[2] < before] == expected, "the places differ")


# ---- against sassy ----------------------------------------------------------------------------


def part_sassy(bench: Bench) -> Iterator[Figure]:
    """Compare with sassy, which counts edits only, in turns on two cores."""
    common.need_package("sassy", "dev")
    records = max(2, round(AGAINST_SASSY * bench.scale))
    shape = Shape(
        records, (1_000_000, 1_000_000), 64, (23, 23), 0.0, 0.0, 1.0, (2, 9), Errors(0.05, 0.03)
    )
    made = make_set(shape, seed=1)
    patterns = Patterns.of(made.signatures, both_strands=True)
    pieces = cut(made.data, records)
    rival = Sassy(made)
    with on_cores(FEW_CORES), ThreadPoolExecutor(FEW_CORES) as pool:
        rival.choose_mode()
        for kind, asked in (("mismatches", 2.0), ("edits", 0.7)):
            search = Search(patterns, Rule(kind, MOST), "all")
            _check_sassy(made, search, rival)
            run = partial(_aligned, search, made, pieces, pool)
            run()
            turns = [(*_spent(run), *_spent(rival.run)) for _ in range(bench.runs)]
            ours, our_cpu, theirs, their_cpu = np.median(turns, axis=0)
            yield Figure(
                "sassy", f"64 × 23, {records} Mb, both strands, {search.rule}, {FEW_CORES} cores: "
                f"times as fast as sassy, ≤ {MOST} edits", "×",
                [theirs / ours for ours, _, theirs, _ in turns], asked, at_most=False,
                note=f"{ours:.3g} s against {theirs:.3g} s, of the CPU {our_cpu:.3g} s against "
                f"{their_cpu:.3g} s; sassy's mode {rival.mode}",
            )  # fmt: skip


def _spent(run: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds of a run, and those of the CPU: other work on a machine shows less."""
    begin = time.process_time()
    return timed(run), time.process_time() - begin


def _aligned(search: Search, made: Set, pieces: Sequence[Piece], pool: ThreadPoolExecutor) -> Hits:
    """Return hits with their starts: sassy finds these, too."""
    hits = search.run(pieces, pool)
    chunk = Chunk(made.data.letters, made.data.offsets)
    return replace(hits, start=search.starts(chunk, hits))


class Sassy:
    """Searches by sassy, in the mode that is fastest here."""

    MODES = ("single", "batch_patterns", "batch_texts")

    def __init__(self, made: Set) -> None:
        import sassy

        self._sassy = sassy
        self._patterns = [letters.tobytes() for letters in made.signatures]
        self._texts = [made.data.record(i).tobytes() for i in range(len(made.data))]
        self.mode = self.MODES[0]

    def run(self, texts: int | None = None, mode: str = "") -> Any:
        """Search the first texts on both strands."""
        searcher = self._sassy.Searcher("iupac", rc=True)
        chosen = self._texts[:texts]
        return searcher.search_many(self._patterns, chosen, MOST, FEW_CORES, mode or self.mode)

    def choose_mode(self) -> None:
        def seconds(mode: str) -> float:
            return min(repeated(partial(self.run, 4, mode), 2))

        self.mode = min(self.MODES, key=seconds)

    def edits(self, number: int) -> list[int]:
        """Return the edits of all hits of a signature in the first text, on its own strand."""
        searcher = self._sassy.Searcher("iupac", rc=False)
        found = searcher.search(self._patterns[number], self._texts[0], MOST)
        return sorted(match.cost for match in found)


def _check_sassy(made: Set, search: Search, rival: Sassy) -> None:
    """Require in one record the edits of sassy, or mismatches by plain counting."""
    sample = made.data.record(0)
    offsets = np.array([0, len(sample)])
    hits = search.scanner().scan(Chunk(sample, offsets))
    require(len(hits) > 0, "no hits")
    for number, letters in enumerate(made.signatures):
        errors = hits.errors[hits.pattern == 2 * number]
        if search.rule.kind == "edits":
            expected = rival.edits(number)
        else:
            windows = len(sample) - len(letters) + 1
            differ = sum(
                (sample[i : i + windows] != base).astype(np.uint8)
                for i, base in enumerate(letters.tolist())
            )
            expected = sorted(differ[differ <= MOST].tolist())
        require(sorted(errors.tolist()) == expected, f"signature {number}: other hits")


# ---- all together -----------------------------------------------------------------------------

PARTS: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "search": part_search,
    "long": part_long,
    "guides": part_guides,
    "bulges": part_bulges,
    "edits": part_edits,
    "reads": partial(part_reads, mismatches=2),
    "sassy": part_sassy,
}


if __name__ == "__main__":
    common.measure_parts(common.options_of(__doc__, PARTS), PARTS, Bench)
