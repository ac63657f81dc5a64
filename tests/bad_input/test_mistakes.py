"""What users of scan get wrong: refused with the cure, or noted, never answered in silence.

A text with … is the beginning, and the end, of what is said.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bad_input.given import READS, SIGNATURES, Refused, Store
from support.program import Run, program

from multigpu import UsageError, scan
from multigpu.formats.sequences.registry import LIST_CURE
from multigpu.formats.storage.suffixes import check_page

LONG = b">contig\n" + b"ACGTTGCA" * 40 + b"\n"
GUIDE = b"ACGTTGCAACGTTGCAACGT"
SAM = b"@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:9\n"
UTF_16 = "is text in UTF-16: convert it with `iconv -f UTF-16…"
FILES = {
    "reads.fq": READS, "sig.fa": SIGNATURES, "b.fa": SIGNATURES, "c.fa": SIGNATURES,
    "long.fa": LONG, "other.fq": READS.replace(b"@r", b"@s"), "empty.fq": b"",
    "blank.fq": b"\n \n", "nameless.fa": b">\nACGT\n",
    "nameless-samples.fa": b">\nACGT\n> x\nACGT\n",
    "guide.fa": b">g\n%b\n" % GUIDE, "guide-ngg.fa": b">g\n%bNGG\n" % GUIDE,
    "ngg-guide.fa": b">g\nNGG%b\n" % GUIDE, "guide-tgg.fa": b">g\n%bTGG\n" % GUIDE,
    "old.fq": b"@r\nACGTACGT\n+\nhhhh\nhBBB\n",
    **{f"new{k}.fq": b"@r\nACGTACGT\n+\n%b\n" % values
       for k, values in enumerate((b"hhhhhhhh", b"hhhhhhh?", b"~~~~~~~h"))},
    "in/a.fq": READS, "in/b.fq": READS.replace(b"@r", b"@q"),
    "sdf/a.fq": READS, "sdf/c.sdf": b"", "mixed/a.fq": READS, "mixed/d.fa": LONG,
    "bom": b"\xef\xbb\xbf" + READS, "utf16": READS.decode().encode("utf-16"),
    "utf16le": READS.decode().encode("utf-16-le"), "utf16be": READS.decode().encode("utf-16-be"),
    "bom2": b"\xef\xbb\xbf@r\nACGTACGT\n+\nIIIIIIII\n",
    "tsv16": "name\tsequence\ng\tACGTACGT\n".encode("utf-16-le"),
    "list16": "ACGTACGT\n".encode("utf-16-be"),
    "a.sam": SAM, "protein.fa": b">p\nMKTAYIAKQRQISFVK\n",
    "list1": b"ACGTACGTAC\nACGTACGTAA\n", "list2": b"name;seq\ng1;ACGTACGTAC\n",
    "list3": b"g1\tACGTACGTAC\t7\n", "list4": b"name;seq\ng1;hello\n",
}  # fmt: skip
SUFFIX = "files cannot be written: choose a name that"


@pytest.fixture(autouse=True)
def folder(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the program is started in, with `FILES`."""
    for name, content in FILES.items():
        store(name, content)
    (tmp_path / "link.fq").symlink_to(tmp_path / "reads.fq")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def is_said(said: str, expected: str) -> bool:
    begin, dots, end = expected.partition("…")
    return said.startswith(begin) and said.endswith(end) if dots else said == expected


