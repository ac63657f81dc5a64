"""Single bases of a FASTA file, plain or in blocks (BGZF), by its index; htslib reads them."""

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from multigpu.errors import InputError
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.optional import import_pysam
from multigpu.formats.storage.stored_streams import errors_named

# VCF takes the first in the alphabet of those that another letter stands for.
FIRST_OF = dict(zip("RYSWKMBDHV", "ACCAGACAAA", strict=True))


class IndexedFasta:
    """A reference genome. An index that is missing is made for this object alone.

    lengths  bases of each sequence, by name

    Raises InputError for a file that cannot be read or indexed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        pysam, name = import_pysam(), str(Path(path).absolute())
        with errors_named(path), open(path, "rb") as file:  # noqa: PTH123
            is_packed = file.read(2) == b"\x1f\x8b"
        indexes = [f"{name}.fai", *[f"{name}.gzi"] * is_packed]
        try:
            with TemporaryDirectory(prefix="multigpu-") as folder:
                if not all(map(os.path.exists, indexes)):
                    indexes = [f"{folder}/{kind}" for kind in ("fai", "gzi")]
                    pysam.faidx(name, "--fai-idx", indexes[0], "--gzi-idx", indexes[1])
                packed = indexes[1] if is_packed else None
                self._file = pysam.FastaFile(name, indexes[0], packed)
        except (OSError, ValueError, pysam.SamtoolsError) as error:
            problem = "is no FASTA file that can be indexed, plain or compressed by bgzip"
            raise InputError(path, problem) from error
        self.lengths = dict(zip(self._file.references, self._file.lengths, strict=True))

    def check(self, regions: Regions, lengths: Mapping[str, int]) -> None:
        """Raise InputError where regions or lengths of chromosomes are those of another genome."""
        for name, rows in regions.by_name().items():
            end = int(regions.end[rows].max())
            length = self.lengths.get(name)
            known = lengths.get(name, length)
            problem = ""
            if length is None or known is None:
                problem = f"has no sequence {name}"
            elif length != known:
                problem = f"{name} has {length:,} bases, and {known:,} in the data"
            elif end > length:
                problem = f"{name} has {length:,} bases, and regions reach to {end:,}"
            if problem:
                raise InputError(self.path, f"{problem}: is it of another genome?")

    def base(self, name: str, position: int) -> str:
        """Return the base at a position, from 0, as VCF writes it: A, C, G, T or N."""
        letter = self._file.fetch(name, position, position + 1).upper()
        return letter if letter in "ACGT" else FIRST_OF.get(letter, "N")
