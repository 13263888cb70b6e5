"""Attention over sentences of any length: does a sentence name a person?

The first example of pfor's paper (Agarwal, "Static Automatic Batching in TensorFlow", ICML 2019), on Wikigold
(Balasuriya et al., 2009). A sentence is a row of word numbers; rows have other lengths, and nothing is padded by hand.

    PCBATCH_DATA=.. python examples/training/attention.py [--steps 200]
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import running
import tensorflow as tf

import pcbatch

WORDS = 2000


@cache
def sentences() -> list[tuple[np.ndarray, float]]:
    """Word numbers of each sentence, and whether one of its words is tagged as a person."""
    lines = running.data("wikigold", "wikigold_word_tag.txt").read_text(encoding="utf-8").splitlines()
    parsed = [[token.rsplit("|", 1) for token in line.split()] for line in lines if line.strip()]
    of_word = running.numbered((word for sentence in parsed for word, _ in sentence), WORDS)
    return [
        (np.array([of_word.get(word, 0) for word, _ in each], np.int32), float(any(tag == "I-PER" for _, tag in each)))
        for each in parsed
    ]


def examples(random: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Sentences as rows of unequal length, and their labels."""
    every = sentences()
    chosen = [every[place] for place in random.integers(len(every), size=count)]
    return pcbatch.ragged([words for words, _ in chosen]), np.array([label for _, label in chosen], np.float32)


def model(width: int) -> tuple[Any, list[tf.Variable]]:
    """The loss of one sentence, batched, and the weights."""
    table, query, output, bias = running.weights([WORDS, width], [width, 1], [width, 1], [1])

    @pcbatch.autobatch
    def loss(words, label):
        vectors = tf.convert_to_tensor(table)[words]
        weights = tf.nn.softmax(vectors @ query[:, 0])
        score = tf.reduce_sum((weights @ vectors) * output[:, 0]) + bias[0]
        return tf.nn.sigmoid_cross_entropy_with_logits(label, score)

    return loss, [table, query, output, bias]


if __name__ == "__main__":
    running.main("attention", model, examples)