def table(names: str, rows: list[tuple[Any, ...]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(names.split(), rows, ids=[str(row[0]) for row in rows])


@pytest.mark.parametrize("words", [
    "reads.fq -s sig.fa b.fa", "reads.fq --signatures sig.fa b.fa c.fa",
    "reads.fq --signatures=sig.fa b.fa", "reads.fq -ssig.fa b.fa", "-s sig.fa b.fa reads.fq",
    "long.fa -s sig.fa b.fa", "reads.fq -s sig.fa -s c.fa b.fa",
])  # fmt: skip
def test_fasta_after_the_file_of_signatures__is_refused(main: Run, words: str) -> None:
    ended = main("scan", *words.split(), "--gpus", "none")
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem == (
        "b.fa follows the value of -s, but would be scanned as a sample: repeat -s for each file of"
        " signatures (-s FILE -s b.fa), or put all SAMPLES before the first -s"
    )


@pytest.mark.parametrize("words", [
    "long.fa reads.fq -s sig.fa", "-s sig.fa long.fa", "-s sig.fa b.fa",
    "-s sig.fa long.fa b.fa", "-s sig.fa reads.fq long.fa", "long.fa -s sig.fa reads.fq",
    "reads.fq -s sig.fa --hits all long.fa", "-s sig.fa -s b.fa long.fa",
])  # fmt: skip
def test_samples__that_are_fasta_are_taken_where_the_order_is_clear(main: Run, words: str) -> None:
    ended = main("scan", *words.split(), "--gpus", "none")
    assert (ended.status, ended.err) == (0, "")
    assert len(ended.out.splitlines()) > 1


SWAPPED = "are samples and signatures swapped?"
KINDS = "the signatures (reads.fq) are FASTQ and the samples (sig.fa) FASTA"
NOT_LONGER = "longer than the longest sample (6 bases)"
PAM = "if the signatures are guides, the PAM has to be a part"
OTHER_END = "whose other end is NGG: if that is the PAM, give"
EXACT = "--max-mismatches 2 --exact"
TWICE = "sample files given more than once: 1, e.g. reads.fq; rows are repeated"
SAME_NAMES = "samples with the name of an earlier one: 2, e.g. 'r1'; only Parquet and Python…"
PIPE = "--resume has no effect: a run that reads a pipe or writes to standard…"
OLD_QUALITIES = "…below '@', as in old Illumina files, which need --phred-offset 64"


@table(
    "words notes",
    [
        ("reads.fq -s sig.fa", []),
        ("reads.fq -s long.fa", [
            f"1 of 1 signatures cannot occur: they are {NOT_LONGER}, e.g. 'contig' with 320;…"]),
        ("reads.fq -s sig.fa -s long.fa", [
            f"1 of 2 signatures cannot occur: they are {NOT_LONGER}, e.g. 'contig' with 320"]),
        ("reads.fq empty.fq blank.fq -s sig.fa", [
            "empty sample files are left out: empty.fq, blank.fq"]),
        ("in -s sig.fa", []),
        ("sdf -s sig.fa", ["…are read a.fq; not c.sdf"]),
        ("mixed -s sig.fa", ["…are read a.fq, d.fa"]),
        ("reads.fq -s reads.fq", ["the signatures (reads.fq) are FASTQ: are they reads?"]),
        (f"long.fa -s ngg-guide.fa {EXACT}-suffix 3", [
            f"--exact-suffix 3 keeps CGT of 'g', {OTHER_END}…"]),
        (f"long.fa -s guide-ngg.fa {EXACT}-prefix 3", [
            f"--exact-prefix 3 keeps ACG of 'g', {OTHER_END}…"]),
        (f"long.fa -s guide.fa {EXACT}-suffix 3", [f"--exact-suffix 3 keeps CGT of 'g': {PAM}…"]),
        (f"long.fa -s guide.fa {EXACT}-prefix 3", [f"--exact-prefix 3 keeps ACG of 'g': {PAM}…"]),
        (f"long.fa -s guide-ngg.fa {EXACT}-suffix 3", []),
        (f"long.fa -s ngg-guide.fa {EXACT}-prefix 3", []),
        (f"long.fa -s guide-tgg.fa {EXACT}-suffix 3", []),
        ("old.fq -s sig.fa", [OLD_QUALITIES]),
        ("old.fq -s sig.fa --phred-offset 64", []),
        ("new0.fq -s sig.fa", []),
        ("new1.fq -s sig.fa", []),
        ("new2.fq -s sig.fa", []),
        ("nameless-samples.fa -s nameless.fa", [
            "signatures without a name: 1; their column is empty",
            "samples without a name that have rows: 2; their column is empty"]),
        ("sig.fa -s reads.fq", [
            f"{KINDS}: are the two swapped?",
            f"…{SWAPPED}"]),
        ("long.fa -s reads.fq", ["the signatures (…"]),
        ("reads.fq other.fq reads.fq -s sig.fa", [TWICE, SAME_NAMES]),
        ("reads.fq other.fq ./reads.fq -s sig.fa", [TWICE, SAME_NAMES]),
        ("reads.fq other.fq link.fq -s sig.fa", [TWICE, SAME_NAMES]),
        ("other.fq -s sig.fa -s sig.fa", [
            "signature files given more than once: 1, e.g. sig.fa…",
            "signatures with the name of an earlier one: 1, e.g. 'sig' (2 times)…"]),
        ("long.fa -s sig.fa --min-score 20", [
            "--min-score has no effect: FASTA samples have no scores, and their rows stay"]),
        ("reads.fq -s sig.fa --resume", [PIPE]),
        ("reads.fq -s sig.fa --resume -o hits.tsv", []),
        ("reads.fq -s sig.fa --ambiguous --format cas-offinder", [
            "--ambiguous has no effect: cas-offinder has its own columns…"]),
        ("reads.fq -s sig.fa -o hits.tsv --format sam", [
            "hits.tsv is written as sam, as --format says, although its name ends in .tsv"]),
        ("reads.fq -s sig.fa -o hits.vcf.gz --format tsv", [
            "hits.vcf.gz is written as tsv, as --format says, although its name ends in .vcf"]),
        ("reads.fq -s sig.fa -o hits.tsv.gz --format tsv", []),
        ("reads.fq -s sig.fa -o hits.run1 --format bed", []),
        ("reads.fq -s sig.fa -o hits.txt --format tsv", []),
    ],
)  # fmt: skip
def test_run__has_these_notes(
    main: Run, caplog: pytest.LogCaptureFixture, words: str, notes: list[str]
) -> None:
    ended = main("scan", *words.split(), "--gpus", "none")
    assert (ended.status, ended.err) == (0, "")
    said = [message.removeprefix("multigpu: ") for message in caplog.messages]
    assert len(said) == len(notes), said
    assert [line for line, note in zip(said, notes, strict=True) if not is_said(line, note)] == []


def test_ambiguous_matches__are_noted_before_the_others_come(store: Store) -> None:
    samples = store("n.fa", b"".join(b">s%d\n%s\n" % (i, 1500 * b"N") for i in range(40)))
    result = scan(samples, "sig.fa", gpus="none", hits="all", max_chunk_bytes=1600, threads=1)
    batches, taken = iter(result), 0
    while not result._job.notes:
        taken += len(next(batches))
    assert taken <= 4500
    assert sum(map(len, batches)) > 20_000
    assert [note.split(" matches")[0] for note in result._job.notes] == ["1,497 of 1,497"]


def test_names__in_notes_and_at_the_end_move_no_cursor(store: Store) -> None:
    reads = store("a\x1b[2J.fq", READS)
    ended = program("scan", reads, reads, "-s", "sig.fa", "--gpus", "none", "-o", f"{reads}.tsv",
                    cwd=Path.cwd())  # fmt: skip
    assert (ended.status, ended.out) == (0, "")
    assert ended.all_err.count("a\\x1b[2J.fq") == 2
    assert "\x1b" not in ended.all_err


SEQUENCE = "a sequence has to stand in a FASTA file: printf '>name\\nACGTN\\n' > sequence.fa"
PROTEIN = (
    "{} is not a base (A C G T U or an IUPAC code); is this protein? Only DNA and RNA can be"
    " scanned"
)
NO_COLUMN = "there is no column sequence: call two columns name and sequence; the first line has"
PACKAGES = "needs packages that are missing: pip install"
EVERYWHERE = [
    ("bom", "begins with a byte order mark (BOM) of UTF-8: remove it with…"),
    ("bom2", "begins with a byte order mark (BOM) of UTF-8: remove it with…"),
    ("utf16", UTF_16), ("utf16le", UTF_16), ("utf16be", UTF_16),
    ("tsv16", UTF_16), ("list16", UTF_16),
    ("ACGTN", f"there is no such file; {SEQUENCE}"),
    ("a.sam", "is a SAM file: convert it with `samtools fastq`…"),
]  # fmt: skip
AS_SAMPLES = [
    ("protein.fa", f"record 'p', position 5 (from 0): {PROTEIN.format(repr('I'))}"),
    *((f"list{k}", "is a list, and not FASTA: awk '{print…") for k in (1, 2, 3)),
    ("~/reads.fq", "…no shell has expanded the ~: leave out the quotes"),
    ("reads.fq,reads.fq", "there is no such file; separate files by spaces, not by commas"),
    ("https://a.b/c.fq", f"cannot be read: https:// {PACKAGES} aiohttp"),
    ("s3://a/c.fq", f"cannot be read: s3:// {PACKAGES} s3fs"),
]  # fmt: skip
AS_SIGNATURES = [
    ("protein.fa", f"record 'p', position 8 (from 0): {PROTEIN.format(repr('Q'))}"),
    ("list2", f"line 1: {NO_COLUMN} name, seq"),
    ("list3", f"line 1: {NO_COLUMN} g1, ACGTACGTAC, 7"),
    ("list4", "neither FASTA nor a table or list of sequences: begins with 'name;seq'…"),
    ("absent.fa", "cannot be read: there is no such file"),
]


@table("name problem", [*EVERYWHERE, *AS_SAMPLES])
def test_sample__that_is_something_else_is_named_with_the_cure(
    refused: Refused, name: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("aiohttp", "s3fs", "fsspec.implementations.http"):
        monkeypatch.setitem(sys.modules, module, None)
    assert is_said(refused(name), f"{name}: {problem}")


@table("name problem", [*EVERYWHERE, *AS_SIGNATURES])
def test_signatures__of_another_kind_are_named(refused: Refused, name: str, problem: str) -> None:
    assert is_said(refused("reads.fq", signatures=name), f"{name}: {problem}")


def test_cures_of_lists__make_fasta() -> None:
    first, second = re.findall(r"awk .*?}'", LIST_CURE)
    for cure, text in ((first, "ACGT\nAC\n"), (second, "1\tACGT\n2,AC\n")):
        made = subprocess.run(cure, shell=True, input=text, stdout=-1, text=True, check=True)
        assert made.stdout == ">1\nACGT\n>2\nAC\n"


@table(
    "words problem",
    [
        ("scan empty.fq blank.fq -s sig.fa", "blank.fq: is empty"),
        ("scan reads.fq --gpus none", "no --signatures given"),
        ("scan -s sig.fa --gpus none", "no SAMPLES given"),
        ("scan reads.fq -s sig.fa -o hits.xlsx", f"hits.xlsx: .xlsx {SUFFIX}…"),
        ("count absent.bam -o c.csv.gz", f"c.csv.gz: .csv {SUFFIX} ends in…"),
        ("scna", "No such command 'scna'. Did you mean 'scan'?…"),
        ("plan scna", "No such command 'scna'. Did you mean 'scan'?…"),
        ("plan pocket x.pdb", "pocket has no plan; these have one: scan, cnv, count, dock…"),
        ("scan a.fq --json", "--json has no effect without --dry-run"),
        ("scan a.fq --trace x", "--trace was removed: --log-json has the same steps…"),
        ("cnv c.tsv --plots png -o o", "--plots was removed: the camera above a figure…"),
        ("scan reads.fq -s sig.fa --log-json -", "--log-json -: events go to a file, e.g.…"),
        ("scan reads.fq -s sig.fa --amplicon-length :9", "--amplicon-length has no effect with…"),
        ("scan reads.fq -s sig.fa --counts= ", "the output has no name"),
        ("scan reads.fq -s sig.fa --matched= ", "the output has no name"),
        ("scan reads.fq -s sig.fa --report= -o o.tsv", "the output has no name"),
        ("simulate ligands -o l.mol2", "l.mol2: the data are written as .sdf: choose such…"),
        ("simulate pocket -o p.dx", "p.dx: the data are written as .npz: choose such…"),
        ("simulate pocket -o p.npz.gz", "p.npz.gz: a pocket is not compressed: choose…"),
        ("simulate pocket --spacing 1e300", "…a spacing of 1e-6 to 100 Å and at least one well"),
        ("simulate signatures -o s.csv", "s.csv: the data are written as .fa, .fasta, .fna:…"),
        ("simulate samples --signatures sig.fa -o s.bam", "s.bam: the data are written as .fq,…"),
        ("simulate counts -o c.xlsx", f"c.xlsx: .xlsx {SUFFIX} ends in…"),
        ("simulate counts --truth t.pq", "t.pq: the data are written as .tsv: choose such…"),
        ("simulate samples", "Missing option '--signatures'…"),
        ("cohort build c.tsv -o -", "-: a cohort is a folder: give it a name"),
    ],
)
def test_command__is_refused_with_the_cure(main: Run, words: str, problem: str) -> None:
    ended = main(*words.split())
    assert (ended.status, ended.out) == (2, "")
    assert is_said(ended.problem, problem)
    assert not Path("hits.xlsx").exists()


def test_output__with_a_strange_name_is_written_in_the_format_that_is_asked_for(main: Run) -> None:
    words = "scan reads.fq -s sig.fa -o hits.xlsx --format tsv --gpus none"
    assert main(*words.split()).status == 0
    assert Path("hits.xlsx").read_bytes().startswith(b"sample\tsignature")


def test_no_threads_of_numba__are_refused(main: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", "0")
    ended = main("scan")
    assert (ended.status, "unset it" in ended.problem) == (2, True)


def test_report__is_html_and_is_called_so() -> None:
    for name in (None, "r.html", "r.HTM", "report", "run.1"):
        check_page(name)
    for name in ("r.pdf", "r.PNG", "r.json"):
        with pytest.raises(UsageError, match=rf"^{name}: reports are HTML: choose a name that"):
            check_page(name)
