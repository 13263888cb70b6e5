"""Branches and loops of generated programs, by the lane or of known length."""

from __future__ import annotations

from collections.abc import Callable

from tests.programs.effects import Effects
from tests.programs.writer import NUMBER, ROW, WHOLE, Object, Variable


class Control(Effects):
    """Writes them."""

    def branch(self, depth: int) -> None:
        """An `if` on the lane's values, which assigns names in one arm or in both, if that may be."""
        with self.block(f"if {self.condition()}:"):
            self.some(depth - 1)
        if self.chance(5):
            with self.block("else:"):
                self.some(depth - 1)

    def rebound(self) -> None:
        """Another object or array under a name, or at a place, in one arm; then a store through it."""
        type_ = self.pick([ROW, Object("Point"), ROW])
        if len(self.leading_to(type_)) < 2 or not self.leading_to(type_, storable=True):
            self.new(type_, self.pick(self.leading_to(type_)) if self.leading_to(type_) else self.made(type_))
        place = self.pick(self.leading_to(type_, storable=True))
        with self.block(f"if {self.condition()}:"):
            self.line(f"{place} = {self.value(type_, shared=True)}")
            if self.chance(4):
                self.touched(type_)
        if self.chance(4):
            with self.block("else:"):
                self.line(f"{place} = {self.value(type_, shared=True)}")
        if type_ == ROW:
            self.line(f"{place}[{self.position(4)}] = {self.number(0)}")
        else:
            self.line(f"{place}.x += {self.number(0)}")

    def loop(self, depth: int) -> None:
        """A loop as long as the lane says, with ways out of it."""
        forms: list[Callable[[], None]] = [lambda: self.counted(depth)]
        names = [text for text in self.leading_to(NUMBER, storable=True) if text.isidentifier()]
        if names:
            forms += [lambda: self.waiting(depth, self.pick(names))]
        self.pick(forms)()

    def counted(self, depth: int) -> None:
        """A `for` over a range of the lane's length."""
        wholes = self.leading_to(WHOLE)
        if not wholes:
            return
        counter = self.module.fresh("i")
        with self.block(f"for {counter} in range({self.pick(wholes)}):"):
            self.scope.append(Variable(counter, WHOLE))
            self.turn(depth)
        self.otherwise()

    def waiting(self, depth: int, name: str) -> None:
        """A `while` that counts by itself."""
        counter = self.module.fresh("i")
        self.line(f"{counter} = 0")
        with self.block(f"while {counter} < 3 and {name} {self.pick(['<', '>'])} {self.number(0)}:"):
            self.line(f"{counter} += 1")
            self.turn(depth)
        self.otherwise()

    def turn(self, depth: int) -> None:
        """The body of a loop."""
        self.loops += 1
        self.some(depth - 1)
        if self.chance(4):
            with self.block(f"if {self.condition()}:"):
                self.line(self.pick(["break", "continue"]))
            self.some(0)
        self.loops -= 1

    def otherwise(self) -> None:
        """The `else` of a loop, sometimes."""
        if self.chance(2):
            with self.block("else:"):
                self.some(0)

    def known(self, depth: int) -> None:
        """A loop whose length is known: over a constant range, over objects, over arrays or their elements."""
        point, name = Object("Point"), self.module.fresh("e")
        forms: list[tuple[str, list[Variable]]] = [
            (f"for {name} in range({self.draw(2, 3)}):", [Variable(name, WHOLE)]),
            (f"for {name} in ({', '.join(self.two_points())}):", [Variable(name, point)]),
        ]
        lists = [place.text for place in self.lists() if place.type.of == point]
        if lists:
            one, number = self.pick(lists), self.module.fresh("i")
            forms += [
                (f"for {name} in {one}:", [Variable(name, point)]),
                (f"for {number}, {name} in enumerate({one}):", [Variable(name, point), Variable(number, WHOLE)]),
            ]
        rows = self.leading_to(ROW)
        if rows:
            one, other = self.pick(rows), self.pick(rows)
            forms += [
                (f"for {name} in {one}:", [Variable(name, NUMBER)]),
                (f"for {name} in ({one}, {other}):", [Variable(name, ROW)]),
                (f"for {name} in {one}.reshape(2, 2):", [Variable(name, type(ROW)((2,)))]),
            ]
        head, names = self.pick(forms)
        with self.block(head):
            self.scope += names
            last = self.scope[-1] if len(names) == 1 else self.scope[-2]
            if last.type == point:
                self.line(f"{last.name}.x += {self.number(0)}")
            elif last.type == ROW:
                self.line(f"{last.name}[0] = {self.number(0)}")
            self.turn(depth)
        self.otherwise()

    def failing(self) -> None:
        """What fails in some lanes: an assertion, an index, a division."""
        forms = [
            lambda: f"assert {self.number(0)} > -6.0",
            lambda: (
                f"{self.pick(self.leading_to(ROW) or ['[1.0, 2.0]'])}[{self.pick(self.leading_to(WHOLE) or ['0'])} + 2]"
            ),
            lambda: f"assert 1 // ({self.pick(self.leading_to(WHOLE) or ['1'])} + {self.draw(-2, 1)}) < 5",
        ]
        form = self.pick(forms)()
        if form.startswith("assert"):
            return self.line(form)
        self.new(NUMBER, f"{form} + 0.5")
        return None

    def some(self, depth: int) -> None:
        """One or two statements."""
        for _ in range(self.draw(1, 2)):
            self.statement(depth)
