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


def start(variant: str) -> None:
    """DyNet hears of its options before it is imported."""
    global dy
    import dynet_config

    dynet_config.set(mem=MEMORY, random_seed=1, autobatch=MODES[variant])
    import dynet

    dy = dynet


def _gates(model: Any, matrix: np.ndarray, bias: np.ndarray, count: int) -> list[tuple[Any, Any]]:
    """A matrix and a bias for each of `count` gates, of one matrix `[in, gates * width]` for all."""
    parts = zip(np.split(matrix.T, count), np.split(bias, count))
    return [(model.parameters_from_numpy(m), model.parameters_from_numpy(b)) for m, b in parts]


def _affine(gates: list[tuple[Any, Any]], x: Any) -> list[Any]:
    return [dy.affine_transform([bias, matrix, x]) for matrix, bias in gates]


def binary(model: Any, weights: Arrays) -> Callable[[Arrays], np.ndarray]:
    """See `pcbatch_batched.binary`."""
    words = model.lookup_parameters_from_numpy(weights["words"])
    leaf = _gates(model, weights["leaf"], weights["leaf bias"], 3)
    node = _gates(model, weights["node"], weights["node bias"], 5)

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

    def roots(batch: Arrays) -> np.ndarray:
        trees = zip(*(batch[name].tolist() for name in ("left", "right", "word")))
        found = [encode(*tree, 0)[0] for tree in trees]
        return _computed(found)

    return roots


def child_sum(model: Any, weights: Arrays) -> Callable[[Arrays], np.ndarray]:
    """See `pcbatch_batched.child_sum`."""
    words = model.lookup_parameters_from_numpy(weights["words"])
    width = weights["words"].shape[1]
    *leaf, forget_leaf = _gates(model, weights["leaf"], weights["leaf bias"], 4)
    node = _gates(model, weights["node"], weights["node bias"], 3)
    forget = model.parameters_from_numpy(weights["forget"].T)

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

    def roots(batch: Arrays) -> np.ndarray:
        trees = zip(*(batch[name].tolist() for name in ("first", "following", "word")))
        return _computed([encode(*tree, 0)[0] for tree in trees])

    return roots


def tagger(model: Any, weights: Arrays) -> Callable[[Arrays], np.ndarray]:
    """See `pcbatch_batched.tagger`."""
    words = model.lookup_parameters_from_numpy(weights["words"])
    width = weights["words"].shape[1]
    forward = _gates(model, weights["forward"], weights["forward bias"], 4)
    backward = _gates(model, weights["backward"], weights["backward bias"], 4)
    (tags,) = _gates(model, weights["tags"], weights["tags bias"], 1)

    def states(gates: list[tuple[Any, Any]], inputs: list[Any]) -> list[Any]:
        h, c, found = dy.zeros(width), dy.zeros(width), []
        for x in inputs:
            i, f, o, u = _affine(gates, dy.concatenate([x, h]))
            c = dy.cmult(dy.logistic(i), dy.tanh(u)) + dy.cmult(dy.logistic(f), c)
            h = dy.cmult(dy.logistic(o), dy.tanh(c))
            found.append(h)
        return found

    def scores(batch: Arrays) -> np.ndarray:
        length, found = batch["length"].tolist(), []
        for sentence, count in zip(batch["word"].tolist(), length):
            inputs = [words[word] for word in sentence[:count]]
            before, after = states(forward, inputs), states(backward, inputs[::-1])[::-1]
            found += [dy.concatenate(list(both)) for both in zip(before, after)]
        computed = _computed([_affine([tags], each)[0] for each in found])
        result = np.zeros((len(length), LONGEST, TAGS), np.float32)
        result[np.arange(LONGEST) < np.asarray(length)[:, np.newaxis]] = computed
        return result

    return scores


def _computed(found: list[Any]) -> np.ndarray:
    """The values of vectors, `[vectors, size]`, all computed at once."""
    together = dy.concatenate_to_batch(found)
    return together.npvalue().reshape(-1, len(found)).T


NETWORKS: dict[str, Callable[..., Callable[[Arrays], np.ndarray]]] = {
    "binary": binary,
    "child-sum": child_sum,
    "tagger": tagger,
}


def prepare(job: Job) -> Ready:
    """A call that builds the graph of the batch and computes it."""
    model = dy.ParameterCollection()
    models.append(model)  # or its parameters are gone
    compute = NETWORKS[job.network.cell](model, job.weights)

    def call() -> np.ndarray:
        dy.renew_cg()
        return compute(job.batch)

    return Ready(call)


if __name__ == "__main__":
    serve(prepare, start)
