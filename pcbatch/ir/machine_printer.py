"""The machine dialect as text. A parser in `tests/ir/` reads it back: `parse_machine(print_machine(p)) == p`.

    program machine fibonacci(n) -> result
      var n: int32[]  cached stack                 a variable of the state
      var t0: bool[]  temporary                    a name that does not outlive its block
      var w: float32[3]  shared                    a shared operand; these in the machine's order
      pointer n: left, right                       variables that move with the stack pointer of `n`
      site 0: MAX_DEPTH "RecursionError: .."       the fault sites, in order; behind a message its arguments
      order b0, b2, b1                             in which a trip goes through the blocks, if not as written
      extern fibonacci: np, tf                     free names of a function's code
      structure (int32[], {a: bool[]})             the type of the value whose leaves are the results

    function fibonacci                             the user's function of the blocks that follow
    b0:
      piece (n) -> t0:                             what it reads, what it writes, then its statements
        t0 = n <= 1
      branch t0 b1 b2
    b2, sync, cost 1000.0:                         lanes wait here; what a row costs
      rows 8, all from 48                          8 rows at a time; from 48 waiting lanes on a row for every lane;
                                                   `rows 8, in pairs`: 16 as long as there are more than 8
      turns j of k, at most 64, of b1              its turns, those of a loop of its own, may be run all at once
      pop n, left
      piece (n) -> n, i  shared w  if t0:          shared operands, a predicate
        check 2, -: i = w[n // 2]                  the fault site of each of its checks; `-` for one that cannot fail
      store a[i, j] = v  site 3  if t0
      push n                                       the top that it had after the pops
      push left  saved t1                          what is saved is another value
      dead left                                    its top is not kept
      jump b0, turn  steps 1                       the fault site for one step too many

The other terminators are `return`, `fault 4` and `pushjump b0, back to b3, site 0`; for a label of a jump or a call
there may be a branch: `jump branch t0 b1 b2, turn`. The first call of a group that may fork says of each call what the
callee is given and which of its variables are results, and where the lane goes on: `pushjump .., site 0, fork (n = t1)
-> s = r; (n = t2, k = k) -> t = r; join b7`. A piece that is only there for that is `speculative`. Statements are
written as in the other dialects. A piece that is part of a program with gradient tapes says `tapes`, one whose names
are another function's `of g`; one whose fault sites are not those of its statements names them, `sites 3, 4`. One that
is generated code is written `piece fibonacci_b0(n) -> t0` and cannot be read back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pcbatch.ir.machine import (
    Block,
    Branch,
    Fault,
    FaultSite,
    Fork,
    ForkedCall,
    Jump,
    Piece,
    Program,
    Push,
    PushJump,
    Return,
    Statement,
    Store,
    Terminator,
    checked_sites,
)
from pcbatch.ir.printer import INDENT, print_op, print_variable, with_line
from pcbatch.ir.program import Variable
from pcbatch.ir.types import Type


def print_machine(program: Program, *, lines: bool = False) -> str:
    """The text of `program`, ending in a newline; with `lines`, it names the user's source lines that it comes from."""
    results = f" -> {', '.join(program.results)}" if program.results else ""
    text = [f"program machine {program.name}({', '.join(program.parameters)}){results}"]
    labels = [block.label for block in program.blocks]
    text += [INDENT + line for line in _tables(program, labels, lines)]
    function = None
    for block in program.blocks:
        if block.function != function:
            text += ["", *([f"function {block.function}".rstrip()] if block.function or function else [])]
        function = block.function
        text += _block(block, labels, lines)
    return "\n".join(text) + "\n"


def _tables(program: Program, labels: Sequence[str], lines: bool) -> Iterator[str]:
    """Yield the lines on the program's variables, its fault sites and the order of its blocks."""
    for name, storage in program.storage.items():
        yield _variable(name, program.types.get(name), storage)
    for name, type_ in program.types.items():
        if name not in program.storage:
            yield _variable(name, type_, "temporary")
    for name in program.shared:
        yield _variable(name, program.shared_types.get(name), "shared")
    for leader in dict.fromkeys(program.pointers.values()):
        yield f"pointer {leader}: {', '.join(name for name, of in program.pointers.items() if of == leader)}"
    for number, site in enumerate(program.faults):
        yield with_line(f"site {number}: {print_site(site)}", site.span, lines)
    for scope, names in program.externs.items():
        yield f"extern {scope}: {', '.join(names)}"
    if program.structure is not None:
        yield f"structure {program.structure}"
    if program.order:
        yield f"order {', '.join(_label(number, labels) for number in program.order)}"
    if program.native:
        yield f"native {', '.join(_label(number, labels) for number in program.native)}"


def _variable(name: str, type_: Type | None, storage: str) -> str:
    return f"{print_variable(Variable(name, type_))}  {storage}"


