"""The tasks in JAX, for one lane: loops as `lax.while_loop` takes them, and stacks by hand where there is recursion.

Branches of a few instructions are `where`s, which is what `vmap` would make of them anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

Array = jax.Array
ROWS, INTERVALS = 8, 24
"""The most queens, and the most intervals that wait: one for each level, and one more."""


class Loop(NamedTuple):
    """A task as one loop: while `going(state)`, `turn(state)`; `end(state)` is the result."""

    start: Any
    going: Callable[[Any], Array]
    turn: Callable[[Any], Any]
    end: Callable[[Any], Array]


def put(array: Array, place: Array, value: Array) -> Array:
    """The array with one element, or row, replaced."""
    return lax.dynamic_update_index_in_dim(array, value, place, 0)


def collatz(n: Array) -> Loop:
    """Steps to 1."""

    def turn(state: Any) -> Any:
        n, steps = state
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return Loop((n, jnp.zeros_like(n)), lambda state: state[0] != 1, turn, lambda state: state[1])


def rejection(seed: Array, radius: Array) -> Loop:
    """Tries until a point of the square lies in the disc."""

    def turn(state: Any) -> Any:
        seed, tries, _ = state
        seed = (seed * 1103 + 12345) % 65536
        x = seed / 65536.0
        seed = (seed * 1103 + 12345) % 65536
        y = seed / 65536.0
        return seed, tries + 1, (x * x + y * y >= radius) & (tries < 200)

    start = seed, jnp.zeros_like(seed), jnp.ones_like(seed, bool)
    return Loop(start, lambda state: state[2], turn, lambda state: state[1])


def bisection(target: Array, tolerance: Array) -> Loop:
    """The root of a cubic."""

    def turn(state: Any) -> Any:
        low, high = state
        middle = (low + high) / 2.0
        below = middle * middle * middle - middle < target
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    start = jnp.zeros_like(target), jnp.full_like(target, 4.0)
    return Loop(start, lambda state: state[1] - state[0] > tolerance, turn, lambda state: state[0])


def rk45(y: Array, end: Array, k: Array, tolerance: Array) -> Loop:
    """Dormand and Prince's adaptive solver."""

    def slope(t: Array, y: Array) -> Array:
        return -k * (y - jnp.cos(t)) - jnp.sin(t)

    def turn(state: Any) -> Any:
        t, y, h = state
        h = jnp.minimum(h, end - t)
        k1 = slope(t, y)
        k2 = slope(t + h / 5.0, y + h * (k1 / 5.0))
        k3 = slope(t + h * 3.0 / 10.0, y + h * (k1 * 3.0 / 40.0 + k2 * 9.0 / 40.0))
        k4 = slope(t + h * 4.0 / 5.0, y + h * (k1 * 44.0 / 45.0 - k2 * 56.0 / 15.0 + k3 * 32.0 / 9.0))
        b = k1 * 19372.0 / 6561.0 - k2 * 25360.0 / 2187.0 + k3 * 64448.0 / 6561.0 - k4 * 212.0 / 729.0
        k5 = slope(t + h * 8.0 / 9.0, y + h * b)
        b = k1 * 9017.0 / 3168.0 - k2 * 355.0 / 33.0 + k3 * 46732.0 / 5247.0 + k4 * 49.0 / 176.0
        k6 = slope(t + h, y + h * (b - k5 * 5103.0 / 18656.0))
        b = k1 * 35.0 / 384.0 + k3 * 500.0 / 1113.0 + k4 * 125.0 / 192.0 - k5 * 2187.0 / 6784.0
        new = y + h * (b + k6 * 11.0 / 84.0)
        k7 = slope(t + h, new)
        b = k1 * 71.0 / 57600.0 - k3 * 71.0 / 16695.0 + k4 * 71.0 / 1920.0 - k5 * 17253.0 / 339200.0
        error = h * (b + k6 * 22.0 / 525.0 - k7 / 40.0)
        ratio = jnp.abs(error) / (tolerance * jnp.maximum(1.0, jnp.abs(y)))
        taken = ratio <= 1.0
        factor = jnp.clip(0.9 * jnp.maximum(ratio, 1e-10) ** -0.2, 0.2, 5.0)
        return jnp.where(taken, t + h, t), jnp.where(taken, new, y), h * factor

    return Loop((0.0 * end, y, 0.1 * end), lambda state: state[0] < end, turn, lambda state: state[1])


