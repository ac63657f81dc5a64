"""Numba intrinsics for what plain loops cannot say: three instructions and three functions of C.

They are LLVM IR, so they work on every CPU that Numba supports; nothing here checks bounds.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = cgutils.create_struct_proxy(array_type)(context, builder, value=array).data
    return builder.gep(builder.bitcast(data, _I8.as_pointer()), [index])


@intrinsic
def fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, float64, rounded once, as on a GPU; Numba has no name for it."""
    signature = types.float64(types.float64, types.float64, types.float64)
    return signature, lambda context, builder, sig, args: builder.fma(*args)


@intrinsic
def popcount(typing: Any, word: Any) -> Any:
    """Return the number of set bits of a uint64: one instruction instead of a loop."""
    return types.int64(types.uint64), lambda context, builder, sig, args: builder.ctpop(args[0])


@intrinsic
def trailing_zeros(typing: Any, word: Any) -> Any:
    """Return the number of the lowest set bit of a uint64, one instruction; 64 for zero."""
    zero_is_64 = ir.Constant(ir.IntType(1), 0)
    signature = types.int64(types.uint64)
    return signature, lambda context, builder, sig, args: builder.cttz(args[0], zero_is_64)


@intrinsic
def find_byte(typing: Any, data: Any, start: Any, stop: Any, byte: Any) -> Any:
    """Return the first index in [start, stop) where uint8 `data` is `byte`, or -1 (C's memchr).

    It takes a quarter of the time of a loop: one that may end early becomes no vector instructions.
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, start, stop, byte = args
        origin = _address(context, builder, sig.args[0], array, start)
        memchr_type = ir.FunctionType(_I8.as_pointer(), [_I8.as_pointer(), _I32, _I64])
        memchr = cgutils.get_or_insert_function(builder.module, memchr_type, "memchr")
        length = builder.sub(stop, start)
        found = builder.call(memchr, [origin, builder.trunc(byte, _I32), length])
        offset = builder.sub(builder.ptrtoint(found, _I64), builder.ptrtoint(origin, _I64))
        missing = builder.icmp_unsigned("==", builder.ptrtoint(found, _I64), ir.Constant(_I64, 0))
        return builder.select(missing, ir.Constant(_I64, -1), builder.add(start, offset))

    return types.int64(data, types.int64, types.int64, types.int64), generate


@intrinsic
def copy_bytes(typing: Any, target: Any, at: Any, source: Any, start: Any, count: Any) -> Any:
    """Set target[at : at + count] = source[start : start + count], uint8, even in one buffer."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target, at, source, start, count = args
        to = _address(context, builder, sig.args[0], target, at)
        origin = _address(context, builder, sig.args[2], source, start)
        move_type = ir.FunctionType(_I8.as_pointer(), [_I8.as_pointer(), _I8.as_pointer(), _I64])
        memmove = cgutils.get_or_insert_function(builder.module, move_type, "memmove")
        builder.call(memmove, [to, origin, count])
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


@intrinsic
def read_at(typing: Any, file: Any, position: Any, target: Any, at: Any, count: Any) -> Any:
    """Read up to `count` bytes of an open file from `position` to uint8 target[at:] (C's pread).

    file: a descriptor. Returns the number of bytes; 0 at the end, -1 where they cannot be read.
    Threads that read in Python wait for each other.
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        file, position, target, at, count = args
        to = _address(context, builder, sig.args[2], target, at)
        read_type = ir.FunctionType(_I64, [_I32, _I8.as_pointer(), _I64, _I64])
        pread = cgutils.get_or_insert_function(builder.module, read_type, "pread")
        return builder.call(pread, [builder.trunc(file, _I32), to, count, position])

    return types.int64(types.int64, types.int64, target, types.int64, types.int64), generate
