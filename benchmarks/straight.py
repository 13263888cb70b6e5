"""Do programs without control flow run as fast as `tf.vectorized_map`?

    python -m benchmarks.straight [forward gradient jacobian linear attention] [--json out/straight.json]

A small convolutional network (two convolutions of 5 x 5, two layers; 28 x 28 pixels, 64 examples): its logits, the
gradient of each example's loss, the Jacobian of each example's logits, both with respect to all weights; a layer of
768; attention of 64 queries to as many keys as each example has. Contestants: pcbatch as it is, with `jit="auto"`, and
in the machine's loop (`form="lockstep"`); `tf.vectorized_map` in a `tf.function`, with and without XLA. Milliseconds
are medians, the ratio is the median of the ratios of neighbours in time: of `jit="auto"` to the better
`vectorized_map`. PASS up to 1.1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
from benchmarks.harness import Timing, arguments, measure, paired, write_json

EXAMPLES, CLASSES, PLACES, WIDTH = 64, 10, 64, 768
LIMIT = 1.1
"""The most that a program may take in terms of the better `vectorized_map`."""

generator = np.random.default_rng(1)


def numbers(*shape: int, scale: float = 1.0) -> tf.Tensor:
    """Normal numbers."""
    return tf.constant(generator.normal(size=shape, scale=scale), tf.float32)


SHAPES = ((5, 5, 1, 32), (32,), (5, 5, 32, 64), (64,), (7 * 7 * 64, 32), (32,), (32, CLASSES), (CLASSES,))
WEIGHTS = [numbers(*shape, scale=0.05) for shape in SHAPES]
MATRIX, BIAS = numbers(WIDTH, WIDTH, scale=0.05), numbers(WIDTH)


def logits(image):
    """The network's output for one image `[28, 28, 1]`: `[CLASSES]`."""
    first, first_bias, second, second_bias, hidden, hidden_bias, last, last_bias = WEIGHTS
    x = tf.nn.relu(tf.nn.conv2d(image[None], first, 1, "SAME") + first_bias)
    x = tf.nn.max_pool2d(x, 2, 2, "SAME")
    x = tf.nn.relu(tf.nn.conv2d(x, second, 1, "SAME") + second_bias)
    x = tf.reshape(tf.nn.max_pool2d(x, 2, 2, "SAME"), [1, -1])
    x = tf.nn.relu(tf.matmul(x, hidden) + hidden_bias)
    return (tf.matmul(x, last) + last_bias)[0]


def forward(image):
    """The logits of one image."""
    return logits(image)


def gradient(image, label):
    """The gradient of one example's loss; `label` is a row of the identity."""
    with tf.GradientTape() as tape:
        tape.watch(WEIGHTS)
        loss = tf.nn.softmax_cross_entropy_with_logits(label, logits(image))
    return tape.gradient(loss, WEIGHTS)


def jacobian(image):
    """The Jacobian of one image's logits."""
    with tf.GradientTape() as tape:
        tape.watch(WEIGHTS)
        found = logits(image)
    return tape.jacobian(found, WEIGHTS)


def linear(x):
    """A layer of 768."""
    return tf.linalg.matvec(MATRIX, x, transpose_a=True) + BIAS


def attention(queries, keys, values, count):
    """What queries see of the first `count` keys."""
    scores = tf.matmul(queries, keys, transpose_b=True) / 8.0
    seen = tf.range(PLACES) < count
    return tf.matmul(tf.nn.softmax(tf.where(seen[None], scores, -1e9)), values)


IMAGES = numbers(EXAMPLES, 28, 28, 1)
TASKS: dict[str, tuple[Callable[..., Any], tuple[tf.Tensor, ...]]] = {
    "forward": (forward, (IMAGES,)),
    "gradient": (gradient, (IMAGES, tf.one_hot(tf.range(EXAMPLES) % CLASSES, CLASSES))),
    "jacobian": (jacobian, (IMAGES,)),
    "linear": (linear, (numbers(EXAMPLES, WIDTH),)),
    "attention": (attention, (*(numbers(EXAMPLES, PLACES, 64) for _ in range(3)), tf.range(1, EXAMPLES + 1))),
}
PEERS = ("vectorized_map", "vectorized_map, XLA")


def figures(function: Callable[..., Any], batch: tuple[tf.Tensor, ...], repeats: int) -> dict[str, Any]:
    """The timings, the form that `jit="auto"` chose, and its ratio to the better `vectorized_map`."""
    batched = pcbatch.autobatch(function)
    auto = batched.options(jit="auto")
    contestants: dict[str, Callable[..., Any]] = {
        "auto": auto,
        "default": batched,
        "lockstep": batched.options(form="lockstep"),
    }
    for name in PEERS:
        contestants[name] = tf.function(
            lambda *given: tf.vectorized_map(lambda one: function(*one), given),
            jit_compile=name.endswith("XLA") or None,
            autograph=False,
        )
    timings = measure(
        {name: lambda call=call: tf.nest.map_structure(np.asarray, call(*batch)) for name, call in contestants.items()},
        repeats=repeats,
        rtol=1e-3,
        atol=1e-3,
    )
    (form,) = auto.stats().forms
    peer = min((timings[name] for name in PEERS), key=_median)
    return {"timings": timings, "form": form, "ratio": paired(peer, timings["auto"])}


def _median(timing: Timing) -> float:
    return timing.median


def main() -> None:
    """Print a line for each task; exit code 1 if one fails."""
    parser = arguments(__doc__)
    parser.add_argument("tasks", nargs="*", choices=[*TASKS, []], help="which tasks; all if none is named")
    options = parser.parse_args()
    found = {}
    print(f"milliseconds, {EXAMPLES} examples; ratio: auto to the better vectorized_map")
    for name in options.tasks or TASKS:
        found[name] = entry = figures(*TASKS[name], options.repeats)
        if name == next(iter(found)):
            print(f"{'':>10}" + "".join(f"{each:>21}" for each in (*entry["timings"], "ratio")))
        row = "".join(f"{1e3 * each.median:>21.2f}" for each in entry["timings"].values())
        passed = entry["ratio"] <= LIMIT
        print(f"{name:>10}{row}{entry['ratio']:>21.2f}  {'PASS' if passed else 'FAIL'}  {entry['form']}", flush=True)
    if options.json:
        write_json(options.json, found)
    sys.exit(not all(entry["ratio"] <= LIMIT for entry in found.values()))


if __name__ == "__main__":
    main()
