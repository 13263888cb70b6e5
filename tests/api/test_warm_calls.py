"""Warm calls look at all that the program has read of the world, and nothing of it can change unseen.

`warm(function, ..)` says whether a call took the short way: without that, these tests would test nothing.
"""

from __future__ import annotations

import collections
import gc
import types
import weakref

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.function.specs import specs_of
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.backends.tensorflow import xla_cpu
from pcbatch.runtime.backends.tensorflow.private import lookup
from tests.threads import in_threads

SLOW = pytest.mark.slow
X = tf.constant([1.0, 2.0, 3.0])
Pair = collections.namedtuple("Pair", "a b")


def value(result):
    return np.asarray(result).tolist()


def warm(function, *args):
    """Whether a call would be warm."""
    return function._session.run_warm(args) is not None


def settled(function, *args):
    """The values of three calls, which agree; from the third on they are warm."""
    found = [value(function(*args)) for _ in range(3)]
    assert found[0] == found[1] == found[2]
    assert warm(function, *args)
    return found[0]


def world(kind=tf.constant):
    """A batched function and all that it reads: `things` to be changed."""
    things = types.SimpleNamespace(
        number=2.0,
        array=kind(np.float32(1.0)),
        listed=[kind(np.float32(1.0)), kind(np.float32(2.0))],
        table={"a": kind(np.float32(1.0)), "b": kind(np.float32(5.0))},
        config={"rate": 3.0, "name": "x"},
        inner=types.SimpleNamespace(w=kind(np.float32(1.0))),
        helper=lambda x: x + 1.0,
    )

    @pcbatch.autobatch(jit=False)
    def program(x):
        y = x * things.number + things.array + things.listed[0] * things.listed[1] + things.table["a"]
        if y > 0.0:
            y = things.helper(y)
        return y - things.table["b"] + things.config["rate"] + things.inner.w

    return program, things


