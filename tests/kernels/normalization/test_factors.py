"""Size factors: R's answers, and the fast ways against the plain one."""

import json
import pickle
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.backends import ALL, GPUS, backends

from multigpu.kernels.normalization import cpu, density, reference
from multigpu.kernels.normalization.cpu import Spectrum
from multigpu.kernels.normalization.types import (
    SAMPLE,
    Normalization,
    NormalizationError,
    SizeFactors,
)

FOLDER = Path(density.__file__).parent
NAMES = {
    "normType": "norm_type", "sizeFactor": "size_factor", "qu": "norm_quantile",
    "quSizeFactor": "size_factor_quantile", "ploidy": "ploidy",
}  # fmt: skip
ERRORS = {  # what R says, what we say
    "Some normalization factors are zero": "e: the size factor of sample 3 is 0",
    "argument is of length zero": "all samples have the same counts",
    "object 'idxSG' not found": "at least two samples|needs two samples or more, and two",
    "At least two diploid samples": "needs two samples or more, and two of ploidy 2",
    "Length of the ploidy vector": "2 ploidies for 8 samples",
    "Ploidy values must be integers": "ploidies must be whole numbers",
    'Set TO of normalization to "mean"': "must be one of",
}
NOTES = {
    "low number of segments": "too few regions with reads",
    "at least one sample has zero reads": "the variance is mostly far below the mean",
    "Using global sizeFactors": "a sample has no reads",
}
OF_R_ALONE = "no non-missing arguments to max"
MATRICES = (
    "main", "odd", "zerosample_on_chr", "dups", "near_dups", "mode_at_zero", "under2", "under",
    "over", "nonint", "small_values", "tinychr",
)  # fmt: skip


backend = backends("normalization", ALL)
fast = backends("normalization")
cuda = backends("normalization", GPUS)


def size_factors(backend: Any, counts: Any, *how: Any) -> SizeFactors:
    """Return the size factors of counts where a GPU has them, if it is one's."""
    there = backend.cupy.asarray(counts) if hasattr(backend, "cupy") else counts
    found: SizeFactors = backend.size_factors(there, *how)
    return found


def blocks_of(names: Any) -> list[slice]:
    """Stretches of equal names."""
    names = np.asarray(names)
    borders = [0, *(np.flatnonzero(names[1:] != names[:-1]) + 1).tolist(), len(names)]
    return [slice(a, b) for a, b in pairwise(borders)]


