"""Changes that many samples share, which are references of each other, too."""

import numpy as np
import pytest

from multigpu import cnv
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables.counts import Counts

SAMPLES, TARGETS, LOST = 24, 300, slice(100, 115)


@pytest.mark.parametrize(
    ("preset", "carriers"), [("panel", 3), ("panel", 6), ("panel", 7), ("genome", 7)]
)
def test_loss__is_found_in_all_of_its_carriers(preset: str, carriers: int) -> None:
    random, is_genome = np.random.default_rng(carriers), preset == "genome"
    depth = 600 * random.lognormal(0, 0.1 if is_genome else 0.5, (TARGETS, 1))
    depth = depth * random.uniform(0.8, 1.2, SAMPLES)
    depth[LOST, :carriers] /= 2
    counts = random.poisson(depth * random.lognormal(0, 0.04, depth.shape)).astype(np.int32)
    width = 3000 if is_genome else 200
    regions = Regions.of([("chr1", 3000 * k, 3000 * k + width) for k in range(TARGETS)])
    names = tuple(f"s{k}" for k in range(SAMPLES))
    found = cnv(Counts(regions, names, counts), preset=preset)
    large = found.called.rows >= 8
    assert found.called.sample[large].tolist() == list(range(carriers))
    assert found.genotypes is not None
    assert not found.genotypes.is_common[large].any()  # less than half of the samples
