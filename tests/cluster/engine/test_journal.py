"""The journal: what is in it after every kind of end, and who may go on with it."""

import errno
import os
import subprocess
import sys
import zlib
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import Mock

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from multigpu.cluster.engine.journal import (
    MAGIC,
    RECORD,
    SIZE,
    UNPACK_ERRORS,
    Codec,
    Journal,
    journal_of,
)
from multigpu.cluster.errors import Failure, UsageError

ROOT = Path(__file__).resolve().parents[3]
ABOUT = {"program": "1", "option hits": "first", "input a.fq": "12 bytes"}
PLAN = {"chunk_bytes": 100}
PARTS = [b"", b"x" * 1000, [1, "two", None], {"array": np.arange(5)}, (3.5, b"\0")]


def opened(path: Path, resume: bool = True, **about: str) -> Journal:
    return Journal(path, ABOUT | about, PLAN, codec=Codec(), resume=resume)


def plain(part: Any) -> Any:
    return {"array": part["array"].tolist()} if isinstance(part, dict) else part


def written(path: Path, parts: list[Any] = PARTS) -> bytes:
    journal = opened(path)
    for part in parts:
        journal.append(part)
    journal.close()
    return path.read_bytes()


def held(path: Path) -> list[Any]:
    journal = opened(path)
    found = [plain(part) for part in journal.parts()]
    journal.close()
    return found


def test_journal__goes_on_behind_what_it_has(tmp_path: Path) -> None:
    written(tmp_path / "j")
    journal = Journal(tmp_path / "j", ABOUT, {"chunk_bytes": 7}, codec=Codec(), resume=True)
    assert journal.plan == PLAN  # that of the run that began it
    assert (journal.held, journal.continued) == (len(PARTS), True)  # before they are read
    journal.append(3)
    journal.close()
    assert held(tmp_path / "j") == [*map(plain, PARTS), 3]


def test_journal__cut_anywhere_gives_the_whole_records_before_and_goes_on(tmp_path: Path) -> None:
    parts = [b"one", b"two" * 9, 3]
    whole = written(tmp_path / "j", parts)
    ends = [len(written(tmp_path / f"part{n}", parts[:n])) for n in range(4)]
    for length in range(len(whole) + 1):
        path = tmp_path / "cut"
        path.write_bytes(whole[:length])
        journal = opened(path)
        found = list(journal.parts())
        assert len(found) == sum(end <= length for end in ends[1:])
        journal.append("new")
        journal.close()
        assert held(path) == [*found, "new"]


@given(st.data())
def test_journal__damaged_anywhere_gives_the_parts_before(data: st.DataObject) -> None:
    parts = [b"part %d" % number for number in range(100)]
    with TemporaryDirectory() as folder:
        path = Path(folder, "j")
        damaged = bytearray(written(path, parts))
        for bit in data.draw(st.lists(st.integers(0, 8 * len(damaged) - 1), max_size=8)):
            damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged[: data.draw(st.integers(0, 2 * len(damaged)))])
        with suppress(UsageError):
            found = held(path)
            assert found == parts[: len(found)]


@pytest.mark.parametrize("zeros", [1, 7, 8, 9, 4096])
def test_journal__with_zeros_at_its_end_ends_before_them(tmp_path: Path, zeros: int) -> None:
    whole = written(tmp_path / "j", [1, 2])
    (tmp_path / "j").write_bytes(whole + bytes(zeros))
    assert held(tmp_path / "j") == [1, 2]
    assert (tmp_path / "j").read_bytes() == whole
    (tmp_path / "j").write_bytes(bytes(zeros))
    assert held(tmp_path / "j") == []


