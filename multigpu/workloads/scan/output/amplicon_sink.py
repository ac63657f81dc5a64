"""Products of pairs of primers, as BED or FASTA: what --amplicons asks for."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from multigpu.cluster.files import atomic_output
from multigpu.errors import UsageError, option
from multigpu.formats.storage.compressed import Compressed, compression_of
from multigpu.formats.storage.fingerprints import digest
from multigpu.kernels.bases import COMPLEMENTARY_LETTERS
from multigpu.workloads.scan.amplicons import PrimerPairs, find_products
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.options import ScanOutput, is_fasta
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
        records = rows.sample_index[products.left]
        texts = [b""] * len(records)
        if is_fasta(self.path):
            assert found.letters is not None
            texts = found.letters(records, products.start, products.end)
        columns = (
            products.left, products.right, products.start, products.end, products.reverse,
            rows.errors[products.left] + rows.errors[products.right],
        )  # fmt: skip
        lines = zip(*(column.tolist() for column in columns), texts, strict=True)
        return b"".join([self._line(found, *line) for line in lines])

    def _line(
        self, found: Findings, left: int, right: int, start: int, end: int, reverse: bool,
        errors: int, bases: bytes,
    ) -> bytes:  # fmt: skip
        """Return the line of BED, or the record of FASTA."""
        rows = found.rows
        sample, strand = rows.sample[left], b"+-"[reverse : reverse + 1]
        one, other = rows.signature[left], rows.signature[right]
        name = self.primers.names[self.primers.pair[one]]
        if not is_fasta(self.path):
            return b"%s\t%d\t%d\t%s\t%d\t%s\n" % (sample, start, end, name, errors, strand)
        if reverse:
            bases = bases.translate(COMPLEMENTARY_LETTERS)[::-1]
        primers = (self.signatures[one], self.signatures[other])
        return b">%s %s:%d-%d(%s) %s %s\n%s\n" % (
            name, sample, start, end, strand, *primers, bases
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
