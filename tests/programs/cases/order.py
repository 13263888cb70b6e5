"""Order of evaluation: operands, arguments and targets, where one of them changes what another reads."""

from tests.programs.table import COUNTS, NUMBERS, A, Table, X

program = Table()


class O:
    def __init__(self, x):
        self.x, self.y = x, 1.0
        self.l = [x, 1.0]

    def set(self, v):
        self.x = v
        return v

    def setl(self, v):
        self.l[0] = v
        return v


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


@program(NUMBERS)
def ord_aug_attr(x):
    o = O(x)

    def bump(o, v):
        o.x = v
        return v

    o.x += bump(o, 10.0)
    return o.x


@program(NUMBERS)
def ord_plus(x):
    o = O(x)

    def bump(o, v):
        o.x = v
        return v

    return o.x + bump(o, 10.0)


@program(NUMBERS)
def ord_tuple(x):
    o = O(x)

    def bump(o, v):
        o.x = v
        return v

    return o.x, bump(o, 10.0), o.x


@program(NUMBERS)
def ord_cmp(x):
    o = O(x)

    def bump(o, v):
        o.x = v
        return v

    return o.x < bump(o, 2.0)


@program(NUMBERS)
def ord_call_args(x):
    o = O(x)

    def bump(o, v):
        o.x = v
        return v

    def two(a, b, c):
        return a + 10.0 * b + 100.0 * c

    return two(o.x, bump(o, 10.0), o.x)


@program(NUMBERS)
def ord_list(x):
    l = [x, 1.0]

    def bump(l, v):
        l[0] = v
        return v

    return l[0] + bump(l, 10.0) * 2.0


@program(NUMBERS)
def ord_list_aug(x):
    l = [x, 1.0]

    def bump(l, v):
        l[0] = v
        return v

    l[0] += bump(l, 10.0)
    return l[0]


@program(NUMBERS)
def ord_dict_aug(x):
    d = {"k": x}

    def bump(d, v):
        d["k"] = v
        return v

    d["k"] += bump(d, 10.0)
    return d["k"]


@program(NUMBERS)
def ord_method_aug(x):
    o = O(x)
    o.x += o.set(10.0)
    return o.x


@program(NUMBERS)
def ord_method_plus(x):
    o = O(x)
    return o.x + o.set(10.0) * 2.0 + o.x * 100.0


@program(NUMBERS)
def ord_method_list_aug(x):
    o = O(x)
    o.l[0] += o.setl(10.0)
    return o.l[0]


@program(NUMBERS)
def ord_method_name_aug(x):
    o = O(x)
    y = o.x
    y += o.set(10.0) + y
    return y


@program(A, X)
def ord_array_aug(a, x):
    g = Grid(a.copy())
    g.m[0] += g.setr(0, x)
    return g.m[0]


@program(A, X)
def ord_array_plus(a, x):
    g = Grid(a.copy())
    return g.m[0] + g.setr(0, x) + g.m[0] * 100.0


@program(A, X)
def ord_nested_array(a, x):
    b = a.copy()

    def put(v):
        return v + b[0]

    b[0] += put(x)
    return b[0]


@program(NUMBERS)
def ord_walrus(x):
    return x + (x := x * 2.0) + x


@program(NUMBERS)
def ord_walrus_aug(x):
    x += (x := 10.0)
    return x


@program(A, X)
def ord_walrus_index(a, x):
    i = 0
    a[i] += (i := 2) + x
    return a, i


@program(A, X)
def ord_walrus_index2(a, x):
    i = 0
    a[i] = (i := 2) + x
    return a, i


@program(A, X)
def ord_sub_store(a, x):
    i = 0
    a[i], i = x, 3
    i, a[i] = 1, x * 2.0
    return a, i


@program(COUNTS)
def ord_pop(n):
    l = [n, 2, 3]
    return l[0] * 100 + l.pop() * 10 + len(l)


@program(COUNTS)
def ord_pop_aug(n):
    l = [n, 2, 3]
    l[0] += l.pop()
    l[len(l) - 1] += l.pop(0)
    return l


@program(COUNTS)
def ord_pop_store(n):
    l = [n, 2, 3]
    l[l.pop() - 3] = l.pop()
    return l


@program(COUNTS)
def ord_dict_pop(n):
    d = {"a": n, "b": 2}
    d["c"] = d.pop("a") + len(d)
    d["b"] += d.pop("c")
    return d["b"], len(d)


@program(COUNTS)
def ord_kwargs(n):
    l = [1, n, 3]

    def f(a, b, c):
        return a * 100 + b * 10 + c

    return f(c=l.pop(), a=l.pop(), b=l.pop())


@program(COUNTS)
def ord_cond_expr(n):
    l = [1, n, 3]
    return l.pop() if l.pop() > 2 else l.pop(), len(l)


@program(COUNTS)
def ord_compare_chain(n):
    l = [5, n, 3]
    return l.pop() < l.pop() < l.pop()


@program(COUNTS)
def ord_fault_first(n):
    a = [1, 2, 3]
    return (10 // n) + a[n]
