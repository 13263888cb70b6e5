import pcbatch


STEP = 2


@pcbatch.autobatch
def g(a, b, /, c, d=1, *, e, h=STEP):
    return a


@pcbatch.autobatch
def f(x):
    one = g(x)
    two = g(x, x, x, e=1)
    three = g(x, x, x, x, x, e=1, h=1)
    four = g(x, x, x, c=x, e=1, z=1, a=1, h=1)
    return one + two + three + four
