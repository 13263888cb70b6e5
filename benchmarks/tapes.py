"""The cost of the gradient of cheap code, in terms of a plain run.

    python -m benchmarks.tapes [--lanes 64 1024 16384] [--repeats 7] [--json out/tapes.json]

Loops and a recursion over numbers, in which lanes make one to 64 turns: CPU milliseconds of a plain call, and of one
under a tape with its gradient; and the ratio. Beside them, where JAX is installed, the same loop by `jax.vmap` of a
`lax.scan` of 64 turns, masked, and of its `jax.grad`: JAX has no gradient of a loop whose number of turns is computed.
Medians, in turns; CPU time is that of all threads.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
from benchmarks.harness import arguments, write_json

TURNS = 64
"""The most turns of a lane."""
LANES = (64, 1024, 16384)
ENOUGH = 0.02
"""CPU seconds that the calls of one repeat take together."""


@pcbatch.autobatch
def swung(x, turns):
    """A loop of a product and a sine."""
    total = x
    for _ in range(turns):
        total = total + 0.01 * tf.sin(x * total)
    return total


@pcbatch.autobatch
def polynomial(x, turns):
    """A loop of three products, with a branch."""
    y = x
    for _ in range(turns):
        if y > 1.0:
            y = y * 0.5
        y = y + x * (1.0 - y) * 0.1
    return y


@pcbatch.autobatch
def nested(x, turns):
    """A recursion."""
    if turns == 0:
        return x
    return nested(x * 0.99, turns - 1) + x * 0.01


PROGRAMS = {"a loop with a sine": swung, "a loop with a branch": polynomial, "a recursion": nested}


def with_gradient(function: Any) -> Callable[..., Any]:
    """A call under a tape, and its gradient by the first argument."""

    def run(x: tf.Tensor, turns: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(function(x, turns))
        return tape.gradient(total, x)

    return run


def in_jax() -> dict[str, Callable[..., Any]] | None:
    """`swung` and its gradient in JAX; None where that is not installed."""
    try:
        import jax
    except ImportError:
        return None

    def one(x: Any, turns: Any) -> Any:
        def turn(total: Any, number: Any) -> Any:
            return jax.numpy.where(number < turns, total + 0.01 * jax.numpy.sin(x * total), total), None

        return jax.lax.scan(turn, x, jax.numpy.arange(TURNS))[0]

    plain, gradient = jax.jit(jax.vmap(one)), jax.jit(jax.vmap(jax.grad(one)))
    return {
        "plain": lambda x, turns: plain(x, turns).block_until_ready(),
        "gradient": lambda x, turns: gradient(x, turns).block_until_ready(),
    }


def batch(lanes: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and how many turns each makes."""
    random = np.random.default_rng(0)
    return random.uniform(0.5, 1.5, lanes).astype(np.float32), random.integers(1, TURNS + 1, lanes).astype(np.int32)


def measured(ways: dict[str, Callable[..., Any]], given: tuple[Any, Any], repeats: int) -> dict[str, float]:
    """CPU seconds of a call of each."""
    counts = {}
    for name, call in ways.items():
        for _ in range(3):
            call(*given)
        started = time.process_time()
        call(*given)
        counts[name] = max(1, int(ENOUGH / max(time.process_time() - started, 1e-6)))
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, call in ways.items():
            started = time.process_time()
            for _ in range(counts[name]):
                call(*given)
            found[name].append((time.process_time() - started) / counts[name])
    return {name: statistics.median(each) for name, each in found.items()}


def main() -> None:
    """Print the figures."""
    parser = arguments(__doc__)
    parser.set_defaults(repeats=7)
    parser.add_argument("--lanes", type=int, nargs="+", default=LANES)
    options = parser.parse_args()
    found: dict[str, dict[int, dict[str, float]]] = {}
    print(f"{'CPU ms':>22} {'lanes':>7} {'plain':>9} {'gradient':>9} {'ratio':>6}")
    theirs = in_jax()
    for lanes in options.lanes:
        x, turns = batch(lanes)
        for name, function in PROGRAMS.items():
            ways = {"plain": function, "gradient": with_gradient(function)}
            found.setdefault(name, {})[lanes] = measured(ways, (tf.constant(x), tf.constant(turns)), options.repeats)
        if theirs is not None:
            found.setdefault("JAX, with a sine", {})[lanes] = measured(theirs, (x, turns), options.repeats)
        for name, by_lanes in found.items():
            plain, gradient = by_lanes[lanes]["plain"] * 1e3, by_lanes[lanes]["gradient"] * 1e3
            print(f"{name:>22} {lanes:>7} {plain:>9.3f} {gradient:>9.3f} {gradient / plain:>6.1f}", flush=True)
    if options.json:
        write_json(options.json, found)


if __name__ == "__main__":
    main()
