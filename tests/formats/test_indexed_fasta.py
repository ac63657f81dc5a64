"""Bases of a reference genome, by its index."""

import gzip
from pathlib import Path

import pysam
import pytest
from support.bgzf_data import bgzf
from support.stored import Store

from multigpu.errors import InputError
from multigpu.formats.sequences.indexed_fasta import IndexedFasta

TEXT = b">chr1 the first\nACGTN\nryswk\nmA\n>chr2\nGGGG\n"


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("is_indexed", [False, True])
def test_base__is_one_that_vcf_takes(is_packed: bool, is_indexed: bool, tmp_path: Path) -> None:
    path = tmp_path / "genome.fa"
    path.write_bytes(bgzf(TEXT) if is_packed else TEXT)
    if is_indexed:
        pysam.faidx(str(path))
    files = sorted(tmp_path.iterdir())
    genome = IndexedFasta(str(path))
    assert genome.lengths == {"chr1": 12, "chr2": 4}
    assert "".join(genome.base("chr1", place) for place in range(12)) == "ACGTNACCAGAA"
    assert sorted(tmp_path.iterdir()) == files  # an index is the user's to make


@pytest.mark.parametrize("content", [b"", b"chr1\t1\n", gzip.compress(TEXT)])
def test_refused__what_is_no_indexable_fasta(content: bytes, store: Store) -> None:
    with pytest.raises(InputError, match="no FASTA file that can be indexed"):
        IndexedFasta(path := store(content))
    with pytest.raises(InputError, match="no such file"):
        IndexedFasta(f"{path}.absent")
