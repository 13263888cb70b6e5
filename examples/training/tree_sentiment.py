"""Sentiment of sentences by a TreeLSTM over their trees: a model that is a recursion, trained through it.

    python examples/training/tree_sentiment.py [--trees 4000] [--epochs 10] [--width 48] [--out out/tree_sentiment]

The sentences are made by a small grammar in which structure matters: "not" turns around what it stands before, however
long that is, "very" doubles it, and of "A but B" only B counts. A bag of words cannot know what "not" is about; a
network that follows the tree can. The model below is written for one tree, as the recursion that it is. A batch of
trees is one call, a tape around it gives the gradients, and a Keras optimizer takes the step.

Prints the accuracy on trees that it was not trained on, beside that of a bag of words, and saves a picture of the loss
and the model, which is loaded again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

import pcbatch

OPINIONS = {
    "splendid": 2,
    "brilliant": 2,
    "good": 1,
    "clever": 1,
    "pleasant": 1,
    "slow": -1,
    "bad": -1,
    "noisy": -1,
    "dreadful": -2,
    "hopeless": -2,
}
"""Words that say what somebody thinks of something."""
WORDS = (*OPINIONS, "not", "very", "and", "but")
NUMBER = {word: number for number, word in enumerate(WORDS)}
MOST = 20
"""Leaves of the largest tree."""


class Trees(NamedTuple):
    """Trees by node, `[trees, nodes]` int32, node 0 the root: children or -1, words of leaves.

    Labels are `[trees]` int32, 1 for praise.
    """

    left: np.ndarray
    right: np.ndarray
    word: np.ndarray
    label: np.ndarray

    def part(self, chosen: slice | np.ndarray) -> Trees:
        """Some of the trees."""
        return Trees(*(each[chosen] for each in self))

    def batches(self, size: int, random: np.random.Generator) -> Iterator[Trees]:
        """All trees in a new order, `size` at a time; what is left over at the end waits for the next epoch."""
        order = random.permutation(len(self.label))
        for start in range(0, len(order) - size + 1, size):
            yield self.part(order[start : start + size])


Phrase = str | tuple["Phrase", "Phrase"]


def phrase(leaves: int, random: np.random.Generator) -> tuple[Phrase, float]:
    """A random phrase of so many words, and its sentiment."""
    if leaves == 1:
        word = random.choice(list(OPINIONS))
        return str(word), OPINIONS[word]
    if leaves == 2 or random.random() < 0.4:
        below, value = phrase(leaves - 1, random)
        return (("not", below), -value) if random.random() < 0.6 else (("very", below), 2 * value)
    one = int(random.integers(1, leaves - 1))
    (first, value), (second, other) = phrase(one, random), phrase(leaves - 1 - one, random)
    if random.random() < 0.5:
        return (first, ("and", second)), value + other
    return (first, ("but", second)), other


def make_trees(count: int, seed: int) -> Trees:
    """Random trees of 2 to `MOST` leaves, none of them neutral."""
    random = np.random.default_rng(seed)
    left, right, word = (np.full([count, 2 * MOST - 1], -1, np.int32) for _ in range(3))
    label = np.zeros(count, np.int32)
    for tree in range(count):
        value = 0.0
        while not value:
            root, value = phrase(int(random.integers(2, MOST + 1)), random)
        label[tree] = value > 0
        used, waiting = 1, [(0, root)]
        while waiting:
            node, part = waiting.pop()
            if isinstance(part, str):
                word[tree, node] = NUMBER[part]
            else:
                left[tree, node], right[tree, node] = used, used + 1
                waiting += [(used, part[0]), (used + 1, part[1])]
                used += 2
    return Trees(left, right, word, label)


class TreeLSTM(tf.Module):
    """A binary TreeLSTM (Tai, Socher and Manning, 2015) with two scores at the root."""

    def __init__(self, width: int, seed: int = 1):
        super().__init__()
        initial = keras.initializers.GlorotUniform(seed)
        words = tf.Variable(keras.initializers.RandomNormal(stddev=0.5, seed=seed)([len(WORDS), width]))
        leaf = tf.Variable(initial([width, 3 * width]))
        node = tf.Variable(initial([2 * width, 5 * width]))
        forget = tf.ones([2 * width])  # begin by remembering
        bias = tf.Variable(tf.concat([tf.zeros([width]), forget, tf.zeros([2 * width])], 0))
        output = tf.Variable(initial([width, 2]))
        self.words, self.leaf, self.node, self.bias, self.output = words, leaf, node, bias, output

        @pcbatch.autobatch
        def encode(left, right, word, at):
            if left[at] < 0:
                i, o, u = tf.split(tf.linalg.matvec(leaf, words[word[at]], transpose_a=True), 3)
                c = tf.sigmoid(i) * tf.tanh(u)
                return tf.sigmoid(o) * tf.tanh(c), c
            h1, c1 = encode(left, right, word, left[at])
            h2, c2 = encode(left, right, word, right[at])
            gates = tf.linalg.matvec(node, tf.concat([h1, h2], 0), transpose_a=True) + bias
            i, f1, f2, o, u = tf.split(gates, 5)
            c = tf.sigmoid(i) * tf.tanh(u) + tf.sigmoid(f1) * c1 + tf.sigmoid(f2) * c2
            return tf.sigmoid(o) * tf.tanh(c), c

        @pcbatch.autobatch
        def scores(left, right, word):
            h, _ = encode(left, right, word, 0)
            return tf.linalg.matvec(output, h, transpose_a=True)

        self.batched = scores

    @tf.function(input_signature=[tf.TensorSpec([None, 2 * MOST - 1], tf.int32)] * 3)
    def scores(self, left: tf.Tensor, right: tf.Tensor, word: tf.Tensor) -> tf.Tensor:
        """Scores `[trees, 2]` of criticism and praise: what is saved."""
        return self.batched(left, right, word)


def train(model: TreeLSTM, trees: Trees, *, epochs: int, batch: int, rate: float, seed: int = 1) -> list[float]:
    """Minimise the cross-entropy; returns that of each step."""
    optimizer = keras.optimizers.Adam(rate)
    random = np.random.default_rng(seed)
    losses: list[float] = []
    with tqdm(total=epochs * (len(trees.label) // batch), desc="training", unit="step") as bar:
        for _ in range(epochs):
            for some in trees.batches(batch, random):
                with tf.GradientTape() as tape:
                    scores = model.batched(some.left, some.right, some.word)
                    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(some.label, scores))
                gradients = tape.gradient(loss, model.trainable_variables)
                optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
                losses.append(float(loss))
                bar.update()
                bar.set_postfix(loss=f"{np.mean(losses[-20:]):.3f}")
    return losses


def accuracy(scores: np.ndarray, label: np.ndarray) -> float:
    """The share of trees whose better score is that of their label."""
    return float(np.mean(np.argmax(scores, 1) == label))


def bag_of_words(trees: Trees, held_out: Trees) -> float:
    """The accuracy on `held_out` of a logistic regression on how often each word occurs."""

    def counted(some: Trees) -> np.ndarray:
        return np.stack([np.bincount(each[each >= 0], minlength=len(WORDS)) for each in some.word]).astype(np.float32)

    model = keras.Sequential([keras.layers.Dense(2)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss)
    model.fit(counted(trees), trees.label, batch_size=256, epochs=60, verbose=0)
    return accuracy(model.predict(counted(held_out), verbose=0), held_out.label)


def draw(losses: list[float], path: Path) -> None:
    """A picture of the loss: each step, and the mean of the last 20."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(losses, color="lightskyblue", linewidth=0.8, label="a batch of trees")
    means = [np.mean(losses[max(0, end - 20) : end]) for end in range(1, len(losses) + 1)]
    axes.plot(means, color="tab:blue", label="mean of the last 20")
    axes.set(xlabel="step", ylabel="cross-entropy", title="A TreeLSTM, trained through its recursion", ylim=(0, None))
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def main(arguments: list[str] | None = None) -> None:
    """Train, compare, draw, save, load."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=4000)
    parser.add_argument("--held-out", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=48)
    parser.add_argument("--rate", type=float, default=0.005)
    parser.add_argument("--out", type=Path, default=Path("out/tree_sentiment"))
    options = parser.parse_args(arguments)
    if options.batch > options.trees:
        parser.error(f"a batch of {options.batch} is more than there are trees")

    trees, held_out = make_trees(options.trees, seed=1), make_trees(options.held_out, seed=2)
    model = TreeLSTM(options.width)
    started, cpu = time.perf_counter(), time.process_time()
    losses = train(model, trees, epochs=options.epochs, batch=options.batch, rate=options.rate)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    print(f"{len(losses)} steps of {options.batch} trees in {seconds:.0f} s ({cpu:.0f} of CPU), ", end="")
    print(f"loss {losses[0]:.3f} to {np.mean(losses[-20:]):.3f}")

    found = model.scores(*held_out[:3]).numpy()
    print(f"accuracy on {options.held_out} other trees: {accuracy(found, held_out.label):.3f}")
    print(f"                a bag of words: {bag_of_words(trees, held_out):.3f}")

    tf.saved_model.save(model, str(options.out / "model"))
    again = tf.saved_model.load(str(options.out / "model"))
    print(f"saved, loaded again, equal: {np.array_equal(again.scores(*held_out[:3]).numpy(), found)}")
    draw(losses, options.out / "loss.png")
    print(f"model: {options.out / 'model'}\npicture: {options.out / 'loss.png'}")


if __name__ == "__main__":
    main()
