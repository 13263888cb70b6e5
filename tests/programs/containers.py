"""Statements about lists, dicts and tuples that hold numbers, arrays and objects; choices among these; swaps."""

from __future__ import annotations

from collections.abc import Callable

from tests.programs.objects import Objects
from tests.programs.writer import KEYS, MATRIX, NUMBER, ROW, WHOLE, Array, Dict, List, Object, Pair, Type, Variable

HELD: tuple[Type, ...] = (NUMBER, Object("Point"), ROW)
"""What containers hold."""
IN_PAIRS: tuple[Type, ...] = (ROW, Object("Point"), Object("Grid"))
"""What named tuples hold besides a number."""
KEY = "key=lambda o: o.x"


class Containers(Objects):
    """Writes them."""

    # -- lists ---------------------------------------------------------------------------------------------------------

    def a_list(self, of: Type, changing: bool = False) -> tuple[str, List]:
        """A list of elements of a type: one in scope, or a new one; one whose length may change, if `changing`."""
        found = [place for place in self.lists(changing) if place.type.of == of]
        if found and not self.chance(2):
            place = self.pick(found)
            return place.text, place.type
        made = List(of, self.draw(2, 3))
        return self.new(made, self.made(made)), made

    def listed(self) -> None:
        """A list changes: an element, its order, its length; or it gets a second name."""
        of = self.pick(HELD)
        grows = not self.lanes and not self.inside and self.chance(5)
        text, list_ = self.a_list(of, changing=grows)
        forms: list[Callable[[], None]] = [
            lambda: self.element_set(text, list_),
            lambda: self.element_changed(text, list_),
        ]
        if of == NUMBER:
            forms += [lambda: self.nested(text, list_)]
        if self.may_rebind():
            forms += [
                lambda: self.line(f"{text}.reverse()"),
                lambda: self.named_again(text, list_),
                lambda: self.line(f"{text}[0], {text}[1] = {text}[1], {text}[0]"),
            ]
        if grows and not list_.fixed:
            forms += [lambda: self.resized(text, list_)] * 3
        self.pick(forms)()

    def element_set(self, text: str, list_: List) -> None:
        """Another element at a place, which may be one of the lane's."""
        if list_.of == NUMBER:
            place = self.position(list_.length)
        elif self.may_rebind():
            place = str(self.draw(0, list_.length - 1))
        else:
            return self.element_changed(text, list_)
        return self.line(f"{text}[{place}] = {self.part(list_.of)}")

    def element_changed(self, text: str, list_: List) -> None:
        """A change of what a list holds, which may have other names; the lane chooses the element, sometimes."""
        place = f"{text}[{self.position(list_.length)}]"
        match list_.of:
            case Object():
                self.line(f"{place}.x += {self.number(0)}")
            case Array(shape):
                self.line(f"{place}[{self.index(shape)}] = {self.number(0)}")
            case _:
                self.line(f"{place} += {self.number(0)}")

    def named_again(self, text: str, list_: List) -> None:
        """The same list or a copy of it, which holds the same, under another name."""
        if self.chance(6):
            self.new(list_, text)
            list_.fixed = list_.fixed or self.lanes > 0
        else:
            self.new(List(list_.of, list_.length), self.pick([f"{text}[:]", f"list({text})", f"{text}.copy()"]))

    def nested(self, text: str, list_: List) -> None:
        """A list that holds a list twice, or a copy of it, and a change of an element in it."""
        list_.fixed = True
        second = self.pick([text, f"{text}[:]"])
        name = self.new(List(list_, 2, fixed=True), f"[{text}, {second}]")
        self.line(f"{name}[{self.position(2)}][{self.draw(0, list_.length - 1)}] = {self.number(0)}")

    def resized(self, text: str, list_: List) -> None:
        """A list gets longer or shorter, in place."""
        forms = ["append", "insert", "extend", "grow"] if list_.length < 5 else []
        form = self.pick([*forms, *(["pop", "del", "first"] if list_.length > 2 else [])])
        one = "" if form in ("pop", "del", "first") else self.part(list_.of)
        number = self.module.fresh("i") if form == "grow" else ""
        lines = {
            "append": [f"{text}.append({one})"],
            "insert": [f"{text}.insert(0, {one})"],
            "extend": [f"{text} += [{one}]"],
            "grow": [f"for {number} in range(2):", f"    {text}.append({one})"],
            "del": [f"del {text}[{self.draw(0, list_.length - 1)}]"],
        }
        if form in ("pop", "first"):
            list_.length -= 1
            self.new(list_.of, f"{text}.pop({'0' if form == 'first' else ''})")
            return
        if form == "extend" and not text.isidentifier():
            lines["extend"] = lines["append"]
        for line in lines[form]:
            self.line(line)
        list_.length += {"grow": 2, "del": -1}.get(form, 1)

    # -- dicts and tuples ----------------------------------------------------------------------------------------------

    def dict_(self) -> None:
        """A dict with constant keys changes, or what it holds does."""
        of = self.pick(HELD)
        found = self.leading_to(Dict(of))
        text = self.pick(found) if found and not self.chance(2) else self.new(Dict(of), self.made(Dict(of)))
        place = f'{text}["{self.pick(KEYS)}"]'
        forms: list[Callable[[], object]] = []
        if of == NUMBER:
            forms += [
                lambda: self.line(f"{place} += {self.number()}"),
                lambda: self.new(NUMBER, f"sum({text}.values())"),
                lambda: self.line(f"{text}.update(p={self.number(0)})"),
            ]
        elif of == ROW:
            forms += [lambda: self.line(f"{place}[{self.position(4)}] = {self.number(0)}")]
        else:
            forms += [lambda: self.line(f"{place}.x += {self.number(0)}")]
        if self.may_rebind():
            forms += [
                lambda: self.line(f"{place} = {self.part(of)}"),
                lambda: self.new(Dict(of), self.pick([text, f"dict({text})", f"{text}.copy()"])),
                lambda: self.new(of, f'{text}.get("p")'),
            ]
        self.pick(forms)()

    def a_pair(self, right: Type) -> str:
        """A named tuple that holds a number and something else: one in scope, or a new one."""
        type_ = Pair(NUMBER, right)
        found = self.leading_to(type_)
        return self.pick(found) if found and not self.chance(2) else self.new(type_, self.made(type_))

    def tuple_(self) -> None:
        """A named tuple that holds an array or an object, which changes under one of its names."""
        right = self.pick(IN_PAIRS)
        pair = self.a_pair(right)
        if self.chance(3):
            self.new(Pair(NUMBER, right), f"{pair}._replace(left={self.number(0)})")
        self.touched(right)

    def unpack(self) -> None:
        """A tuple taken apart, and a change of what it holds."""
        right = self.pick(IN_PAIRS)
        number, other = self.module.fresh("u"), self.module.fresh("u")
        pair = self.a_pair(right) if self.chance(7) else f"{self.number(0)}, {self.value(right, shared=True)}"
        self.line(f"{number}, {other} = {pair}")
        self.scope += [Variable(number, NUMBER), Variable(other, right)]
        self.touched(right)

    # -- choices -------------------------------------------------------------------------------------------------------

    def choice(self) -> None:
        """The largest, the smallest or the sorted of objects or tuples, then a change of what was chosen."""
        point = Object("Point")
        if self.chance(4):
            listed, _ = self.a_list(point)
        else:
            listed = f"[{', '.join(self.two_points())}]"
        arrays = [self.pick(self.leading_to(ROW) or ["np.zeros(4, np.float32)"]) for _ in range(2)]
        forms: list[tuple[Type, str]] = [
            (point, f"max({listed}, {KEY})"),
            (point, f"min({listed}, {KEY})"),
            (point, f"sorted({listed}, {KEY})[0]"),
            (point, f"max((o.x, i, o) for i, o in enumerate({listed}))[2]"),
            (ROW, f"max(({self.number(0)}, 0, {arrays[0]}), ({self.number(0)}, 1, {arrays[1]}))[2]"),
            (ROW, f"min({arrays[0]}, {arrays[1]}, key=lambda c: c[0])"),
        ]
        type_, chosen = self.pick(forms)
        name = self.new(type_, chosen)
        self.line(f"{name}.x += {self.number(0)}" if type_ == point else f"{name}[1] = {self.number(0)}")

    def sorted_(self) -> None:
        """A list put in order by a key, and its first changed."""
        text, _ = self.a_list(Object("Point"))
        if self.may_rebind():
            self.line(f"{text}.sort({KEY})")
        self.line(f"{text}[0].x -= {self.number(0)}")

    # -- swaps ---------------------------------------------------------------------------------------------------------

    def swap(self) -> None:
        """Places change their values at once: attributes, elements, rows, names, elements that the lane chooses."""
        rows = [text for text, shape in self.arrays() if len(shape) == 1]
        wholes = self.leading_to(WHOLE)
        forms: list[Callable[[], None]] = []
        if rows:
            forms += [lambda: self.exchange(f"{self.pick(rows)}[0]", f"{self.pick(rows)}[1]")]
        if rows and wholes:
            place = lambda: f"{self.pick(rows)}[{self.pick(wholes)} % 2]"  # noqa: E731
            forms += [lambda: self.exchange(place(), f"{self.pick(rows)}[1]")]
        one, other = self.two_points()
        forms += [lambda: self.exchange(f"{one}.x", f"{other}.{self.pick(['x', 'y'])}")] * 2
        if self.may_rebind():
            for type_ in (Object("Point"), ROW):
                places = self.leading_to(type_, storable=True)
                if len(places) > 1:
                    forms += [lambda places=places: self.exchange(self.pick(places), self.pick(places))]
        self.pick(forms)()

    def swap_rows(self) -> None:
        """Rows or columns of a matrix exchanged: views, so that one value is there twice in the end."""
        matrix = self.pick(
            [text for text, shape in self.arrays() if shape == (3, 3)] or [self.new(MATRIX, self.made(MATRIX))]
        )
        one, other = self.pick([("0", "1"), ("2", "k % 3" if self.leads_to_k() else "0"), (":, 0", ":, 2")])
        self.exchange(f"{matrix}[{one}]", f"{matrix}[{other}]")

    def exchange(self, one: str, other: str) -> None:
        """An assignment of two places to each other."""
        self.line(f"{one}, {other} = {other}, {one}")
