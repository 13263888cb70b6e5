"""TensorFlow, batches made by hand, compiled by XLA: trees level by level, sentences padded and masked.

The loop over the levels of trees is differentiated by hand, as TensorFlow's own derivative of it would touch the states
of all nodes in each turn. That of sentences is TensorFlow's, which XLA takes for a loop of a known number of turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from benchmarks.training.contestants.worker import Trained, serve
from benchmarks.trees.contestants import one_thread  # noqa: F401 -- sets threads
from benchmarks.trees.contestants.by_hand import CHUNK, Levels, levels
from benchmarks.trees.contestants.worker import Job
from benchmarks.trees.networks import LONGEST, Arrays

Weights = Mapping[str, tf.Variable]


def written(array: tf.Tensor, rows: tf.Tensor, start: tf.Tensor) -> tf.Tensor:
    """`array` with `rows` from `start` on."""
    return gen_xla_ops.xla_dynamic_update_slice(input=array, update=rows, indices=[start, 0])


def rows_of(array: tf.Tensor, start: tf.Tensor) -> tf.Tensor:
    """A chunk from `start` on."""
    return tf.slice(array, [start, 0], [CHUNK, -1])


def binary(weights: Weights) -> Trained:
    """See `pcbatch_batched.binary`."""
    width = weights["words"].shape[1]

    def leaves(words: tf.Tensor) -> tuple[tf.Tensor, tuple[tf.Tensor, ...]]:
        x = tf.gather(weights["words"], words)
        i, o, u = tf.split(x @ weights["leaf"] + weights["leaf bias"], 3, axis=1)
        i, o, u = tf.sigmoid(i), tf.sigmoid(o), tf.tanh(u)
        c = i * u
        return tf.concat([o * tf.tanh(c), c], 1), (x, i, o, u)

    def upwards(states: tf.Tensor, first: tf.Tensor, second: tf.Tensor, chunks: tf.Tensor, *, kept: bool) -> Any:
        """States of all rows, those of leaves given, and activations of gates by node, if they are to be kept."""
        places = states.shape[0]
        states = tf.concat([states, tf.zeros([first.shape[0], 2 * width])], 0)
        gates = tf.zeros([first.shape[0] if kept else 0, 5 * width])

        def chunk(at: tf.Tensor, states: tf.Tensor, gates: tf.Tensor) -> Any:
            start = at * CHUNK
            one, two = (tf.slice(each, [start], [CHUNK]) for each in (first, second))
            h1, c1 = tf.split(tf.gather(states, one), 2, axis=1)
            h2, c2 = tf.split(tf.gather(states, two), 2, axis=1)
            before = tf.concat([h1, h2], 1) @ weights["node"] + weights["node bias"]
            i, f1, f2, o, u = tf.split(before, 5, axis=1)
            i, f1, f2, o, u = tf.sigmoid(i), tf.sigmoid(f1), tf.sigmoid(f2), tf.sigmoid(o), tf.tanh(u)
            c = i * u + f1 * c1 + f2 * c2
            states = written(states, tf.concat([o * tf.tanh(c), c], 1), places + start)
            return at + 1, states, written(gates, tf.concat([i, f1, f2, o, u], 1), start) if kept else gates

        return tf.while_loop(lambda at, *_: at < chunks, chunk, [0, states, gates])[1:]

    def downwards(of_roots: tf.Tensor, states: tf.Tensor, gates: tf.Tensor, given: Levels, above: tf.Tensor) -> Any:
        """Gradients by the states of leaves, and by what goes into the gates of nodes.

        A node hands each child a row of `messages`: `above` says for each row of `states` which one it gets.
        """
        rows, places = gates.shape[0], states.shape[0] - gates.shape[0]
        nothing = tf.zeros([1, 2 * width])
        of_roots = tf.concat([of_roots, tf.zeros_like(of_roots)], 1)
        messages = tf.concat([tf.zeros([2 * rows, 2 * width]), of_roots, nothing], 0)

        def chunk(at: tf.Tensor, messages: tf.Tensor, of_gates: tf.Tensor) -> Any:
            start = at * CHUNK
            got = tf.gather(messages, tf.slice(above, [places + start], [CHUNK]))
            dh, dc = tf.split(got, 2, axis=1)
            i, f1, f2, o, u = tf.split(rows_of(gates, start), 5, axis=1)
            one, two = (tf.slice(each, [start], [CHUNK]) for each in (given.first, given.second))
            t = tf.tanh(rows_of(states, places + start)[:, width:])
            c1, c2 = (tf.gather(states, each)[:, width:] for each in (one, two))
            dc += dh * o * (1 - t * t)
            before = [dc * u * i * (1 - i), dc * c1 * f1 * (1 - f1), dc * c2 * f2 * (1 - f2)]
            before = tf.concat([*before, dh * t * o * (1 - o), dc * i * (1 - u * u)], 1)
            below = tf.matmul(before, weights["node"], transpose_b=True)
            messages = written(messages, tf.concat([below[:, :width], dc * f1], 1), start)
            messages = written(messages, tf.concat([below[:, width:], dc * f2], 1), rows + start)
            return at - 1, messages, written(of_gates, before, start)

        first = [given.chunks - 1, messages, tf.zeros_like(gates)]
        _, messages, of_gates = tf.while_loop(lambda at, *_: at >= 0, chunk, first)
        return tf.gather(messages, above[:places]), of_gates

    @tf.function(jit_compile=True)
    def infer(given: Levels) -> tf.Tensor:
        states, _ = upwards(leaves(given.words)[0], given.first, given.second, given.chunks, kept=False)
        return tf.gather(states, given.roots)[:, :width]

    @tf.function(jit_compile=True)
    def derive(given: Levels, above: tf.Tensor, aim: tf.Tensor) -> dict[str, tf.Tensor]:
        of_leaves, (x, i, o, u) = leaves(given.words)
        states, gates = upwards(of_leaves, given.first, given.second, given.chunks, kept=True)
        of_roots = (tf.gather(states, given.roots)[:, :width] - aim) / aim.shape[0]
        got, of_gates = downwards(of_roots, states, gates, given, above)
        children = tf.concat([tf.gather(states, each)[:, :width] for each in (given.first, given.second)], 1)
        dh, dc = tf.split(got, 2, axis=1)
        t = tf.tanh(of_leaves[:, width:])
        dc += dh * o * (1 - t * t)
        before = tf.concat([dc * u * i * (1 - i), dh * t * o * (1 - o), dc * i * (1 - u * u)], 1)
        of_words = tf.matmul(before, weights["leaf"], transpose_b=True)
        return {
            "words": tf.math.unsorted_segment_sum(of_words, given.words, weights["words"].shape[0]),
            "leaf": tf.matmul(x, before, transpose_a=True),
            "node": tf.matmul(children, of_gates, transpose_a=True),
            "leaf bias": tf.reduce_sum(before, 0),
            "node bias": tf.reduce_sum(of_gates, 0),
        }

    def step(batch: Arrays, aim: np.ndarray) -> Any:
        given = levels(batch)
        return derive(_tensors(given), above(given), aim)

    return Trained(lambda batch, aim: infer(_tensors(levels(batch))).numpy(), step, _arrays)


def above(given: Levels) -> np.ndarray:
    """For each row of states the row of messages that it gets; the last one, which is 0, where nobody wants it."""
    rows, places, examples = len(given.first), len(given.words), len(given.roots)
    found = np.full(places + rows, 2 * rows + examples, np.int32)
    nodes = np.flatnonzero(given.first != given.second)  # the rest pads
    found[given.first[nodes]], found[given.second[nodes]] = nodes, rows + nodes
    found[given.roots] = 2 * rows + np.arange(examples)
    return found


def _tensors(given: Levels) -> Levels:
    return Levels(*map(tf.convert_to_tensor, given))


def _arrays(found: dict[str, tf.Tensor]) -> Arrays:
    return {name: each.numpy() for name, each in found.items()}


def states(x: tf.Tensor, length: tf.Tensor, matrix: tf.Tensor, bias: tf.Tensor, *, all_of_them: bool = True) -> Any:
    """The last state of an LSTM, `[examples, width]`, or all `[time, examples, width]`, anything behind the ends.

    What depends on words alone is computed of all words at once.
    """
    examples, time, inputs = x.shape
    width = bias.shape[0] // 4
    of_x = tf.reshape(tf.reshape(x, [-1, inputs]) @ matrix[:inputs] + bias, [examples, time, -1])
    of_x = tf.transpose(of_x, [1, 0, 2])
    recurrent = matrix[inputs:]
    found = tf.TensorArray(tf.float32, time if all_of_them else 0, element_shape=[examples, width])

    def turn(t: tf.Tensor, h: tf.Tensor, c: tf.Tensor, found: tf.TensorArray) -> Any:
        i, f, o, u = tf.split(of_x[t] + h @ recurrent, 4, axis=1)
        inside = (t < length)[:, tf.newaxis]
        new = tf.sigmoid(i) * tf.tanh(u) + tf.sigmoid(f) * c
        h, c = tf.where(inside, tf.sigmoid(o) * tf.tanh(new), h), tf.where(inside, new, c)
        return t + 1, h, c, found.write(t, h) if all_of_them else found

    nothing = tf.zeros([examples, width])
    start = [0, nothing, nothing, found]
    _, last, _, found = tf.while_loop(lambda t, *_: t < time, turn, start, maximum_iterations=time)
    return found.stack() if all_of_them else last


def lstm(weights: Weights, word: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
    """See `pcbatch_batched.lstm`."""
    x = tf.gather(weights["words"], word)
    return states(x, length, weights["cell"], weights["cell bias"], all_of_them=False)


def tagger(weights: Weights, word: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
    """See `pcbatch_batched.tagger`."""
    x, time = tf.gather(weights["words"], word), word.shape[1]
    before = states(x, length, weights["forward"], weights["forward bias"])
    turned = tf.reverse_sequence(x, length, seq_axis=1)
    after = states(turned, length, weights["backward"], weights["backward bias"])
    after = tf.reverse_sequence(after, length, seq_axis=0, batch_axis=1)
    scores = tf.transpose(tf.concat([before, after], 2), [1, 0, 2]) @ weights["tags"] + weights["tags bias"]
    scores = tf.where((tf.range(time) < length[:, tf.newaxis])[:, :, tf.newaxis], scores, 0.0)
    return tf.pad(scores, [[0, 0], [0, LONGEST - time], [0, 0]])


def sentences(network: Callable[..., tf.Tensor], weights: Weights) -> Trained:
    """Steps of a network over padded sentences."""

    @tf.function(jit_compile=True)
    def infer(word: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        return network(weights, word, length)

    @tf.function(jit_compile=True)
    def derive(word: tf.Tensor, length: tf.Tensor, aim: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = tf.nn.l2_loss(network(weights, word, length) - aim) / aim.shape[0]
        found = tape.gradient(loss, dict(weights))
        return {name: tf.convert_to_tensor(each) for name, each in found.items()}

    return Trained(
        lambda batch, aim: infer(*padded(batch)).numpy(), lambda batch, aim: derive(*padded(batch), aim), _arrays
    )


def padded(batch: Arrays) -> tuple[tf.Tensor, tf.Tensor]:
    """Words no further than the longest sentence goes, and lengths."""
    word = np.maximum(batch["word"], 0)[:, : batch["length"].max()]
    return tf.constant(word), tf.constant(batch["length"])


def prepare(job: Job) -> Trained:
    """Compiled steps."""
    weights = {name: tf.Variable(each) for name, each in job.weights.items()}
    if job.network.cell == "binary":
        return binary(weights)
    return sentences({"lstm": lstm, "tagger": tagger}[job.network.cell], weights)


if __name__ == "__main__":
    serve(prepare)
