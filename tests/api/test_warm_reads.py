"""Warm calls look at all that the program has read of the world, and nothing of it can change unseen."""

from __future__ import annotations

import types

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.api.warm import X, settled, value

SLOW = pytest.mark.slow


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


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")  # NumPy 2.5: it still can be set
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
        def __init__(self):
            self.count = 1.0

        @property
        def w(self):
            return tf.constant(self.count)

        @property
        def activation(self):
            return lambda x: x + 1.0

        def scale(self, x):
            return x * 2.0

    model = Model()

    @pcbatch.autobatch(jit=False)
    def program(x):
        return model.activation(model.scale(x)) * model.w

    assert settled(program, X) == [3.0, 5.0, 7.0]
    model.count = 2.0
    assert settled(program, X) == [6.0, 10.0, 14.0]
    model.scale = lambda x: x * 0.0
    assert settled(program, X) == [2.0, 2.0, 2.0]
    Model.w = property(lambda self: 5.0)
    assert settled(program, X) == [5.0, 5.0, 5.0]


def test_what_a_property_changes_is_refused():
    class Model:
        count = 0

        @property
        def w(self):
            Model.count += 1
            return float(Model.count)

    model = Model()

    @pcbatch.autobatch(jit=False)
    def program(x):
        return x * model.w

    with pytest.raises(pcbatch.errors.CompileError, match=r"PCB204(.|\n)*Model.count \+= 1"):
        program(X)
    assert Model.count == 0


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
