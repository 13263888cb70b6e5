"""Native code as a part of a caller's graph: XLA calls a handler, in the process that it was traced in."""

import itertools
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings

import pcbatch
from pcbatch import LaneStatus, UsageError
from pcbatch.runtime.backends.tensorflow import handlers
from pcbatch.runtime.backends.tensorflow.private import lookup, xla
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.llvm import handler, memory, multithreading
from tests.generated_runs import batch, batched
from tests.generator import programs
from tests.harness import BATCH, NAMES, NATIVE, leaves, load, mapped
from tests.pairwise import covering
from tests.program_features import of_corpus
from tests.runtime import probes
from tests.test_corpus import WITHOUT_NATIVE
from tests.test_generated import COMPILED, SHORT, judge
from tests.threads import in_threads

PROGRAMS = [name for name in NAMES if name not in WITHOUT_NATIVE]
QUICK = tuple(itertools.product(PROGRAMS[2::11], [True, False]))
OTHERS = covering(PROGRAMS, [True, False], of_corpus(), QUICK)
"""Each other program under XLA or without, each construct in both."""


@pcbatch.autobatch(form="native", max_depth=5000)
def down(n):
    assert n != -13, f"unlucky with {n}"
    if n <= 0:
        return 0
    return down(n - 1) + 2


@pcbatch.autobatch(form="native")
def depth(n):
    return 0 if n <= 0 else depth(n - 1) + 1


@pcbatch.autobatch(form="native")
def loop(n, x):
    total = x * 0.0
    while n > 0:
        total = tf.sin(total + x)
        n -= 1
    return total


@pcbatch.autobatch(form="native")
def unlucky(n):
    assert n != 3, f"three, {n}"
    while n > 10:
        n -= 10
        assert n != 7, f"seven, {n}"
    assert n != 5, f"five, {n}"
    return n


def in_graph(function, **options):
    """A call in a `tf.function`, whose number of lanes is known when it runs."""
    specs = [tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.float32)][
        : len(function.__signature__.parameters)
    ]
    return tf.function(lambda *given: function(*given), input_signature=specs, autograph=False, **options)


@pytest.fixture
def alone(monkeypatch):
    """Nothing else than a handler may run lanes."""
    here = handlers.here

    def only_here(function, otherwise):
        def fails():
            with tf.control_dependencies([tf.debugging.Assert(False, ["the machine runs"])]):
                return [tf.identity(tf.zeros(tf.shape(each), each.dtype)) for each in function()]

        return here(function, fails)

    monkeypatch.setattr(handlers, "here", only_here)


@pytest.mark.parametrize(("name", "jit"), [*QUICK, *(pytest.param(*each, marks=pytest.mark.slow) for each in OTHERS)])
def test_the_corpus(name, jit, alone):
    """Programs give in graphs, under XLA too, what they give in ordinary code, whatever the number of lanes."""
    program = load(name)
    function, arguments = program.function.options(**NATIVE.options), program.arguments(BATCH)
    is_batched = [isinstance(leaf, np.ndarray) and leaf.shape[:1] == (BATCH,) for leaf in leaves(arguments)]
    rows = [leaf for leaf, is_one in zip(leaves(arguments), is_batched, strict=True) if is_one]

    def inside(*arrays):
        remaining, ones = iter(arrays), iter(is_batched)
        run = function.run(*mapped(arguments, lambda leaf: next(remaining) if next(ones) else leaf))
        return [run.status, *leaves(run.value)]

    specs = [tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype) for leaf in rows]
    found = tf.function(inside, input_signature=specs, autograph=False, jit_compile=jit or None)(*rows)
    same(found, function.run(*arguments))


