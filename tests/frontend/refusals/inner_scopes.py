import pcbatch


@pcbatch.autobatch
def g(x):
    return x


@pcbatch.autobatch
def f(x):
    a = [g(x) for _ in range(3)]
    b = (lambda y: g(y))(x)
    d = {k: g(k) for k in range(2)}
    return a, b, d, sum(g(y) for y in (1, 2))
