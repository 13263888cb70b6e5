import pcbatch


@pcbatch.autobatch
def f(xs, n):
    for xs[0] in xs:
        n += 1
    for n, *rest in xs:
        n += 1
    for i, x in enumerate(range()):
        n += i
    for i, x in zip(range(0, n, 0), xs):
        n += i
    for (i, x) in zip(xs, xs, strict=n):
        n += i
    for i, x in enumerate(*xs):
        n += i
    for x in zip():
        n += x
    for i, x in reversed(enumerate(xs)):
        n += i
    for (i, j) in range(n):
        n += i
    for i in range(0, n, 0):
        n += i
    for i in range(stop=n):
        n += i
    for i in range(*xs):
        n += i
    return n
