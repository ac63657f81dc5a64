"""The files that records go to by what was found in them, and their order there."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc

NOWHERE = -1


class Numbering(NamedTuple):
    """The number of the file that a record goes to: `first`, and each index times its step.

    first   number where all indices are 0; NOWHERE where no files are asked for
    name    step from one name that rows have to the next
    source  from one input file to the next
    mate    from the first mate to the second
    """

    first: int = NOWHERE
    name: int = 0
    source: int = 0
    mate: int = 0


class Destinations(NamedTuple):
    """Records in the order of the files that they go to, and of the records in each.

    records  int32[k]      number of the record
    ends     int64[files]  where the records of each file end
    places   int64[rows]   where the record of each row is among them; NOWHERE where it goes nowhere
    """

    records: NDArray[np.int32]
    ends: NDArray[np.int64]
    places: NDArray[np.int64]


def place_records(
    samples: NDArray[np.int64],
    signatures: NDArray[np.int32],
    tied: NDArray[np.int32],
    names: NDArray[np.int64],
    records: int,
    *,
    mates: int,
    files: int,
    both: bool,
    matched: Numbering,
    unmatched: Numbering,
    total: int,
) -> Destinations:
    """Return where records go: a read once to every file that its rows name, else to `unmatched`.

    samples     int64[rows]            the record of each row, ascending
    signatures  int32[rows]            its signature
    tied        int32[rows]            number of signatures that are as good; 0 or 1: it is alone
    names       int64[signatures + 1]  index of the name of each signature, and of tied ones
    records     their number, a multiple of `mates`
    mates       2 where records are mates in turns, which go together
    files       2 where the mates are of two input files
    both        whether a read is only of names that both mates have rows of
    total       number of files
    """
    row_names, places = np.empty(len(samples), np.int64), np.full(len(samples), NOWHERE, np.int64)
    most, room = int(names.max()) + 1, mates * len(samples) + records
    scratch = np.zeros(most, np.uint8), np.empty(most, np.int64), np.empty(most, np.int64)
    placed, numbers, order = (np.empty(room, np.int32) for _ in range(3))
    found = Destinations(order, np.zeros(total, np.int64), places)
    about = records // mates, mates, files, both
    rows = samples, signatures, tied, names, row_names
    count = _place(rows, about, matched, unmatched, scratch, placed, numbers, found)
    return found._replace(records=order[:count])


@jit_no_alloc
def _place(
    rows: Any, about: Any, matched: Any, unmatched: Any, scratch: Any, placed: Any, numbers: Any,
    found: Any,
) -> Any:  # fmt: skip
    """See `place_records`. Return the number of records."""
    samples, signatures, tied, name_of, names = rows
    (reads, mates, files, both), (seen, begins, of_read) = about, scratch
    for row in range(samples.shape[0]):
        names[row] = name_of[-1 if tied[row] > 1 else signatures[row]]
    count = row = 0
    for read in range(reads):
        first, n, is_matched = row, 0, False
        while row < samples.shape[0] and samples[row] // mates == read:
            if not seen[names[row]]:
                of_read[n] = names[row]
                n += 1
            seen[names[row]] |= 1 << samples[row] % mates
            row += 1
        for name in of_read[:n]:
            is_kept = seen[name] == 3 or not both
            is_matched |= is_kept
            seen[name], begins[name] = 0, count if is_kept and matched.first >= 0 else NOWHERE
            if begins[name] >= 0:
                count = _send(read, name, mates, files, matched, placed, numbers, count)
        for i in range(first, row):
            begin = begins[names[i]]
            found.places[i] = begin + samples[i] % mates if begin >= 0 else NOWHERE
        if not is_matched and unmatched.first >= 0:
            count = _send(read, 0, mates, files, unmatched, placed, numbers, count)
    _sort(placed[:count], numbers[:count], found)
    return count


@jit_no_alloc
def _send(
    read: Any, name: Any, mates: Any, files: Any, to: Any, placed: Any, numbers: Any, count: Any
) -> Any:
    """Send the records of a read to the files of a name; return how many are sent now."""
    for record in range(read * mates, (read + 1) * mates):
        source, mate = record % files, record % mates
        placed[count] = record
        numbers[count] = to.first + name * to.name + source * to.source + mate * to.mate
        count += 1
    return count


@jit_no_alloc
def _sort(placed: Any, numbers: Any, found: Any) -> None:
    """Sort the records by the numbers of their files, and have the rows follow."""
    records, ends, places = found
    for number in numbers:
        ends[number] += 1
    begin = 0
    for file in range(ends.shape[0]):
        begin, ends[file] = begin + ends[file], begin
    for i in range(placed.shape[0]):
        number = numbers[i]
        numbers[i] = ends[number]
        records[numbers[i]] = placed[i]
        ends[number] += 1
    for row in range(places.shape[0]):
        if places[row] >= 0:
            places[row] = numbers[places[row]]
