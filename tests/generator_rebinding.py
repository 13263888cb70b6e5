"""Statements of generated programs in which names change what they mean. See `tests.generator`.

`with` blocks and straight lines that assign what they have read and copied, lambdas and generators that are kept and
used later, arrays that get a second name.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from types import CodeType

from tests.generator_expressions import LENGTH
from tests.generator_names import NAMES, Kind
from tests.generator_statements import Statements

LASTING = 1
"""In how many tenths of the cases what a lambda, a generator or a second name refers to changes before it is used."""


def referred(text: str) -> Set[str]:
    """The names that lambdas and generators in a statement look up when they run."""

    def inside(code: CodeType) -> set[str]:
        inner = [each for each in code.co_consts if isinstance(each, CodeType)]
        return {name for each in inner for name in (*each.co_names, *inside(each))}

    return inside(compile(text, "<statement>", "exec"))


@dataclass
class Rebinding(Statements):
    """Writes them; `simple` is whatever else has no blocks."""

    def plain(self) -> None:
        """One assignment of a number, of what other variables are: a copy, a change, an aggregate of an inner scope."""
        kind: Kind = self.pick(["int", "int", "float"])
        names = self.pools[kind]
        target, source = self.pick(names), self.pick(names)
        literal = self.pick(["1", "2", "3"]) if kind == "int" else self.pick(["1.0", "0.25", "2.0"])
        change = self.pick(["+", "-", "*"] if kind == "int" else ["+", "-"])
        inner = [
            lambda: self.aggregate(kind, 0),
            lambda: self.called(kind, 0),
            lambda: self.over_copies(kind, source),
        ]
        forms: list[Callable[[], str]] = [
            lambda: f"{target} = {source}",
            lambda: f"{target} = {source}",
            lambda: f"{target} = {self.small(kind, f'{target} {change} {literal}')}",
            lambda: f"{target} = {self.small(kind, f'{source} {change} {self.pick(names)}')}",
            lambda: f"{target} {'+' if kind == 'float' else change}= {literal}",
            lambda: f"{target} = {self.bounded(kind, 1)}",
            lambda: f"{target} = {self.small(kind, self.pick(inner)())}",
        ]
        text = self.pick(forms)()
        self.line(text)
        if f"{target} {change}= " in text or f"{target} += " in text:
            self.line(f"{target} = {self.small(kind, target)}")

    def small(self, kind: Kind, value: str) -> str:
        """`value`, a number that is read once, made small."""
        return f"({value}) % {'29' if kind == 'int' else '8.0'}"

    def over_copies(self, kind: Kind, source: str) -> str:
        """An aggregate over one variable and what is made of it, by a variable of the name of another."""
        name, literal = self.pick(self.pools[kind]), "1" if kind == "int" else "1.0"
        outer = self.pick([each for each in self.pools[kind] if each != name] or ["1"])
        elements = f"({source}, {source} + {literal})"
        if kind == "int":
            return self.pick(
                [
                    f"tf.add_n([{name} * {outer} for {name} in {elements}])",
                    f"sum({name} * {outer} for {name} in {elements})",
                    f"sum([{name} * {outer} for {name} in {elements}])",
                ]
            )
        return f"sum([{name} - {outer} for {name} in {elements}])"

    def straight(self) -> None:
        """Assignments one after the other, nothing between."""
        for _ in range(self.draw(2, 4)):
            self.plain()

    def shadow(self) -> None:
        """A copy, and at once an inner scope that reads it and has a variable of the name of what was copied."""
        kind: Kind = self.pick(["int", "int", "float"])
        source = self.pick(self.pools[kind])
        copied = self.pick([name for name in self.pools[kind] if name != source])
        target = self.pick(self.pools[kind])
        operator, one = ("*", "1") if kind == "int" else ("-", "1.0")
        if kind == "int" and self.pools["kept"] and self.chance(4):  # it may be a copy of a caller's, by another name
            (copied,) = self.pools["kept"]
            source = self.pick([name for name in NAMES["kept"] if name != copied])
        else:
            self.line(f"{copied} = {source}")
        if self.chance(2):
            self.plain()
        value, elements = f"{source} {operator} {copied}", f"({target}, {self.pick(self.pools[kind])} + {one})"
        forms = [
            f"sum({value} for {source} in {elements})",
            f"sum([{value} for {source} in {elements}])",
            f"[{value} for {source} in {elements}][-1]",
            f"sum(sum({value} for {source} in ({target}, {one})) for {source} in {elements})",
            f"(lambda {source}: {value})({target})",
            f"(lambda {source}, u={copied}: {source} + u)({target})",
            f"apply(lambda {source}: {value}, {target})",
            f"sum(map(lambda {source}: {value}, {elements}))",
        ]
        if kind == "int":
            forms.append(f"tf.add_n([{value} for {source} in {elements}])")
        if kind == "int" and self.arrays:
            forms.append(f"sum(tf.vectorized_map(lambda {source}: {value}, {self.pick(self.arrays)}))")
        self.line(f"{target} = {self.small(kind, self.pick(forms))}")

    # -- `with` --------------------------------------------------------------------------------------------------------

    def within(self, depth: int = 1) -> None:
        """A `with` block of assignments, sometimes with another one in it."""
        self.blocks += 1
        scope = f'tf.name_scope("{self.pick(["one", "two"])}")'
        kind: Kind = self.pick(["int", "float"])
        name = self.pick(self.pools[kind])
        given = f"contextlib.nullcontext({self.bounded(kind, 1)}) as {name}"
        self.fresh += 1
        both = self.pick([each for each in self.pools["int"] if each != name])
        pair = f"{self.pools['int'][0]}, {self.pools['float'][0]}"
        forms: list[Callable[[], str]] = [
            lambda: scope,
            lambda: scope,
            lambda: f"{scope} as s{self.fresh}",
            lambda: given,
            lambda: f"{given}, contextlib.nullcontext({name if kind == 'int' else both}) as {both}",
            lambda: f"contextlib.nullcontext(({self.bounded('int', 0)}, {self.bounded('float', 1)})) as ({pair})",
        ]
        self.line(f"with {self.pick(forms)()}:")
        self.indent += 1
        for _ in range(self.draw(1, 3)):
            if depth and self.chance(2):
                self.within(depth - 1)
            elif self.chance(3):
                self.pick([self.assign, self.augment, self.exchange])()
            else:
                self.plain()
        self.blocks -= 1
        self.indent -= 1

    # -- what is kept and used later -----------------------------------------------------------------------------------

    def living(self) -> None:
        """A lambda or a generator under a name, and its use after further assignments."""
        self.fresh += 1
        kind: Kind = self.pick(["int", "float"])
        name = f"g{self.fresh}"
        target, other = self.pick(self.pools[kind]), self.pick(self.pools[kind])
        late, generated = self.chance(LASTING), self.chance(4)
        if generated:
            inside = self.comprehension(kind, 1)
            self.line(f"{name} = ({inside})")
            uses = [f"sum({name})"]
        else:
            text, _ = self.lambda_of(kind, 1)
            self.line(f"{name} = {text}")
            argument = self.bounded(kind, 0)
            uses = [f"{name}({other})", f"{name}({name}({argument}))", f"apply({name}, {argument})"]
        kept = self.lines[-1].strip()
        if late:
            self.change(kept)
        self.line(f"{target} = {self.small(kind, self.pick(uses))}")
        if late and not generated:
            self.change(kept)
            self.line(f"{other} = {self.small(kind, f'{target} + {name}({argument})')}")

    def change(self, text: str) -> None:
        """Assign one of the numbers that a lambda or a generator refers to."""
        kind: Kind = self.pick(["int", "float"])
        name = self.pick([name for name in self.pools[kind] if name in referred(text)] or self.pools[kind])
        self.line(f"{name} = {self.small(kind, name + (' + 1' if kind == 'int' else ' + 0.25'))}")

    # -- arrays with two names -----------------------------------------------------------------------------------------

    def second_name(self) -> None:
        """A second name of an array, or of a copy of it, and a store under one of the two."""
        array = self.pick([*self.arrays, *self.captured["array"][:1]])
        copies = [f"tf.identity({array})", f"{array} + 0", f"keep({array} + 0)"] * 2
        same = [array, f"keep({array})", f"({array}, 1)[0]", f"either({array}, {self.pick(self.arrays)})"]
        self.line(f"zs = {self.pick(same if self.chance(LASTING) else copies)}")
        self.line(f"zs[{self.number()} % {LENGTH}] = {self.bounded('int', 0)}")
        target = self.pick(self.pools["int"])
        self.line(f"{target} = (zs[{self.number()} % {LENGTH}] - {array}[{self.number()} % {LENGTH}]) % 29")
