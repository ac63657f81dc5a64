"""Packing parts as bytes and back, without pickle: a journal may come from anybody's disk.

A part consists of numbers, text, bytes, None, lists, tuples, dictionaries, NumPy arrays, and of
dataclasses and exceptions of the classes that the workload names. The bytes are msgpack.
"""

import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import msgpack
import numpy as np

ARRAY, OBJECT, TUPLE = 1, 2, 3  # the extension types
DTYPE = re.compile(r"[<>|][biufcmMSUV]\d+(\[\w+\])?")  # NumPy takes more, and evaluates some of it
NOT_KEPT = {"kept": False}  # metadata of a dataclass's field that is left out, and has a default
NAMES = "surrogateescape"  # names of files are bytes, which need not be UTF-8


class Codec:
    """A packer of values that are made of plain ones, arrays and these classes.

    An exception is kept by its `args`, a dataclass by its fields with their names; to unpack them,
    the class is called with these. Raises TypeError and ValueError for anything else.
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

    def unpack_part(self, data: bytes) -> Any:
        """Unpack a value that must be of one of the classes, where there are any.

        Raises ValueError for any other value.
        """
        value = self.unpack(data)
        if self._classes and self._classes.get(type(value).__name__) is not type(value):
            raise ValueError(f"a value of type {type(value).__name__} is no part")
        return value

    def _extended(self, value: Any) -> Any:
        """Pack a value of a type that msgpack does not know."""
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
        return msgpack.ExtType(OBJECT, self.pack([name, _contents(value)]))

    def _restored(self, kind: int, data: bytes) -> Any:
        value = self.unpack(data)
        if kind == TUPLE:
            return tuple(value)
        if kind == ARRAY:
            text, shape, raw = value
            if not DTYPE.fullmatch(text):
                raise ValueError("not an array of this program")
            return np.frombuffer(bytearray(raw), text).reshape(shape)
        if kind == OBJECT and value[0] in self._classes:
            name, contents = value
            return _build(self._classes[name], contents)
        raise ValueError("not a value of this program")


def _build(kind: type, contents: Any) -> Any:
    """Return an object with these contents, as `_contents` gave them."""
    if not is_dataclass(kind):
        return kind(*contents)
    if contents.keys() != set(_kept_fields(kind)):
        raise ValueError(f"not the fields of a {kind.__name__} of this program")
    return kind(**contents)


def _contents(value: Any) -> dict[str, Any] | list[Any]:
    if is_dataclass(value):
        return {name: getattr(value, name) for name in _kept_fields(value)}
    if isinstance(value, BaseException):
        return list(value.args)
    raise TypeError(f"a part may not hold a {type(value).__name__}")


def _kept_fields(kind: Any) -> list[str]:
    return [field.name for field in fields(kind) if field.metadata.get("kept", True)]
