import pcbatch

EXAMPLES = [(4, 2), (1, 1), (3, 3)]
LIMIT = 2


@pcbatch.autobatch
def power(base, exponent=2, *, scale=-1):
    result = scale
    for _ in range(exponent):
        result = result * base
    return result


def helper(x):
    return x + 1


@pcbatch.autobatch
def calls(a, b):
    x = power(a, scale=b, exponent=helper(a))
    y = power(power(a, 1), LIMIT)
    z = a // b + power(b) * (a - 1)  # the division comes first, as in Python
    pair = (power(a), power(b))
    x, y = y + power(x), x
    if a > 2:
        return calls(a - 1, power(b, 0, scale=1))
    return x + y + z + pair[0] - pair[1]
