"""The native form as XLA compiles it: one function, no copies of stacks, and the programs that it once ended with."""

import dataclasses
import re

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.ir.types import leaves
from pcbatch.runtime.backends.tensorflow import native, private, xla_cpu
from pcbatch.runtime.native import cores
from tests.harness import load


def optimized(function, *arguments, lanes):
    """The text of the program that XLA makes of a native call."""
    program = function.session.pipeline(arguments, {})[1].machine
    types = [leaf for name in program.program.parameters for leaf in leaves(program.program.types[name])]
    specs = [tf.TensorSpec([lanes, *leaf.shape], leaf.dtype) for leaf in types]
    whole = program._compiled_for(lanes)
    return whole.experimental_get_compiler_ir(tf.TensorSpec([4], tf.int32), *specs)(stage="optimized_hlo")


def computations(text):
    """The lines of each computation of a program's text, by name."""
    found, name = {}, None
    for line in text.splitlines():
        start = re.match(r"(?:ENTRY )?%(\S+) \(.*\{$", line)
        name = start.group(1) if start else name
        found.setdefault(name, []).append(line)
    return found


@pytest.mark.parametrize("name", ["fibonacci", "queens", pytest.param("hanoi", marks=pytest.mark.slow), "ackermann"])
def test_no_stack_is_copied_where_a_lane_runs(name):
    program = load(name)
    arguments = tuple(map(tf.constant, program.arguments(3)))
    function = program.function.options(form="native", max_depth=1000)
    entries = function.session.pipeline(arguments, {})[1].machine.stack_entries
    text = optimized(function, *arguments, lanes=3)
    assert f"s32[{entries}]" in text
    copied = [
        computation
        for computation, lines in computations(text).items()
        for line in lines
        if re.search(rf"= \w+\[{entries}[\],].* copy\(", line)
    ]
    assert all(computation.startswith("native") for computation in copied), "each once, where they are made"


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
    [
        pytest.param(insertion, marks=pytest.mark.slow),
        pytest.param(swapped, marks=pytest.mark.slow),  # as in `quicksort`
        read_around_a_loop,
        stored_in_an_expensive_block,
        quicksort,
    ],
    ids=lambda f: f.__name__,
)
def test_no_array_is_copied_where_elements_are_stored(function):
    """What is read of an array comes before the next store into it, so that XLA need not keep it for the readers."""
    rows = np.random.default_rng(3).uniform(1.0, 2.0, (3, 37)).astype(np.float32)
    bounds = (tf.constant([0, 3, 7]), tf.constant([36, 20, 7])) if function is quicksort else ()
    text = optimized(function, tf.constant(rows), *bounds, lanes=3)
    assert "f32[37]" in text
    assert not re.search(r"= f32\[37\]\S* copy\(", text)
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


def test_an_array_is_made_where_its_block_is_the_lanes_turn():
    """With calls its block stands in a loop: to choose between zeros and what was there would write all of it."""
    xs = np.array([1.0, 7.0, 20.0], np.float32)
    text = optimized(kept, tf.constant(xs), lanes=3)
    assert "f32[37]" in text
    assert not re.search(r"= (f32|pred)\[37\]\S* select\(", text)
    assert len(re.findall(r"= f32\[37\]\S* copy\(", text)) <= 1  # before the first lane
    found = kept(xs)
    for lane, x in enumerate(xs):
        np.testing.assert_array_equal(found[lane], kept.single(x))


def test_a_program_is_one_native_function():
    program = load("collatz")
    arguments = tuple(map(tf.constant, program.arguments(3)))
    text = optimized(program.function.options(form="native"), *arguments, lanes=3)
    entry = next(lines for lines in text.split("\n\n") if lines.startswith("ENTRY"))
    assert entry.count(" call(") == 1
    assert 'xla_cpu_small_call="true"' in entry
    assert " while(" not in entry


