"""Loops that give arrays and objects other names, and copies: a store shows under all names, or is refused."""

# ruff: noqa: B007

from __future__ import annotations

import copy

import numpy as np

from tests.programs.table import COUNTS, NUMBERS, A, B, K, M, Table

program = Table()


class Grid:
    def __init__(self, m):
        self.m = m


class Item:
    def __init__(self, v):
        self.v = v


class Plain:
    pass


def sink(a, i):
    if i < 3:
        a[i], a[1] = (1, 1)
        return 1
    return 1


def rec(a, i):
    if i < 3:
        a[i] = 1
        return rec(a, i + 1)
    return 1


@program(A, B, K)
def lo_name1(a, b, n):
    for i in range(n):
        b = np.asarray(a)
    sink(b, 1)
    return a, b


@program(A, B, K)
def lo_name2(a, b, n):
    for i in range(n):
        b = a
    sink(b, 1)
    return a, b


@program(A, B, K)
def lo_name6(a, b, n):
    for i in range(n):
        b = a
    b[1], a[2] = 1, 1
    return a, b


@program(A, B, K)
def lo_name9(a, b, n):
    def sunk(a, i):
        if i < 3:
            a[1] = 1
            return 1
        return 1

    for i in range(n):
        b = np.asarray(a)
    sunk(b, 1)
    return a, b


@program(A, B, K)
def lo_store1(a, b, k):
    a[0] = 1
    if k > 0:
        b = a
        a[1] = 2
    b[2] = 5
    return a, b


@program(A, B, K)
def lo_store2(a, b, n):
    c = np.ones(4, np.float32)
    for i in range(n):
        c = a * i
        b = c
    b[1] = 9
    return a, b, c


@program(A, B, K)
def lo_store3(a, b, n):
    c = np.ones(4, np.float32)
    c[0] = 2
    for i in range(n):
        c = a * i
        c[1] = 8
        b = c
    b[1] = 9
    return a, b, c


@program(A, B, K)
def lo_store4(a, b, n):
    a[0] = 3
    for i in range(n):
        a[1] += 1
        b = a
    b[1] = 9
    return a, b


@program(A, B, K)
def lo_store5(a, b, n):
    for i in range(n):
        b[1] += 9
        b = a
    return a, b


@program(A, B, K)
def lo_store7(a, b, n):
    cur = a
    prev = b
    for i in range(n):
        prev, cur = cur, prev
    prev[1] = 9
    return a, b, cur, prev


@program(A, B, K)
def lo_store8(a, b, n):
    xs = [b]
    for i in range(n):
        xs[0] = a
    xs[0][1] = 9
    return a, b, xs[0]


@program(A, B, K)
def lo_store9(a, b, n):
    o = Plain()
    o.m = b
    while n > 0:
        o.m = a
        n -= 1
    o.m[1] = 9
    return a, b, o.m


@program(A, B, K)
def lo_store11(a, b, n):
    v = b
    while n > 0:
        n -= 1
        for j in range(n):
            v = a
    v[0] = 9
    return a, b, v


@program(A, B, K)
def lo_store13(a, b, n):
    z = np.zeros(4)
    v = np.ones(4)
    while n > 0:
        v = z
        n -= 1
    v[0] = 9
    return z, v


@program(A, B, K)
def lo_store16(a, b, n):
    t = (b, a)
    while n > 0:
        t = (t[1], t[0])
        n -= 1
    t[0][0] = 9
    return a, b, t[0]


@program(A, B, K)
def lo_store17(a, b, n):
    p, q = b.copy(), b
    while n > 0:
        q = p
        n -= 1
    p[0] = 9
    return p, q


@program(M, B, K)
def lo_store19(m, b, n):
    row = m[0]
    for i in range(n):
        row = m[i]
    row[0] = 9
    return m, row


@program(A, B, K)
def lo_twin5(a, b, n):
    best = a
    for i in range(n):
        b = b + 1
        if b[0] > best[0]:
            best = b
    return b, best


@program(A, B, K)
def lo_twin7(a, b, n):
    cur = a
    nxt = np.zeros(4, np.float32)
    for i in range(n):
        for j in range(4):
            nxt[j] = cur[(j + 1) % 4] + cur[j]
        cur, nxt = nxt, cur
    return cur


@program(A, B, K)
def lo_twin8(a, b, n):
    cur = a
    for i in range(n):
        nxt = np.zeros(4, np.float32)
        for j in range(4):
            nxt[j] = cur[(j + 1) % 4] + cur[j]
        cur = nxt
    return cur


