"""Programs of one lane with objects, views, closures, helpers and containers, as source text; by kinds of constructs.

A program is a module in plain Python and NumPy, with an entry `main(n, k, x, y, a, b, m)`: two ints from 0 to 3, two
floats, two arrays of 4 and a matrix of 3 x 3, all float32. It returns everything that its names lead to, so that a
store that shows under a wrong name shows. It is judged by being called: see `judging.py`.

`KINDS` has the kinds of constructs, each of which can be left out. The first line of a program is a comment with the
kinds that it has.
"""

from __future__ import annotations

import linecache
import random
import textwrap
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.generator_names import Draw
from tests.programs.effects import HELPERS
from tests.programs.lengths import LIBRARY, Lengths
from tests.programs.objects import CHANGING, OPERATORS
from tests.programs.writer import MATRIX, NUMBER, ROW, WHOLE, Module, Object, Type, Variable

LANES = 5
PARAMETERS: tuple[tuple[str, Type], ...] = (
    ("n", WHOLE),
    ("k", WHOLE),
    ("x", NUMBER),
    ("y", NUMBER),
    ("a", ROW),
    ("b", ROW),
    ("m", MATRIX),
)
KINDS: dict[str, str] = {
    "attributes": "methods that read and change attributes of their object or of another one",
    "methods": "methods with any body, which return a view or an argument and change what they get",
    "dataclasses": "points that are objects of a dataclass",
    "properties": "properties that compute and set",
    "changing properties": "properties that change their object",
    "inheritance": "methods of a subclass that call those of its base",
    "fields": "arrays as attributes, stored into by methods and shared with other names",
    "links": "objects that lead to other objects",
    "operators": "operators of classes that return a new object or a number",
    "changing operators": "operators of classes that change their object, or return it or another one",
    "aliases": "second names and second places of arrays and objects",
    "branches": "another object or array under a name in one arm of an `if` on the lane's values",
    "helpers": "helpers that return a view, an argument or one of two, and change what they get",
    "recursion": "helpers that recurse and change what they were given",
    "returns": "early returns",
    "closures": "functions inside, lambdas, `nonlocal`, defaults, functions that helpers make",
    "representation": "helpers that look at how a value is represented",
    "views": "slices under names of their own, stored into, or their array",
    "rare views": "views by attributes, `None`, slice objects and functions of NumPy",
    "rows": "rows and columns of a matrix",
    "array +=": "arrays changed in place by an operator, under all their names",
    "order": "operands, arguments and targets of which one changes another",
    "swaps": "places that change their values at once",
    "lists": "lists of numbers, objects and arrays, which grow and have several names",
    "dicts": "dicts of numbers, objects and arrays",
    "tuples": "named tuples that hold arrays and objects",
    "unpacking": "tuples that are taken apart",
    "choices": "`max`, `min` and `sorted` of objects, arrays and tuples, and a change of what was chosen",
    "comprehensions": "comprehensions and generators over objects and lists",
    "identity": "`is` of objects",
    "loops": "loops as long as the lane says, with `break`, `continue` and `else`",
    "known loops": "loops of known length over objects, arrays and elements",
    "failures": "asserts, indices and divisions that fail some lanes",
    "grown lists": "lists whose length differs by lane, of numbers, tuples, arrays, lists and objects",
    "grown sets and dicts": "sets, dicts and deques whose length differs by lane",
    "None": "names that are None in some lanes",
    "generators": "generator functions, gone over and asked one by one",
    "copies": "shallow and deep copies of arrays, lists and objects",
    "keys": "objects and numbers by a key of the lane's",
    "turns": "another array or object under a name after each turn of a loop",
}
"""The kinds of constructs, and what each is. All programs have numbers, stores into arrays and branches besides."""
LENGTHS = (1, 2, 2, 3, 4, 5)
"""How many statements `main` has besides its blocks; a short program is refused for one reason only."""
WEIGHT = 3
"""How many times as often as a plain statement one of the kinds is drawn, when few kinds are used."""