def queens(n: Array) -> Loop:
    """Ways to place `n` queens; the stack holds the columns of those that stand, what they attack is undone by it."""

    def turn(state: Any) -> Any:
        stack, row, column, columns, rising, falling, total = state
        above = jnp.maximum(row - 1, 0)
        was = stack[above]
        attacked = (
            (columns, 1 << column, 1 << was),
            (rising, 1 << (row + column), 1 << (above + was)),
            (falling, 1 << (row - column + n), 1 << (above - was + n)),
        )
        back = column >= n
        free = ~back
        for bits, here, _ in attacked:
            free &= bits & here == 0
        deeper = free & (row + 1 < n)
        # One row down, to its first column; or one row up, and on; or the next column here.
        bits = (jnp.where(deeper, all_ | here, jnp.where(back, all_ & ~gone, all_)) for all_, here, gone in attacked)
        after = jnp.where(deeper, 0, jnp.where(back, was, column) + 1)
        return put(stack, row, column), row + deeper - back, after, *bits, total + (free & ~deeper)

    zero = jnp.zeros_like(n)
    start = jnp.zeros(ROWS, n.dtype), *(zero for _ in range(6))
    return Loop(start, lambda state: state[1] >= 0, turn, lambda state: state[6])


def simpson(a: Array, b: Array, tolerance: Array) -> Loop:
    """An integral by adaptive bisection; the stack holds the intervals that wait."""

    def turn(state: Any) -> Any:
        stack, top, total = state
        a, b, fa, fm, fb, tolerance, depth = stack[top - 1]
        m = (a + b) / 2.0
        x, y = (a + m) / 2.0, (m + b) / 2.0
        fx, fy = jnp.sin(x * x), jnp.sin(y * y)
        whole = (b - a) / 6.0 * (fa + 4.0 * fm + fb)
        left = (m - a) / 6.0 * (fa + 4.0 * fx + fm)
        right = (b - m) / 6.0 * (fm + 4.0 * fy + fb)
        done = (depth >= 20) | (jnp.abs(left + right - whole) < tolerance)
        # Where it is done these lie above the new top, and nobody reads them.
        stack = put(stack, top - 1, jnp.stack([m, b, fm, fy, fb, tolerance / 2.0, depth + 1]))
        stack = put(stack, top, jnp.stack([a, m, fa, fx, fm, tolerance / 2.0, depth + 1]))
        return stack, jnp.where(done, top - 1, top + 1), total + jnp.where(done, left + right, 0.0)

    m = (a + b) / 2.0
    first = jnp.stack([a, b, jnp.sin(a * a), jnp.sin(m * m), jnp.sin(b * b), tolerance, jnp.zeros_like(a)])
    start = put(jnp.zeros((INTERVALS, 7), a.dtype), 0, first), jnp.int32(1), jnp.zeros_like(a)
    return Loop(start, lambda state: state[1] > 0, turn, lambda state: state[2])


def edit_distance(a: Array, b: Array, m: Array, n: Array, row: Array) -> Loop:
    """Levenshtein's distance: a turn is a row, an inner loop goes over its cells."""

    def cell(i: Array, j: Array, before: Array, row: Array) -> Any:
        above = row[j + 1]
        least = jnp.minimum(jnp.minimum(row[j], above) + 1, before + (a[i] != b[j]))
        return above, put(row, j + 1, least)

    def turn(state: Any) -> Any:
        i, row = state
        before, row = row[0], put(row, 0, i + 1)
        return i + 1, lax.fori_loop(0, n, lambda j, carried: cell(i, j, *carried), (before, row))[1]

    return Loop((jnp.int32(0), row), lambda state: state[0] < m, turn, lambda state: state[1][n])


