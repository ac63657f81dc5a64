"""Noise of samples by neighbouring regions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cohorts import cnv_job, planted

from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.samples.noise import GAIN, LOSS, least_regions, neighbour_noise

MEDIAN = 0.6745  # of |x| for x of a standard normal distribution


def test_noise__is_that_of_counts_and_not_of_depth_cnvs_and_waves() -> None:
    rng, regions = np.random.default_rng(1), 30_000
    reads = np.array([50, 100, *[4000] * 9])
    wave = 1 + 0.3 * np.sin(np.arange(regions) / 500)
    mean = wave[:, None] * reads
    mean[1000:2000, 1] *= 0.5
    chrom = (np.arange(regions) >= 10_000).astype(np.int32)
    noise = neighbour_noise(rng.poisson(mean), chrom)
    wanted = MEDIAN * np.sqrt(2 / reads) / np.log(2)
    np.testing.assert_allclose(noise, wanted, rtol=0.1)


@pytest.mark.parametrize("samples", [1, 2, 3])
def test_noise__is_unknown_without_neighbours_reads_or_samples(samples: int) -> None:
    counts = np.full((6, samples), 30)
    alone = neighbour_noise(counts, np.arange(6, dtype=np.int32))
    assert np.isnan(alone).all()
    same = np.zeros(6, np.int32)
    assert np.isnan(neighbour_noise(0 * counts, same)).all()
    counts[:, 0] = 0
    found = neighbour_noise(counts, same)
    assert np.isnan(found).tolist() == [True, *[samples < 3] * (samples - 1)]


READS = st.lists(st.floats(0, 1e6), min_size=2, max_size=9).map(np.array)


@given(READS, st.floats(0, 1), st.integers(1, 10**7), st.sampled_from([LOSS, GAIN]))
def test_least_regions__are_fewer_with_more_reads_and_less_noise(
    reads: np.ndarray, dispersion: float, regions: int, share: float
) -> None:
    noise = np.full(len(reads), dispersion)
    found = least_regions(np.sort(reads), noise, regions, share)
    assert found.dtype == np.int64
    assert (found >= 1).all()
    assert (np.diff(found) <= 0).all()
    assert (least_regions(np.sort(reads), 2 * noise + 0.01, regions, share) >= found).all()
    assert (least_regions(np.sort(reads), noise, 10 * regions, share) >= found).all()


@pytest.mark.parametrize("times", [LOSS, GAIN])
def test_least_regions__are_seen_and_much_smaller_ones_are_not(times: float) -> None:
    reads, gamma = 30.0, 500  # of `planted`
    (least,) = least_regions(np.array([reads]), np.array([1 / gamma]), 4000, times).tolist()
    assert 3 <= least <= 12
    found = []
    for size in (least + 1, least // 3):
        events = [("chr1", 50 + 100 * k, 50 + 100 * k + size, [k], times) for k in range(40)]
        counts = planted({"chr1": 4000}, events, depths=[1] * 40, coverage=reads)
        options = CnvOptions.of("cn.mops", "genome", min_width=1)
        found.append(len({*cnv_job(counts, options).result().called.sample.tolist()}))
    assert found[0] >= 32
    assert found[1] <= 12


def test_note__has_the_regions_of_a_cnv_and_names_of_shallow_samples() -> None:
    counts = planted({"chr1": 200}, depths=[1] * 7 + [0.02])
    notes = {}
    for width in (1, 3):
        options = CnvOptions.of("cn.mops", "genome", min_width=width)
        (notes[width],) = (n for n in cnv_job(counts, options).notes if n.startswith("seen"))
    assert "losses of one copy of 1 region or more and gains of 2 (" in notes[1]
    assert "losses of one copy of 3 regions or more and gains of 3 (" in notes[3]
    assert all(n.endswith(") only larger ones") and "; in s7 (" in n for n in notes.values())