def same(found, run):
    """The status and results of a run in a graph are those of a run in ordinary code.

    Floats are so to rounding: which lanes are in a group, and which run alone, depends on what is known of their cost.
    """
    for one, other in zip(found, [run.status, *leaves(run.value)], strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype
        if np.issubdtype(one.dtype, np.inexact):
            np.testing.assert_allclose(one, other, rtol=16 * np.finfo(one.dtype).eps)
        else:
            np.testing.assert_array_equal(one, other)


def check_generated(source):
    """A generated program under XLA, if it has a native form."""
    function, arguments = batched(source).options(**NATIVE.options), batch(source)

    def inside():
        run = function.run(*arguments)
        return [run.status, *leaves(run.value)]

    try:
        run = function.run(*arguments)
    except UsageError as error:
        if "PCB534" not in str(error):
            raise
        return
    same(tf.function(inside, autograph=False, jit_compile=True)(), run)


@settings(COMPILED, max_examples=3)
@given(SHORT)
def test_generated_programs(source):
    judge(check_generated, source)


@pytest.mark.slow
@settings(COMPILED, max_examples=100)
@given(programs())
def test_generated_programs_at_length(source):
    judge(check_generated, source)


def test_any_number_of_lanes(alone):
    """Of none nothing is run; a lane's fault raises, and its message shows the lane's values."""
    inside = in_graph(down.options(name="any number"))
    for numbers in ([], [3], [], [0, 1, 2], [40, 4000]):
        assert inside(np.array(numbers, np.int32)).numpy().tolist() == [2 * n for n in numbers]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[lanes of any number failed(.|\n)*unlucky with -13"):
        inside(np.array([1, -13], np.int32))


@pytest.mark.parametrize("by", ["handler", "machine"])
def test_places_of_failures(by, monkeypatch):
    """A graph tells where each lane has failed, by whatever its lanes ran."""

    def ends(run):
        outcome = run.outcome
        return [outcome.status, outcome.site, outcome.place, outcome.steps, run.value]

    monkeypatch.setattr(handlers, "here", lambda native, otherwise: native() if by == "handler" else otherwise())
    spec = tf.TensorSpec([None], tf.int32)
    function, numbers = unlucky.options(name=f"unlucky_by_{by}"), np.array([1, 3, 5, 27, 25, 13, 38, 47], np.int32)
    found = tf.function(lambda n: ends(function.run(n)), input_signature=[spec], autograph=False)(numbers)
    wanted = ends(function.run(numbers))
    assert len(set(wanted[1].tolist())) == 4  # three sites, and none
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_limits(alone):
    function = down.options(max_depth=12, max_steps=20)

    @tf.function(autograph=False, jit_compile=True)
    def inside(n):
        run = function.run(n)
        return run.value, run.status

    value, status = inside(tf.constant([12, 40, 11, -13]))
    assert status.numpy().tolist() == [LaneStatus.OK, LaneStatus.MAX_DEPTH, LaneStatus.OK, LaneStatus.ASSERTION]
    assert value.numpy().tolist() == [24, 0, 22, 0]


def test_stacks_grow_and_stay_so(alone, monkeypatch):
    """A lane that needs larger stacks asks Python for them, once."""
    monkeypatch.setattr(memory, "LARGE", 64)
    monkeypatch.setattr(multithreading, "available", lambda: 1)
    monkeypatch.setattr(handler, "CPU", replace(CPU, native_split=1e3))  # Python is not to measure it anew
    asked, rest = [], handler.Handler._run_rest
    monkeypatch.setattr(handler.Handler, "_run_rest", lambda self, *given: asked.append(given) or rest(self, *given))
    inside = in_graph(depth.options(name="growing"))
    few, many = np.array([3, 2, 1], np.int32), np.array([3, 900, 0, 300], np.int32)
    for numbers in (few, few, many, few, many, many):
        assert inside(numbers).numpy().tolist() == numbers.tolist()
    assert [first for _, first, _, _ in asked] == [0, 1], "at first, and for the lane that found no room"


def test_many_threads(alone):
    """More than memory lies ready for."""
    inside = in_graph(down.options(name="in threads", max_depth=50))
    numbers = np.arange(12, dtype=np.int32)
    found = in_threads(handler.SLOTS + 3, lambda: [inside(numbers).numpy().tolist() for _ in range(20)])
    assert found == [[(2 * numbers).tolist()] * 20] * (handler.SLOTS + 3)


def test_work_for_several_threads(alone, monkeypatch):
    monkeypatch.setattr(multithreading, "available", lambda: 2)
    counts, run = [], multithreading._run_on_cores

    def counted(call, parts, *rest):
        counts.append(len(parts))
        run(call, parts, *rest)

    monkeypatch.setattr(multithreading, "_run_on_cores", counted)
    inside = in_graph(loop.options(name="long", deterministic=True))
    n, x = np.full(64, 4000, np.int32), np.linspace(0.0, 1.0, 64, dtype=np.float32)
    found = [inside(n, x) for _ in range(6)]
    assert max(counts) >= 8
    assert all(
        np.array_equal(each, loop.options(deterministic=True)(n[:2], x[:2])) for each in (each[:2] for each in found)
    )


def test_what_fails_in_python_is_raised(alone, monkeypatch):
    inside = in_graph(down.options(name="failing"))

    def failing(self, found, part, cost):
        raise MemoryError("no more")

    monkeypatch.setattr("pcbatch.runtime.llvm.program.NativeCode.run_rest", failing)
    with pytest.raises(tf.errors.InternalError, match="MemoryError: no more"):
        inside(np.array([1, 2], np.int32))


def test_tf_data(alone):
    numbers = tf.data.Dataset.range(200).map(lambda n: tf.cast(n % 12, tf.int32)).batch(3)
    found = numbers.map(in_graph(down.options(name="in a pipeline")), num_parallel_calls=4).unbatch()
    assert [int(each) for each in found] == [2 * (n % 12) for n in range(200)]


def test_gradients():
    """The gradient of a run in a graph is that of the run in ordinary code."""
    n, x = np.array([0, 3, 1], np.int32), np.array([0.5, 1.0, 2.0], np.float32)

    def slope(call):
        given = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(given)
            value = call(n, given)
        return tape.gradient(value, given)

    np.testing.assert_allclose(slope(in_graph(loop)), slope(loop), rtol=1e-5)


def test_a_caller_vectorises():
    """What `tf.vectorized_map` traces is the machine's; what was traced before it runs turn by turn."""
    n, x = np.array([[1, 2], [3, 0]], np.int32), np.array([[0.5, 1.0], [2.0, 0.0]], np.float32)
    inside = in_graph(loop.options(name="vectorised"))
    inside(n[0], x[0])
    wanted = [loop(*each) for each in zip(n, x, strict=True)]
    for call in (loop, inside):
        found = tf.vectorized_map(lambda given, call=call: call(*given), (tf.constant(n), tf.constant(x)))
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.fixture
def without_handlers(monkeypatch):
    """TensorFlow's library exports no such interface."""
    monkeypatch.setattr(lookup, "exported", lambda name: None)
    for known in (xla._table, handlers._are_called):
        known.cache_clear()
    yield
    monkeypatch.undo()
    for known in (xla._table, handlers._are_called):
        known.cache_clear()


def test_it_runs_in_lockstep_where_xla_calls_no_handlers(without_handlers):
    (use,) = probes.ffi.USES
    assert not probes.works(use)
    inside = in_graph(loop.options(name="without handlers"))
    n, x = np.array([0, 3], np.int32), np.array([0.5, 1.0], np.float32)
    np.testing.assert_allclose(inside(n, x), loop(n, x), rtol=1e-6)


# -- other processes ---------------------------------------------------------------------------------------------------

OTHER = """
    import sys
    import numpy as np
    import tensorflow as tf
    model = tf.saved_model.load(sys.argv[1])
    print(model.inside(np.array([3, 100, 0], np.int32)).numpy().tolist())
    try:
        model.inside(np.array([-13], np.int32))
    except tf.errors.InvalidArgumentError as error:
        print("unlucky with -13" in error.message)
"""


def test_no_function_that_xla_compiles_is_saved(tmp_path):
    """TensorFlow's message has the name of what cannot be saved, which says what to do."""
    model = tf.Module()
    model.inside = tf.function(lambda n: depth.run(n).value, autograph=False, jit_compile=True)
    assert model.inside(tf.constant([200, 3])).numpy().tolist() == [200, 3]
    with pytest.raises(Exception, match=r"leave jit_compile=True away.*set the option form to lockstep"):
        tf.saved_model.save(model, str(tmp_path))


def test_a_saved_model_runs_elsewhere(tmp_path):
    """Saved before it was called or after, and though another process has no handler, nor pcbatch."""
    model = tf.Module()
    model.inside = in_graph(down.options(name="saved"))
    assert model.inside(np.array([2], np.int32)).numpy().tolist() == [4]
    tf.saved_model.save(model, str(tmp_path))
    script = [sys.executable, "-c", textwrap.dedent(OTHER), str(tmp_path)]
    ran = subprocess.run(script, capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout.splitlines() == ["[6, 200, 0]", "True"], ran.stderr[-2000:]
