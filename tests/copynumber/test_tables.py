"""The files of the calls, read by the programs that they are for."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pysam
import pysam.bcftools
import pytest
from cohorts import result

from multigpu.copynumber import tables
from multigpu.copynumber.output import write_tables
from multigpu.copynumber.result import CnvResult, RegionTable
from multigpu.copynumber.vcf import write_vcf
from multigpu.io.regions import Regions
from multigpu.io.tabix import LARGEST_TBI


def with_regions(
    *rows: tuple[int, int, tuple[int, int]], names: tuple[str, ...] = ("chr1",)
) -> CnvResult:
    """A result with CNV regions (start, end, classes of two samples) on the last chromosome."""
    start, end, copies = (np.array(column) for column in zip(*rows, strict=True))
    chrom = np.full(len(rows), len(names) - 1, np.int32)
    fractional = np.full(copies.shape, np.nan)
    regions = RegionTable(chrom, start, end, copies.astype(np.int32), fractional)
    place = Regions(names, chrom, start, end)
    return replace(result(), regions=place, samples=("a", "b"), called_regions=regions)


def bcftools(command: str, *arguments: str) -> str:
    """What bcftools writes; pysam brings it along."""
    run = getattr(pysam.bcftools, command)
    written = str(run(*arguments))
    assert run.get_messages() in ("", None)
    return written


def text(blocks: Iterable[Any]) -> str:
    return b"".join(blocks).decode()


def test_tsv__numbers_read_back_equal() -> None:
    rows = [line.split("\t") for line in text(tables.tsv(result().segmentation)).splitlines()]
    assert rows[0] == ["chrom", "start", "end", "sample", "median", "mean", "copy_number"]
    assert [float(row[5]) for row in rows[1:]] == result().segments.mean.tolist()


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
    assert text(tables.tsv(table)).split("\n") == ["x\ty", *lines, ""]
    assert text(tables.tsv(table.slice(0, 0))) == "x\ty\n"


def test_files__are_the_same_in_blocks_of_a_few_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def files(name: str) -> list[bytes]:
        (tmp_path / name).mkdir()
        write_tables(result(), tmp_path / name, None, True)
        return [path.read_bytes() for path in sorted((tmp_path / name).iterdir())]

    whole = files("whole")
    monkeypatch.setattr("multigpu.copynumber.lines.CELLS", 20)
    assert files("few") == whole


def test_bed__is_sorted_with_a_name_and_a_colour_for_every_cnv() -> None:
    rows = [line.split("\t") for line in text(tables.bed(result())).splitlines()]
    assert len(rows) == len(result().called) > 5
    order = [(result().regions.names.index(row[0]), int(row[1])) for row in rows]
    assert order == sorted(order)
    for row in rows:
        sample, copies = row[3].split(":")
        assert sample in result().samples
        colour = tables.LOSS if copies in ("CN0", "CN1") else tables.GAIN
        assert row[8] == colour
        assert 0 <= int(row[4]) <= 1000


def test_seg__counts_from_1_and_has_every_segment() -> None:
    lines = text(tables.seg(result())).splitlines()
    assert lines[0].split("\t") == ["ID", "chrom", "loc.start", "loc.end", "num.mark", "seg.mean"]
    segments = result().segments
    rows = [line.split("\t") for line in lines[1:]]
    assert [int(row[2]) for row in rows] == (segments.start + 1).tolist()
    assert [int(row[3]) for row in rows] == segments.end.tolist()
    assert sum(int(row[4]) for row in rows) == len(result().regions) * len(result().samples)


def test_igv_session__names_the_tracks_beside_it() -> None:
    session = ET.fromstring(tables.igv_session("hg38"))
    assert session.attrib["genome"] == "hg38"
    assert [track.attrib["path"] for track in session.iter("Resource")] == list(tables.TRACKS)
    assert "genome" not in ET.fromstring(tables.igv_session(None)).attrib


def written(found: CnvResult, path: Path) -> None:
    write_vcf(found, path)


def test_vcf__bcftools_reads_every_region_and_its_copy_numbers(tmp_path: Path) -> None:
    path = tmp_path / "cnvs.vcf.gz"
    written(result(), path)
    shown = bcftools("query", "-f", "%CHROM\t%POS\t%INFO/END\t%INFO/SVLEN[\t%CN]\n", str(path))
    regions, names = result().called_regions, result().regions.names
    assert len(regions) > 5
    for line, row in zip(shown.splitlines(), range(len(regions)), strict=True):
        chrom, position, end, length, *copies = line.split("\t")
        assert chrom == names[regions.chrom[row]]
        assert int(position) == max(1, regions.start[row])
        assert int(end) == regions.end[row]
        assert set(length.split(",")) == {str(int(end) - int(position))}
        assert [int(c) for c in copies] == regions.copy_number[row].tolist()


def test_vcf__alleles_say_what_the_samples_have(tmp_path: Path) -> None:
    path = tmp_path / "x.vcf.gz"
    written(with_regions((100, 200, (0, 2)), (300, 400, (2, 5)), (500, 600, (1, 3))), path)
    with pysam.VariantFile(str(path)) as file:
        assert [record.alts for record in file] == [("<DEL>",), ("<DUP>",), ("<DEL>", "<DUP>")]
    with pysam.VariantFile(str(path)) as file:
        assert [record.stop for record in file.fetch("chr1", 150, 350)] == [200, 400]


def test_vcf__a_region_at_the_first_base_is_found(tmp_path: Path) -> None:
    path = tmp_path / "x.vcf.gz"
    written(with_regions((0, 200, (0, 2))), path)
    found = bcftools("view", "-H", "-r", "chr1:50-60", str(path)).split("\t")
    assert found[1] == "1"
    assert "SVLEN=199;" in found[7]
    assert "END=200;" in found[7]


def test_vcf__long_chromosomes_have_the_other_index(tmp_path: Path) -> None:
    path = tmp_path / "x.vcf.gz"
    written(with_regions((LARGEST_TBI, LARGEST_TBI + 10, (0, 2))), path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.vcf.gz", "x.vcf.gz.csi"]
    assert bcftools("view", "-H", "-r", f"chr1:{LARGEST_TBI + 5}", str(path))


def test_vcf__without_regions_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "x.vcf.gz"
    none = np.zeros(0, np.int64)
    empty = RegionTable(
        none.astype(np.int32), none, none, np.zeros((0, 6), np.int32), np.zeros((0, 6))
    )
    written(replace(result(), called_regions=empty), path)
    assert bcftools("view", "-H", str(path)) == ""
    header = bcftools("view", "-h", str(path)).splitlines()
    assert header[-1].split("\t")[9:] == list(result().samples)
