"""The files of the calls, read by the programs that they are for."""

import json
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pysam
import pytest
from support.called import bcftools, with_cnvs
from support.cohorts import cohort, result

from multigpu import CnvResult, UsageError
from multigpu.formats.tables.tabix import LONGEST_TBI
from multigpu.workloads.cnv.output import text_files
from multigpu.workloads.cnv.output.files import write_by_sample, write_tables
from multigpu.workloads.cnv.output.vcf import VcfSource, check_names, write_vcf
from multigpu.workloads.cnv.records import NOT_CALLED

Written = Callable[[CnvResult], str]


@pytest.fixture
def vcf(tmp_path: Path) -> Written:
    """Writes a VCF file, and tells its path."""

    def write(found: CnvResult) -> str:
        write_vcf(found, tmp_path / "x.vcf.gz")
        return str(tmp_path / "x.vcf.gz")

    return write


def cells(path: str) -> list[list[str]]:
    """Return position, end, alleles and the cells of the samples of every record."""
    return [
        [fields[1], fields[7].partition("END=")[2].partition(";")[0], fields[4], *fields[9:]]
        for fields in (line.split("\t") for line in bcftools("view", "-H", path).splitlines())
    ]


def text(blocks: Iterable[Any]) -> str:
    return b"".join(blocks).decode()


def test_tsv__has_numbers_as_python_writes_them() -> None:
    rng = np.random.default_rng(1)
    spread = rng.normal(size=20_000) * 10.0 ** rng.integers(-20, 20, 20_000)
    near = np.array([1e-100, 1e-99, 1e-10, 1e-9, 1e-7, 1e-5, 1e-4, 1e9, 1e10, 1e15, 1e16, 1e17])
    odd = np.array([0.0, -0.0, 1.0, -3.0, np.nan, np.inf, -np.inf, 5e-324, 1e308])
    around = [np.nextafter(near, 0), near, np.nextafter(near, np.inf)]
    whole = np.rint(rng.normal(size=1_000) * 1e8)
    numbers = np.concatenate([spread, np.round(spread, 2), whole, odd, *around])
    table = pa.table({"x": numbers, "y": np.arange(len(numbers))})
    lines = [f"{x!r}\t{y}" for y, x in enumerate(numbers.tolist())]
    assert text(text_files.tsv(table)).split("\n") == ["x\ty", *lines, ""]
    assert text(text_files.tsv(table.slice(0, 0))) == "x\ty\n"
    rows = [line.split("\t") for line in text(text_files.tsv(result().segmentation)).splitlines()]
    assert rows[0] == ["chrom", "start", "end", "sample", "median", "mean", "copy_number"]
    assert [float(row[5]) for row in rows[1:]] == result().segments.mean.tolist()


def test_files__are_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def files(name: str) -> list[bytes]:
        (tmp_path / name).mkdir()
        write_tables(result(), tmp_path / name, None, VcfSource())
        return [path.read_bytes() for path in sorted((tmp_path / name).iterdir())]

    whole = files("whole")
    monkeypatch.setattr("multigpu.workloads.cnv.output.text_files.CELLS", 20)
    assert files("few") == whole


def test_bed__is_sorted_with_a_name_and_a_colour_for_every_cnv() -> None:
    lines = text(text_files.bed(result()))
    rows = [line.split("\t") for line in lines.splitlines()]
    assert len(rows) == len(result().called) > 5
    order = [(result().regions.names.index(row[0]), int(row[1])) for row in rows]
    assert order == sorted(order)
    for row in rows:
        sample, copies = row[3].split(":")
        assert sample in result().samples
        assert row[8] == ("30,60,200" if copies in ("CN0", "CN1") else "200,30,30")
        assert 0 <= int(row[4]) <= 1000


def test_seg__counts_from_1_and_has_every_segment() -> None:
    lines = text(text_files.seg(result())).splitlines()
    assert lines[0].split("\t") == ["ID", "chrom", "loc.start", "loc.end", "num.mark", "seg.mean"]
    segments = result().segments
    rows = [line.split("\t") for line in lines[1:]]
    assert [int(row[2]) for row in rows] == (segments.start + 1).tolist()
    assert [int(row[3]) for row in rows] == segments.end.tolist()
    assert sum(int(row[4]) for row in rows) == len(result().regions) * len(result().samples)


def test_igv_session__names_the_tracks_and_has_the_colours_of_the_other_files() -> None:
    session = ET.fromstring(text_files.igv_session("hg38"))
    assert session.attrib["genome"] == "hg38"
    assert [track.attrib["path"] for track in session.iter("Resource")] == list(text_files.TRACKS)
    assert "genome" not in ET.fromstring(text_files.igv_session(None)).attrib
    (scale,) = session.iter("ColorScale")
    assert scale.attrib["type"] == "COPY_NUMBER"
    name, *limits = scale.attrib["value"].split(";")
    loss, middle, gain = limits[4:]
    assert (name, loss, middle, gain) == (
        "ContinuousColorScale", "0,0,255", "255,255,255", "255,0,0",
    )  # fmt: skip


