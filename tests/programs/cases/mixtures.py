"""Views, lists of lanes' lengths, None, generators, failures, closures and recursion, mixed."""

# ruff: noqa: B006, B023, E741, B904, C417

from __future__ import annotations

import collections

import numpy as np

from tests.programs.table import COUNTS, NUMBERS, A, K, N, Table

program = Table()


@program(COUNTS, NUMBERS)
def mx_grown_and_closure(n, x):
    xs = []

    def note(v):
        nonlocal n
        xs.append(v)
        n -= 1
        return len(xs)

    total = 0
    while n > 0:
        total += note(x) * note(x + 1.0)
    return total, n, len(xs), sum(xs)


@program(COUNTS, NUMBERS)
def mx_alias_of_grown(n, x):
    xs = []
    ys = xs
    zs = xs.copy()
    for i in range(n):
        ys.append(x + i)
        if i % 3 == 0:
            zs += [i]
            xs = xs + [x]
    return len(xs), len(ys), len(zs), sum(xs), sum(ys), sum(zs), xs is ys


@program(COUNTS, NUMBERS)
def mx_aug_names(n, x):
    xs = [x]
    ys = xs
    for _ in range(n):
        xs += [1.0]
    xs = xs + [2.0]
    xs += [3.0]
    ys *= 2
    return len(xs), len(ys), sum(xs), sum(ys)


@program(COUNTS)
def mx_index_effects(n):
    xs = [n, 1, 2, 3]
    i = 0
    while len(xs) > 2:
        xs[xs.pop() % 2] += xs[(i := i + 1) % 2] + len(xs)
    return xs[0], xs[1], i


@program(COUNTS)
def mx_pop_order(n):
    xs = []
    for i in range(n + 2):
        xs.append(i)
    return xs.pop() - xs.pop(0) + len(xs), (xs[-1] if xs else -1), len(xs)


@program(COUNTS)
def mx_dict_of_lists(n):
    groups = collections.defaultdict(list)
    for i in range(n):
        groups[i % 3].append(i)
    rows = [sum(groups[k]) for k in groups]
    return len(groups), sum(rows), max([len(g) for g in groups.values()], default=0), sum(groups[1])


@program(COUNTS)
def mx_dict_setdefault(n):
    groups = {}
    for i in range(n):
        groups.setdefault(i % 2, []).append(i)
        groups.setdefault(5, [100])[0] += 1
    total = 0
    for key, value in groups.items():
        total += key * len(value) + value[-1]
    return total, len(groups), 5 in groups


@program(COUNTS)
def mx_shared_rows(n):
    row = [0, 0]
    rows = [row] * 3
    rows[n % 3][1] += n
    row[0] = 7
    rows[1] = [5, 5]
    rows[1][0] += n
    return rows[0][1], rows[2][0], rows[1][0], row[1]


@program(COUNTS)
def mx_grown_rows_apart(n):
    rows = []
    for i in range(n):
        row = [i, i]
        rows.append(row)
        row[0] += 10
    if rows:
        rows[-1][1] = 50
    return sum(r[0] for r in rows), sum(r[1] for r in rows), len(rows)


