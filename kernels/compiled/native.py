"""Numba intrinsics for what plain loops cannot say: vectors of letters, unaligned words, C's
`memchr`, `memmove` and `pread`.

They are LLVM IR, so they work on every CPU that Numba supports; nothing here checks bounds.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from multigpu.kernels.bases import SETS

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_BLOCK = ir.VectorType(_I8, 64)
_LOWER_CASE_BIT = 0x20


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = cgutils.create_struct_proxy(array_type)(context, builder, value=array).data
    return builder.gep(builder.bitcast(data, _I8.as_pointer()), [index])


def _splat(byte: int) -> ir.Constant:
    return ir.Constant(_BLOCK, [byte] * 64)


@intrinsic
def planes_of_64(typing: Any, letters: Any, index: Any) -> Any:
    """Four uint64, one a base A C G T: bit i says whether letters[index + i] may stand for it.

    letters: uint8[n], C-contiguous, index + 64 <= n. A letter that is no IUPAC base sets no bit.
    """
    signature = types.UniTuple(types.uint64, 4)(letters, types.int64)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _address(context, builder, sig.args[0], *args)
        block = builder.load(builder.bitcast(pointer, _BLOCK.as_pointer()), align=1)
        upper = builder.and_(block, _splat(0xFF & ~_LOWER_CASE_BIT))
        planes: list[Any] = [None] * 4
        for letter, bases in SETS.items():
            here = builder.icmp_unsigned("==", upper, _splat(ord(letter)))
            for plane in range(4):
                if bases >> plane & 1:
                    old = planes[plane]
                    planes[plane] = here if old is None else builder.or_(old, here)
        words = [builder.bitcast(plane, _I64) for plane in planes]
        return context.make_tuple(builder, sig.return_type, words)

    return signature, generate


@intrinsic
def planes_of_64_sets(typing: Any, sets: Any, index: Any) -> Any:
    """As `planes_of_64`, from sets of `multigpu.kernels.bases` instead of letters."""
    signature = types.UniTuple(types.uint64, 4)(sets, types.int64)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _address(context, builder, sig.args[0], *args)
        block = builder.load(builder.bitcast(pointer, _BLOCK.as_pointer()), align=1)
        words = []
        for plane in range(4):
            theirs = builder.and_(block, _splat(1 << plane))
            plane_bits = builder.icmp_unsigned("!=", theirs, _splat(0))
            words.append(builder.bitcast(plane_bits, _I64))
        return context.make_tuple(builder, sig.return_type, words)

    return signature, generate


@intrinsic
def matching_of_8(typing: Any, planes: Any, index: Any, window: Any, strict: Any) -> Any:
    """Which of eight neighbouring windows match `window` in all 64 bases: bits 0..7 of an int64.

    planes: uint64[4, n], C-contiguous, index + 8 <= n; window: four uint64; strict: the window's
    bases must be subsets of those in `planes`, else sharing one is enough.
    """
    signature = types.int64(planes, types.int64, window, types.boolean)
    vector = ir.VectorType(_I64, 8)
    ones = ir.Constant(vector, [-1] * 8)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, index, window, strict = args
        row = builder.extract_value(
            cgutils.create_struct_proxy(sig.args[0])(context, builder, value=array).shape, 1
        )
        keep = builder.select(strict, _I64(0), _I64(-1))
        shared = meets = None
        for plane in range(4):
            flat = builder.mul(builder.add(builder.mul(row, _I64(plane)), index), _I64(8))
            pointer = _address(context, builder, sig.args[0], array, flat)
            theirs = builder.load(builder.bitcast(pointer, vector.as_pointer()), align=1)
            ours = _broadcast(builder, builder.extract_value(window, plane), vector)
            both = builder.and_(ours, theirs)
            outside = builder.and_(ours, builder.xor(theirs, ones))
            shared = both if shared is None else builder.or_(shared, both)
            meets = outside if meets is None else builder.or_(meets, outside)
        loose = builder.and_(builder.xor(shared, ones), _broadcast(builder, keep, vector))
        tight = builder.and_(meets, _broadcast(builder, builder.not_(keep), vector))
        differ = builder.or_(loose, tight)
        equal = builder.icmp_unsigned("==", differ, ir.Constant(vector, [0] * 8))
        return builder.zext(builder.bitcast(equal, _I8), _I64)

    return signature, generate


def _broadcast(builder: Any, value: Any, vector: Any) -> Any:
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, _I32(0))
    zeros = ir.Constant(ir.VectorType(_I32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, one, zeros)


@intrinsic
def strike_8(typing: Any, held: Any, steps: Any, index: Any, alive: Any) -> Any:
    """Four steps of a sweep over eight words: the words that are left non-zero, as bits 0..7.

    held   uint64[n]    words of planes; a step is word * 64 + shift
    steps  uint16[m]    index + 4 <= m
    alive  uint64[8]    and-ed with held[word : word + 9] shifted down by `shift`, for each step
    """
    signature = types.int64(held, steps, types.int64, alive)
    vector = ir.VectorType(_I64, 8)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _, steps, index, alive = args

        def load(array: Any, word: Any) -> Any:
            at = builder.mul(word, _I64(8))
            pointer = _address(context, builder, sig.args[array], args[array], at)
            return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=1)

        funnel_type = ir.FunctionType(vector, [vector, vector, vector])
        funnel = cgutils.get_or_insert_function(builder.module, funnel_type, "llvm.fshr.v8i64")
        left = load(3, _I64(0))
        for i in range(4):
            at = builder.mul(builder.add(index, _I64(i)), _I64(2))
            pointer = _address(context, builder, sig.args[1], steps, at)
            step = builder.load(builder.bitcast(pointer, ir.IntType(16).as_pointer()), align=1)
            step = builder.zext(step, _I64)
            word = builder.lshr(step, _I64(6))
            shift = _broadcast(builder, builder.and_(step, _I64(63)), vector)
            low, high = load(0, word), load(0, builder.add(word, _I64(1)))
            left = builder.and_(left, builder.call(funnel, [high, low, shift]))
        pointer = _address(context, builder, sig.args[3], alive, _I64(0))
        builder.store(left, builder.bitcast(pointer, vector.as_pointer()), align=1)
        nonzero = builder.icmp_unsigned("!=", left, ir.Constant(vector, [0] * 8))
        return builder.zext(builder.bitcast(nonzero, _I8), _I64)

    return signature, generate


@intrinsic
def fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, float64, rounded once, as on a GPU; Numba has no name for it."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), generate


@intrinsic
def popcount(typing: Any, word: Any) -> Any:
    """How many bits of a uint64 are set."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


@intrinsic
def trailing_zeros(typing: Any, word: Any) -> Any:
    """The lowest set bit's number in a uint64; 64 for zero."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def find_byte(typing: Any, data: Any, start: Any, stop: Any, byte: Any) -> Any:
    """The first index in [start, stop) of uint8 `data` that holds `byte`, or -1 (C's memchr)."""

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
    """target[at : at + count] = source[start : start + count], uint8; memmove."""

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
    """Up to `count` bytes of an open file from `position` to uint8 target[at:] (C's pread).

    file: a descriptor. Returns how many; 0 at the end, -1 where they cannot be read.
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        file, position, target, at, count = args
        to = _address(context, builder, sig.args[2], target, at)
        read_type = ir.FunctionType(_I64, [_I32, _I8.as_pointer(), _I64, _I64])
        pread = cgutils.get_or_insert_function(builder.module, read_type, "pread")
        return builder.call(pread, [builder.trunc(file, _I32), to, count, position])

    return types.int64(types.int64, types.int64, target, types.int64, types.int64), generate
