"""The mixture of Poissons: R's answers, and the fast ways against the plain one."""

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import golden_cnv
from support.backends import ALL, backends, is_emulated, on_host
from support.golden_cnv import r_model
from support.model_counts import cohort

from multigpu.kernels.cnmops import cpu, numbers, reference
from multigpu.kernels.cnmops.types import Model, ModelError, Result
from multigpu.kernels.normalization import reference as normalizing
from multigpu.kernels.normalization.types import Normalization

FOLDER = Path(reference.__file__).parent
ARRAYS = ("lambda", "alpha", "ini", "sini", "posterior")
EMULATED_REGIONS = 60  # of a golden case: the emulator is slow, and regions are on their own


backend = backends("cnmops", ALL)
fast = backends("cnmops")


def of(result: Result, name: str) -> Any:
    return on_host(getattr(result, {"lambda": "lambda_"}.get(name, name)))


def assert_close(got: Result, expected: Result, what: str = "") -> None:
    for name in ARRAYS:
        if of(expected, name) is not None:
            np.testing.assert_allclose(
                of(got, name), of(expected, name), rtol=1e-9, atol=1e-12, err_msg=f"{what} {name}"
            )
    np.testing.assert_array_equal(of(got, "cn_index"), of(expected, "cn_index"), err_msg=what)


# ---- R ----------------------------------------------------------------------------------------


@cache
def normalized(golden: Path, name: str) -> tuple[Any, Any, Any]:
    """Return what R's model gets: counts, coverages, and the controls' or the sample's level."""
    facts = golden_cnv.load(golden, name).facts
    parameters, function = facts["parameters"], facts["function"]
    with np.load(golden / "cnv" / name / "input.npz") as arrays:
        counts, chrom = arrays["counts"], arrays["chrom"].tolist()
    chrom = chrom if facts["input_type"] == "GRanges" else ["undef"] * len(chrom)
    begins = [row for row in range(len(chrom)) if not row or chrom[row] != chrom[row - 1]]
    blocks = [slice(a, b) for a, b in zip(begins, [*begins[1:], len(chrom)], strict=True)]
    values, cov = counts.astype(float), np.ones(counts.shape[1])
    if parameters["norm"] == 2:
        cov = normalizing.coverages(counts)
    elif parameters["norm"] == 1 and function != "singlecn.mops":
        options = Normalization(
            parameters["normType"], parameters["sizeFactor"],
            parameters["normQu"], parameters["quSizeFactor"],
        )  # fmt: skip
        factors = normalizing.size_factors(counts, blocks, options).factors
        values = normalizing.apply(counts, blocks, factors, options)
    if function == "singlecn.mops":
        level = [np.full(b.stop - b.start, reference.level_of_sample(values[b])) for b in blocks]
        return values, cov, np.concatenate(level)
    if function != "referencecn.mops":
        return values, np.ones(len(cov)) if function == "haplocn.mops" else cov, None
    cases = facts["n_cases"]
    level = reference.level_of_controls(values[:, cases:], cov=cov[cases:])
    return np.ascontiguousarray(values[:, :cases]), cov[:cases], level


def model_of(facts: dict[str, Any], posterior: bool) -> Model:
    parameters = facts["parameters"]
    return r_model(
        golden_cnv.MODELS[facts["function"]],
        fold_changes=tuple(map(float, parameters["I"])),
        main=facts["classes"].index(facts["main_class"]),
        prior_impact=parameters["priorImpact"],
        cycles=parameters.get("cyc", 20),
        min_read_count=parameters["minReadCount"],
        posterior=posterior,
        compat_r=True,
    )


def modelled(backend: Any, x: Any, cov: Any, level: Any, options: Model) -> Result:
    if level is None:
        return backend.model(x, cov, options)
    return backend.model_against(x, level, cov, options)


def groups_of_equal(values: Any) -> Any:
    """[rows, columns]: the first row of the column that has the same number."""
    return np.transpose(
        [np.unique(each, return_index=True)[1][np.unique(each, return_inverse=True)[1]]
         for each in values.T]
    )  # fmt: skip


