"""Functions that programs define: helpers of the module and functions inside, which give back views or what they got.

Their bodies are drawn like that of `main`, with their parameters in scope and, for functions inside, what is around.
"""

from __future__ import annotations

from dataclasses import replace

from tests.programs.containers import Containers
from tests.programs.writer import NUMBER, ROW, WHOLE, Array, Function, Object, Pair, Type, Variable

TAKEN: tuple[Type, ...] = (ROW, NUMBER, Object("Point"), Object("Grid"), ROW, WHOLE)
PART = Array((2,))
GIVEN: tuple[Type, ...] = (NUMBER, ROW, PART, PART, Object("Point"), Pair(NUMBER, ROW))
RECURSIVE = {
    "fill": (
        "def fill(a, i, v):\n    if i < 3:\n        a[i] = v\n        fill(a, i + 1, v + 1.0)\n",
        Function((ROW, WHOLE, NUMBER), None),
    ),
    "sink": (
        "def sink(a, i):\n    if i < 3 and a[i] > a[i + 1]:\n        a[i], a[i + 1] = a[i + 1], a[i]\n"
        "        return sink(a, i + 1)\n    return a[i]\n",
        Function((ROW, WHOLE), NUMBER),
    ),
    "spread": (
        "def spread(o, n):\n    if n > 0:\n        o.x += 1.0\n        spread(o, n - 1)\n        o.y += o.x\n"
        "    return o\n",
        Function((Object("Point"), WHOLE), Object("Point")),
    ),
}
"""Helpers that recurse and change what they were given."""
WORDS = {
    "width": ("def width(n):\n    return 1.0 * len(str(n))\n", Function((WHOLE,), NUMBER)),
    "whole": ("def whole(n):\n    return 1.0 if isinstance(n, int) else 2.0\n", Function((WHOLE,), NUMBER)),
    "known": ("def known(n):\n    return 1.0 if type(n) is int else 2.0\n", Function((WHOLE,), NUMBER)),
    "held": ('def held(o):\n    return o.x if hasattr(o, "x") else 2.0\n', Function((Object("Point"),), NUMBER)),
}
"""Helpers that look at how a value is represented."""


