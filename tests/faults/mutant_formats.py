"""A small file of each format that the program reads, and how it reads it."""

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from support import ligand_texts, pocket_texts, scanned
from support.bams import random_rows, write_alignments, write_fasta
from support.bgzf_data import BGZF_END, bgzf
from support.pocket_texts import ORIGIN, SPACING, VALUES

import multigpu
from multigpu import Counts, write_counts
from multigpu.cli import cli
from multigpu.formats.storage.zstandard import zstd
from multigpu.formats.tables.file_lists import COUNTS, list_files
from multigpu.run.options import RunOptions
from multigpu.workloads.cnv.simulate import CohortDesign, simulate_cohort
from multigpu.workloads.count.job import CountJob
from multigpu.workloads.count.options import CountOptions
from multigpu.workloads.dock.simulate import pocket

Parse = Callable[[], Any]
MIB = 1 << 20
MOST = 2**31 - 1
BOMB = 3 << 10  # MiB in a small file: more than a reader may take
REFERENCES = (("chr1", 60_000), ("chr2", 30_000))
ONE = {"gpus": "none", "threads": 1}
GZIP = partial(gzip.compress, mtime=0)
ZSTD = partial(zstd.compress, options={zstd.CompressionParameter.checksum_flag: 1})
MAPS = ("A", "C", "HD", "N", "NA", "OA", "Cl")


@dataclass(frozen=True)
class Inner:
    """What is in a file, and how the file is made of it."""

    content: bytes
    wrap: Callable[[bytes], bytes]
    is_text: bool = False


@dataclass(frozen=True)
class Format:
    """A file, and how it is read.

    path   where each mutant is put for `parse`, which returns what was read of it
    bombs  small files that hold gigabytes, or say that they do
    """

    path: Path
    content: bytes
    parse: Parse
    is_text: bool = False
    inner: Inner | None = None
    bombs: list[Callable[[], bytes]] = field(default_factory=list)


READS = [read for read in scanned.READS if read[1]]  # a record without bases may end earlier
FASTQ = scanned.fastq(READS * 3)
FASTA = scanned.fasta_of(READS * 3)


def _signatures(folder: Path) -> Path:
    path = folder / "signatures.fa"
    path.write_bytes(scanned.fasta(scanned.SIGNATURES))
    return path


def _chosen(path: Path, *ways: Any) -> Any:
    """One of these, by what is in the file."""
    return ways[zlib.crc32(path.read_bytes()) % len(ways)]


def _scan(path: Path, signatures: Path) -> Any:
    # Bytes of a chunk; gigabytes in a bomb would take hours in chunks of some bytes.
    most = None if path.stat().st_size > MIB >> 4 else _chosen(path, None, 7, 60)
    options = {"hits": "all", "strand": "both", "max_chunk_bytes": most, **ONE}
    return multigpu.scan(path, signatures, **options).to_table().to_pydict()


def _reads(name: str, content: bytes, folder: Path, **more: Any) -> Format:
    path = folder / name
    path.write_bytes(content)
    return Format(path, content, partial(_scan, path, _signatures(folder)), **more)


def signatures(folder: Path) -> Format:
    samples, path = folder / "reads.fq", _signatures(folder)
    samples.write_bytes(FASTQ)
    return Format(path, path.read_bytes(), partial(_scan, samples, path), True)


def _compressed(name: str, compress: Any, bomb: Any, folder: Path) -> Format:
    many = bomb(b"A" * MIB)
    return _reads(
        name, compress(FASTQ), folder,
        inner=Inner(FASTQ, compress, is_text=True),
        bombs=[lambda: many * BOMB, lambda: compress(b"@r\n") + many * BOMB],
    )  # fmt: skip


def _rows() -> list[Any]:
    rows = [row for row in random_rows(3000) if row[0] < 1 and row[1] < 59_000]
    return rows[:300]


