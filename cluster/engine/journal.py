r"""The journal: what a run has finished, beside its output, so that it can be resumed.

    MAGIC
    record: uint32 length, uint32 CRC-32, `length` bytes    the first: what the run is about
    record …                                                each other: a part, in the input's order

Records are written at once, so that they outlive the process. They are synced every SYNC_EVERY
seconds, as long as there are new ones: when one is appended, or by whoever waits for the next
(`sync`). A torn record at the end is cut off, as are zeros, which file systems put where data were
lost with the power.

Parts are packed as msgpack, without pickle: a journal may come from anybody's disk. They consist of
numbers, text, bytes, None, lists, tuples, dictionaries, NumPy arrays, and of dataclasses and
exceptions of the classes that the workload names. The bytes of arrays would be copied by each level
of the msgpack, so they follow it:

    part: uint32 size, `size` bytes of msgpack, arrays in the order in which they are in that
"""

import itertools
import os
import re
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from io import BytesIO
from math import prod
from numbers import Integral
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from multigpu.cluster.errors import UsageError, option
from multigpu.cluster.files import failures_named, hidden_path, open_locked, sync_directory

KIND = b"multigpu journal "
MAGIC = KIND + b"5\n"
RECORD, SIZE = struct.Struct("<II"), struct.Struct("<I")
# Raised where bytes are unpacked that are no part.
UNPACK_ERRORS = (ValueError, TypeError, AttributeError, LookupError, RecursionError, struct.error)
SYNC_EVERY = 2.0  # seconds
ARRAY, OBJECT, TUPLE = 1, 2, 3  # the extension types
DTYPE = re.compile(r"[<>|][biufcmMSUV]\d+(\[\w+\])?")  # NumPy takes more, and evaluates some of it
NOT_KEPT = {"kept": False}  # metadata of a dataclass's field that is left out, and has a default
DEEPEST = 50  # values in values, of the extension types
NAMES = "surrogateescape"  # names of files are bytes, which need not be UTF-8


class Codec:
    """A packer of values that are made of plain ones, arrays and these classes.

    An exception is kept by its `args`, a dataclass by its fields with their names; to unpack them,
    the class is called with these. Raises TypeError and ValueError for anything else.
    """

    def __init__(self, classes: Sequence[type] = ()) -> None:
        self._classes = {kind.__name__: kind for kind in classes}

    def pack(self, value: Any) -> bytes:
        arrays = bytearray()
        packed = self._packed(value, arrays)
        return b"".join([SIZE.pack(len(packed)), packed, arrays])

    def unpack(self, data: bytes) -> Any:
        (size,) = SIZE.unpack_from(data)
        stop = SIZE.size + size
        if stop > len(data):
            raise ValueError("it is shorter than it says")
        return self._unpacked(data[SIZE.size : stop], BytesIO(data[stop:]))

    def _packed(self, value: Any, arrays: bytearray) -> bytes:
        """Return a value as msgpack, and append its arrays to others."""
        extended = partial(self._extended, arrays)
        packed: bytes = msgpack.packb(
            value, default=extended, strict_types=True, unicode_errors=NAMES
        )
        return packed

    def _unpacked(self, packed: bytes, arrays: BytesIO, depth: int = 0) -> Any:
        if depth > DEEPEST:  # Python does not notice that calls of msgpack fill the stack
            raise ValueError("it is too deep")
        restored = partial(self._restored, arrays, depth)
        return msgpack.unpackb(
            packed, ext_hook=restored, strict_map_key=False, unicode_errors=NAMES
        )

    def unpack_part(self, data: bytes) -> Any:
        """Unpack a value of one of the classes, if there are any. Raises ValueError for others."""
        value = self.unpack(data)
        if self._classes and self._classes.get(type(value).__name__) is not type(value):
            raise ValueError(f"a value of type {type(value).__name__} is no part")
        return value

    def _extended(self, arrays: bytearray, value: Any) -> Any:
        """Pack a value of a type that msgpack does not know."""
        if isinstance(value, tuple):
            return msgpack.ExtType(TUPLE, self._packed(list(value), arrays))
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                raise TypeError("an array of Python objects is no data")
            arrays += value.tobytes()
            about = [value.dtype.str, list(value.shape)]
            return msgpack.ExtType(ARRAY, self._packed(about, arrays))
        if isinstance(value, np.generic):
            return value.item()
        name = type(value).__name__
        if self._classes.get(name) is not type(value):
            raise TypeError(f"a part may not hold a {name}")
        return msgpack.ExtType(OBJECT, self._packed([name, _contents(value)], arrays))

    def _restored(self, arrays: BytesIO, depth: int, kind: int, data: bytes) -> Any:
        value = self._unpacked(data, arrays, depth + 1)
        if kind == TUPLE:
            return tuple(value)
        if kind == ARRAY:
            text, shape = value
            if not DTYPE.fullmatch(text) or any(type(n) is not int or n < 0 for n in shape):
                raise ValueError("not an array of this program")
            size = np.dtype(text).itemsize * prod(shape)
            if size > arrays.getbuffer().nbytes - arrays.tell():
                raise ValueError("an array is longer than what follows")
            return np.frombuffer(bytearray(arrays.read(size)), text).reshape(shape)
        if kind == OBJECT and value[0] in self._classes:
            name, contents = value
            return _build(self._classes[name], contents)
        raise ValueError("not a value of this program")


