"""Views, lists of lanes' lengths, None, generators, failures, closures and recursion, mixed."""

# ruff: noqa: B006, B023, E741, B904, C417

from __future__ import annotations

import collections
import copy
import functools
import heapq
import itertools

import numpy as np

from tests.programs.table import COUNTS, HUNDREDS, NUMBERS, A, K, M, N, Table, X

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


@program(COUNTS)
def mx_none_fails(n):
    best = None
    for i in range(n):
        if i > 1:
            best = i
    return best + 1 if n != 1 else 0


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


@program(COUNTS)
def mx_heap(n):
    heap = [(5, 0), (3, 1)]
    for i in range(n):
        cost, j = heapq.heappop(heap)
        heapq.heappush(heap, (cost + i % 4 + 1, j))
        if i % 2:
            heapq.heappush(heap, (i, i))
    return heap[0][0], len(heap), sum(j for _, j in heap)


@program(COUNTS)
def mx_deque(n):
    line = collections.deque([1, 2], maxlen=4)
    for i in range(n):
        line.append(line.popleft() + i) if i % 3 else line.appendleft(i)
    line.rotate(1)
    return len(line), sum(line), line[0], line[-1]


@program(COUNTS)
def mx_set(n):
    seen = {n}
    while n > 0:
        n = n // 2 if n % 2 == 0 else n - 3
        if n in seen:
            break
        seen.add(n)
        seen.discard(4)
    return len(seen), sum(seen), max(seen), seen == {0}


@program(COUNTS)
def mx_counter(n):
    counts = collections.Counter()
    for i in range(n):
        counts[i * i % 5] += i
    return counts[1], counts[3], len(counts), sum(counts.values()), max(counts, key=counts.get, default=-1)


@program(COUNTS, NUMBERS)
def mx_two_loops_share(n, x):
    xs, ys = [], []
    for i in range(n):
        target = xs if i % 2 else ys
        target.append(x + i)
    while len(xs) > 1:
        ys.append(xs.pop(0) - xs[-1])
    xs, ys = ys, xs
    return len(xs), len(ys), sum(xs), sum(ys)


@program(COUNTS)
def mx_delete_while_iterating(n):
    xs = list(range(n))
    seen = 0
    for v in xs:
        seen += v
        if v % 2 == 0:
            xs.remove(v)
    return seen, len(xs), sum(xs)


@program(COUNTS)
def mx_append_while_iterating(n):
    xs = [n]
    for v in xs:
        if v > 1:
            xs.append(v // 2)
        if v > 5:
            xs.append(v - 4)
    return len(xs), sum(xs)


@program(COUNTS)
def mx_for_target_is_place(n):
    xs = [0, 0, 0]
    i = 5
    for i, xs[i % 3] in enumerate(range(n), 1):
        xs[0] += i
    return xs[0], xs[1], xs[2], i


@program(COUNTS, NUMBERS)
def mx_else_of_loops(n, x):
    total = 0.0
    for i in range(n):
        for j in range(i):
            if j * x > 4.0:
                break
            total += x
        else:
            total += 100.0
            continue
        total -= 1.0
        if total > 300.0:
            break
    else:
        total += 0.5
    return total


@program(COUNTS)
def mx_assert_in_comprehension(n):
    def positive(v):
        assert v > -3, v
        return v

    return sum([positive(4 - i) for i in range(n)])


@program(COUNTS)
def mx_raise_after_change(n):
    xs = [n]
    xs.append(n)
    if n == 3:
        raise ValueError(f"three: {n}")
    if n > 6:
        xs[n - 7] = 9
    return xs[0], xs[1]


@program(COUNTS)
def mx_reduce(n):
    xs = [i + 1 for i in range(n)]
    got = functools.reduce(lambda a, b: a * 2 + b, xs, 0)
    return got, sum(map(lambda v: v * v, filter(lambda v: v % 2, xs)))


@program(COUNTS)
def mx_sort_is_stable(n):
    xs = [(i * 3 % 4, i) for i in range(n)]
    xs.sort(key=lambda p: p[0])
    ys = sorted(xs, key=lambda p: p[0], reverse=True)
    return sum(i * p[1] for i, p in enumerate(xs)), sum(i * p[1] for i, p in enumerate(ys))


@program(COUNTS)
def mx_slices(n):
    xs = list(range(n))
    ys = xs[::2]
    xs[1:3] = [50]
    zs = xs[-3:-1]
    del xs[:1]
    return len(xs), sum(xs), len(ys), sum(ys), sum(zs), len(zs)


@program(COUNTS)
def mx_negative_and_bounds(n):
    xs = list(range(n))
    return xs[-2] if n > 2 else -1, xs[2] if n != 1 else 0


@program(COUNTS, NUMBERS)
def mx_unpack_star(n, x):
    xs = [x] * n
    first, *rest = [n, *xs, 1.0]
    *head, last = rest
    return first, len(rest), len(head), last, sum(head)


@program(COUNTS)
def mx_compare_lists(n):
    xs = [n]
    ys = [7]
    while len(xs) < n and len(xs) < 4:
        xs.append(len(xs))
    return xs == ys, xs < ys, xs >= [3, 1], xs != [3, 1, 2], max(xs, ys)[0]


@program(COUNTS, NUMBERS)
def mx_args_are_shared(n, x):
    def change(xs, ys):
        xs.append(1.0)
        return len(ys)

    xs = [x] * 2
    for _ in range(n):
        xs.append(x)
    one = change(xs, xs)
    other = change(xs, list(xs))
    return one, other, len(xs)


@program(COUNTS, NUMBERS)
def mx_ternary_lists(n, x):
    xs, ys = [x], [x, x]
    zs = xs if n > 2 else ys
    total = sum(zs)
    us = (xs if n > 5 else ys) + [1.0]
    return total, len(zs), len(us), sum(us)


@program(A, K)
def mx_dict_of_views(a, k):
    parts = {"low": a[:2], "high": a[2:]}
    parts["low" if k > 0 else "high"][0] = 90.0
    parts["low"][1] += 1.0
    return a


@program(M, K)
def mx_matrix_rows_list(m, k):
    rows = [m[0], m[1], m[2]]
    rows[k][0] = -5.0
    rows[0], rows[1] = rows[1], rows[0]
    rows[0][2] = 44.0
    m[1, 1] = 33.0
    return m, rows[0][1]


@program(M)
def mx_iterate_rows(m):
    for row, column in zip(m, m.T):
        row[0] += column[1]
        column[2] = row.sum()
    return m


@program(A, X)
def mx_inplace_of_views(a, x):
    b = a[1:3]
    b += x
    b = b + 1.0
    b *= 2.0
    c = a
    c[...] = c[::-1]
    return a, b


@program(HUNDREDS, K)
def mx_int_wraps_and_negatives(h, k):
    return -h // 7, -h % 7, h >> k, (h << k) ^ h, divmod(-h, 7), ~h & 15, pow(k, 3), int(-h / 7)


@program(COUNTS)
def mx_itertools(n):
    total = 0
    for a, b in itertools.pairwise(range(4)):
        total += a * b + n
    for i, (p, q) in enumerate(itertools.product(range(2), repeat=2)):
        total += i * (p - q)
    return total, sum(itertools.accumulate([n, 2, 3]))


@program(COUNTS)
def mx_copies(n):
    xs = [[n], [n + 1]]
    shallow, deep = copy.copy(xs), copy.deepcopy(xs)
    xs[0].append(5)
    xs.append([9])
    deep[1].append(n)
    return len(xs), len(shallow), len(shallow[0]), len(deep[0]), sum(deep[1])
