"""Statements whose answer depends on the order in which their parts are evaluated, since one part changes another."""

from __future__ import annotations

from collections.abc import Callable

from tests.programs.functions import Functions
from tests.programs.writer import NUMBER, ROW, Function, Variable

HELPERS = {
    "bump": "def bump(o, v):\n    o.x = v\n    return v\n",
    "put": "def put(a, i, v):\n    a[i] = v\n    return v\n",
    "three": "def three(u, v, w):\n    return u + 2.0 * v + 4.0 * w\n",
}
COMPARED = ("{} < {} < {}", "{} <= {} != {}", "{} > {} >= {}")


class Effects(Functions):
    """Writes them."""

    def help(self, name: str) -> str:
        """A helper with an effect, or one that takes several arguments; its name."""
        text = HELPERS[name]
        if not any(each == name for each, *_ in self.module.functions):
            self.module.functions.append((name, Function((), None), text))
        return name

    def pair_of(self) -> tuple[str, str]:
        """A number and an expression that changes it before it gives another one."""
        forms: list[Callable[[], tuple[str, str]]] = [self.of_attribute, self.of_element, self.of_method, self.of_list]
        return self.pick(forms)()

    def of_attribute(self) -> tuple[str, str]:
        """An attribute, and a helper that changes it."""
        point = self.an_object("Point")
        return f"{point}.x", f"{self.help('bump')}({point}, {self.number(0)})"

    def of_method(self) -> tuple[str, str]:
        """An attribute, and a method that changes it."""
        call, _ = self.call_of("Point", ("bump", "far", "twice"))
        holder, _, _ = call[: call.index("(")].rpartition(".")
        return f"{holder}.x", call

    def of_element(self) -> tuple[str, str]:
        """An element of an array, and a helper that changes it."""
        array, index = self.pick(self.leading_to(ROW) or [self.new(ROW, self.new_array((4,)))]), self.position(4)
        return f"{array}[{index}]", f"{self.help('put')}({array}, {index}, {self.number(0)})"

    def of_list(self) -> tuple[str, str]:
        """An element of a list, and a helper that changes it."""
        text, _ = self.a_list(NUMBER)
        return f"{text}[0]", f"{self.help('put')}({text}, 0, {self.number(0)})"

    def ordered(self) -> None:
        """One statement of these."""
        read, change = self.pair_of()
        target = self.pick(self.leading_to(NUMBER, storable=True) or [self.new(NUMBER, "1.0")])
        forms: list[Callable[[], object]] = [
            lambda: self.new(NUMBER, f"{read} + {change}"),
            lambda: self.new(NUMBER, f"{read} - {change} + {read}"),
            lambda: self.line(f"{read} += {change}"),
            lambda: self.line(f"{target} += {change} + {read}"),
            lambda: self.new(NUMBER, f"{self.help('three')}({read}, {change}, {read})"),
            lambda: self.new(NUMBER, f"{self.help('three')}(w={read}, u={change}, v={read})"),
            lambda: self.unpacked(f"{read}, {change}, {read}", 3),
            lambda: self.new(NUMBER, f"1.0 if {self.pick(COMPARED).format(read, change, read)} else 2.0"),
            lambda: self.new(NUMBER, f"{change} if {read} > {change} else {read}"),
            lambda: self.new(NUMBER, f"max({read}, {change})"),
            lambda: self.new(NUMBER, f"[{read}, {change}, {read}][0]"),
            lambda: self.new(NUMBER, f"{read} and {change} or {read}"),
            self.walrus,
            self.pops,
            self.indexed,
        ]
        self.pick(forms)()

    def unpacked(self, values: str, count: int) -> None:
        """A tuple taken apart."""
        names = [self.module.fresh("t") for _ in range(count)]
        self.line(f"{', '.join(names)} = {values}")
        self.scope += [Variable(name, NUMBER) for name in names]

    def walrus(self) -> None:
        """An assignment inside an expression that reads the name before and after it."""
        names = [text for text in self.leading_to(NUMBER, storable=True) if text.isidentifier()]
        if names:
            name = self.pick(names)
            forms = [f"{name} + ({name} := {self.number(0)}) + {name}", f"({name} := {name} + 1.0) - {name} * 0.5"]
            self.new(NUMBER, self.pick(forms))

    def pops(self) -> None:
        """Elements taken out of a list while it is read."""
        if self.lanes or self.inside:
            return
        text, list_ = self.a_list(NUMBER, changing=True)
        if list_.length > 2 and not list_.fixed:
            list_.length -= 1
            self.new(NUMBER, self.pick([f"{text}[0] + {text}.pop()", f"{text}.pop(0) - {text}[0] + len({text})"]))

    def indexed(self) -> None:
        """A place whose index is changed on the way, or that is read by what is stored into it."""
        array = self.pick(self.leading_to(ROW) or [self.new(ROW, self.new_array((4,)))])
        number = self.module.fresh("i")
        forms = [
            [f"{number} = 0", f"{array}[{number}] = ({number} := 2) + {self.number(0)}"],
            [f"{number} = 0", f"{array}[{number}] += ({number} := 2) + {self.number(0)}"],
            [f"{number} = 1", f"{number}, {array}[{number}] = 2, {self.number(0)}"],
            [f"{array}[1] += {self.help('put')}({array}, 1, {self.number(0)})"],
            [f"{array}[{self.position(4)}] = {array}[0] = {self.number(0)}"],
            [f"{array}[1:] = {array}[:-1]"],
            [f"{array}[:] = {array}[::-1]"],
        ]
        for line in self.pick(forms):
            self.line(line)
