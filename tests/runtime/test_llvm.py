"""Native code by LLVM: memory that several values share, special numbers, stacks that grow, and Ctrl-C."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.llvm import compiler, hlo, memory
from pcbatch.runtime.llvm.code import ARRAYS
from pcbatch.runtime.llvm.hlo import ArrayShape, TupleShape, UnsupportedError
from pcbatch.runtime.llvm.machine_code import MachineCode
from tests.threads import in_threads

# -- arrays in memory --------------------------------------------------------------------------------------------------


@pcbatch.autobatch(form="native")
def swapped_in_a_loop(n, a, b):
    while n > 0:
        a, b = b, a + 1.0
        n = n - 1
    return a, b


@pcbatch.autobatch(form="native")
def rotated(n, a):
    """Each new array is computed from other places of the old one."""
    while n > 0:
        a = tf.concat([a[1:], a[:1]], 0) + tf.reverse(a, [0])
        n = n - 1
    return a


@pcbatch.autobatch(form="native")
def kept_around_stores(n, a):
    """Values of an array from before a store into it, in the same block and in later ones."""
    total = a * 0.0
    while n > 0:
        before, part = a * 2.0, tf.reverse(a, [0])
        a[n % 4] = tf.reduce_sum(before)
        total = total + before + a - part[0]
        n = n - 1
    return total, a


def updated(x, place, value):
    return tf.tensor_scatter_nd_update(x, [[place]], [value])


@pcbatch.autobatch(form="native")
def inner_loops(n, a):
    """Loops inside operations: arrays that change places in each turn, that are updated in part, that stay."""
    while n > 0:
        _, a, b, c = tf.while_loop(
            lambda i, *_: i < 5,
            lambda i, x, y, z: (i + 1, y, updated(x, i % 4, tf.reduce_sum(y) + x[0]) * 0.5, z + updated(x, 0, y[1])),
            (0, a, a + 1.0, a),
        )
        a = a + b - c
        n = n - 1
    return a


@pcbatch.autobatch(form="native")
def updated_twice(n, a):
    """A view of an array that is read after the array has been updated in place."""
    while n > 0:
        first = tf.tensor_scatter_nd_update(a, [[0]], [a[3] + 1.0])
        shifted = tf.roll(first, 1, 0)
        second = tf.tensor_scatter_nd_update(first, [[1], [2]], shifted[:2])
        a = second + shifted
        n = n - 1
    return a


@pcbatch.autobatch(form="native")
def saved(n, a):
    if n <= 0:
        return a
    left = saved(n - 1, a + 1.0)
    a[n % 4] = left[0]
    right = saved(n - 2, a)
    return left + right + a


@pcbatch.autobatch(form="native")
def sorted_and_found(n, a):
    while n > 0:
        order = tf.argsort(a)
        a = tf.gather(a, order) + tf.cumsum(a, reverse=True) - tf.sort(-a)
        a = tf.where(a > tf.reduce_max(a[:2]), tf.cast(tf.argmin(a), tf.float32), a * 0.25)
        n = n - 1
    return a


NO_AXES = np.zeros([0], np.int32)


@pcbatch.autobatch(form="native")
def padded_numbers(n, a):
    """A number has no axes along which it could be padded."""
    while n > 0:
        a = a + tf.raw_ops.StridedSliceGrad(shape=NO_AXES, begin=NO_AXES, end=NO_AXES, strides=NO_AXES, dy=a[1])
        n = n - 1
    return a


N = np.array([0, 1, 2, 5, 7], np.int32)
A = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (swapped_in_a_loop, (N, A, A[::-1].copy())),
        (rotated, (N, A)),
        (kept_around_stores, (N, A)),
        (inner_loops, (N, A)),
        (updated_twice, (N, A)),
        (saved, (N, A)),
        (sorted_and_found, (N, A)),
        (padded_numbers, (N, A)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_arrays_in_memory(function, arguments):
    found = tf.nest.flatten(function(*arguments))
    assert function.stats().forms == ("native",)
    for lane, _ in enumerate(N):
        given = [tf.constant(each[lane]) if each.ndim > 1 else int(each[lane]) for each in arguments]
        for one, wanted in zip(found, tf.nest.flatten(function.single(*given)), strict=True):
            np.testing.assert_allclose(one[lane], wanted, rtol=2e-5, atol=1e-6)


@pcbatch.autobatch(form="native")
def large(n, a):
    """Arrays that do not lie on the thread's stack."""
    while n > 0:
        b = tf.reverse(a, [0]) * 0.5
        a[n] = tf.reduce_sum(b[:100])
        a = b + tf.sin(a)
        n = n - 1
    return a


