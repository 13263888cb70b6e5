"""The cost of the gradient of cheap code, in terms of a plain run.

    python -m benchmarks.tapes [--lanes 64 1024 16384] [--repeats 7] [--json out/tapes.json] [--draw]

Loops and a recursion over numbers, in which lanes make one to 64 turns: CPU milliseconds of a plain call, and of one
under a tape with its gradient; the ratio of what native code takes of both; and a tape over `tf.identity`, which is
TensorFlow's own part. Beside them, where JAX is installed, `jax.vmap` of a `lax.scan` of 64 turns, masked, and of its
`jax.grad`: JAX has no gradient of a loop whose number of turns is computed, and no recursion, which is a loop there. To
write out some of the turns (`unroll`) makes it slower. Medians, in turns; CPU time is that of all threads. `--draw`
writes `docs/figures/tapes.json` and the table of `docs/cheap-code.md`.
"""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf

import pcbatch
from benchmarks import harness
from benchmarks.conversation import ROOT
from benchmarks.figures.pages import paragraph
from pcbatch.function.fast_path import Plan
from pcbatch.runtime.llvm.program import NativeCode, Ready

FILE = ROOT / "docs" / "figures" / "tapes.json"
PAGE = ROOT / "docs" / "cheap-code.md"
MARKED = re.compile(r"(<!-- tapes -->\n).*?(<!-- end -->)", re.DOTALL)
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


Ways = Mapping[str, Callable[..., Any]]


