"""Ambiguous bases of samples: counted in every row, and limited by `--max-ambiguous`."""

import gzip
import json
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.program import Run
from support.scanned import ALL, Read, Scan, answer, bed, fasta, fasta_of, fastq, tsv_with_ambiguous

import multigpu
from multigpu.kernels.scan import allowed_bases
from multigpu.kernels.scan.letters import count_ambiguous

pytestmark = pytest.mark.process  # runs whole jobs

LIMITS = ["0", "1", "3", "0.0", "0.2", "0.5", "0.99"]
SIZES = ["1", "7", "40", "100000"]


def as_number(limit: str) -> int | float:
    return float(limit) if "." in limit else int(limit)


def random_reads(seed: int) -> list[Read]:
    """Clean stretches, stretches of N and of some of both, so that limits cut within them."""
    rng = np.random.default_rng(seed)
    reads = []
    for number in range(12):
        bases = ""
        for share in rng.choice([0.0, 0.0, 0.1, 0.3, 1.0], 5):
            size = int(rng.integers(0, 25))
            letters, unclear = (rng.choice([*kind], size) for kind in ("ACGTacgu", "NNNRYn"))
            bases += "".join(np.where(rng.random(size) < share, unclear, letters))
        quality = "".join(chr(33 + value) for value in rng.integers(0, 60, len(bases)))
        reads.append((f"r{number}", bases, quality))
    return reads


