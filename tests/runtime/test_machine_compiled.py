"""The machine as programs of TensorFlow's: what XLA makes of it or refuses, tapes and a caller's programs around it."""

import dataclasses
import re

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.errors import GradientError, PrimitiveError
from pcbatch.ir.machine import Block, Jump, Program, Return
from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.tensorflow import TensorFlowBackend, ops
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.pool import Pool
from tests.runtime import tables
from tests.runtime.tables import FLOAT, at, piece

BACKEND = TensorFlowBackend()
IN_THE_LOOP = re.compile(r"\s*%\w*pcbatch_(then|else|do)_")
"""What the names of XLA's computations for the machine's loop and the guards in it start with."""


def optimized_hlo(machine, roomy):
    """What XLA makes of a whole run of 64 lanes, or of a leg of one on stacks with room for 32 calls."""
    if roomy:
        arguments, compiled = (
            [tf.zeros([64], tf.int32), tf.zeros([64, 128]), tf.constant(64)],
            machine.programs.whole_run(machine.legs, Pool.of(64)),
        )
    else:
        pool = Pool.of(64)
        specs = [*machine.legs.specs(pool, 32), ("int64", ())]
        arguments, compiled = (
            [tf.zeros(shape, dtype) for dtype, shape in specs],
            machine.programs.leg(machine.legs, pool),
        )
    return compiled.experimental_get_compiler_ir(*arguments)(stage="optimized_hlo")


@pytest.mark.parametrize(
    ("schedule", "storage", "roomy"),
    [
        ("earliest", "cached stack", True),
        ("sweep", "cached stack", False),
        ("earliest", "stack", False),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("sweep", "cached stack", True),
                ("earliest", "cached stack", False),
                ("sweep", "stack", False),
            )
        ),
    ],
)
def test_stacks_are_written_in_place(schedule, storage, roomy):
    """XLA copies no stack from trip to trip, in blocks that run or do not: a step costs the same at any depth."""
    program = tables.stored(tables.fibonacci(with_state=True), storage)
    machine = Machine(program, BACKEND, schedule=schedule, max_depth=31 if roomy else 100)
    assert what_makes("f32[64,33,128]", optimized_hlo(machine, roomy)) == {"wrapped_scatter"}


def test_large_arrays_are_written_in_place():
    """XLA copies no large array from trip to trip, in blocks that run or do not: an element costs an element."""
    program = tables.reverse()
    types = {**program.types, "array": TensorType("float32", (8192,))}
    machine = Machine(dataclasses.replace(program, types=types), BACKEND)
    arguments = [tf.zeros([64, 8192]), tf.zeros([64], tf.int32), tf.zeros([64], tf.int32), tf.constant(64)]
    compiled = machine.programs.whole_run(machine.legs, Pool.of(64))
    text = compiled.experimental_get_compiler_ir(*arguments)(stage="optimized_hlo")
    assert what_makes("f32[64,8192]", text) == {"wrapped_scatter"}


def what_makes(shape, text):
    """The names of the operations of the machine's loop, blocks included, that make an array of this shape."""
    made = re.compile(rf"%([a-z_-]+)\S* = {re.escape(shape)}\S* (?!parameter|get-tuple-element)")
    return {name for part in re.split(r"\n}\n", text) if IN_THE_LOOP.match(part) for name in made.findall(part)}


def test_an_operation_that_fails_in_a_graph_is_shown_at_its_block():
    """What a live lane does wrong inside an opaque operation ends the run of a plain graph, with the user's line."""
    m = np.array([[[1, 1], [1, 1]]], np.float32)
    with pytest.raises(PrimitiveError, match=r"PCB441(.|\n)*user.py:31"):
        Machine(tables.singular(tf.linalg.inv), BACKEND, jit=False).run([m], [], 1)


def test_an_operation_that_xla_lacks_is_shown_at_its_block():
    """XLA's refusal becomes an error at the user's line, from `run` and from `check`."""
    matrix = TensorType("float32", (2, 2))
    blocks = (
        Block("b0", (piece(lambda m: (m + 1.0,), "m", "m"),), Jump(1), span=at(40)),
        Block("b1", (piece(lambda m: (tf.math.special.expint(m[0, 0]),), "m", "y"),), Return(), span=at(41)),
    )
    types, storage = {"m": matrix, "y": FLOAT}, {"m": "register", "y": "register"}
    program = Program("volume", ("m",), ("y",), types, storage, blocks)
    machine = Machine(program, BACKEND, schedule="earliest")  # no block becomes part of another
    with pytest.raises(PrimitiveError, match=r"PCB440(.|\n)*user.py:41"):
        machine.check(1)
    with pytest.raises(PrimitiveError, match=r"PCB440(.|\n)*user.py:41"):
        machine.run([tf.eye(2)[None]], [], 1)