class Functions(Containers):
    """Writes them, and calls of them."""

    def helper(self) -> None:
        """A call of a helper of the module: one that is there, or a new one."""
        known = [(name, type_) for name, type_, _ in self.module.functions if name[1:].isdigit()]
        if self.inside or (known and self.chance(5)):
            if known and not self.inside:
                self.called(*self.pick(known))
            return
        self.called(*self.defined())

    def defined(self) -> tuple[str, Function]:
        """A new helper, with a drawn body."""
        name = self.module.fresh("f")
        writer = replace(self, scope=[], lines=[], indent=1, outside=0, lanes=0, loops=0, inside=1)
        function, parameters = writer.signature()
        writer.body(function)
        text = f"def {name}({', '.join(parameters)}):\n" + "\n".join(writer.lines) + "\n"
        self.module.functions.append((name, function, text))
        return name, function

    def method(self, name: str) -> None:
        """A call of a new method of a class, with a drawn body."""
        if self.inside:
            return
        self.an_object(name)
        method = self.module.fresh("do")
        writer = replace(self, scope=[Variable("self", Object(name))], lines=[], indent=1, outside=1, lanes=0, loops=0)
        writer.inside = 1
        function, parameters = writer.signature()
        writer.body(function)
        self.member(name, method, f"def {method}({', '.join(['self', *parameters])}):\n" + "\n".join(writer.lines))
        for _ in range(self.draw(1, 2)):
            self.called(f"{self.pick(self.leading_to(Object(name)))}.{method}", function)

    def signature(self) -> tuple[Function, list[str]]:
        """Drawn parameters, which come into scope, and the type of the result."""
        takes = [self.pick(TAKEN) for _ in range(self.draw(1, 3))]
        if not {"fields", "methods"} & self.kinds:
            takes = [ROW if each == Object("Grid") else each for each in takes]
        if not {"attributes", "methods", "aliases", "links"} & self.kinds:
            takes = [ROW if each == Object("Point") else each for each in takes]
        names = [self.module.fresh("p") for _ in takes]
        self.scope += map(Variable, names, takes)
        return Function(tuple(takes), self.pick([*GIVEN, *takes, None])), names

    def body(self, function: Function) -> None:
        """Statements, an early return sometimes, and a return of what may be a parameter or a view of one."""
        gives = function.gives
        for _ in range(self.draw(0, 2)):
            self.statement(1)
        if not self.lines and gives is None:
            self.plain()
        if gives is None:
            return
        if (self.has("returns") and self.chance(5)) or (self.has("branches") and self.chance(3)):
            with self.block(f"if {self.condition()}:"):
                self.line(f"return {self.given(gives)}")
        self.line(f"return {self.given(gives)}")

    def given(self, type_: Type) -> str:
        """What a function returns: what leads to it from around, or a view, rather than a new value."""
        if type_ == PART and self.leading_to(ROW) and not self.chance(1):
            return self.pick(["{}[:2]", "{}[2:]", "{}[1:3]"]).format(self.pick(self.leading_to(ROW)))
        return self.value(type_, shared=True)

    def called(self, name: str, function: Function) -> None:
        """A statement that calls a function, then a store that what it gave may show."""
        gives, arguments = function.gives, list(map(self.argument, function.takes))
        self.keep(f"{name}({', '.join(arguments)})", gives, dropped=False)
        if isinstance(gives, Array | Object) and self.leading_to(gives):
            places = [each for each in zip(arguments, function.takes, strict=True) if isinstance(each[1], type(gives))]
            self.store(*self.pick([(self.leading_to(gives)[-1], gives), *places]))

    def argument(self, type_: Type) -> str:
        """An argument of a call: what has a name rather than a new value."""
        if type_ == NUMBER:
            return self.number(0)
        return self.pick(self.leading_to(type_) or [self.value(type_, shared=True)])

    # -- functions inside ----------------------------------------------------------------------------------------------

    def closure(self) -> None:
        """A function inside, by `def` or as a lambda, and calls of it with a change of what it reads in between."""
        if self.inside:
            return
        name = self.module.fresh("g")
        function = self.lambda_(name) if self.chance(3) else self.inner(name)
        self.scope.append(Variable(name, function))
        self.called(name, function)
        if self.chance(6):
            self.plain()
            self.called(name, function)

    def lambda_(self, name: str) -> Function:
        """A lambda of one parameter."""
        type_: Type = self.pick([NUMBER, ROW])
        inner = replace(self, scope=[*self.scope, Variable("v", type_)], outside=len(self.scope), inside=1)
        gives: Type = self.pick([type_, NUMBER, ROW])
        self.line(f"{name} = lambda v: {inner.value(gives, shared=True)}")
        return Function((type_,), gives)

    def inner(self, name: str) -> Function:
        """A function by `def`, which may assign names from around and have one of them as a default."""
        before = list(self.scope)
        inner = replace(
            self, scope=list(before), lines=[], indent=self.indent + 1, outside=len(before), inside=1, loops=0
        )
        function, parameters = inner.signature()
        changed = [variable for variable in before[self.outside :] if variable.type in (NUMBER, ROW, Object("Point"))]
        if changed and self.chance(5):
            variable = self.pick(changed)
            inner.line(f"nonlocal {variable.name}")
            inner.outside -= 1
            inner.scope.remove(variable)
            inner.scope.insert(inner.outside, variable)
            new = inner.value(variable.type, shared=True)
            inner.line(f"{variable.name} = {new}" if not self.lanes or variable.type == NUMBER else "pass")
        arrays = [text for text in self.leading_to(ROW) if text.isidentifier()]
        default = f", w={self.pick(arrays)}" if arrays and self.chance(3) else ""
        if default:
            inner.scope.append(Variable("w", ROW))
        inner.body(function)
        self.line(f"def {name}({', '.join(parameters)}{default}):")
        self.lines += inner.lines
        return function

    def made_by_function(self) -> None:
        """A function that a helper makes, with a state of its own."""
        self.library(
            "counter",
            (
                "def counter(v):\n    def step(u):\n        nonlocal v\n        v += u\n        return v\n\n"
                "    return step\n"
            ),
            Function((NUMBER,), None),
        )
        name = self.module.fresh("g")
        self.line(f"{name} = counter({self.number(0)})")
        self.scope.append(Variable(name, Function((NUMBER,), NUMBER)))
        for _ in range(self.draw(1, 2)):
            self.keep(f"{name}({self.number(0)})", NUMBER)

    # -- fixed helpers -------------------------------------------------------------------------------------------------

    def library(self, name: str, text: str, function: Function) -> None:
        """A helper with a given text."""
        if not any(each == name for each, *_ in self.module.functions):
            self.module.functions.append((name, function, text))

    def fixed(self, table: dict[str, tuple[str, Function]]) -> None:
        """A call of one of the helpers of a table."""
        if self.inside:
            return
        name = self.pick(list(table))
        text, function = table[name]
        if Object("Point") in function.takes:
            self.points("Point")
        self.library(name, text, function)
        arguments = [self.starting(each) if each == WHOLE else self.argument(each) for each in function.takes]
        self.keep(f"{name}({', '.join(arguments)})", function.gives)

    def starting(self, type_: Type) -> str:
        """An int for a helper: a constant or one of the lane's, which is at most 3."""
        return self.pick(["0", "1", *self.leading_to(type_)])

    def recursion(self) -> None:
        """A helper that recurses and changes what it was given."""
        self.fixed(RECURSIVE)

    def representation(self) -> None:
        """A helper that looks at how a value is represented."""
        self.fixed(WORDS)

    # -- what the generator has ----------------------------------------------------------------------------------------

    def statement(self, depth: int) -> None:
        """Any statement."""
        raise NotImplementedError

    def plain(self) -> None:
        """One of the plainest statements."""
        raise NotImplementedError
