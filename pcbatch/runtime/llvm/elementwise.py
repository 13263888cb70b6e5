"""HLO's operations on single numbers as LLVM instructions, with XLA's meaning where LLVM leaves it open.

Division by zero, shifts by more than there are bits and casts out of range have a value in HLO, and none in LLVM.
NaN stays NaN in minima and maxima.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import llvmlite.ir as ir

from pcbatch.runtime.llvm import complex_numbers, vector_library
from pcbatch.runtime.llvm.hlo import UnsupportedError
from pcbatch.runtime.llvm.library_calls import call
from pcbatch.runtime.llvm.types import BIT, Number, by_name

Builder = Any
"""An `llvmlite.ir.IRBuilder`."""

FAST = ("contract",)
"""Assumptions that LLVM may make of floats: products and sums may be fused, nothing else."""
SUMMING = ("contract", "reassoc")
"""The same of a sum over many numbers: they may be added in any order."""


def emit(
    builder: Builder,
    opcode: str,
    result: Number,
    kinds: Sequence[Number],
    values: Sequence[Any],
    attributes: Mapping[str, str],
) -> Any:
    """The number that `opcode` makes of `values`, which are of these `kinds`."""
    if "complex" in (result.kind, *(kind.kind for kind in kinds)) and opcode not in ("select", "copy"):
        return _of_complex(builder, opcode, result, kinds, values, attributes)
    if opcode not in ("select", "copy") and "bits" in (result.kind, *(kind.kind for kind in kinds)):
        raise UnsupportedError(f"{opcode} of numbers of the dtype {result.dtype}")
    if opcode == "compare":
        return _compare(builder, kinds[0], values[0], values[1], attributes["direction"], attributes.get("type"))
    if opcode == "convert":
        return convert(builder, kinds[0], result, values[0])
    if opcode == "bitcast-convert":
        if kinds[0].bits != result.bits:
            raise UnsupportedError("bitcast-convert between numbers of other sizes")
        return builder.bitcast(values[0], result.type)
    if opcode == "is-finite":
        return builder.fcmp_ordered("<", _absolute(builder, kinds[0], values[0]), kinds[0].constant(float("inf")))
    if opcode == "select":
        return builder.select(*values)
    found = _TABLE.get(opcode)
    if found is None:
        raise UnsupportedError(f"the operation {opcode}")
    if result.name == "f16" and opcode not in _ON_HALVES:
        return _in_single(builder, found, values)
    return found(builder, result, *values)


def is_elementwise(opcode: str) -> bool:
    """True if an operation goes through its operands number by number."""
    return (
        opcode in _TABLE
        or opcode in complex_numbers.OPCODES
        or opcode in ("compare", "convert", "bitcast-convert", "is-finite", "select")
    )


def _of_complex(
    builder: Builder,
    opcode: str,
    result: Number,
    kinds: Sequence[Number],
    values: Sequence[Any],
    attributes: Mapping[str, str],
) -> Any:
    """The same where complex numbers are among them."""
    if opcode == "convert":
        return convert(builder, kinds[0], result, values[0])
    if opcode == "compare":
        return complex_numbers.equal(builder, attributes["direction"], values[0], values[1])
    if opcode == "abs":
        return _call(builder, result, "hypot", *complex_numbers.parts(builder, values[0]))
    if opcode == "exponential":
        of, (real, imaginary) = complex_numbers.part(result), complex_numbers.parts(builder, values[0])
        size = _intrinsic(builder, "llvm.exp", of, real)
        turned = (_intrinsic(builder, f"llvm.{name}", of, imaginary) for name in ("cos", "sin"))
        first, second = (builder.fmul(size, each) for each in turned)
        return complex_numbers.packed(builder, result, (first, second))
    return complex_numbers.emit(builder, opcode, result, kinds, values)


COSTLY = frozenset(
    (
        *("atan2", "cbrt", "cosine", "divide", "erf", "exponential", "exponential-minus-one", "log", "log-plus-one"),
        *("logistic", "power", "remainder", "rsqrt", "sine", "sqrt", "tan", "tanh"),
    )
)
"""Operations that are worth more than to read a number from memory."""


def _in_single(builder: Builder, emit_: Callable[..., Any], values: Sequence[Any]) -> Any:
    """A function of numbers of 16 bits is that of numbers of 32."""
    single = Number("f32", "float", 32, "float32", ir.FloatType(), ir.FloatType())
    found = emit_(builder, single, *(builder.fpext(value, single.type) for value in values))
    return builder.fptrunc(found, ir.HalfType())


_ON_HALVES = frozenset(["abs", "negate", "maximum", "minimum", "add", "subtract", "multiply", "clamp", "copy"])


# -- arithmetic --------------------------------------------------------------------------------------------------------


def _arithmetic(on_floats: str, on_integers: str, on_bools: str) -> Callable[..., Any]:
    def operation(builder: Builder, of: Number, left: Any, right: Any) -> Any:
        if of.is_float:
            return getattr(builder, on_floats)(left, right, flags=FAST)
        return getattr(builder, on_bools if of.kind == "bool" else on_integers)(left, right)

    return operation


def _divide(builder: Builder, of: Number, left: Any, right: Any) -> Any:
    if of.is_float:
        return builder.fdiv(left, right, flags=FAST)
    zero, one, all_ones = of.constant(0), of.constant(1), of.constant(-1)
    is_zero = builder.icmp_unsigned("==", right, zero)
    if not of.is_signed:
        found = builder.udiv(left, builder.select(is_zero, one, right))
        return builder.select(is_zero, all_ones, found)
    # The least number divided by -1 is itself: there is no other one that could be.
    is_minus_one = builder.icmp_signed("==", right, all_ones)
    safe = builder.select(builder.or_(is_zero, is_minus_one), one, right)
    found = builder.select(is_minus_one, builder.neg(left), builder.sdiv(left, safe))
    return builder.select(is_zero, all_ones, found)


def _remainder(builder: Builder, of: Number, left: Any, right: Any) -> Any:
    if of.is_float:
        return _call(builder, of, "fmod", left, right)
    zero, one = of.constant(0), of.constant(1)
    is_zero = builder.icmp_unsigned("==", right, zero)
    if not of.is_signed:
        found = builder.urem(left, builder.select(is_zero, one, right))
        return builder.select(is_zero, left, found)
    is_minus_one = builder.icmp_signed("==", right, of.constant(-1))
    found = builder.srem(left, builder.select(builder.or_(is_zero, is_minus_one), one, right))
    return builder.select(is_zero, left, builder.select(is_minus_one, zero, found))


def _maximum(builder: Builder, of: Number, left: Any, right: Any) -> Any:
    return _extreme(builder, of, ">=", left, right)


def _minimum(builder: Builder, of: Number, left: Any, right: Any) -> Any:
    return _extreme(builder, of, "<=", left, right)


def _extreme(builder: Builder, of: Number, order: str, left: Any, right: Any) -> Any:
    if of.is_float:
        is_left = builder.fcmp_ordered(order, left, right)
        return builder.select(builder.or_(is_left, builder.fcmp_unordered("uno", left, left)), left, right)
    compare = builder.icmp_signed if of.is_signed else builder.icmp_unsigned
    return builder.select(compare(order, left, right), left, right)


def _clamp(builder: Builder, of: Number, low: Any, value: Any, high: Any) -> Any:
    return _minimum(builder, of, _maximum(builder, of, value, low), high)


def _absolute(builder: Builder, of: Number, value: Any) -> Any:
    if of.is_float:
        return _intrinsic(builder, "llvm.fabs", of, value)
    if not of.is_signed:
        return value
    return builder.select(builder.icmp_signed("<", value, of.constant(0)), builder.neg(value), value)


def _negate(builder: Builder, of: Number, value: Any) -> Any:
    return builder.fneg(value) if of.is_float else builder.neg(value)


def _sign(builder: Builder, of: Number, value: Any) -> Any:
    zero, one = of.constant(0), of.constant(1)
    if of.is_float:  # zeros and NaN stay what they are
        signed = _intrinsic(builder, "llvm.copysign", of, one, value)
        is_other = builder.or_(builder.fcmp_ordered("==", value, zero), builder.fcmp_unordered("uno", value, value))
        return builder.select(is_other, value, signed)
    is_zero = builder.icmp_unsigned("==", value, zero)
    if not of.is_signed:
        return builder.select(is_zero, zero, one)
    is_negative = builder.icmp_signed("<", value, zero)
    return builder.select(is_zero, zero, builder.select(is_negative, of.constant(-1), one))


def _power(builder: Builder, of: Number, base: Any, exponent: Any) -> Any:
    if of.is_float:
        return _intrinsic(builder, "llvm.pow", of, base, exponent)
    return _integer_power(builder, of, base, exponent)


def _integer_power(builder: Builder, of: Number, base: Any, exponent: Any) -> Any:
    """Raise to a power by squaring, a turn for each bit of the exponent; negative powers are 0 but of 1 and -1."""
    if of.lanes > 1:
        raise UnsupportedError("powers of integers in a vector")
    zero, one = of.constant(0), of.constant(1)
    start = builder.block
    head, end = builder.append_basic_block("power"), builder.append_basic_block("power_end")
    negative = builder.icmp_signed("<", exponent, zero) if of.is_signed else ir.Constant(BIT, 0)
    left_over = builder.select(negative, zero, exponent)
    builder.branch(head)
    builder.position_at_end(head)
    found, square, left = (builder.phi(of.type) for _ in range(3))
    is_odd = builder.trunc(left, BIT)
    after = builder.select(is_odd, builder.mul(found, square), found)
    squared, fewer = builder.mul(square, square), builder.lshr(left, one)
    for phi, first, next_ in ((found, one, after), (square, base, squared), (left, left_over, fewer)):
        phi.add_incoming(first, start)
        phi.add_incoming(next_, head)
    builder.cbranch(builder.icmp_unsigned("!=", fewer, zero), head, end)
    builder.position_at_end(end)
    if not of.is_signed:
        return after
    minus_one = of.constant(-1)
    is_one, is_minus_one = builder.icmp_signed("==", base, one), builder.icmp_signed("==", base, minus_one)
    alternating = builder.select(builder.trunc(exponent, BIT), minus_one, one)
    other = builder.select(is_one, one, builder.select(is_minus_one, alternating, zero))
    return builder.select(negative, other, after)


# -- bits --------------------------------------------------------------------------------------------------------------


def _shift(name: str) -> Callable[..., Any]:
    def operation(builder: Builder, of: Number, value: Any, by: Any) -> Any:
        zero, last = of.constant(0), of.constant(of.bits - 1)
        is_far = builder.icmp_unsigned(">", by, last)
        if name == "ashr":
            return builder.ashr(value, builder.select(is_far, last, by))
        found = getattr(builder, name)(value, builder.select(is_far, zero, by))
        return builder.select(is_far, zero, found)

    return operation


def _count_leading_zeros(builder: Builder, of: Number, value: Any) -> Any:
    return _intrinsic(builder, "llvm.ctlz", of, value, ir.Constant(BIT, 0))


# -- functions ---------------------------------------------------------------------------------------------------------


def _logistic(builder: Builder, of: Number, value: Any) -> Any:
    grown = builder.fadd(of.constant(1), _intrinsic(builder, "llvm.exp", of, builder.fneg(value)))
    return builder.fdiv(of.constant(1), grown)


def _rsqrt(builder: Builder, of: Number, value: Any) -> Any:
    return builder.fdiv(of.constant(1), _intrinsic(builder, "llvm.sqrt", of, value))


def _intrinsic(builder: Builder, name: str, of: Number, *values: Any) -> Any:
    """Call one of LLVM's own functions."""
    if of.lanes > 1 and vector_library.has(name.removeprefix("llvm.")):
        return vector_library.call(builder, of, name.removeprefix("llvm."), *values)
    return call(builder, f"{name}.{of.suffix}", of.type, *values)


