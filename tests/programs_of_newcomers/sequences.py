"""Sorting and dynamic programming."""

import numpy as np

import pcbatch


def merged(left, right):
    out = np.empty(len(left) + len(right), dtype=left.dtype)
    i = j = 0
    for k in range(len(out)):
        if j >= len(right) or (i < len(left) and left[i] <= right[j]):
            out[k] = left[i]
            i += 1
        else:
            out[k] = right[j]
            j += 1
    return out


@pcbatch.autobatch
def merge_sort(xs):
    """Sorts by halves, each a slice of the array."""
    if len(xs) <= 1:
        return xs
    middle = len(xs) // 2
    return merged(merge_sort(xs[:middle]), merge_sort(xs[middle:]))


def sift_down(heap, root, end):
    while True:
        child = 2 * root + 1
        if child >= end:
            return
        if child + 1 < end and heap[child] < heap[child + 1]:
            child += 1
        if heap[root] >= heap[child]:
            return
        heap[root], heap[child] = heap[child], heap[root]
        root = child


@pcbatch.autobatch
def heap_sort(xs):
    """Sorts an array in place."""
    n = len(xs)
    for start in range(n // 2 - 1, -1, -1):
        sift_down(xs, start, n)
    for end in range(n - 1, 0, -1):
        xs[0], xs[end] = xs[end], xs[0]
        sift_down(xs, 0, end)
    return xs


@pcbatch.autobatch
def radix_sort(numbers):
    """Sorts non-negative ints, digit by digit, into ten buckets."""
    largest = max(numbers)
    place = 1
    passes = 0
    while largest // place > 0:
        buckets = [[] for _ in range(10)]
        for number in numbers:
            buckets[(number // place) % 10].append(number)
        position = 0
        for bucket in buckets:
            for number in bucket:
                numbers[position] = number
                position += 1
        place *= 10
        passes += 1
    return numbers, passes


@pcbatch.autobatch
def longest_increasing(xs):
    """The length of the longest increasing subsequence, its sum, and its places."""
    n = len(xs)
    length = [1] * n
    before = [-1] * n
    for i in range(n):
        for j in range(i):
            if xs[j] < xs[i] and length[j] + 1 > length[i]:
                length[i] = length[j] + 1
                before[i] = j
    best = max(range(n), key=lambda i: length[i])
    path = []
    at = best
    while at != -1:
        path.append(at)
        at = before[at]
    path.reverse()
    places = np.full(n, -1)
    for k, place in enumerate(path):
        places[k] = place
    return len(path), sum(xs[p] for p in path), places


@pcbatch.autobatch
def coin_change(coins, amount):
    """The fewest coins that make the amount, and how many there are of each."""
    unreachable = 10_000
    fewest = np.full(31, unreachable)
    last = np.full(31, -1)
    fewest[0] = 0
    for total in range(1, amount + 1):
        for k, coin in enumerate(coins):
            if coin <= total and fewest[total - coin] + 1 < fewest[total]:
                fewest[total] = fewest[total - coin] + 1
                last[total] = k
    counts = {}
    rest = amount
    while rest > 0 and last[rest] >= 0:
        coin = coins[last[rest]]
        counts[coin] = counts.get(coin, 0) + 1
        rest -= coin
    if rest > 0:
        return -1, 0, 0
    most_used = max(counts.values(), default=0)
    return fewest[amount], len(counts), most_used


XS = np.array([[5, 2, 9, 1, 7, 7], [1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1], [0, 0, -4, 8, 3, -1]])
PROGRAMS = {
    "merge_sort": (merge_sort, XS * 0.5),
    "heap_sort": (heap_sort, XS * 0.25),
    "radix_sort": (
        radix_sort,
        np.array([[170, 45, 75, 90, 2], [1, 0, 1, 0, 9], [12, 120, 1200, 3, 33], [0, 0, 0, 0, 0]]),
    ),
    "longest_increasing": (longest_increasing, XS),
    "coin_change": (coin_change, np.array([[1, 5, 10], [2, 7, 9], [3, 6, 9], [1, 12, 20]]), [28, 11, 10, 24]),
}
