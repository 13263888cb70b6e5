"""Arrays that do not lie row by row in NumPy's memory, and arrays and objects that are one of several."""

import numpy as np

from tests.programs.table import A, B, M, Table, X

program = Table()


@program(M)
def la_sum_with_transpose(m):
    r = m.T + 1.0
    v = r.ravel()
    v[0] = 9.0
    return r


@program(M)
def la_copied_transpose(m):
    r = np.copy(m.T)
    v = r.reshape(-1)
    v[0] = 9.0
    return r


@program(M)
def la_copy_lies_by_rows(m):
    r = m.T.copy()
    v = r.ravel()
    v[0] = 9.0
    return r


@program(M)
def la_zeros_like(m):
    r = np.zeros_like(m.T)
    v = r.reshape(-1)
    v[0] = 9.0
    return r


@program(M)
def la_reversed_times(m):
    r = m[::-1] * 2.0
    v = r.ravel()
    v[0] = 9.0
    return r


@program(M)
def la_transposed_twice(m):
    r = m
    for _ in range(2):
        r = r.T
    v = r.ravel()
    v[0] = 9.0
    return r


@program(M)
def la_transposed_by_lane(m):
    r = m
    k = m[0, 1]
    while k > 1.0:
        r = r.T
        k -= 9.0
    v = r.ravel()
    v[0] = 9.0
    return r


@program(A, X)
def la_flipped_in_some(a, x):
    b = np.flip(a) if x > 0.0 else a
    c = b.ravel()
    c[1] += 1.0
    return b


@program(A, X)
def la_flipped_in_some_then_stored(a, x):
    b = np.flip(a.copy()) if x > 0.0 else a
    b[0] = 5.0
    c = b.ravel()
    c[1] += 1.0
    return b


@program(A, B, X)
def la_stored_in_one_arm(a, b, x):
    if x > 20.0:
        b = a.copy()
        b[3] = x
    else:
        b = b.reshape(-1) if x > 0.0 else np.asarray(a)
    b[1] = 7.0
    return a, b


@program(A, B, X)
def la_stored_in_some_turn(a, b, x):
    b = b if x > 0.0 else a
    k = x
    while k < 20.0:
        if k > 0.0:
            b = a.copy()
            b[2] = 1.0
        k += 50.0
    b[0] = 7.0
    return a, b


@program(A, B, X)
def la_one_of_two_in_a_list(a, b, x):
    xs = [b + x]
    if x > 0.0:
        xs.append(a + x)
    xs.append(np.asarray(b) if x > 0.0 else np.ravel(a))
    a[1] += 4.0
    return xs[-1]


@program(A, B, X)
def la_one_of_two_in_a_list_and_new_ones(a, b, x):
    xs = [b + x]
    if x > 0.0:
        xs.append(a + x)
    xs.append(a if x > 0.0 else b)
    a = a + 1.0
    a[1] += 4.0
    return xs[-1], a


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def either(self, p):
        if self.y > 0.0:
            return self
        return Point(p, 1.0)


@program(X)
def la_one_of_one_of_several(x):
    first = Point(1.0, x)
    second = first.either(5.0)
    third = second.either(6.0)
    third.x = 3.0
    return first.x, second.x, third.x


class Holder:
    def __init__(self, a):
        self.a = a

    def one(self, b, f):
        if f > 0.0:
            return self.a
        return b


@program(A, B, X)
def la_array_of_one_of_several(a, b, x):
    p, q = Holder(a), Holder(b)
    o = p if x > 0.0 else q
    r = o.one(a + b, x + 5.0)
    p.a[0] += 1.0
    q.a[0] += 2.0
    return r, a, b


@program(A, X)
def la_path_of_another_round(a, x):
    for e in a:
        xs = [np.flip(a), 1]
        if x < 0.0:
            while e > 1.0:
                e -= 1.0
                xs[0][1] += 1
    return a


@program(A, X)
def la_swaps_of_another_round(a, x):
    one, two = Point(a[0], x), Point(a[1], x)
    for _ in a:
        xs = [np.ravel(a), 1]
        ys = list(xs)
        ys[0][0] += ys[0][1]
        while x > 5.0:
            x -= 5.0
            one.x = x
            two, one = one, two
    return a, one.x, two.x


@program(A, X)
def la_one_of_two_of_which_one_is_lost(a, x):
    one, two = Point(a[0], x), Point(a[1], 1.0)
    for _ in range(3):
        if two is one:
            one = two
        else:
            one = two
        one.x += x
    return one.x, two.x, one.y