def _build(kind: type, contents: Any) -> Any:
    if not is_dataclass(kind):
        return kind(*contents)
    if contents.keys() != set(_kept_fields(kind)):
        raise ValueError(f"not the fields of a {kind.__name__} of this program")
    return kind(**contents)


def _contents(value: Any) -> dict[str, Any] | list[Any]:
    if is_dataclass(value):
        return {name: getattr(value, name) for name in _kept_fields(value)}
    if isinstance(value, BaseException):
        return list(value.args)
    raise TypeError(f"a part may not hold a {type(value).__name__}")


def _kept_fields(kind: Any) -> list[str]:
    return [field.name for field in fields(kind) if field.metadata.get("kept", True)]


class Journal:
    """The parts of one run, appended to a file.

    path    of the journal; `journal_of` gives the usual one
    about   what must be the same for another run to continue it; texts, by name
    plan    how the input is cut, which is taken from the journal where the run continues one
    codec   of the parts
    resume  whether to continue a journal that is there; else it starts over
    stands  (names of texts that differ, part) → whether the part is the same for this run; where
            the first parts are, the run continues with those

    Raises UsageError where another run writes it, where it is about something else (the text says
    what), where the file is no journal, and where the disk is full.
    """

    def __init__(
        self,
        path: Path,
        about: dict[str, str],
        plan: dict[str, Any],
        *,
        codec: Codec,
        resume: bool,
        stands: Callable[[Sequence[str], Any], bool] = lambda *_: False,
    ) -> None:
        self.path, self.plan, self._output = path, plan, _output_of(path)
        self.held = 0  # number of parts
        self.continued = False  # whether there was a journal with parts
        self.thrown_away = 0  # bytes of a journal that was there and was not continued
        self._found: list[range] = []  # parts that were there
        self._codec, self._stands = codec, stands
        self._synced_at, self._has_unsynced = time.monotonic(), False
        self._file = open_locked(path, self._output)
        try:
            with failures_named(self._output):
                if not (resume and self._continue(about)):
                    self._start(about)
        except BaseException:
            if not os.fstat(self._file.fileno()).st_size:
                with suppress(OSError):  # it was made just now, and there is no room for it
                    path.unlink()
            self._file.close()
            raise

    def parts(self) -> Iterator[Any]:
        """Yield the parts that an earlier run finished; `held` is their number."""
        yield from map(self._part, self._found)

    def last_part(self) -> Any:
        """Return the last of these parts; None where there is none."""
        return self._part(self._found[-1]) if self._found else None

    def _part(self, record: range) -> Any:
        try:
            return self._codec.unpack_part(_read(self._file.fileno(), record))
        except UNPACK_ERRORS as error:
            raise self._damage(error) from error

    def append(self, part: Any) -> None:
        """Keep a part. Raises UsageError where the disk is full."""
        self.held += 1  # first: what is written when the run is interrupted counts
        try:
            with failures_named(self._output):
                self._write(self._codec.pack(part))
        except Exception:
            self.held -= 1
            raise
        self._has_unsynced = True
        self.sync(SYNC_EVERY)

    def sync(self, every: float = 0.0) -> None:
        """Sync new records, the last time `every` seconds ago. Raises UsageError: no room."""
        if not self._has_unsynced or time.monotonic() - self._synced_at < every:
            return
        with failures_named(self._output):
            os.fsync(self._file.fileno())
        self._synced_at, self._has_unsynced = time.monotonic(), False

    @property
    def is_there(self) -> bool:
        """Whether a later run finds it: nobody has removed it, or put another file in its place."""
        with suppress(OSError):
            return os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())
        return False

    def close(self) -> None:
        """Leave the file for a run that continues. Raises Failure where it cannot be synced."""
        try:
            self.sync()
        finally:
            self._file.close()

    def remove(self) -> None:
        """Remove the file: the output is complete, or no run can continue it."""
        if self.is_there:
            with suppress(OSError):  # its folder may be read-only by now, which others report
                self.path.unlink()
        self._file.close()

    def _start(self, about: dict[str, str]) -> None:
        """Start over, unless the file is something else."""
        self._read_magic(KIND)
        self.thrown_away = self._file.seek(0, os.SEEK_END)
        self._file.truncate(0)
        self._write(self._codec.pack({"about": about, "plan": self.plan}), MAGIC)
        sync_directory(self.path.parent)  # its name: the parts are synced later

    def _continue(self, about: dict[str, str]) -> bool:
        """Take over what is in the journal. Return whether there is anything."""
        file = self._file.fileno()
        is_journal = self._read_magic(MAGIC) == MAGIC
        first = next(_records(file, len(MAGIC)), None) if is_journal else None
        if first is None:
            return False  # nothing was finished
        try:
            known = self._codec.unpack(_read(file, first))
            before, self.plan = dict(known["about"]), _checked_plan(known["plan"], self.plan)
        except UNPACK_ERRORS as error:
            raise self._damage(error) from error
        self._found = list(_records(file, first.stop))
        if differences := _differences(before, about):
            changed = list(differences)
            same = itertools.takewhile(lambda part: self._stands(changed, part), self.parts())
            if not (count := sum(1 for _ in same)):
                problem = f"this run cannot be resumed: {'; '.join(differences.values())}"
                raise UsageError(
                    f"{problem}; repeat the options and inputs, or leave out {option('resume')}"
                )
            first = self._keep(count, about)
        self._file.truncate(self._found[-1].stop if self._found else first.stop)
        self.held, self.continued = len(self._found), bool(self._found)
        return True

    def _keep(self, count: int, about: dict[str, str]) -> range:
        """Keep the first parts for a run that is about something else; return its first record."""
        kept = [_read(self._file.fileno(), record) for record in self._found[:count]]
        self._file.truncate(0)
        self._write(self._codec.pack({"about": about, "plan": self.plan}), MAGIC)
        for payload in kept:
            self._write(payload)
        first, *self._found = _records(self._file.fileno(), len(MAGIC))
        return first

    def _damage(self, error: Exception) -> UsageError:
        return UsageError(
            f"{self.path}: this journal is damaged: {error}; start over, without {option('resume')}"
        )

    def _read_magic(self, wanted: bytes) -> bytes:
        """Return the file's first bytes: `wanted`, or a beginning of it. Raises UsageError."""
        self._file.seek(0)
        found = self._file.read(len(wanted)).rstrip(b"\0")
        if wanted.startswith(found):
            return found
        if found.startswith(KIND):
            raise UsageError(
                f"{self.path}: this is no journal of this version; start over, without"
                f" {option('resume')}"
            )
        raise UsageError(f"{self.path}: this is no journal of multigpu: remove it")

    def _write(self, payload: bytes, before: bytes = b"") -> None:
        """Append one record in one piece, or none of it."""
        end = self._file.seek(0, os.SEEK_END)
        head = before + RECORD.pack(len(payload), zlib.crc32(payload))
        left = memoryview(head + payload)
        try:
            while left:
                left = left[os.write(self._file.fileno(), left) :]
        except OSError:
            self._file.truncate(end)
            raise