def _count(path: Path, **options: Any) -> Any:
    counts = multigpu.count([str(path)], window=5000, threads=1, **options)
    _check_counts(counts)
    others = _chosen(
        path, {"get_width": True}, {"remove_duplicates": True}, {"stranded_start": True},
        {"read_width": 300},
    )  # fmt: skip
    more = multigpu.count([str(path)], window=700, threads=1, **options, **others)
    _check_counts(more)
    return counts.values.tolist()


def _check_counts(counts: Counts) -> None:
    assert counts.values.min(initial=0) >= 0, "a count is negative"


def bam(folder: Path) -> Format:
    path = folder / "a.bam"
    write_alignments(path, _rows(), REFERENCES)
    content = path.read_bytes()
    head, bomb = b"BAM\1", bgzf(bytes(60_000), 60_000, b"")
    inner = Inner(gzip.decompress(content), partial(bgzf, block=20_000))
    return Format(
        path, content, partial(_count, path, index=False),
        inner=inner,
        bombs=[
            lambda: bgzf(head + struct.pack("<i", MOST), end=b"") + bomb * 4000 + BGZF_END,
            lambda: bgzf(head + struct.pack("<ii", 0, MOST), end=b"") + bomb * 400 + BGZF_END,
        ],
    )  # fmt: skip


def bam_with_index(folder: Path) -> Format:
    """The index is that of the sound file."""
    made = bam(folder)
    write_alignments(made.path, _rows(), REFERENCES)
    return replace(made, parse=partial(_count, made.path))


def _index(kind: str, folder: Path) -> Format:
    path, index = folder / "a.bam", folder / f"a.bam.{kind}"
    write_alignments(path, _rows(), REFERENCES, csi=kind == "csi")
    content = index.read_bytes()
    inner = Inner(gzip.decompress(content), bgzf) if kind == "csi" else None
    return Format(index, content, partial(_count, path), inner=inner)


def _cram(version: str, folder: Path) -> Format:
    path = folder / "a.cram"
    rows = _rows()
    reference = write_fasta(folder / "reference.fa")
    write_alignments(path, rows, index=False, fasta=reference, version=version)
    return Format(path, path.read_bytes(), partial(_count, path, index=False))


COHORT = CohortDesign(
    regions=60, samples=4, chromosomes=2, coverage=60.0, dispersion=0.0, cnvs=2,
    min_length=4, max_length=8, max_carriers=2, width=1000, seed=5,
)  # fmt: skip


MOST_READS = 5000  # of a region whose copy numbers are called


def _read_table(path: Path) -> Any:
    counts = multigpu.read_counts(str(path))
    if counts.values.max() < MOST_READS:  # R's densities have a hundred points for each
        multigpu.cnv(counts, **ONE)
    return counts.values.tolist()


def _counts_table(name: str, folder: Path, **more: Any) -> Format:
    path = folder / f"counts.{name}"
    write_counts(str(path), simulate_cohort(COHORT)[0])
    return Format(path, path.read_bytes(), partial(_read_table, path), **more)


def _other_counts(title: str, row: str, folder: Path) -> Format:
    """A table of another program, with a title line, and a row for chromosome, start and count."""
    counts, path = simulate_cohort(COHORT)[0], folder / "counts"
    regions, first = counts.regions, counts.values[:, 0].tolist()
    rows = zip(regions.chrom.tolist(), regions.start.tolist(), first, strict=True)
    path.write_text(title + "".join(row.format(f"chr{c}", at, n=n) + "\n" for c, at, n in rows))
    read = partial(multigpu.read_counts, str(path), read_length=100)
    return Format(path, path.read_bytes(), lambda: read().values.tolist(), is_text=True)


def sample_sheet(folder: Path) -> Format:
    for name in "ab":
        write_counts(str(folder / f"{name}.tsv"), simulate_cohort(COHORT)[0])
    path = folder / "sheet.csv"
    path.write_text("path,name,sex,group\na.tsv,a,male,control\n\n# x\nb.tsv,b,2,\n")
    return Format(path, path.read_bytes(), lambda: list_files([str(path)], COUNTS), is_text=True)


