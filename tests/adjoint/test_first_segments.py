"""Runs in a caller's graph: what most of them are, one segment, is one compiled program forward and one back."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.adjoint import tape as tapes
from tests.adjoint.programs import CASES, TABLE, VECTORS, B, W
from tests.adjoint.truth import TINY, batched

slow = pytest.mark.slow
FULL = tapes.Sizes(batches=1, rows=0, bytes=1, log=5)


@pcbatch.autobatch
def read(x, words, n):
    """How often a lane runs the loop can be guessed: as often as its words are many."""
    for t in range(n):
        x = tf.tanh(tf.linalg.matvec(W, x) + B * TABLE[words[t]])
    return x


WORDS = tf.constant(np.arange(24).reshape(6, 4) % 7, tf.int32)
READ = (VECTORS, WORDS, tf.constant([3, 0, 4, 1, 2, 4]))


def in_graph(function, arguments, variables):
    """Gradients in a function that knows how many lanes there are."""
    return tf.function(lambda *given: batched(function, given, variables), autograph=False)(*arguments)


def equal(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(tf.convert_to_tensor(one), tf.convert_to_tensor(other))


def always_run(function, library):
    """The operations of a function that run whatever becomes of it: not in arms, nor in what XLA compiles."""
    found = []
    for node in function:
        found.append(node.op)
        inner = node.attr["f"].func.name if "f" in node.attr else ""
        if inner in library and not library[inner].attr["_XlaMustCompile"].b:
            found += always_run(library[inner].node_def, library)
    return found


def test_the_way_of_one_segment_has_no_loop():
    function, arguments, variables = read, READ, (W, B)
    step = tf.function(lambda *given: batched(function, given, variables), autograph=False)
    definition = step.get_concrete_function(*arguments).graph.as_graph_def()
    library = {each.signature.name: each for each in definition.library.function}
    found = always_run(definition.node, library)
    assert not {"While", "StatelessWhile", "TensorListPushBack", "TensorScatterUpdate"} & {*found}
    assert {"If", "StatelessIf"} & {*found}  # where there are more


@slow
@pytest.mark.parametrize("jit", [True, False])
def test_one_segment_and_several(jit, monkeypatch):
    """The same to the bit in ordinary code and in a graph, and the same to rounding as each other."""
    one = read.options(jit=jit, name="read_in_one")
    found = batched(one, READ, (W, B, TABLE))
    equal(in_graph(one, READ, (W, B, TABLE)), found)
    monkeypatch.setattr(tapes, "Sizes", lambda: FULL)
    several = read.options(jit=jit, name="read_in_several")
    more = batched(several, READ, (W, B, TABLE))
    equal(in_graph(several, READ, (W, B, TABLE)), more)
    for one_way, other in zip(found, more, strict=True):
        np.testing.assert_allclose(tf.convert_to_tensor(one_way), tf.convert_to_tensor(other), rtol=1e-10, atol=1e-12)


@slow
@pytest.mark.parametrize("name", CASES)
def test_segments_in_graphs(name, monkeypatch):
    monkeypatch.setattr(tapes, "Sizes", lambda: TINY)
    function, arguments, variables = CASES[name]
    function = function.options(jit=False, name=f"{name}_segments_in_graphs")
    equal(in_graph(function, arguments, variables), batched(function, arguments, variables))


def test_a_guess_that_is_too_low(monkeypatch):
    """A run that is guessed to be of one segment, and is not."""
    guess = tapes.Tapes.are_likely_enough
    monkeypatch.setattr(tapes, "Sizes", lambda: FULL)
    function = read.options(jit=False, name="read_after_a_guess")
    found = batched(function, READ, (W, B, TABLE))
    monkeypatch.setattr(tapes.Tapes, "are_likely_enough", lambda self, lanes: not guess(self, lanes))
    function = read.options(jit=False, name="read_after_another_guess")
    equal(batched(function, READ, (W, B, TABLE)), found)
    equal(in_graph(function, READ, (W, B, TABLE)), found)
