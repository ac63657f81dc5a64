"""Inputs that were changed between two runs are not taken for the same."""

import gzip
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from threading import Thread
from typing import Any

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from support.cohorts import cnv_job, cohort

import multigpu
from multigpu import Counts, InputError, UsageError
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.molecules.pockets import Pocket, read_pocket
from multigpu.formats.storage.fingerprints import digest
from multigpu.kernels.maps import Receptor
from multigpu.workloads.cnv.options import KeptResults
from multigpu.workloads.dock.simulate import ligands, pocket

READS = "".join(
    f"@r{i}\n{'ACGTTGCA'[i % 8 :]}GGATTACAGG\n+\n{'I' * (18 - i % 8)}\n" for i in range(60)
)
SIGNATURES = ">a\nGGATTACAACGT\n>b\nGGATTACAGG\n>c\nGGATTACA\n"
QUATERNIONS = "1 0 0 0\n0.5 0.5 0.5 0.5\n"
ONE = {"gpus": "none", "threads": 1}


@dataclass
class Inputs:
    """Files of a run, and the run: `begin` and `resume` return its rows so far."""

    folder: Path
    run: Callable[..., Any]

    def begin(self) -> None:
        """Start, and stop with the first part in the journal."""
        rows = iter(self.run(journal=self.folder / "journal"))
        next(rows)
        rows.close()
        assert (self.folder / "journal").exists()

    def resume(self) -> list[Any]:
        return list(self.run(journal=self.folder / "journal", resume=True))

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))


@pytest.fixture
def scan(tmp_path: Path) -> Inputs:
    for name in ("one.fq", "two.fq"):
        (tmp_path / name).write_text(READS)
    (tmp_path / "s.fa").write_text(SIGNATURES)

    def run(names: tuple[str, ...] = ("one.fq", "two.fq"), place: str = "", **more: Any) -> Any:
        samples = [name if "://" in name else f"{place}{tmp_path}/{name}" for name in names]
        return multigpu.scan(samples, tmp_path / "s.fa", max_chunk_bytes=400, **ONE, **more)

    return Inputs(tmp_path, run)


@pytest.fixture
def dock(tmp_path: Path) -> Inputs:
    with (tmp_path / "l.sdf").open("wb") as out:
        ligands(out, count=20, min_atoms=5, max_atoms=8, seed=1)
    with (tmp_path / "p.npz").open("wb") as out:
        pocket(out, points=6, spacing=1.0, wells=3, seed=1)
    (tmp_path / "q.txt").write_text(QUATERNIONS)

    def run(ligands: str = f"{tmp_path}/l.sdf", **more: Any) -> Any:
        how = {"rotation_file": tmp_path / "q.txt", "max_chunk_bytes": 400, **ONE}
        return multigpu.dock(ligands, tmp_path / "p.npz", **how, **more)

    return Inputs(tmp_path, run)


def refuses(inputs: Inputs, what: str, **more: Any) -> None:
    with pytest.raises(UsageError, match=f"cannot be resumed: {what}"):
        list(inputs.run(journal=inputs.folder / "journal", resume=True, **more))


@pytest.mark.parametrize("change", [
    ("ACGT\n>b\n", "\n>b\nACGT"),  # cut otherwise: the same letters, the same names
    ("GATTACA", "GATTACC"), (">a", ">d"), (">c\nGGATTACA\n", ""),
    ("\n>c\nGGATTACA\n", "\n>c\nGGATTACA\n>e\nA\n"),
])  # fmt: skip
def test_scan__with_other_signatures_is_refused(scan: Inputs, change: tuple[str, str]) -> None:
    scan.begin()
    scan.edit("s.fa", *change)
    refuses(scan, "signatures was ")


def test_scan__with_a_changed_or_touched_sample_is_refused(scan: Inputs) -> None:
    scan.begin()
    path = scan.folder / "one.fq"
    before = path.stat()
    scan.edit("one.fq", "GGATTACAGG", "GGATTACAGC")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    refuses(scan, f"input {path} was ")
    scan.edit("one.fq", "GGATTACAGC", "GGATTACAGG")
    refuses(scan, f"input {path} was ")  # its time is another one
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert scan.resume()


@pytest.mark.parametrize("names", [("two.fq", "one.fq"), ("one.fq", "two.fq", "one.fq")])
def test_scan__of_files_in_another_order_is_refused(scan: Inputs, names: tuple[str, ...]) -> None:
    scan.begin()
    refuses(scan, "inputs in this order was ", names=names)


