"""Columns to text, many rows at once: numbers as Python writes them, pieces joined.

Compiled, so that no interpreter is held; loading the compiler takes longer than a few rows do.
Arrow, which joins the columns of `cnv.output.text_files`, writes no given number of decimals.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.tables.texts import Texts
from multigpu.kernels.compiled.text.columns import join_pieces, write_decimals, write_whole


def glued(*pieces: Texts | bytes) -> Texts:
    """Return the pieces of every row one after the other; bytes are the same in all rows."""
    rows = next(len(piece) for piece in pieces if isinstance(piece, Texts))
    begins = np.empty((len(pieces), rows), np.int64)
    lengths = np.empty_like(begins)
    raws, size = [], 0
    for i, piece in enumerate(pieces):
        if isinstance(piece, Texts):
            raw = piece.raw
            np.add(piece.begins, size, out=begins[i])
            lengths[i] = piece.lengths
        else:
            raw = np.frombuffer(piece, np.uint8)
            begins[i], lengths[i] = size, len(piece)
        raws.append(raw)
        size += len(raw)
    held = raws[0] if len(raws) == 1 else np.concatenate(raws)
    return Texts.one_after_the_other(join_pieces(held, begins, lengths), lengths.sum(axis=0))


def labelled(columns: Mapping[str, Texts], label: bytes, end: bytes) -> Iterator[Texts | bytes]:
    """Yield pieces to glue: the name of every column, put into the label, its texts, the end."""
    for name, texts in columns.items():
        yield from (label % name.encode(), texts, end)


def whole(values: NDArray[np.integer[Any]]) -> Texts:
    """Return whole numbers as text: int[n], not negative."""
    return Texts.one_after_the_other(*write_whole(values.astype(np.int64, copy=False)))


def decimals(values: NDArray[np.float64], digits: int) -> Texts:
    """Return the numbers of each row with `digits` decimals, tabs between them: `%.*f`.

    values: float64[n] or [n, columns], finite. What is too large for that is written by Python.
    """
    table = values.reshape(len(values), -1)
    raw, lengths, fits = write_decimals(table, digits)
    if not fits:
        return Texts.of(["\t".join(f"{x:.{digits}f}" for x in row).encode() for row in table])
    return Texts.one_after_the_other(raw, lengths)
