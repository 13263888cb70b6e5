"""Functions of `statistics`, written in the language: read as `in_python` says."""

from __future__ import annotations

import collections
import math
import statistics
from collections.abc import Callable
from typing import Any

LinearRegression = collections.namedtuple("LinearRegression", ("slope", "intercept"))


def harmonic_mean(data: Any) -> Any:
    """`statistics.harmonic_mean`."""
    return len(data) / sum(1 / each for each in data)


def geometric_mean(data: Any) -> Any:
    """`statistics.geometric_mean`."""
    return math.exp(sum(math.log(each) for each in data) / len(data))


def median_low(data: Any) -> Any:
    """`statistics.median_low`."""
    return sorted(data)[(len(data) - 1) // 2]


def median_high(data: Any) -> Any:
    """`statistics.median_high`."""
    return sorted(data)[len(data) // 2]


def mode(data: Any) -> Any:
    """`statistics.mode`: the first one of those that are there most often."""
    items = list(data)
    counts = [sum(1 if each == other else 0 for other in items) for each in items]
    found, most = items[0], counts[0]
    for each, often in zip(items[1:], counts[1:], strict=True):
        if often > most:
            found, most = each, often
    return found


def quantiles(data: Any, *, n: int = 4, method: str = "exclusive") -> list[Any]:
    """`statistics.quantiles`."""
    ordered, size = sorted(data), len(data)
    found = []
    for k in range(1, n):
        if method == "inclusive":
            place, rest = divmod(k * (size - 1), n)
            found.append((ordered[place] * (n - rest) + ordered[place + 1] * rest) / n)
        else:
            place = min(max(k * (size + 1) // n, 1), size - 1)
            rest = k * (size + 1) - place * n
            found.append((ordered[place - 1] * (n - rest) + ordered[place] * rest) / n)
    return found


def _products(x: Any, y: Any) -> Any:
    """The sum of the products of what two rows have beside their means."""
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))


def covariance(x: Any, y: Any) -> Any:
    """`statistics.covariance`."""
    return _products(x, y) / (len(x) - 1)


def correlation(x: Any, y: Any) -> Any:
    """`statistics.correlation`."""
    return _products(x, y) / math.sqrt(_products(x, x) * _products(y, y))


def linear_regression(x: Any, y: Any) -> Any:
    """`statistics.linear_regression`."""
    slope = _products(x, y) / _products(x, x)
    return LinearRegression(slope, sum(y) / len(y) - slope * (sum(x) / len(x)))


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    statistics.harmonic_mean: harmonic_mean,
    statistics.geometric_mean: geometric_mean,
    statistics.median_low: median_low,
    statistics.median_high: median_high,
    statistics.mode: mode,
    statistics.quantiles: quantiles,
    statistics.covariance: covariance,
    statistics.correlation: correlation,
    statistics.linear_regression: linear_regression,
}
"""Replacements of functions where an argument is a lane's."""