def test_large_arrays():
    rows = np.random.default_rng(2).normal(size=(3, 3000)).astype(np.float32)
    numbers = np.array([0, 2, 3], np.int32)
    found = large(numbers, rows)
    for lane, row in enumerate(rows):
        np.testing.assert_allclose(found[lane], large.single(int(numbers[lane]), row), rtol=2e-4, atol=1e-5)


# -- special numbers ---------------------------------------------------------------------------------------------------

INTS = np.array([0, 1, -1, 2, -7, 31, 32, 33, 64, 2**31 - 1, -(2**31)], np.int32)
FLOATS = np.array([0.0, -0.0, 1.0, -1.5, 2.5, 3.5, 3e9, -3e9, 1e30, np.inf, -np.inf, np.nan], np.float32)

OF_INTS = {
    "truncated": lambda x, y: tf.truncatediv(x, y),
    "remainder": lambda x, y: tf.truncatemod(x, y),
    "left": lambda x, y: tf.bitwise.left_shift(x, tf.maximum(y, 0)),
    "right": lambda x, y: tf.bitwise.right_shift(x, tf.maximum(y, 0)),
    "products": lambda x, y: x * y + (x ^ y),
    "absolute": lambda x, y: tf.abs(x) + tf.sign(y),
    "cast": lambda x, y: tf.cast(x, tf.uint8) + tf.cast(tf.cast(y, tf.int16), tf.uint8),
    "unsigned": lambda x, y: tf.truncatediv(tf.cast(x, tf.uint32), tf.cast(y, tf.uint32)),
    "wide": lambda x, y: tf.truncatemod(tf.cast(x, tf.int64) * 2**31, tf.cast(y, tf.int64)),
}
OF_FLOATS = {
    "extremes": lambda x, y: (tf.maximum(x, y), tf.minimum(x, y), tf.clip_by_value(x, y, 2.0)),
    "compared": lambda x, y: (x < y, x == y, x != y, x >= y, tf.math.is_finite(x), tf.math.is_nan(y)),
    "rounded": lambda x, y: (tf.round(x), tf.floor(y), tf.math.ceil(x), tf.math.rint(y), tf.sign(x)),
    "cast": lambda x, y: (tf.cast(x, tf.int32), tf.cast(y, tf.int64), tf.cast(x, tf.bool), tf.cast(y, tf.int8)),
    "modulo": lambda x, y: (tf.math.floormod(x, y), x / y),
    "functions": lambda x, y: (tf.tanh(x), tf.math.log1p(y), tf.math.expm1(x), tf.atan2(x, y), tf.sigmoid(y)),
    "powers": lambda x, y: (tf.pow(x, y), tf.sqrt(x), tf.math.rsqrt(y), tf.exp(x), tf.math.log(y)),
    "special": lambda x, y: (tf.math.erf(x), tf.math.lgamma(y), tf.math.softplus(x)),
    "ordered": lambda x, y: (tf.sort(tf.stack([x, y, 1.0])), tf.argmax([x, y, 1.0]), tf.argsort([y, x])),
}


