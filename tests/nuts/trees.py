"""The likelihood of a phylogenetic tree by Felsenstein's pruning algorithm, recursive, and written out by hand."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

import pcbatch

LEFT = np.array([-1, -1, -1, -1, 0, 4, 2])
RIGHT = np.array([-1, -1, -1, -1, 1, 3, 5])
"""The children of each node, -1 for a tip; the last node is the root."""
SITES = np.random.default_rng(2).integers(0, 4, (4, 6))
TIPS = np.concatenate([np.eye(4, dtype=np.float32)[SITES], np.zeros((3, 6, 4), np.float32)])
TREE = {"left": LEFT, "right": RIGHT, "tips": TIPS}
INITIAL = {"lengths": np.full(7, -1.0, np.float32), "rate": np.float32(0.0)}


def transition(length):
    """The probabilities of Jukes and Cantor, `[4, 4]`, for a branch of this length."""
    stays = tf.exp(-4.0 / 3.0 * length)
    return 0.25 * (1.0 - stays) + stays * tf.eye(4)


@pcbatch.autobatch
def partials(node, lengths, tree):
    """What is seen below a node, if it is in each of the states: `[sites, 4]`."""
    if tree["left"][node] < 0:
        return tree["tips"][node]
    left, right = tree["left"][node], tree["right"][node]
    one = tf.matmul(partials(left, lengths, tree), transition(lengths[left]))
    other = tf.matmul(partials(right, lengths, tree), transition(lengths[right]))
    return one * other


def density(p, tree):
    """Of the logarithms of the branches' lengths and of a rate that all share."""
    below = partials(tf.shape(tree["left"])[0] - 1, tf.exp(p["lengths"] + p["rate"]), tree)
    prior = -0.5 * tf.reduce_sum((p["lengths"] + 1.0) ** 2) - 0.5 * p["rate"] ** 2
    return tf.reduce_sum(tf.math.log(tf.reduce_sum(0.25 * below, axis=1))) + prior


def by_hand(p, tree):
    """The same in plain TensorFlow."""
    lengths = tf.exp(p["lengths"] + p["rate"])

    def below(node):
        if LEFT[node] < 0:
            return tree["tips"][node]
        one, other = (tf.matmul(below(child), transition(lengths[child])) for child in (LEFT[node], RIGHT[node]))
        return one * other

    prior = -0.5 * tf.reduce_sum((p["lengths"] + 1.0) ** 2) - 0.5 * p["rate"] ** 2
    return tf.reduce_sum(tf.math.log(tf.reduce_sum(0.25 * below(6), axis=1))) + prior