def test_journal__of_another_run_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """Also its torn tail."""
    whole, torn = written(tmp_path / "j"), b"!" + bytes(50)
    changed = {"option hits": "all", "input a.fq": "13 bytes", "input b.fq": "1 byte"}
    problem = (
        r"^this run cannot be resumed: option hits was first, is all; input a\.fq was 12 bytes, is"
        r" 13 bytes; input b\.fq was not given, is 1 byte; repeat the options and inputs, or leave"
        r" out resume$"
    )
    for content in (whole, whole[:-10] + torn):
        (tmp_path / "j").write_bytes(content)
        with pytest.raises(UsageError, match=problem):
            opened(tmp_path / "j", **changed)
        assert (tmp_path / "j").read_bytes() == content


def test_journal__of_another_version_is_not_gone_on_with_but_started_over(tmp_path: Path) -> None:
    content = MAGIC.replace(b"5", b"4")
    (tmp_path / "j").write_bytes(content)
    with pytest.raises(UsageError, match=r"of this version; start over, without resume$"):
        opened(tmp_path / "j")
    assert (tmp_path / "j").read_bytes() == content
    with closing(opened(tmp_path / "j", resume=False)) as journal:
        assert journal.thrown_away == len(content)


@pytest.mark.parametrize("resume", [True, False])
def test_journal__does_not_take_the_place_of_another_file(tmp_path: Path, resume: bool) -> None:
    """What is to be done is the same with and without resume: neither sends to the other."""
    content = b"something else" + written(tmp_path / "j")[14:]
    (tmp_path / "j").write_bytes(content)
    with pytest.raises(UsageError, match=r"/j: this is no journal of multigpu: remove it$"):
        opened(tmp_path / "j", resume)
    assert (tmp_path / "j").read_bytes() == content


def test_journal__with_a_part_that_is_none_says_so(tmp_path: Path) -> None:
    """Its checksum is right: somebody made it so."""
    with closing(opened(tmp_path / "j")) as journal:
        journal.append({"fine": 1})
        journal._write(FOREIGN)
    with closing(opened(tmp_path / "j")) as journal:
        parts = journal.parts()
        assert next(parts) == {"fine": 1}
        with pytest.raises(UsageError, match="this journal is damaged: not a value"):
            next(parts)


@pytest.mark.parametrize(("first", "problem"), [
    (Codec().pack(0), "is not subscriptable"),
    (b"\xc1", "journal is damaged"),
    (Codec().pack([1]), "journal is damaged"),
    (Codec().pack({"about": ABOUT}), "'plan'"),
    (Codec().pack({"about": ABOUT, "plan": {}}), "it holds no plan of such a run"),
    (Codec().pack({"about": ABOUT, "plan": {"chunk_bytes": "x"}}), "says chunk_bytes 'x'"),
    (Codec().pack({"about": ABOUT, "plan": {"chunk_bytes": -5}}), "says chunk_bytes -5"),
])  # fmt: skip
def test_journal__without_a_subject_is_damaged(tmp_path: Path, first: bytes, problem: str) -> None:
    """Its checksum is right, as above."""
    (tmp_path / "j").write_bytes(MAGIC + RECORD.pack(len(first), zlib.crc32(first)) + first)
    with pytest.raises(UsageError, match=r"this journal is damaged: .*; start over") as refused:
        opened(tmp_path / "j")
    assert problem in str(refused.value)


def test_journal__is_started_over_without_resume(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "j", resume=False)) as journal:
        assert journal.thrown_away == 0
    before = written(tmp_path / "j")
    journal = opened(tmp_path / "j", resume=False)
    assert journal.thrown_away == len(before)
    assert list(journal.parts()) == []
    journal.remove()
    assert list(tmp_path.iterdir()) == []


def test_journal__belongs_to_one_run_at_a_time(tmp_path: Path) -> None:
    """And one in whose place another run has its own leaves that."""
    first = opened(tmp_path / "j")
    with pytest.raises(UsageError, match="another run is writing it"):
        opened(tmp_path / "j")
    first.append(1)
    assert first.is_there
    first.close()
    assert held(tmp_path / "j") == [1]
    second = opened(tmp_path / "j")
    (tmp_path / "j").unlink()
    (tmp_path / "j").write_bytes(b"of another run")
    assert not second.is_there
    second.remove()
    assert (tmp_path / "j").read_bytes() == b"of another run"


