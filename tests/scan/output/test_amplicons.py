"""Products of pairs of primers, against every pair of matches that face each other."""

import gzip
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.program import Run
from support.scan_cases import random_letters
from support.scanned import fasta, other_strand, rows_of, wrapped_fasta

import multigpu
from multigpu.formats.sequences.signatures import read_signatures
from multigpu.workloads.scan.output.amplicons import LEFT, RIGHT, PrimerPairs

pytestmark = pytest.mark.process  # runs whole jobs

Texts = list[tuple[str, str]]
SEARCH = ("--hits", "all", "--strand", "both", "--gpus", "none", "-q")


def turned(bases: str) -> str:
    pairs = zip(reversed(bases), other_strand(bases), strict=True)
    return "".join(other if base.isupper() else other.lower() for base, other in pairs)


def inputs(seed: int) -> tuple[Texts, Texts]:
    """Return samples with primers on either strand, several times, and the primers."""
    rng = np.random.default_rng(seed)
    names = ("a_LEFT", "a_LEFT_alt1", "b_RIGHT_2", "a_RIGHT", "b_left_1", "c_F", "c_R", "alone")
    primers = [(name, random_letters(rng, 7, 0.0).tobytes().decode()) for name in names]
    samples = []
    for number in range(9):
        parts = []
        for at in rng.integers(0, len(primers), int(rng.integers(0, 14))):
            bases = primers[at][1] if rng.integers(2) else turned(primers[at][1])
            parts += [bases, random_letters(rng, int(rng.integers(0, 9)), 0.1).tobytes().decode()]
        joined = "".join(parts)
        middle = int(rng.integers(0, len(joined) + 1))
        samples.append((f"r{number}", joined[middle:] + joined[:middle]))
    return samples, primers


def answer(
    rows: list[Any], samples: Texts, limits: tuple[int, int], circular: bool
) -> tuple[bytes, bytes]:
    """Return BED and FASTA of the products between these rows."""
    found, lengths = [], {name: len(bases) for name, bases in samples}
    for one, other, turns in product(rows, rows, range(1 + circular)):
        pair, left = one[1].split("_")[0], one[1].split("_")[1:2]
        if one[0] != other[0] or one[1] == "alone" or other[1].split("_")[0] != pair:
            continue
        is_left, other_left = (name[0].upper() in "LF" for name in (*left, other[1][2:]))
        start, end = one[2], other[3] + turns * lengths[one[0]]
        inside = other[2] + turns * lengths[one[0]] >= start and end >= one[3]
        is_short = not circular or end - start <= lengths[one[0]]
        if (one[4], other[4]) != ("+", "-") or is_left == other_left or not inside:
            continue
        if is_short and limits[0] <= end - start <= limits[1]:
            strand, names = "-+"[is_left], (one[1], other[1])[:: 1 if is_left else -1]
            found.append((int(one[0][1:]), start, end, "abc".index(pair), strand, names, one[0]))
    order = [name for name, _ in inputs(0)[1]]
    found.sort(key=lambda row: (*row[:4], row[4] == "-", *map(order.index, row[5])))
    bed = [f"{row[6]}\t{row[1]}\t{row[2]}\t{'abc'[row[3]]}\t0\t{row[4]}\n" for row in found]
    records = []
    for _, start, end, pair, strand, names, sample in found:
        bases = (2 * dict(samples)[sample])[start:end]
        title = f">{'abc'[pair]} {sample}:{start}-{end}({strand}) {names[0]} {names[1]}\n"
        records.append(title + (bases if strand == "+" else turned(bases)) + "\n")
    return "".join(bed).encode(), "".join(records).encode()


@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize(("length", "limits"), [("20:60", (20, 60)), (":", (0, 10**9))])
def test_products__are_all_that_face_each_other(
    main: Run, tmp_path: Path, circular: bool, length: str, limits: tuple[int, int]
) -> None:
    samples, primers = inputs(1)
    (tmp_path / "g.fa").write_bytes(wrapped_fasta(samples, 7))
    (tmp_path / "p.fa").write_bytes(fasta(primers))
    paths = (str(tmp_path / "g.fa"), "-s", str(tmp_path / "p.fa"))
    every: dict[str, Any] = {"gpus": "none", "hits": "all", "strand": "both"}
    result = multigpu.scan(paths[0], paths[2], circular=circular, **every)
    rows = rows_of(result, result.signature_names)
    bed, records = answer(rows, samples, limits, circular)
    assert bed.count(b"\n") > 5
    assert b"\t-\n" in bed
    more = ["--circular"] if circular else []
    for size in ("17", "100000"):
        out, sequences = tmp_path / f"{size}.bed", tmp_path / f"{size}.fa.gz"
        options = ("--amplicons", str(out), "--amplicon-length", length, "--max-chunk-bytes", size)
        assert main("scan", *paths, *SEARCH, *options, *more).status == 0
        assert out.read_bytes() == bed
        both = ("--amplicons", str(sequences), "-o", str(tmp_path / "rows.tsv"))
        assert main("scan", *paths, *SEARCH, *options, *both, *more).status == 0
        assert gzip.decompress(sequences.read_bytes()) == records
        assert (tmp_path / "rows.tsv").read_bytes().count(b"\n") == len(rows) + 1


def test_pairs__by_a_column_or_by_names(tmp_path: Path) -> None:
    table = tmp_path / "p.tsv"
    table.write_text("name\tsequence\tpair\nx\tACGT\tone\ny_F\tACGG\t\nz\tGGGT\tone\ny_R\tGGTT\t\n")
    (tmp_path / "q.fa").write_bytes(fasta([("one_RIGHT_alt3", "ACGT"), ("none", "ACCC")]))
    pairs = PrimerPairs.of(read_signatures([str(table), str(tmp_path / "q.fa")]))
    assert pairs.names == [b"one", b"y"]
    assert pairs.pair.tolist() == [0, 1, 0, 1, 0, -1]
    assert pairs.side[:5].tolist() == [LEFT, LEFT, RIGHT, RIGHT, RIGHT]


@pytest.mark.parametrize(("options", "problem"), [
    (["--strand", "both"], "--amplicons needs --hits all and --strand both"),
    (
        [*SEARCH, "--amplicon-length", f"{10**30}:"],
        "no two signatures are a pair of primers: name them X_LEFT and X_RIGHT",
    ),
    (["--amplicons", "a.txt"], "a.txt: products are BED or FASTA: choose a name in .bed or"),
    (["--amplicon-length", "9:3"], "--amplicon-length is '9:3'; it must be MIN:MAX"),
])  # fmt: skip
def test_what_has_no_products__is_refused(
    main: Run, reads: str, signatures: str, tmp_path: Path, options: Any, problem: str
) -> None:
    given = ("--amplicons", str(tmp_path / "a.bed"), *options)
    ended = main("scan", reads, "-s", signatures, "--gpus", "none", "-q", *given)
    assert ended.problem.startswith(problem)
    assert not (tmp_path / "a.bed").exists()
