"""What a run has finished, beside its output, so that a run that was stopped can go on.

    b"multigpu journal 2\\n"
    record: uint32 length, uint32 CRC-32, `length` bytes    the first: what the run is about
    record …                                                then a part each, in the input's order

A record is the part itself, so that the two reach the disk together. They are written at once,
which outlives the process, and synced every SYNC_EVERY seconds, as long as there are new ones: when
one is appended, or by who waits for the next (`sync`). A tail that was torn is cut off, as are
zeros, which file systems put where data were lost with the power.
"""

import os
import struct
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import Any

from multigpu.cluster.engine.codec import Codec
from multigpu.cluster.engine.output import failures_named, hidden, own, sync_directory
from multigpu.cluster.errors import UsageError

KIND = b"multigpu journal "
MAGIC = KIND + b"2\n"
RECORD = struct.Struct("<II")
NO_PART = (ValueError, TypeError, AttributeError, LookupError, RecursionError, struct.error)
SYNC_EVERY = 2.0
CHECKERS, CHECKED = 4, 64  # threads that check records, so many at a time


class Journal:
    """The parts of one run, appended to a file.

    path   of the journal; `beside` gives the usual one
    about  what must be the same for another run to go on with it, by name; texts
    plan   how the input is cut: of the run that began it, whatever another one would choose
    codec  for the parts

    With `resume` a journal that is there is gone on with, else it is begun anew. Raises UsageError
    where another run writes it, where it is about something else (the text says what), where the
    file is no journal, and where the disk is full.
    """

    def __init__(
        self, path: Path, about: dict[str, str], plan: dict[str, Any], codec: Codec, resume: bool
    ) -> None:
        self.path, self.plan = path, plan
        self.held = 0  # parts
        self.continued = False  # whether there was one with parts
        self._found: list[_Record] = []  # those
        self.thrown_away = 0  # bytes of a journal that was there and was not gone on with
        self._codec = codec
        self._synced, self._unsynced = time.monotonic(), False
        self._file = own(path, str(path))
        try:
            with failures_named(str(path)):
                if not (resume and self._continues(about)):
                    self._begin(about)
        except BaseException:
            if not os.fstat(self._file.fileno()).st_size:
                with suppress(OSError):  # it was made just now, and there is no room for it
                    path.unlink()
            self._file.close()
            raise

    def parts(self) -> Iterator[Any]:
        """What a run before this one finished; `held` says how many these are."""
        for record in self._found:
            try:
                part = self._codec.unpack_part(record.read(self._file.fileno()))
            except NO_PART as error:
                raise self._damaged(error) from error
            yield part

    def last(self) -> Any | None:
        """The last of them, if there is one; what is damaged `parts` tells."""
        with suppress(*NO_PART):
            return self._codec.unpack_part(self._found[-1].read(self._file.fileno()))
        return None

    def append(self, part: Any) -> None:
        """Keep a part. Raises UsageError where the disk is full."""
        with failures_named(str(self.path)):
            self._write(self._codec.pack(part))
        self.held += 1
        self._unsynced = True
        self.sync(SYNC_EVERY)

    def sync(self, every: float = 0.0) -> None:
        """What is new reaches the disk, unless less than `every` seconds have gone since the last.

        Raises UsageError where the disk is full.
        """
        if not self._unsynced or time.monotonic() - self._synced < every:
            return
        with failures_named(str(self.path)):
            os.fsync(self._file.fileno())
        self._synced, self._unsynced = time.monotonic(), False

    @property
    def is_there(self) -> bool:
        """Whether a later run finds it: nobody has removed it, or put another file in its place."""
        with suppress(OSError):
            return os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())
        return False

    def close(self) -> None:
        """Leave it for a run that goes on. Raises Failure where it does not reach the disk."""
        try:
            self.sync()
        finally:
            self._file.close()

    def remove(self) -> None:
        """The output is complete, or nobody can go on with this."""
        if self.is_there:
            with suppress(OSError):  # that its folder can no longer be written is told elsewhere
                self.path.unlink()
        self._file.close()

    def _begin(self, about: dict[str, str]) -> None:
        self._magic(KIND)
        self.thrown_away = self._file.seek(0, os.SEEK_END)
        self._file.truncate(0)
        self._write(self._codec.pack({"about": about, "plan": self.plan}), MAGIC)
        sync_directory(self.path.parent)  # its name: the parts are synced later

    def _continues(self, about: dict[str, str]) -> bool:
        """Whether there is a journal to go on with."""
        file = self._file.fileno()
        first = next(_records(file, len(MAGIC)), None) if self._magic(MAGIC) == MAGIC else None
        if first is None or not first.is_whole(file):
            return False  # nothing was finished
        try:
            known = self._codec.unpack(first.read(file))
            before, self.plan = dict(known["about"]), _alike(known["plan"], self.plan)
        except NO_PART as error:
            raise self._damaged(error) from error
        if differences := _differences(before, about):
            raise UsageError(f"this run cannot be resumed: {'; '.join(differences)}")
        self._found = self._whole_records(first.end)
        self.held, self.continued = len(self._found), bool(self._found)
        return True

    def _damaged(self, error: Exception) -> UsageError:
        return UsageError(
            f"{self.path}: this journal is damaged: {error}; begin anew, without --resume"
        )

    def _magic(self, wanted: bytes) -> bytes:
        """How the file begins, which is as `wanted`, or as that torn. Raises UsageError."""
        self._file.seek(0)
        found = self._file.read(len(wanted)).rstrip(b"\0")
        if wanted.startswith(found):
            return found
        if found.startswith(KIND):
            raise UsageError(
                f"{self.path}: this is no journal of this version; begin anew, without --resume"
            )
        raise UsageError(f"{self.path}: this is no journal of multigpu: remove it")

    def _whole_records(self, begin: int) -> "list[_Record]":
        """Those from byte `begin` up to the first that is torn; with it the file is cut off."""
        file = self._file.fileno()
        records = list(_records(file, begin))
        some = [records[at : at + CHECKED] for at in range(0, len(records), CHECKED)]
        with ThreadPoolExecutor(CHECKERS) as pool:
            checked = pool.map(lambda few: [record.is_whole(file) for record in few], some)
            whole = list(chain.from_iterable(checked))
        if not all(whole):
            records = records[: whole.index(False)]
        self._file.truncate(records[-1].end if records else begin)
        return records

    def _write(self, payload: bytes, before: bytes = b"") -> None:
        """One record in one piece, or none of it."""
        end = self._file.seek(0, os.SEEK_END)
        head = before + RECORD.pack(len(payload), zlib.crc32(payload))
        left = [memoryview(head), memoryview(payload)]
        try:
            while left:
                written = os.writev(self._file.fileno(), left)
                while left and written >= len(left[0]):
                    written -= len(left.pop(0))
                if left:
                    left[0] = left[0][written:]
        except OSError:
            self._file.truncate(end)
            raise


