"""Regions in which a change is common."""

from typing import Any

import numpy as np
import pytest
from support.cohorts import planted

from multigpu import Counts, cnv
from multigpu.formats.alignments.regions import Regions
from multigpu.kernels.hmm.types import ExpectedCounts
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.samples.reference_samples import ReferenceSamples
from multigpu.workloads.cnv.stages.common_regions import CommonRegions

REGIONS = 6000
SAMPLES, TARGETS, LOST = 24, 300, slice(100, 115)


def common(
    events: Any, samples: int = 20, breaks: tuple[int, ...] = (), zeros: slice | None = None
) -> tuple[CommonRegions, Any]:
    """Return the common regions of a chromosome, and its counts."""
    values = planted({"chr1": REGIONS}, events, samples, batches=4).values
    if zeros is not None:
        values[zeros] = 0
    options = CnvOptions.of("cn.mops", "genome")
    known = ReferenceSamples.of(values[:, None], samples, options)
    model = known.model(np.arange(samples), np.full(samples, 2, np.int8))
    rows = np.isin(np.arange(REGIONS), breaks)
    return CommonRegions.of(values, model, known.depths, rows), values


@pytest.mark.parametrize("times", [0.01, 0.5, 1.5])
@pytest.mark.parametrize("carriers", [7, 10, 14])
def test_common__are_those_planted_with_counts_of_two_copies(carriers: int, times: float) -> None:
    found, values = common([("chr1", 400, 440, range(carriers), times)])
    assert abs(found.rows.min() - 400) <= 1
    assert abs(found.rows.max() - 439) <= 1
    assert (np.diff(found.rows) == 1).all()
    expected = values[found.rows] / np.where(np.arange(20) < carriers, times, 1)
    known = slice(carriers if times < 0.1 else 0, None)  # who has no copy tells no level
    ratios = found.mean[:, known].sum(axis=0) / expected[:, known].sum(axis=0)
    np.testing.assert_allclose(ratios, 1, atol=0.1)
    spans = np.array([[0, 300], [400, 440], [390, 410]]).T
    first, stop = spans
    np.testing.assert_allclose(found.share_of(first, stop), [0, 1, 0.5], atol=0.06)
    unsure = found.share_of(first, stop, only_unsure=True)
    assert (unsure <= found.share_of(first, stop)).all()


@pytest.mark.parametrize(("events", "samples", "zeros"), [
    ([], 20, None),
    ([("chr1", 400, 440, [3], 0.5)], 20, None),
    ([("chr1", 400, 440, range(2), 0.01), ("chr1", 600, 640, [5], 2.0)], 20, None),
    ([("chr1", 400, 440, range(3), 0.5)], 4, None),  # too few samples
    ([], 20, slice(300, 600)),
    ([], 20, slice(0, REGIONS - 2)),
    ([("chr1", 400, 440, range(10), 0.5)], 20, slice(0, REGIONS)),
])  # fmt: skip
def test_none__with_few_changes_or_reads(events: Any, samples: int, zeros: slice | None) -> None:
    assert common(events, samples, zeros=zeros)[0].rows.tolist() == []


def test_breaks__end_common_regions() -> None:
    found, _ = common([("chr1", 400, 440, range(10), 0.5)], breaks=(400, 440))
    assert found.rows.tolist() == [*range(400, 440)]


def test_replace_in__sets_expected_counts_of_some_rows() -> None:
    found, _ = common([("chr1", 400, 440, range(10), 0.5)])
    rows = np.arange(390, 420)
    expected = ExpectedCounts(np.ones((30, 20), np.float32), np.zeros(30, np.float32))
    found.replace_in(expected, rows)
    inside = np.isin(rows, found.rows)
    assert (expected.mean[~inside] == 1).all()
    assert (expected.mean[inside] == found.mean[np.isin(found.rows, rows)]).all()
    assert (expected.dispersion > 0).tolist() == inside.tolist()


@pytest.mark.parametrize(
    ("preset", "carriers"), [*(("panel", n) for n in (3, 6, 7)), ("genome", 7)]
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


def test_batches__that_differ_everywhere_share_no_change() -> None:
    random = np.random.default_rng(3)
    depth = 600 * random.lognormal(0, 0.4, (TARGETS, 1)) * np.ones(SAMPLES)
    batch = np.repeat(random.lognormal(0, 0.15, (TARGETS, 3)), SAMPLES // 3, axis=1)
    counts = random.poisson(depth * batch).astype(np.int32)
    regions = Regions.of([("chr1", 3000 * k, 3000 * k + 200) for k in range(TARGETS)])
    names = tuple(f"s{k}" for k in range(SAMPLES))
    assert len(cnv(Counts(regions, names, counts), preset="panel").called) < SAMPLES // 4
