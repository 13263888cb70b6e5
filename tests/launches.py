"""Launches of Algorithm 1 counted without pcbatch: plain Python runs, line by line, packed by the algorithm's rule.

`walked` runs a function on one example as plain Python and records which statements it went through and which calls it
made. `launches` lets many such runs take part in the algorithm on paper: a call is a frame on the stack, the lanes that
made it together are its lanes, and of these the ones at the first line in the source go on. Nothing here compiles.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

Place = tuple[str, int]
"""A function of the program and the first line of a statement in it."""


@dataclass
class Part:
    """A part of a statement: what is computed before, between or after its calls; `call` is the call at its end."""

    place: Place
    number: int
    call: Walked | None = None


@dataclass
class Walked:
    """One call of one example: the parts of statements that it went through."""

    function: str
    parts: list[Part] = field(default_factory=list)

    def reach(self, place: Place) -> None:
        """A line event: a statement begins, or goes on on another of its lines."""
        if not self.parts or self.parts[-1].place != place:
            self.parts.append(Part(place, 0))

    def call(self, function: str) -> Walked:
        """A call at the present part of a statement, which goes on in another part."""
        last = self.parts[-1]
        last.call = Walked(function)
        self.parts.append(Part(last.place, last.number + 1))
        return last.call


@dataclass(frozen=True)
class Source:
    """A function's name, its lines, and for each line that has a statement the first line of the innermost one."""

    name: str
    lines: range
    starts: dict[int, int]

    @classmethod
    def of(cls, function: Any) -> Source:
        """The source of a plain function."""
        text, first = inspect.getsourcelines(function)
        (definition,) = ast.parse(textwrap.dedent("".join(text))).body
        starts: dict[int, int] = {}
        for node in ast.walk(definition):
            if isinstance(node, ast.stmt) and node is not definition:
                inner = getattr(node, "body", None)
                last = inner[0].lineno - 1 if inner else node.end_lineno or node.lineno
                starts |= {line + first - 1: node.lineno + first - 1 for line in range(node.lineno, last + 1)}
        return cls(function.__name__, range(first, first + len(text)), starts)


def walked(run: Callable[[], Any], functions: Sequence[Any]) -> Walked:
    """What one example goes through in calls of `functions` while `run` runs it as plain Python."""
    sources = [(inspect.getsourcefile(function), Source.of(function)) for function in functions]
    open_calls: list[Walked] = []
    roots: list[Walked] = []

    def source_of(code: CodeType) -> Source | None:
        """The function that this is the code of; pcbatch may have compiled it anew, under another name."""
        is_function = not code.co_name.startswith("<")
        found = (each for file, each in sources if file == code.co_filename and code.co_firstlineno in each.lines)
        return next(found, None) if is_function else None

    def on_call(frame: FrameType, event: str, argument: Any) -> Any:
        source = source_of(frame.f_code)
        if source is None:
            return None
        name, starts = source.name, source.starts
        opened = open_calls[-1].call(name) if open_calls else Walked(name)
        if not open_calls:
            roots.append(opened)
        open_calls.append(opened)

        def on_line(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "return":
                open_calls.pop()
            elif event == "line" and frame.f_lineno in starts:
                opened.reach((name, starts[frame.f_lineno]))
            return on_line

        return on_line

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        run()
    finally:
        sys.settrace(before)
    (root,) = roots
    return root


@dataclass
class Launches:
    """How often each place was launched, and each call made, in all; and for how many lanes."""

    places: Counter[Place] = field(default_factory=Counter)
    calls: Counter[Place] = field(default_factory=Counter)
    lanes: Counter[Place] = field(default_factory=Counter)


def launches(lanes: Sequence[Walked]) -> Launches:
    """The launches of Algorithm 1 for these lanes, which are called together."""
    found = Launches()
    _frame([list(lane.parts) for lane in lanes], found)
    return found


def _frame(lanes: list[list[Part]], found: Launches) -> None:
    """Run a frame to its end: always the lanes at the first line go on, together."""
    while lanes := [lane for lane in lanes if lane]:
        first = min((lane[0].place[1], lane[0].number) for lane in lanes)
        here = [lane.pop(0) for lane in lanes if (lane[0].place[1], lane[0].number) == first]
        place = here[0].place
        found.places[place] += 1
        found.lanes[place] += len(here)
        called = [part.call for part in here if part.call is not None]
        if called:
            found.calls[place] += 1
            _frame([list(call.parts) for call in called], found)
