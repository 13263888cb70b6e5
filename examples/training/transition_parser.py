"""A transition parser that follows its own choices: an oracle says at each step what still leads to the best tree.

Goldberg, Nivre, "Training deterministic parsers with non-deterministic oracles", TACL 2013: the system "arc-hybrid",
whose dynamic oracle counts the arcs that a transition makes unreachable. What a sentence does next depends on scores,
so no graph of a batch can be built beforehand. Trees are of Universal Dependencies' English Web Treebank.

    PCBATCH_DATA=.. python examples/training/transition_parser.py [--steps 200]
"""

from __future__ import annotations

from functools import cache
from typing import Any

import child_sum
import numpy as np
import running
import tensorflow as tf

import pcbatch

ROOM, FEATURES = 21, 4
"""Words of the longest sentence and the root, which lies behind them; of how many words scores are made."""


@cache
def sentences() -> list[tuple[np.ndarray, np.ndarray, int]]:
    """Words by number, the place of each one's head, and how many they are."""
    trees, of_word = child_sum.treebank()
    found = []
    for tree in trees:
        rows = [line.split("\t") for line in tree.splitlines() if line[0] != "#" and line.split("\t")[0].isdigit()]
        words, heads = np.full(ROOM, -1, np.int32), np.full(ROOM, -1, np.int32)
        size = len(rows)
        words[:size] = [of_word.get(row[1], 0) for row in rows]
        heads[:size] = [int(row[6]) - 1 if int(row[6]) else size for row in rows]
        found.append((words, heads, size))
    return found


def examples(random: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Words, heads, sizes."""
    every = sentences()
    words, heads, sizes = zip(*(every[place] for place in random.integers(len(every), size=count)), strict=True)
    return np.stack(words), np.stack(heads), np.array(sizes, np.int32)


def model(width: int) -> tuple[Any, list[tf.Variable]]:
    """The mean loss of a sentence's transitions, batched, and the weights."""
    table, inner, bias, outer = variables = running.weights(
        [child_sum.WORDS + 1, width], [2 * width, FEATURES * width], [2 * width], [3, 2 * width]
    )

    def vector(words, place):
        return tf.gather(table, words[place] + 1) if place >= 0 else tf.zeros([width])

    def costs(heads, in_stack, front, top, below, size):
        """The numbers of arcs lost by a shift, by an arc to the left, and by one to the right."""
        places = tf.range(ROOM)
        waits = (places >= front) & (places <= size)
        head, mine = heads[top], tf.reduce_sum(tf.cast(waits & (heads == top), tf.int32))
        to_right = tf.cast((head >= front) & (head <= size), tf.int32)
        lost_left = mine + tf.where((head != front) & (to_right > 0), 1, 0) + tf.where(head == below, 1, 0)
        others = in_stack & (places != top)
        ahead = tf.reduce_sum(tf.cast(in_stack & (heads == front), tf.int32))
        lost_shift = ahead + tf.reduce_sum(tf.cast(others & (places == heads[front]), tf.int32))
        return tf.stack([lost_shift, lost_left, mine + to_right])

    @pcbatch.autobatch
    def loss(words, heads, size):
        stack, in_stack = np.zeros(ROOM, np.int32), np.zeros(ROOM, bool)
        height, front, total, steps = 0, 0, 0.0, 0
        while front < size or height > 0:
            top = stack[height - 1] if height > 0 else -1
            below = stack[height - 2] if height > 1 else -1
            third = stack[height - 3] if height > 2 else -1
            seen = [vector(words, top), vector(words, below), vector(words, third), vector(words, front)]
            hidden = tf.tanh(tf.linalg.matvec(inner, tf.concat(seen, 0)) + bias)
            can = tf.stack([front < size, height > 0, height > 1])
            scores = tf.where(can, tf.linalg.matvec(outer, hidden), -1e9)
            lost = tf.where(can, costs(heads, in_stack, front, max(top, 0), below, size), 1000)
            good = lost == tf.reduce_min(lost)
            total += tf.reduce_logsumexp(scores) - tf.reduce_logsumexp(tf.where(good, scores, -1e9))
            steps += 1
            if tf.argmax(scores) == 0:
                stack[height], in_stack[front] = front, True
                height, front = height + 1, front + 1
            else:
                in_stack[top], height = False, height - 1
        return total / steps

    return loss, variables


if __name__ == "__main__":
    running.main("transition_parser", model, examples)
