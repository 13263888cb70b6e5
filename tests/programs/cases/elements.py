"""Stores of elements, slices and masks, with indices that the program changes."""

import numpy as np

from tests.programs.table import OUTSIDE, K, N, Table

program = Table()


@program(N, K)
def bubble(a, k):
    a = a.copy()
    n = 4
    for i in range(n):
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


@program(N, K)
def swap_same(a, k):
    i = k
    j = 2
    a[i], a[j] = a[j], a[i]
    return a


@program(N, K)
def swap_index_dep(a, k):
    i = k
    i, a[i] = a[0], 9
    return a, i


@program(N, K)
def swap_index_dep2(a, k):
    a[0], a[a[0]] = 7, 8
    return a


@program(N, K)
def chained_idx(a, k):
    i = a[k] = 2
    return a, i


@program(N, K)
def aug_index_side(a, k):
    a[a[0]] += a[k]
    a[a[1]] -= 1
    return a


@program(N, K)
def neg_idx(a, k):
    a[-1 - k] = 5
    a[~k] += 1
    return a


@program(N, OUTSIDE)
def oob_store(a, k):
    a[k] = 1
    return a


@program(N, OUTSIDE)
def oob_read_dead(a, k):
    y = a[k]
    return 1


@program(N, K)
def neg_slice_store(a, k):
    a[-2:] = 7
    a[:-3] = 1
    return a


@program(N, K)
def step_store(a, k):
    a[::2] = 0
    a[1::2] += 5
    a[::-1] = a + 0
    return a


@program(N, K)
def overlap_store(a, k):
    a[1:] = a[:-1]
    return a


@program(N, K)
def overlap_store2(a, k):
    a[:-1] = a[1:]
    return a


@program(N, K)
def rev_self(a, k):
    a[:] = a[::-1]
    return a


@program(N, K)
def fancy_dup(a, k):
    a[np.array([0, 0, 1])] += 1
    return a


@program(N, K)
def fancy_dup_set(a, k):
    a[[0, 0, 1]] = [5, 6, 7]
    return a


@program(N, K)
def fancy_perm(a, k):
    b = a.copy()
    a[b] = 9
    return a


@program(N, K)
def mask_store(a, k):
    a[a > 1] = 0
    return a


@program(N, K)
def mask_aug(a, k):
    a[a > 1] += 10
    return a
