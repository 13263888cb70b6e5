"""`super()` in methods that are part of a program: of objects that lanes make, and of captured ones."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import pcbatch
from pcbatch.errors import CompileError

X = np.array([1.0, 2.0, 3.0], np.float32)


class Base:
    def __init__(self, x):
        self.x = x
        self.n = 0

    def above(self, x):
        if x > 1.5:
            return self.x + x
        return x

    def plain(self, x):
        return 2.0 * x + self.x

    def counted(self, x):
        self.n += 1
        return x

    def add(self, x):
        if x > 1.5:
            self.n += 1

    def own(self, x):
        return x

    def calls_own(self, x):
        if x > 2.5:
            return self.own(x)
        return x + self.n

    def __hidden(self, x):
        return x if x > 1.5 else 2.0 * x

    def hides(self, x):
        return self.__hidden(x) + 1.0

    @property
    def size(self):
        if self.x > 1.5:
            return self.x
        return 1.0

    @staticmethod
    def fee(x):
        if x > 1.5:
            return 2.0 * x
        return x

    @classmethod
    def made(cls, x):
        if x > 1.5:
            return cls(x, 2.0).x
        return x


class Middle(Base):
    def above(self, x):
        return super().above(x) + 1.0

    def counted(self, x):
        if x > 1.5:
            return super().counted(x) + 1.0
        return x

    def own(self, x):
        return 2.0 * x


class Last(Middle):
    def __init__(self, x, y):
        super().__init__(x)
        self.y = y

    def above(self, x):
        return super().above(super().above(x) + super().plain(x))

    def plain(self, x):
        if x > 1.5:
            return super().plain(x) + self.y
        return x

    def counted(self, x):
        y = super().counted(x)
        self.n += 10
        return y

    def add(self, x):
        super().add(x)
        super().add(x + 1.0)

    def calls_own(self, x):
        return super().calls_own(x) + super().fee(x) + super(Middle, self).above(x)

    def hides(self, x):
        return super().hides(x) if x > 1.0 else x

    def recursive(self, x):
        if x < 1.0:
            return x
        return self.recursive(0.5 * x) + super().above(x)

    def several(self, x):
        if x > 1.0:
            return sum([super(Last, self).above(v) for v in [x, 2.0]])
        return x

    def restarted(self, x):
        if x > 1.5:
            super().__init__(x)
        return self.x

    def missing(self, x):
        return super().above(x) + super().none_such(x)

    def kept(self, x):
        s = super()
        return s.above(x)

    def inside(self, x):
        def own(v):
            return super(Last, self).above(v)

        return own(x) if x > 1.0 else x

    @property
    def size(self):
        return super().size + 1.0

    @classmethod
    def made(cls, x):
        if x > 2.5:
            return cls(x, 1.0).y
        return super().made(x) + 1.0


@dataclasses.dataclass
class Point:
    x: float

    def far(self, y):
        if y > 1.5:
            return y
        return self.x


@dataclasses.dataclass
class Scaled(Point):
    z: float

    def far(self, y):
        return super().far(y) * self.z


class Left(Base):
    def above(self, x):
        return super().above(x) * 2.0


class Right(Base):
    def above(self, x):
        return super().above(x) + 5.0


class Both(Left, Right):
    def above(self, x):
        return super().above(x) + 0.5


class Mutual:
    def __init__(self, x):
        self.x = x
        self.n = 0

    def first(self, x):
        if x < 1.0:
            return x
        return self.second(0.5 * x)

    def second(self, x):
        self.n += 1
        return self.first(x)

    def third(self, x):
        if x > self.x:
            return self.second(x)
        return x


KEPT = Last(1.0, 2.0)


def helped(p, x):
    return p.above(x) + p.counted(x)


def values(x):
    p = Last(x, 1.0)
    return p.above(x) + p.plain(x) + p.calls_own(x) + p.hides(x) + p.size + p.several(x)


def changes(x):
    p, q = Last(x, 1.0), Middle(x)
    y = p.counted(x) + q.counted(x)
    p.add(x)
    y += p.restarted(x + 0.5)
    return y + 10.0 * p.n + q.n + p.x


def recursion(x):
    p = Last(x, 1.0)
    return p.recursive(3.0 * x) + p.made(x)


def in_loops_and_helpers(x):
    y = 0.0
    for p in [Last(x, 1.0), Last(2.0, x)]:
        y += p.above(x) + p.counted(y)
    ps = [Last(x, 1.0), Last(2.0 * x, 2.0)]
    return y + ps[int(x) % 2].above(x) + helped(Last(x, 2.0), y) + Scaled(x, 2.0).far(x)


def captured(x):
    return KEPT.above(x) + KEPT.plain(x) + KEPT.recursive(x) + KEPT.size + KEPT.made(x) + Last.made(x)


def mutual(x):
    p = Mutual(2.0)
    y = p.first(4.0 * x) + p.third(x)
    return y + 10.0 * p.n


def as_a_value(x):
    return Last(x, 1.0).kept(x)


def in_a_function(x):
    return Last(x, 1.0).inside(x)


def several_bases(x):
    return Both(x).above(x)


@pytest.mark.parametrize(
    "function",
    [
        values,
        changes,
        recursion,
        in_loops_and_helpers,
        captured,
        mutual,
        as_a_value,
        in_a_function,
        several_bases,
    ],
    ids=lambda function: function.__name__,
)
def test_super_means_what_it_means_in_python(function):
    batched = pcbatch.autobatch(function)
    for backend in ("tensorflow", "reference"):
        given = batched.options(backend=backend)(X)
        np.testing.assert_allclose(given, [function(float(x)) for x in X], rtol=1e-6)
    np.testing.assert_allclose([batched.single(x) for x in X], given, rtol=1e-6)


def unknown(x):
    return Last(x, 1.0).missing(x)


def test_what_no_base_has_is_refused_at_the_users_line():
    with pytest.raises(CompileError, match="PCB401: AttributeError: 'super' object has no") as caught:
        pcbatch.autobatch(unknown).check(X)
    (diagnostic,) = caught.value.diagnostics
    assert "super().none_such(x)" in diagnostic.span.text


def test_batched_methods_have_super_too():
    class Own(Last):
        @pcbatch.autobatch(jit=False)
        def above(self, x):
            return super().above(x) + super(Last, self).above(x)

        def plainly(self, x):
            return Last.above(self, x) + Middle.above(self, x)

    own = Own(1.0, 2.0)
    np.testing.assert_allclose(own.above(X), [own.plainly(float(x)) for x in X])
    np.testing.assert_allclose([own.above.single(x) for x in X], own.above(X))


def test_what_super_means_is_looked_at_anew(monkeypatch):
    @pcbatch.autobatch
    def both(x):
        return Last(x, 1.0).above(x) + KEPT.above(x)

    for _ in range(3):
        before = np.asarray(both(X))
    assert both.stats().compilations == 1

    def above(self, x):
        if x > 2.5:
            return 100.0
        return self.x

    monkeypatch.setattr(Base, "above", above)
    after = [Last(float(x), 1.0).above(float(x)) + KEPT.above(float(x)) for x in X]
    np.testing.assert_allclose(both(X), after)
    assert not np.allclose(before, after)