@pytest.mark.slow
def test_model__all_cases_as_in_r(backend: Any, golden: Path) -> None:
    """R's ties are ties and no others; a logarithm of a fold change in R is the same bits here."""
    done = certain = tied = 0
    for name in golden_cnv.names(golden):
        case = golden_cnv.load(golden, name)
        if "expected_error" in case.facts:
            continue
        expected = case.arrays()
        x, cov, level = normalized(golden, name)
        most = EMULATED_REGIONS if is_emulated(backend) else len(x)
        rows = np.unique(np.linspace(0, len(x) - 1, most).astype(int))
        options = model_of(case.facts, "posterior" in expected)
        got = modelled(backend, x[rows], cov, None if level is None else level[rows], options)
        # Exponents of counts of a million are 1e7 themselves: an ulp of them is 1e-9 of a density,
        # so that R itself is no nearer to the truth there.
        close = {"atol": 1e-9 if name == "large_counts_norm0" else 1e-12, "rtol": 1e-9}
        for array in ARRAYS:
            if array in expected:
                assert np.allclose(of(got, array), expected[array][rows], **close), (name, array)
        assert (of(got, "cn_index") == expected["cn_index"][rows]).all(), name
        sini, theirs = of(got, "sini"), expected["sini"][rows]
        logarithm = np.isin(theirs, np.log2(options.fold_changes))
        assert (sini == theirs)[logarithm].all(), name
        groups = groups_of_equal(theirs)
        np.testing.assert_array_equal(groups_of_equal(sini), groups, name)
        if "ini" in expected:
            ini, its = of(got, "ini")[:, None], expected["ini"][rows, None]
            np.testing.assert_array_equal(groups_of_equal(ini), groups_of_equal(its), name)
        done += 1
        certain += int(logarithm.sum())
        tied += int((groups != np.arange(len(rows))[:, None]).sum())
    assert done > 60
    assert min(certain, tied) > (200 if is_emulated(backend) else 3000)


def test_model__certain_posteriors_are_one(backend: Any) -> None:
    """Signed I/NI then is a logarithm to the last bit: noise there moves borders of segments."""
    rng = np.random.default_rng(21)
    counts = rng.poisson(rng.uniform(200, 600, (200, 1)), (200, 6)).astype(np.int32)
    counts[:, 0] = 0
    ones, scale, level = np.ones(6), rng.uniform(0.8, 1.2, 6), counts[:, 1:].mean(axis=1)
    against = r_model("reference", posterior=True)
    for result in (
        backend.model(counts, ones, Model(posterior=True), scale),
        backend.model_against(counts, level, ones, against, scale),
    ):
        assert (of(result, "posterior")[:, 0, 0] == 1).all()
        assert (of(result, "sini")[:, 0] == np.log2(0.025)).all()


def test_model__weights_are_quotients(backend: Any) -> None:
    """(prior + mean posterior) / (1 + prior), each step rounded once; and so is the level."""
    counts = np.full((1, 15), 1000, np.int32)
    counts[0, :4] = 1500
    for impact in (1.0, 3.0, 10.0):
        got = backend.model(counts, np.ones(15), Model(prior_impact=impact, posterior=True))
        posterior = of(got, "posterior")[0]
        assert (posterior[3, :4] == 1).all()
        assert (posterior[2, 4:] == 1).all()
        assert of(got, "alpha")[0, 2] == (impact + 11 / 15) / (1 + impact)
        assert of(got, "alpha")[0, 3] == 4 / 15 / (1 + impact)
        assert of(got, "lambda")[0, 2] == counts.sum() / (4 * 1.5 + 11)


def test_model__a_median_of_nothing_gives_way_to_the_mean_over_coverages(backend: Any) -> None:
    """Not to that of counts: R's sample with the reads is a gain, 1.32, in place of 0."""
    counts, cov = np.array([[0, 0, 0, 30, 0]], np.int32), np.array([0.5, 0.8, 1.19, 2.97, 1])
    sini = of(backend.model(counts, cov, Model()), "sini")[0]
    np.testing.assert_allclose(sini[3], 1.32, atol=0.005)


def test_level__of_controls_with_coverages_is_a_mean_of_quotients(backend: Any) -> None:
    controls, cov = np.array([[7, 49], [49, 7]], np.int32), np.array([49.0, 7.0])
    for scale in (None, np.ones(2)):
        got = on_host(backend.level_of_controls(controls, scale, cov))
        assert got.tolist() == [(7 / 49 + 7) / 2, 1.0]  # 49 * (1 / 49) is below 1