def random_signatures(reads: list[Read], seed: int) -> list[tuple[str, str]]:
    """Pieces of the reads, some with another letter, from 3 to 30 bases."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(60):
        _, bases, _ = reads[int(rng.integers(len(reads)))]
        size = int(rng.integers(3, 31))
        begin = int(rng.integers(0, max(1, len(bases) - size)))
        piece = [*(bases[begin : begin + size].replace("n", "A").replace("N", "C") or "ACG")]
        piece[int(rng.integers(len(piece)))] = str(rng.choice(list("ACGTN")))
        found.append((f"s{number}", "".join(piece).upper()))
    return found


def test_column__is_in_tables_on_request(scan: Scan, reads: str) -> None:
    rows = answer(every=True, both=True)
    assert {row[6] for row in rows} > {0, 1, 4}
    assert scan(reads, options=(*ALL, "--ambiguous")) == tsv_with_ambiguous(rows)
    got = scan(reads, options=(*ALL, "--ambiguous"), name="hits.bed").decode().splitlines()
    plain = bed(rows).decode().splitlines()
    assert got == [f"{line}\t{row[6]}" for line, row in zip(plain, rows, strict=True)]


def test_count__of_every_letter() -> None:
    letters = np.frombuffer(b"ACGTUacgtuNRYSWKMBDHVnryswkmbdhv", np.uint8)
    starts, lengths = np.arange(len(letters)), np.ones(len(letters), np.int64)
    assert count_ambiguous(letters, starts, lengths).tolist() == [0] * 10 + [1] * 22
    assert count_ambiguous(letters, np.array([0, 8]), np.array([32, 4])).tolist() == [22, 2]


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("hits", [(), ALL], ids=["first", "all, both"])
def test_limit__first_is_the_first_within(scan: Scan, store: Any, limit: str, hits: Any) -> None:
    reads = random_reads(5)
    signatures = random_signatures(reads, 6)
    find = partial(answer, reads, signatures, every=bool(hits), both=bool(hits))
    rows, unscored = (find(most=as_number(limit), scored=scored) for scored in (True, False))
    assert len(rows) > 20
    assert rows != find()
    expected = {
        store("reads.fq", fastq(reads)): rows,
        store("reads.fq.gz", gzip.compress(fastq(reads))): rows,
        store("reads.fa", fasta_of(reads)): unscored,
    }
    given = ("-s", store("given.fa", fasta(signatures)), "--max-ambiguous", limit)
    for (path, wanted), size in product(expected.items(), ("7", "100000")):
        found = scan(path, options=(*hits, *given, "--max-chunk-bytes", size))
        assert found == tsv_with_ambiguous(wanted)


def test_limit__with_mismatch_and_a_least_score(scan: Scan, store: Any) -> None:
    """The score is looked at when the first match is known, as without a limit."""
    path = store("a.fq", fastq([("a", "NNNNACNTACGTACGT", "IIIIIIII++++IIII")]))
    only = store("one.fa", fasta([("s", "ACGT"), ("n", "ACNT")]))
    options = ("-s", only, "--max-ambiguous", "1")
    assert b"a\ts\t4\t8\t+\t40.0\t1\n" in scan(path, options=options)
    strict = scan(path, options=(*options, "--sample-n", "mismatch"))
    assert strict.splitlines()[1:] == [b"a\ts\t8\t12\t+\t10.0\t0", b"a\tn\t4\t8\t+\t40.0\t1"]
    weak = scan(path, options=("-s", only, "--max-ambiguous", "0", "--min-score", "20"))
    assert weak.splitlines()[1:] == []


def test_limit__of_a_share_of_a_length_is_exact() -> None:
    for hundredths in range(100):
        most = allowed_bases(hundredths / 100, np.arange(1, 400))
        assert most.tolist() == [hundredths * length // 100 for length in range(1, 400)]


def test_limit__in_python_is_a_number_or_a_share(reads: str, signatures: str) -> None:
    for limit in (0, 1, np.int64(2), 0.25, np.float64(0.5), 10**20):
        table = multigpu.scan(reads, signatures, gpus="none", hits="all", max_ambiguous=limit)
        counts = table.to_table()["ambiguous"].to_pylist()
        most = limit.item() if isinstance(limit, np.generic) else limit
        assert counts == [row[6] for row in answer(every=True, most=most)]


def test_limit__does_not_hide_an_illegal_base(main: Run, store: Any, signatures: str) -> None:
    for bases in ("N" * 50 + "!" + "N" * 50, "ACGT!" + "N" * 50):
        path = store("bad.fa", fasta([("n", "N" * 90), ("bad", bases)]))
        options = ("--max-ambiguous", "0", "--gpus", "none", "-q")
        ended = main("scan", path, "-s", signatures, *options)
        place = f"record 'bad', position {bases.index('!')} (from 0): '!' is not a base"
        assert ended.problem.startswith(f"{path}: {place}")


def test_note__of_ambiguous_rows(main: Run, store: Any, caplog: pytest.LogCaptureFixture) -> None:
    given = store("given.fa", fasta([("s", "ACGT"), ("t", "GGGG")]))
    command = ("-s", given, "--gpus", "none")
    ended = main("scan", store("n.fa", fasta([("n", "NNNNNNN"), ("m", "NACGTN")])), *command)
    assert ended.status == 0
    assert caplog.messages == [
        ("multigpu: 2 of 3 matches lie mostly on ambiguous bases of the samples, which match"
         " others: --max-ambiguous 0.1 allows 10 % of a match")
    ]  # fmt: skip
    caplog.clear()
    few = main("scan", store("few.fa", fasta([("n", "ACGTNNGGG")])), *command)
    assert (few.status, caplog.messages) == (0, [])


def test_note__does_not_depend_on_the_chunks(
    main: Run, store: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = store("n.fa", fasta([("n", "N" * 30), ("n", "ACGT" * 9), ("n", "N" * 30)]))
    named = [("sig1", "ACGT"), ("sig2", "AAR"), ("sig1", "CGTNNAC"), ("four", "CC"), ("y", "YRAC")]
    given = store("given.fa", fasta([*named, ("long", "A" * 37)]))
    said = set()
    for size in ("1", "9", "100000"):
        summary = tmp_path / "summary.json"
        options = ("--max-chunk-bytes", size, "--summary", str(summary), "--gpus", "none")
        caplog.clear()
        assert main("scan", path, "-s", given, *options).status == 0
        said.add("\n".join(caplog.messages))
        notes = json.loads(summary.read_text())["notes"]
        assert [f"multigpu: {note}" for note in notes] == caplog.messages
    (text,) = said
    assert text.count("\n") == 3
    assert "samples with the name of an earlier one: 2, e.g. 'n'" in text
    assert "1 of 6 signatures cannot occur: they are longer than the longest sample (36" in text
    assert "signatures with the name of an earlier one: 1, e.g. 'sig1' (2 times)" in text
