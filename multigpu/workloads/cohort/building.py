"""Cohorts are built, and samples added and removed: each time a new store takes the name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from multigpu import __version__
from multigpu.cluster.files import check_output, failures_named, folder_beside, replace_folder
from multigpu.errors import UsageError, option, printable_name, several
from multigpu.formats.alignments.files import renamed_as
from multigpu.formats.tables.counts import Counts, Values
from multigpu.formats.tables.counts_zarr import (
    CHUNK,
    CountsStore,
    columns_of,
    is_store,
    write_store,
)
from multigpu.workloads.cnv.notes import fraction_notes
from multigpu.workloads.cnv.samples.cohort import check_same_regions, check_table
from multigpu.workloads.cnv.samples.inputs import check_counting, counting_of_cohort, inputs_of
from multigpu.workloads.cnv.samples.reference_samples import autosomal_correlations
from multigpu.workloads.cohort.request import AddRequest, BuildRequest, RemoveRequest
from multigpu.workloads.count.job import CountJob
from multigpu.workloads.count.options import CountOptions

SUBSET = 20_000  # regions, evenly spread, by which samples are compared with each other
Count = Callable[[CountJob], Counts]  # runs a job that counts alignments


def build(request: BuildRequest, count: Count = CountJob.counts) -> Counts:
    """Make a cohort, and return its counts.

    Raises UsageError and InputError for wrong counts, and where there is something of its name.
    """
    path = str(request.output)
    _check_new(path)
    with folder_beside(path) as new:
        _check_new(path)
        counts, facts = _counts(request, count)
        _publish(new, path, facts, counts)
    return counts


def _check_new(path: str) -> None:
    """Raise UsageError where no folder of this name can be made."""
    if path and Path(path).exists():
        helps = (
            "`multigpu cohort add` adds samples to it" if is_store(path) else "give another name"
        )
        raise UsageError(f"{path}: is there already: {helps}")
    if path == "-":
        raise UsageError("-: a cohort is a folder: give it a name")
    check_output(path.rstrip("/"))


def add(request: AddRequest, count: Count = CountJob.counts) -> Counts:
    """Add samples to a cohort, and return their counts.

    Raises UsageError and InputError for samples that are there already, and for other regions.
    """
    path = str(request.cohort)
    with folder_beside(path) as new:
        store = CountsStore(path)
        counts, _ = _counts(request, count, store)
        if request.rename == "auto":
            counts = replace(counts, regions=renamed_as(counts.regions, store.regions))
        check_same_regions(store.regions, counts.regions, "the cohort", "the new samples")
        if both := [name for name in counts.samples if name in store.samples]:
            raise UsageError(f"{path}: already in the cohort: {several(both)}")
        _publish(new, path, _facts_of(store), counts, store, range(len(store.samples)))
    return counts


def remove(request: RemoveRequest) -> int:
    """Remove samples from a cohort, and return how many are left.

    Raises UsageError for names that it does not have.
    """
    path = str(request.cohort)
    with folder_beside(path) as new:
        store = CountsStore(path)
        for name in request.names:
            if name not in store.samples:
                alike = get_close_matches(name, store.samples)
                hint = f"; did you mean {several(alike)}?" if alike else ""
                raise UsageError(f"{path}: there is no sample {printable_name(name)}{hint}")
        left = [k for k, name in enumerate(store.samples) if name not in request.names]
        if not left:
            raise UsageError(f"{path}: no sample would be left: remove the folder")
        _publish(new, path, _facts_of(store), store.counts(()), store, left)
    return len(left)


def _counts(
    request: BuildRequest | AddRequest, count: Count, store: CountsStore | None = None
) -> tuple[Counts, dict[str, Any]]:
    """Return the counts that are given, checked, and what a store keeps of how they were counted.

    store  the cohort to which they are added
    """
    options = request.part(CountOptions)
    given, others = inputs_of(request.counts_or_bams, None, request.read_length)
    if others is not None:
        raise UsageError("the sample sheet names controls: a cohort is of one group")
    check_counting(request.given - ({"rename"} if store else set()), given, None)
    if store and given.is_alignments:
        options = counting_of_cohort(store, options, request.given)
    opened = given.open(options, request.run, request.client)
    if store and isinstance(opened, CountJob):
        store.check_lengths(given.paths[0], opened.lengths)
    counts = count(opened) if isinstance(opened, CountJob) else opened
    check_table(counts)
    if empty := np.flatnonzero(~counts.values.any(axis=0)).tolist():
        names = several([counts.samples[k] for k in empty])
        raise UsageError(f"without reads, so that nothing can be compared with them: {names}")
    notes = [*counts.notes, *fraction_notes(counts)]
    if given.sexes:
        notes.append(f"sexes in a sample sheet are not kept: `cnv {option('sex')} FILE` gives them")
    counts = replace(counts, notes=tuple(notes))
    facts: dict[str, Any] = {"counting": {}, "references": {}}
    if isinstance(opened, CountJob):
        facts = {"counting": asdict(options.counting), "references": opened.lengths}
    return counts, facts


def _facts_of(store: CountsStore) -> dict[str, Any]:
    return {"counting": store.counting, "references": store.references}


def _publish(
    new: Path,
    path: str,
    facts: Mapping[str, Any],
    more: Counts,
    store: CountsStore | None = None,
    kept: Sequence[int] = (),
) -> None:
    """Write some of a store's samples and then more into a new store, which gets the name `path`.

    facts  `counting` and `references` of `CountsStore`
    """
    rows = np.unique(np.linspace(0, len(more.regions) - 1, SUBSET).astype(np.int64))
    subset = more.values[rows].T
    names: list[str] = []
    regions = more.regions
    if store is not None:
        regions = store.regions
        names = [store.samples[k] for k in kept]
        subset = np.vstack([store.read("subset_counts")[list(kept)], subset])

    def columns() -> Iterator[Values | Path]:
        if store is not None:
            is_same = store.dtype == subset.dtype
            files = (Path(store.path, CHUNK.format(k)) for k in kept)
            yield from files if is_same else (store.read("counts", k) for k in kept)
        yield from columns_of(more)

    alike = autosomal_correlations(regions.take(rows), subset.T)
    arrays = {
        "sample": np.array([*names, *more.samples], np.dtypes.StringDType()),
        "subset": rows,
        "subset_counts": subset,
        "correlation": np.maximum(alike, np.eye(len(alike))).astype(np.float32),
    }
    with failures_named(path):
        write_store(new, regions, columns(), {"program": __version__, **facts}, arrays)
        replace_folder(new, Path(path).resolve())
