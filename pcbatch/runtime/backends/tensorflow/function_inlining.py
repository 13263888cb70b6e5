"""The inlining of functions that operations run, before a trace is differentiated.

TensorFlow differentiates a conditional by running the gradients of both arms under a conditional, and a loop by another
loop, with lists of what was computed in between: nobody can vectorise that for lanes, least of all under XLA. So a call
becomes the operations of its function, a conditional those of its arms, of which a lane takes the results of one, and
a loop whose turns can be counted beforehand as many copies of its body, with the lists that it fills as plain lists.

What an arm computes for a lane that does not take it must leave no trace. Values are passed into an arm through a gate,
whose gradient is zero for such lanes, whatever comes back; what lanes share meets them inside under a *predicate*, by
which gradients are masked (`predicates`). The rest that cannot be expanded stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import custom_vectorised_ops, flop_estimate, private
from pcbatch.runtime.backends.tensorflow.lists import LISTS, Unexpandable, Value, folded, listed, static

TURNS, OPERATIONS = 64, 4000
"""The most turns that are written out of a loop, and the most operations of a piece in all."""

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_CONDITIONALS = ("If", "StatelessIf")
CASES = ("Case", "StatelessCase")
_LOOPS = ("While", "StatelessWhile")
CHOICES = (*_CONDITIONALS, *CASES)
_CONTROL = (*_CALLS, *_CONDITIONALS, *CASES, *_LOOPS)
_OURS = ("Slice", "GatherNd", "ResourceGatherNd")
"""Operations whose gradient is better taken by way of others."""
_DIVISIONS = ("Div", "FloorDiv", "FloorMod", "Mod", "RealDiv", "TruncateDiv", "TruncateMod")
_INDEXED = ("GatherV2", "GatherNd", "ResourceGatherNd", "ScatterNd", *(f"TensorScatter{n}" for n in ("Add", "Update")))
"""Operations that TensorFlow's kernels refuse for some numbers, their second input."""


