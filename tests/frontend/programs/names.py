import pcbatch

EXAMPLES = [(1,), (4,)]
scale = 3
total = 1000


def abs(x):
    return -100 * x


@pcbatch.autobatch
def step(t0):
    return t0 - 1


@pcbatch.autobatch
def names(n):
    total = n  # shadows the global
    result = total * scale  # `result` and `t0` are taken
    t0 = step(n) + min(n, 2)
    bool = 2
    if n:
        result += abs(n)
    squares = [n * k for k in range(3)]
    twice = (lambda n: n * 2)(t0)
    return result + t0 + bool + squares[1] + twice + sum(k for k in (1, 2)) + len({k: k for k in (1, 2)})
