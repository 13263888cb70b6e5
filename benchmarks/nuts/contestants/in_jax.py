"""The targets' densities in JAX, for one example, and a count of the gradients that are really computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.nuts.targets import CORRELATION, FUNNEL_SCALE


def gaussian(q: Any) -> Any:
    """AR(1) process of variance 1."""
    innovations = q[1:] - CORRELATION * q[:-1]
    return -0.5 * (q[0] ** 2 + jnp.sum(innovations**2) / (1 - CORRELATION**2))


def funnel(q: Any) -> Any:
    """Neal's funnel."""
    log_variance, others = q[0], q[1:]
    spread = jnp.sum(others**2) * jnp.exp(-log_variance)
    return -0.5 * ((log_variance / FUNNEL_SCALE) ** 2 + spread + others.shape[0] * log_variance)


def logistic(q: Any, x: Any, y: Any) -> Any:
    """Logistic regression with weights N(0, 1)."""
    logits = x @ q
    return jnp.sum(y * logits - jax.nn.softplus(logits)) - 0.5 * jnp.sum(q**2)


DENSITIES = {"AR(1) Gaussian": gaussian, "logistic regression": logistic, "Neal's funnel": funnel}


class Rows:
    """Counts rows of the gradient: under `vmap` its callback is handed the whole batch, live and idle chains alike."""

    def __init__(self) -> None:
        self.seen = 0

    def counting(self, density: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The same density; whenever its gradient is computed, the host counts the rows."""

        @jax.custom_vjp
        def counted(q: Any) -> Any:
            return density(q)

        def forward(q: Any) -> tuple[Any, Any]:
            value, gradient = jax.value_and_grad(density)(q)
            shape = jax.ShapeDtypeStruct(value.shape, value.dtype)
            return value + jax.pure_callback(self._saw, shape, value, vmap_method="broadcast_all"), gradient

        counted.defvjp(forward, lambda gradient, cotangent: (cotangent * gradient,))
        return counted

    def _saw(self, values: Any) -> np.ndarray:
        self.seen += np.size(values)
        return np.zeros_like(values)
