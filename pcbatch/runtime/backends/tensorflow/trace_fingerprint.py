"""A digest of a piece's computation, equal in every process, by which programs are found on disk.

Taken is what a trace of the piece has in the end: operations, numbers, arrays that are captured, functions that are
called. So it tells apart whatever the user's code has read from wherever while it was traced: names around it, objects,
files, the time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir.machine import Piece
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.tensorflow import custom_vectorised_ops, flop_estimate, private
from pcbatch.runtime.backends.tensorflow.definitions import NotPortableError, check, content_names, rename
from pcbatch.runtime.backends.tensorflow.traces import Trace, trace

READS = frozenset({"ReadVariableOp", "ResourceGather"})
"""Operations on the handle of a variable that become operations on its value."""


def described(piece: Piece, signature: Signature) -> str | None:
    """The digest; None where a trace for one example is not all that matters, or has something of this process.

    So it is where a function has a batched form of its own, which is Python code that runs for all lanes.
    """
    traced = trace(piece, signature.reads, signature.shared)
    outputs = [*traced.leaves(signature.writes), *([traced.site] if traced.sites else [])]
    if any(custom_vectorised_ops.batched_forms(graph) for graph in _graphs(traced.graph)):
        return None
    try:
        return hashlib.sha256(repr([*_parts(traced, outputs)]).encode()).hexdigest()
    except NotPortableError:
        return None


def content(array: Any) -> bytes:
    """The elements of an array that is captured; NotPortableError where it has none, as the handle of a variable."""
    if tf.is_symbolic_tensor(array) or array.dtype in (tf.resource, tf.variant):
        raise NotPortableError(f"it captures {array}")
    if array.dtype == tf.string:
        return bytes(tf.io.serialize_tensor(array).numpy())
    return np.ascontiguousarray(array).tobytes()


def _parts(traced: Trace, outputs: list[tf.Tensor]) -> Iterator[Any]:
    whole = traced.graph.as_graph_def()
    names = content_names(whole.library.function)
    numbers = {node.name: str(number) for number, node in enumerate(whole.node)}

    def place(tensor: tf.Tensor) -> tuple[str, int]:
        return numbers[tensor.op.name], tensor.value_index

    handed = {inner.op.name for inner, _ in traced.handles}
    for node in whole.node:
        # A variable is read before the program runs, which is given its value.
        if node.op != "Placeholder" and not (node.op in READS and node.input[0].partition(":")[0] in handed):
            check(node)
        rename(node, names)
        for at, given in enumerate(node.input):
            name, _, output = given.removeprefix("^").partition(":")
            node.input[at] = f"{'^' if given.startswith('^') else ''}{numbers[name]}:{output}"
        node.name = ""
        node.attr.pop("_user_specified_name", None)  # what is captured is numbered there
        node.ClearField("experimental_debug_info")
        yield node.SerializeToString(deterministic=True)
    yield [[place(tensor) for tensor in each] for each in (traced.reads, traced.shared, outputs)]
    handles = {id(inner): leaf for inner, leaf in traced.handles}
    known = {id(tensor) for tensor in traced.shared}
    for outer, inner in private.captures(traced.graph):
        if id(inner) in handles:
            yield place(inner), place(handles[id(inner)])
        elif id(inner) not in known:
            yield place(inner), outer.dtype.name, tuple(outer.shape), hashlib.sha256(content(outer)).hexdigest()


def _graphs(graph: Any) -> Iterator[Any]:
    """A graph, and those of all functions that its operations run."""
    yield graph
    for operation in graph.get_operations():
        for body in flop_estimate.bodies(operation):
            yield from _graphs(body)
