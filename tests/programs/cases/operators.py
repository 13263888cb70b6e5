"""Operators of classes that return or change their object."""

from tests.programs.table import A, Table, X

program = Table()


class Vec:
    def __init__(self, a):
        self.a = a

    def __add__(self, o):
        self.a = self.a + o.a
        return self

    def __iadd__(self, o):
        self.a = self.a + o.a
        return self

    def __mul__(self, k):
        return Vec(self.a * k)

    def __pos__(self):
        return self

    def __getitem__(self, i):
        return self.a[i]

    def __setitem__(self, i, v):
        self.a[i] = v

    def __contains__(self, v):
        self.a = self.a * 0.0
        return True

    def __eq__(self, o):
        self.a = self.a + 1.0
        return True

    def __len__(self):
        return 4

    def __bool__(self):
        return True

    def __call__(self, v):
        self.a[0] = v
        return self


@program(A, X)
def op_add_changes(a, x):
    v, w = Vec(a.copy()), Vec(a.copy())
    u = v + w
    return v.a[0] + u.a[0]


@program(A, X)
def op_pos(a, x):
    v = Vec(a.copy())
    u = +v
    u.a = u.a * 2.0
    return v.a[0]


@program(A, X)
def op_setitem(a, x):
    v = Vec(a.copy())
    v[0] = x
    v[1] += x
    return v.a[0] + v[1]


@program(A, X)
def op_setitem_alias(a, x):
    b = a.copy()
    v = Vec(b)
    v[0] = x
    return b[0]


@program(A, X)
def op_eq_changes(a, x):
    v, w = Vec(a.copy()), Vec(a.copy())
    r = v == w
    return v.a[0]


@program(A, X)
def op_in_changes(a, x):
    v = Vec(a.copy())
    r = x in v
    return v.a[0]


@program(A, X)
def op_call_chain(a, x):
    v = Vec(a.copy())
    w = v(x)
    return v.a[0] + w.a[0]


@program(A, X)
def op_call_alias(a, x):
    v = Vec(a.copy())
    w = v(x)
    w.a = w.a * 0.0
    return v.a[0]
