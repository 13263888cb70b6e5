"""Corrections of XLA's errors inside functions of operations that are taken as they are.

An arm of `tf.cond`, a turn of `tf.while_loop` and of `tf.map_fn`, a `tf.function` that is called: where they are
vectorised, pfor goes through them. For one lane, and where no lane's value goes in, they would run as they were traced.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import flop_estimate, graphs, private
from pcbatch.runtime.backends.tensorflow.rules import draws, extremes, loops, powers, slopes
from pcbatch.runtime.backends.tensorflow.xla_cpu import softplus

_numbers = itertools.count()

Convert = Callable[[Any, Sequence[tf.Tensor], Sequence[tf.Tensor]], Sequence[tf.Tensor]]
"""A function from a function's graph, its inputs in the present graph and its results to those of the present graph."""


def has_corrections(operation: Any) -> bool:
    """Return whether the functions that an operation runs need corrections."""
    return graphs.may_be_in_xla() and any(map(_is_corrected, _inside(operation)))


def has_loops(operation: Any) -> bool:
    """Return whether the functions that an operation runs contain loops."""
    return any(each.type in loops.LOOPS for each in _inside(operation))


def corrected(operation: Any, convert: Convert) -> dict[str, Any]:
    """The attributes of the operation that name such functions, with others in place of them."""
    changed: dict[str, Any] = {}
    if not (has_corrections(operation) and private.makes_functions()):
        return changed
    for name, attribute in operation.node_def.attr.items():
        if attribute.WhichOneof("value") == "func":
            changed[name] = tf.compat.v1.AttrValue(func=_converted(operation, attribute.func, convert))
        elif attribute.list.func:
            functions = [_converted(operation, each, convert) for each in attribute.list.func]
            changed[name] = tf.compat.v1.AttrValue(list=tf.compat.v1.AttrValue.ListValue(func=functions))
    return changed


def called(operation: Any) -> tuple[Any, list[tf.Tensor]] | None:
    """The graph of the function that a call is of, and its results; None if it is no call, or that is not known."""
    if operation.type not in ("PartitionedCall", "StatefulPartitionedCall"):
        return None
    return _known(operation, operation.get_attr("f"))


def _is_corrected(operation: Any) -> bool:
    of_kind = extremes.is_corrected(operation) or slopes.is_corrected(operation) or powers.is_whole(operation)
    return of_kind or draws.is_made_otherwise(operation) or softplus.stands_in(operation) is not None


def _inside(operation: Any) -> Iterator[Any]:
    """The operations of the functions that an operation runs, and of those that these run."""
    for body in flop_estimate.bodies(operation):
        for each in body.get_operations():
            yield each
            yield from _inside(each)


def _known(operation: Any, function: Any) -> tuple[Any, list[tf.Tensor]] | None:
    body, results = (of(operation.graph, function.name) for of in (private.body_of, private.results_of))
    return None if body is None or results is None else (body, results)


def _converted(operation: Any, function: Any, convert: Convert) -> Any:
    """Return the name of a function's replacement: itself where its graph is not known."""
    known = _known(operation, function)
    if known is None:
        return function
    body, results = known
    graph = private.new_graph(f"pcbatch_inside_{next(_numbers)}")
    with graph.as_default():
        given = [private.placeholder_like(each) for each in body.inputs]
        graph.inputs = given
        graph.outputs = [*convert(body, given, results)]
    made = private.function_of(graph)
    private.add_function(tf.compat.v1.get_default_graph(), made)
    return private.function_attribute(made).func
