"""Whether the TensorFlow that is installed has what `private` uses of its insides, and what is lost where it has not.

>>> [probe.name for probe in probes() if not probe.works]
[]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import native, private


@dataclass(frozen=True)
class Probe:
    """A use of TensorFlow's insides: whether it does what we rely on, and what pcbatch does where it does not."""

    name: str
    works: bool
    lost: str


@dataclass(frozen=True)
class Use:
    """A use that can be tried: `check()` raises, or gives something false, where it does not do what we rely on."""

    name: str
    check: Callable[[], Any]
    lost: str


def probes() -> tuple[Probe, ...]:
    """Every use, tried now, in graphs of its own: takes about a second."""
    return tuple(Probe(use.name, _works(use), use.lost) for use in USES)


def _works(use: Use) -> bool:
    try:
        return bool(use.check())
    except Exception:  # a version without it may raise anything
        return False


# -- the checks --------------------------------------------------------------------------------------------------------


def _graphs_capture() -> bool:
    outer, inner = tf.zeros(1000), private.new_graph("probe")  # what is small would be a constant
    with inner.as_default():
        placeholder = tf.compat.v1.placeholder(tf.float32, [1000])
        private.let_stand_for(inner, outer, placeholder)
        captured = private.capture(inner, outer)
    ((given, stands),) = private.captures(inner)
    return given is outer and stands is captured is placeholder and inner.inputs[0] is placeholder


def _outer_graphs_are_known() -> bool:
    def run() -> tf.Tensor:
        here = tf.compat.v1.get_default_graph()
        return tf.constant(private.around(private.new_graph("probe")) is here)

    return bool(tf.function(run, autograph=False)())


def _variables_are_known() -> bool:
    variable = tf.Variable(1.0)
    traced = tf.function(lambda: variable * 2.0, autograph=False).get_concrete_function()
    return [v is variable for v in private.trainable_variables(traced)] == [True]


def _calling() -> Any:
    """A graph with an operation that calls a function, and its result for two lanes."""
    graph = private.new_graph("probe")
    doubled = tf.function(lambda x: x * 2.0, autograph=False).get_concrete_function(tf.TensorSpec([], tf.float32))
    with graph.as_default():
        (result,) = tf.raw_ops.PartitionedCall(args=[tf.constant(3.0)], Tout=[tf.float32], f=doubled)
    return graph, result


def _bodies_are_known() -> bool:
    graph, result = _calling()
    body = private.body_of(graph, result.op.get_attr("f").name)
    return len(body.inputs) == len(body.outputs) == 1


def _functions_are_shared() -> bool:
    graph, result = _calling()
    name = result.op.get_attr("f").name

    def present() -> tf.Tensor:
        here = tf.compat.v1.get_default_graph()
        private.share_functions(graph, here)
        return tf.constant(name in {function.signature.name for function in here.as_graph_def().library.function})

    return bool(tf.function(present, autograph=False)())


def _operations_are_made() -> bool:
    outer, graph = private.new_graph("probe"), private.new_graph("probe")
    with outer.as_default():
        given = tf.compat.v1.placeholder(tf.bool, [2])
    with graph.as_default():
        (output,) = private.operation(graph, "LogicalAnd", [given, given], [tf.bool], {})
    ((captured, _),) = private.captures(graph)
    return hasattr(graph, "_create_op_internal") and captured is given and output.shape == [2]


def _functions_are_made() -> bool:
    def run() -> tf.Tensor:
        here = tf.compat.v1.get_default_graph()
        body = private.new_graph("probe_of_functions")
        with body.as_default():
            body.inputs = [tf.compat.v1.placeholder(tf.float32, [])]
            body.outputs = [body.inputs[0] * 2.0]
        function = private.function_of(body)
        private.add_function(here, function)
        types = tf.compat.v1.AttrValue(list=tf.compat.v1.AttrValue.ListValue(type=[tf.float32.as_datatype_enum]))
        attributes = {"Tin": types, "Tout": types, "f": private.function_attribute(function)}
        (found,) = private.operation(here, "PartitionedCall", [tf.constant(3.0)], [tf.float32], attributes)
        return found

    return private.makes_functions() and float(tf.function(run, autograph=False)()) == 6.0


def _calls_are_made() -> bool:
    factor = tf.constant(3.0)
    concrete = tf.function(lambda x: [x * factor], autograph=False).get_concrete_function(tf.constant(2.0))
    (found,) = private.call(concrete, [tf.constant(2.0)])
    return hasattr(concrete, "_call_flat") and float(found) == 6.0


