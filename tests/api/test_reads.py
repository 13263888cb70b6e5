"""What the user's code behind a batched function reads is part of the program: a change of it gives the new answer."""

from __future__ import annotations

import collections
import dataclasses
import functools
import sys
import types
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.api import left

X = np.array([1.0, 3.0], np.float32)


class Scale:
    """Read by methods: a global, class attributes, the object's own, a property, a descriptor, a base's method."""

    klass = 2.0

    def __init__(self, rate=2.0):
        self.rate = rate
        self._hidden = 2.0

    def __call__(self, x):
        return x * self.rate

    def by_global(self, x):
        return x * RATE

    def by_class(self, x):
        return x * self.klass + x * type(self).klass

    @property
    def hidden(self):
        return self._hidden

    def by_property(self, x):
        return x * self.hidden

    @classmethod
    def of_class(cls, x):
        return x * cls.klass


class Narrow(Scale):
    """Nothing but a base's methods, one through `super`."""

    def __call__(self, x):
        return super().__call__(x) + 1.0


class Slots:
    __slots__ = ("rate",)

    def __init__(self):
        self.rate = 2.0


class Positive:
    """A user's descriptor."""

    def __get__(self, instance, owner=None):
        return instance.__dict__["kept"]

    def __set__(self, instance, value):
        instance.__dict__["kept"] = value


class Checked:
    rate = Positive()


@dataclasses.dataclass
class Settings:
    rate: float = 2.0


class Pair(NamedTuple):
    scale: Scale
    shift: float


class Layer(tf.keras.layers.Layer):
    """Its code runs from TensorFlow's."""

    def __init__(self):
        super().__init__()
        self.factor = 2.0

    def call(self, x):
        return x * self.factor


RATE = 2.0
MODULE = types.ModuleType("a_module_of_the_users")
MODULE.RATE, MODULE.inner = 2.0, types.SimpleNamespace(rate=2.0)
TABLE = {"rate": 2.0, "objects": {"a": Scale()}}
ARRAY = np.array([2.0, 4.0], np.float32)
SCALES = [Scale(), Scale()]
CALLED, METHOD, NARROW, CLASS, PROPERTY = Scale(), Scale(), Narrow(), Scale(), Scale()
SLOTS, CHECKED, SETTINGS, PASSED, BOUND, PARTIAL, RETURNED, WRAPPED = (
    Slots(),
    Checked(),
    Settings(),
    Scale(),
    Scale(),
    Scale(),
    Scale(),
    Scale(),
)
PAIR = Pair(Scale(), 0.0)
HOLDER = types.SimpleNamespace(array=np.array([2.0], np.float32), rate=2.0)
LAYER = Layer()
CHECKED.rate = 2.0


def rebound(value):
    """A closure's cell, and how it is bound anew."""

    def helper(x):
        return x * value

    def rebind(new):
        nonlocal value
        value = new

    return helper, rebind


by_cell, rebind = rebound(2.0)


def defaults(x, rate=2.0, *, shift=1.0):
    return x * rate + shift


def code(x):
    return x * 2.0


def other_code(x):
    return x * 5.0


def wrapper(function):
    @functools.wraps(function)
    def wrapped(*args):
        return function(*args)

    return wrapped


@wrapper
def decorated(x):
    return x * WRAPPED.rate


def given(x, settings):
    return x * settings.rate


def returned():
    return RETURNED


def looped(x):
    for scale in SCALES:
        x = scale(x)
    return x


def nested(x):
    def inner(y):
        return y * RATE

    return inner(x)


def made(x):
    return Scale().of_class(x)


def keyed(x, key="a"):
    return x * TABLE["objects"][key].rate


def imported(x):
    from tests.api.left import COUNT

    return x * COUNT


partial = functools.partial(given, settings=PARTIAL)
bound = BOUND.__call__

KINDS = {
    "a callable object": lambda x: CALLED(x),
    "a global in a method": lambda x: METHOD.by_global(x),
    "super": lambda x: NARROW(x),
    "a class attribute": lambda x: CLASS.by_class(x),
    "a property": lambda x: PROPERTY.by_property(x),
    "a slot": lambda x: x * SLOTS.rate,
    "a descriptor": lambda x: x * CHECKED.rate,
    "a dataclass": lambda x: x * SETTINGS.rate,
    "an argument": lambda x: given(x, PASSED),
    "a bound method": lambda x: bound(x),
    "a partial": lambda x: partial(x),
    "a result": lambda x: x * returned().rate,
    "a decorated helper": decorated,
    "a list of objects": looped,
    "a nested function": nested,
    "an object made there": made,
    "a dict by a local key": keyed,
    "a dict": lambda x: x * TABLE["rate"],
    "globals()": lambda x: x * globals()["RATE"],
    "getattr": lambda x: x * getattr(HOLDER, "rate"),  # noqa: B009
    "vars": lambda x: x * vars(HOLDER)["rate"],
    "a module": lambda x: x * MODULE.RATE * MODULE.inner.rate,
    "an import": imported,
    "a named tuple": lambda x: x * PAIR.scale.rate,
    "a cell": by_cell,
    "defaults": defaults,
    "code": code,
    "an array": lambda x: x * ARRAY[1] * HOLDER.array[0],
    "a layer": lambda x: LAYER(x),
}


