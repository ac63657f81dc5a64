"""GC content of regions: any lines, letters and compression, and sequences that do not fit."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scanned import wrapped_fasta
from support.stored import Store

from multigpu.errors import InputError
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.sequences import gc_content as module
from multigpu.formats.sequences.gc_content import gc_content

BASES = st.text("ACGTNacgtnRY", min_size=1, max_size=90)


@given(
    texts=st.lists(BASES, min_size=1, max_size=3), width=st.integers(1, 30),
    newline=st.sampled_from(["\n", "\r\n", " \n"]), block=st.integers(1, 40),
    places=st.lists(st.tuples(st.integers(0, 89), st.integers(1, 90)), min_size=1, max_size=6),
)  # fmt: skip
def test_content__is_that_of_the_letters(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], width: int, newline: str,
    block: int, places: list[tuple[int, int]],
) -> None:  # fmt: skip
    named = [(f"c{k} some > words", text) for k, text in enumerate(texts)]
    path = tmp_path_factory.mktemp("fasta") / "x.fa.gz"
    lines = wrapped_fasta(named, width).replace(b"\n", newline.encode())
    path.write_bytes(gzip.compress(lines))
    rows = [
        (f"c{k}", min(a, len(text) - 1), min(max(a, b - 1) + 1, len(text)))
        for k, text in enumerate(texts)
        for a, b in sorted(places)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        found = gc_content(str(path), Regions.of(rows), rename=False, lengths={})
    for (name, start, end), share in zip(rows, found.tolist(), strict=True):
        piece = texts[int(name[1:])][start:end].upper()
        bases = sum(map(piece.count, "ACGT"))
        wanted = (piece.count("G") + piece.count("C")) / bases if bases else np.nan
        assert share == pytest.approx(wanted, nan_ok=True)


@pytest.mark.parametrize(("text", "rename", "problem"), [
    ("ACGT\n", False, "is no FASTA: begins with 'ACGT'"),
    ("\n", False, "is empty"),
    (">chr1\nACGT\n", False, "chr1 has 4 bases, and 8 in the data: is it of another genome?"),
    (">chr2\nACGT\n", True, "has no sequence chr1 (it has chr2): is it of another genome?"),
    (">1\nACGTACGT\n", False, "no sequence chr1 (it has 1): rename auto takes names as the"),
    (">1\nACGTACGTA\n", True, "chr1 has 9 bases, and 8 in the data: is it of another genome?"),
    (">chr1\nACGT\n>x\nA\n", True, "chr1 has 4 bases, and regions reach to 6: is it of"),
    (">1\nACGTACGT\n", True, ""),
])  # fmt: skip
def test_sequences__that_do_not_fit(store: Store, text: str, rename: bool, problem: str) -> None:
    lengths = {} if "reach" in problem else {"chr1": 8}
    given = (store(text.encode()), Regions.of([("chr1", 2, 6)]), rename, lengths)
    if not problem:
        assert gc_content(*given) == 0.5
        return
    with pytest.raises(InputError) as error:
        gc_content(*given)
    assert problem in str(error.value)
