import pcbatch


@pcbatch.autobatch
def f(x, xs, n):
    a = 2.0
    first = lambda q: a * q
    second = first
    a = 3.0
    pair = [(v * n for v in xs), a] if n > 0 else None
    for n in range(3):
        x = x + sum(pair[0])
    stored = lambda: xs[0]
    xs[0] = second(x)
    both, y = lambda: y, 2
    nested = lambda q: first(q) + (lambda: n)()
    while n > 0:
        n = n - 1
    fine = lambda q: q + n
    x = fine(x)
    n = n + 1
    kept = lambda q, n=n: q + n
    n = n + 1
    return stored() + both() + nested(x) + kept(x) + xs[1] + n + y
