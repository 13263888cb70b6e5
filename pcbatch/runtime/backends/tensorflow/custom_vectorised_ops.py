"""Function calls in a graph that carry their own vectorisation rule, and whose gradients do as well.

The rule lies on the operation itself, where TensorFlow's vectoriser looks first. It gets the operation's inputs,
arguments first and captured values after them, each stacked (`[lanes, ...]`) or the same for all lanes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import tensorflow as tf

from pcbatch.errors import PieceRefusalError
from pcbatch.runtime.backends.tensorflow import private

Body = Callable[..., list[tf.Tensor]]

_lane_graph: ContextVar[Any] = ContextVar("lane_graph", default=None)


def is_tracing_lane() -> bool:
    """Return whether the present graph is a trace for one lane, about to be vectorised."""
    return _lane_graph.get() is tf.compat.v1.get_default_graph()


@contextlib.contextmanager
def tracing_lane() -> Iterator[None]:
    """Everything traced now, in this very graph, is about to be vectorised."""
    token = _lane_graph.set(tf.compat.v1.get_default_graph())
    try:
        yield
    finally:
        _lane_graph.reset(token)


@dataclass(frozen=True)
class WholeCall:
    """One call of `body(lanes, *arguments)` for the whole batch.

    The arguments at `stacked` places are repeated for the lanes where they do not differ; the others, and what the
    function captures, must be the same for all lanes: else `refusal(place)` is raised, place None for captured values.
    """

    body: Body
    stacked: tuple[int, ...]
    refusal: Callable[[int | None], Exception]

    def outputs(self, call: _Function, inputs: Any) -> list[tf.Tensor]:
        """`[lanes, ...]` outputs."""
        lanes = private.lanes_of(inputs)
        arguments = []
        for place, (tensor, is_stacked, _) in enumerate(inputs.inputs):
            if place >= call.arguments or place not in self.stacked:
                if is_stacked:
                    raise self.refusal(place if place < call.arguments else None)
            elif not is_stacked:
                tensor = tf.broadcast_to(tensor, tf.concat([lanes, tf.shape(tensor)], axis=0))
            if place < call.arguments:
                arguments.append(tensor)
        return self.body(lanes[0], *arguments)

    def gradient(self, count: int, upstreams: int, vector_jacobian: Callable[[Body], Body]) -> WholeCall:
        """The rule for the gradient with respect to the stacked arguments, which takes `upstreams` more."""

        def body(lanes: tf.Tensor, *arguments: tf.Tensor) -> list[tf.Tensor]:
            return vector_jacobian(lambda *leaves: self.body(lanes, *leaves))(*arguments)

        return WholeCall(body, (*self.stacked, *range(count, count + upstreams)), self.refusal)

    def covers(self, place: int) -> bool:
        """Return whether gradients with respect to the argument at `place` come from `body`.

        Of an argument without a lane axis each lane has a gradient of its own, but `body` has only their sum.
        """
        return place in self.stacked


@dataclass(frozen=True)
class Loop:
    """One call of the function for each lane, in a loop."""

    def outputs(self, call: _Function, inputs: Any) -> list[tf.Tensor]:
        """`[lanes, ...]` outputs."""
        return _looped(call, call.concrete.graph.outputs, inputs)

    def gradient(self, count: int, upstreams: int, vector_jacobian: Callable[[Body], Body]) -> Loop:
        """The rule for the gradient."""
        return self

    def covers(self, place: int) -> bool:
        """Return whether gradients with respect to the argument at `place` are looped: all are."""
        return True


def _looped(
    call: Callable[[Sequence[tf.Tensor]], Sequence[tf.Tensor]], outputs: Sequence[tf.Tensor], inputs: Any
) -> list[tf.Tensor]:
    """The results, `[lanes, ...]`, of one call for each lane; `outputs` are like those of one."""

    def one(lane: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return tuple(call([tf.gather(t, lane) if is_stacked else t for t, is_stacked, _ in inputs.inputs]))

    specs = tuple(tf.TensorSpec(output.shape, output.dtype) for output in outputs)
    return list(tf.map_fn(one, tf.range(private.lanes_of(inputs)[0]), fn_output_signature=specs))


@dataclass(frozen=True, eq=False)
class Run:
    """One run of a batched function: `body(varies, *arguments)`, which says of each whether it is `[lanes, ...]`.

    If none is it gives one row. What the function captures is its own affair. Gradients are those by the arguments at
    the `watched` places, of the others nobody asks for any; they come from the same run as the values, which is taped.
    """

    body: Callable[..., list[tf.Tensor]]
    watched: frozenset[int]
    _taped: WeakKeyDictionary[Any, Any] = field(default_factory=WeakKeyDictionary)
    """The runs, by the graph that they are in."""

    def outputs(self, call: _Function, inputs: Any) -> list[tf.Tensor]:
        """`[lanes, ...]` outputs."""
        return self.taped(inputs, call.arguments)[1]

    def taped(self, inputs: Any, count: int) -> tuple[tf.GradientTape, list[tf.Tensor], list[tf.Tensor]]:
        """Run on the first `count` of `inputs`: return a tape, the results, `[lanes, ...]`, and the watched tensors."""
        graph, given, lanes = tf.compat.v1.get_default_graph(), inputs.inputs[:count], private.lanes_of(inputs)
        key = tuple(id(tensor) for tensor, _, _ in given)
        known = self._taped.setdefault(graph, {})
        if key not in known:
            # Each lane has a gradient of its own by what it shares with the others, too.
            apart = self.watched
            varies = [is_stacked or place in apart for place, (_, is_stacked, _) in enumerate(given)]
            rows = distinct(
                tensor
                if is_stacked or not differs
                else tf.broadcast_to(tensor, tf.concat([lanes, tf.shape(tensor)], 0))
                for (tensor, is_stacked, _), differs in zip(given, varies, strict=True)
            )
            with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
                sources = [rows[place] for place in sorted(self.watched)]
                tape.watch(sources)
                found = self.body(varies, *rows)
                if not any(varies):  # it has run once
                    found = [tf.broadcast_to(each, tf.concat([lanes, tf.shape(each)[1:]], 0)) for each in found]
            known[key] = tape, found, sources, given  # whose ids are not used again
        return known[key][:3]

    def gradient(self, count: int, upstreams: int, vector_jacobian: Callable[[Body], Body]) -> Undone:
        """The rule for the gradient by the watched arguments."""
        return Undone(self, count)

    def covers(self, place: int) -> bool:
        """Return whether gradients with respect to the argument at `place` are asked for."""
        return place in self.watched


def distinct(tensors: Iterable[tf.Tensor]) -> list[tf.Tensor]:
    """Return tensors of which none is there twice: a gradient by one that is would count both places at each."""
    found: list[tf.Tensor] = []
    for each in tensors:
        found.append(tf.identity(each) if any(each is other for other in found) else each)
    return found


@dataclass(frozen=True)
class Undone:
    """The gradient through a `run` of `count` arguments, from those by its results."""

    run: Run
    count: int

    def outputs(self, call: _Function, inputs: Any) -> list[tf.Tensor]:
        """`[lanes, ...]` outputs."""
        tape, found, sources = self.run.taped(inputs, self.count)
        lanes = private.lanes_of(inputs)
        upstreams = [
            tensor if is_stacked else tf.broadcast_to(tensor, tf.concat([lanes, tf.shape(tensor)], 0))
            for tensor, is_stacked, _ in inputs.inputs[self.count : call.arguments]
        ]
        targets = [each for each in found if _differentiable(each)]
        gradients = tape.gradient(targets, sources, upstreams, tf.UnconnectedGradients.ZERO)
        return [tf.convert_to_tensor(each) for each in gradients]


Rule = WholeCall | Loop | Run | Undone


@dataclass(frozen=True)
class _Function:
    """A traced function of `arguments` tensors and of its captures."""

    concrete: Any
    arguments: int

    def __call__(self, inputs: Sequence[tf.Tensor], stateful: bool = False) -> list[tf.Tensor]:
        """Call it, captured values given as well; as a `stateful` operation, or if it has one."""
        operations = self.concrete.graph.get_operations()
        stateful = stateful or any(op.op_def is not None and op.op_def.is_stateful for op in operations)
        call = tf.raw_ops.StatefulPartitionedCall if stateful else tf.raw_ops.PartitionedCall
        found = self.concrete.graph.outputs
        outputs = call(args=list(inputs), Tout=[output.dtype for output in found], f=self.concrete)
        for output, known in zip(outputs, found, strict=True):
            output.set_shape(known.shape)
        return list(outputs)


def call(body: Body, arguments: Sequence[tf.Tensor], rule: Rule | None, name: str) -> list[tf.Tensor]:
    """`body(*arguments)`, a list of tensors, as one operation that `rule` vectorises; None is TensorFlow's own rules.

    Tapes see the operation, not what is inside it: its gradient is again such an operation.
    """
    named = tf.autograph.experimental.do_not_convert(lambda *leaves: body(*leaves))
    named.__name__ = "".join(letter if letter.isalnum() else "_" for letter in name)
    specs = [tf.TensorSpec(argument.shape, argument.dtype) for argument in arguments]
    concrete = tf.function(named, autograph=False).get_concrete_function(*specs)
    function = _Function(concrete, len(arguments))
    inputs = [*arguments, *concrete.captured_inputs]
    # XLA must never see the function of one example, which it may have no kernels for; stateful is what pfor converts
    # even where no input differs by lane.
    always = isinstance(rule, (WholeCall, Run, Undone)) and is_tracing_lane()
    with private.unrecorded():
        outputs = function(inputs, stateful=always)

    def convert(given: Any) -> list[tuple[tf.Tensor, bool]]:
        assert rule is not None
        if not always and not any(is_stacked for _, is_stacked, _ in given.inputs):
            return [(output, False) for output in function([tensor for tensor, _, _ in given.inputs])]
        return [(output, True) for output in rule.outputs(function, given)]

    if rule is not None:
        private.set_rule(outputs[0].op, convert)
    if isinstance(rule, (WholeCall, Run, Undone)):
        outputs[0].op.pcbatch_whole = name
        outputs[0].op.pcbatch_run = not isinstance(rule, WholeCall)
    for variable in private.trainable_variables(concrete):
        tf.convert_to_tensor(variable)  # reading it is what makes a tape watch it

    def backward(*upstreams: tf.Tensor) -> list[tf.Tensor | None]:
        return _gradients(body, arguments, concrete, upstreams, rule, name)

    private.record_as_one(name, outputs, inputs, backward)
    if not tf.executing_eagerly():
        private.set_gradient(outputs[0].op, backward)
    return outputs


def repeated(
    many: Callable[[Sequence[tf.Tensor], Any], Sequence[tf.Tensor | None]], tensors: Sequence[tf.Tensor], count: int
) -> list[tf.Tensor | None]:
    """`many(tensors, 1)`, without the axis of runs, as one operation that `many` vectorises; None for what it lacks.

    The first `count` tensors are `[lanes, ...]`: of many runs `many` gets `[runs * lanes, ...]`. Where others differ by
    run, one run is made after another. Nobody takes a gradient through the operation.
    """
    flags: list[bool] = []

    def body(*leaves: tf.Tensor) -> list[tf.Tensor]:
        found = [None if each is None else tf.convert_to_tensor(each) for each in many(list(leaves), 1)]
        flags[:] = [each is not None for each in found]
        return [each[0] for each in found if each is not None]

    named = tf.autograph.experimental.do_not_convert(lambda *leaves: body(*leaves))
    specs = [tf.TensorSpec(each.shape, each.dtype) for each in tensors]
    function = _Function(tf.function(named, autograph=False).get_concrete_function(*specs), len(tensors))
    outputs = function([*tensors, *function.concrete.captured_inputs])

    def rows(tensor: tf.Tensor, is_stacked: bool, runs: tf.Tensor) -> tf.Tensor:
        if not is_stacked:
            tensor = tf.broadcast_to(tensor, tf.concat([[runs], tf.shape(tensor)], 0))
        return tf.reshape(tensor, tf.concat([[-1], tf.shape(tensor)[2:]], 0))

    def convert(inputs: Any) -> list[tuple[tf.Tensor, bool]]:
        if any(is_stacked for _, is_stacked, _ in inputs.inputs[count:]):
            return [(output, True) for output in Loop().outputs(function, inputs)]
        runs = private.lanes_of(inputs)[0]
        given = [rows(tensor, is_stacked, runs) for tensor, is_stacked, _ in inputs.inputs[:count]]
        found = many([*given, *(tensor for tensor, _, _ in inputs.inputs[count : function.arguments])], runs)
        return [(tf.convert_to_tensor(each), True) for each in found if each is not None]

    private.set_rule(outputs[0].op, convert)
    remaining = iter(outputs)
    return [next(remaining) if flag else None for flag in flags]


def let_repeat(outputs: Sequence[tf.Tensor]) -> None:
    """Let the call of a function that gives `outputs` be vectorised as one call after another, not what is in it."""
    operation = outputs[0].op if outputs else None
    if operation is None or operation.type not in ("PartitionedCall", "StatefulPartitionedCall"):
        return

    def again(inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        graph, types = tf.compat.v1.get_default_graph(), [output.dtype for output in operation.outputs]
        private.share_functions(operation.graph, graph)
        return list(private.operation(graph, operation.type, inputs, types, operation.node_def.attr))

    def convert(inputs: Any) -> list[tuple[tf.Tensor, bool]]:
        if not any(is_stacked for _, is_stacked, _ in inputs.inputs):
            return [(output, False) for output in again([tensor for tensor, _, _ in inputs.inputs])]
        return [(output, True) for output in _looped(again, operation.outputs, inputs)]

    private.set_rule(operation, convert)


def batched_forms(graph: Any) -> list[str]:
    """The names of the functions called in a graph that have a form of their own for the whole batch."""
    names = (getattr(operation, "pcbatch_whole", None) for operation in graph.get_operations())
    return [name for name in names if name is not None]


def is_run(operation: Any) -> bool:
    """Return whether an operation is a run of a batched function, see `Run`."""
    return getattr(operation, "pcbatch_run", False)


def is_batched_form(operation: Any) -> bool:
    """Return whether an operation is computed by a form of its own for the whole batch, see `WholeCall`."""
    return hasattr(operation, "pcbatch_whole") and not is_run(operation)


def mark_alike(copy: Any, operation: Any) -> None:
    """Let the same call on other inputs be vectorised as `operation` is."""
    private.copy_rule(copy, operation)
    copy.pcbatch_whole, copy.pcbatch_run = operation.pcbatch_whole, operation.pcbatch_run


def runs(graph: Any) -> list[str]:
    """The names of the batched functions that are run by operations of a graph."""
    return [operation.pcbatch_whole for operation in graph.get_operations() if is_run(operation)]


# -- gradients ---------------------------------------------------------------------------------------------------------


def _differentiable(tensor: Any) -> bool:
    return tensor.dtype.is_floating or tensor.dtype.is_complex


def _gradients(
    body: Body,
    arguments: Sequence[tf.Tensor],
    concrete: Any,
    upstreams: Sequence[tf.Tensor | None],
    rule: Rule | None,
    name: str,
) -> list[tf.Tensor | None]:
    """The gradients with respect to the arguments and captured values, None for those that have none."""
    if isinstance(rule, Undone):
        raise PieceRefusalError(
            "PCB604",
            f"a second derivative through the batched function `{name.removesuffix('_gradient')}` is asked for",
            "take first derivatives only through calls of batched functions",
        )
    outputs = concrete.graph.outputs
    carrying = [place for place, output in enumerate(outputs) if _differentiable(output)]
    given = [tf.zeros_like(outputs[i]) if upstreams[i] is None else upstreams[i] for i in carrying]
    found: dict[int, tf.Tensor] = {}

    def taken(places: list[int], rule: WholeCall | Loop | Run | None) -> None:
        def vector_jacobian(function: Body) -> Body:
            return _vector_jacobian(function, places, carrying, len(arguments))

        ours = rule.gradient(len(arguments), len(given), vector_jacobian) if rule is not None else None
        if places:
            results = call(vector_jacobian(body), [*arguments, *given], ours, f"{name}_gradient")
            found.update(zip(places, results, strict=True))

    floats = [place for place, argument in enumerate(arguments) if _differentiable(argument)]
    taken([place for place in floats if rule is None or rule.covers(place)], rule)
    if not isinstance(rule, Run):
        taken([place for place in floats if place not in found], None)
    captured = _captured_gradients(body, arguments, concrete, carrying, given, rule, name)
    return [found.get(place) for place in range(len(arguments))] + captured


def _vector_jacobian(function: Body, places: list[int], carrying: list[int], count: int) -> Body:
    """`function`'s gradient at its first `count` arguments with respect to those at `places`.

    It takes as further arguments the gradients that come from its outputs at `carrying`.
    """

    def gradient(*leaves: tf.Tensor) -> list[tf.Tensor]:
        arguments, given = distinct(leaves[:count]), leaves[count:]
        with tf.GradientTape() as tape:
            sources = [arguments[place] for place in places]
            tape.watch(sources)
            outputs = function(*arguments)
            targets = [outputs[place] for place in carrying]
        return tape.gradient(targets, sources, given, tf.UnconnectedGradients.ZERO)

    return gradient


def _captured_gradients(
    body: Body,
    arguments: Sequence[tf.Tensor],
    concrete: Any,
    carrying: list[int],
    given: Sequence[tf.Tensor],
    rule: Rule | None,
    name: str,
) -> list[tf.Tensor | None]:
    """Return gradients with respect to the function's captures: variables, and values of the lane around it."""
    captured = concrete.captured_inputs
    variables = {id(variable.handle): variable for variable in private.trainable_variables(concrete)}
    places = [i for i, tensor in enumerate(captured) if id(tensor) in variables or _differentiable(tensor)]

    def gradient(*leaves: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            graph = tf.compat.v1.get_default_graph()
            sources = [variables.get(id(captured[i])) for i in places]
            sources = [
                private.capture(graph, captured[i]) if s is None else s for i, s in zip(places, sources, strict=True)
            ]
            tape.watch(sources)
            outputs = body(*leaves[: len(arguments)])
            targets = [outputs[place] for place in carrying]
        found = tape.gradient(targets, sources, leaves[len(arguments) :], tf.UnconnectedGradients.ZERO)
        return [tf.convert_to_tensor(each) for each in found]

    gradients: list[tf.Tensor | None] = [None] * len(captured)
    if places:
        ours = rule if isinstance(rule, Loop) else None
        for place, found in zip(places, call(gradient, [*arguments, *given], ours, f"{name}_gradient"), strict=True):
            gradients[place] = found
    return gradients
