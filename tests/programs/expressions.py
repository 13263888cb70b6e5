"""Expressions of generated programs: numbers, conditions, and values of any type, new or shared. See `generator.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tests.programs.writer import KEYS, NUMBER, WHOLE, Array, Dict, Function, List, Object, Pair, Type, Writer

LITERALS = ("1.0", "2.0", "-1.0", "0.5", "3.0", "-2.5", "0.0")
VIEWS = {1: ("{}[:2]", "{}[1:]", "{}[::-1]", "{}[::2]", "{}[1:3]"), 2: ("{}[:2]", "{}[1:, :2]", "{}[::-1]")}
"""Slices, by the number of axes of the array."""
RARE = {
    1: (
        "{}[None]",
        "{}[:, None]",
        "{}.real",
        "{}[slice(0, 2)]",
        "{}.T",
        "{}[...]",
        "np.asarray({})",
        "np.ravel({})",
        "{}.ravel()",
        "{}.reshape(-1)",
        "np.flip({})",
        "np.expand_dims({}, 0)",
    ),
    2: ("{}.T", "{}.ravel()", "{}.reshape(-1)", "np.transpose({})", "{}.swapaxes(0, 1)", "{}[None][0]", "np.flip({})"),
}
"""Views that are no slices, in NumPy's many ways to write them; of what is not contiguous some are copies."""
SQUARE = ("{}.reshape(2, 2)", "np.reshape({}, (2, 2))", "{}.reshape((2, 2)).T")
"""Views of four elements as a matrix."""
ROWS = ("{}[0]", "{}[1]", "{}[-1]", "{}[k % 3]", "{}[:, 0]", "{}[:, 1]", "{}[0, 1:]")
"""Rows and columns of a matrix; `k` is an int of the lane."""


