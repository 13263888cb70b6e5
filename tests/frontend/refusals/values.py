import pcbatch


@pcbatch.autobatch
def g(x):
    return x


@pcbatch.autobatch
def f(x):
    h = g
    y = max(map(g, (x, x)))
    z = g.single(x)
    return (g if x > 0 else f)(x) + y + z + h(x) + g(x, key=g)
