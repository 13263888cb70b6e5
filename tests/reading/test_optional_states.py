"""Values that are None in some lanes, where tests on them are kept, parts of other things, or out of date."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

X = np.concatenate([np.random.default_rng(0).normal(size=(8, 4)), np.full((1, 4), -1.0), np.full((1, 4), 0.3)])


class P:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def bump(self):
        if self.y is None:
            self.y = self.x
        else:
            self.y += 1.0
        return self.y


def parents(xs):
    ns = [P(x, None) for x in xs]
    k = int(abs(xs[0]) * 10) % 4
    j = int(abs(xs[1]) * 10) % 4
    ns[k].y = ns[j]
    ns[j].x += 10.0
    s = 0.0
    for n in ns:
        s = s * 1.5 + (n.y.x if n.y is not None else -1.0)
    return s


def bump_one(xs):
    ns = [P(x, None) for x in xs]
    k = int(abs(xs[0]) * 10) % 4
    j = int(abs(xs[1]) * 10) % 4
    a = ns[k].bump()
    b = ns[j].bump()
    c = ns[k].bump()
    return a, b, c, [0.0 if n.y is None else n.y for n in ns]


def alias_list(xs):
    items = [xs[0], xs[1]]
    other = None
    if xs[2] > 0:
        other = items
    if other is not None:
        other[0] = 9.0
    return sum(items)


def helper_arg(xs):
    def score(p, t):
        s = 0.0
        while t < 3.0:
            t += 1.0
            s += 1.0 if p is None else p
        return s

    best = None
    if xs[0] > 0:
        best = xs[1]
    return score(best, xs[2]) + score(None, xs[3]) + score(2.0, xs[1])


def rebind(xs):
    cur = None
    out = 0.0
    for i in range(4):
        prev = cur
        cur = xs[i] if xs[i] > 0 else None
        if prev is not None and cur is not None:
            out += prev * cur
        elif prev is None and cur is None:
            out -= 1.0
    return out


def two_flags(xs):
    a = b = None
    for x in xs:
        if x > 0 and a is None:
            a = x
        elif x < 0 and b is None:
            b = x
        if a is not None and b is not None:
            break
    if a is None or b is None:
        return 0.0
    return a - b


def not_of(xs):
    a = None
    if xs[0] > 0:
        a = xs[1]
    found = a is not None
    if not found:
        return -1.0
    return a * 2


def stale(xs):
    a = None
    if xs[0] > 0:
        a = xs[1]
    was = a is None
    a = None
    if xs[2] > 0:
        a = xs[3]
    if not was:
        return 7.0 if a is None else a
    return -1.0


def stale_loop(xs):
    a = None
    s = 0.0
    for i in range(4):
        had = a is not None
        if xs[i] > 0:
            a = xs[i]
        else:
            a = None
        if had:
            s += 10.0 if a is None else a
    return s


def dict_of(xs):
    best = {"a": None, "b": None}
    for k, x in enumerate(xs):
        key = "a" if k % 2 else "b"
        if best[key] is None or x > best[key]:
            best[key] = x
    return best["a"] - best["b"]


def tuple_state(xs):
    st = (None, 0)
    for x in xs:
        last, n = st
        st = (x, n + 1) if last is None or x > last else (last, n)
    return st


def listcomp(xs):
    found = [x if x > 0 else None for x in xs]
    return [0.0 if f is None else f for f in found], sum(f is not None for f in found), any(f is None for f in found)


def bools(xs):
    flag = None
    for x in xs:
        if x > 0.5:
            flag = True
        elif x < -0.5:
            flag = False
    return 2 if flag is None else 1 if flag else 0, flag is True, flag is False, flag


def value_and_place(xs):
    best = place = None
    for k, x in enumerate(xs):
        if x > 0 and (best is None or x < best):
            best, place = x, k
    return best, place


def objects_with_none(xs):
    made = P(xs[0], None)
    if xs[1] > 0:
        made.y = xs[2]
    return [made.x, {"y": made.y}]


PROGRAMS = [
    value_and_place,
    objects_with_none,
    parents,
    bump_one,
    alias_list,
    helper_arg,
    rebind,
    two_flags,
    not_of,
    stale,
    stale_loop,
    dict_of,
    tuple_state,
    listcomp,
    bools,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_answers_are_pythons(program):
    run = pcbatch.autobatch(program).options(form="lockstep", jit=False).run(X)
    for lane, row in enumerate(X):
        try:
            expected = [np.asarray(each) for each in tf.nest.flatten(program(row.copy()))]
        except TypeError:
            assert run.status[lane]
            continue
        if any(each.dtype == object for each in expected):
            assert run.status[lane]
            assert "gives None for this example" in str(run.errors[0])
            continue
        assert not run.status[lane]
        for own, theirs in zip(tf.nest.flatten(run.value), expected, strict=True):
            np.testing.assert_allclose(np.asarray(own)[lane], theirs, rtol=1e-6)
