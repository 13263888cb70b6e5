"""Programs in which an object has several names; `test_shared_objects` says what becomes of them."""

# ruff: noqa: B006, B007, B905, C416, C417, RET504, RUF005, RUF012

import dataclasses
import functools

import tensorflow as tf

import pcbatch


@dataclasses.dataclass
class Owner:
    f: list


@pcbatch.autobatch
def inner_param(xs, p):
    xs[0] = p
    p[0] = 9.0
    return xs[0][0]


@pcbatch.autobatch
def make(x):
    return [[x, x], [x, x]]


def helper(q):
    return [q, q]


@pcbatch.autobatch
def both(q):
    return [q, q]


@pcbatch.autobatch
def sets(xs):
    xs[0] = 9.0
    return xs[1]


@pcbatch.autobatch
def ident(q):
    return q


class S:
    def __init__(self, log):
        self.log = log


class A:
    def __init__(self, x):
        self.x = x
        self.log = []


@dataclasses.dataclass
class Post:
    a: list
    b: list = None

    def __post_init__(self):
        self.b = self.a


class C:
    shared = [0.0]

    def __init__(self, x):
        self.x = x


class T:
    def __init__(self, x):
        self.a = [x]
        self.b = self.a


class U:
    def __init__(self, q):
        t = q
        self.log = []
        self.log.append(t)


class M:
    def __init__(self):
        self.rows = []
        self.n = 0.0

    def add(self, row):
        self.rows.append(row)

    def last(self):
        return self.rows[-1]

    def touch(self):
        self.rows[-1][0] = 9.0


class P:
    def __init__(self, x):
        self.q = [x]

    @property
    def inner(self):
        return self.q


@pcbatch.autobatch
def callee(*rows):
    rows[0][0] = 9.0
    return rows[1][0]


@pcbatch.autobatch
def callee2(a, b):
    a[0] = 9.0
    return b[0]


@pcbatch.autobatch
def callee3(xs):
    xs[0][0] = 9.0
    return xs[1][0]


@pcbatch.autobatch
def rec(xs, k):
    if k <= 0:
        return xs[0]
    xs[0] = xs[0] + 1.0
    return rec(xs, k - 1) + xs[0]


@pcbatch.autobatch
def keeps(o, q):
    o.f = q
    return o


@pcbatch.autobatch
def dflt(x, q=[1.0]):
    q[0] = q[0] + x
    return q[0]


@pcbatch.autobatch
def setb(b):
    b[0] = 9.0
    return b[0]


@pcbatch.autobatch
def rec2(xs, k):
    if k <= 0:
        return xs
    xs[0] = xs[0] + 1.0
    xs = rec2(xs, k - 1)
    return xs


class Base:
    def __init__(self, money):
        self.money = money
        self.hist = [money]


class Sub(Base):
    def __init__(self, money, rate):
        super().__init__(money)
        self.rate = rate
        self.view = self.hist


class If:
    def __init__(self, q, flag=True):
        if flag:
            self.q = q
        else:
            self.q = []
        for r in q:
            self.last = r


def other(q):
    return q


class Unknown:
    def __init__(self, q):
        self.q = list(map(lambda r: r, q))
        self.n = other(q)


class DD:
    def __init__(self, x, log=[]):
        self.x = x
        self.log = log


class Turtle:
    def __init__(self, x, y):
        self.pos = [x, y]
        self.path = []
        self.path.append(self.pos)
        self.pen = True


@dataclasses.dataclass
class Deck:
    cards: list
    discard: list = dataclasses.field(default_factory=list)
    n: int = 0

    def __post_init__(self):
        self.n = len(self.cards)


class Sub2(Base):
    def __init__(self, money, rate):
        super().__init__(money)
        self.rate = rate


@pcbatch.autobatch
def taken_field(x):
    o = Owner([[x, x], [x, x]])
    p = [x + 1.0, x]
    o.f[0] = p
    p[0] = 9.0
    return o.f[0][0]


@pcbatch.autobatch
def taken_param(x):
    return inner_param([[x, x]], [x, x])


@pcbatch.autobatch
def taken_result(x):
    xs = make(x)
    p = [x, x]
    xs[0] = p
    p[0] = 9.0
    return xs[0][0]


