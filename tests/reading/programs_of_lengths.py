"""Programs with lists, sets and dicts whose length differs by lane: what `test_lengths` runs, and what is refused."""

# ruff: noqa: B007, B905, C416, RUF005, RUF015

from __future__ import annotations

import bisect
import collections
import copy
import heapq
from dataclasses import dataclass

import numpy as np


@dataclass
class Ag:
    x: int
    y: float = 0.5

    def move(self, d):
        self.x += d
        if self.x > 5:
            self.y += 1


def collect(n, out):
    if n <= 0:
        return
    out.append(n)
    collect(n // 2, out)
    if n % 3 == 0:
        collect(n - 5, out)


def rec(n):
    if n <= 1:
        return [n]
    return rec(n // 2) + [n]


def merge(n):
    if n < 2:
        return [n]
    a = merge(n // 2)
    b = merge(n - n // 2 - 1)
    out = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] < b[j]:
            out.append(a[i])
            i += 1
        else:
            out.append(b[j])
            j += 1
    out.extend(a[i:])
    out.extend(b[j:])
    return out


def collatz(n):
    path = [n]
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        path.append(n)
        if len(path) > 50:
            break
    return len(path), max(path), path[-1], sum(path)


def stack(n):
    todo = [(n, 0)]
    total = 0
    deepest = 0
    while todo:
        m, d = todo.pop()
        total += m
        deepest = max(deepest, d)
        if m > 2:
            todo.append((m // 2, d + 1))
            todo.append((m // 3, d + 1))
    return total, deepest


def queue(n):
    q = collections.deque([n])
    seen = 0
    acc = 0
    while q:
        m = q.popleft()
        seen += 1
        acc = (acc * 3 + m) % 1009
        if m > 3:
            q.append(m - 2)
            q.append(m // 2 - 1)
        if seen > 30:
            break
    return seen, acc, len(q)


def heap(n):
    h = [(n, 0)]
    order = 0
    while h:
        v, d = heapq.heappop(h)
        order = (order * 7 + v + d) % 100003
        if v > 2:
            heapq.heappush(h, (v // 2, d + 1))
            heapq.heappush(h, (v - 2 - v % 3, d + 1))
        if len(h) > 20:
            break
    return order, len(h)


def cond(n):
    xs = []
    for k in range(6):
        if (n >> k) & 1:
            xs.append(k)
    ys = [2 * x for x in xs if x > 1]
    zs = sorted(xs, reverse=True)
    return len(xs), len(ys), sum(ys), zs[0] if zs else -1, 3 in xs, xs.count(2)


def sets(n):
    seen = set()
    x = n
    steps = 0
    while x not in seen and steps < 50:
        seen.add(x)
        x = (x * x + 1) % 17
        steps += 1
    return steps, x, len(seen)


def dicts(n):
    counts = {}
    x = n
    for _ in range(10):
        x = (5 * x + 3) % 8
        counts[x % 4] = counts.get(x % 4, 0) + 1
    best = max(counts, key=lambda k: counts[k])
    return len(counts), counts[best], sum(counts.values())


def crp(n):
    tables = []
    s = n
    for k in range(8):
        s = (s * 13 + 7) % 31
        r = s % (k + 2)
        for t, size in enumerate(tables):
            r -= size
            if r < 0:
                tables[t] += 1
                break
        else:
            tables.append(1)
    return len(tables), max(tables), sum(c * c for c in tables)


def recursion(n):
    chosen = []
    found = []

    def search(i, rest):
        if rest == 0:
            found.append(list(chosen))
            return
        if i == 4 or rest < 0:
            return
        chosen.append(i + 1)
        search(i + 1, rest - i - 1)
        chosen.pop()
        search(i + 1, rest)

    search(0, n % 11)
    first = 1
    for x in found[0] if found else []:
        first *= x
    return len(found), min((len(s) for s in found), default=0), first


def beam(n):
    best = []
    s = n
    for k in range(7):
        s = (s * 13 + 7) % 31
        if s % 3 == 0:
            continue
        best.append((s, -k))
        best.sort()
        best = best[:3]
    if not best:
        return -1, 0, 0
    return best[0][0], best[-1][1], len(best)


def slices(n):
    xs = []
    while n > 0:
        xs.append(n % 3)
        n //= 3
    ys = xs[::-1]
    zs = xs[1:] + ys[:2]
    value = 0
    for d in ys:
        value = value * 3 + d
    xs.reverse()
    return value, len(zs), sum(zs), xs == ys


def inserting(n):
    xs = [5]
    while n > 0:
        xs.insert(n % 3, n)
        if n % 4 == 1:
            del xs[0]
        n //= 2
    t = 0
    for k, x in enumerate(xs):
        t += (k + 1) * x
    xs.remove(xs[0]) if xs else None
    return t, len(xs)


def numpyed(n):
    xs = [0.5]
    while n > 0:
        xs.append(n * 0.25)
        n //= 2
    return np.mean(xs), np.max(xs), sum(xs), np.sum(np.array(xs))


def buckets(n):
    b = [[], [], []]
    x = n
    for _ in range(6):
        x = (5 * x + 3) % 17
        b[x % 3].append(x)
    return len(b[0]), sum(b[1]), sum(len(each) for each in b)


def alias_list(n):
    xs = [0]
    while n > 0:
        xs.append(n)
        n //= 2
    ys = xs
    ys.append(9)
    return len(xs), sum(xs)


def fresh_array(n):
    rows = []
    k = 0
    while n > 0:
        a = np.zeros(2)
        a[0] = k
        a[1] = n
        rows.append(a)
        k += 1
        n //= 2
    t = 0.0
    for r in rows:
        t += r[0] * r[1]
    return t, len(rows)


def viewed(n):
    base = np.arange(6.0).reshape(3, 2)
    rows = []
    k = 0
    while n > 0:
        rows.append(base[k % 3])
        k += 1
        n //= 2
    t = 0.0
    for r in rows:
        t += r[0] + 2 * r[1]
    return t, len(rows)


def objects(n):
    ags = []
    while n > 0:
        ags.append(Ag(n))
        n //= 2
    return sum(a.x for a in ags), sum(a.y for a in ags)


def nested(n):
    groups = []
    while n > 0:
        g = []
        m = n
        while m > 0:
            g.append(m % 3)
            m //= 3
        groups.append(g)
        n //= 2
    return len(groups), sum(len(g) for g in groups), sum(sum(g) for g in groups)


def words(n):
    out = []
    while n > 0:
        out.append("odd" if n % 2 else "even")
        n //= 2
    return sum(1 for w in out if w == "odd"), len(out), out[0] == "odd" if out else False


def mixed_none(n):
    out = [None]
    while n > 0:
        out.append(None)
        n //= 2
    return len(out), out[0] is None


def int_then_float(n):
    out = [0]
    while n > 0:
        out.append(n / 2)
        n //= 2
    return sum(out), max(out)


def appending_loop(n):
    xs = [n]
    for x in xs:
        if x > 1:
            xs.append(x // 2)
    return len(xs), sum(xs)


def pop_empty_guard(n):
    xs = []
    for k in range(4):
        if (n >> k) & 1:
            xs.append(k)
        elif xs:
            xs.pop()
    return len(xs)


def swap(n):
    xs = []
    k = 0
    while n > 0:
        xs.append(n)
        n //= 2
        k += 1
    for i in range(len(xs) // 2):
        xs[i], xs[-1 - i] = xs[-1 - i], xs[i]
    i = 0
    while i < len(xs):
        j = i
        while j > 0 and xs[j - 1] < xs[j]:
            xs[j - 1], xs[j] = xs[j], xs[j - 1]
            j -= 1
        i += 1
    t = 0
    for x in xs:
        t = t * 3 + x
    return t


def helper_returns(n):
    def digits(m):
        out = []
        while m > 0:
            out.append(m % 10)
            m //= 10
        return out

    a = digits(n * 37)
    b = digits(n + 5)
    c = a + b
    return len(c), sum(c), c == b


def recursive_helper(n):
    out = []
    collect(n, out)
    return len(out), sum(out)


def recursive_list(n):
    r = rec(n)
    return len(r), sum(r), r[0]


def merge_sort(n):
    r = merge(n)
    return len(r), sum(r), r[-1]


def zipd(n):
    xs, ys = [], []
    while n > 0:
        xs.append(n)
        ys.append(n * 0.5)
        n //= 2
    return sum(x * y for x, y in zip(xs, ys)), [x for x in reversed(xs)][0] if xs else 0


def comp(n):
    xs = [k * k for k in range(n) if k % 2]
    ys = [x + 1 for x in xs]
    return len(ys), sum(ys), max(ys, default=-1)


def setops(n):
    a, b = set(), set()
    for k in range(5):
        if (n >> k) & 1:
            a.add(k)
        else:
            b.add((k + n) % 4)
    return len(a | b), len(a & b), len(a - b), 2 in a


def tuples_in_set(n):
    seen = {(0, 0)}
    x, y = 0, 0
    for k in range(12):
        d = (n >> (k % 5)) & 3
        x += (d == 0) - (d == 1)
        y += (d == 2) - (d == 3)
        seen.add((x, y))
    return len(seen), (1, 1) in seen


def defaultd(n):
    d = collections.defaultdict(int)
    x = n
    for _ in range(8):
        x = (5 * x + 3) % 16
        d[x % 5] += 1
    return len(d), max(d.values()), sum(k for k in d)


def counter(n):
    xs = []
    x = n
    for _ in range(8):
        x = (5 * x + 3) % 16
        xs.append(x % 3)
    c = collections.Counter(xs)
    return len(c), max(c.values())


def memo(n):
    cache = {}

    def fib(k):
        if k < 2:
            return k
        if k in cache:
            return cache[k]
        r = (fib(k - 1) + fib(k - 2)) % 1009
        cache[k] = r
        return r

    return fib(n)


def bis(n):
    xs = []
    x = n
    for k in range(6):
        x = (5 * x + 3) % 16
        if x % 2:
            bisect.insort(xs, x)
    return xs[0] if xs else -1, bisect.bisect_left(xs, 7)


def ternary(n):
    a, b = [1, 2], [3]
    c = a if n > 5 else b
    c.append(n)
    return len(a), len(b), sum(c)


def loopcarried(n):
    best = []
    for k in range(4):
        cur = []
        m = n + k
        while m > 0:
            cur.append(m % 2)
            m //= 2
        if len(cur) > len(best):
            best = cur
    return len(best), sum(best)


def inplace_after_best(n):
    best = []
    for k in range(4):
        cur = []
        m = n + k
        while m > 0:
            cur.append(m % 2)
            m //= 2
        if len(cur) > len(best):
            best = cur
        best.append(7)
    return len(best), sum(best), len(cur)


def sort_key(n):
    xs = []
    x = n
    for k in range(7):
        x = (5 * x + 3) % 16
        if x != 3:
            xs.append((x % 4, k))
    xs.sort(key=lambda p: (-p[0], p[1]))
    ys = sorted(xs, key=lambda p: p[1], reverse=True)
    return xs[0][0], xs[-1][1], ys[0][1]


def slice_neg(n):
    xs = []
    while n > 0:
        xs.append(n)
        n //= 2
    a = xs[-2:]
    b = xs[:-1]
    c = xs[::2]
    d = xs[3:1:-1]
    return len(a), sum(b), sum(c), len(d), sum(d)


def del_slice(n):
    xs = []
    while n > 0:
        xs.append(n)
        n //= 2
    while xs and xs[0] > 5:
        xs = xs[1:]
    return len(xs)


def np_append(n):
    xs = []
    while n > 0:
        xs.append(n)
        n //= 2
    a = np.array(xs)
    return a.sum(), len(a)


def any_all(n):
    xs = []
    while n > 0:
        xs.append(n % 3)
        n //= 2
    return any(x == 2 for x in xs), all(x for x in xs), not xs


def unpackfirst(n):
    xs = [1, 2]
    while n > 0:
        xs.append(n)
        n //= 2
    first, *rest = xs
    return first, len(rest)


def repeated(n):
    xs = [0, 1] * n
    return len(xs), sum(xs)


def spread_out(n):
    found = []
    for i in range(n):
        found = [*found, i]
    return len(found), sum(found)


def removed(n):
    xs = [1, 2, 3, 2]
    xs.remove(n % 3 + 1)
    return len(xs), xs[0], xs[1]


def keys_by_path(n):
    state = {}
    if n > 3:
        state["a"] = 1
    else:
        state["b"] = n
    return len(state), "a" in state


def places_of_a_lane(n):
    xs = [1, 2, 3]
    del xs[n % 3]
    xs[n % 2] = 9
    return xs[0], xs[1], len(xs), xs.index(9)


def of_a_range(n):
    xs = list(range(n))
    t = tuple(x * 2 for x in xs)
    return len(t), sum(t)


def comprehensions_in_comprehensions(n):
    xs = [k for k in range(n)]
    m = [[i * j for j in range(i)] for i in range(n % 4)]
    return len(xs), sum(len(r) for r in m), sum(sum(r) for r in m)


def cut_off(n):
    xs = [5, 3, 8][: n % 4]
    xs.append(1)
    return len(xs), min(xs)


def alias_inner(n):
    row = [0, 0]
    rows = []
    while n > 0:
        rows.append(row)
        row[0] += 1
        n //= 2
    return sum(r[0] for r in rows), len(rows)


def alias_array(n):
    a = np.zeros(2)
    rows = []
    while n > 0:
        rows.append(a)
        a[0] += 1.0
        n //= 2
    return sum(r[0] for r in rows), len(rows)


def viewed_then_changed(n):
    base = np.arange(6.0).reshape(3, 2)
    rows = []
    k = 0
    while n > 0:
        rows.append(base[k % 3])
        k += 1
        n //= 2
    base[0, 0] = 100.0
    t = 0.0
    for r in rows:
        t += r[0] + 2 * r[1]
    return t, len(rows)


def objects_changed(n):
    ags = []
    while n > 0:
        ags.append(Ag(n))
        n //= 2
    for a in ags:
        a.x += 1
    return sum(a.x for a in ags), len(ags)


def objects_elem_changed(n):
    ags = [Ag(1)]
    while n > 0:
        ags.append(Ag(n))
        n //= 2
    ags[-1].x = 100
    ags[0].y += 1.0
    return sum(a.x for a in ags), sum(a.y for a in ags)


def popped_changed(n):
    ags = [Ag(1)]
    while n > 0:
        ags.append(Ag(n))
        n //= 2
    a = ags.pop()
    a.x += 5
    return a.x, len(ags)


def nested_append(n):
    groups = []
    while n > 0:
        groups.append([n])
        if n % 2:
            groups[-1].append(1)
        n //= 2
    return len(groups), sum(len(g) for g in groups)


def groupd(n):
    d = collections.defaultdict(list)
    x = n
    for k in range(6):
        x = (5 * x + 3) % 16
        d[x % 3].append(k)
    return len(d), max(len(v) for v in d.values())


def made(n):
    out = []
    while n > 0:
        out.append(Ag(n))
        n //= 2
    return out


def agents_move(n):
    ags = made(n)
    for a in ags:
        a.x += 1
        if a.x > 3:
            a.y = 2.0
        a.move(2)
    return sum(a.x for a in ags), sum(a.y for a in ags), len(ags)


def rows_get_longer(n):
    g = []
    while n > 0:
        g.append([n])
        if n % 2:
            g[-1].append(1)
        n //= 2
    return len(g), sum(len(e) for e in g), sum(sum(e) for e in g)


def lists_by_key(n):
    d = collections.defaultdict(list)
    x = n
    for k in range(6):
        x = (5 * x + 3) % 16
        d[x % 3].append(k)
    return len(d), max(len(v) for v in d.values()), sum(d[0]) if 0 in d else -1


def popped_and_changed(n):
    ags = made(n)
    t = 0
    while ags:
        a = ags.pop()
        a.x += 5
        t += a.x
    return t, len(ags)


def pairs_of_agents(n):
    ags = made(n)
    for i in range(len(ags)):
        for j in range(len(ags)):
            if i != j:
                ags[i].x += ags[j].x % 2
    return sum(a.x for a in ags), len(ags)


def counts_in_lists(n):
    d = {}
    for k in range(5):
        w = (n >> k) % 3
        if w not in d:
            d[w] = [0, 0]
        d[w][0] += 1
        d[w][1] += k
    return len(d), sum(v[0] * 10 + v[1] for v in d.values())


def arrays_inside(n):
    arrs = []
    while n > 0:
        arrs.append(np.zeros(2))
        n //= 2
    for a in arrs:
        a[0] += len(arrs)
        a[1:] = 3
    return sum(a.sum() for a in arrs), len(arrs)


def round_and_round(n):
    q = collections.deque(made(n))
    t = 0
    for _ in range(6):
        if not q:
            break
        a = q.popleft()
        a.x -= 3
        t += 1
        if a.x > 0:
            q.append(a)
    return t, len(q), sum(a.x for a in q)


def a_matrix_of_lists(n):
    m = [[0] * 3 for _ in range(n % 4)]
    for i in range(len(m)):
        for j in range(3):
            m[i][j] = i * j + 1
    return sum(sum(r) for r in m), len(m)


def by_index(n):
    ags = made(n)
    k = 0
    while k < len(ags):
        e = ags[k]
        k += 1
        e.x = k
    return sum(a.x * 2 for a in ags), k


@dataclass
class B:
    xs: list
    k: int = 0


def inside_an_object(n):
    b = B([])
    c = b
    while n > 0:
        b.xs.append(n)
        n -= 3
    c.xs.append(5)
    return len(b.xs), sum(c.xs), b.xs is c.xs


def copies(n):
    xs = []
    while n > 0:
        xs.append(n)
        n -= 3
    ys = xs[:]
    zs = copy.copy(xs)
    ws = copy.deepcopy(xs)
    us = list(xs)
    xs.append(1)
    ys.append(2)
    return len(xs), len(ys), len(zs), len(ws), len(us), sum(ys)


def swapped_names(n):
    a = []
    b = []
    for k in range(4):
        if (n >> k) & 1:
            a, b = b, a
        a.append(k)
    return len(a), len(b), sum(a), sum(b)


def in_a_tuple(n):
    t = ([], [])
    for k in range(n):
        t[k % 2].append(k)
    return len(t[0]), sum(t[1])


def in_a_dict(n):
    d = {"a": [], "b": []}
    for k in range(n):
        d["a" if k % 3 == 0 else "b"].append(k)
    return len(d["a"]), sum(d["b"])


def handed_on(n):
    def inner(xs, m):
        if m <= 0:
            return xs
        xs.append(m)
        return inner(xs, m - 2)

    a = []
    b = inner(a, n)
    b.append(1)
    return len(a), len(b), a is b


def lists_of_two(n):
    xs = [[0, 0], [1, 1]]
    while n > 0:
        xs.append([n, n])
        n -= 5
    first = xs[0]
    t = 0
    for a, b in xs:
        t += a * b
    return t, first[1], len(xs)


def or_an_empty_one(n):
    xs = [n, n + 1]
    ys = xs if n > 4 else []
    ys.append(3)
    return len(xs), len(ys)


def longest_run(n):
    best, bl = [], -1
    cur = []
    for k in range(6):
        if (n >> k) & 1:
            cur.append(k)
        else:
            cur = []
        if len(cur) > bl:
            bl = len(cur)
            best = list(cur)
    return bl, len(best), sum(best)


def set_operators(n):
    s = set(range(n % 5))
    s.discard(2)
    s |= {9}
    if n > 4:
        s.add(100)
    return len(s), max(s), sum(sorted(s)), 9 in s


def depth_first(n):
    g = {0: [1, 2], 1: [3], 2: [3], 3: []}
    seen = set()
    order = []

    def visit(v):
        if v in seen:
            return
        seen.add(v)
        for w in g[v]:
            visit(w)
        order.append(v)

    visit(n % 4)
    return len(order), order[0], order[-1], sum(order)


def memo_of_a_lane(n):
    memo = {}

    def ways(k):
        if k <= 1:
            return 1
        if k not in memo:
            memo[k] = ways(k - 1) + ways(k - 2)
        return memo[k]

    return ways(n % 12), len(memo)


G = {"a": ["b", "c"], "b": ["c"], "c": []}


def rows_of_two_lengths(n):
    xs = [[1, 2, 3], [4]]
    return xs[n % 2][n % 2 * 0 + (2 if n % 2 == 0 else 0)]


def a_graph(n):
    g = [[1, 2], [3], [], [0]]
    t = 0
    for w in g[n % 4]:
        t = t * 10 + w
    return t, len(g[n % 4]), sum(g[n % 4]), 3 in g[n % 4], max(g[n % 4], default=-1)


def a_graph_of_words(n):
    at = "a"
    steps = 0
    while G[at]:
        at = G[at][n % len(G[at])]
        n //= 2
        steps += 1
    return steps


def components(n):
    adj = [[] for _ in range(4)]
    for k in range(4):
        if (n >> k) & 1:
            adj[k].append((k + 1) % 4)
            adj[(k + 1) % 4].append(k)
    seen = [False] * 4
    comps = 0
    for s in range(4):
        if seen[s]:
            continue
        comps += 1
        todo = [s]
        seen[s] = True
        while todo:
            v = todo.pop()
            for w in adj[v]:
                if not seen[w]:
                    seen[w] = True
                    todo.append(w)
    return comps, max(len(a) for a in adj)


def two_names(n):
    ags = made(n)
    if not ags:
        return 0, 0
    a = ags[0]
    b = ags[-1]
    a.x += 10
    return b.x, a.x


def in_two_lists(n):
    ags = made(n)
    other = list(ags)
    for a in ags:
        a.x += 1
    return sum(a.x for a in other), len(ags)


def one_row_often(n):
    row = [0]
    rows = []
    while n > 0:
        rows.append(row)
        n //= 2
    if rows:
        rows[0].append(1)
    return sum(len(r) for r in rows), len(row)


def under_its_own_name(n):
    a = Ag(3)
    ags = made(n)
    ags.append(a)
    ags[-1].x = 50
    return a.x, ags[-1].x


def moved_meanwhile(n):
    ags = made(n)
    e = ags[0] if ags else Ag(9)
    ags.insert(0, Ag(1000))
    e.x += 1
    return sum(a.x for a in ags), e.x


def the_one_before(n):
    ags = made(n)
    prev = Ag(-1)
    for a in ags:
        prev.x += 100
        a.x += 1
        prev = a
    return sum(a.x for a in ags), prev.x


def changed_in_recursion(n):
    xs = made(n + 1)

    def bump(k):
        if k <= 0:
            return 0
        xs[0].y += 1
        return bump(k - 1) + 1

    e = xs[0]
    t = bump(n % 3)
    e.x = 5
    return xs[0].x, xs[0].y, e.y, t


def replaced_in_recursion(n):
    xs = made(n + 1)

    def put(k):
        if k <= 0:
            return 0
        xs[0] = Ag(k, 7)
        return put(k - 1) + 1

    e = xs[0]
    t = put(n % 3)
    e.x = 55
    return xs[0].x, xs[0].y, e.x, t


def read_in_recursion(n):
    xs = made(n + 1)

    def walk(k):
        if k >= len(xs):
            return 0
        a = xs[k]
        b = a.x
        r = walk(k + 1)
        return r + b

    return walk(0), len(xs)


def handed_to_a_helper(n):
    xs = made(n + 1)

    def f(a, b):
        a.x += 100
        return a.x + b

    return f(xs[0], xs[0].x), xs[0].x


def subset_sums(n):
    found, chosen = [], []

    def search(i, rest):
        if rest == 0:
            found.append(list(chosen))
            return
        if i == 5 or rest < 0:
            return
        chosen.append(i + 1)
        search(i + 1, rest - i - 1)
        chosen.pop()
        search(i + 1, rest)

    search(0, n)
    return len(found), min((len(each) for each in found), default=0), len(chosen)


QUICK = [
    subset_sums,
    agents_move,
    rows_get_longer,
    lists_by_key,
    counts_in_lists,
    arrays_inside,
    round_and_round,
    copies,
    swapped_names,
    in_a_tuple,
    set_operators,
    depth_first,
    a_graph,
    a_graph_of_words,
    components,
    collatz,
    stack,
    queue,
    heap,
    cond,
    sets,
    dicts,
    crp,
    recursion,
    beam,
    slices,
    inserting,
    numpyed,
    buckets,
    alias_list,
    fresh_array,
    objects,
    nested,
    words,
    int_then_float,
    appending_loop,
    swap,
    recursive_helper,
    recursive_list,
    merge_sort,
    comp,
    setops,
    defaultd,
    counter,
    memo,
    bis,
    ternary,
    inplace_after_best,
    sort_key,
    slice_neg,
    any_all,
    unpackfirst,
    repeated,
    spread_out,
    removed,
    places_of_a_lane,
    comprehensions_in_comprehensions,
]
OTHERS = [
    read_in_recursion,
    handed_to_a_helper,
    popped_and_changed,
    pairs_of_agents,
    a_matrix_of_lists,
    by_index,
    inside_an_object,
    in_a_dict,
    handed_on,
    lists_of_two,
    or_an_empty_one,
    longest_run,
    memo_of_a_lane,
    rows_of_two_lengths,
    objects_changed,
    objects_elem_changed,
    popped_changed,
    nested_append,
    groupd,
    viewed,
    mixed_none,
    pop_empty_guard,
    helper_returns,
    zipd,
    tuples_in_set,
    loopcarried,
    del_slice,
    np_append,
    keys_by_path,
    of_a_range,
    cut_off,
]
REFUSED = [
    changed_in_recursion,
    replaced_in_recursion,
    alias_inner,
    alias_array,
    viewed_then_changed,
    two_names,
    in_two_lists,
    one_row_often,
    under_its_own_name,
    moved_meanwhile,
    the_one_before,
]
"""Programs that change what such a list has by value."""
