"""Mean depths of one sample by CNVkit: `.cnn` with chromosome, start, end, gene, depth, log2."""

from io import BufferedReader

from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables.counts import CountsFormat, Empty, Values, sample_of_file
from multigpu.formats.tables.counts_tsv import TextColumns, read_text

PLACE, OTHERS = ["chromosome", "start", "end"], ["depth", "gene", "log2"]


def _titles(start: bytes) -> list[str]:
    return start.partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r").split("\t")


def _is_coverage(start: bytes) -> bool:
    """Whether a file has depths and nothing that is computed of them, as references and ratios."""
    titles = _titles(start)
    return titles[:3] == PLACE and sorted(titles[3:]) == OTHERS


def read_cnvkit(
    path: str, file: BufferedReader, _: Empty
) -> tuple[tuple[str, ...], Regions, Values]:
    """Return sample, regions and depths. Raises InputError for rows that are wrong."""
    titles = _titles(file.readline())
    columns = TextColumns(tuple(titles), (titles.index("depth"),), titles.index("gene"))
    return (sample_of_file(path),), *read_text(path, file, columns)


CNVKIT = CountsFormat("coverage of CNVkit", _is_coverage, read_cnvkit, has_depths=True)