@pcbatch.autobatch
def taken_field_elem(x):
    o = Owner([[x, x], [x, x]])
    p = [x + 1.0, x]
    o.f[0] = p
    o.f[0][0] = 9.0
    return p[0]


@pcbatch.autobatch
def taken_plus(x):
    q = [x]
    xs = [[x + 1.0]]
    ys = xs + [q]
    q[0] = 9.0
    return ys[1][0]


@pcbatch.autobatch
def taken_plus_of_list(x):
    q = [x]
    xs = [q]
    ys = xs + xs
    q[0] = 9.0
    return ys[1][0]


@pcbatch.autobatch
def taken_comp(x):
    q = [x]
    ys = [q for _ in range(2)]
    q[0] = 9.0
    return ys[1][0]


@pcbatch.autobatch
def taken_listcopy(x):
    q = [x]
    xs = [q, [x]]
    ys = list(xs)
    q[0] = 9.0
    return ys[0][0]


@pcbatch.autobatch
def taken_slice(x):
    q = [x]
    xs = [q, [x]]
    ys = xs[:]
    q[0] = 9.0
    return ys[0][0]


@pcbatch.autobatch
def taken_star(x):
    q = [x]
    xs = [q, [x]]
    ys = [*xs]
    q[0] = 9.0
    return ys[0][0]


@pcbatch.autobatch
def taken_mulrows2(x):
    r = [x] * 3
    g = [r] * 3
    r[1] = 9.0
    return g[1][1]


@pcbatch.autobatch
def taken_append(x):
    q = [x]
    xs = []
    xs.append(q)
    q[0] = 9.0
    return xs[0][0]


@pcbatch.autobatch
def taken_setdefault2(x):
    d = {}
    q = [x]
    d.setdefault("a", q)
    q[0] = 9.0
    return d["a"][-1]


@pcbatch.autobatch
def taken_swap(x):
    a, b = [x], [2 * x]
    c = a
    a, b = b, a
    b[0] = 9.0
    return a[0] + c[0]


@pcbatch.autobatch
def taken_tuple(x):
    q = [x]
    t = (q, x)
    q[0] = 9.0
    return t[0][0]


@pcbatch.autobatch
def taken_iadd(x):
    q = [x]
    r = q
    q += [9.0]
    return r[-1]


@pcbatch.autobatch
def taken_rows2(x):
    rows = [[x], [2 * x]]
    for row in rows:
        row[0] = 3.0
    return rows[0][-1]


@pcbatch.autobatch
def taken_default2(x):
    q = [x]

    def g(t, r=q):
        r[0] = r[0] + t
        return r[0]

    a = g(x)
    b = g(x)
    return a + b


@pcbatch.autobatch
def taken_default3(x):
    q = [x]

    def g(t, r=q):
        if t > 0:
            r[0] = r[0] + t
        return r[0]

    a = g(x)
    b = g(x)
    return a + b + q[0]


@pcbatch.autobatch
def taken_helper2(x):
    q = [x]
    xs = helper(q)
    q[0] = 9.0
    return xs[1][0]


@pcbatch.autobatch
def taken_call(x):
    q = [x]
    xs = both(q)
    q[0] = 9.0
    return xs[1][0]


@pcbatch.autobatch
def refused_callee_sets(x):
    q = [x, x]
    y = sets(q)
    return q[0] + y


@pcbatch.autobatch
def refused_callee_sets_rows(x):
    q = [x, x]
    m = [q, [x, x]]
    y = sets(q)
    return m[0][0] + y


@pcbatch.autobatch
def taken_ident(x):
    q = [x, x]
    r = ident(q)
    r[0] = 9.0
    return q[0]


@pcbatch.autobatch
def taken_ident2(x):
    q = [x, x]
    r = ident(q)
    q[0] = 9.0
    return r[0]


@pcbatch.autobatch
def taken_ctor_shares2(x):
    q = [x]
    a = S(q)
    q[0] = 9.0
    return a.log[0]


@pcbatch.autobatch
def taken_ctor_shares3(x):
    q = [x]
    a = S(q)
    a.log[0] = 9.0
    return q[0]


