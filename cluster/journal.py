"""What a run has finished, beside its output, so that a run that was stopped can go on.

    b"multigpu journal 2\\n"
    record: uint32 length, uint32 CRC-32, `length` bytes    the first: what the run is about
    record …                                                then a part each, in the input's order

A record is the part itself, so that the two reach the disk together. They are written at once,
which outlives the process, and synced every SYNC_EVERY seconds. A tail that was torn is cut off, as
are zeros, which file systems put where data were lost with the power.
"""

import os
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cluster.codec import Codec
from cluster.errors import UsageError
from cluster.output import failures_named, hidden, own

KIND = b"multigpu journal "
MAGIC = KIND + b"2\n"
RECORD = struct.Struct("<II")
NO_PART = (ValueError, TypeError, AttributeError, LookupError, RecursionError, struct.error)
SYNC_EVERY = 2.0


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
        self.thrown_away = 0  # bytes of a journal that was there and was not gone on with
        self._codec = codec
        self._synced = time.monotonic()
        self._file = own(path, str(path))
        try:
            with failures_named(str(path)):
                if not (resume and self._continues(about)):
                    self._begin(about)
        except BaseException:
            if not os.fstat(self._file.fileno()).st_size:
                path.unlink(missing_ok=True)  # it was made just now, and there is no room for it
            self._file.close()
            raise

    def parts(self) -> Iterator[Any]:
        """What a run before this one finished; all of it must be taken before `append`."""
        while (payload := self._record()) is not None:
            self.held += 1
            try:
                part = self._codec.unpack(payload)
            except NO_PART as error:
                raise UsageError(
                    f"{self.path}: this journal is damaged: {error}; begin anew, without --resume"
                ) from error
            yield part

    def append(self, part: Any) -> None:
        """Keep a part. Raises UsageError where the disk is full."""
        with failures_named(str(self.path)):
            self._write(self._codec.pack(part))
            self.held += 1
            if time.monotonic() - self._synced > SYNC_EVERY:
                os.fsync(self._file.fileno())
                self._synced = time.monotonic()

    def close(self) -> None:
        """Leave it for a run that goes on."""
        self._file.close()

    def remove(self) -> None:
        """The output is complete."""
        self.path.unlink(missing_ok=True)
        self._file.close()

    def _begin(self, about: dict[str, str]) -> None:
        self._magic(KIND)
        self.thrown_away = self._file.seek(0, os.SEEK_END)
        self._file.truncate(0)
        self._write(self._codec.pack({"about": about, "plan": self.plan}), MAGIC)

    def _continues(self, about: dict[str, str]) -> bool:
        """Whether there is a journal to go on with."""
        first = self._record() if self._magic(MAGIC) == MAGIC else None
        if first is None:
            return False  # nothing was finished
        known = self._codec.unpack(first)
        if differences := _differences(known["about"], about):
            raise UsageError(f"this run cannot be resumed: {'; '.join(differences)}")
        self.plan = known["plan"]
        self.continued = self._file.tell() < os.fstat(self._file.fileno()).st_size
        return True

    def _magic(self, wanted: bytes) -> bytes:
        """How the file begins, which is as `wanted`, or as that torn. Raises UsageError."""
        self._file.seek(0)
        found = self._file.read(len(wanted)).rstrip(b"\0")
        if not wanted.startswith(found):
            raise UsageError(
                f"{self.path}: this is no journal of this version; begin anew, without --resume"
            )
        return found

    def _record(self) -> bytes | None:
        """The next record; None at the end, where a torn one is cut off."""
        begin = self._file.tell()
        head = self._file.read(RECORD.size)
        if len(head) == RECORD.size:
            length, checksum = RECORD.unpack(head)
            payload = self._file.read(length)
            if 0 < length == len(payload) and zlib.crc32(payload) == checksum:
                return payload
        self._file.truncate(begin)
        self._file.seek(begin)
        return None

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


def beside(output: str) -> Path:
    """Where the journal of an output lies."""
    return hidden(Path(output).resolve(), "journal")


def _differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    return [
        f"{name} was {before.get(name, 'not given')}, is {now.get(name, 'not given')}"
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]