def test_vcf__has_every_cnv_and_its_copy_number(vcf: Written) -> None:
    genotypes = {((0, 0), 2), ((None, None), None), ((0, 1), 1), ((0, 1), 3)}
    cnvs, said, uncalled = result().cnvs.to_pylist(), [], []
    with pysam.VariantFile(vcf(result())) as file:
        for record in file:
            assert record.info["SVLEN"] in (record.stop - record.pos, (record.stop - record.pos,))
            for sample, cell in record.samples.items():
                if cell["MN"] is not None:
                    numbers = (f"CN{cell['CN']:g}", cell["MD"], cell["MN"])
                    said.append((record.chrom, record.pos, record.stop, sample, *numbers))
                    continue
                assert (cell["GT"], cell["CN"]) in genotypes
                if cell["GT"] == (0, 1):
                    uncalled.append((record.chrom, record.pos, sample, cell["CN"]))
    names = ("chrom", "start", "end", "sample", "copy_number", "median", "mean")
    wanted = [tuple(row[name] for name in names) for row in cnvs]
    wanted = [(row[0], max(1, row[1]), *row[2:]) for row in wanted]
    # What was not called and is in the model was planted there, too.
    assert uncalled == [("chr1", 4425000, "sample4", 1), ("chr3", 5425000, "sample6", 3)]
    regions, truth = result().regions, cohort()[1]
    for chrom, position, sample, copies in uncalled:
        place = (regions.chrom == regions.names.index(chrom)) & (regions.start == position)
        row, column = int(np.argmax(place)), result().samples.index(sample)
        there = (truth.first <= row) & (row < truth.stop) & (truth.sample == column)
        assert truth.copies[there].tolist() == [copies]
    assert len(cnvs) > 5
    assert [row[:5] for row in sorted(said)] == [row[:5] for row in sorted(wanted)]
    numbers_said, numbers = (np.array([row[5:] for row in sorted(rows)]) for rows in (said, wanted))
    np.testing.assert_allclose(numbers_said, numbers, atol=2e-4)  # six digits are written


OWN = "0/1:1:-0.25:-0.5"
CLASSES = np.array([[1, 0, 1], [2, 3, 2], [1, 3, 3]], np.int8)
UNKNOWN = np.array([[1, NOT_CALLED, NOT_CALLED]], np.int8)
CELLS: dict[str, tuple[Any, dict[str, Any], list[list[str]]]] = {
    "the same borders and type": (
        [(100, 900, "a", 3), (100, 900, "b", 4), (100, 900, "c", 1)], {},
        [["100", "900", "<DEL>", "./.:.:.:.", "./.:.:.:.", "0/1:1:-0.25:-0.5"],
         ["100", "900", "<DUP>", "0/1:3:0.75:0.5", "./1:4:1.25:1", "./.:.:.:."]]),
    "a short one within a long one": (
        [(100, 1300, "a", 0), (200, 350, "b", 3)], {},
        [["100", "1300", "<DEL>", "1/1:0:-0.75:-1", "./.:.:.:.", "0/0:2:.:."],
         ["200", "350", "<DUP>", "./.:.:.:.", "0/1:3:0.75:0.5", "0/0:2:.:."]]),
    "by the sex of a sample": (
        [(100, 300, "a", 1), (500, 600, "b", 3)], {"names": ("chrX",), "usual": (1, 2, 0)},
        [["100", "300", "<DEL>", "1:0:-0.25:-0.5", "0/0:2:.:.", ".:.:.:."],
         ["500", "600", "<DUP>", "0:1:.:.", "0/1:3:0.75:0.5", ".:.:.:."]]),
    "no genotype of another ploidy": (
        [(100, 300, "a", 1), (500, 600, "b", 3)], {"ploidy": (1, 2, 4)},
        [["100", "300", "<DEL>", ".:1:-0.25:-0.5", "0/0:2:.:.", ".:2:.:."],
         ["500", "600", "<DUP>", ".:2:.:.", "0/1:3:0.75:0.5", ".:2:.:."]]),
    "what the model says without a call": (
        [(100, 300, "a", 1), (500, 600, "a", 1), (700, 800, "a", 1)],
        {"names": ("chrX",), "usual": (2, 2, 1), "classes": CLASSES},
        [["100", "300", "<DEL>", OWN, "1/1:0:.:.", "1:0:.:."],
         ["500", "600", "<DEL>", OWN, "./.:3:.:.", "0:1:.:."],
         ["700", "800", "<DEL>", OWN, "./.:3:.:.", ".:2:.:."]]),
    "nothing where the model says nothing": (
        [(100, 300, "a", 1)], {"classes": UNKNOWN},
        [["100", "300", "<DEL>", OWN, "./.:.:.:.", "./.:.:.:."]]),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "how", "wanted"), CELLS.values(), ids=CELLS)