@pcbatch.autobatch
def taken_dc_shares2(x):
    q = [x]
    a, b = Owner(q), Owner(q)
    a.f[0] = 9.0
    return b.f[0]


@pcbatch.autobatch
def taken_replace_shares(x):
    a = Owner([x])
    b = dataclasses.replace(a)
    b.f[0] = 9.0
    return a.f[0]


@pcbatch.autobatch
def taken_dict_of_lists2(x):
    d = {"a": [x], "b": [x]}
    d["b"] = d["a"]
    d["a"][0] = 9.0
    return d["b"][0]


@pcbatch.autobatch
def taken_dict_get(x):
    d = {"a": [x], "b": [x]}
    q = d.get("a")
    q[0] = 9.0
    return d["a"][0]


@pcbatch.autobatch
def taken_update2(x):
    q = [x]
    d = {"a": [x]}
    d.update(b=q)
    q[0] = 9.0
    return d["b"][0]


@pcbatch.autobatch
def taken_pop2(x):
    q = [x]
    xs = [q, q]
    r = xs.pop()
    r[0] = 9.0
    return xs[0][0]


@pcbatch.autobatch
def taken_reversed(x):
    q = [x]
    xs = [q, [2 * x]]
    ys = list(reversed(xs))
    q[0] = 9.0
    return ys[1][0]


@pcbatch.autobatch
def taken_zip(x):
    p, q = [x], [2 * x]
    ys = list(zip([p, q], [q, p]))
    q[0] = 9.0
    return ys[0][1][0]


@pcbatch.autobatch
def taken_unpack_star(x):
    p, q = [x], [2 * x]
    xs = [p, q, p]
    a, *b = xs
    a[0] = 9.0
    return b[1][0]


@pcbatch.autobatch
def taken_ifexp(x):
    p, q = [x], [2 * x]
    r = p if x > 0 else q
    r[0] = 9.0
    return p[0] + q[0]


@pcbatch.autobatch
def taken_loop_alias(x, k):
    p, q = [x], [2 * x]
    i = 0
    while i < k:
        p = q
        i += 1
    p[0] = 9.0
    return q[0]


@pcbatch.autobatch
def taken_prev(x, k):
    prev = [0.0, 0.0]
    cur = [x, x]
    i = 0
    while i < k:
        prev = cur
        cur[0] = cur[0] + 1.0
        i += 1
    return prev[0] + cur[0]


@pcbatch.autobatch
def taken_history(x):
    cur = [x, x]
    hist = []
    for i in range(3):
        cur[0] += 1.0
        hist.append(cur)
    return hist[0][0]


@pcbatch.autobatch
def taken_post(x):
    o = Post([x])
    o.a.append(9.0)
    return o.b[-1]


@pcbatch.autobatch
def taken_post3(x):
    q = [x]
    o = Post(q)
    o.b[0] = 9.0
    return q[-1]


@pcbatch.autobatch
def refused_class_attr(x):
    a, b = C(x), C(x)
    a.shared[0] = 9.0
    return b.shared[0] + x


@pcbatch.autobatch
def taken_twin(x):
    o = T(x)
    o.a[0] = 9.0
    return o.b[0]


@pcbatch.autobatch
def taken_keeps2(x):
    q = [x]
    o = U(q)
    o.log[0][0] = 9.0
    return q[0]


@pcbatch.autobatch
def taken_method_keeps2(x):
    m = M()
    q = [x]
    m.add(q)
    m.touch()
    return q[0]


@pcbatch.autobatch
def taken_prop2(x):
    p = P(x)
    r = p.inner
    p.q[0] = 9.0
    return r[0]


@pcbatch.autobatch
def taken_star_args3(x):
    q = [x]
    return callee(q, q)


@pcbatch.autobatch
def taken_twice3(x):
    q = [x]
    xs = [q, q]
    return callee2(xs[0], xs[1])


@pcbatch.autobatch
def taken_twice4(x):
    q = [x]
    return callee3([q, q])


@pcbatch.autobatch
def refused_twice5(x):
    q = [x]
    xs = [q, [x]]
    y = callee3(xs)
    return q[0] + y


@pcbatch.autobatch
def refused_rec(x, k):
    return rec([x], k)


