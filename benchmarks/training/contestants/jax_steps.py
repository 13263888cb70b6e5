"""JAX: sentences padded to the longest of the batch, `lax.scan` with masks, `jax.grad`; XLA compiles both.

Trees have no place here: a recursion of unknown length cannot be differentiated in reverse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.training.contestants.worker import Trained, serve
from benchmarks.trees.contestants.worker import Job
from benchmarks.trees.networks import LONGEST, Arrays

Weights = dict[str, Any]


def states(x: Any, length: Any, matrix: Any, bias: Any, *, all_of_them: bool = True) -> Any:
    """The last state of an LSTM, `[examples, width]`, or all `[examples, time, width]`, anything behind the ends.

    What depends on words alone is computed of all words at once.
    """
    width = bias.shape[0] // 4
    of_x = jnp.swapaxes(x @ matrix[:-width] + bias, 0, 1)

    def step(state: Any, given: Any) -> Any:
        (h, c), (gates, inside) = state, given
        i, f, o, u = jnp.split(gates + h @ matrix[-width:], 4, axis=1)
        new = jax.nn.sigmoid(i) * jnp.tanh(u) + jax.nn.sigmoid(f) * c
        c = jnp.where(inside, new, c)
        h = jnp.where(inside, jax.nn.sigmoid(o) * jnp.tanh(new), h)
        return (h, c), h if all_of_them else None

    nothing = jnp.zeros([x.shape[0], width])
    inside = (jnp.arange(x.shape[1])[:, None] < length)[:, :, None]
    (last, _), found = lax.scan(step, (nothing, nothing), (of_x, inside))
    return jnp.swapaxes(found, 0, 1) if all_of_them else last


def lstm(weights: Weights, word: Any, length: Any) -> Any:
    """See `pcbatch_batched.lstm`."""
    return states(weights["words"][word], length, weights["cell"], weights["cell bias"], all_of_them=False)


def tagger(weights: Weights, word: Any, length: Any) -> Any:
    """See `pcbatch_batched.tagger`."""
    x, t = weights["words"][word], jnp.arange(word.shape[1])
    inside = t < length[:, None]
    turned = jnp.where(inside, length[:, None] - 1 - t, t)[:, :, None]
    before = states(x, length, weights["forward"], weights["forward bias"])
    after = states(jnp.take_along_axis(x, turned, 1), length, weights["backward"], weights["backward bias"])
    both = jnp.concatenate([before, jnp.take_along_axis(after, turned, 1)], 2)
    scores = jnp.where(inside[:, :, None], both @ weights["tags"] + weights["tags bias"], 0.0)
    return jnp.pad(scores, [(0, 0), (0, LONGEST - word.shape[1]), (0, 0)])


NETWORKS: dict[str, Callable[..., Any]] = {"lstm": lstm, "tagger": tagger}


def prepare(job: Job) -> Trained:
    """Compiled steps."""
    network = NETWORKS[job.network.cell]
    weights = {name: jnp.asarray(each) for name, each in job.weights.items()}

    def loss(weights: Weights, word: Any, length: Any, aim: Any) -> Any:
        return 0.5 * jnp.sum((network(weights, word, length) - aim) ** 2) / len(aim)

    results, derivative = jax.jit(network), jax.jit(jax.grad(loss))

    def inference(batch: Arrays, aim: np.ndarray) -> Any:
        return np.asarray(results(weights, *padded(batch)))

    def step(batch: Arrays, aim: np.ndarray) -> Any:
        return jax.block_until_ready(derivative(weights, *padded(batch), aim))

    return Trained(inference, step, lambda found: {name: np.asarray(each) for name, each in found.items()})


def padded(batch: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Words no further than the longest sentence goes, and lengths."""
    return np.maximum(batch["word"], 0)[:, : batch["length"].max()], batch["length"]


if __name__ == "__main__":
    serve(prepare)
