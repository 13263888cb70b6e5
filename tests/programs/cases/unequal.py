"""Lists, sets and dicts of lanes' lengths at their edges: equality, order of evaluation, names, failures."""

# ruff: noqa: B006, B023, E711, E741, RUF005, SIM108, B905

from __future__ import annotations

import bisect
import collections
import copy
import heapq

from tests.programs.table import COUNTS, NUMBERS, A, Table

program = Table()


def grow(n):
    xs = [n]
    while len(xs) < n and len(xs) < 4:
        xs.append(len(xs))
    return xs


class Item:
    def __init__(self, v):
        self.v = v
        self.seen = []

    def note(self, w):
        self.seen.append(w)
        self.v += w
        return self


@program(COUNTS)
def un_equal_tuple(n):
    xs = grow(n)
    return xs == (7, 1, 2, 3), xs == [7, 1, 2, 3]


@program(COUNTS)
def un_equal_none(n):
    xs = grow(n)
    return xs == [7, 1, 2, 3], xs == None, xs != 3, [0] == xs, xs == grow(n // 2), tuple(xs) != "a"


@program(COUNTS)
def un_equal_number(n):
    xs = grow(n)
    return xs == 0, xs != n, [xs == ys for ys in ([0], [1], [3, 1, 2])], xs in ([0], [1])


@program(COUNTS)
def un_list_in_list(n):
    rows = []
    for i in range(n):
        rows.append([i, i + 1])
    return [2, 3] in rows, rows.count([1, 2]), [1] in rows


@program(COUNTS)
def un_extend_self(n):
    xs = grow(n)
    xs.extend(xs)
    xs += xs[:1]
    xs = xs * 2
    return len(xs), sum(xs), xs[-1]


@program(COUNTS)
def un_chained_assignment(n):
    xs = ys = []
    for i in range(n):
        xs.append(i)
    ys = ys + [5]
    return len(xs), len(ys), xs is ys


@program(COUNTS)
def un_index_changes(n):
    xs = grow(n) + [9, 8, 7]
    i = 0
    i, xs[i] = 2, 50
    xs[i], i = 60, 1
    xs[i - 1] += i
    return xs[0], xs[1], xs[2], i


@program(COUNTS)
def un_or_default(n):
    xs = []
    if n > 2:
        xs.append(n)
    ys = xs or [4, 5]
    ys.append(1)
    return len(xs), len(ys), sum(ys)


@program(COUNTS)
def un_unpack_fails(n):
    xs = list(range(n))
    if n < 4:
        p, q, r = xs
        return p + q + r
    first, *_, last = xs
    return first + last


@program(COUNTS)
def un_remove_fails(n):
    xs = grow(n)
    xs.remove(3)
    return sum(xs)


@program(COUNTS)
def un_index_fails(n):
    return grow(n).index(2) + 1


@program(COUNTS)
def un_pop_fails(n):
    xs = grow(n)
    xs.pop()
    xs.pop()
    return len(xs)


@program(COUNTS)
def un_dict_key_fails(n):
    d = {}
    for i in range(n):
        d[i * 2] = i
    del d[0]
    return d[2] + len(d)


@program(COUNTS)
def un_dict_order(n):
    d = {}
    for i in range(n):
        d[i % 4] = i
    last = d.pop(1, -1)
    d[1] = 100
    total = 0
    for place, key in enumerate(d):
        total += place * key
    return total, last, len(d), list(d.values())[-1]


@program(COUNTS)
def un_dict_update(n):
    d = {k: k * k for k in range(n) if k % 3}
    e = {1: 50, 2: n}
    d.update(e)
    f = {**d, 7: 1}
    f[2] += 1
    return sum(d.values()), sum(f.values()), len(d), d.get(9, -2), (1 in d), max(d, key=lambda k: d[k])


@program(COUNTS)
def un_set_algebra(n):
    s = set()
    for i in range(n):
        s.add(i * i % 7)
    t = {1, 2, 4}
    return len(s | t), len(s & t), len(s - t), len(t - s), s <= t, sum(s ^ t)


@program(COUNTS)
def un_tuple_keys(n):
    seen = set()
    d = {}
    x = y = 0
    for i in range(n):
        x, y = (x + 1, y) if i % 2 else (x, y - 1)
        if i == 4:
            x = y = 0
        if (x, y) in seen:
            d[x, y] = d.get((x, y), 0) + i
        seen.add((x, y))
    return len(seen), len(d), sum(d.values())


@program(COUNTS)
def un_nested_lists(n):
    rows = [[]]
    for i in range(n):
        rows[-1].append(i)
        if i % 3 == 2:
            rows.append([])
    rows[0].append(70)
    last = rows[-1]
    return len(rows), len(last), sum(len(row) for row in rows), rows[0][-1], sum(rows[0])


@program(COUNTS)
def un_lists_from_comprehension(n):
    rows = [[i] * 2 for i in range(n)]
    for row in rows:
        row[0] += 5
    if rows:
        rows[-1][1] = 9
    return sum(row[0] for row in rows), sum(row[1] for row in rows)


@program(COUNTS, NUMBERS)
def un_objects(n, x):
    items = []
    for i in range(n):
        items.append(Item(x + i))
    for item in items:
        item.v *= 2.0
    if items:
        items[0].note(1.0).note(2.0)
        items[-1].v += 0.5
    best = max(items, key=lambda item: item.v, default=None)
    return sum(item.v for item in items), sum(len(item.seen) for item in items), -1.0 if best is None else best.v


@program(COUNTS, NUMBERS)
def un_object_in_two_places(n, x):
    item = Item(x)
    items = [item]
    for i in range(n):
        items.append(Item(1.0))
    items[0].v = 7.0
    return item.v, items[0].v, len(items)


@program(COUNTS, NUMBERS)
def un_object_twice(n, x):
    items = []
    for i in range(n):
        item = Item(x)
        items.append(item)
        items.append(item)
    if items:
        items[0].v = 50.0
    return sum(item.v for item in items)


@program(COUNTS, NUMBERS)
def un_moved_between(n, x):
    here, there = [], []
    for i in range(n):
        here.append(Item(x + i))
    while here:
        item = here.pop()
        item.v += len(here)
        there.append(item)
    return sum(item.v * (i + 1) for i, item in enumerate(there)), len(here)


@program(COUNTS, NUMBERS)
def un_filtered_objects(n, x):
    items = [Item(x + i) for i in range(n)]
    big = [item for item in items if item.v > 2.0]
    for item in big:
        item.v = 0.0
    return sum(item.v for item in items), len(big)


@program(COUNTS, NUMBERS)
def un_sorted_objects(n, x):
    items = [Item(x * (i - 1)) for i in range(n)]
    ranked = sorted(items, key=lambda item: item.v)
    if ranked:
        ranked[0].v = 100.0
    return sum(item.v for item in items), sum(item.v for item in ranked)


@program(COUNTS)
def un_reversed_and_zip(n):
    xs, ys = list(range(n)), list(range(0, 2 * n, 3))
    total = 0
    for i, (p, q) in enumerate(zip(xs, reversed(ys))):
        total += i * p - q
    return total, sum(p * q for p, q in zip(xs, xs[1:])), len(list(zip(xs, ys)))


@program(COUNTS)
def un_star_call(n):
    def total(first=0, *rest):
        return first + 2 * sum(rest)

    return total(*grow(n))


@program(COUNTS)
def un_sum_of_lists(n):
    rows = [[i, i] for i in range(n)]
    flat = [v for row in rows for v in row]
    return len(flat), sum(flat), len(sum(rows, []))


@program(COUNTS)
def un_any_stops(n):
    seen = []

    def note(v):
        seen.append(v)
        return v > 2

    found = any(note(v) for v in range(n))
    every = all(note(v) for v in grow(n))
    return found, every, len(seen), sum(seen)


@program(COUNTS)
def un_copy_of_nested(n):
    rows = [[i] for i in range(n)]
    shallow, deep = copy.copy(rows), copy.deepcopy(rows)
    deep.append([1])
    if deep:
        deep[0].append(5)
    shallow.append([3, 3])
    return len(rows), len(shallow), sum(len(row) for row in rows), sum(len(row) for row in deep)


@program(COUNTS)
def un_bisect(n):
    xs = []
    for i in range(n):
        bisect.insort(xs, i * 5 % 7)
    return bisect.bisect(xs, 3), bisect.bisect_left(xs, 3), sum(i * v for i, v in enumerate(xs))


@program(COUNTS)
def un_heap_ties(n):
    heap = []
    for i in range(n):
        heapq.heappush(heap, (i % 3, -i, i * i))
    total = 0
    place = 1
    while heap:
        cost, _, v = heapq.heappop(heap)
        total += place * v + cost
        place += 1
    return total


@program(COUNTS)
def un_most_common(n):
    counts = collections.Counter(i * i % 5 for i in range(n))
    total = 0
    for key, count in counts.items():
        total += key * count
    return total, counts[4], counts[77], len(counts)


@program(COUNTS)
def un_list_argument_default(n):
    def add(v, xs=None):
        if xs is None:
            xs = []
        xs.append(v)
        return xs

    one = add(n)
    for i in range(n):
        add(i, one)
    other = add(3)
    return len(one), len(other), sum(one)


@program(COUNTS)
def un_loop_variable_behind(n):
    xs = grow(n)
    v = -1
    for v in xs:
        if v == 2:
            break
    else:
        v += 100
    return v


@program(COUNTS)
def un_none_in_list(n):
    xs = [None] * 3
    for i in range(n):
        xs[i % 3] = i
    return sum(0 if v is None else v for v in xs), xs[0] is None, xs[2] is not None


@program(COUNTS)
def un_none_in_grown(n):
    xs = []
    for i in range(n):
        xs.append(None if i % 2 else i)
    return sum(1 for v in xs if v is None), sum(v for v in xs if v is not None)


@program(A, COUNTS[:3])
def un_rows_of_array(a, n):
    rows = []
    for i in range(n):
        rows.append(a[i : i + 2])
    a[1] = 50.0
    return sum(row.sum() for row in rows) + 0.0, a


@program(A, COUNTS[:3])
def un_rows_change(a, n):
    rows = []
    for i in range(n):
        rows.append(a[i : i + 2])
    for row in rows:
        row[0] = 9.0
    return a


@program(COUNTS, NUMBERS)
def un_attribute_grows(n, x):
    item, other = Item(x), Item(x)
    other.seen = item.seen
    for i in range(n):
        (item if i % 2 else other).note(1.0)
    return len(item.seen), len(other.seen), item.v, other.v


@program(COUNTS, NUMBERS)
def un_attribute_apart(n, x):
    item, other = Item(x), Item(x)
    for i in range(n):
        item.note(1.0)
        if i == 2:
            other.seen = item.seen
    other.seen.append(5.0)
    return len(item.seen), len(other.seen)
