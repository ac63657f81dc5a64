"""Circular binary segmentation: the plain computation, R's CNVs, and the parts of a test."""

import csv
import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.tracks import borders, tracks

from multigpu.kernels.segmentation import circular, cpu, reference
from multigpu.kernels.segmentation.types import Circular, TrackError

FEW = Circular(permutations=300)


def levels(rng: np.random.Generator, spans: list[tuple[int, float]], noise: float = 0.2) -> Any:
    return np.concatenate([rng.normal(level, noise, n) for n, level in spans])


def closed(values: Any, width: int, longest: int) -> circular.ArcBuffers:
    """A segment's values, ready for tests."""
    room = circular.room_for(len(values))
    circular._center(values, room)
    circular._close(room, len(values), width, longest)
    return room


@pytest.mark.parametrize("width", [2, 4])
def test_cbs__is_the_plain_computation_where_changes_are_clear(width: int) -> None:
    rng = np.random.default_rng(1)
    first = levels(rng, [(40, 0), (15, 2), (30, 0), (20, -1.5), (25, 0)])
    x = np.concatenate([first, levels(rng, [(30, 1), (50, -1)]), np.zeros(20)])
    given = (x, tracks(130, 80, 20), Circular(permutations=300, min_width=width, noise=0.0))
    got, expected = cpu.cbs(*given), reference.cbs(*given)
    assert borders(got) == borders(expected)
    np.testing.assert_allclose(got.mean, expected.mean, rtol=1e-12)
    np.testing.assert_array_equal(got.median, expected.median)
    assert len(got) == 8


@examples(25)
@given(st.lists(st.integers(12, 40), min_size=1, max_size=4), st.integers(0, 2**32))
def test_cbs__finds_planted_changes(lengths: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    spans = [(n, 3.0 * (k % 2)) for k, n in enumerate(lengths)]
    got = cpu.cbs(levels(rng, spans, 0.05), tracks(sum(lengths)), FEW)
    assert set(np.cumsum(lengths).tolist()) <= set(got.end.tolist())


def test_cbs__large_segments_are_cut_where_small_ones_would_be() -> None:
    rng = np.random.default_rng(2)
    x = levels(rng, [(300, 0), (60, 0.4), (400, 0), (8, 1.5), (300, 0)])
    offsets = tracks(len(x))
    large = cpu.cbs(x, offsets, Circular())
    small = cpu.cbs(x, offsets, Circular(large=10_000, permutations=1000))
    assert borders(large) == borders(small)
    assert np.abs(large.end - [300, 360, 760, 768, 1068]).max() <= 3


def test_cbs__noise_is_seldom_cut() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=300 * 100)
    got = cpu.cbs(x, tracks(*[100] * 300), Circular(permutations=1000), threads=2)
    cut = len(np.unique(got.track[np.diff(got.track, prepend=-1) == 0]))
    assert cut <= 9  # of 300 at alpha 0.01; more than 9 has a chance of 0.1 %


def test_cbs__of_a_track_depends_on_it_and_the_seed_only() -> None:
    rng = np.random.default_rng(4)
    x = np.concatenate([levels(rng, [(50, 0), (9, 0.4), (70, 0.1)]) for _ in range(4)])
    offsets = tracks(*[129] * 4)
    alone = [cpu.cbs(x[a:b], tracks(b - a), FEW) for a, b in pairwise(offsets.tolist())]
    for threads in (1, 2):
        together = borders(cpu.cbs(x, offsets, FEW, threads))
        assert together == [
            (track, start + 129 * track, end + 129 * track)
            for track, one in enumerate(alone)
            for _, start, end in borders(one)
        ]


def test_cbs__what_is_far_below_the_noise_is_no_change() -> None:
    x = np.repeat([1e-99, 1e-34, 0.0], 40)
    assert borders(cpu.cbs(x, tracks(120), Circular())) == [(0, 0, 120)]
    assert len(cpu.cbs(x, tracks(120), Circular(noise=0.0))) > 1


def test_cbs__of_nothing_and_of_too_little() -> None:
    assert len(cpu.cbs(np.empty(0), tracks(0, 0), FEW)) == 0
    got = cpu.cbs(np.array([1.0, 5.0, 1.0, 1.0]), tracks(1, 3), FEW)
    assert borders(got) == [(0, 0, 1), (1, 1, 4)]
    same = np.full(500, 0.1)
    assert borders(cpu.cbs(same, tracks(500), Circular(noise=0.0))) == [(0, 0, 500)]


