"""The outputs that a command asks for, written in one pass.

A new one is a class, its option, and a line here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, Protocol, TypeVar

from multigpu.cluster.engine.events import Event, now
from multigpu.cluster.files import atomic_output
from multigpu.errors import UsageError, option
from multigpu.formats.sequences.signatures import Signatures
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.options import ALIGNMENTS, ScanOptions, ScanOutput, multiqc_paths
from multigpu.workloads.scan.output.amplicons import amplicon_sinks
from multigpu.workloads.scan.output.counts import write_counts
from multigpu.workloads.scan.output.multiqc import write_columns, write_heat_map
from multigpu.workloads.scan.output.record_sink import record_sink
from multigpu.workloads.scan.output.report import write_report
from multigpu.workloads.scan.output.row_sink import RowFormat, RowSink, Write
from multigpu.workloads.scan.sink import Findings, Sink
from multigpu.workloads.scan.tally import Tallies, Tally, tally_of

# Options of searches, and the formats that cannot have what they find.
NOT_IN = {
    "sample_sheet": (*ALIGNMENTS, "cas-offinder"),
    "overhang": (*ALIGNMENTS, "cas-offinder"),
    "circular": ALIGNMENTS,
    "max_edits": ("cas-offinder",),
}


T = TypeVar("T")
# Writes the numbers of a whole scan to a file, which stays open.
WriteTallies = Callable[[BinaryIO, Tallies], None]


class FileSink(Sink[T], Protocol):
    """Output that is written to files."""

    def open(self, files: ExitStack) -> AbstractContextManager[Write[T]]:
        """Yield the function that writes payloads; what is written is complete when it has ended.

        files  gets the files: they have their names, all outputs of a run together, when it ends
        """


@dataclass(frozen=True, eq=False, kw_only=True)
class TallySink:
    """Output of numbers of matches. It pickles, as workers collect for it.

    files        paths of the samples, by their numbers
    writers      what makes files of the numbers, by their paths
    is_detailed  whether one of them needs all that a `Tally` may have
    """

    signatures: Signatures
    options: ScanOptions
    files: tuple[str, ...]
    writers: Mapping[str, WriteTallies]
    is_detailed: bool

    @property
    def name(self) -> str:
        return "numbers, detailed" if self.is_detailed else "numbers"

    @property
    def needs(self) -> frozenset[str]:
        # Barcodes may stand in the second read of a pair, or nowhere in a read.
        has_sheet = self.options.sample_sheet is not None
        has_errors = self.is_detailed and self.options.has_errors
        return frozenset({"score", "cigar"} if has_errors and not has_sheet else {"score"})

    def collect(self, found: Findings) -> Tally:
        return tally_of(found, self.signatures, self.options, self.is_detailed)

    @contextmanager
    def open(self, files: ExitStack) -> Iterator[Write[Tally]]:
        """Yield the function that adds numbers; the files are written when the block has ended."""
        tallies = Tallies(self.files, self.signatures)
        opened = [files.enter_context(atomic_output(path)) for path in self.writers]
        yield lambda more, _: tallies.add(more)
        for write, file in zip(self.writers.values(), opened, strict=True):
            write(file, tallies)
            file.flush()


def sinks_of(job: ScanJob, out: ScanOutput, rows: RowFormat) -> list[FileSink[Any]]:
    """Return all outputs of a run, with the rows in this format.

    Raises UsageError and InputError for inputs that an output cannot have.
    """
    _check_format(job, out, rows)
    sinks: list[FileSink[Any]] = []
    if out.has_rows:
        sinks.append(_rows(job, out, rows))
    if writers := _tally_writers(job, out):
        sinks.append(
            TallySink(
                signatures=job.signatures,
                options=job.options,
                files=(*job.paths, *job.empty_files),
                writers=writers,
                is_detailed=out.report is not None,
            )
        )
    if out.templates:
        sinks.append(record_sink(job, out))
    return [*sinks, *amplicon_sinks(job, out)]


def _check_format(job: ScanJob, out: ScanOutput, rows: RowFormat) -> None:
    """Raise UsageError for options that do not go with this format of rows."""
    for name, formats in NOT_IN.items():
        if rows.name in formats and getattr(job.options, name):
            fmt = f"{option('format')} {rows.name}"
            raise UsageError(f"{option(name)} does not go with {fmt}: choose another format")
    for name, usual in (("tags", None), ("cigar", "=X")):
        if rows.name not in ALIGNMENTS and getattr(out, name) != usual:
            fmt = f"{option('format')} {' or '.join(ALIGNMENTS)}"
            raise UsageError(f"{option(name)} is of alignments: choose {fmt}")


def _rows(job: ScanJob, out: ScanOutput, rows: RowFormat) -> RowSink[Any]:
    asked = list(job.columns)
    asked += ["ambiguous"] * (out.ambiguous or job.options.max_ambiguous is not None)
    asked += ["md"] * (out.tags == "MD") + ["plain_cigar"] * (out.cigar == "M")
    return rows.sink(
        path=out.output,
        format=rows,
        columns=rows.columns(asked),
        signatures=job.signatures,
        files=job.paths,
        layouts=frozenset(source.layout for source in job.sources),
        options=job.options,
    )


def _tally_writers(job: ScanJob, out: ScanOutput) -> dict[str, WriteTallies]:
    """Return what makes the outputs of numbers of files and signatures, by their paths."""
    writers: dict[str, WriteTallies] = {}
    if out.counts:
        writers[out.counts] = partial(write_counts, out.counts)
    if out.multiqc:
        heat_map, columns = multiqc_paths(out.multiqc)
        writers |= {heat_map: write_heat_map, columns: write_columns}
    if out.report:
        writers[out.report] = partial(write_report, job.options)
    return writers


def write_outputs(job: ScanJob, sinks: Sequence[FileSink[Any]]) -> None:
    """Run the job and write all of its outputs; each has its name when all are complete.

    Raises what the job raises, and InputError for samples that an output cannot have.
    """
    with ExitStack() as files, ExitStack() as contents:
        writes = [contents.enter_context(sink.open(files)) for sink in sinks]
        for payloads, first in job.payloads(sinks):
            begin = now()
            for write, payload in zip(writes, payloads, strict=True):
                write(payload, first)
            job.emit(Event("written", details={"begin": begin}))
