"""The figures of the copy-number pipeline: results are checked, then runs are timed.

    python benchmarks/cnv.py [--only model stages …] [--device cpu|gpu] [--data DIR] [--json FILE]

Prints one Markdown table. Parts that need GPUs are skipped, with the reason, where there are none.
"""

import gzip
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import common
import numpy as np
import pysam
from common import Figure, repeated, require
from numpy.typing import NDArray
from processes import Ran, process, python

import multigpu
from multigpu.formats.sequences.gc_content import gc_content
from multigpu.formats.storage.decompress import BGZF_END
from multigpu.formats.tables.counts import Counts
from multigpu.formats.tables.counts_files import read_counts, write_counts
from multigpu.kernels.cnmops import reference
from multigpu.kernels.hmm import reference as plain_hmm
from multigpu.kernels.hmm.moves import moves as moves_of
from multigpu.kernels.normalization.covariates import correction
from multigpu.run.options import DEFAULT_CHUNK_BYTES, RunOptions
from multigpu.workloads.cnv.gatk_sv import CALL_SETS
from multigpu.workloads.cnv.job import CnvJob
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.results.result import CnvResult
from multigpu.workloads.cnv.simulate import CohortDesign, simulate_cohort
from multigpu.workloads.cnv.stages.cnmops import model_options

BM_A = {"regions": 6_904_726, "samples": 15, "chromosomes": 24}  # of the thesis on gcn.MOPS
R_SHAPE = {"regions": 60_000, "samples": 15, "chromosomes": 1}
BATCH = {"bins": 2_500_000, "samples": 500}  # of 100 bases on chr1
MANY = {"regions": 300_000, "samples": 100, "chromosomes": 22}
KEPT = 210  # samples of the cohort with which a new one is compared
COHORT = {"regions": 100_000, "samples": 2500, "chromosomes": 22}
TILES = 10  # of which it is made
R_MODEL = 76e-6  # seconds a region, the faster of its two times: cn.mops 1.53, R 4.2.2, one core
R_STAGES = 8.2  # seconds of stages 2 to 5 on R_SHAPE, likewise
GCNMOPS_MS = 314  # its kernel on an H200 at its best grid
FEW_CORES = 2
FEW_OUTPUTS = ("--no-matrices", "--no-report")
CHECKED, CHECKED_COUNTS = 2000, 200_000  # regions and counts that the plain computation looks at
GENES = {"coverage": 80.0, "dispersion": 0.005, "min_length": 5, "max_length": 60,
         "max_carriers": 3, "width": 450, "seed": 1}  # fmt: skip


