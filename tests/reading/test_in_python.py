"""Functions and classes of libraries that are read as they are written in the language: against the ones themselves."""

from __future__ import annotations

import bisect
import collections
import heapq
import itertools
import math
import statistics

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.errors import CompileError

X = np.array([[0.5, 1.5, 2.5, 3.5], [3.0, 0.25, 1.0, 2.0], [1.0, 1.0, -2.0, 1.0]])
N = np.array([1, 3, 4])


def heaps(x, n):
    heap = []
    for i in range(4):
        heapq.heappush(heap, x[i] * (-1) ** i)
    first = heapq.heappop(heap)
    second = heapq.heapreplace(heap, x[0])
    third = heapq.heappushpop(heap, -5.0)
    other = [x[3], x[1], x[2]]
    heapq.heapify(other)
    return first, second, third, heapq.heappop(heap), len(heap), other[0], heapq.nlargest(2, x), heapq.nsmallest(1, x)


def heaps_of_pairs(x, n):
    heap = [(x[0], 0)]
    for i in range(1, 4):
        heapq.heappush(heap, (x[i], i))
    time, kind = heapq.heappop(heap)
    return time, kind, heap[0]


def sorted_places(x, n):
    ordered = sorted(x)
    numbers = [1.0, 2.0, 3.0]
    bisect.insort(numbers, x[0])
    bisect.insort_left(numbers, x[1])
    return bisect.bisect(ordered, 1.0), bisect.bisect_left(ordered, 1.0), bisect.bisect_right(ordered, x[2]), numbers


def of_numbers(x, n):
    close = math.isclose(x[0], x[1]), math.isclose(x[0], x[0] + 1e-12), math.isclose(x[0], 0.6, abs_tol=0.2)
    counts = math.factorial(n), math.comb(5, n), math.comb(n, 2), math.perm(6, n), math.perm(n)
    return math.gcd(n * 6, 4), math.lcm(n, 6), math.gcd(n, 0), math.lcm(n, 0), close, counts


def of_powers(x, n):
    inverse = pow(n, -1, -7), pow(-n, -n, 11)
    return pow(n, 2**31 - 1, 998244353), pow(3, n, 7), pow(n, n, -4), pow(0, 0, n), inverse, pow(x[0], n)


def of_statistics(x, n):
    values = [x[0], x[1], x[2]]
    return (
        statistics.mean(x),
        statistics.fmean(values),
        statistics.median(values),
        statistics.median([*values, x[3]]),
        statistics.median([n, 2, x[1]]),
        sorted([n, x[0], 1.5], reverse=True),
        statistics.pstdev(values),
        statistics.stdev(values),
        statistics.variance(values),
    )


def totals(x, n):
    return list(itertools.accumulate(x)), list(itertools.accumulate(x, max)), list(itertools.accumulate(x, initial=n))


def cut(x, n):
    m = x.reshape(2, 2)
    a, b = np.split(x, 2)
    left, right = np.split(m, 2, axis=1)
    return a + b, np.split(x, [1, 3])[1], np.array_split(x, 3)[0], left - right


def queues(x, n):
    last = collections.deque(maxlen=3)
    both = collections.deque([x[0], x[1]])
    for i in range(4):
        last.append(x[i])
    both.append(x[2])
    both.appendleft(x[3])
    both.extend([1.0, 2.0])
    both.rotate(1)
    first, end = both.popleft(), both.pop()
    last[0] = 9.0
    return sum(last), last[-1], first, end, len(both), max(both), 2.0 in both, [v * 2 for v in last]


def tables(x, n):
    table, lists = collections.defaultdict(float), collections.defaultdict(list)
    for i in range(4):
        table[i % 2] += x[i]
        lists["odd" if i % 2 else "even"].append(x[i])
    return table[0], table[1], len(table), lists["odd"], sum(lists["even"]), sorted(table.keys()), table.get(7, n)


def counts(x, n):
    letters = collections.Counter("abca")
    letters["a"] += n
    letters.update(["b", "d"])
    (name, most), *_ = collections.Counter("aab").most_common()
    return letters["a"], letters["b"], letters["z"], letters.total(), most, len(letters), "d" in letters, name == "a"


