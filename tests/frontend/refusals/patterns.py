import pcbatch


class Point:
    pass


@pcbatch.autobatch
def f(x, p):
    match x:
        case {"a": 1}:
            x = 1
        case Point(x=0):
            x = 2
        case [first, *rest]:
            x = first
        case (0, y) | (y, 0):
            x = y
        case p.limit:
            x = 4
        case 3000000000:
            x = 5
        case 1 + 2j:
            x = 6
        case _ if x is True:
            x = 7
    return x
