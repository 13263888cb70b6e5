"""Does native code among expensive blocks pay?

    python -m benchmarks.mixed [treelstm logistic sorts descent] [--lanes 8 64 512] [--repeats 7]

A TreeLSTM of 64 cells over trees of 5 to 39 words; the sampler on a logistic regression of 569 x 31, step size and unit
metric fixed; a loop that sorts 16 numbers now and then; descent by products of 200 x 200, step by step longer or
shorter. Each in mixed form (`form="auto"`; of the sampler `schedule="auto"`) and in lockstep, in turn: CPU microseconds
of all threads for each lane, of the sampler for each gradient, the best of the repeats; and the ratio, which is below 1
where mixed is better. Results are compared, but for the sampler's, whose trajectories part at the last bits of a sum.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
from benchmarks.harness import arguments, write_json
from pcbatch import nuts

Run = Callable[[], tuple[Any, int, str]]
"""A call to the end: its result, how many times it did what is counted, and the form that it had."""

generator = np.random.default_rng(0)


def numbers(*shape: int, scale: float = 1.0) -> tf.Tensor:
    """Normal numbers."""
    return tf.constant(generator.normal(size=shape, scale=scale), tf.float32)


CELLS, WORDS, LONGEST = 64, 1000, 40
CELL, EMBEDDINGS = numbers(5 * CELLS, 2 * CELLS, scale=0.1), numbers(WORDS, CELLS)


@pcbatch.autobatch
def below(left, right, word, node):
    """State and memory of the tree under `node`."""
    if node < 0:
        return tf.zeros([CELLS]), tf.zeros([CELLS])
    state_left, memory_left = below(left, right, word, left[node])
    state_right, memory_right = below(left, right, word, right[node])
    gates = tf.linalg.matvec(CELL, tf.concat([state_left, state_right], 0)) + tf.tile(EMBEDDINGS[word[node]], [5])
    enter, keep_left, keep_right, leave, update = tf.split(gates, 5)
    memory = tf.sigmoid(enter) * tf.tanh(update)
    memory = memory + tf.sigmoid(keep_left) * memory_left + tf.sigmoid(keep_right) * memory_right
    return tf.sigmoid(leave) * tf.tanh(memory), memory


@pcbatch.autobatch
def tree(left, right, word):
    """State and memory of a whole tree."""
    return below(left, right, word, 0)


def random_tree(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The children of each node of a search tree."""
    children = np.full((2, LONGEST), -1, np.int32)
    order = generator.permutation(nodes)
    for new in range(1, nodes):
        node = 0
        while children[side := int(order[new] > order[node]), node] >= 0:
            node = children[side, node]
        children[side, node] = new
    return children[0], children[1]


def trees(lanes: int) -> tuple[np.ndarray, ...]:
    """Trees of 5 to 39 nodes."""
    left, right = zip(*(random_tree(int(generator.integers(5, LONGEST))) for _ in range(lanes)), strict=True)
    return np.stack(left), np.stack(right), generator.integers(0, WORDS, (lanes, LONGEST)).astype(np.int32)


@pcbatch.autobatch
def sorts(x, n):
    """Collatz's sequence, with a sort where 7 divides a number."""
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        if n % 7 == 0:
            x = tf.sort(x * 1.5 - tf.roll(x, 1, 0))
    return x


SIZE = 200
ROOT = generator.normal(size=(SIZE, SIZE))
QUADRATIC = tf.constant(ROOT @ ROOT.T / SIZE + np.eye(SIZE), tf.float32)


@pcbatch.autobatch
def descent(x):
    """Down a quadratic, by steps that grow while they lead down."""
    step = 1.0
    value = 0.5 * tf.reduce_sum(x * tf.linalg.matvec(QUADRATIC, x))
    turns = 0
    while turns < 30 and value > 1e-3:
        gradient = tf.linalg.matvec(QUADRATIC, x)
        there = x - step * gradient
        new = 0.5 * tf.reduce_sum(there * tf.linalg.matvec(QUADRATIC, there))
        if new < value - 0.25 * step * tf.reduce_sum(gradient * gradient):
            x = there
            value = new
            step = step * 1.5
        else:
            step = step * 0.5
        turns += 1
    return x, value