FILL = """
import resource, sys
from pathlib import Path
from multigpu.cluster.engine.journal import Codec
from multigpu.cluster.errors import UsageError
from multigpu.cluster.engine.journal import Journal
journal = Journal(Path(sys.argv[1]), {}, {}, codec=Codec(), resume=True)
print(len(list(journal.parts())))
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    while True:
        journal.append(b"x" * 999)
except Exception as error:
    print(error)
print(journal.held)
"""


@pytest.mark.process
def test_journal__that_cannot_grow_says_so_and_is_good(tmp_path: Path) -> None:
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", FILL, str(tmp_path / "j")],
            cwd=ROOT, capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        _, problem, count = done.stdout.splitlines()
        assert problem == f"{tmp_path / 'j'}: cannot be written: file too large (see `ulimit -f`)"
        journal = Journal(tmp_path / "j", {}, {}, codec=Codec(), resume=True)
        assert list(journal.parts()) == [b"x" * 999] * int(count)
        journal.close()
    assert done.stdout.splitlines()[0] == count


def test_journal__without_room_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(Journal, "_write", full)
    with pytest.raises(UsageError, match="the disk is full"):
        opened(tmp_path / "j")
    assert list(tmp_path.iterdir()) == []


def test_journal__reaches_the_disk_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []

    def fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr("multigpu.cluster.engine.journal.SYNC_EVERY", 1e9)
    with closing(opened(tmp_path / "j")) as journal:
        assert synced == [tmp_path]  # its name
        journal.append(1)
        assert len(synced) == 1
        monkeypatch.setattr("multigpu.cluster.engine.journal.SYNC_EVERY", -1.0)
        journal.append(2)
        assert synced[1:] == [tmp_path / "j"]
        journal.sync()
        assert len(synced) == 2  # there is nothing new
        monkeypatch.setattr("multigpu.cluster.engine.journal.SYNC_EVERY", 1e9)
        journal.append(3)
    assert synced[2:] == [tmp_path / "j"]


def test_journal__that_stays_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = opened(tmp_path / "j")
    forbidden = Mock(side_effect=PermissionError(errno.EACCES, "Permission denied"))
    monkeypatch.setattr(Path, "unlink", forbidden)
    journal.remove()
    monkeypatch.setattr(Journal, "_write", forbidden)
    with pytest.raises(Failure, match=r"new: cannot be written: permission denied$"):
        opened(tmp_path / "new")


def test_journal__lies_hidden_beside_the_output_of_any_name(tmp_path: Path) -> None:
    for name in ("x" * 255, "ä" * 127):
        opened(journal_of(str(tmp_path / name))).remove()
    (tmp_path / "link.tsv").symlink_to(tmp_path / "hits.tsv")
    assert journal_of(str(tmp_path / "link.tsv")) == tmp_path / ".hits.tsv.journal"


@dataclass(frozen=True)
class Point:
    x: int
    y: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    x: int
    y: Any


class Oops(Exception):
    def __init__(self, place: str, number: int) -> None:
        super().__init__(place, number)


class Stranger:
    pass


CODEC = Codec([Point, Oops])


def extended(kind: int, value: Any) -> bytes:
    """Return a value of an extension type as a codec packs it."""
    packed = msgpack.packb(msgpack.ExtType(kind, msgpack.packb(value)))
    return SIZE.pack(len(packed)) + packed + bytes(8)


FOREIGN = extended(77, 1)  # a type that no value of this program has
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(), inner)
        | st.builds(Point, st.integers(-9, 9), inner)
    ),
    max_leaves=20,
)


@given(PLAIN)
def test_codec__gives_back_what_it_was_given(value: Any) -> None:
    again = CODEC.unpack(CODEC.pack(value))
    assert again == value
    assert type(again) is type(value)


