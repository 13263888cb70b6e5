import pcbatch


@pcbatch.autobatch
def f(x):
    yield x
    y = yield from (x, x)
    return y
