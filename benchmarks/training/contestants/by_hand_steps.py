"""TensorFlow, batches made by hand: trees level by level, by its kernels; sentences padded and masked, by XLA.

All derivatives are TensorFlow's own. A loop over the levels of trees carries only states that are still to be read, so
none of its turns touches the others. (One with all states, compiled by XLA, in chunks and with a derivative written by
hand, is slower.) For sentences XLA has a loop of a known number of turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from benchmarks.training.contestants.worker import Trained, serve
from benchmarks.trees.contestants import one_thread
from benchmarks.trees.contestants.by_hand import flat, heights_of
from benchmarks.trees.contestants.worker import Job
from benchmarks.trees.networks import LONGEST, Arrays

Weights = Mapping[str, tf.Variable]


class Fronts(NamedTuple):
    """The schedule of a batch of binary trees. A front has the states that nodes above it are still to read.

    Attributes:
        words: of the leaves of all trees, which are the first front.
        first: the places of first children in the front before, of all nodes, level by level.
        second: those of second children.
        kept: the places of states that go on to the next front, before the level's own.
        ends: where each level begins and ends in `first`, `[levels + 1]`.
        kept_ends: the same in `kept`.
        roots: `[examples]`, their places in the last front.
    """

    words: np.ndarray
    first: np.ndarray
    second: np.ndarray
    kept: np.ndarray
    ends: np.ndarray
    kept_ends: np.ndarray
    roots: np.ndarray


def fronts(batch: Arrays) -> Fronts:
    """Make the schedule."""
    left, right = flat(batch, ("left", "right"))
    word = batch["word"].ravel()
    heights = np.where(word >= 0, heights_of([left, right]), -1)
    nodes, live = np.flatnonzero(heights > 0), np.flatnonzero(heights == 0)
    read_at = np.full(len(word), len(word))
    read_at[left[nodes]] = read_at[right[nodes]] = heights[nodes]
    place, words = np.zeros(len(word), np.int32), word[live]
    place[live] = np.arange(len(live))
    first, second, kept = ([np.zeros(0, np.int32)] for _ in range(3))
    for height in range(1, heights.max() + 1):
        level, staying = np.flatnonzero(heights == height), live[read_at[live] > height]
        first.append(place[left[level]])
        second.append(place[right[level]])
        kept.append(place[staying])
        live = np.concatenate([staying, level])
        place[live] = np.arange(len(live))
    ends, kept_ends = (np.cumsum([len(each) for each in parts], dtype=np.int32) for parts in (first, kept))
    examples, room = batch["word"].shape
    joined = (np.concatenate(parts) for parts in (first, second, kept))
    return Fronts(words, *joined, ends, kept_ends, place[np.arange(examples) * room])


def binary(weights: Weights) -> Trained:
    """See `pcbatch_batched.binary`; not compiled: XLA would compile anew for each number of rows."""
    width = weights["words"].shape[1]

    def roots(given: Fronts) -> tf.Tensor:
        x = tf.gather(weights["words"], given.words)
        i, o, u = tf.split(x @ weights["leaf"] + weights["leaf bias"], 3, axis=1)
        c = tf.sigmoid(i) * tf.tanh(u)
        h = tf.sigmoid(o) * tf.tanh(c)

        def level(at: tf.Tensor, h: tf.Tensor, c: tf.Tensor) -> Any:
            one, two = (each[given.ends[at] : given.ends[at + 1]] for each in (given.first, given.second))
            kept = given.kept[given.kept_ends[at] : given.kept_ends[at + 1]]
            below = tf.concat([tf.gather(h, one), tf.gather(h, two)], 1)
            i, f1, f2, o, u = tf.split(below @ weights["node"] + weights["node bias"], 5, axis=1)
            new = tf.sigmoid(i) * tf.tanh(u)
            new += tf.sigmoid(f1) * tf.gather(c, one) + tf.sigmoid(f2) * tf.gather(c, two)
            of_nodes = tf.sigmoid(o) * tf.tanh(new)
            return at + 1, tf.concat([tf.gather(h, kept), of_nodes], 0), tf.concat([tf.gather(c, kept), new], 0)

        shapes = [tf.TensorShape([]), *[tf.TensorShape([None, width])] * 2]
        levels = tf.shape(given.ends)[0] - 1
        start = [tf.constant(0), h, c]
        _, h, _ = tf.while_loop(lambda at, *_: at < levels, level, start, shapes, parallel_iterations=1)
        return tf.gather(h, given.roots)

    infer = tf.function(roots, reduce_retracing=True)

    @tf.function(reduce_retracing=True)
    def derive(given: Fronts, aim: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = tf.nn.l2_loss(roots(given) - aim) / tf.cast(tf.shape(aim)[0], tf.float32)
        found = tape.gradient(loss, dict(weights))
        return {name: tf.convert_to_tensor(each) for name, each in found.items()}

    return Trained(
        lambda batch, aim: infer(_tensors(fronts(batch))).numpy(),
        lambda batch, aim: derive(_tensors(fronts(batch)), tf.constant(aim)),
        _arrays,
    )


def _tensors(given: Fronts) -> Fronts:
    return Fronts(*map(tf.convert_to_tensor, given))


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
    one_thread.keep()
    serve(prepare)
