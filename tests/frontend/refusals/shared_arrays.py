import pcbatch


@pcbatch.autobatch
def f(a, n):
    b = a
    a[0] = 1
    pair = (a, n)
    c, k = pair
    c[1] = 2
    for i in range(n):
        previous = c
        c[i] = i
        n = previous[i]
    row = c[0]
    row[1] = 3
    x = y = [1, 2]
    y[0] = k
    view = x[0:1]
    view[0] = 5
    either = x if n > 0 else c
    either[0] = 6
    return a, b, c, x, pair[0]