@program(A, B, K)
def lo_twin9(a, b, n):
    cur = a
    for i in range(n):
        nxt = cur.copy()
        for j in range(4):
            nxt[j] += cur[(j + 1) % 4]
        cur = nxt
    cur[0] += 1
    return cur


@program(A, B, K)
def lo_twin11(a, b, n):
    best = a.copy()
    cur = b.copy()
    for i in range(n):
        prop = cur.copy()
        prop[i % 4] += 1
        if prop.sum() > 3:
            cur = prop
        best = cur
    return cur, best


@program(A, B, K)
def lo_twin12(a, b, n):
    cur = a
    nxt = np.zeros(4, np.float32)
    for i in range(n):
        for j in range(4):
            nxt[j] = cur[(j + 1) % 4] + cur[j]
        cur, nxt = nxt, cur
    return cur, a


@program(A, B, K)
def lo_twin14(a, b, n):
    cur = [v for v in a]
    nxt = [0.0] * 4
    for i in range(n):
        for j in range(4):
            nxt[j] = cur[(j + 1) % 4] + cur[j]
        cur, nxt = nxt, cur
    return cur


@program(COUNTS, NUMBERS)
def lo_kept2(n, x):
    items = [Item(x + i) for i in range(n)]
    big = items[1:]
    for item in big:
        item.v = 0.0
    return sum(item.v for item in items), len(big)


@program(COUNTS, NUMBERS)
def lo_kept3(n, x):
    items = [Item(x + i) for i in range(n)]
    big = []
    for item in items:
        if item.v > 2.0:
            big.append(item)
    for item in big:
        item.v = 0.0
    return sum(item.v for item in items), len(big)


@program(COUNTS, NUMBERS)
def lo_kept5(n, x):
    items = []
    for i in range(n):
        items.append(Item(x + i))
    big = [item for item in items]
    if big:
        big[0].v = 0.0
    return sum(item.v for item in items), len(big)


@program(COUNTS, NUMBERS)
def lo_kept6(n, x):
    items = []
    for i in range(n):
        items.append(Item(x + i))
    big = [item for item in items if item.v > 2.0]
    if items:
        items[0].v = 0.0
    return sum(item.v for item in big), len(big)


@program(COUNTS, NUMBERS)
def lo_kept7(n, x):
    items = []
    for i in range(n):
        items.append(Item(x + i))
    big = [(item, 1) for item in items if item.v > 2.0]
    if items:
        items[-1].v = 0.0
    return sum(item.v for item, _ in big), len(big)


@program(COUNTS, NUMBERS)
def lo_kept8(n, x):
    rows = [[i, i] for i in range(n)]
    big = [r for r in rows if r[0] > 2.0]
    if rows:
        rows[-1][0] = 50
    return sum(r[0] for r in big), len(big)


@program(COUNTS, NUMBERS)
def lo_kept11(n, x):
    items = [Item(x), Item(x + 1), Item(x - 1)]
    big = [item for item in items if item.v > 2.0]
    for item in big:
        item.v = 0.0
    return sum(item.v for item in items), len(big)


@program(A)
def lo_copy1(a):
    xs = [a, a]
    ys = copy.deepcopy(xs)
    ys[0][1] = 50.0
    return a, ys[1], ys[0]


@program(A)
def lo_copy4(a):
    xs = {"p": a, "q": (a, a[1:])}
    ys = copy.deepcopy(xs)
    ys["p"][1] = 50.0
    a[0] = 9.0
    ys["q"][1][0] = 70.0
    return a, ys["p"], ys["q"][0], ys["q"][1]


@program(A)
def lo_copy5(a):
    xs = [a, a]
    ys = copy.copy(xs)
    ys[0][1] = 50.0
    zs = copy.copy(a)
    zs[0] = 3.0
    return a, ys[1], zs


@program(A, K)
def lo_copy7(a, n):
    xs = Plain()
    xs.parts = [a, a]
    ys = copy.deepcopy(xs)
    ys.parts[0][n] = 50.0
    return a, ys.parts[1], ys.parts[0]


@program(A)
def lo_known1(a):
    z = np.zeros(4)
    y = z.copy()
    w = copy.copy(z)
    v = copy.deepcopy([z, z])
    y[0] += a[0]
    w[1] += a[1]
    v[0][2] = a[2]
    z[3] = 7.0
    return z, y, w, v[1]
