"""The text of a trip: what a schedule asks for, recorded as it asks.

A schedule chooses blocks by operations of a backend. Here the backend writes down what is asked for, in NumPy's words,
and a guarded block is a line. So the text is made by the objects that make the machine's loop.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from pcbatch.ir.types import TensorType
from pcbatch.runtime.costs.estimate import Prices
from pcbatch.runtime.schedules.schedule_step import Again, BlockCounts, BlockGraph, Schedule, Trip

LONG = 60
"""The length of an expression that gets a name."""
HEAD = '''\
"""The loop of {name} under schedule={schedule!r}.

`count(state)` is the number of lanes that wait at each block and may run. `guarded(p, block, state, followed)` runs a
block where `p` holds, for the lanes that wait there: the state, how many lanes have come to each of the blocks
`followed`, and how many still wait there. `repeated` does so again as long as `again` says of those that still wait,
{most} times at most; it gives the number of runs and of lanes, too.
"""

import numpy as np


def loop(state):
    waiting, trips, memory = count(state), 0, np.zeros({blocks}, "int64")
    while np.any(waiting > 0):
'''
TAIL = """\
        waiting, trips = count(state), trips + 1
    return state, trips
"""


class Written:
    """An array, or a number, as the expression that gives it."""

    def __init__(self, text: str):
        self.text = text

    def __bool__(self) -> bool:
        raise TypeError("a schedule does not know what an array holds")


def _operator(sign: str, *, reverse: bool = False) -> Callable[[Written, Any], Written]:
    def operation(self: Written, other: Any) -> Written:
        a, b = (_text(other), self.text) if reverse else (self.text, _text(other))
        return Written(f"({a} {sign} {b})")

    return operation


for _name, _sign in {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "and": "&", "or": "|"}.items():
    setattr(Written, f"__{_name}__", _operator(_sign))
    setattr(Written, f"__r{_name}__", _operator(_sign, reverse=True))
for _name, _sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
    setattr(Written, f"__{_name}__", _operator(_sign))


def _text(value: Any) -> str:
    return value.text if isinstance(value, Written) else repr(value)


def _plain(value: Any) -> str:
    """An expression without the brackets around it."""
    text = _text(value)
    return text[1:-1] if isinstance(value, Written) and text.startswith("(") else text


class Writer:
    """The operations of a backend that schedules use, and the blocks of a trip, as lines of text."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names, self._is_inline = 0, False

    def named(self, hint: str) -> Written:
        """A name that is new."""
        self._names += 1
        return Written(f"{hint}_{self._names}")

    def kept(self, text: str, hint: str = "found") -> Written:
        """An expression, by name if it is long."""
        if len(text) < LONG or self._is_inline:
            return Written(text)
        name = self.named(hint)
        self.lines.append(f"{name.text} = {_plain(Written(text))}")
        return name

    def _call(self, name: str, *arguments: Any) -> Written:
        return self.kept(f"{name}({', '.join(map(_text, arguments))})")

    # -- the operations of a backend -----------------------------------------------------------------------------------

    def constant(self, value: Any) -> Written:
        """A literal."""
        return Written(repr(value))

    def array(self, values: Any, dtype: str) -> Written:
        """An array of known values."""
        return self.kept(f"np.array({values!r}, {dtype!r})")

    def zeros(self, size: int, type_: TensorType) -> Written:
        """Zeros."""
        return Written(f"np.zeros({size}, {type_.dtype!r})")

    def lane_numbers(self, count: int) -> Written:
        """The numbers from 0."""
        return Written(f"np.arange({count})")

    def cast(self, value: Any, dtype: str) -> Written:
        """Another dtype."""
        return self._call("np.asarray", value, dtype)

    def where(self, condition: Any, x: Any, y: Any) -> Written:
        """A choice by element."""
        return self._call("np.where", condition, x, y)

    def min(self, value: Any) -> Written:
        """The least element."""
        return self._call("np.min", value)

    def max(self, value: Any) -> Written:
        """The greatest element."""
        return self._call("np.max", value)

    def sum(self, value: Any, weights: Sequence[float] | None = None) -> Written:
        """The sum, maybe with weights."""
        if weights is None:
            return self._call("np.sum", value)
        return self.kept(f"np.dot({_text(value)}, {[*weights]!r})")

    def stack(self, values: Sequence[Any]) -> Written:
        """Numbers as an array."""
        return self.kept(f"np.stack([{', '.join(map(_text, values))}])")

    def unstack(self, value: Any, count: int) -> list[Any]:
        """An array's numbers."""
        return [Written(f"{_text(value)}[{number}]") for number in range(count)]

    def add(self, x: Any, y: Any) -> Any:
        """A sum of two."""
        return self.kept(f"({_text(x)} + {_text(y)})", "waits")

    def equal(self, x: Any, y: Any) -> Written:
        """A comparison."""
        return Written(f"({_text(x)} == {_text(y)})")

    # -- blocks --------------------------------------------------------------------------------------------------------

    def guarded(self) -> Callable[..., Any]:
        """See `schedules.schedule_step.Guarded`."""

        def run(
            number: int, predicate: Any, lanes: Any, state: Any, followed: Sequence[int], again: Again | None
        ) -> tuple[Any, list[Any], BlockCounts, Any]:
            arrived, left = self.named("came"), self.named("left")
            given = f"{_plain(predicate)}, {number}, state, {[*followed]}"
            if again is None:
                self.lines.append(f"state, {arrived.text}, {left.text} = guarded({given})")
                turns = BlockCounts(lanes)
            else:
                times, total, self._is_inline = self.named("times"), self.named("lanes"), True
                condition = _text(again(Written("here")))
                self._is_inline = False
                names = ", ".join(each.text for each in (arrived, left, times, total))
                self.lines.append(f"state, {names} = repeated(\n    {given},\n    lambda here: {condition},\n)")
                turns = BlockCounts(lanes, times=times, lanes=total, rows=total)
            return state, self.unstack(arrived, len(followed)), turns, left

        return run


