import pcbatch

EXAMPLES = [([3, 1, 2, 5], [[1, 2], [3, 4]], 1), ([1, 2, 3, 4], [[0, 0], [0, 9]], 0)]
TABLE = [10, 20, 30]


@pcbatch.autobatch
def weight(n):
    return n * n


@pcbatch.autobatch
def stores(xs, m, i):
    xs[i] = i
    xs[i + 1], xs[i] = xs[i], xs[i + 1]
    xs[0] += weight(i)
    xs[weight(1)] = xs[2] + weight(xs[0])
    m[i, 1 - i] = TABLE[i]
    m[i, i] *= 2
    i, xs[i] = 2, 7
    a = xs[3] = i - 1
    (xs[a], b), c = (4, 5), 6
    last = xs[-1]
    copy = list(xs)[:2]
    return xs, m, a, b, c, last, copy
