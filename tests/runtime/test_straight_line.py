"""Programs of one block without the machine's loop: the same runs to the last count, and code without loops."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneStatus, UsageError
from pcbatch.ir.machine import Block, Jump, Return
from pcbatch.runtime.backends.tensorflow import graphs, rules
from pcbatch.runtime.costs import estimate
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.report.run import Run
from pcbatch.runtime.strategies.straight_line import StraightLine, is_straight
from tests.runtime import tables
from tests.runtime.libraries import MODES, ON_BOTH, ints, on_both

ENDS = ("status", "site", "place", "steps")
COUNTS = ("executions", "active", "rows", "trips")
JITS = pytest.mark.parametrize("jit", [True, False])


# -- tables ------------------------------------------------------------------------------------------------------------


def predicated(ops):
    """The table of that name in one block: checks and a store under a predicate, and after a check that has failed."""
    program = tables.predicated(ops)
    return dataclasses.replace(program, blocks=(dataclasses.replace(program.blocks[0], terminator=Return()),))


def assert_same_outcome(actual, wanted):
    for got, expected in zip(actual.values, wanted.values, strict=True):
        np.testing.assert_array_equal(got, expected)
        assert np.asarray(got).dtype == np.asarray(expected).dtype
    for name in (*ENDS, *COUNTS):
        got, expected = np.asarray(getattr(actual, name)), np.asarray(getattr(wanted, name))
        np.testing.assert_array_equal(got, expected, err_msg=name)
        assert got.dtype == expected.dtype, name
    assert actual.can_fail == wanted.can_fail
    assert actual.stack_entries == wanted.stack_entries


@on_both("schedule, jit", [mode for mode in MODES if mode[0] in ("earliest", "adaptive")], [("earliest", False)])
@pytest.mark.parametrize("lanes", [0, 1, 6])
def test_the_machine_gives_the_same(library, schedule, jit, lanes):
    program = predicated(library.ops)
    machine = Machine(program, library.backend, schedule=schedule, jit=jit)
    arguments = [ints(3, 0, -2, 1, 7, 4)[:lanes], np.ones([lanes, 4], np.int32)]
    actual, wanted = StraightLine(machine, "").run(arguments, [], lanes), machine.run(arguments, [], lanes)
    assert_same_outcome(actual, wanted)
    one, other = Run.of(program, actual), Run.of(program, wanted)
    assert [fault.render() for fault in one.errors] == [fault.render() for fault in other.errors]
    assert str(one.profile()) == str(other.profile())


@ON_BOTH
def test_what_cannot_fail_has_no_ends_to_compute(library):
    machine = Machine(tables.scaled(), library.backend, jit=False)
    line = StraightLine(machine, "")
    x, w = np.arange(6, dtype=np.float32).reshape(2, 3), np.eye(3, dtype=np.float32) * 2
    assert_same_outcome(line.run([x], [w], 2), machine.run([x], [w], 2))
    assert line._computed == ["result x 0"]


def test_what_is_a_straight_line():
    program = tables.scaled()
    (block,) = program.blocks
    around = dataclasses.replace(block, terminator=Jump(0))
    behind = (dataclasses.replace(block, terminator=Jump(1)), Block("b1", (), Return()))
    assert is_straight(program)
    assert not is_straight(dataclasses.replace(program, blocks=(around,)))
    assert not is_straight(dataclasses.replace(program, blocks=behind))


# -- functions ---------------------------------------------------------------------------------------------------------

WEIGHTS = tf.Variable([1.0, 2.0])


@pcbatch.autobatch
def quotients(a, b, row):
    share = a // b
    row[b] = share + a % b
    return share, row, a + row[share]


A, B = ints(8, 7, 6, 5, 9), ints(4, 0, 3, 2, -1)
ROWS = np.arange(20, dtype=np.int32).reshape(5, 4)
STATUS = [LaneStatus.INDEX, LaneStatus.ARITHMETIC, LaneStatus.OK, LaneStatus.OK, LaneStatus.INDEX]


@JITS
def test_lanes_fail_at_their_lines(jit):
    run = quotients.options(jit=jit).run(A, B, ROWS)
    machines = quotients.options(jit=jit, form="lockstep").run(A, B, ROWS)
    assert run.status.tolist() == machines.status.tolist() == STATUS
    assert [fault.render() for fault in run.errors] == [fault.render() for fault in machines.errors]
    first = quotients.function.__code__.co_firstlineno
    assert [fault.span.line - first for fault in run.errors] == [3, 2, 4]
    for lane in (2, 3):
        one = quotients.single(A[lane], B[lane], ROWS[lane].copy())
        for got, wanted in zip(run.value, one, strict=True):
            np.testing.assert_array_equal(got[lane], wanted)
    assert (run.trips, run.block_runs, run.utilization.overall) == (1, 1, 1.0)
    assert run.lane_steps.tolist() == [0] * 5
    assert str(run.profile()) == str(machines.profile())
    with pytest.raises(pcbatch.LaneError, match="3 of 5 lanes"):
        quotients.options(jit=jit)(A, B, ROWS)
    np.testing.assert_array_equal(ROWS, np.arange(20).reshape(5, 4))


@JITS
def test_in_a_callers_graph(jit):
    """Of any number of lanes, none included; a lane that fails raises when the graph runs."""
    function = quotients.options(jit=jit)
    specs = [tf.TensorSpec([None], tf.int32)] * 2 + [tf.TensorSpec([None, 4], tf.int32)]
    inside = tf.function(lambda *given: function(*given), input_signature=specs, autograph=False)
    assert [each.shape for each in inside(A[:0], B[:0], ROWS[:0])] == [(0,), (0, 4), (0,)]
    for got, wanted in zip(inside(A[2:4], B[2:4], ROWS[2:4]), quotients(A[2:4], B[2:4], ROWS[2:4]), strict=True):
        np.testing.assert_array_equal(got, wanted)
    with pytest.raises(tf.errors.InvalidArgumentError, match="ZeroDivisionError"):
        inside(A[1:3], B[1:3], ROWS[1:3])


@JITS
def test_inside_a_callers_own_xla_program(jit):
    given = [tf.constant(each) for each in (A, B, ROWS)]
    program = tf.function(lambda *given: quotients.options(jit=jit).run(*given).status, jit_compile=True)
    assert program(*given).numpy().tolist() == STATUS
    with pytest.raises(UsageError, match="PCB532"):
        tf.function(lambda *given: quotients.options(jit=jit)(*given), jit_compile=True)(*given)


@pcbatch.autobatch
def by_weights(x):
    return x * WEIGHTS


@JITS
def test_captured_values_are_read_at_each_call_and_have_gradients(jit):
    scaled = by_weights.options(jit=jit)
    x = tf.constant([[1.0, 1.0], [3.0, 4.0]])
    for weights in ([1.0, 2.0], [5.0, -1.0]):
        WEIGHTS.assign(weights)
        np.testing.assert_array_equal(scaled(x), x * tf.constant(weights))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = scaled(x)
    wanted = np.broadcast_to(WEIGHTS, [2, 2])
    np.testing.assert_array_equal(tape.gradient(y, x), wanted)
    for lanes in (2, None):
        inside = tf.function(lambda x: tf.gradients(scaled(x), x), [tf.TensorSpec([lanes, 2])], autograph=False)
        np.testing.assert_array_equal(inside(x)[0], wanted)


@pcbatch.autobatch
def twofold(x):
    return x, tf.stack([x, x])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float64", "complex64"])
@JITS
def test_every_dtype(dtype, jit):
    function = twofold.options(jit=jit)
    x = tf.cast([0, 1, 1], dtype)
    for lanes in (0, 3):
        one, two = function(x[:lanes])
        assert one.dtype == two.dtype == x.dtype
        np.testing.assert_array_equal(one, x[:lanes])
        np.testing.assert_array_equal(two, tf.stack([x, x], axis=1)[:lanes])


def test_slices_schedules_and_traces_take_the_machine(tmp_path):
    wanted = quotients.run(A, B, ROWS)
    for options, form in (
        ({"schedule": "sweep"}, "lockstep: schedule='sweep'"),
        ({"trace": 2}, "lockstep: trips are to be recorded"),
        ({"form": "lockstep"}, "lockstep"),
        ({"form": "native"}, "native"),
    ):
        function = quotients.options(**options)
        run = function.run(A, B, ROWS)
        assert function.stats().forms == (form,)
        assert run.status.tolist() == wanted.status.tolist()
    assert len(quotients.options(trace=2).run(A, B, ROWS).trace.block_runs) == 1
    sliced = quotients.options(progress=True).run(A, B, ROWS)
    assert sliced.status.tolist() == wanted.status.tolist()
    sliced.save(tmp_path / "run.npz")
    resumed = quotients.options(resume=tmp_path / "run.npz").run()
    for got, expected in zip(resumed.value, wanted.value, strict=True):
        np.testing.assert_array_equal(got, expected)


# -- what is compiled --------------------------------------------------------------------------------------------------


@pcbatch.autobatch
def classified(image, kernel):
    with tf.GradientTape() as tape:
        tape.watch(kernel)
        seen = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(image[None], kernel, 1, "SAME")), 2, 2, "SAME")
        loss = tf.reduce_sum(seen**2)
    return loss, tape.gradient(loss, kernel)


IMAGES = tf.reshape(tf.range(4.0 * 6 * 6 * 2) % 7.0, [4, 6, 6, 2])
KERNEL = tf.reshape(tf.range(3.0 * 3 * 2 * 3) % 5.0 - 2.0, [3, 3, 2, 3])
ONE_KERNEL = {"in_axes": {"kernel": None}}


def optimized(function, given, lanes):
    """The text of what XLA makes of a straight program for so many lanes, its arguments being `given`."""
    line = function.pipeline(*given).machine
    assert isinstance(line, StraightLine)
    arrays = [tf.convert_to_tensor(each) for each in given]
    more = [] if isinstance(lanes, int) else [lanes]
    return line._whole(lanes).experimental_get_compiler_ir(*arrays, *more)(stage="optimized_hlo")


@pytest.mark.parametrize("lanes", ["static", "dynamic"])
def test_no_loop_and_no_conditional_is_compiled(lanes):
    for function, given in ((classified.options(**ONE_KERNEL), (IMAGES, KERNEL)), (quotients, (A, B, ROWS))):
        text = optimized(function, given, len(given[0]) if lanes == "static" else tf.constant(len(given[0])))
        assert "ENTRY" in text
        assert " while(" not in text
        assert " conditional(" not in text
    machine = classified.options(**ONE_KERNEL, form="lockstep").pipeline(IMAGES, KERNEL).machine
    whole = machine.programs.whole_run(machine.legs, Pool.of(4))
    text = whole.experimental_get_compiler_ir(IMAGES, KERNEL, tf.constant(4))(stage="optimized_hlo")
    assert " while(" in text, "in the machine there is one"


@pcbatch.autobatch(static_argnames=("strides", "padding"), **ONE_KERNEL)
def kernel_gradient(image, kernel, strides, padding):
    with tf.GradientTape() as tape:
        tape.watch(kernel)
        loss = tf.reduce_sum(tf.nn.conv2d(image, kernel, strides, padding) ** 2)
    return tape.gradient(loss, kernel)


@pytest.mark.parametrize(
    ("shape", "strides", "padding", "product"),
    [
        ((3, 2, 2, 3), 2, "SAME", True),
        ((2, 3, 2, 3), (1, 2), "VALID", True),
        ((3, 3, 2, 3), 1, ((0, 0), (1, 2), (0, 1), (0, 0)), True),
        ((3, 3, 1, 4), 1, "SAME", False),
    ],
)
def test_gradients_of_kernels_are_products_in_xla(shape, strides, padding, product):
    """All but those of convolutions in groups; where TensorFlow's kernels run they are as pfor has them."""
    generator = np.random.default_rng(2)
    images, kernel = (tf.constant(generator.normal(size=size), tf.float32) for size in ((3, 2, 7, 8, 2), shape))
    compiled = tf.function(kernel_gradient.function, jit_compile=True)  # TensorFlow has no kernel for groups
    for jit in (True, False) if isinstance(padding, str) and product else (True,):
        with rules.observed(seen := []):
            found = kernel_gradient.options(jit=jit)(images, kernel, strides, padding)
        assert ("Conv2DBackpropFilter" in seen) == (product and jit)
        wanted = [compiled(image, kernel, strides, padding) for image in images]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


