"""Native code among expensive blocks, as XLA compiles it and as users run it: which programs, no copies, no aborts."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import random
from pcbatch.ir.types import leaves

pytestmark = pytest.mark.xdist_group("mixed compiled")  # the same programs, compiled once
ROOT = Path(__file__).parents[2]
NUMBERS = np.array([0, 3, 9, 5, 1], np.int32)
WEIGHTS = tf.constant(np.random.default_rng(1).normal(size=(40, 40)) / 6, tf.float32)
VECTORS = np.random.default_rng(2).normal(size=(5, 40)).astype(np.float32)


def computations(text):
    """The lines of each computation of a program's text, by name."""
    found, name = {}, None
    for line in text.splitlines():
        start = re.match(r"(?:ENTRY )?%(\S+) \(.*\{$", line)
        name = start.group(1) if start else name
        found.setdefault(name, []).append(line)
    return found


@pcbatch.autobatch
@pcbatch.cost(1e5)
def layer(x):
    """A block of its own for what is expensive."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.tanh(tf.linalg.matvec(WEIGHTS, x)))
    return tape.gradient(y, x)


@pcbatch.autobatch
def tree(x, depth, key):
    """A recursion over vectors that calls can keep: draws, faults, products."""
    if depth <= 0:
        return layer(x + 0.1 * random.normal(key, (40,)))
    assert depth != 7, f"{depth} is too deep"
    keys = random.split(key)
    left = tree(x * 0.5, depth - 1, keys[0])
    total = tf.reduce_sum(left)
    if total > 0.0:
        return left - x
    right = tree(left + x, depth - 2, keys[1])
    return tf.where(total < -1.0, left, right) + x


@pcbatch.autobatch
def walk(n, x):
    """A loop that stores elements of an array, once the same one twice, a product in every second turn."""
    row = tf.zeros([50])
    i = 0
    while i < n:
        if i % 2 == 0:
            x = layer(x)
        row[i * 7 % 50] = x[i % 40]
        row[7] += 1.0
        i += 1
    return x, row


ARGUMENTS = {tree: (VECTORS, NUMBERS % 6, random.keys(4, 5)), walk: (NUMBERS, VECTORS)}


def programs(*functions, slow=()):
    cases = [*functions, *(pytest.param(function, marks=pytest.mark.slow) for function in slow)]
    return pytest.mark.parametrize("function", cases, ids=lambda function: function.__name__)


def assert_singles(function, value, arguments):
    for lane, given in enumerate(zip(*arguments, strict=True)):
        wanted = tf.nest.flatten(function.single(*given))
        for found, one in zip(tf.nest.flatten(value), wanted, strict=True):
            np.testing.assert_allclose(found[lane], one, rtol=2e-5, atol=2e-6)


@programs(walk, slow=[tree])
def test_auto_takes_it_and_says_so(function):
    arguments = ARGUMENTS[function]
    for _ in range(2):
        value = function(*arguments)
    assert_singles(function, value, arguments)
    (form,) = function.stats().forms
    assert re.fullmatch(r"mixed: b\d+ in lockstep, the rest native: a row of b\d+ is expensive", form)
    lockstep = function.options(form="lockstep")
    lockstep(*arguments)
    assert lockstep.stats().forms == ("lockstep",)


@programs(walk, slow=[tree])
def test_counts_are_those_of_lockstep(function):
    """Lanes for which blocks ran; in the expensive one fewer runs, as all lanes that come to it are there."""
    run, other = (function.options(form=form).run(*ARGUMENTS[function]) for form in ("auto", "lockstep"))
    np.testing.assert_array_equal(run.outcome.active, other.outcome.active)
    np.testing.assert_array_equal(run.lane_steps, other.lane_steps)
    assert np.sum(run.outcome.rows) < np.sum(other.outcome.rows)
    assert run.trips <= other.trips
    assert "layer(" in str(run.profile()) or "matvec" in str(run.profile())


@pytest.mark.slow
def test_a_fault_is_its_lanes_alone():
    arguments = (VECTORS, np.array([1, 7, 2, 8, 0], np.int32), random.keys(4, 5))
    run, wanted = (tree.options(**options).run(*arguments) for options in ({}, {"backend": "reference"}))
    assert [fault.render() for fault in run.errors] == [fault.render() for fault in wanted.errors]
    np.testing.assert_array_equal(run.status, wanted.status)
    np.testing.assert_allclose(run.value, wanted.value, rtol=2e-5, atol=2e-6)
    assert "AssertionError: 7 is too deep" in run.errors[0].message


@pytest.mark.slow
@pytest.mark.parametrize("limits", [{"max_steps": 9}, {"max_depth": 2}])
def test_limits_are_those_of_the_reference(limits):
    runs = [tree.options(**limits, **options).run(*ARGUMENTS[tree]) for options in ({}, {"backend": "reference"})]
    for name in ("status", "lane_steps"):
        np.testing.assert_array_equal(*(getattr(run, name) for run in runs))
    assert len({*np.asarray(runs[0].status).tolist()}) == 2


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [0, 1, 17])
def test_other_numbers_of_lanes(lanes):
    places = np.arange(lanes) % 5
    arguments = tuple(np.asarray(array)[places] for array in ARGUMENTS[walk])
    assert_singles(walk, walk(*arguments), arguments)


@pytest.mark.slow
def test_what_it_cannot_do_the_machine_does():
    """Runs in a caller's graph, under XLA or not, and in slices: in lockstep, with the same numbers."""
    wanted, limited = walk(*ARGUMENTS[walk]), walk.options(max_depth=3)
    for compiled in (False, True):
        inside = tf.function(lambda *given: limited.run(*given).value, jit_compile=compiled, autograph=False)
        for found, value in zip(inside(*map(tf.constant, ARGUMENTS[walk])), wanted, strict=True):
            np.testing.assert_allclose(found, value, rtol=2e-5, atol=2e-6)
    for found, value in zip(walk.options(progress=True)(*ARGUMENTS[walk]), wanted, strict=True):
        np.testing.assert_allclose(found, value, rtol=2e-5, atol=2e-6)


