"""A comprehension or a lambda calls a function and has a variable of the name of what that reads. In: reference, graph."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    f = lambda k: k * a + LIMIT
    g = lambda k: f(k) + b
    f2 = lambda g: g + f(a)
    t0 = sum([f(a) for a in (b, 2)]) + sum(g(b) for b, a in zip((n, 1), (a, 3)))
    t0 += sum([sum([f(a) * LIMIT for a in (m, b)]) for b in (a, 1)]) + [f(LIMIT) for LIMIT in (a, n)][1]
    t0 += sum([f2(g) for g in (a, b)]) + apply(lambda a: f(a) + g(a), n) + max([1, 4], key=lambda a: -g(a))
    return t0 + (1 if any([f(a) > 30 for a in (b, m)]) else 0)