def test_scan__of_which_a_later_sample_was_damaged_keeps_the_files_before(scan: Inputs) -> None:
    names = [f"{n}.fq.gz" for n in range(4)]
    for name in names:
        (scan.folder / name).write_bytes(gzip.compress(READS.encode() * 30))
    whole = [row.sample for row in scan.run(names=names)]
    good = (scan.folder / names[2]).read_bytes()
    (scan.folder / names[2]).write_bytes(good[:-9])
    with pytest.raises(InputError, match=rf"{names[2]}: gzip data ends early"):
        list(scan.run(names=names, journal=scan.folder / "journal"))
    (scan.folder / names[2]).write_bytes(good)
    result = scan.run(names=names, journal=scan.folder / "journal", resume=True)
    assert [row.sample for row in result] == whole
    assert 2 * result._job.stats.resumed == result._job.stats.chunks


@pytest.mark.parametrize("wrong", ["a_R2.fq", "b_R2.fq"])
def test_scan__keeps_a_journal_for_the_pairs_before_the_first_wrong_one(
    scan: Inputs, caplog: pytest.LogCaptureFixture, wrong: str
) -> None:
    names = ("a_R1.fq", "a_R2.fq", "b_R1.fq", "b_R2.fq")
    for name in names:
        (scan.folder / name).write_text(READS)
    scan.edit(wrong, "@r59", "@x59")
    with pytest.raises(InputError, match="their names differ"):
        list(scan.run(names, journal=scan.folder / "journal"))
    is_kept = wrong == "b_R2.fq"  # else nothing stands before it
    assert (scan.folder / "journal").exists() == is_kept
    assert ("finished chunks are kept" in caplog.text) == is_kept
    scan.edit(wrong, "@x59", "@r59")
    result = scan.run(names, journal=scan.folder / "journal", resume=True)
    assert len([row for batch in result for row in batch.sample]) > 0
    assert (result._job.stats.resumed > 0) == is_kept


@pytest.mark.parametrize("name", ["grid", "shape", "origin", "spacing"])
def test_dock__in_another_pocket_is_refused(dock: Inputs, name: str) -> None:
    dock.begin()
    path = dock.folder / "p.npz"
    with np.load(path) as kept:
        grid = dict(kept)
    if name == "shape":  # the same numbers in the same order
        grid["grid"] = grid["grid"].reshape(4, 9, 6)
    else:
        grid[name] = grid[name] + 0.25
    np.savez(path, **grid)
    refuses(dock, "pocket was ")


def test_dock__of_other_rotations_or_ligands_is_refused(dock: Inputs) -> None:
    dock.begin()
    dock.edit("q.txt", "0.5 0.5 0.5 0.5", "0.5 0.5 0.5 -0.5")
    refuses(dock, "poses tried was ")
    (dock.folder / "q.txt").write_text(QUATERNIONS)
    dock.edit("l.sdf", "lig0", "lig9")
    refuses(dock, "input ")


def test_pocket__counts_with_every_field(dock: Inputs) -> None:
    found = read_pocket(str(dock.folder / "p.npz"))
    others = {
        "values": found.values + 1, "origin": found.origin + 1, "spacing": found.spacing + 1,
        "types": ("C", "N"), "path": "other", "layout": "other",
        "receptor": "other", "prepared": Receptor(np.ones((1, 3)), np.ones(1), ("C",)),
    }  # fmt: skip
    assert others.keys() == {each.name for each in fields(Pocket)}
    changed = [digest(replace(found, **{name: value})) for name, value in others.items()]
    assert len({digest(found), *changed}) == len(others) + 1


def test_scan__of_a_changed_url_is_refused(scan: Inputs) -> None:
    run = scan.run
    scan.run = lambda **more: run(place="file://", **more)
    scan.begin()
    records = reversed(READS.split("@")[1:])
    (scan.folder / "one.fq").write_text("".join(f"@{each}" for each in records))
    refuses(scan, f"input file://{scan.folder}/one.fq was ")


def test_dock__of_a_changed_url_is_refused_and_of_the_same_resumed(dock: Inputs) -> None:
    run, path = dock.run, dock.folder / "l.sdf"
    dock.run = lambda **more: run(ligands=f"file://{path}", **more)
    whole = list(dock.run())
    dock.begin()
    assert sum(map(len, dock.resume())) == sum(map(len, whole))
    dock.begin()
    records = path.read_text().split("$$$$\n")[:-1]
    path.write_text("".join(f"{each}$$$$\n" for each in reversed(records)))
    refuses(dock, f"input file://{path} was ")


class Timeless(MemoryFileSystem):
    """A server that says nothing of versions and times."""

    protocol = "timeless"
    store: dict[str, Any] = {}  # noqa: RUF012 - as in its base

    @classmethod
    def _strip_protocol(cls, path: str) -> Any:
        return super()._strip_protocol(path.replace("timeless://", "memory://"))

    def modified(self, path: str) -> Any:
        raise NotImplementedError


@pytest.fixture
def timeless() -> Iterator[str]:
    fsspec.register_implementation("timeless", Timeless, clobber=True)
    fsspec.filesystem("timeless").pipe_file("/reads.fq", READS.encode())
    yield "timeless://reads.fq"
    Timeless.store.clear()


