"""The way of one lane as text: block by block, with all variables and stacks, as the paper draws them.

What runs is `strategies.reference`, on the program before any merging of blocks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pcbatch.ir import machine
from pcbatch.ir.machine import Block, LaneStatus, Program
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.report import formatting
from pcbatch.runtime.report.formatting import written
from pcbatch.runtime.report.run import Run
from pcbatch.runtime.strategies.reference import Visit

COUNTER = "(program counter)"
UNCHANGED = 10
"""The number of variables shown that a block has not changed, beside those that it has."""
ELEMENTS = 6
"""The largest number of elements of an array that is shown whole."""
WIDTH = 80
"""The largest number of columns for the entries of a stack, or for a value."""
LEGEND = (
    "Of each block that ran: its lines, the values that live in it alone (=), and each variable's stack after it, the"
    "\ntop behind ->. A * is at what the block has given a value. The top program counter is the block that is next."
)


def title(program: Program, lane: int, lanes: int) -> str:
    """The text above all pictures."""
    return f"{program.name}, lane {lane} of {lanes}\n\n{LEGEND}"


def picture(program: Program, visit: Visit) -> str:
    """Draw a run of a block: its place in the source, its results, and the lane's stacks after it."""
    return "\n".join([*_heading(program, visit), *_rows(program, visit)])


def left_out(count: int) -> str:
    """The text in place of `count` pictures."""
    more = f"{count:,} more block run{'s' * (count > 1)}"
    return f".. {more}, not shown here. The last one:"


def ending(program: Program, outcome: Outcome, lane: int, visit: Visit) -> str:
    """The end of the lane, and its counts."""
    run = Run.of(program, outcome)
    took = f"{visit.count:,} block runs, {visit.steps:,} steps (loop turns and calls)"
    ends = [dataclasses.replace(fault, lane=lane).render() for fault in run.errors]
    return "\n".join([*(ends or [f"lane {lane}: {written(run.result(0))}"]), took])


def _heading(program: Program, visit: Visit) -> Iterator[str]:
    block = visit.block
    if block is None:
        yield "start"
        return
    spans = machine.spans(program, block)
    files = dict.fromkeys(span.file for span in spans)
    where = ", ".join([block.label, *([block.function] if block.function else []), *map(formatting.file_name, files)])
    yield f"{visit.count:,}  {where}"
    lines = sorted({(span.file, span.line) for span in spans})
    margin = max((len(str(line)) for _, line in lines), default=1)
    for file, line in lines:
        yield f"     {line:>{margin}}  {formatting.line_text(file, line).strip()}"
    if visit.status != LaneStatus.OK:
        yield f"     the lane fails here: {visit.status.name}"


def _rows(program: Program, visit: Visit) -> Iterator[str]:
    """A row for each value of the block, for each variable, and for the program counters."""
    found: list[tuple[bool, str, str]] = []
    failed = visit.status != LaneStatus.OK
    records = tuple(name for site in program.faults if site.status is LaneStatus.OK for name in site.arguments)
    for name, value in visit.computed.items():
        if name.startswith(records):  # what `pcbatch.debug` keeps
            continue
        if failed or name not in visit.stacks:
            found.append((True, name, f"= {_short(value)}"))
    changed = set() if failed else _changed(visit.block, visit)
    unchanged = [name for name in visit.stacks if name not in changed]
    hidden = set(unchanged) if len(unchanged) > UNCHANGED else set()
    for name, entries in visit.stacks.items():
        if name not in hidden and name not in records:
            found.append((name in changed, name, _stack(list(map(_short, entries)))))
    found.append((False, COUNTER, _stack(visit.program_counters)))
    width = max(len(name) for _, name, _ in found)
    for is_changed, name, text in found:
        yield f"   {'*' if is_changed else ' '} {name:<{width}} {text}"
    if hidden:
        yield f"     and {len(hidden)} variables as they were"


def _changed(block: Block | None, visit: Visit) -> set[str]:
    if block is None:
        return set()
    return {*visit.computed, *block.pops, *(push.variable for push in block.pushes)}


def _stack(entries: Sequence[str]) -> str:
    """The entries of a stack, the top last: as many of the newest as there is room for."""
    *below, top = entries
    text = f"-> {top}"
    for place in range(len(below) - 1, -1, -1):
        longer = f"{below[place]} | {text}" if text[:2] != "->" else f"{below[place]} {text}"
        if len(longer) > WIDTH:
            return f"({place + 1:,} more) | {text}"
        text = longer
    return text


def _short(value: Any) -> str:
    """A value on one line: arrays of many elements by their first ones, `-` where there is none."""
    if value is None:
        return "-"
    text = written(value, _array)
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]} .."


def _array(value: Any) -> str:
    array = np.asarray(value)
    if array.size <= ELEMENTS:
        return " ".join(str(array).split())
    first = " ".join(str(element) for element in array.ravel()[: ELEMENTS // 2])
    return f"{array.dtype}[{', '.join(map(str, array.shape))}] {first} .."
