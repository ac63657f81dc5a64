"""The figures of counting: the process on a BAM file, and decompression alone."""

import argparse
from pathlib import Path

import common
import numpy as np
from alignments import REFERENCES, write_bam
from common import Figure, repeated, require, say
from data import in_page_cache, made
from processes import process, python

from multigpu.formats.storage.sources import open_content
from multigpu.formats.tables.counts_files import read_counts
from multigpu.kernels.counting.types import Counting

CORES = 2
WINDOW = 25_000
ASKED = 20.0  # seconds for 1 GB on two cores
CHECKED = REFERENCES[0]


def check(path: Path, folder: Path) -> None:
    """Compare every window of a reference with a loop over pysam's records."""
    import pysam

    output = folder / "check.parquet"
    chosen = ("--chromosomes", CHECKED[0], "--window", str(WINDOW))
    process(python("-m", "multigpu", "count", str(path), *chosen, "-q", "-o", str(output)))
    expected = np.zeros(-(-CHECKED[1] // WINDOW), np.int64)
    lowest = Counting().min_mapq
    with pysam.AlignmentFile(str(path)) as file:
        for read in file.fetch(CHECKED[0]):
            expected[read.reference_start // WINDOW] += read.mapping_quality >= lowest
    require((read_counts(str(output)).values[:, 0] == expected).all(), "pysam counts otherwise")


def decompress(path: Path) -> None:
    """Decompress by one thread; on two cores half of its time is the least possible."""
    buffer = bytearray(4 << 20)
    with open_content(str(path)) as file:
        while file.readinto(buffer):
            pass


def loop_over_pysam(path: Path) -> None:
    """Count by a loop over pysam's records, in one thread as it holds the GIL."""
    import pysam

    counts = np.zeros((len(REFERENCES), -(-REFERENCES[0][1] // WINDOW)), np.int64)
    with pysam.AlignmentFile(str(path), threads=CORES) as file:
        for read in file:
            if read.mapping_quality:
                counts[read.reference_id, read.reference_start // WINDOW] += 1


def measure(path: Path, folder: Path, runs: int) -> list[Figure]:
    size = path.stat().st_size / 1e9
    command = python(
        "-m", "multigpu", "count", str(path), "--window", str(WINDOW), "--threads", str(CORES),
        "-q", "-o", str(folder / "counts.parquet"),
    )  # fmt: skip
    peaks: list[int] = []

    def count(*options: str) -> None:
        peaks.append(process([*command, *options], CORES).peak_bytes)

    what = f"BAM of {size:.2f} GB"
    whole = repeated(count, runs)
    note = f"peak memory {max(peaks) / 1e9:.2f} GB"
    return [
        Figure("count", f"{what}: process, {CORES} cores", "s", whole, ASKED * size, note=note),
        Figure("count", f"{what}: the same without its index", "s",
               repeated(lambda: count("--no-index"), runs), note="one thread: it is one piece"),
        Figure("count", f"{what}: decompression alone, one thread", "s",
               repeated(lambda: decompress(path), runs)),
        Figure("count", f"{what}: a loop over pysam's records", "s",
               repeated(lambda: loop_over_pysam(path), 1, warm_up=False)),
    ]  # fmt: skip


def main() -> None:
    import pysam

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each figure")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the file, e.g. 0.1")
    common.add_folders(parser)
    options = parser.parse_args()
    folder = options.data / f"scale-{options.scale:g}"
    path = made(folder / "reads.bam", lambda part: write_bam(part, int(1e9 * options.scale)))
    made(folder / "reads.bam.bai", lambda part: pysam.index(str(path), str(part)))
    in_page_cache(path)
    say("checking …")
    check(path, folder)
    report = common.report_of(options)
    report.figures += measure(path, folder, options.runs)
    report.end(full_size=options.scale == 1)


if __name__ == "__main__":
    main()