CHANGES = {
    "a number": lambda t: setattr(t, "number", 7.0),
    "an array": lambda t: setattr(t, "array", tf.constant(9.0)),
    "a number as NumPy has it": lambda t: setattr(t, "array", np.float32(8.0)),
    "an array of NumPy's": lambda t: setattr(t, "array", np.asarray(np.float32(7.0))),
    "a variable": lambda t: setattr(t, "array", tf.Variable(6.0)),
    "a tensor again": lambda t: setattr(t, "array", tf.constant(5.0)),
    "a part of a list": lambda t: t.listed.__setitem__(0, tf.constant(4.0)),
    "a list": lambda t: setattr(t, "listed", [tf.constant(4.0), tf.constant(3.0)]),
    "a longer list": lambda t: t.listed.insert(0, tf.constant(4.0)),
    "a list that is a tuple": lambda t: setattr(t, "listed", (*t.listed[::-1], tf.constant(1.0))),
    "an entry of a dict": lambda t: t.table.__setitem__("a", tf.constant(4.0)),
    "the order of a dict": lambda t: setattr(t, "table", {"b": t.table["b"], "a": t.table["a"], "c": tf.zeros([])}),
    "a dict no more of arrays alone": lambda t: t.table.__setitem__("b", 1.0),
    "a number in a dict": lambda t: t.config.__setitem__("rate", 4.0),
    "an attribute of an attribute": lambda t: setattr(t.inner, "w", tf.constant(6.0)),
    "an object": lambda t: setattr(t, "inner", types.SimpleNamespace(w=tf.constant(7.0))),
    "a helper": lambda t: setattr(t, "helper", lambda x: x - 5.0),
    "a helper's code": lambda t: setattr(t.helper, "__code__", (lambda x: x * 11.0).__code__),
    "two names for one array": lambda t: setattr(t, "array", t.inner.w),
    "two names for one array that has another value": lambda t: (
        setattr(t, "array", tf.constant(3.0)), setattr(t.inner, "w", t.array),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "kind", [tf.constant, pytest.param(np.asarray, marks=SLOW), pytest.param(tf.Variable, marks=SLOW)]
)
def test_a_change_is_seen_at_the_next_call(kind):
    """One after the other, each on what the others have left."""
    program, things = world(kind)
    for name, change in CHANGES.items():
        before = settled(program, X)
        change(things)
        after = value(program(X))
        assert after == [float(program.single(x)) for x in X], name
        assert after != before or name == "the order of a dict", name


def test_numbers_that_change_in_place():
    """NumPy's arrays, and variables, are the same objects with other numbers; so may shapes and dtypes be."""
    array, variable = np.array([1.0, 2.0], np.float32), tf.Variable([3.0, 4.0])

    @pcbatch.autobatch(jit=False)
    def summed(x):
        return x * tf.cast(tf.reduce_sum(array) + array[0], tf.float32) + tf.reduce_sum(variable)

    assert settled(summed, X) == [11.0, 15.0, 19.0]
    array[0] = 2.0
    assert settled(summed, X) == [13.0, 19.0, 25.0]
    variable.assign([0.0, 0.0])
    assert settled(summed, X) == [6.0, 12.0, 18.0]
    array[:] = [-0.0, 0.0]
    assert value(1.0 / summed(X))[0] == np.inf
    array[:] = [np.nan, 0.0]
    assert np.isnan(np.asarray(summed(X))).all()
    array[:] = [1.0, 1.0]
    assert settled(summed, X) == [3.0, 6.0, 9.0]
    array.dtype = np.int32  # the same bytes
    assert value(summed(X)) == [float(summed.single(x)) for x in X]
    array.dtype = np.float32
    array.shape = (2, 1)
    assert value(summed(X[:2])) != [2.0, 4.0] or array.shape == (2, 1)


def test_large_arrays_and_views_of_others():
    base = np.zeros((300, 400), np.float32)
    large, turned = base[:], base[:3, :3].T

    @pcbatch.autobatch(jit=False)
    def summed(x):
        return x + tf.reduce_sum(large) + 10.0 * tf.reduce_sum(turned)

    assert settled(summed, X) == [1.0, 2.0, 3.0]
    base[1, 1] = 1.0  # seen through both
    assert settled(summed, X) == [12.0, 13.0, 14.0]
    base[200, 200] = 1.0  # beyond the view, in one that is too large to be compared
    assert settled(summed, X) == [13.0, 14.0, 15.0]


def test_what_a_property_computes():
    class Model:
        count = 0

        @property
        def w(self):
            Model.count += 1
            return tf.constant(float(Model.count))

        @property
        def activation(self):
            return lambda x: x + 1.0

        def scale(self, x):
            return x * 2.0

    model = Model()

    @pcbatch.autobatch(jit=False)
    def program(x):
        return model.activation(model.scale(x)) * model.w

    program(X), program(X)
    for _ in range(3):
        before = Model.count
        assert value(program(X))[0] == 3.0 * Model.count
        assert Model.count <= before + 2  # it may take long, so nothing looks at it in vain
    model.scale = lambda x: x * 0.0
    first, second, _ = value(program(X))
    assert first == second > 0.0


def test_methods_and_receivers():
    class Layer:
        def __init__(self, w):
            self.w = tf.constant(w)

        @pcbatch.autobatch(jit=False)
        def apply(self, x):
            return x * self.w

    one, two = Layer(2.0), Layer(3.0)
    assert settled(one.apply, X) == [2.0, 4.0, 6.0]
    assert settled(two.apply, X) == [3.0, 6.0, 9.0]
    one.w = tf.constant(5.0)
    assert value(one.apply(X)) == [5.0, 10.0, 15.0]
    assert value(two.apply(X)) == [3.0, 6.0, 9.0]


def test_a_callee_that_is_bound_anew():
    @pcbatch.autobatch(jit=False)
    def callee(x):
        return x + 1.0

    @pcbatch.autobatch(jit=False)
    def caller(x):
        return callee(x) * 2.0

    assert settled(caller, X) == [4.0, 6.0, 8.0]

    def callee(x):  # noqa: F811
        return x - 1.0

    assert settled(caller, X) == [0.0, 2.0, 4.0]

    @pcbatch.autobatch(jit=False)
    def callee(x):  # noqa: F811
        return x * 10.0

    assert settled(caller, X) == [20.0, 40.0, 60.0]


def test_a_global_of_a_helper(monkeypatch):
    module = types.ModuleType("warm_helper")
    exec("rate = 2.0\ndef helper(x):\n    return x * rate\n", vars(module))

    @pcbatch.autobatch(jit=False)
    def program(x):
        return module.helper(x) + 1.0

    assert settled(program, X) == [3.0, 5.0, 7.0]
    module.rate = 3.0
    assert settled(program, X) == [4.0, 7.0, 10.0]
    module.rate = 2.0
    assert settled(program, X) == [3.0, 5.0, 7.0]
    assert program.stats().compilations == 2  # the first serves again


def test_a_built_in_that_is_hidden(monkeypatch):
    @pcbatch.autobatch(jit=False)
    def program(x):
        return np.float32(len(SHAPE)) + x

    SHAPE = (1, 2)  # noqa: N806
    assert settled(program, X) == [3.0, 4.0, 5.0]
    monkeypatch.setitem(globals(), "len", lambda shape: 7)
    assert value(program(X)) == [8.0, 9.0, 10.0]


MODULE = """
import math
import pcbatch
rate = 2.0
def helper(x):
    return x + 1.0
@pcbatch.autobatch(jit=False)
def program(x):
    return helper(x) * rate + math.pi * abs(0.0)
"""


def test_names_of_a_module(tmp_path, monkeypatch):
    """Globals, attributes of modules and built-ins are bound anew, hidden, shown again, and taken away."""
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    module = types.ModuleType("module_of_names")
    module.__file__ = str(path)
    exec(compile(MODULE, str(path), "exec"), vars(module))
    program, first = module.program, [4.0, 6.0, 8.0]
    assert settled(program, X) == first
    module.rate = 3.0
    assert settled(program, X) == [6.0, 9.0, 12.0]
    module.rate = float("2.0")  # the same number, another object
    assert settled(program, X) == first
    old, module.helper = module.helper, lambda x: x - 1.0
    assert settled(program, X) == [0.0, 2.0, 4.0]
    module.helper = old
    assert settled(program, X) == first
    old.__code__ = (lambda x: x * 10.0).__code__
    assert settled(program, X) == [20.0, 40.0, 60.0]
    module.abs = lambda x: x + 1.0
    module.math = types.SimpleNamespace(pi=5.0)
    assert settled(program, X) == [25.0, 45.0, 65.0]
    monkeypatch.setattr(module.math, "pi", 6.0)
    assert settled(program, X) == [26.0, 46.0, 66.0]
    del module.abs
    assert settled(program, X) == [20.0, 40.0, 60.0]
    del module.helper
    for _ in range(2):
        with pytest.raises(pcbatch.CompileError, match="helper"):
            program(X)
    module.helper = lambda x: x
    assert settled(program, X) == [2.0, 4.0, 6.0]


# -- arguments ---------------------------------------------------------------------------------------------------------


def test_arguments_of_every_form():
    @pcbatch.autobatch(in_axes=(0, 0, None, None, 0, None), static_argnames="power", jit=False)
    def program(x, pair, scale, table, n, power):
        total = x * scale + pair.a**power + tf.reduce_sum(pair.b) + table["t"]
        return {"total": total * tf.cast(n, tf.float32), "same": pair}

    def args(seed, scale, power, n=np.int32):
        random = np.random.default_rng(seed)
        pair = Pair(tf.constant(random.normal(size=3), tf.float32), random.normal(size=(3, 2)).astype(np.float32))
        table = {"t": np.asarray(random.normal(), np.float32)}
        return random.normal(size=3).astype(np.float32), pair, scale, table, np.array([1, 2, 3], n), power

    given = [args(0, 2.0, 2), args(1, 3.0, 2), args(2, 4, 2), args(3, 2.0, 3), args(4, 2.0, 2, np.int64)]
    for _ in range(3):
        for each in given:
            found = program(*each)
            x, pair, scale, table, n, power = each
            a, b = np.asarray(pair.a), np.asarray(pair.b)
            wanted = (x * scale + a**power + b.sum(-1) + table["t"]) * n
            np.testing.assert_allclose(found["total"], wanted, rtol=1e-5)
            np.testing.assert_array_equal(found["same"].b, pair.b)
    assert all(warm(program, *each) for each in given[-2:])


def test_an_argument_that_is_changed_in_place():
    @pcbatch.autobatch(in_axes=(0, None), jit=False)
    def program(x, w):
        return x * tf.reduce_sum(w)

    x, w = np.ones(3, np.float32), np.ones(2, np.float32)
    assert settled(program, x, w) == [2.0] * 3
    x[0], w[0] = 5.0, 3.0
    assert settled(program, x, w) == [20.0, 4.0, 4.0]


def test_numbers_that_are_refused_stay_refused():
    @pcbatch.autobatch(in_axes=(0, None), jit=False)
    def program(x, n):
        return x + n

    x = tf.constant([1, 2])
    assert settled(program, x, 3) == [4, 5]
    assert settled(program, x, 4) == [5, 6]
    with pytest.raises(pcbatch.UsageError, match="PCB511"):
        program(x, 2**31)


def test_specs_tell_apart_what_is_not_alike():
    backend = backend_named("tensorflow")
    arrays = [
        X, X[:2], X[None], tf.cast(X, tf.float64), X.numpy(), X.numpy().astype(np.float64), np.float32(1), np.float64(1)
    ]  # fmt: skip
    others = [1, 1.0, True, None, (X,), (X, X), Pair(X, X), {"a": X}, {"b": X}, (X, (X,)), ((X, X),), {"a": (X,)}]
    known = [specs_of((each,), (), backend.spec_of) for each in (*arrays, *others)]
    assert len({hash(key) for key, _ in known}) == len({key for key, _ in known}) == len(known)
    assert specs_of((1,), {0}, backend.spec_of)[0] != specs_of((True,), {0}, backend.spec_of)[0]
    for value in (tf.Variable(1.0), [1.0], "text", 2**31, {1: X}, np.ma.masked_array([1.0])):
        assert specs_of((value,), (), backend.spec_of) is None
    assert specs_of(([],), {0}, backend.spec_of) is None


def test_no_lanes_and_no_results():
    @pcbatch.autobatch
    def program(x, n):
        while n > 0:
            n -= 1
        return {"x": x * 2.0, "none": None}

    for _ in range(4):
        for size in (0, 2):
            found = program(X[:size], tf.constant([1, 2], tf.int32)[:size])
            assert (value(found["x"]), found["none"]) == ([2.0, 4.0][:size], None)


# -- where it runs -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["native", "graph"])
def root(request):
    @pcbatch.autobatch(jit=request.param == "native")
    def root(x):
        assert x >= 0.0, "negative"
        if x > 1.0:
            return tf.sqrt(x) + root(x / 4.0)
        return x

    return root


GOOD, BAD = tf.constant([4.0, 0.25, 16.0]), tf.constant([4.0, -1.0, 16.0])


def test_a_tape_is_heeded(root):
    wanted = settled(root, GOOD)
    with tf.GradientTape() as tape:
        tape.watch(GOOD)
        assert not warm(root, GOOD)
        found = root(GOOD)
    assert value(found) == wanted
    with tf.GradientTape() as truth:
        truth.watch(GOOD)
        expected = [root.single(each) for each in GOOD]
    np.testing.assert_allclose(tape.gradient(found, GOOD), truth.gradient(expected, GOOD))
    assert settled(root, GOOD) == wanted


def test_a_callers_graph_is_heeded(root):
    """Arrays of ordinary code may come into a function that is being traced."""
    wanted = settled(root, GOOD)
    traced = tf.function(lambda: root(GOOD), autograph=False)
    assert value(traced()) == wanted
    assert settled(root, GOOD) == wanted


def test_a_lane_that_fails(root):
    settled(root, GOOD)
    with pytest.raises(pcbatch.LaneError, match="negative") as caught:
        root(BAD)
    run = root.run(BAD)
    for each in (run, caught.value.run):
        assert each.status.tolist() == [0, 1, 0]
        np.testing.assert_array_equal(each.value, [3.0, np.nan, 7.0])
        (error,) = each.errors
        assert (error.lane, "negative" in error.message) == (1, True)
        assert each.lane_steps.tolist() == root.options(resume=None).run(BAD).lane_steps.tolist()
    assert warm(root, BAD)
    good = root.run(GOOD)
    assert (good.status.tolist(), good.errors) == ([0, 0, 0], ())
    assert sum(good.executions.values()) > 0


def test_threads_and_signatures_in_turn(root):
    batches = [tf.constant(np.linspace(0.5, 60.0, size), tf.float32) for size in (3, 5)]
    wanted = [settled(root, batch) for batch in batches]
    found = in_threads(4, lambda: [[value(root(batch)) for batch in batches] for _ in range(20)])
    assert found == [[wanted] * 20] * 4


def test_what_is_tuned_and_what_runs_eagerly(root):
    wanted = settled(root, GOOD)
    with xla_cpu.switched(not xla_cpu.is_on()):
        np.testing.assert_allclose(root(GOOD), wanted, rtol=1e-6)
    tf.config.run_functions_eagerly(True)
    try:
        assert value(root(GOOD)) == wanted
    finally:
        tf.config.run_functions_eagerly(False)


def test_without_the_way_into_tensorflow(monkeypatch):
    monkeypatch.setattr(lookup, "find", lambda path, find=lookup.find: find(path) if "context" not in path else None)

    @pcbatch.autobatch(jit=False)
    def doubled(x):
        return x * 2.0

    assert settled(doubled, X) == [2.0, 4.0, 6.0]


def test_an_operation_that_fails_while_it_runs():
    @pcbatch.autobatch(jit=False)
    def inverted(m):
        return tf.linalg.inv(m)

    good, bad = tf.eye(2, batch_shape=[3]), tf.zeros([3, 2, 2])
    settled(inverted, good)
    with pytest.raises(pcbatch.errors.PrimitiveError, match="PCB441") as caught:
        inverted(bad)
    assert "tf.linalg.inv(m)" in str(caught.value)
    settled(inverted, good)


# -- what is kept ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [tf.constant, np.asarray])
def test_arrays_are_let_go(kind):
    names = {"W": kind(np.ones(1000, np.float32)), "V": [kind(np.ones(10, np.float32))]}

    @pcbatch.autobatch(jit=False)
    def weighed(x):
        return x * tf.reduce_sum(names["W"]) + tf.reduce_sum(names["V"][0])

    x = np.ones(3, np.float32)
    settled(weighed, x)
    kept = [weakref.ref(each) for each in (names["W"], names["V"][0], x)]
    names.update(W=kind(np.zeros(1000, np.float32)), V=[kind(np.ones(10, np.float32))])
    del x
    gc.collect()
    assert [ref() for ref in kept] == [None] * 3
    assert settled(weighed, X) == [10.0] * 3
    assert weighed.stats().compilations == 1


def test_the_cache_stays_bounded_and_in_order():
    @pcbatch.autobatch(static_argnames="n", jit=False)
    def doubled(x, n):
        return x * n

    settled(doubled, X, 1)
    settled(doubled, X, 2)
    assert doubled.session.compiled.last.arguments.statics == {"n": 2}
    assert warm(doubled, X, 1)
    assert doubled.session.compiled.last.arguments.statics == {"n": 1}
    doubled._session.compiled.limit = 3
    for n in range(3, 7):
        doubled(X, n)
    assert not warm(doubled, X, 1)  # this program is not kept any more
    assert settled(doubled, X, 1) == [1.0, 2.0, 3.0]
    assert doubled.stats().cache_entries == 3


# -- what the compiler itself calls ------------------------------------------------------------------------------------


def counting(n):
    total = 0
    for i in range(n):
        total += i
    return total


def elements(xs):
    total = xs[0]
    for x in xs:
        total = total * 0.5 + x
    return total


def pairs(xs):
    total = 0.0
    for i, (x, y) in enumerate(zip(xs, xs[::-1], strict=True)):
        total += x * y * i
    return total


def written(xs, n):
    for i in range(n):
        xs[i] = xs[i] + 1.0
    xs[1:] = 0.0
    return xs


def unpacked(pair):
    match pair:
        case (a, b):
            return a + b


def told(x):
    match x > 1.0:
        case True:
            return x
        case _:
            return -x


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (counting, (tf.constant([3, 4]),)),
        (elements, (tf.constant([[1.0, 2.0], [3.0, 4.0]]),)),
        (pairs, (tf.constant([[1.0, 2.0], [3.0, 4.0]]),)),
        (written, (tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([1, 2]))),
        (unpacked, ((X, X),)),
        (told, (X,)),
    ],
)
def test_what_a_program_calls_by_names_of_ours_is_nothing_that_it_has_captured(function, args):
    batched = pcbatch.autobatch(function)
    batched(*args)
    expected = value(batched(*args))
    assert value(batched(*args)) == expected
    assert warm(batched, *args)


