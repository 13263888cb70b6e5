"""Common parts of the small examples here: weights, an LSTM's cell, a loop that trains, and the curve as a picture.

Each example has `model(width)`, which gives a batched function from one example to its loss, and the weights; and
`examples(random, count)`, which gives a batch. `python examples/training/NAME.py --steps 200` trains.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tqdm import tqdm

Model = Callable[[int], tuple[Any, list[tf.Variable]]]
Examples = Callable[[np.random.Generator, int], tuple[Any, ...]]


def weights(*shapes: Sequence[int], seed: int = 0) -> list[tf.Variable]:
    """A variable of each shape: matrices as Glorot and Bengio draw them, tables alike, vectors zero."""
    random = np.random.default_rng(seed)
    found = [random.normal(size=shape) * np.sqrt(2 / sum(shape[-2:])) * (len(shape) > 1) for shape in shapes]
    return [tf.Variable(each, dtype=tf.float32) for each in found]


def lstm(weight: tf.Variable, bias: tf.Variable, x: Any, h: Any, c: Any) -> tuple[Any, Any]:
    """State and memory after `x`; `weight` is `[4 width, inputs + width]`."""
    i, f, o, g = tf.split(tf.linalg.matvec(weight, tf.concat([x, h], 0)) + bias, 4)
    c = tf.sigmoid(i) * tf.tanh(g) + tf.sigmoid(f + 1.0) * c
    return tf.sigmoid(o) * tf.tanh(c), c


def data(*path: str) -> Path:
    """A file of the folder that PCBATCH_DATA names; SystemExit where it is not there."""
    file = Path(os.environ.get("PCBATCH_DATA", "."), *path)
    if not file.is_file():
        raise SystemExit(f"{file} is not there: let PCBATCH_DATA name the folder that has {'/'.join(path)}")
    return file


def numbered(tokens: Iterable[str], size: int) -> dict[str, int]:
    """The `size - 1` most frequent tokens that occur twice, numbered from 1; 0 is for all others."""
    common = [token for token, count in Counter(tokens).most_common(size - 1) if count > 1]
    return {token: place for place, token in enumerate(common, 1)}


def train(
    loss: Any, variables: list[tf.Variable], examples: Examples, steps: int, batch: int, rate: float = 0.01
) -> list[float]:
    """The mean loss of each step of Adam."""
    optimizer, random, found = tf.keras.optimizers.Adam(rate), np.random.default_rng(0), []
    for _ in (bar := tqdm(range(steps))):
        given = examples(random, batch)
        with tf.GradientTape() as tape:
            mean = tf.reduce_mean(loss(*given))
        gradients = tape.gradient(mean, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        found.append(float(mean))
        bar.set_postfix(loss=f"{found[-1]:.3f}")
    return found


def save_curve(losses: Sequence[float], path: Path, title: str) -> None:
    """Draw losses, and their running mean, to `path`."""
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    size = max(1, min(20, len(losses) // 4))
    mean = np.convolve(losses, np.ones(size) / size, mode="valid")
    figure, axes = plt.subplots(figsize=(5, 3))
    axes.plot(losses, color="lightgrey")
    axes.plot(np.arange(size - 1, len(losses)), mean, color="tab:blue")
    axes.set(xlabel="step", ylabel="loss", title=title)
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main(name: str, model: Model, examples: Examples, training: Callable[..., list[float]] = train) -> None:
    """Train from the command line, print how the loss went, and save the curve."""
    parser = argparse.ArgumentParser(name)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--out", type=Path, default=Path("out") / name)
    options = parser.parse_args()
    loss, variables = model(options.width)
    losses = training(loss, variables, examples, options.steps, options.batch)
    print(f"loss {np.mean(losses[:5]):.3f} at first, {np.mean(losses[-20:]):.3f} at last")
    save_curve(losses, options.out / "loss.png", name.replace("_", " "))