def emptied(x, n):
    heap, order = [(x[i], i) for i in range(4)], []
    heapq.heapify(heap)
    while heap:
        order.append(heapq.heappop(heap)[1])
    return order


def breadth_first(x, n):
    links, seen, queue, order = [[1, 2], [3], [3], []], [True, False, False, False], collections.deque([0]), 0
    while queue:
        node = queue.popleft()
        order = order * 10 + node
        for other in links[node]:
            if not seen[other]:
                seen[other] = True
                queue.append(other)
    return order * n


PROGRAMS = [
    emptied,
    breadth_first,
    heaps,
    heaps_of_pairs,
    sorted_places,
    of_numbers,
    of_powers,
    of_statistics,
    totals,
    cut,
    queues,
    tables,
    counts,
]


@pytest.mark.parametrize("options", [{}, {"form": "lockstep"}], ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_as_the_library_has_it(program, options):
    found = tf.nest.flatten(pcbatch.autobatch(program, **options)(X, N))
    for lane in range(len(N)):
        wanted = tf.nest.flatten(program(X[lane].copy(), int(N[lane])))
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one[lane], other, rtol=1e-6, atol=1e-9)


def test_a_heap_in_a_bounded_list():
    def smallest(x, n):
        heap = pcbatch.bounded((), tf.float64, 8)
        k = 0
        while k < n:
            heapq.heappush(heap, x[k])
            k += 1
        most, least = max(heap), min(heap)
        return heapq.heappop(heap), len(heap), most, least

    first, rest, most, least = pcbatch.autobatch(smallest)(X, N)
    np.testing.assert_array_equal(most, [max(x[:n]) for x, n in zip(X, N, strict=True)])
    np.testing.assert_array_equal(least, first)
    np.testing.assert_array_equal(first, [min(x[:n]) for x, n in zip(X, N, strict=True)])
    np.testing.assert_array_equal(rest, N - 1)


def test_what_fails_fails_at_the_users_line():
    def emptied(x, n):
        queue = collections.deque([x[0]])
        queue.popleft()
        return queue.popleft()

    with pytest.raises(CompileError, match="IndexError") as error:
        pcbatch.autobatch(emptied)(X, N)
    span = error.value.diagnostics[0].span
    assert (span.file, span.text.strip()) == (__file__, "return queue.popleft()")


def test_a_modulus_that_python_does_not_take_fails_the_lane():
    def modular(base, modulus):
        return pow(base, -1, modulus)

    run = pcbatch.autobatch(modular).run([2, 3, 2], np.array([6, 0, 2**33]))
    assert [each.message for each in run.errors] == [
        "ValueError: base is not invertible for the given modulus",
        "ValueError: pow() 3rd argument cannot be 0",
        "OverflowError: a modulus of more than 32 bits",
    ]
    assert {each.span.text.strip() for each in run.errors} == {"return pow(base, -1, modulus)"}


def test_a_key_that_is_missing_is_told_at_the_users_line():
    def missing(x, n):
        table = collections.defaultdict(None, {"a": x[0]})
        if n > 1:
            return table["b"]
        return table["a"]

    run = pcbatch.autobatch(missing).run(X, N)
    told = [(each.lane, each.span.text.strip()) for each in run.errors]
    assert told == [(lane, 'return table["b"]') for lane in (1, 2)]
    assert run.result(0) == X[0, 0]


def bounded_heap(x, n):
    heap = pcbatch.bounded([], tf.float64, 8)
    for k in range(n):
        heapq.heappush(heap, x[k])
    heapq.heappush(heap, 0.5)
    first, second = heapq.heappop(heap), heapq.heapreplace(heap, x[0])
    third = heapq.heappushpop(heap, -9.0)
    ordered = pcbatch.bounded([], tf.float64, 8)
    for k in range(n):
        bisect.insort(ordered, x[k])
    return first, second, third, len(heap), ordered[0], ordered[-1], bisect.bisect(ordered, 0.0)


def test_heaps_of_bounded_lists_run_singly():
    batched = pcbatch.autobatch(bounded_heap)
    found = batched.options(form="lockstep", jit=False)(X, N)
    for lane in range(len(X)):
        for many, one in zip(found, batched.single(X[lane], N[lane]), strict=True):
            np.testing.assert_allclose(np.asarray(many)[lane], np.asarray(one))
