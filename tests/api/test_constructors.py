"""Constructors that branch, loop, raise, or call what does: part of the program, as other methods are."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
import pytest

import pcbatch
from pcbatch import LaneStatus
from tests.api import left
from tests.pairwise import every_second

X = np.array([-1.0, 2.0, 3.0], np.float32)


class Scaled:
    rate = 0.5

    def __init__(self, v, log=None, *, least=2.0):
        if v > 0.0:
            self.v = v * self.rate
        else:
            self.v = least
        self.least = least


class Halved:
    def __init__(self, v):
        self.v = v
        self.turns = 0
        while self.v > 1.0:
            self.v = self.v * 0.5
            self.turns += 1


class Clipped:
    def __init__(self, v):
        self.v = v
        self.clip()
        self.w = self.limited(v)

    def clip(self):
        if self.v < 0.0:
            self.v = 0.0

    def limited(self, v):
        if v > 2.0:
            return 2.0
        return v


class Derived(Scaled):
    def __init__(self, v):
        super().__init__(v, least=1.0)
        self.w = v


class Inherited(Scaled):
    pass


class Early:
    def __init__(self, v):
        self.v = v
        if v > 2.5:
            return
        self.v = v * 2.0


class Checked:
    def __init__(self, v):
        if v < 0.0:
            raise ValueError("negative")
        self.v = v


class Doubled:
    def __init__(self, v):
        self.v = v
        if v > 0.0:
            self.half = v

    @property
    def half(self):
        return self.v * 0.5

    @half.setter
    def half(self, v):
        self.v = v * 2.0


class Outer:
    def __init__(self, v):
        self.inner = Scaled(v)
        self.many = [Halved(v), Halved(v + 1.0)]


class Tree:
    def __init__(self, depth, v):
        self.v = v
        if depth > 0:
            self.left = Tree(depth - 1, v * 0.5)


class Holder:
    def __init__(self, xs, v):
        self.v = 0.0
        self.xs = xs
        if v > 0.0:
            self.v = v

    def put(self, v):
        self.xs[0] += v


class Marked:
    def __init__(self, xs, v):
        self.xs = xs
        if v > 0.0:
            self.xs[0] = v


class Logged:
    def __init__(self, v, log=[1.0]):  # noqa: B006
        self.log = log
        self.v = v
        if v > 0.0:
            self.v = 1.0


class Pair:
    def __init__(self, a, v):
        self.a = a
        self.b = a
        if v > 0.0:
            self.b = a


class Telling:
    def __init__(self, v, other):
        self.v = v
        if v > 0.0:
            other.v = v


@dataclasses.dataclass
class Data:
    v: float
    xs: list = dataclasses.field(default_factory=lambda: [1.0, 2.0])
    w: float = dataclasses.field(init=False)

    def __post_init__(self):
        self.w = self.v
        if self.v < 0.0:
            self.v = 0.0
            self.xs[0] = 7.0


@dataclasses.dataclass
class More(Data):
    z: float = 1.0


@dataclasses.dataclass(slots=True)
class Slotted:
    v: float

    def __post_init__(self):
        if self.v < 0.0:
            self.v = 0.0


@dataclasses.dataclass(kw_only=True)
class Keywords:
    v: float
    u: float = 3.0

    def __post_init__(self):
        while self.v > 1.0:
            self.v = self.v * 0.5


@pcbatch.autobatch
def below(v):
    if v < 0.0:
        return 0.0
    return v


class Calling:
    def __init__(self, v):
        self.v = below(v)


def made(x):
    return Scaled(x)


def plain(x):
    return Scaled(x).v + Scaled(1.0, least=x).v + Scaled(v=x, log=1.0).least


def of_each_kind(x):
    halved, clipped, derived = Halved(x + 3.0), Clipped(x), Derived(x)
    return halved.v + halved.turns + clipped.v + clipped.w + derived.v + derived.w + Early(x).v + Doubled(x).v


def in_each_other(x):
    outer = Outer(x)
    outer.many[0].v += 1.0
    return outer.inner.v + outer.many[0].v + outer.many[1].turns + Scaled(Scaled(x).v).v + made(x).v


def in_a_loop(x):
    total = 0.0
    for i in range(4):
        each = Scaled(x - i)
        if each.v > 1.4:
            break
        total += each.v
    else:
        total = 100.0
    return total


def in_a_list(x):
    many = []
    for i in range(3):
        many.append(Scaled(x - i))
    many[1].v = 9.0
    at = 1 if x > 0.0 else 0
    many[at].v += 1.0
    return sum(each.v for each in many) + sum([Scaled(x + i).v for i in range(2)])


def chosen(x):
    each = Scaled(x) if x > 0.0 else Scaled(1.0)
    if (other := Inherited(x)).v > 1.0:
        return other.v + each.v
    return each.v - other.v


def by_a_recursion(x, n=2):
    each = Halved(x)
    if n <= 0:
        return each.v
    return by_a_recursion(each.v * 3.0, n - 1) + each.turns


def made_again(x):
    each = Scaled(x)
    each.__init__(x + 1.0)
    return each.v + Tree(2, x).left.left.v


def of_a_default(x):
    return Logged(x).v + Logged(x).log[0]


def whole(x):
    return Scaled(x), {"more": Halved(x)}


def data(x):
    one, other = Data(x), More(x, z=x)
    other.xs[1] += x
    return one.v + one.w + one.xs[0] + other.z + other.xs[1] + Data(1.0).xs[1] + Slotted(x).v + Keywords(v=x + 3.0).v


def whole_data(x):
    return Data(x), More(x), Slotted(x)


PROGRAMS = [
    plain, of_each_kind, in_each_other, in_a_loop, in_a_list, chosen, by_a_recursion, made_again, of_a_default, whole,
    data, whole_data,
]  # fmt: skip


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for each in value for leaf in leaves(each)]
    if isinstance(value, dict):
        return leaves(list(value.values()))
    if dataclasses.is_dataclass(value):
        return leaves([getattr(value, each.name) for each in dataclasses.fields(value)])
    return leaves(vars(value)) if hasattr(value, "__dict__") and not hasattr(value, "shape") else [value]


IN_OTHER_MODES = [of_each_kind, in_a_loop, data]
"""Programs that quick tests run in other modes, and slow ones in the default one."""


@pytest.mark.parametrize(
    "function",
    [pytest.param(each, marks=pytest.mark.slow) if each in IN_OTHER_MODES else each for each in PROGRAMS],
)
def test_an_object_is_what_python_makes(function):
    batched = pcbatch.autobatch(function)
    expected = [leaves(function(float(x))) for x in X]
    for lane, x in enumerate(X):
        np.testing.assert_allclose(leaves(batched.single(x)), expected[lane], rtol=1e-6)
    found = leaves(batched(X))
    assert len(found) == len(expected[0])
    for at, leaf in enumerate(found):
        np.testing.assert_allclose(leaf, [each[at] for each in expected], rtol=1e-6)
    assert [np.shape(leaf)[0] for leaf in leaves(batched(X[:0]))] == [0] * len(expected[0])


@pytest.mark.parametrize(
    ("function", "changes"),
    every_second(
        IN_OTHER_MODES, [{"backend": "reference"}, {"strategy": "local"}, {"strategy": "depth"}, {"jit": False}]
    ),
)
def test_so_it_is_in_other_modes(function, changes):
    batched = pcbatch.autobatch(function).options(**changes)
    np.testing.assert_allclose(batched(X), [function(float(x)) for x in X], rtol=1e-6)


class Remembering:
    def __init__(self, v):
        self.v = v
        if v > 0.0:
            self.v = v * 2.0
        self.old = copy.copy(self)


def attributes_of(value):
    return len(vars(value))


class Counting:
    def __init__(self, v):
        self.count = attributes_of(self)
        self.v = v
        if v > 0.0:
            self.v = 1.0


def test_that_an_object_is_not_made_yet_does_not_show():
    @pcbatch.autobatch
    def made_of(x):
        return Remembering(x)

    @pcbatch.autobatch
    def counted(x):
        return Counting(x).count

    found, python = made_of(X), [Remembering(float(x)) for x in X]
    assert vars(found).keys() == vars(python[0]).keys()
    assert vars(found.old).keys() == vars(python[0].old).keys()
    np.testing.assert_array_equal(found.old.v, [each.old.v for each in python])
    np.testing.assert_array_equal(counted(X), [Counting(float(x)).count for x in X])


class Chain:
    def __init__(self, xs, v, depth):
        self.xs, self.v = xs, v
        self.next = Chain(xs, v + 1.0, depth - 1) if depth > 0 else None


class Grown:
    def __init__(self, depth, v):
        self.v = v
        self.left = Grown(depth - 1, v * 0.5) if depth > 0 else None


def of_its_own_class(x):
    tree = Grown(2, x)
    tree.v += 5.0
    tree.left.v += x
    return tree.v + tree.left.v + tree.left.left.v


def changed_in_its_own_class(x):
    chain = Chain([x, 1.0], x, 2)
    chain.next.next.xs[0] += 1.0
    return chain.xs[0]


def test_objects_of_a_class_may_be_made_of_others():
    for function in (of_its_own_class, changed_in_its_own_class):
        np.testing.assert_allclose(pcbatch.autobatch(function)(X), [function(float(x)) for x in X])


def test_a_constructor_may_call_batched_functions():
    @pcbatch.autobatch
    def value(x):
        return Calling(x).v

    np.testing.assert_array_equal(value(X), [0.0, 2.0, 3.0])
    np.testing.assert_array_equal([value.single(x) for x in X], [0.0, 2.0, 3.0])


def test_what_a_constructor_raises_is_the_lanes():
    @pcbatch.autobatch
    def checked(x):
        return Checked(x).v

    run = checked.run(X)
    assert [*run.status] == [LaneStatus.RAISED, LaneStatus.OK, LaneStatus.OK]
    np.testing.assert_array_equal(run.value[1:], X[1:])
    with pytest.raises(ValueError, match="negative"):
        checked.single(X[0])


def test_a_class_that_gets_another_constructor_is_compiled_anew(monkeypatch):
    @pcbatch.autobatch
    def value(x):
        return Inherited(x).v

    class Replaced:
        def __init__(self, v):
            self.v = -v
            if v > 2.0:
                self.v = 100.0

    np.testing.assert_array_equal(value(X), [2.0, 1.0, 1.5])
    monkeypatch.setattr(Inherited, "__init__", Replaced.__init__, raising=False)
    np.testing.assert_array_equal(value(X), [1.0, -2.0, 100.0])
    monkeypatch.undo()
    np.testing.assert_array_equal(value(X), [2.0, 1.0, 1.5])


def test_the_class_of_a_module():
    @pcbatch.autobatch
    def value(x):
        return left.Least(x).v

    np.testing.assert_array_equal(value(X), [0.0, 2.0, 3.0])
