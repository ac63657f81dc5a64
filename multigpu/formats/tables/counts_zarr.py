"""Cohorts that are kept: counts as a Zarr store with a chunk for every sample.

A store is never changed: another one takes its place, whose chunks of the same samples are links.
Zarr writes it, so that others can open it. Here it is read without: Zarr takes a while to import,
and all arrays pass through one of its threads.
"""

import json
import os
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, first_line, printable_name
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.storage.stored_streams import is_remote
from multigpu.formats.tables.counts import Counts, Empty, Values
from multigpu.kernels.compiled.parallel import cores, over_spans

KIND, VERSION = "multigpu cohort", 1
NO_COHORT = "is no cohort: `multigpu cohort build` makes one"
ENTRY = "zarr.json"  # by which a folder is known as a store
CHUNK = "counts/c/{}/0"  # the file with the counts of a sample
TOGETHER, READ_TOGETHER = 16, 48  # columns that become rows at a time, and rows columns
LEAST_COPIED = 1 << 14  # regions, for a thread that makes these
DIMENSIONS = {
    "sample": ("sample",),
    "chromosome": ("chromosome",),
    "chrom": ("region",),  # index of `chromosome`
    "start": ("region",),
    "end": ("region",),
    "gene": ("region",),  # only where regions have names
    "gc": ("region",),  # only where it is known
    "counts": ("sample", "region"),
    "subset": ("subset",),  # rows of the regions
    "subset_counts": ("sample", "subset"),
    "correlation": ("sample", "other_sample"),
}


def is_store(path: str) -> bool:
    """Whether a path is the folder of a Zarr store."""
    # A Path fails at a long name.
    return not is_remote(path) and os.path.isfile(os.path.join(path, ENTRY))  # noqa: PTH113, PTH118


