"""Parts as bytes: what goes in comes out, and nothing else does."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from multigpu.cluster.engine.journal import UNPACK_ERRORS, Codec


@dataclass(frozen=True)
class Point:
    x: int
    y: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    x: int
    y: Any


class Oops(Exception):
    def __init__(self, place: str, number: int) -> None:
        super().__init__(place, number)


class Stranger:
    pass


CODEC = Codec([Point, Oops])
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(), inner)
        | st.builds(Point, st.integers(-9, 9), inner)
    ),
    max_leaves=20,
)


@given(PLAIN)
def test_codec__gives_back_what_it_was_given(value: Any) -> None:
    again = CODEC.unpack(CODEC.pack(value))
    assert again == value
    assert type(again) is type(value)


@given(hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, min_side=0)))
def test_codec__keeps_an_array_with_its_type_and_shape(array: Any) -> None:
    again = CODEC.unpack(CODEC.pack({"a": array}))["a"]
    assert (again.dtype, again.shape, again.tobytes()) == (
        array.dtype,
        array.shape,
        array.tobytes(),
    )
    assert again.flags.writeable


def test_codec__keeps_exceptions_by_arguments_dataclasses_by_names_and_numpy_as_numbers() -> None:
    codec = Codec([Named, Oops])
    again = codec.unpack(codec.pack(Oops("here", 3)))
    assert (type(again), again.args) == (Oops, ("here", 3))
    assert codec.unpack(codec.pack([Named(x=1, y=(2,))])) == [Named(x=1, y=(2,))]
    numbers = [np.int64(5), np.float64(0.1), np.bool_(True)]
    assert codec.unpack(codec.pack(numbers)) == [5, 0.1, True]
    name = b"caf\xe9.fq".decode("utf-8", "surrogateescape")  # of any file
    assert codec.unpack(codec.pack({name: [name]})) == {name: [name]}


@pytest.mark.parametrize(
    "value", [Stranger(), {1, 2}, ValueError("x"), np.array([None])], ids=lambda v: type(v).__name__
)
def test_codec__refuses_what_it_was_not_told_of(value: Any) -> None:
    with pytest.raises(TypeError, match=r"may not hold a \w+$|an array of Python objects"):
        CODEC.pack([value])


def test_codec__makes_nothing_that_it_was_not_told_of() -> None:
    foreign = Codec([Stranger, Point]).pack(Point(1, 2))
    assert Codec([Point]).unpack(foreign) == Point(1, 2)
    with pytest.raises(ValueError, match="not a value of this program"):
        Codec([Oops]).unpack(foreign)
    with pytest.raises(ValueError, match="not a value of this program"):
        CODEC.unpack(msgpack.packb(msgpack.ExtType(77, msgpack.packb(1))))


@given(PLAIN, st.data())
def test_codec__of_damaged_bytes_gives_something_or_fails_in_a_way_that_is_known(
    value: Any, data: st.DataObject
) -> None:
    damaged = bytearray(CODEC.pack([value, np.arange(9)]))
    for bit in data.draw(st.lists(st.integers(0, 8 * len(damaged) - 1), max_size=8)):
        damaged[bit // 8] ^= 1 << bit % 8
    with suppress(*UNPACK_ERRORS):
        CODEC.unpack(bytes(damaged[: data.draw(st.integers(0, 2 * len(damaged)))]))


@pytest.mark.parametrize("dtype", ["(", "a4", "i4,i4", "__import__('os')", "|O8", "<i4(", ""])
def test_codec__of_an_array_of_no_plain_type_fails(dtype: str) -> None:
    """NumPy evaluates some texts, takes others with a warning, and makes arrays of objects."""
    array = msgpack.ExtType(1, msgpack.packb([dtype, [1], bytes(8)]))
    with pytest.raises(ValueError, match="not an array of this program"):
        CODEC.unpack(msgpack.packb(array))


def test_codec__a_part_is_of_its_classes() -> None:
    assert CODEC.unpack_part(CODEC.pack(Point(1, 2))) == Point(1, 2)
    with pytest.raises(ValueError, match="a value of type int is no part"):
        CODEC.unpack_part(CODEC.pack(5))
    assert Codec().unpack_part(Codec().pack(5)) == 5