@pcbatch.autobatch
def taken_keep_call(x):
    o = Owner([x])
    q = [2 * x]
    o = keeps(o, q)
    q[0] = 9.0
    return o.f[0]


@pcbatch.autobatch
def taken_nested_ret2(x):
    q = [x]

    def g(t):
        if t > 0:
            return q
        return [t]

    r = g(x)
    r[0] = 9.0
    return q[0]


@pcbatch.autobatch
def taken_comp_filter(x):
    rows = [[x], [2 * x]]
    ys = [r for r in rows]
    ys[0][0] = 9.0
    return rows[0][0]


@pcbatch.autobatch
def taken_grid2(x, k):
    g = [[0.0] * 3 for _ in range(3)]
    g[k] = g[0]
    g[0][1] = x
    return g[0][1] + 10 * g[1][1] + 100 * g[2][1]


@pcbatch.autobatch
def taken_tuple_swap2(x):
    g = [[x], [2 * x]]
    a = g[0]
    g[0], g[1] = g[1], g[0]
    g[1][0] = 9.0
    return a[0]


@pcbatch.autobatch
def refused_default_param(x):
    return dflt(x) + dflt(x)


@pcbatch.autobatch
def refused_bounded2(x):
    b = pcbatch.bounded([], tf.float32, 3)
    b.append(x)
    y = setb(b)
    return b[0] + y


@pcbatch.autobatch
def taken_super(x):
    o = Sub(x, 0.5)
    o.hist.append(x)
    return len(o.view) + x


@pcbatch.autobatch
def taken_if2(x):
    q = [[x], [2 * x]]
    o = If(q)
    o.last[0] = 9.0
    return q[1][0] + o.last[0]


@pcbatch.autobatch
def taken_unknown(x):
    q = [[x], [2 * x]]
    o = Unknown(q)
    o.n[0][0] = 9.0
    return q[0][0]


@pcbatch.autobatch
def refused_default_shared(x):
    b = DD(x)
    b.log.append(9.0)
    c = DD(x)
    return len(c.log) + x


@pcbatch.autobatch
def taken_turtle(x):
    t = Turtle(x, 0.0)
    t.pos[0] += 1.0
    return t.path[0][0]


@pcbatch.autobatch
def taken_deck2(x):
    c = [x, 2 * x]
    d = Deck(c)
    d.discard.append(x)
    d.cards[0] = 9.0
    return c[0]


@pcbatch.autobatch
def taken_grid_copy2(x):
    g = [[x] * 2 for _ in range(2)]
    h = g[:]
    h[0][0] = 9.0
    return g[0][0] + h[0][0]


@pcbatch.autobatch
def taken_ok_field(x):
    o = Owner([[x, x], [x, x]])
    p = [x + 1.0, x]
    p[0] = 9.0
    o.f[0] = p
    return o.f[0][0]


@pcbatch.autobatch
def taken_ok_field2(x):
    o = Owner([[x, x], [x, x]])
    p = [x + 1.0, x]
    o.f[0] = p
    return o.f[0][0] + p[1]


@pcbatch.autobatch
def taken_rebind(x):
    o = Owner([[x, x], [x, x]])
    p = [x + 1.0, x]
    o.f[0] = p
    p = [x, 2 * x]
    p[0] = 9.0
    return o.f[0][0] + p[0]


@pcbatch.autobatch
def taken_slice_ok(x):
    xs = [x, 2 * x]
    ys = xs[:]
    ys[0] = 9.0
    return xs[0] + ys[0]


@pcbatch.autobatch
def taken_swap_ok(x):
    a, b = [x], [2 * x]
    a, b = b, a
    b[0] = 9.0
    return a[0] + b[0]


@pcbatch.autobatch
def taken_log(x):
    a = A(x)
    for i in range(3):
        a.log.append(x)
    return a.log[2]


@pcbatch.autobatch
def taken_loop_carried(x, k):
    p, q = [x], [2 * x]
    for _ in range(3):
        p, q = q, p
        p[0] += 1.0
    return p[0] + 10 * q[0]


@pcbatch.autobatch
def taken_prev_ok(x, k):
    prev = [0.0, 0.0]
    cur = [x, x]
    i = 0
    while i < k:
        prev = cur
        cur = [cur[0] + 1.0, prev[1]]
        i += 1
    return prev[0] + cur[0]


