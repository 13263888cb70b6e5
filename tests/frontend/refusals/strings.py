import pcbatch


@pcbatch.autobatch
def f(x, width):
    a = f"x is {x}"
    b = "x is %d" % x
    c = "x is {}".format(x)
    d = str(x) + repr(x)
    assert x > 0, f"x is {x:{width}}"
    return a, b, c, d