@pcbatch.autobatch(jit=False)
def every_kind(x):
    return tf.stack([kind(x) for kind in KINDS.values()])


class Items(collections.UserDict):
    """A list or an array, for `MonkeyPatch.setitem`, which wants a dict."""

    def __init__(self, data):
        self.data = data

    def get(self, key, default=None):
        return self.data[key]


HERE = sys.modules[__name__]
CHANGES = {
    "the attribute of a callable object": lambda patch: patch.setattr(CALLED, "rate", 5.0),
    "the class of an object": lambda patch: patch.setattr(CALLED, "__class__", Narrow),
    "a method": lambda patch: patch.setattr(Scale, "by_global", lambda self, x: x),
    "a special method": lambda patch: patch.setattr(Scale, "__call__", lambda self, x: x),
    "a method of an object": lambda patch: patch.setitem(vars(METHOD), "by_global", lambda x: x),
    "a method of a subclass": lambda patch: patch.setattr(Narrow, "__call__", Scale.__call__),
    "an object behind super": lambda patch: patch.setattr(NARROW, "rate", 5.0),
    "a class attribute": lambda patch: patch.setattr(Scale, "klass", 5.0),
    "a class attribute, by an object": lambda patch: patch.setitem(vars(CLASS), "klass", 5.0),
    "what a property reads": lambda patch: patch.setattr(PROPERTY, "_hidden", 5.0),
    "a property": lambda patch: patch.setattr(Scale, "hidden", property(lambda self: 5.0)),
    "a slot": lambda patch: patch.setattr(SLOTS, "rate", 5.0),
    "a descriptor's value": lambda patch: patch.setitem(vars(CHECKED), "kept", 5.0),
    "a field": lambda patch: patch.setattr(SETTINGS, "rate", 5.0),
    "an argument": lambda patch: patch.setattr(PASSED, "rate", 5.0),
    "a bound object": lambda patch: patch.setattr(BOUND, "rate", 5.0),
    "a partial's": lambda patch: patch.setattr(PARTIAL, "rate", 5.0),
    "a result": lambda patch: patch.setattr(RETURNED, "rate", 5.0),
    "behind a decorator": lambda patch: patch.setattr(WRAPPED, "rate", 5.0),
    "an object in a list": lambda patch: patch.setattr(SCALES[1], "rate", 5.0),
    "the list": lambda patch: patch.setattr(HERE, "SCALES", SCALES[:1]),
    "an item of the list": lambda patch: patch.setitem(Items(SCALES), 0, Scale(5.0)),
    "a global": lambda patch: patch.setattr(HERE, "RATE", 5.0),
    "an int for a float": lambda patch: patch.setattr(HERE, "RATE", 2),
    "an object in a dict": lambda patch: patch.setattr(TABLE["objects"]["a"], "rate", 5.0),
    "an entry of a dict": lambda patch: patch.setitem(TABLE, "rate", 5.0),
    "an attribute by getattr": lambda patch: patch.setattr(HOLDER, "rate", 5.0),
    "a name of a module": lambda patch: patch.setattr(MODULE, "RATE", 5.0),
    "an object in a module": lambda patch: patch.setattr(MODULE.inner, "rate", 5.0),
    "an imported name": lambda patch: patch.setattr(left, "COUNT", 5),
    "an object in a named tuple": lambda patch: patch.setattr(PAIR.scale, "rate", 5.0),
    "a default": lambda patch: patch.setattr(defaults, "__defaults__", (5.0,)),
    "a keyword's default": lambda patch: patch.setitem(defaults.__kwdefaults__, "shift", 5.0),
    "the code": lambda patch: patch.setattr(code, "__code__", other_code.__code__),
    "an element of an array": lambda patch: patch.setitem(Items(ARRAY), 1, 5.0),
    "an element of an object's array": lambda patch: patch.setitem(Items(HOLDER.array), 0, 5.0),
    "a new array": lambda patch: patch.setattr(HOLDER, "array", np.array([5.0], np.float32)),
    "an attribute of a layer": lambda patch: patch.setattr(LAYER, "factor", 5.0),
    "a built-in's name": lambda patch: patch.setattr(HERE, "globals", lambda: {"RATE": 5.0}, raising=False),
}


@pytest.fixture(scope="module")
def before():
    """The program as it was at first, with the arrays that it captures."""
    pipeline = every_kind.pipeline(X)
    return pipeline, elements(pipeline)


def elements(pipeline):
    """The elements of the arrays that a program captures now; None if it is another program by now."""
    captured = pipeline.captured_now()
    if captured is None:
        return None
    return {name: [np.asarray(leaf).tolist() for leaf in leaves] for name, leaves in captured.leaves.items()}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_noticed(before, name):
    """And when it is taken back the program serves again."""
    pipeline, known = before
    assert elements(pipeline) == known
    with pytest.MonkeyPatch.context() as patch:
        CHANGES[name](patch)
        assert elements(pipeline) != known
    assert elements(pipeline) == known


