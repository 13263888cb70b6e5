"""Helpers that return a view, their argument or one of two, and stores through either name."""

import numpy as np

from tests.programs.table import A, B, K, M, Table, X

program = Table()


def head(a):
    return a[:2]


def head_if(a, x):
    if x > 0.0:
        return a[:2]
    return a[2:]


def ident_if(a, b, x):
    if x > 0.0:
        return a
    return b


def pick(a, b, x):
    return a if x > 0.0 else b


def rev(a):
    return a[::-1]


def shaped(a):
    return np.reshape(a, (2, 2))


def shaped_m(a):
    return a.reshape(2, 2)


def rav(a):
    return a.ravel()


def trans(m):
    return m.T


def loop_view(a, n):
    b = a[:2]
    for i in range(n):
        b = a[1:3]
    return b


def through(a):
    return head(a)


def store0(a, x):
    a[0] = x
    return a


def store_ret_other(a, x):
    a[0] = x
    return x + 1.0


def chain(a):
    return rev(head(a))


def kw(a, *, back=False):
    return a[::-1] if back else a


def tup(a, x):
    return a, x


def tupview(a, x):
    return a[1:3], x


def dic(a):
    return {"v": a[:2]}


def asarr(a):
    return np.asarray(a)


def asarr_if(a, x):
    if x > 0.0:
        return np.asarray(a)
    return np.zeros(4, np.float32)


@program(A, X)
def head_store_a(a, x):
    v = head(a)
    a[0] = x
    return v[0] + a[0]


@program(A, X)
def head_store_v(a, x):
    v = head(a)
    v[0] = x
    return v[0] + a[0]


@program(A, X)
def head_if_store_a(a, x):
    v = head_if(a, x)
    a[0] = x
    return v[0] + a[0]


@program(A, X)
def head_if_store_v(a, x):
    v = head_if(a, x)
    v[0] = x
    return v[0] + a[0] + a[2]


@program(A, B, X)
def ident_if_store_a(a, b, x):
    v = ident_if(a, b, x)
    a[0] = x
    return v[0] + a[0]


@program(A, B, X)
def ident_if_store_v(a, b, x):
    v = ident_if(a, b, x)
    v[0] = x
    return v[0] + a[0] + b[0]


@program(A, B, X)
def pick_store_v(a, b, x):
    v = pick(a, b, x)
    v[0] = x
    return v[0] + a[0] + b[0]


@program(A, B, X)
def ifexp_store(a, b, x):
    v = a if x > 0.0 else b
    v[0] = x
    return v[0] + a[0] + b[0]


@program(A, X)
def rev_store(a, x):
    v = rev(a)
    a[3] = x
    return v[0]


@program(A, X)
def shaped_store(a, x):
    v = shaped(a)
    a[3] = x
    return v[1, 1]


@program(A, X)
def shaped_m_store(a, x):
    v = shaped_m(a)
    v[1, 1] = x
    return a[3]


@program(A, X)
def rav_store(a, x):
    v = rav(a)
    v[1] = x
    return a[1]


@program(M, X)
def trans_store(m, x):
    v = trans(m)
    v[0, 1] = x
    return m[1, 0]


@program(A, K, X)
def loop_view_store(a, n, x):
    v = loop_view(a, n)
    a[1] = x
    return v[0] + v[1]


@program(A, X)
def through_store(a, x):
    v = through(a)
    a[0] = x
    return v[0]


@program(A, X)
def store0_call(a, x):
    b = store0(a, x)
    return a[0] + b[0]


@program(A, X)
def store0_call2(a, x):
    a = store0(a, x)
    return a[0] + a[1]


@program(A, X)
def store0_copy(a, x):
    b = store0(a.copy(), x)
    return a[0] + b[0]


@program(A, X)
def store_ret(a, x):
    y = store_ret_other(a, x)
    return a[0] + y


@program(A, X)
def chain_store(a, x):
    v = chain(a)
    v[0] = x
    return a[1]


@program(A, X)
def kw_store(a, x):
    v = kw(a, back=True)
    a[3] = x
    return v[0]


@program(A, X)
def tup_store(a, x):
    v, y = tup(a, x)
    a[0] = y
    return v[0]


@program(A, X)
def tupview_store(a, x):
    v, y = tupview(a, x)
    a[1] = y
    return v[0]


@program(A, X)
def dic_store(a, x):
    d = dic(a)
    a[1] = x
    return d["v"][1]


@program(A, X)
def dic_store2(a, x):
    d = dic(a)
    d["v"][1] = x
    return a[1]


@program(A, X)
def asarr_store(a, x):
    b = asarr(a)
    b[1] = x
    return a[1]


@program(A, X)
def asarr_if_store(a, x):
    b = asarr_if(a, x)
    a[1] = x
    return b[1]
