"""Parts as bytes and back, without pickle: what a journal holds may come from anybody's disk.

A part consists of numbers, text, bytes, None, lists, tuples, dictionaries, NumPy arrays, and of
dataclasses and exceptions of the classes that the workload names.
"""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import msgpack
import numpy as np

ARRAY, OBJECT, TUPLE = 1, 2, 3  # the extension types
NAMES = "surrogateescape"  # names of files are bytes, which need not be UTF-8


class Codec:
    """Packs and unpacks values that are made of plain ones, arrays and these classes.

    An exception is kept by its `args`, a dataclass by its fields; both are made anew by calling
    the class with them. Raises TypeError and ValueError for anything else.
    """

    def __init__(self, classes: Sequence[type] = ()) -> None:
        self._classes = {kind.__name__: kind for kind in classes}

    def pack(self, value: Any) -> bytes:
        packed: bytes = msgpack.packb(
            value, default=self._extended, strict_types=True, unicode_errors=NAMES
        )
        return packed

    def unpack(self, data: bytes) -> Any:
        return msgpack.unpackb(
            data, ext_hook=self._restored, strict_map_key=False, unicode_errors=NAMES
        )

    def _extended(self, value: Any) -> Any:
        """What msgpack does not know."""
        if isinstance(value, tuple):
            return msgpack.ExtType(TUPLE, self.pack(list(value)))
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                raise TypeError("an array of Python objects is no data")
            about = [value.dtype.str, list(value.shape), value.tobytes()]
            return msgpack.ExtType(ARRAY, self.pack(about))
        if isinstance(value, np.generic):
            return value.item()
        name = type(value).__name__
        if self._classes.get(name) is not type(value):
            raise TypeError(f"a part may not hold a {name}")
        return msgpack.ExtType(OBJECT, self.pack([name, *_contents(value)]))

    def _restored(self, kind: int, data: bytes) -> Any:
        value = self.unpack(data)
        if kind == TUPLE:
            return tuple(value)
        if kind == ARRAY:
            dtype, shape, raw = value
            return np.frombuffer(bytearray(raw), dtype).reshape(shape)
        if kind == OBJECT and value[0] in self._classes:
            return self._classes[value[0]](*value[1:])
        raise ValueError("not a value of this program")


def _contents(value: Any) -> list[Any]:
    if is_dataclass(value):
        return [getattr(value, field.name) for field in fields(value)]
    if isinstance(value, BaseException):
        return list(value.args)
    raise TypeError(f"a part may not hold a {type(value).__name__}")