def _cohort_file(name: str, text: bytes, folder: Path) -> Format:
    """What `cnv` is given beside the counts."""
    counts, path = simulate_cohort(COHORT)[0], folder / f"{name}.tsv"
    path.write_bytes(text)

    def parse() -> Any:
        return len(multigpu.cnv(counts, **{name: str(path)}, **ONE).segments)

    return Format(path, text, parse, is_text=True)


def bed(folder: Path) -> Format:
    alignments, path = folder / "a.bam", folder / "regions.bed"
    write_alignments(alignments, _rows(), REFERENCES)
    path.write_text("track x\nchr1\t0\t500\tone\nchr1\t400\t9000\nchr2\t0\t30000\nchr2\t5\t6\n")
    count = partial(multigpu.count, [str(alignments)], regions=str(path), index=False, threads=1)
    return Format(path, path.read_bytes(), lambda: count().values.tolist(), is_text=True)


def kept_counts(folder: Path) -> Format:
    """What is damaged is counted again."""
    alignments = str(folder / "a.bam")
    write_alignments(Path(alignments), _rows(), REFERENCES, index=False)
    job = CountJob([alignments], CountOptions(index=False), RunOptions(threads=1))
    job.keep_in = str(folder / "kept")

    def count() -> Any:
        counts = job.counts()
        _check_counts(counts)
        return counts.values.tolist()

    count()
    (path,) = Path(job.keep_in).iterdir()
    return _npz(Format(path, path.read_bytes(), count), "counts")


def _pocket(folder: Path) -> Path:
    path = folder / "pocket.npz"
    with path.open("wb") as out:
        pocket(out, points=8, spacing=1.5, wells=3, seed=3)
    return path


def _maps(folder: Path) -> Path:
    """AutoGrid's of these types, 3 x 5 x 3 points."""
    grid = np.arange(45).reshape(3, 5, 3) / 8
    return Path(pocket_texts.autogrid(folder, MAPS, lambda i: i * grid, (-4, -8, -4), 4.0))


def _dock(ligands: Path, grid: Path, *formats: str) -> Any:
    """Poses in one of these formats."""
    poses = ligands.with_name(f"poses.{_chosen(ligands, *formats)}")
    search = ("--precision", "120", "--allow-flat", "--gpus", "none", "--threads", "1", "--quiet")
    command = ["dock", str(ligands), "--pocket", str(grid), "-o", str(poses), *search]
    cli.main(command, standalone_mode=False)
    return poses.read_bytes()


def _ligands(name: str, content: bytes, folder: Path) -> Format:
    """On a plain grid, or on maps where the folder's name says so."""
    path = folder / f"ligands.{name}"
    path.write_bytes(content)
    typed = folder.name.endswith("_on_maps")
    grid = _maps(folder) if typed else _pocket(folder)
    poses = (name, "sdf")
    return Format(path, content, partial(_dock, path, grid, *poses), is_text=True)


SDF = ligand_texts.ETHANOL + ligand_texts.V3000 + ligand_texts.ETHANOL
TYPED = ("sdf", "mol2", "pdbqt")  # which have what maps need
LIGANDS = {**ligand_texts.TEXTS, "sdf": SDF}


def _of_pocket(name: str, content: bytes, folder: Path, **more: Any) -> Format:
    ligand, path = folder / "ligand.xyz", folder / name
    ligand.write_bytes(ligand_texts.XYZ)
    path.write_bytes(content)
    return Format(path, content, partial(_dock, ligand, path, "xyz"), **more)


def _on_maps(folder: Path, name: str) -> Format:
    grid, ligand = _maps(folder), folder / "ligand.pdbqt"
    ligand.write_bytes(ligand_texts.PDBQT)
    path = folder / name
    parse = partial(_dock, ligand, grid, "pdbqt")
    return Format(path, path.read_bytes(), parse, is_text=True)


def npz(folder: Path) -> Format:
    members = io.BytesIO()
    np.savez(members, grid=VALUES, origin=ORIGIN, spacing=SPACING)
    return _npz(_of_pocket("p.npz", members.getvalue(), folder), "grid")


