"""The verifier of the machine dialect: a mistake in a program is shown by name, not as a wrong answer.

`machine_rules` has the rules for what a program consists of; here are those for what happens inside its blocks, for
programs in which the others hold. Every rule is a generator of violations, one line of text each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pcbatch.ir import machine_rules
from pcbatch.ir.analysis.dataflow import scope_of_piece, variables_of_pieces
from pcbatch.ir.analysis.effects import written
from pcbatch.ir.analysis.parallel_call_groups import groups
from pcbatch.ir.machine import (
    Block,
    Branch,
    Jump,
    Piece,
    Program,
    PushJump,
    Statement,
    Store,
    Terminator,
    checked_sites,
    fork_of,
)
from pcbatch.ir.machine_printer import print_push, print_statement
from pcbatch.ir.machine_rules import at, at_end
from pcbatch.ir.program import Coded, Enter, Exit, reads, writes
from pcbatch.ir.types import NONE, TensorType, leaves
from pcbatch.ir.verifier import IRError, Violations, about_payload, repeated


def values(program: Program) -> Violations:
    """Check that names read are state variables or written before in the block, and that writes have types."""
    for block in program.blocks:
        known = set(program.storage)
        for item in block.body:
            needed = item.reads if isinstance(item, Piece) else (item.array, *item.indices, item.value)
            yield from _unknown(at(program, block, item), needed, known)
            yield from _condition(program, at(program, block, item), item.predicate, known)
            if isinstance(item, Piece):
                known.update(item.writes)
                for name in item.writes:
                    if name not in program.types:
                        yield f"{at(program, block, item)}: {name!r} has no type"
        for push in block.pushes:
            if push.saved is not None:
                yield from _unknown(f"{at(program, block)}: {print_push(push)}", (push.saved,), known)
        yield from _condition(program, at_end(program, block), _asked(block.terminator), known)


def _unknown(where: str, needed: Iterable[str], known: set[str]) -> Violations:
    for name in dict.fromkeys(needed):
        if name not in known:
            yield f"{where}: {name!r} was never written"


def _asked(terminator: Terminator) -> str | None:
    """The condition by which lanes go on, if any."""
    match terminator:
        case Branch() as branch:
            return branch.condition
        case Jump(target=Branch() as branch) | PushJump(target=Branch() as branch):
            return branch.condition
    return None


def _condition(program: Program, where: str, name: str | None, known: set[str]) -> Violations:
    """Complaints about a predicate or the condition of a branch: it is known, and a scalar bool."""
    if name is None:
        return
    yield from _unknown(where, (name,), known)
    if program.types.get(name, TensorType("bool")) != TensorType("bool"):
        yield f"{where}: {name!r} is {program.types[name]}, no scalar bool"


def forks(program: Program) -> Violations:
    """Calls of a group follow each other; they are given values of the right types, and give what lies apart.

    What lies by example is a parameter that nothing writes; what lies in a slot is a result of a forked call, of the
    callee's type, that nothing writes.
    """
    changed = {name for block in program.blocks for name in (*written(block), *block.pops)}
    made = [fork_of(block.terminator) for block in program.blocks]
    slots = {slot for fork in made if fork is not None for call in fork.calls for slot, _ in call.results}
    for name, kind in program.storage.items():
        if kind == "example" and (name in changed or name not in program.parameters):
            yield f"{program.name}: {name!r} lies by example, and is no parameter or is written"
        if kind == "slot" and (name in changed or name not in slots):
            yield f"{program.name}: {name!r} lies in a slot, and is no result of a forked call or is written"
    for block in program.blocks:
        if (fork := fork_of(block.terminator)) is None:
            continue
        where = at_end(program, block)
        if len(fork.calls) < 2:
            yield f"{where}: a group has two calls at least"
        known = {*program.storage, *written(block)}
        for call in fork.calls:
            yield from _condition(program, where, call.condition, known)
            yield from _unknown(where, (name for _, name in call.given), known)
            for name in (
                variable for pairs in (call.given, ((r, s) for s, r in call.results)) for variable, _ in pairs
            ):
                if program.storage.get(name) not in ("register", "cached stack"):
                    yield f"{where}: {name!r} has no top that could be handed over"
            for slot, _ in call.results:
                if program.storage.get(slot) != "slot":
                    yield f"{where}: {slot!r} is no slot"
            for variable, name in call.results:
                if _kind(program, variable) != _kind(program, name):
                    yield f"{where}: {variable!r} is a result of another type"
            for variable, name in call.given:
                if _kind(program, variable) != _kind(program, name):
                    yield f"{where}: {variable!r} is given a value of another type"
    try:
        groups(program)
    except (ValueError, IndexError) as error:  # an index: a block that is not there is said elsewhere
        yield f"{program.name}: {error}"


def stores(program: Program) -> Violations:
    """Stores are to tensors, with no more indices than these have axes."""
    for block in program.blocks:
        for item in block.body:
            if isinstance(item, Store):
                type_ = program.types.get(item.array)
                if not isinstance(type_, TensorType):
                    yield f"{at(program, block, item)}: {item.array!r} is no tensor"
                elif not 0 < len(item.indices) <= len(type_.shape):
                    yield f"{at(program, block, item)}: {item.array!r} is {type_}"


def stacks(program: Program) -> Violations:
    """Check that pushed and popped variables have stacks, and that a saved value has the variable's type."""
    for block in program.blocks:
        for name in dict.fromkeys((*block.pops, *(push.variable for push in block.pushes))):
            if program.storage.get(name) not in ("stack", "cached stack"):
                yield f"{at(program, block)}: {name!r} is popped or pushed but has no stack"
        for push in block.pushes:
            saved = push.variable if push.saved is None else push.saved
            if _kind(program, saved) != _kind(program, push.variable):
                yield f"{at(program, block)}: {print_push(push)}: a value of another type"