def test_model__ties_at_the_floor_go_to_the_first_class(backend: Any) -> None:
    counts = [[1_000_000] * 5 + [1_300_000], [30, 30, 0, 0, 0, 0], [0, 0, 0, 0, 0, 40]]
    got = backend.model(np.array(counts, np.int32), np.ones(6), Model())
    expected = [[4, 4, 4, 4, 4, 0], [4, 4, 0, 0, 0, 0], [0, 0, 0, 0, 0, 5]]
    np.testing.assert_array_equal(of(got, "cn_index"), expected)
    assert of(got, "sini")[0, 5] == pytest.approx(np.log2(Model().fold_changes).mean())


def test_weights__are_handed_out_as_r_does_where_that_is_wanted() -> None:
    options, like_r = (
        r_model("reference", fold_changes=(0.5, 1, 1.5), main=1, prior_impact=2, compat_r=as_r)
        for as_r in (False, True)
    )
    np.testing.assert_allclose(options.weights(2), [[0.2, 0.2], [0.6, 0.6], [0.2, 0.2]])
    # Class i of case k: weight (2 i + k) mod 3.
    np.testing.assert_allclose(like_r.weights(2), [[0.2, 0.6], [0.2, 0.2], [0.6, 0.2]])
    np.testing.assert_allclose(like_r.weights(1), options.weights(1))


# ---- the fast ways against the plain one --------------------------------------------------------

