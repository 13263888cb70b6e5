import pcbatch

EXAMPLES = [([1, 2, 3], 4), ([5], -1), ([3, -3], 0)]
TABLE = (2, 7)


@pcbatch.autobatch
def sequences(xs, n):
    total = 0
    for x in xs:
        if x < 0:
            break
        for y in TABLE:
            total += x * y
    else:
        total += 100
    for i, (x, y) in enumerate(zip(xs, reversed(TABLE), strict=False), n + 1):
        total += i * x - y
    for a, [b, c] in ((1, (2, 3)), (4, (5, 6))):
        total += a * b + c
    for ys in [xs, TABLE]:
        xs = [ys[0]]
        total -= xs[0]
    for i in reversed(range(n)):
        n = total = total * 2 + i
    for i in reversed(range(1, n % 4)):
        total -= i
    for i, x in zip(range(n), xs, strict=False):
        total += i * x
    for i, j in enumerate(reversed(range(2, n, 3)), 1):
        total -= i * j
    return total
