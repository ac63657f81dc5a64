"""Outputs that write rows to one file, and formats of these."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, Generic, TypeVar

from multigpu.cluster.files import atomic_output
from multigpu.formats.sequences.signatures import Signatures
from multigpu.formats.storage.compressed import Compressed, compression_of
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.output.row_lines import Columns, ScanRows
from multigpu.workloads.scan.sink import ON_DEMAND, Findings

# Columns on request, in their order. The last three are of alignments alone: letters of the sample,
# the tag MD, and M in place of = and X.
REQUESTED = (
    "file", "mate", "tied", "mismatches", "bulge", "bulge_size", "edits", "cigar", "ambiguous",
    "bases", "md", "plain_cigar",
)  # fmt: skip

T = TypeVar("T")
Write = Callable[[T, int], object]  # takes a payload, and the number of its first sample


def no_header(_: Columns) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class RowFormat:
    """A format of the rows of a scan. A new one needs a place in `registry.FORMATS`.

    suffixes    of names that ask for it
    sink        makes an output from the fields of a `RowSink`. Raises UsageError and InputError for
                inputs that it cannot have
    lines       makes lines of rows, on workers; None for formats that are no plain text
    header      makes the lines before the rows, from the columns on request
    has_always  columns of `REQUESTED` that it has without a request
    """

    name: str
    suffixes: tuple[str, ...]
    sink: "Callable[..., RowSink[Any]]"
    lines: Callable[[ScanRows], bytes] | None = None
    header: Callable[[Columns], str] = no_header
    has_always: Columns = ()

    def columns(self, asked: Iterable[str] = ()) -> Columns:
        """Return the columns of `REQUESTED` that rows have where some are asked for."""
        names = {*self.has_always, *asked}
        return tuple(name for name in REQUESTED if name in names)


@dataclass(frozen=True, eq=False, kw_only=True)
class RowSink(ABC, Generic[T]):
    """An output that is one file of rows. It pickles, as workers collect for it.

    path     None and "-": standard output; its suffix says how it is compressed
    columns  those of `REQUESTED` that it has
    files    paths of the samples, by their numbers
    layouts  of the samples: names of their formats
    """

    path: str | None
    format: RowFormat
    columns: Columns
    signatures: Signatures
    files: tuple[str, ...]
    layouts: frozenset[str]
    options: ScanOptions

    @property
    def name(self) -> str:
        """The format and the columns."""
        return "+".join([self.format.name, *self.columns])

    @property
    def needs(self) -> frozenset[str]:
        needs = {"sample", "score", *self.columns}
        # Where signatures are aligned to samples MD has the letters of these.
        if "md" in needs and (self.format.name == "paf" or self.layouts == {"fasta"}):
            needs.add("bases")
        return ON_DEMAND & needs

    def rows_of(self, batch: Batch) -> ScanRows:
        """Return the rows of a batch, with what lines are made of."""
        return ScanRows(batch, self.signatures, self.columns, self.files)

    @abstractmethod
    def collect(self, found: Findings) -> T:
        """Return the payload. Raises InputError for a sample that the format cannot have."""

    @abstractmethod
    def write_to(self, file: BinaryIO) -> AbstractContextManager[Write[T]]:
        """Yield the function that writes payloads, in order, to a file.

        What is written is complete when the block ends without an error.
        """

    @contextmanager
    def open(self, files: ExitStack) -> Iterator[Write[T]]:
        """Yield the function that writes; the file has its name when `files` has ended."""
        file = files.enter_context(atomic_output(self.path))
        with self.write_to(file) as write:
            yield write
        file.flush()


class TextSink(RowSink[bytes]):
    """Rows as lines below the header of a format, which workers make and the client compresses."""

    def collect(self, found: Findings) -> bytes:
        lines = self.format.lines
        assert lines is not None
        return lines(self.rows_of(found.rows)) if len(found.rows) else b""

    @contextmanager
    def write_to(self, file: BinaryIO) -> Iterator[Write[bytes]]:
        out = Compressed(file, compression_of(self.path))
        out.write(self.format.header(self.columns).encode())
        yield lambda lines, _: out.write(lines)
        out.close()


class BatchSink:
    """An output that is no file: the rows as they are, for Python."""

    name, needs = "columns", frozenset({"sample", "score"})

    def collect(self, found: Findings) -> Batch:
        return found.rows