def cohort(rng: np.random.Generator, regions: int, samples: int, mean: float = 80) -> Any:
    """int32 counts with stretches of zeros and of ones, and samples of different coverage."""
    level = mean * rng.gamma(8, 1 / 8, (regions, 1)) * rng.uniform(0.5, 2, samples)
    counts = rng.negative_binomial(20, 20 / (20 + level)).astype(np.int32)
    counts[regions // 5 : regions // 5 + regions // 10] = 0
    counts[regions // 2 : regions // 2 + regions // 20] = rng.poisson(1, samples)
    return counts


# ---- R ----------------------------------------------------------------------------------------


@cache
def stored(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """case.json and all arrays of a folder of golden data."""
    arrays = {**np.load(folder / "input.npz"), **np.load(folder / "expected.npz")}
    return json.loads((folder / "case.json").read_text()), arrays


def input_of(call: dict[str, Any], arrays: dict[str, Any]) -> tuple[Any, Any]:
    """Counts and chromosomes of a call of R's."""
    rows, columns = (call.get(key, slice(None)) for key in ("rows", "columns"))
    counts = arrays[f"counts_{call['matrix']}"][rows][:, columns]
    chrom = arrays[f"chrom_{call['matrix']}"][rows]
    if call["how"] == "matrix" or call["func"] == "normalizeGenome":
        chrom = np.full(len(chrom), "all")
    return np.ascontiguousarray(counts), chrom


def options_of(parameters: dict[str, Any]) -> Normalization:
    given = {NAMES[name]: value for name, value in parameters.items()}
    if "ploidy" in given:
        given["ploidy"] = tuple(given["ploidy"])
    return Normalization(**given)


def told(said: list[str]) -> list[str]:
    """The beginnings of our notes for R's warnings."""
    mine = [one for one in said if OF_R_ALONE not in one]
    return [next(ours for theirs, ours in NOTES.items() if theirs in one) for one in mine]


@pytest.mark.parametrize("matrix", MATRICES)
def test_normalize__as_in_r(backend: Any, golden: Path, matrix: str) -> None:
    facts, arrays = stored(golden / "cnv" / "normalize")
    calls = [call for call in facts["calls"] if call["matrix"] == matrix]
    assert calls
    for call in (call for call in calls if call["how"] != "dataframe"):
        counts, chrom = input_of(call, arrays)
        blocks = blocks_of(chrom)
        names = [str(chrom[block.start]) for block in blocks]
        if call["error"]:
            ours = next(text for said, text in ERRORS.items() if call["error"].startswith(said))
            with pytest.raises(NormalizationError, match=ours):
                size_factors(backend, counts, blocks, options_of(call["params"]), names)
            continue
        got = size_factors(backend, counts, blocks, options := options_of(call["params"]), names)
        values = reference.apply(counts, blocks, got.factors, options)
        np.testing.assert_allclose(values, arrays[call["id"]], rtol=1e-12, err_msg=call["id"])
        for note, ours in zip(got.notes, told(call["warnings"]), strict=True):
            assert ours in note


def test_density__as_in_r(golden: Path) -> None:
    facts, arrays = stored(golden / "cnv" / "r_primitives")
    columns = facts["density_summary_columns"]
    for k, row in enumerate(arrays["density_summary"]):
        x = np.sort(arrays["x"][arrays["x_offset"][k] : arrays["x_offset"][k + 1]])
        summary = dict(zip(columns, row, strict=True))
        width = density.bandwidth(x)
        assert width == pytest.approx(summary["bandwidth nrd0"], rel=1e-13)
        at, y = density.density(x, density.quantile_of_sorted(x, 0.95), width)
        assert len(at) == summary["grid points returned"]
        assert np.argmax(y) == summary["0-based position of the maximum"]
        span = slice(arrays["density_offset"][k], arrays["density_offset"][k + 1])
        if span.start < span.stop:  # long ones are not stored
            np.testing.assert_allclose(at, arrays["density_x"][span], rtol=1e-13)
            np.testing.assert_allclose(y, arrays["density_y"][span], rtol=1e-10, atol=1e-14)
        assert density.mode_of_sorted(x) == pytest.approx(summary["x of the maximum"], rel=1e-13)


def test_quantile__and_mode_as_in_r(golden: Path) -> None:
    _, arrays = stored(golden / "cnv" / "r_primitives")
    for k, expected in enumerate(arrays["quantile"]):
        x = arrays["x"][arrays["x_offset"][k] : arrays["x_offset"][k + 1]]
        got = [Spectrum.of(x).quantile(share) for share in arrays["quantile_probs"]]
        np.testing.assert_allclose(got, expected, rtol=1e-14)
    x = arrays["mode_x"]
    for part, expected in zip((x, x[:60], x[60:100], x[100:]), arrays["mode"], strict=True):
        assert Spectrum.of(part).mode() == reference.mode_of(part) == expected


# ---- the fast ways against the plain one --------------------------------------------------------

KINDS = [
    Normalization(),
    Normalization("poisson", "median"),
    Normalization("mean", "mode"),
    Normalization("mode", "quant", size_factor_quantile=0.6),
    Normalization("quant", "median", norm_quantile=0.8),
    Normalization(ploidy=(2, 2, 2, 1, 1, 3, 0, 0)),
]


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("whole", [True, False])
def test_size_factors__are_the_plain_ones(fast: Any, options: Normalization, whole: bool) -> None:
    rng = np.random.default_rng(5)
    counts = cohort(rng, 900, 8)
    counts = counts if whole else counts * rng.choice([0.3, 1.1], (900, 1))
    blocks = [slice(0, 500), slice(500, 501), slice(501, 900)]
    expected = reference.size_factors(counts, blocks, options)
    got = size_factors(fast, counts, blocks, options)
    assert got.notes == expected.notes
    assert got.notes
    np.testing.assert_allclose(got.factors, expected.factors, rtol=1e-12)
    np.testing.assert_allclose(cpu.coverages(counts), reference.coverages(counts), rtol=1e-12)


def any_counts(rng: np.random.Generator, regions: int, samples: int, whole: bool) -> Any:
    """Counts, many equal, or numbers of all sizes, some of them below 1."""
    counts = cohort(rng, regions, samples, mean=float(rng.choice([3, 80, 4000])))
    return counts if whole else counts * np.exp(rng.choice([-5, 0.3, rng.normal()], (regions, 1)))


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("whole", [True, False])
def test_cuda__has_the_bits_of_the_cpu(
    cuda: Any, options: Normalization, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare counts on the host and on the device."""
    for module in (cuda, cpu):
        monkeypatch.setattr(module, "STRETCH", 64)
    counts = any_counts(np.random.default_rng([15, whole]), 3000, 8, whole)
    blocks = [slice(0, 1900), slice(1900, 1901), slice(1901, 2600), slice(2600, 3000)]
    expected = cpu.size_factors(counts, blocks, options)
    for find in (cuda.size_factors, partial(size_factors, cuda)):
        np.testing.assert_array_equal(find(counts, blocks, options).factors, expected.factors)


@pytest.mark.parametrize("samples", [2, 3, 100, 300])
def test_cuda__has_the_bits_of_the_cpu_for_few_and_many_samples(
    cuda: Any, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (cuda, cpu):
        monkeypatch.setattr(module, "STRETCH", 50)
    for seed in range(3):
        counts = any_counts(np.random.default_rng([16, samples, seed]), 170, samples, whole=False)
        for options in (Normalization(), Normalization("mean", "mean")):
            got = size_factors(cuda, counts, [slice(0, 170)], options).factors
            expected = cpu.size_factors(counts, [slice(0, 170)], options, threads=2).factors
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("seed", range(4))
def test_cuda__has_the_bits_of_the_cpu_in_parts_of_a_dispersion(cuda: Any, seed: int) -> None:
    """Compare its parts, as of the dispersion itself few bits are left."""
    rng = np.random.default_rng([18, seed])
    counts, factors = any_counts(rng, 3000, 9, whole=seed % 2 == 0), rng.uniform(0.5, 2, 9)
    used = (counts >= 1).any(axis=1)
    there = cuda.ChromosomeStatistics(cuda.cupy.asarray(counts), range(9))
    expected = cpu._ratios(counts[used], factors)
    np.testing.assert_array_equal(there.ratios(factors).get()[used], expected)


def test_cuda__reads_no_counts_of_another_type(cuda: Any) -> None:
    counts = cuda.cupy.asarray(np.ones((3, 2), np.int64))
    with pytest.raises(TypeError, match="must be int32 or float64"):
        cuda.size_factors(counts, [slice(0, 3)], Normalization())


@pytest.mark.parametrize("whole", [True, False])
def test_size_factors__of_many_threads(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "LEAST_SPAN", 10)
    counts = cohort(np.random.default_rng(8), 9000, 5).astype(np.int32 if whole else np.float64)
    counts = counts if whole else counts / 3
    for options in (Normalization(), Normalization("mean", "median")):
        one = cpu.size_factors(counts, [slice(0, 9000)], options)
        many = cpu.size_factors(counts, [slice(0, 9000)], options, threads=3)
        np.testing.assert_array_equal(many.factors, one.factors)


def test_size_factors__know_of_reads_elsewhere() -> None:
    """Chromosomes one by one, with the totals of all, as all at once."""
    counts = cohort(np.random.default_rng(9), 300, 5)
    counts[100:200, 3] = 0
    blocks = [slice(0, 100), slice(100, 200), slice(200, 300)]
    options, totals = Normalization("mean", "mode"), counts.sum(axis=0, dtype=float)
    together = cpu.size_factors(counts, blocks, options)
    assert any("a sample has no reads" in note for note in together.notes)
    for block, row in zip(blocks, together.factors, strict=True):
        one = cpu.size_factors(counts[block], [slice(0, 100)], options, totals=totals)
        np.testing.assert_array_equal(one.factors[0], row)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_size_factors__impossible_counts_are_refused(backend: Any, value: float) -> None:
    counts = np.full((50, 3), 7.0)
    counts[20, 1] = value
    with pytest.raises(NormalizationError, match="negative, infinite or not a number"):
        size_factors(backend, counts, [slice(0, 50)], Normalization())


def test_size_factors__need_reads_of_every_sample_and_two_samples(backend: Any) -> None:
    counts = np.full((50, 3), 7, np.int32)
    counts[:, 2] = 0
    with pytest.raises(NormalizationError, match="sample 3 has no reads"):
        size_factors(backend, counts, [slice(0, 50)], Normalization())
    with pytest.raises(NormalizationError, match="at least two samples"):
        size_factors(backend, counts[:, :1].copy(), [slice(0, 50)], Normalization())


@pytest.mark.parametrize("count", [2.0**33, 2.0**40 - 1])
def test_size_factors__a_count_that_makes_a_variance_beyond_all_grids_is_refused(
    backend: Any, count: float
) -> None:
    """The density of such variances would take more memory than there is."""
    counts = cohort(np.random.default_rng(4), 60, 8).astype(np.float64)
    counts[3, 2] = count
    with pytest.raises(NormalizationError, match=r"^chr1: the variance is over a million times"):
        size_factors(backend, counts, [slice(0, 60)], Normalization(), ["chr1"])


def test_error__tells_the_sample_by_its_name_and_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(NormalizationError(f"{SAMPLE} has no reads", 1)))
    assert str(error) == "sample 2 has no reads"
    assert error.describe(["NA1", "NA2"]) == "sample NA2 has no reads"
    assert str(NormalizationError("no counts")) == "no counts"


@pytest.mark.parametrize(("bad", "text"), [
    ({"norm_type": "min"}, "norm type 'min': must be one of poisson, mean"),
    ({"size_factor": "sum"}, "size factor 'sum'"),
    ({"norm_quantile": 2}, "norm quantile 2: must be between 0 and 1"),
    ({"size_factor_quantile": -0.1}, "size factor quantile -0.1"),
    ({"ploidy": (2, 2, -1)}, "ploidies must be whole numbers, 0 or more"),
])  # fmt: skip
def test_options__out_of_range_are_refused(bad: dict[str, Any], text: str) -> None:
    with pytest.raises(NormalizationError, match=text):
        Normalization(**bad)
