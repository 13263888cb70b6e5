"""The thunks that XLA's GPU compiler made of a program, and what of them is executed in a trip of the machine's loop.

A thunk is a step of the host's: it starts a kernel or a copy, or runs a loop, a conditional, or a graph of others that
the device runs by itself. XLA dumps them as text, indented, and the program that they are made from beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tools.gpu_thunks.traffic import Traffic

LINE = re.compile(r"^(?P<indent> *)(?P<number>\d+): k(?P<kind>\w+)")
LABEL = re.compile(r"(?P<indent> *)(?P<label>body|condition|true_branch|false_branch|branch_?\d+):")
ANNOTATION = re.compile(r'profile_annotation: "(?P<name>[^"]*)"(?:\s*thunk_id: (?P<number>\d+))?')
TRIPS = "trips"
"""The scope of the machine's loops, and the beginning of the scope of a loop of so many trips: `trips_16`."""


@dataclass
class Thunk:
    """One thunk; `name` is that of its instruction, `parts` what it runs, by label, `indent` its place in the text."""

    kind: str
    name: str
    indent: int
    parts: dict[str, list[Thunk]] = field(default_factory=lambda: {"": []})

    def all(self) -> Iterator[Thunk]:
        """It and all that it runs."""
        yield self
        for part in self.parts.values():
            for each in part:
                yield from each.all()


@dataclass(frozen=True)
class Counts:
    """Counts of a trip; `looks` are the host's, who waits for a number of the device's to know how to go on."""

    kernels: float = 0
    copies: float = 0
    loops: float = 0
    conditionals: float = 0
    graphs: float = 0
    looks: float = 0
    bytes: float = 0
    largest_copy: int = 0
    """Bytes of the largest array that is copied."""

    def __add__(self, other: Counts) -> Counts:
        sums = (one + two for one, two in zip(self._added, other._added, strict=True))
        return Counts(*sums, max(self.largest_copy, other.largest_copy))

    def times(self, number: float) -> Counts:
        """The same so many times."""
        return Counts(*(each * number for each in self._added), self.largest_copy)

    @property
    def _added(self) -> tuple[float, ...]:
        return self.kernels, self.copies, self.loops, self.conditionals, self.graphs, self.looks, self.bytes


@dataclass(frozen=True)
class Moved:
    """Bytes that a kernel or a copy moves, and the type of its result."""

    bytes: float
    kind: str
    name: str
    type: str


@dataclass(frozen=True)
class Trip:
    """One trip of one of the machine's loops: what is executed, and what of it moves most, first.

    `state` are the bytes of the arrays that its turns change.
    """

    counts: Counts
    state: int
    moved: Sequence[Moved] = ()


def parsed(text: str, names: Mapping[int, str]) -> list[Thunk]:
    """The thunks that a dump of a sequence lists; `names` are those of their instructions, by number."""
    top = Thunk("Sequence", "", -1)
    path, label = [top], {-1: ""}
    for line in text.splitlines():
        for found in LABEL.finditer(line) if not LINE.match(line) else ():
            depth = path[-1].indent if found["label"] == "condition" else len(found["indent"]) - 2
            label[depth] = found["label"]
        found = LINE.match(line)
        if found is None:
            continue
        indent = len(found["indent"])
        while path[-1].indent >= indent:
            path.pop()
        thunk = Thunk(found["kind"], names.get(int(found["number"]), ""), indent)
        path[-1].parts.setdefault(label.get(path[-1].indent, ""), []).append(thunk)
        path.append(thunk)
        label[indent] = ""
    return top.parts[""]


def names_of(text: str) -> dict[int, str]:
    """The names of instructions by the numbers of their thunks."""
    return {int(found["number"] or 0): found["name"] for found in ANNOTATION.finditer(text)}


@dataclass(frozen=True)
class Executed:
    """Counts what is executed; a loop of which nobody knows the number of its turns makes `turns`."""

    traffic: Traffic
    turns: int = 1

    def of(self, thunks: Sequence[Thunk], *, in_graph: bool = False) -> Counts:
        """Counts of these thunks; the host looks at nothing where the device runs them `in_graph`."""
        total = Counts()
        for thunk in thunks:
            total += self._one(thunk, in_graph)
        return total

    def _one(self, thunk: Thunk, in_graph: bool) -> Counts:
        match thunk.kind:
            case "CommandBuffer":
                return Counts(graphs=1) + self.of(thunk.parts[""], in_graph=True)
            case "While":
                known = self.traffic.turns(thunk.name)
                turns = self.turns if known is None else known
                body = self.of(thunk.parts.get("body", []), in_graph=in_graph)
                condition = self.of(thunk.parts.get("condition", []), in_graph=in_graph)
                looks = 0 if in_graph or known is not None else turns + 1
                return Counts(loops=1, looks=looks) + body.times(turns) + condition.times(turns + (known is None))
            case "Conditional":
                arms = [self.of(each, in_graph=in_graph) for each in thunk.parts.values()]
                most = max(arms, key=lambda arm: arm.kernels)
                return Counts(conditionals=1, looks=0 if in_graph else 1) + most
            case "Copy":
                size = self.traffic.copied(thunk.name)
                return Counts(copies=1, bytes=2 * size, largest_copy=size)
            case "Sequential":
                return self.of(thunk.parts[""], in_graph=in_graph)
            case _:
                return Counts(kernels=1, bytes=self.traffic.of(thunk.name))

    def trips(self, thunks: Sequence[Thunk], *, in_graph: bool = False) -> list[Trip]:
        """A trip of each of the machine's loops among these thunks.

        Where the host looks after a number of trips, one of them is that part of what there is between two looks.
        """
        found = []
        for thunk in thunks:
            inside = in_graph or thunk.kind == "CommandBuffer"
            if thunk.kind == "While" and f"/{TRIPS}/" in f"/{self.traffic.scope(thunk.name)}":
                whole = self.of(thunk.parts.get("body", []), in_graph=inside)
                whole += self.of(thunk.parts.get("condition", []), in_graph=inside) + Counts(looks=0 if inside else 1)
                inner = max(thunk.all(), key=self._together)
                number = self._together(inner)
                moved = sorted(self._moved(inner, 1), key=lambda each: -each.bytes)
                found.append(Trip(whole.times(1 / number), self.traffic.changed(inner.name), moved))
            else:
                for part in thunk.parts.values():
                    found += self.trips(part, in_graph=inside)
        return found

    def _moved(self, loop: Thunk, turns: float) -> Iterator[Moved]:
        """The kernels and copies of one turn of a loop, those of loops inside times their turns; of all arms."""
        for thunk in (each for part in loop.parts.values() for each in part):
            known = (self.traffic.turns(thunk.name) or self.turns) if thunk.kind == "While" else 1
            if any(thunk.parts.values()):
                yield from self._moved(thunk, turns * known)
            else:
                size = self._one(thunk, True).bytes * turns
                yield Moved(size, thunk.kind, thunk.name, self.traffic.type_of(thunk.name))

    def _together(self, thunk: Thunk) -> int:
        """The number of trips that a loop makes between two looks: 1 for what is no loop over trips."""
        is_one = thunk.kind == "While" and f"/{TRIPS}_" in f"/{self.traffic.scope(thunk.name)}"
        return (self.traffic.turns(thunk.name) or 1) if is_one else 1
