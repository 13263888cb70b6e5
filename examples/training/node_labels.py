"""A TreeLSTM with a label at each node: the part of speech of every word of a dependency tree.

The tree is read upwards. Each node's label is scored by the word and the state of its dependents. Fold's and DyNet's
papers time such models of the sentiment treebank. A call gives the loss of all nodes below it, too.

    PCBATCH_DATA=.. python examples/training/node_labels.py [--steps 200]
"""

from __future__ import annotations

from typing import Any

import child_sum
import numpy as np
import running
import tensorflow as tf

import pcbatch

TAGS = ("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ")
TAGS += ("SYM", "VERB", "X")


def examples(random: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Trees, whose nodes have the numbers of a word and of a tag."""
    trees, of_word = child_sum.treebank()
    chosen = [trees[place] for place in random.integers(len(trees), size=count)]
    value = lambda word: {"word": of_word.get(word.form, 0), "tag": TAGS.index(word.upos) if word.upos in TAGS else 16}  # noqa: E731
    return (pcbatch.pack("\n\n".join(chosen), value=value),)


def model(width: int) -> tuple[Any, list[tf.Variable]]:
    """The mean loss of the nodes of one tree, batched, and the weights."""
    table, cell, bias, output = variables = running.weights(
        [child_sum.WORDS, width], [4 * width, 2 * width], [4 * width], [len(TAGS), width]
    )

    @pcbatch.autobatch
    def read(tree):
        h, c, losses, nodes = tf.zeros([width]), tf.zeros([width]), 0.0, 1.0
        for child in tree.children:
            h_below, c_below, losses_below, nodes_below = read(child)
            h, c, losses, nodes = h + h_below, c + c_below, losses + losses_below, nodes + nodes_below
        h, c = running.lstm(cell, bias, tf.gather(table, tree.value["word"]), h, c)
        scores = tf.linalg.matvec(output, h)
        losses += tf.nn.sparse_softmax_cross_entropy_with_logits(tree.value["tag"], scores)
        return h, c, losses, nodes

    @pcbatch.autobatch
    def loss(tree):
        _, _, losses, nodes = read(tree)
        return losses / nodes

    return loss, variables


if __name__ == "__main__":
    running.main("node_labels", model, examples)
