"""Products between primers that face each other: what --amplicons asks for, as BED or FASTA."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.files import atomic_output
from multigpu.errors import UsageError, option
from multigpu.formats.sequences.signatures import Signatures
from multigpu.formats.storage.compressed import Compressed, compression_of
from multigpu.formats.storage.fingerprints import digest
from multigpu.kernels.bases import COMPLEMENTARY_LETTERS
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.options import ScanOutput, is_fasta
from multigpu.workloads.scan.output.row_lines import delimited, lines_of, texts_of
from multigpu.workloads.scan.output.row_sink import Write
from multigpu.workloads.scan.sink import Findings

# X_LEFT and X_RIGHT, or X_F and X_R, with the number of an alternative (_alt2, _2) after it.
PRIMER = re.compile(rb"(.+)_(?:(LEFT|F)|RIGHT|R)(?:_(?:alt)?\d+)?", re.IGNORECASE)
NO_PAIRS = (
    "no two signatures are a pair of primers: name them X_LEFT and X_RIGHT, or X_F and X_R, or give"
    " a table with a column pair"
)
LEFT, RIGHT = 0, 1

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class PrimerPairs:
    """Signatures as primers.

    names  of the pairs
    pair   int64[signatures]: number of the pair that each belongs to; -1: none
    side   int64[signatures]: LEFT or RIGHT
    """

    names: list[bytes]
    pair: Numbers
    side: Numbers

    @classmethod
    def of(cls, signatures: Signatures) -> "PrimerPairs":
        """Return the pairs by the column of a table, else by names. Raises UsageError for none.

        In a pair of a column without such names the first signature is the left one.
        """
        numbers: dict[bytes, int] = {}
        pair, side = np.full((2, len(signatures)), -1, np.int64)
        for at, name in enumerate(signatures.names):
            found = PRIMER.fullmatch(name)
            title = signatures.pairs[at] if signatures.pairs else b""
            if not title and found:
                title = found[1]
            if title:
                is_left = bool(found[2]) if found else title not in numbers
                pair[at] = numbers.setdefault(title, len(numbers))
                side[at] = LEFT if is_left else RIGHT
        has_both = np.isin(pair[side == LEFT], pair[side == RIGHT])
        if not has_both.any():
            raise UsageError(NO_PAIRS)
        return cls(names=list(numbers), pair=pair, side=side)


class Products(NamedTuple):
    """Products in the order of their records, starts and ends.

    left, right  int64[n]: rows of the primers
    start, end   int64[n]: on the sample, from 0, half open; over the origin of a circle the end is
                 beyond its length
    reverse      bool[n]: whether the left primer lies on the strand -
    """

    left: Numbers
    right: Numbers
    start: Numbers
    end: Numbers
    reverse: NDArray[np.bool_]


def find_products(
    rows: Batch, primers: PrimerPairs, shortest: int, longest: int, circular: bool
) -> Products:
    """Return the products of all matches of each pair that face each other.

    rows               all matches of some records, on both strands
    shortest, longest  bases of a product, with its primers
    circular           whether records are circles
    """
    pair, side = primers.pair[rows.signature], primers.side[rows.signature]
    # Whether the left primer of a row's products lies on the strand -.
    is_turned = rows.reverse != (side == RIGHT)
    unit = 2 * (rows.sample_index * len(primers.names) + pair) + is_turned
    opens = np.flatnonzero((pair >= 0) & ~rows.reverse)
    closes = np.flatnonzero((pair >= 0) & rows.reverse)
    shift = np.zeros(len(closes), np.int64)
    if circular:  # it may be closed after the origin
        shift = np.concatenate([shift, rows.sample_length[closes]])
        closes = np.tile(closes, 2)
    ends = rows.end[closes] + shift
    largest = int(max(ends.max(initial=0), rows.start.max(initial=0)))
    shortest, longest = min(shortest, largest + 1), min(longest, largest)
    span = largest + longest + 1  # so that no product reaches from one unit into the next
    order = np.lexsort((ends, unit[closes]))
    closes, shift, ends = closes[order], shift[order], ends[order]
    keys, begins = unit[closes] * span + ends, unit[opens] * span + rows.start[opens]
    first = np.searchsorted(keys, begins + shortest, "left")
    counts = np.maximum(np.searchsorted(keys, begins + longest, "right") - first, 0)
    one = np.repeat(opens, counts)
    at = np.arange(len(one)) + np.repeat(first - np.cumsum(counts) + counts, counts)
    other, start, end, turned = closes[at], rows.start[one], ends[at], is_turned[one]
    fits = (rows.start[other] + shift[at] >= start) & (end >= rows.end[one])
    if circular:
        fits &= end - start <= rows.sample_length[one]
    left, right = np.where(turned, (other, one), (one, other))
    products = Products(left, right, start, end, turned)
    order = np.lexsort((right, left, turned, pair[left], end, start, rows.sample_index[left]))
    order = order[fits[order]]
    return Products(*(column[order] for column in products))


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
