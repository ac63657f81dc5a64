"""Cohorts that are kept: counts as a Zarr store with a chunk for every sample.

A store is never changed: another one takes its place, whose chunks of the same samples are links.
"""

import os
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, first_line
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.storage.stored_streams import is_remote
from multigpu.formats.tables.counts import Counts, Empty, Values

KIND, VERSION = "multigpu cohort", 1
ENTRY = "zarr.json"  # by which a folder is known as a store
TOGETHER = 8  # samples that a thread reads before it turns them into columns
DIMENSIONS = {
    "sample": ("sample",),
    "chromosome": ("chromosome",),
    "chrom": ("region",),  # index of `chromosome`
    "start": ("region",),
    "end": ("region",),
    "gene": ("region",),
    "counts": ("sample", "region"),
    "subset": ("subset",),  # rows of `region`
    "subset_counts": ("sample", "subset"),
    "correlation": ("sample", "other_sample"),
}


def is_store(path: str) -> bool:
    """Whether a path is the folder of a Zarr store."""
    return not is_remote(path) and Path(path, ENTRY).is_file()


@dataclass(frozen=True, eq=False, kw_only=True)
class CountsStore:
    """A store that was opened. Its counts are read by and by.

    samples   their names, in the order of their rows
    counting  rules by which its alignments were counted, by name; empty: not known
    group     the store, as Zarr has it
    """

    path: str
    regions: Regions
    samples: tuple[str, ...]
    counting: Mapping[str, Any]
    group: Any

    @classmethod
    def open(cls, path: str) -> "CountsStore":
        """Open a store. Raises InputError for what is none, and for one of a later version."""
        import zarr

        with _as_store(path):
            group = zarr.open_group(path, mode="r")
            facts = group.attrs.asdict()
            if facts.get("kind") != KIND:
                raise InputError(path, "is no cohort: `multigpu cohort build` makes one")
            if facts["version"] > VERSION:
                raise InputError(path, f"was made by a later version, {facts['program']}")
            names, genes = (
                tuple(group[name][:].tolist()) if name in group else ()
                for name in ("chromosome", "gene")
            )
            chrom, start, end = (group[name][:] for name in ("chrom", "start", "end"))
            return cls(
                path=path,
                regions=Regions(names, chrom, start, end, genes),
                samples=tuple(group["sample"][:].tolist()),
                counting=facts["counting"],
                group=group,
            )

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the counts, int32 or float64."""
        found: np.dtype[Any] = self.group["counts"].dtype
        return found

    def chunk(self, sample: int) -> Path:
        """Return the file with the counts of a sample."""
        return chunk_path(Path(self.path), sample)

    def array(self, name: str) -> NDArray[Any]:
        """Return an array of the store; see `DIMENSIONS`."""
        with _as_store(self.path):
            found: NDArray[Any] = self.group[name][:]
            return found

    def counts(self, empty: Empty = np.empty, samples: Sequence[int] | None = None) -> Counts:
        """Return the counts of samples, given by their numbers; None: of all.

        empty: makes large arrays
        """
        numbers = range(len(self.samples)) if samples is None else samples
        values: Values = empty((len(self.regions), len(numbers)), self.dtype)
        entry = Path(self.path).stat().st_ino

        def place(first: int) -> None:
            rows = [self._row(number) for number in numbers[first : first + TOGETHER]]
            values[:, first : first + TOGETHER] = np.array(rows).T

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool, _as_store(self.path):
            list(pool.map(place, range(0, len(numbers), TOGETHER)))
            if Path(self.path).stat().st_ino != entry:
                raise InputError(self.path, "was changed while it was read: run again")
            return Counts(self.regions, tuple(self.samples[n] for n in numbers), values)

    def _row(self, sample: int) -> Values:
        # Zarr takes a chunk that is missing for zeros.
        if not self.chunk(sample).is_file():
            raise InputError(
                self.path, f"is damaged: there are no counts of {self.samples[sample]}"
            )
        row: Values = self.group["counts"][sample]
        return row


def read_store(path: str, empty: Empty = np.empty) -> Counts:
    """Return all counts of a store. Raises InputError for what is none."""
    return CountsStore.open(path).counts(empty)


def chunk_path(store: Path, sample: int) -> Path:
    """Return the file in a store with the counts of a sample."""
    return store / "counts" / "c" / str(sample) / "0"


def columns_of(counts: Counts) -> Iterator[Values]:
    """Yield the counts of each sample."""
    for first in range(0, len(counts.samples), TOGETHER):
        yield from counts.values[:, first : first + TOGETHER].T.copy()


def write_store(
    folder: Path,
    regions: Regions,
    columns: Iterable[Values | Path],
    facts: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a store into an empty folder.

    columns  int32 or float64[regions] of every sample, or the file with them in another store
    facts    attributes beside kind and version
    arrays   `sample` and others in `DIMENSIONS`; the type of `subset_counts` is that of the counts
    """
    import zarr
    from zarr.codecs import BloscCodec, Crc32cCodec

    text = np.dtypes.StringDType()
    all_arrays = {
        "chromosome": np.array(regions.names, text),
        "chrom": regions.chrom,
        "start": regions.start,
        "end": regions.end,
        **({"gene": np.array(regions.genes, text)} if regions.genes else {}),
        **arrays,
    }
    kind, samples = arrays["subset_counts"].dtype, len(arrays["sample"])
    packed = BloscCodec(cname="lz4", shuffle="bitshuffle", typesize=kind.itemsize)
    compressors = [packed, Crc32cCodec()]
    store = zarr.create_group(str(folder), overwrite=True)
    store.attrs.update({"kind": KIND, "version": VERSION, **facts})
    for name, values in all_arrays.items():
        store.create_array(name, data=values, chunks=values.shape, dimension_names=DIMENSIONS[name])
    counts = store.create_array(
        "counts",
        shape=(samples, len(regions)),
        chunks=(1, len(regions)),
        dtype=kind,
        compressors=compressors,
        config={"write_empty_chunks": True},
        dimension_names=DIMENSIONS["counts"],
    )
    for sample, column in enumerate(columns):
        if isinstance(column, Path):
            _link(column, chunk_path(folder, sample))
        else:
            counts[sample] = column
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as in `matrices.create`
        zarr.consolidate_metadata(str(folder))


def _link(file: Path, name: Path) -> None:
    """Give a file a second name, or copy it where the file system cannot."""
    name.parent.mkdir(parents=True)
    try:
        name.hardlink_to(file)
    except OSError:
        shutil.copyfile(file, name)


@contextmanager
def _as_store(path: str) -> Iterator[None]:
    """Raise what is wrong with a store as InputError."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, IndexError) as error:
        problem = f"cannot be read as a cohort: {first_line(error)}"
        raise InputError(path, problem) from error