class Expansion:
    """The operations that tensors of a trace's graph depend on, expanded, in the graph itself."""

    def __init__(
        self, graph: Any, reads: Sequence[tf.Tensor], results: Sequence[tf.Tensor], *, arms_only: bool = False
    ):
        """Expand a graph; `reads` are a lane's own tensors, `results` those of the graph.

        With `arms_only` it is the conditionals of which lanes may take different arms, and what is in these.
        """
        self.graph, self.arms_only = graph, arms_only
        self.of_lane = {id(tensor) for tensor in reads}
        self.predicates: dict[str, tf.Tensor] = {}
        """Scalar bools, whether a lane takes the arm, by the name of an operation in it."""
        self.slices: set[str] = set()
        """The names of lookups that are parts of slices, whose gradients are arrays in TensorFlow."""
        self._replaced: dict[int, tf.Tensor] = {}
        self._lists: dict[int, Value] = {}
        self._count = 0
        operations = flop_estimate.in_order(results)
        is_controlled = private.rewires() and any(operation.type in _CONTROL for operation in operations)
        for operation in operations:
            is_wanted = is_controlled or (operation.type in _OURS and private.rewires())
            if arms_only:
                is_wanted = is_controlled and operation.type in CHOICES and id(operation.inputs[0]) in self.of_lane
            if is_wanted:
                self._expand(operation)
            if any(id(tensor) in self.of_lane for tensor in operation.inputs):
                self.of_lane.update(map(id, operation.outputs))

    def of(self, tensor: tf.Tensor) -> tf.Tensor:
        """Return the replacement of a tensor."""
        return self._replaced.get(id(tensor), tensor)

    def _expand(self, operation: Any) -> None:
        """Rewire the readers of an operation's outputs to the tensors made here, if possible."""
        has_lists = any(tensor.dtype == tf.variant for tensor in (*operation.inputs, *operation.outputs))
        if operation.type not in (*_CONTROL, *_OURS, "ResourceGather") and not has_lists:
            return
        try:
            given = [self._lists.get(id(tensor), tensor) for tensor in operation.inputs]
            found = self._made(operation, given, None)
        except Unexpandable:
            return
        for output, value in zip(operation.outputs, found, strict=False):
            if isinstance(value, list):
                self._lists[id(output)] = value
            elif value is not None and output.dtype not in (tf.variant, tf.resource):
                self._replaced[id(output)] = new = self._tensor(value)
                for user in output.consumers():
                    for place, tensor in enumerate(user.inputs):
                        if tensor is output:
                            private.update_input(user, place, new)

    # -- one operation -------------------------------------------------------------------------------------------------

    def _made(self, operation: Any, given: Sequence[Value], predicate: tf.Tensor | None) -> Sequence[Value]:
        """Return an operation's results for other inputs, in a lane that runs it if `predicate` holds."""
        if operation.type in LISTS:
            return listed(operation, given)
        if any(isinstance(each, list) for each in given) and operation.type not in _CONTROL:
            raise Unexpandable
        if custom_vectorised_ops.is_run(operation):  # what it runs for one example only says what comes out
            raise Unexpandable
        match operation.type:
            case kind if kind in _CALLS and not (self.arms_only and private.has_rule(operation)):
                return self._copied(self._body(operation, "f"), given, predicate)
            case kind if kind in _CONDITIONALS:
                arms = [self._body(operation, name) for name in ("else_branch", "then_branch")]
                holds = self._tensor(given[0])
                number = tf.cast(holds if holds.dtype == tf.bool else tf.not_equal(holds, 0), tf.int32)
                self._note(number, [holds], None)
                known = static(given[0])
                return self._chosen(arms, number, None if known is None else int(bool(known)), given[1:], predicate)
            case kind if kind in CASES:
                names = operation.get_attr("branches")
                arms = [self._graph(operation, each.name) for each in names]
                known = static(given[0])
                last = len(arms) - 1
                place = None if known is None else (int(known) if 0 <= int(known) < last else last)
                return self._chosen(arms, self._tensor(given[0]), place, given[1:], predicate)
            case kind if kind in _LOOPS:
                return self._turns(operation, given, predicate)
        if any(output.dtype == tf.variant for output in operation.outputs):
            return [None] * len(operation.outputs)  # TensorFlow's gradients leave such where nobody else reads it
        known = folded(operation, given)
        if known is not None:
            return [known]
        tensors = [self._tensor(each) for each in given]
        if operation.type == "Slice" and tf.get_static_value(tensors[1]) is None:
            return [self._sliced(tensors, predicate)]
        if operation.type in ("GatherNd", "ResourceGatherNd") and tensors[1].shape.rank == 1:
            return [self._element(operation, tensors, predicate)]
        if operation.type == "ResourceGather":
            return [self._looked_up(operation, tensors, predicate)]
        return self._copy(operation, tensors, predicate)

    def _copy(
        self, operation: Any, tensors: list[tf.Tensor], predicate: tf.Tensor | None, *, alike: bool = True
    ) -> Sequence[tf.Tensor]:
        """The same operation on other inputs, of the same shapes if these are `alike`."""
        is_batched = self.arms_only and custom_vectorised_ops.is_batched_form(operation)
        if not is_batched and (private.has_own_gradient(operation) or private.has_rule(operation)):
            raise Unexpandable
        self._count += 1
        if self._count > OPERATIONS:
            raise Unexpandable
        if predicate is not None and operation.type in _INDEXED:
            tensors[1] = tf.where(predicate, tensors[1], tf.zeros_like(tensors[1]))
        elif predicate is not None and operation.type in _DIVISIONS and tensors[1].dtype.is_integer:
            tensors[1] = tf.where(predicate, tensors[1], tf.ones_like(tensors[1]))
        dtypes = [output.dtype for output in operation.outputs]
        attributes = {n: value for n, value in operation.node_def.attr.items() if alike or n != "_output_shapes"}
        found = private.operation(self.graph, operation.type, tensors, dtypes, attributes)
        for new, known in zip(found, operation.outputs, strict=True):
            if alike and new.dtype != tf.variant:
                new.set_shape(known.shape)
            self._note(new, tensors, predicate)
        if is_batched:
            custom_vectorised_ops.mark_alike(found[0].op, operation)
        return found

    def _note(self, tensor: tf.Tensor, inputs: Sequence[tf.Tensor], predicate: tf.Tensor | None) -> None:
        if any(id(each) in self.of_lane for each in inputs):
            self.of_lane.add(id(tensor))
        if predicate is not None:
            self.predicates[tensor.op.name] = predicate

    def _sliced(self, inputs: Sequence[tf.Tensor], predicate: tf.Tensor | None) -> tf.Tensor:
        """A slice at places that lanes have of their own: lookups, which have a gradient that can be vectorised."""
        array, begin, _ = inputs
        begin = begin if predicate is None else tf.where(predicate, begin, tf.zeros_like(begin))
        sizes = tf.get_static_value(inputs[2])
        if sizes is None or any(size < 0 for size in sizes) or not array.shape.is_fully_defined():
            raise Unexpandable
        found = array
        for axis, size in enumerate(sizes):
            if size != array.shape[axis]:
                found = tf.gather(found, begin[axis] + tf.range(size, dtype=begin.dtype), axis=axis)
                self.slices.add(found.op.name)
                self._note(found, inputs, predicate)
        found = tf.identity(found)
        self._note(found, inputs, predicate)
        return found

    def _element(self, operation: Any, inputs: list[tf.Tensor], predicate: tf.Tensor | None) -> tf.Tensor:
        """Gather a single place as a list of one place: TensorFlow has no gradient for the former."""
        places = inputs[1][None]
        self._note(places, inputs, predicate)
        (found,) = self._copy(operation, [inputs[0], places], predicate, alike=False)
        found = tf.reshape(found, operation.outputs[0].shape)
        self._note(found, inputs, predicate)
        return found

    def _looked_up(self, operation: Any, inputs: Sequence[tf.Tensor], predicate: tf.Tensor | None) -> tf.Tensor:
        """Rows of a variable: read as a whole, which costs nothing, and looked up in."""
        handle, numbers = inputs
        if predicate is not None:
            numbers = tf.where(predicate, numbers, tf.zeros_like(numbers))
        table = tf.raw_ops.ReadVariableOp(resource=handle, dtype=operation.outputs[0].dtype)
        rows, batch = operation.outputs[0].shape.rank, operation.get_attr("batch_dims")
        if rows is None:
            raise Unexpandable
        table.set_shape([None] * (rows - numbers.shape.rank + 1 + batch) if table.shape.rank is None else table.shape)
        found = tf.gather(table, numbers, batch_dims=batch)
        found.set_shape(operation.outputs[0].shape)
        self._note(found, inputs, predicate)
        return found

    # -- functions -----------------------------------------------------------------------------------------------------

    def _body(self, operation: Any, attribute: str) -> Any:
        return self._graph(operation, operation.get_attr(attribute).name)

    def _graph(self, operation: Any, name: str) -> Any:
        found = private.body_of(operation.graph, name)
        if found is None:
            raise Unexpandable
        return found

    def _copied(self, body: Any, given: Sequence[Value], predicate: tf.Tensor | None) -> list[Value]:
        """Inline a function: return its results for the given values."""
        private.share_functions(body, self.graph)
        values: dict[int, Value] = {id(tensor): value for tensor, value in zip(body.inputs, given, strict=True)}
        for operation in flop_estimate.in_order(body.outputs, set(values)):
            if operation.type == "Placeholder" or all(id(output) in values for output in operation.outputs):
                continue
            found = self._made(operation, [values[id(tensor)] for tensor in operation.inputs], predicate)
            # A function that was differentiated before may give more than a call of it knows.
            values.update((id(output), value) for output, value in zip(operation.outputs, found, strict=False))
        return [values[id(tensor)] for tensor in body.outputs]

    def _chosen(
        self,
        arms: Sequence[Any],
        number: tf.Tensor,
        known: int | None,
        given: Sequence[Value],
        predicate: tf.Tensor | None,
    ) -> list[Value]:
        """Return the result of the arm with this number (beyond the last, of the last); the number may be `known`."""
        if known is not None:
            return self._copied(arms[known], given, predicate)
        varies = id(number) in self.of_lane
        is_here = [tf.equal(number, place) for place in range(len(arms) - 1)]
        is_here.append(tf.logical_not(tf.reduce_any(tf.stack(is_here))))
        results: list[Value] | None = None
        for arm, here in reversed([*zip(arms, is_here, strict=True)]):
            self._note(here, [number], None)
            both = here if predicate is None else tf.logical_and(predicate, here)
            if predicate is not None:
                self._note(both, [predicate, here], None)
            passed = [self._gate(each, here, varies) for each in given]
            found = self._copied(arm, passed, both)
            pairs = None if results is None else zip(found, results, strict=True)
            results = found if pairs is None else [self._either(here, *each) for each in pairs]
        assert results is not None, "a conditional has two arms, a case one at least"
        return results

    def _gate(self, value: Value, here: tf.Tensor, varies: bool) -> Value:
        """The same value, to which only those lanes give a gradient back that are `here`."""
        if isinstance(value, list):
            return [self._gate(each, here, varies) for each in value]
        if not tf.is_tensor(value) or not value.dtype.is_floating or (varies and id(value) not in self.of_lane):
            return value  # what all share is met under a predicate: as a lane's own it would be one for each lane
        found = tf.where(here, value, tf.stop_gradient(value))
        self._note(found, [value, here], None)
        return found

    def _either(self, here: tf.Tensor, one: Value, other: Value) -> Value:
        if one is None or other is None:
            return None
        if isinstance(one, list) or isinstance(other, list):
            if not isinstance(one, list) or not isinstance(other, list) or len(one) != len(other):
                raise Unexpandable
            return [self._either(here, *each) for each in zip(one, other, strict=True)]
        first, second = self._tensor(one), self._tensor(other)
        if first.dtype in (tf.variant, tf.resource) or not first.shape.is_compatible_with(second.shape):
            raise Unexpandable
        found = tf.where(here, first, second)
        self._note(found, [first, second, here], None)
        return found

    def _turns(self, operation: Any, given: Sequence[Value], predicate: tf.Tensor | None) -> list[Value]:
        """Unroll a loop that makes the same number of turns in every lane."""
        condition, body = self._body(operation, "cond"), self._body(operation, "body")
        values = [*given]
        for _ in range(TURNS + 1):
            goes_on = static(self._copied(condition, values, predicate)[0])
            if goes_on is None:
                raise Unexpandable
            if not bool(goes_on):
                return values
            values = self._copied(body, values, predicate)
        raise Unexpandable

    def _tensor(self, value: Value) -> tf.Tensor:
        if value is None or isinstance(value, list):
            raise Unexpandable
        return tf.constant(value) if isinstance(value, np.ndarray | np.generic) else value
