"""Products of pairs of primers, as BED or FASTA: what --amplicons asks for."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from multigpu.cluster.files import atomic_output
from multigpu.errors import UsageError, option
from multigpu.formats.storage.compressed import Compressed, compression_of
from multigpu.formats.storage.fingerprints import digest
from multigpu.kernels.bases import COMPLEMENTARY_LETTERS
from multigpu.workloads.scan.amplicons import PrimerPairs, find_products
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.options import ScanOutput, is_fasta
from multigpu.workloads.scan.output.columns import delimited, lines_of, texts_of
from multigpu.workloads.scan.output.row_sink import Write
from multigpu.workloads.scan.sink import Findings


@dataclass(frozen=True, eq=False, kw_only=True)
class AmpliconSink:
    """Output of products: BED, or their bases from the left primer on as FASTA, by the suffix."""

    path: str
    primers: PrimerPairs
    signatures: list[bytes]
    shortest: int
    longest: int
    circular: bool

    needs = frozenset({"sample"})

    @property
    def name(self) -> str:
        """The format, the limits and the pairs."""
        kind = "FASTA" if is_fasta(self.path) else "BED"
        pairs = digest((self.primers.names, self.primers.pair, self.primers.side))
        return f"amplicons as {kind} from {self.shortest} to {self.longest} of {pairs}"

    def collect(self, found: Findings) -> bytes:
        rows = found.rows
        products = find_products(rows, self.primers, self.shortest, self.longest, self.circular)
        left, right, place = products.left, products.right, (products.start, products.end)
        one, other = (rows.signature[each] for each in (left, right))
        sample = texts_of(rows.sample, left)
        name = texts_of(self.primers.names, self.primers.pair[one])
        strand = texts_of([b"+", b"-"], products.reverse.astype(np.intp))
        if not is_fasta(self.path):
            errors = rows.errors[left] + rows.errors[right]
            return delimited(b"\t", [sample, *place, name, errors, strand])
        assert found.letters is not None
        bases = found.letters(rows.sample_index[left], *place)
        for i in np.flatnonzero(products.reverse).tolist():
            bases[i] = bases[i].translate(COMPLEMENTARY_LETTERS)[::-1]
        return lines_of(
            b">", name, b" ", sample, b":", place[0], b"-", place[1], b"(", strand, b") ",
            texts_of(self.signatures, one), b" ", texts_of(self.signatures, other), b"\n",
            bases, b"\n",
        )  # fmt: skip

    @contextmanager
    def open(self, files: ExitStack) -> Iterator[Write[bytes]]:
        """Yield the function that writes; the file has its name when `files` has ended."""
        file = files.enter_context(atomic_output(self.path))
        out = Compressed(file, compression_of(self.path))
        yield lambda lines, _: out.write(lines)
        out.close()
        file.flush()


def amplicon_sinks(job: ScanJob, out: ScanOutput) -> Iterator[AmpliconSink]:
    """Yield the outputs of products. Raises UsageError where the rows have not all of them."""
    if not out.amplicon_paths:
        return
    if (job.options.hits, job.options.strand) != ("all", "both"):
        needed = f"{option('hits')} all and {option('strand')} both"
        raise UsageError(f"{option('amplicons')} needs {needed}: primers face each other")
    primers = PrimerPairs.of(job.signatures)
    shortest, longest = out.amplicon_limits
    for path in out.amplicon_paths:
        yield AmpliconSink(
            path=path, primers=primers, signatures=job.signatures.names, shortest=shortest,
            longest=longest, circular=job.options.circular,
        )  # fmt: skip
