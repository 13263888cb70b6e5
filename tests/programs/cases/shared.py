"""Arrays that several objects, lists and names share, stored into by methods."""

from dataclasses import dataclass

import numpy as np

from tests.programs.table import A, Table, X

program = Table()


class Grid:
    def __init__(self, m):
        self.m = m

    def set(self, i, v):
        self.m[i] = v

    def setr(self, i, v):
        self.m[i] = v
        return v

    def add(self, v):
        self.m += v

    def get(self, i):
        return self.m[i]


class Gb:
    def __init__(self, m):
        self.m = m

    def put(self, v):
        if v > 0.0:
            self.m[0] = v
        else:
            self.m[1] = v

    def two(self, o, v):
        self.m[0] = v
        return o.m[0]


@dataclass
class Pair:
    a: np.ndarray
    b: np.ndarray

    def put(self, v):
        self.a[0] = v
        return self.b[0]

    def swap(self):
        self.a, self.b = self.b, self.a


@program(A, X)
def sh_two_objs(a, x):
    b = a.copy()
    g, h = Grid(b), Grid(b)
    g.set(0, x)
    return h.m[0]


@program(A, X)
def sh_obj_name(a, x):
    b = a.copy()
    g = Grid(b)
    g.set(0, x)
    return b[0]


@program(A, X)
def sh_obj_name_rev(a, x):
    b = a.copy()
    g = Grid(b)
    b[0] = x
    return g.m[0]


@program(A, X)
def sh_obj_arg(a, x):
    g = Grid(a)
    g.set(0, x)
    return a[0]


@program(A, X)
def sh_obj_kept(a, x):
    g = Grid(a.copy())
    k = g.m
    g.set(0, x)
    return k[0]


@program(A, X)
def sh_obj_kept_view(a, x):
    g = Grid(a.copy())
    k = g.m[:2]
    g.set(0, x)
    return k[0]


@program(A, X)
def sh_obj_view_ctor(a, x):
    b = a.copy()
    g = Grid(b[:2])
    g.set(0, x)
    return b[0]


@program(A, X)
def sh_obj_assign(a, x):
    g, h = Grid(a.copy()), Grid(a.copy())
    g.m = h.m
    g.set(0, x)
    return h.m[0]


@program(A, X)
def sh_list_arrays(a, x):
    b = a.copy()
    l = [b, a.copy()]
    l[0][0] = x
    return b[0]


@program(A, X)
def sh_list_objs(a, x):
    b = a.copy()
    gs = [Grid(b), Grid(b)]
    gs[0].set(0, x)
    return gs[1].m[0]


@program(A, X)
def sh_list_objs_loop(a, x):
    b = a.copy()
    gs = [Grid(b), Grid(a.copy())]
    for g in gs:
        g.set(0, x)
    return b[0]


@program(A, X)
def sh_dict_arrays(a, x):
    b = a.copy()
    d = {"p": b}
    d["p"][0] = x
    return b[0]


@program(A, X)
def sh_obj_inc(a, x):
    b = a.copy()
    g = Grid(b)
    g.add(x)
    return b[0]


@program(A, X)
def sh_branch_method(a, x):
    b = a.copy()
    g = Gb(b)
    g.put(x)
    return b[0] + b[1]


@program(A, X)
def sh_branch_method_two(a, x):
    b = a.copy()
    g, h = Gb(b), Gb(b)
    g.put(x)
    return h.m[0] + h.m[1]


@program(A, X)
def sh_method_other(a, x):
    b = a.copy()
    g, h = Gb(b), Gb(b)
    return g.two(h, x)


@program(A, X)
def sh_pair_same(a, x):
    b = a.copy()
    p = Pair(b, b)
    return p.put(x)


@program(A, X)
def sh_pair_same2(a, x):
    b = a.copy()
    p = Pair(b, b)
    p.a[0] = x
    return p.b[0]


@program(A, X)
def sh_pair_swap(a, x):
    p = Pair(a.copy(), a * 2.0)
    p.swap()
    p.put(x)
    p.swap()
    return p.a[0], p.b[0]


@program(A, X)
def sh_pair_copy_attr(a, x):
    p = Pair(a.copy(), a * 2.0)
    p.b = p.a
    p.a[0] = x
    return p.b[0]


@program(A, X)
def sh_nested_fn(a, x):
    b = a.copy()
    g = Grid(b)

    def f(h):
        h.set(0, x)
        return h.m[0]

    y = f(g)
    return b[0] + y