def deferred(program: Program) -> Violations:
    """A deferred block is a loop of its own, whose turns store at their own places and change nothing else."""
    for number, block in enumerate(program.blocks):
        if (each := block.deferred) is None:
            continue
        if not isinstance(block.terminator, Branch) or block.terminator.true != number or block.terminator.fork:
            yield f"{at_end(program, block)}: turns are put off, so that it branches to itself or goes on"
        if block.pops or block.pushes or block.sync:
            yield f"{at(program, block)}: turns are put off, so that it pops and pushes nothing, and nobody waits"
        for name in (each.turn, each.count):
            if _kind(program, name) != [("int32", ())] or program.storage.get(name) != "register":
                yield f"{at(program, block)}: {name!r} cannot count its turns"
        if not (each.most > 0 and 0 <= each.of < len(program.blocks)):
            yield f"{at(program, block)}: it has {each.most} turns at most, of block {each.of}"
        stored = {item.array for item in block.body if isinstance(item, Store)}
        changed = {*written(block)} & program.storage.keys() - {each.turn, *stored}
        read_too = {name for item in block.body if isinstance(item, Piece) for name in item.reads} & stored
        for name in sorted(changed | read_too):
            yield f"{at(program, block)}: turns are put off, and each would see {name!r} of the others"
        for item in block.body:
            places = {each.turn, *written(block)} - program.storage.keys() | {each.turn}
            if isinstance(item, Store) and not places.issuperset(item.indices):
                yield f"{at(program, block, item)}: turns are put off, so that they store at their own places"


def _kind(program: Program, name: str) -> list[tuple[str, tuple[int, ...]]]:
    """Return dtype and shape of each leaf on a variable's stack; nothing without a type, an error reported elsewhere.

    Nothing of what has no type, said elsewhere.
    """
    return [(leaf.dtype, leaf.shape) for leaf in leaves(program.types.get(name, NONE))]


def dead(program: Program) -> Violations:
    """A top that is not kept is one that the block pops, pushes or computes, and not one that it stores to in place."""
    for block in program.blocks:
        stored = {item.array for item in block.body if isinstance(item, Store)}
        pushed = {push.variable for push in block.pushes}
        given = ({*block.pops, *pushed, *written(block)} & program.storage.keys()) - stored
        if not given.issuperset(block.dead):
            wrong = ", ".join(repr(name) for name in block.dead if name not in given)
            yield f"{at(program, block)}: {block.dead} cannot all be dead, {wrong} not"


# -- pieces ------------------------------------------------------------------------------------------------------------


def pieces(program: Program) -> Iterator[tuple[Block, Piece]]:
    """Every piece with its block."""
    for block in program.blocks:
        for item in block.body:
            if isinstance(item, Piece):
                yield block, item


