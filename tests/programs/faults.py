"""Classes of silent wrong answers that once were, and for each of them a small program.

The generator has found these faults; `tests.smaller` and a pen made the programs small. All are called as
`main(n, k, x, y, a, b, m)`, like generated programs, and have Python's answers for the lanes of the generator.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A class of fault, a program that shows it, and Python's answers, one for each lane."""

    name: str
    source: str
    answers: tuple[float, ...]

    @property
    def module(self) -> str:
        """The program with its import."""
        return f"import numpy as np\n{self.source}"


FAULTS: tuple[Fault, ...] = (
    Fault(
        "a store by a method into an array that has another name",
        """
class Grid:
    def __init__(self, m):
        self.m = m

    def put(self, i, v):
        self.m[i] = v

def main(n, k, x, y, a, b, m):
    o = Grid(a)
    o.put(0, x)
    return a[0]
""",
        (2.25, -0.5, -1.5, 2.0, -1.5),
    ),
    Fault(
        "a view that a helper returns",
        """
def head(a):
    return a[:2]

def main(n, k, x, y, a, b, m):
    c = head(a)
    a[0] = x
    return c[0]
""",
        (2.25, -0.5, -1.5, 2.0, -1.5),
    ),
    Fault(
        "an argument that a helper returns",
        """
def same(a, v):
    return a if v > 0.0 else a

def main(n, k, x, y, a, b, m):
    c = same(a, x)
    c[0] = y
    return a[0]
""",
        (-0.5, 1.0, 0.25, -2.5, -3.0),
    ),
    Fault(
        "an object that a method exchanges for its argument",
        """
class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

class Link:
    def __init__(self, other):
        self.other = other

    def turn(self, point):
        self.other, point = point, self.other
        return point

def main(n, k, x, y, a, b, m):
    o = Link(Point(x, y))
    p = Point(y, x)
    q = o.turn(p)
    p.y = q.y
    return o.other.y
""",
        (-0.5, 1.0, 0.25, -2.5, -3.0),
    ),
    Fault(
        "a view by an attribute",
        """
def main(n, k, x, y, a, b, m):
    c = m.T
    m[0, 1] = x
    return c[1, 0]
""",
        (2.25, -0.5, -1.5, 2.0, -1.5),
    ),
    Fault(
        "a view by `None`",
        """
def main(n, k, x, y, a, b, m):
    c = a[None]
    a[0] = x
    return c[0, 0]
""",
        (2.25, -0.5, -1.5, 2.0, -1.5),
    ),
    Fault(
        "a view by a slice object",
        """
def main(n, k, x, y, a, b, m):
    c = a[slice(0, 2)]
    a[0] = x
    return c[0]
""",
        (2.25, -0.5, -1.5, 2.0, -1.5),
    ),
    Fault(
        "a view by a function of NumPy",
        """
def main(n, k, x, y, a, b, m):
    c = np.diag(m)
    m[1, 1] = x
    return c[1]
""",
        (2.25, -0.5, -1.5, 2.0, -1.5),
    ),
    Fault(
        "an operand that is read before a later one changes it",
        """
class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

def main(n, k, x, y, a, b, m):
    def bump(o, v):
        o.x = v
        return v

    o = Point(x, y)
    return o.x + bump(o, 10.0)
""",
        (12.25, 9.5, 8.5, 12.0, 8.5),
    ),
    Fault(
        "an argument that is read before a later one changes it",
        """
class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

def three(u, v, w):
    return u + 2.0 * v + 4.0 * w

def main(n, k, x, y, a, b, m):
    def bump(o, v):
        o.x = v
        return v

    o = Point(x, y)
    return three(o.x, bump(o, 10.0), o.x)
""",
        (62.25, 59.5, 58.5, 62.0, 58.5),
    ),
    Fault(
        "a tuple taken apart",
        """
import collections

Pair = collections.namedtuple("Pair", "left right")

class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

def main(n, k, x, y, a, b, m):
    r = Pair(x, Point(x, y))
    u, o = r
    r.right.x = y
    return o.x
""",
        (-0.5, 1.0, 0.25, -2.5, -3.0),
    ),
    Fault(
        "the text of an int of the lane",
        """
def width(n):
    return len(str(n))

def main(n, k, x, y, a, b, m):
    return width(n)
""",
        (1.0, 1.0, 1.0, 1.0, 1.0),
    ),
    Fault(
        "the type of an int of the lane",
        """
def whole(n):
    return 1.0 if isinstance(n, int) else 2.0

def main(n, k, x, y, a, b, m):
    return whole(n)
""",
        (1.0, 1.0, 1.0, 1.0, 1.0),
    ),
    Fault(
        "an array that `max` of tuples chooses",
        """
def main(n, k, x, y, a, b, m):
    c = max((x, 0, a), (y, 1, b))[2]
    c[1] = 9.0
    return a[1]
""",
        (9.0, -1.0, -1.25, 9.0, 9.0),
    ),
    Fault(
        "a change by a comparison whose result nobody reads",
        """
class Vec:
    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        self.n -= 1.0
        return self.n < other.n

def main(n, k, x, y, a, b, m):
    o = Vec(x)
    t = o < o
    return o.n
""",
        (1.25, -1.5, -2.5, 1.0, -2.5),
    ),
    Fault(
        "a property that changes its object",
        """
class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    @property
    def next(self):
        self.y += 1.0
        return self.y

def main(n, k, x, y, a, b, m):
    o = Point(x, y)
    t = o.next
    o.y = o.next
    return t
""",
        (0.5, 2.0, 1.25, -1.5, -2.0),
    ),
    Fault(
        "a row stored into",
        """
def main(n, k, x, y, a, b, m):
    c = m[1]
    m[1, 0] = x
    return c[0]
""",
        (2.25, -0.5, -1.5, 2.0, -1.5),
    ),
    Fault(
        "two rows exchanged, which are views",
        """
def main(n, k, x, y, a, b, m):
    m[0], m[1] = m[1], m[0]
    return m[1, 0]
""",
        (-2.5, -0.5, 1.0, 0.5, 2.0),
    ),
    Fault(
        "an array changed in place under two names",
        """
def main(n, k, x, y, a, b, m):
    c = a
    c += x
    return a[0]
""",
        (4.5, 1.5, -3.75, 5.0, 1.0),
    ),
    Fault(
        "another array under a name after a turn of a loop",
        """
def main(n, k, x, y, a, b, m):
    for i in range(n):
        b = a
    b[1] = x
    return a[1]
""",
        (1.5, -1.0, -1.5, 2.0, -1.5),
    ),
    Fault(
        "a new array under two names after a turn of a loop",
        """
def main(n, k, x, y, a, b, m):
    c = a
    for i in range(n):
        c = a * 2.0
        b = c
    b[1] = x
    return c[1]
""",
        (1.5, -1.0, -1.5, 2.0, -1.5),
    ),
    Fault(
        "a shallow copy of an array",
        """
import copy

def main(n, k, x, y, a, b, m):
    c = copy.copy(a)
    c[0] = x
    return a[0]
""",
        (2.25, 2.0, -2.25, 3.0, 2.5),
    ),
    Fault(
        "a deep copy of arrays in a list",
        """
import copy

def main(n, k, x, y, a, b, m):
    cs = copy.deepcopy([a, a])
    cs[0][0] = x
    return a[0] + 2.0 * cs[1][0]
""",
        (6.75, 1.0, -5.25, 7.0, -0.5),
    ),
    Fault(
        "objects in a second list, put there by a loop",
        """
class Point:
    def __init__(self, x):
        self.x = x

def main(n, k, x, y, a, b, m):
    points = [Point(x + i) for i in range(n)]
    high = [point for point in points if point.x > 0.0]
    for point in high:
        point.x = 0.0
    return sum([point.x for point in points])
""",
        (0.0, 0.0, -1.5, 0.0, -2.0),
    ),
    Fault(
        "a list whose length differs by lane beside a tuple",
        """
def main(n, k, x, y, a, b, m):
    xs = [i for i in range(n)]
    return 1.0 if xs == (0,) else 2.0
""",
        (2.0, 2.0, 2.0, 2.0, 2.0),
    ),
    Fault(
        "a view under a name on one path, of an array that the path stores into",
        """
def main(n, k, x, y, a, b, m):
    if x > 0.0:
        b = np.flip(a)
        b[1] += y
    b[1] = y
    return a[2]
""",
        (-0.5, -0.25, -2.25, -2.5, 0.0),
    ),
)