def written(
    name: str, schedule: Schedule, flow: BlockGraph, prices: Callable[[], Prices], most: int, behind: Sequence[str] = ()
) -> str:
    """The text of a program's loop: trips that a schedule makes, with the lines `behind` in each."""
    writer, blocks = Writer(), len(flow.successors)

    def switched(number: Any, state: Any) -> Any:
        arms = "".join(f"    lambda: guarded(True, {block}, state, []),\n" for block in range(blocks))
        chosen = writer.named("chosen")
        writer.lines.append(f"{chosen.text} = {_text(number)}")
        writer.lines.append(f"state, *_ = switch_case({chosen.text}, [\n{arms}])")
        return state

    def count(state: Any) -> Written:
        found = writer.named("waiting")
        writer.lines.append(f"{found.text} = count(state)")
        return found

    trip: Any = Trip(
        writer,  # type: ignore[arg-type]
        Written("state"),  # type: ignore[arg-type]
        Written("waiting"),
        count,
        writer.guarded(),
        flow,
        prices,
        switched,
    )
    memory = schedule.trip(trip, Written("memory"))
    if _text(memory) != "memory":
        writer.lines.append(f"memory = {_text(memory)}")
    writer.lines += behind
    head = HEAD.format(name=name, schedule=schedule.name, most=most, blocks=blocks)
    return head + textwrap.indent("\n".join(_used(writer.lines)) + "\n", " " * 8) + TAIL


def _used(lines: Sequence[str]) -> list[str]:
    """The lines without names that nothing reads."""
    found: list[str] = []
    for line in reversed(lines):
        names, _, rest = line.partition(" = ")
        behind = "\n".join(found)
        known = [
            n if n in ("state", "memory", "*_") or re.search(rf"\b{n}\b", behind) else "_" for n in names.split(", ")
        ]
        if known != ["_"]:
            found.insert(0, f"{', '.join(known)} = {rest}")
    return found
