"""Tables, lists and primer schemes as signatures."""

import pytest
from support.stored import Store

from multigpu.errors import InputError
from multigpu.formats.sequences.signatures import read_signatures

TWO = [("a", "ACGT"), ("b c", "ggn")]
PRIMERS = b"ref\t1\t5\ta\t1\t+\tACGT\nref\t9\t12\tb c\t1\t-\tggn\n"


@pytest.mark.parametrize(("content", "expected"), [
    (b"a\tACGT\nb c\tggn\n", TWO),
    (b"\n# from a kit\na,ACGT\r\n\r\n b c , ggn\r\n", TWO),
    (b"\xef\xbb\xbfSequence;x;Name\nACGT;1;a\nggn;;b c", TWO),
    (b'"name","sequence"\n"a","ACGT"\n"b c","ggn"\n', TWO),
    (PRIMERS, TWO),
    (b'browser hide all\ntrack name="x,y"\n#chrom\n' + PRIMERS + b"#end\n", TWO),
    (b"ACGT\nggn\nACGT\n", [("ACGT", "ACGT"), ("ggn", "ggn"), ("ACGT", "ACGT")]),
    (b"sequence\nggn\n", [("ggn", "ggn")]),
    (b"#1\tACGT\nx\tACGT\n#2\tC\n", [("x", "ACGT"), ("#2", "C")]),
    (b"caf\xe9\tACGT\n", [("caf\udce9", "ACGT")]),
])  # fmt: skip
def test_columns__are_read(store: Store, content: bytes, expected: list[tuple[str, str]]) -> None:
    found = read_signatures([store(content)])
    names = [name.decode("utf-8", "surrogateescape") for name in found.names]
    letters = [each.tobytes().decode() for each in found.letters]
    assert list(zip(names, letters, strict=True)) == expected


@pytest.mark.parametrize(("content", "problem"), [
    (b"a\tACGT\n\nb\tAG\na\tC\n", r"line 4: the name 'a' is that of line 1: rename one"),
    (b"BAM\x01\0", "is a BAM file: convert it with `samtools fastq`"),
    (b"a,ACGT\n ,AG\n", "line 2: the name is empty: fill it in"),
    (b"a,ACGT\nb,AG,x\n", "line 2: 3 columns, where the first line has 2: correct the line"),
    (b"a,ACGT\nb,AXG\n", r"line 2, record 'b', position 1 \(from 0\): 'X' is not a base .*"),
    (b"a,ACGT\nb,\n", "line 2, record 'b': the signature has no base"),
    (b"name,guide\nb,ACGT\n", "line 1: there is no column sequence: .* has name, guide"),
    (b"name,sequence\n", "there is no signature"),
    (b"chr1\t1\t9\ta\t0\t+\n", "line 1: is BED without sequences: .*makes FASTA of it"),
    (PRIMERS + b"chr1\t1\t9\ta\t0\t+\t1\n", "line 3: is BED without sequences: .*"),
    (b'"a\x1b","ACGT"\nb,AC\n', r"line 1: the name has the control character .*rename it"),
])  # fmt: skip
def test_line__that_is_wrong_is_named(store: Store, content: bytes, problem: str) -> None:
    with pytest.raises(InputError, match=f"given.txt: {problem}$"):
        read_signatures([store(content, "given.txt")])
