"""Vectorisation rules of our own, for operations that TensorFlow's pfor has none for, or one that does not do.

They are in a copy of pfor (`private.copy_of_pfor`), so that they are ours alone. A rule gets the inputs of one
operation, each either *stacked* (`[lanes, ...]`) or the same for all lanes, and gives stacked outputs. The rules lie by
family in the files beside this one.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import flop_estimate, graphs, lists, private
from pcbatch.runtime.backends.tensorflow.rules import (
    arrays,
    convolutions,
    draws,
    extremes,
    functions,
    lane_after_lane,
    linear_algebra,
    slopes,
    straight,
)
from pcbatch.runtime.backends.tensorflow.rules.family import Applies, Rule
from pcbatch.runtime.backends.tensorflow.rules.lane_after_lane import RefusedError as RefusedError
from pcbatch.runtime.backends.tensorflow.rules.straight import Converted
from pcbatch.runtime.backends.tensorflow.xla_cpu import gathering, softplus

RULES: dict[str, Rule] = {
    **arrays.RULES,
    **convolutions.RULES,
    **draws.RULES,
    **linear_algebra.RULES,
}
"""Rules for operations that TensorFlow has none for, by operation; where it has one in a later version, that stays."""

CORRECTIONS: dict[str, tuple[Applies, Rule]] = {
    **arrays.CORRECTIONS,
    **convolutions.CORRECTIONS,
    **extremes.CORRECTIONS,
    **linear_algebra.CORRECTIONS,
    **functions.CORRECTIONS,
    **straight.CORRECTIONS,
    **slopes.CORRECTIONS,
    **softplus.CORRECTIONS,
}
"""Cases in which our rule stands in for TensorFlow's own, which gives up on them or gets them wrong."""


def _register(registry: MutableMapping[str, private.Converter], wrap: Callable[[tf.Tensor, bool], Any]) -> None:
    """Put our rules into the registry of a copy of pfor; operations that TensorFlow has a rule for keep it."""
    for name, rule in RULES.items():
        if name not in registry:
            registry[name] = functools.partial(_apply, rule, wrap)
    for name, (applies, rule) in CORRECTIONS.items():
        if name in registry:
            ours = functools.partial(_apply, rule, wrap)
            registry[name] = functools.partial(_choose, applies, ours, registry[name])
    for name in functions.LOOPS:
        if name in registry:
            registry[name] = functools.partial(functions.checked, registry[name])


READS = {"ReadVariableOp", *arrays.READS}
"""Operations on a variable's handle that can do with its value in place of the handle."""

Pairs = Sequence[tuple[tf.Tensor, tf.Tensor]]
"""Tensors of a graph that is vectorised, each with its conversion in the present one."""


Looped = Callable[[Any], None]
"""A callback for an operation without a rule, which runs lane after lane."""


@dataclass(frozen=True)
class Lane:
    """The context of lanes that are computed one after another.

    `failures` are scalar bools of the graph, whether each of its checks fails, in order; `taking_part` is bool
    `[lanes]`, None for all.
    """

    failures: Sequence[tf.Tensor] = ()
    taking_part: tf.Tensor | None = None
    looped: Looped | None = None
    is_native: bool = False
    """True for native code of one lane."""


def vectorized(
    graph: Any,
    outputs: Sequence[tf.Tensor],
    stacked: Pairs,
    same: Pairs,
    handles: Pairs,
    lanes: Any,
    lane: Lane,
) -> list[tf.Tensor]:
    """The tensors `outputs` of `graph`, which computes them for one lane, for all lanes: `[lanes, ...]`.

    What stands for `stacked` tensors is `[lanes, ...]`, `same` ones do not differ by lane; what is read from variables
    by these `handles` is what they are paired with. An operation that has no rule is run lane after `lane`, for
    those that take part, whose rows alone are of account.
    Operations are made in the present graph, a function's; `graph` stays as it is.

    Not `tf.vectorized_map`, which gathers where the number of lanes is unknown and broadcasts axes of length 1; nor the
    public `pfor`, which traces anew each time, into the present graph, and leaves what it has traced there.
    """
    conversion = Conversion(graph, lanes, outputs, lane)
    found = conversion.run(stacked, same, handles)
    return [row.t if row.is_stacked else tf.broadcast_to(row.t, [lanes, *row.t.shape]) for row in found]


