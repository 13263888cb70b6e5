"""Operations made of ready tensors give what TensorFlow's functions give; constants belong to one graph each."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import TensorFlowBackend, private, raw_ops

BACKEND = TensorFlowBackend()
NAN = float("nan")
FLOATS, OTHERS = np.array([1.0, NAN, -0.0], np.float32), np.array([2.0, 3.0, NAN], np.float32)
INTS, MORE = np.array([1, -2, 3], np.int32), np.array([3, -2, 1], np.int32)
MASK, ALSO = np.array([True, False, True]), np.array([True, True, False])
MATRIX = np.arange(6, dtype=np.float32).reshape(3, 2)

OPERATIONS = {
    "select": (raw_ops.select, tf.where, (MASK, FLOATS, OTHERS)),
    "select of a scalar": (raw_ops.select, tf.where, (MASK, FLOATS, np.float32(7.0))),
    "equal": (raw_ops.equal, tf.equal, (FLOATS, OTHERS)),
    "equal to a column": (raw_ops.equal, tf.equal, (INTS[:, None], MORE)),
    "less": (raw_ops.less, tf.less, (FLOATS, OTHERS)),
    "at most": (raw_ops.at_most, tf.less_equal, (INTS, MORE)),
    "minimum": (raw_ops.minimum, tf.minimum, (INTS, MORE)),
    "add": (raw_ops.add, tf.add, (INTS, MORE)),
    "both": (raw_ops.both, tf.logical_and, (MASK, ALSO)),
    "cast a bool": (lambda x: raw_ops.cast(x, tf.int32), lambda x: tf.cast(x, tf.int32), (MASK,)),
    "cast to itself": (lambda x: raw_ops.cast(x, tf.float32), lambda x: tf.cast(x, tf.float32), (FLOATS,)),
    "cast to bytes": (lambda x: raw_ops.cast(x, tf.uint8), lambda x: tf.cast(x, tf.uint8), (MASK,)),
    "cast to double": (lambda x: raw_ops.cast(x, tf.float64), lambda x: tf.cast(x, tf.float64), (FLOATS,)),
    "bitcast": (lambda x: raw_ops.bitcast(x, tf.int32), lambda x: tf.bitcast(x, tf.int32), (FLOATS,)),
    "reshape": (lambda x: raw_ops.reshape(x, (2, -1)), lambda x: tf.reshape(x, (2, -1)), (MATRIX,)),
    "expanded": (raw_ops.expanded, lambda x: tf.expand_dims(x, 1), (MATRIX,)),
    "first column": (raw_ops.first_column, lambda x: x[:, 0], (MATRIX,)),
    "product": (raw_ops.product, tf.matmul, (MATRIX, MATRIX[:2, :1])),
    "unstack": (lambda x: tf.stack(raw_ops.unstack(x, 3)), tf.identity, (INTS,)),
    "numbers": (lambda x: x + raw_ops.numbers(3), lambda x: x + tf.range(3), (INTS,)),
}


def traced(function, *arrays, jit=False):
    """`function` as a program is traced."""

    def program(*given):
        with raw_ops.reusing():
            return function(*given)

    return tf.function(program, autograph=False, jit_compile=jit)(*map(tf.constant, arrays))


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("where", ["at once", "in a graph", "in a program", "in a compiled program"])
def test_what_they_give(name, where):
    ours, theirs, arrays = OPERATIONS[name]
    wanted = theirs(*map(tf.constant, arrays))
    if where == "at once":
        found = ours(*map(tf.constant, arrays))
    elif where == "in a graph":
        found = tf.function(ours, autograph=False)(*map(tf.constant, arrays))
    else:
        found = traced(ours, *arrays, jit=where == "in a compiled program")
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)


def test_a_program_has_each_constant_once_for_each_graph():
    """Of an arm's constants none is the other arm's, nor one from around the two."""
    graphs = []

    def arm(x):
        graphs.append(tf.compat.v1.get_default_graph())
        return [x + raw_ops.constant(5) + raw_ops.constant(5) + raw_ops.constant(6)]

    def program(x):
        x = x + raw_ops.constant(5) + raw_ops.constant(5)
        graphs.append(tf.compat.v1.get_default_graph())
        (x,) = tf.cond(x[0] > 0, lambda: arm(x), lambda: arm(x))
        return x

    np.testing.assert_array_equal(traced(program, INTS), INTS + 26)
    constants = [[op for op in graph.get_operations() if op.type == "Const"] for graph in graphs]
    assert [len(each) for each in constants[1:]] == [2, 2]
    assert sum(tf.get_static_value(op.outputs[0]) == 5 for op in constants[0] if op.outputs[0].shape.rank == 0) == 1


def test_constants_of_two_dtypes_are_two():
    def program(x):
        values = [raw_ops.constant(1, dtype) for dtype in (tf.int32, tf.int64, tf.uint8, tf.int32)]
        values.append(raw_ops.constant(True, tf.bool))
        assert values[0] is values[3]
        assert len({id(value) for value in values}) == 4
        return [tf.cast(value, tf.int32) + x for value in values]

    for found in traced(program, INTS):
        np.testing.assert_array_equal(found, INTS + 1)


def test_numbers_of_two_dtypes_do_not_meet():
    with pytest.raises((TypeError, ValueError), match=r"(?i)int64"):
        traced(lambda x: raw_ops.add(x, tf.cast(x, tf.int64)), INTS)


def test_two_programs_share_no_constant():
    """One that is traced inside another has its own; afterwards nothing is held."""
    seen = []

    def program(x):
        seen.append(weakref.ref(raw_ops.constant(5)))
        return x + raw_ops.constant(5)

    def outer(x):
        mine = raw_ops.constant(5)
        inner = tf.function(lambda y: program(y), autograph=False)
        with raw_ops.reusing():
            found = inner(x)
        assert raw_ops.constant(5) is mine
        return found + mine

    np.testing.assert_array_equal(traced(outer, INTS), INTS + 10)
    gc.collect()
    assert raw_ops._known.get() is None


def test_a_tape_sees_what_is_made_outside_of_a_program():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = BACKEND.where(tf.constant(True), x, tf.constant(0.0))
    assert tape.gradient(y, x) == 1.0


def test_without_tensorflows_insides(monkeypatch):
    """The public way to make an operation does as well."""
    graph = private.new_graph("public")
    monkeypatch.delattr(type(graph), "_create_op_internal")
    with graph.as_default():
        a = tf.compat.v1.placeholder(tf.bool, [2])
    monkeypatch.undo()

    class Public:
        create_op = staticmethod(graph.create_op)

    with graph.as_default():
        (found,) = private.operation(Public(), "LogicalNot", [a], [tf.bool], {})
    assert found.op.type == "LogicalNot"
