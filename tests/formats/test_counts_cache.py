"""Counts that are kept, and when they are made again."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bams import random_rows, write_alignments
from support.counted import ROWS, in_windows

from multigpu import count
from multigpu.errors import UsageError
from multigpu.formats.alignments.regions import windows
from multigpu.formats.tables.counts_cache import CountsCache
from multigpu.workloads.count.options import CountOptions


def test_cache__counts_only_what_is_new(tmp_path: Path, some: str) -> None:
    other = write_alignments(tmp_path / "other.bam", random_rows(300, seed=3))
    cache = tmp_path / "cache"
    first = count([some, other], window=7000, cache=cache)
    assert len(list(cache.iterdir())) == 2
    for path in cache.iterdir():
        with np.load(path) as kept:
            counts = kept["counts"]
        np.savez(path.with_suffix(""), counts=counts + 1000)  # so that it shows
    third = write_alignments(tmp_path / "third.bam", random_rows(300, seed=4))
    again = count([some, third, other], window=7000, cache=cache)
    assert (again.values[:, [0, 2]] == first.values + 1000).all()
    assert (again.values[:, 1] == count(third, window=7000).values[:, 0]).all()
    assert len(list(cache.iterdir())) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"window": 7001}, {"min_mapq": 2}, {"remove_duplicates": True}, {"read_width": 2},
        {"get_width": True}, {"stranded_start": True}, {"chromosomes": ["chr2", "chr1"]},
        {"compat_r": True, "window": 10_000},
    ],
)  # fmt: skip
def test_cache__knows_windows_and_filters(
    tmp_path: Path, some: str, change: dict[str, Any]
) -> None:
    options = {"window": 7000, "cache": tmp_path / "cache"}
    count(some, **options)
    if change.get("compat_r"):
        count(some, **(options | {"window": 10_000}))
    before = len(list((tmp_path / "cache").iterdir()))
    changed = options | change
    found = count(some, **changed)
    assert len(list((tmp_path / "cache").iterdir())) == before + 1
    assert (found.values == count(some, **(changed | {"cache": None})).values).all()


def test_cache__knows_the_content_and_not_the_name(tmp_path: Path, some: str) -> None:
    cache = tmp_path / "cache"
    count(some, cache=cache)
    moved = Path(some).rename(tmp_path / "moved.bam")
    Path(some + ".bai").rename(tmp_path / "moved.bam.bai")
    count(moved, cache=cache)
    assert len(list(cache.iterdir())) == 1
    write_alignments(moved, ROWS[1:])
    assert count(moved, cache=cache).values.sum() < sum(in_windows(ROWS, 7000)) + 1
    assert len(list(cache.iterdir())) == 2


def test_cache__of_a_file_that_differs_where_no_piece_is_compared_is_not_used(
    tmp_path: Path, some: str
) -> None:
    """Its time is another one, and so it is counted again."""
    cache = CountsCache(
        str(tmp_path / "cache"), windows([("chr1", 60_000)], 1000), [0], CountOptions().counting
    )
    large = tmp_path / "large.bam"
    large.write_bytes(Path(some).read_bytes().ljust(12 << 20, b"\0"))
    cache.put(str(large), np.arange(60, dtype=np.int32))
    assert cache.get(str(large)) is not None
    with large.open("r+b") as file:
        file.seek(3 << 20)
        file.write(b"N")
    assert cache.get(str(large)) is None


def test_cache__what_is_damaged_or_of_other_regions_is_not_there(tmp_path: Path, some: str) -> None:
    regions, counts = windows([("chr1", 60_000)], 1000), np.arange(60, dtype=np.int32)
    cache = CountsCache(str(tmp_path / "cache"), regions, [0], CountOptions().counting)
    cache.put(some, counts)
    (entry,) = (tmp_path / "cache").iterdir()
    good = entry.read_bytes()
    for at in range(len(good)):
        entry.write_bytes(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
        found = cache.get(some)
        assert found is None or (found == counts).all()
    cache.put(some, counts[1:])
    assert cache.get(some) is None


def npy(kind: str, shape: str, data: bytes = b"") -> bytes:
    """An array as .npy has it, whatever its header says."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head + data


MEMBERS = [
    b"no array",
    npy("<i4", "(16"),
    npy("<i4", "(1073741824,)"),
    npy("a4", "(16,)", bytes(64)),  # of which NumPy warns
]


@pytest.mark.parametrize("damage", [b"", b"nothing", b"PK\x03\x04", "cut", "negative", *range(4)])
def test_cache__what_is_no_counts_is_counted_and_kept_again(
    tmp_path: Path, some: str, damage: bytes | str | int
) -> None:
    cache = tmp_path / "cache"
    right = count(some, window=7000, cache=cache)
    (path,) = cache.iterdir()
    if isinstance(damage, int):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("counts.npy", MEMBERS[damage])
    elif damage == "negative":
        np.savez(path, counts=-right.values[:, 0])
    else:
        path.write_bytes(damage if isinstance(damage, bytes) else path.read_bytes()[:-5])
    assert (count(some, window=7000, cache=cache).values == right.values).all()
    with np.load(path) as kept:
        assert (kept["counts"] == right.values[:, 0]).all()


def test_cache__is_made_for_the_user_and_refused_where_everybody_may_write(tmp_path: Path) -> None:
    regions, options = windows([("chr1", 60_000)], 1000), CountOptions().counting
    folder = tmp_path / "cache"
    CountsCache(str(folder), regions, [0], options)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o775)  # a group that shares it
    CountsCache(str(folder), regions, [0], options)
    folder.chmod(0o777)
    with pytest.raises(UsageError, match="cache: no folder for counts: everybody may write to it"):
        CountsCache(str(folder), regions, [0], options)
