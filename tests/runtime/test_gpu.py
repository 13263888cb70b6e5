"""What is for a GPU, and what for the CPU beside one: told by the devices there are and the `tf.device` around a call.

A machine that says it has a GPU compiles what it would compile for one, for its CPU.
"""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneStatus, nuts
from pcbatch.errors import UsageError
from pcbatch.nuts.running.groups import device, groups_of
from pcbatch.nuts.running.sampling_run import SamplingRun
from pcbatch.runtime.backends.tensorflow import branches, graphs, private, xla_cpu
from pcbatch.runtime.backends.tensorflow.xla_cpu import lane_arrays
from pcbatch.runtime.costs.device import CPU, GPU
from pcbatch.runtime.machine.forking import Forking
from pcbatch.runtime.machine.loop import Loop
from tests.harness import AUTO, BATCH, check
from tests.pairwise import every_second
from tests.runtime.host_memory import misplaced

ON_GPU = "lockstep: XLA takes no kernels of pcbatch's on this GPU"
N = np.arange(12, dtype=np.int32)


@pytest.fixture
def gpu(monkeypatch):
    """The machine has a GPU, as far as it says."""
    monkeypatch.setattr(graphs, "has_gpu", lambda: True)


def made():
    @pcbatch.autobatch
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 2) + fibonacci(n - 1)

    return fibonacci


def test_a_device_around_tells_the_place(gpu):
    assert graphs.on_gpu()
    assert not xla_cpu.is_on()
    with tf.device("/CPU:0"):
        assert not graphs.on_gpu()
        assert xla_cpu.is_on()
        assert lane_arrays.are_made()
        with tf.device("/GPU:0"):
            assert graphs.on_gpu()

        @tf.function
        def traced():
            assert not graphs.on_gpu()
            return tf.constant(0)

        traced()
    assert private.device_now() == ""


def test_without_a_gpu_all_is_for_the_cpu():
    assert graphs.has_gpu() is bool(tf.config.list_logical_devices("GPU"))
    if not graphs.has_gpu():
        assert not graphs.on_gpu()


def test_the_device_goes_along_to_other_threads():
    with ThreadPoolExecutor(1) as thread:
        with tf.device("/CPU:0"):
            assert thread.submit(graphs.carried(private.device_now)).result() == private.device_now() != ""
            assert thread.submit(private.device_now).result() == ""
        assert thread.submit(graphs.carried(private.device_now)).result() == ""


def test_programs_for_both_are_kept_apart(gpu):
    """Calls of either place, the first and warm ones, in turns."""
    function = made()
    for _ in range(4):
        np.testing.assert_array_equal(function(N), [function.single(n) for n in N])
        with tf.device("/CPU:0"):
            np.testing.assert_array_equal(function(N), [function.single(n) for n in N])
    forms = function.stats().forms
    assert sorted(form.split(":")[0] for form in forms) == ["lockstep", "native"]
    assert ON_GPU in forms


def test_the_native_form_is_refused_on_a_gpu(gpu):
    with pytest.raises(UsageError, match="XLA takes no kernels of pcbatch's on this GPU") as raised:
        made().options(form="native")(N)
    assert raised.value.code == "PCB534"
    with tf.device("/CPU:0"):
        np.testing.assert_array_equal(made().options(form="native")(N), made()(N))


def gaussian(q):
    return -0.5 * tf.reduce_sum(q**2)


@pytest.mark.filterwarnings("ignore::pcbatch.nuts.SamplerWarning")
def test_the_sampler_runs_in_lockstep_on_a_gpu(gpu):
    """One chain after another, as in native code, would be as slow as can be there."""
    with tf.device("/CPU:0"):
        found = nuts.sample(gaussian, np.zeros(2, np.float32), draws=60, warmup=60, seed=1, progress=False)
        assert SamplingRun.after(found)._is_native
    assert 0.7 < found["x"].std() < 1.4
    assert not SamplingRun.after(found)._is_native
    assert groups_of(64, 1.0) == [slice(0, 64)]


def test_the_gpus_numbers_are_for_the_gpu(gpu):
    assert device() is GPU
    with tf.device("/CPU:0"):
        assert device() is CPU


def tree_of(**options):
    weight = tf.Variable(0.5)

    @pcbatch.autobatch(**options)
    def tree(n, x):
        if n < 2:
            return tf.tanh(x * weight)
        return tree(n - 2, x) + weight * tree(n - 1, x + 1.0)

    return tree, weight


TREES = np.arange(5, dtype=np.int32), np.linspace(0.0, 1.0, 5, dtype=np.float32)