@pytest.mark.parametrize(
    ("operation", "numbers"),
    [pytest.param(each, INTS, id=f"{name}-ints") for name, each in OF_INTS.items()]
    + [pytest.param(each, FLOATS, id=f"{name}-floats") for name, each in OF_FLOATS.items()],
)
def test_special_numbers(operation, numbers):
    """All pairs: the same as XLA gives in lockstep, where Python and NumPy do not say what it is."""

    @pcbatch.autobatch
    def of(x, y):
        return operation(x, y)

    x, y = (each.ravel() for each in np.meshgrid(numbers, numbers))
    found, wanted = (tf.nest.flatten(of.options(form=form)(x, y)) for form in ("native", "lockstep"))
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        compare = np.testing.assert_allclose if one.dtype.is_floating else np.testing.assert_array_equal
        compare(one, other, **({"rtol": 3e-6, "atol": 1e-37} if one.dtype.is_floating else {}))


# -- stacks ------------------------------------------------------------------------------------------------------------


@pcbatch.autobatch(form="native", max_depth=5000)
def down(n):
    assert n != 13, f"unlucky with {n}"
    if n <= 0:
        return 0
    return down(n - 1) + 2


def test_stacks_grow(monkeypatch):
    """Lanes that need more begin anew; a lane that fails in the depth leaves nothing to the next."""
    monkeypatch.setattr(memory, "LARGE", 64)
    function = down.options(name="growing")
    with monkeypatch.context() as patch:
        patch.setattr(MachineCode, "of", lambda function: pytest.fail("stats compile nothing"))
        function.pipeline(np.array([2, 1], np.int32))
        assert function.stats().stack_entries < 40
    numbers = np.array([3, 4000, 0, 300, -1], np.int32)
    assert function(np.array([2, 1], np.int32)).numpy().tolist() == [4, 2]
    assert function.stats().stack_entries < 40
    run = function.run(numbers)
    assert run.status.tolist() == [0, 1, 0, 1, 0]
    assert "unlucky with 13" in run.errors[0].message
    assert function.stats().stack_entries > 4000
    assert function.options(max_depth=12).run(np.array([12, 40, 11], np.int32)).status.tolist() == [0, 5, 0]


def test_stacks_grow_in_threads(monkeypatch):
    monkeypatch.setattr(memory, "LARGE", 64)
    function, numbers = down.options(name="in threads"), np.array([-13, 12, 3], np.int32)
    found = in_threads(4, lambda: [function(numbers).numpy().tolist() for _ in range(5)])
    assert found == [[[0, 24, 6]] * 5] * 4


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------

ENDLESS = """
    import os, signal, sys, threading
    import pcbatch
    from pcbatch.runtime.llvm import multithreading

    @pcbatch.autobatch(form="native")
    def loop(n):
        while n >= 0:
            n = n ^ 6
        return n

    @pcbatch.autobatch(form="native")
    def inner(n):
        return n if n < 0 else inner(n ^ 6) + 0 if n == 100 else loop(n)

    multithreading.available = lambda: int(sys.argv[1])
    short = [-1, -2, -3, -4]
    for function, call in ((loop, loop), (inner, inner.run)):
        for _ in range(3):
            call(short)
        if sys.argv[1] == "2":
            function.session.pipeline((short,), {})[1].machine._cost.note(4, 4.0)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            call([-1, 4, -2, 5])
            print("ended")
        except KeyboardInterrupt as error:
            print(type(error).__name__)
        assert list(function(short)) == short
"""


@pytest.mark.parametrize("count", ["1", "2"])
def test_an_endless_lane_is_interrupted(count, tmp_path):
    """By Ctrl-C, on one core and on two; then all is as before."""
    script = tmp_path / "endless.py"
    script.write_text(textwrap.dedent(ENDLESS))
    command = [sys.executable, str(script), count]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ended.stdout.split() == ["KeyboardInterrupt"] * 2, ended.stderr


# -- HLO ---------------------------------------------------------------------------------------------------------------