# -- jit="auto" --------------------------------------------------------------------------------------------------------


def form_of(function, *given):
    function = pcbatch.autobatch(function, jit="auto", **(ONE_KERNEL if len(given) == 2 else {}))
    (form,) = (function.check(*given), function.stats().forms)[1]
    return form


def convolved(image, kernel):
    return tf.nn.conv2d(image[None], kernel, 1, "SAME")


def by_channel(image, kernel):
    return tf.nn.depthwise_conv2d(image[None], kernel, [1, 1, 1, 1], "SAME")


def with_gaps(image, kernel):
    with tf.GradientTape() as tape:
        tape.watch(kernel)
        y = tf.nn.conv2d(image[None], kernel, 1, "SAME", dilations=2)
    return tape.gradient(y, kernel)


def with_zeros_around(image, kernel):
    with tf.GradientTape() as tape:
        tape.watch(kernel)
        y = tf.nn.conv2d(image[None], kernel, 1, [[0, 0], [1, 2], [0, 1], [0, 0]])
    return tape.gradient(y, kernel)


def with_a_label(image, kernel):
    logits = tf.reduce_sum(by_channel(image, kernel), [0, 1, 2])
    return tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast(image[0, 0, 0], tf.int32), logits)


def in_thirds(image, kernel):
    return by_channel(image, kernel) * tf.cast(tf.cast(image[0, 0, 0], tf.int32) // 3, tf.float32)


@tf.function
def by_channel_in_a_function(image, kernel):
    return by_channel(image, kernel)


def through_a_function(image, kernel):
    return by_channel_in_a_function(image, kernel)


def differentiated(image, kernel):
    """The Jacobian of two convolutions."""
    with tf.GradientTape() as tape:
        tape.watch((image, kernel))
        found = tf.nn.relu(tf.nn.conv2d(image[None], kernel, 1, "SAME"))
        found = tf.reduce_sum(tf.nn.conv2d(found, tf.ones([3, 3, found.shape[-1], 8]), 1, "SAME"), [0, 1, 2])
    return tape.jacobian(found, [image, kernel])


def ordered(x):
    return tf.sort(x), tf.math.top_k(x, 3).values


def multiplied(x):
    return tf.linalg.matvec(tf.ones([600, 600]), x)


LARGE = tf.zeros([2, 28, 28, 2])
NUMBERS = tf.reshape(tf.range(1200.0), [2, 600])
XLA, KERNELS = "straight, by XLA: ", "straight, by kernels of TensorFlow: compiled, it is estimated to take "


@pytest.mark.parametrize(
    ("function", "given", "form"),
    [
        (convolved, (tf.tile(LARGE, [1, 2, 1, 1]), KERNEL), f"{KERNELS}1.1 times"),
        (convolved, (LARGE, KERNEL), f"{XLA}nothing in it"),
        (by_channel, (LARGE, KERNEL), f"{KERNELS}29 times"),
        (through_a_function, (LARGE, KERNEL), f"{KERNELS}29 times"),
        (differentiated, (tf.tile(LARGE, [1, 2, 2, 1]), KERNEL), KERNELS),
        (ordered, (NUMBERS,), f"{KERNELS}2.8 times"),
        (by_channel, (IMAGES[:, :1, :1], KERNEL[:1, :1]), f"{XLA}nothing in it"),
        (multiplied, (NUMBERS,), f"{XLA}nothing in it"),
        (with_gaps, (LARGE, KERNEL), f"{XLA}Conv2DBackpropFilter may fail without it"),
        (with_a_label, (LARGE, KERNEL), f"{XLA}SparseSoftmaxCrossEntropyWithLogits may fail without it"),
        (with_zeros_around, (LARGE, KERNEL), f"{XLA}Conv2DBackpropFilter may fail without it"),
        (in_thirds, (LARGE, KERNEL), f"{XLA}FloorDiv may fail without it"),
    ],
)
def test_auto_chooses_by_the_operations(function, given, form):
    assert form_of(function, *given).startswith(form)


def test_auto_gives_what_the_function_gives():
    function = classified.options(**ONE_KERNEL, jit="auto")
    images = tf.tile(IMAGES, [1, 3, 3, 1])
    value, gradient = function(images, KERNEL)
    (form,) = function.stats().forms
    assert form.startswith(KERNELS)
    for lane, image in enumerate(images):
        one, other = classified.single(image, KERNEL)
        np.testing.assert_allclose(value[lane], one, rtol=1e-5)
        np.testing.assert_allclose(gradient[lane], other, rtol=1e-5)


def test_auto_is_xla_on_a_gpu_and_for_more_than_one_block(monkeypatch):
    looped = pcbatch.autobatch(twice_convolved, jit="auto", **ONE_KERNEL)
    looped.check(LARGE, KERNEL[:, :, :, :2])
    assert looped.stats().forms == ("lockstep: a row of b1 is expensive",)
    assert looped.pipeline(LARGE, KERNEL[:, :, :, :2]).machine.jit is True
    monkeypatch.setattr(graphs, "on_gpu", lambda: True)
    assert form_of(by_channel, LARGE, KERNEL) == f"{XLA}nothing was measured on a GPU"


def twice_convolved(image, kernel):
    for _ in range(2):
        image = convolved(image, kernel)[0]
    return image


def test_the_rule_reads_what_was_measured(monkeypatch):
    monkeypatch.setattr(estimate, "CPU", dataclasses.replace(estimate.CPU, uncompiled=1e12))
    assert form_of(by_channel, LARGE, KERNEL).startswith(f"{XLA}nothing in it")


def test_without_auto_nothing_is_chosen():
    for jit, form in ((True, "straight, by XLA"), (False, "straight, by kernels of TensorFlow")):
        function = pcbatch.autobatch(by_channel, jit=jit, **ONE_KERNEL)
        function.check(LARGE, KERNEL)
        assert function.stats().forms == (form,)
    for jit in ("yes", None, 1):
        with pytest.raises(UsageError, match=r"PCB504: jit must be True, False or 'auto'"):
            pcbatch.autobatch(by_channel, jit=jit)