def _records(file: int, at: int) -> Iterator[range]:
    """Yield the bytes of each record's payload, from byte `at` up to the first torn record."""
    size = os.fstat(file).st_size
    while at + RECORD.size <= size:
        length, checksum = RECORD.unpack(os.pread(file, RECORD.size, at))
        at += RECORD.size
        record = range(at, at + length)
        if not 0 < length <= size - at or zlib.crc32(_read(file, record)) != checksum:
            return
        yield record
        at += length


def _read(file: int, record: range) -> bytes:
    return os.pread(file, len(record), record.start)


def journal_of(output: str) -> Path:
    """Return the path of an output's journal."""
    return hidden_path(Path(output).resolve(), "journal")


def _output_of(path: Path) -> str:
    """Return the output that a journal is beside, for messages; else the journal."""
    name = path.name.removeprefix(".").removesuffix(".journal")
    return str(path.with_name(name) if journal_of(str(path.with_name(name))) == path else path)


def _checked_plan(found: Any, plan: dict[str, Any]) -> dict[str, Any]:
    """Return the plan that a journal holds. Raises ValueError where it is none like `plan`."""
    if not isinstance(found, dict) or found.keys() != plan.keys():
        raise ValueError("it holds no plan of such a run")
    for name, value in found.items():
        is_number = isinstance(value, int)
        if is_number is not isinstance(plan[name], Integral) or (is_number and value < 0):
            raise ValueError(f"its plan says {name} {value!r}")
    return found


def _differences(before: dict[str, str], now: dict[str, str]) -> dict[str, str]:
    """Return in words what has changed, by the names of the texts."""
    return {
        name: f"{name} was {before.get(name, 'not given')}, is {now.get(name, 'not given')}"
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    }
