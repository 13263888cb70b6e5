"""The operations of pieces that need more than NumPy's and Python's own operators, on values of one lane.

As in TensorFlow's `ops`: what Python would raise for is recorded, never raised; the lane fails at `site` and goes on
with junk.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.runtime.numpy_backend.recorder import fault


def floordiv(a: Any, b: Any, site: int) -> Any:
    """`a // b`; a zero under an int, or under Python's own float, is a fault."""
    return a // _checked_divisor(b, site)


def mod(a: Any, b: Any, site: int) -> Any:
    """`a % b` with the sign of `b`; faults as `floordiv`."""
    return a % _checked_divisor(b, site)


def _checked_divisor(b: Any, site: int) -> Any:
    """`b` with 1 for 0, which is a fault."""
    if not isinstance(b, np.ndarray | np.generic):
        fault(b == 0, site)
        return b or type(b)(1)
    if not np.issubdtype(b.dtype, np.integer):
        return b  # floats divide as NumPy's do
    fault(b == 0, site)
    return b + (b == 0)


def maximum(*xs: Any) -> Any:
    """`max` of two or more scalars."""
    return max(*xs)


def to_float(x: Any) -> float:
    """`float(x)`."""
    return float(x)
