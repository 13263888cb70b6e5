"""Programs as kernels for GPUs: a CPU runs the same code in their stead, and XLA compiles them for a card.

`tests.kernels.forced` gives lanes few steps in a launch and stacks that are too small, so that all of it is used.
"""

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from benchmarks.nuts.contestants.in_tensorflow import ONE
from benchmarks.nuts.targets import TARGETS
from pcbatch import LaneError, nuts
from pcbatch.errors import UsageError
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.backends.protocol import Launch
from pcbatch.runtime.backends.tensorflow import graphs, handlers
from pcbatch.runtime.llvm import compiler, ptx
from pcbatch.runtime.llvm.interface import NAME
from pcbatch.runtime.llvm.mixed import MixedProgram
from tests.harness import BATCH, MIXED, check
from tests.kernels import can_translate, forced, translated
from tests.runtime.host_memory import misplaced
from tools.gpu_thunks.compiled import is_installed
from tools.gpu_thunks.thunks import Executed, names_of, parsed
from tools.gpu_thunks.traffic import Traffic

ROOT = Path(__file__).parent.parent.parent
FORM = "native: one kernel"
N = np.arange(9, dtype=np.int32)


@pcbatch.autobatch
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 2) + fibonacci(n - 1)


@pcbatch.autobatch
def down(n):
    return 0 if n == 0 else 1 + down(n - 1)


@pcbatch.autobatch
def settled(x):
    t = x
    while t > 0.1:
        t = tf.sin(t) * 0.5 + tf.math.log1p(t) * 0.1 + tf.exp(-t) * 1e-3
    return t


def program_of(function, *args):
    """The executable of a function for these arguments."""
    return function.session.pipeline(args, {})[1].machine


# -- runs --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def counted():
    @pcbatch.autobatch(max_steps=40)
    def counted(n, x):
        assert n >= 0, f"{n} is negative"
        total, i = x, 0
        while i < n:
            i += 1
            total += i * x
        return total

    return counted


@pytest.mark.parametrize("budget", [1, 7, 1000])
def test_lanes_go_on_where_they_were_stopped(counted, budget):
    n, x = np.array([0, 3, -1, 39, 41, 12], np.int32), np.linspace(1, 2, 6).astype(np.float32)
    with forced(budget=budget) as made:
        run = counted.run(n, x)
        assert counted.stats().forms == (FORM,)
    assert [kernel.again for kernel in made] == ([False, True] if budget < 40 else [False])
    plain = counted.options(form="lockstep").run(n, x)
    assert [*run.status] == [*plain.status]
    np.testing.assert_allclose(run.value, plain.value, rtol=1e-6)
    np.testing.assert_array_equal(run.outcome.steps, plain.outcome.steps)
    assert [fault.message for fault in run.errors] == [fault.message for fault in plain.errors]
    np.testing.assert_array_equal(run.outcome.executions.sum(), plain.outcome.active.sum())


def test_stacks_grow_and_stay_so():
    @pcbatch.autobatch(max_depth=100)
    def down(n):
        return 0 if n == 0 else 1 + down(n - 1)

    with forced():
        np.testing.assert_array_equal(down(np.array([1, 30, 5], np.int32)), [1, 30, 5])
        program = program_of(down, np.array([1, 30, 5], np.int32))
        assert program.capacity == 32
        run = down.run(np.array([1, 101, 50], np.int32))
        assert [status.name for status in map(pcbatch.LaneStatus, run.status)] == ["OK", "MAX_DEPTH", "OK"]
        assert program.capacity == 32, "a recursion without end is not what other runs pay for"
        with pytest.raises(LaneError, match="more than max_depth calls deep"):
            down(np.array([101], np.int32))