def _functions_are_called_directly() -> bool:
    factor = tf.constant([3.0] * 1000)  # what is small would be no capture
    function = tf.function(lambda x: [x * 2.0, x * factor], autograph=False)
    direct = private.direct(function.get_concrete_function(tf.constant(2.0)))
    doubled, others = [] if direct is None else direct([tf.constant(2.0)])
    return float(doubled) == 4.0 and float(others[0]) == 6.0


def _definitions_are_known() -> bool:
    random, add = private.definition("RandomUniform"), private.definition("AddV2")
    return random.is_stateful and not add.is_stateful and private.definition("NoSuchOperation") is None


def _vectorized_map_has_its_scope() -> bool:
    scopes = []

    def noted(x: tf.Tensor) -> tf.Tensor:
        scopes.append(tf.get_current_name_scope())
        return x

    tf.function(lambda: tf.vectorized_map(noted, tf.zeros(2)), autograph=False)()
    return all(map(private.in_vectorized_map, scopes)) and not private.in_vectorized_map(tf.get_current_name_scope())


def _nothing_waits() -> bool:
    def two_effects() -> None:
        tf.raw_ops.PrintV2(input="1")
        tf.raw_ops.PrintV2(input="2")

    function = tf.function(two_effects, autograph=False, experimental_attributes=private.unordered())
    return not any(op.control_inputs for op in function.get_concrete_function().graph.get_operations())


def _composites_are_known() -> bool:
    class Own(tf.experimental.ExtensionType):  # type: ignore[misc]
        x: tf.Tensor

    return isinstance(Own(tf.constant(1)), private.composite_types())


def _xla_is_known() -> bool:
    def inside() -> tf.Tensor:
        nested = tf.function(lambda: tf.constant(private.in_xla(tf.compat.v1.get_default_graph())), autograph=False)
        return tf.constant(private.in_xla(tf.compat.v1.get_default_graph())) & nested()

    found = [bool(tf.function(inside, autograph=False, jit_compile=jit)()) for jit in (True, None)]
    return found == [True, False]


def _slices_are_updated() -> bool:
    update = private.update_slice()
    if update is None:
        return False
    found = tf.function(update, jit_compile=True)(tf.zeros(3), tf.ones(1), tf.constant([1]))
    return found.numpy().tolist() == [0.0, 1.0, 0.0]


def _slices_are_read() -> bool:
    part = private.dynamic_slice()
    if part is None:
        return False
    found = tf.function(part, jit_compile=True)(tf.range(3), tf.constant([1]), tf.constant([1]))
    return found.numpy().tolist() == [1]


def _modules_are_called() -> bool:
    return private.has_modules() and native.are_made()


def _tapes_pause() -> bool:
    x = tf.constant(3.0)
    outside = private.may_record()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        inside = private.may_record()
        with private.unrecorded():
            hidden = x * x
            shown = tf.identity(hidden)
        private.record_as_one("probe", [shown], [x], lambda upstream: [upstream * 7.0])
    return (outside, inside) == (False, True) and tape.gradient(hidden, x) is None and tape.gradient(shown, x) == 7.0


def _watchers_are_known() -> bool:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        before = private.is_watched([x])
        tape.watch(x)
        watched = private.is_watched([x * 2.0])
    return (before, watched, private.is_watched([x])) == (False, True, False)


def _reads_are_known() -> bool:
    variable, graph = tf.Variable(1.0), private.new_graph("probe")
    with graph.as_default():
        variable.read_value()
    return [each is variable for each in private.variables_read(graph)] == [True]


def _gradients_are_set() -> bool:
    graph = private.new_graph("probe")
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [])
        plain, own = tf.sin(x), tf.sin(x)
        private.set_gradient(own.op, lambda upstream: upstream * 7.0)
        custom = tf.custom_gradient(lambda y: (y * 2.0, lambda upstream: upstream * 5.0))(x)
        (found,) = tf.gradients(own, x)
    has_own = [private.has_own_gradient(each.op) for each in (plain, own, custom)]
    return has_own == [False, True, True] and "Mul" in found.op.type


class _Seen(np.ndarray):
    """An array of the probe's own, of which nobody else is asked."""


