"""Rows and columns of matrices; recursion and loops that store."""

import numpy as np

import pcbatch
from tests.programs.table import BYTES, HUNDREDS, A, K, M, N, Table, X

program = Table()


def permute(a, i, n, acc):
    if i == n:
        return acc * 10 + a[0] * a[1] + a[2]
    for j in range(i, n):
        a[i], a[j] = a[j], a[i]
        acc = permute(a, i + 1, n, acc) % 100003
        a[i], a[j] = a[j], a[i]
    return acc


permute = pcbatch.autobatch(permute)


def _perm_py(a, i, n, acc):
    if i == n:
        return int(acc * 10 + a[0] * a[1] + a[2])
    for j in range(i, n):
        a[i], a[j] = a[j], a[i]
        acc = _perm_py(a, i + 1, n, acc) % 100003
        a[i], a[j] = a[j], a[i]
    return acc


@pcbatch.autobatch
def mutate(a, x):
    a[0] = x
    return a[0] * 2.0


def quick(a, lo, hi):
    if lo < hi:
        p = a[hi]
        i = lo - 1
        for j in range(lo, hi):
            if a[j] <= p:
                i += 1
                a[i], a[j] = a[j], a[i]
        a[i + 1], a[hi] = a[hi], a[i + 1]
        a = quick(a, lo, i)
        a = quick(a, i + 2, hi)
    return a


quick = pcbatch.autobatch(quick)


@program(M, K)
def row_swap(m, k):
    m[[0, k]] = m[[k, 0]]
    return m


@program(M, K)
def row_swap_tuple(m, k):
    m[0], m[k] = m[k], m[0]
    return m


@program(M, K)
def row_swap_copy(m, k):
    m[0], m[k] = m[k].copy(), m[0].copy()
    return m


@program(M, K)
def col_swap(m, k):
    m[:, 0], m[:, 1] = m[:, 1].copy(), m[:, 0].copy()
    return m


@program(M, K)
def col_swap_view(m, k):
    m[:, 0], m[:, 1] = m[:, 1], m[:, 0]
    return m


@program(M, K)
def elim(m, k):
    m = m.copy()
    m[0, 0] += 5.0
    m[1, 1] += 5.0
    m[2, 2] += 5.0
    for i in range(3):
        for j in range(i + 1, 3):
            f = m[j, i] / m[i, i]
            m[j] -= f * m[i]
    return m


@program(M, K)
def row_store_self(m, k):
    m[k] = m[0] + m[1]
    m[0] = m[k] * 2.0
    return m


@program(M, K)
def dia_store(m, k):
    for i in range(3):
        m[i, i] = 0.0
        m[i][2 - i] = 7.0
    return m


@program(M, K)
def nested_row_store(m, k):
    m[k][1] = 5.0
    m[k][k] += 1.0
    return m


@program(M, K)
def row_then_store(m, k):
    r = m[k]
    m[k, 0] = 100.0
    return r[1]


@program(N, K, twin=lambda a, k: _perm_py(a.copy(), 0, 3, 0))
def perm_backtrack(a, k):
    return permute(a, 0, 3, 0)


@program(A, X, twin=lambda a, x: a[0] + x * 2.0)
def doc_callee_value(a, x):
    y = mutate(a, x)
    return a[0] + y


@program(N, K, twin=lambda a, k: np.sort(a))
def quicksort(a, k):
    return quick(a, 0, 3)


@program(N, K, twin=lambda a, k: np.sort(a))
def heap(a, k):
    n = 4
    for s in range(n // 2 - 1, -1, -1):
        i = s
        while True:
            c = 2 * i + 1
            if c >= n:
                break
            if c + 1 < n and a[c + 1] > a[c]:
                c += 1
            if a[i] >= a[c]:
                break
            a[i], a[c] = a[c], a[i]
            i = c
    for e in range(n - 1, 0, -1):
        a[0], a[e] = a[e], a[0]
        i = 0
        while True:
            c = 2 * i + 1
            if c >= e:
                break
            if c + 1 < e and a[c + 1] > a[c]:
                c += 1
            if a[i] >= a[c]:
                break
            a[i], a[c] = a[c], a[i]
            i = c
    return a


@program(N, K)
def two_names_branches(a, k):
    if k > 0:
        b = a
    else:
        b = a.copy()
    b[0] = 99
    return b[0] + a[0]


@program(N, K)
def loop_alias(a, k):
    b = a.copy()
    for i in range(3):
        c = a
        a = b
        b = c
        a[0] += 1
    return a[0] * 100 + b[0]


@program(N, K)
def old_in_loop(a, k):
    s = 0
    prev = a.copy()
    for i in range(3):
        a[i] = s + 1
        s += prev[i] * 10 + a[i]
        prev = a.copy()
    return s, prev


@program(N, K)
def prev_alias_loop(a, k):
    s = 0
    prev = a
    for i in range(3):
        s += prev[i]
        a[i] = 7
        prev = a
    return s


@program(N, K)
def dp_rows(a, k):
    dp = np.zeros((5, 5), np.int32)
    for i in range(1, 5):
        for j in range(1, 5):
            if a[i - 1] == a[4 - j]:
                dp[i, j] = dp[i - 1, j - 1] + 1
            else:
                dp[i, j] = max(dp[i - 1, j], dp[i, j - 1])
    return dp[4, 4]


@program(N, K)
def store_in_condition(a, k):
    n = 0
    while (t := a[n]) != 2 and n < 3:
        a[n] = t + 1
        n += 1
    return a, n


@program(N, K)
def store_bool_in_int(a, k):
    a[k] = a[0] > 1
    return a


@program(N, X)
def store_float_in_int(a, x):
    a[0] = x
    return a


@program(BYTES, HUNDREDS)
def store_int_wrap_int8(a, x):
    a[0] = a[1] + 1
    return a