@pcbatch.autobatch
def waiting(n, x):
    while n > 0:
        pcbatch.sync()
        x = layer(x)
        if x[0] > 0.0:
            n = n - 1
        else:
            pcbatch.sync()
            n = n // 2
    return x


@pcbatch.autobatch
def factorised(n, x):
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        if n % 5 == 0:
            x = tf.linalg.diag_part(tf.linalg.cholesky(tf.linalg.diag(x * x + 1.0)))
    return x


@pytest.mark.slow
@programs(waiting, factorised)
def test_where_lanes_wait_and_what_has_no_native_code(function):
    """Lanes wait at two places; no native code is made of a factorisation."""
    arguments = NUMBERS, VECTORS
    for _ in range(3):  # the last goes the short way of a warm call
        value = function(*arguments)
    assert_singles(function, value, arguments)
    (form,) = function.stats().forms
    assert form.startswith("mixed: ")


@pcbatch.autobatch
@pcbatch.cost(1e5)
def checked(x, k):
    assert k != 3, f"not {k}"
    return tf.tanh(tf.linalg.matvec(WEIGHTS, x)) + tf.cast(10 // (k - 5), tf.float32)


@pcbatch.autobatch
def even(n, x):
    if n == 0:
        return x
    y = odd(n - 1, x)
    return checked(y, n) + y


@pcbatch.autobatch
def odd(n, x):
    if n == 0:
        return -x
    return even(n - 1, x * 0.5) - 1.0


@pcbatch.autobatch
def kinds(n, x):
    state = tf.cast(x, tf.float64), x > 0, tf.range(40, dtype=tf.int64), tf.complex(x, x)
    while n > 0:
        x = layer(x)
        a, b, c, d = state
        state = a + tf.cast(x, tf.float64), tf.math.logical_xor(b, x > 0), c * 3, d * tf.complex(x, -x)
        n -= 1
        if n == 2:
            x = x * float("nan")
    return state


@pcbatch.autobatch
def turning(n, x):
    while n > 0:
        if n % 2 == 0:
            x = layer(x)
        else:
            (k,) = tf.while_loop(lambda k: k > 0, lambda k: (k - 2,), (n,), maximum_iterations=100)
            x = x + tf.cast(k, tf.float32)
        n -= 1
    return x


@pcbatch.autobatch
def deep(n, x):
    if n <= 0:
        return x
    y = deep(n - 1, layer(x))
    return y * 0.5 + x


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "times"),
    [(even, 1), (kinds, 1), (turning, 1), (deep, 20)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_as_the_reference(function, times):
    """Faults where rows are expensive, all kinds of numbers, loops of a lane's own in operations, stacks that grow."""
    arguments = NUMBERS * times, VECTORS
    run, wanted = (function.options(**options).run(*arguments) for options in ({}, {"backend": "reference"}))
    assert [fault.render() for fault in run.errors] == [fault.render() for fault in wanted.errors]
    for name in ("status", "lane_steps"):
        np.testing.assert_array_equal(getattr(run, name), getattr(wanted, name))
    np.testing.assert_array_equal(run.outcome.active, wanted.outcome.active)
    for found, value in zip(tf.nest.flatten(run.value), tf.nest.flatten(wanted.value), strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5)
    assert function.stats().forms[-1].startswith("mixed: ")


@pytest.mark.slow
def test_a_watched_run_has_gradients():
    x = tf.constant(VECTORS)
    found = []
    for function in (walk, walk.options(form="lockstep")):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y, _ = function(NUMBERS, x)
        found.append(tape.gradient(y, x))
    assert np.any(np.asarray(found[0]))
    np.testing.assert_array_equal(*found)


# -- what XLA makes of it ----------------------------------------------------------------------------------------------


def optimized(function, *arguments):
    """The text of the program that XLA makes of a mixed call."""
    executable = function.session.pipeline(arguments, {})[1].machine
    program, lanes = executable.program, len(arguments[0])
    types = [leaf for name in program.parameters for leaf in leaves(program.types[name])]
    shared = [leaf for name in program.shared for leaf in leaves(program.shared_types[name])]
    specs = [tf.TensorSpec([lanes, *leaf.shape], leaf.dtype) for leaf in types]
    specs += [*(tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in shared), tf.TensorSpec([], tf.int32)]
    return executable._whole(lanes).experimental_get_compiler_ir(*specs)(stage="optimized_hlo")


def copied(text):
    """The shapes of what XLA copies in the computation that calls native code."""
    (lines,) = (lines for lines in computations(text).values() if any("pcbatch.blocks" in line for line in lines))
    return [match for line in lines for match in re.findall(r"= \w+\[([\d,]*)\]\S* copy\(", line)]


@programs(tree, walk)
def test_nothing_of_a_lane_is_copied_around_native_code(function):
    """No array of all lanes, no stack: native code writes where they lie."""
    text = optimized(function, *map(tf.constant, ARGUMENTS[function]))
    assert not [shape for shape in copied(text) if shape.startswith("5,")]


@pytest.mark.slow
def test_shapes_that_xla_may_abort_at():
    """Arguments that nobody uses, arrays without elements, all dtypes: in a process of its own, which may end."""
    command = [sys.executable, "-m", "tests.runtime.mixed_shapes"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