def test_cbs__replaces_what_is_not_finite_or_names_the_track() -> None:
    x = levels(np.random.default_rng(5), [(30, 0), (30, 2)])
    x[5] = np.nan
    got = cpu.cbs(x, tracks(60), FEW)
    assert len(got.notes) == 1
    with pytest.raises(TrackError, match="track 1: it has infinite values and no finite one"):
        cpu.cbs(np.array([1.0, np.inf]), tracks(1, 1), FEW)
    with pytest.raises(ValueError, match="x must be float64"):
        cpu.cbs(np.zeros(3, np.int64), tracks(3), FEW)


def calls(rows: list[tuple[str, str, int, int, float]], case: dict[str, Any]) -> dict[Any, Any]:
    """Spans and means of the CNVs among segments, by chromosome and sample."""
    out = defaultdict(list)
    for chrom, sample, first, stop, mean in rows:
        beyond = mean >= case["upperThreshold"] or mean <= case["lowerThreshold"]
        if beyond and stop - first >= case["minWidth"]:
            out[chrom, sample].append((first, stop, mean))
    return out


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", ["dnacopy", "dnacopy_reference"])
def test_cbs__finds_the_cnvs_of_dnacopy(golden: Path, name: str, seed: int) -> None:
    folder = golden / "cnv" / name
    case = json.loads((folder / "case.json").read_text())
    with np.load(folder / "input.npz") as given, np.load(folder / "expected.npz") as expected:
        chrom, start, sini = given["chrom"], given["start"], expected["sini"]
    with (folder / "segmentation.tsv").open() as file:
        table = list(csv.DictReader(file, delimiter="\t"))
    width = min(5, case["parameters"]["minWidth"])
    ours, theirs = [], []
    for of in dict.fromkeys(chrom.tolist()):
        at = np.flatnonzero(chrom == of)
        names = case["sample_names"][: sini.shape[1]]
        options = Circular(min_width=width, seed=seed)
        found = cpu.cbs(sini[at].T.reshape(-1), tracks(*[len(at)] * len(names)), options)
        for k, (track, first, stop) in enumerate(borders(found)):
            begin = track * len(at)
            ours.append((of, names[track], first - begin, stop - begin, float(found.mean[k])))
        for row in table:
            if row["chrom"] == of:
                first = int(np.searchsorted(start[at], int(row["start"])))
                stop = int(np.searchsorted(start[at], int(row["end"])))
                theirs.append((of, row["sample"], first, stop, float(row["mean"])))
    got, wanted = calls(ours, case["parameters"]), calls(theirs, case["parameters"])
    assert got.keys() == wanted.keys()
    assert len(wanted) > 3
    for key, spans in wanted.items():
        assert len(got[key]) == len(spans)
        for one, other in zip(got[key], spans, strict=True):
            assert max(abs(one[0] - other[0]), abs(one[1] - other[1])) <= 2
            assert abs(one[2] - other[2]) <= 1e-3
    # Of the segments that are no CNVs some hang on chance in R, too.
    same = len({row[:4] for row in ours} & {row[:4] for row in theirs})
    assert same >= 0.85 * len(theirs)


def test_bound__is_not_exceeded_by_any_order() -> None:
    rng = np.random.default_rng(7)
    x = rng.standard_t(2, 60)
    x -= x.mean()
    bound = circular._bound(np.sort(x), 2, 12)
    for _ in range(500):
        room = closed(rng.permutation(x), 0, 30)
        assert circular._largest_arc(room, 60, 2, 12)[0] <= bound * (1 + 1e-9)
    room = closed(np.sort(x), 0, 30)
    assert circular._largest_arc(room, 60, 2, 12)[0] == pytest.approx(bound)


@pytest.mark.parametrize(
    ("n", "b"), [(200, 3.7), (400, 4.0), pytest.param(1000, 4.2, marks=pytest.mark.slow)]
)
def test_long_tail__is_how_often_noise_gets_there(n: int, b: float) -> None:
    rng, short, trials = np.random.default_rng(n), 25, 4000
    larger = 0
    for _ in range(trials):
        room = closed(rng.normal(size=n), 0, n // 2)
        larger += circular._largest_arc(room, n, short + 1, n // 2)[0] >= b * b
    expected = circular._long_tail(b, n, short)
    assert larger / trials == pytest.approx(expected, rel=0.25)  # the formula is for large b
