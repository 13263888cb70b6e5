"""`match` on tuples of fixed length, written out or held in a variable, captures that swap names; on a constant."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32")
MODE = "fast"


@pcbatch.autobatch
def match_tuples(a, b):
    score = 0
    for i in range(6):
        match (a + i) % 3, (b + i) % 5:
            case 0, 0:
                score += 1000
            case 0, _:
                score += 100
            case ((1 | 2 as left), 0):
                score += 10 * left
            case left, right if left == right:
                score += right
            case _:
                pass
    match a, b:
        case b, a if b > a:
            score += b - a
    pair = (a, (b, a > 2))
    match pair:
        case [0, _]:
            a = -1
        case (x, (y, True)):
            a = x * y
    kept = 7
    match a % 2 == 0, (b, b > 1):
        case True, (kept, True):
            score += 10000
        case True | False, (_, False | None):
            score += 20000 + kept
    match MODE:
        case "slow":
            score = 0
        case "fast":
            score += 1
    return score, a


def batch(rng, lanes):
    return rng.integers(0, 5, lanes, dtype=np.int32), rng.integers(0, 5, lanes, dtype=np.int32)


def twin(a, b):
    score = 0
    for i in range(6):
        left, right = (a + i) % 3, (b + i) % 5
        if left == 0:
            score += 100 if right else 1000
        elif right == 0:
            score += 10 * left
        elif left == right:
            score += right
    first, second = a, b
    if first > second:
        a, b = second, first
        score += first - second
    elif True:
        a, b = second, first  # the captures are made before the guard
    result = -1 if a == 0 else (a * b if a > 2 else a)
    if b > 1:
        score += 10000 * (result % 2 == 0)
    else:
        score += 20007
    return score + 1, result