def test_the_attribute_is_probed(monkeypatch):
    assert native.are_made()
    with xla_cpu.switched(False):
        assert not native.are_made()
    monkeypatch.setattr(private, "has_modules", lambda: False)
    assert not native.are_made()


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
    assert function.stats().forms == ("native: of 64 lanes or more so many at a time",)
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
    return tf.exp(x) if tf.reduce_sum(x) > 0.0 else x


def test_auto_takes_lockstep_where_that_is_better():
    for function, argument, why in (
        (expensive, tf.ones([2, 400]), "a row of b2 is expensive"),
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
def median(x):
    x = x * 2.0
    x = tf.sort(x)
    return x[1]


def test_a_refusal_names_the_line():
    with pytest.raises(pcbatch.UsageError) as caught:
        median(tf.ones([2, 3]))
    message = str(caught.value)
    assert "PCB534: median cannot run in the native form: no native code is made of TopKV2" in message
    assert message.endswith("| x = tf.sort(x)")


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
    assert function.stats().forms == ("native: of 64 lanes or more so many at a time",)


def test_parts_of_the_lanes_run_on_all_cores(monkeypatch):
    """The same bits, status and messages, whatever the parts; one that fails does so once."""
    n, step = tf.random.stateless_uniform([101], (1, 2), 0, 60, tf.int32), tf.fill([101], 1)
    function = countdown.options(name="countdown_in_parts")
    wanted = function.run(n, step)
    monkeypatch.setattr(cores, "CPU", dataclasses.replace(cores.CPU, native_split=0.0, native_split_always=0.0))
    monkeypatch.setattr(cores, "available", lambda: 3)
    for _ in range(3):
        run = function.run(n, step)
    assert function.session.compiled.values()[0].machine._cores.parts(101) == [(0, 33), (33, 67), (67, 101)]
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


@pcbatch.autobatch
def wavy(x, depth):
    if depth <= 0:
        return x
    left = wavy(x / 2, depth - 1)
    right = wavy(x / 3, depth - 2)
    return tf.sin(left) * tf.exp(-right)


@pcbatch.autobatch
def straight(x, depth):
    if depth <= 0:
        return x
    left = straight(x / 2, depth - 1)
    right = straight(x / 3, depth - 2)
    return tf.exp(left) * right


@pytest.mark.parametrize(
    ("function", "dtype", "jumps"),
    [(wavy, tf.float64, True), (wavy, tf.float32, False), (straight, tf.float64, False)],
)
def test_blocks_that_call_functions_are_jumped_over(function, dtype, jumps):
    """Sines of numbers that belong to a lane elsewhere are not computed, if there are enough of them."""
    x, depth = tf.constant([0.3, -2.0, 40.0], dtype), tf.constant([5, 0, 7])
    native_form = function.options(form="native")
    found = np.asarray(native_form(x, depth))
    wanted = [function.single(each, int(n)) for each, n in zip(x, depth, strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    machine = native_form.session.pipeline((x, depth), {})[1].machine
    assert np.isinf(machine.one.row_costs).any() == jumps


def test_calls_are_counted():
    """By the number of results and their dtype, in arms of conditionals too; arrays fill vectors."""

    def arms(x):
        return tf.cond(x > 0, lambda: tf.sin(x), lambda: tf.cos(x) + x)

    for function, given, wanted in (
        (lambda x: x * x + tf.sqrt(x), tf.TensorSpec([], tf.float32), 0),
        (tf.exp, tf.TensorSpec([], tf.float32), 1),
        (tf.exp, tf.TensorSpec([3], tf.float64), 6),
        (tf.exp, tf.TensorSpec([1000], tf.float32), 4),
        (tf.exp, tf.TensorSpec([0], tf.float32), 0),
        (tf.math.lgamma, tf.TensorSpec([], tf.float64), 10),
        (arms, tf.TensorSpec([], tf.float32), 2),
    ):
        graph = tf.function(function).get_concrete_function(given).graph
        assert native.calls(graph.get_operations()) == wanted
