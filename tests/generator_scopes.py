"""Expressions of generated programs that have scopes of their own: comprehensions, generators, lambdas.

See `tests.generator`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from tests.generator_names import CAPTURED, Kind, Names

AGGREGATES: dict[Kind, tuple[str, ...]] = {
    "int": ("sum", "max", "min"),
    "float": ("sum", "max"),
    "bool": ("any", "all"),
}


class Scopes(Names, ABC):
    """Writes them. What is inside sees the names of the inner scope, which hide those of the function."""

    @abstractmethod
    def expression(self, kind: Kind, depth: int) -> str:
        """An expression of `kind`; at depth 0 a name, a literal or little more."""

    @abstractmethod
    def bounded(self, kind: Kind, depth: int) -> str:
        """An expression whose value is small, so that it may be kept in a variable."""

    def scoped(self, kind: Kind, depth: int) -> list[Callable[[], str]]:
        """Expressions of `kind`, int, float or bool, whose value is made in an inner scope."""
        if not depth or self.inner > 1:
            return []
        forms = [lambda: self.aggregate(kind, depth - 1)]
        if kind != "bool":
            forms += [lambda: self.called(kind, depth - 1), lambda: self.element(kind, depth - 1)]
        if kind == "int":
            forms += [lambda: self.mapped(depth - 1)]
        return forms

    # -- comprehensions ------------------------------------------------------------------------------------------------

    def comprehension(self, kind: Kind, depth: int) -> str:
        """What stands between the brackets of a comprehension whose elements are of `kind`."""
        name = self.inner_name()
        turned: Kind = self.pick(["int", "float"]) if kind == "float" else "int"
        with self.scope({}):
            first, second = (self.bounded(turned, min(depth, 1)) for _ in range(2))
        sources: list[tuple[str, dict[str, Kind], str]] = [
            (f"{name} in ({first}, {second})", {name: turned}, ""),
            (f"{name} in [{first}, {second}]", {name: turned}, ""),
        ]
        if turned == "int":
            other = self.pick([each for each in ("u", *self.pools["int"][1:]) if each != name])
            sources += [
                (f"{name} in range(3)", {name: "int"}, f" if {name} != {self.pick(['0', '1'])}"),
                (f"{name} in (0, 2, 3)", {name: "int"}, f" if {name} > 0"),
                (f"{name}, {other} in zip(({first}, 2), (1, {second}))", {name: "int", other: "int"}, ""),
                (f"{name}, {other} in enumerate(({first}, {second}))", {name: "int", other: "int"}, ""),
            ]
        source, bound, condition = self.pick(sources)
        with self.scope(bound):
            again = ""
            if self.chance(2):
                inside = self.pick(
                    [each for each in ("u", *self.pools["int"][-1:], *self.pools["int"]) if each != name]
                )
                again = f" for {inside} in (1, {name if turned == 'int' else '2'})"
                bound = {inside: "int"}
            else:
                bound = {}
            with self.scope(bound):
                value = self.bounded(kind, depth) if kind != "bool" else self.expression(kind, depth)
        return f"{value} for {source}{condition if self.chance(5) else ''}{again}"

    def aggregate(self, kind: Kind, depth: int) -> str:
        """A comprehension or a generator made into one value at once."""
        function = self.pick(AGGREGATES[kind])
        inside = self.comprehension(kind, depth)
        return f"{function}({self.pick([f'[{inside}]', inside])})"

    def element(self, kind: Kind, depth: int) -> str:
        """An element of a list or a tuple that a comprehension makes."""
        inside = self.comprehension(kind, depth)
        return f"{self.pick([f'[{inside}]', f'tuple({inside})', f'list({inside})'])}[0]"

    # -- lambdas -------------------------------------------------------------------------------------------------------

    def lambda_of(self, kind: Kind, depth: int) -> tuple[str, str]:
        """A lambda of one argument of `kind` with a result of `kind`, and a second parameter sometimes."""
        name = self.inner_name()
        second = self.pick([each for each in ("u", *self.pools["int"]) if each != name])
        default = self.bounded("int", 0)
        bound: dict[str, Kind] = {name: kind}
        parameters = self.pick([name, name, f"{name}, {second}={default}", f"{name}, *, {second}={default}"])
        if parameters != name:
            bound[second] = "int"
        with self.scope(bound):
            value = self.bounded(kind, depth)
        return f"lambda {parameters}: {value}", name

    def called(self, kind: Kind, depth: int) -> str:
        """A lambda called at once, by the program or by a helper of its."""
        text, _ = self.lambda_of(kind, depth)
        argument = self.bounded(kind, min(depth, 1))
        return self.pick([f"({text})({argument})", f"apply({text}, {argument})", f"apply(f={text}, v={argument})"])

    def mapped(self, depth: int) -> str:
        """A lambda called for each of several numbers."""
        text, name = self.lambda_of("int", depth)
        forms = [f"sum(map({text}, ({self.bounded('int', 0)}, {self.bounded('int', 0)})))"]
        if self.arrays and not self.inner:
            factor = self.pick([name, *self.pools["int"], *CAPTURED["int"][:1]])
            other = self.pick([*self.pools["int"], "3"])
            forms.append(
                f"sum(tf.vectorized_map(lambda {name}: {name} * {factor} - {other}, {self.pick(self.arrays)}))"
            )
        return self.pick(forms)
