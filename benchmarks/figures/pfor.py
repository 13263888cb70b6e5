"""pfor's figures: pcbatch beside `tf.while_loop` and `tf.vectorized_map`, by the number of examples in a batch.

    python -m benchmarks.figures.pfor [--tasks "TreeLSTM" ..] [--small] [--repeats 5] [--folder docs/figures]

Agarwal, Ganichev, "Auto-Vectorizing TensorFlow Graphs: Jacobians, Auto-Batching and Beyond", 2019, figures 1 to 5:
models without control flow (a layer, ConvMnist, VGG16 with an eighth of the channels), a recurrent network on sequences
of unequal length, a TreeLSTM, a gated graph network, gradients of each example, Jacobians. `tf.while_loop` is
`tf.map_fn`: one example after another in a graph. Results are compared. Writes pfor.md and pfor.png.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
from benchmarks import straight
from benchmarks.figures import curves, pages, peers
from benchmarks.figures.curves import AUTO, OURS, Cells, Task
from benchmarks.harness import Contestant, load

NAME = "pfor"
PAPER = (
    "Agarwal, Ganichev, [Auto-Vectorizing TensorFlow Graphs: Jacobians, Auto-Batching and Beyond]"
    "(https://arxiv.org/abs/1903.04243), 2019"
)
SIZES, SMALL = (1, 4, 16, 64, 256), (1, 8)
VGG = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""VGG16: channels, and how many convolutions in a row have so many."""


def contestants(
    ours: Callable[..., Any],
    one: Callable[..., Any],
    given: Sequence[Any],
    theirs: Sequence[Any] | None = None,
    alone: Callable[..., Any] | None = None,
) -> Mapping[str, Contestant | str]:
    """`ours` is batched, `one` computes the same of one example, by arguments of its own if `theirs` are given.

    `alone` is what `tf.while_loop` computes of one example, if not `one`.
    """
    batch = tuple(map(tf.convert_to_tensor, given if theirs is None else theirs))
    specs = tf.nest.map_structure(lambda each: tf.TensorSpec(each.shape, each.dtype), one(*(each[0] for each in batch)))

    def looped(*arrays: tf.Tensor) -> Any:
        return tf.map_fn(lambda each: (alone or one)(*each), arrays, fn_output_signature=specs, parallel_iterations=1)

    def vectorized(*arrays: tf.Tensor) -> Any:
        return tf.vectorized_map(lambda each: one(*each), arrays, fallback_to_while_loop=False)

    calls = {OURS: lambda: ours(*given)}
    for name, function, jit in (
        ("tf.while_loop", looped, None),
        ("tf.vectorized_map", vectorized, None),
        ("tf.vectorized_map, XLA", vectorized, True),
    ):
        compiled = tf.function(function, jit_compile=jit, autograph=False)
        calls[name] = lambda compiled=compiled: compiled(*batch)
    return {name: _to_host(call) for name, call in calls.items()}


def _to_host(call: Contestant) -> Contestant:
    return lambda: tf.nest.map_structure(np.asarray, call())


def plain(
    function: Callable[..., Any],
    arguments: Callable[[int], Sequence[Any]],
    alone: Callable[..., Any] | None = None,
) -> Any:
    """The contestants of a function without control flow, the same for all."""
    batched = pcbatch.autobatch(function)

    def made(size: int) -> Mapping[str, Contestant | str]:
        given = arguments(size)
        auto = _to_host(lambda: batched.options(jit="auto")(*given))
        return {**contestants(batched, function, given, alone=alone), AUTO: auto}

    return made


