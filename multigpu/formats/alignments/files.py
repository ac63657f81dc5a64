"""BAM and CRAM files: their references, indexes of BAM files, how they are cut, their reads."""

import logging
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, option, several
from multigpu.formats.alignments import bam, cram
from multigpu.formats.alignments.bam import Stretch
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.storage.sources import read_beginning
from multigpu.formats.storage.stored_streams import is_regular
from multigpu.formats.tables.sam import SAM, advise_on_sam
from multigpu.kernels.compiled.alignments import POSITION_BITS
from multigpu.kernels.counting.types import Reads

logger = logging.getLogger(__name__)

Reference = tuple[str, int]  # name and length in bases

MODULES = {"bam": bam, "cram": cram}
SUFFIXES = (".bai", ".csi")  # of indexes
RG = "@RG"  # as the name of samples: that in each file's read groups


@dataclass(frozen=True)
class AlignmentFile:
    """File of alignments.

    kind   "bam" or "cram"
    index  the path of the index of a BAM file, None to read the whole file
    """

    path: str
    kind: str
    references: tuple[Reference, ...]
    index: str | None


def inspect_alignments(path: str) -> AlignmentFile:
    """Return what a file has. Raises InputError where it is no BAM or CRAM file, or is damaged."""
    if not is_regular(path):
        raise InputError(path, "BAM and CRAM files must be regular files")
    start = read_beginning(path)
    if start.decode("latin-1").startswith(SAM):
        raise InputError(path, advise_on_sam(path))
    for kind, module in MODULES.items():
        if start.startswith(module.MAGIC):
            module.check_end(path)
            return AlignmentFile(path, kind, tuple(module.references(path)), _index_of(path))
    others = "nor a list of files or a sheet with columns path and name"
    raise InputError(path, f"is neither BAM nor CRAM, {others}")


def sample_of(file: AlignmentFile) -> str:
    """Return the sample (SM) that the read groups name. Raises InputError without just one."""
    text: str = MODULES[file.kind].header(file.path)
    groups = [line for line in text.split("\n") if line.startswith(f"{RG}\t")]
    fields = [field for group in groups for field in group.split("\t")]
    found = list(dict.fromkeys(field[3:] for field in fields if field.startswith("SM:")))
    if len(found) == 1:
        return found[0]
    problem = f"its read groups name {several(found)}, not one sample"
    if not found:
        problem = "it has no read group that names a sample (SM)"
    raise InputError(file.path, f"{problem}: give {option('sample_names')} NAME,…")


def _index_of(path: str) -> str | None:
    """Return the path of the index of a BAM file, `x.bam.bai` or `x.bai`, or None."""
    for suffix in SUFFIXES:
        for name in (path + suffix, str(Path(path).with_suffix(suffix))):
            if Path(name).is_file():
                return name
    return None


def reads(alignments: AlignmentFile, stretch: Stretch, ordered: bool) -> Iterator[Reads]:
    """Yield the mapped reads of a stretch. Raises InputError for `ordered` ones that are not."""
    if alignments.kind == "bam":
        return bam.reads(alignments.path, len(alignments.references), stretch, ordered)
    return cram.reads(alignments.path, ordered)


def without_chr(name: str) -> str:
    """Return a chromosome's name without the `chr` that some have and some have not."""
    return name[3:] if name.lower().startswith("chr") and len(name) > 3 else name


def renamed_as(regions: Regions, others: Regions) -> Regions:
    """Return regions with others' names of chromosomes that differ by `chr` only."""
    alike = {without_chr(name): name for name in others.names}
    names = tuple(
        name if name in others.names else alike.get(without_chr(name), name)
        for name in regions.names
    )
    # Two that would become one differ by more.
    return replace(regions, names=names) if len({*names}) == len(names) else regions


def check_references(files: Sequence[AlignmentFile], rename: bool) -> None:
    """Raise InputError at the first reference that differs; rename: by more than `chr`."""
    first = files[0]
    for file in files[1:]:
        pairs = zip_longest(first.references, file.references)
        for number, (ours, theirs) in enumerate(pairs, 1):
            if _key(ours, rename) != _key(theirs, rename):
                here = f"reference {number} is {_show(theirs)} here"
                said = f"{here} and {_show(ours)} in {first.path}"
                if _key(ours, True) == _key(theirs, True):
                    same = f"{option('rename')} auto takes them as the same"
                    said += f" (the names differ only by `chr`: {same})"
                raise InputError(file.path, said)


