"""Rules of the machine dialect for the parts of a program: names, tables, fault sites, targets of jumps.

First part of `pcbatch.ir.machine_verifier`; what happens inside the blocks is in `machine_block_rules`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from pcbatch.ir.analysis.effects import is_step, reachable
from pcbatch.ir.machine import Block, Fault, LaneStatus, Piece, Program, PushJump, Store, checked_sites, targets
from pcbatch.ir.machine_printer import print_item, print_terminator
from pcbatch.ir.verifier import Violations, about_message, is_name, repeated

STORAGE = ("register", "cached stack", "stack", "example", "slot")


def at(program: Program, block: Block, item: Piece | Store | None = None) -> str:
    """Return the place of a violation: `gcd, b1: piece (a, b) -> a`."""
    what = "" if item is None else f": {print_item(item, block.function).removesuffix(':')}"
    return f"{program.name}, {block.label}{what}"


def at_end(program: Program, block: Block) -> str:
    """The same of the terminator: `gcd, b1: jump b0, turn`."""
    labels = [each.label for each in program.blocks]
    return f"{at(program, block)}: {print_terminator(block.terminator, labels)}"


def names(program: Program) -> Violations:
    """Check that there are blocks, that labels are identifiers and differ, and so variables and parameters."""
    if not program.blocks:
        yield f"{program.name} has no blocks"
    for label in repeated(block.label for block in program.blocks):
        yield f"{program.name}: two blocks are labelled {label}"
    for name in repeated(program.parameters):
        yield f"{program.name}: two parameters are called {name}"
    labels = (block.label for block in program.blocks)
    for name in dict.fromkeys((*program.storage, *program.types, *program.shared, *labels)):
        if not is_name(name):
            yield f"{program.name}: {name!r} is no name for a variable, a shared operand or a label"
    for block in program.blocks:
        if any(map(str.isspace, block.function)):
            yield f"{at(program, block)}: {block.function!r} is no name for a function"


def tables(program: Program) -> Violations:
    """Variables have a storage class that exists, and a type; parameters and results are variables of the state."""
    for name, storage in program.storage.items():
        if storage not in STORAGE:
            yield f"{program.name}: variable {name!r} has the unknown storage {storage!r}"
        if name not in program.types:
            yield f"{program.name}: variable {name!r} has no type"
    for name in dict.fromkeys((*program.parameters, *program.results)):
        if name not in program.storage:
            yield f"{program.name}: parameter or result {name!r} is not a variable of the state"


def shared(program: Program) -> Violations:
    """Shared operands differ, have one type and are no variables of the state."""
    for name in repeated(program.shared):
        yield f"{program.name}: two shared operands are called {name}"
    for name in sorted(set(program.shared) ^ program.shared_types.keys()):
        yield f"{program.name}: {name!r} is a shared operand without a type, or a type of none"
    for name, type_ in program.shared_types.items():
        if name in program.storage:
            yield f"{program.name}: {name!r} is both a shared operand and a variable of the state"
        if program.types.get(name, type_) != type_:
            yield f"{program.name}: the shared operand {name!r} has two types"


def pointers(program: Program) -> Violations:
    """Variables that share a stack pointer with another have stacks, and every block moves both alike."""
    for name, leader in program.pointers.items():
        where = f"{program.name}: {name!r} has the stack pointer of {leader!r}"
        if any(program.storage.get(each) not in ("stack", "cached stack") for each in (name, leader)):
            yield f"{where}, one of which has no stack"
        if program.pointers.get(leader, leader) != leader:
            yield f"{where}, which has that of {program.pointers[leader]!r}"
        for block in program.blocks:
            pushed, popped = Counter(push.variable for push in block.pushes), Counter(block.pops)
            if (pushed[name], popped[name]) != (pushed[leader], popped[leader]):
                yield f"{where}, but {block.label} does not move them together"


def places(program: Program) -> Violations:
    """Terminators lead to blocks that exist; so does the order of a trip, which has each once."""
    for block in program.blocks:
        back = [block.terminator.back] if isinstance(block.terminator, PushJump) else []
        for place in dict.fromkeys((*targets(block.terminator), *back)):
            if not 0 <= place < len(program.blocks):
                yield f"{at_end(program, block)}: goes to {place}, where there is no block"
    for number in program.order:
        if not 0 <= number < len(program.blocks):
            yield f"{program.name}: the order has {number}, where there is no block"
    for again, count in Counter(program.order).items():
        if count > 1:
            yield f"{program.name}: the order has {again} more than once"


def native(program: Program) -> Violations:
    """Blocks that native code runs exist, and are listed once."""
    for again, count in Counter(program.native).items():
        if count > 1:
            yield f"{program.name}: {again} is native more than once"
    for number in program.native:
        if not 0 <= number < len(program.blocks):
            yield f"{program.name}: {number} is native, where there is no block"


def order(program: Program) -> Violations:
    """The order of a trip has all blocks to which lanes can come. Places must exist."""
    for number in sorted(reachable(program) - set(program.order)) if program.order else ():
        yield f"{program.name}: the order lacks {program.blocks[number].label}, to which lanes can come"


def rows(program: Program) -> Violations:
    """Check that costs of rows are positive numbers, and so are the rows of a chunk and its limit of lanes."""
    for block in program.blocks:
        if block.cost is not None and not 0 < block.cost < math.inf:
            yield f"{at(program, block)}: a row cannot cost {block.cost}"
        if block.chunks and block.chunks.rows < 1:
            yield f"{at(program, block)}: it cannot run on {block.chunks.rows} rows at a time"
        if block.chunks and block.chunks.whole is not None and block.chunks.whole < 1:
            yield f"{at(program, block)}: it cannot run for all lanes where {block.chunks.whole} wait"


CHECKS = (LaneStatus.ARITHMETIC, LaneStatus.INDEX, LaneStatus.RAISED)
"""The kinds of faults that a check in a piece may report; the last is that of a call that is one operation."""


def faults(program: Program) -> Violations:
    """Messages of fault sites are templates for variables of the state; who reports one is of its kind."""
    for fault in program.faults:
        where = f"{program.name}: fault message {fault.message!r}"
        for complaint in about_message(fault.message, len(fault.arguments)):
            yield f"{where}: {complaint}"
        for name in fault.arguments:
            if name not in program.storage:
                yield f"{where}: {name!r} is not a variable of the state"
    records = {name for fault in program.faults if fault.status is LaneStatus.OK for name in fault.arguments}
    for block in program.blocks:
        for item in block.body:
            match item:
                case Piece(sites=sites, statements=statements):
                    named = (*sites, *checked_sites(statements))
                    yield from _sites(program, at(program, block, item), named, CHECKS)
                case Store(array=array, site=int(site)):  # a record has room for every entry
                    records = {
                        name for fault in program.faults if fault.status is LaneStatus.OK for name in fault.arguments
                    }
                    kind = LaneStatus.OK if array in records else LaneStatus.INDEX
                    yield from _sites(program, at(program, block, item), (site,), (kind,))
        match block.terminator:
            case Fault(site=site):
                yield from _sites(program, at_end(program, block), (site,), (LaneStatus.ASSERTION, LaneStatus.RAISED))
            case PushJump(site=site):
                yield from _sites(program, at_end(program, block), (site,), (LaneStatus.MAX_DEPTH,))
        if block.steps_site != -1:  # for programs that nobody runs with `max_steps`
            yield from _sites(program, at_end(program, block), (block.steps_site,), (LaneStatus.MAX_STEPS,))


def steps(program: Program) -> Violations:
    """Every loop turn and call has a fault site for one step too many: asked of programs that run with `max_steps`."""
    for block in program.blocks:
        if is_step(block) and block.steps_site < 0:
            yield f"{at_end(program, block)}: there is no fault site for exceeding max_steps"


def _sites(program: Program, where: str, sites: Iterable[int], kinds: tuple[LaneStatus, ...]) -> Violations:
    """Complaints about fault sites that do not exist, or whose status is not among `kinds`."""
    for site in dict.fromkeys(sites):
        if not 0 <= site < len(program.faults):
            yield f"{where}: the fault site {site} does not exist"
        elif program.faults[site].status not in kinds:
            yield f"{where}: the fault site {site} is for {program.faults[site].status.name}"
