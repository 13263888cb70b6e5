"""Names that are changed late, loops over what is made, functions that are chosen."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def g(x):
    return x + 1


@pcbatch.autobatch
def h1(x):
    xs = [x, x]
    for xs[0] in (1.0, 2.0):
        x += xs[0]
    return xs[0] + x


@pcbatch.autobatch
def h2(x):
    xs = np.stack([x, x + 1, x + 2])
    t = x * 0
    for n, *rest in [(1, 2, 3), (4, 5, 6)]:
        t += n + rest[1]
    return t


@pcbatch.autobatch
def h5(x):
    for i, y in zip([1, 2], [3, 4], strict=True):
        x += i
    return x


@pcbatch.autobatch
def h6(x):
    for i, y in enumerate(*[[1.0, 2.0]]):
        x += i * y
    return x


@pcbatch.autobatch
def h7(x):
    for y in zip():
        x += 1
    return x


@pcbatch.autobatch
def h11(x):
    for i in range(*[1, 3]):
        x += i
    return x


@pcbatch.autobatch
def h12(x):
    n = int(x)
    for i in reversed(range(n)):
        x = x * 2 + i
    return x


@pcbatch.autobatch
def h16(x):
    for c in "abc":
        x += 1
    return x


@pcbatch.autobatch
def k1(x):
    a = 2.0
    first = lambda q: a * q
    a = 3.0
    return first(x)


@pcbatch.autobatch
def k3(x):
    xs = [x, x]
    stored = lambda: xs[0]
    xs[0] = 9.0
    return stored()


@pcbatch.autobatch
def k4(x):
    both, y = lambda: y, 2
    return both() + x


@pcbatch.autobatch
def k5(x):
    kept = lambda q, x=x: q + x
    x = x + 1
    return kept(x)


@pcbatch.autobatch
def l2(x):
    m = np.stack([np.stack([x, x]), np.stack([x, x])])
    for row in (q := m):
        row[0] = 9.0
    return m


@pcbatch.autobatch
def l3(x):
    xs = np.stack([x, x])
    match (xs, x):
        case whole, _:
            whole[0] = 5.0
    return xs


@pcbatch.autobatch
def l4(x):
    xs = [x, x + 1]
    for i, y in enumerate(xs):
        xs[i] = y + x
    return xs


@pcbatch.autobatch
def q1(x):
    if x > 2:

        def sign(v):
            return v
    else:

        def sign(v):
            return -v

    return sign(x)


@pcbatch.autobatch
def q3(x):
    a = [x, x]

    def put(v):
        a[0] = v
        return v

    return put(9.0) + a[0]


@pcbatch.autobatch
def q4(x):
    def long(v):
        while v > 1.0:
            v = v / 2.0
        return v

    return sum(map(long, [x, x + 1]))


@pcbatch.autobatch
def q5(x):
    def empty(v):
        v = v + 1.0

    return empty(x) is None


@pcbatch.autobatch
def q7(x):
    flag = True
    if flag:

        def sign(v):
            return v
    else:

        def sign(v):
            return -v

    return sign(x)


@pcbatch.autobatch
def t1(x):
    h = g
    return h(x)


@pcbatch.autobatch
def t2(x):
    return max(map(g, (x, x)))


@pcbatch.autobatch
def t4(x):
    return (g if x > 2 else t1)(x)


X = [(np.float32(1.0),), (np.float32(4.0),)]
EXAMPLES = dict.fromkeys(
    [
        "h1",
        "h2",
        "h5",
        "h6",
        "h7",
        "h11",
        "h12",
        "h16",
        "k1",
        "k3",
        "k4",
        "k5",
        "l2",
        "l3",
        "l4",
        "q1",
        "q3",
        "q4",
        "q5",
        "q7",
        "t1",
        "t2",
        "t4",
    ],
    X,
)