def _key(reference: Reference | None, rename: bool) -> Reference | None:
    if reference is None or not rename:
        return reference
    return without_chr(reference[0]), reference[1]


def _show(reference: Reference | None) -> str:
    return "missing" if reference is None else f"{reference[0]} ({reference[1]:,} bases)"


def numbers_of(names: Sequence[str], file: AlignmentFile, rename: bool, source: str) -> list[int]:
    """Return the number of the reference that each name stands for.

    source  where the names are from, for the error: none is ever counted as zero in silence
    """
    exact = {name: number for number, (name, _) in enumerate(file.references)}
    alike = {without_chr(name): number for number, (name, _) in enumerate(file.references)}
    found: dict[int, str] = {}
    for name in names:
        number = exact.get(name, alike.get(without_chr(name)))
        if number is None:
            missing = several([n for n in names if n not in exact and without_chr(n) not in alike])
            has = several([*exact])
            raise InputError(source, f"{file.path} has no reference {missing}: it has {has}")
        if name not in exact and not rename:
            theirs = file.references[number][0]
            same = f"{option('rename')} auto takes them as the same"
            raise InputError(source, f"{name} is called {theirs} in {file.path}: {same}")
        if number in found:
            problem = f"{name} and {found[number]} are one reference of {file.path}"
            raise InputError(source, problem)
        found[number] = name
    return list(found)


def cut(
    file: AlignmentFile, wanted: Mapping[int, tuple[int, int]], size: int
) -> tuple[list[Stretch], dict[int, int | None]]:
    """Return pieces of a file that hold all reads which may reach into what is wanted.

    With them go the mapped reads of references read wholly. Raises InputError for a bad index.

    wanted  for references by number, where the first region begins and the last one ends
    size    stored bytes of a piece, about
    """
    if file.index is None:
        return [bam.WHOLE], {}
    if Path(file.index).stat().st_mtime < Path(file.path).stat().st_mtime:
        logger.warning("multigpu: %s is older than the file it belongs to", file.index)
    entries = bam.read_index(file.index)
    _check_index(file, entries)
    with_reads = [number for number, each in enumerate(entries) if len(each.offset)]
    stored = sorted(with_reads, key=lambda number: int(entries[number].offset[0]))
    numbers = [number for number in stored if number in wanted]
    smallest = [_between(number, entries[number], *wanted[number]) for number in numbers]
    begin, end, offset = np.concatenate([np.empty((3, 0), np.int64), *smallest], axis=1)
    piece = (offset >> 16) // size
    if stored != with_reads:  # in another order than in the header: each alone
        piece = piece * len(entries) + (begin >> POSITION_BITS)
    first = np.flatnonzero(np.diff(piece, prepend=-1))
    last = np.flatnonzero(np.diff(piece, append=-1))
    columns = (begin[first].tolist(), end[last].tolist(), offset[first].tolist())
    whole = [n for n in numbers if wanted[n][0] == 0 and wanted[n][1] >= file.references[n][1]]
    stretches = [Stretch(*row) for row in zip(*columns, strict=True)]
    return stretches, {number: entries[number].mapped for number in whole}


def index_error(file: AlignmentFile) -> InputError:
    """Return the error of an index that does not tell what its file has."""
    cure = f"`samtools index {shlex.quote(file.path)}` makes it again"
    cure += f", {option('index', on=False)} does without"
    return InputError(f"{file.index}", f"is damaged, or not the index of {file.path}: {cure}")


def _check_index(file: AlignmentFile, entries: Sequence[bam.Entries]) -> None:
    """Raise InputError where the file goes on after the last record that the index knows."""
    last = max((each.end for each in entries), default=0)
    wrong = len(entries) != len(file.references) or last >> 16 > Path(file.path).stat().st_size
    with suppress(InputError):
        if not wrong and not bam.has_more(file.path, last):
            return
    raise index_error(file)


def _between(number: int, entries: bam.Entries, begin: int, end: int) -> NDArray[np.int64]:
    """Return the stretches between entries of a reference: int64[3, n], begin, end and offset."""
    first = int(np.searchsorted(entries.position, begin, "right")) - 1
    stop = int(np.searchsorted(entries.position, end))
    borders = np.r_[0, entries.position[first + 1 : stop], end] + bam.place(number, 0)
    return np.stack([borders[:-1], borders[1:], entries.offset[first:stop]])