class Expressions(Writer):
    """Writes them."""

    # -- numbers -------------------------------------------------------------------------------------------------------

    def number(self, depth: int = 1) -> str:
        """A number, without effects."""
        names = self.leading_to(NUMBER)
        forms: list[tuple[str, Callable[[], str]]] = [("", lambda: self.pick(names or LITERALS))] * 3
        forms += [("", lambda: self.pick(LITERALS))]
        if self.arrays():
            forms += [("", self.element)] * 2
        if depth:
            operands = lambda: (self.number(depth - 1), self.number(depth - 1))  # noqa: E731
            forms += [
                ("", lambda: "{} + {}".format(*operands())),
                ("", lambda: "{} - ({})".format(*operands())),
                ("", lambda: "max({}, {})".format(*operands())),
                ("", lambda: f"({self.number(depth - 1)}) * 0.5"),
                ("", lambda: f"({self.number(depth - 1)} if {self.condition(0)} else {self.number(depth - 1)})"),
                ("", lambda: f"abs({self.number(depth - 1)})"),
            ]
            forms += [("comprehensions", form) for form in self.sums()]
        return self.either(forms)

    def sums(self) -> list[Callable[[], str]]:
        """Comprehensions and generators over lists, made into a number at once."""
        points = [place.text for place in self.lists() if place.type.of == Object("Point")]
        numbers = [place.text for place in self.lists() if place.type.of == NUMBER]
        pairs = self.leading_to(Object("Point"))
        forms: list[Callable[[], str]] = []
        if points:
            forms += [
                lambda: f"sum([o.x for o in {self.pick(points)}])",
                lambda: f"max(o.y + {self.number(0)} for o in {self.pick(points)})",
                lambda: f"sum(o.x for o in {self.pick(points)} if o.y > {self.number(0)})",
            ]
        if numbers:
            forms += [lambda: f"sum([v + {self.number(0)} for v in {self.pick(numbers)}])"]
        if pairs:
            forms += [lambda: f"sum([o.x for o in ({self.pick(pairs)}, {self.pick(pairs)})])"]
        return forms

    def element(self) -> str:
        """An element of an array."""
        array, shape = self.pick(self.arrays())
        return f"{array}[{self.index(shape)}]"

    def index(self, shape: tuple[int, ...]) -> str:
        """Indices of one element, within the bounds."""
        return ", ".join(map(self.position, shape))

    def position(self, length: int) -> str:
        """An index of one axis: a constant mostly, or an int of the lane."""
        wholes = self.leading_to(WHOLE)
        if wholes and self.chance(3):
            return f"{self.pick(wholes)} % {length}"
        return str(self.draw(0, length - 1)) if self.chance(8) else "-1"

    def condition(self, depth: int = 1) -> str:
        """A condition on values of the lane, without effects."""
        forms: list[tuple[str, Callable[[], str]]] = [
            ("", lambda: f"{self.pick(self.leading_to(NUMBER) or LITERALS)} > {self.pick(LITERALS)}"),
            ("", lambda: f"{self.number(0)} {self.pick(['<', '>=', '<='])} {self.number(0)}"),
        ]
        if wholes := self.leading_to(WHOLE):
            forms += [("", lambda: f"{self.pick(wholes)} {self.pick(['>', '==', '!='])} {self.draw(0, 2)}")]
        if depth:
            forms += [
                ("", lambda: f"not {self.condition(0)}"),
                ("", lambda: f"{self.condition(0)} and {self.condition(0)}"),
                ("", lambda: f"({self.condition(0)} or {self.condition(0)})"),
            ]
        if objects := self.leading_to(Object("Point")):
            forms += [("identity", lambda: f"{self.pick(objects)} is {self.pick(objects)}")]
        return self.either(forms)

    # -- values of any type --------------------------------------------------------------------------------------------

    def value(self, type_: Type, shared: bool) -> str:
        """A value of a type, without effects: one that something else leads to, too, if `shared` and there is one."""
        if type_ == NUMBER:
            return self.number()
        if type_ == WHOLE:
            return self.pick([*self.leading_to(WHOLE), "1"])
        found = self.leading_to(type_)
        if isinstance(type_, Array):
            found += [text for text, shape in self.views() if shape == type_.shape] if shared else []
        if isinstance(type_, Function):
            return self.pick(found)
        if found and shared and not self.chance(1):
            one = self.pick(found)
            if len(found) > 1 and self.has("branches") and self.chance(2):
                self.module.used.add("branches")
                return f"({one} if {self.condition(0)} else {self.pick(found)})"
            return one
        return self.made(type_)

    def made(self, type_: Type) -> str:
        """A new value of a type; what it holds may be shared."""
        match type_:
            case Array(shape):
                return self.new_array(shape)
            case Object(name):
                return self.new_object(name)
            case List(of, length):
                return f"[{', '.join(self.part(of) for _ in range(length))}]"
            case Dict(of):
                return "{" + ", ".join(f'"{key}": {self.part(of)}' for key in KEYS) + "}"
            case Pair(left, right):
                return f"Pair({self.part(left)}, {self.part(right)})"
        raise AssertionError(type_)

    def part(self, type_: Type) -> str:
        """What a container or an object is made of: a number, or what other names may lead to."""
        return self.number(0) if type_ == NUMBER else self.value(type_, shared=self.has("aliases") or self.chance(5))

    def new_array(self, shape: tuple[int, ...]) -> str:
        """A new array of a shape."""
        same = [text for text, other in self.arrays() if other == shape]
        forms = [f"np.zeros({shape}, np.float32)", f"np.full({shape}, {self.pick(LITERALS)}, np.float32)"]
        if same:
            one = self.pick(same)
            forms = [f"{one}.copy()", f"{one} + {self.number(0)}", f"{one} + {self.pick(same)}", f"{one} * 0.5", *forms]
        elif shape == (4,):
            forms = [f"np.array([{', '.join(self.number(0) for _ in range(4))}], np.float32)", *forms]
        return self.pick(forms)

    def new_object(self, name: str) -> str:
        """A new object of a class."""
        match name:
            case "Point" | "Spot":
                self.points(name)
                return f"{name}({self.number(0)}, {self.number(0)})"
            case "Link":
                self.points("Point")
                init = "def __init__(self, x, other):\n    self.x = x\n    self.other = other"
                self.member("Link", "__init__", init)
                return f"Link({self.number(0)}, {self.part(Object('Point'))})"
            case "Grid":
                self.member("Grid", "__init__", "def __init__(self, m):\n    self.m = m\n    self.n = 0.0")
                return f"Grid({self.array_for_object()})"
            case "Vec":
                self.member("Vec", "__init__", "def __init__(self, a):\n    self.a = a\n    self.n = 1.0")
                return f"Vec({self.array_for_object()})"
        raise AssertionError(name)

    def points(self, name: str) -> None:
        """The class of points, and its subclass if that is asked for."""
        self.member("Point", "__init__", "def __init__(self, x, y):\n    self.x = x\n    self.y = y")
        if name == "Spot":
            self.member("Spot(Point)", "__init__", "def __init__(self, x, y):\n    super().__init__(x, y + 1.0)")

    def array_for_object(self) -> str:
        """The array that an object begins with: a new one, or one that is shared."""
        row = Array((4,))
        return self.value(row, shared=True) if self.has("fields") and self.chance(6) else self.new_array(row.shape)

    # -- views ---------------------------------------------------------------------------------------------------------

    def views(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Views of the arrays in scope, of the kinds that may be used, with their shapes."""
        for array, shape in self.arrays():
            for _, form in self.view_forms(shape):
                yield form.format(array), shape_of_view(form, shape)

    def view_forms(self, shape: tuple[int, ...]) -> list[tuple[str, str]]:
        """The forms of views of an array of this shape, each with its kind."""
        axes = len(shape)
        if min(shape) < 2 or axes > 2:
            return []
        forms = [("views", form) for form in VIEWS[axes]] + [("rare views", form) for form in RARE[axes]]
        forms += [("rare views", form) for form in SQUARE] if shape == (4,) else []
        forms += [("rows", form) for form in ROWS if "k" not in form or self.leads_to_k()] if axes == 2 else []
        return [(kind, form) for kind, form in forms if self.has(kind)]

    def leads_to_k(self) -> bool:
        """Whether the lane's int `k` is in scope."""
        return any(variable.name == "k" for variable in self.scope)


def shape_of_view(form: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a view, by making one."""
    return eval(form.format("array"), {"np": np, "array": np.zeros(shape, np.float32), "k": 0}).shape
