"""Mean depths of one sample by mosdepth: chromosome, start, end, [name], depth."""

import re
from io import BufferedReader

from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables.counts import COLUMNS, CountsFormat, Empty, Values, sample_of_file
from multigpu.formats.tables.counts_tsv import TextColumns, read_text

# No other table of counts is without a header. Depths have decimals, as no count has.
FIRST_LINE = re.compile(rb"[^\t\n]+\t\d+\t\d+(\t[^\t\n]*)?\t\d+\.\d+\r?(\n|$)")


def read_mosdepth(
    path: str, file: BufferedReader, _: Empty
) -> tuple[tuple[str, ...], Regions, Values]:
    """Return sample, regions and depths. Raises InputError for rows that are wrong."""
    found = FIRST_LINE.match(file.peek(1))
    has_names = found is None or found[1] is not None
    names = (*COLUMNS, "name", "depth") if has_names else (*COLUMNS, "depth")
    columns = TextColumns(names, (len(names) - 1,), genes=3 if has_names else None)
    return (sample_of_file(path),), *read_text(path, file, columns)


MOSDEPTH = CountsFormat(
    "regions of mosdepth",
    lambda start: FIRST_LINE.match(start) is not None,
    read_mosdepth,
    has_depths=True,
)
