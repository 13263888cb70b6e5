"""DyNet: a graph of the whole batch, built in each call, batched by `autobatch` (Neubig, Goldberg and Dyer, 2017).

The variant is "agenda" or "depth", or "none": each node by itself. Written as in DyNet's own benchmark of trees: one
product for each gate, which its batches take best. Python 3.8 has to read this file.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from benchmarks.trees.contestants.worker import Job, Ready, serve
from benchmarks.trees.networks import LONGEST, TAGS, Arrays

MODES = {"none": 0, "agenda": 1, "depth": 2}
MEMORY = "4096"  # megabytes

dy: Any = None
models: list[Any] = []
Graph = Callable[[Arrays], "list[Any]"]
"""Gives the results of a batch as expressions: a vector for each tree or for each token."""


def start(variant: str) -> None:
    """DyNet hears of its options before it is imported."""
    global dy
    import dynet_config

    dynet_config.set(mem=MEMORY, random_seed=1, autobatch=MODES[variant])
    import dynet

    dy = dynet


class Model:
    """The weights as parameters of DyNet, by name; what is one matrix for all gates is one for each gate here."""

    def __init__(self, weights: Arrays):
        self._collection = dy.ParameterCollection()
        models.append(self)  # or its parameters are gone
        self._weights = weights
        self.parts: dict[str, list[Any]] = {}
        self.words = self._collection.lookup_parameters_from_numpy(weights["words"])
        self.width = weights["words"].shape[1]

    def matrix(self, name: str, count: int = 1) -> list[Any]:
        """`count` matrices `[out, in]` of one `[in, count * out]`."""
        return self._kept(name, np.split(self._weights[name].T, count))

    def gates(self, name: str, count: int) -> list[tuple[Any, Any]]:
        """A matrix and a bias for each of `count` gates."""
        biases = self._kept(f"{name} bias", np.split(self._weights[f"{name} bias"], count))
        return list(zip(self.matrix(name, count), biases))

    def _kept(self, name: str, parts: list[np.ndarray]) -> list[Any]:
        self.parts[name] = [self._collection.parameters_from_numpy(part) for part in parts]
        return self.parts[name]


def _affine(gates: list[tuple[Any, Any]], x: Any) -> list[Any]:
    return [dy.affine_transform([bias, matrix, x]) for matrix, bias in gates]


def binary(model: Model) -> Graph:
    """See `pcbatch_batched.binary`."""
    words, leaf, node = model.words, model.gates("leaf", 3), model.gates("node", 5)

    def encode(left: Any, right: Any, word: Any, at: int) -> tuple[Any, Any]:
        if left[at] < 0:
            i, o, u = _affine(leaf, words[word[at]])
            c = dy.cmult(dy.logistic(i), dy.tanh(u))
            return dy.cmult(dy.logistic(o), dy.tanh(c)), c
        h1, c1 = encode(left, right, word, left[at])
        h2, c2 = encode(left, right, word, right[at])
        i, f1, f2, o, u = _affine(node, dy.concatenate([h1, h2]))
        kept = dy.cmult(dy.logistic(f1), c1) + dy.cmult(dy.logistic(f2), c2)
        c = dy.cmult(dy.logistic(i), dy.tanh(u)) + kept
        return dy.cmult(dy.logistic(o), dy.tanh(c)), c

    return lambda batch: [
        encode(*tree, 0)[0] for tree in zip(*(batch[name].tolist() for name in ("left", "right", "word")))
    ]


def child_sum(model: Model) -> Graph:
    """See `pcbatch_batched.child_sum`."""
    words, width = model.words, model.width
    *leaf, forget_leaf = model.gates("leaf", 4)
    node = model.gates("node", 3)
    (forget,) = model.matrix("forget")

    def encode(first: Any, following: Any, word: Any, at: int) -> tuple[Any, Any]:
        x = words[word[at]]
        gates = _affine(leaf, x)
        children, child = [], first[at]
        while child >= 0:
            children.append(encode(first, following, word, child))
            child = following[child]
        total = dy.esum([h for h, _ in children]) if children else dy.zeros(width)
        i, o, u = (gate + each for gate, each in zip(gates, _affine(node, total)))
        c = dy.cmult(dy.logistic(i), dy.tanh(u))
        if children:
            (mine,) = _affine([forget_leaf], x)
            c = dy.esum([c, *(dy.cmult(dy.logistic(mine + forget * h), below) for h, below in children)])
        return dy.cmult(dy.logistic(o), dy.tanh(c)), c

    return lambda batch: [
        encode(*tree, 0)[0] for tree in zip(*(batch[name].tolist() for name in ("first", "following", "word")))
    ]


def _states(gates: list[tuple[Any, Any]], inputs: list[Any], width: int) -> list[Any]:
    """The states of an LSTM."""
    h, c, found = dy.zeros(width), dy.zeros(width), []
    for x in inputs:
        i, f, o, u = _affine(gates, dy.concatenate([x, h]))
        c = dy.cmult(dy.logistic(i), dy.tanh(u)) + dy.cmult(dy.logistic(f), c)
        h = dy.cmult(dy.logistic(o), dy.tanh(c))
        found.append(h)
    return found


def _inputs(model: Model, batch: Arrays) -> list[list[Any]]:
    """The words of each sentence."""
    sentences = zip(batch["word"].tolist(), batch["length"].tolist())
    return [[model.words[word] for word in sentence[:count]] for sentence, count in sentences]


def lstm(model: Model) -> Graph:
    """See `pcbatch_batched.lstm`."""
    cell = model.gates("cell", 4)
    width = cell[0][1].shape()[0]
    return lambda batch: [_states(cell, inputs, width)[-1] for inputs in _inputs(model, batch)]


def tagger(model: Model) -> Graph:
    """See `pcbatch_batched.tagger`; scores of all tokens, one sentence after another."""
    forward, backward, tags = (
        model.gates(name, count) for name, count in (("forward", 4), ("backward", 4), ("tags", 1))
    )

    def scores(batch: Arrays) -> list[Any]:
        found = []
        for inputs in _inputs(model, batch):
            before = _states(forward, inputs, model.width)
            after = _states(backward, inputs[::-1], model.width)[::-1]
            found += [dy.concatenate(list(both)) for both in zip(before, after)]
        return [_affine(tags, each)[0] for each in found]

    return scores


def inside(length: np.ndarray) -> np.ndarray:
    """Whether there is a token, `[examples, LONGEST]`."""
    return np.arange(LONGEST) < length[:, np.newaxis]


def _computed(found: list[Any]) -> np.ndarray:
    """The values of vectors, `[vectors, size]`, all computed at once."""
    together = dy.concatenate_to_batch(found)
    return together.npvalue().reshape(-1, len(found)).T


NETWORKS: dict[str, Callable[[Model], Graph]] = {
    "binary": binary,
    "child-sum": child_sum,
    "lstm": lstm,
    "tagger": tagger,
}


def prepare(job: Job) -> Ready:
    """A call that builds the graph of the batch and computes it."""
    graph = NETWORKS[job.network.cell](Model(job.weights))

    def call() -> np.ndarray:
        dy.renew_cg()
        computed = _computed(graph(job.batch))
        if job.network.cell != "tagger":
            return computed
        length = job.batch["length"]
        result = np.zeros((len(length), LONGEST, TAGS), np.float32)
        result[inside(length)] = computed
        return result

    return Ready(call)


if __name__ == "__main__":
    serve(prepare, start)