@dataclass(frozen=True)
class _Record:
    """Where its payload stands in a file."""

    begin: int
    length: int
    checksum: int

    @property
    def end(self) -> int:
        return self.begin + self.length

    def read(self, file: int) -> bytes:
        return os.pread(file, self.length, self.begin)

    def is_whole(self, file: int) -> bool:
        return zlib.crc32(self.read(file)) == self.checksum


def _records(file: int, at: int) -> Iterator[_Record]:
    """What seem to be records from byte `at` on, none of which goes beyond the end."""
    size = os.fstat(file).st_size
    while at + RECORD.size <= size:
        length, checksum = RECORD.unpack(os.pread(file, RECORD.size, at))
        at += RECORD.size
        if not 0 < length <= size - at:
            return
        yield _Record(at, length, checksum)
        at += length


def beside(output: str) -> Path:
    """Where the journal of an output lies."""
    return hidden(Path(output).resolve(), "journal")


def _alike(found: Any, plan: dict[str, Any]) -> dict[str, Any]:
    """The plan that a journal holds. Raises ValueError where it is none like this run's."""
    if not isinstance(found, dict) or found.keys() != plan.keys():
        raise ValueError("it holds no plan of such a run")
    for name, value in found.items():
        is_number = isinstance(value, int)
        if is_number is not isinstance(plan[name], Integral) or (is_number and value < 0):
            raise ValueError(f"its plan says {name} {value!r}")
    return found


def _differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    return [
        f"{name} was {before.get(name, 'not given')}, is {now.get(name, 'not given')}"
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]
