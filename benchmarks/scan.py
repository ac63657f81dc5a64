"""The figures of the scan: results are checked, then runs are timed.

    python benchmarks/scan.py [--only kernels records …] [--device cpu|gpu] [--json FILE] [--runs 5]

Prints one Markdown table. Parts that need a GPU are skipped, with the reason, where there is none.
"""

import importlib.util
from argparse import Namespace
from collections.abc import Callable, Iterator

import common
import numpy as np
from common import Figure, require
from data import in_page_cache
from processes import process, python
from scan_memory import part_hyperscan, part_kernels, part_records
from scan_runs import NAMES, Bench, scan_again, scan_once, seconds_of
from scan_streams import STREAM_COPIES, part_reads, part_stream

from multigpu.run.options import DEFAULT_CHUNK_BYTES

FEW_CORES = 2
SMALL_COPIES = 2  # 1.2 GB
GZIP_COPIES = 12  # what one lane of a sequencer gives, about
HELP_RUNS = 11
CHUNKS_IN_MEMORY = 4


def part_process(bench: Bench) -> Iterator[Figure]:
    """Time the process, from FASTQ in page cache to the output file."""
    for n_percent in (10, 0):
        files = bench.default(n_percent)
        samples = in_page_cache(files.samples)
        _, expected = scan_once(bench, samples, files.signatures, "none")
        planted = len({line.split(b"\t")[0] for line in expected.splitlines()[1:]})
        require(planted == files.infected, f"{planted} samples with matches")
        what = f"default, {NAMES[n_percent]}: whole process"
        cpu = scan_again(bench, bench.runs, None, samples, files.signatures, "none")
        yield Figure("process", f"{what}, {common.cores()} cores", "s", seconds_of(cpu))
        if bench.gpu:
            gpu = scan_again(bench, bench.runs, expected, samples, files.signatures, bench.gpus)
            yield Figure("process", f"{what}, one GPU", "s", seconds_of(gpu), 1.5)


def part_cpu(bench: Bench) -> Iterator[Figure]:
    """Time the process on two cores."""
    for n_percent, asked in ((10, 3.0), (0, 1.0)):
        files = bench.default(n_percent)
        samples = in_page_cache(files.samples)
        more = ("--threads", str(FEW_CORES))
        ran = scan_again(
            bench, bench.runs, None, samples, files.signatures, "none", *more, use_cores=FEW_CORES
        )
        peak = max(r.peak_bytes for r in ran) / 1e9
        yield Figure(
            "cpu",
            f"default, {NAMES[n_percent]}: whole process, {FEW_CORES} CPU cores",
            "s",
            seconds_of(ran),
            asked,
            note=f"peak memory {peak:.2g} GB",
        )


def part_gzip(bench: Bench) -> Iterator[Figure]:
    """Compare a gzip FASTQ with decompression alone: runs of both in turn, a ratio a pair."""
    files = bench.default(0)
    copies = bench.copies(GZIP_COPIES)
    packed = in_page_cache(files.gzipped(copies))
    _, once = scan_once(bench, files.samples, files.signatures, "none")
    header, rows = once.split(b"\n", 1)
    expected = header + b"\n" + rows * copies
    code = (
        "import sys; from isal import igzip; out = bytearray(1 << 20)\n"
        "with igzip.open(sys.argv[1]) as file:\n    while file.readinto(out): pass\n"
    )
    command = python("-c", code, str(packed))
    process(command, FEW_CORES)
    for gpus in dict.fromkeys(["none", bench.gpus]):
        alone, ran = [], []
        for _ in range(bench.runs):
            alone.append(process(command, FEW_CORES).seconds)
            where = (packed, files.signatures, gpus)
            one, rows = scan_once(bench, *where, use_cores=FEW_CORES)
            require(rows == expected, "the output differs")
            ran.append(one.seconds)
        with_what = f"{FEW_CORES} CPU cores" + (" and one GPU" if gpus != "none" else "")
        yield Figure(
            "gzip",
            f"gzip FASTQ, {with_what}: time beyond decompressing alone",
            "%",
            [100 * (ours / theirs - 1) for ours, theirs in zip(ran, alone, strict=True)],
            10.0 if gpus == "none" else None,
            note=f"scan {np.median(ran):.3g} s, isal alone {np.median(alone):.3g} s, "
            f"{packed.stat().st_size / 1e9:.2g} GB packed, whole processes",
        )


def part_memory(bench: Bench) -> Iterator[Figure]:
    """Measure peak resident memory, for inputs of several sizes."""
    files = bench.default(10)
    clean = bench.default(0)
    most = 2.0 + CHUNKS_IN_MEMORY * DEFAULT_CHUNK_BYTES / 1e9
    for path, signatures in (
        (files.copies(bench.copies(SMALL_COPIES)), files.signatures),
        (files.copies(bench.copies(STREAM_COPIES)), files.signatures),
        (clean.gzipped(bench.copies(GZIP_COPIES)), clean.signatures),
    ):
        ran = [scan_once(bench, path, signatures, bench.gpus)[0] for _ in range(min(3, bench.runs))]
        size = path.stat().st_size / 1e9
        kind = "gzip FASTQ" if path.suffix == ".gz" else "FASTQ"
        yield Figure(
            "memory",
            f"peak host memory, {kind} of {size:.2g} GB, {bench.where}",
            "GB",
            [r.peak_bytes / 1e9 for r in ran],
            most,
            note=f"{np.median(seconds_of(ran)):.3g} s; asked: 2 GB and {CHUNKS_IN_MEMORY} chunks",
        )


def part_help(bench: Bench) -> Iterator[Figure]:
    """Time the start-up."""
    command = python("-m", "multigpu", "--help")
    process(command)
    seconds = [process(command).seconds for _ in range(max(HELP_RUNS, bench.runs))]
    yield Figure("help", "python -m multigpu --help", "s", seconds, 0.15)


# ---- all together -----------------------------------------------------------------------------

PARTS: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "help": part_help,
    "kernels": part_kernels,
    "records": part_records,
    "process": part_process,
    "stream": part_stream,
    "reads": part_reads,
    "cpu": part_cpu,
    "hyperscan": part_hyperscan,
    "gzip": part_gzip,
    "memory": part_memory,
}
GPU_ONLY = ("kernels", "records")
ON_CPU_IF_ASKED = ("stream", "reads", "memory")  # long: on a CPU only with --device cpu


def _bench(options: Namespace, gpu: bool) -> Bench:
    folder = options.data / f"scale-{options.scale:g}"
    return Bench(folder, options.runs, options.scale, gpu)


def _missing(name: str, without: str, options: Namespace) -> str | None:
    if without and name in GPU_ONLY:
        return f"needs a GPU: {without}"
    if without and name in ON_CPU_IF_ASKED and options.device != "cpu":
        return f"needs a GPU (--device cpu runs it on the CPU): {without}"
    if name == "hyperscan" and importlib.util.find_spec("hyperscan") is None:
        return "needs the package hyperscan: pip install multigpu[bench]"
    return None


if __name__ == "__main__":
    common.measure_parts(common.options_of(__doc__, PARTS), PARTS, _bench, _missing)
