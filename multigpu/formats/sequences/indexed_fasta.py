"""Single bases of a FASTA file, plain or in blocks (BGZF), by its index; htslib reads them."""

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from multigpu.errors import InputError, option, printable_name, several
from multigpu.formats.alignments.files import without_chr
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

    def base(self, name: str, position: int) -> str:
        """Return the base at a position, from 0, as VCF writes it: A, C, G, T or N."""
        letter = self._file.fetch(name, position, position + 1).upper()
        return letter if letter in "ACGT" else FIRST_OF.get(letter, "N")


def check_sequences(
    path: str,
    sequences: Mapping[str, int],
    regions: Regions,
    lengths: Mapping[str, int],
    rename: bool = False,
) -> None:
    """Raise InputError where a file of sequences is of another genome than regions.

    sequences  lengths by name
    lengths    of chromosomes in the data, by name, where they are known
    rename     names that differ by `chr` are the same
    """
    alike = {without_chr(name): length for name, length in sequences.items()}
    for name, rows in regions.by_name().items():
        end, shown = int(regions.end[rows].max()), printable_name(name)
        length = sequences.get(name, alike.get(without_chr(name)) if rename else None)
        problem, helps = "", "is it of another genome?"
        if length is None:
            problem = f"has no sequence {shown} (it has {several([*sequences])})"
            if without_chr(name) in alike:
                helps = f"{option('rename')} auto takes names as the same that differ by `chr`"
        elif length != lengths.get(name, length):
            problem = f"{shown} has {length:,} bases, and {lengths[name]:,} in the data"
        elif end > length:
            problem = f"{shown} has {length:,} bases, and regions reach to {end:,}"
        if problem:
            raise InputError(path, f"{problem}: {helps}")