@pcbatch.autobatch
def taken_dp(x, k):
    prev = [0.0, 0.0, 0.0]
    for i in range(3):
        cur = prev[:]
        for j in range(3):
            cur[j] = prev[j] + x * j
        prev = cur
    return prev[2]


@pcbatch.autobatch
def taken_history_ok(x):
    cur = [x, x]
    hist = []
    for i in range(3):
        cur[0] += 1.0
        hist.append(cur[:])
    return hist[0][0]


@pcbatch.autobatch
def taken_rec2(x, k):
    return rec2([x], k)[0]


@pcbatch.autobatch
def taken_tuple_swap(x):
    g = [[x], [2 * x]]
    g[0], g[1] = g[1], g[0]
    g[0][0] = 9.0
    return g[1][0]


@pcbatch.autobatch
def taken_comp_filter3(x):
    rows = [[x], [2 * x]]
    ys = [list(r) for r in rows]
    ys[0][0] = 9.0
    return rows[0][0] + ys[0][0]


@pcbatch.autobatch
def taken_grid(x, k):
    g = [[0.0] * 3 for _ in range(3)]
    g[k][1] = x
    return g[0][1] + g[1][1] + g[2][1]


@pcbatch.autobatch
def taken_arr_row2(v):
    m = [v, v + 1.0]
    m[0][0] = 9.0
    return m[1][0] + m[0][0]


@pcbatch.autobatch
def taken_super_ok(x):
    o = Sub2(x, 0.5)
    o.hist.append(x)
    o.hist[0] = 2 * x
    return len(o.hist) + x + o.money + o.hist[0]


@pcbatch.autobatch
def taken_turtle_ok(x):
    t = Turtle(x, 0.0)
    t.pos = [x + 1.0, x]
    t.path.append(t.pos)
    return t.path[0][0] + t.path[1][0]


@pcbatch.autobatch
def taken_deck(x):
    d = Deck([x, 2 * x])
    d.discard.append(d.cards.pop())
    return d.discard[0] + d.n + len(d.cards)


@pcbatch.autobatch
def taken_nested_objs(x):
    a = [Deck([x]), Deck([2 * x])]
    for d in a:
        d.discard.append(x)
    a[0].cards[0] = 3.0
    return a[0].cards[0] + a[1].cards[0] + len(a[0].discard)


@pcbatch.autobatch
def taken_grid_copy(x):
    g = [[x] * 2 for _ in range(2)]
    h = [row[:] for row in g]
    h[0][0] = 9.0
    return g[0][0] + h[0][0]


@pcbatch.autobatch
def taken_grid_copy4(x):
    g = [[x, x], [x, 2 * x]]
    h = [[*row] for row in g]
    k = [list(row) for row in g]
    m = [row.copy() for row in g]
    h[0][0] = 9.0
    k[0][0] = 8.0
    m[1][0] = 7.0
    return g[0][0] + h[0][0] + k[0][0] + m[1][0]


class Moving:
    def __init__(self, place):
        self.place = place

    def ahead(self, by):
        return self.place + by


def place_ahead(moving, by):
    return moving.place + by


@pcbatch.autobatch
def taken_method_shared(x):
    m = Moving(x)
    g = m.ahead
    m.place = 9.0
    return g(1.0)


@pcbatch.autobatch
def taken_method_of_partial(x):
    m = Moving(x)
    g = functools.partial(m.ahead, 1.0)
    m.place = 9.0
    return g()


@pcbatch.autobatch
def taken_partial(x):
    m = Moving(x)
    g = functools.partial(place_ahead, m)
    m.place = 9.0
    return g(1.0)


@pcbatch.autobatch
def taken_method_of_dict(x):
    d = {"a": x}
    g = d.get
    d["a"] = 9.0
    return g("a")


@pcbatch.autobatch
def taken_values_shared(x):
    d = {"a": x}
    v = d.values()
    d["a"] = 9.0
    return sum(v)


@pcbatch.autobatch
def taken_keys(x):
    d = {"a": x}
    v = d.keys()
    d["b"] = 9.0
    return x * len(v)


