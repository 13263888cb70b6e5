"""Native code for a tile of lanes: what one after another gives, whoever shares a tile and whatever the budget."""

import dataclasses
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.native import cores, program, tile
from pcbatch.runtime.native.chunks import Pace
from tests.harness import load
from tests.runtime import tables
from tests.runtime.libraries import ints
from tests.runtime.test_chunks import chunks_of
from tests.runtime.test_native import assert_as_the_reference, looping, native

BUDGETS = pytest.mark.parametrize("budget", [1, 7, 2**20])


@pytest.fixture
def narrow(monkeypatch):
    """Tiles of four lanes: many of them for a few lanes."""
    monkeypatch.setattr(program, "CPU", dataclasses.replace(program.CPU, native_tile=4))


@pytest.fixture
def in_chunks(monkeypatch):
    """Sets the budget of all chunks."""
    monkeypatch.setattr(Pace, "note", lambda self, budget, seconds: None)

    def set_budget(number):
        monkeypatch.setattr(Pace, "__init__", lambda self, *_: vars(self).update(budget=number, seconds=0.0))

    return set_budget


def many(arguments, lanes=19):
    """`arguments` of more lanes, in another order."""
    places = np.random.default_rng(1).integers(0, len(arguments[0]), lanes)
    return [np.asarray(each)[places] for each in arguments]


# -- by the reference, on NumPy ----------------------------------------------------------------------------------------


@BUDGETS
@pytest.mark.parametrize("case", ["gcd", "faults"])
@pytest.mark.parametrize("library", ["numpy"], indirect=True)
def test_tables_equal_the_reference(library, case, narrow, in_chunks, budget):
    """Values, faults, steps, messages and counts, of lanes that end together or long after each other."""
    in_chunks(budget)
    table, arguments, limits = tables.case(case, library.ops)
    assert native(table, library, **limits).tiles is not None
    assert_as_the_reference(library, table, many(arguments), **limits)
    assert_as_the_reference(library, table, many(arguments), **{**limits, "max_steps": 2})


@BUDGETS
@pytest.mark.parametrize("library", ["numpy"], indirect=True)
def test_a_loop_with_a_branch_in_it(library, narrow, in_chunks, budget):
    in_chunks(budget)
    table = looping(lambda total, n: (total + n,))
    numbers = np.random.default_rng(2).geometric(0.1, 23).astype(np.int32)
    assert_as_the_reference(library, table, [numbers, np.ones_like(numbers)])
    assert_as_the_reference(library, table, [ints(0, 0, 90, 0, 0, 0), ints(1, 2, 3, 4, 5, 6)])


# -- compiled ----------------------------------------------------------------------------------------------------------


@pcbatch.autobatch(form="native")
def staged(n, x):
    """A loop in a loop, another one behind it, an expensive branch, and two ways to fail."""
    turns = 0
    while n > 1:
        k = n
        while k % 3 != 0:
            k = k - 1
            x = x + 0.125
            turns += 1
        if x > 9.0:
            x = tf.exp(-x) + tf.exp(-2.0 * x) + tf.exp(-3.0 * x) + tf.exp(-4.0 * x) + tf.exp(-5.0 * x)
        assert n != 34, f"{n} after {turns} turns"
        n = n // 2 if n % 4 != 1 else n - 1 + turns // (n - 9)
    while x < 3.0:
        x = x * 1.25 + 0.5
        turns += 1
    return turns, x


def given(lanes=97):
    """Arguments for it."""
    numbers = np.random.default_rng(3).integers(-2, 130, lanes).astype(np.int32)
    return numbers, np.linspace(0.0, 12.0, lanes).astype(np.float32)


@pytest.fixture(scope="module")
def wanted():
    """What each lane is by itself."""
    return staged.options(backend="reference").run(*given())


def assert_equal(run, wanted, places=slice(None)):
    for one, other in zip(run.value, wanted.value, strict=True):
        np.testing.assert_allclose(one, np.asarray(other)[places], rtol=1e-5)
    np.testing.assert_array_equal(run.status, wanted.status[places])
    np.testing.assert_array_equal(run.lane_steps, wanted.lane_steps[places])


def test_tiles_equal_plain_python(wanted):
    run = staged.run(*given())
    assert staged.stats().forms == ("native: of 64 lanes or more so many at a time",)
    assert_equal(run, wanted)
    assert {int(each) for each in run.status} > {0}
    assert [fault.render() for fault in run.errors] == [fault.render() for fault in wanted.errors]
    assert run.executions == wanted.executions
    assert "97 lanes failed, 64 at a time in native code" in repr(run)


@pytest.mark.slow
def test_limits_of_steps():
    limited = [staged.options(max_steps=12, **options).run(*given()) for options in WAYS]
    assert_equal(*limited)


def test_a_lane_has_the_same_bits_whoever_is_beside_it():
    arguments = given()
    whole, order = staged.run(*arguments), np.random.default_rng(5).permutation(97)
    other = staged.run(*(each[order] for each in arguments))
    for one, another in zip(whole.value, other.value, strict=True):
        assert np.asarray(one)[order].tobytes() == np.asarray(another).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("budget", [1, 7, 50, 2**20])