def taken_over(
    graph: Any,
    outputs: Sequence[tf.Tensor],
    same: Pairs,
    handles: Pairs,
    failures: Sequence[tf.Tensor],
    is_native: bool = False,
) -> list[tf.Tensor]:
    """The same for one lane: the tensors `outputs` of `graph` as they are, made in the present graph.

    No rule is needed but for what has one of its own, and where XLA gets an operation wrong. A loop is not run once one
    of the `failures` before it holds: it may never end.
    """
    lane = Lane(failures, is_native=is_native)
    return [value.t for value in Conversion(graph, None, outputs, lane).run([], same, handles)]


def is_taken_as_it_is(operation: Any) -> bool:
    """Return whether `taken_over` makes the same operation, or others that XLA compiles wherever it compiles this."""
    if operation.type in (*READS, *functions.LOOPS) or (private.has_rule(operation) and operation.op_def.is_stateful):
        return False
    if any(each.dtype in (tf.variant, tf.resource) for each in (*operation.inputs, *operation.outputs)):
        return False
    made_otherwise = extremes.is_made_otherwise(operation) or draws.is_made_otherwise(operation)
    return not made_otherwise and not functions.has_corrections(operation)


class Conversion:
    """The tensors `outputs` of a graph on their way to all lanes, or, where `lanes` is None, to one.

    What is easy is converted here, what has no rule is run lane after lane, the rest is converted by pfor, which sees
    all before it.
    """

    def __init__(
        self,
        graph: Any,
        lanes: Any,
        outputs: Sequence[tf.Tensor],
        lane: Lane,
    ):
        self.graph, self.lanes, self.outputs, self.lane = graph, lanes, outputs, lane
        self.tensors: list[tf.Tensor] = []
        self.found: dict[int, Converted] = {}
        """The conversions of tensors, by their `id`."""
        self.given: set[int] = set()
        """The `id`s of tensors whose conversions were given beforehand."""
        self.done: set[int] = set()
        """The operations, by `id`, that have run lane after lane."""
        self.pfor: private.Conversion | None = None
        """Set up, which takes as long as a small piece, when something is not easy."""
        private.share_functions(graph, tf.compat.v1.get_default_graph())  # for operations that are taken as they are

    @functools.cached_property
    def operations(self) -> list[Any]:
        """The operations that the outputs depend on, inputs first."""
        used = flop_estimate.needed(self.outputs, self.given)
        found: dict[str, Any] = {}
        for last in self.graph.get_operations():
            pending = [last] if last.name in used else []
            while pending:  # a gradient gives a loop that was made before it more inputs
                operation = pending[-1]
                asked = (each for each in operation.inputs if id(each) not in self.given)
                missing = [each.op for each in asked if each.op.name not in found]
                pending += missing
                if not missing:
                    found[pending.pop().name] = operation
        return [*found.values()]

    def run(self, stacked: Pairs, same: Pairs, handles: Pairs) -> list[Converted]:
        """Convert the graph: return the conversions of its outputs."""
        present = tf.compat.v1.get_default_graph()
        known = [(handle, value) for handle, value in handles if {user.type for user in handle.consumers()} <= READS]
        read = [(user.outputs[0], value) for handle, value in handles for user in handle.consumers() if _is_read(user)]
        done = {id(inner) for inner, _ in (*known, *same)}
        given = {*self.found, *(id(inner) for inner, _ in (*stacked, *same, *known, *read))}
        used = flop_estimate.needed(self.outputs, given)
        # A capture that nothing reads, such as a variable's handle, would keep a program from the cache on disk.
        needed = [each for each in private.captures(self.graph) if id(each[1]) not in done and each[1].op.name in used]
        captured = [(inner, private.capture(present, outer)) for outer, inner in needed]
        for pairs, is_stacked in ((stacked, True), *((pairs, False) for pairs in (same, known, read, captured))):
            for inner, outer in pairs:
                self.give(inner, Converted(outer, is_stacked))
        self.given = set(self.found)
        for operation in self.operations:
            # A list is made when it is asked for: XLA would compile one that nobody takes, too.
            if operation.type in functions.LOOPS or not any(map(lists.is_list, operation.outputs)):
                self.convert(operation)
        return [self.value(output) for output in self.outputs]

    def give(self, tensor: tf.Tensor, value: Converted) -> None:
        """Let `value` stand for `tensor`."""
        self.tensors.append(tensor)
        self.found[id(tensor)] = value
        if self.pfor is not None:
            self.pfor.give(tensor, value.t, value.is_stacked)

    def convert(self, operation: Any) -> None:
        """Convert the outputs of an operation."""
        if id(operation) in self.done or all(id(output) in self.found for output in operation.outputs):
            return
        if operation.type in functions.LOOPS and self._is_apart(operation):
            self._lane_after_lane(operation, functions.refusal())
            return
        for tensor in operation.inputs:
            if id(tensor) not in self.found:
                self.convert(tensor.op)
            if id(operation) in self.done:
                return  # lane after lane, together with what its input could not be made without
        inputs = [self.found[id(tensor)] for tensor in operation.inputs]
        total = gathering.product(operation, inputs[0].t) if self.lane.is_native and inputs else None
        if total is not None:
            self.give(operation.outputs[0], Converted(total, False))
            return
        function = softplus.stands_in(operation)
        if function is not None:
            with tf.compat.v1.get_default_graph().name_scope(f"{operation.name}/pfor/"):
                self.give(operation.outputs[0], Converted(function(inputs[0].t), inputs[0].is_stacked))
            return
        outputs = straight.converted(operation, inputs)
        for family in (extremes, slopes, arrays, draws):
            outputs = outputs or family.same_for_all(operation, inputs)
        if outputs is None and (self.lanes is None or self._is_shared(operation, inputs)):
            outputs = self._of_one(operation, inputs)
        try:
            outputs = outputs or self._by_own_rule(operation) or self._inlined(operation, inputs)
            outputs = outputs or self._by_pfor(operation)
        except Exception as error:
            if self.lanes is None or not lane_after_lane.is_looped(error):
                raise
            self._lane_after_lane(operation, error)
            return
        for output, value in zip(operation.outputs, outputs, strict=True):
            self.give(output, value)

    def value(self, tensor: tf.Tensor) -> Converted:
        """Return the conversion of a tensor."""
        if id(tensor) not in self.found:
            self.convert(tensor.op)
        return self.found[id(tensor)]

    def _is_apart(self, loop: Any) -> bool:
        """Return whether a loop needs neither TensorFlow's rule nor a plain copy; converts no lists to find out."""
        if self.lanes is None:
            return bool(self.lane.failures)
        if not functions.has_lists(loop) and not graphs.in_outer_xla():
            return False
        varying = [lists.is_list(tensor) or self.value(tensor).is_stacked for tensor in loop.inputs]
        return functions.differs(loop, varying) or (graphs.in_outer_xla() and functions.has_lists(loop))

    def _of_one(self, operation: Any, inputs: Sequence[Converted]) -> list[Converted] | None:
        """An operation of one lane as it is; None for one that reads a variable's value, or has a rule that applies.

        pfor, which takes 50 ms to set up in a process, takes a stateless one as it is, too, if no input is
        stacked, whatever rule it has.
        """
        if operation.type in READS or (private.has_rule(operation) and operation.op_def.is_stateful):
            return None
        return straight.as_it_is(
            operation, [each.t for each in inputs], **functions.corrected(operation, self._function)
        )

    def _is_shared(self, operation: Any, inputs: Sequence[Converted]) -> bool:
        """Return whether an operation with functions that need corrections has no input that differs by lane."""
        return not any(each.is_stacked for each in inputs) and functions.has_corrections(operation)

    def _inlined(self, operation: Any, inputs: Sequence[Converted]) -> list[Converted] | None:
        """Inline a call of a function that needs corrections.

        pfor would take what no lane's value goes into as it is.
        """
        called = functions.called(operation) if functions.has_corrections(operation) else None
        if called is None or (self.lane.failures and functions.has_loops(operation)):
            return None
        body, results = called
        pairs = [(inner, each.t, each.is_stacked) for inner, each in zip(body.inputs, inputs, strict=True)]
        stacked, same = ([(inner, t) for inner, t, s in pairs if s == is_stacked] for is_stacked in (True, False))
        return Conversion(body, self.lanes, results, replace(self.lane, failures=())).run(stacked, same, [])

    def _by_own_rule(self, operation: Any) -> list[Converted] | None:
        """An operation that brings its own rule, in which something is made otherwise, by that rule.

        The rule's operations, and the functions that these run, are made otherwise in their turn.
        """
        if not (private.has_rule(operation) and functions.has_corrections(operation)):
            return None
        self._set_up_pfor()
        graph = private.new_graph("pcbatch_by_own_rule")
        with graph.as_default():
            found = self._by_pfor(operation)
        lane = Lane(is_native=self.lane.is_native)
        values = Conversion(graph, None, [each.t for each in found], lane).run([], [], [])
        return [Converted(value.t, each.is_stacked) for value, each in zip(values, found, strict=True)]

    def _function(self, body: Any, given: Sequence[tf.Tensor], results: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        lane = Lane(is_native=self.lane.is_native)
        found = Conversion(body, None, results, lane).run([], list(zip(body.inputs, given, strict=True)), [])
        return [each.t for each in found]

    def _set_up_pfor(self) -> private.Conversion:
        if self.pfor is None:
            lanes = 1 if self.lanes is None else self.lanes
            self.pfor = private.Conversion(private.copy_of_pfor(_register), self.graph, lanes)
            for tensor in self.tensors:
                value = self.found[id(tensor)]
                self.pfor.give(tensor, value.t, value.is_stacked)
        return self.pfor

    def _by_pfor(self, operation: Any) -> list[Converted]:
        pfor = self._set_up_pfor()
        found = [pfor.convert(output) for output in operation.outputs]
        if self.lanes is None:
            return [Converted(each.t[0] if each.is_stacked else each.t, False) for each in found]
        return [Converted(each.t, each.is_stacked) for each in found]

    def _lane_after_lane(self, operation: Any, reason: Exception) -> None:
        """Run an operation lane after lane, with those that belong to it.

        RefusedError with a `reason` where XLA could not compile that.
        """
        these = lane_after_lane.group(operation, self.operations, self.given, self.outputs)
        if graphs.in_outer_xla() and not these.is_bounded:
            raise lane_after_lane.RefusedError(operation, functions.refusal())
        if graphs.in_outer_xla() and not these.is_fixed:
            raise lane_after_lane.RefusedError(operation, reason) from reason
        given = [self.value(tensor) for tensor in these.inputs]
        # What comes after the group may fail for what it gives.
        failures = itertools.takewhile(lambda tensor: id(tensor) not in these.after, self.lane.failures)
        failed = [self.value(tensor) for tensor in failures]

        def one(values: list[tf.Tensor]) -> list[tf.Tensor]:
            lane = Conversion(self.graph, None, these.outputs, Lane())
            for tensor, value in zip(these.inputs, values, strict=True):
                lane.give(tensor, Converted(value, False))
            for each in these.operations:
                lane.convert(each)
            return [lane.found[id(output)].t for output in these.outputs]

        is_stacked = any(each.is_stacked for each in given)
        if is_stacked:
            going_on = self.lane.taking_part
            for each in failed:
                going_on = ~each.t if going_on is None else going_on & ~each.t
            outputs = lane_after_lane.looped(these, given, one, self.lanes, going_on)
            if self.lane.looped is not None:
                self.lane.looped(operation)
        elif self.lanes is None and failed:
            any_failed = functools.reduce(operator.or_, (each.t for each in failed))
            outputs = lane_after_lane.unless(any_failed, these, [each.t for each in given], one)
        else:
            outputs = one([each.t for each in given])
        for tensor, value in zip(these.outputs, outputs, strict=True):
            self.give(tensor, Converted(value, is_stacked))
        self.done.update(map(id, these.operations))  # nobody asks for the tensors between them


def _is_read(operation: Any) -> bool:
    return bool(operation.type == "ReadVariableOp")


_observed: ContextVar[list[str] | None] = ContextVar("observed", default=None)


@contextlib.contextmanager
def observed(names: list[str]) -> Iterator[None]:
    """Add to `names` the operations to which a rule of ours is applied inside."""
    token = _observed.set(names)
    try:
        yield
    finally:
        _observed.reset(token)


def _apply(rule: Rule, wrap: Callable[[tf.Tensor, bool], Any], inputs: Any) -> list[Any]:
    names = _observed.get()
    if names is not None:
        names.append(inputs.op_type)
    outputs = rule(inputs)
    return [wrap(output, True) for output in (outputs if isinstance(outputs, tuple) else (outputs,))]


def _choose(applies: Applies, ours: Callable[[Any], Any], theirs: Callable[[Any], Any], inputs: Any) -> Any:
    return ours(inputs) if applies(inputs) else theirs(inputs)
