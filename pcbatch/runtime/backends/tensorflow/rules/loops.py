"""Loops inside opaque calls, of which XLA takes only some once they are batched.

TensorFlow's rule for a loop (`tf.while_loop`, `tf.map_fn`, `tf.scan`, the one in `tf.linalg.expm`) runs the lanes apart
where their numbers of turns differ, and keeps what `tf.map_fn` collects as lists of lists. XLA has neither, and says so
without a place; so these are refused here, at the user's line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pcbatch.errors import PieceRefusalError
from pcbatch.runtime.backends.tensorflow.graphs import in_outer_xla

LOOPS = ("StatelessWhile", "While")

_HELP = (
    "write the loop in the batched function itself, as Python's `for` or `while`, where each lane takes its own number "
    "of turns; or loop over the lanes in this one call with pcbatch.fallback(fn); or take jit=False"
)


def checked(theirs: Callable[[Any], Any], inputs: Any) -> Any:
    """`theirs(inputs)`, TensorFlow's conversion of a loop; PieceRefusalError PCB414 where XLA could not compile it."""
    if not in_outer_xla():
        return theirs(inputs)
    if any(tensor.dtype == tf.variant for tensor, _, _ in inputs.inputs):
        raise PieceRefusalError("PCB414", "XLA cannot compile a batched loop that collects a list of results", _HELP)
    graph = tf.compat.v1.get_default_graph()
    before = _lanes_run_apart(graph)
    outputs = theirs(inputs)
    if _lanes_run_apart(graph) > before:
        message = "XLA cannot compile a loop inside an opaque call whose number of turns differs by lane"
        raise PieceRefusalError("PCB414", message, _HELP)
    return outputs


def _lanes_run_apart(graph: Any) -> int:
    """How many operations, in functions that `graph` calls, put the results of some lanes back among the others."""
    functions = graph.as_graph_def().library.function
    return sum(node.op == "TensorListScatterIntoExistingList" for function in functions for node in function.node_def)
