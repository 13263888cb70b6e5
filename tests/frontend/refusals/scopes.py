import pcbatch


count = 0


@pcbatch.autobatch
def f(x):
    global count
    nonlocal_ = x
    count += 1
    del nonlocal_
    import math

    from math import sin

    return math.cos(x) + sin(x)