def test_a_cell_that_is_bound_anew_is_noticed(before):
    pipeline, known = before
    rebind(5.0)
    assert elements(pipeline) != known
    rebind(2.0)
    assert elements(pipeline) == known


def test_the_answer_is_that_of_plain_python(monkeypatch):
    """Programs are kept: back to what it was compiles nothing."""
    before = np.asarray(every_kind(X))
    assert before.tolist() == [np.asarray(every_kind.single(x)).tolist() for x in X]
    for name in ("the attribute of a callable object", "a slot", "a global", "the code", "an element of an array"):
        CHANGES[name](monkeypatch)
    after = np.asarray(every_kind(X))
    assert after.tolist() == [np.asarray(every_kind.single(x)).tolist() for x in X]
    assert np.sum(before != after) >= 2 * 6
    monkeypatch.undo()
    assert np.asarray(every_kind(X)).tolist() == before.tolist()
    assert every_kind.stats().compilations == 2


def test_what_is_not_read_or_changes_while_it_is_traced_compiles_nothing():
    class Counted:
        def __init__(self):
            self.unread, self.weights = 0, {"w": 2.0}

        @functools.cached_property
        def kept(self):
            return 2.0

        def __call__(self, x):
            return x * self.kept * self.weights["w"] * self.computed("un" + "known")

        def computed(self, name):
            return getattr(self, name)

        unknown = 1.0

    counted = Counted()

    @pcbatch.autobatch(jit=False)
    def f(x):
        return counted(x)

    for turn in range(3):
        assert np.asarray(f(X)).tolist() == [4.0, 12.0]
        counted.unread = turn
        counted.weights = dict(counted.weights)  # equal, but another object
    assert f.stats().compilations == 1
    counted.weights["w"] = 5.0
    assert np.asarray(f(X)).tolist() == [10.0, 30.0]


def test_what_only_a_batched_form_reads_is_noticed():
    scale = Scale()
    primitive = pcbatch.primitive(lambda x: x * 2.0, batched=lambda xs: xs * scale.rate)

    @pcbatch.autobatch(jit=False)
    def f(x):
        return primitive(x)

    assert np.asarray(f(X)).tolist() == [2.0, 6.0]
    scale.rate = 5.0
    assert np.asarray(f(X)).tolist() == [5.0, 15.0]


def test_what_only_a_gradient_reads_is_noticed():
    scale = Scale()

    @tf.custom_gradient
    def doubled(x):
        return 2.0 * x, lambda upstream: upstream * scale.rate

    @pcbatch.autobatch
    def f(x):
        return doubled(x)

    def gradient():
        x = tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x).numpy().tolist()

    assert gradient() == [2.0, 2.0]
    scale.rate = 5.0
    assert gradient() == [5.0, 5.0]


def helper_of_one_piece(x):
    return x * RATE


@pcbatch.autobatch
def mostly_plain(x, n):
    while n > 0:
        x = tf.sin(x)
        n = n - 1
    return helper_of_one_piece(x)


def test_nothing_follows_the_code_while_it_runs():
    """Debuggers, coverage tools and profilers may run beside."""
    seen = []

    def tracer(frame, event, arg):
        seen.append(frame.f_code)
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        found = np.asarray(mostly_plain(X, np.array([2, 0])))
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert seen
    np.testing.assert_allclose(found, [2.0 * np.sin(np.sin(1.0)), 6.0], rtol=1e-6)


def test_a_written_module_notices_it_too(tmp_path, monkeypatch):
    """A written program has the numbers of that time; what is called and not interpreted reads them anew."""
    from pcbatch.commands.cli import main

    helper = "def helper(x):\n    try:\n        return x * RATE\n    finally:\n        pass\n\n"
    source = f"import pcbatch\n\nRATE = 2.0\n\n{helper}@pcbatch.autobatch\ndef f(x):\n"
    (tmp_path / "source.py").write_text(source + "    return helper(x)\n")
    monkeypatch.syspath_prepend(tmp_path)
    files = [str(tmp_path / name) for name in ("source.py", "written_reads.py")]
    assert main(["compile", files[0], "--args", "[[1.0, 3.0]]", "-o", files[1]]) == 0
    import written_reads

    assert np.asarray(written_reads.f(X)).tolist() == [2.0, 6.0]
    written_reads.RATE = 5.0
    assert np.asarray(written_reads.f(X)).tolist() == [5.0, 15.0]


def test_what_a_property_makes_anew_at_each_look_compiles_once():
    """Such an object cannot be told from the one before; numbers that are read from it can."""

    class Model:
        rate = 2.0

        @property
        def settings(self):
            return types.SimpleNamespace(rate=self.rate)

    model = Model()

    @pcbatch.autobatch(jit=False)
    def f(x):
        return given(x, model.settings) * model.settings.rate + sum(TABLE_OF_NUMBERS.values())

    for _ in range(2):
        assert np.asarray(f(X)).tolist() == [7.0, 15.0]
    assert f.stats().compilations == 1
    model.rate = 3.0
    assert np.asarray(f(X)).tolist() == [12.0, 30.0]


TABLE_OF_NUMBERS = {"a": 1.0, "b": 2.0}
