"""Choice of the places of a signature in a record: the one order of all searches."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Wanted = Literal["first", "best", "sites", "all"]
Columns = tuple[NDArray[Any], ...]


class Places(NamedTuple):
    """Places of signatures in records, as columns of the same length.

    errors  mismatches, or edits
    bulge   bases of the sample alone, or, below 0, of the signature alone; None: there are none
    """

    record: NDArray[np.integer]
    signature: NDArray[np.integer]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    is_reverse: NDArray[np.bool_]
    errors: NDArray[np.int32]
    bulge: NDArray[np.integer] | None = None


def choose(
    wanted: Wanted, places: Places, *, by_end: bool = False, exact_suffix: bool = False
) -> NDArray[np.intp]:
    """Return the numbers of the wanted places, by record, signature, start, end and strand.

    What is there twice is one place.

    wanted        "first": of each record and signature that with the lowest start, or with `by_end`
                  the lowest end; "best": with the fewest bulged bases, then the least cost, then
                  as "first"; "sites": likewise of those that share their exact end on a strand;
                  "all". Of places with one start that with the fewest bulged bases is before
                  others, then that with the fewest mismatches; without bulges the shorter one.
                  Then comes the strand +, then the bulge of the sample
    exact_suffix  whether the exact end is the end of the signature, not its begin
    """
    record, signature, start, end, is_reverse, errors, bulge = places
    pair = signature, record
    in_order = is_reverse, end, start, *pair
    if wanted == "all":
        return first_of_each(in_order, ())
    if bulge is not None:
        rank: Columns = bulge < 0, is_reverse, errors, np.abs(bulge), start
    else:
        rank = (is_reverse, end) if by_end else (is_reverse, end, start)
    if wanted == "first":
        return first_of_each(pair, rank)
    if bulge is not None:
        cost: Columns = errors, np.abs(bulge)
    else:
        cost = (errors if by_end else cost_of(start, end, errors),)
    if wanted == "best":
        return first_of_each(pair, (*rank, *cost))
    exact_end = np.where(is_reverse == exact_suffix, start, end)
    found = first_of_each((exact_end, is_reverse, *pair), (*rank, *cost))
    return found[np.lexsort([each[found] for each in in_order])]


def cost_of(
    start: NDArray[np.int64], end: NDArray[np.int64], errors: NDArray[np.integer]
) -> NDArray[np.int64]:
    """Return int64[n]: less where more bases match less errors, then where errors are fewer."""
    errors = errors.astype(np.int64)
    cost: NDArray[np.int64] = ((2 * errors - (end - start)) << 31) + errors
    return cost


def first_of_each(group: Columns, rank: Columns) -> NDArray[np.intp]:
    """Return the row of each group that is first by its rank; keys as `numpy.lexsort` has them."""
    order = np.lexsort((*rank, *group))
    is_new = np.zeros(len(order), bool)
    is_new[:1] = True
    for each in group:
        key = each[order]
        is_new[1:] |= key[1:] != key[:-1]
    return order[is_new]
