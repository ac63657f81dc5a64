"""Counts in the files of other programs, and the samples of several files in one table."""

import gzip
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bgzf_data import bgzf
from support.stored import Store

from multigpu.errors import InputError, UsageError
from multigpu.formats.tables.counts import Counts, sample_of_file
from multigpu.formats.tables.counts_files import format_of, join_counts, read_counts, write_counts

PLACES = [("chr1", 0, 100), ("chr1", 100, 250), ("chr2", 50, 60)]
READS, GENES = [3, 70, 0], ["A", "", "B,C"]
LENGTH = 50  # bases of a read
SAM = "@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:600\n@RG\tID:x\tSM:NA 1\n"


def lines(*rows: Any) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


DEPTHS = [f"{reads * LENGTH / (b - a):.4f}" for reads, (_, a, b) in zip(READS, PLACES, strict=True)]


def bincov(path: Path) -> None:
    rows = [(*place, reads, 2 * reads) for place, reads in zip(PLACES, READS, strict=True)]
    path.write_bytes(bgzf(lines(("#Chr", "Start", "End", "NA 1", "NA 1-2"), *rows).encode()))


def gatk_text(path: Path) -> None:
    rows = [(c, a + 1, b, n) for (c, a, b), n in zip(PLACES, READS, strict=True)]
    path.write_text(SAM + lines(("CONTIG", "START", "END", "COUNT"), *rows))


def gatk_hdf5(path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        text = h5py.string_dtype()
        file.create_dataset("sample_metadata/sample_name", data=["NA 1"], dtype=text)
        file.create_dataset("intervals/indexed_contig_names", data=["chr1", "chr2"], dtype=text)
        chrom = [int(name == "chr2") for name, _, _ in PLACES]
        start, end = [start + 1 for _, start, _ in PLACES], [end for _, _, end in PLACES]
        file["intervals/transposed_index_start_end"] = np.array([chrom, start, end], np.float64)
        file["counts/values"] = np.array([READS], np.float64)


def mosdepth(path: Path) -> None:
    rows = [(*PLACES[k], GENES[k], DEPTHS[k]) for k in range(3)]
    path.write_bytes(gzip.compress(lines(*rows).encode()))


def mosdepth_without_names(path: Path) -> None:
    path.write_text(lines(*[(*PLACES[k], DEPTHS[k]) for k in range(3)]))


def cnvkit(path: Path) -> None:
    rows = [(*PLACES[k], GENES[k] or "-", DEPTHS[k], -1.5) for k in range(3)]
    path.write_text(lines(("chromosome", "start", "end", "gene", "depth", "log2"), *rows))


# Name of a file and what writes it: name of its sample, and whether it has genes.
OTHERS: dict[tuple[str, Any], tuple[str, bool]] = {
    ("batch.RD.txt.gz", bincov): ("NA 1", False),
    ("s.counts.tsv", gatk_text): ("NA 1", False),
    ("s.counts.hdf5", gatk_hdf5): ("NA 1", False),
    ("s 1.regions.bed.gz", mosdepth): ("s 1", True),
    ("s.regions.bed", mosdepth_without_names): ("s", False),
    ("s.targetcoverage.cnn", cnvkit): ("s", True),
}


@pytest.mark.parametrize("file", OTHERS)
def test_read__files_of_other_programs(tmp_path: Path, file: tuple[str, Any]) -> None:
    name, write = file
    write(tmp_path / name)
    path, (sample, has_genes) = str(tmp_path / name), OTHERS[file]
    length = LENGTH if format_of(path).has_depths else None
    found = read_counts(path, read_length=length)
    assert (found.samples[0], found.values[:, 0].tolist()) == (sample, READS)
    assert found.values.dtype == np.int32
    regions = found.regions
    columns = ([regions.names[k] for k in regions.chrom], regions.start, regions.end)
    assert list(zip(*columns, strict=True)) == PLACES
    assert regions.genes == (tuple(GENES) if has_genes else ())
    if length:
        with pytest.raises(InputError, match=r"has mean depths .*: read_length N, the bases of a"):
            read_counts(path)


@pytest.mark.parametrize(("name", "sample"), [
    ("a/b.c.regions.bed.gz", "b.c"), ("x.antitargetcoverage.cnn", "x"), ("x.cnn", "x"),
    ("x.tsv.zst", "x"), ("x.counts.TSV", "x"), ("x.hdf5", "x"), ("x", "x"), (".bed", ".bed"),
])  # fmt: skip
def test_sample__is_named_by_its_file(name: str, sample: str) -> None:
    assert sample_of_file(name) == sample


WRONG = [  # text of a file, what is said of it
    (SAM + "r1\t0\tchr1\t1\t9\t4M\n", "is a SAM file"),
    (SAM + "CONTIG\tSTART\tEND\tLOG2_COPY_RATIO\nc\t1\t9\t0.1\n", "these are no counts"),
    (SAM + "CONTIG\tSTART\tEND\tCOUNT\nc\t0\t9\t1\n", "row 1: 0 to 9 is no region: 1 <= start <="),
    (SAM + "CONTIG\tSTART\tEND\tCOUNT\nc\t1\t9\tx\n", "row 1, column COUNT: 'x' is no number"),
    (SAM.replace("NA 1", "a\x01") + "CONTIG\tSTART\tEND\tCOUNT\nc\t1\t9\t1\n", "control character"),
    ("#Chr\tStart\tEnd\ta\ta\nc\t0\t9\t1\t1\n", "column 5: the sample 'a' is listed twice"),
    ("#Chr\tStart\tEnd\ta\nc\t0\t9\t-0.5\n", "row 1, column a: -0.5 is no count"),
    ("c\t0\t9\t1.50\nc\t9\t8\t1.50\n", "row 2: 9 to 8 is no region"),
    ("\xff\xfec\0h\0r\0o\0m\0", "is text in UTF-16: convert it with `iconv"),
    ("\x89HDF\r\n\x1a\n", "cannot be read as HDF5"),
]


@pytest.mark.parametrize(("text", "problem"), WRONG)
def test_read__what_is_wrong_is_named(store: Store, text: str, problem: str) -> None:
    with pytest.raises(InputError, match=r"^[^\n]*$") as error:
        read_counts(store(text.encode("latin-1")), read_length=1)
    assert problem in str(error.value)


def test_hdf5__of_others_and_without_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, h5py = tmp_path / "a.hdf5", pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["panel"] = [1]
    with pytest.raises(InputError, match="is HDF5 without read counts: it has no counts/values"):
        read_counts(str(path))
    gatk_hdf5(path)
    with h5py.File(path, "a") as file:
        file["intervals/transposed_index_start_end"][0, 0] = 7
    with pytest.raises(InputError, match="its intervals and counts do not fit together"):
        read_counts(str(path))
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match=r"needs h5py: pip install 'multigpu\[hdf5\]', or write"):
        read_counts(str(path))


