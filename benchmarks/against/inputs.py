"""What the tasks are given: a batch of so many lanes, NumPy arrays."""

from __future__ import annotations

import numpy as np

LETTERS = 24
"""In a word of `edit_distance`."""
CHEAP = ("collatz", "rejection", "bisection", "rk45", "queens", "simpson", "edit_distance", "quicksort")
RECURSIONS = ("fibonacci", "even_odd_tail", "even_odd", "depth_10", "depth_100", "depth_1000")


def batch(name: str, lanes: int) -> tuple[np.ndarray, ...]:
    """The arguments of a task, `[lanes, ...]`; the same ones every time."""
    generator = np.random.default_rng(0)

    def ints(low: int, high: int, *shape: int) -> np.ndarray:
        return generator.integers(low, high, (lanes, *shape), dtype=np.int32)

    def floats(low: float, high: float) -> np.ndarray:
        return generator.uniform(low, high, lanes)

    match name:
        case "collatz":
            return (ints(1, 10_000),)
        case "rejection":
            return ints(0, 65536), floats(0.02, 1.0)
        case "bisection":
            return floats(0.5, 50.0), 10.0 ** floats(-12.0, -3.0)
        case "rk45":
            return floats(0.0, 2.0), np.full(lanes, 2.0), 10.0 ** floats(0.0, 2.0), np.full(lanes, 1e-6)
        case "queens":
            return (ints(3, 7),)
        case "simpson":
            return floats(0.0, 1.0), floats(1.0, 4.0), 10.0 ** floats(-8.0, -4.0)
        case "edit_distance":
            words = ints(0, 4, LETTERS), ints(0, 4, LETTERS)
            rows = np.tile(np.arange(LETTERS + 1, dtype=np.int32), (lanes, 1))
            return (*words, ints(1, LETTERS + 1), ints(1, LETTERS + 1), rows)
        case "quicksort":
            values = generator.normal(size=(lanes, 32))
            return values, np.zeros(lanes, np.int32), ints(8, 32)
        case "fibonacci":
            return (ints(0, 21),)
        case "even_odd" | "even_odd_tail":
            return (ints(0, 64),)
        case "depth_10" | "depth_100" | "depth_1000":
            depth = int(name.removeprefix("depth_"))
            return (ints(depth // 2, depth),)
    raise ValueError(f"there is no task {name!r}")