TEXT = """HloModule example, entry_computation_layout={(f32[2]{0})->(f32[], s32[])}

%sum (x.1: f32[], y.1: f32[]) -> f32[] {
  %x.1 = f32[] parameter(0)
  %y.1 = f32[] parameter(1)
  ROOT %add.1 = f32[] add(f32[] %x.1, f32[] %y.1), metadata={op_type="Sum" op_name="a, {b}"}
}

ENTRY %example (arg0.1: f32[2]) -> (f32[], s32[]) {
  %arg0.1 = f32[2]{0} parameter(0), parameter_replication={false}
  %c = s32[2,2]{1,0} constant({ { 1, -2 }, { 3, 4 } })
  %zero = f32[] constant(0)
  %unused = f32[] constant(nan)
  %reduce.1 = f32[] reduce(f32[2]{0} %arg0.1, f32[] %zero), dimensions={0}, to_apply=%sum
  %pad.1 = s32[4,3]{1,0} pad(s32[2,2]{1,0} %c, s32[] %k), padding=1_1x0_1_0
  %k = s32[] constant(7)
  ROOT %tuple = (f32[], /*index=1*/s32[]) tuple(f32[] %reduce.1, s32[] %k)
}
"""


def test_hlo_is_read():
    module = hlo.parse(TEXT)
    entry = module.entry
    assert entry.root.operands == ("reduce.1", "k")
    assert entry.root.shape == TupleShape((ArrayShape("f32"), ArrayShape("s32")))
    assert hlo.constant(entry.instructions["c"]) == ["1", "-2", "3", "4"]
    assert entry.instructions["reduce.1"].computation() == "sum"
    assert entry.instructions["reduce.1"].numbers("dimensions") == (0,)
    assert entry.instructions["pad.1"].attributes["padding"] == "1_1x0_1_0"
    assert [each.name for each in entry.reached(["reduce.1"])] == ["arg0.1", "zero", "reduce.1"]
    assert [each.name for each in module.computations["sum"].parameters] == ["x.1", "y.1"]


def test_hlo_of_which_no_code_is_made():
    with pytest.raises(UnsupportedError, match="sizes that are not known"):
        hlo.parse(TEXT.replace("f32[2]{0} parameter", "f32[<=2]{0} parameter"))
    with pytest.raises(UnsupportedError, match="not printed whole"):
        hlo.constant(hlo.parse(TEXT.replace("{ { 1, -2 }, { 3, 4 } }", "{...}")).entry.instructions["c"])


# -- text --------------------------------------------------------------------------------------------------------------


ADDITION = """
define double @run(double %a) {
  %b = fadd double %a, 1.0
  ret double %b
}
"""


def test_a_limit_of_llvms_is_there_for_us_alone(monkeypatch):
    """Numba compiles with the same library. An LLVM that does not know the option would end the process."""
    options = []
    monkeypatch.setattr(compiler.llvm, "set_option", lambda name, option: options.append(option))
    with_arrays = f"{ADDITION}!{ARRAYS} = !{{ }}\n"
    assert compiler.object_code(with_arrays)
    assert [each.split("=")[1] for each in options] == ["3", "12"]
    options.clear()
    monkeypatch.setattr(compiler.llvm, "llvm_version_info", (compiler.NEWEST + 1, 0, 0))
    assert compiler.object_code(with_arrays)
    assert not options


def test_elements_of_arrays_are_made_vectors_of():
    """Only code that goes through arrays gets the passes that may: they take longer than all others."""

    @pcbatch.autobatch
    def scaled(x, n):
        for _ in range(n):
            x = x * 1.5 + 1.0
        return x

    n = np.array([3, 0], np.int32)
    assert f"!{ARRAYS} = " not in scaled.ir("llvm", np.float32([2, 3]), n)
    text = scaled.ir("llvm", np.ones((2, 400), np.float32), n)
    assert f"!{ARRAYS} = " in text
    optimised, _ = compiler.optimized(text)
    assert "fmul contract <" in str(optimised)


def test_its_text_is_shown():
    text = down.ir("llvm", N)
    assert 'define void @"run"' in text
    assert text == down.ir("llvm", N)
    with pytest.raises(pcbatch.UsageError, match=r"PCB534: down is not run as native code .* as: lockstep"):
        down.options(form="lockstep").ir("llvm", N)
    with pytest.raises(pcbatch.UsageError, match="PCB506"):
        down.ir("llvm")