def _arrays_are_seen() -> bool:
    seen = []

    def conversion(value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
        if isinstance(value, _Seen):
            seen.append((tf.as_dtype(dtype or tf.string), private.in_operator()))
        return NotImplemented

    array = np.ones(1, np.int64).view(_Seen)
    with private.new_graph("probe").as_default(), private.asked_first((_Seen,), conversion) as is_asked:
        tf.compat.v1.placeholder(tf.int64, [1]) - array
        tf.subtract(tf.compat.v1.placeholder(tf.int64, [1]), array)
    return is_asked and seen == [(tf.int64, True), (tf.int64, False)]


def _operations_are_watched() -> bool:
    seen = []

    def watch(kind: str, inputs: Any, attributes: Any) -> Any:
        seen.append((kind, private.in_product_of_bool(), len(inputs), "shrink_axis_mask" in attributes))
        return inputs

    with private.watched_graph("probe", watch).as_default():
        tf.compat.v1.placeholder(tf.bool, []) * 2.0
        tf.zeros(3)[tf.compat.v1.placeholder(tf.int32, [])]
    return {("Cast", True, 1, False), ("Placeholder", False, 0, False), ("StridedSlice", False, 4, True)} <= {*seen}


def _inputs_are_changed() -> bool:
    graph = private.new_graph("probe")
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [])
        first, second = tf.sin(x), tf.exp(x)
        last = tf.cos(first)
        private.update_input(last.op, 0, second)
    return private.rewires() and last.op.inputs[0] is second and not first.consumers()


def _no_rules(registry: Any, wrap: Any) -> None:
    """Leave a copy of pfor as it is."""


def _vectorized(body: Callable[[tf.Tensor], tf.Tensor], register: Callable[[Any, Any], None] = _no_rules) -> Any:
    """`body`, of one lane's number, for the numbers 1 and 2 by a copy of pfor with such rules of its own."""
    graph = private.new_graph("probe")
    with graph.as_default():
        number = tf.compat.v1.placeholder(tf.float32, [])
        result = body(number)
    conversion = private.Conversion(private.copy_of_pfor(register), graph, 2)
    conversion.give(number, tf.constant([1.0, 2.0]), True)
    return conversion.convert(result)


def _pfor_converts() -> bool:
    def run() -> tf.Tensor:
        found = _vectorized(lambda x: x * 2.0 + 1.0)
        return found.t if found.is_stacked else tf.zeros(2)

    return tf.function(run, autograph=False)().numpy().tolist() == [3.0, 5.0]


def _copies_are_apart() -> bool:
    def squares(x: tf.Tensor) -> tf.Tensor:
        return tf.raw_ops.Square(x=x)

    def run() -> tf.Tensor:
        theirs = tf.vectorized_map(squares, tf.constant([1.0, 2.0]))
        return tf.stack([_vectorized(squares, _halving).t, _vectorized(squares).t, theirs])

    return tf.function(run, autograph=False)().numpy().tolist() == [[0.5, 1.0], [1.0, 4.0], [1.0, 4.0]]


def _halving(registry: Any, wrap: Any) -> None:
    """Let a copy of pfor halve where it should square."""
    registry["Square"] = lambda inputs: [wrap(inputs.stacked_input(0) / 2.0, True)]


def _rules_on_operations_are_found() -> bool:
    seen = []

    def rule(inputs: Any) -> Iterator[tuple[tf.Tensor, bool]]:
        seen.append((private.is_tensorflows(inputs), tf.get_static_value(private.lanes_of(inputs))))
        yield inputs.stacked_input(0) * 5.0, True

    def marked(x: tf.Tensor) -> tf.Tensor:
        result = tf.sin(x)
        private.set_rule(result.op, rule)
        return result

    def run() -> tf.Tensor:
        return _vectorized(marked).t + tf.vectorized_map(marked, tf.constant([1.0, 2.0]))

    found = tf.function(run, autograph=False)().numpy().tolist()
    return found == [10.0, 20.0] and [theirs for theirs, _ in seen] == [False, True]


def _failing_operations_are_found() -> bool:
    found: list[str] = []

    def run() -> tf.Tensor:
        try:
            _vectorized(lambda x: tf.unique(x[None]).y)
        except Exception as error:  # whatever pfor raises
            found.extend(operation.type for operation in private.operations_being_converted(error))
        return tf.zeros([])

    tf.function(run, autograph=False)()
    return found[-1:] == ["Unique"]


