"""Constrained parameters: smooth one-to-one maps from all of R^n, where the sampler moves, to where they are allowed.

If x = forward(y), the density of y is that of x times |det dx/dy| (Stan Reference Manual, "Constraint transforms").
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from pcbatch.errors import UsageError
from pcbatch.nuts.parameters.parameters import Layout, leaves, split


class Bijector(Protocol):
    """A map of arrays of one shape, with any number of leading axes in `forward`; frozen, so that it can be a key."""

    def forward(self, y: Any) -> Any:
        """The constrained values: tensor in, tensor out."""

    def log_jacobian(self, y: Any) -> Any:
        """The logarithm of |det d forward(y) / dy| of one example, a scalar."""

    def values(self, y: np.ndarray) -> np.ndarray:
        """Compute `forward` by NumPy: TensorFlow's last bits depend on where in an array a number stands."""

    def inverse(self, x: np.ndarray) -> np.ndarray:
        """The unconstrained values; not finite where `x` is not strictly inside."""


@dataclass(frozen=True)
class Positive:
    """Each number above zero: x = exp(y)."""

    def forward(self, y: Any) -> Any:
        return tf.exp(y)

    def log_jacobian(self, y: Any) -> Any:
        return tf.reduce_sum(y)

    def values(self, y: np.ndarray) -> np.ndarray:
        return np.exp(y)

    def inverse(self, x: np.ndarray) -> np.ndarray:
        return np.log(x)


@dataclass(frozen=True)
class Interval:
    """Each number between `low` and `high`: x = low + (high - low) / (1 + exp(-y))."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise UsageError("PCB558", f"an interval is between two finite numbers, not {self.low} and {self.high}")

    def forward(self, y: Any) -> Any:
        return self.low + (self.high - self.low) * tf.sigmoid(y)

    def log_jacobian(self, y: Any) -> Any:
        # log of sigmoid(y) sigmoid(-y), written so that neither end underflows
        return tf.reduce_sum(math.log(self.high - self.low) - tf.math.softplus(y) - tf.math.softplus(-y))

    def values(self, y: np.ndarray) -> np.ndarray:
        return self.low + (self.high - self.low) / (1 + np.exp(-y))

    def inverse(self, x: np.ndarray) -> np.ndarray:
        return np.log(x - self.low) - np.log(self.high - x)


@dataclass(frozen=True)
class Ordered:
    """Numbers that rise along the last axis: x[0] = y[0], x[k] = x[k - 1] + exp(y[k])."""

    def forward(self, y: Any) -> Any:
        return tf.cumsum(tf.concat([y[..., :1], tf.exp(y[..., 1:])], axis=-1), axis=-1)

    def log_jacobian(self, y: Any) -> Any:
        return tf.reduce_sum(y[..., 1:])

    def values(self, y: np.ndarray) -> np.ndarray:
        return np.cumsum(np.concatenate([y[..., :1], np.exp(y[..., 1:])], axis=-1), axis=-1)

    def inverse(self, x: np.ndarray) -> np.ndarray:
        return np.concatenate([x[..., :1], np.log(np.diff(x, axis=-1))], axis=-1)


positive = Positive()
"""The bijector of numbers above zero."""
ordered = Ordered()
"""The bijector of numbers that rise along the last axis."""


def interval(low: float, high: float) -> Interval:
    """The bijector of numbers between `low` and `high`."""
    return Interval(float(low), float(high))


@dataclass(frozen=True)
class Transform:
    """The map of a whole position `[.., size]`: a bijector, or None, for each array of the layout."""

    layout: Layout
    bijectors: tuple[Bijector | None, ...]

    @classmethod
    def of(cls, layout: Layout, bijectors: Mapping[str, Bijector] | None) -> Transform:
        """The transform of the arrays that `bijectors` names; the name of a structure stands for all arrays inside.

        Raises UsageError PCB558 for a name that is no parameter's and for what is no bijector.
        """
        given = dict(bijectors or {})
        found = []
        for name, leaf in leaves(layout):
            found.append(next((given[prefix] for prefix in _prefixes(name) if prefix in given), None))
            if found[-1] is not None and not isinstance(found[-1], (Positive, Interval, Ordered)):
                raise UsageError(
                    "PCB558", f"the bijector of {name!r} must be positive, interval(..) or ordered, not {found[-1]!r}"
                )
            if found[-1] == ordered and not leaf.shape:
                raise UsageError("PCB558", f"{name!r} is a single number, so it cannot be ordered")
        known = {prefix for name, _ in leaves(layout) for prefix in _prefixes(name)}
        for name in given:
            if name not in known:
                names = ", ".join(name for name, _ in leaves(layout))
                raise UsageError("PCB558", f"bijectors names {name!r}, and the parameters are {names}")
        return cls(layout, tuple(found))

    def forward(self, position: Any) -> Any:
        """The constrained position: tensors `[.., size]`."""
        if not any(self.bijectors):
            return position
        return self._map(position, lambda bijector, part: bijector.forward(part), tf)

    def values(self, position: np.ndarray) -> np.ndarray:
        """Compute `forward` of arrays."""
        with np.errstate(over="ignore"):
            return np.asarray(self._map(position, lambda bijector, part: bijector.values(part), np))

    def inverse(self, position: np.ndarray) -> np.ndarray:
        """The unconstrained position; UsageError PCB558 where one is not strictly inside its domain."""
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = self._map(position, lambda bijector, part: bijector.inverse(part), np)
        named = [(name, bijector) for (name, _), bijector in zip(leaves(self.layout), self.bijectors, strict=True)]
        for (name, bijector), part in zip(named, split(moved, self._leaves), strict=True):
            if bijector is not None and not np.isfinite(part).all():
                raise UsageError("PCB558", f"the initial {name!r} must be strictly inside {bijector!r}")
        return np.asarray(moved)

    def log_jacobian(self, position: Any) -> Any:
        """The logarithm of the Jacobian's determinant at one example's position `[size]`; a scalar."""
        parts = zip(self.bijectors, self._leaves, split(position, self._leaves), strict=True)
        found = [bijector.log_jacobian(tf.reshape(part, leaf.shape)) for bijector, leaf, part in parts if bijector]
        return tf.add_n(found) if found else tf.zeros((), position.dtype)

    @property
    def _leaves(self) -> list[Any]:
        return [leaf for _, leaf in leaves(self.layout)]

    def _map(self, position: Any, function: Any, library: Any) -> Any:
        """`function(bijector, part)` of the parts that have one, each in its own shape, and the other parts as is."""
        leading = list(position.shape[:-1])
        moved = []
        for bijector, leaf, part in zip(self.bijectors, self._leaves, split(position, self._leaves), strict=True):
            shaped = library.reshape(part, [*leading, *leaf.shape])
            moved.append(library.reshape(function(bijector, shaped), [*leading, leaf.size]) if bijector else part)
        return library.concat(moved, -1)


def _prefixes(name: str) -> list[str]:
    """A name and those of the structures around it, from the innermost."""
    path = name.split(".")
    return [".".join(path[:length]) for length in range(len(path), 0, -1)]