SHAPES = [  # more samples than 256: more than a GPU keeps in registers
    (40, 2, 30.0), (60, 6, 100.0), (30, 15, 100.0), (30, 16, 4000.0), (9, 33, 80.0),
    (8, 130, 60.0), (4, 260, 80.0), (4, 301, 80.0),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("whole", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", [True, False])
def test_model__is_that_of_the_reference(fast: Any, shape: Any, whole: bool, unit: bool) -> None:
    rng = np.random.default_rng(10)
    counts = cohort(rng, *shape)
    counts = counts if whole else counts * 1.1
    cov = np.ones(shape[1]) if unit else rng.uniform(0.6, 1.6, shape[1])
    scale = rng.uniform(0.8, 1.2, shape[1])
    for options in (Model(posterior=True), r_model("haplo", cycles=3), Model(cycles=1)):
        given = (counts, cov, options, scale)
        assert_close(fast.model(*given), reference.model(*given))


@pytest.mark.parametrize("kind", ["single", "reference"])
@pytest.mark.parametrize("samples", [1, 3, 15, 300])
def test_model_against__is_that_of_the_reference(fast: Any, kind: str, samples: int) -> None:
    rng = np.random.default_rng(12)
    counts, controls = cohort(rng, 20, samples), cohort(rng, 20, 4)
    controls[7] = counts[7] = 0
    scale, cov = rng.uniform(0.8, 1.2, samples), rng.uniform(0.8, 1.2, samples)
    level = reference.level_of_controls(controls, np.full(4, 0.5))
    found = on_host(fast.level_of_controls(controls, np.full(4, 0.5)))
    np.testing.assert_allclose(found, level, rtol=1e-14)
    for compat_r in (True, False):
        options = r_model(kind, posterior=True, compat_r=compat_r, prior_impact=3)
        given = (counts, level, cov, options, scale)
        assert_close(fast.model_against(*given), reference.model_against(*given))


@pytest.mark.process
@pytest.mark.parametrize("classes", [13, 20])  # a CPU's loops over few are unrolled
def test_model__of_many_classes_in_any_order(fast: Any, classes: int) -> None:
    rng = np.random.default_rng(13)
    changes = (4.0, 1.0, 0.025, *np.linspace(0.3, 9, classes - 3))
    options = Model(fold_changes=changes, main=1, posterior=True, prior_impact=0.5)
    given = (cohort(rng, 12, 5), np.ones(5), options)
    assert_close(fast.model(*given), reference.model(*given))


def test_model__a_region_is_the_same_bits_in_whatever_company(fast: Any) -> None:
    """Results do not depend on how regions are cut into spans."""
    counts = cohort(np.random.default_rng(14), 45, 6, mean=3000)
    scale = np.linspace(0.9, 1.1, 6)
    whole = fast.model(counts, np.ones(6), Model(posterior=True), scale)
    for span in (slice(0, 1), slice(7, 20), slice(20, 45)):
        part = fast.model(counts[span], np.ones(6), Model(posterior=True), scale)
        for name in (*ARRAYS, "cn_index"):
            np.testing.assert_array_equal(of(part, name), of(whole, name)[span])


def test_log2__is_the_nearest_number() -> None:
    values = np.array([0.025, 0.5, 1, 1.5, 2, 3, 64, 1e-300, 1 + 2.0**-52])
    expected = [math.log2(each) for each in values]
    np.testing.assert_allclose(numbers.log2(values), expected, rtol=2.3e-16)
    assert numbers.log2(np.array([0.5, 1, 4, 1024])).tolist() == [-1, 0, 2, 10]


@pytest.mark.parametrize("kind", ["cn.mops", "reference"])
def test_model__does_not_depend_on_threads(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "LEAST_SPAN", 10)
    counts, options = cohort(np.random.default_rng(15), 201, 5), r_model(kind, posterior=True)
    level = None if kind == "cn.mops" else counts.mean(axis=1) + 1
    more = {} if level is None else {"level": level}
    function = cpu.model if level is None else cpu.model_against
    one = function(counts, cov=np.ones(5), options=options, **more)
    many = function(counts, cov=np.ones(5), options=options, threads=3, **more)
    for name in (*ARRAYS, "cn_index"):
        np.testing.assert_array_equal(of(many, name), of(one, name))


def test_model__regions_that_tell_nothing_get_the_main_class(backend: Any) -> None:
    counts = np.array([[0, 0, 0], [5, 5, 5], [0, 0, 6]], np.int32)
    got = backend.model(counts, np.ones(3), Model(posterior=True))
    for name, expected in {
        "lambda": [0] * 9, "alpha": [0, 0, 1, *[0] * 6], "sini": [0] * 3, "cn_index": [2] * 3,
        "ini": 0,
    }.items():  # fmt: skip
        assert of(got, name)[:2].tolist() == [expected] * 2, name
    assert of(got, "posterior")[:2, 2].tolist() == [[1, 1, 1]] * 2
    assert of(got, "lambda")[2, 2] > 0


def test_result__shapes_types_and_order(backend: Any) -> None:
    got = backend.model(cohort(np.random.default_rng(17), 20, 4), np.ones(4), Model(posterior=True))
    shapes = {"lambda": (20, 9), "alpha": (20, 9), "ini": (20,), "sini": (20, 4)}
    shapes |= {"posterior": (20, 9, 4), "cn_index": (20, 4)}
    assert {name: of(got, name).shape for name in shapes} == shapes
    assert {of(got, name).dtype for name in ARRAYS} == {np.dtype(np.float64)}
    assert of(got, "cn_index").dtype == np.int8
    assert got.sini.T.flags.c_contiguous  # a track's values lie side by side
    assert got.cn_index.T.flags.c_contiguous


def test_model__of_no_regions(backend: Any) -> None:
    none = np.empty((0, 3), np.int32)
    for got in (
        backend.model(none, np.ones(3), Model(posterior=True)),
        backend.model_against(none, np.empty(0), np.ones(3), r_model("reference")),
    ):
        assert of(got, "sini").shape == (0, 3)
        assert of(got, "lambda").shape == of(got, "alpha").shape


def test_model__shapes_that_cannot_be_right_are_refused(backend: Any) -> None:
    counts = np.full((10, 3), 7, np.int32)
    for arguments, text in (
        ((counts[:, :1].copy(), np.ones(1), Model()), "at least two samples"),
        ((counts, np.ones(2), Model()), "2 coverages for 3 samples"),
        ((counts, np.ones(3), Model(), np.ones(4)), "4 size factors for 3 samples"),
        ((counts, np.array([1, 0, 1.0]), Model()), "coverages must be above 0"),
        ((counts, np.ones(3), Model(), np.array([1, np.nan, 1])), "size factors must be above 0"),
    ):
        with pytest.raises(ModelError, match=text):
            backend.model(*arguments)
    with pytest.raises(ModelError, match=r"levels of shape \(9,\) for 10 regions"):
        backend.model_against(counts, np.ones(9), np.ones(3), r_model("reference"))


def test_level__of_a_sample_without_reads_is_refused() -> None:
    assert reference.level_of_sample(np.array([[0], [4], [7]], np.int32)) == 5.5
    with pytest.raises(ModelError, match="without any read"):
        reference.level_of_sample(np.zeros((5, 1), np.int32))


def test_options__need_the_main_class_among_the_classes() -> None:
    with pytest.raises(ModelError, match="9 classes with the main one at 9"):
        Model(main=9)
