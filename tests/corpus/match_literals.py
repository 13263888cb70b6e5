"""`match` on numbers: alternatives, signs, captures, guards that fall through; the subject is evaluated once."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def next_number(n):
    return n * 7 % 11 - 2


@pcbatch.autobatch
def match_literals(n, flag, x):
    total = 0
    while n < 40:
        match next_number(n):
            case 0:
                total += 1
            case 1 | 2 | 3:
                total += 10
                n += 1
                continue
            case -1 | -2 as negative if flag:
                total += negative
            case rest if rest > 6:
                total += rest * 100
                break
            case _:
                total -= 1
        n += 2
    match flag:
        case False:
            total *= 2
        case True if total < 0:
            total = -total
    match x:
        case 0.5:
            total += 1000
        case True:
            total = 0
    return total


def batch(rng, lanes):
    halves = rng.integers(0, 3, lanes).astype(np.float32) / 2
    return rng.integers(-3, 40, lanes, dtype=np.int32), rng.integers(0, 2, lanes).astype(bool), halves


def twin(n, flag, x):
    total = 0
    while n < 40:
        m = n * 7 % 11 - 2
        if m in (1, 2, 3):
            total += 10
            n += 1
            continue
        if m > 6:
            total += m * 100
            break
        if m == 0:
            total += 1
        elif m < 0 and flag:
            total += m
        else:
            total -= 1
        n += 2
    total = abs(total) if flag else 2 * total
    return total + 1000 * (x == 0.5)
