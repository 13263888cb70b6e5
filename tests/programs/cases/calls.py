"""Calls that recurse and leave arrays in objects of their caller; generators, loops over arrays, names that change."""

# ruff: noqa: B007

from __future__ import annotations

from tests.programs.table import COUNTS, NUMBERS, A, B, K, M, Table

program = Table()


class Item:
    def __init__(self, v):
        self.v = v
        self.m = None


def find(items, k):
    if k >= len(items) - 1 or items[k].v > 2:
        return items[k]
    return find(items, k + 1)


def put(o, a, n):
    if n > 0:
        put(o, a, n - 1)
        o.m = a


def swap(p, q, n):
    if n > 0:
        p.m, q.m = q.m, p.m
        swap(p, q, n - 1)


def renewed(o, n):
    if n > 0:
        o.m = o.m * 2.0
        renewed(o, n - 1)


def counted(o, n):
    if n > 0:
        o.v += 1.0
        counted(o, n - 1)


@program(A, B, K)
def ca_renewed(a, b, n):
    o = Item(1.0)
    o.m = a + b
    renewed(o, n)
    o.m[0] += 1.0
    return o.m, a


@program(A, B, K)
def ca_renewed_or_not(a, b, n):
    o = Item(1.0)
    o.m = a
    renewed(o, n)
    o.m[0] += 1.0
    return o.m, a


@program(A, B, K)
def ca_counted(a, b, n):
    o = Item(1.0)
    o.m = a
    counted(o, n)
    o.m[0] += 1.0
    return o.m, o.v, a


@program(A, K)
def ca_given_and_left(a, n):
    def fresh(o, n):
        if n > 0:
            return fresh(o, n - 1)
        o.m = o.m + 1.0
        return o.m

    o = Item(1.0)
    o.m = a
    m = fresh(o, n)
    m[0] = 50.0
    return o.m, m


@program(COUNTS, NUMBERS)
def ca_found(n, x):
    items = [Item(x + i) for i in range(n)]
    if n > 1:
        p = find(items, 0)
        p.v = 50.0
    return sum(i.v for i in items)


@program(A, B, K)
def ca_left(a, b, n):
    o = Item(1.0)
    o.m = b
    put(o, a, n)
    o.m[0] = 70
    return a, b, o.m


@program(A, B, K)
def ca_exchanged(a, b, n):
    p, q = Item(1.0), Item(2.0)
    p.m, q.m = a, b
    swap(p, q, n)
    p.m[0] = 70
    return a, b, q.m


@program(A, B, K)
def ca_left_and_stored(a, b, n):
    o = Item(1.0)
    o.m = b
    put(o, a, n)
    a[0] = 70
    return a, b, o.m


@program(A, B, K)
def ca_kept(a, b, n):
    rows = [b]
    i = 0
    while i < n:
        rows.append(a)
        i += 1
    rows[-1][0] = 7
    return a, b, sum(r[0] for r in rows)


@program(A, B, K)
def ca_none_or_array(a, b, n):
    w = None
    for i in range(n):
        w = a
    if w is not None:
        w[0] = 7
    return a


@program(A, B, K)
def ca_none_or_view(a, b, n):
    w = None
    while n > 0:
        n -= 1
        w = a[1:]
    a[1] = 7
    return a, 0.0 if w is None else w[0]


@program(A, B, K)
def ca_objects_exchanged(a, b, n):
    o, p = Item(1.0), Item(2.0)
    for i in range(n):
        o, p = p, o
        if i == 1:
            o = p
    o.v += 5
    return o.v, p.v


@program(A, B, K)
def ca_lists_exchanged(a, b, n):
    xs = [1.0, 2.0]
    ys = xs
    for i in range(n):
        xs = [3.0, 4.0]
        if i == 1:
            ys = xs
    xs[0] += 5
    return xs, ys


@program(A, B, K)
def ca_views_of_generator(a, b, n):
    def gen(a):
        for i in range(3):
            a[i] += 1
            yield a[i:]

    t = 0.0
    last = b
    for v in gen(a):
        t += v[0]
        last = v
    last[0] = 9
    return a, t


@program(A, B, K)
def ca_arrays_in_turn(a, b, n):
    t = 0.0
    last = b
    for v in (a, b, a):
        if t > n:
            break
        t += v[0]
        last = v
    last[0] = 9
    return a, b, t


@program(M, A, K)
def ca_rows_in_turn(m, a, k):
    last = m[0]
    for row in m:
        if row[0] > 20:
            continue
        last = row
        last[1] += 1
    last[0] = 9
    return m


@program(M, A, K)
def ca_rows_in_list(m, a, k):
    rows = [r for r in m]
    rows[0][0] = 5
    m[1] = 3
    return m, rows[1]
