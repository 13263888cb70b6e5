import pcbatch


@pcbatch.autobatch
def f(x, y):
    if x > 0:
        return f(*y, x)
    return f(x, **y)