def test_draws_are_those_of_every_form():
    @pcbatch.autobatch
    def walk(key, n):
        x = 0.0
        for i in range(n):
            x += pcbatch.random.normal(pcbatch.random.fold_in(key, i))
        return x, pcbatch.random.bits(key)

    keys = pcbatch.random.split(pcbatch.random.key(3), 5)
    with forced():
        x, bits = walk(keys, np.arange(5, dtype=np.int32))
    other, same = walk.options(form="lockstep")(keys, np.arange(5, dtype=np.int32))
    np.testing.assert_allclose(x, other, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(bits, same)


def test_arrays_on_stacks_and_large_ones():
    """Some do not fit a thread's own memory; those that calls save are interleaved."""

    @pcbatch.autobatch
    def reversed_sums(values, k):
        if k == 0:
            return values
        half = reversed_sums(values[::-1] + 1, k - 1)
        return half + values

    @pcbatch.autobatch
    def sieve(n):
        marks = np.zeros(600, np.int32)
        count, i = 0, 2
        while i < n:
            if marks[i] == 0:
                count += 1
                j = i + i
                while j < n:
                    marks[j] = 1
                    j += i
            i += 1
        return count

    values, k = np.arange(20, dtype=np.int32).reshape(4, 5), np.arange(4, dtype=np.int32)
    n = np.array([10, 600, 100], np.int32)
    with forced():
        found, counts = reversed_sums(values, k), sieve(n)
        assert program_of(sieve, n)._kernels.first.layout.arena_bytes >= 2400
    np.testing.assert_array_equal(found, reversed_sums.options(form="lockstep")(values, k))
    np.testing.assert_array_equal(counts, [4, 109, 25])


def test_numbers_of_neighbouring_lanes_lie_side_by_side():
    with forced() as made:
        down(N[:3])
    first = made[0]
    code = compiler.object_code("\n".join([ptx._without_declarations(first.text), ptx._ALONE]))
    (run,), engine = compiler.addresses(code, (NAME,))
    capacity = 6
    control = np.array([3, *first.layout.control(capacity, 1000)], np.int64)
    outputs = [np.zeros(shape, dtype) for dtype, shape in first.outputs(3, capacity)]
    arrays = [N[:3] + 2, control, *outputs]
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(run)(*(array.ctypes.data for array in arrays))
    np.testing.assert_array_equal(outputs[2], [2, 3, 4])
    assert engine is not None
    size = first.layout.entries[1] if first.layout.entries[1:] else 0
    if size == 4:  # an entry of the stack is one number
        start = 3 * on_gpu_rounded((capacity + 2) * first.layout.entries[0])
        entries = outputs[-1].reshape(-1)[start:].view(np.int32)[:3]
        np.testing.assert_array_equal(entries, [2, 3, 4])


def on_gpu_rounded(count):
    return (count + 63) // 64 * 64


def test_the_number_of_lanes_varies():
    with forced():
        for lanes in (5, 3, 7, 0, 1):
            np.testing.assert_array_equal(fibonacci(N[:lanes]), [fibonacci.single(n) for n in N[:lanes]])
        fibonacci.compile(tf.TensorSpec([4], tf.int32))
        assert len(program_of(fibonacci, N)._kernels._calls) == 2


def test_ctrl_c_comes_through_between_launches():
    @pcbatch.autobatch
    def endless(n):
        while n >= 0:
            n = n + 0 * n
        return n

    with forced(budget=1000):
        np.testing.assert_array_equal(endless(np.array([-1], np.int32)), [-1])
        before = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(KeyboardInterrupt):
                endless(np.array([3], np.int32))
        finally:
            signal.signal(signal.SIGALRM, before)


def test_gradients_are_those_of_lockstep():
    x = tf.constant([0.5, 1.0, 1.5])

    def gradient(function):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(function(x))
        return tape.gradient(total, x)

    with forced():
        found = gradient(settled)
    np.testing.assert_allclose(found, gradient(settled.options(form="lockstep")), rtol=1e-5)


# -- in graphs ---------------------------------------------------------------------------------------------------------


def test_runs_in_a_graph(counted, monkeypatch):
    monkeypatch.setattr(graphs, "has_gpu", lambda: True)
    n, x = np.array([3, 12, 20], np.int32), np.ones(3, np.float32)
    with forced():
        traced = tf.function(
            lambda n, x: counted(n, x), input_signature=[tf.TensorSpec([None], d) for d in (n.dtype, x.dtype)]
        )
        assert misplaced(traced.get_concrete_function()) == [], (
            "conditionals of a plain graph look for ints in the wrong memory"
        )
        np.testing.assert_allclose(traced(n, x), counted.options(form="lockstep")(n, x))
        with pytest.raises(tf.errors.InvalidArgumentError, match="-5 is negative"):
            traced(np.array([-5], np.int32), x[:1])
        jitted = tf.function(lambda n, x: counted.run(n, x).value, jit_compile=True)
        np.testing.assert_allclose(jitted(n, x), counted.options(form="lockstep")(n, x))


def test_a_graph_leaves_deep_lanes_to_the_machine():
    with forced():
        traced = tf.function(lambda n: down(n))
        np.testing.assert_array_equal(traced(np.array([1, 8], np.int32)), [1, 8])
        np.testing.assert_array_equal(traced(np.array([1, 50], np.int32)), [1, 50])
        limited = tf.function(lambda n: down.options(max_depth=60).run(n).value, jit_compile=True)
        np.testing.assert_array_equal(limited(np.array([50, 2], np.int32)), [50, 2])


# -- between expensive blocks ------------------------------------------------------------------------------------------

SLOW_MIXED = ("assert_fails", "depth_limit", "fibonacci", "insertion_sort", "random_walk", "rnn", "step_limit")


@pytest.mark.parametrize("name", ["collatz", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW_MIXED)])
def test_native_code_between_blocks_is_a_kernel(name):
    with forced():
        check(name, MIXED, BATCH)


