"""The backward pass of a program as text: for each taped block the contents of its tape's rows, and its undoing.

    adjoint of product(x, n) -> x
      by x, w                                      by which parameters and shared operands there are gradients
      order b2, b0                                 in which a turn goes through the blocks

    b2:
      rows 16, all from 39                         16 rows at a time; of 39 rows or more all together
      tape: 16 bytes a row
        lane: int32[]                              which lane the row is of
        residual 0 0: float32[]  x                 of the piece at place 0: what it has read as `x`
        residual 0 1: float32[3]  MatMul, line 9   or what an operation gave, on this line of the source
      x~, a[.]~ += derivative of (x, a) -> x by x~    `v~` is the gradient by `v`, `a[.]~` by elements of `a` alone
        for all rows at the end: float32[3]        kept of each row, for gradients by shared operands
        summed: float32[]                          the same, added up at once
      v~ += a[i]~; a[i]~ = 0                       a store
      v~ = 0  if p                                 in rows for which `p` held: those are on the tape, as predicate 2 for
                                                   the item at place 2; in the others there is nothing to undo
      u~ += stack v[pointer]~                      a push of `u` on `v`: the newest entry
      stack v[pointer]~ = v~; v~ = 0               a pop
      s~ += child 0.x~; child 0.x~ = 0             a fork: `x` of the lane that has run the first call of the group
      child 0.r~ = s~                              a join: `r` of that lane
      input a~ += a~                               what lies by example, of which several lanes may be

A late piece, which no gradient of a lane waits for, has `keep y~ for the end` instead: its derivative is for all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pcbatch.ir.machine import Piece, Store
from pcbatch.ir.printer import INDENT
from pcbatch.runtime.adjoint.backward_sweep import Replay
from pcbatch.runtime.adjoint.block_vjp_info import Names
from pcbatch.runtime.adjoint.shared_operand_vjp import SharedOperandVjp
from pcbatch.runtime.adjoint.tape import BlockTape, residual_field


def print_adjoint(replay: Replay, lanes: Any) -> str:
    """The text of the way back for so many lanes, ending in a newline."""
    program, activity = replay.program, replay.tapes.activity
    labels = [block.label for block in program.blocks]
    by = [name for name in program.parameters if name in activity.variables]
    by += [name for name in program.shared if name in activity.shared]
    text = [
        f"adjoint of {program.name}({', '.join(program.parameters)}) -> {', '.join(program.results)}",
        f"{INDENT}by {', '.join(by) or 'nothing'}",
        f"{INDENT}order {', '.join(labels[number] for number in replay.order) or 'none'}",
    ]
    blocks = replay.chunked(lanes).blocks
    for number in sorted(replay.order):
        text += ["", f"{labels[number]}:"]
        if chunks := blocks[number].chunks:
            whole = "" if chunks.whole is None else f", all from {chunks.whole}"
            text.append(f"{INDENT}rows {chunks.rows}{whole}")
        text += [INDENT + line for line in _tape(replay.tapes.blocks[number], replay)]
        text += [INDENT + line for line in _undone(replay.names[number], replay.beside[number])]
    return "\n".join(text) + "\n"


def _tape(tape: BlockTape, replay: Replay) -> Iterator[str]:
    yield f"tape: {sum(type_.bytes for type_ in tape.fields.values()):,} bytes a row"
    made = {}
    for place, linear in tape.linear.items():
        piece = replay.program.blocks[tape.number].body[place]
        assert isinstance(piece, Piece)
        for number, origin in enumerate(linear.origins):
            line = "" if origin.span is None else f", line {origin.span.line}"
            name = f"{origin.operation}{line}" if origin.read is None else piece.reads[origin.read]
            made[residual_field(place, number)] = f"{INDENT}{name}"
    for field, type_ in tape.fields.items():
        yield f"{INDENT}{field}: {type_}{made.get(field, '')}"


def _undone(names: Names, beside: list[SharedOperandVjp]) -> Iterator[str]:
    """The steps in which a run of the block is undone, in their order: see `block_vjp.BlockVjp`."""
    active, linear = names.tapes.activity.variables, names.tape.linear
    count = dict.fromkeys((push.variable for push in names.pushes), 0)
    for push in names.pushes:
        above = count[push.variable]
        count[push.variable] += 1
        saved = push.saved or push.variable
        yield f"{saved}~ += stack {push.variable}[pointer{f' + {above}' if above else ''}]~"
    for slot, variable, name in names.given:
        yield f"{name}~ += child {slot}.{variable}~; child {slot}.{variable}~ = 0"
    by_place = {each.place: each for each in beside}
    for place, item in reversed([*enumerate(names.block.body)]):
        if isinstance(item, Store) and place in names.stores:
            element = f"{item.array}[{', '.join(item.indices)}]~"
            more = f"{item.value}~ += {element}; " if item.value in active else ""
            yield f"{more}{element} = 0{_where(item)}"
        if not isinstance(item, Piece):
            continue
        written = [f"{name}~" for name in item.writes if name in active]
        if place in linear:
            yield from _piece(item, written, by_place[place], names)
        elif written:
            yield f"{', '.join(written)} = 0{_where(item)}"
    for name in names.popped:
        yield f"stack {name}[pointer]~ = {name}~; {name}~ = 0"
    yield from (f"child {slot}.{variable}~ = {name}~" for slot, variable, name in names.handed)
    yield from (f"input {name}~ += {name}~" for name in names.of_example)


def _where(item: Piece | Store) -> str:
    """Return the condition on the rows in which an item is undone."""
    return "" if item.predicate is None else f"  if {item.predicate}"


def _piece(piece: Piece, written: list[str], each: SharedOperandVjp, names: Names) -> Iterator[str]:
    linear, active = each.linear, names.tapes.activity.variables
    by_element = {element.read for element in linear.elements}
    if linear.is_late:
        yield f"keep {', '.join(written)} for the end{_where(piece)}"
    else:
        pairs = [(n, name) for n, name in enumerate(piece.reads) if name in active]
        grown = [f"{name}[.]~" if n in by_element else f"{name}~" for n, name in pairs]
        given = f"({', '.join(piece.reads)}) -> {', '.join(piece.writes)}"
        yield f"{', '.join(grown)} += derivative of {given} by {', '.join(written)}{_where(piece)}"
    for type_ in linear.deltas:
        yield f"{INDENT}for all rows at the end: {type_}"
    for type_ in linear.summed:
        yield f"{INDENT}summed: {type_}"
