"""Outputs that are made of numbers of files and signatures: one pass, one file each."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from multigpu.cluster.files import atomic_output
from multigpu.formats.sequences.signatures import Signatures
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.output.row_sink import Write
from multigpu.workloads.scan.sink import Findings
from multigpu.workloads.scan.tally import Tallies, Tally, tally_of

# Writes the numbers of a whole scan to a file, which stays open.
WriteTallies = Callable[[BinaryIO, Tallies], None]


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
        return frozenset({"cigar"} if has_errors and not has_sheet else ())

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