def gatk_files(
    folder: Path, columns: dict[str, list[Any]], starts: tuple[int, ...] = (1, 9)
) -> list[str]:
    """Files of samples with these counts."""
    paths = []
    for name, counts in columns.items():
        rows = [("c", at, at + 7, n) for at, n in zip(starts, counts, strict=True)]
        text = f"@RG\tID:x\tSM:{name}\n" + lines(("CONTIG", "START", "END", "COUNT"), *rows)
        (folder / f"{name}.tsv").write_text(text)
        paths.append(str(folder / f"{name}.tsv"))
    return paths


def test_join__one_column_of_each_file(tmp_path: Path) -> None:
    paths = gatk_files(tmp_path, {f"s{k}": [k, 10 * k] for k in range(30)})
    found = join_counts(paths)
    assert found.samples == tuple(f"s{k}" for k in range(30))
    assert (found.values == np.outer([1, 10], np.arange(30))).all()
    assert found.values.dtype == np.int32
    assert join_counts(paths[:2], names=["x", "y"]).samples == ("x", "y")
    assert join_counts(paths[:1], names=["x"]).samples == ("x",)


@pytest.mark.parametrize("sizes", [(1, 3), (3, 1, 1), (2, 2), (1, 1, 5)], ids=str)
def test_join__tables_of_any_number_of_samples(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    values, paths, borders = np.arange(3.0 * sum(sizes)).reshape(3, -1), [], np.cumsum([0, *sizes])
    values[2, -1] = 0.5  # the last table is one of fractions
    names = tuple(f"s{k}" for k in range(sum(sizes)))
    first = read_counts(gatk_files(tmp_path, {"x": [0, 0, 0]}, (1, 9, 17))[0])
    for a, b in pairwise(borders.tolist()):
        part = np.ascontiguousarray(values[:, a:b], np.int32 if b < sum(sizes) else np.float64)
        paths.append(str(tmp_path / f"{a}.parquet"))
        write_counts(paths[-1], Counts(first.regions, names[a:b], part))
    found = join_counts(paths)
    assert (found.samples, found.values.flags.c_contiguous) == (names, True)
    assert (found.values == values).all()


def test_join__what_does_not_fit_is_named(tmp_path: Path) -> None:
    a, b = gatk_files(tmp_path, {"a": [1, 2], "b": [3, 4]})
    other, *_ = gatk_files(tmp_path, {"c": [3, 4]}, (1, 10))
    mosdepth(tmp_path / "d.bed.gz")
    bincov(tmp_path / "e")
    for files, problem in (
        ([a, b, other], rf"c\.tsv: region 2 is c:9-17 here and c:8-16 in {a}: "),
        ([a, b, a], rf"its sample 'a' is in {a}, too"),
        (
            [a, str(tmp_path / "d.bed.gz")],
            r"is a table of GATK .*d\.bed\.gz is regions of mosdepth",
        ),
    ):
        with pytest.raises((InputError, UsageError), match=problem):
            join_counts(files)
    with pytest.raises(InputError, match="has 2 samples, but one name is given"):
        join_counts([str(tmp_path / "e")], names=["x"])