def test_counts_are_those_of_the_run():
    """Though the arrays that it was given hold other numbers when somebody asks for them."""
    function, numbers = down.options(name="counted"), np.array([3, 0, 20], np.int32)
    function(numbers[:2].copy()), function(numbers[:2].copy())
    runs = []
    for _ in range(3):
        with pytest.raises(pcbatch.LaneError) as caught:
            function(numbers)
        runs.append(caught.value.run)
    wanted = runs[0].executions
    numbers[:] = 1
    assert [run.executions for run in runs] == [wanted] * 3


@pcbatch.autobatch(form="native")
def called_with_what_is_needed_later(n, a):
    while n > 0:
        b = a * 0.5 + tf.reverse(a, [0])
        c = tf.function(lambda x: tf.tensor_scatter_nd_update(x, [[1]], [x[0] + 1.0]))(b)
        a = tf.cond(c[1] > 0.0, lambda c=c: tf.tensor_scatter_nd_update(c, [[2]], [7.0]), lambda c=c: c) + b + c
        n = n - 1
    return a


@pcbatch.autobatch(form="native")
def many_vectors(n, a):
    """More than the thread's stack has room for."""
    while n > 0:
        for k in range(40):
            b = tf.sin(a) + tf.reverse(a, [0])
            a = tf.concat([b[500:], b[:500]], 0) * 0.5 + tf.roll(b, k, 0)
        n = n - 1
    return a


def test_what_is_handed_to_functions_stays():
    found = called_with_what_is_needed_later(N, A)
    for lane, row in enumerate(A):
        wanted = called_with_what_is_needed_later.single(int(N[lane]), tf.constant(row))
        np.testing.assert_allclose(found[lane], wanted, rtol=2e-5)


def test_many_vectors():
    rows = np.random.default_rng(2).normal(size=(2, 1000)).astype(np.float32)
    found = many_vectors(np.array([1, 2], np.int32), rows)
    for lane, row in enumerate(rows):
        np.testing.assert_allclose(found[lane], many_vectors.single(lane + 1, tf.constant(row)), rtol=1e-3, atol=1e-3)


# -- complex numbers ---------------------------------------------------------------------------------------------------


@pcbatch.autobatch(form="native")
def escaped(c, n):
    z, turns, seen = c * 0.0, 0, tf.stack([c, tf.math.conj(c), 1j * c])
    while turns < n and tf.abs(z) < 2.0:
        z = z * z + c
        seen = tf.where(tf.math.real(seen) > 0.0, seen / (z + (0.5 + 0.25j)), -seen) + tf.reverse(seen, [0])
        turns = turns + 1
    return z, turns, tf.exp(seen[0] * 0.01), seen, z == c, tf.cast(turns, tf.complex128), tf.math.imag(z)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(dtype):
    c = np.array([0.3 + 0.5j, -1.0, 2.0 - 1.0j, -0.1 + 0.65j, 0.25j], dtype)
    turns = np.array([5, 9, 3, 30, 2], np.int32)
    found = escaped(c, turns)
    for lane in range(len(c)):
        for one, wanted in zip(found, escaped.single(tf.constant(c[lane]), int(turns[lane])), strict=True):
            np.testing.assert_allclose(one[lane], wanted, rtol=2e-4 if dtype == "complex64" else 1e-11)


def test_the_address_of_an_array():
    """By NumPy's binary interface, as the array itself tells it."""
    numbers = np.arange(24, dtype=np.float64).reshape(4, 6)
    kept = numbers.view()
    kept.flags.writeable = False
    arrays = [numbers, numbers[1:, ::-2], numbers.T, kept, np.ones(()), np.zeros((0, 3)), np.broadcast_to(1.0, (3, 2))]
    assert memory.address is memory._read
    for array in arrays:
        assert memory.address(array) == array.__array_interface__["data"][0]