def test_vcf__has_a_cell_for_every_sample(
    vcf: Written, rows: Any, how: dict[str, Any], wanted: list[list[str]]
) -> None:
    path = vcf(with_cnvs(*rows, **how))
    assert cells(path) == wanted
    with pysam.VariantFile(path) as file:
        regions = [(stop - start) // 10 for start, stop in dict.fromkeys(row[:2] for row in rows)]
        assert sorted({record.info["REGIONS"] for record in file}) == sorted({*regions})


def test_vcf__has_an_index_for_its_chromosomes(tmp_path: Path, vcf: Written) -> None:
    path = vcf(with_cnvs((LONGEST_TBI, LONGEST_TBI + 10, "a", 0)))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.vcf.gz", "x.vcf.gz.csi"]
    assert bcftools("view", "-H", "-r", f"chr1:{LONGEST_TBI + 5}", path)
    Path(f"{path}.csi").unlink()
    path = vcf(with_cnvs((0, 200, "a", 0)))  # from the first base on
    found = bcftools("view", "-H", "-r", "chr1:50-60", path).split("\t")
    assert (found[1], "SVLEN=199;" in found[7], "END=200;" in found[7]) == ("1", True, True)
    path = vcf(with_cnvs((100, 1300, "a", 0), (200, 350, "b", 3)))
    with pysam.VariantFile(path) as file:
        assert [record.stop for record in file.fetch("chr1", 150, 250)] == [1300, 350]


def test_vcf__ids_are_of_place_and_type(tmp_path: Path, vcf: Written) -> None:
    path = vcf(with_cnvs((0, 200, "a", 0), (100, 300, "a", 1), (100, 300, "b", 3)))
    ids = [line.split("\t")[2] for line in bcftools("view", "-H", path).splitlines()]
    assert ids == ["DEL:chr1:1-200", "DEL:chr1:101-300", "DUP:chr1:101-300"]
    # CNVs of two runs are joined if they are the same ones.
    other = tmp_path / "y.vcf.gz"
    write_vcf(with_cnvs((100, 300, "b", 1), (100, 400, "a", 3)), other)
    merged = bcftools("merge", "--force-samples", "-m", "id", path, str(other))
    rows = [line.split("\t") for line in merged.splitlines() if not line.startswith("#")]
    assert sorted((row[2], row[7].partition("END=")[2].partition(";")[0]) for row in rows) == [
        ("DEL:chr1:1-200", "200"), ("DEL:chr1:101-300", "300"),
        ("DUP:chr1:101-300", "300"), ("DUP:chr1:101-400", "400"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["chr 1", "a,b", "<x>", "#1", "*", "=1", "", "é"])
def test_vcf__names_that_it_does_not_take_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="or give vcf=False"):
        check_names(["chr1", name])


def test_vcf__names_of_contigs_as_they_occur_are_taken(vcf: Written) -> None:
    """With their lengths where they are known."""
    names = ("chr1", "HLA-A*01:01:01:01", "chrUn_KI270742v1", "gi|1|ref;x=1")
    check_names(names)
    path = vcf(with_cnvs((100, 300, "a", 1), names=names, lengths={names[1]: 5_000}))
    assert bcftools("view", "-H", path).startswith("gi|1|ref;x=1\t100\t")
    contigs = f"##contig=<ID=chr1>\n##contig=<ID={names[1]},length=5000>\n##contig=<ID=chrUn"
    assert contigs in bcftools("view", "-h", path)


def test_vcf__without_cnvs_is_valid(vcf: Written) -> None:
    none = result().segments.take(np.zeros(0, np.int64))
    path = vcf(replace(result(), segments=none))
    assert bcftools("view", "-H", path) == ""
    header = bcftools("view", "-h", path).splitlines()
    assert header[-1].split("\t")[9:] == list(result().samples)


def test_cnvs__have_regions_length_and_the_share_of_samples_with_one_of_that_type() -> None:
    rows = [(100, 300, "a", 1), (290, 400, "b", 0), (300, 350, "c", 3), (800, 900, "a", 1)]
    columns = ("regions", "length", "frequency")
    found = with_cnvs(*rows).cnvs
    assert found.column_names[-3:] == list(columns)
    assert [tuple(row[name] for name in columns) for row in found.to_pylist()] == [
        (20, 200, 2 / 3), (11, 110, 2 / 3), (5, 50, 1 / 3), (10, 100, 1 / 3),
    ]  # fmt: skip
    names = ("chr1", "chrY")
    on_y = with_cnvs((100, 300, "a", 0), (290, 400, "b", 0), names=names, usual=(1, 1, 0))
    assert on_y.frequency.tolist() == [1.0, 1.0]
    # A sample counts once, and chromosomes apart.
    of_a = with_cnvs((100, 200, "a", 0), (300, 400, "a", 0), (150, 350, "b", 0), names=names)
    assert of_a.frequency.tolist() == [2 / 3] * 3
    elsewhere = replace(of_a.segments, chrom=np.array([0, 1, 1], np.int32))
    assert replace(of_a, segments=elsewhere).frequency.tolist() == [1 / 3, 2 / 3, 2 / 3]


def test_cnvs__have_the_names_of_their_regions_where_these_have_any() -> None:
    plain = result()
    genes = [f"g{row // 4}" if row % 2 else "" for row in range(len(plain.regions))]
    found = replace(plain, regions=replace(plain.regions, genes=tuple(genes))).cnvs
    assert found.column_names[-1] == "genes"
    assert found.drop_columns(["genes"]).equals(plain.cnvs)
    names = plain.regions.names
    places = zip(plain.regions.chrom, plain.regions.start, genes, strict=True)
    rows = [(names[chrom], start, gene) for chrom, start, gene in places if gene]
    for cnv in found.to_pylist():
        inside = [g for c, at, g in rows if c == cnv["chrom"] and cnv["start"] <= at < cnv["end"]]
        assert cnv["genes"] == ",".join(dict.fromkeys(inside))
    assert {name for name, *_ in rows} == {cnv["chrom"] for cnv in found.to_pylist()}


TRUVARI = shutil.which("truvari")
ROWS = (100, 300, "a", 1), (100, 300, "b", 1), (320, 350, "a", 3), (400, 500, "b", 0)


def found() -> CnvResult:
    result = with_cnvs(*ROWS)
    genes = tuple(f"g{row // 10}" for row in range(len(result.regions)))
    return replace(result, samples=("a/1", ".b", "c"), regions=replace(result.regions, genes=genes))


def test_vcf__has_the_records_of_one_sample(tmp_path: Path) -> None:
    write_by_sample(found(), tmp_path, VcfSource())
    of = {}
    for name, sample in (("a%2F1", "a/1"), ("%2Eb", ".b"), ("c", "c")):
        path = str(tmp_path / f"{name}.vcf.gz")
        assert bcftools("view", "-h", path).endswith(f"\tFORMAT\t{sample}\n")
        of[sample] = bcftools("query", "-f", "%ID[ %GT]\n", path).splitlines()
        assert bcftools("view", "-H", "-r", "chr1:1-1000", path).count("\n") == len(of[sample])
    assert of == {
        "a/1": ["DEL:chr1:101-300 0/1", "DUP:chr1:321-350 0/1"],
        ".b": ["DEL:chr1:101-300 0/1", "DEL:chr1:401-500 1/1"],
        "c": [],
    }


@pytest.mark.skipif(not TRUVARI, reason="no truvari on PATH (pipx install truvari)")
def test_vcf__is_all_of_itself_for_truvari(tmp_path: Path) -> None:
    write_by_sample(replace(found(), lengths={"chr1": 1000}), tmp_path, VcfSource())
    path, out = str(tmp_path / "a%2F1.vcf.gz"), tmp_path / "bench"
    files = ("-b", path, "-c", path, "-o", str(out))
    words = (str(TRUVARI), "bench", *files, "--pctseq", "0", "--sizemin", "0")
    subprocess.run((*words, "--sizefilt", "0"), check=True, capture_output=True)
    facts = json.loads((out / "summary.json").read_text())
    assert (facts["TP-base"], facts["precision"], facts["recall"]) == (2, 1, 1)


def test_bed__has_losses_and_gains_with_genes(tmp_path: Path) -> None:
    result = found()
    quality = result.segments.quality.copy()
    quality[[2, 3]] = 12.6, 5_000
    segments = replace(result.segments, quality=quality)
    write_by_sample(replace(result, segments=segments), tmp_path, None)
    head = "#chrom\tstart\tend\tcopy_number\tquality\tregions\tgenes\n"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a%2F1.del.bed": f"{head}chr1\t100\t300\tCN1\t.\t20\tg0,g1\n",
        "a%2F1.dup.bed": f"{head}chr1\t320\t350\tCN3\t13\t3\tg2\n",
        "%2Eb.del.bed": f"{head}chr1\t100\t300\tCN1\t.\t20\tg0,g1\n"
        "chr1\t400\t500\tCN0\t1000\t10\tg3\n",
        "%2Eb.dup.bed": head, "c.del.bed": head, "c.dup.bed": head,
    }  # fmt: skip
