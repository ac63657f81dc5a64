"""Counts in bins as GATK-SV merges them: `#Chr Start End samples…`, 0-based half open."""

from io import BufferedReader

from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables.counts import COLUMNS, CountsFormat, Empty, Values, check_samples
from multigpu.formats.tables.counts_tsv import TextColumns, read_text

HEADER = b"chr\tstart\tend\t"


def read_bincov(
    path: str, file: BufferedReader, _: Empty
) -> tuple[tuple[str, ...], Regions, Values]:
    """Return samples, regions and values. Raises InputError for a file that is no table."""
    titles = file.readline().decode("utf-8", "replace").rstrip("\r\n").split("\t")
    samples = check_samples(path, [*COLUMNS, *titles[3:]])
    return samples, *read_text(path, file, TextColumns.of_samples(samples))


BINCOV = CountsFormat(
    "a bincov matrix of GATK-SV",
    lambda start: start.lower().lstrip(b"#").startswith(HEADER),
    read_bincov,
)
