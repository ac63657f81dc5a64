"""Golden copy-number cases through the real command, with `--compat r`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cohorts import SEXES, cnv_job, of_sexes
from support.emulated_backend import EmulatedBackend, use_emulated_gpu
from support.golden import DEVICES, GOLDEN
from support.golden_cnv import Case, Row, from_zero, load, names, one_based

import multigpu
from multigpu import Counts, UsageError
from multigpu.cli import cli
from multigpu.formats.alignments.regions import Regions
from multigpu.kernels.hmm.types import ExpectedCounts
from multigpu.workloads.cnv.stages.common_regions import CommonRegions

ERRORS = {  # where R stops, in our words
    "norm_min_mean": "'min' is not one of",
    "norm_zero_median_error": "chr1: the size factor of sample S03 is 0",
    "reference_n1_norm2_error": "at least two samples",
    "single_region_chr_error": "chr2: it has one region only",
}
OTHERWISE = {  # where R's answer depends on how it was called, or on its mistakes in reading rows
    "chr_interleaved": "rows of a chromosome that are apart are sorted, not mixed up",
    "single_matrix_error": "R refuses a matrix and takes the same numbers as a vector",
}
RANDOM = ["dnacopy", "dnacopy_reference"]  # R permutes at random: compared by `close`
NAMES = [name for name in names(GOLDEN) if name not in {*ERRORS, *OTHERWISE, *RANDOM}] or ["absent"]
ROBUST = ["default", "exome_default", "thesis"]
FRACTIONAL = ["reference_multi", "reference_n1", "single_granges"]
EMULATED = [
    "norm2", "reference_multi_posterior", "reference_norm2", "single_granges", "two_samples",
]  # fmt: skip
TYPICAL = ["chr_order", "classes5", "reference_multi"]

MATRICES = {
    "normalized": "X_norm", "sini": "sini", "ini": "ini", "lambda": "lambda", "alpha": "alpha",
    "posterior": "posterior",
}  # fmt: skip
LOOSE = {"large_counts": 1e-6, "large_counts_norm0": 1e-6}  # the data's README says why


FEW = ("--no-report", "--no-vcf")
Run = Callable[..., Path]


@pytest.fixture
def run(golden: Path, tmp_path: Path) -> Run:
    """Return a function that runs the command on a case and returns the folder it wrote."""

    def call(name: str, *options: str, folder: str = "out") -> Path:
        case = load(golden, name)
        arguments = ["cnv", *case.write(tmp_path), "-o", str(tmp_path / folder)]
        cli.main([*arguments, *FEW, *case.options(), *options], standalone_mode=False)
        return tmp_path / folder

    return call


def read(folder: Path, name: str) -> list[Row]:
    lines = (folder / f"{name}.tsv").read_text().splitlines()[1:]
    return one_based([tuple(line.split("\t")) for line in lines])


def decided(rows: list[Row]) -> list[Row]:
    """Return place, sample and copy number of segments."""
    return [(*row[:4], row[6]) for row in rows]


def measured(rows: list[Row]) -> list[tuple[float, ...]]:
    """Return median and mean of segments."""
    return [(float(row[4]), float(row[5])) for row in rows]


def check_tables(folder: Path, case: Case) -> None:
    for name in ("segmentation", "cnvs"):
        ours, theirs = read(folder, name), from_zero(case.rows(name))
        assert decided(ours) == decided(theirs)
        np.testing.assert_allclose(measured(ours), measured(theirs), rtol=1e-9, atol=1e-9)
    assert read(folder, "cnv_regions") == from_zero(case.rows("cnvr"))


def check_matrices(folder: Path, case: Case) -> None:
    import xarray as xr

    expected, limit = case.arrays(), LOOSE.get(case.folder.name, 1e-9)
    with xr.open_zarr(folder / "matrices.zarr") as store:
        for ours, theirs in MATRICES.items():
            if theirs in expected:
                limits = {"rtol": limit, "atol": 1e-12, "err_msg": ours}
                np.testing.assert_allclose(store[ours].values, expected[theirs], **limits)
        if "cn_index" in expected:
            assert (store["copy_number"].values == expected["cn_index"]).all()


@pytest.mark.parametrize("chunk", ["67108864", "3000"], ids=["whole", "pieces"])
@pytest.mark.parametrize("name", EMULATED)
def test_golden__on_an_emulated_gpu(
    name: str, chunk: str, run: Run, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrays stay on the device."""
    use_emulated_gpu(monkeypatch)
    folder = run(name, "--gpus", "none", "--max-chunk-bytes", chunk)
    check_tables(folder, load(golden, name))
    check_matrices(folder, load(golden, name))


