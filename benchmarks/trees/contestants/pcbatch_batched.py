"""pcbatch: each network for one example, in plain Python. The variant is a name of `OPTIONS`.

Weights are tensors, or variables where they are to be trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
from benchmarks.trees.contestants import one_thread
from benchmarks.trees.contestants.worker import Job, Ready, serve
from benchmarks.trees.networks import LONGEST, TAGS

Weights = Mapping[str, Any]

OPTIONS: dict[str, dict[str, Any]] = {"": {}, "forks": {"fork": True}, "lockstep": {"form": "lockstep"}, "heads": {}}


def binary(weights: Weights) -> Any:
    """A TreeLSTM over binary trees (Tai, Socher and Manning, 2015): the state of the root."""
    embedding, leaf, leaf_bias, node, node_bias = (
        weights[name] for name in ("words", "leaf", "leaf bias", "node", "node bias")
    )

    @pcbatch.autobatch
    def encode(left, right, word, at):
        if left[at] < 0:
            i, o, u = tf.split(tf.linalg.matvec(leaf, embedding[word[at]], transpose_a=True) + leaf_bias, 3)
            c = tf.sigmoid(i) * tf.tanh(u)
            return tf.sigmoid(o) * tf.tanh(c), c
        h1, c1 = encode(left, right, word, left[at])
        h2, c2 = encode(left, right, word, right[at])
        gates = tf.linalg.matvec(node, tf.concat([h1, h2], 0), transpose_a=True) + node_bias
        i, f1, f2, o, u = tf.split(gates, 5)
        c = tf.sigmoid(i) * tf.tanh(u) + tf.sigmoid(f1) * c1 + tf.sigmoid(f2) * c2
        return tf.sigmoid(o) * tf.tanh(c), c

    @pcbatch.autobatch
    def root(left, right, word):
        h, _ = encode(left, right, word, 0)
        return h

    return root


def cell(matrix, bias, x, h, c):
    """One step of an LSTM."""
    i, f, o, u = tf.split(tf.linalg.matvec(matrix, tf.concat([x, h], 0), transpose_a=True) + bias, 4)
    c = tf.sigmoid(i) * tf.tanh(u) + tf.sigmoid(f) * c
    return tf.sigmoid(o) * tf.tanh(c), c


def lstm(weights: Weights) -> Any:
    """An LSTM over a sentence: its last state."""
    embedding, matrix, bias = (weights[name] for name in ("words", "cell", "cell bias"))
    width = bias.shape[0] // 4

    @pcbatch.autobatch
    def last(word, length):
        h, c = tf.zeros([width]), tf.zeros([width])
        for t in range(length):
            h, c = cell(matrix, bias, embedding[word[t]], h, c)
        return h

    return last


def tagger(weights: Weights) -> Any:
    """A BiLSTM tagger: scores of all tags, `[longest, tags]`, 0 behind the end of the sentence."""
    embedding, forward, forward_bias, backward, backward_bias, tags, tags_bias = (
        weights[name] for name in ("words", "forward", "forward bias", "backward", "backward bias", "tags", "tags bias")
    )
    width = embedding.shape[1]

    @pcbatch.autobatch
    def tag(word, length):
        before = tf.zeros([LONGEST, width])
        h, c = tf.zeros([width]), tf.zeros([width])
        for t in range(length):
            h, c = cell(forward, forward_bias, embedding[word[t]], h, c)
            before[t] = h
        scores = tf.zeros([LONGEST, TAGS])
        h, c = tf.zeros([width]), tf.zeros([width])
        for t in range(length - 1, -1, -1):
            h, c = cell(backward, backward_bias, embedding[word[t]], h, c)
            scores[t] = tf.linalg.matvec(tags, tf.concat([before[t], h], 0), transpose_a=True) + tags_bias
        return scores

    return tag


def tagger_with_heads_by_hand(weights: Weights) -> Any:
    """The same, the scores of all words as one product behind the loops: batched by hand there, automatically here."""
    embedding, forward, forward_bias, backward, backward_bias, tags, tags_bias = (
        weights[name] for name in ("words", "forward", "forward bias", "backward", "backward bias", "tags", "tags bias")
    )
    width = embedding.shape[1]

    @pcbatch.autobatch
    def tag(word, length):
        before, after = tf.zeros([LONGEST, width]), tf.zeros([LONGEST, width])
        h, c = tf.zeros([width]), tf.zeros([width])
        for t in range(length):
            h, c = cell(forward, forward_bias, embedding[word[t]], h, c)
            before[t] = h
        h, c = tf.zeros([width]), tf.zeros([width])
        for t in range(length - 1, -1, -1):
            h, c = cell(backward, backward_bias, embedding[word[t]], h, c)
            after[t] = h
        scores = tf.concat([before, after], 1) @ tags + tags_bias
        return tf.where(tf.range(LONGEST)[:, tf.newaxis] < length, scores, 0.0)

    return tag


def child_sum(weights: Weights) -> Any:
    """A child-sum TreeLSTM over dependencies (Tai, Socher and Manning, 2015): the state of the root."""
    embedding, leaf, leaf_bias, node, node_bias, forget = (
        weights[name] for name in ("words", "leaf", "leaf bias", "node", "node bias", "forget")
    )
    width = embedding.shape[1]

    @pcbatch.autobatch
    def encode(first, following, word, at):
        x = tf.linalg.matvec(leaf, embedding[word[at]], transpose_a=True) + leaf_bias
        total, kept = tf.zeros([width]), tf.zeros([width])
        child = first[at]
        while child >= 0:
            h, c = encode(first, following, word, child)
            total += h
            kept += tf.sigmoid(x[3 * width :] + tf.linalg.matvec(forget, h, transpose_a=True)) * c
            child = following[child]
        i, o, u = tf.split(x[: 3 * width] + tf.linalg.matvec(node, total, transpose_a=True) + node_bias, 3)
        c = tf.sigmoid(i) * tf.tanh(u) + kept
        return tf.sigmoid(o) * tf.tanh(c), c

    @pcbatch.autobatch
    def root(first, following, word):
        h, _ = encode(first, following, word, 0)
        return h

    return root


NETWORKS = {"binary": binary, "lstm": lstm, "tagger": tagger, "child-sum": child_sum}
HEADS = {"tagger": tagger_with_heads_by_hand}
_options: dict[str, Any] = {}
_networks: dict[str, Any] = {**NETWORKS}


def start(variant: str) -> None:
    """The options that all functions are to have, and the networks."""
    _options.update(OPTIONS[variant])
    _networks.update(HEADS if variant == "heads" else {})


def prepare(job: Job) -> Ready:
    """A call of the batched function."""
    weights = {name: tf.constant(each) for name, each in job.weights.items()}
    function = _networks[job.network.cell](weights).options(**_options)
    given = list(job.batch.values())

    def counts() -> dict[str, Any]:
        run = function.run(*given)
        return {"block runs": int(run.block_runs), "useful rows": float(run.utilization.overall)}

    return Ready(lambda: np.asarray(function(*given)), counts)


if __name__ == "__main__":
    one_thread.keep()
    serve(prepare, start)
