import pcbatch


@pcbatch.autobatch
def f(xs, n):
    for x in xs:
        n += x
    for i, x in enumerate(xs):
        n += i
    for (i, j) in range(n):
        n += i
    for i in range(0, n, 0):
        n += i
    for i in range(stop=n):
        n += i
    return n
