"""The native form as users meet it: what runs so, what does not and why, and its parts on all cores."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.backends.tensorflow import private, xla_cpu
from pcbatch.runtime.backends.tensorflow.xla_cpu import lane_arrays
from pcbatch.runtime.llvm import multithreading


@pcbatch.autobatch(form="native")
def insertion(x):
    for i in range(1, len(x)):
        number = x[i]
        j = i
        while j > 0 and x[j - 1] > number:
            x[j] = x[j - 1]
            j = j - 1
        x[j] = number
    return x


@pcbatch.autobatch(form="native")
def swapped(x):
    for i in range(len(x) // 2):
        number = x[i]
        x[i] = x[len(x) - 1 - i]
        x[len(x) - 1 - i] = number
    return x


@pcbatch.autobatch(form="native")
def read_around_a_loop(x):
    total = 0.0
    for i in range(len(x) - 1):
        total = total + x[i]
        k = 0
        while k < 3:
            x[k] = total * 0.5
            k = k + 1
        total = total * x[i + 1]
    return x


@pcbatch.autobatch(form="native")
def stored_in_an_expensive_block(x):
    i = 0
    while x[i] > 0.0 and i < len(x) - 1:
        total = tf.reduce_sum(tf.math.lgamma(x + tf.range(40.0)[:, tf.newaxis]))
        if total > x[i]:
            x[i] = total / x[i]
        i = i + 1
    return x


@pcbatch.autobatch(form="native")
def quicksort(x, low, high):
    if low < high:
        place = low
        for i in range(low, high):
            if x[i] < x[high]:
                number = x[place]
                x[place] = x[i]
                x[i] = number
                place = place + 1
        number = x[place]
        x[place] = x[high]
        x[high] = number
        x = quicksort(x, low, place - 1)
        x = quicksort(x, place + 1, high)
    return x


@pytest.mark.parametrize(
    "function",
    [insertion, swapped, read_around_a_loop, stored_in_an_expensive_block, quicksort],
    ids=lambda f: f.__name__,
)
def test_stores_into_arrays(function):
    rows = np.random.default_rng(3).uniform(1.0, 2.0, (3, 37)).astype(np.float32)
    bounds = (tf.constant([0, 3, 7]), tf.constant([36, 20, 7])) if function is quicksort else ()
    found = function(rows, *bounds)
    for lane, row in enumerate(rows):
        np.testing.assert_allclose(found[lane], function.single(row, *(each[lane] for each in bounds)), rtol=1e-4)


@pcbatch.autobatch(form="native")
def halves(x):
    total = x
    if x > 1.0:
        total = halves(x * 0.5) + halves(x * 0.25)
    return total


@pcbatch.autobatch(form="native", max_depth=12)
def kept(x):
    found = tf.zeros((37,))
    for i in range(5):
        found[i] = halves(x + float(i))
    return found


def test_an_array_is_made_anew_around_calls():
    xs = np.array([1.0, 7.0, 20.0], np.float32)
    found = kept(xs)
    for lane, x in enumerate(xs):
        np.testing.assert_array_equal(found[lane], kept.single(x))


def test_the_attribute_is_probed(monkeypatch):
    assert lane_arrays.are_made()
    with xla_cpu.switched(False):
        assert not lane_arrays.are_made()
    monkeypatch.setattr(private, "has_modules", lambda: False)
    assert not lane_arrays.are_made()


@pcbatch.autobatch
def constant(n):
    return 42


@pcbatch.autobatch
def first(a, b):
    return a


@pcbatch.autobatch
def part(pair, unused):
    x = pair[0]
    while x > 10:
        x = x - 1
    return x


@pcbatch.autobatch
def recursive(n, unused):
    return 0 if n <= 0 else recursive(n - 1, unused) + 1


@pcbatch.autobatch
def nothing(x):
    return tf.size(x)


NUMBERS = tf.constant([3, 12, 20])
UNUSED = [
    (constant, (NUMBERS,), [42] * 3),
    (first, (NUMBERS, tf.constant([1.0, 2.0, 3.0], tf.float64)), [3, 12, 20]),
    (part, ((NUMBERS, tf.constant([True, False, True])), tf.zeros([3, 2], tf.complex64)), [3, 10, 10]),
    (recursive, (NUMBERS, tf.ones([3, 4])), [3, 12, 20]),
    (nothing, (tf.zeros([3, 0]),), [0] * 3),
]


@pytest.mark.parametrize(("function", "arguments", "wanted"), UNUSED, ids=lambda value: getattr(value, "__name__", ""))
def test_arguments_that_nobody_uses_do_not_end_the_process(function, arguments, wanted):
    np.testing.assert_array_equal(function.options(form="native")(*arguments), wanted)


@pcbatch.autobatch(form="auto")
def countdown(n, step):
    turns = 0
    while n > 0:
        n = n - step
        turns += 1
    assert turns < 50, f"{turns} turns"
    return turns


def test_auto_takes_native_code_and_says_so():
    function = countdown.options(name="countdown")
    run = function.run(NUMBERS, tf.constant([1, 2, 3]))
    np.testing.assert_array_equal(run.value, [3, 6, 7])
    assert function.stats().forms == ("native",)
    assert repr(run) == "<pcbatch.Run of countdown: 3 lanes, one after another in native code>"
    np.testing.assert_array_equal(run.lane_steps, [3, 6, 7])


def test_counts_are_those_of_the_reference():
    arguments = NUMBERS, tf.constant([1, 2, 3])
    run, wanted = (countdown.options(**options).run(*arguments) for options in ({}, {"backend": "reference"}))
    assert run.executions == wanted.executions
    assert run.utilization.overall == 1.0
    assert run.trips == 0
    assert "16" in str(run.profile())


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"jit": False}, "jit=False"),
        ({"schedule": "sweep"}, "schedule='sweep'"),
        ({"trace": 5}, "trips are to be recorded"),
    ],
)
def test_auto_says_why_it_runs_in_lockstep(options, why):
    function = countdown.options(**options)
    function(NUMBERS, NUMBERS)
    assert function.stats().forms == (f"lockstep: {why}",)


@pcbatch.autobatch(form="auto")
def expensive(x):
    for _ in range(3):
        x = tf.linalg.matvec(tf.ones([400, 400]), x)
    return x


@pcbatch.autobatch(form="auto")
def waiting(n):
    while n > 0:
        pcbatch.sync()
        n = n - 1
    return n


@pcbatch.autobatch(form="auto")
def without_loop(x):
    if tf.reduce_sum(x) > 0.0:
        return tf.exp(x)
    assert x[0] > -9.0
    return x


def test_auto_takes_lockstep_where_that_is_better():
    for function, argument, why in (
        (expensive, tf.ones([2, 400]), "a row of b1 is expensive"),
        (without_loop, tf.ones([2, 4]), "there is no loop"),
        (waiting, NUMBERS, "lanes are to wait for each other"),
    ):
        function(argument)
        (form,) = function.stats().forms
        assert form.startswith("lockstep: ")
        assert why in form
    np.testing.assert_array_equal(waiting.options(form="native")(NUMBERS), [0, 0, 0])


def test_what_native_code_cannot_do_its_machine_does():
    """Runs in a caller's graph, of no lanes, in slices: the same numbers, in lockstep."""
    steps = tf.constant([1, 2, 3])
    for compiled in (False, True):
        inside = tf.function(lambda n: countdown.run(n, steps).value, jit_compile=compiled, autograph=False)
        np.testing.assert_array_equal(inside(NUMBERS), [3, 6, 7])
    assert countdown(NUMBERS[:0], NUMBERS[:0]).shape == (0,)
    np.testing.assert_array_equal(countdown.options(progress=True)(NUMBERS, steps), [3, 6, 7])


