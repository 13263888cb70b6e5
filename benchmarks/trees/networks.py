"""The networks: their weights and the batches that they run on, the same in every contestant.

Trees are arrays by node, node 0 the root, -1 where there is none. All is drawn from `RandomState`, whose numbers are
the same in every version of NumPy; DyNet's last wheel needs Python 3.8, so this file has to be read by that.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict

import numpy as np

Arrays = Dict[str, np.ndarray]

WORDS = 1000
"""How many different words there are."""
TAGS = 9
LONGEST = 64
"""Tokens of the longest sentence of a tagger."""
STEPS = 99
"""Tokens of the longest sentence that an LSTM is trained on."""


@dataclass(frozen=True)
class Network:
    """A network, how wide it is, what its speed counts, and batches of so many examples for it, from a seed.

    `inputs` is the width of its words, where that is not `width`.
    """

    name: str
    cell: str
    width: int
    unit: str
    batch: Callable[[int, int], Arrays]
    data: str = ""
    """A file below PCBATCH_DATA without which there is no batch."""
    inputs: int = 0

    def weights(self) -> Arrays:
        """The weights by name, float32: `[in, out]`, `[out]` or, of words, `[words, width]`."""
        random, width = np.random.RandomState(1), self.width

        def drawn(*shape: int) -> np.ndarray:
            return (random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

        inputs = self.inputs or width
        words = random.standard_normal((WORDS, inputs)).astype(np.float32)
        if self.cell == "binary":
            found = {"leaf": drawn(width, 3 * width), "node": drawn(2 * width, 5 * width)}
        elif self.cell == "child-sum":
            found = {"leaf": drawn(width, 4 * width), "node": drawn(width, 3 * width), "forget": drawn(width, width)}
        elif self.cell == "lstm":
            found = {"cell": drawn(inputs + width, 4 * width)}
        else:
            found = {
                "forward": drawn(2 * width, 4 * width),
                "backward": drawn(2 * width, 4 * width),
                "tags": drawn(2 * width, TAGS),
            }
        biases = {f"{name} bias": 0.1 * drawn(each.shape[1]) for name, each in found.items() if name != "forget"}
        return {"words": words, **found, **biases}


def data(name: str) -> Path:
    """Where a file of data is, or would be."""
    return Path(os.environ.get("PCBATCH_DATA", "")) / name


def units(network: Network, batch: Arrays) -> int:
    """How many leaves or tokens a batch has."""
    if network.cell == "binary":
        return int(np.sum((batch["left"] < 0) & (batch["word"] >= 0)))
    return int(np.sum(batch["word"] >= 0))


def _binary(fewest: int, most: int) -> Callable[[int, int], Arrays]:
    """Batches of binary trees; leaves are uniform from `fewest` to `most`, so is where each node splits them."""

    def batch(examples: int, seed: int) -> Arrays:
        random = np.random.RandomState(seed)
        shape = (examples, 2 * most - 1)
        left, right, word = (np.full(shape, -1, np.int32) for _ in range(3))
        for tree in range(examples):
            used = 1
            waiting = [(0, random.randint(fewest, most + 1))]
            while waiting:
                node, leaves = waiting.pop()
                word[tree, node] = random.randint(WORDS)
                if leaves > 1:
                    first = random.randint(1, leaves)
                    left[tree, node], right[tree, node] = used, used + 1
                    waiting += [(used + 1, leaves - first), (used, first)]
                    used += 2
        return {"left": left, "right": right, "word": word}

    return batch


def _sentences(longest: int) -> Callable[[int, int], Arrays]:
    """Batches of sentences of 1 to `longest` words."""

    def batch(examples: int, seed: int) -> Arrays:
        random = np.random.RandomState(seed)
        length = random.randint(1, longest + 1, examples).astype(np.int32)
        word = random.randint(WORDS, size=(examples, longest)).astype(np.int32)
        word[np.arange(longest) >= length[:, np.newaxis]] = -1
        return {"word": word, "length": length}

    return batch


_TEXTS = "wikigold/wikigold_word_tag.txt"


def _texts(examples: int, seed: int) -> Arrays:
    """Sentences of Wikigold, a word known by its place in the list of all, those longer than `LONGEST` left out."""
    lines = data(_TEXTS).read_text(encoding="utf-8").splitlines()
    texts = [[each.rsplit("|", 1)[0] for each in line.split()] for line in lines]
    texts = [text for text in texts if 0 < len(text) <= LONGEST]
    number = {word: place % WORDS for place, word in enumerate(sorted({word for text in texts for word in text}))}
    chosen = np.random.RandomState(seed).choice(len(texts), examples, replace=examples > len(texts))
    word = np.full((examples, LONGEST), -1, np.int32)
    for row, text in zip(word, (texts[each] for each in chosen)):
        row[: len(text)] = [number[each] for each in text]
    return {"word": word, "length": (word >= 0).sum(1).astype(np.int32)}


_TREES = "ud_ewt/train_subset.conllu"


def _dependencies(examples: int, seed: int) -> Arrays:
    """Trees of Universal Dependencies, by a node's first child and its next sibling."""
    heads = _heads()
    chosen = np.random.RandomState(seed).choice(len(heads), examples, replace=examples > len(heads))
    room = max(map(len, heads))
    first, following, word = (np.full((examples, room), -1, np.int32) for _ in range(3))
    random = np.random.RandomState(seed + 1)
    for tree, sentence in enumerate(heads[each] for each in chosen):
        root = sentence.index(0)
        places = [root, *(each for each in range(len(sentence)) if each != root)]  # the root is to be node 0
        node_of = {token: node for node, token in enumerate(places)}
        word[tree, : len(sentence)] = random.randint(WORDS, size=len(sentence))
        for token in reversed(range(len(sentence))):
            if sentence[token]:
                node, head = node_of[token], node_of[sentence[token] - 1]
                following[tree, node], first[tree, head] = first[tree, head], node
    return {"first": first, "following": following, "word": word}


def _heads() -> list[list[int]]:
    """Of each sentence the head of each token, 1 for the first token and 0 for none."""
    sentences: list[list[int]] = [[]]
    for line in data(_TREES).read_text(encoding="utf-8").splitlines():
        if not line:
            sentences.append([])
        elif not line.startswith("#"):
            sentences[-1].append(int(line.split("\t")[6]))
    return [sentence for sentence in sentences if sentence]


NETWORKS = {
    network.name: network
    for network in (
        Network("small trees", "binary", 128, "leaves", _binary(2, 15)),
        Network("large trees", "binary", 128, "leaves", _binary(2, 100)),
        Network("tagger", "tagger", 256, "tokens", _sentences(LONGEST)),
        Network("small tagger", "tagger", 64, "tokens", _texts, _TEXTS),
        Network("dependencies", "child-sum", 128, "tokens", _dependencies, _TREES),
    )
}
LSTM = Network("LSTM", "lstm", 256, "tokens", _sentences(STEPS), inputs=128)
TRAINED = {
    network.name: network for network in (NETWORKS["small trees"], NETWORKS["large trees"], LSTM, NETWORKS["tagger"])
}
"""Those that `benchmarks.training` trains."""
