"""Generator functions that a batched function goes over: Python is the judge."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

X = np.concatenate([np.random.default_rng(0).normal(size=(6, 4)), np.full((1, 4), -1.0), np.full((1, 4), 0.3)])


class P:
    def __init__(self, x, y):
        self.x, self.y = x, y


class Bag:
    def __init__(self, xs):
        self.xs = xs

    def __iter__(self):
        yield from self.xs

    def big(self, t):
        for x in self.xs:
            if x > t:
                yield x


def halves(n):
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        yield n


def count(start, step=1.0):
    while True:
        yield start
        start += step


def pairs(xs):
    for i in range(len(xs)):
        for j in range(i):
            yield i, j, xs[i] * xs[j]


def left_and_again(xs):
    def inner(k):
        while k > 0:
            yield k
            k = k // 2

    def outer(k):
        yield from inner(k)
        yield 7

    total = 0.0
    for k in outer(int(abs(xs[0]) * 20)):
        total += k
        if total > 20.0:
            break
    return total, max(outer(int(abs(xs[0]) * 20)))


def interleaved(xs):
    b = xs.copy()
    total = 0.0
    for v in (b[k] for k in range(4)):
        b[3] += v
        total += v
    return total


def kept_by_lane(xs):
    total = 0.0
    for place, x in enumerate(x for x in xs if x > 0.2):
        total += place * x
    for k in (k * 2 for k in range(int(abs(xs[0]) * 5)) if k % 2 == 1):
        total += k
        if total > 6.0:
            break
    return total


def brk(xs):
    s, k = 0.0, 0
    for v in count(xs[0]):
        if v > 3.0:
            break
        if k % 2 == 1:
            k += 1
            continue
        k += 1
        s += v
    else:
        s = -1.0
    return s, k


def ret(xs):
    for i, j, p in pairs(xs):
        if p < 0:
            return i * 10 + j
    return -1


def lst(xs):
    found = [p for _, _, p in pairs(xs)]
    return sum(found), len(list(pairs(xs))), max(p for _, _, p in pairs(xs)), sorted(p for i, j, p in pairs(xs))[0]


def folds(xs):
    return (
        sum(halves(int(abs(xs[0]) * 20) + 1)),
        max(halves(int(abs(xs[1]) * 20) + 2)),
        any(v == 10 for v in halves(int(abs(xs[2]) * 20) + 2)),
        all(v < 30 for v in halves(27)),
    )


def enum(xs):
    s = 0.0
    for k, v in enumerate(halves(int(abs(xs[0]) * 20) + 1), 1):
        s += k * v
    for k, (_i, _j, p) in enumerate(pairs(xs)):
        s += k * p
    return s


def zipped(xs):
    s = 0.0
    for v, x in zip(halves(int(abs(xs[0]) * 20) + 1), xs, strict=False):
        s = s * 0.5 + v * x
    for x, v in zip(xs, count(2.0), strict=False):
        s += x * v
    return s


def mapped(xs):
    s = 0.0
    for v in (q * 2 for q in halves(int(abs(xs[0]) * 20) + 1)):
        s += v
    for v in filter(lambda q: q % 2 == 0, halves(int(abs(xs[1]) * 20) + 1)):
        s += v
    return s


def yfrom(xs):
    def both(a, b):
        yield from a
        yield 0.5
        yield from b

    s = 0.0
    for v in both(xs[:2], halves(int(abs(xs[0]) * 20) + 1)):
        s = s * 0.9 + v
    return s


def tree(xs):
    P(xs[0], None)

    def walk(node, d):
        if d > 2:
            return
        yield node * d
        yield from walk(node + 1, d + 1)
        yield from walk(node - 1, d + 1)

    s = 0.0
    for v in walk(xs[1], 0):
        s = s * 1.1 + v
    return s, len(list(walk(xs[1], 0)))


def closures(xs):
    total = 0.0

    def emit():
        nonlocal total
        for x in xs:
            total += 1.0
            yield x + total

    s = 0.0
    for v in emit():
        total += 10.0
        s += v
    return s, total


def mutate(xs):
    items = [xs[0], xs[1]]

    def go():
        for k in range(len(items)):
            items[k] += 1.0
            yield items[k]

    s = 0.0
    for v in go():
        items[1] += 100.0
        s += v
    return s, items


def unpack(xs):
    def three():
        yield xs[0]
        yield xs[1]
        if True:
            yield xs[2]

    a, b, c = three()
    return a + 2 * b + 3 * c, tuple(three()), [*three()], max(*three())


def obj_loop(xs):
    s = 0.0
    for x in Bag(xs):
        if x < 0:
            continue
        s += x
    for x in Bag(xs).big(0.3):
        s += 10 * x
    return s


def nested_gens(xs):
    def evens(it):
        for v in it:
            if v % 2 == 0:
                yield v

    def plus(it, c):
        for v in it:
            yield v + c

    return sum(plus(evens(halves(int(abs(xs[0]) * 20) + 1)), 0.5))


def twice(xs):
    s = 0.0
    for r in range(3):
        for v in halves(r + int(abs(xs[0]) * 5)):
            s += v + r
    return s


def genexp(xs):
    return sum(v * 2 for v in halves(int(abs(xs[0]) * 20) + 1) if v % 2 == 1)


def objs(xs):
    ps = [P(x, k) for k, x in enumerate(xs)]

    def positive():
        for p in ps:
            if p.x > 0:
                yield p

    s = 0.0
    for p in positive():
        p.y += 5
        s += p.y
    best = None
    for p in positive():
        if best is None or p.x > best.x:
            best = p
    return s, -1.0 if best is None else best.y, [p.y for p in ps]


def none_items(xs):
    def maybe():
        for x in xs:
            yield x if x > 0 else None

    s = 0.0
    for v in maybe():
        s += 0.5 if v is None else v
    return s


def while_in_body(xs):
    s = 0.0
    for v in halves(int(abs(xs[0]) * 10) + 3):
        w = v
        while w > 3:
            w = w // 2
            if w == 5:
                break
        s += w
    return s


def nexts(xs):
    a = next((x for x in xs if x > 0.5), None)
    b = next((k for k, x in enumerate(xs) if x > 0.2), -1)
    c = next(halves(9)) * xs[0]
    d = next(iter_big(xs), -3.0)
    return (-1.0 if a is None else a), b, c, d


def iter_big(xs):
    for x in xs:
        if x > 0.4:
            yield x


def next_fault(xs):
    return next(x for x in xs if x > 0.7)


def comp(xs):
    found = [v + k for k, v in enumerate(halves(9))]
    return found, dict(enumerate(halves(3)))


def deep(xs):
    def outer():
        for x in xs:

            def inner(y=x):
                yield y
                yield y * 2

            yield from inner()
            yield from inner(x + 1)

    s = 0.0
    for v in outer():
        s = 0.7 * s + v
    return s


def _takes_a_row(function):
    code = getattr(function, "__code__", None)
    return code is not None and code.co_varnames[: code.co_argcount] == ("xs",) and not code.co_flags & 0x20


PROGRAMS = [
    each for each in [*globals().values()] if getattr(each, "__module__", "") == __name__ and _takes_a_row(each)
]
ALL_FORMS = [left_and_again, brk, zipped, closures, objs, nexts, deep]


def _alone(program, row):
    """What Python gives for one example; None if it raises."""
    try:
        return [np.asarray(each) for each in tf.nest.flatten(program(row.copy()))]
    except StopIteration:
        return None


def _check(program, **options):
    expected = [_alone(program, row) for row in X]
    run = pcbatch.autobatch(program).options(**options).run(X)
    assert [bool(each) for each in run.status] == [each is None for each in expected]
    for lane, own in enumerate(expected):
        for mine, theirs in zip(tf.nest.flatten(run.value), own or [], strict=own is not None):
            np.testing.assert_allclose(np.asarray(mine)[lane], theirs, rtol=1e-6)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_answers_are_pythons(program):
    _check(program, form="lockstep", jit=False)


@pytest.mark.parametrize("program", ALL_FORMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("options", [{}, {"form": "native"}], ids=str)
def test_answers_are_pythons_in_all_forms(program, options):
    _check(program, **options)


def double_use(xs):
    g = halves(9)
    return sum(g) + sum(g)


def interplay(xs):
    items = [1.0, 2.0, 3.0]

    def go():
        yield from items

    out = []
    for a, b in zip(go(), go(), strict=False):
        out.append(a + b)
    return sum(out) * xs[0]


def rec_lane(xs):
    def go(n):
        if n > 0:
            yield n
            yield from go(n - 1)

    return sum(go(int(abs(xs[0]) * 5)))


def bad_interleave(xs):
    b = xs.copy()

    def go():
        for k in range(4):
            yield b[k]

    def put(v):
        b[3] += v
        return v

    return [put(v) for v in go()]


def stop_value(xs):
    def go():
        yield xs[0]
        return 3.0

    def outer():
        r = yield from go()
        yield r

    return sum(outer())


def cond_gen(xs):
    g = halves(5) if xs[0] > 0 else halves(9)
    return sum(g)


REFUSED = [
    (double_use, "PCB119"),
    (interplay, "PCB105"),
    (rec_lane, "PCB312"),
    (bad_interleave, "PCB105"),
    (stop_value, "PCB105"),
    (cond_gen, "PCB301"),
]


@pytest.mark.parametrize(("program", "code"), REFUSED)
def test_what_is_refused(program, code):
    with pytest.raises(pcbatch.CompileError, match=code) as caught:
        pcbatch.autobatch(program).check(X)
    assert all(each.span is not None and each.span.file == __file__ for each in caught.value.diagnostics)
