import pcbatch


class Model:
    @pcbatch.autobatch
    def step(self, state):
        self.count += 1
        self.seen["all"] = state
        del self.seen["all"]
        return state


@pcbatch.autobatch
def f(a, n, p, points):
    (a, n).x = 1
    a[0:1].x = n
    a[0:1][0] = n
    a[n, 0].x = n
    p.x, *others = a
    del a
    del p.x
    x = [points.pop() for _ in (1, 2)]
    f(a, n, p, points).append(n)
    return x