def test_a_failed_lane_does_not_disturb_the_next():
    run = countdown.run(tf.constant([9, 100, 4]), tf.constant([1, 1, 2]))
    np.testing.assert_array_equal(run.status, [0, int(pcbatch.LaneStatus.ASSERTION), 0])
    np.testing.assert_array_equal(run.value, [9, 0, 2])
    assert run.errors[0].message == "AssertionError: 100 turns"


@pcbatch.autobatch(form="native")
def solved(x):
    x = x * 2.0
    x = tf.linalg.inv(x)
    return x[1]


def test_a_refusal_names_the_line():
    with pytest.raises(pcbatch.UsageError) as caught:
        solved(tf.ones([2, 3, 3]))
    message = str(caught.value)
    assert "PCB534: solved cannot run in the native form: no native code is made of MatrixInverse" in message
    assert message.endswith("| x = tf.linalg.inv(x)")


def test_gradients_as_everywhere():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = part.options(form="native")((x, x), x)
    with tf.GradientTape() as truth:
        truth.watch(x)
        expected = [part.single((each, each), each) for each in x]
    np.testing.assert_array_equal(tape.gradient(y, x), truth.gradient(expected, x))


def test_check_compiles_without_running():
    function = countdown.options(name="checked")
    function.check(NUMBERS, NUMBERS)
    assert function.stats().forms == ("native",)


