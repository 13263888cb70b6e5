"""TensorFlow, batches made by hand: trees level by level, sentences padded and masked, compiled by XLA.

For trees NumPy makes a schedule in each call: nodes by height, a level padded to whole chunks of `CHUNK` rows, so that
one compiled loop serves every batch of so many chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from benchmarks.trees.contestants import one_thread
from benchmarks.trees.contestants.worker import Job, Ready, serve
from benchmarks.trees.networks import LONGEST, Arrays

CHUNK = 32


def heights_of(children: list[np.ndarray]) -> np.ndarray:
    """How many levels lie below each node, by the arrays of its children, numbers of nodes or -1; flat arrays."""
    heights = np.zeros(len(children[0]), np.int64)
    while True:
        below = [np.where(each >= 0, heights[each] + 1, 0) for each in children]
        new = np.maximum.reduce(below)
        if (new == heights).all():
            return heights
        heights = new


def flat(batch: Arrays, names: tuple[str, ...]) -> list[np.ndarray]:
    """Numbers of nodes in the whole batch, -1 for none, of numbers within each tree."""
    examples, room = batch["word"].shape
    base = (np.arange(examples) * room)[:, np.newaxis]
    return [np.where(batch[name] >= 0, batch[name] + base, -1).ravel() for name in names]


def _bucket(count: int, least: int = 1) -> int:
    """The next number of few, so that few are compiled."""
    while least < count:
        least = max(least + 1, least * 5 // 4)
    return least


class Levels(NamedTuple):
    """What a loop over the nodes of a batch is given: nodes by height, each height in whole chunks.

    Attributes:
        words: `[places]`, of the leaves of all trees, and of what pads them.
        first: `[room * CHUNK]`, of each other node the row of its first child: leaves come first, then nodes.
        second: the rows of their second ones.
        chunks: how many chunks there are, at most `room`.
        roots: `[examples]`, the row of each tree's root.
    """

    words: np.ndarray
    first: np.ndarray
    second: np.ndarray
    chunks: int
    roots: np.ndarray


def levels(batch: Arrays) -> Levels:
    """The schedule of a batch of binary trees."""
    left, right = flat(batch, ("left", "right"))
    word = batch["word"].ravel()
    heights = np.where(word >= 0, heights_of([left, right]), -1)
    leaves = np.flatnonzero(heights == 0)
    row = np.zeros(len(word), np.int32)  # where the state of each node is computed
    row[leaves] = np.arange(len(leaves))
    at_height = [np.flatnonzero(heights == height) for height in range(1, heights.max() + 1)]
    sizes = [-(-len(level) // CHUNK) for level in at_height]
    room, places = _bucket(sum(sizes)), _bucket(len(leaves), CHUNK)
    first, second = (np.zeros(room * CHUNK, np.int32) for _ in range(2))
    at = 0
    for level, size in zip(at_height, sizes, strict=True):
        row[level] = places + at + np.arange(len(level))
        first[at : at + len(level)], second[at : at + len(level)] = row[left[level]], row[right[level]]
        at += size * CHUNK
    words = np.zeros(places, np.int32)
    words[: len(leaves)] = word[leaves]
    examples, nodes = batch["word"].shape
    return Levels(words, first, second, sum(sizes), row[np.arange(examples) * nodes])


def binary(weights: Arrays) -> Callable[[Arrays], np.ndarray]:
    """See `pcbatch_batched.binary`."""
    embedding, leaf, leaf_bias, node, node_bias = (
        tf.constant(weights[name]) for name in ("words", "leaf", "leaf bias", "node", "node bias")
    )
    width = embedding.shape[1]

    @tf.function(jit_compile=True)
    def compute(words: tf.Tensor, first: tf.Tensor, second: tf.Tensor, chunks: tf.Tensor, roots: tf.Tensor) -> Any:
        i, o, u = tf.split(tf.gather(embedding, words) @ leaf + leaf_bias, 3, axis=1)
        c = tf.sigmoid(i) * tf.tanh(u)
        leaves = tf.concat([tf.sigmoid(o) * tf.tanh(c), c], 1)
        states = tf.concat([leaves, tf.zeros([first.shape[0], 2 * width])], 0)

        def chunk(at: tf.Tensor, states: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            one, two = (tf.slice(each, [at * CHUNK], [CHUNK]) for each in (first, second))
            h1, c1 = tf.split(tf.gather(states, one), 2, axis=1)
            h2, c2 = tf.split(tf.gather(states, two), 2, axis=1)
            i, f1, f2, o, u = tf.split(tf.concat([h1, h2], 1) @ node + node_bias, 5, axis=1)
            c = tf.sigmoid(i) * tf.tanh(u) + tf.sigmoid(f1) * c1 + tf.sigmoid(f2) * c2
            new = tf.concat([tf.sigmoid(o) * tf.tanh(c), c], 1)
            start = [words.shape[0] + at * CHUNK, 0]
            return at + 1, gen_xla_ops.xla_dynamic_update_slice(input=states, update=new, indices=start)

        _, states = tf.while_loop(lambda at, _: at < chunks, chunk, [0, states])
        return tf.gather(states, roots)[:, :width]

    return lambda batch: compute(*levels(batch)).numpy()


def tagger(weights: Arrays) -> Callable[[Arrays], np.ndarray]:
    """See `pcbatch_batched.tagger`. What does not depend on the state is computed of all words at once."""
    names = ("words", "forward", "forward bias", "backward", "backward bias", "tags", "tags bias")
    embedding, forward, forward_bias, backward, backward_bias, tags, tags_bias = (
        tf.constant(weights[name]) for name in names
    )
    width = embedding.shape[1]

    @tf.function(jit_compile=True)
    def compute(word: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        examples = word.shape[0]
        inputs = tf.gather(embedding, tf.maximum(word, 0))
        reversed_inputs = tf.reverse_sequence(inputs, length, seq_axis=1)
        of_inputs = [
            tf.transpose(tf.reshape(tf.reshape(x, [-1, width]) @ m[:width] + b, [examples, LONGEST, -1]), [1, 0, 2])
            for x, m, b in ((inputs, forward, forward_bias), (reversed_inputs, backward, backward_bias))
        ]
        nothing = tf.zeros([examples, width])

        def turn(t: tf.Tensor, states: list[tf.Tensor], found: list[tf.Tensor]) -> Any:
            new = []
            for of_input, matrix, (h, c) in zip(of_inputs, (forward, backward), states, strict=True):
                i, f, o, u = tf.split(of_input[t] + h @ matrix[width:], 4, axis=1)
                c = tf.sigmoid(i) * tf.tanh(u) + tf.sigmoid(f) * c
                new.append((tf.sigmoid(o) * tf.tanh(c), c))
            found = [
                gen_xla_ops.xla_dynamic_update_slice(input=kept, update=h[tf.newaxis], indices=[t, 0, 0])
                for kept, (h, _) in zip(found, new, strict=True)
            ]
            return t + 1, new, found

        start = [0, [(nothing, nothing)] * 2, [tf.zeros([LONGEST, examples, width])] * 2]
        _, _, found = tf.while_loop(lambda t, *_: t < tf.reduce_max(length), turn, start)
        before, after = (tf.transpose(each, [1, 0, 2]) for each in found)
        both = tf.concat([before, tf.reverse_sequence(after, length, seq_axis=1)], 2)
        scores = tf.reshape(tf.reshape(both, [-1, 2 * width]) @ tags + tags_bias, [examples, LONGEST, -1])
        return tf.where((tf.range(LONGEST) < length[:, tf.newaxis])[:, :, tf.newaxis], scores, 0.0)

    return lambda batch: compute(batch["word"], batch["length"]).numpy()


def child_sum(weights: Arrays) -> Callable[[Arrays], np.ndarray]:
    """See `pcbatch_batched.child_sum`. A node adds its state to what its parent sums, when it is computed."""
    embedding, leaf, leaf_bias, node, node_bias, forget = (
        tf.constant(weights[name]) for name in ("words", "leaf", "leaf bias", "node", "node bias", "forget")
    )
    width = embedding.shape[1]

    @tf.function(jit_compile=True)
    def compute(words: tf.Tensor, parents: tf.Tensor, chunks: tf.Tensor, roots: tf.Tensor) -> Any:
        of_words = tf.gather(embedding, words) @ leaf + leaf_bias
        nothing = tf.zeros([words.shape[0] + 1, width])  # the last row is the parent of roots and of what pads

        def chunk(at: tf.Tensor, total: tf.Tensor, kept: tf.Tensor, states: tf.Tensor) -> Any:
            start = at * CHUNK
            x, above = tf.slice(of_words, [start, 0], [CHUNK, -1]), tf.slice(parents, [start], [CHUNK])
            below, sums = (tf.slice(each, [start, 0], [CHUNK, -1]) for each in (kept, total))
            i, o, u = tf.split(x[:, : 3 * width] + sums @ node + node_bias, 3, axis=1)
            c = tf.sigmoid(i) * tf.tanh(u) + below
            h = tf.sigmoid(o) * tf.tanh(c)
            f = tf.sigmoid(tf.gather(of_words[:, 3 * width :], tf.minimum(above, words.shape[0] - 1)) + h @ forget)
            rows = above[:, tf.newaxis]
            total = tf.tensor_scatter_nd_add(total, rows, h)
            kept = tf.tensor_scatter_nd_add(kept, rows, f * c)
            states = gen_xla_ops.xla_dynamic_update_slice(input=states, update=h, indices=[start, 0])
            return at + 1, total, kept, states

        _, _, _, states = tf.while_loop(lambda at, *_: at < chunks, chunk, [0, nothing, nothing, nothing[:-1]])
        return tf.gather(states, roots)

    def roots(batch: Arrays) -> np.ndarray:
        first, following = flat(batch, ("first", "following"))
        word = batch["word"].ravel()
        parent = np.full(len(word), -1)
        child, at = first, np.arange(len(word))
        while (there := child >= 0).any():
            parent[child[there]] = at[there]
            at, child = at[there], following[child[there]]
        heights, nodes = np.where(word >= 0, 0, -1), np.flatnonzero(word >= 0)
        rising = nodes[parent[nodes] >= 0]
        while (higher := heights[rising] >= heights[parent[rising]]).any():
            np.maximum.at(heights, parent[rising[higher]], heights[rising[higher]] + 1)
        levels = [np.flatnonzero(heights == height) for height in range(heights.max() + 1)]
        sizes = [-(-len(level) // CHUNK) for level in levels]
        room = _bucket(sum(sizes)) * CHUNK
        row = np.full(len(word) + 1, room, np.int32)  # the last one stands for no node
        words, parents = np.zeros(room, np.int32), np.full(room, room, np.int32)
        places = []
        for level, start in zip(levels, np.cumsum([0, *sizes[:-1]]) * CHUNK, strict=True):
            row[level] = start + np.arange(len(level))
            places.append(row[level])
        for level, place in zip(levels, places, strict=True):
            words[place], parents[place] = word[level], row[parent[level]]
        examples, each = batch["word"].shape
        return compute(words, parents, sum(sizes), row[np.arange(examples) * each]).numpy()

    return roots


NETWORKS = {"binary": binary, "tagger": tagger, "child-sum": child_sum}


def prepare(job: Job) -> Ready:
    """A call that makes the schedule of the batch and computes it."""
    compute = NETWORKS[job.network.cell](job.weights)
    return Ready(lambda: compute(job.batch))


if __name__ == "__main__":
    one_thread.keep()
    serve(prepare)