class Program(Lengths):
    """Writes a whole program."""

    def plain(self) -> None:
        """A number assigned, or an element stored."""
        names = self.leading_to(NUMBER, storable=True)
        if names and (not self.arrays() or self.chance(5)):
            return self.line(f"{self.pick(names)} = {self.number()}")
        if not self.arrays():
            self.new(NUMBER, self.number())
            return None
        array, shape = self.pick(self.arrays())
        return self.line(f"{array}[{self.index(shape)}] {self.pick(['=', '+='])} {self.number()}")

    def statement(self, depth: int) -> None:
        """Any statement of the kinds that may be used."""
        kinds: dict[str, Callable[[], object]] = {
            "attributes": self.attribute,
            "methods": lambda: self.method(self.pick(["Point", "Grid"])),
            "dataclasses": self.data,
            "properties": lambda: self.property_(self.pick(["size", "rest"])),
            "changing properties": lambda: self.property_("next"),
            "inheritance": self.inherited,
            "fields": self.field,
            "links": self.link,
            "operators": lambda: self.operator(OPERATORS),
            "changing operators": lambda: self.operator(CHANGING),
            "aliases": self.aliased,
            "branches": self.rebound,
            "helpers": self.helper,
            "recursion": self.recursion,
            "representation": self.representation,
            "closures": self.pick([self.closure, self.closure, self.made_by_function]),
            "views": lambda: self.viewed("views"),
            "rare views": lambda: self.viewed("rare views"),
            "rows": self.pick([lambda: self.viewed("rows"), self.swap_rows]),
            "array +=": self.added,
            "order": self.ordered,
            "swaps": self.swap,
            "lists": self.listed,
            "dicts": self.dict_,
            "tuples": self.tuple_,
            "unpacking": self.unpack,
            "choices": self.pick([self.choice, self.choice, self.sorted_]),
            "comprehensions": self.comprehended,
            "identity": lambda: self.new(NUMBER, f"1.0 if {self.same_object()} else 2.0"),
            "failures": self.failing,
            **self.of_lengths(),
        }
        if depth:
            kinds |= {"loops": lambda: self.loop(depth), "known loops": lambda: self.known(depth)}
        chosen = [kind for kind in kinds if self.has(kind)]
        forms: list[tuple[str, Callable[[], object]]] = [("", self.plain)] * 2
        forms += [("", lambda: self.branch(depth))] if depth else []
        forms += [(kind, kinds[kind]) for kind in chosen] * (1 + WEIGHT * (len(chosen) < 4))
        self.either(forms)

    def data(self) -> None:
        """A point of a dataclass, made anew from another one sometimes."""
        self.module.dataclass = True
        point = self.an_object("Point")
        if self.chance(4):
            self.new(Object("Point"), f"dataclasses.replace({point}, x={self.number(0)})")
        self.attribute()

    def same_object(self) -> str:
        """A question whether two places have one object."""
        return f"{self.an_object('Point')} is {self.an_object('Point')}"

    def comprehended(self) -> None:
        """A comprehension over objects that makes a number, or a list of objects or views."""
        self.an_object("Point")
        forms = self.sums()
        rows = self.leading_to(ROW)
        if rows and self.chance(3):
            array = self.pick(rows)
            self.line(f"for c in [c[1:3] for c in ({array}, {self.pick(rows)})]:")
            self.line(f"    c[0] = {self.number(0)}")
            return
        if self.chance(3):
            text, _ = self.a_list(Object("Point"))
            self.member("Point", "bump", "def bump(self, v):\n    self.x += v\n    return v")
            self.new(NUMBER, f"sum([o.bump({self.number(0)}) for o in {text}])")
            return
        self.new(NUMBER, self.pick(forms)())

    def early(self) -> str:
        """What an early return of `main` gives: as many values as the last one."""
        return f"return a, b, m, {self.sum_of_numbers()}"

    def sum_of_numbers(self) -> str:
        """The numbers in scope, each with a weight of its own."""
        numbers = self.leading_to(NUMBER)[:8]
        return " + ".join(f"{1.0 + 2 * place} * {text}" for place, text in enumerate(numbers))

    def results(self) -> str:
        """Everything that the names in scope lead to."""
        return ", ".join([*self.leading_to(NUMBER)[:16], *[text for text, _ in self.arrays()][:12], *self.digests()])