def operands(program: Program) -> Violations:
    """The operands of a piece differ, as its results do; those that all lanes share exist and are not written."""
    for block, piece in pieces(program):
        where = at(program, block, piece)
        for name in repeated((*piece.reads, *piece.shared)):
            yield f"{where}: {name!r} is an operand twice"
        for name in repeated(piece.writes):
            yield f"{where}: {name!r} is written twice"
        for name in piece.shared:
            if name not in program.shared:
                yield f"{where}: {name!r} is an unknown shared operand"
        for name in piece.writes:
            if name in program.shared:
                yield f"{where}: {name!r} is a shared operand and cannot be written"


def statements(program: Program) -> Violations:
    """Check that the statements of a piece agree with its operands, its results and its fault sites."""
    variables = variables_of_pieces(program)
    for block, piece in pieces(program):
        if piece.function is not None and not piece.statements:  # generated code
            continue
        where = at(program, block, piece)
        needed: dict[str, None] = {}
        assigned: set[str] = set()
        for statement in piece.statements:
            for complaint in _about(program, statement, scope_of_piece(program, variables, piece)):
                yield f"{where}: {print_statement(statement)}: {complaint}"
            needed.update(dict.fromkeys(name for name in reads(statement.op) if name not in assigned))
            assigned.update(writes(statement.op))
        for name in needed:
            if name not in (*piece.reads, *piece.shared):
                yield f"{where}: its statements read {name!r}, which is no operand"
        for name in piece.reads:  # a shared operand may be in the code as a path (`model.w`)
            if name not in needed:
                yield f"{where}: none of its statements reads {name!r}"
        for name in piece.writes:
            if name not in assigned:
                yield f"{where}: none of its statements assigns {name!r}"
        for name in sorted(assigned.intersection(program.shared)):
            yield f"{where}: {name!r} is a shared operand and cannot be assigned"
        if piece.sites != checked_sites(piece.statements):
            yield f"{where}: its statements can report {checked_sites(piece.statements)}, not {piece.sites}"


def _about(program: Program, statement: Statement, names: frozenset[str]) -> Violations:
    """Yield the violations of one statement, where `names` are in scope."""
    if isinstance(statement.op, Coded):
        yield from about_payload(statement.op, names, program.types)


def contexts(program: Program) -> Violations:
    """Every `with` block ends in the piece that it began in."""
    for block, piece in pieces(program):
        depth = 0
        for statement in piece.statements:
            depth += isinstance(statement.op, Enter) - isinstance(statement.op, Exit)
            if depth < 0:
                yield f"{at(program, block, piece)}: no `with` block has begun"
                break
        if depth > 0:
            yield f"{at(program, block, piece)}: a `with` block does not end"


def generated(program: Program) -> Violations:
    """Check that every piece has generated code."""
    for block, piece in pieces(program):
        if piece.function is None:
            yield f"{at(program, block, piece)}: no code has been generated"


# -- verifier ----------------------------------------------------------------------------------------------------------


Stage = tuple[Callable[[Program], Violations], ...]

# A stage may rely on the rules of those before it.
_STAGES: tuple[Stage, ...] = (
    (
        machine_rules.names,
        machine_rules.tables,
        machine_rules.shared,
        machine_rules.pointers,
        machine_rules.places,
        machine_rules.native,
        machine_rules.rows,
        machine_rules.faults,
        forks,
    ),
    (
        machine_rules.order,
        values,
        stores,
        stacks,
        dead,
        deferred,
        operands,
        statements,
        contexts,
    ),
)


def verify_machine(program: Program) -> None:
    """Raise IRError, with every violation, where `program` breaks the rules of the machine dialect."""
    _raise_all(program, _STAGES)


def validate(program: Program, max_steps: int | None = None) -> None:
    """The same, and for a piece without generated code: the machine's own demands before it runs.

    With `max_steps`, every step needs a fault site, too.
    """
    limits: Stage = () if max_steps is None else (machine_rules.steps,)
    _raise_all(program, (*_STAGES, (generated, *limits)))


def _raise_all(program: Program, stages: tuple[Stage, ...]) -> None:
    for stage in stages:
        if violations := [violation for rule in stage for violation in rule(program)]:
            raise IRError(violations)
