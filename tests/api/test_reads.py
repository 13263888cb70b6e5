"""What the user's code behind a batched function reads is part of the program: a change of it gives the new answer."""

from __future__ import annotations

import collections
import dataclasses
import functools
import gc
import sys
import types
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.lowering.captures.reads import Record, watching
from pcbatch.lowering.captures.reads.stored import GENERATED
from pcbatch.lowering.captures.reads.watch import Watch
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
def reads():
    return every_kind.pipeline(X).reads


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_noticed(reads, name):
    """And when it is taken back the program serves again."""
    assert reads.holds()
    with pytest.MonkeyPatch.context() as patch:
        CHANGES[name](patch)
        assert not reads.holds()
    assert reads.holds()


def test_a_cell_that_is_bound_anew_is_noticed(reads):
    rebind(5.0)
    assert not reads.holds()
    rebind(2.0)
    assert reads.holds()


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
            self.calls, self.unread, self.weights = 0, 0, {"w": 2.0}

        @functools.cached_property
        def kept(self):
            return 2.0

        def __call__(self, x):
            self.calls += 1
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


def test_only_pieces_that_may_reach_the_users_code_are_followed(monkeypatch):
    followed = set()
    is_to_follow = Watch.is_to_follow

    def spy(self, frame):
        if frame.f_code.co_filename.startswith(GENERATED):
            followed.add(frame.f_code)
        return is_to_follow(self, frame)

    monkeypatch.setattr(Watch, "is_to_follow", spy)
    mostly_plain(X, np.array([2, 0]))
    assert followed
    assert all("helper_of_one_piece" in code.co_names for code in followed)


def test_pieces_of_equal_text_may_reach_different_code():
    """Functions of two modules may call one `abs` and one a helper of the user's by the same name."""
    pieces = []
    for named in (abs, helper_of_one_piece, abs):
        names = {"named": named}
        exec("def piece(x):\n    return named(x)\n", names)
        pieces.append(names["piece"])
    watch = Watch(Record())
    assert [watch.may_reach_users(piece, ()) for piece in pieces] == [False, True, False]
    assert len(watch.reaching) == 2


def test_a_piece_that_is_not_followed_though_it_reaches_them_keeps_what_it_read(monkeypatch):
    """The tests above depend on it."""
    monkeypatch.setattr(Watch, "may_reach_users", lambda self, function, types: False)
    monkeypatch.setitem(globals(), "RATE", 2.0)

    @pcbatch.autobatch
    def f(x):
        return helper_of_one_piece(x)

    assert np.asarray(f(X)).tolist() == [2.0, 6.0]
    monkeypatch.setitem(globals(), "RATE", 5.0)
    assert np.asarray(f(X)).tolist() == [2.0, 6.0]


def test_a_debuggers_trace_function_goes_on_and_stays():
    seen = []

    def tracer(frame, event, arg):
        if frame.f_code is Scale.by_class.__code__:
            seen.append(event)
        return tracer

    before, record = sys.gettrace(), Record()
    sys.settrace(tracer)
    try:
        with watching(record, [CLASS]):
            CLASS.by_class(1.0)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert seen == ["call", "line", "return"]
    assert len(record) >= 3


def test_what_runs_because_garbage_is_collected_is_not_read():
    """Such as hypothesis' function that counts the seconds of collections: each call would compile anew."""
    counts = {"start": 0, "stop": 0, "finalised": 0}

    def counted(phase, info):
        counts[phase] += 1

    class Garbage:
        def __init__(self):
            self.itself = self

        def __del__(self):
            counts["finalised"] += 1

    def collecting(x):
        Garbage()
        gc.collect()
        return x * SETTINGS.rate

    gc.callbacks.append(counted)
    before, record = [*gc.callbacks], Record()
    try:
        with watching(record, [collecting]):
            collecting(1.0)
        assert gc.callbacks == before
    finally:
        gc.callbacks.remove(counted)
    assert all(counts.values())
    read = [value for _, value in record.described()]
    assert any(value is SETTINGS for value in read)
    assert not any(value is counts for value in read)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SETTINGS, "rate", 5.0)
        assert not record.holds()


def test_a_written_module_notices_it_too(tmp_path, monkeypatch):
    """A program that was compiled ahead of time reads the globals of its own module."""
    from pcbatch.commands.cli import main

    source = "import pcbatch\n\nRATE = 2.0\n\ndef helper(x):\n    return x * RATE\n\n@pcbatch.autobatch\ndef f(x):\n"
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
