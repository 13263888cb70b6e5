"""The programs that are counted, run in the form for a GPU by XLA's CPU compiler, which hands over what it was given.

    XLA_FLAGS="--xla_dump_to=FOLDER --xla_dump_hlo_as_proto" python -m tools.gpu_thunks.programs NAME

Each is run as a user runs it; `tools.gpu_thunks.compiled` starts this script and reads what was dumped.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf

import pcbatch
from benchmarks.nuts.contestants import pcbatch_sampler
from benchmarks.nuts.contestants.in_tensorflow import batched, value_and_gradient
from benchmarks.nuts.contestants.worker import Job as SamplerJob
from benchmarks.nuts.targets import TARGETS
from benchmarks.trees.contestants import pcbatch_batched
from benchmarks.trees.networks import NETWORKS
from pcbatch import nuts
from pcbatch.runtime.backends import backend_named

TREES = 64


def sampler(chains: int) -> None:
    """One trajectory of each chain, of a logistic regression of 1,000 x 25."""
    warnings.simplefilter("ignore", nuts.SamplerWarning)
    target = replace(TARGETS["logistic-small"], trajectories=1)
    pcbatch_sampler.prepare(SamplerJob(target, chains, 1, ""))(1, False)


def gradient(chains: int) -> None:
    """The value and the gradient of that density for all chains at once, batched by hand."""
    target = TARGETS["logistic-small"]
    density = batched(target.family, [tf.constant(each) for each in target.data()])
    tf.function(lambda q: value_and_gradient(density, q), jit_compile=True)(tf.constant(target.starts(chains)))


def fibonacci() -> None:
    """Of 0 to 15, 10,000 lanes."""

    @pcbatch.autobatch
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 2) + fibonacci(n - 1)

    fibonacci(np.arange(10_000, dtype=np.int32) % 16)


def insertion_sort() -> None:
    """Of 32 numbers, 4,096 lanes."""

    @pcbatch.autobatch
    def insertion_sort(values):
        for i in range(1, len(values)):
            key = values[i]
            j = i - 1
            while j >= 0 and values[j] > key:
                values[j + 1] = values[j]
                j -= 1
            values[j + 1] = key
        return values

    insertion_sort(np.random.default_rng(1).integers(0, 1000, (4096, 32), dtype=np.int32))


def trees(*, training: bool, forked: bool = False) -> None:
    """A TreeLSTM of 128 cells over 64 binary trees: the states of the roots, or a training step."""
    network = NETWORKS["small trees"]
    weights = {name: tf.Variable(each) for name, each in network.weights().items()}
    given = list(network.batch(TREES, 1).values())
    function = pcbatch_batched.binary(weights).options(fork=forked)
    if not training:
        function(*given)
        return
    with tf.GradientTape() as tape:
        loss = tf.nn.l2_loss(function(*given))
    tape.gradient(loss, list(weights.values()))


def layers(lanes: int, size: int) -> None:
    """A layer of `size` x `size` in every second step, which costs more than a look, and stacks beside it."""
    weights = tf.Variable(np.full((size, size), 1 / size, np.float32))

    @pcbatch.autobatch
    def layers(n, x):
        for step in range(n):
            x = tf.tanh(tf.linalg.matvec(weights, x)) if step % 2 == 0 else x * 0.5
        return x + layers(n - 2, x) if n > 2 else x

    n = np.where(np.arange(lanes) < 4, 3, 0).astype(np.int32)
    layers(n, np.zeros((lanes, size), np.float32))


PROGRAMS: dict[str, Callable[[], None]] = {
    "sampler-64": lambda: sampler(64),
    "sampler-1024": lambda: sampler(1024),
    "gradient-64": lambda: gradient(64),
    "gradient-1024": lambda: gradient(1024),
    "fibonacci": fibonacci,
    "sort": insertion_sort,
    "tree": lambda: trees(training=False),
    "step": lambda: trees(training=True),
    "forks": lambda: trees(training=False, forked=True),
    "dear": lambda: layers(64, 8192),
    "chunks": lambda: layers(4096, 1024),
}
"""By the names in `titles`, and the gradients that they name."""

if __name__ == "__main__":
    with backend_named("tensorflow").targeting("GPU"):
        PROGRAMS[sys.argv[1]]()