def test_url__has_no_journal(scan: Inputs, timeless: str, caplog: pytest.LogCaptureFixture) -> None:
    run = scan.run
    whole = [row.start.tolist() for row in run(names=(timeless,))]
    assert not caplog.messages
    again = list(run(names=(timeless,), journal=scan.folder / "journal"))
    assert [row.start.tolist() for row in again] == whole
    assert not (scan.folder / "journal").exists()
    (said,) = caplog.messages
    assert said.startswith(
        f"multigpu: no journal is kept, so this run cannot be resumed: {timeless} could not be"
    )


def test_pipe__has_no_journal_and_says_so(scan: Inputs, caplog: pytest.LogCaptureFixture) -> None:
    pipe = scan.folder / "pipe"
    os.mkfifo(pipe)
    Thread(target=pipe.write_text, args=(READS,)).start()
    assert list(scan.run(names=("pipe",), journal=scan.folder / "journal"))
    assert not (scan.folder / "journal").exists()
    assert [f"resumed: {pipe} could not" in said for said in caplog.messages] == [True]


def test_url__that_changes_while_it_is_read_is_an_error_and_none_if_it_goes(scan: Inputs) -> None:
    memory = fsspec.filesystem("memory")
    for text in (READS.replace("r1\n", "q1\n"), None):
        memory.pipe_file("/changing.fq", READS.encode())
        rows = iter(scan.run(names=("memory://changing.fq",)))
        next(rows)
        if text is None:
            memory.rm("/changing.fq")
            assert list(rows)
        else:
            memory.pipe_file("/changing.fq", text.encode())
            with pytest.raises(UsageError, match="was changed while it was read"):
                list(rows)


def description(counts: Counts, **more: Any) -> dict[str, str]:
    job = cnv_job(counts, **more)
    return job.description(KeptResults())


def test_cnv__counts_with_every_field_of_counts_regions_and_samples() -> None:
    counts, _ = cohort(regions=600, samples=6, chromosomes=2)
    regions, size = counts.regions, len(counts.samples)
    start, end, chrom = regions.start.copy(), regions.end.copy(), regions.chrom.copy()
    start[7], end[7] = start[7] + 1, end[7] - 1
    chrom[regions.blocks[0].stop - 1] = chrom[-1]
    swapped = counts.values.copy()
    swapped[[3, 4]] = swapped[[4, 3]]  # the same sums
    others: list[tuple[Counts, dict[str, Any]]] = [
        (replace(counts, values=swapped), {}),
        (replace(counts, values=counts.values.astype(np.float64)), {}),
        (replace(counts, samples=("other", *counts.samples[1:])), {}),
        *((replace(counts, regions=table), {}) for table in (
            replace(regions, start=start), replace(regions, end=end),
            replace(regions, chrom=chrom), replace(regions, names=("chrA", *regions.names[1:])),
        )),
        (counts, {"ploidy": (1, *[2] * (size - 1))}),
        (counts, {"sexes": ("male", *["female"] * (size - 1))}),
        (counts, {"genome": "hg38"}),
    ]  # fmt: skip
    found = [description(counts), *(description(table, **more) for table, more in others)]
    assert description(counts) == found[0]
    assert len({tuple(sorted(each.items())) for each in found}) == len(found)


def test_digest__tells_kinds_shapes_lengths_and_borders_apart() -> None:
    zeros = np.zeros(6, np.int32)
    values: list[Any] = [
        zeros, zeros.reshape(2, 3), zeros.reshape(3, 2), zeros.astype(np.int64), zeros[:5],
        zeros.astype(np.float32), zeros.view(np.uint8), zeros.astype(">i4"), zeros.tolist(),
        zeros.tobytes(), [zeros], [zeros, zeros], [[zeros], zeros], [zeros, [zeros]], [], {}, None,
        "", b"", 0, 0.0, False, "0", [b"ab", b"c"], [b"a", b"bc"], [b"abc"], b"abc", "abc",
        {"a": zeros}, {"b": zeros}, [["a", zeros]], Regions.of([]), Regions.of([("a", 1, 2)]),
    ]  # fmt: skip
    assert len({digest(value) for value in values}) == len(values)
    # It is of the content, wherever it lies, and of every byte.
    rng = np.random.default_rng(1)
    large = rng.integers(0, 9, (3000, 2000), np.int32)  # two pieces
    assert digest(large) == digest(np.asfortranarray(large)) == digest(large.copy())
    assert digest(large[::2]) == digest(large[::2].copy()) != digest(large[1::2])
    before = digest(large)
    for at in rng.integers(0, large.size, 5).tolist():
        large.reshape(-1)[at] += 1
        assert digest(large) != before
        large.reshape(-1)[at] -= 1
    with pytest.raises(TypeError, match="no digest of ndarray"):
        digest(np.array([None, large], object))
