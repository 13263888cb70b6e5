"""Checks of a table before it runs: a mistake in it is shown by name, not as a wrong answer."""

from __future__ import annotations

from pcbatch.ir.machine import Block, Branch, Fault, Jump, Piece, Program, PushJump, Store, targets
from pcbatch.ir.types import TensorType

STORAGE = ("register", "cached stack", "stack")


def validate(program: Program) -> None:
    """Raise ValueError naming the first thing in `program` that cannot run."""
    if not program.blocks:
        raise ValueError(f"{program.name} has no blocks")
    for name, storage in program.storage.items():
        if storage not in STORAGE:
            raise ValueError(f"{program.name}: variable {name!r} has the unknown storage {storage!r}")
        if name not in program.types:
            raise ValueError(f"{program.name}: variable {name!r} has no type")
    shown = [(argument, f"fault message {site.message!r}") for site in program.faults for argument in site.arguments]
    ends = [(name, "parameter or result") for name in (*program.parameters, *program.results)]
    for name, what in shown + ends:
        if name not in program.storage:
            raise ValueError(f"{program.name}: {what} {name!r} is not a variable of the state")
    for block in program.blocks:
        _validate_block(program, block)


def _validate_block(program: Program, block: Block) -> None:
    where = f"{program.name}, block {block.label}"
    for name in (*block.pops, *(push.variable for push in block.pushes)):
        if program.storage.get(name) not in ("stack", "cached stack"):
            raise ValueError(f"{where}: {name!r} is popped or pushed but has no stack")
    known = set(program.storage)
    for item in block.body:
        _require(where, item.predicate is None or item.predicate in known, f"{item.predicate!r} was never written")
        match item:
            case Piece(reads=reads, writes=writes, shared=shared, sites=sites):
                has_code = item.function is not None or bool(item.statements)
                _require(where, has_code, f"there is neither a function nor a statement for {item.writes}")
                _require(where, set(reads) <= known, f"a piece reads {set(reads) - known}, never written")
                _require(where, set(shared) <= set(program.shared), f"unknown shared operand in {shared}")
                _require(where, set(writes) <= set(program.types), f"{set(writes) - set(program.types)} has no type")
                known |= set(writes)
            case Store(array=array, indices=indices, value=value, site=site):
                names = {array, *indices, value}
                _require(where, names <= known, f"a store reads {names - known}, never written")
                _require(where, isinstance(program.types[array], TensorType), f"a store to {array!r}, not a tensor")
                sites = (site,)
        _require_sites(where, program, sites)
    saved = {push.saved for push in block.pushes if push.saved is not None}
    _require(where, saved <= known, f"a push saves {saved - known}, never written")
    stores = {item.array for item in block.body if isinstance(item, Store)}
    _require(where, set(block.dead) <= set(program.storage) - stores, f"{block.dead} cannot all be dead")
    places = targets(block.terminator)
    match block.terminator:
        case (
            Branch(condition=condition)
            | Jump(target=Branch(condition=condition))
            | PushJump(target=Branch(condition=condition))
        ):
            _require(where, condition in known, f"branches on {condition!r}, never written")
    match block.terminator:
        case PushJump(back=back, site=site):
            places = (*places, back)
            _require_sites(where, program, (site,))
        case Fault(site=site):
            _require_sites(where, program, (site,))
    inside = all(0 <= place < len(program.blocks) for place in places)
    _require(where, inside, f"goes to one of {[*places]}, where there is no block")


def _require(where: str, condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(f"{where}: {message}")


def _require_sites(where: str, program: Program, sites: tuple[int, ...]) -> None:
    _require(where, all(0 <= site < len(program.faults) for site in sites), f"fault sites {sites} do not exist")