@pytest.mark.parametrize(("deterministic", "count"), [(True, 3 * multithreading.PARTS), (False, 3)])
def test_parts_of_the_lanes_run_on_all_cores(monkeypatch, deterministic, count):
    """The same bits, status and messages, whatever the parts; one that fails does so once.

    Lanes in groups want many in a part, but no core is left without one.
    """
    n, step = tf.random.stateless_uniform([101], (1, 2), 0, 60, tf.int32), tf.fill([101], 1)
    function = countdown.options(name="countdown_in_parts", deterministic=deterministic)
    wanted = function.run(n, step)
    monkeypatch.setattr(multithreading, "CPU", dataclasses.replace(multithreading.CPU, native_split=0.0))
    monkeypatch.setattr(multithreading, "available", lambda: 3)
    shared, on_cores = [], multithreading._run_on_cores
    monkeypatch.setattr(multithreading, "_run_on_cores", lambda *given: (shared.append(given[1]), on_cores(*given)))
    for _ in range(3):
        run = function.run(n, step)
    assert [len(parts) for parts in shared] == [count] * 3
    for name in ("value", "status", "lane_steps"):
        np.testing.assert_array_equal(getattr(run, name), getattr(wanted, name))
    assert [fault.render() for fault in run.errors] == [fault.render() for fault in wanted.errors]
    assert len(run.errors) > 0
    assert run.executions == wanted.executions


@pcbatch.autobatch(form="native")
def inside(n, step):
    if step > 0:
        (n,) = tf.while_loop(lambda n: n > 0, lambda n: (n - step,), (n,), maximum_iterations=100)
    else:
        n = n * 2
    return n


@pcbatch.autobatch(form="native")
def endless_for_others(n, step):
    total = 0
    while n > 0:
        if step > 0:
            (left,) = tf.while_loop(lambda left: left > 0, lambda left: (left - step,), (n,))
            total = total + left
        else:
            total = total - 1
        n = n - 1
    return total


def test_loops_inside_operations_run_for_the_lane_alone():
    """Trip counts differ by lane; for a lane on another way the loop would never end."""
    n, step = tf.constant([7, 5, 9]), tf.constant([2, 0, 4])
    np.testing.assert_array_equal(inside(n, step), [inside.single(*each) for each in zip(n, step, strict=True)])
    wanted = [endless_for_others.single(*each) for each in zip(n, step, strict=True)]
    np.testing.assert_array_equal(endless_for_others(n, step), wanted)


@pytest.mark.parametrize(
    "dtypes",
    [
        ("bool", "int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64"),
        ("float16", "bfloat16", "float64", "complex64", "complex128"),
    ],
)
def test_arguments_and_stacks_of_all_dtypes(dtypes):
    @pcbatch.autobatch(form="native")
    def there_and_back(n, xs):
        if n == 0:
            return xs
        deeper = there_and_back(n - 1, tuple(x[::-1] for x in xs))
        return tuple(tf.where(n > 100, x, y[::-1]) for x, y in zip(xs, deeper, strict=True))

    numbers = tf.constant([[0, 1], [2, 3], [1, 0]])
    given = [tf.cast(numbers, each) for each in dtypes]
    for value, result in zip(given, there_and_back(tf.constant([0, 1, 3]), tuple(given)), strict=True):
        assert result.dtype == value.dtype
        np.testing.assert_array_equal(*(tf.cast(array, "complex64") for array in (result, value)))
