"""Records with and without a match, byte for byte, in files of their own."""

import errno
import gzip
import os
import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from support import scanned
from support.program import Ended, Run
from support.scanned import LAYOUTS, READS, STORED
from support.stored import Store

from multigpu.cluster.files import failures_named
from multigpu.errors import UsageError
from multigpu.formats.storage.many_outputs import ManyOutputs, Piece
from multigpu.workloads.scan.output.record_sink import RecordPaths, escape, name_of_file

TEXTS = {
    "plain": scanned.fastq(),
    **LAYOUTS,
    "fasta": scanned.fasta_of(),
    "wrapped fasta": scanned.wrapped_fasta([(name, bases) for name, bases, _ in READS], 4)
    + b"\n\n",
}
NAMES = [name.split()[0] for name, _ in scanned.SIGNATURES]


def records_of(text: bytes) -> list[bytes]:
    """Return the text of each record, to the next header, with a line end."""
    begins = [
        re.search(rb"(?m)^[@>]" + re.escape(name.encode()) + rb"\r?$", text).start()  # type: ignore[union-attr]
        for name, _, _ in READS
    ]
    records = [text[begin:end] for begin, end in pairwise([*begins, len(text)])]
    return [each if each.endswith(b"\n") else each + b"\n" for each in records]


def expected(text: bytes) -> dict[str, bytes]:
    """Return the files for --hits all: those of signatures, and of the rest."""
    found: dict[str, bytes] = dict.fromkeys([*NAMES, "unknown"], b"")
    for read, record in zip(READS, records_of(text), strict=True):
        rows = {row[1] for row in scanned.answer([read], every=True, both=True)}
        for name in rows or {"unknown"}:
            found[name] += record
    return found


@pytest.fixture
def split(tmp_path: Path, signatures: str, main: Run) -> Run:
    """Run the command with records in the folder "out"."""
    (tmp_path / "out").mkdir()

    def run(
        *options: str, matched: str = "{signature}", unmatched: str | None = "{signature}_"
    ) -> Ended:
        paths = ["--matched", f"{tmp_path}/out/{matched}"]
        if unmatched is not None:
            paths += ["--unmatched", f"{tmp_path}/out/{unmatched}"]
        given = () if {"-s", "--sample-sheet"} & {*options} else ("-s", signatures)
        return main("scan", *given, "--gpus", "none", *paths, *options)

    return run


def files_in(folder: Path, suffix: str = "") -> dict[str, bytes]:
    """Return the content of all files of a folder, hidden ones too, without a suffix."""
    read: Callable[[bytes], bytes] = gzip.decompress if suffix else bytes
    files = {path.name.removesuffix(suffix): path.read_bytes() for path in folder.iterdir()}
    return {name.removesuffix("_"): read(content) for name, content in files.items()}


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("layout", TEXTS)
def test_records__are_those_of_the_input_unchanged(
    split: Run, tmp_path: Path, store: Store, layout: str, stored: str
) -> None:
    text = TEXTS[layout]
    sample = store("reads", STORED[stored](text))
    for size in ("1000000", "7"):
        ended = split(sample, "--hits", "all", "--strand", "both", "--max-chunk-bytes", size)
        assert ended.status == 0
        assert files_in(tmp_path / "out") == expected(text)


def test_records__are_those_of_rows_with_a_score(split: Run, tmp_path: Path, store: Store) -> None:
    text = scanned.fastq()
    assert split(store("reads", text), "--min-score", "20", unmatched=None).status == 0
    names = dict.fromkeys(NAMES, b"")
    for read, record in zip(READS, records_of(text), strict=True):
        for name in {
            row[1] for row in scanned.answer([read]) if row[5] is not None and row[5] >= 20
        }:
            names[name] += record
    assert files_in(tmp_path / "out") == names
    assert sum(map(len, names.values())) not in (0, sum(map(len, expected(text).values())))


def test_compressed_records__are_the_same_bytes_however_a_run_is_cut(
    split: Run, tmp_path: Path, store: Store
) -> None:
    many = [(f"r{i}", bases, quality) for i in range(3000) for _, bases, quality in READS]
    sample = store("many.fq", scanned.fastq(many))
    names = {"matched": "{signature}.gz", "unmatched": "{signature}_.gz"}
    found = []
    for options in (("--threads", "1"), ("--threads", "3", "--max-chunk-bytes", "10000")):
        assert split(sample, *options, **names).status == 0
        files = tmp_path.joinpath("out").iterdir()
        found.append({path.name: path.read_bytes() for path in files})
    assert found[0] == found[1]
    assert max(map(len, found[0].values())) > 2000
    content = files_in(tmp_path / "out", ".gz")
    assert sum(map(len, content.values())) >= len(scanned.fastq(many))


