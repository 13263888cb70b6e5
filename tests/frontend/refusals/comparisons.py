import pcbatch


@pcbatch.autobatch
def f(x, xs):
    if x is None or x is True:
        return 0
    if x is not xs and x in xs:
        return 1
    return x not in xs
