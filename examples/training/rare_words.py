"""A BiLSTM tagger that reads rare words letter by letter, and knows the frequent ones: DyNet's form of it.

Neubig et al., "On-the-fly Operation Batching in Dynamic Computation Graphs", NIPS 2017, section 4. A word that is
frequent in training has a vector; a BiLSTM over the letters makes that of any other. So lanes go different ways at each
word. Tags are those of Wikigold's entities (Balasuriya et al., 2009).

    PCBATCH_DATA=.. python examples/training/rare_words.py [--steps 150]
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import running
import tensorflow as tf

import pcbatch

WORDS, LETTERS, LONGEST, TAGS = 300, 80, 12, ("O", "I-LOC", "I-MISC", "I-ORG", "I-PER")


@cache
def sentences() -> list[tuple[np.ndarray, ...]]:
    """Of each sentence the numbers of words, of rare words' letters, how many these are, and of tags."""
    lines = running.data("wikigold", "wikigold_word_tag.txt").read_text(encoding="utf-8").splitlines()
    parsed = [[token.rsplit("|", 1) for token in line.split()[:20]] for line in lines if line.strip()]
    words = [word for sentence in parsed for word, _ in sentence]
    of_word, of_letter = running.numbered(words, WORDS), running.numbered("".join(words), LETTERS)
    found = []
    for sentence in parsed:
        letters = np.zeros((len(sentence), LONGEST), np.int32)
        for row, (word, _) in zip(letters, sentence, strict=True):
            row[: len(word)] = [of_letter.get(letter, 0) for letter in word[:LONGEST]]
        numbers = np.array([of_word.get(word, 0) for word, _ in sentence], np.int32)
        sizes = np.array([min(len(word), LONGEST) for word, _ in sentence], np.int32)
        found.append((numbers, letters, sizes, np.array([TAGS.index(tag) for _, tag in sentence], np.int32)))
    return found


def examples(random: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Sentences as rows of unequal length."""
    every = sentences()
    chosen = [every[place] for place in random.integers(len(every), size=count)]
    return tuple(map(pcbatch.ragged, map(list, zip(*chosen, strict=True))))


def model(width: int) -> tuple[Any, list[tf.Variable]]:
    """The mean loss of one sentence's tags, batched, and the weights."""
    half = width // 2
    cells = [
        shape
        for out, into in ((half, half), (half, half), (width, width), (width, width))
        for shape in ([4 * out, into + out], [4 * out])
    ]
    words_of, letters_of, output, *cells = variables = running.weights(
        [WORDS, width], [LETTERS, half], [len(TAGS), 2 * width], *cells
    )

    @pcbatch.autobatch
    def spelt(letters, size):
        (h, c), (g, d) = (tf.zeros([half]), tf.zeros([half])), (tf.zeros([half]), tf.zeros([half]))
        for k in range(size):
            h, c = running.lstm(cells[0], cells[1], tf.gather(letters_of, letters[k]), h, c)
            g, d = running.lstm(cells[2], cells[3], tf.gather(letters_of, letters[size - 1 - k]), g, d)
        return tf.concat([h, g], 0)

    @pcbatch.autobatch
    def loss(words, letters, sizes, tags):
        read, before = [], []
        h, c = tf.zeros([width]), tf.zeros([width])
        for t in range(len(words)):
            x = tf.gather(words_of, words[t]) if words[t] > 0 else spelt(letters[t], sizes[t])
            h, c = running.lstm(cells[4], cells[5], x, h, c)
            read.append(x)
            before.append(h)
        h, c, total = tf.zeros([width]), tf.zeros([width]), 0.0
        for t in reversed(range(len(words))):
            h, c = running.lstm(cells[6], cells[7], read[t], h, c)
            scores = tf.linalg.matvec(output, tf.concat([before[t], h], 0))
            total += tf.nn.sparse_softmax_cross_entropy_with_logits(tags[t], scores)
        return total / len(words)

    return loss, variables


if __name__ == "__main__":
    running.main("rare_words", model, examples)