FEATURES = numbers(569, 31, scale=0.5)
LABELS = tf.cast(generator.uniform(size=569) < tf.sigmoid(tf.linalg.matvec(FEATURES, numbers(31))).numpy(), tf.float32)


def logistic(weights, data):
    """The log density of a logistic regression."""
    features, labels = data
    logits = tf.linalg.matvec(features, weights)
    return tf.reduce_sum(labels * logits - tf.nn.softplus(logits)) - 0.5 * tf.reduce_sum(weights * weights)


def sampler(lanes: int, schedule: str) -> Run:
    """Some draws of the logistic regression in `lanes` chains; fewer of many."""
    draws = max(4, min(100, 1500 // lanes))

    def run() -> tuple[Any, int, str]:
        samples = nuts.sample(
            logistic, np.zeros(31, np.float32), data=(FEATURES, LABELS), chains=lanes, warmup=0, draws=draws,
            chunk=draws, step_size=0.05, adapt=None, seed=3, progress=False, schedule=schedule,
        )  # fmt: skip
        return [], samples.cost.gradients, samples.stats.forms[-1]

    return run


BATCHES: dict[str, tuple[Any, Callable[[int], tuple[Any, ...]]]] = {
    "treelstm": (tree, trees),
    "sorts": (sorts, lambda lanes: (numbers(lanes, 16), generator.integers(1, 1000, lanes).astype(np.int32))),
    "descent": (descent, lambda lanes: (numbers(lanes, SIZE),)),
}
TASKS = (*BATCHES, "logistic")


def contestants(task: str, lanes: int) -> tuple[Run, Run]:
    """A task in mixed form and in lockstep."""
    if task == "logistic":
        return sampler(lanes, "auto"), sampler(lanes, "adaptive")
    function, batch = BATCHES[task]
    given = batch(lanes)

    def of(form: str) -> Run:
        program = function.options(form=form)

        def run() -> tuple[Any, int, str]:
            found = [np.asarray(leaf) for leaf in tf.nest.flatten(program(*given))]
            return found, lanes, program.stats().forms[-1]

        return run

    return of("auto"), of("lockstep")


def timed(run: Run) -> tuple[float, Any, str]:
    """CPU microseconds of what is counted, result and form of a call."""
    started = time.process_time()
    result, count, form = run()
    return (time.process_time() - started) / count * 1e6, result, form


def main() -> None:
    """Print a line for each task and number of lanes."""
    parser = arguments(__doc__)
    parser.add_argument("tasks", nargs="*", choices=[*TASKS, []], help="which tasks; all if none is named")
    parser.add_argument("--lanes", nargs="+", type=int, default=[8, 64, 512], help="how many lanes or chains")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", nuts.SamplerWarning)  # draws are few
    found = []
    print(f"{'task':>10} {'lanes':>6} {'mixed, us':>10} {'lockstep':>9} {'ratio':>6}")
    for task in chosen.tasks or TASKS:
        for lanes in chosen.lanes:
            runs = contestants(task, lanes)
            (_, one, form), (_, other, _) = map(timed, runs)
            for leaf, wanted in zip(one, other, strict=True):
                np.testing.assert_allclose(leaf, wanted, rtol=1e-3, atol=1e-3)
            repeats = [[timed(run)[0] for run in runs] for _ in range(chosen.repeats)]
            mixed, lockstep = (min(column) for column in zip(*repeats, strict=True))
            found.append({"task": task, "lanes": lanes, "mixed": mixed, "lockstep": lockstep, "form": form})
            print(f"{task:>10} {lanes:>6} {mixed:>10.2f} {lockstep:>9.2f} {mixed / lockstep:>6.2f}  {form}", flush=True)
    if chosen.json:
        write_json(chosen.json, found)


if __name__ == "__main__":
    main()