def gradient(results, weight):
    with tf.GradientTape() as tape:
        loss = tf.add_n(tf.unstack(results()))
    return tape.gradient(loss, weight)


@pytest.mark.parametrize(
    ("is_beside", "options"), every_second([True, False], [{}, {"tape": "replay"}, {"fork": True}])
)
def test_gradients_in_plain_graphs_beside_a_gpu(is_beside, options, monkeypatch):
    """No int32 number is where nobody looks for it, nor in a graph that is traced without a GPU and saved for one."""
    monkeypatch.setattr(graphs, "has_gpu", lambda: is_beside)
    tree, weight = tree_of(**options)
    traced = tf.function(lambda: gradient(lambda: tree(*TREES), weight)).get_concrete_function()
    assert misplaced(traced) == []
    if not options:
        expected = gradient(lambda: tf.stack([tree.single(*each) for each in zip(*TREES, strict=True)]), weight)
        np.testing.assert_allclose(traced(), expected, rtol=1e-4)


FORWARD = [
    {},
    {"fork": True},
    {"schedule": "switch", "jit": False},
    {"schedule": "busiest"},
    {"max_lanes": 2},
]


@pytest.mark.parametrize(("options", "is_beside"), every_second(FORWARD, [True, False]))
def test_calls_in_plain_graphs_beside_a_gpu(options, is_beside, monkeypatch):
    """The same of calls and runs, with the check for failed lanes behind them."""
    monkeypatch.setattr(graphs, "has_gpu", lambda: is_beside)
    tree, _ = tree_of(**options)
    assert misplaced(tf.function(lambda: (tree(*TREES), tree.run(*TREES).value)).get_concrete_function()) == []


def test_by_lane_and_native_code_beside_a_gpu(gpu):
    """The same of gradients by lane, and of native code for the CPU that is asked for beside a GPU."""
    tree, weight = tree_of()
    by_lane = pcbatch.per_example_gradients(tree, weight)
    assert misplaced(tf.function(lambda: by_lane(*TREES)).get_concrete_function()) == []

    @tf.function
    def on_cpu():
        with tf.device("/CPU:0"):
            return gradient(lambda: tree(*TREES), weight)

    assert misplaced(on_cpu.get_concrete_function()) == []


def test_int32_numbers_are_found_where_they_are():
    """At the operation, inside the function that it is in, with the device that it would run on."""

    @tf.function
    def arm(number, weights):
        return number + 1, weights

    numbers, weights = tf.constant(1), tf.ones(3)
    branch = arm.get_concrete_function(numbers, weights)

    @tf.function
    def inner(number, weights):
        both = [number, weights]
        made = {"Tout": [tf.int32, tf.float32], "output_shapes": [[], [3]]}
        with tf.device("/device:CPU:0"):
            tf.raw_ops.StatelessCase(branch_index=number, input=both, branches=[branch, branch], **made, name="host")
        taken = tf.raw_ops.StatelessCase(
            branch_index=number, input=both, branches=[branch, branch], **made, name="card"
        )
        written_out = tf.switch_case(number, [lambda: number, lambda: number + 1])
        return taken, written_out

    outer = tf.function(lambda: tf.stop_gradient(inner(numbers, weights)[1])).get_concrete_function()
    found = misplaced(outer)
    assert [(each.operation, each.name, each.argument) for each in found] == [
        ("StatelessCase", "card", "input 1"),
        ("StatelessCase", "card", "output 0"),
    ]
    assert all("inner" in each.function and each.device == "/device:GPU:0" for each in found)


WITHOUT_GUARDS = (
    "assert_fails", "break_continue", "depth_limit", "fibonacci", "insertion_sort", "mixed_failures", "random_walk",
    "step_limit",
)  # fmt: skip
"""Programs of few blocks."""


@pytest.mark.parametrize("name", WITHOUT_GUARDS)
def test_programs_without_guards(name, gpu, monkeypatch):
    """Of few cheap blocks all run in every trip there: the lanes' results, faults and steps are what they are."""
    without = []
    together = Loop.trips_together

    def noted(loop, lanes):
        without.append(together(loop, lanes))
        return without[-1]

    monkeypatch.setattr(Loop, "trips_together", noted)
    check(name, AUTO, BATCH)
    assert any(without)


