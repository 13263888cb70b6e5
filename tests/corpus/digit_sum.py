"""int64 arguments beyond the range of int32; the weak zero takes their dtype."""

import pcbatch

DTYPES = ("int64",)


@pcbatch.autobatch
def digit_sum(n):
    total = 0
    while n > 0:
        total += n % 10
        n //= 10
    return total


def batch(rng, lanes):
    return (rng.integers(0, 10**13, lanes),)


def twin(n):
    return sum(int(digit) for digit in str(n))