def test_a_second_run_compiles_nothing():
    """Compiled once, from Python and inside a function of the user's, and for numbers of examples like this one."""
    machine = Machine(tables.fibonacci(), BACKEND)
    n = tf.constant([3, 7, 4, 5])
    machine.run([n], [], 4)
    machine.run([n + 1], [], 4)
    assert machine.statistics.compilations == 1
    assert machine.statistics.trace_seconds > 0
    assert machine.statistics.compile_seconds > 0

    @tf.function(autograph=False)
    def inside(n):
        return machine.run([n], [], 4).values[0]

    np.testing.assert_array_equal(inside(n), [3, 21, 5, 8])
    np.testing.assert_array_equal(inside(n + 1), [5, 34, 8, 13])
    assert machine.statistics.compilations == 1
    machine.run([n[:2]], [], 2)
    assert machine.statistics.compilations == 1
    machine.run([tf.concat([n, n], 0)], [], 8)
    assert machine.statistics.compilations == 2


@pytest.mark.parametrize(("schedule", "jit"), [("sweep", True), ("earliest", False)])
def test_lanes_that_are_counted_when_the_graph_runs(schedule, jit):
    """Inside a function whose batch size is not known before it runs, several sizes go through one trace."""
    machine = Machine(tables.fibonacci(with_state=True), BACKEND, schedule=schedule, jit=jit)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, 128])], autograph=False)
    def inside(n, v):
        outcome = machine.run([n, v], [], tf.shape(n)[0])
        return outcome.values, outcome.status

    for n in ([3, 7, 4, 5], [2]):
        v = tf.random.stateless_normal([len(n), 128], [1, 2])
        (result, vector), status = inside(tf.constant(n), v)
        np.testing.assert_array_equal(result, [tables.fibonacci_of(i) for i in n])
        np.testing.assert_array_equal(vector, v)
        assert not np.any(status)
    assert machine.statistics.compilations == 1


def test_inside_an_outer_xla_program():
    """The whole run becomes a part of a caller's XLA program."""
    machine = Machine(tables.gcd(ops), BACKEND)
    outer = tf.function(lambda a, b: machine.run([a, b], [], 2).values[0] * 10, jit_compile=True, autograph=False)
    np.testing.assert_array_equal(outer(tf.constant([12, 7]), tf.constant([18, 21])), [60, 70])


def test_shared_operands_are_read_anew():
    """A variable passed as a shared operand is read at each run; nothing is compiled again."""
    machine = Machine(tables.scaled(), BACKEND)
    weights = tf.Variable(tf.eye(3))
    x = tf.constant([[1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(machine.run([x], [weights], 1).values[0], x)
    weights.assign(2 * tf.eye(3))
    np.testing.assert_array_equal(machine.run([x], [weights], 1).values[0], 2 * x)
    assert machine.statistics.compilations == 1


def test_gradients_are_refused_and_only_when_asked_for():
    """A tape around a run is fine; a gradient through it raises, to an argument and to a shared operand."""
    machine = Machine(tables.scaled(), BACKEND)
    weights, x, other = tf.Variable(tf.eye(3)), tf.Variable([[1.0, 2.0, 3.0]]), tf.Variable(3.0)
    for sources in (x, weights):
        with tf.GradientTape(persistent=True) as tape:
            y = machine.run([x], [weights], 1).values[0]
            loss = tf.reduce_sum(y) + other**2
            apart = tf.reduce_sum(tf.stop_gradient(y)) + other**2
        assert tape.gradient(apart, other) == 6.0
        with pytest.raises(GradientError, match=r"PCB601.*'scaled'"):
            tape.gradient(loss, sources)


def test_gradients_are_refused_inside_a_graph():
    """The same while a `tf.function` is traced, where the run may be used as long as no gradient goes through it."""
    machine = Machine(tables.scaled(), BACKEND)
    weights, other = tf.Variable(tf.eye(3)), tf.Variable(3.0)

    @tf.function(autograph=False)
    def gradient(x, through):
        with tf.GradientTape() as tape:
            y = machine.run([x], [weights], 1).values[0]
            loss = tf.reduce_sum(y if through else tf.stop_gradient(y)) * other
        return tape.gradient(loss, [other] + [weights] * through)

    np.testing.assert_allclose(gradient(tf.constant([[1.0, 2.0, 3.0]]), False)[0], 6.0)
    with pytest.raises(GradientError, match="PCB601"):
        gradient(tf.constant([[1.0, 2.0, 3.0]]), True)


@pytest.mark.parametrize("jit", [True, False])
def test_a_captured_layer_under_a_tape(jit):
    """A Keras layer that a piece captures runs under a tape, and asking for its gradient raises."""
    layer = tf.keras.layers.Dense(3, use_bias=False, kernel_initializer="ones")
    layer.build([None, 3])
    machine = Machine(tables.scaled(layer), BACKEND, jit=jit)
    x = tf.constant([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = machine.run([x], [], 2).values[0]
    np.testing.assert_allclose(y, [[6.0] * 3, [1.0] * 3])
    with pytest.raises(GradientError):
        tape.gradient(y, x)