def vgg(share: int) -> Callable[..., Any]:
    """VGG16 on images of 32 x 32, with one `share`th of its channels: ten scores."""
    channels = [(many // share, times) for many, times in VGG]
    filters, before = [], 3
    for many, times in channels:
        shapes = [(3, 3, before if first else many, many) for first in (True, *[False] * (times - 1))]
        filters.append([straight.numbers(*shape, scale=(9 * shape[2]) ** -0.5) for shape in shapes])
        before = many
    width = 4096 // share
    layers = [straight.numbers(i, o, scale=i**-0.5) for i, o in ((before, width), (width, width), (width, 10))]

    def network(image):
        x = image[None]
        for row in filters:
            for each in row:
                x = tf.nn.relu(tf.nn.conv2d(x, each, 1, "SAME"))
            x = tf.nn.max_pool2d(x, 2, 2, "SAME")
        x = tf.reshape(x, [1, -1])
        for layer in layers[:-1]:
            x = tf.nn.relu(x @ layer)
        return (x @ layers[-1])[0]

    return network


def row_by_row(image: tf.Tensor) -> Any:
    """`straight.jacobian`, one row after another."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(straight.WEIGHTS)
        found = straight.logits(image)
    return tape.jacobian(found, straight.WEIGHTS, experimental_use_pfor=False)


def images(size: int) -> tuple[tf.Tensor, ...]:
    """Images of 28 x 28."""
    return (straight.numbers(size, 28, 28, 1),)


def labelled(size: int) -> tuple[tf.Tensor, ...]:
    """Images, and rows of the identity."""
    return (*images(size), tf.one_hot(tf.range(size) % straight.CLASSES, straight.CLASSES))


def sequences(size: int) -> Mapping[str, Contestant | str]:
    """`examples/rnn.py` on sequences of up to 20 elements."""
    module, random = curves.example("rnn"), np.random.default_rng(0)
    rows = random.normal(size=(size, module.LONGEST, module.FEATURES)).astype(np.float32)
    lengths = random.integers(1, module.LONGEST + 1, size).astype(np.int32)
    return contestants(module.last_state, peers.recurrent(module), (rows, lengths))


def trees(width: int) -> Callable[[int], Mapping[str, Contestant | str]]:
    """`examples/training/tree_sentiment.py`."""
    module = curves.example("training/tree_sentiment")
    model = module.TreeLSTM(width)

    def made(size: int) -> Mapping[str, Contestant | str]:
        some, _ = module.make_trees(size, seed=1)
        return contestants(model.batched, peers.tree(model), (some,), nodes_of(some))

    return made


def nodes_of(trees: Any) -> tuple[np.ndarray, ...]:
    """The left children, the right children and the words of packed binary trees, each `[trees, nodes]`, or -1."""
    is_inner = trees.count > 0
    exists = np.arange(is_inner.shape[1]) <= trees.count.sum(axis=1, keepdims=True)
    left = np.where(is_inner, trees.first, -1)
    return left, np.where(is_inner, trees.first + 1, -1), np.where(exists & ~is_inner, trees.values, -1)


def graphs(width: int) -> Callable[[int], Mapping[str, Contestant | str]]:
    """`examples/training/graph_network.py`."""
    module = curves.example("training/graph_network")
    loss, variables = module.model(width)

    def made(size: int) -> Mapping[str, Contestant | str]:
        edges, nodes, labels = given = module.examples(np.random.default_rng(0), size)
        one = peers.graph(variables, module.NODES)
        return contestants(loss, one, given, (edges.values, edges.length, nodes, labels))

    return made


def tasks(small: bool) -> list[Task]:
    """The panels, in the paper's order."""
    sizes, few, width = (SMALL, SMALL, 16) if small else (SIZES, SIZES[:-1], 128)
    share = 32 if small else 8
    return [
        Task(
            "layer",
            "A linear layer of 768.",
            sizes,
            plain(straight.linear, lambda n: (straight.numbers(n, 768),)),
        ),
        Task(
            "ConvMnist",
            "Two convolutions and two layers on images of 28 x 28.",
            sizes,
            plain(straight.forward, images),
        ),
        Task(
            "VGG16",
            f"VGG16 on images of 32 x 32, with one {share}th of its channels.",
            few,
            plain(vgg(share), lambda n: (straight.numbers(n, 32, 32, 3),)),
        ),
        Task(
            "LSTM",
            "A recurrent network on sequences of 1 to 20 elements, `examples/rnn.py`.",
            sizes,
            sequences,
        ),
        Task(
            "TreeLSTM",
            f"A binary TreeLSTM of {width} on trees of 2 to 20 leaves, `examples/training/tree_sentiment.py`. "
            "pcbatch runs the recursion. The others have none: a loop goes over the nodes of each tree.",
            sizes,
            trees(width),
        ),
        Task(
            "GGNN",
            f"A gated graph network of {width} on graphs of 3 to 8 nodes, `examples/training/graph_network.py`. "
            "pcbatch goes along each graph's edges. The others multiply by its matrix.",
            few,
            graphs(width),
        ),
        Task(
            "gradients",
            "The gradient of each example's loss by all weights of ConvMnist.",
            few,
            plain(straight.gradient, labelled),
        ),
        Task(
            "Jacobians",
            "The Jacobian of each example's ten scores by all weights of ConvMnist. `tf.while_loop` goes row by row, "
            "too.",
            few,
            plain(straight.jacobian, images, row_by_row),
        ),
    ]


def page(found: Mapping[str, Cells], every: Sequence[Task], measured: str) -> list[str]:
    """The parts of the page."""
    sections = [part for task in every if task.name in found for part in curves.section(task, found[task.name])]
    return [
        "# Batches of models, gradients and Jacobians",
        pages.paragraph(
            f"`python -m benchmarks.figures.{NAME}` writes this page: figures 1 to 5 of {PAPER}, measured anew. A "
            "model is written for one example, and batched by pcbatch or by `tf.vectorized_map`, with and without XLA. "
            '`tf.while_loop` computes one example after another in a graph: the sequential loop. With `jit="auto"` '
            "pcbatch estimates whether XLA or TensorFlow's own kernels should run a program without control flow."
        ),
        measured,
        f"![Examples per second by number of examples in a batch]({NAME}.png)",
        pages.paragraph(
            "Tables have examples per second, from arrays to results on the host, by the number of examples. In "
            "brackets is pcbatch's speed over it: above 1 pcbatch is faster. All results are compared."
        ),
        *sections,
    ]


def main() -> None:
    """Measure, draw, write."""
    parser = curves.arguments(__doc__)
    names = [task.name for task in tasks(small=True)]
    parser.add_argument("--tasks", nargs="+", choices=names, default=names, metavar="task")
    options = parser.parse_args()
    before, every = load(), tasks(options.small)
    found = {task.name: curves.measured(task, options) for task in every if task.name in options.tasks}
    curves.save_panels(
        options.folder / f"{NAME}.png", [curves.panel(task, found[task.name]) for task in every if task.name in found]
    )
    curves.write(NAME, options, page(found, every, curves.standing(options, before)), curves.plain(found))


if __name__ == "__main__":
    main()
