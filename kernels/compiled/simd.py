"""Eight float64 as one value in Numba functions, with 2 ** x, log2 and log2(x!) of our own.

    v = load(array, at) * splat(2.0) + load(array, at + 8)
    store(array, at, exp(v))

Arrays are flat, float64 and contiguous, and nothing checks bounds. A processor with shorter vectors
takes several instructions for each. A value depends on its own element only, so the same numbers
give the same bits in whatever company they are; and nothing is rounded but where it says so, so
they are the bits of any processor, and of `cnmops/numbers.cuh` on a GPU.
"""

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

from multigpu.kernels.compiled.jit import lean

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


@intrinsic
def fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _called(builder, "fma", *args)

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


@lean
def exact_sum(a, b):  # type: ignore[no-untyped-def]
    """a + b rounded, and what the rounding left out (Knuth's two-sum)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


@lean
def in_80_bits(total, left_out):  # type: ignore[no-untyped-def]
    """`left_out`, rounded so that total + left_out has the 64 bits of an extended float64."""
    shift = total * splat(2.0**-11)
    return (left_out + shift) - shift


_ROUND = 1.5 * 2.0**52  # added to a number of up to 2 ** 51: its whole part is in the low bits
_LEAST, _LITTLE = -1000.0, 2.0**-1000
_LOG2E = 1.4426950408889634


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


@intrinsic
def _even(typing: Any, value: Any) -> Any:
    """Without the last bit."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = builder.and_(builder.bitcast(args[0], _WORDS), _word(-2))
        return builder.bitcast(bits, _VECTOR)

    return doubles(doubles), generate


@lean
def reciprocal(x):  # type: ignore[no-untyped-def]
    """1 / x to 3 ulp: exactly rounded, of x without its last bit. `numbers.cuh` says why."""
    return splat(1.0) / _even(x)


@lean
def exp2(x):  # type: ignore[no-untyped-def]
    """2 ** x to 3 ulp for -1000 < x < 1000."""
    rounded = x + splat(_ROUND)
    f = x - (rounded - splat(_ROUND))
    # The nearest polynomial for |f| <= 0.5 with 1 at 0, off by 2.2e-16 of the value.
    t = splat(7.038192839357054e-09)
    t = fused(t, f, splat(1.0208322608913776e-07))
    t = fused(t, f, splat(1.3215653515016351e-06))
    t = fused(t, f, splat(1.5252659429815089e-05))
    t = fused(t, f, splat(0.00015403529994413375))
    t = fused(t, f, splat(0.0013333558225796533))
    t = fused(t, f, splat(0.009618129107982995))
    t = fused(t, f, splat(0.05550410866448184))
    t = fused(t, f, splat(0.240226506959091))
    t = fused(t, f, splat(0.6931471805599492))
    return _scaled(fused(t, f, splat(1.0)), rounded)


@lean
def exp2_or_little(x):  # type: ignore[no-untyped-def]
    """As exp2 for x < 1000; from -1000 down it is 2 ** -1000."""
    return where_above(x, splat(_LEAST), exp2(x), splat(_LITTLE))


@lean
def _log2_of_quotient(s):  # type: ignore[no-untyped-def]
    """log2((1 + s) / (1 - s)) for |s| <= 0.172: 2 (s + s ** 3 / 3 + s ** 5 / 5 + ...) / ln(2)."""
    z = s * s
    t = splat(2 * _LOG2E / 19)
    t = fused(t, z, splat(2 * _LOG2E / 17))
    t = fused(t, z, splat(2 * _LOG2E / 15))
    t = fused(t, z, splat(2 * _LOG2E / 13))
    t = fused(t, z, splat(2 * _LOG2E / 11))
    t = fused(t, z, splat(2 * _LOG2E / 9))
    t = fused(t, z, splat(2 * _LOG2E / 7))
    t = fused(t, z, splat(2 * _LOG2E / 5))
    t = fused(t, z, splat(2 * _LOG2E / 3))
    t = fused(t, z, splat(2 * _LOG2E))
    return t * s


@lean
def log2(x):  # type: ignore[no-untyped-def]
    """The logarithm of normal numbers above 0, to 5 ulp; away from 1 to 1 ulp."""
    m, n = _split(x)
    return _log2_of_quotient((m - splat(1.0)) * reciprocal(m + splat(1.0))) + n


@lean
def log2_of_ratio(x, y):  # type: ignore[no-untyped-def]
    """log2(x / y) where neither is above 1.4 times the other, to 5 ulp."""
    return _log2_of_quotient((x - y) * reciprocal(x + y))


_HALF_LOG_2PI = 0.91893853320467274178


@lean
def log2_factorial(x):  # type: ignore[no-untyped-def]
    """lgamma(x + 1) / ln(2) for x >= 0, to 6e-14 absolute or 8 ulp. Stirling's series at x + 9."""
    one = splat(1.0)
    z, product = x + one, one
    for _ in range(8):
        product = product * z
        z = z + one
    inverse = reciprocal(z)
    w = inverse * inverse
    t = splat(1 / 156)
    t = fused(t, w, splat(-691 / 360360))
    t = fused(t, w, splat(1 / 1188))
    t = fused(t, w, splat(-1 / 1680))
    t = fused(t, w, splat(1 / 1260))
    t = fused(t, w, splat(-1 / 360))
    t = fused(t, w, splat(1 / 12))
    series = fused(t, inverse, splat(_HALF_LOG_2PI)) - z
    rest = fused(series, splat(_LOG2E), splat(0.0) - log2(product))
    return fused(z - splat(0.5), log2(z), rest)
