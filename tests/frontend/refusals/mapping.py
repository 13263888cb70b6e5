import pcbatch


@pcbatch.autobatch
def g(x):
    return x


@pcbatch.autobatch
def f(xs):
    some = pcbatch.map(g, xs, counts=2)
    return some, pcbatch.map(g)
