import pcbatch


@pcbatch.autobatch
def f(x):
    a = x + 2147483648
    b = -2147483648
    c = -2147483649
    return a, b, c, 2j, 0xFFFFFFFF
