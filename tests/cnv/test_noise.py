"""Noise of samples by neighbouring regions."""

import numpy as np
import pytest

from multigpu.workloads.cnv.samples.noise import neighbour_noise

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
