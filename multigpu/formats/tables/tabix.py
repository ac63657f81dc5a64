"""VCF and BED files compressed in blocks (BGZF) and indexed, by htslib."""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from multigpu.formats.optional import import_pysam

LONGEST_TBI = 1 << 29  # bases that an index of the kind TBI covers; CSI covers more
LEVEL = 4  # of compression: faster than the usual 6, for a tenth more
FULL = 1 << 20  # bytes: a disk with less room is full


def write_indexed(path: Path, text: Iterable[bytes], end: int, kind: str = "vcf") -> None:
    """Write a file and its index: `.tbi`, or `.csi` for long chromosomes. Raises OSError.

    text  the lines, in pieces; records are in order
    end   the last base of a record
    kind  "vcf" or "bed"
    """
    pysam = import_pysam()
    # htslib takes "s3:x" for an address.
    name = str(path.absolute())
    with full_disk_named(path.parent):
        with pysam.BGZFile(name, f"w{LEVEL}") as file:
            for piece in text:
                file.write(piece)
        pysam.tabix_index(name, preset=kind, force=True, csi=end >= LONGEST_TBI)


@contextmanager
def full_disk_named(folder: Path) -> Iterator[None]:
    """Give errors of htslib on a folder's full disk their number, which htslib leaves out."""
    try:
        yield
    except OSError as error:
        disk: Any = os.statvfs(folder)
        if error.errno is None and disk.f_bavail * disk.f_frsize < FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise
