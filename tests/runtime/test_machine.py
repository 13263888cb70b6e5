"""The machine on tables written by hand: every schedule, compiled and as a graph, with every kind of stack."""

import dataclasses
import itertools
import re

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.errors import GradientError, PrimitiveError, UsageError
from pcbatch.ir.machine import Block, Branch, Jump, Program, Push, PushJump, Return
from pcbatch.ir.status import LaneStatus
from pcbatch.ir.types import StructType, TensorType
from pcbatch.runtime.backends.tensorflow import TensorFlowBackend
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.pool import Pool
from tests.runtime import tables
from tests.runtime.tables import BOOL, FLOAT, INT, at, piece

BACKEND = TensorFlowBackend()
MODES = list(itertools.product(("earliest", "sweep"), (True, False)))
STORAGES = ("cached stack", "stack")
PAIRWISE = [
    ("earliest", True, "cached stack"),
    ("sweep", True, "stack"),
    ("earliest", False, "stack"),
    ("sweep", False, "cached stack"),
]
"""Every two of schedule, compilation and storage together; `test_fibonacci_in_batches` has all three."""
STATUS = LaneStatus
IN_THE_LOOP = re.compile(r"\s*%\w*(cond(_\d+)?_true|cond(_\d+)?_false|body)_")
"""What the names of XLA's computations for the machine's loop and the guards in it start with."""


def run(program, *arguments, shared=(), schedule="sweep", jit=True, lanes=None, **limits):
    """Run a fresh machine on NumPy or TensorFlow arguments."""
    machine = Machine(program, BACKEND, schedule=schedule, jit=jit, **limits)
    lanes = len(arguments[0]) if lanes is None else lanes
    return machine.run([tf.convert_to_tensor(argument) for argument in arguments], shared, lanes)


@pytest.mark.parametrize(("schedule", "jit"), MODES)
@pytest.mark.parametrize("storage", STORAGES)
def test_fibonacci_in_batches(schedule, jit, storage):
    """Recursion in every mode, at two batch sizes, with one machine for both."""
    machine = Machine(tables.stored(tables.fibonacci(), storage), BACKEND, schedule=schedule, jit=jit)
    others = {("earliest", True): 0, ("earliest", False): 3, ("sweep", True): 1, ("sweep", False): 0}
    for lanes in (17, others[schedule, jit]):
        n = np.arange(lanes, dtype=np.int32) % 9
        outcome = machine.run([n], [], lanes)
        np.testing.assert_array_equal(outcome.values[0], [tables.fibonacci_of(i) for i in n])
        np.testing.assert_array_equal(outcome.status, np.zeros(lanes))
        np.testing.assert_array_equal(outcome.site, -np.ones(lanes))
        np.testing.assert_array_equal(outcome.steps, [2 * (tables.fibonacci_of(i) - 1) for i in n])


@pytest.mark.parametrize(("schedule", "jit", "storage"), PAIRWISE)
def test_saved_vectors(schedule, jit, storage):
    """A vector that is saved across both calls comes back as it was."""
    v = np.random.default_rng(0).normal(size=(4, 128)).astype(np.float32)
    program = tables.stored(tables.fibonacci(with_state=True), storage)
    outcome = run(program, np.array([3, 7, 4, 5], np.int32), v, schedule=schedule, jit=jit)
    np.testing.assert_array_equal(outcome.values[0], [3, 21, 5, 8])
    np.testing.assert_array_equal(outcome.values[1], v)


def test_earliest_runs_the_addition_as_often_as_the_paper_says():
    """Batched fibonacci([3, 7, 4, 5]): lane 7 adds 20 times, and all other lanes' additions ride along."""
    n = np.array([3, 7, 4, 5], np.int32)
    outcome = run(tables.fibonacci(), n, schedule="earliest")
    assert outcome.executions[4] == 20
    additions = [tables.fibonacci_of(n) - 1 for n in (3, 7, 4, 5)]
    assert outcome.active[4] == sum(additions)
    assert int(outcome.trips) == int(tf.reduce_sum(outcome.executions))
    # What lanes do is theirs whatever the schedule: only how they are packed into trips differs.
    other = run(tables.fibonacci(), n, schedule="sweep")
    np.testing.assert_array_equal(other.active, outcome.active)
    np.testing.assert_array_equal(other.steps, outcome.steps)
    assert other.trips < outcome.trips


@pytest.mark.parametrize(("schedule", "jit"), MODES)
def test_loops_with_checked_operations(schedule, jit):
    """Lanes that wait elsewhere may hold a zero divisor: no fault of theirs, and nothing raises."""
    a, b = np.array([12, 7, 0, 100, 9], np.int32), np.array([18, 0, 0, 75, 3], np.int32)
    outcome = run(tables.gcd(), a, b, schedule=schedule, jit=jit)
    np.testing.assert_array_equal(outcome.values[0], np.gcd(a, b))
    assert not np.any(outcome.status)


@pytest.mark.parametrize(
    ("schedule", "jit", "storage"), [*PAIRWISE, ("sweep", True, "register"), ("earliest", False, "register")]
)
def test_stores(schedule, jit, storage):
    """Element stores: per-lane indices, negative ones, and a fault that leaves the other lanes alone."""
    arrays = np.full((4, 5), 9, np.float32)
    count, first = np.array([0, 3, 5, 9], np.int32), np.array([0, 4, 2, 1], np.int32)
    outcome = run(tables.reverse(storage), arrays, count, first, schedule=schedule, jit=jit)
    expected = np.array([[9, 9, 9, 9, 9], [9, 9, 2, 1, 0], [2, 1, 0, 4, 3], [np.nan] * 5], np.float32)
    np.testing.assert_array_equal(outcome.values[0], expected)
    np.testing.assert_array_equal(outcome.status, [0, 0, 0, STATUS.INDEX])
    assert outcome.site[3] == 1
    assert outcome.fault_values["k"][3] == -6
    np.testing.assert_array_equal(outcome.steps, [0, 3, 5, 7])


@pytest.mark.parametrize(("schedule", "jit", "storage"), PAIRWISE)
def test_mutual_recursion(schedule, jit, storage):
    """Two functions that call each other; a bool on a stack."""
    n = np.arange(9, dtype=np.int32)
    outcome = run(tables.stored(tables.even(), storage), n, schedule=schedule, jit=jit)
    reference = [_even(i) for i in range(9)]
    np.testing.assert_array_equal(outcome.values[0], reference)


def _even(n):
    return True if n == 0 else (not _odd(n - 1)) != (n % 3 == 0)


def _odd(n):
    return True if n == 0 else not _even(n - 1)


@pytest.mark.parametrize(("schedule", "jit"), MODES)
def test_faults_are_the_lanes_own(schedule, jit):
    """Each kind of fault is its lane's status and site, its outputs read NaN or 0, and the others finish."""
    x = np.array([3, 0, -2, 1, 5, 0], np.int32)
    outcome = run(tables.faults(), x, schedule=schedule, jit=jit)
    expected = [0, STATUS.ARITHMETIC, STATUS.ASSERTION, STATUS.RAISED, 0, STATUS.ARITHMETIC]
    np.testing.assert_array_equal(outcome.status, expected)
    np.testing.assert_array_equal(outcome.site, [-1, 0, 1, 2, -1, 0])
    np.testing.assert_allclose(outcome.values[0], np.sqrt([3, np.nan, np.nan, np.nan, 2, np.nan]), rtol=1e-6)
    np.testing.assert_array_equal(outcome.values[1], [3, 0, 0, 0, 2, 0])
    assert outcome.fault_values["q"][2] == -5
    assert (outcome.fault_values["q"][3], outcome.fault_values["x"][3]) == (10, 1)


@pytest.mark.parametrize(("schedule", "jit", "storage"), PAIRWISE)
def test_max_depth(schedule, jit, storage):
    """A lane fails with its first call beyond `max_depth`; exactly as many are allowed."""
    # fibonacci(n) has n - 1 live calls at most; on the way down from 8 each of them saves `n`, so its stack is full
    n = np.array([2, 3, 4, 5, 8, 1], np.int32)
    outcome = run(tables.stored(tables.fibonacci(), storage), n, schedule=schedule, jit=jit, max_depth=3)
    np.testing.assert_array_equal(outcome.status, [0, 0, 0, STATUS.MAX_DEPTH, STATUS.MAX_DEPTH, 0])
    np.testing.assert_array_equal(outcome.values[0], [2, 3, 5, 0, 0, 1])
    np.testing.assert_array_equal(outcome.site, [-1, -1, -1, 0, 0, -1])


@pytest.mark.parametrize(("schedule", "jit"), MODES)
def test_max_steps(schedule, jit):
    """A lane may use exactly `max_steps` calls and turns; the step that fails is not counted."""
    n = np.array([4, 5, 6], np.int32)  # 8, 14 and 24 calls
    outcome = run(tables.fibonacci(), n, schedule=schedule, jit=jit, max_steps=14)
    np.testing.assert_array_equal(outcome.status, [0, 0, STATUS.MAX_STEPS])
    np.testing.assert_array_equal(outcome.steps, [8, 14, 14])
    np.testing.assert_array_equal(outcome.values[0], [5, 8, 0])
    turns = run(tables.gcd(), np.array([8, 5], np.int32), np.array([4, 3], np.int32), jit=jit, max_steps=1)
    np.testing.assert_array_equal(turns.status, [0, STATUS.MAX_STEPS])


def test_depth_is_checked_before_steps():
    """A call that exceeds both limits exceeds the depth."""
    outcome = run(tables.fibonacci(), np.array([5], np.int32), max_depth=1, max_steps=1)
    np.testing.assert_array_equal(outcome.status, [STATUS.MAX_DEPTH])


@pytest.mark.parametrize(("schedule", "jit", "storage"), PAIRWISE)
def test_lanes_without_room_wait_and_go_on_later(schedule, jit, storage):
    """A lane whose pushes do not fit is paused before its block has any effect; with larger stacks it goes on."""
    program = tables.stored(tables.fibonacci(), storage)
    n = tf.constant([2, 8, 1, 5, 3])
    machine = Machine(program, BACKEND, schedule=schedule, jit=jit, max_depth=40)
    machine.capacity = 2
    arrived, outcome = machine.leg(machine.begin([n], 5), [])
    state = arrived.snapshot.state
    ended = state["pc"] == machine.legs.layout.finish
    np.testing.assert_array_equal(ended, [True, False, True, False, True])
    np.testing.assert_array_equal(state["fault"], np.zeros(5))
    assert (bool(arrived.paused), bool(arrived.can_run)) == (True, False)
    np.testing.assert_array_equal(outcome.status, [0, STATUS.UNFINISHED, 0, STATUS.UNFINISHED, 0])
    np.testing.assert_array_equal(outcome.values[0], [2, 0, 1, 0, 3])
    assert outcome.site[1] == -1
    arrived, outcome = machine.leg(machine.grown(arrived.snapshot), [])
    np.testing.assert_array_equal(outcome.values[0], [2, 34, 1, 8, 3])
    assert (bool(arrived.paused), bool(arrived.can_run)) == (False, False)
    straight = run(program, n, schedule=schedule, jit=jit, max_depth=10)
    np.testing.assert_array_equal(outcome.active, straight.active)
    np.testing.assert_array_equal(outcome.steps, straight.steps)


def optimized_hlo(machine, roomy):
    """What XLA makes of a whole run of 64 lanes, or of a leg of one on stacks with room for 32 calls."""
    if roomy:
        arguments, compiled = [tf.zeros([64], tf.int32), tf.zeros([64, 128])], machine._whole_run(machine.legs, 64)
    else:
        pool = Pool.of(64)
        specs = [*machine.legs.specs(pool, 32), ("int64", ())]
        arguments, compiled = [tf.zeros(shape, dtype) for dtype, shape in specs], machine._leg(pool)
    return compiled.experimental_get_compiler_ir(*arguments)(stage="optimized_hlo")


@pytest.mark.parametrize("schedule", ["earliest", "sweep"])
@pytest.mark.parametrize(("storage", "roomy"), [("cached stack", True), ("cached stack", False), ("stack", False)])
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
    arguments = [tf.zeros([64, 8192]), tf.zeros([64], tf.int32), tf.zeros([64], tf.int32)]
    compiled = machine._whole_run(machine.legs, 64)
    text = compiled.experimental_get_compiler_ir(*arguments)(stage="optimized_hlo")
    assert what_makes("f32[64,8192]", text) == {"wrapped_scatter"}


def what_makes(shape, text):
    """The names of the operations of the machine's loop, blocks included, that make an array of this shape."""
    made = re.compile(rf"%([a-z_-]+)\S* = {re.escape(shape)}\S* (?!parameter|get-tuple-element)")
    return {name for part in re.split(r"\n}\n", text) if IN_THE_LOOP.match(part) for name in made.findall(part)}


def singular():
    """Inverts a matrix in one block, which junk lanes must not make fail; then takes a root in another."""
    matrix = TensorType("float32", (2, 2))
    blocks = (
        Block("b0", (piece(lambda m: (tf.linalg.trace(m) > 0.0,), "m", "t"),), Branch("t", 1, 2), span=at(30)),
        Block("b1", (piece(lambda m: (tf.linalg.inv(m),), "m", "m"),), Return(), span=at(31)),
        Block("b2", (piece(lambda m: (m * 2.0,), "m", "m"),), Return(), span=at(32)),
    )
    return Program("singular", ("m",), ("m",), {"m": matrix, "t": BOOL}, {"m": "register"}, blocks)


@pytest.mark.parametrize(("schedule", "jit"), MODES)
def test_junk_lanes_neither_raise_nor_leak(schedule, jit):
    """Singular matrices and NaN in lanes that wait elsewhere."""
    good = np.array([[2, 1], [1, 3]], np.float32)
    m = np.stack([good, np.zeros((2, 2)), np.full((2, 2), np.nan), 3 * good, np.zeros((2, 2))]).astype(np.float32)
    outcome = run(singular(), m, schedule=schedule, jit=jit)
    expected = np.stack([np.linalg.inv(good), m[1] * 2, m[2], np.linalg.inv(3 * good), m[4]])
    np.testing.assert_allclose(outcome.values[0], expected, rtol=1e-6)


def test_an_operation_that_fails_in_a_graph_is_shown_at_its_block():
    """What a live lane does wrong inside an opaque operation ends the run of a plain graph, with the user's line."""
    m = np.array([[[1, 1], [1, 1]]], np.float32)
    with pytest.raises(PrimitiveError, match=r"PCB441(.|\n)*user.py:31"):
        run(singular(), m, jit=False)


def test_an_operation_that_xla_lacks_is_shown_at_its_block():
    """XLA's refusal becomes an error at the user's line, from `run` and from `check`."""
    matrix = TensorType("float32", (2, 2))
    blocks = (
        Block("b0", (piece(lambda m: (m + 1.0,), "m", "m"),), Jump(1), span=at(40)),
        Block("b1", (piece(lambda m: (tf.linalg.slogdet(m)[1],), "m", "y"),), Return(), span=at(41)),
    )
    types, storage = {"m": matrix, "y": FLOAT}, {"m": "register", "y": "register"}
    machine = Machine(Program("volume", ("m",), ("y",), types, storage, blocks), BACKEND)
    with pytest.raises(PrimitiveError, match=r"PCB440(.|\n)*user.py:41"):
        machine.check(1)
    with pytest.raises(PrimitiveError, match=r"PCB440(.|\n)*user.py:41"):
        machine.run([tf.eye(2)[None]], [], 1)


def test_a_second_run_compiles_nothing():
    """Compiled once for each number of lanes, from Python and inside a function of the user's."""
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
    machine = Machine(tables.gcd(), BACKEND)
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


def test_structures():
    """Structured variables, saved leaf by leaf across a call."""
    pair = StructType("dict", (FLOAT, StructType("tuple", (INT, BOOL))), ("x", "rest"))

    def down(p, n):
        return {"x": p["x"] / 2.0, "rest": (p["rest"][0] + 1, ~p["rest"][1])}, n - 1

    blocks = (
        Block("b0", (piece(lambda n: (n == 0,), "n", "t"),), Branch("t", 1, 2)),
        Block("b1", (piece(lambda p: (p,), "p", "r"),), Return()),
        Block("b2", (piece(down, "p n", "p n"),), PushJump(0, 3, 0), pushes=(Push("p"),)),
        Block("b3", (piece(_join, "p r", "r"),), Return(), pops=("p",)),
    )
    types = {"p": pair, "r": pair, "n": INT, "t": BOOL}
    for storage in STORAGES:
        kinds = {"p": storage, "r": "register", "n": "register"}
        program = Program("halve", ("p", "n"), ("r",), types, kinds, blocks, (tables.DEPTH,))
        p = {"x": tf.constant([8.0, 4.0]), "rest": (tf.constant([0, 10]), tf.constant([True, False]))}
        outcome = Machine(program, BACKEND).run([p, tf.constant([2, 0])], [], 2)
        (r,) = outcome.values
        np.testing.assert_array_equal(r["x"], [2 + 4 + 8, 4])
        np.testing.assert_array_equal(r["rest"][0], [2 + 1 + 0, 10])
        np.testing.assert_array_equal(r["rest"][1], [True ^ False ^ True, False])


def _join(p, r):
    return ({"x": p["x"] + r["x"], "rest": (p["rest"][0] + r["rest"][0], tf.not_equal(p["rest"][1], r["rest"][1]))},)


@pytest.mark.parametrize(("schedule", "jit", "storage"), PAIRWISE)
def test_dtypes_on_stacks(schedule, jit, storage):
    """Values of every kind are saved and come back unchanged."""
    names = ("bool", "int8", "uint32", "int64", "float16", "bfloat16", "float64", "complex64")
    words = " ".join(names)
    back = piece(lambda n, *xs: (n - 1, *(x[::-1] for x in xs)), f"n {words}", f"n {words}")
    blocks = (
        Block("b0", (piece(lambda n: (n == 0,), "n", "t"),), Branch("t", 1, 2)),
        Block("b1", (), Return()),
        Block("b2", (back,), PushJump(0, 3, 0), pushes=tuple(map(Push, names))),
        Block("b3", (), Return(), pops=names),
    )
    types = {"n": INT, "t": BOOL, **{name: TensorType(name, (2,)) for name in names}}
    kinds = {"n": "register", **dict.fromkeys(names, storage)}
    program = Program("there_and_back", ("n", *names), names, types, kinds, blocks, (tables.DEPTH,))
    given = [tf.cast(tf.constant([[0, 1], [2, 3], [1, 0]]), name) for name in names]
    outcome = run(program, np.array([0, 1, 3], np.int32), *given, schedule=schedule, jit=jit)
    for name, value, result in zip(names, given, outcome.values, strict=True):
        assert result.dtype == name
        np.testing.assert_array_equal(tf.cast(result, "complex64"), tf.cast(value, "complex64"))


def test_wrong_arguments_are_refused():
    """Shapes and numbers of arguments are checked before anything runs."""
    machine = Machine(tables.gcd(), BACKEND)
    with pytest.raises(UsageError, match=r"PCB531.*'b'"):
        machine.run([tf.constant([1, 2]), tf.constant([1, 2, 3])], [], 2)
    with pytest.raises(UsageError, match=r"PCB531.*2 arguments"):
        machine.run([tf.constant([1, 2])], [], 2)


def test_a_table_with_a_mistake_is_refused():
    """A block that names what nobody writes, or goes nowhere, is refused by name."""
    for block, message in [
        (Block("b0", (piece(lambda x: (x,), "z", "x"),), Return()), "b0.*z"),
        (Block("b0", (), Jump(3)), "b0.*goes to"),
        (Block("b0", (), Branch("t", 0, 0)), "b0.*'t'"),
        (Block("b0", (), Return(), pops=("x",)), "b0.*'x'.*no stack"),
    ]:
        with pytest.raises(ValueError, match=message):
            Machine(Program("broken", ("x",), ("x",), {"x": INT}, {"x": "register"}, (block,)), BACKEND)
    nameless = dataclasses.replace(tables.gcd(), blocks=tables.stepping(tables.gcd().blocks, -1))
    with pytest.raises(ValueError, match=r"gcd, b1: jump b0, turn: there is no fault site for exceeding max_steps"):
        Machine(nameless, BACKEND, max_steps=3)
    Machine(nameless, BACKEND)
