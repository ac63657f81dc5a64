"""The best signatures of each read: those with the fewest errors, and whether they are tied.

Of samples by their barcodes the same rule is compiled, see `multigpu.kernels.scan.barcodes`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences.signatures import Signatures
from multigpu.kernels.scan import allowed_bases
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.patterns import searched_errors

BULGE_WEIGHT = 1 << 16  # errors that a bulged base counts as: any bulge is worse than mismatches


@dataclass(frozen=True, eq=False, kw_only=True)
class TopRule:
    """The rule for which signatures are the best of a read.

    most    int64[signatures]: errors that a row may have
    absent  int64[signatures]: cost of a mate in which the signature was not found: of errors one
            more than are searched for, which it has at least
    delta   errors that another signature must have more than the best, else both are tied
    """

    most: NDArray[np.int64]
    absent: NDArray[np.int64]
    delta: int

    @classmethod
    def of(cls, signatures: Signatures, options: ScanOptions) -> "TopRule":
        lengths = signatures.letters.lengths
        bulges = BULGE_WEIGHT * max(options.max_dna_bulges, options.max_rna_bulges)
        return cls(
            most=allowed_bases(options.most_errors, lengths) + bulges,
            absent=(
                0 * lengths if options.overhang else searched_errors(lengths, options) + bulges + 1
            ),
            delta=options.min_delta,
        )

    def choose(
        self,
        record: NDArray[np.integer],
        mate: NDArray[np.int8],
        signature: NDArray[np.integer],
        errors: NDArray[np.integer],
        cost: NDArray[np.int64] | None = None,
    ) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """Return the rows among hits, of which a record and a signature have at most one.

        They are intp[k], numbers of hits, ascending; and int32[k], how many signatures are as good
        for the read, the row's own among them.

        A pair of reads, whose second mate is the record after the first, is one read with the sum
        of its errors. Signatures are tied that have fewer errors than the fewest and `delta`, also
        where these are more than a row may have.

        cost  int64[n], to compare signatures by instead of the errors (see `Hits.cost`)
        """
        read = record.astype(np.int64) - (mate == 2)
        both, which = np.unique(read * len(self.most) + signature, return_inverse=True)
        total = np.bincount(which, errors if cost is None else cost, len(both)).astype(np.int64)
        # A read and a signature; number of a hit of theirs.
        hit = np.zeros(len(both), np.intp)
        hit[which] = np.arange(len(which))
        lacks_mate = (mate[hit] > 0) & (np.bincount(which, minlength=len(both)) == 1)
        total += np.where(lacks_mate, self.absent[signature[hit]], 0)
        _, group = np.unique(read[hit], return_inverse=True)
        fewest = np.full(len(both), np.iinfo(np.int64).max)
        np.minimum.at(fewest, group, total)
        is_best = total < fewest[group] + self.delta
        tied = np.bincount(group, is_best)[group]
        chosen = np.flatnonzero(is_best[which] & (errors <= self.most[signature]))
        return chosen, tied[which[chosen]].astype(np.int32)
