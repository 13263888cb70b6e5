"""The map from a position of the sampler, any vector of R^n, to parameters where they are allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import UsageError
from pcbatch.nuts.parameters.bijectors import BUILT_IN, Bijector
from pcbatch.nuts.parameters.models import Joint
from pcbatch.nuts.parameters.parameters import METHODS, Foreign, Layout, Leaf, is_foreign, leaves, split

CLOSE = 1e-4
"""The largest error of a sum, a length or a zero in values that a user gives, which may be rounded."""


@dataclass(frozen=True)
class Transform:
    """The map of a whole position `[.., size]`: a bijector, or None, for each array of the layout.

    Its two ends may differ in length: a simplex of three numbers has two free ones. `size` counts the free ones, the
    layout's size those of the parameters.
    """

    layout: Layout
    bijectors: tuple[Bijector | None, ...]
    whole: bool = False
    """True if there is one bijector only, of the vector of all parameters."""

    @classmethod
    def of(cls, layout: Layout, bijectors: Mapping[str, Any] | Joint | None, dtype: tf.DType = tf.float64) -> Transform:
        """The transform of the arrays that `bijectors` names; the name of a structure stands for all arrays inside.

        A model's own bijector maps all of them together.

        Raises UsageError PCB558 for a name that is no parameter's, for what is no bijector and for one that does not
        fit the array.
        """
        if isinstance(bijectors, Joint):
            return cls(layout, (_fitting("x", Leaf((layout.size,)), bijectors, dtype),), whole=True)
        given = dict(bijectors or {})
        found = []
        for name, leaf in leaves(layout):
            nearest = next((given[prefix] for prefix in _prefixes(name) if prefix in given), None)
            found.append(None if nearest is None else _fitting(name, leaf, nearest, dtype))
        known = {prefix for name, _ in leaves(layout) for prefix in _prefixes(name)}
        for name in given:
            if name not in known:
                names = ", ".join(name for name, _ in leaves(layout))
                raise UsageError("PCB558", f"bijectors names {name!r}, and the parameters are {names}")
        return cls(layout, tuple(found))

    @cached_property
    def free(self) -> tuple[Leaf, ...]:
        """The arrays of a position, one for each of the layout; ValueError where a bijector does not fit its array."""
        pairs = zip(self.bijectors, self._leaves, strict=True)
        return tuple(leaf if each is None else Leaf(each.free_shape(leaf.shape)) for each, leaf in pairs)

    @property
    def size(self) -> int:
        """The length of a position."""
        return sum(leaf.size for leaf in self.free)

    def forward(self, position: Any) -> Any:
        """The constrained position: tensors `[.., size]` to `[.., layout.size]`."""
        if not any(self.bijectors):
            return position
        return self._map(lambda bijector, part: bijector.forward(part), position, (self.free, self._leaves), tf)

    def values(self, position: np.ndarray) -> np.ndarray:
        """Compute `forward` of arrays."""
        ends = self.free, self._leaves
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self._map(lambda bijector, part: bijector.values(part), position, ends, np))

    def inverse(self, values: np.ndarray) -> np.ndarray:
        """The unconstrained position of `[.., layout.size]`.

        UsageError PCB558 where a value is not strictly inside its domain: it is finite, and leads back there.
        """
        ends = self._leaves, self.free
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = self._map(lambda bijector, part: bijector.inverse(part), values, ends, np)
        back = split(self.values(moved), self._leaves)
        names = ["parameters"] if self.whole else [name for name, _ in leaves(self.layout)]
        parts = zip(names, self.bijectors, split(moved, self.free), strict=True)
        for (name, bijector, part), wanted, found in zip(parts, split(values, self._leaves), back, strict=True):
            if bijector is None:
                continue
            scale = np.maximum(1, np.abs(wanted).max(initial=0))
            if not (np.isfinite(part).all() and (np.abs(found - wanted) <= CLOSE * scale).all()):
                example = f", as {found.tolist()} is" if _is_short(found) else ""
                raise UsageError("PCB558", f"the initial {name!r} must be strictly inside {bijector!r}{example}")
        return np.asarray(moved)

    def log_jacobian(self, position: Any) -> Any:
        """The logarithm of the Jacobian's determinant at one example's position `[size]`; a scalar."""
        parts = zip(self.bijectors, self.free, split(position, self.free), strict=True)
        found = [bijector.log_jacobian(tf.reshape(part, leaf.shape)) for bijector, leaf, part in parts if bijector]
        return tf.add_n(found) if found else tf.zeros((), position.dtype)

    @property
    def _leaves(self) -> tuple[Leaf, ...]:
        return (Leaf((self.layout.size,)),) if self.whole else tuple(leaf for _, leaf in leaves(self.layout))

    def _map(
        self,
        function: Callable[[Bijector, Any], Any],
        position: Any,
        ends: tuple[Sequence[Leaf], Sequence[Leaf]],
        library: Any,
    ) -> Any:
        """`function(bijector, part)` of the parts that have one, each in its own shape, and the other parts as is."""
        leading = list(position.shape[:-1])
        moved = []
        for bijector, source, target, part in zip(self.bijectors, *ends, split(position, ends[0]), strict=True):
            if bijector is not None:
                shaped = function(bijector, library.reshape(part, [*leading, *source.shape]))
                part = library.reshape(shaped, [*leading, target.size])
            moved.append(part)
        return library.concat(moved, -1)


def _fitting(name: str, leaf: Leaf, bijector: Any, dtype: tf.DType) -> Bijector:
    """The bijector of an array; UsageError PCB558 where it is none, or cannot have the array's shape."""
    if isinstance(bijector, BUILT_IN):
        try:
            bijector.free_shape(leaf.shape)
        except ValueError as error:
            raise UsageError("PCB558", f"{name!r} {error}") from None
        return bijector
    if not is_foreign(bijector):
        raise UsageError(
            "PCB558",
            f"the bijector of {name!r} must be one of pcbatch.nuts or an object with {', '.join(METHODS[:2])} and "
            f"{METHODS[2]}, not {bijector!r}",
        )
    try:
        return Foreign(bijector, leaf.shape, dtype)
    except Exception as error:  # whatever another library raises
        told = str(error).strip().splitlines() or [type(error).__name__]
        raise UsageError(
            "PCB558",
            f"the bijector of {name!r}, {bijector!r:.100}, does not fit {dtype.name}{list(leaf.shape)}: {told[0]:.300}",
        ) from error


def _prefixes(name: str) -> list[str]:
    """A name and those of the structures around it, from the innermost."""
    path = name.split(".")
    return [".".join(path[:length]) for length in range(len(path), 0, -1)]


def _is_short(found: np.ndarray) -> bool:
    """Return whether a value is fit to be shown: finite, and a few numbers."""
    return found.size <= 9 and bool(np.isfinite(found).all())