def test_sex_chromosomes__on_an_emulated_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    job = cnv_job(of_sexes(), sexes=SEXES)
    here = job.result(keep=("normalized",)).matrices["normalized"]
    use_emulated_gpu(monkeypatch)
    there = cnv_job(of_sexes(), sexes=SEXES).result(keep=("normalized",)).matrices["normalized"]
    np.testing.assert_allclose(there, here, rtol=1e-12)


@pytest.mark.parametrize("chunk", [1 << 26, 3000], ids=["whole", "pieces"])
def test_hmm__on_an_emulated_gpu(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as on the CPU: cases, and controls of which some are watched."""
    rng = np.random.default_rng(5)
    means = np.outer(rng.gamma(20, 10, 240), rng.uniform(0.7, 1.4, 72))
    means[50:80, 2] *= 0.5
    start = np.tile(np.arange(120) * 1000, 2)
    regions = Regions(("chr1", "chrX"), np.repeat(np.int32([0, 1]), 120), start, start + 1000)
    names = tuple(f"s{k}" for k in range(72))
    both = rng.poisson(means).astype(np.int32)
    given = [Counts(regions, names[a:b], both[:, a:b].copy()) for a, b in ((0, 12), (12, 72))]

    def called() -> Any:
        return multigpu.cnv(
            given[0], controls=given[1], model="reference", preset="genome", gpus="none",
            max_chunk_bytes=chunk,
        )  # fmt: skip

    here = called()
    use_emulated_gpu(monkeypatch)
    there = called()
    assert there.cnvs.num_rows > 0
    assert there.tables() == here.tables()
    for name, values in here.matrices.items():
        np.testing.assert_array_equal(there.matrices[name], values)


def test_common_regions__take_their_place_on_an_emulated_gpu() -> None:
    device, means = EmulatedBackend(), np.ones((5, 3), np.float32)
    expected = ExpectedCounts(device.put(means), device.put(means[:, 0].copy()))
    rows, unsure = np.array([1, 3, 9]), np.zeros(3, np.bool_)
    common = CommonRegions(rows=rows, mean=2 * means[:3], unsure=unsure, dispersion=0.5)
    common.replace_in(expected, np.arange(5), device.put)
    np.testing.assert_array_equal(device.get(expected.mean)[:, 0], [1, 2, 1, 2, 1])
    np.testing.assert_array_equal(device.get(expected.dispersion), [1, 0.5, 1, 0.5, 1])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_golden__tables_and_matrices(name: str, device: Row, run: Run, golden: Path) -> None:
    folder = run(name, *device)
    check_tables(folder, load(golden, name))
    check_matrices(folder, load(golden, name))


@pytest.mark.parametrize("name", ERRORS)
def test_golden__what_r_stops_at(name: str, run: Run) -> None:
    with pytest.raises(Exception, match=ERRORS[name]) as problem:
        run(name, "--gpus", "none")
    assert isinstance(problem.value, UsageError) or name == "norm_min_mean"  # which click refuses


@pytest.mark.parametrize("name", ROBUST)
def test_golden__robust_regions(name: str, run: Run, golden: Path) -> None:
    case = load(golden, name)
    for wanted in case.facts["robust"]:
        width = str(wanted["minWidth"])
        options = ("--robust", str(wanted["robust"]), "--robust-min-width", width)
        folder = run(name, "--gpus", "none", *options)
        expected = case.rows(wanted["file"].removesuffix(".tsv"))
        assert len(expected) == wanted["n"]
        assert read(folder, "cnv_regions_robust") == expected


@pytest.mark.parametrize("name", FRACTIONAL)
def test_golden__fractional_copy_numbers(name: str, run: Run, golden: Path) -> None:
    case = load(golden, name)
    for statistic in case.facts["fractional"]:
        folder = run(name, "--gpus", "none", "--fractional", statistic)
        regions = read(folder, "cnv_regions_fractional")
        assert regions == case.rows(f"cnvr_fractional_{statistic}")
        for table in ("cnvs", "segmentation"):
            expected = case.rows(f"{table}_fractional_{statistic}")
            assert decided(read(folder, f"{table}_fractional")) == decided(expected)


def test_golden__a_single_sample_has_regions_where_cnvs_are(golden: Path, tmp_path: Path) -> None:
    """R's mistake with chromosomes out of order is made when CNVs are joined; these are not."""
    case = load(golden, "single_granges")
    (table,) = case.write(tmp_path)
    header, *lines = Path(table).read_text().splitlines()
    lines.sort(key=lambda line: line.startswith("chr1\t"))  # chr2 first
    Path(table).write_text("\n".join([header, *lines, ""]))
    words = ["cnv", table, "-o", str(tmp_path / "out"), "--gpus", "none", *case.options(), *FEW]
    cli.main(words, standalone_mode=False)
    expected = sorted(case.rows("cnvr"), key=lambda row: row[0] == "chr1")
    assert [row[0] for row in expected] == ["chr2", "chr2", "chr1", "chr1"]
    assert read(tmp_path / "out", "cnv_regions") == expected


@pytest.mark.parametrize("name", RANDOM)
def test_golden__circular_binary_segmentation_is_close(name: str, run: Run, golden: Path) -> None:
    case = load(golden, name)
    ours, theirs = read(run(name, "--gpus", "none"), "cnvs"), case.rows("cnvs")
    assert [(row[0], row[3], row[6]) for row in ours] == [(r[0], r[3], r[6]) for r in theirs]
    with np.load(case.folder / "input.npz") as arrays:
        width = int(np.median(arrays["end"] - arrays["start"] + 1))
    for mine, his in zip(ours, theirs, strict=True):
        for place in (1, 2):
            assert abs(int(mine[place]) - int(his[place])) <= 2 * width
        assert abs(float(mine[5]) - float(his[5])) <= 1e-3 or mine[1:3] != his[1:3]


@pytest.mark.parametrize(
    "name", [TYPICAL[0], *(pytest.param(name, marks=pytest.mark.slow) for name in TYPICAL[1:])]
)
def test_golden__two_workers_with_tiny_chunks_write_the_same_bytes(name: str, run: Run) -> None:
    one = run(name, "--gpus", "none", "--threads", "1", folder="one")
    workers = ("--workers", "2", "--threads", "2", "--max-chunk-bytes", "3000")
    two = run(name, "--gpus", "none", *workers, folder="two")
    assert contents(one) == contents(two)


def test_golden__a_running_scheduler_gives_the_same(run: Run, golden: Path, scheduler: str) -> None:
    options = ("--gpus", "none", "--max-chunk-bytes", "3000")
    folder = run("classes5", *options, "--scheduler", scheduler)
    check_tables(folder, load(golden, "classes5"))
    check_matrices(folder, load(golden, "classes5"))


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_golden__in_a_shared_chunk(run: Run, golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from multigpu.workloads.cnv.results import matrices

    monkeypatch.setattr(matrices, "CHUNK_BYTES", 64 * 8 * 8)
    folder = run("tiny_chr", "--gpus", "none")
    assert len(list((folder / "matrices.zarr" / "sini" / "c").iterdir())) > 2
    check_matrices(folder, load(golden, "tiny_chr"))


def test_golden__the_function_gives_what_the_command_writes(run: Run, tmp_path: Path) -> None:
    folder = run("thesis", "--gpus", "none")
    how = {"preset": "gcnmops", "posterior": True, "compat_r": True, "gpus": "none"}
    result = multigpu.cnv(tmp_path / "counts.tsv", **how)
    for name, table in result.tables().items():
        rows = [tuple(map(str, row.values())) for row in table.to_pylist()]
        assert one_based(rows) == read(folder, name)
    import xarray as xr

    with xr.open_zarr(folder / "matrices.zarr") as store:
        xr.testing.assert_identical(result.matrices.drop_attrs(), store.load().drop_attrs())
