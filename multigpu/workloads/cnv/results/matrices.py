"""Matrices of a run as a Zarr store with coordinates; `xarray.open_zarr` reads it.

Workers write the chunks that lie in their chromosome. Chunks at its ends, which it shares with its
neighbours, are joined and written by the client.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.files import failures_named, sync_file_system
from multigpu.formats.alignments.regions import Regions
from multigpu.workloads.cnv.records import Matrices, Pieces

if TYPE_CHECKING:
    import xarray as xr

CHUNK_BYTES = 4 << 20  # of the widest matrix with a column for every sample

Names = Sequence[str]
DIMENSIONS = {
    "normalized": ("region", "sample"),
    "sini": ("region", "sample"),
    "ini": ("region",),
    "copy_number": ("region", "sample"),
    "lambda": ("region", "class"),
    "alpha": ("region", "class"),
    "posterior": ("region", "class", "sample"),
}
DTYPES = {"copy_number": np.dtype(np.int8)}  # the others are float64


def names(posterior: bool) -> tuple[str, ...]:
    """Return the names of the matrices of a run."""
    return tuple(name for name in DIMENSIONS if posterior or name != "posterior")


def chunk_rows(samples: int) -> int:
    """Return the regions in a chunk: a power of two, by the number of samples alone."""
    return 1 << max(6, (CHUNK_BYTES // (8 * samples)).bit_length() - 1)


def create(path: Path, regions: Regions, samples: Names, classes: Names, kept: Names) -> None:
    """Create a store with coordinates, and matrices whose rows are still to be written."""
    import zarr

    sizes = {"region": len(regions), "sample": len(samples), "class": len(classes)}
    chunks = {**sizes, "region": chunk_rows(len(samples))}
    with failures_named(path.name):
        store = zarr.create_group(str(path), overwrite=True)
        store.attrs["coordinates"] = "chrom start end"  # so that xarray takes them as such
        for name, (dimension, values) in _coordinates(regions, samples, classes).items():
            store.create_array(name, data=values, dimension_names=[dimension])
        for name in kept:
            dimensions = DIMENSIONS[name]
            store.create_array(
                name,
                shape=[sizes[d] for d in dimensions],
                chunks=tuple(chunks[d] for d in dimensions),
                dtype=DTYPES.get(name, np.dtype(np.float64)),
                dimension_names=dimensions,
            )
        # xarray asks for consolidated metadata, of which version 3 of the format warns.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zarr.consolidate_metadata(str(path))
        sync_file_system(path)  # as in `write`


def _coordinates(
    regions: Regions, samples: Names, classes: Names
) -> dict[str, tuple[str, NDArray[Any]]]:
    text = np.dtypes.StringDType()
    return {
        "sample": ("sample", np.array(samples, text)),
        "class": ("class", np.array(classes, text)),
        "chrom": ("region", np.array(regions.names, text)[regions.chrom]),
        "start": ("region", regions.start),
        "end": ("region", regions.end),
    }


def write(path: Path, first: int, matrices: Matrices, samples: int) -> Pieces:
    """Write the whole chunks among these rows; return the rows that are left at either end."""
    rows = chunk_rows(samples)
    count = len(next(iter(matrices.values())))
    begin, end = -(-first // rows) * rows, (first + count) // rows * rows
    if begin >= end:
        return [(first, matrices)]
    with failures_named(path.name):
        whole = slice(begin - first, end - first)
        _put(path, begin, {name: values[whole] for name, values in matrices.items()})
        sync_file_system(path)  # before a journal says that they are there
    ends = ((0, begin - first), (end - first, count))
    # Copies: a view would keep the rows around these in memory.
    return [
        (first + a, {name: values[a:b].copy() for name, values in matrices.items()})
        for a, b in ends
        if a < b
    ]


def write_rest(path: Path, pieces: Pieces) -> None:
    """Write the rows that workers left: each chunk once."""
    groups: list[Pieces] = []  # pieces that follow each other
    stop = -1
    for first, matrices in sorted(pieces, key=lambda piece: piece[0]):
        if first != stop:
            groups.append([])
        groups[-1].append((first, matrices))
        stop = first + len(next(iter(matrices.values())))
    with failures_named(path.name):
        for group in groups:
            _put(path, group[0][0], joined(group))


def joined(pieces: Sequence[tuple[int, Matrices]]) -> Matrices:
    """Return the matrices of all chromosomes, joined."""
    ordered = [rows for _, rows in sorted(pieces, key=lambda piece: piece[0])]
    names_kept = ordered[0] if ordered else {}
    return {name: np.concatenate([rows[name] for rows in ordered]) for name in names_kept}


def _put(path: Path, first: int, matrices: Matrices) -> None:
    import zarr

    for name, values in matrices.items():
        array = zarr.open_array(str(path), path=name, mode="r+")
        array[first : first + len(values)] = values


def dataset(matrices: Matrices, regions: Regions, samples: Names, classes: Names) -> "xr.Dataset":
    """Return the matrices in memory, with their coordinates."""
    import xarray as xr

    variables = {name: (DIMENSIONS[name], values) for name, values in matrices.items()}
    return xr.Dataset(variables, _coordinates(regions, samples, classes))
