"""Texts in one buffer, without an object for each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


def replace_undecodable(word: str) -> str:
    """Return a word with a question mark for each byte that is no UTF-8 (in names of files)."""
    return word if word.isascii() else word.encode("utf-8", "replace").decode()


@dataclass(frozen=True, eq=False)
class Texts:
    """Sequence of texts: number i is raw[begins[i] : begins[i] + lengths[i]].

    raw      uint8[size]; what is in no text may be anything. It is kept read-only, whatever it was:
             functions are compiled for each kind of array, which takes seconds
    begins   int64[n], in any order
    lengths  int64[n]

    Raises ValueError otherwise: what is compiled does not look where it reads.
    """

    raw: Bytes
    begins: Places
    lengths: Places

    def __post_init__(self) -> None:
        begins, lengths, size = self.begins, self.lengths, len(self.raw)
        for array, dtype in ((self.raw, np.uint8), (begins, np.int64), (lengths, np.int64)):
            if array.dtype != dtype or array.ndim != 1 or begins.shape != lengths.shape:
                raise ValueError("texts are uint8[size], int64[n] and int64[n]")
        inside = (begins >= 0) & (lengths >= 0) & (lengths <= size) & (begins <= size - lengths)
        if not inside.all():
            raise ValueError(f"texts beyond their {size} bytes")
        raw = self.raw.view()
        raw.flags.writeable = False
        object.__setattr__(self, "raw", raw)

    @classmethod
    def one_after_the_other(cls, raw: Bytes, lengths: Places) -> "Texts":
        """Return texts that fill `raw` from its start."""
        return cls(raw, np.cumsum(lengths) - lengths, lengths)

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> "Texts":
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        return cls.one_after_the_other(np.frombuffer(b"".join(texts), np.uint8), lengths)

    @classmethod
    def joined(cls, parts: Sequence["Texts"]) -> "Texts":
        """Return the texts of all parts, in order."""
        if len(parts) == 1:
            return parts[0]
        sizes = np.cumsum([0, *(len(part.raw) for part in parts)])
        return cls(
            np.concatenate([part.raw for part in parts]),
            np.concatenate([part.begins + size for part, size in zip(parts, sizes, strict=False)]),
            np.concatenate([part.lengths for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.begins)

    def __getitem__(self, i: int) -> bytes:
        begin = self.begins[i]
        return self.raw[begin : begin + self.lengths[i]].tobytes()

    def each(self) -> list[bytes]:
        """Return all texts as objects."""
        raw = self.raw.tobytes()
        ends = (self.begins + self.lengths).tolist()
        return [raw[a:b] for a, b in zip(self.begins.tolist(), ends, strict=True)]
