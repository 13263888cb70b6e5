"""Statements about objects: methods that read and change them, array attributes, properties, operators, links."""

from __future__ import annotations

from tests.programs.expressions import Expressions, shape_of_view
from tests.programs.writer import MATRIX, NUMBER, ROW, Array, Object, Type

Method = tuple[str, str, Type | None]
"""The text of a method, the arguments of a call and the type of the result.

In arguments, `{v}` is a number, `{i}` an index, `{o}` an object of the class, `{p}` a point and `{a}` an array.
"""
POINT: dict[str, Method] = {
    "bump": ("def bump(self, v):\n    self.x += v\n    return v", "{v}", NUMBER),
    "move": ("def move(self, v):\n    self.x, self.y = self.y, v", "{v}", None),
    "take": (
        "def take(self, other, v):\n    other.x -= v\n    self.x += v\n    return self",
        "{o}, {v}",
        Object("Point"),
    ),
    "far": (
        "def far(self, v):\n    if self.x > v:\n        self.y = v\n        return self.x\n    return self.y",
        "{v}",
        NUMBER,
    ),
    "merged": ("def merged(self, other):\n    return Point(self.x + other.x, self.y)", "{o}", Object("Point")),
    "best": (
        "def best(self, other):\n    return self if self.x > other.x else other",
        "{o}",
        Object("Point"),
    ),
    "twice": ("def twice(self, v):\n    self.bump(v)\n    return self.bump(v) + self.x", "{v}", NUMBER),
}
GRID: dict[str, Method] = {
    "put": ("def put(self, i, v):\n    self.m[i] = v\n    self.n += 1.0", "{i}, {v}", None),
    "set": ("def set(self, i, v):\n    self.m[i] = v\n    return v", "{i}, {v}", NUMBER),
    "get": ("def get(self, i):\n    return self.m[i] + self.n", "{i}", NUMBER),
    "split": (
        "def split(self, v):\n    if v > 0.0:\n        self.m[0] = v\n    else:\n        self.m[1] = v",
        "{v}",
        None,
    ),
    "pour": ("def pour(self, other, v):\n    self.m[0] = v\n    return other.m[0]", "{o}, {v}", NUMBER),
    "give": ("def give(self):\n    return self.m", "", ROW),
    "keep": ("def keep(self, a):\n    self.m = a\n    return self", "{a}", Object("Grid")),
    "fill": ("def fill(self, v):\n    for i in range(4):\n        self.m[i] += v\n    self.n = v", "{v}", None),
    "tail": ("def tail(self):\n    return self.m[1:]", "", Array((3,))),
    "add": ("def add(self, v):\n    self.m += v", "{v}", None),
}
LINK: dict[str, Method] = {
    "push": ("def push(self, v):\n    self.other.x = v\n    self.x += v", "{v}", None),
    "end": ("def end(self):\n    return self.other", "", Object("Point")),
    "turn": (
        "def turn(self, point):\n    self.other, point = point, self.other\n    return point",
        "{p}",
        Object("Point"),
    ),
}
METHODS = {"Point": POINT, "Spot": POINT, "Grid": GRID, "Link": LINK}
SPOT = {
    "bump": "def bump(self, v):\n    self.y += v\n    return super().bump(v + 1.0)",
    "best": "def best(self, other):\n    return super().best(self)",
}
PROPERTIES = {
    "size": "@property\ndef size(self):\n    return self.x + self.y",
    "next": "@property\ndef next(self):\n    self.y += 1.0\n    return self.y",
    "rest": "@property\ndef rest(self):\n    return self.y - 1.0\n\n@rest.setter\ndef rest(self, v):\n    self.y = v",
}
OPERATORS: dict[str, tuple[str, str]] = {
    "__add__": ("return Vec(self.a + other.a)", "{s} + {o}"),
    "__iadd__": ("return Vec(self.a + other.a)", ""),
    "__getitem__": ("return self.a[other]", "{s}[{i}]"),
    "__setitem__": ("self.a[other] = value", "{s}[{i}] = {v}"),
    "__call__": ("return Vec(self.a * 0.5 + other)", "{s}({v})"),
    "__eq__": ("return self.a[0] == other.a[0]", "(1.0 if {s} == {o} else 2.0)"),
    "__lt__": ("return self.a[0] < other.a[0]", "(1.0 if {s} < {o} else 2.0)"),
    "__neg__": ("return Vec(-self.a)", "-{s}"),
}
"""The body of each operator, and an expression that uses it."""
CHANGING: dict[str, tuple[str, str]] = {
    "__add__": ("self.a = self.a + other.a\nreturn self", "{s} + {o}"),
    "__sub__": ("self.n += other.n\nreturn Vec(self.a)", "{s} - {o}"),
    "__iadd__": ("self.n += other.n\nreturn self", ""),
    "__isub__": ("self.a[0] -= other.a[1]\nreturn self", ""),
    "__getitem__": ("self.n += 1.0\nreturn self.a[other]", "{s}[{i}]"),
    "__setitem__": ("self.n += value\nself.a[other] = self.a[0]", "{s}[{i}] = {v}"),
    "__call__": ("self.a[0] = other\nreturn self", "{s}({v})"),
    "__eq__": ("self.n += 1.0\nreturn self.a[0] > other.a[0]", "(1.0 if {s} == {o} else 2.0)"),
    "__lt__": ("self.n -= 1.0\nreturn self.n < other.n", "(1.0 if {s} < {o} else 2.0)"),
    "__contains__": ("self.n = other\nreturn self.a[0] > other", "(1.0 if ({v}) in {s} else 2.0)"),
    "__pos__": ("return self", "+{s}"),
    "__neg__": ("self.a = -self.a\nreturn self", "-{s}"),
    "__matmul__": ("return self if self.n > other.n else other", "{s} @ {o}"),
}
"""The same of operators that change their object, or return it or another one."""
OF_VECTORS = ("__add__", "__sub__", "__call__", "__pos__", "__neg__", "__matmul__")
"""Those that give a vector; the others give a number."""


