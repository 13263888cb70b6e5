"""Corrections of XLA's errors inside functions of operations that are taken as they are.

An arm of `tf.cond`, a turn of `tf.while_loop` and of `tf.map_fn`, a `tf.function` that is called: where they are
vectorised, pfor goes through them. For one lane, and where no lane's value goes in, they would run as they were traced.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.errors import PieceRefusalError
from pcbatch.runtime.backends.tensorflow import flop_estimate, graphs, lists, private
from pcbatch.runtime.backends.tensorflow.graphs import in_outer_xla
from pcbatch.runtime.backends.tensorflow.rules import draws, extremes, slopes, straight
from pcbatch.runtime.backends.tensorflow.rules.family import Applies, Rule
from pcbatch.runtime.backends.tensorflow.xla_cpu import softplus

# -- loops -------------------------------------------------------------------------------------------------------------
# Loops inside opaque calls, of which TensorFlow vectorises only some so that they can run.
#
# Its rule for a loop (`tf.while_loop`, `tf.map_fn`, `tf.scan`, the one in `tf.linalg.expm`) runs the lanes apart where
# their numbers of turns differ, and keeps what `tf.map_fn` collects as lists of lists. XLA has neither, and says so
# without a place. Without XLA the two do not go together: a lane that makes fewer turns than others finds its list
# empty. Such loops are run lane after lane, and `refusal` is what is said of one that XLA cannot compile even so.

LOOPS = ("StatelessWhile", "While")

_HELP = (
    "say how many turns any lane makes at most, tf.while_loop(.., maximum_iterations=n) with a literal or a captured "
    "int; or write the loop in the batched function itself, as Python's `for` or `while`; or take jit=False"
)


def refusal() -> PieceRefusalError:
    """PCB414: a loop that XLA cannot compile even for one lane."""
    message = "XLA cannot compile a loop that keeps something of each turn if it does not know how many there may be"
    return PieceRefusalError("PCB414", message, _HELP)


def refuse_arms(inputs: Any) -> Any:
    """Refuse lanes that take different arms that `arms` could not write out: they run lane after lane.

    pfor runs an arm of `tf.cond` for the lanes that take it. XLA does not know their number, and compiles little of it.
    """
    raise NotImplementedError(f"{inputs.op_type} of lanes that take different arms")


def _are_apart(inputs: Any) -> bool:
    return inputs.input(0).is_stacked


CORRECTIONS: dict[str, tuple[Applies, Rule]] = {
    "StatelessCase": (_are_apart, refuse_arms),
    **{name: (lambda inputs: _are_apart(inputs) and in_outer_xla(), refuse_arms) for name in ("If", "StatelessIf")},
}


def has_lists(operation: Any) -> bool:
    """Return whether a loop has such lists as inputs or outputs."""
    return any(map(lists.is_list, (*operation.inputs, *operation.outputs)))


def differs(operation: Any, varying: Sequence[bool]) -> bool:
    """Return whether lanes may make different numbers of turns of a loop whose inputs are `varying` by lane."""
    condition, body = (private.body_of(operation.graph, operation.get_attr(each).name) for each in ("cond", "body"))
    if condition is None or body is None:
        return any(varying)
    known: list[bool] = []
    while known != varying:
        known, after = [*varying], _varying(body, varying)
        varying = [before or now for before, now in zip(varying, after, strict=True)]
    return any(_varying(condition, varying))


def _varying(graph: Any, inputs: Sequence[bool]) -> list[bool]:
    """Return for each output of a function's graph whether it depends on `inputs` that vary."""
    found = {id(tensor) for tensor, varies in zip(graph.inputs, inputs, strict=True) if varies}
    for operation in graph.get_operations():
        if operation.type not in _OF_SHAPES and any(id(tensor) in found for tensor in operation.inputs):
            found.update(id(tensor) for tensor in operation.outputs)
    return [id(tensor) in found for tensor in graph.outputs]


_OF_SHAPES = ("Shape", "ShapeN", "Size", "Rank", "TensorListLength")
"""Operations that give the same for all arrays of one shape."""


def checked(theirs: Callable[[Any], Any], inputs: Any) -> Any:
    """`theirs(inputs)`, TensorFlow's conversion of a loop; PieceRefusalError PCB414 where it could not run."""
    collects = any(lists.is_list(tensor) for tensor, _, _ in inputs.inputs)
    if in_outer_xla() and collects:
        raise refusal()
    graph = tf.compat.v1.get_default_graph()
    before = _lanes_run_apart(graph)
    outputs = theirs(inputs)
    if (in_outer_xla() or collects) and _lanes_run_apart(graph) > before:
        raise refusal()
    return outputs


def _lanes_run_apart(graph: Any) -> int:
    """Count the operations, in functions that `graph` calls, that merge results of some lanes among the others'."""
    functions = graph.as_graph_def().library.function
    return sum(node.op == "TensorListScatterIntoExistingList" for function in functions for node in function.node_def)


# -- functions ---------------------------------------------------------------------------------------------------------

_numbers = itertools.count()

Convert = Callable[[Any, Sequence[tf.Tensor], Sequence[tf.Tensor]], Sequence[tf.Tensor]]
"""A function from a function's graph, its inputs in the present graph and its results to those of the present graph."""


def has_corrections(operation: Any) -> bool:
    """Return whether the functions that an operation runs need corrections."""
    return graphs.may_be_in_xla() and any(map(_is_corrected, _inside(operation)))


def has_loops(operation: Any) -> bool:
    """Return whether the functions that an operation runs contain loops."""
    return any(each.type in LOOPS for each in _inside(operation))


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
    of_kind = extremes.is_corrected(operation) or slopes.is_corrected(operation) or straight.is_whole(operation)
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