@pcbatch.autobatch
def taken_method(x):
    m = Moving(x)
    g = m.ahead
    y = g(1.0)
    m.place = 9.0
    return y + m.place


@pcbatch.autobatch
def taken_values(x):
    d = {"a": x, "b": 2.0}
    total = sum(d.values())
    for k, v in d.items():
        d[k] = v + total
    kept = list(d.values())
    d["a"] = 9.0
    return kept[0] + d["a"] + d["b"]


@pcbatch.autobatch
def taken_live_list_in_a_loop(x):
    xs = [x, 2 * x, 3 * x]
    t = 0.0
    for y in xs:
        xs[1] = 9.0
        t = t + y
    return t


@pcbatch.autobatch
def taken_live_list_that_grows(x):
    xs = [x, 2 * x]
    t = 0.0
    for y in xs:
        if len(xs) < 4:
            xs.append(y + 1)
        t = t + y
    return t


@pcbatch.autobatch
def taken_live_items_in_a_loop(x):
    d = {"a": x, "b": 2 * x}
    t = 0.0
    for k, v in d.items():
        d["b"] = 7.0
        t = t + v
    return t


@pcbatch.autobatch
def taken_live_values_in_a_loop(x):
    d = {"a": x, "b": 2 * x}
    t = 0.0
    for v in d.values():
        d["b"] = 7.0
        t = t + v
    return t


@pcbatch.autobatch
def taken_live_items_view(x):
    d = {"a": x}
    v = d.items()
    d["b"] = 9.0
    t = 0.0
    for k, w in v:
        t = t + w
    return t + len(v)


@pcbatch.autobatch
def taken_live_enumerated(x):
    xs = [x, 2 * x, 3 * x]
    t = 0.0
    for i, y in enumerate(xs):
        xs[2] = i * 1.0
        t = t * 2 + y
    return t


@pcbatch.autobatch
def taken_live_zipped(x):
    xs = [x, 2 * x, 3 * x]
    t = 0.0
    for i, y in zip([0, 1, 2], xs):
        xs[2] = i * 1.0
        t = t * 2 + y
    return t


@pcbatch.autobatch
def taken_live_rows(x, v):
    t = 0.0
    for y in v:
        v[1] = 9.0
        t = t + y
    return t


@pcbatch.autobatch
def taken_live_list_by_lane(x, k):
    xs = [x, 2 * x, 3 * x]
    t = 0.0
    for y in xs:
        if k > 1:
            xs[2] = 5.0
        t = t + y
    return t


@pcbatch.autobatch
def taken_live_reversed_list(x):
    xs = [x, 2 * x, 3 * x]
    t = 0.0
    for y in reversed(xs):
        xs[0] = 5.0
        t = t + y
    return t


@pcbatch.autobatch
def taken_live_zip_of_an_array(x, k, v):
    t = 0.0
    for i, (y, z) in enumerate(zip(v, [x, 2 * x, 3 * x])):
        v[1] = 1.0
        t = t + i * y + z
    return t


@pcbatch.autobatch
def taken_live_zip_by_lane(x, k):
    t = 0.0
    for i, y in zip(range(k), [x, 2 * x, 3 * x]):
        t = t + i * y
    return t


@pcbatch.autobatch
def taken_live_generators_of_their_time(x, v, k):
    g = (q * 2 for q in [x, 1.0])
    xs = [3.0]
    h = (q + x for q in xs)
    xs = [4.0]
    return sum(g) + sum(h)


@pcbatch.autobatch
def refused_spent_zip(x):
    xs = [x, 2 * x, 3 * x]
    t = 0.0
    it = zip(xs, xs)
    for a, b in it:
        t = t + a
    for a, b in it:
        t = t + a
    return t


@pcbatch.autobatch
def refused_spent_map(x):
    xs = [x, 2 * x, 3 * x]
    it = map(lambda q: q + 1, xs)
    return sum(it) + sum(it)


@pcbatch.autobatch
def refused_spent_reversed(x):
    xs = [x, 2 * x, 3 * x]
    it = reversed(xs)
    return sum(it) + sum(it)


@pcbatch.autobatch
def refused_spent_generator(x):
    xs = [x, 2 * x, 3 * x]
    it = (q for q in xs)
    return sum(it) + sum(it)
