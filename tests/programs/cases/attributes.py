"""Views by attributes, `None`, slices and nested functions; `max` and `min` of what holds lists."""

import numpy as np

from tests.programs.table import NUMBERS, A, M, Table, X

program = Table()


@program(M, X)
def vw_T(m, x):
    t = m.T
    m[0, 1] = x
    return t[1, 0]


@program(M, X)
def vw_T_store(m, x):
    t = m.T
    t[1, 0] = x
    return m[0, 1]


@program(M, X)
def vw_T_sym(m, x):
    m[0, 1] = x
    s = m + m.T
    return s


@program(M, X)
def vw_T_loop(m, x):
    t = m.T
    for i in range(3):
        m[i, 0] = x
    return t[0, 2]


@program(A, X)
def vw_None(a, x):
    b = a[None, :]
    a[1] = x
    return b[0, 1]


@program(A, X)
def vw_None2(a, x):
    b = a[:, None]
    b[1, 0] = x
    return a[1]


@program(A, X)
def vw_ellipsis(a, x):
    b = a[...]
    a[1] = x
    return b[1]


@program(A, X)
def vw_real(a, x):
    b = a.real
    b[1] = x
    return a[1]


@program(M, X)
def vw_diag(m, x):
    d = np.diag(m)
    m[1, 1] = x
    return d[1]


@program(A, X)
def vw_slice_obj(a, x):
    s = slice(0, 2)
    b = a[s]
    a[1] = x
    return b[1]


@program(A, X)
def vw_lambda(a, x):
    f = lambda t: t[:2]
    b = f(a)
    a[1] = x
    return b[1]


@program(A, X)
def vw_comp(a, x):
    b = [t for t in (a, a * 2.0)]
    a[1] = x
    return b[0][1]


@program(A, X)
def vw_tuple_ret(a, x):
    def f(t):
        return t[:2], 1.0

    b, c = f(a)
    a[1] = x
    return b[1]


@program(A, X)
def vw_nested_branch(a, x):
    def f(t, y):
        if y > 0.0:
            return t[:2]
        return t[2:]

    b = f(a, x)
    a[0] = x
    a[2] = x
    return b[0]


@program(A, X)
def vw_nested_loop(a, x):
    def f(t):
        for i in range(3):
            if t[i] > 1.5:
                return t[i : i + 2]
        return t[:2]

    b = f(a)
    a[1] = x
    a[0] = x
    return b[0]


@program(NUMBERS)
def mx_lists(x):
    p, q = [x, 1.0], [2.0, 3.0]
    b = max(p, q)
    b[0] = 9.0
    return p[0] + q[0]


@program(NUMBERS)
def mx_then_change(x):
    p, q = [x, 1.0], [2.0, 3.0]
    b = max(p, q)
    p[0] = 9.0
    q[0] = 8.0
    return b[0]


@program(NUMBERS)
def mx_best(x):
    best = (0.0, [0.0, 0.0])
    path = [0.0, 0.0]
    for i in range(3):
        path[0] = path[0] + x
        path[1] = i * 1.0
        best = max(best, (path[0] * (2.0 - i), path))
    return best[0], best[1]


@program(NUMBERS)
def mx_best_copy(x):
    best = (0.0, [0.0, 0.0])
    path = [0.0, 0.0]
    for i in range(3):
        path[0] = path[0] + x
        path[1] = i * 1.0
        best = max(best, (path[0] * (2.0 - i), path[:]))
    return best[0], best[1]


@program(A, X)
def mx_arrays_tuple(a, x):
    b = a * 2.0
    s, c = max((x, a), (0.0, b))
    c[0] = 77.0
    return a[0] + b[0]


@program(A, X)
def mx_or(a, x):
    l = [x, 1.0]
    m = l or [2.0]
    m[0] = 5.0
    return l[0]
