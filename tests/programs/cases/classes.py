"""Classes with dunder methods, inheritance, properties, class attributes and defaults, mixed with lanes' lengths."""

# ruff: noqa: B006, B023, RUF012

import copy
import dataclasses

from tests.programs.table import COUNTS, NUMBERS, A, Table, X

program = Table()
LIMIT = 4.0


class Base:
    rate = 2.0
    seen = ()

    def __init__(self, x, parts=None):
        self.x = x
        self.parts = [] if parts is None else parts

    def step(self, v):
        self.parts.append(v)
        return self.weight() * v

    def weight(self):
        return self.rate

    @property
    def total(self):
        self.x += 1.0
        return sum(self.parts, self.x)

    @total.setter
    def total(self, v):
        self.parts.clear()
        self.parts.append(v - self.x)

    @classmethod
    def of(cls, *parts):
        return cls(0.0, list(parts))

    @staticmethod
    def twice(v):
        return 2.0 * v


class Mixin:
    def weight(self):
        return super().weight() + 1.0


class Derived(Mixin, Base):
    rate = 5.0

    def step(self, v):
        if v > LIMIT:
            return super().step(v)
        self.rate += 1.0
        return super().step(-v)


class Bag:
    def __init__(self, items=()):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        for each in self.items:
            yield each

    def __contains__(self, v):
        return v in self.items

    def __getitem__(self, i):
        return self.items[i]

    def __setitem__(self, i, v):
        self.items[i] = v

    def __delitem__(self, i):
        del self.items[i]

    def __iadd__(self, other):
        self.items += other.items if isinstance(other, Bag) else [other]
        return self

    def __add__(self, other):
        return Bag(self.items + list(other))

    def __radd__(self, other):
        return Bag([other, *self.items])

    def __eq__(self, other):
        return self.items == other.items

    def __lt__(self, other):
        return sum(self.items) < sum(other.items)

    __hash__ = None


class Bare:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n


@dataclasses.dataclass(order=True)
class Ranked:
    key: float
    name: float = dataclasses.field(default=0.0, compare=False)
    held: list = dataclasses.field(default_factory=list, compare=False)


@program(COUNTS, NUMBERS)
def cl_mro(n, x):
    one, other = Derived(x), Base(x)
    total = 0.0
    for i in range(n):
        total += one.step(float(i)) + other.step(x)
    return total, one.rate, other.rate, sum(one.parts), len(other.parts)


@program(COUNTS, NUMBERS)
def cl_property_aug(n, x):
    one = Base.of(1.0, x)
    i = 0
    while i < n:
        one.total += float(i)
        i += 2
    return one.total, one.x, len(one.parts)


@program(COUNTS, NUMBERS)
def cl_class_attribute(n, x):
    one, other = Base(x), Base(x)
    if n > 2:
        one.rate *= 3.0
    other.rate += one.rate
    return one.rate, other.rate, Base.rate, one.weight()


@program(COUNTS, NUMBERS)
def cl_shared_parts(n, x):
    parts = [x]
    one, other = Base(x, parts), Derived(x, parts)
    for i in range(n):
        (one if i % 2 else other).step(float(i + 3))
    return len(parts), sum(one.parts), parts is other.parts, parts[-1]


@program(COUNTS, NUMBERS)
def cl_bag_grows(n, x):
    bag = Bag()
    same = bag
    for i in range(n):
        bag += x + i
    return len(same), sum(bag), (x in same), 1 if bag else 0


@program(COUNTS, NUMBERS)
def cl_bag_operators(n, x):
    bag = Bag([x])
    for i in range(n):
        if i % 3 == 2:
            del bag[0]
        else:
            bag = (float(i) + bag) + [x]
        bag[-1] += 1.0
    return len(bag), sum(bag), bag[0], bag == Bag([x]), bag < Bag([50.0])


@program(COUNTS)
def cl_truth_by_len(n):
    bare = Bare(n)
    count = 0
    while bare:
        bare.n -= 2 if bare.n > 1 else 1
        count += 1
    return count, not bare, 3 if Bare(n - 1 if n else 0) else 4


@program(COUNTS, NUMBERS)
def cl_ordered_dataclasses(n, x):
    ranked = []
    for i in range(n):
        ranked.append(Ranked(float(i * 5 % 7), x))
    ranked.append(Ranked(2.5))
    ranked.sort()
    low = min(ranked)
    low.name += 1.0
    return ranked[0].name, ranked[-1].key, max(ranked).key, sorted(ranked, reverse=True)[0].key


@program(COUNTS, NUMBERS)
def cl_factories_are_apart(n, x):
    one, other = Ranked(x), Ranked(x)
    for _ in range(n):
        one.held.append(x)
    other.held.append(n)
    return len(one.held), len(other.held), one == other


def kept(v, log=[]):  # noqa: B006
    return v + len(log)


def counted(v, *rest, scale=2.0, **named):
    total = v * scale
    for each in rest:
        total += each
    for key in named:
        total += named[key] * (3.0 if key == "p" else 4.0)
    return total