def _call(builder: Builder, of: Number, name: str, *values: Any) -> Any:
    """A function of the C library, in the precision of its arguments."""
    if of.lanes > 1:
        return vector_library.call(builder, of, name, *values)
    return call(builder, name if of.bits == 64 else f"{name}f", of.type, *values)


def _library(name: str) -> Callable[..., Any]:
    return lambda builder, of, *values: _call(builder, of, name, *values)


def _own(name: str) -> Callable[..., Any]:
    return lambda builder, of, *values: _intrinsic(builder, name, of, *values)


# -- comparisons and casts ---------------------------------------------------------------------------------------------

_DIRECTIONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


def _compare(builder: Builder, of: Number, left: Any, right: Any, direction: str, type_: str | None) -> Any:
    order = _DIRECTIONS[direction]
    if not of.is_float:
        return (builder.icmp_signed if of.is_signed else builder.icmp_unsigned)(order, left, right)
    if type_ == "TOTALORDER":
        return builder.icmp_signed(order, _ordinal(builder, of, left), _ordinal(builder, of, right))
    return (builder.fcmp_unordered if direction == "NE" else builder.fcmp_ordered)(order, left, right)


def _ordinal(builder: Builder, of: Number, value: Any) -> Any:
    """An integer by which floats are in their total order: -NaN, -inf, .., -0, 0, .., inf, NaN."""
    integer = by_name(f"s{of.bits}").wide(of.lanes)
    found = builder.bitcast(value, integer.type)
    flipped = builder.xor(found, integer.constant((1 << (of.bits - 1)) - 1))
    return builder.select(builder.icmp_signed("<", found, integer.constant(0)), flipped, found)


