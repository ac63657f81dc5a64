"""SAM and BAM files: names that may stand in them, their header, and the files themselves."""

import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, Self

from multigpu.cluster.files import failures_named
from multigpu.errors import InputError, UsageError, option, quoted
from multigpu.formats.optional import import_pysam
from multigpu.formats.storage.compressed import Compressed, Compression
from multigpu.formats.tables.tabix import full_disk_named

SAM = ("@HD\t", "@SQ\t", "@RG\t", "@PG\t", "@CO\t")  # how a header begins
REFERENCE_NAME = re.compile(rb"(?![*=])[0-9A-Za-z!#$%&*+./:;=?@^_|~-]+")
MISNAMED_QUERY = re.compile(rb"^(?![!-?A-~]{1,254}\n)([^\n]*)\n", re.MULTILINE)
LONGEST_REFERENCE = (1 << 31) - 1
DUPLICATE = (
    f"duplicate name; SAM needs unique reference names: rename it, or choose {option('format')} paf"
)
NO_NAME = f"has no name, which SAM needs: name it, or choose {option('format')} paf"
BLOCK = 1 << 20  # bytes of lines at a time
COMPRESSED_INSIDE = "BAM files are compressed inside: choose a name without .gz or .zst"

Write = Callable[[bytes], Any]


def advise_on_sam(path: str) -> str:
    """Return what is wrong with a SAM file that shall be counted, and what helps."""
    made = shlex.quote(re.sub(r"(\.sam)?(\.gz)?$", ".bam", path, count=1))
    return f"is a SAM file, which is not read: samtools sort -o {made} {shlex.quote(path)}"


def misnamed_query(path: str, names: bytes, *, are_all: bool) -> InputError | None:
    """Return the error for the first name of a read, or signature, that SAM does not allow.

    names    each with a line end after it
    are_all  whether these are the names of all records of the file
    """
    found = MISNAMED_QUERY.search(names)
    if found is None:
        return None
    if not found[1]:
        number = names.count(b"\n", 0, found.start()) + 1
        return InputError(path, NO_NAME, f"record {number:,}" if are_all else "a record")
    return _misfit(path, found[1], "SAM allows names of 1 to 254 ASCII characters without @")


class References:
    """The reference sequences of a SAM file, in order, without those that have no base."""

    def __init__(self) -> None:
        self._lengths: dict[bytes, int] = {}
        self._path, self._records = "", 0

    def add(self, path: str, names: Iterable[bytes], lengths: Iterable[int]) -> None:
        """Add sequences of a file. Raises InputError for names and lengths that SAM forbids."""
        if path != self._path:
            self._path, self._records = path, 0
        for name, length in zip(names, lengths, strict=True):
            self._records += 1
            if not length:
                continue
            if not name:
                raise InputError(path, NO_NAME, f"record {self._records:,}")
            if not REFERENCE_NAME.fullmatch(name):
                allowed = "!#$%&*+./:;=?@^_|~-"
                problem = f"SAM allows names of letters, digits and {allowed}, no * or = first"
                raise _misfit(path, name, problem)
            if name in self._lengths:
                raise InputError(path, DUPLICATE, f"record {quoted(name)}")
            if length > LONGEST_REFERENCE:
                problem = f"{length:,} bases, and SAM allows {LONGEST_REFERENCE:,}"
                raise InputError(
                    path, f"{problem}: choose {option('format')} paf", f"record {quoted(name)}"
                )
            self._lengths[name] = length

    def header(self, program: bytes) -> bytes:
        """Return the header. program: fields of the line @PG."""
        lines = [b"@SQ\tSN:%s\tLN:%d\n" % each for each in self._lengths.items()]
        return b"@HD\tVN:1.6\tSO:unsorted\n" + b"".join(lines) + b"@PG\t%s\n" % program


def _misfit(path: str, name: bytes, problem: str) -> InputError:
    cure = f"rename it, or choose {option('format')} paf"
    return InputError(path, f"{problem}: {cure}", f"record {quoted(name)}")


@contextmanager
def open_sam(
    raw: BinaryIO,
    kind: str,
    compression: Compression,
    header: Callable[[], bytes],
    *,
    header_last: bool,
    path: str | None,
) -> Iterator[Write]:
    """Yield a function that writes lines, whole ones, to a SAM or BAM file.

    `raw` stays open. What is written is complete when the block ends without an error.

    kind         "sam" or "bam"
    header       makes the header
    header_last  whether it can be made only after all lines were given, which wait in a file
    path         of the output, beside which lines wait; None: in the system's temporary folder

    Raises UsageError for a compressed BAM file.
    """
    if kind == "bam" and compression != "none":
        raise UsageError(COMPRESSED_INSIDE)
    if header_last:
        with _TemporaryLines(path) as lines:
            yield lines.write
            with _open_lines(raw, kind, compression, header(), path) as write:
                for block in lines.blocks():
                    write(block)
    else:
        with _open_lines(raw, kind, compression, header(), path) as write:
            yield write


@contextmanager
def _open_lines(
    raw: BinaryIO, kind: str, compression: Compression, header: bytes, path: str | None
) -> Iterator[Write]:
    if kind == "bam":
        with _open_bam(raw, header, path) as write:
            yield write
        return
    lines = Compressed(raw, compression)
    lines.write(header)
    yield lines.write
    lines.close()


@contextmanager
def _open_bam(raw: BinaryIO, header: bytes, path: str | None) -> Iterator[Write]:
    """Yield a function that writes lines as records, which wait in the file that htslib needs."""
    pysam = import_pysam()
    about = pysam.AlignmentHeader.from_text(header.decode())
    with _TemporaryLines(path) as records:
        with records.errors_named():
            file = pysam.AlignmentFile(records.file, "wb", header=about)

        def write(lines: bytes) -> None:
            with records.errors_named():
                for line in lines.decode("ascii").splitlines():
                    file.write(pysam.AlignedSegment.fromstring(line, about))

        try:
            yield write
        finally:
            with records.errors_named():
                file.close()
        records.file.seek(0)
        shutil.copyfileobj(records.file, raw, BLOCK)


class _TemporaryLines:
    """A file without a name, which is gone when it is closed, or when the process ends."""

    def __init__(self, path: str | None) -> None:
        self._name = path or "temporary files"
        self._folder = Path(path).resolve().parent if path else Path(tempfile.gettempdir())
        with self.errors_named():
            self.file: IO[bytes] = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self.file.close()

    def write(self, lines: bytes) -> None:
        """Append lines. Raises Failure where the disk is full."""
        with self.errors_named():
            self.file.write(lines)

    def blocks(self) -> Iterator[bytes]:
        """Yield all lines, in blocks of whole ones."""
        with self.errors_named():
            self.file.seek(0)
        while lines := self.file.readlines(BLOCK):
            yield b"".join(lines)

    @contextmanager
    def errors_named(self) -> Iterator[None]:
        """Turn errors of the system into failures that name the output."""
        with failures_named(self._name), full_disk_named(self._folder):
            yield
