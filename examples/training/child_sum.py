"""A child-sum TreeLSTM on dependency trees: does a sentence have a subject, by its words and its tree alone?

Tai, Socher, Manning, "Improved semantic representations from tree-structured long short-term memory networks", ACL
2015, on trees of Universal Dependencies' English Web Treebank. A node has as many children as its word has dependents;
`pcbatch.pack` reads the treebank's own format.

    PCBATCH_DATA=.. python examples/training/child_sum.py [--steps 200]
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import running
import tensorflow as tf

import pcbatch

WORDS = 1000


@cache
def treebank() -> tuple[list[str], dict[str, int]]:
    """The trees' texts, one of each tree, and the numbers of words."""
    text = running.data("ud_ewt", "train_subset.conllu").read_text(encoding="utf-8")
    trees = [each for each in text.strip().split("\n\n") if each.count("\n") <= 20]
    words = [line.split("\t")[1] for tree in trees for line in tree.splitlines() if not line.startswith("#")]
    return trees, running.numbered(words, WORDS)


def examples(random: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Trees, and whether some word of theirs is a nominal subject."""
    trees, of_word = treebank()
    chosen = [trees[place] for place in random.integers(len(trees), size=count)]
    packed = pcbatch.pack("\n\n".join(chosen), value=lambda word: of_word.get(word.form, 0))
    return packed, np.array(["\tnsubj\t" in each for each in chosen], np.float32)


def model(width: int) -> tuple[Any, list[tf.Variable]]:
    """The loss of one tree, batched, and the weights."""
    table, gates, bias, forget, output = variables = running.weights(
        [WORDS, width], [3 * width, 2 * width], [3 * width], [width, 2 * width], [1, width]
    )

    @pcbatch.autobatch
    def read(tree):
        x = tf.gather(table, tree.value)
        total, memory = tf.zeros([width]), tf.zeros([width])
        for child in tree.children:
            h, c = read(child)
            total += h
            memory += tf.sigmoid(tf.linalg.matvec(forget, tf.concat([x, h], 0)) + 1.0) * c
        i, o, g = tf.split(tf.linalg.matvec(gates, tf.concat([x, total], 0)) + bias, 3)
        memory += tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(memory), memory

    @pcbatch.autobatch
    def loss(tree, label):
        return tf.nn.sigmoid_cross_entropy_with_logits(label, tf.linalg.matvec(output, read(tree)[0])[0])

    return loss, variables


if __name__ == "__main__":
    running.main("child_sum", model, examples)
