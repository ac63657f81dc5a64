"""What users of scan get wrong: refused with the cure, or noted, never answered in silence."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bad_input.given import READS, SIGNATURES, Refused, Store
from support.program import Run, program

from multigpu import scan
from multigpu.formats.storage.sources import LIST_CURE
from multigpu.formats.storage.suffixes import check_page

LONG = b">contig\n" + b"ACGTTGCA" * 40 + b"\n"
Noted = Callable[..., list[str]]


@pytest.fixture
def noted(main: Run, caplog: pytest.LogCaptureFixture) -> Noted:
    """The notes of a run that succeeds."""

    def run(*arguments: str) -> list[str]:
        caplog.clear()
        ended = main("scan", *arguments, "--gpus", "none")
        assert (ended.status, ended.err) == (0, "")
        return [message.removeprefix("multigpu: ") for message in caplog.messages]

    return run


# ---- -s a.fa b.fa -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "order",
    [
        ("reads.fq", "-s", "sig.fa", "b.fa"),
        ("reads.fq", "--signatures", "sig.fa", "b.fa", "c.fa"),
        ("reads.fq", "--signatures=sig.fa", "b.fa"),
        ("reads.fq", "-ssig.fa", "b.fa"),
        ("-s", "sig.fa", "b.fa", "reads.fq"),
        ("long.fa", "-s", "sig.fa", "b.fa"),
        ("-s", "long.fa", "b.fa", "c.fa"),
        ("reads.fq", "-s", "sig.fa", "-s", "c.fa", "b.fa"),
    ],
    ids=" ".join,
)
def test_fasta_after_the_file_of_signatures__is_refused(
    main: Run, store: Store, order: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in (("reads.fq", READS), ("long.fa", LONG)):
        folder = Path(store(name, content)).parent
    for name in ("sig.fa", "b.fa", "c.fa"):
        store(name, SIGNATURES)
    monkeypatch.chdir(folder)
    ended = main("scan", *order, "--gpus", "none")
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem == (
        "b.fa follows the value of -s, but would be scanned as a sample: repeat -s for each file of"
        " signatures (-s FILE -s b.fa), or put all SAMPLES before the first -s"
    )


@pytest.mark.parametrize(
    "order",
    [
        ("long.fa", "reads.fq", "-s", "sig.fa"),
        ("-s", "sig.fa", "long.fa"),
        ("-s", "sig.fa", "b.fa"),
        ("-s", "sig.fa", "long.fa", "b.fa"),
        ("-s", "sig.fa", "reads.fq", "long.fa"),
        ("long.fa", "-s", "sig.fa", "reads.fq"),
        ("reads.fq", "-s", "sig.fa", "--hits", "all", "long.fa"),
        ("-s", "sig.fa", "-s", "b.fa", "long.fa"),
    ],
    ids=" ".join,
)
def test_samples__that_are_fasta_are_taken_where_the_order_is_clear(
    main: Run, store: Store, order: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in (("reads.fq", READS), ("long.fa", LONG)):
        folder = Path(store(name, content)).parent
    for name in ("sig.fa", "b.fa"):
        store(name, SIGNATURES)
    monkeypatch.chdir(folder)
    ended = main("scan", *order, "--gpus", "none")
    assert (ended.status, ended.err) == (0, "")
    assert len(ended.out.splitlines()) > 1


# ---- notes ------------------------------------------------------------------------------------


def test_good_run__has_no_note(noted: Noted, store: Store, signatures: str) -> None:
    assert noted(store("reads.fq", READS), "-s", signatures) == []


def test_signatures__longer_than_all_samples_are_noted(
    noted: Noted, store: Store, signatures: str
) -> None:
    reads, long = store("reads.fq", READS), store("long.fa", LONG)
    (note,) = noted(reads, "-s", long)
    assert note == (
        "no signature can occur: the shortest has 320 bases and is longer than the longest sample"
        " (6 bases); are samples and signatures swapped?"
    )
    (note,) = noted(reads, "-s", signatures, "-s", long)
    assert note == (
        "1 of 2 signatures cannot occur: they are longer than the longest sample (6 bases), e.g."
        " 'contig' with 320"
    )


def test_empty_files__among_others_are_noted(
    main: Run, noted: Noted, store: Store, signatures: str
) -> None:
    empty = [store(f"empty{i}.fq", content) for i, content in enumerate([b"", b"\n \n"])]
    notes = noted(store("reads.fq", READS), *empty, "-s", signatures)
    assert notes == [f"2 empty sample files are left out: {', '.join(empty)}"]
    ended = main("scan", *empty, "-s", signatures, "--gpus", "none")
    assert (ended.status, ended.problem) == (2, f"{empty[1]}: is empty")


def test_directory__of_which_files_are_left_out_is_noted(
    noted: Noted, store: Store, signatures: str
) -> None:
    store("in/a.fq", READS)
    folder = str(Path(store("in/b.fq", READS.replace(b"@r", b"@q"))).parent)
    assert noted(folder, "-s", signatures) == []
    store("in/c.sdf", b"")
    assert noted(folder, "-s", signatures)[0].endswith("are read a.fq, b.fq; not c.sdf")
    store("in/d.fa", LONG)
    Path(folder, "c.sdf").unlink()
    assert noted(folder, "-s", signatures)[0].endswith("are read a.fq, b.fq, d.fa")


def test_reads_as_signatures__are_noted(noted: Noted, store: Store) -> None:
    reads = store("reads.fq", READS)
    assert noted(reads, "-s", reads) == [f"the signatures ({reads}) are FASTQ: are they reads?"]


GUIDE = "ACGTTGCAACGTTGCAACGT"


@pytest.mark.parametrize(
    ("guide", "option", "note"),
    [
        ("NGG" + GUIDE, "suffix", "CGT of 'g', whose other end is NGG: if that is the PAM, give"),
        (GUIDE + "NGG", "prefix", "ACG of 'g', whose other end is NGG: if that is the PAM, give"),
        (GUIDE, "suffix", "CGT of 'g': if the signatures are guides, the PAM has to be a part"),
        (GUIDE, "prefix", "ACG of 'g': if the signatures are guides, the PAM has to be a part"),
        (GUIDE + "NGG", "suffix", ""),
        ("NGG" + GUIDE, "prefix", ""),
        (GUIDE + "TGG", "suffix", ""),
    ],
)
def test_exact_part__at_the_end_without_the_pam_is_noted(
    noted: Noted, store: Store, guide: str, option: str, note: str
) -> None:
    signatures = store("g.fa", f">g\n{guide}\n".encode())
    options = (f"--exact-{option}", "3", "--max-mismatches", "2")
    notes = noted(store("long.fa", LONG), "-s", signatures, *options)
    assert notes == [] if not note else notes[0].startswith(f"--exact-{option} 3 keeps {note}")


def test_qualities__of_old_illumina_files_are_noted(
    noted: Noted, store: Store, signatures: str
) -> None:
    old = store("old.fq", b"@r\nACGTACGT\n+\nhhhh\nhBBB\n")
    (note,) = noted(old, "-s", signatures)
    assert note.endswith("below '@', as in old Illumina files, which need --phred-offset 64")
    assert noted(old, "-s", signatures, "--phred-offset", "64") == []
    for values in (b"hhhhhhhh", b"hhhhhhh?", b"~~~~~~~h"):
        reads = store("new.fq", b"@r\nACGTACGT\n+\n" + values + b"\n")
        assert noted(reads, "-s", signatures) == []


def test_records__without_a_name_are_noted(noted: Noted, store: Store) -> None:
    samples, signatures = store("s.fa", b">\nACGT\n> x\nACGT\n"), store("g.fa", b">\nACGT\n")
    assert noted(samples, "-s", signatures) == [
        "signatures without a name: 1; their column is empty",
        "samples without a name that have rows: 2; their column is empty",
    ]


def test_ambiguous_matches__are_noted_before_the_others_come(
    main: Run, store: Store, signatures: str
) -> None:
    samples = store("n.fa", b"".join(b">s%d\n%s\n" % (i, 1500 * b"N") for i in range(40)))
    result = scan(samples, signatures, gpus="none", hits="all", max_chunk_bytes=1600, threads=1)
    batches, taken = iter(result), 0
    while not result._job.notes:
        taken += len(next(batches))
    assert taken <= 4500
    assert sum(map(len, batches)) > 20_000
    assert [note.split(" matches")[0] for note in result._job.notes] == ["1,497 of 1,497"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"ACGTACGTAC\nACGTACGTAA\n", "is a list, and not FASTA: awk '{print"),
        (b"name;seq\ng1;ACGTACGTAC\n", "is a list, and not FASTA: awk '{print"),
        (b"g1\tACGTACGTAC\t7\n", "is a list, and not FASTA: awk '{print"),
        (b"name;seq\ng1;hello\n", "neither FASTQ nor FASTA: begins with 'name;seq'"),
    ],
)
def test_list_of_sequences__is_refused_with_the_cure(
    refused: Refused, store: Store, content: bytes, problem: str
) -> None:
    path = store("list.txt", content)
    assert refused(store("reads.fq", READS), signatures=path).startswith(f"{path}: {problem}")


def test_cures_of_lists__make_fasta(tmp_path: Path) -> None:
    first, second = re.findall(r"awk .*?}'", LIST_CURE)
    for cure, text in ((first, "ACGT\nAC\n"), (second, "1\tACGT\n2,AC\n")):
        made = subprocess.run(cure, shell=True, input=text, stdout=-1, text=True, check=True)
        assert made.stdout == ">1\nACGT\n>2\nAC\n"


def test_paths__that_no_shell_has_expanded_or_joined_by_commas(
    refused: Refused, store: Store
) -> None:
    reads = store("reads.fq", READS)
    assert refused("~/reads.fq").endswith("no shell has expanded the ~: leave out the quotes")
    problem = "there is no such file; separate files by spaces, not by commas"
    assert refused(f"{reads},{reads}") == f"{reads},{reads}: {problem}"


def test_names__in_notes_and_at_the_end_move_no_cursor(store: Store, signatures: str) -> None:
    reads = store("a\x1b[2J.fq", READS)
    ended = program("scan", reads, reads, "-s", signatures, "--gpus", "none", "-o", f"{reads}.tsv")
    assert (ended.status, ended.out) == (0, "")
    assert ended.all_err.count("a\\x1b[2J.fq") == 2
    assert "\x1b" not in ended.all_err


def test_threads_of_numba__that_are_none_are_refused(
    main: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", "0")
    ended = main("scan")
    assert (ended.status, "unset it" in ended.problem) == (2, True)


def test_swapped_files__are_noted(noted: Noted, store: Store, signatures: str) -> None:
    reads = store("reads.fq", READS)
    swapped = f"the signatures ({reads}) are FASTQ and the samples ({signatures}) FASTA"
    first, second = noted(signatures, "-s", reads)
    assert first == f"{swapped}: are the two swapped?"
    assert second.startswith("no signature can occur: the shortest has 5 bases")
    assert noted(store("genome.fa", LONG), "-s", reads)[0].startswith("the signatures (")


def test_file__that_is_given_twice_is_noted(
    noted: Noted, store: Store, signatures: str, tmp_path: Path
) -> None:
    reads, other = store("reads.fq", READS), store("other.fq", READS.replace(b"@r", b"@s"))
    link = tmp_path / "link.fq"
    link.symlink_to(reads)
    note = f"sample files given more than once: 1, e.g. {reads}; rows are repeated"
    names = "samples with the name of an earlier one: 2, e.g. 'r1'; only Parquet and Python"
    for again in (reads, str(tmp_path / "." / "reads.fq"), str(link)):
        notes = noted(reads, other, again, "-s", signatures)
        assert notes[0] == note
        assert notes[1].startswith(names)
    notes = noted(other, "-s", signatures, "-s", signatures)
    assert notes[0].startswith(f"signature files given more than once: 1, e.g. {signatures}")
    assert notes[1].startswith(
        "signatures with the name of an earlier one: 1, e.g. 'sig' (2 times)"
    )


def test_min_score__of_samples_without_scores_is_noted(
    noted: Noted, store: Store, signatures: str
) -> None:
    notes = noted(store("long.fa", LONG), "-s", signatures, "--min-score", "20")
    assert notes == ["--min-score has no effect: FASTA samples have no scores, and their rows stay"]


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (("--resume",), "--resume has no effect: a run that reads a pipe or writes to standard"),
        (("--dashboard",), "--dashboard has no effect: only worker processes of this machine"),
        (("--ambiguous", "--format", "text"), "--ambiguous has no effect: text has no columns"),
        (("--mixed",), "--mixed has no effect without --scheduler or --scheduler-file"),
        (
            ("--format", "text", "--max-edits", "1"),
            "text has no columns edits and cigar: choose --format tsv, csv, bed or jsonl",
        ),
    ],
)
def test_option__without_effect_is_noted(
    noted: Noted, store: Store, signatures: str, options: tuple[str, ...], note: str
) -> None:
    (said,) = noted(store("reads.fq", READS), "-s", signatures, *options)
    assert said.startswith(note)


@pytest.mark.parametrize(
    ("name", "fmt", "note"),
    [
        ("hits.tsv", "sam", "is written as sam, as --format says, although its name ends in .tsv"),
        (
            "hits.vcf.gz",
            "tsv",
            "is written as tsv, as --format says, although its name ends in .vcf",
        ),
        ("hits.tsv.gz", "tsv", None),
        ("hits.run1", "bed", None),
        ("hits.json", "jsonl", None),
        ("hits.txt", "tsv", None),
    ],
)
def test_format__other_than_the_name_promises_is_noted(
    noted: Noted, store: Store, signatures: str, tmp_path: Path, name: str, fmt: str, note: str
) -> None:
    output = str(tmp_path / name)
    notes = noted(store("reads.fq", READS), "-s", signatures, "-o", output, "--format", fmt)
    assert notes == ([f"{output} {note}"] if note else [])


def test_resume__into_a_file_is_not_noted(
    noted: Noted, store: Store, signatures: str, tmp_path: Path
) -> None:
    output = str(tmp_path / "hits.tsv")
    assert noted(store("reads.fq", READS), "-s", signatures, "--resume", "-o", output) == []


# ---- files that are something else ------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xef\xbb\xbf" + READS, "begins with a byte order mark (BOM) of UTF-8: remove it with"),
        (READS.decode().encode("utf-16"), "is text in UTF-16: convert it with `iconv -f UTF-16"),
        (READS.decode().encode("utf-16-le"), "is text in UTF-16: convert it with `iconv -f UTF"),
        (READS.decode().encode("utf-16-be"), "is text in UTF-16: convert it with `iconv -f UTF"),
        (b"@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:9\n", "is a SAM file: convert it with `samtools fastq`"),
    ],
    ids=["BOM", "UTF-16", "UTF-16 LE", "UTF-16 BE", "SAM"],
)
def test_text__of_another_kind_is_named_with_the_cure(
    refused: Refused, store: Store, content: bytes, problem: str
) -> None:
    path = store("other.fq", content)
    assert refused(path).startswith(f"{path}: {problem}")
    assert refused(store("good.fq", READS), signatures=path).startswith(f"{path}: {problem}")


def test_sequence__instead_of_a_file_is_told_how_to_make_one(
    refused: Refused, store: Store
) -> None:
    cure = "a sequence has to stand in a FASTA file: printf '>name\\nACGTN\\n' > sequence.fa"
    expected = f"ACGTN: there is no such file; {cure}"
    assert refused(store("good.fq", READS), signatures="ACGTN") == expected
    assert refused("ACGTN") == expected


def test_protein__is_named(refused: Refused, store: Store) -> None:
    protein = store("protein.fa", b">p\nMKTAYIAKQRQISFVK\n")
    problem = (
        "record 'p', position 5 (from 0): 'I' is not a base (A C G T U or an IUPAC code);"
        " is this protein? Only DNA and RNA can be scanned"
    )
    assert refused(store("good.fq", READS), signatures=protein) == f"{protein}: {problem}"
    assert refused(protein) == f"{protein}: {problem}"


@pytest.mark.parametrize(
    ("url", "packages"), [("https://a.b/c.fq", "requests aiohttp"), ("s3://a/c.fq", "s3fs")]
)
def test_url__without_its_packages_names_them(
    refused: Refused, url: str, packages: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("aiohttp", "s3fs", "fsspec.implementations.http"):
        monkeypatch.setitem(sys.modules, module, None)
    needs = f"{url.partition(':')[0]}:// needs packages that are missing"
    assert refused(url) == f"{url}: cannot be read: {needs}: pip install {packages}"


# ---- outputs that would be something else -----------------------------------------------------


def test_output__with_a_name_that_promises_something_else_is_refused(
    main: Run, store: Store, signatures: str, tmp_path: Path
) -> None:
    output = tmp_path / "hits.xlsx"
    command = ("scan", store("reads.fq", READS), "-s", signatures, "-o", str(output))
    ended = main(*command, "--gpus", "none")
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem.startswith(f"{output}: .xlsx files cannot be written: choose a name")
    assert not output.exists()
    assert main(*command, "--format", "tsv", "--gpus", "none").status == 0
    assert output.read_bytes().startswith(b"sample\tsignature")


def test_counts__into_a_name_that_promises_something_else_are_refused(
    main: Run, tmp_path: Path
) -> None:
    for name, suffix in (("c.csv", ".csv"), ("c.xlsx", ".xlsx"), ("c.csv.gz", ".csv")):
        ended = main("count", "absent.bam", "-o", str(tmp_path / name))
        problem = f"{tmp_path / name}: {suffix} files cannot be written: choose a name that ends in"
        assert (ended.status, ended.problem[: len(problem)]) == (2, problem)


def test_report__is_html_and_is_called_so() -> None:
    from multigpu import UsageError

    for name in (None, "r.html", "r.HTM", "report", "run.1"):
        check_page(name)
    for name in ("r.pdf", "r.PNG", "r.json"):
        with pytest.raises(UsageError, match=rf"^{name}: reports are HTML: choose a name that"):
            check_page(name)


# ---- commands ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("typed", "meant"), [("scna", "scan"), ("dok", "dock"), ("cvn", "cnv")])
def test_command__that_is_misspelt_is_told_what_was_meant(
    main: Run, typed: str, meant: str
) -> None:
    ended = main(typed)
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem.startswith(f"No such command '{typed}'. Did you mean '{meant}'?")
