"""New samples are compared with those of a cohort that vary as they do, and with both sexes."""

from dataclasses import replace

import numpy as np
import pytest
from support.cohorts import of_sexes

import multigpu
from multigpu import Counts
from multigpu.formats.tables.counts_zarr import CountsStore
from multigpu.workloads.cnv.samples.cohort import Cohort
from multigpu.workloads.cnv.samples.reference_samples import NEAREST, OF_A_SEX, nearest_controls

BATCH, MEN = 40, 60  # samples of each batch; in a cohort of two, of which the first is of women


def some(counts: Counts, columns: slice) -> Counts:
    return Counts(counts.regions, counts.samples[columns], counts.values[:, columns].copy())


@pytest.fixture(scope="module")
def every() -> Counts:
    """Counts of two batches whose regions vary in their own ways, and of three new samples."""
    sexes = ("female",) * BATCH + ("male",) * MEN + ("female", "male", "female")
    counts = of_sexes(sexes=sexes, coverage=400)
    batch = np.array([0] * BATCH + [1] * MEN + [0, 1, 1])
    effects = np.exp(np.random.default_rng(5).normal(0, 0.2, (len(counts.regions), 2)))
    return replace(counts, values=np.rint(counts.values * effects[:, batch]).astype(np.int32))


@pytest.fixture(scope="module")
def path(every: Counts, tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("cohort") / "c.zarr"
    multigpu.build_cohort(some(every, slice(BATCH + MEN)), output=place)
    return str(place)


@pytest.mark.parametrize("case", range(3))
def test_controls__are_alike_and_some_of_each_sex(case: int, every: Counts, path: str) -> None:
    store, cases = CountsStore(path), some(every, slice(BATCH + MEN + case, BATCH + MEN + case + 1))
    sexes = ("female", *("female",) * BATCH, *("male",) * MEN)
    about = replace(Cohort.of(cases, store), sexes=sexes, ploidy=tuple(range(1 + BATCH + MEN)))
    found, known = nearest_controls(cases, store, about, "auto")
    numbers = [store.samples.index(name) for name in found.samples]
    assert known.controls == found.samples == tuple(sorted(found.samples, key=every.samples.index))
    assert (found.values == every.values[:, numbers]).all()
    assert known.sexes[1:] == tuple(sexes[k + 1] for k in numbers)
    assert known.ploidy is not None
    assert known.ploidy[1:] == tuple(k + 1 for k in numbers)
    of_batch = sum(k < BATCH for k in numbers) if case == 0 else sum(k >= BATCH for k in numbers)
    assert of_batch == NEAREST
    assert len(numbers) == NEAREST + OF_A_SEX  # each batch is of one sex


def test_all__are_compared_as_controls_are(every: Counts, path: str) -> None:
    new = some(every, slice(BATCH + MEN, None))
    hmm = {"preset": "genome", "gpus": "none", "keep_matrices": False}
    kept = multigpu.cnv(new, cohort=path, reference_samples="all", **hmm)
    controls = some(every, slice(BATCH + MEN))
    manual = multigpu.cnv(new, controls=controls, model="reference", reference_samples="all", **hmm)
    assert kept.segmentation.equals(manual.segmentation)
    few = multigpu.cnv(new, cohort=path, **hmm)
    assert NEAREST < len(few.controls) < BATCH + MEN
    assert few.sex[:3] == ("female", "male", "female")
