from dataclasses import dataclass

import pcbatch


@dataclass
class Box:
    rows: list


@pcbatch.autobatch
def f(x, n):
    p = [x, x]
    ys = [[[x, x], [n, x]]]
    d = {"k": [x, x]}
    xs = [[x, x], [n, x]]
    xs[0] = p
    p[0] = 9.0
    q = [x, x]
    xs[0], xs[1] = q, q
    q[0] = 8.0
    r = [x, x]
    ys[0][1] = r
    r[0] += 7.0
    s = [x, x]
    box = Box(s)
    s[1] = 6.0
    u = [x, x]
    d["k"] = u
    u[0] = 5.0
    return xs[0][0], ys[0][1][0], box.rows[1], d["k"][0]