@st.composite
def programs(draw: st.DrawFn, kinds: Iterable[str] = tuple(KINDS)) -> str:
    """Source of a program with constructs of these kinds, for hypothesis."""
    return program(lambda low, high: draw(st.integers(low, high)), kinds)


def program_of(seed: int, kinds: Iterable[str] = tuple(KINDS)) -> str:
    """Source of the program of this number with constructs of these kinds, the same one every time."""
    return program(random.Random(seed).randint, kinds)


def program(draw: Draw, kinds: Iterable[str]) -> str:
    """Source of a module with `main(n, k, x, y, a, b, m)`."""
    module = Module()
    writer = Program(draw, frozenset(kinds), module, [Variable(name, type_) for name, type_ in PARAMETERS])
    early = writer.has("returns") and writer.chance(5)
    for number in range(writer.pick(LENGTHS)):
        writer.statement(2)
        if early and number == 0:
            module.used.add("returns")
            with writer.block(f"if {writer.condition()}:"):
                writer.line(writer.early())
    writer.line(writer.early() if early else f"return {writer.results()}")
    methods = [text for members in module.members.values() for text in members.values()]
    own = [text for name, _, text in module.functions if name not in LIBRARY]
    written = "".join([*writer.lines, *methods, *own])
    for name in reversed(LIBRARY):
        if f"{name}(" in written:
            written += "".join(text for each, _, text in module.functions if each == name)
        else:
            module.functions = [each for each in module.functions if each[0] != name]
    drawn = "".join([*methods, *(text for name, _, text in module.functions if name not in HELPERS)])
    inside = [text for name, _, text in module.functions if name in HELPERS and f"{name}(" not in drawn]
    inside = inside if writer.chance(5) else []
    module.functions = [each for each in module.functions if each[2] not in inside]
    body = textwrap.indent("\n".join(inside), "    ") + "\n".join(writer.lines)
    return assembled(module, f"def main({', '.join(name for name, _ in PARAMETERS)}):\n{body}\n")


def assembled(module: Module, main: str) -> str:
    """The text of a module: what `main` needs, and a first line with its kinds."""
    parts = []
    for name, members in module.members.items():
        decorated = name == "Point" and module.dataclass
        first = "x: float\ny: float" if decorated else members["__init__"]
        texts = [first, *(text for member, text in members.items() if member != "__init__")]
        body = "\n\n".join(textwrap.indent(text, "    ") for text in texts)
        parts.append("@dataclasses.dataclass\n" * decorated + f"class {name}:\n{body}\n")
    text = "\n\n".join([*parts, *(text for _, _, text in module.functions), main])
    pair = 'Pair = collections.namedtuple("Pair", "left right")\n'
    imports = ["collections"] * ("Pair(" in text or "collections." in text)
    imports += ["copy"] * module.copies + ["dataclasses"] * module.dataclass
    head = "".join(f"import {name}\n" for name in imports) + "\n" * bool(imports) + "import numpy as np\n"
    return "\n\n".join([f"# {', '.join(sorted(module.used)) or 'plain'}\n{head}", *[pair] * ("Pair(" in text), text])


def kinds_of(source: str) -> list[str]:
    """The kinds of constructs that a program has, by its first line."""
    return source.partition("\n")[0].removeprefix("# ").split(", ")


# -- how a program is called -------------------------------------------------------------------------------------------


def function_of(source: str) -> Callable[..., Any]:
    """The entry of a program, whose source `inspect` finds."""
    file = f"<generated {zlib.crc32(source.encode()):08x}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": "generated"}
    exec(compile(source, file, "exec", dont_inherit=True), namespace)
    return namespace["main"]


def arguments() -> tuple[np.ndarray, ...]:
    """Arguments of LANES lanes, the same ones for all programs, so that one made smaller is called as before."""
    rng = np.random.default_rng(1)

    def floats(*shape: int) -> np.ndarray:
        return (rng.integers(-12, 13, (LANES, *shape)) / 4).astype(np.float32)

    whole = (rng.permutation(np.arange(LANES, dtype=np.int32) % 4) for _ in range(2))
    return (*whole, floats(), floats(), floats(4), floats(4), floats(3, 3))