def ours(function: Any) -> Ways:
    """A plain call, and one under a tape, with its gradient by the first argument."""

    def gradient(x: tf.Tensor, turns: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = function(x, turns)
        return tape.gradient(result, x)

    return {"plain": function, "gradient": gradient}


def in_jax() -> dict[str, Ways]:
    """The same programs in JAX, for JAX's arrays; nothing where that is not installed."""
    try:
        import jax
    except ImportError:
        return {}
    jnp = jax.numpy

    def looped(turn: Callable[..., Any], first: Callable[..., Any], end: Callable[..., Any]) -> Ways:
        def one(x: Any, turns: Any) -> Any:
            def masked(state: Any, number: Any) -> Any:
                moved = turn(x, *state)
                return [jnp.where(number < turns, a, b) for a, b in zip(moved, state, strict=True)], None

            return end(*jax.lax.scan(masked, first(x), jnp.arange(TURNS))[0])

        ways = jax.jit(jax.vmap(one)), jax.jit(jax.vmap(jax.grad(one)))
        plain, gradient = (lambda *given, way=way: way(*given).block_until_ready() for way in ways)
        return {"plain": plain, "gradient": gradient}

    def branch(x: Any, y: Any) -> list[Any]:
        y = jnp.where(y > 1.0, y * 0.5, y)
        return [y + x * (1.0 - y) * 0.1]

    def same(state: Any) -> Any:
        return state

    ways = {
        swung: looped(lambda x, total: [total + 0.01 * jnp.sin(x * total)], lambda x: [x], same),
        polynomial: looped(branch, lambda x: [x], same),
        nested: looped(
            lambda _, x, total: [x * 0.99, total + x * 0.01],
            lambda x: [x, jnp.zeros_like(x)],
            lambda x, total: x + total,
        ),
    }
    return {name: ways[function] for name, function in PROGRAMS.items()}


def batch(lanes: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and how many turns each makes."""
    random = np.random.default_rng(0)
    return random.uniform(0.5, 1.5, lanes).astype(np.float32), random.integers(1, TURNS + 1, lanes).astype(np.int32)


class Native:
    """The CPU seconds of native code."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Count them inside; a warm call goes through Python there, as its own entry cannot be timed from here."""
        run = NativeCode.run

        def timed(*given: Any) -> None:
            began = time.thread_time()
            run(*given)
            self.seconds += time.thread_time() - began

        def by_python(ready: Ready, given: Sequence[np.ndarray]) -> Any:
            return ready._run(tuple(given))

        looking = mock.patch.object(Plan, "run_checked", return_value=None)
        with looking, mock.patch.object(Ready, "__call__", by_python), mock.patch.object(NativeCode, "run", timed):
            yield


def measured(ways: Ways, given: tuple[Any, Any], repeats: int) -> dict[str, float]:
    """CPU seconds of a call of each, and of native code in the second one."""
    counts = {}
    for name, call in ways.items():
        for _ in range(3):
            call(*given)
        started = time.process_time()
        call(*given)
        counts[name] = max(1, int(ENOUGH / max(time.process_time() - started, 1e-6)))
    found: dict[str, list[float]] = {name: [] for name in (*ways, *(f"{name}, native" for name in ways))}
    for _ in range(repeats):
        for name, call in ways.items():
            started = time.process_time()
            for _ in range(counts[name]):
                call(*given)
            found[name].append((time.process_time() - started) / counts[name])
            native = Native()
            with native.watched():
                for _ in range(counts[name]):
                    call(*given)
            found[f"{name}, native"].append(native.seconds / counts[name])
    return {name: statistics.median(each) for name, each in found.items()}


Figures = dict[str, dict[str, dict[str, dict[str, float]]]]
"""Seconds by who has taken them, by number of lanes, by program."""


def table(figures: Figures) -> list[str]:
    """The table of the figures."""
    head = [
        "program",
        "lanes",
        "plain, ms",
        "gradient, ms",
        "ratio",
        "ratio of native code",
        "TensorFlow's tape, ms",
    ]
    rows = []
    for name, by_lanes in figures["pcbatch"].items():
        for lanes, found in by_lanes.items():
            plain, gradient = found["plain"], found["gradient"]
            native = found["gradient, native"] / found["plain, native"]
            alone = figures["TensorFlow"]["identity"][lanes]["gradient"]
            row = [name, f"{int(lanes):,}", _ms(plain), _ms(gradient), f"{gradient / plain:.1f}", f"{native:.1f}"]
            row.append(_ms(alone))
            theirs = figures["JAX"].get(name, {}).get(lanes)
            if theirs is not None:
                row += [_ms(theirs["plain"]), _ms(theirs["gradient"]), f"{theirs['gradient'] / theirs['plain']:.1f}"]
            rows.append(row)
    if figures["JAX"]:
        head += ["JAX, plain, ms", "JAX, gradient, ms", "JAX, ratio"]
    return harness.table(head, rows)


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.2g}"


def drawn(text: str, path: Path = FILE) -> str:
    """The page with the figures of a file."""
    figures = json.loads(path.read_text(encoding="utf-8"))["figures"]
    lines = [*paragraph(figures["origin"]).splitlines(), "", *table(figures["seconds"])]
    return MARKED.sub(lambda mark: f"{mark[1]}{chr(10).join(lines)}\n{mark[2]}", text)


def main() -> None:
    """Print the figures, and draw them."""
    parser = harness.arguments(__doc__)
    parser.set_defaults(repeats=7)
    parser.add_argument("--lanes", type=int, nargs="+", default=LANES)
    parser.add_argument("--draw", action="store_true", help="write the figures' file and the page's table")
    options = parser.parse_args()
    before, theirs = harness.load(), in_jax()
    figures: Figures = {"pcbatch": {}, "TensorFlow": {}, "JAX": {}}
    for lanes in options.lanes:
        arrays = batch(lanes)
        given = tf.constant(arrays[0]), tf.constant(arrays[1])
        alone = ours(lambda x, turns: tf.identity(x))
        figures["TensorFlow"].setdefault("identity", {})[str(lanes)] = measured(alone, given, options.repeats)
        for name, function in PROGRAMS.items():
            found = measured(ours(function), given, options.repeats)
            figures["pcbatch"].setdefault(name, {})[str(lanes)] = found
            if name in theirs:
                import jax

                theirs_given = jax.numpy.asarray(arrays[0]), jax.numpy.asarray(arrays[1])
                found = measured(theirs[name], theirs_given, options.repeats)
                figures["JAX"].setdefault(name, {})[str(lanes)] = found
    print("\n".join(table(figures)))
    packages = ("pcbatch", "tensorflow", "jax") if theirs else ("pcbatch", "tensorflow")
    path = FILE if options.draw else options.json
    if path:
        harness.write_json(path, {"origin": harness.origin(before, packages), "seconds": figures}, packages)
    if options.draw:
        PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
