"""Slices of fixed length: `a[i:i + k]` has `k` elements by the way it is written, wherever `i` may be.

An array of a lane has a static shape, so a slice whose bounds differ by lane needs a length that does not. The bounds
are read as sums; what is left of `upper - lower` when equal terms have cancelled is the length. If Python would cut
such a slice short because it leaves the array, the lane fails: the array that Python gives has another shape.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Window:
    """`start:stop:step` where `stop - start` is the static `length`, in the direction of `step` or empty."""

    start: Any
    stop: Any
    step: int
    length: int

    @property
    def count(self) -> int:
        """The number of its elements inside the array."""
        return len(range(0, self.length, self.step))

    def resolve(self, size: int) -> slice:
        """The slice that it is on an axis of `size`, its bounds being known; IndexError where it leaves the axis."""
        found = slice(int(self.start), int(self.stop), self.step)
        if len(range(*found.indices(size))) != self.count:
            raise IndexError(f"the slice leaves the array: it has {self.count} elements, of an axis of {size}")
        return found


def mesh(indices: tuple[Any, ...]) -> tuple[Any, ...]:
    """Indices, scalars or vectors of positions, such that NumPy takes every combination of them."""
    vectors = [at for at, index in enumerate(indices) if np.ndim(index)]
    shape = {at: [-1 if other == at else 1 for other in vectors] for at in vectors}
    return tuple(np.reshape(index, shape[at]) if at in shape else index for at, index in enumerate(indices))


def length_of(lower: ast.expr | None, upper: ast.expr | None) -> ast.expr | None:
    """`upper - lower` without the terms that cancel; None where none does, so that nothing is known of the length."""
    if lower is None or upper is None:
        return None
    positive, negative = _terms(upper, True)
    minus, plus = _terms(lower, True)
    negative, positive = negative + minus, positive + plus
    left = [term for term in positive if not isinstance(term, ast.Constant)]
    right = {ast.dump(term) for term in negative if not isinstance(term, ast.Constant)}
    if not any(ast.dump(term) in right for term in left):
        return None
    for term in list(positive):
        other = next((each for each in negative if ast.dump(each) == ast.dump(term)), None)
        if other is not None:
            positive.remove(term)
            negative.remove(other)
    return _sum(positive, negative)


def _terms(node: ast.expr, sign: bool) -> tuple[list[ast.expr], list[ast.expr]]:
    """The terms of a sum that are added and those that are subtracted, the other way round unless `sign`."""
    match node:
        case ast.BinOp(left, ast.Add(), right):
            first, second = _terms(left, sign), _terms(right, sign)
        case ast.BinOp(left, ast.Sub(), right):
            first, second = _terms(left, sign), _terms(right, not sign)
        case ast.UnaryOp(ast.USub(), operand):
            return _terms(operand, not sign)
        case ast.UnaryOp(ast.UAdd(), operand):
            return _terms(operand, sign)
        case _:
            return ([node], []) if sign else ([], [node])
    return first[0] + second[0], first[1] + second[1]


def _sum(positive: list[ast.expr], negative: list[ast.expr]) -> ast.expr:
    first: ast.expr = ast.Constant(0)
    if positive:
        first, *positive = positive
    added = reduce(lambda total, term: ast.BinOp(total, ast.Add(), term), positive, first)
    return reduce(lambda total, term: ast.BinOp(total, ast.Sub(), term), negative, added)