def print_site(site: FaultSite) -> str:
    """`INDEX "IndexError: index {} is out of range" k`."""
    text = f"{site.status.name} {json.dumps(site.message, ensure_ascii=False)}"
    return f"{text} {', '.join(site.arguments)}" if site.arguments else text


# -- blocks ------------------------------------------------------------------------------------------------------------


def _block(block: Block, labels: Sequence[str], lines: bool) -> Iterator[str]:
    cost = "" if block.cost is None else f", cost {float(block.cost)!r}"
    yield with_line(f"{block.label}{', sync' if block.sync else ''}{cost}:", block.span, lines)
    if block.chunks:
        whole = "" if block.chunks.whole is None else f", all from {block.chunks.whole}"
        pairs = ", in pairs" if block.chunks.pairs else ""
        yield f"{INDENT}rows {block.chunks.rows}{whole}{pairs}"
    if block.deferred:
        each = block.deferred
        yield f"{INDENT}turns {each.turn} of {each.count}, at most {each.most}, of {_label(each.of, labels)}"
    if block.pops:
        yield f"{INDENT}pop {', '.join(block.pops)}"
    for item in block.body:
        yield INDENT + print_item(item, block.function)
        for statement in item.statements if isinstance(item, Piece) else ():
            yield with_line(INDENT * 2 + print_statement(statement), statement.op.span, lines)
    for push in block.pushes:
        yield INDENT + print_push(push)
    if block.dead:
        yield f"{INDENT}dead {', '.join(block.dead)}"
    steps = "" if block.steps_site == -1 else f"  steps {block.steps_site}"
    yield f"{INDENT}{print_terminator(block.terminator, labels)}{steps}"


def print_item(item: Piece | Store, function: str = "") -> str:
    """Print one item without its contents: `piece (n) -> t0:`, `store a[i] = v  site 3`."""
    predicate = "" if item.predicate is None else f"  if {item.predicate}"
    match item:
        case Store(array, indices, value, site):
            return f"store {array}[{', '.join(indices)}] = {value}{'' if site is None else f'  site {site}'}{predicate}"
        case Piece(reads=reads, writes=writes, shared=shared, sites=sites, tapes=tapes, statements=statements):
            generated = item.function is not None and not statements
            name = getattr(item.function, "__name__", "?") if generated else ""
            parts = [
                f"piece {name}({', '.join(reads)})" + (f" -> {', '.join(writes)}" if writes else ""),
                f"shared {', '.join(shared)}" if shared else "",
                f"sites {', '.join(map(str, sites)) or '-'}" if sites != checked_sites(statements) else "",
                f"of {item.scope or '-'}" if item.scope != function else "",
                "tapes" if tapes else "",
                "speculative" if item.speculative else "",
            ]
            return f"{'  '.join(filter(None, parts))}{predicate}{'' if generated else ':'}"


def print_statement(statement: Statement) -> str:
    """A statement of a piece, its fault sites before it: `check 2, -: i = w[n // 2]`."""
    checks = ["-" if site is None else str(site) for site in statement.sites]
    return f"check {', '.join(checks)}: {print_op(statement.op)}" if checks else print_op(statement.op)


def print_push(push: Push) -> str:
    """`push n`, `push left  saved t1`."""
    return f"push {push.variable}" + ("" if push.saved is None else f"  saved {push.saved}")


def print_terminator(terminator: Terminator, labels: Sequence[str]) -> str:
    """The text of one terminator of a program whose blocks have these labels."""
    match terminator:
        case Jump(target, turn):
            return f"jump {_target(target, labels)}{', turn' if turn else ''}"
        case Branch(fork=fork):
            return _target(terminator, labels) + _fork(fork, labels)
        case Return():
            return "return"
        case Fault(site):
            return f"fault {site}"
        case PushJump(target, back, site, fork=fork):
            call = f"pushjump {_target(target, labels)}, back to {_label(back, labels)}, site {site}"
            return call + _fork(fork, labels)
    raise TypeError(f"not a terminator: {terminator!r}")


def _fork(fork: Fork | None, labels: Sequence[str]) -> str:
    if fork is None:
        return ""
    return f", fork {'; '.join(map(_forked, fork.calls))}; join {_label(fork.join, labels)}"


def _forked(call: ForkedCall) -> str:
    given = ", ".join(f"{variable} = {name}" for variable, name in call.given)
    results = ", ".join(f"{name} = {variable}" for name, variable in call.results)
    condition = "" if call.condition is None else f" if {call.condition}"
    return (f"({given}) -> {results}" if results else f"({given})") + condition


def _target(target: int | Branch, labels: Sequence[str]) -> str:
    if isinstance(target, int):
        return _label(target, labels)
    return f"branch {target.condition} {_label(target.true, labels)} {_label(target.false, labels)}"


def _label(number: int, labels: Sequence[str]) -> str:
    """The label of a block; its number where there is no such block, which cannot be read back."""
    return labels[number] if 0 <= number < len(labels) else str(number)
