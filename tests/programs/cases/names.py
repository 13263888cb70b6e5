"""Views and arrays under further names: lambdas, closures, containers, loops, patterns, defaults."""

import numpy as np

from tests.programs.table import A, Table, X

program = Table()


@program(A, X)
def lam_view(a, x):
    f = lambda t: t[1:3]
    b = f(a)
    a[1] = x
    return b[0]


@program(A, X)
def def_view(a, x):
    def f(t):
        if t[0] > 0.0:
            return t[1:3]
        return t[:2]

    b = f(a)
    a[1] = x
    return b[0]


@program(A, X)
def closure_view(a, x):
    def f():
        return a[1:3]

    b = f()
    a[1] = x
    return b[0]


@program(A, X)
def list_views(a, x):
    parts = [a[:2], a[2:]]
    a[0] = x
    return parts[0][0] + parts[1][0]


@program(A, X)
def list_views_loop(a, x):
    parts = [a[:2], a[2:]]
    for p in parts:
        p[0] = x
    return a[0] + a[2]


@program(A, X)
def np_split_store(a, x):
    p, q = np.split(a, 2)
    a[0] = x
    return p[0] + q[0]


@program(A, X)
def tuple_in_out(a, x):
    t = (a, x)
    b = t[0]
    b[0] = x
    return a[0]


@program(A, X)
def where_store(a, x):
    b = np.where(a > 0.0, a, 0.0)
    a[0] = x
    return b[0]


@program(A, X)
def max_arrays(a, x):
    b = max(a, a, key=lambda t: 1.0)
    a[0] = x
    return b[0]


@program(A, X)
def for_row_view(a, x):
    m = a.reshape(2, 2)
    for r in m:
        r[0] = x
    return m[0, 0] + a[2]


@program(A, X)
def zip_rows(a, x):
    m = a.reshape(2, 2)
    s = 0.0
    for r, t in zip(m, [1.0, 2.0]):
        m[1, 0] = x
        s += r[0] * t
    return s


@program(A, X)
def walrus_view(a, x):
    s = (b := a[:2])[0]
    a[0] = x
    return s + b[0]


@program(A, X)
def match_view(a, x):
    match (a, x):
        case (b, y):
            b[0] = y
    return a[0]


@program(A, X)
def star_view(a, x):
    b, *rest = a, a[1:], x
    a[1] = x
    return rest[0][0]


@program(A, X)
def default_view(a, x):
    def g(t, u=a):
        return u[0] + t

    a[0] = x
    return g(x)


@program(A, X)
def aug_store(a, x):
    b = a[:2]
    b += x
    return a[0] + b[0]


@program(A, X)
def aug_store_elem(a, x):
    b = a[:2]
    a[0] += x
    return a[0] + b[0]


@program(A, X)
def aug_whole(a, x):
    b = a.copy()
    a += x
    return a[0] + b[0]