def _npz(given: Format, member: str) -> Format:
    """Also with a mutated member, stored with the right checksum, and with a bomb in its place."""
    with zipfile.ZipFile(io.BytesIO(given.content)) as file:
        members = {info.filename: file.read(info) for info in file.infolist()}
    name = f"{member}.npy"

    def wrap(inner: bytes) -> bytes:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
            for each, content in members.items():
                file.writestr(each, inner if each == name else content)
        return made.getvalue()

    def bomb() -> bytes:
        """An array of 4 GiB, of which there is as much as shows how a reader takes it."""
        made = io.BytesIO()
        head = {"descr": "<f4", "fortran_order": False, "shape": (1024, 1024, 1024)}
        with (
            zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file,
            file.open(name, "w", force_zip64=True) as out,
        ):
            np.lib.format.write_array_header_1_0(out, head)
            for _ in range(64):
                out.write(bytes(MIB))
        return made.getvalue()

    return replace(given, inner=Inner(members[name], wrap), bombs=[bomb])


def rotations(folder: Path) -> Format:
    path, ligand, grid = folder / "r.txt", folder / "ligand.xyz", _pocket(folder)
    path.write_bytes(b"# w x y z\n1 0 0 0\n0.5,0.5,0.5,0.5\n0 0 1 0\n")
    ligand.write_bytes(ligand_texts.XYZ)

    def parse() -> Any:
        return multigpu.dock(ligand, grid, rotation_file=path, **ONE).to_table().to_pydict()

    return Format(path, path.read_bytes(), parse, is_text=True)


FORMATS: dict[str, Callable[[Path], Format]] = {
    "fastq": partial(_reads, "reads.fq", FASTQ, is_text=True),
    "fasta": partial(_reads, "reads.fa", FASTA, is_text=True), "signatures": signatures,
    "gzip": partial(_compressed, "reads.fq.gz", GZIP, GZIP),
    "bgzf": partial(_compressed, "reads.fq.gz", partial(bgzf, block=90), GZIP),
    "zstd": partial(_compressed, "reads.fq.zst", ZSTD, ZSTD),
    "bam": bam, "bam_with_index": bam_with_index,
    "bai": partial(_index, "bai"), "csi": partial(_index, "csi"),
    "cram_2": partial(_cram, "2.1"), "cram_3": partial(_cram, "3.0"),
    "sex": partial(_cohort_file, "sex", b"sample1\tmale\nsample2\tfemale\nsample4\tmale\n"),
    "ploidy": partial(_cohort_file, "ploidy", b"sample1\t2\nsample2\t4\nsample3\t2\n"),
    "ped": partial(_cohort_file, "sex", b"f sample1 0 0 1 1\nf sample2 0 0 2 1\nf x 0 0 0 0\n"),
    "gatk": partial(
        _other_counts, "@RG\tID:x\tSM:s\nCONTIG\tSTART\tEND\tCOUNT\n", "{0}\t{1}1\t{1}9\t{n}"
    ),
    "mosdepth": partial(_other_counts, "", "{0}\t{1}1\t{1}9\tA\t{n}.25"),
    "cnvkit": partial(
        _other_counts, "chromosome\tstart\tend\tgene\tlog2\tdepth\n", "{0}\t{1}1\t{1}9\t-\t0\t{n}"
    ),
    "sample_sheet": sample_sheet,
    "tsv": partial(_counts_table, "tsv", is_text=True),
    "parquet": partial(_counts_table, "parquet"),
    "bed": bed, "kept_counts": kept_counts,
    **{name: partial(_ligands, name, text) for name, text in LIGANDS.items()},
    **{f"{name}_on_maps": partial(_ligands, name, LIGANDS[name]) for name in TYPED},
    "fld": lambda folder: _on_maps(folder, "p.maps.fld"),
    "map": lambda folder: _on_maps(folder, "p.OA.map"),
    "dx": partial(_of_pocket, "p.dx", pocket_texts.dx(), is_text=True),
    "mrc": partial(_of_pocket, "p.mrc", pocket_texts.mrc_bytes()), "npz": npz,
    "rotations": rotations,
}  # fmt: skip
