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
import dataclasses
import time
from pathlib import Path

import keras
import numpy as np
import running
import tensorflow as tf
from tqdm import tqdm

import pcbatch

OPINIONS = {"splendid": 2, "brilliant": 2, "good": 1, "clever": 1, "pleasant": 1}
OPINIONS |= {"slow": -1, "bad": -1, "noisy": -1, "dreadful": -2, "hopeless": -2}
"""Words that say what somebody thinks of something."""
WORDS = (*OPINIONS, "not", "very", "and", "but")
NUMBER = {word: number for number, word in enumerate(WORDS)}
MOST, ROOM = 20, 64
"""Leaves of the largest tree, and the nodes for which `pcbatch.pack` makes room then."""


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


def make_trees(count: int, seed: int) -> tuple[pcbatch.Tree, np.ndarray]:
    """Random trees of 2 to `MOST` words, none of them neutral, and 1 for praise."""
    random, phrases, labels = np.random.default_rng(seed), [], []
    while len(phrases) < count:
        found, value = phrase(int(random.integers(2, MOST + 1)), random)
        if value:
            phrases.append(found)
            labels.append(value > 0)
    return pcbatch.pack(phrases, value=NUMBER.get), np.array(labels, np.int32)


def part(trees: pcbatch.Tree, chosen: np.ndarray) -> pcbatch.Tree:
    """Some of the trees."""
    return dataclasses.replace(trees, **{key: each[chosen] for key, each in vars(trees).items()})


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
        def encode(tree):
            if tree.is_leaf:
                i, o, u = tf.split(tf.linalg.matvec(leaf, words[tree.value], transpose_a=True), 3)
                c = tf.sigmoid(i) * tf.tanh(u)
                return tf.sigmoid(o) * tf.tanh(c), c
            (h1, c1), (h2, c2) = encode(tree.left), encode(tree.right)
            gates = tf.linalg.matvec(node, tf.concat([h1, h2], 0), transpose_a=True) + bias
            i, f1, f2, o, u = tf.split(gates, 5)
            c = tf.sigmoid(i) * tf.tanh(u) + tf.sigmoid(f1) * c1 + tf.sigmoid(f2) * c2
            return tf.sigmoid(o) * tf.tanh(c), c

        @pcbatch.autobatch
        def scores(tree):
            return tf.linalg.matvec(output, encode(tree)[0], transpose_a=True)

        self.batched = scores

    @tf.function(input_signature=[tf.TensorSpec([None, ROOM], tf.int32)] * 3 + [tf.TensorSpec([None], tf.int32)])
    def scores(self, first: tf.Tensor, count: tf.Tensor, values: tf.Tensor, node: tf.Tensor) -> tf.Tensor:
        """Scores `[trees, 2]` of criticism and praise: what is saved."""
        return self.batched(pcbatch.Tree(first, count, values, node))


def train(
    model: TreeLSTM, trees: pcbatch.Tree, label: np.ndarray, *, epochs: int, batch: int, rate: float
) -> list[float]:
    """Minimise the cross-entropy; returns that of each step. Trees that are left over wait for the next epoch."""
    optimizer, random, losses = keras.optimizers.Adam(rate), np.random.default_rng(1), []
    orders = np.concatenate([random.permutation(len(label))[: len(label) // batch * batch] for _ in range(epochs)])
    for chosen in (bar := tqdm(orders.reshape(-1, batch), desc="training", unit="step")):
        with tf.GradientTape() as tape:
            scores = model.batched(part(trees, chosen))
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label[chosen], scores))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        losses.append(float(loss))
        bar.set_postfix(loss=f"{np.mean(losses[-20:]):.3f}")
    return losses


def accuracy(scores: np.ndarray, label: np.ndarray) -> float:
    """The share of trees whose better score is that of their label."""
    return float(np.mean(np.argmax(scores, 1) == label))


def bag_of_words(trees: pcbatch.Tree, label: np.ndarray, others: pcbatch.Tree, other_label: np.ndarray) -> float:
    """The accuracy on other trees of a logistic regression on how often each word occurs."""

    def counted(some: pcbatch.Tree) -> np.ndarray:
        words = [
            values[: 1 + count.sum()][count[: 1 + count.sum()] == 0]
            for values, count in zip(some.values, some.count, strict=True)
        ]
        return np.stack([np.bincount(each, minlength=len(WORDS)) for each in words]).astype(np.float32)

    model = keras.Sequential([keras.layers.Dense(2)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss)
    model.fit(counted(trees), label, batch_size=256, epochs=60, verbose=0)
    return accuracy(model.predict(counted(others), verbose=0), other_label)


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

    (trees, label), (others, other_label) = make_trees(options.trees, seed=1), make_trees(options.held_out, seed=2)
    model = TreeLSTM(options.width)
    started, cpu = time.perf_counter(), time.process_time()
    losses = train(model, trees, label, epochs=options.epochs, batch=options.batch, rate=options.rate)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    print(f"{len(losses)} steps of {options.batch} trees in {seconds:.0f} s ({cpu:.0f} of CPU), ", end="")
    print(f"loss {losses[0]:.3f} to {np.mean(losses[-20:]):.3f}")

    found = model.scores(*vars(others).values()).numpy()
    print(f"accuracy on {options.held_out} other trees: {accuracy(found, other_label):.3f}")
    print(f"                a bag of words: {bag_of_words(trees, label, others, other_label):.3f}")

    tf.saved_model.save(model, str(options.out / "model"))
    again = tf.saved_model.load(str(options.out / "model"))
    same = np.allclose(again.scores(*vars(others).values()), found, atol=1e-5)
    print(f"saved, loaded again, equal: {same}")
    running.save_curve(losses, options.out / "loss.png", "A TreeLSTM, trained through its recursion")
    print(f"model: {options.out / 'model'}\npicture: {options.out / 'loss.png'}")


if __name__ == "__main__":
    main()