class CountsStore:
    """A store that was opened, whose arrays are read when they are wanted.

    samples     names of the samples, in the order of their rows
    counting    rules by which its alignments were counted, by name; empty: not known
    references  bases of the chromosomes in its alignments, by name; empty: not known
    """

    notes: tuple[str, ...] = ()

    def __init__(self, path: str) -> None:
        """Open a store. Raises InputError for what is none, and for one of a later version."""
        if not is_store(path):
            raise InputError(path, NO_COHORT)
        self.path, self._state = path, _state(path)
        with _as_store(path):
            about = json.loads(Path(path, ENTRY).read_bytes())
            facts = about.get("attributes", {})
            if facts.get("kind") != KIND:
                raise InputError(path, NO_COHORT)
            if facts["version"] != VERSION:
                raise InputError(path, f"was made by another version, {facts['program']}")
            self._arrays: Mapping[str, Any] = about["consolidated_metadata"]["metadata"]
            for name in self._arrays:
                rows = self._arrays[name]["shape"][0] if name == "counts" else 1
                if not all(self._file(name, row).exists() for row in range(rows)):
                    raise InputError(path, f"is damaged: a part of `{name}` is missing")
            self.counting: Mapping[str, Any] = facts["counting"]
            self.references: Mapping[str, int] = facts.get("references", {})
            self.samples: tuple[str, ...] = tuple(self.read("sample").tolist())
            self.dtype = np.dtype(self._arrays["counts"]["data_type"])  # int32 or float64

    def _file(self, name: str, row: int = 0) -> Path:
        """Return the file with a row of `counts`, or with all of another array."""
        return Path(self.path, name, "c", str(row), *["0"] * (len(DIMENSIONS[name]) - 1))

    @cached_property
    def regions(self) -> Regions:
        """The regions in which all samples are counted."""
        names, chrom, start, end = map(self.read, ("chromosome", "chrom", "start", "end"))
        genes = tuple(self.read("gene").tolist()) if "gene" in self._arrays else ()
        gc = self.read("gc") if "gc" in self._arrays else None
        with _as_store(self.path):
            return Regions(tuple(names.tolist()), chrom, start, end, genes, gc)

    def check_lengths(self, path: str, lengths: Mapping[str, int]) -> None:
        """Raise InputError where chromosomes of the alignments in `path` have other lengths."""
        for name, length in lengths.items():
            if (known := self.references.get(name, length)) != length:
                problem = (
                    f"{printable_name(name)} has {length:,} bases, and {known:,} in {self.path}"
                )
                raise InputError(path, f"{problem}: is it of another genome?")

    def read(self, name: str, row: int = 0, into: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return an array of the store, of `counts` a row; see `DIMENSIONS`. into: room for it."""
        from numcodecs import Blosc, VLenUTF8
        from numcodecs.checksum32 import CRC32C

        with _as_store(self.path):
            stored = CRC32C(location="end").decode(self._file(name, row).read_bytes())
            shape, kind = (self._arrays[name][fact] for fact in ("shape", "data_type"))
            if kind == "string":
                found: NDArray[Any] = VLenUTF8().decode(Blosc().decode(stored))
            else:
                row_shape = shape[1:] if name == "counts" else shape
                found = np.empty(row_shape, kind) if into is None else into
                if stored[4:8].view("<u4") != found.nbytes:  # as Blosc says
                    raise ValueError(f"`{name}` has another size")
                Blosc().decode(stored, found)
            if _state(self.path) != self._state:
                raise InputError(self.path, "was changed while it was read: run again")
            return found

    def counts(self, chosen: Sequence[int] | None = None, empty: Empty = np.empty) -> Counts:
        """Return the counts of these samples; None: of all. empty: makes large arrays."""
        numbers = range(len(self.samples)) if chosen is None else chosen
        values: Values = empty((len(self.regions), len(numbers)), self.dtype)

        def place(begin: int, stop: int) -> None:
            values[begin:stop, first : first + len(some)] = rows[:, begin:stop].T

        with ThreadPoolExecutor(cores()) as pool:
            for first in range(0, len(numbers), READ_TOGETHER):
                some = numbers[first : first + READ_TOGETHER]
                rows = np.empty((len(some), len(values)), self.dtype)
                list(pool.map(self.read, repeat("counts"), some, rows))
                over_spans(place, len(values), cores(), LEAST_COPIED)
        return Counts(self.regions, tuple(self.samples[number] for number in numbers), values)


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

    columns  int32 or float64[regions] of every sample, or another store's file with them
    facts    attributes beside kind and version
    arrays   `sample`, `subset_counts`, of the type of all counts, and others in `DIMENSIONS`
    """
    import zarr
    from zarr.codecs import BloscCodec, Crc32cCodec

    text = np.dtypes.StringDType()
    arrays = {
        "chromosome": np.array(regions.names, text),
        "chrom": regions.chrom,
        "start": regions.start,
        "end": regions.end,
        **({"gene": np.array(regions.genes, text)} if regions.genes else {}),
        **({"gc": regions.gc} if regions.gc is not None else {}),
        **arrays,
    }
    shape = len(arrays["sample"]), len(regions)
    packed: Any = {"compressors": [BloscCodec(cname="lz4", shuffle="bitshuffle"), Crc32cCodec()]}
    # Zarr warns that consolidated metadata, which xarray wants, are of no version of the format.
    with warnings.catch_warnings(), zarr.config.set({"array.write_empty_chunks": True}):
        warnings.simplefilter("ignore")
        store = zarr.create_group(str(folder), overwrite=True)
        store.attrs.update({"kind": KIND, "version": VERSION, **facts})
        for name, values in arrays.items():
            about: Any = {"chunks": values.shape, "dimension_names": DIMENSIONS[name], **packed}
            store.create_array(name, data=values, **about)
        about = {"chunks": (1, shape[1]), "dimension_names": DIMENSIONS["counts"], **packed}
        kind = arrays["subset_counts"].dtype
        counts = store.create_array("counts", shape=shape, dtype=kind, **about)
        for sample, column in enumerate(columns):
            if isinstance(column, Path):
                _link(column, folder / CHUNK.format(sample))
            else:
                counts[sample] = column
        zarr.consolidate_metadata(str(folder))


def _link(file: Path, name: Path) -> None:
    """Give a file a second name, or copy it where the file system cannot."""
    name.parent.mkdir(parents=True)
    try:
        name.hardlink_to(file)
    except OSError:
        shutil.copyfile(file, name)


def _state(path: str) -> tuple[int, int]:
    """Return what changes where another store takes the name of one."""
    with _as_store(path):
        status = Path(path, ENTRY).stat()
        return status.st_ino, status.st_mtime_ns


@contextmanager
def _as_store(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
        problem = f"cannot be read as a cohort: {first_line(error)}"
        raise InputError(path, problem) from error
