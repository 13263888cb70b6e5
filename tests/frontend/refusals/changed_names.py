import copy

import pcbatch


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


ORIGIN = Point(0, 0)


@pcbatch.autobatch
def moved(p, by):
    p.x += by
    return p.x


@pcbatch.autobatch
def same(p):
    return p


@pcbatch.autobatch
def both(p, q):
    return moved(q, 1) + moved(p, 1)


@pcbatch.autobatch
def f(a, n):
    p = Point(a, n)
    q = p
    p.x = 1
    points = [q, Point(0, 1)]
    points[0].y += 2
    points.append(q)
    q.y = points.pop()
    state = {"at": p}
    p.x = state["at"].y
    for point in points:
        point.x = 0
    for point in points:
        points.append(point)
    home = ORIGIN
    home.x = n
    ORIGIN.y = n
    r = same(q)
    r.x = 3
    y = moved(q, n) + moved(points[0], n) + both(r, r)
    z = moved(copy.copy(q), n)
    return a, y, z, p, q, r, points, state