class Bench(common.Bench):
    """Bench of the copy numbers, with their cohorts."""

    def shape(self, shape: dict[str, int]) -> dict[str, Any]:
        """Return all quantities of a simulated cohort, with a CNV for every 1,000 regions."""
        regions = max(shape["chromosomes"] * 100, round(shape["regions"] * self.scale))
        return {**GENES, **shape, "regions": regions, "cnvs": max(1, regions // 1000)}

    def counts(self, shape: dict[str, int]) -> Counts:
        return simulate_cohort(CohortDesign(**self.shape(shape)))[0]

    @cached_property
    def bm_a(self) -> Counts:
        return self.counts(BM_A)

    def table(self, name: str, counts: Counts) -> str:
        """Write counts as Parquet; return the path."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = str(self.folder / f"{name}.parquet")
        write_counts(path, counts)
        return path

    @property
    def run(self) -> RunOptions:
        return RunOptions(gpus="0" if self.gpu else "none", max_chunk_bytes=1 << 34)


Part = Callable[[Bench], Iterator[Figure]]


# ---- the model --------------------------------------------------------------------------------


def check_model(counts: NDArray[Any], found: Any, options: CnvOptions) -> None:
    """Require that some regions are as the plain computation has them."""
    some = min(CHECKED, CHECKED_COUNTS // counts.shape[1], len(counts))
    rows = np.linspace(0, len(counts) - 1, some).astype(int)
    plain = reference.model(counts[rows], np.ones(counts.shape[1]), model_options(options))
    ours, index = on_host(found.sini)[rows], on_host(found.cn_index)[rows]
    require(np.allclose(ours, plain.sini, rtol=1e-9, atol=1e-12), "signed I/NI differs")
    require(bool((index == plain.cn_index).all()), "copy numbers differ")


def on_host(array: Any) -> NDArray[Any]:
    return array.get() if hasattr(array, "get") else array


def part_model(bench: Bench) -> Iterator[Figure]:
    """Time the model stage of BM-A, with results where it runs."""
    counts = bench.bm_a.values
    if not bench.gpu:
        yield from _model_cpu(counts[: R_SHAPE["regions"]].copy(), bench.runs)
        return
    import cupy

    seconds = _model_gpu(cupy.asarray(counts), counts, bench.runs)
    note = f"gcn.MOPS' kernel at its best: {GCNMOPS_MS} ms; counts as int32 on the device"
    yield Figure("model", f"{shape_of(counts)}: model stage, {bench.where}", "ms",
                 [1e3 * s for s in seconds], 25.0, note=note)  # fmt: skip


def part_cohort(bench: Bench) -> Iterator[Figure]:
    """Time the model stage of thousands of samples."""
    bench.need_gpu()
    few = {**COHORT, "regions": COHORT["regions"] // TILES}
    counts = np.tile(bench.counts(few).values, (TILES, 1))
    yield Figure("cohort", f"{shape_of(counts)}: model stage, {bench.where}", "s",
                 _model_gpu(counts, counts, bench.runs), 0.1 * bench.scale,
                 note="counts from host memory")  # fmt: skip
    import cupy

    held = cupy.asarray(counts)
    yield Figure("cohort", f"{shape_of(counts)}: the same, counts on the device", "s",
                 _model_gpu(held, counts, bench.runs))  # fmt: skip


def _model_gpu(given: Any, counts: NDArray[Any], runs: int) -> list[float]:
    """Return the seconds of the model stage of counts that lie on the device or the host."""
    import cupy

    from multigpu.kernels.cnmops import cuda

    ones, options = np.ones(counts.shape[1]), CnvOptions()

    def run() -> Any:
        result = cuda.model(given, ones, model_options(options))
        cupy.cuda.Device().synchronize()
        return result

    check_model(counts, run(), options)
    return repeated(run, runs)


def _model_cpu(counts: NDArray[Any], runs: int) -> Iterator[Figure]:
    from multigpu.kernels.cnmops import cpu

    ones, options, cores = np.ones(counts.shape[1]), CnvOptions(), min(FEW_CORES, common.cores())

    def run() -> Any:
        return cpu.model(counts, ones, model_options(options), threads=cores)

    check_model(counts, run(), options)
    seconds = repeated(run, runs)
    each = float(np.median(seconds)) / len(counts)
    what = f"{shape_of(counts)}: model stage, {cores} cores, times as fast as R"
    note = f"{1e6 * each:.3g} µs a region; R on one core: {1e6 * R_MODEL:.0f}"
    yield Figure("model", what, "×", [R_MODEL * len(counts) / s for s in seconds], 40.0,
                 at_most=False, note=note)  # fmt: skip


def shape_of(counts: NDArray[Any]) -> str:
    return f"{len(counts):,} regions × {counts.shape[1]:,} samples"


# ---- stages 2 to 5 ----------------------------------------------------------------------------


def stages(counts: Counts, run: RunOptions) -> CnvResult:
    """Run stages 2 to 5, from counts in host memory to call tables and signed I/NI there."""
    return CnvJob(counts, CnvOptions(), run).result(keep=("sini",))


def check_stages(found: CnvResult, counts: Counts) -> None:
    """Require that pieces and one thread on the CPU give the same calls."""
    run = RunOptions(gpus="none", threads=1, max_chunk_bytes=DEFAULT_CHUNK_BYTES // 8)
    plain = stages(counts, run)
    for name, table in plain.tables().items():
        ours = found.tables()[name]
        for column in set(table.column_names) - {"mean", "median"}:
            require(ours[column].equals(table[column]), f"{name}: {column} differs")
    require(len(plain.called) > 0, "nothing was called")


def part_stages(bench: Bench) -> Iterator[Figure]:
    """Time stages 2 to 5: of BM-A on a GPU, of R's shape on few cores."""
    shape, asked = (BM_A, 0.6) if bench.gpu else (R_SHAPE, None)
    counts = bench.bm_a if bench.gpu else bench.counts(shape)
    run = bench.run if bench.gpu else RunOptions(gpus="none", threads=FEW_CORES)
    few = bench.counts({**shape, "regions": min(shape["regions"], 300_000)})
    check_stages(stages(few, run), few)
    seconds = repeated(lambda: stages(counts, run), bench.runs)
    what = f"{shape_of(counts.values)}: stages 2–5"
    if bench.gpu:
        yield Figure("stages", f"{what}, {bench.where}", "s", seconds, asked)
        return
    yield Figure("stages", f"{what}, {FEW_CORES} cores, times as fast as R", "×",
                 [R_STAGES / s for s in seconds], 30.0, at_most=False,
                 note=f"{np.median(seconds):.3g} s; R on one core: {R_STAGES} s")  # fmt: skip


def repeated_counts(one: Counts, copies: int) -> Counts:
    """Return counts with each chromosome several times; copy 3 of chr1 is named chr1_3."""
    regions = one.regions
    names = tuple(f"{name}_{k}" for k in range(copies) for name in regions.names)
    chrom = np.concatenate([regions.chrom + k * len(regions.names) for k in range(copies)])
    many = type(regions)(
        names, chrom.astype(np.int32), np.tile(regions.start, copies), np.tile(regions.end, copies)
    )
    return Counts(many, one.samples, np.tile(one.values, (copies, 1)))


# ---- presets ----------------------------------------------------------------------------------


def part_hmm(bench: Bench) -> Iterator[Figure]:
    """Time the hidden Markov model: expected counts and paths of all chromosomes of BM-A."""
    counts, options = bench.bm_a, CnvOptions.of(CnvOptions().model, "genome")
    kernels, threads, put = _markov(bench)
    references = CnvJob(counts, options, bench.run).references
    assert references is not None
    samples = len(counts.samples)
    model = references.model(np.arange(samples), np.full(samples, 2, np.int8))
    blocks = counts.regions.blocks
    values = [put(counts.values[block]) for block in blocks]
    ways = [
        moves_of(*(x[block] for x in (counts.regions.start, counts.regions.end)),
                  len(counts.regions), options.max_gap)
        for block in blocks
    ]  # fmt: skip

    def found(x: Any, moves: Any) -> Any:
        return kernels.paths(x, kernels.expect(x, model, **threads), model, moves, **threads)

    def run() -> None:
        for x, moves in zip(values, ways, strict=True):
            on_host(found(x, moves))

    few = counts.values[:CHECKED]
    plain = plain_hmm.paths(few, plain_hmm.expect(few, model), model, ways[0][:CHECKED])
    require(bool((on_host(found(put(few), ways[0][:CHECKED])) == plain).all()), "paths differ")
    run()
    before = time.process_time()
    seconds = repeated(run, bench.runs, warm_up=False)
    cpu = (time.process_time() - before) / bench.runs
    asked = (0.1 if bench.gpu else 20.0) * bench.scale
    yield Figure("hmm", f"{shape_of(counts.values)}: expected counts and paths, {bench.where}", "s",
                 seconds, asked, note=f"{cpu:.3g} CPU seconds")  # fmt: skip


def _markov(bench: Bench) -> tuple[Any, dict[str, int], Callable[[Any], Any]]:
    """Return the kernels of the hidden Markov model, their threads, and the way to the device."""
    if not bench.gpu:
        from multigpu.kernels.hmm import cpu

        return cpu, {"threads": min(FEW_CORES, common.cores())}, lambda array: array
    import cupy

    from multigpu.kernels.hmm import cuda

    return cuda, {}, cupy.asarray


def part_preset(bench: Bench) -> Iterator[Figure]:
    """Time `multigpu cnv --preset genome`, and measure its memory: BM-A, and 100 samples."""
    for shape in (BM_A, MANY):
        counts, truth = simulate_cohort(CohortDesign(**bench.shape(shape)))
        table = bench.table(f"preset-{shape['samples']}", counts)
        ran = calls(bench, [table], len(truth.sample))
        yield from figures_of("preset", f"{shape_of(counts.values)}: --preset genome", ran, bench)


def part_new_sample(bench: Bench) -> Iterator[Figure]:
    """Time the calls of one new sample against a cohort of 210, and a run of all 211."""
    shape = {**BM_A, "samples": KEPT + 1, "max_carriers": 20}
    counts, truth = simulate_cohort(CohortDesign(**bench.shape(shape)))
    store = bench.folder / "cohort.zarr"
    shutil.rmtree(store, ignore_errors=True)
    new = bench.table("new", part_of(counts, slice(KEPT, None)))
    multigpu.build_cohort(part_of(counts, slice(KEPT)), output=str(store))
    planted = int((truth.sample == KEPT).sum())
    ran = calls(bench, [new, "--cohort", str(store)], planted)
    what = f"{len(counts.regions):,} regions, one sample against {KEPT}"
    yield from figures_of("new_sample", what, ran, bench, 3.0 * bench.scale if bench.gpu else None)
    if bench.gpu:
        return
    every = calls(bench, [bench.table("every", counts)], len(truth.sample), runs=1)[0]
    for unit, name in (("s", "seconds"), ("CPU s", "cpu_seconds")):
        whole = getattr(every, name)
        yield Figure("new_sample", f"{what}: share of a run of all, {unit}", "%",
                     [100 * getattr(each, name) / whole for each in ran], 10.0,
                     note=f"all: {whole:.3g} {unit}")  # fmt: skip


def part_of(counts: Counts, columns: slice) -> Counts:
    """Return the counts of some samples."""
    values = np.ascontiguousarray(counts.values[:, columns])
    return Counts(counts.regions, counts.samples[columns], values)


def calls(bench: Bench, given: list[str], planted: int, runs: int | None = None) -> list[Ran]:
    """Run `multigpu cnv --preset genome` some times, after one that counts not; check its calls."""
    out = bench.folder / "out-preset"
    command = python(
        "-m", "multigpu", "cnv", *given, "--preset", "genome", "-o", str(out), *FEW_OUTPUTS,
        "--gpus", "0" if bench.gpu else "none", "-q",
    )  # fmt: skip
    cores = None if bench.gpu else FEW_CORES
    if runs is None:
        process(command, cores)
    ran = [process(command, cores) for _ in range(runs or bench.runs)]
    rows = len((out / "cnvs.tsv").read_text().splitlines()) - 1
    require(0.8 * planted < rows < 1.2 * planted + 10, f"{rows} calls, {planted} planted")
    return ran


def figures_of(
    part: str, what: str, ran: list[Ran], bench: Bench, asked: float | None = None
) -> Iterator[Figure]:
    """Yield what processes took: seconds, and peak host memory."""
    cpu = float(np.median([each.cpu_seconds for each in ran]))
    yield Figure(part, f"{what}: whole process, {bench.where}", "s",
                 [each.seconds for each in ran], asked, note=f"{cpu:.3g} CPU seconds")  # fmt: skip
    peaks = [each.peak_bytes / 1e9 for each in ran]
    yield Figure(part, f"{what}: peak host memory, {bench.where}", "GB", peaks)


def part_gc(bench: Bench) -> Iterator[Figure]:
    """Time the correction of BM-A by the GC content, and how fast that is read from FASTA."""
    counts, threads = bench.bm_a, common.cores() if bench.gpu else FEW_CORES
    values, regions = counts.values.copy(), counts.regions
    gc = np.random.default_rng(1).beta(20, 28, len(regions))
    wave = 1 + 2 * (gc - gc.mean())
    values[:, 0] = np.rint(values[:, 0] * wave)
    every, columns = np.ones(len(regions), np.bool_), np.ones(values.shape[1], np.bool_)

    def run() -> None:
        correction([values], gc, every, columns, threads).apply(values, slice(None), threads)

    run()
    usual = values[:, 1:].mean(axis=1)
    left = np.corrcoef(values[usual > 20, 0] / usual[usual > 20], gc[usual > 20])[0, 1]
    require(abs(left) < 0.02, f"a wave is left: correlation {left:.3f}")
    before, runs = time.process_time(), bench.runs
    seconds = repeated(run, runs, warm_up=False)
    cpu = (time.process_time() - before) / runs
    yield Figure("gc", f"{shape_of(values)}: correction, {threads} cores", "s", seconds,
                 0.3 * bench.scale, note=f"{cpu:.3g} CPU seconds")  # fmt: skip
    fasta = bench.folder / "genome.fa"
    bases = write_fasta(fasta, counts)
    content = gc_content(str(fasta), regions, False, {})
    require(abs(float(np.mean(content)) - 0.5) < 0.01, "the GC content is wrong")
    before = time.process_time()
    seconds = repeated(lambda: gc_content(str(fasta), regions, False, {}), runs, warm_up=False)
    cpu = (time.process_time() - before) / runs
    yield Figure("gc", f"GC content from FASTA of {bases / 1e9:.3g} Gb, one core", "s", seconds,
                 note=f"{cpu:.3g} CPU seconds")  # fmt: skip


def write_fasta(path: Path, counts: Counts) -> int:
    """Write chromosomes of random letters, as long as the regions reach; return their bases."""
    letters, bases = np.frombuffer(b"ACGT", np.uint8), 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for block in counts.regions.blocks:
            lines = -(-int(counts.regions.end[block].max()) // 60)
            random = np.random.default_rng(block.start)
            text = np.full((lines, 61), ord("\n"), np.uint8)
            text[:, :60] = letters[random.integers(0, 4, (lines, 60), np.uint8)]
            name = counts.regions.names[counts.regions.chrom[block.start]]
            file.write(f">{name}\n".encode() + text.tobytes())
            bases += lines * 60
    return bases


# ---- the whole process ------------------------------------------------------------------------


def part_process(bench: Bench) -> Iterator[Figure]:
    """Time `multigpu cnv` from a Parquet file to all call files, and measure its peak memory."""
    bench.folder.mkdir(parents=True, exist_ok=True)
    table, out = str(bench.folder / "bm_a.parquet"), bench.folder / "out"
    shape = bench.shape(BM_A)
    options = [f"--{name.replace('_', '-')}={value}" for name, value in shape.items()]
    process(python("-m", "multigpu", "simulate", "counts", *options, "-o", table))
    command = python(
        "-m", "multigpu", "cnv", table, "-o", str(out), *FEW_OUTPUTS,
        "--gpus", "0" if bench.gpu else "none", "-q",
    )  # fmt: skip
    process(command)
    ran = [process(command) for _ in range(bench.runs)]
    counts = read_counts(table)
    rows = (out / "cnvs.tsv").read_text().splitlines()
    require(len(rows) == len(stages(counts, bench.run).called) + 1 > 1, "the file has other CNVs")
    size, what = counts.values.nbytes, shape_of(counts.values)
    packed = Path(table).stat().st_size / 1e9
    yield Figure("process", f"{what}: whole process, {bench.where}", "s",
                 [each.seconds for each in ran], 2.5 if bench.gpu else 20.0,
                 note=f"{packed:.2g} GB of Parquet")  # fmt: skip
    limit = 3 * size + 4 * DEFAULT_CHUNK_BYTES
    yield Figure("process", f"{what}: peak host memory, {bench.where}", "GB",
                 [each.peak_bytes / 1e9 for each in ran], limit / 1e9,
                 note=f"counts {size / 1e9:.2g} GB")  # fmt: skip


# ---- a batch of GATK-SV -----------------------------------------------------------------------


def bincov_slab(folder: Path, first: int, stop: int, samples: int) -> Path:
    """Write lines [first, stop) of a matrix of chr1 in BGZF, as a file of their own; return it.

    One sample in ten has an event, a loss or a gain, in each 4,000 bins: 100 bins long.
    """
    rng, path = np.random.default_rng(first), folder / f"{first}.bgz"
    events = np.ones((stop - first, samples), np.float32)
    for at in range(-first % 4000, stop - first - 100, 4000):
        carriers = (first + at) // 4000 % 10
        events[at : at + 100, carriers::10] = 0.5 if carriers % 2 else 1.5
    depth = np.random.default_rng(samples).uniform(25, 45, samples)  # the same in all slabs
    mean = events * depth * rng.lognormal(0, 0.1, (stop - first, 1))
    counts = rng.poisson(mean)
    with pysam.BGZFile(str(path), "w1") as file:
        for line, row in enumerate(counts.tolist(), first):
            cells = "\t".join(map(str, row))
            file.write(f"chr1\t{line}00\t{line + 1}00\t{cells}\n".encode())
    return path


def write_bincov(path: Path, bins: int, samples: int) -> None:
    """Write the matrix of a batch: slabs by several processes, one after the other in a file."""
    names = "\t".join(f"HG{k:05d}" for k in range(samples))
    with pysam.BGZFile(str(path), "w1") as file:
        file.write(f"#Chr\tStart\tEnd\t{names}\n".encode())
    borders = [*range(0, bins, 20_000), bins]
    with path.open("r+b") as out, ProcessPoolExecutor() as pool:
        out.seek(0, os.SEEK_END)
        tasks = [pool.submit(bincov_slab, path.parent, *x, samples) for x in pairwise(borders)]
        for task in tasks:
            slab = task.result()
            out.seek(-len(BGZF_END), os.SEEK_END)  # the mark of the end, of what is before
            out.write(slab.read_bytes())
            slab.unlink()


def part_batch(bench: Bench) -> Iterator[Figure]:
    """Time `multigpu cnv --preset gatk-sv` on chr1 of 500 genomes, and measure its memory."""
    bench.folder.mkdir(parents=True, exist_ok=True)
    bins, samples = round(BATCH["bins"] * bench.scale), BATCH["samples"]
    matrix, out = bench.folder / "batch.RD.txt.gz", bench.folder / "batch"
    if not matrix.exists():
        write_bincov(matrix, bins, samples)
    command = python(
        "-m", "multigpu", "cnv", str(matrix), "--preset", "gatk-sv", "--sex", "none",
        "-o", str(out), "--gpus", "0" if bench.gpu else "none", "-q",
    )  # fmt: skip
    process(command)
    ran = [process(command, None if bench.gpu else FEW_CORES) for _ in range(bench.runs)]
    lines = gzip.decompress((out / "batch.DEL.header.bed.gz").read_bytes()).splitlines()[1:]
    require(len(lines) > bins / 8000 * samples / 20, "most losses are not found")
    what = f"{samples} genomes × {bins:,} bins of chr1"
    packed = f"{matrix.stat().st_size / 1e9:.2g} GB of bincov, {len(lines):,} losses"
    seconds, peaks = ([each.seconds for each in ran], [each.peak_bytes / 1e9 for each in ran])
    asked = bench.scale * 6.0 if bench.gpu else None
    yield Figure("batch", f"{what}: whole process, {bench.where}", "s", seconds, asked, note=packed)
    yield Figure("batch", f"{what}: peak host memory, {bench.where}", "GB", peaks, 4.0)
    if not bench.gpu:
        cells = bins * samples * sum(1 / size for of in CALL_SETS for size in of.sizes)
        r = R_STAGES * cells / (R_SHAPE["regions"] * R_SHAPE["samples"])
        yield Figure("batch", f"{what}, {FEW_CORES} cores, times as fast as R", "×",
                     [r / s for s in seconds], 20.0, at_most=False,
                     note="R by its time for a count of another cohort")  # fmt: skip


# ---- all together -----------------------------------------------------------------------------

PARTS: dict[str, Part] = {
    "process": part_process,
    "model": part_model,
    "stages": part_stages,
    "cohort": part_cohort,
    "batch": part_batch,
    "hmm": part_hmm,
    "preset": part_preset,
    "new_sample": part_new_sample,
    "gc": part_gc,
}

if __name__ == "__main__":
    common.measure_parts(common.options_of(__doc__, PARTS), PARTS, Bench)
