import pcbatch

EXAMPLES = [(0, 1, True), (3, 2, False), (7, 7, True), (-1, 2, True), (12, 0, False), (5, 5, False)]
LIMIT = 12


class limits:
    HIGH = 12


@pcbatch.autobatch
def other(n):
    return n


@pcbatch.autobatch
def matching(a, b, flag):
    match a:
        case 0:
            return -1
        case 1 | 3 as odd if odd > b:
            a = odd * 10
        case -1:
            a = 1
        case limits.HIGH:
            a = LIMIT
        case large if large > 6:
            a = large
    match other(a), b:
        case [0, _] | [_, 0]:
            b = 100
        case (b, a):
            b -= a
    match flag:
        case True:
            a += 1000
        case False:
            a += 2000
    pair = ((a, flag), b)
    match pair:
        case ((0, _), _):
            return 0
        case ((x, True), y) if x != y:
            return x + y
        case (whole, None):
            return whole[0]
    match b:
        case None:
            return 1
        case _:
            return a - b
