"""Methods: the object is static, its arrays are read at every call, and its programs live as long as it does."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import weakref

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import CompileError, UsageError

XS = np.array([1.0, 2.0], np.float32)


def values(tensor):
    return np.asarray(tensor).tolist()


class Model:
    """An array, a number, a further object."""

    def __init__(self, weight, depth):
        self.weight = np.float32(weight)
        self.depth = depth
        self.other = self

    @pcbatch.autobatch(jit=False)
    def power(self, x, n):
        if n >= self.depth:
            return x
        return self.power(x * self.weight, n + 1)

    @pcbatch.autobatch(jit=False, in_axes=(0, None))
    def mixed(self, x, n):
        return self.power(x, n) + self.other.power(x, n)

    @pcbatch.autobatch(jit=False)
    def helped(self, x):
        return self.double(x)

    def double(self, x):
        return x * 2

    @pcbatch.autobatch(jit=False)
    @staticmethod
    def half(x):
        return x / 2.0

    @staticmethod
    @pcbatch.autobatch(jit=False)
    def third(x):
        return x / 3.0

    @pcbatch.autobatch(jit=False)
    @classmethod
    def counted(cls, x):
        return x if x > cls.LIMIT else cls.counted(x + 1)

    LIMIT = 3.5


class Deeper(Model):
    """A method of its own, under the name that the inherited one calls."""

    @pcbatch.autobatch(jit=False)
    def power(self, x, n):
        return x + n


@dataclasses.dataclass(frozen=True, slots=True)
class Slots:
    """No `__dict__`, no hash."""

    weight: np.ndarray

    @pcbatch.autobatch(jit=False)
    def total(self, x):
        for w in self.weight:
            x += w
        return x


NS = np.zeros(2, np.int32)


def test_recursion_through_self() -> None:
    model = Model(3.0, 2)
    assert values(model.power(XS, np.array([0, 1], np.int32))) == [9.0, 6.0]
    assert values(model.power.single(1.0, 0)) == 9.0
    assert model.power.run(XS, NS).status.tolist() == [0, 0]
    assert "call power" in model.power.ir("cfg", XS, NS)


def test_arrays_are_read_at_every_call_and_other_attributes_are_part_of_the_program() -> None:
    model = Model(3.0, 1)
    assert values(model.power(XS, NS)) == [3.0, 6.0]
    model.weight = np.float32(5.0)
    assert values(model.power(XS, NS)) == [5.0, 10.0]
    assert model.power.stats().compilations == 1
    model.depth = 2
    assert values(model.power(XS, NS)) == [25.0, 50.0]
    assert model.power.stats().compilations == 2


def test_each_object_has_its_own_program() -> None:
    first, second = Model(2.0, 1), Model(3.0, 3)
    assert values(first.power(XS, NS)) == [2.0, 4.0]
    assert values(second.power(XS, NS)) == [27.0, 54.0]
    assert first.power is first.power
    assert first.power is not second.power
    assert Model.power is Model.__dict__["power"]


def test_methods_of_several_objects_in_one_program() -> None:
    first, second = Model(2.0, 1), Model(3.0, 2)
    first.other = second
    assert values(first.mixed(XS, 0)) == [11.0, 22.0]
    assert float(first.mixed.single(1.0, 0)) == 11.0
    first.other = Deeper(1.0, 1)
    assert values(first.mixed(XS, 1)) == [3.0, 5.0]


def test_an_overriding_method_is_called() -> None:
    assert values(Deeper(2.0, 1).mixed(XS, 1)) == [4.0, 6.0]


def test_options_of_a_method() -> None:
    model = Model(2.0, 3)
    shallow = model.power.options(schedule="earliest")
    assert values(shallow(XS, NS)) == [8.0, 16.0]
    assert model.power.options(schedule="earliest") is shallow
    with pytest.raises(UsageError, match="PCB502"):
        model.power.options(in_axes=(0, 0, 0))


def test_static_and_class_methods() -> None:
    model = Model(2.0, 1)
    assert values(model.half(XS)) == values(Model.half(XS)) == [0.5, 1.0]
    assert values(model.third(XS * 3)) == values(Model.third(XS * 3)) == [1.0, 2.0]
    assert values(model.counted(XS)) == values(Model.counted(XS)) == [4.0, 4.0]
    assert float(Model.counted.single(0.5)) == 4.5


def test_undecorated_methods_are_helpers() -> None:
    assert values(Model(2.0, 1).helped(XS)) == [2.0, 4.0]


def test_a_bound_method_can_be_batched_from_outside() -> None:
    class Plain:
        rate = 2.0

        def grown(self, x):
            return x if x > 10.0 else self.grown(x * self.rate)

    function = pcbatch.autobatch(Plain().grown, jit=False)
    assert values(function(XS)) == [16.0, 16.0]
    assert "call grown" in function.ir("cfg", XS)


def test_objects_with_slots() -> None:
    object_ = Slots(np.array([1.0, 2.0], np.float32))
    assert values(object_.total(XS)) == [4.0, 5.0]
    assert object_.total is object_.total


def test_programs_live_as_long_as_their_object() -> None:
    model = Model(2.0, 1)
    model.power(XS, NS)
    seen = weakref.ref(model)
    del model
    gc.collect()
    assert seen() is None


def test_copies_have_programs_of_their_own() -> None:
    model = Model(2.0, 1)
    method = model.power
    for twin in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.power is not method
        twin.weight = np.float32(7.0)
        assert values(twin.power(XS, NS)) == [7.0, 14.0]
    assert values(model.power(XS, NS)) == [2.0, 4.0]


def test_variables_of_a_module() -> None:
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([1.0, 2.0])

        @pcbatch.autobatch(jit=False)
        def apply(self, x):
            return tf.reduce_sum(self.w * x)

    net = Net()
    assert values(net.apply(XS)) == [3.0, 6.0]
    net.w.assign([2.0, 2.0])
    assert values(net.apply(XS)) == [4.0, 8.0]
    assert [variable.name for variable in net.variables] == ["Variable:0"]


def test_a_method_called_on_the_class() -> None:
    with pytest.raises(UsageError, match="PCB511: argument 'self'"):
        Model.power(Model(1.0, 1), XS, NS)


def test_the_name_of_the_object_may_be_given_to_something_else() -> None:
    class Other:
        @pcbatch.autobatch(jit=False)
        def method(self, x):
            self = x + 1
            return self * 2

    assert values(Other().method(XS)) == [4.0, 6.0]


def test_methods_of_ones_own_may_have_the_names_of_array_methods() -> None:
    class Counter:
        def __init__(self, step):
            self.step = np.float32(step)

        @pcbatch.autobatch(jit=False)
        def assign(self, x, n):
            return x if n == 0 else self.assign(self.item(x) + self.numpy(x), n - 1)

        @pcbatch.autobatch(jit=False)
        def item(self, x):
            return x + self.step

        def numpy(self, x):
            return x * self.step

    def assigned(x, n):
        return x if n == 0 else assigned(x + 2.0 + x * 2.0, n - 1)

    expected = [assigned(x, n) for x, n in zip(XS, NS, strict=True)]
    assert values(Counter(2.0).assign(XS, NS)) == expected


def test_methods_of_arrays_stay_refused_in_methods() -> None:
    class Stepping:
        def __init__(self):
            self.w = tf.Variable(1.0)

        @pcbatch.autobatch
        def step(self, x):
            return self.w.assign(x)

    with pytest.raises(CompileError, match="PCB112: `assign` makes or changes a variable"):
        Stepping().step(XS)

    class Helpers:
        @staticmethod
        @pcbatch.autobatch
        def number(x):
            return x.numpy()

    with pytest.raises(CompileError, match="PCB120: `numpy` asks for a concrete value"):
        Helpers.number(XS)