def full_at(most: int) -> Callable[..., None]:
    """Return a function that writes as `ManyOutputs`, until the disk is full."""
    hold, calls = ManyOutputs.hold, []

    def hold_some(self: ManyOutputs, pieces: Iterable[Piece]) -> None:
        calls.append(pieces)
        with failures_named("out"):
            if len(calls) > most:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        hold(self, pieces)

    return hold_some


@pytest.mark.parametrize("kind", ["plain", "gzip", "two gzips", "bgzf", "fasta"])
def test_resume__continues_with_records_that_are_read_again(
    split: Run, tmp_path: Path, store: Store, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = scanned.fasta_of() if kind == "fasta" else scanned.fastq()
    parts = scanned.HALVES if kind == "two gzips" else [text]
    compress = STORED.get("gzip" if "gzip" in kind else kind, bytes)
    samples = [store(f"reads{n}", compress(part)) for n, part in enumerate(parts)]
    options = (*samples, "--hits", "all", "--strand", "both", "--max-chunk-bytes", "60")
    with monkeypatch.context() as patch:
        patch.setattr(ManyOutputs, "hold", full_at(4))
        ended = split(*options)
    assert ended.status != 0
    assert "the disk is full" in ended.err
    assert [path.suffix for path in tmp_path.joinpath("out").iterdir()] == [".journal"]
    assert split(*options, "--resume").status == 0
    assert files_in(tmp_path / "out") == expected(text)


def test_trim_and_mask__change_the_matched_alone(split: Run, tmp_path: Path, store: Store) -> None:
    signature = store("one.fa", scanned.fasta([("s", "CCGG")]))
    a, b, c = b"@a\nAACCGGT\n+\n1234567\n", b"@b\nAAA\n+\n!!!\n", b"@c\nACCCCGG\n+\n1234567\n"
    sample = store("reads.fq", a + b + c)

    def records(*options: str) -> bytes:
        assert split(sample, "-s", signature, *options, matched="m", unmatched="u").status == 0
        assert (tmp_path / "out" / "u").read_bytes() == b
        return (tmp_path / "out" / "m").read_bytes()

    assert records("--trim", "before") == b"@a\nT\n+\n7\n@c\n\n+\n\n"
    assert records("--trim", "after") == b"@a\nAA\n+\n12\n@c\nACC\n+\n123\n"
    assert records("--trim", "nearer") == b"@a\nAA\n+\n12\n@c\nACC\n+\n123\n"
    assert records("--mask") == b"@a\nAANNNNT\n+\n1234567\n@c\nACCNNNN\n+\n1234567\n"


def test_tied_reads__have_a_file_of_their_own(split: Run, tmp_path: Path, store: Store) -> None:
    signatures = store("two.fa", scanned.fasta([("x", "ACGTACGTAACC"), ("y", "ACGTACGTAAGG")]))
    reads = [("both", "ACGTACGTAATT"), ("one", "ACGTACGTAACC"), ("none", "TTTTTTTTTTTT")]
    sample = store("reads.fq", scanned.fastq([(*read, "I" * 12) for read in reads]))
    options = ("--hits", "top", "--max-mismatches", "2", "--min-delta", "2")
    assert split(sample, "-s", signatures, *options).status == 0
    both, one, none = (scanned.fastq([(*read, "I" * 12)]) for read in reads)
    assert files_in(tmp_path / "out") == {"x": one, "y": b"", "tied": both, "unknown": none}


@pytest.mark.parametrize(("options", "problem"), [
    (("--matched", "OUT/a", "--unmatched", "OUT/a"), "OUT/a is named twice: a run would"),
    (("--matched", "OUT/{name}.fq"), "{name} is unknown; there are {file}, {sample}, "),
    (("--matched", "OUT/{sample}.fq"), "{sample} needs a sample sheet"),
    (("--matched", "OUT/{mate}.fq"), "{mate} needs pairs of reads"),
    (("--matched", "OUT/{signature.fq"), "OUT/{signature.fq: expected '}' before end of"),
    (("--matched", "OUT/{file}.fq"), "{file} is reads for IN/reads.fq and for IN/two/reads.fq"),
    (("--matched", "IN/reads.fq"), "IN/reads.fq is named twice: a run would replace it"),
    (("--matched", "none/{signature}"), "there is no directory"),
    (("--matched", "OUT/x.fa"), "OUT/x.fa: the records are FASTQ, and written as they are"),
    (("--matched", "OUT/x.fq.zst"), "OUT/x.fq.zst: the records are FASTQ, and written as"),
    (("--matched", "-"), "records go to files, not to standard output"),
    (("--matched", "IN/{signature}.fq"), "the next run would read it as one of FOLDER"),
    (("--matched", "IN/two/{signature}.fq"), "four.fq: the next run would read it as one of SOME"),
    (("--matched", "OUT/{signature}", "--summary", "OUT/four"), "OUT/four is named twice"),
    (("--mask",), "--mask has no effect without --matched"),
    (("--pair-rule", "both"), "--pair-rule has no effect without --matched"),
    (("--matched", "OUT/x", "--mask", "--trim", "after"), "--trim or --mask, not both"),
])  # fmt: skip
def test_wrong_paths__are_refused_in_one_line(
    tmp_path: Path, signatures: str, main: Run, options: tuple[str, ...], problem: str
) -> None:
    for folder in ("out", "in/two"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("in/reads.fq", "in/two/reads.fq"):
        (tmp_path / file).write_bytes(scanned.fastq())
    places = {"OUT": f"{tmp_path}/out", "IN": f"{tmp_path}/in"}

    def placed(text: str) -> str:
        return re.sub("OUT|IN", lambda found: places[found[0]], text)

    samples = [f"{tmp_path}/in/reads.fq", f"{tmp_path}/in/two/reads.fq"]
    for word, given in (("FOLDER", places["IN"]), ("SOME", f"{tmp_path}/in/two/[rf]*.fq")):
        if word in problem:
            samples, problem = [given], problem.replace(word, given)
    ended = main("scan", *samples, "-s", signatures, "--gpus", "none", *map(placed, options))
    assert ended.status == 2
    assert placed(problem) in ended.problem
    assert list(tmp_path.joinpath("out").iterdir()) == []


PAIRS = [  # bases of both mates
    ("AACCGGTT", "AAAA"), ("AAAA", "CCGG"), ("CCGGA", "TTTTTT"), ("AAA", "TAT"),
    ("TTTTTT", "ACCGG"), ("CCGGC", "GCCGG"),
]  # fmt: skip
PAIRED = {"x": "CCGG", "y": "TTTTT"}


def paired_answer(rule: str) -> dict[str, bytes]:
    """Return the files by signature and mate."""
    found: dict[str, bytes] = {f"{name}{mate}": b"" for name in "xyu" for mate in (1, 2)}
    for number, pair in enumerate(PAIRS):
        having = [{name for name, bases in PAIRED.items() if bases in mate} for mate in pair]
        names = having[0] | having[1] if rule == "any" else having[0] & having[1]
        for name in names or {"u"}:
            for mate, bases in enumerate(pair, 1):
                found[f"{name}{mate}"] += paired_record(number, mate, bases)
    return found


def paired_record(number: int, mate: int, bases: str) -> bytes:
    return f"@p{number} {mate}:N:0:AC\n{bases}\n+\n{'I' * len(bases)}\n".encode()


@pytest.mark.parametrize("rule", ["any", "both"])
@pytest.mark.parametrize("stored", ["plain", "gzip"])
@pytest.mark.parametrize("layout", ["files", "interleaved"])
@pytest.mark.parametrize("size", ["1000000", "60"])
def test_pairs__go_together(
    split: Run, tmp_path: Path, store: Store, rule: str, stored: str, layout: str, size: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    texts = [[paired_record(n, mate, pair[mate - 1]) for n, pair in enumerate(PAIRS)]
             for mate in (1, 2)]  # fmt: skip
    if layout == "interleaved":
        texts = [[one + two for one, two in zip(*texts, strict=True)]]
    packed = [STORED[stored](b"".join(each).rstrip(b"\n")) for each in texts]
    samples = [store(f"in/p_R{n}", text) for n, text in enumerate(packed, 1)]
    signatures = store("pairs.fa", scanned.fasta(list(PAIRED.items())))
    options = (*samples, "-s", signatures, "--pairs", layout, "--pair-rule", rule)
    options += ("--max-chunk-bytes", size, "--hits", "all")
    paths = {"matched": "{signature}{mate}", "unmatched": "u{mate}"}
    assert split(*options, **paths).status == 0
    assert files_in(tmp_path / "out") == paired_answer(rule)
    if size == "60":  # once more, interrupted
        with monkeypatch.context() as patch:
            patch.setattr(ManyOutputs, "hold", full_at(3))
            assert split(*options, **paths).status != 0
        assert split(*options, "--resume", **paths).status == 0
        assert files_in(tmp_path / "out") == paired_answer(rule)


SHEET = b"sample\tbarcode1\tbarcode2\nS/1\tACGTAC\tTTGGAA\nS2\tGGCCAA\tTTGGAA\n"
BARCODES = [("ACGTAC", "TTGGAA"), ("GGCCAA", "TTGGAA"), ("ACGTAC", "CCCCCC"), ("GGCCAT", "TTGGAA")]
SAMPLES = ["S%2F1", "S2", "unknown", "S2"]


@pytest.mark.parametrize("place", ["reads", "files", "headers"])
def test_samples__of_a_sheet_have_files(
    split: Run, tmp_path: Path, store: Store, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected: dict[str, bytes] = {f"{name}{mate}": b"" for name in set(SAMPLES) for mate in (1, 2)}
    texts = ["", "", "", ""]  # both reads, both index reads
    for number, (pair, sample) in enumerate(zip(BARCODES, SAMPLES, strict=True)):
        for mate in (0, 1):
            bases = pair[mate] * (place == "reads") + "TTATTA"
            title = f"@p{number} {mate + 1}:N:0:{'+'.join(pair)}\n"
            record = f"{title}{bases}\n+\n{'I' * len(bases)}\n"
            texts[mate] += record
            texts[2 + mate] += f"{title}{pair[mate]}\n+\nIIIIII\n"
            expected[f"{sample}{mate + 1}"] += record.encode()
    paths = [store(f"in/r_{n}.fq", text.encode()) for n, text in enumerate(texts, 1)]
    index = {"files": paths[2:], "headers": ["headers"]}.get(place, [])
    more = [word for each in index for word in ("--index-reads", each)]
    sheet = ("--sample-sheet", store("sheet.tsv", SHEET))
    options = (*paths[:2], *sheet, "--max-mismatches", "1", "--pairs", "files", *more)
    names = {"matched": "{sample}{mate}", "unmatched": "unknown{mate}"}
    small = (*options, "--max-chunk-bytes", "60")
    with monkeypatch.context() as patch:
        patch.setattr(ManyOutputs, "hold", full_at(2))
        assert split(*small, **names).status != 0
    for cut in ((*small, "--resume"), options, small):
        assert split(*cut, **names).status == 0
        found = files_in(tmp_path / "out")
        assert [found.pop(f"tied{mate}") for mate in (1, 2)] == [b"", b""]
        assert found == expected


def test_names__stay_different_and_in_the_folder() -> None:
    names = [
        b"", b"..", b".", b".hidden", b"a/b", b"a%2Fb", b"a b", b"caf\xe9", b"caf\xc3\xa9", b"tied",
        b"unknown", b"%75nknown", b"A=1+2@x,y_z-0.5~", b"x" * 300, b"x" * 301, b"\x00", b"{file}",
    ]  # fmt: skip
    escaped = list(map(escape, names))
    assert len({*escaped} - {"tied", "unknown"}) == len(names)
    for each in escaped:
        assert re.fullmatch(r"[!-~]{1,254}", each)
        assert not each.startswith(".") | bool({"/", "{"} & {*each})
    assert escape(b"A=1+2@x,y_z-0.5~") == "A=1+2@x,y_z-0.5~"


def test_name_of_file__has_no_folder_and_no_suffix_of_a_format() -> None:
    names = {
        "runs/lib.1.fq.gz": "lib.1", "lib.FASTQ": "lib", "lib.txt": "lib.txt", ".fq": "%2Efq",
        "https://x.org/a/lib.fa.zst?v=1.fq": "lib", "-": "-",
    }  # fmt: skip
    assert {path: name_of_file(path) for path in names} == names


def test_paths__have_numbers_are_different_and_have_names_of_files() -> None:
    values = {"file": ("a", "b"), "signature": ("x", "y", "z")}
    paths = RecordPaths("matched", "out/{signature}/{file}_{{{signature}.fq", values)
    found = paths.paths()
    assert len(paths) == len(found) == 6
    first, name, source, _ = paths.numbering(0, 1)
    assert (first, source) == (1, 1)
    assert found[first + 2 * name] == "out/z/b_{z.fq"
    assert Path(paths.title).parent == Path("out")
    values = {"file": ("a", "ab"), "signature": ("bc", "c")}
    with pytest.raises(UsageError, match="different records would go to one file, abc"):
        RecordPaths("matched", "{file}{signature}", values).paths()
    paths = RecordPaths("matched", f"{'x' * 99}{{signature}}", {"signature": ("y", "z" * 157)})
    with pytest.raises(UsageError, match="zz has a name of more than 255 bytes"):
        paths.check([])
