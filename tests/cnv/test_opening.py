"""Opening of `multigpu cnv`: what it refuses with one line and status 2."""

import re
from collections.abc import Callable

import pytest
from support.cohorts import cohort

Run = Callable[..., str]

HEADER = "chrom\tstart\tend\ta\tb\n"
ROWS = "".join(f"chr1\t{k * 10}\t{k * 10 + 10}\t{k % 7 + 50}\t{k % 5 + 40}\n" for k in range(200))

NONE = re.sub(r"\t\d+\n", "\t0\n", ROWS)
TWICE = re.sub(r"\t(\d+)\t\d+\n", r"\t\1\t\1\n", ROWS)
TABLES = {
    "row 1, column a: -1 is no count": "chr1\t0\t10\t-1\t2\n",
    "there are no regions": "",
    "sample b has no reads: leave it out": NONE,
    "all samples have the same counts": TWICE,
}


@pytest.mark.parametrize("problem", TABLES)
def test_refused__tables(problem: str, refused: Run, write: Callable[..., str]) -> None:
    assert problem in refused(write(HEADER + TABLES[problem]))


def test_refused__a_chromosome_of_one_region(refused: Run, write: Callable[..., str]) -> None:
    """R refuses it; by default the other chromosomes are called."""
    path = write(HEADER + ROWS + "chr2\t0\t10\t4\t5\n")
    assert refused(path, "--compat", "r").startswith("chr2: it has one region only")
    path = write(f"{HEADER}chr1\t0\t10\t1\t2\n")
    assert refused(path, "--norm", "2") == "chr1: coverages must be above 0 and finite"


OPTIONS = [
    (("--fold-changes", "1,x"), "'--fold-changes': expected numbers; got '1,x'"),
    (("--norm-type", "min"), "Invalid value for '--norm-type'"),
    (("--gpus", "99"), "99"),
    (("--window", "0"), "window is 0; it must be 1 to"),
    (("--window", "77", "--chromosomes", "chr9"), "--window: for alignments only, and "),
    (("--sample-names", "a,b"), "--sample-names: for alignments only"),
    (("--no-index", "--rename", "auto"), "--rename, --no-index: for alignments only"),
    (("--lower=-inf",), "--lower is -inf; it must be a finite number"),
    (("--cycles", "9" * 400), "--cycles is 99999"),
    (("--posterior", "--no-matrices"), "--posterior has no effect without --matrices"),
]


@pytest.mark.parametrize(("words", "problem"), OPTIONS, ids=[" ".join(w)[:40] for w, _ in OPTIONS])
def test_refused__options(words: tuple[str, ...], problem: str, refused: Run, table: str) -> None:
    assert problem in refused(table, *words)


@pytest.mark.parametrize(
    ("option", "word", "expected"),
    [
        *(("--ploidy", word, "a whole number") for word in ("two", "2.5", "-2")),
        ("--sex", "mael", "infer, none, male or female"),
    ],
)
def test_refused__words_instead_of_facts(
    option: str, word: str, expected: str, refused: Run, table: str
) -> None:
    said = refused(table, option, word)
    problem = f"{option} is '{word}': expected {expected} for all samples, or a file with lines"
    assert said.startswith(problem)
    assert said.endswith(", and there is no such file")


def test_refused__several_files_that_are_no_alignments(
    refused: Run, write: Callable[..., str]
) -> None:
    cnvkit = [write("chromosome\tstart\tend\tgene\tlog2\tweight\n", f"{k}.cnr") for k in "ab"]
    assert "a.cnr: is a file of CNVkit" in refused(*cnvkit)
    sam = [write("@SQ\tSN:chr1\tLN:1000\n", f"{k}.sam") for k in "ab"]
    assert "a.sam: is a SAM file" in refused(*sam)


FACTS = [
    ("--ploidy", "smp1\ttwo\n", "the ploidy of smp1 is 'two', not a whole number"),
    ("--ploidy", f"smp1\t{'9' * 400}\n", "…': no genome has as many sets"),
    ("--sex", "x\0" * 99 + "\tm\n", "--sex names sample 'x\\x00x\\x00"),
    ("--ploidy", "nobody\t2\n", "--ploidy names sample 'nobody', which is not in the counts"),
    ("--sex", "smp1\tboth\n", "the sex of smp1 is 'both'"),
    ("--sex", "smp1 male\n", "line 1: expected a sample, a tab, and its sex or ploidy, not"),
    ("--sex", "smp1\tm\nsmp1\tf\n", "line 2: 'smp1' is listed twice"),
    ("--ploidy", "", "facts.tsv: names no sample: expected lines with a sample, a tab, and its"),
    ("--ploidy", "# sample and ploidy\n\n", "facts.tsv: names no sample"),
    ("--sex", "", "facts.tsv: names no sample"),
]


@pytest.mark.parametrize(("option", "text", "problem"), FACTS, ids=[fact[2] for fact in FACTS])
def test_refused__facts_of_samples(
    option: str, text: str, problem: str, refused: Run, table: str, write: Callable[..., str]
) -> None:
    name = cohort()[0].samples[0]
    said = refused(table, option, write(text.replace("smp1", name), "facts.tsv"))
    assert problem.replace("smp1", name) in said


def test_refused__references(refused: Run, table: str, write: Callable[..., str]) -> None:
    short = write(">chr1\nACGT\n", "genome.fa")
    assert "--reference is for the VCF" in refused(table, "--reference", short, "--no-vcf")
    assert "chr1 has 4 bases" in refused(table, "--reference", short)
    assert "no such file" in refused(table, "--reference", "nothing.fa")