def test_small_chunks_give_the_same_bits(budget, in_chunks):
    arguments, function = given(), staged.options(name=f"in chunks of {budget}")
    whole = staged.run(*arguments)
    in_chunks(budget)
    run = function.run(*arguments)
    for one, other in zip(whole.value, run.value, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    assert_equal(run, whole)
    assert run.executions == whole.executions
    assert chunks_of(function, *arguments).goes_on == (budget < 50)
    np.testing.assert_array_equal(function.run(*arguments).lane_steps, whole.lane_steps)


def test_few_lanes_run_one_after_another(wanted):
    run = staged.run(*(each[:63] for each in given()))
    assert_equal(run, wanted, slice(63))
    assert "one after another" in repr(run)


@pytest.mark.slow
def test_parts_on_several_cores(monkeypatch, wanted):
    monkeypatch.setattr(cores, "available", lambda: 3)
    monkeypatch.setattr(cores, "CPU", dataclasses.replace(cores.CPU, native_split=0.0, native_split_always=0.0))
    function = staged.options(name="on three cores")
    for _ in range(3):
        assert_equal(function.run(*given()), wanted)


@pcbatch.autobatch(form="native")
def of_all_kinds(flag, small, wide, double, scale):
    while double > 1.0 and small < 200:
        double = double / scale
        small = small + tf.constant(3, tf.uint8)
        flag = not flag
        wide = wide * 3 if flag else wide - 1
    return flag, small, wide, double


@pytest.mark.slow
def test_arguments_and_results_of_all_dtypes():
    """One of them shared by all lanes."""
    lanes = 70
    flag, small = np.arange(lanes) % 3 == 0, np.arange(lanes).astype(np.uint8)
    wide, double = np.arange(lanes) * 10**10, np.linspace(0.5, 20.0, lanes)
    function = of_all_kinds.options(in_axes=(0, 0, 0, 0, None))
    run, wanted = (
        function.options(**each).run(flag, small, wide, double, tf.constant(1.5, tf.float64)) for each in WAYS
    )
    for one, other in zip(run.value, wanted.value, strict=True):
        np.testing.assert_array_equal(one, other)
    assert "64 at a time" in repr(run)


WAYS = ({}, {"backend": "reference"})
TABLE = tf.range(10.0)


def loop_of(turn):
    """A loop that `turn`s a number."""

    def looped(x):
        while x < 5.0:
            x = turn(x)
        return x

    return pcbatch.autobatch(looped)


FITTING = {
    "numbers": (lambda x: x * 2.0 + 1.0, True),
    "vectors of exp": (lambda x: tf.exp(x) + tf.tanh(x) + tf.exp(-x) + tf.sigmoid(x) + 1.0, True),
    "two of sin": (lambda x: tf.sin(x) + tf.sin(2.0 * x) + 3.0 + x, True),
    "three of sin": (lambda x: tf.sin(x) + tf.sin(2.0 * x) + tf.cos(x) + 4.0 + x, False),
    "an array inside": (lambda x: x + tf.reduce_sum(tf.stack([x, 1.0])), False),
    "a table": (lambda x: x + 1.0 + TABLE[tf.cast(x, tf.int32)], False),
}


@pytest.mark.parametrize("name", FITTING)
def test_what_fits(name):
    turn, fit = FITTING[name]
    function = loop_of(turn)
    function.check(tf.zeros([64]))
    (form,) = function.stats().forms
    assert form == ("native: of 64 lanes or more so many at a time" if fit else "native")


def test_how_many_calls_are_too_many_is_of_the_device(monkeypatch):
    monkeypatch.setattr(tile, "CPU", dataclasses.replace(tile.CPU, native_tile_calls=3.0))
    function = loop_of(FITTING["three of sin"][0])
    function.check(tf.zeros([64]))
    assert function.stats().forms == ("native: of 64 lanes or more so many at a time",)


ENDLESS = """
    import os, signal, threading
    import numpy as np
    import pcbatch

    @pcbatch.autobatch
    def loop(n):
        while n >= 0:
            n = n ^ 6
        return n

    short = np.full(200, -1, np.int32)
    endless = np.where(np.arange(200) % 150 == 3, 4, short).astype(np.int32)
    loop(short)
    for call in (loop, loop.run):
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            call(endless)
            print("ended")
        except KeyboardInterrupt as error:
            print(type(error).__name__)
        assert (np.asarray(loop(short)) == short).all()
"""


@pytest.mark.slow
def test_endless_lanes_are_interrupted(tmp_path):
    script = tmp_path / "endless.py"
    script.write_text(textwrap.dedent(ENDLESS))
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=100, check=False)
    assert ended.stdout.split() == ["KeyboardInterrupt"] * 2, ended.stderr


def test_stacks_and_arrays_do_not_fit():
    for name in ("fibonacci", "insertion_sort", "vector_halving"):
        corpus = load(name)
        function = corpus.function.options(form="native")
        function.check(*corpus.arguments(3))
        assert function.stats().forms == ("native",)


@pcbatch.autobatch(deterministic=True)
def halved(x):
    turns = 0
    while x > 1.0:
        x = tf.exp(tf.math.log(x) * 0.9) * 0.5
        turns += 1
    return x, turns


def test_bits_that_are_to_be_the_same_in_every_batch_are_of_lanes_alone():
    x = np.random.default_rng(1).uniform(1, 1e6, 128).astype(np.float32)
    many, few = halved(x), halved(x[:7])
    assert halved.stats().forms == ("native",)
    for one, other in zip(many, few, strict=True):
        np.testing.assert_array_equal(one[:7], other)
