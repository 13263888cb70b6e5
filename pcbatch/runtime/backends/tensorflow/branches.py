"""Conditionals and loops of programs that XLA compiles: TensorFlow's operations, without their wrappers.

`tf.cond` and `tf.while_loop` trace a function for each arm, prepare a gradient, count turns, check and copy: 3 to 5 ms
for each block of a program before anything is in it. These take a third of that. Nothing in them has a gradient, and no
operation in them waits for another. An arm that does nothing is one function for all guards of its shape.

In plain graphs TensorFlow writes out what `tf.cond` and `tf.while_loop` make, and goes through all of it, be it run or
not: 0.4 ms for a loop that carries a taped run and turns never. What is made here stays one operation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs, private, raw_ops

# -- branches ----------------------------------------------------------------------------------------------------------

_numbers = itertools.count()


def apply(*, seldom: bool = False) -> bool:
    """Return whether conditionals and loops can be made here directly; in plain graphs only those that `seldom` run.

    Not in plain graphs where there is a GPU: gradients in a `tf.function` ended in a segmentation fault there. By its
    sources TensorFlow has int32 numbers that `If` hands on in the GPU's memory, what functions take in the host's. Two
    attributes name those numbers in graphs that are made without a GPU, and may be saved and run beside one.
    """
    in_graph = seldom and not graphs.has_gpu()
    return raw_ops.in_program() and (graphs.in_outer_xla() or in_graph) and private.makes_functions()


def conditional(
    predicate: tf.Tensor, function: Callable[[], Sequence[tf.Tensor]], otherwise: Sequence[tf.Tensor]
) -> list[tf.Tensor]:
    """`function()` where the scalar holds, else `otherwise`, of the same dtypes and shapes."""
    arm = _body(f"pcbatch_then_{next(_numbers)}")
    with arm.as_default():
        arm.outputs = [_inside(arm, result) for result in function()]
    given = [outer for outer, _ in private.captures(arm)]
    known = {id(tensor) for tensor in given}
    given += [tensor for tensor in {id(each): each for each in otherwise}.values() if id(tensor) not in known]
    places = {id(tensor): place for place, tensor in enumerate(given)}
    with arm.as_default():
        arm.inputs = [_inside(arm, tensor) for tensor in given]
    passed = tuple(places[id(tensor)] for tensor in otherwise)
    types = tuple((tensor.dtype, _shape(tensor)) for tensor in given)
    nothing = raw_ops.once_in_program(("nothing", types, passed), lambda: _nothing(types, passed))
    _agree([arm.outputs[place] for place in range(len(passed))], otherwise)
    attributes = {
        "Tcond": raw_ops.type_attribute(tf.bool),
        "Tin": raw_ops.types_attribute([dtype for dtype, _ in types]),
        "Tout": raw_ops.types_attribute([tensor.dtype for tensor in otherwise]),
        "then_branch": _function(arm),
        "else_branch": _added(nothing),
        "output_shapes": raw_ops.shapes_attribute([_shape(tensor) for tensor in otherwise]),
        **_IN_XLA,
    }
    return _made("If", [arm], [predicate, *given], [tensor.dtype for tensor in otherwise], attributes)


def either(
    predicate: tf.Tensor, function: Callable[[], Sequence[tf.Tensor]], other: Callable[[], Sequence[tf.Tensor]]
) -> list[tf.Tensor]:
    """`function()` where the scalar holds, else `other()`, of the same dtypes; lengths that differ are unknown."""
    number = next(_numbers)
    arms = [_body(f"pcbatch_then_{number}"), _body(f"pcbatch_else_{number}")]
    for arm, made in zip(arms, (function, other), strict=True):
        with arm.as_default():
            arm.outputs = [_inside(arm, result) for result in made()]
    given = [*{id(outer): outer for arm in arms for outer, _ in private.captures(arm)}.values()]
    for arm in arms:
        with arm.as_default():
            arm.inputs = [_inside(arm, tensor) for tensor in given]
    results = [*zip(arms[0].outputs, arms[1].outputs, strict=True)]
    if any(one.dtype != two.dtype for one, two in results):
        raise TypeError(f"{[one.dtype for one, _ in results]} or {[two.dtype for _, two in results]}")
    dtypes, shapes = [one.dtype for one, _ in results], [_common(_shape(one), _shape(two)) for one, two in results]
    attributes = {
        "Tcond": raw_ops.type_attribute(tf.bool),
        "Tin": raw_ops.types_attribute([tensor.dtype for tensor in given]),
        "Tout": raw_ops.types_attribute(dtypes),
        "then_branch": _function(arms[0]),
        "else_branch": _function(arms[1]),
        "output_shapes": raw_ops.shapes_attribute(shapes),
        **_IN_XLA,
    }
    return _made("If", arms, [predicate, *given], dtypes, attributes)


def _common(one: tuple[int | None, ...], two: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """A shape of which two are: of the same rank."""
    return tuple(size if size == other else None for size, other in zip(one, two, strict=True))


def loop(
    condition: Callable[[list[tf.Tensor]], tf.Tensor],
    body: Callable[[list[tf.Tensor]], Sequence[tf.Tensor]],
    start: Sequence[tf.Tensor],
) -> list[tf.Tensor]:
    """`start`, then `body` of it again and again as long as the `condition` on it, a scalar, holds; shapes stay."""
    number = next(_numbers)
    test, turn = _body(f"pcbatch_while_{number}"), _body(f"pcbatch_do_{number}")
    arguments: list[list[tf.Tensor]] = []
    for graph, function in ((test, lambda carried: [condition(carried)]), (turn, body)):
        with graph.as_default():
            arguments.append([raw_ops.placeholder(tensor.dtype, _shape(tensor)) for tensor in start])
            graph.outputs = [_inside(graph, result) for result in function(arguments[-1])]
    _agree(turn.outputs, start)
    captured = {id(outer): outer for graph in (test, turn) for outer, _ in private.captures(graph)}.values()
    for graph, carried in zip((test, turn), arguments, strict=True):
        with graph.as_default():
            graph.inputs = [*carried, *(_inside(graph, outer) for outer in captured)]
    turn.outputs = [*turn.outputs, *turn.inputs[len(start) :]]
    inputs = [*start, *captured]
    attributes = {
        "T": raw_ops.types_attribute([tensor.dtype for tensor in inputs]),
        "cond": _function(test),
        "body": _function(turn),
        "output_shapes": raw_ops.shapes_attribute([_shape(tensor) for tensor in inputs]),
        "parallel_iterations": raw_ops.integer_attribute(1),
        **(_IN_XLA if any(map(may_be_known, captured)) else {}),
    }
    ends = _made("While", [test, turn], inputs, [tensor.dtype for tensor in inputs], attributes)[: len(start)]
    # What no turn changes is not handed on by the loop: where XLA knows it, and three loops hand it on to each other
    # in a fourth one, TensorFlow gives the last of them a body of its own, then looks for that where it is not.
    unchanged = map(_is_same, turn.outputs, arguments[1])
    return [before if same else end for before, same, end in zip(start, unchanged, ends, strict=True)]


def _is_same(after: tf.Tensor, before: tf.Tensor) -> bool:
    while after.op.type == "Identity":
        (after,) = after.op.inputs
    return after is before


def may_be_known(tensor: tf.Tensor) -> bool:
    """Return whether XLA may know a tensor's value: it is computed from constants and shapes alone.

    Where a loop is given none such, there is nothing that TensorFlow could make known inside of it. To look for that it
    reads the loop, with all loops in it, anew: a third of the time in which it makes XLA's text of the sampler.
    """
    return raw_ops.once_in_program(("may be known", tensor.ref()), lambda: _is_of_constants(tensor))


def _is_of_constants(tensor: tf.Tensor) -> bool:
    seen: set[int] = set()
    pending: list[Any] = [tensor]
    while pending:
        operation = getattr(pending.pop(), "op", None)
        if operation is None:  # a tensor of ordinary code, which the program is handed
            return False
        if operation.type == "Placeholder":  # of what a loop carries, or of what stands for a tensor around it
            places = {id(inside): outside for outside, inside in private.captures(operation.graph)}
            pending.append(places.get(id(operation.outputs[0])))
        elif id(operation) not in seen and operation.type not in _SHAPES:
            seen.add(id(operation))
            pending += operation.inputs
    return True


_SHAPES = frozenset(["Rank", "Shape", "ShapeN", "Size"])
_IN_XLA = {"_xla_propagate_compile_time_consts": tf.compat.v1.AttrValue(b=True)}
"""Attribute of such operations where XLA compiles them."""


def _body(name: str) -> Any:
    """The graph of an arm or a turn."""
    return private.new_body(name, raw_ops.constant_like)


def _inside(graph: Any, tensor: tf.Tensor) -> tf.Tensor:
    """`tensor` in `graph`, captured if it is one of another."""
    return private.capture(graph, tensor)


def _nothing(types: Sequence[tuple[tf.DType, tuple[int | None, ...]]], passed: Sequence[int]) -> Any:
    """The function that takes values of such types and gives back those at the places `passed`."""
    graph = private.new_graph(f"pcbatch_else_{next(_numbers)}")
    with graph.as_default():
        graph.inputs = [raw_ops.placeholder(dtype, shape) for dtype, shape in types]
    graph.outputs = [graph.inputs[place] for place in passed]
    return private.function_of(graph)


def _function(graph: Any) -> Any:
    return _added(private.function_of(graph))


def _added(function: Any) -> Any:
    """The function as an attribute of an operation of the present graph."""
    private.add_function(tf.compat.v1.get_default_graph(), function)
    return private.function_attribute(function)


def _agree(results: Sequence[tf.Tensor], before: Sequence[tf.Tensor]) -> None:
    """TypeError where an arm or a turn gives other dtypes than there were; unknown lengths are those there were."""
    if len(results) != len(before) or any(new.dtype != old.dtype for new, old in zip(results, before, strict=True)):
        raise TypeError(f"{[each.dtype for each in results]} after {[each.dtype for each in before]}")
    for new, old in zip(results, before, strict=True):
        new.set_shape(old.shape)


def _shape(tensor: tf.Tensor) -> tuple[int | None, ...]:
    return tuple(tensor.shape)


def _made(
    kind: str, bodies: Sequence[Any], inputs: Sequence[tf.Tensor], dtypes: Sequence[tf.DType], attributes: Any
) -> list[tf.Tensor]:
    kind = kind if any(map(private.is_stateful, bodies)) else f"Stateless{kind}"
    if not graphs.in_outer_xla():  # on another machine, such a graph may run on a GPU
        ints = (("_input_hostmem", [tensor.dtype for tensor in inputs]), ("_output_hostmem", dtypes))
        found = {name: [place for place, dtype in enumerate(each) if dtype == tf.int32] for name, each in ints}
        attributes |= {name: raw_ops.integers_attribute(places) for name, places in found.items() if places}
    return list(private.operation(tf.compat.v1.get_default_graph(), kind, inputs, dtypes, attributes))


# -- single ------------------------------------------------------------------------------------------------------------
# Access to one element or row of an array as XLA does it fastest: by slices, not gathers and scatters.


def element(array: tf.Tensor, indices: Sequence[tf.Tensor]) -> tf.Tensor:
    """`array[i, j, ..]`."""
    slice_of = private.dynamic_slice()
    rest = array.shape[len(indices) :]
    if slice_of is None or not graphs.in_outer_xla():
        return tf.gather_nd(array, _of_one(array, indices))
    sizes = (*[1] * len(indices), *rest)
    places = [tf.get_static_value(index) for index in indices]
    lengths = array.shape[: len(indices)]
    if all(place is not None for place in places) and all(lengths):
        inside = [min(max(int(place), 0), length - 1) for place, length in zip(places, lengths, strict=True)]
        first = raw_ops.constant((*inside, *[0] * len(rest)))
        return raw_ops.reshape(raw_ops.part(array, first, sizes), tuple(rest))
    starts = _starts(indices, len(rest))
    # Both are one operation of XLA's, which takes the nearest element beyond an end. TensorFlow makes XLA's text of its
    # own in a tenth of the time, but refuses bounds that it knows to be beyond.
    known = may_be_known(starts)
    found = slice_of(array, starts, raw_ops.constant(sizes)) if known else raw_ops.part(array, starts, sizes)
    return raw_ops.reshape(found, tuple(rest))


def with_element(array: tf.Tensor, indices: Sequence[tf.Tensor], value: tf.Tensor) -> tf.Tensor:
    """`array` with `array[i, j, ..] = value`."""
    rest = array.shape[len(indices) :]
    if tuple(value.shape) != tuple(rest):
        value = tf.broadcast_to(value, rest)
    update = private.update_slice()
    if update is None or not graphs.in_outer_xla():
        return tf.tensor_scatter_nd_update(array, _of_one(array, indices)[None], value[None])
    return update(array, raw_ops.reshape(value, (*[1] * len(indices), *rest)), _starts(indices, len(rest)))


def _of_one(array: tf.Tensor, indices: Sequence[tf.Tensor]) -> tf.Tensor:
    """The indices, those out of range at the nearest end, one after another."""
    sizes = [tf.shape(array)[axis] if size is None else size for axis, size in enumerate(array.shape[: len(indices)])]
    return tf.stack([tf.clip_by_value(index, 0, size - 1) for index, size in zip(indices, sizes, strict=True)])


def _starts(indices: Sequence[tf.Tensor], rest: int) -> tf.Tensor:
    key = "starts", *(index.ref() for index in indices), rest
    return raw_ops.once(key, lambda: raw_ops.stack([*indices, *[raw_ops.constant(0)] * rest]))