@program(COUNTS, NUMBERS)
def cl_star_arguments(n, x):
    values = [x, 1.0, float(n)]
    named = {"p": x}
    named["q"] = float(n)
    first = counted(*values, **named)
    values.append(7.0)
    return first, counted(*values[1:], scale=x), counted(x, scale=0.5, **{**named, "p": 9.0}), kept(x)


@program(NUMBERS)
def cl_star_order(x):
    log = []

    def note(v):
        log.append(v)
        return v

    got = counted(note(x), *[note(1.0), note(2.0)], scale=note(3.0), **{"p": note(4.0)})
    return got, log[0], log[1], log[2], log[3], log[4]


@program(NUMBERS)
def cl_default_of_inner(x):
    held = [x]

    def add(v, into=held):
        into.append(v)
        return into

    add(1.0)
    held = [5.0]
    again = add(2.0)
    return len(again), sum(again), len(held), again[0]


@program(COUNTS, NUMBERS)
def cl_swap_methods(n, x):
    one, other = Base(x), Derived(x + 1.0)
    step = one.step
    one = other
    got = step(6.0)
    return got, len(one.parts), one.step(7.0), step.__self__.x if False else one.x


@program(A, X)
def cl_view_in_object(a, x):
    bag = Bag([a[:2], a[2:]])
    for part in bag:
        part[0] = x
    bag[0] += 1.0
    return a


@program(A, COUNTS[:3])
def cl_deepcopy(a, n):
    one = Base(1.0, [a, a])
    other, shallow = copy.deepcopy(one), copy.copy(one)
    other.parts[0][n] = 50.0
    shallow.parts[1][0] += 1.0
    shallow.parts.append(a)
    return a, other.parts[1], len(one.parts), other.parts[0] is other.parts[1]


class Node:
    def __init__(self, value, next=None):
        self.value = value
        self.next = next

    def __iter__(self):
        node = self
        while node is not None:
            yield node.value
            node = node.next


class Chain:
    def __init__(self):
        self.head = None
        self.size = 0

    def push(self, value):
        self.head = Node(value, self.head)
        self.size += 1

    def __bool__(self):
        return self.head is not None

    def pop(self):
        node = self.head
        self.head = node.next
        self.size -= 1
        return node.value


@program(NUMBERS)
def cl_chain(x):
    chain = Chain()
    for i in range(3):
        chain.push(x + i)
    first = chain.pop()
    chain.head.value *= 2.0
    return first, sum(chain.head), chain.size, 1.0 if chain else 0.0


@program(COUNTS, NUMBERS)
def cl_chain_by_lane(n, x):
    chain = Chain()
    if n > 0:
        chain.push(x)
    if n > 2:
        chain.push(x + 1.0)
    total = 0.0
    if chain:
        total += chain.pop()
    return total, chain.size, 1.0 if chain else 0.0


class Meter:
    def __init__(self, x):
        self._x = x
        self.reads = 0

    @property
    def x(self):
        self.reads += 1
        return self._x

    @x.setter
    def x(self, v):
        self._x = v if v > 0.0 else -v


@program(NUMBERS, COUNTS)
def cl_meter(x, n):
    meter = Meter(x)
    meter.x += 1.0
    meter.x = meter.x - 2.0 * meter.x
    low = 0.0 < meter.x < 3.0 < meter.x + n
    while meter.x < n:
        meter.x *= 2.0
        meter.x += 0.25
    return meter.reads, meter._x, low


class Money:
    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        return Money(self.v + (other.v if isinstance(other, Money) else other))

    __radd__ = __add__

    def __mul__(self, k):
        return Money(self.v * k)

    def __rmul__(self, k):
        return Money(self.v * k + 0.5)

    def __float__(self):
        return float(self.v)

    def __abs__(self):
        return Money(abs(self.v))

    def __le__(self, other):
        return self.v <= other.v

    def __pow__(self, k):
        return Money(self.v**k)

    def __divmod__(self, k):
        return self.v // k, self.v % k

    def __round__(self, n=0):
        return round(self.v)


@program(NUMBERS)
def cl_reflected(x):
    money = Money(x)
    total = sum([money, Money(1.0), money])
    low = 2.0 * money
    high = money * 2.0
    q, r = divmod(money, 2.0)
    return total.v, low.v, high.v, float(abs(money)), q, r, (money**2).v, round(money), money <= low <= high


@program(COUNTS, NUMBERS)
def cl_best_of_grown(n, x):
    bags = []
    for i in range(n):
        bags.append(Bag([x, float(i)]))
    bags.append(Bag([3.0]))
    best = max(bags, key=len)
    best[0] = 100.0
    return sum(sum(bag) for bag in bags), len(best), len(bags)


@program(COUNTS, NUMBERS)
def cl_vars(n, x):
    one = Base(x)
    setattr(one, "x", getattr(one, "x") * 2.0)  # noqa: B009, B010
    if hasattr(one, "y"):
        one.x = 0.0
    one.y = n
    return one.x, getattr(one, "z", 3.0), one.y, hasattr(one, "y")
