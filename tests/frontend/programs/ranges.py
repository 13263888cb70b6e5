import pcbatch

EXAMPLES = [(0, 1), (5, 2), (5, -2), (3, -1)]


@pcbatch.autobatch
def ranges(n, step):
    total = 0
    i = j = -1
    for i in range(3):
        total += i
    for i in range(1, n):
        total = total * 2 + i
        n = n + 1  # the range has been taken before
        i = 10 * i  # and does not look at its target
    for j in range(10, n, -3):
        if j % 2 == 0:
            continue
        total += j
    for k in range(0, n * step, step):
        total += k
        for j in range(k, k + 2):
            total += j
    xs = [1, 2, 3]
    for k in range(len(xs)):
        total += xs[k]
    return total, i, j
