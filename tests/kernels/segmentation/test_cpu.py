"""The fast segmentation: R's answers, and the fast ways against the plain one."""

import json
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.backends import GPUS, backends
from support.examples import examples
from support.tracks import borders, tracks

from multigpu.kernels.segmentation import cpu, reference
from multigpu.kernels.segmentation.types import (
    NOTE_INFINITE,
    NOTE_NAN,
    Segmentation,
    SegmentedTracks,
    TrackError,
    cleaned,
)

FOLDER = Path(cpu.__file__).parent
NAMES = {
    "alpha": "alpha", "eps": "eps", "delta": "delta", "maxInt": "max_window",
    "minSeg": "min_segment", "cyberWeight": "cyber_weight", "segMedianT": "thresholds",
}  # fmt: skip


backend = backends("segmentation")
cuda = backends("segmentation", GPUS)


def options_of(parameters: dict[str, Any]) -> Segmentation:
    """Return options from R's names."""
    given = {NAMES[name]: value for name, value in parameters.items()}
    if isinstance(given.get("thresholds"), list):
        given["thresholds"] = tuple(given["thresholds"])
    return Segmentation(**given)


def assert_same(got: SegmentedTracks, expected: SegmentedTracks) -> None:
    assert borders(got) == borders(expected)
    np.testing.assert_allclose(got.mean, expected.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(got.median, expected.median)
    assert got.notes == expected.notes
    for name in ("track", "start", "end", "mean", "median"):
        assert getattr(got, name).dtype == (np.float64 if name[0] == "m" else np.int64)


def statistic(backend: ModuleType, x: Any, options: Segmentation) -> Any:
    if backend is cpu:
        return cpu.statistic(x, options)
    device = backend.cupy.asarray(x)
    return backend._Tracks(device, tracks(len(x))).statistic(options).get()


def steps(rng: np.random.Generator, n: int, zeros: float = 0.0) -> Any:
    """A track with changes, and with this share of zeros."""
    levels = np.repeat(rng.choice([0.0, 0.0, 1.0, -2.0], n // 10 + 1), 10)[:n]
    return np.where(rng.random(n) < zeros, 0.0, levels + rng.normal(0, 0.3, n))


TIED = np.r_[
    np.log2([0.025, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4]), 0, -0.0, 1e-37, -3e-37, 2.5e-37, 5e-324
]  # signed I/NI where fold changes are exact or there is none


def ties(rng: np.random.Generator, n: int) -> Any:
    """A track of runs of few values, so that many positions have the same statistic."""
    runs = np.repeat(rng.choice(TIED, n), rng.integers(1, 12, n))[:n]
    return np.where(rng.random(n) < rng.choice([0, 0.2, 0.7]), rng.choice(TIED[-6:], n), runs)


def assert_same_bits(got: SegmentedTracks, expected: SegmentedTracks) -> None:
    assert (borders(got), got.notes) == (borders(expected), expected.notes)
    for name in ("mean", "median"):
        assert getattr(got, name).tobytes() == getattr(expected, name).tobytes(), name


# ---- R ----------------------------------------------------------------------------------------


@cache
def vectors(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The vectors' descriptions, and all arrays."""
    cases = json.loads((folder / "case.json").read_text())["vectors"]
    return cases, {**np.load(folder / "input.npz"), **np.load(folder / "expected.npz")}


def of_vector(arrays: dict[str, Any], name: str, offsets: str, k: int) -> Any:
    return arrays[name][arrays[offsets][k] : arrays[offsets][k + 1]]


R_COLUMNS = ("start", "end", "mean", "median")
# R's segments overlap, and some of their means are NaN; ours: refused.
INVERTED = "segMedianT_-0.2_0.2"
ERRORS = {
    "Alpha must be": "alpha is",
    "missing values and NaN": "it has infinite values and no finite one",
    "missing value where": "it has one region only",
    "REAL()": "x must be float64",
    INVERTED: "that of gains is below that of losses",
}


def test_segment__vectors_as_in_r(backend: Any, golden: Path) -> None:
    cases, arrays = vectors(golden / "cnv" / "segment_vectors")
    assert len(cases) == 259
    for k, case in enumerate(cases):
        x = of_vector(arrays, "x", "x_offset", k)
        x = x.astype(np.int64) if case["integer_storage"] else x
        if case["error"] or case["name"] == INVERTED:
            said_by_r = case["error"] or INVERTED
            problem = next(ours for said, ours in ERRORS.items() if said in said_by_r)
            with pytest.raises(ValueError, match=problem):
                backend.segment(x, tracks(len(x)), options_of(case["params"]))
            continue
        got = backend.segment(x, tracks(len(x)), options_of(case["params"]))
        expected = {name: of_vector(arrays, name, "seg_offset", k) for name in R_COLUMNS}
        assert (got.start + 1).tolist() == expected["start"].tolist(), case["name"]
        assert got.end.tolist() == expected["end"].tolist(), case["name"]
        for name in ("mean", "median"):
            np.testing.assert_allclose(getattr(got, name), expected[name], rtol=0, atol=1e-9)
        assert bool(got.notes) == bool(case["messages"])


def good_vectors(golden: Path) -> Iterator[tuple[dict[str, Any], Any, Callable[[str, str], Any]]]:
    """Yield R's vectors that have a statistic, cleaned, and a function for what R says of each."""
    cases, arrays = vectors(golden / "cnv" / "segment_vectors")
    for k, case in enumerate(cases):
        if not (case["error"] or case["n"] < 2 or case["name"] == INVERTED):
            of = partial(of_vector, arrays, k=k)
            yield case, cleaned(of("x", "x_offset"), 0), of


def test_statistic__of_vectors_as_in_r(backend: Any, golden: Path) -> None:
    for case, x, of in good_vectors(golden):
        expected = of("stat", "x_offset")
        got = statistic(backend, x, options_of(case["params"]))
        assert np.flatnonzero(got).tolist() == np.flatnonzero(expected).tolist(), case["name"]
        np.testing.assert_allclose(got, expected, rtol=1e-9, err_msg=case["name"])


def test_reference__statistic_and_borders_of_vectors_as_in_r(golden: Path) -> None:
    for case, x, of in good_vectors(golden):
        options = options_of(case["params"])
        got = reference.maxima(reference.statistic(x, options), options.reach)
        np.testing.assert_allclose(got, of("stat", "x_offset"), rtol=1e-9, err_msg=case["name"])
        if "segMedianT" not in case["params"]:
            spans = reference.merged(x, reference.breaks(got, options.alpha), options)
            expected = zip(of("start", "seg_offset") - 1, of("end", "seg_offset"), strict=True)
            assert spans == [*expected], case["name"]


OPTIONS = st.builds(
    Segmentation,
    alpha=st.sampled_from([0.05, 0.02, 0.3, 0.7, 1, 3.7, 12, 500]),
    eps=st.sampled_from([None, None, 0.0, 0.1, 1.0]),
    delta=st.sampled_from([0, 1, 3, 20]),
    max_window=st.sampled_from([1, 8, 15, 40, 150]),
    min_segment=st.sampled_from([0, 2, 3, 4, 7]),
    cyber_weight=st.sampled_from([0.0, 0.5, 5.0, 50.0, 1000.0]),
    thresholds=st.sampled_from([0.0, 0.5, -0.5, (0.3, -1.0), (0.0, -0.5), (0.2, 0.2)]),
)
NONE = st.none()  # thresholds that follow from the track
TRACKS = st.lists(st.integers(0, 90), max_size=4)


@examples(100)
@given(TRACKS, OPTIONS, st.integers(0, 2**32), st.sampled_from([0.0, 0.3, 0.9]))
def test_cpu__as_plain(lengths: list[int], options: Segmentation, seed: int, zeros: float) -> None:
    given = (steps(np.random.default_rng(seed), sum(lengths), zeros), tracks(*lengths), options)
    assert_same(cpu.segment(*given, threads=1 + seed % 2), reference.segment(*given))


@examples(30)
@given(seed=st.integers(0, 2**32), options=OPTIONS | st.builds(replace, OPTIONS, thresholds=NONE))
def test_cuda__has_the_bits_of_the_cpu(cuda: Any, seed: int, options: Segmentation) -> None:
    rng = np.random.default_rng([20, seed])
    shortest = 1 if options.limits else 2
    lengths = [*rng.integers(shortest, 300, 3).tolist(), int(rng.integers(2, 5000)), 0]
    of = [ties, steps, lambda rng, n: steps(rng, n, zeros=0.8), ties]
    x = np.concatenate([of[rng.integers(4)](rng, n) for n in lengths])
    x[rng.random(len(x)) < rng.choice([0.0, 0.0, 0.01])] = [np.nan, np.inf, -np.inf][seed % 3]
    x[[0, -1]] = 1.0  # no track of one infinite value
    offsets = tracks(*lengths)
    assert_same_bits(cuda.segment(x, offsets, options), cpu.segment(x, offsets, options))


@pytest.mark.slow
@pytest.mark.parametrize("of", [ties, steps])
def test_cuda__has_the_bits_of_the_cpu_in_a_long_track(cuda: Any, of: Any) -> None:
    x = of(np.random.default_rng(21), 300_000)
    expected = cpu.segment(x, tracks(len(x)), Segmentation(), threads=2)
    assert_same_bits(cuda.segment(x, tracks(len(x)), Segmentation()), expected)
    assert len(expected) > 200


def test_segment__thresholds_of_each_track_are_its_own(backend: Any) -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate([steps(rng, 300), 100 * steps(rng, 300), np.full(50, 1.5)])
    given = (x, tracks(300, 300, 50), Segmentation())
    assert_same(backend.segment(*given), reference.segment(*given))


def test_segment__replaces_what_is_not_finite_and_says_so(backend: Any) -> None:
    x = steps(np.random.default_rng(6), 200)
    offsets, options = tracks(80, 120), Segmentation()
    assert backend.segment(x, offsets, options).notes == ()
    x[[3, 90]] = np.nan
    assert backend.segment(x, offsets, options).notes == (NOTE_NAN,)
    x[[20, 150]] = np.inf, -np.inf
    before, got = x.copy(), backend.segment(x, offsets, options)
    assert got.notes == (NOTE_INFINITE, NOTE_NAN)
    np.testing.assert_array_equal(x, before)
    clean = np.concatenate([cleaned(x[:80], 0), cleaned(x[80:], 1)])
    assert borders(got) == borders(backend.segment(clean, offsets, options))


@pytest.mark.parametrize("lengths", [(), (0,), (0, 0)])
def test_segment__nothing_gives_nothing(backend: Any, lengths: tuple[int, ...]) -> None:
    assert len(backend.segment(np.empty(0), tracks(*lengths), Segmentation())) == 0


@pytest.mark.parametrize(("parameters", "problem"), [
    ({"alpha": 0}, "alpha is 0: a share"),
    ({"alpha": float("nan")}, "alpha is nan"),
    ({"delta": -1}, "delta is -1"),
    ({"eps": float("nan")}, "must be finite"),
    ({"cyber_weight": float("inf")}, "must be finite"),
    ({"thresholds": (0.5, float("nan"))}, "must be finite"),
    ({"thresholds": (-0.2, 0.2)}, r"thresholds are \(-0.2, 0.2\): that of gains is below"),
])  # fmt: skip
def test_options__refuse(parameters: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Segmentation(**parameters)


@pytest.mark.parametrize(("x", "offsets", "problem"), [
    (np.zeros(4, np.float32), [0, 4], "x must be float64"),
    (np.zeros((2, 2)), [0, 2], "x must be float64"),
    (np.zeros(8)[::2], [0, 4], "x must be float64"),
    (np.zeros(4), [0, 3], "offsets must ascend"),
    (np.zeros(4), [1, 4], "offsets must ascend"),
    (np.zeros(4), [0, 3, 2, 4], "offsets must ascend"),
    (np.zeros(0), [], "offsets must ascend"),
    (np.zeros(4), [0.0, 4.0], "offsets must be int64"),
])  # fmt: skip
def test_segment__refuses_arrays(backend: Any, x: Any, offsets: list[Any], problem: str) -> None:
    dtype = np.float64 if offsets and isinstance(offsets[0], float) else np.int64
    with pytest.raises(ValueError, match=problem):
        backend.segment(x, np.array(offsets, dtype), Segmentation())


def test_segment__names_the_track_that_cannot_be_segmented(backend: Any) -> None:
    x = np.concatenate([np.arange(20.0), [5.0], np.full(9, np.inf)])
    with pytest.raises(TrackError, match="track 1: it has one region only") as alone:
        backend.segment(x, tracks(20, 1, 9), Segmentation())
    assert alone.value.track == 1
    with pytest.raises(TrackError, match="track 2: it has infinite values") as infinite:
        backend.segment(x, tracks(20, 1, 9), Segmentation(thresholds=0.5))
    again = pickle.loads(pickle.dumps(infinite.value))
    assert (again.track, str(again)) == (2, str(infinite.value))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.cu*")), ids=lambda path: str(path.name))
def test_kernels__leave_no_last_bit_to_a_library(path: Path) -> None:
    """Among such functions only sqrt is rounded in the same way everywhere."""
    text = re.sub("//.*", "", path.read_text())
    assert not re.search(r"\b(exp\w*|log\w*|pow|fma|rsqrt|cbrt|sin|cos|\w*gamma)\(", text)


def test_cuda__takes_arrays_of_the_device_and_leaves_them(cuda: Any) -> None:
    x = steps(np.random.default_rng(11), 300)
    device = cuda.cupy.asarray(x)
    got = cuda.segment(device, tracks(100, 200), Segmentation())
    assert_same(got, reference.segment(x, tracks(100, 200), Segmentation()))
    np.testing.assert_array_equal(device.get(), x)
