"""HLO's operations on complex numbers: LLVM has them as pairs of floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pcbatch.runtime.llvm.hlo import UnsupportedError
from pcbatch.runtime.llvm.types import Number, by_name

Builder = Any
Pair = tuple[Any, Any]


def part(of: Number) -> Number:
    """The type of the real and of the imaginary part."""
    return by_name(f"f{of.bits // 2}")


def packed(builder: Builder, of: Number, pair: Pair) -> Any:
    """A complex number of its parts."""
    found = of.constant(0)
    for place, value in enumerate(pair):
        found = builder.insert_value(found, value, place)
    return found


def parts(builder: Builder, value: Any) -> Pair:
    """The real and the imaginary part of a complex number."""
    return builder.extract_value(value, 0), builder.extract_value(value, 1)


def emit(builder: Builder, opcode: str, result: Number, kinds: Sequence[Number], values: Sequence[Any]) -> Any:
    """Emit `opcode` where operands or the result are complex; comparisons and casts excepted."""
    if opcode == "complex":
        return packed(builder, result, (values[0], values[1]))
    if opcode in ("real", "imag"):
        return parts(builder, values[0])[opcode == "imag"]
    found = _TABLE.get(opcode)
    if found is None or any(kind != result for kind in kinds):
        raise UnsupportedError(f"{opcode} of complex numbers")
    return packed(builder, result, found(builder, *(parts(builder, value) for value in values)))


def equal(builder: Builder, direction: str, left: Any, right: Any) -> Any:
    """Compare two complex numbers for equality."""
    same = [builder.fcmp_ordered("==", *each) for each in zip(parts(builder, left), parts(builder, right), strict=True)]
    both = builder.and_(*same)
    if direction not in ("EQ", "NE"):
        raise UnsupportedError("an order of complex numbers")
    return both if direction == "EQ" else builder.not_(both)


def _each(name: str) -> Callable[..., Pair]:
    def operation(builder: Builder, left: Pair, right: Pair) -> Pair:
        emit_ = getattr(builder, name)
        return emit_(left[0], right[0]), emit_(left[1], right[1])

    return operation


def _multiply(builder: Builder, left: Pair, right: Pair) -> Pair:
    (a, b), (c, d) = left, right
    real = builder.fsub(builder.fmul(a, c), builder.fmul(b, d))
    return real, builder.fadd(builder.fmul(a, d), builder.fmul(b, c))


def _divide(builder: Builder, left: Pair, right: Pair) -> Pair:
    """Divide by the quotient of the divisor's parts, the smaller by the larger (Smith, CACM 1962): no overflow."""
    (a, b), (c, d) = left, right
    is_real = builder.fcmp_ordered(">=", _absolute(builder, c), _absolute(builder, d))
    large, small = builder.select(is_real, c, d), builder.select(is_real, d, c)
    ratio = builder.fdiv(small, large)
    below = builder.fadd(large, builder.fmul(small, ratio))
    one, other = builder.select(is_real, a, b), builder.select(is_real, b, a)
    real = builder.fdiv(builder.fadd(one, builder.fmul(other, ratio)), below)
    along = builder.fdiv(builder.fsub(b, builder.fmul(a, ratio)), below)
    across = builder.fdiv(builder.fsub(builder.fmul(b, ratio), a), below)
    return real, builder.select(is_real, along, across)


def _absolute(builder: Builder, value: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", value, value.type(0.0)), builder.fneg(value), value)


def _negate(builder: Builder, value: Pair) -> Pair:
    return builder.fneg(value[0]), builder.fneg(value[1])


_TABLE: dict[str, Callable[..., Pair]] = {
    "add": _each("fadd"),
    "subtract": _each("fsub"),
    "multiply": _multiply,
    "divide": _divide,
    "negate": _negate,
}
OPCODES = frozenset(("complex", "real", "imag"))
"""Operations that only complex numbers have."""
