import pcbatch

EXAMPLES = [(1, [4, 5]), (3, [0, 2]), (6, [1, 1])]


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y


class Counter:
    def __init__(self, start):
        self.count = start

    def add(self, more, times=1):
        self.count += more * times


@pcbatch.autobatch
def moved(p, by):
    p.x += by
    return p


@pcbatch.autobatch
def changes(n, pair):
    p = Point(n, 0)
    p.y = n * 2
    state = {"at": p, "seen": [n], "count": Counter(n)}
    state["at"].x += moved(Point(1, 1), n).x
    state["seen"].append(state["at"].x)
    state["count"].add(n, times=moved(Point(0, 0), 2).x)
    state["new"] = state["seen"].pop() + len(state["seen"])
    xs = [n, 2, 3]
    xs.append(xs.pop() * 10 + xs[0])
    xs[0], p2 = xs[1], Point(xs[2], 7)
    xs += [8]
    xs.insert(1, n)
    while n > 0 and xs.pop(0) < 100:
        xs.append(n)
        p2.x, p2.y = p2.y, p2.x
        n -= 1
    del xs[0], state["seen"]
    pair[0] += 1
    points = [p2, Point(0, 0)]
    points[-1].x = pair[0]
    last = xs.pop() if n > 1 else points.pop().x
    p2 = moved(points[0], 3)
    return xs, p2.x, p2.y, state["at"].x, state["at"].y, state["new"], state["count"].count, last, pair