def edit_distance_flat(a: Array, b: Array, m: Array, n: Array, row: Array) -> Loop:
    """The same, a turn is a cell."""

    def turn(state: Any) -> Any:
        i, j, before, row = state
        first = j == 0
        before = jnp.where(first, row[0], before)
        row = put(row, 0, jnp.where(first, i + 1, row[0]))
        above = row[j + 1]
        least = jnp.minimum(jnp.minimum(row[j], above) + 1, before + (a[i] != b[j]))
        row = put(row, j + 1, jnp.where(i < m, least, above))  # a lane that has ended keeps its row
        last = j + 1 == n
        return jnp.where(last, i + 1, i), jnp.where(last, 0, j + 1), above, row

    zero = jnp.int32(0)
    return Loop((zero, zero, zero, row), lambda state: state[0] < m, turn, lambda state: state[3][n])


def _ended(lows: Array, highs: Array, top: Array, low: Array, middle: Array, high: Array) -> Any:
    """The stack after the range on top was parted: it gives way to its halves, where they have two elements or more."""
    lows, highs = put(lows, top - 1, low), put(highs, top - 1, middle - 1)
    top = top - 1 + (low < middle - 1)
    lows, highs = put(lows, top, middle + 1), put(highs, top, high)
    return lows, highs, top + (middle + 1 < high)


def _stack(a: Array, low: Array, high: Array) -> Any:
    """Ranges that wait, the whole one first."""
    empty = jnp.zeros(len(a) // 2 + 2, low.dtype)
    return put(empty, 0, low), put(empty, 0, high), (low < high).astype(low.dtype)


def _swapped(a: Array, i: Array, j: Array, swap: Array) -> Array:
    one, other = a[i], a[j]
    return put(put(a, i, jnp.where(swap, other, one)), j, jnp.where(swap, one, other))


def quicksort(a: Array, low: Array, high: Array) -> Loop:
    """Hoare's sorting: a turn parts a range, an inner loop goes over its elements."""

    def turn(state: Any) -> Any:
        a, lows, highs, top = state
        low, high = lows[top - 1], highs[top - 1]
        pivot = a[high]

        def part(i: Array, carried: Any) -> Any:
            a, middle = carried
            less = a[i] < pivot
            return _swapped(a, i, middle, less), middle + less

        a, middle = lax.fori_loop(low, high, part, (a, low))
        return _swapped(a, middle, high, jnp.bool_(True)), *_ended(lows, highs, top, low, middle, high)

    return Loop((a, *_stack(a, low, high)), lambda state: state[3] > 0, turn, lambda state: state[0])


def quicksort_flat(a: Array, low: Array, high: Array) -> Loop:
    """The same, a turn is an element, or the end of a range."""

    def turn(state: Any) -> Any:
        a, lows, highs, top, i, middle = state
        low, high = lows[top - 1], highs[top - 1]
        inside = i < high
        place = jnp.where(inside, i, high)
        less = (a[place] < a[high]) & inside
        a = _swapped(a, place, middle, (less | ~inside) & (top > 0))  # a lane that has ended keeps its array
        after = _ended(lows, highs, top, low, middle, high)
        lows, highs, top = (jnp.where(inside, old, new) for old, new in zip((lows, highs, top), after, strict=True))
        start = lows[top - 1]
        return a, lows, highs, top, jnp.where(inside, i + 1, start), jnp.where(inside, middle + less, start)

    start = a, *_stack(a, low, high), low, low
    return Loop(start, lambda state: state[3] > 0, turn, lambda state: state[0])