# -- defaults ----------------------------------------------------------------------------------------------------------

FACTORS = np.array([1.0, 2.0, 3.0], np.float32)


def test_arguments_that_are_left_to_their_defaults():
    @pcbatch.autobatch
    def program(x, n=2, scale=(0.5, 2.0), factors=FACTORS, *, shift=None, more=1.0):
        while n > 0:
            x = x * scale[0] + scale[1] * factors[1] + more
            n -= 1
        return x if shift is None else x + shift

    twos = tf.constant([2, 2, 2])
    once, twice = settled(program, X, twos - 1), settled(program, X)
    assert once == [4.0 + 1.0 + x / 2 for x in (1.0, 2.0, 3.0)]
    assert twice == [y / 2 + 5.0 for y in once] == [float(program.single(x)) for x in (1.0, 2.0, 3.0)]
    assert settled(program, X, tf.constant([0, 1, 2])) == [1.0, once[1], twice[2]]
    assert value(program(X, more=tf.constant([2.0, 2.0, 2.0]))) != twice  # by the long way
    FACTORS[1] += 1.0
    try:
        assert value(program(X)) == value(program(X, twos)) != twice
        assert warm(program, X)
    finally:
        FACTORS[1] -= 1.0
    assert value(program(X)) == twice


def test_a_default_is_one_for_all_lanes_and_what_is_passed_is_not():
    @pcbatch.autobatch
    def program(x, factors=FACTORS):
        return tf.reduce_sum(x * factors)

    assert settled(program, X) == [6.0, 12.0, 18.0]
    assert settled(program, X, FACTORS) == [1.0, 4.0, 9.0]
    assert settled(program, X) == [6.0, 12.0, 18.0]


def test_what_has_no_default_has_to_be_passed():
    @pcbatch.autobatch
    def program(x, y, z=1.0):
        return x + y + z

    settled(program, X, X)
    with pytest.raises(TypeError, match="PCB510"):
        program(X)
    assert not warm(program, X)


def test_a_static_default():
    @pcbatch.autobatch(static_argnames=("name",))
    def program(x, name="twice"):
        return x * 2.0 if name == "twice" else x

    assert settled(program, X) == [2.0, 4.0, 6.0]
    assert settled(program, X, "once") == [1.0, 2.0, 3.0]
    assert settled(program, X, "twice") == [2.0, 4.0, 6.0]
