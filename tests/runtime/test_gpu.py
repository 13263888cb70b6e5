"""What is for a GPU, and what for the CPU beside one: told by the devices there are and the `tf.device` around a call.

A machine that says it has a GPU compiles what it would compile for one, for its CPU.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import nuts
from pcbatch.errors import UsageError
from pcbatch.nuts.running.driver import Course
from pcbatch.nuts.running.groups import device, groups_of
from pcbatch.optimize.machine.merging import Merging
from pcbatch.runtime.backends.tensorflow import graphs, private, xla_cpu
from pcbatch.runtime.backends.tensorflow.xla_cpu import small_calls
from pcbatch.runtime.costs.device import CPU, GPU
from tests.harness import AUTO, BATCH, check

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
        assert small_calls.are_made()
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
        assert Course.after(found)._is_native
    assert 0.7 < found["x"].std() < 1.4
    assert not Course.after(found)._is_native
    assert groups_of(64, 1.0) == [slice(0, 64)]


def test_the_gpus_numbers_are_for_the_gpu(gpu):
    assert device() is GPU
    with tf.device("/CPU:0"):
        assert device() is CPU


def functional(graph):
    """The conditionals and loops of a plain graph, and of its functions, that TensorFlow does not write out.

    Not those of functions that XLA compiles.
    """
    definition = graph.as_graph_def()
    known = {each.signature.name: each for each in definition.library.function}
    found, seen, waiting = [], set(), [definition.node]
    while waiting:
        for node in waiting.pop():
            if node.op in ("If", "StatelessIf", "While", "StatelessWhile", "Case", "StatelessCase"):
                found += [] if node.attr["_lower_using_switch_merge"].b else [node.name]
            for name in {each.func.name for each in node.attr.values() if each.HasField("func")} & known.keys() - seen:
                seen.add(name)
                if not known[name].attr["_XlaMustCompile"].b:
                    waiting.append(known[name].node_def)
    return found


@pytest.mark.parametrize("options", [{}, {"tape": "replay"}, {"fork": True}], ids=["keep", "replay", "forks"])
def test_gradients_in_plain_graphs_beside_a_gpu(gpu, options):
    """Ints in conditionals that TensorFlow runs as one operation would be looked for in the wrong memory."""
    weight = tf.Variable(0.5)

    @pcbatch.autobatch(**options)
    def tree(n, x):
        if n < 2:
            return tf.tanh(x * weight)
        return tree(n - 2, x) + weight * tree(n - 1, x + 1.0)

    n, x = np.arange(5, dtype=np.int32), np.linspace(0.0, 1.0, 5, dtype=np.float32)

    def gradient(results):
        with tf.GradientTape() as tape:
            loss = tf.add_n(tf.unstack(results()))
        return tape.gradient(loss, weight)

    traced = tf.function(lambda: gradient(lambda: tree(n, x))).get_concrete_function()
    assert functional(traced.graph) == []
    if not options:
        expected = gradient(lambda: tf.stack([tree.single(*each) for each in zip(n, x, strict=True)]))
        np.testing.assert_allclose(traced(), expected, rtol=1e-4)


WITHOUT_GUARDS = (
    "assert_fails", "break_continue", "depth_limit", "fibonacci", "insertion_sort", "mixed_failures", "random_walk",
    "step_limit",
)  # fmt: skip
"""Programs of few blocks."""


@pytest.mark.parametrize("name", WITHOUT_GUARDS)
def test_programs_without_guards(name, gpu, monkeypatch):
    """Of few cheap blocks all run in every trip there: the lanes' results, faults and steps are what they are."""
    without = []
    does_without = Merging.does_without_guards

    def noted(merging, rows, lanes):
        without.append(does_without(merging, rows, lanes))
        return without[-1]

    monkeypatch.setattr(Merging, "does_without_guards", noted)
    check(name, AUTO, BATCH)
    assert any(without)
