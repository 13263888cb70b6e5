"""Operations that nobody can vectorise, run lane after lane: which belong together, and the loop that runs them.

Such a loop goes over the lanes that take part and no others: what a loop inside an operation computes of junk may never
end. It is a plain loop. As one of `xla_cpu.small_calls` it would end the process where XLA knows an argument to be
constant, as in the loop of `tf.linalg.expm`: then nothing in the function depends on that argument any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pcbatch.errors import CompileError, MissingError, PieceRefusalError
from pcbatch.runtime.backends.tensorflow import branches, lists, scattering
from pcbatch.runtime.backends.tensorflow.rules.straight import Converted

# -- which operations --------------------------------------------------------------------------------------------------


class RefusedError(Exception):
    """An `operation` that can be neither vectorised nor run lane after lane, and the `reason`."""

    def __init__(self, operation: Any, reason: Exception):
        super().__init__(str(reason))
        self.operation, self.reason = operation, reason


def is_looped(error: Exception) -> bool:
    """Return whether operations whose vectorisation raised `error` may be run lane after lane."""
    if isinstance(error, PieceRefusalError):
        return error.code == "PCB414"
    return not isinstance(error, (CompileError, MissingError))


@dataclass(frozen=True)
class Group:
    """Operations of a graph, in order, that run together for one lane: from `inputs` to `outputs`."""

    operations: list[Any]
    inputs: list[tf.Tensor]
    outputs: list[tf.Tensor]
    after: set[int]
    """The tensors, by `id`, that are made of its results."""

    @property
    def is_bounded(self) -> bool:
        """True if the lengths of the lists that loops collect are known."""
        return lists.are_bounded(self.operations)

    @property
    def is_fixed(self) -> bool:
        """True if every array has a static shape: XLA compiles others only sometimes, and not to the same numbers."""
        tensors = (tensor for operation in self.operations for tensor in operation.outputs)
        return all(lists.is_list(tensor) or tensor.shape.is_fully_defined() for tensor in tensors)


def group(first: Any, operations: Sequence[Any], given: set[int], results: Iterable[tf.Tensor]) -> Group:
    """The group of the operation `first` among those `operations` of its graph that are needed, in order.

    With it go all operations that hand on to each other what is no array of one shape (the lists that a loop collects,
    an array whose length is known only when it is there), and what lies between. `given` are the tensors, by `id`, that
    something stands for already before anything of the graph runs; `results` those that the graph is for.
    """
    users: dict[int, list[Any]] = {}
    for operation in operations:
        for tensor in operation.inputs:
            users.setdefault(id(tensor), []).append(operation)
    members = {id(first): first}
    pending = [first]
    while pending:
        while pending:
            operation = pending.pop()
            near = [tensor.op for tensor in operation.inputs if _is_loose(tensor) and id(tensor) not in given]
            near += [user for tensor in operation.outputs if _is_loose(tensor) for user in users.get(id(tensor), [])]
            for other in near:
                if id(other) not in members:
                    members[id(other)] = other
                    pending.append(other)
        pending = [each for each in _between(operations, members) if id(each) not in members]
        members.update({id(each): each for each in pending})
    inside = [operation for operation in operations if id(operation) in members]
    made = {id(tensor) for operation in inside for tensor in operation.outputs}
    read = {id(tensor): tensor for operation in inside for tensor in operation.inputs if id(tensor) not in made}
    ends = {id(tensor) for tensor in results}
    outputs = [
        tensor
        for operation in inside
        for tensor in operation.outputs
        if id(tensor) in ends or any(id(user) not in members for user in users.get(id(tensor), []))
    ]
    return Group(inside, list(read.values()), outputs, _made_of(operations, members))


def _is_loose(tensor: tf.Tensor) -> bool:
    """Return whether a tensor of one lane cannot be one row of an array of all lanes."""
    return tensor.dtype != tf.resource and (lists.is_list(tensor) or not tensor.shape.is_fully_defined())


def _made_of(operations: Sequence[Any], members: dict[int, Any]) -> set[int]:
    """The tensors, by `id`, that a member is needed for."""
    after: set[int] = set()
    for operation in operations:
        if id(operation) in members or any(id(tensor) in after for tensor in operation.inputs):
            after.update(id(tensor) for tensor in operation.outputs)
    return after


def _between(operations: Sequence[Any], members: dict[int, Any]) -> list[Any]:
    """The operations that need a member, and that a member needs."""
    after = _made_of(operations, members)
    before: set[int] = set()  # tensors that a member needs
    found = []
    for operation in reversed(operations):
        needed = id(operation) in members or any(id(tensor) in before for tensor in operation.outputs)
        if needed:
            before.update(id(tensor) for tensor in operation.inputs)
            if any(id(tensor) in after for tensor in operation.outputs):
                found.append(operation)
    return found


# -- the loop ----------------------------------------------------------------------------------------------------------


def looped(
    these: Group,
    given: Sequence[Converted],
    one: Callable[[list[tf.Tensor]], list[tf.Tensor]],
    lanes: Any,
    taking_part: tf.Tensor | None,
) -> list[tf.Tensor]:
    """`one`, from the inputs of a group to its outputs for one lane, for every lane of those that are `taking_part`.

    What stands for the inputs is `given`. Gives `[lanes, ...]` arrays, zeros for the other lanes.
    """
    fixed = [None if each.is_stacked else tf.get_static_value(each.t) for each in given]
    everyone = tf.broadcast_to(True if taking_part is None else taking_part, [lanes])
    order = scattering.compacted(everyone, lanes)
    count = tf.reduce_sum(tf.cast(everyone, tf.int32))

    def turn(carried: list[tf.Tensor]) -> list[tf.Tensor]:
        place, *rows = carried
        lane = branches.element(order, [place])
        inputs = [
            tf.constant(value, each.t.dtype)
            if value is not None
            else (branches.element(each.t, [lane]) if each.is_stacked else each.t)
            for each, value in zip(given, fixed, strict=True)
        ]
        outputs = one(inputs)
        return [place + 1, *(branches.with_element(row, [lane], new) for row, new in zip(rows, outputs, strict=True))]

    blank = [tf.zeros([lanes, *tensor.shape], tensor.dtype) for tensor in these.outputs]
    return _loop(lambda carried: carried[0] < count, turn, [tf.constant(0), *blank])[1:]


def unless(
    failed: tf.Tensor, these: Group, inputs: list[tf.Tensor], one: Callable[[list[tf.Tensor]], list[tf.Tensor]]
) -> list[tf.Tensor]:
    """`one(inputs)`, for one lane, or zeros where it has `failed`: a loop of one turn at most.

    Not a conditional, whose other arm copies what it passes on.
    """
    blank = [tf.zeros(tensor.shape, tensor.dtype) for tensor in these.outputs]
    return _loop(lambda carried: carried[0], lambda _: [tf.constant(False), *one(inputs)], [~failed, *blank])[1:]


def _loop(
    condition: Callable[[list[tf.Tensor]], tf.Tensor],
    body: Callable[[list[tf.Tensor]], list[tf.Tensor]],
    start: list[tf.Tensor],
) -> list[tf.Tensor]:
    if branches.apply():
        return branches.loop(condition, body, start)
    shapes = [tf.TensorShape(tensor.shape) for tensor in start]
    end = tf.while_loop(
        lambda *carried: condition([*carried]),
        lambda *carried: body([*carried]),
        start,
        shape_invariants=shapes,
        parallel_iterations=1,
    )
    return list(end)