@given(hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, min_side=0)))
def test_codec__keeps_an_array_with_its_type_and_shape(array: Any) -> None:
    again = CODEC.unpack(CODEC.pack({"a": array}))["a"]
    assert (again.dtype, again.shape, again.tobytes()) == (
        array.dtype,
        array.shape,
        array.tobytes(),
    )
    assert again.flags.writeable


def test_codec__keeps_exceptions_by_arguments_dataclasses_by_names_and_numpy_as_numbers() -> None:
    codec = Codec([Named, Oops])
    again = codec.unpack(codec.pack(Oops("here", 3)))
    assert (type(again), again.args) == (Oops, ("here", 3))
    assert codec.unpack(codec.pack([Named(x=1, y=(2,))])) == [Named(x=1, y=(2,))]
    numbers = [np.int64(5), np.float64(0.1), np.bool_(True)]
    assert codec.unpack(codec.pack(numbers)) == [5, 0.1, True]
    name = b"caf\xe9.fq".decode("utf-8", "surrogateescape")  # of any file
    assert codec.unpack(codec.pack({name: [name]})) == {name: [name]}


@pytest.mark.parametrize(
    "value", [Stranger(), {1, 2}, ValueError("x"), np.array([None])], ids=lambda v: type(v).__name__
)
def test_codec__refuses_what_it_was_not_told_of(value: Any) -> None:
    with pytest.raises(TypeError, match=r"may not hold a \w+$|an array of Python objects"):
        CODEC.pack([value])


def test_codec__makes_nothing_that_it_was_not_told_of() -> None:
    foreign = Codec([Stranger, Point]).pack(Point(1, 2))
    assert Codec([Point]).unpack(foreign) == Point(1, 2)
    with pytest.raises(ValueError, match="not a value of this program"):
        Codec([Oops]).unpack(foreign)
    with pytest.raises(ValueError, match="not a value of this program"):
        CODEC.unpack(FOREIGN)


@given(PLAIN, st.data())
def test_codec__of_damaged_bytes_gives_something_or_fails_in_a_way_that_is_known(
    value: Any, data: st.DataObject
) -> None:
    damaged = bytearray(CODEC.pack([value, np.arange(9)]))
    for bit in data.draw(st.lists(st.integers(0, 8 * len(damaged) - 1), max_size=8)):
        damaged[bit // 8] ^= 1 << bit % 8
    with suppress(*UNPACK_ERRORS):
        CODEC.unpack(bytes(damaged[: data.draw(st.integers(0, 2 * len(damaged)))]))


@pytest.mark.parametrize("dtype", ["(", "a4", "i4,i4", "__import__('os')", "|O8", "<i4(", ""])
def test_codec__of_an_array_of_no_plain_type_fails(dtype: str) -> None:
    """NumPy evaluates some texts, takes others with a warning, and makes arrays of objects."""
    with pytest.raises(ValueError, match="not an array of this program"):
        CODEC.unpack(extended(1, [dtype, [1]]))


@pytest.mark.parametrize("shape", [[-1], [-1, -1], [2], [1 << 63, "a"], [1 << 62, 8], [1.0], None])
def test_codec__of_an_array_of_no_such_shape_fails(shape: Any) -> None:
    """Eight bytes follow."""
    with pytest.raises((ValueError, TypeError)):
        CODEC.unpack(extended(1, ["<i8", shape]))


def test_codec__of_values_in_values_without_end_fails() -> None:
    deep: Any = 1
    for _ in range(400):
        deep = msgpack.ExtType(2, msgpack.packb(deep))
    packed = msgpack.packb(deep)
    for size in (len(packed), len(packed) + 1):
        with pytest.raises(ValueError, match=r"it is (too deep|shorter than it says)"):
            CODEC.unpack(SIZE.pack(size) + packed)


def test_codec__a_part_is_of_its_classes() -> None:
    assert CODEC.unpack_part(CODEC.pack(Point(1, 2))) == Point(1, 2)
    with pytest.raises(ValueError, match="a value of type int is no part"):
        CODEC.unpack_part(CODEC.pack(5))
    assert Codec().unpack_part(Codec().pack(5)) == 5