@program(COUNTS, NUMBERS)
def mx_grown_tuples(n, x):
    pairs = [(x, 0)]
    for i in range(n):
        last, k = pairs[-1]
        pairs.append((last * 0.5, k + i))
    firsts, seconds = zip(*pairs)
    return sum(firsts), max(seconds), len(pairs), pairs[n // 2][1]


@program(COUNTS, A[[0, 1, 2, 0, 1]])
def mx_arrays_in_list(n, a):
    rows = []
    for i in range(n):
        rows.append(a + i)
        a = a * 0.5
    total = 0.0
    for row in rows:
        row[0] = 1.0
        total += row.sum()
    return total, a, len(rows)


@program(COUNTS, A[[0, 1, 2, 0, 1]])
def mx_array_kept_in_list(n, a):
    rows = [a]
    for i in range(n):
        rows.append(a.copy())
        a[i % 4] += 1.0
    return a, rows[0], len(rows), rows[-1]


@program(A, K)
def mx_views_of_known(a, k):
    z = np.zeros(4, np.float32)
    v = z[1:]
    w = v[::-1]
    for i in range(k + 1):
        v[i] += a[i]
        w[0] -= 0.5
        z[1] += 1.0
    return z, v, w


@program(A, K)
def mx_known_on_one_path(a, k):
    z = np.arange(6.0).reshape(2, 3)
    v = z[1]
    t = z.T
    if k > 0:
        t[0, 1] = a[0]
        v += 1.0
    t[2] -= 2.0
    return z, v, t[0]


@program(A, K)
def mx_known_in_helper(a, k):
    z = np.ones(4)

    def put(part, v):
        part[k % len(part)] = v
        return part[1:]

    r = put(z[:3], a[0])
    r[0] += 10.0
    put(z, a[1])
    return z, r


@program(A, K)
def mx_view_by_lane_in_helper(a, k):
    def tail(b, i):
        return b[i : i + 2]

    t = tail(a, k)
    t[0] = 70.0
    a[k + 1] = 80.0
    return a, t


@program(COUNTS, NUMBERS)
def mx_none_chain(n, x):
    best = None
    for i in range(n):
        v = x * (i - 2)
        if best is None or v > best[0]:
            best = (v, i)
    if best is None:
        return -1.0, -1
    return best


@program(COUNTS, NUMBERS)
def mx_none_or(n, x):
    found = x if n > 2 else None
    other = found or 5.0
    third = found is not None and found > 0.5
    return other, third, 1 if found is None else 2


@program(COUNTS, NUMBERS)
def mx_none_default(n, x):
    def at(v, limit=None):
        if limit is None:
            limit = 4.0
        return min(v, limit)

    return at(x), at(x, float(n)), at(x, None if n > 2 else 0.5)


@program(COUNTS, NUMBERS)
def mx_generator_state(n, x):
    seen = []

    def numbers():
        for i in range(n):
            seen.append(i)
            yield x + i

    total = 0.0
    for v in numbers():
        if v > 5.0:
            break
        total += v
    return total, len(seen), sum(numbers()), len(seen)


@program(COUNTS)
def mx_generator_late(n):
    k = 1
    gen = (i * k for i in range(n))
    k = 10
    first = next(gen, -1)
    k = 100
    return first, sum(gen), k


@program(COUNTS)
def mx_generator_zip(n):
    def up(v):
        while v > 0:
            yield v
            v -= 2

    total = 0
    for one, (other, i) in zip(up(n), ((j * 3, j) for j in range(4))):
        total += one * other - i
    return total, list(up(n + 1))[0], max(up(n), default=-7)


@program(COUNTS)
def mx_yield_from(n):
    def tree(v):
        if v > 0:
            yield v
            yield from tree(v // 2)
            yield from tree(v // 3)

    return sum(tree(n)), len(list(tree(n))), max(tree(n), default=0)


@program(COUNTS)
def mx_scopes(n):
    i = 50
    xs = [i for i in range(n)]
    total = sum([(i, j)[1] for i in range(3) for j in range(i, n)])
    ys = [i + (k := x) for x in xs]
    return i, len(xs), total, sum(ys), k if xs else -1


@program(COUNTS)
def mx_lambdas_late(n):
    fs = [lambda: i for i in range(3)]
    gs = [lambda i=i: i + n for i in range(3)]
    for i in range(2):
        n += fs[0]()
    return sum(f() for f in fs), sum(g() for g in gs), i


@program(COUNTS)
def mx_chained(n):
    calls = []

    def at(v):
        calls.append(v)
        return v

    low = at(1) < at(n) <= at(7) < at(n + 1)
    return low, len(calls), sum(calls)


@program(COUNTS)
def mx_bool_effects(n):
    calls = []

    def at(v):
        calls.append(v)
        return v

    got = at(n) and at(n - 3) or at(9)
    other = at(0) or at(n) and not at(1)
    return got, other, len(calls)


@program(COUNTS, NUMBERS)
def mx_recursion_grows(n, x):
    def walk(k, out):
        if k == 0:
            return 0
        out.append(k * x)
        deep = walk(k // 2, out)
        if k % 2:
            out.pop()
        return deep + len(out)

    out = []
    got = walk(n, out)
    return got, len(out), sum(out)


@program(COUNTS)
def mx_recursion_gives(n):
    def parts(k):
        if k < 2:
            return [k]
        left = parts(k // 2)
        right = parts(k - k // 2 - 1)
        left.extend(right)
        left.append(k)
        return left

    xs = parts(n)
    return len(xs), sum(xs), xs[0], xs[-1], sum(i * v for i, v in enumerate(xs))


@program(N, K)
def mx_permutations(xs, k):
    done = []

    def walk(rest, chosen):
        if not rest:
            done.append(chosen)
            return
        for i in range(len(rest)):
            walk(rest[:i] + rest[i + 1 :], chosen + [rest[i]])

    walk([int(v) for v in xs[:3]], [])
    return len(done), done[k][0], sum(c[-1] for c in done)
