"""Eight float64 as one value in Numba functions, with exp, log and lgamma of our own.

    v = load(array, at) * splat(2.0) + load(array, at + 8)
    store(array, at, exp(v))

Arrays are flat, float64 and contiguous, and nothing checks bounds. A processor with shorter vectors
takes several instructions for each. A value depends on its own element only, so the same numbers
give the same bits in whatever company they are.
"""

import math
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import (
    intrinsic,
    models,
    overload,
    register_model,
)

from kernels.jit import lean

LANES = 8

_F64, _I64 = ir.DoubleType(), ir.IntType(64)
_VECTOR, _WORDS = ir.VectorType(_F64, LANES), ir.VectorType(_I64, LANES)


class Doubles(types.Type):
    """Numba's type of eight float64."""

    def __init__(self) -> None:
        super().__init__(name="Doubles")


doubles = Doubles()


@register_model(Doubles)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, _VECTOR)


def _constant(value: float) -> ir.Constant:
    return ir.Constant(_VECTOR, [value] * LANES)


def _word(value: int) -> ir.Constant:
    return ir.Constant(_WORDS, [value] * LANES)


def _place(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    data = cgutils.create_struct_proxy(array_type)(context, builder, value=array).data
    return builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())


@intrinsic
def load(typing: Any, array: Any, at: Any) -> Any:
    """array[at : at + 8]."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_place(context, builder, sig.args[0], *args), align=8)

    return doubles(array, types.int64), generate


@intrinsic
def store(typing: Any, array: Any, at: Any, value: Any) -> Any:
    """array[at : at + 8] = value."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, at, value = args
        builder.store(value, _place(context, builder, sig.args[0], array, at), align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, doubles), generate


@intrinsic
def splat(typing: Any, value: Any) -> Any:
    """One number, eight times."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), args[0], ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return builder.shuffle_vector(one, one, zeros)

    return doubles(types.float64), generate


def _called(builder: Any, name: str, *args: Any) -> Any:
    """An LLVM intrinsic of eight float64."""
    function_type = ir.FunctionType(_VECTOR, [_VECTOR] * len(args))
    function = cgutils.get_or_insert_function(builder.module, function_type, f"llvm.{name}.v8f64")
    return builder.call(function, args)


def _binary(generate: Callable[[Any, Any, Any], Any]) -> Any:
    def typed(typing: Any, a: Any, b: Any) -> Any:
        return doubles(doubles, doubles), lambda context, builder, sig, args: generate(
            builder, *args
        )

    return intrinsic(typed)


_add = _binary(lambda builder, a, b: builder.fadd(a, b))
_subtract = _binary(lambda builder, a, b: builder.fsub(a, b))
_multiply = _binary(lambda builder, a, b: builder.fmul(a, b))
_divide = _binary(lambda builder, a, b: builder.fdiv(a, b))
greater = _binary(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
smaller = _binary(lambda builder, a, b: builder.select(builder.fcmp_ordered("<", a, b), a, b))


@intrinsic
def fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once where the processor can."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _called(builder, "fmuladd", *args)

    return doubles(doubles, doubles, doubles), generate


@intrinsic
def where_above(typing: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:
    """`yes` where a > b, else `no`."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        a, b, yes, no = args
        return builder.select(builder.fcmp_ordered(">", a, b), yes, no)

    return doubles(doubles, doubles, doubles, doubles), generate


@intrinsic
def any_above(typing: Any, a: Any, b: Any) -> Any:
    """Whether a > b anywhere."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = builder.bitcast(builder.fcmp_ordered(">", *args), ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.IntType(LANES)(0))

    return types.boolean(doubles, doubles), generate


@intrinsic
def absolute(typing: Any, value: Any) -> Any:
    """Without the sign."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _called(builder, "fabs", *args)

    return doubles(doubles), generate


def _operate(symbol: Any, function: Any) -> None:
    @overload(symbol)
    def typed(a, b):  # type: ignore[no-untyped-def]
        return (lambda a, b: function(a, b)) if a == b == doubles else None


_operate(operator.add, _add)
_operate(operator.sub, _subtract)
_operate(operator.mul, _multiply)
_operate(operator.truediv, _divide)

_ROUND = 1.5 * 2.0**52  # added to a number of up to 2 ** 51: its whole part is in the low bits
_LOG2E = 1 / math.log(2)
_LN2_HIGH = 6.93147180369123816490e-01  # 33 bits, so that multiples of it are exact
_LN2_LOW = 1.90821492927058770002e-10
_LEAST, _MOST = -708.0, 709.0