class Objects(Expressions):
    """Writes them."""

    def an_object(self, name: str) -> str:
        """An object of a class: one in scope, or a new one."""
        found = self.leading_to(Object(name))
        return self.pick(found) if found and not self.chance(2) else self.new(Object(name), self.new_object(name))

    def two_points(self) -> tuple[str, str]:
        """Two points, mostly different ones."""
        one = self.an_object("Point")
        others = [text for text in self.leading_to(Object("Point")) if text != one]
        return one, self.pick(others) if others else self.new(Object("Point"), self.new_object("Point"))

    def call_of(self, name: str, methods: tuple[str, ...] = ()) -> tuple[str, Type | None]:
        """A call of a method of an object, and the type of its result."""
        table = METHODS[name]
        which = self.pick([each for each in methods or table if (each not in ("add",) or self.has("array +="))])
        text, arguments, result = table[which]
        base = "Point" if name == "Spot" else name
        self.member(base, which, text)
        if which == "twice":
            self.member(base, "bump", table["bump"][0])
        if name == "Spot" and which in SPOT:
            self.member("Spot(Point)", which, SPOT[which])
        holder = self.an_object(name)
        return f"{holder}.{which}({self.filled(arguments, base)})", result

    def filled(self, arguments: str, name: str) -> str:
        """Arguments of a method of a class."""
        values = {
            "v": lambda: self.number(0),
            "i": lambda: self.position(4),
            "o": lambda: self.an_object(name),
            "p": lambda: self.an_object("Point"),
            "a": lambda: self.value(ROW, shared=True),
        }
        return arguments.format(**{key: make() for key, make in values.items() if f"{{{key}}}" in arguments})

    def keep(self, text: str, result: Type | None, dropped: bool = True) -> None:
        """A statement of an expression with effects: its result under a new name, stored, or `dropped`."""
        places = self.leading_to(result, storable=True) if result else []
        if not result or (dropped and self.chance(1)):
            self.line(text)
        elif places and (result == NUMBER or self.may_rebind()) and self.chance(4):
            self.line(f"{self.pick(places)} = {text}")
        else:
            self.new(result, text)

    def may_rebind(self) -> bool:
        """Whether a place may be given another object here."""
        return self.has("branches") if self.lanes else True

    # -- the kinds -----------------------------------------------------------------------------------------------------

    def attribute(self) -> None:
        """A store into an attribute, or a method of a point."""
        point = self.an_object("Point")
        if self.chance(5):
            return self.keep(*self.call_of("Point"))
        target = f"{point}.{self.pick(['x', 'y'])}"
        return self.line(f"{target} {self.pick(['=', '+=', '-='])} {self.number()}")

    def field(self) -> None:
        """A method of an object with an array, which others may have, too."""
        if not self.leading_to(Object("Grid")):
            self.an_object("Grid")
        self.keep(*self.call_of("Grid"))
        if self.chance(3):
            array, shape = self.pick(self.arrays())
            self.line(f"{array}[{self.index(shape)}] = {self.number(0)}")

    def link(self) -> None:
        """An object that leads to another one, which has other names."""
        holder = self.an_object("Link")
        if self.chance(6):
            return self.keep(*self.call_of("Link", ("push", "end", "turn") if self.has("methods") else ("push", "end")))
        if self.may_rebind() and self.chance(5):
            return self.line(f"{holder}.other = {self.value(Object('Point'), shared=True)}")
        return self.line(f"{holder}.other.{self.pick(['x', 'y'])} += {self.number(0)}")

    def inherited(self) -> None:
        """An object of a subclass, whose methods call those of its base."""
        self.an_object("Spot")
        self.keep(*self.call_of("Spot", ("bump", "twice", "best", "move")))

    def property_(self, name: str) -> None:
        """A property, read or set."""
        point = self.an_object("Point")
        self.member("Point", name, PROPERTIES[name])
        if name == "rest":
            return self.line(f"{point}.rest {self.pick(['=', '+='])} {self.number(0)}")
        return self.keep(f"{point}.{name} + {self.number(0)}", NUMBER)

    def operator(self, table: dict[str, tuple[str, str]]) -> None:
        """An operator of a class."""
        vector, name = self.an_object("Vec"), self.pick(list(table))
        body, use = table[name]
        others = {"__pos__": "", "__neg__": "", "__setitem__": ", other, value"}.get(name, ", other")
        lines = body.replace("\n", "\n    ")
        self.member("Vec", name, f"def {name}(self{others}):\n    {lines}")
        if name == "__eq__":
            self.member("Vec", "__hash__", "__hash__ = None")
        if not use:
            targets = self.leading_to(Object("Vec"), storable=True)
            if targets and self.may_rebind():
                self.line(f"{self.pick(targets)} {'+=' if name == '__iadd__' else '-='} {self.an_object('Vec')}")
            return
        other = self.an_object("Vec") if "{o}" in use else ""
        text = use.format(s=vector, o=other, v=self.number(0), i=self.position(4))
        result = Object("Vec") if name in OF_VECTORS else NUMBER
        self.keep(text, None if name == "__setitem__" else result, dropped=False)

    # -- arrays --------------------------------------------------------------------------------------------------------

    def aliased(self) -> None:
        """A second name, or a second place, of an array, a point or a list; then a store through one of them."""
        shared: Type = self.pick([ROW, ROW, MATRIX, Object("Point")])
        if not self.leading_to(shared):
            self.new(shared, self.made(shared))
        places = self.leading_to(shared, storable=True)
        if places and self.may_rebind() and self.chance(4):
            self.line(f"{self.pick(places)} = {self.pick(self.leading_to(shared))}")
        else:
            self.new(shared, self.pick(self.leading_to(shared)))
        self.touched(shared)

    def touched(self, type_: Type) -> None:
        """A store through one of the places of a type."""
        self.store(self.pick(self.leading_to(type_)), type_)

    def store(self, place: str, type_: Type) -> None:
        """A store through a place."""
        if isinstance(type_, Array):
            self.line(f"{place}[{self.index(type_.shape)}] {self.pick(['=', '+='])} {self.number(0)}")
        elif isinstance(type_, Object):
            attribute = "n" if type_.of in ("Grid", "Vec") else "x"
            self.line(f"{place}.{attribute} {self.pick(['=', '+='])} {self.number(0)}")

    def viewed(self, kind: str) -> None:
        """A view under a name of its own, and a store through it or through its array."""
        forms = [
            (array, shape, form)
            for array, shape in self.arrays()
            for each, form in self.view_forms(shape)
            if each == kind
        ]
        if not forms:
            return
        array, shape, form = self.pick(forms)
        part = Array(shape_of_view(form, shape))
        view = self.new(part, form.format(array))
        self.store(*self.pick([(view, part), (array, Array(shape))]))

    def added(self) -> None:
        """An array changed in place by an operator, under all its names."""
        fields = (".left", ".right")
        names = [each for each in self.arrays() if self.own(each[0]) or not each[0].isidentifier()]
        names = [(text, shape) for text, shape in names if not text.endswith(fields)]
        if not names:
            return
        array, shape = self.pick(names)
        if self.chance(4):
            self.new(Array(shape), array)
        others = [text for text, other in self.arrays() if other == shape]
        value = self.pick([self.number(0), self.pick(others), f"{self.pick(others)} * 0.5"])
        self.line(f"{array} {self.pick(['+=', '-='])} {value}")
