"""Values that are None in some lanes: Python is the judge, also of the lanes that fail with what Python raises."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(8, 4)), np.full((1, 4), -1.0), np.full((1, 4), 0.3), np.full((1, 4), 0.9)])


class P:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, o):
        return self.x + o.x

    def size(self):
        return abs(self.x)


@dataclass
class D:
    a: float
    b: object = None


def faults_attr(xs):
    best = None
    for x in xs:
        if x > 0.5:
            best = P(x, 1)
    return best.x


def faults_add(xs):
    best = None
    for x in xs:
        if x > 0.5:
            best = x
    return best + 1.0


def faults_cmp(xs):
    best = None
    for x in xs:
        if x > 0.5:
            best = x
    return 1 if best > 0.7 else 0


def faults_call(xs):
    f = None
    if xs[0] > 0:
        f = np.sin
    return f(xs[1])


def faults_iter(xs):
    b = None
    if xs[0] > 0:
        b = [xs[1], xs[2]]
    s = 0.0
    for v in b:
        s += v
    return s + len(b)


def func_or_none(xs):
    f = None
    if xs[0] > 0:
        f = np.sin
    if xs[1] > 0:

        def f(v):
            return v * xs[2]

    return f(xs[1]) if f is not None else -1.0


def eqs(xs):
    a = b = None
    if xs[0] > 0:
        a = xs[1]
    if xs[1] > 0:
        b = xs[1]
    return a == b, a != b, a is None, b is not None


def eq_obj(xs):
    p, q = D(xs[0]), D(xs[1])
    a = p if xs[2] > 0 else None
    b = q if xs[3] > 0 else p if xs[0] > 0 else None
    return a == b, a is b, a is not b, a != b


def lst(xs):
    slots = [None, None, None]
    for k in range(3):
        if xs[k] > 0:
            slots[k] = P(xs[k], k)
    free = sum(1 for s in slots if s is None)
    k = int(abs(xs[3]) * 10) % 3
    s = slots[k]
    return free, -1.0 if s is None else s.x


def dct(xs):
    d = {"a": None, "b": xs[0]}
    if xs[1] > 0:
        d["a"] = xs[1]
    v = d.get("a")
    w = d.get("c")
    return (1.0 if v is None else v), w is None


def tree(xs):
    nodes = [P(x, None) for x in xs]
    root = nodes[0]
    for n in nodes[1:]:
        if n.x > root.x:
            n.y = root
            root = n
    s, depth = 0.0, 0
    while root is not None:
        s += root.x * (depth + 1)
        depth += 1
        root = root.y
    return s, depth


@dataclass
class Node:
    key: float
    left: object = None
    right: object = None


def bst(xs):
    root = None
    for x in xs:
        new = Node(x)
        if root is None:
            root = new
            continue
        at = root
        while True:
            if x < at.key:
                if at.left is None:
                    at.left = new
                    break
                at = at.left
            else:
                if at.right is None:
                    at.right = new
                    break
                at = at.right
    m = root
    while m.left is not None:
        m = m.left
    return m.key, root.key


def first(xs, t):
    for x in xs:
        if x > t:
            return x
    return None


def rec(n, x):
    if n <= 0:
        return None
    if x > 0.6:
        return x
    return rec(n - 1, x + 0.25)


def recurse(xs):
    r = rec(int(abs(xs[0]) * 5), xs[1])
    if r is None:
        return -3.0
    return r


def matching(xs):
    a = None
    if xs[0] > 0:
        a = D(xs[1], xs[2])
    match a:
        case None:
            return -1.0
        case D(a=v) if v > 0:
            return v
        case D(b=w):
            return w


def helpers(xs):
    a, b = first(xs, 0.0), first(xs, 0.8)
    if a is not None and b is not None:
        return a + 10 * b
    if a is None and b is None:
        return -1.0
    return a


def copies(xs):

    a = None
    p = P(xs[0], 1.0)
    if xs[1] > 0:
        a = p
    b = copy.copy(a)
    c = copy.deepcopy(a)
    if b is not None:
        b.x += 5.0
    if c is not None:
        c.x += 7.0
    return p.x, b.x if b else 0.0, c.x if c else 0.0


def copy_of_one(xs):

    ps = [P(x, 1.0) for x in xs]
    q = ps[0] if xs[0] > 0 else ps[1]
    r = copy.copy(q)
    r.x += 5.0
    t = copy.deepcopy(q)
    t.x += 50.0
    return [p.x for p in ps], r.x, t.x


def swap(xs):
    a, b = None, P(xs[0], 1.0)
    for x in xs:
        if x > 0:
            a, b = b, a
        if b is None:
            b = P(x, 3.0)
    return (a.x if a is not None else -9.0), b.x


def nested(xs):
    best = None
    for i in range(4):
        for j in range(i):
            d = abs(xs[i] - xs[j])
            if best is None or d < best[0]:
                best = (d, i, j)
    return best


def reset(xs):
    cur, out = None, 0.0
    for x in xs:
        if x < 0:
            if cur is not None:
                out += cur
            cur = None
        elif cur is None:
            cur = x
        else:
            cur = cur * 2 + x
    return out, cur is None


def arrays(xs):
    b = None
    for k in range(4):
        if xs[k] > 0.2:
            b = xs[:2] + k
        elif b is not None and xs[k] < -0.5:
            b[0] = 100.0
    if b is None:
        return xs[:2] * 0.0
    b[1] += 1.0
    return b


def while_none(xs):
    it = 0
    found = None
    while found is None and it < 4:
        if xs[it] > 0.3:
            found = it
        it += 1
    return -1 if found is None else found, it


def minmax(xs):
    lo = hi = None
    for x in xs:
        lo = x if lo is None else min(lo, x)
        hi = x if hi is None else max(hi, x)
    return hi - lo


def closure(xs):
    best = None

    def see(v):
        nonlocal best
        if best is None or v > best:
            best = v

    for x in xs:
        if x < 0.5:
            see(x)
    return -9.0 if best is None else best


def linked(xs):
    head = None
    for x in xs:
        head = P(x, head)
    n = head
    s = 0.0
    while n is not None:
        s = s * 2 + n.x
        n = n.y
    return s


def best_obj(xs):
    ps = [P(x, k) for k, x in enumerate(xs)]
    best = None
    for p in ps:
        if p.x > 0.0 and (best is None or p.x < best.x):
            best = p
    if best is not None:
        best.x += 100.0
    return [p.x for p in ps], -1 if best is None else best.y


def made_later(xs):
    best = None
    for x in xs:
        if x > 0.5:
            best = P(x, 2.0 * x)
    return best.x + best.y if best else -5.0


def arr(xs):
    best = None
    for k in range(3):
        if xs[k] > 0:
            best = xs * k
    return xs if best is None else best


def through_a_view(xs):
    rows = np.stack([xs, xs])
    row = rows[0] if xs[0] > 0.0 else None
    if row is not None:
        row[1] = 50.0
    return rows.sum()


def _takes_a_row(function):
    code = getattr(function, "__code__", None)
    return code is not None and code.co_varnames[: code.co_argcount] == ("xs",)


PROGRAMS = [
    each for each in [*globals().values()] if getattr(each, "__module__", "") == __name__ and _takes_a_row(each)
]
ALL_FORMS = [best_obj, made_later, bst, linked, recurse, arrays, faults_attr, eq_obj, closure]


def _alone(program, row):
    """What Python gives for one example, or what it raises."""
    try:
        return [np.asarray(each) for each in tf.nest.flatten(program(row.copy()))]
    except (AttributeError, TypeError) as error:
        return error


def _check(program, **options):
    expected = [_alone(program, row) for row in X]
    run = pcbatch.autobatch(program).options(**options).run(X)
    failed = [isinstance(each, Exception) for each in expected]
    assert [bool(each) for each in run.status] == failed
    told = [str(each) for each in run.errors]
    for lane, (own, is_failed) in enumerate(zip(expected, failed, strict=True)):
        if is_failed:
            assert any("NoneType" in text for text in told)
            continue
        for mine, theirs in zip(tf.nest.flatten(run.value), own, strict=True):
            np.testing.assert_allclose(np.asarray(mine)[lane], theirs, rtol=1e-6)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_answers_are_pythons(program):
    _check(program, form="lockstep", jit=False)


@pytest.mark.parametrize("program", ALL_FORMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("options", [{}, {"form": "native"}], ids=str)
def test_answers_are_pythons_in_all_forms(program, options):
    _check(program, **options)


def gives_none(xs):
    best = None
    for x in xs:
        if x > 0.5:
            best = x
    return best


def test_a_lane_that_would_return_none_fails():
    run = pcbatch.autobatch(gives_none).run(X)
    expected = [gives_none(row) for row in X]
    assert [bool(each) for each in run.status] == [each is None for each in expected]
    assert "gives_none gives None for this example" in str(run.errors[0])


def through_a_view_or_none(xs):
    rows = np.stack([xs, xs])
    row = None
    if xs[0] > 0.0:
        row = rows[0]
    if row is not None:
        row[1] = 50.0
    return rows.sum()


def two_numbers(xs):
    a = xs[0] if xs[1] > 0.0 else None
    return a is xs[2]


@pytest.mark.parametrize(("program", "code"), [(through_a_view_or_none, "PCB205"), (two_numbers, "PCB113")])
def test_what_is_refused(program, code):
    with pytest.raises(pcbatch.CompileError, match=code) as caught:
        pcbatch.autobatch(program).check(X)
    assert all(each.span is not None and each.span.file == __file__ for each in caught.value.diagnostics)
