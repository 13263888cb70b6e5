"""Models for one example in TensorFlow's own control flow, for `tf.map_fn` and `tf.vectorized_map`.

Each computes what an example of `examples/` does, by the same weights. TensorFlow has no recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

One = Callable[..., Any]
"""A function of one example's tensors."""


def tree(model: Any) -> One:
    """Scores of `examples/training/tree_sentiment.py`: nodes from the last to the root, since children come later."""
    width = model.words.shape[1]

    def scores(left: tf.Tensor, right: tf.Tensor, word: tf.Tensor) -> tf.Tensor:
        places = tf.range(left.shape[0])

        def node(at: tf.Tensor, states: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            one, two = (tf.gather(states, tf.maximum(tf.gather(child, at), 0)) for child in (left, right))
            gates = tf.linalg.matvec(model.node, tf.concat([one[:width], two[:width]], 0), transpose_a=True)
            i, f1, f2, o, u = tf.split(gates + model.bias, 5)
            inner = tf.sigmoid(i) * tf.tanh(u) + tf.sigmoid(f1) * one[width:] + tf.sigmoid(f2) * two[width:]
            inner = tf.concat([tf.sigmoid(o) * tf.tanh(inner), inner], 0)
            embedded = tf.gather(tf.convert_to_tensor(model.words), tf.maximum(tf.gather(word, at), 0))
            i, o, u = tf.split(tf.linalg.matvec(model.leaf, embedded, transpose_a=True), 3)
            c = tf.sigmoid(i) * tf.tanh(u)
            leaf = tf.concat([tf.sigmoid(o) * tf.tanh(c), c], 0)
            new = tf.where(tf.gather(left, at) < 0, leaf, inner)
            return at - 1, tf.where((places == at)[:, tf.newaxis], new, states)

        last = tf.reduce_sum(tf.cast((left >= 0) | (word >= 0), tf.int32)) - 1
        states = tf.zeros([left.shape[0], 2 * width])
        _, states = tf.while_loop(lambda at, _: at >= 0, node, [last, states])
        return tf.linalg.matvec(model.output, states[0, :width], transpose_a=True)

    return scores


def recurrent(module: Any) -> One:
    """The last state of `examples/rnn.py`."""

    def last(sequence: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        def step(t: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            of_input = tf.linalg.matvec(module.inputs, tf.gather(sequence, t))
            return t + 1, tf.tanh(tf.linalg.matvec(module.recurrent, state) + of_input)

        return tf.while_loop(lambda t, _: t < length, step, [0, tf.zeros([module.recurrent.shape[0]])])[1]

    return last


def graph(variables: Sequence[Any], places: int) -> One:
    """The loss of `examples/training/graph_network.py`: edges as a matrix of how many lead from where to where."""
    first, message, gates, update, output = variables

    def loss(edges: tf.Tensor, count: tf.Tensor, nodes: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
        there = tf.cast(tf.range(edges.shape[0]) < count, tf.float32)[:, tf.newaxis]
        ends, starts = (tf.one_hot(edges[:, side], places) * there for side in (1, 0))
        leads = tf.matmul(ends, starts, transpose_a=True)

        def turn(t: tf.Tensor, h: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            coming = leads @ tf.matmul(h, message, transpose_b=True)
            r, z = tf.split(tf.sigmoid(tf.matmul(tf.concat([coming, h], 1), gates, transpose_b=True)), 2, axis=1)
            new = tf.tanh(tf.matmul(tf.concat([coming, r * h], 1), update, transpose_b=True))
            return t + 1, (1.0 - z) * h + z * new

        _, h = tf.while_loop(lambda t, _: t < nodes, turn, [0, tf.tanh(tf.convert_to_tensor(first))])
        return tf.nn.sigmoid_cross_entropy_with_logits(label, tf.linalg.matvec(output, h[1])[0])

    return loss
