"""Mean depths of one sample: regions of mosdepth, and coverage of CNVkit (`.cnn`)."""

import re
from io import BufferedReader

from multigpu.formats.tables.counts import COLUMNS, CountsFormat, Empty, TableParts, sample_of_file
from multigpu.formats.tables.counts_tsv import CNVKIT_PLACE, TextColumns, read_text

# Of mosdepth. No other table of counts is without a header; depths have decimals, as no count has.
FIRST_LINE = re.compile(rb"[^\t\n]+\t\d+\t\d+(\t[^\t\n]*)?\t\d+\.\d+\r?(\n|$)")
OTHERS = ["depth", "gene", "log2"]  # columns of CNVkit


def _titles(line: bytes) -> list[str]:
    return line.partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r").split("\t")


def _is_coverage(start: bytes) -> bool:
    """Whether a file has depths and nothing that is computed of them, as references and ratios."""
    titles = _titles(start)
    return titles[:3] == CNVKIT_PLACE and sorted(titles[3:]) == OTHERS


def read_cnvkit(path: str, file: BufferedReader, _: Empty) -> TableParts:
    """Return sample, regions and depths. Raises InputError for rows that are wrong."""
    return _read(path, file, _titles(file.readline()))


def read_mosdepth(path: str, file: BufferedReader, _: Empty) -> TableParts:
    """Return sample, regions and depths. Raises InputError for rows that are wrong."""
    found = FIRST_LINE.match(file.peek(1))
    genes = ["gene"] if found is None or found[1] is not None else []
    return _read(path, file, [*COLUMNS, *genes, "depth"])


def _read(path: str, file: BufferedReader, titles: list[str]) -> TableParts:
    genes = titles.index("gene") if "gene" in titles else None
    columns = TextColumns(tuple(titles), (titles.index("depth"),), genes)
    return (sample_of_file(path),), *read_text(path, file, columns)


CNVKIT = CountsFormat("coverage of CNVkit", _is_coverage, read_cnvkit, has_depths=True)
MOSDEPTH = CountsFormat(
    "regions of mosdepth", lambda start: bool(FIRST_LINE.match(start)), read_mosdepth, True
)