def convert(builder: Builder, of: Number, to: Number, value: Any) -> Any:
    """A number of one type as one of another. Floats become integers by cutting off, and the nearest that there is."""
    if of == to:
        return value
    if to.kind == "complex":
        of_part = complex_numbers.part(to)
        if of.kind == "complex":
            pair = [
                convert(builder, complex_numbers.part(of), of_part, each)
                for each in complex_numbers.parts(builder, value)
            ]
            return complex_numbers.packed(builder, to, (pair[0], pair[1]))
        return complex_numbers.packed(builder, to, (convert(builder, of, of_part, value), of_part.constant(0)))
    if to.kind == "bool":
        if of.is_float:
            return builder.fcmp_unordered("!=", value, of.constant(0))
        return builder.icmp_unsigned("!=", value, of.constant(0))
    if of.is_float and to.is_float:
        return (builder.fpext if to.bits > of.bits else builder.fptrunc)(value, to.type)
    if of.is_float:
        name = "llvm.fptosi.sat" if to.is_signed else "llvm.fptoui.sat"
        return call(builder, f"{name}.{to.suffix}.{of.suffix}", to.type, value)
    if to.is_float:
        return (builder.sitofp if of.is_signed else builder.uitofp)(value, to.type)
    if to.bits < of.bits:
        return builder.trunc(value, to.type)
    if to.bits == of.bits:
        return value
    return (builder.sext if of.is_signed else builder.zext)(value, to.type)