def test_a_trip_has_neither_loops_nor_conditionals(gpu, monkeypatch):
    """Of all that the trips of a cheap program do, the host looks only at whether there are to be sixteen more."""
    inside, found = [], []
    loop = branches.loop

    def noted(condition, body, start):
        found.append(len(inside))
        inside.append(start)
        ended = loop(condition, body, start)
        inside.pop()
        return ended

    def conditional(*_, **__):
        raise AssertionError("a conditional")

    monkeypatch.setattr(branches, "loop", noted)
    for name in ("conditional", "either"):
        monkeypatch.setattr(branches, name, conditional)
    np.testing.assert_array_equal(made()(N), [made().single(n) for n in N])
    assert found[:2] == [0, 1]  # the loop over looks, and in it the trips
    assert set(found) == {0, 1}


def expensive(size):
    """Walks until it has made its steps, a product of matrices in each, which all lanes share; some also recurse."""
    weights = tf.Variable(np.linspace(-1.0, 1.0, size * size, dtype=np.float32).reshape(size, size) / size)

    @pcbatch.autobatch
    def walk(n, x):
        steps = 0
        while steps < n:
            if steps % 2 == 0:
                x = tf.tanh(tf.linalg.matvec(weights, x)) + 1.0
            else:
                x = x * 0.5
            steps += 1
        if n > 2:
            x = x + walk(n - 2, x)
        return x

    return walk, weights


@pytest.fixture
def cheap_looks(gpu, monkeypatch):
    """A card on which the host's looks cost little, so that small programs have dear pieces; then with chunks, too."""
    cheap = dataclasses.replace(GPU, guard=1e3, gathered=1e12)

    def with_(**changes):
        changed = dataclasses.replace(cheap, **changes)
        monkeypatch.setattr("pcbatch.function.executing.device_of", lambda place: changed if place == "GPU" else CPU)

    with_()
    return with_


CHUNKED = {"gathered": 10.0, "chunk_shared": 4, "chunk_least": 4, "chunk_most": 4}


@pytest.mark.parametrize("changes", [{}, CHUNKED], ids=["dear", "chunks"])
def test_what_is_dear_is_not_computed_for_nobody(cheap_looks, changes):
    """Results and gradients are those of the CPU's form, which has guards around all blocks."""
    cheap_looks(**changes)
    walk, weights = expensive(16)
    n = np.array([0, 5, 1, 3, 0, 0, 2, 4, 1, 1, 0, 1], np.int32)
    x = np.linspace(0.0, 1.0, len(n) * 16, dtype=np.float32).reshape(-1, 16)

    def found():
        with tf.GradientTape() as tape:
            results = walk(n, x)
            loss = tf.reduce_sum(results**2)
        return results, tape.gradient(loss, weights)

    here = found()
    with tf.device("/CPU:0"):
        there = found()
    for one, other in zip(here, there, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    expected = [walk.single(*each) for each in zip(n, x, strict=True)]
    np.testing.assert_allclose(here[0], expected, rtol=1e-5)
    run = walk.run(n, x)
    assert run.block_runs > 0
    np.testing.assert_allclose(run.value, expected, rtol=1e-5)


@pytest.mark.slow
def test_forked_calls_without_guards(gpu, monkeypatch):
    """Results, faults and steps; more calls than lanes, so that there are fewer rows in a chunk than lanes wait."""
    monkeypatch.setattr(Forking, "_at_once", lambda self, cost: 3)
    together = []
    trip = Forking.trip

    def noted(self, state, inputs, shared, go=None):
        together.append(go)
        return trip(self, state, inputs, shared, go)

    monkeypatch.setattr(Forking, "trip", noted)

    @pcbatch.autobatch(fork=True, max_steps=200)
    def tree(n, x):
        assert n != -7, "seven"
        while x < 0.0:
            x = x + 1.0
        if n < 2:
            return x
        return 0.5 * tree(n - 1, x - 2.0) + tree(n - 2, x + 1.0) + 1.0

    n = np.array([0, 5, 8, 3, 1, 2, -7, 12, 6], np.int32)
    x = np.linspace(-2.0, 1.0, len(n), dtype=np.float32)
    run = tree.run(n, x)
    plain = tree.options(fork=False).run(n, x)
    np.testing.assert_array_equal(run.status, plain.status)
    assert {*run.status} == {LaneStatus.OK, LaneStatus.ASSERTION, LaneStatus.MAX_STEPS}
    np.testing.assert_array_equal(run.lane_steps, plain.lane_steps)
    assert [each.lane for each in run.errors] == [each.lane for each in plain.errors]
    good = run.status == LaneStatus.OK
    expected = [tree.single(*each) for each in zip(n[good], x[good], strict=True)]
    np.testing.assert_allclose(np.asarray(run.value)[good], expected, rtol=1e-5)
    assert together
    assert all(each is not None for each in together)