def sampled(chains, constant):
    """Draws of a logistic regression, and the leapfrogs of each trajectory; its program is one for each `constant`."""
    target = TARGETS["logistic-small"]
    one, starts = ONE[target.family], target.starts(chains)

    def density(q, data):
        return one(q, data) + constant

    found = nuts.sample(
        density,
        starts[0],
        data=target.data(),
        initial_per_chain=starts,
        chains=chains,
        warmup=0,
        draws=3,
        seed=1,
        step_size=target.step_size,
        adapt=None,
        progress=False,
    )
    return found["x"], found.sample_stats["n_steps"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pcbatch.nuts.SamplerWarning")
def test_the_sampler_with_a_kernel_between_gradients(monkeypatch):
    forms, begin = [], MixedProgram.__init__

    def noted(program, *given):
        begin(program, *given)
        forms.append((program.form, program.legs.loop.trips_together(8)))

    monkeypatch.setattr(MixedProgram, "__init__", noted)
    with forced():
        draws, leapfrogs = sampled(8, 0.0)
    assert len(forms) == 1
    assert forms[0][0].startswith("mixed: ")
    assert forms[0][1] == 16, "the gradient runs in every trip"
    on_cpu, same = sampled(8, 0.0)
    np.testing.assert_allclose(draws, on_cpu, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(leapfrogs, same)


# -- choice ------------------------------------------------------------------------------------------------------------


def test_a_function_of_nvidias_library_is_refused_where_that_is_not_found(monkeypatch):
    x = np.linspace(1, 2, 3, dtype=np.float32)
    monkeypatch.setattr(ptx, "libdevice", lambda: None)
    with pytest.raises(UsageError, match=r"PCB534: settled has no kernel for a GPU.*libdevice.*CUDA_HOME"):
        settled.ir("ptx", x)
    assert ".visible .entry run" in fibonacci.ir("ptx", N)


def test_what_runs_in_lockstep_on_a_gpu_says_why():
    with forced():
        few = fibonacci.options(max_lanes=4)
        np.testing.assert_array_equal(few(N), [fibonacci.single(n) for n in N])
        assert few.stats().forms == ("lockstep: max_lanes is for lanes in lockstep",)

        @pcbatch.autobatch(form="native")
        def inverse(x):
            return tf.linalg.inv(x)

        with pytest.raises(UsageError, match="PCB534"):
            inverse(np.eye(3, dtype=np.float32)[None])
    with graphs.targeting("GPU"), pytest.raises(UsageError, match="XLA takes no kernels of pcbatch's on this GPU"):
        fibonacci.options(form="native")(N)


def test_an_environment_variable_turns_kernels_off(monkeypatch):
    monkeypatch.setenv("PCBATCH_KERNELS", "0")
    with forced(), pytest.raises(UsageError, match="XLA takes no kernels of pcbatch's on this GPU"):
        down.options(form="native", max_steps=9)(N)


def test_explain_names_the_kernel():
    with forced():
        fibonacci(N)
        assert FORM in str(pcbatch.explain(fibonacci, N))


# -- a card ------------------------------------------------------------------------------------------------------------


def test_a_launch_covers_the_lanes():
    assert ptx.grid(None) == (ptx.BLOCKS, ptx.THREADS_OF_BLOCK)
    for lanes in (1, 32, 64, 4224, 4225, 10_000, 10_000_000):
        blocks, threads = ptx.grid(lanes)
        assert blocks * threads >= min(lanes, ptx.BLOCKS * ptx.THREADS_OF_BLOCK)
        assert blocks <= ptx.BLOCKS
    assert ptx.grid(64) == (2, 32), "few lanes spread over the card"


def test_the_text_of_a_kernel_is_a_string_in_a_string():
    launch = Launch("run", 'a "b"\n\tc\\d', 3, 32)
    _, config = handlers._launching(launch)
    outer = config.removeprefix("backend_config = ")
    inner = unquoted(outer)
    assert "grid_x = 3, grid_y = 1" in inner
    assert "block_x = 32" in inner
    assert unquoted(inner.partition("kernel_data = ")[2].partition(", grid_x")[0]) == launch.text


def unquoted(text):
    """The characters that MLIR reads of a string."""
    found, rest = "", text[1:-1]
    while rest:
        if rest[0] != "\\":
            found, rest = found + rest[0], rest[1:]
        elif rest[1] == "\\":
            found, rest = found + "\\", rest[2:]
        else:
            found, rest = found + chr(int(rest[1:3], 16)), rest[3:]
    return found


@pytest.mark.skipif(not can_translate(), reason="NVIDIA's assembler is not installed")
def test_nvidias_assembler_takes_the_text():
    assert translated(fibonacci.ir("ptx", N)) == ""
    assert translated(settled.ir("ptx", np.ones(3, np.float32))) == ""
    assert translated(handlers._TRIED_KERNEL) == ""
    assert "no such thing" in translated("no such thing") or translated("no such thing")


COMPILING = """
import json, sys
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax._src.lib.mlir import ir
from jax.experimental import topologies
from jaxlib import _jax
from tools.gpu_thunks.compiling import CARD

card = topologies.get_topology_desc(platform="cuda", target_config=CARD.read_text("utf-8"), topology="1x1x1")
with mlir.make_ir_context():
    module = ir.Module.parse(open(sys.argv[1]).read())
    module.operation.attributes["sym_name"] = ir.StringAttr.get("program")
    device = card.devices[0]
    device.client.compile(module, _jax.DeviceList((device,)), xla_client.CompileOptions())
"""


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(), reason="XLA for CUDA is not installed")
@pytest.mark.parametrize("name", ["fibonacci", "settled"])
def test_xla_compiles_a_run_for_a_card(name, tmp_path, monkeypatch):
    """A whole run in a graph is the kernel, and a loop with the other one, whose state is not copied."""
    monkeypatch.setattr(graphs, "has_gpu", lambda: True)
    monkeypatch.setattr(handlers, "_kernels_are_called", lambda: True)
    function, given = {"fibonacci": (fibonacci, N), "settled": (settled, np.ones(9, np.float32))}[name]
    function = function.options(max_steps=10**6)  # a program of its own, for a card
    program = program_of(function, given)
    assert program.form == FORM
    specs = [(str(given.dtype), given.shape)]
    sequence = compiled(lambda x: program._in_graphs._native(len(given), x), specs, tmp_path).read_text()
    assert sequence.count(" run grid: [1, 1, 1] threads: [32, 1, 1]") == 2
    assert sequence.count("kWhile") == 1
    assert "kCopy" not in sequence


def compiled(function, specs, tmp_path):
    """The file with the thunks that XLA makes of a function of arrays, for a card."""
    file = tmp_path / "program.mlir"
    file.write_text(backend_named("tensorflow").lowering(function, specs).text([shape for _, shape in specs], "GPU"))
    dump = ["--xla_dump_hlo_as_text", "--xla_gpu_autotune_level=0", f"--xla_dump_to={tmp_path}"]
    environment = {**os.environ, "XLA_FLAGS": " ".join(dump), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", COMPILING, str(file)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    (sequence,) = tmp_path.glob("*.thunk_sequence.txt")
    return sequence


class LoweredError(Exception):
    """The program is lowered; there is nothing to run it."""


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(), reason="XLA for CUDA is not installed")
@pytest.mark.filterwarnings("ignore::pcbatch.nuts.SamplerWarning")
def test_a_trip_of_the_sampler_is_twenty_kernels(tmp_path, monkeypatch):
    """In lockstep it is fifty, and eleven copies (docs/gpu.md)."""
    monkeypatch.setattr(graphs, "has_gpu", lambda: True)
    monkeypatch.setattr(handlers, "_kernels_are_called", lambda: True)
    found = []

    def lowered(program, arrays, lanes):
        room = program._room(lanes)
        flat = [tf.convert_to_tensor(each) for each in (*program.machine.extended(arrays, lanes, room), lanes)]
        whole = program._whole(room)
        specs = [(each.dtype.name, tuple(each.shape)) for each in flat]
        found.append(compiled(lambda *given: list(whole(*given)), specs, tmp_path))
        raise LoweredError

    monkeypatch.setattr(MixedProgram, "_run_arrays", lowered)
    monkeypatch.setattr(
        MixedProgram, "_ready", lambda program, arrays, lanes: lambda given: lowered(program, given, lanes)
    )
    with pytest.raises(LoweredError):
        sampled(64, 1.0)
    (text,) = tmp_path.glob("*gpu_after_optimizations.txt")
    (metadata,) = tmp_path.glob("*.thunk_metadata.txt")
    thunks = parsed(found[0].read_text(), names_of(metadata.read_text()))
    (trip,) = Executed(Traffic(text.read_text())).trips(thunks)
    assert trip.counts.conditionals == 0
    assert 16 * trip.counts.looks <= 2
    assert trip.counts.kernels <= 24
    assert trip.counts.copies <= 4