def _definitions_are_called() -> bool:
    """Functions as plain data, which TensorFlow runs by name."""
    if not private.keeps_functions():
        return False

    def plus(x: tf.Tensor) -> tf.Tensor:
        return x + 1.0

    concrete = tf.function(plus, autograph=False).get_concrete_function(tf.TensorSpec([], tf.float32))
    _, (*_, definition) = private.definitions(concrete)
    copy = type(definition)()
    copy.CopyFrom(definition)
    copy.signature.name = "pcbatch_probe"
    private.define(copy)
    (found,) = private.call_defined("pcbatch_probe", [tf.constant(1.0)], 1)
    private.undefine("pcbatch_probe")
    return float(found) == 2.0


_NOTHING = "PCB580: nothing that is not plain Python can be traced, so no batched function runs"

USES = (
    Use("graphs that capture", _graphs_capture, _NOTHING),
    Use(
        "graphs around graphs",
        _outer_graphs_are_known,
        "a tensor of a tf.function cannot be an argument of a batched call in a function inside of that one",
    ),
    Use("variables of a traced function", _variables_are_known, "no gradients of variables through pcbatch.primitive"),
    Use("bodies of functions", _bodies_are_known, "what a call inside an operation costs is not estimated"),
    Use(
        "functions of a graph",
        _functions_are_shared,
        "PCB580: a batched function cannot call a tf.function, nor anything that TensorFlow makes one of",
    ),
    Use("operations of ready tensors", _operations_are_made, "programs take longer to trace"),
    Use("functions made of graphs", _functions_are_made, "programs take longer to trace"),
    Use("calls of traced functions", _calls_are_made, "each call of a program takes longer"),
    Use("calls without a look", _functions_are_called_directly, "each warm call of a program takes longer"),
    Use("functions as data", _definitions_are_called, "pcbatch.cache keeps nothing"),
    Use(
        "determinism",
        lambda: private.is_deterministic() is not None,
        "pcbatch.cache does not tell programs apart that differ in enable_op_determinism alone",
    ),
    Use("definitions of operations", _definitions_are_known, "PCB580: whether operations are pure cannot be checked"),
    Use(
        "scope of vectorized_map",
        _vectorized_map_has_its_scope,
        "a // or a[i] inside tf.vectorized_map is refused with an error of TensorFlow's own",
    ),
    Use("functions without an order", _nothing_waits, "programs take longer to run without XLA"),
    Use(
        "composite values",
        _composites_are_known,
        "a value of an extension type as an argument is refused with an error of TensorFlow's own",
    ),
    Use(
        "being inside XLA",
        _xla_is_known,
        "all is taken to run without XLA: nothing is tuned to it; a recursion or a fault inside a jit_compile=True "
        "function of the user's own fails with a message of XLA's. A warning says so",
    ),
    Use(
        "update of a slice",
        _slices_are_updated,
        "reading large arrays under XLA takes longer; as without native functions",
    ),
    Use("part of an array", _slices_are_read, "as without native functions"),
    Use("native functions", _modules_are_called, "cheap programs run in lockstep, which takes several times as long"),
    Use(
        "tapes that pause",
        _tapes_pause,
        "a batched call under a gradient tape fails with an error of TensorFlow's own; PCB580 for calls of "
        "pcbatch.primitive and pcbatch.fallback functions",
    ),
    Use(
        "who watches",
        _watchers_are_known,
        "under any tape every batched call is recorded, whether the tape watches it or not",
    ),
    Use(
        "variables of a graph",
        _reads_are_known,
        "gradients through a batched call whose helpers read variables fail with an error of TensorFlow's own",
    ),
    Use(
        "gradients of operations",
        _gradients_are_set,
        "no gradients through pcbatch.primitive; conditionals under a tape lose a gradient of one's own in an arm",
    ),
    Use(
        "inputs that change",
        _inputs_are_changed,
        "PCB603 for conditionals, and under XLA for loops, in lines that a gradient flows through",
    ),
    Use(
        "arrays that become tensors",
        _arrays_are_seen,
        "a constant array of NumPy's is cut to the dtype of what it meets, floats beside an int to ints",
    ),
    Use(
        "operations that are watched",
        _operations_are_watched,
        "in helpers a bool times a number is a bool, and no lane fails",
    ),
    Use("pfor converts", _pfor_converts, "PCB580: batched functions run with backend='reference' only"),
    Use("a copy of pfor", _copies_are_apart, "PCB580: batched functions run with backend='reference' only"),
    Use(
        "rules on operations",
        _rules_on_operations_are_found,
        "TensorFlow's rules batch pcbatch.primitive and pcbatch.fallback functions; draws trace ten times as long",
    ),
    Use("the operation that failed", _failing_operations_are_found, "PCB402 becomes an error of TensorFlow's own"),
)