@intrinsic
def _scaled(typing: Any, value: Any, rounded: Any) -> Any:
    """value * 2 ** n, where n was added to _ROUND to give `rounded`."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value, rounded = (builder.bitcast(each, _WORDS) for each in args)
        shifted = builder.shl(rounded, _word(52))
        return builder.bitcast(builder.add(value, shifted), _VECTOR)

    return doubles(doubles, doubles), generate


@intrinsic
def _split(typing: Any, value: Any) -> Any:
    """m in [0.707, 1.414) and n with value = m * 2 ** n, for a normal value above 0."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], _WORDS)
        # The exponent goes up by one where the mantissa's bits are above those of sqrt(2).
        near = builder.add(bits, _word(0x3FF0000000000000 - 0x3FE6A09E667F3BCD))
        n = builder.sub(builder.lshr(near, _word(52)), _word(1023))
        m = builder.sub(bits, builder.shl(n, _word(52)))
        # As a float64: 2 ** 52 and more is a number with n in its low bits.
        biased = builder.add(builder.add(n, _word(1 << 20)), _word(0x4330000000000000))
        whole = builder.fsub(builder.bitcast(biased, _VECTOR), _constant(2.0**52 + 2.0**20))
        return context.make_tuple(builder, sig.return_type, [builder.bitcast(m, _VECTOR), whole])

    return types.UniTuple(doubles, 2)(doubles), generate


@lean
def exp(x):  # type: ignore[no-untyped-def]
    """e ** x to 1 ulp; below -708 that of -708, above 709 that of 709."""
    x = greater(smaller(x, splat(_MOST)), splat(_LEAST))
    rounded = fused(x, splat(_LOG2E), splat(_ROUND))
    n = rounded - splat(_ROUND)
    r = fused(n, splat(-_LN2_HIGH), x)
    r = fused(n, splat(-_LN2_LOW), r)
    # Taylor's series: |r| <= 0.347, and r ** 14 / 14! is below 2 ** -57.
    r2 = r * r
    r4 = r2 * r2
    low = fused(r, splat(1 / 6), splat(1 / 2))
    low = fused(r2, fused(r, splat(1 / 120), splat(1 / 24)), low)
    high = fused(r, splat(1 / 5040), splat(1 / 720))
    high = fused(r2, fused(r, splat(1 / 362880), splat(1 / 40320)), high)
    top = fused(r, splat(1 / 39916800), splat(1 / 3628800))
    top = fused(r2, fused(r, splat(1 / 6227020800), splat(1 / 479001600)), top)
    tail = fused(r4, fused(r4, top, high), low)
    return _scaled(splat(1.0) + fused(r2, tail, r), rounded)


@lean
def log(x):  # type: ignore[no-untyped-def]
    """The natural logarithm of normal numbers above 0, to 2 ulp."""
    m, n = _split(x)
    f = m - splat(1.0)
    s = f / (m + splat(1.0))
    z = s * s
    # 2 atanh(s) = 2 s + s z (2/3 + 2/5 z + ...), |s| <= 0.1716
    t = splat(2 / 21)
    t = fused(t, z, splat(2 / 19))
    t = fused(t, z, splat(2 / 17))
    t = fused(t, z, splat(2 / 15))
    t = fused(t, z, splat(2 / 13))
    t = fused(t, z, splat(2 / 11))
    t = fused(t, z, splat(2 / 9))
    t = fused(t, z, splat(2 / 7))
    t = fused(t, z, splat(2 / 5))
    t = fused(t, z, splat(2 / 3))
    # 2 s = f - s f exactly, so that nothing is lost around 1.
    tail = fused(s * z, t, n * splat(_LN2_LOW)) - s * f
    return fused(n, splat(_LN2_HIGH), f + tail)


_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@lean
def log_factorial(x):  # type: ignore[no-untyped-def]
    """lgamma(x + 1) for x >= 0, to 4e-14 absolute or 4 ulp. Stirling's series at x + 9."""
    one = splat(1.0)
    z, product = x + one, one
    for _ in range(8):
        product = product * z
        z = z + one
    inverse = one / z
    w = inverse * inverse
    t = splat(1 / 156)
    t = fused(t, w, splat(-691 / 360360))
    t = fused(t, w, splat(1 / 1188))
    t = fused(t, w, splat(-1 / 1680))
    t = fused(t, w, splat(1 / 1260))
    t = fused(t, w, splat(-1 / 360))
    t = fused(t, w, splat(1 / 12))
    series = fused(t, inverse, splat(_HALF_LOG_2PI)) - z
    return fused(z - splat(0.5), log(z), series) - log(product)