_TABLE: Mapping[str, Callable[..., Any]] = {
    "abs": _absolute,
    "add": _arithmetic("fadd", "add", "or_"),
    "and": lambda builder, of, left, right: builder.and_(left, right),
    "atan2": _own("llvm.atan2"),
    "cbrt": _library("cbrt"),
    "ceil": _own("llvm.ceil"),
    "clamp": _clamp,
    "copy": lambda builder, of, value: value,
    "cosine": _own("llvm.cos"),
    "count-leading-zeros": _count_leading_zeros,
    "divide": _divide,
    "erf": _library("erf"),
    "exponential": _own("llvm.exp"),
    "exponential-minus-one": _library("expm1"),
    "floor": _own("llvm.floor"),
    "log": _own("llvm.log"),
    "log-plus-one": _library("log1p"),
    "logistic": _logistic,
    "maximum": _maximum,
    "minimum": _minimum,
    "multiply": _arithmetic("fmul", "mul", "and_"),
    "negate": _negate,
    "not": lambda builder, of, value: builder.not_(value),
    "or": lambda builder, of, left, right: builder.or_(left, right),
    "popcnt": _own("llvm.ctpop"),
    "power": _power,
    "remainder": _remainder,
    "round-nearest-afz": _own("llvm.round"),
    "round-nearest-even": _own("llvm.rint"),
    "rsqrt": _rsqrt,
    "shift-left": _shift("shl"),
    "shift-right-arithmetic": _shift("ashr"),
    "shift-right-logical": _shift("lshr"),
    "sign": _sign,
    "sine": _own("llvm.sin"),
    "sqrt": _own("llvm.sqrt"),
    "subtract": _arithmetic("fsub", "sub", "xor"),
    "tan": _own("llvm.tan"),
    "tanh": _own("llvm.tanh"),
    "xor": lambda builder, of, left, right: builder.xor(left, right),
}
