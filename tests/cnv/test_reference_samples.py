"""Reference samples: with whom a sample is compared, and how deep it was read."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cohorts import of_sexes, planted

import multigpu
from multigpu import Counts
from multigpu.formats.tables.counts_zarr import CountsStore
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.plan import CnvSpan, plan_spans
from multigpu.workloads.cnv.samples.cohort import Cohort
from multigpu.workloads.cnv.samples.reference_samples import (
    NEAREST,
    OF_A_SEX,
    ReferenceSamples,
    nearest_controls,
    sampled_rows,
)


def references(values: Any, cases: int = 0, **options: Any) -> ReferenceSamples:
    """Return the reference samples of all columns; of controls where some are cases only."""
    columns = values.shape[1]
    how = CnvOptions.of("reference" if cases else "cn.mops", "genome", **options)
    return ReferenceSamples.of(values[:, None], cases or columns, how)


def of_batches(columns: int = 24, regions: int = 800) -> Any:
    """Return counts of samples that vary alike with the other samples of their batch of three."""
    rng = np.random.default_rng(1)
    batch = np.exp(rng.normal(0, 0.15, (regions, 3)))[:, np.arange(columns) % 3]
    return rng.poisson(300 * batch * np.linspace(0.5, 2, columns)).astype(np.int32)


def test_nearest__are_those_of_the_batch() -> None:
    found = references(of_batches(), reference_samples=7)
    assert found.count == 7
    columns = np.arange(24)[:, None]
    assert (found.nearest[:, :7] % 3 == columns % 3).all()
    assert (found.nearest[:, :-1] != columns).all()
    assert (found.correlation > 0.5).all()
    np.testing.assert_allclose(found.sizes / found.sizes[0], np.linspace(1, 4, 24), rtol=0.05)
    np.testing.assert_allclose((found.sizes * found.factors), found.sizes.mean())
    assert (references(of_batches(), norm=0).sizes == 1).all()


@pytest.mark.parametrize(
    ("columns", "cases", "count"), [(2, 0, 2), (3, 0, 3), (4, 0, 3), (24, 0, 10),
                                    (2, 1, 1), (3, 1, 2), (4, 1, 3), (24, 4, 10)],
)  # fmt: skip
def test_count__of_few_samples_and_controls(columns: int, cases: int, count: int) -> None:
    found = references(of_batches(columns), cases)
    assert found.count == count
    assert (found.nearest[:, :count] >= cases).all()
    assert (np.abs(found.correlation) <= 1).all()


@given(st.sets(st.integers(0, 23)), st.sampled_from([0, 4]), st.sampled_from([1, 5, 30]))
def test_model__of_some_has_references_among_them(chosen: set[int], cases: int, count: int) -> None:
    found = references(of_batches(regions=60), cases, reference_samples=count)
    columns = tuple(sorted(chosen | {0, 23}))
    usual = tuple(1 if k % 2 else 2 for k in columns)
    place = {"block": 0, "chrom": 0, "name": "chrX", "first": 0, "stop": 60}
    span = found.ordered(CnvSpan(**place, columns=columns, copies=usual, ploidy=usual))
    assert span.columns is not None
    assert sorted(span.columns) == [*columns]
    assert span.copies == span.ploidy == tuple(1 if k % 2 else 2 for k in span.columns)
    order, copies = np.array(span.columns), np.array(span.copies, np.int8)
    model = found.model(order, copies)
    samples = order[: model.samples]
    # Cases come first, as they do among all columns.
    wanted = [k for k in columns if k < (cases or 24)]
    assert samples[: len(wanted)].tolist() == wanted
    chosen_ones = order[model.references]
    assert (chosen_ones >= cases).all()
    for own, each in zip(samples.tolist(), chosen_ones.tolist(), strict=True):
        assert len({*each}) == len(each) == min(count, 64, model.references.shape[1])
        assert own not in each or len(columns) <= 3 or cases
    assert (model.copies == [copies[: model.samples], [2] * model.samples]).all()
    # What a sample should have with its usual copies is in proportion to them.
    np.testing.assert_allclose(model.sizes[0] / model.sizes[1], model.copies[0] / 2)
    np.testing.assert_allclose(model.sizes[1], 1 / model.weights[1][: model.samples])


@pytest.mark.parametrize("sizes", [(30, 20, 1), (90_000, 70_001, 5)])
def test_sampled_rows__lie_evenly_on_the_autosomes(sizes: tuple[int, ...]) -> None:
    chromosomes = dict(zip(("chr1", "chr2", "chrX"), sizes, strict=True))
    counts = planted(chromosomes, samples=2)
    cohort = Cohort.of(counts, None)
    cohort = type(cohort)(**{**vars(cohort), "sexes": ("male", "female")})
    rows = sampled_rows(plan_spans(cohort, CnvOptions()))
    autosomes = sizes[0] + sizes[1]
    assert rows.max() < autosomes
    assert len(np.unique(rows)) == rows.size
    assert (np.diff(rows, axis=1) == 1).all()
    assert rows.shape == ((autosomes, 1) if autosomes < 20_000 else (20_000, 8))
    assert np.diff(rows[:, 0]).max() <= 2 * rows.shape[1]


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
