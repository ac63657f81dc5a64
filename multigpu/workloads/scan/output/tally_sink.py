"""Outputs that are made of numbers of files and signatures: one pass, one file each."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from multigpu.cluster.files import atomic_output
from multigpu.formats.sequences.signatures import Signatures
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.output.row_sink import Write
from multigpu.workloads.scan.sink import Findings
from multigpu.workloads.scan.tally import Tallies, Tally, tally_of


@dataclass(frozen=True)
class TallyFile:
    """A file that is made of the numbers of a whole scan.

    write        writes them to a file, which stays open
    is_detailed  whether it needs all numbers of a `Tally`
    """

    path: str
    write: Callable[[BinaryIO, Tallies], None]
    is_detailed: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class TallySink:
    """Output of numbers of matches. It pickles, as workers collect for it.

    files    paths of the samples, by their numbers
    written  what is made of the numbers
    """

    signatures: Signatures
    options: ScanOptions
    files: tuple[str, ...]
    written: tuple[TallyFile, ...]

    sample_names = bases = False

    @property
    def is_detailed(self) -> bool:
        return any(each.is_detailed for each in self.written)

    @property
    def name(self) -> str:
        return "numbers, detailed" if self.is_detailed else "numbers"

    @property
    def cigars(self) -> bool:
        # Barcodes may stand in the second read of a pair, or nowhere in a read.
        has_sheet = self.options.sample_sheet is not None
        return self.is_detailed and self.options.has_errors and not has_sheet

    def collect(self, found: Findings) -> Tally:
        return tally_of(found, self.signatures, self.options, self.is_detailed)

    @contextmanager
    def open(self, files: ExitStack) -> Iterator[Write[Tally]]:
        """Yield the function that adds numbers; the files are written when the block has ended."""
        tallies = Tallies(self.files, self.signatures)
        opened = [files.enter_context(atomic_output(each.path)) for each in self.written]
        yield lambda more, _: tallies.add(more)
        for each, file in zip(self.written, opened, strict=True):
            each.write(file, tallies)
            file.flush()
