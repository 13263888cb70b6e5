"""Tests of the internals of function graphs that `private` uses."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private
from pcbatch.runtime.backends.tensorflow.private import lookup
from tests.runtime.probes import ways
from tests.runtime.probes.use import NOTHING, Use


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


def _calling() -> Any:
    """A graph with an operation that calls a function, and its result for two lanes."""
    graph = private.new_graph("probe")
    doubled = tf.function(lambda x: x * 2.0, autograph=False).get_concrete_function(tf.TensorSpec([], tf.float32))
    with graph.as_default():
        (result,) = tf.raw_ops.PartitionedCall(args=[tf.constant(3.0)], Tout=[tf.float32], f=doubled)
    return graph, result


def _bodies_are_known() -> bool:
    graph, result = _calling()
    name = result.op.get_attr("f").name
    body, results = private.body_of(graph, name), private.results_of(graph, name)
    return len(body.inputs) == 1 and results is not None and [*map(id, results)] == [*map(id, body.outputs)]


def _stand_ins_are_known() -> bool:
    with tf.init_scope():
        handle = tf.Variable([1.0, 2.0], trainable=False).handle
    graph = private.new_graph("probe")
    with graph.as_default():
        read = tf.raw_ops.ReadVariableOp(resource=private.placeholder_like(handle), dtype=tf.float32)
    return bool(read.shape == [2])


def _functions_are_shared() -> bool:
    graph, result = _calling()
    name = result.op.get_attr("f").name

    def present() -> tf.Tensor:
        here = tf.compat.v1.get_default_graph()
        private.share_functions(graph, here)
        return tf.constant(name in {function.signature.name for function in here.as_graph_def().library.function})

    return bool(tf.function(present, autograph=False)())


def _operations_are_made() -> bool:
    outer, *inner = _graph_and_body()
    (graph, body), elsewhere = inner, _flags(outer)
    in_graph, in_body = _flags(graph), _flags(body)

    def make(here: Any, given: tf.Tensor) -> bool:
        with here.as_default():
            (output,) = private.operation(here, "LogicalAnd", [given, given], [tf.bool], {})
        return output.shape == [2]

    def create() -> None:
        with graph.as_default():
            graph.create_op("LogicalAnd", [in_graph, in_graph], [tf.bool])

    are_made = all(make(here, elsewhere) for here in inner)
    are_captured = all([each is elsewhere for each, _ in private.captures(here)] == [True] for here in inner)
    is_shorter = ways.is_shorter(lambda: make(body, in_body), than=lambda: make(graph, in_graph))
    return are_made and are_captured and is_shorter and ways.is_shorter(lambda: make(graph, in_graph), than=create)


def _stand_ins_are_made() -> bool:
    outer, graph, body = _graph_and_body()

    def capture(here: Any) -> bool:
        given = _flags(outer)
        stands = private.capture(here, given)
        return stands.shape == [2] and any(each is given and found is stands for each, found in private.captures(here))

    is_shorter = ways.is_shorter(lambda: capture(body), than=lambda: capture(graph))
    return is_shorter and capture(body) and capture(graph)


def _flags(graph: Any) -> tf.Tensor:
    """A new placeholder."""
    with graph.as_default():
        return tf.compat.v1.placeholder(tf.bool, [2])


def _graph_and_body() -> tuple[Any, Any, Any]:
    """Return two graphs, and a body that has no stand-ins for its captures."""
    return private.new_graph("outer"), private.new_graph("probe"), private.new_body("probe", lambda tensor: None)


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


def _reads_are_known() -> bool:
    variable, graph = tf.Variable(1.0), private.new_graph("probe")
    with graph.as_default():
        variable.read_value()
    return [each is variable for each in private.variables_read(graph)] == [True]


def _operations_are_watched() -> bool:
    seen = []

    def watch(kind: str, inputs: Any, attributes: Any) -> Any:
        seen.append((kind, private.in_product_of_bool(), len(inputs), "shrink_axis_mask" in attributes))
        return inputs

    with private.watched_graph("probe", watch).as_default():
        tf.compat.v1.placeholder(tf.bool, []) * 2.0
        tf.zeros(3)[tf.compat.v1.placeholder(tf.int32, [])]
    return {("Cast", True, 1, False), ("Placeholder", False, 0, False), ("StridedSlice", False, 4, True)} <= {*seen}


def _stacks_are_short() -> bool:
    graph = private.new_graph("probe")
    with private.short_stacks(), graph.as_default():
        ours = eval(compile("lambda: tf.zeros(3) + 1.0", lookup.__file__, "eval"), {"tf": tf})
        calls = eval(compile("make()", "<a user's>", "eval"), {"make": ours}).op.traceback
    files = [call.filename for call in calls]
    return "<a user's>" in files and lookup.__file__ not in files and tf.__file__ not in files


USES = (
    Use("graphs that capture", _graphs_capture, NOTHING),
    Use(
        "graphs around graphs",
        _outer_graphs_are_known,
        "a tensor of a tf.function cannot be an argument of a batched call in a function inside of that one",
    ),
    Use(
        "bodies of functions",
        _bodies_are_known,
        "what a call inside an operation costs is not estimated, and what XLA gets wrong in one is not put right",
    ),
    Use(
        "stand-ins for variables",
        _stand_ins_are_known,
        "functions that read variables, and in which something is to be put right, may be refused: a shape is unknown",
    ),
    Use(
        "functions of a graph",
        _functions_are_shared,
        "PCB580: a batched function cannot call a tf.function, nor anything that TensorFlow makes one of",
    ),
    Use("operations of ready tensors", _operations_are_made, "programs take longer to trace"),
    Use("stand-ins in bodies", _stand_ins_are_made, "programs take longer to trace"),
    Use("functions made of graphs", _functions_are_made, "programs take longer to trace"),
    Use("stacks of operations", _stacks_are_short, "each program that XLA compiles takes 0.8 MB more, for good"),
    Use("definitions of operations", _definitions_are_known, "PCB580: whether operations are pure cannot be checked"),
    Use(
        "scope of vectorized_map",
        _vectorized_map_has_its_scope,
        "a // or a[i] inside tf.vectorized_map is refused with an error of TensorFlow's own",
    ),
    Use(
        "variables of a graph",
        _reads_are_known,
        "gradients through a batched call whose helpers read variables fail with an error of TensorFlow's own",
    ),
    Use(
        "operations that are watched",
        _operations_are_watched,
        "in helpers a bool times a number is a bool, and no lane fails",
    ),
)
