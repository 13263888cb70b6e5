"""Heaps, sets, slices and lists that change while they are gone over, with views and dicts of views."""

# ruff: noqa: B006, B023, E741, B904, C417

from __future__ import annotations

import collections
import copy
import functools
import heapq
import itertools

from tests.programs.table import COUNTS, HUNDREDS, NUMBERS, A, K, M, Table, X

program = Table()


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


@program(COUNTS)
def un_memo(n):
    memo = {}

    def fib(k):
        if k < 2:
            return k
        if k not in memo:
            memo[k] = fib(k - 1) + fib(k - 2)
        return memo[k]

    return fib(n), len(memo)


@program(COUNTS)
def un_rotated(n):
    xs = list(range(n))
    for _ in range(n // 2):
        xs = xs[1:] + xs[:1]
    return sum(i * v for i, v in enumerate(xs)), xs[0] if xs else -1


@program(COUNTS)
def un_delete(n):
    xs = list(range(n))
    while len(xs) > 2:
        del xs[len(xs) // 2]
    if xs:
        del xs[0]
    return len(xs), sum(xs)


@program(COUNTS)
def un_rebound_in_loop(n):
    xs, ys = [], [100]
    for i in range(n):
        if i == 3:
            xs = ys
        xs.append(i)
    return len(xs), len(ys), sum(xs), sum(ys)
