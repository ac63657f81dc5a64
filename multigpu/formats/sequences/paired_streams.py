"""Paired reads from blocks of one file with mates in turns, or of two files in step."""

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from multigpu.errors import InputError
from multigpu.formats.sequences.file_records import FileRecords, Table, moved, place_of, title_at
from multigpu.formats.sequences.pairs import PairedSource, split_title
from multigpu.formats.sequences.spans import BlockSpan
from multigpu.formats.storage.sources import Block, new_memory
from multigpu.kernels.compiled.text.mates import find_other_name
from multigpu.kernels.compiled.text.records import NAME


def paired_spans(
    number: int, source: PairedSource, blocks: Sequence[Iterator[BlockSpan]]
) -> Iterator[BlockSpan]:
    """Yield blocks of whole pairs from the blocks of each file; the last may have an error."""
    files = [FileRecords(each) for each in blocks]
    each = 2 // len(files)  # records of a file in a pair
    for block in itertools.count():
        count = min(file.fill(each) // each for file in files)
        raw, table, error = take_pairs(source, files, count)
        error = error or (None if count else error_at_end(source, files))
        if count or error:
            yield BlockSpan(number, block, raw, table, error)
        if error or not count:
            return


def take_pairs(
    source: PairedSource,
    files: Sequence[FileRecords],
    count: int,
    allocate: Callable[[int], Block] = new_memory,
) -> tuple[Block, Table, InputError | None]:
    """Return the text and the table of `count` pairs, up to the first that are no mates.

    allocate  makes memory for the text
    """
    texts, tables, origins, size = [], [], [], 0
    for file in files:
        text, table, begin = file.take(2 * count // len(files))
        texts.append(text)
        tables.append(moved(table, size))
        origins.append(begin - size)
        size += len(text)
    raw = np.concatenate(texts, out=allocate(size))
    table = np.stack(tables, axis=1).reshape(-1, tables[0].shape[1])  # mates in turns
    at = 2 * int(find_other_name(raw, table[::2], raw, table[1::2], True))
    strays = table[at : at + 2, NAME].tolist()
    return raw, table[:at], _stray_error(source, raw, strays, origins) if strays else None


def _stray_error(
    source: PairedSource, raw: Block, names: Sequence[int], origins: Sequence[int]
) -> InputError:
    """Return the error for two records that are no mates, by the positions of their names.

    origins  of each file, what is to be added to these to have positions in the file
    """
    (name, number), (other, second) = (split_title(title_at(raw, each)) for each in names)
    why = "their names differ"
    if name == other:
        why = f"their numbers are {number or 'missing'} and {second or 'missing'}, not 1 and 2"
    one, two = source.files[0].path, source.files[-1].path
    problem = f"is no mate of {place_of(raw, names[0], origins[0])} of {one}: {why}"
    return InputError(two, problem, place_of(raw, names[1], origins[-1]))


def error_at_end(source: PairedSource, files: Sequence[FileRecords]) -> InputError | None:
    """Return the error where a file ends or is wrong after the pairs and the other is not."""
    each = 2 // len(files)
    ended = [file for file in files if file.fill(each) < each]
    if error := next((file.error for file in ended if file.error), None):
        return error
    for which, file in enumerate(files):
        if ended and len(file.table):
            why = "the number of records is odd"
            if len(files) == 2:
                why = f"{source.files[1 - which].path} has fewer records"
            return InputError(source.files[which].path, f"has no mate: {why}", file.place())
    return None
