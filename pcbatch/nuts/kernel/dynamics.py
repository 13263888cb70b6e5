"""The sampler's arithmetic on one example, free of control flow: leapfrog steps, energies, weights.

Plain TensorFlow, opaque to pcbatch: it is traced into the basic blocks that call it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pcbatch.errors import PlacedError, Span
from pcbatch.function.user_code import calls_as_operations
from pcbatch.nuts.kernel.metrics import velocity

Tensor = Any  # TensorFlow carries no types; a tf.Tensor of one example
LogDensity = Callable[[Tensor, Any], Tensor]

DIVERGENCE_THRESHOLD = 1000.0
"""A point whose energy exceeds that of the trajectory's start by more than this has diverged (Stan's value)."""


def value_and_gradient(log_density: LogDensity, q: Tensor, data: Any) -> tuple[Tensor, Tensor]:
    """The log density at `q` and its gradient.

    Both are of the dtype of `q`. NaN where a batched function that the density calls fails. A `PlacedError`, a
    ValueError, if the density is not a real scalar, or no TensorFlow operation leads from `q` to it.
    """
    with calls_as_operations() as fine, tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(q)
        lp = _scalar(log_density, log_density(q, data), q.dtype)
    g = tape.gradient(lp, q)
    if g is None:  # zeros instead would be a sampler that goes straight on, without a word
        raise _fault(
            log_density, "the log density has no gradient: compute it from the parameters with TensorFlow operations"
        )
    return tf.where(tf.reduce_all(fine), lp, float("nan")) if fine else lp, g


def _scalar(log_density: LogDensity, value: Any, dtype: tf.DType) -> Tensor:
    """A log density as a scalar of `dtype`: it may have been computed in another float."""
    try:
        lp = tf.convert_to_tensor(value)
    except (TypeError, ValueError):
        raise _fault(log_density, f"the log density of one example is a number, not {type(value).__name__}") from None
    if lp.shape.rank not in (0, None):
        raise _fault(log_density, f"the log density of one example is a scalar, not of shape {lp.shape}: sum its terms")
    if not (lp.dtype.is_floating or lp.dtype.is_integer):
        raise _fault(log_density, f"the log density of one example is a number, not of dtype {lp.dtype.name}")
    return tf.cast(lp, dtype)


def _fault(log_density: LogDensity, message: str) -> ValueError:
    """An error about a log density, at its first line where it has one."""
    span = span_of(log_density)
    return ValueError(message) if span is None else PlacedError(message, span)


def span_of(log_density: LogDensity) -> Span | None:
    """The first line of a log density, a function or an object that is called."""
    function = inspect.unwrap(log_density)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return None if code is None else Span.of_line(code.co_filename, code.co_firstlineno)


def leapfrog(
    log_density: LogDensity, steps: int, inverse_mass: Tensor, q: Tensor, p: Tensor, g: Tensor, step: Tensor, data: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`steps` leapfrog steps of signed length `step`: `(q, p, g, lp)` at the end; `g` is the gradient at `q`."""
    lp = tf.zeros((), q.dtype)
    for _ in range(steps):
        p = p + 0.5 * step * g
        q = q + step * velocity(inverse_mass, p)
        lp, g = value_and_gradient(log_density, q, data)
        p = p + 0.5 * step * g
    return q, p, g, lp


def energy_of(inverse_mass: Tensor, p: Tensor, lp: Tensor) -> Tensor:
    """Kinetic energy minus log density; infinite where that is not finite, so that such a point has no weight."""
    energy = 0.5 * tf.reduce_sum(p * velocity(inverse_mass, p)) - lp
    return tf.where(tf.math.is_finite(energy), energy, float("inf"))


def log_weight_of(energy: Tensor, energy_0: Tensor) -> Tensor:
    """The logarithm of exp(energy_0 - energy); no weight at all if both are infinite."""
    return tf.where(energy < float("inf"), energy_0 - energy, float("-inf"))


def log_add(a: Tensor, b: Tensor) -> Tensor:
    """log(exp(a) + exp(b)); both may be infinite, of either sign."""
    return tf.maximum(a, b) + tf.math.log1p(ratio(a, b))


def outweighs(uniform: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Tell whether the second of two weights, given by logarithms, is drawn: its share is exp(b) / (exp(a) + exp(b)).

    Their sum is not waited for: neither its logarithm, nor the exponential of that.
    """
    smaller = ratio(a, b)
    return uniform * (1 + smaller) < tf.where(a <= b, tf.ones_like(smaller), smaller)


def ratio(a: Tensor, b: Tensor) -> Tensor:
    """The smaller one of exp(a) and exp(b) over the larger one."""
    return tf.exp(-tf.abs(difference(a, b)))


def difference(a: Tensor, b: Tensor) -> Tensor:
    """`a - b`, of equal infinities 0."""
    return tf.where(tf.equal(a, b), tf.zeros_like(a), a - b)


def choose(condition: Tensor, if_true: Any, if_false: Any) -> Any:
    """One of two structures of tensors, by a scalar bool."""
    return tf.nest.map_structure(lambda a, b: tf.where(condition, a, b), if_true, if_false)
