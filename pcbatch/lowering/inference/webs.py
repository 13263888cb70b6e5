"""Webs: a variable that is reused for something else becomes two, so that only real joins have to agree on a type.

A web is what one name means from its definitions to their uses: definitions belong together if one use may see either
(Muchnick, "Advanced Compiler Design and Implementation", 1997, section 16.3.3). Types are inferred for webs. Afterwards
webs of one variable whose types are equal go by the user's name again, so that a program in which no name changes its
type stays as it was.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import Analysis, solve
from pcbatch.ir.rewrite.renaming import renamed
from pcbatch.ir.types import Type
from pcbatch.lowering.captures.captured import code_of, function_variables, ordered_variables

Definition = tuple[str, str, int]
"""A variable, and the block and the number of the op that assigns it; parameters are assigned in no block."""
Reaching = frozenset[Definition]


@dataclass(frozen=True)
class Webs:
    """A cfg program with a variable for each web, and the user's name of each that got another, by function."""

    program: ir.Program
    users: Mapping[str, Mapping[str, str]]


def split_webs(program: ir.Program, reserved: frozenset[str]) -> Webs:
    """Give every web of every variable a name of its own, none of them in `reserved`. The first keeps the user's."""
    split = [split_function(function, reserved, {}) for function in program.functions]
    functions = tuple(function for function, _ in split)
    return Webs(replace(program, functions=functions), {function.name: users for function, users in split})


@dataclass(frozen=True)
class Joined:
    """A function whose variables are as few as their types allow, and these types."""

    function: ir.Function
    types: dict[str, Type | None]


def join_webs(function: ir.Function, users: Mapping[str, str], type_of: Callable[[str], Type | None]) -> Joined:
    """The same function with webs of one variable and one type under one name again.

    What is never read has no type; it keeps to itself.
    """
    final: dict[str, str] = {}
    fixed = {*function.parameters, *function.results}
    for user in dict.fromkeys(users.values()):
        webs = [user, *(web for web, name in users.items() if name == user)]
        webs = [web for web in webs if web in function_variables(function)]
        typed = sorted((web for web in webs if type_of(web) is not None), key=lambda web: web not in fixed)
        named: dict[Type | None, str] = {}
        spare = iter([user, *(web for web in webs if web != user)])
        for web in typed:
            if type_of(web) not in named:
                named[type_of(web)] = next(spare)
            final[web] = named[type_of(web)]
        final.update(zip((web for web in webs if type_of(web) is None), spare, strict=False))

    def joined(place: tuple[str, int], name: str) -> str:
        return final.get(name, name)

    types = {joined(("", 0), name): type_of(name) for name in ordered_variables(function)}
    made = tuple(dict.fromkeys(joined(("", 0), name) for name in function.made))
    return Joined(replace(_with_names(function, joined, joined), made=made), types)


# -- splitting ---------------------------------------------------------------------------------------------------------


def split_function(
    function: ir.Function, reserved: frozenset[str], decided: Mapping[str, str]
) -> tuple[ir.Function, Mapping[str, str]]:
    """`function` with a variable for each web, and the user's names of those that got another.

    `decided` has the only arm of some branches, by block: no definition reaches a use through the other one. The
    branches stay, and read what reaches them, so that inference can tell whether they are decided so.
    """
    definitions = list(_definitions(function))
    count = Counter(name for name, _, _ in definitions)
    repeated = {name for name, times in count.items() if times > 1}
    definitions = [each for each in definitions if each[0] in repeated]
    if not definitions:
        return function, {}
    leader, seen = _gather(function, definitions, decided)

    def web(definition: Definition) -> Definition:
        while leader[definition] != definition:
            definition = leader[definition]
        return definition

    words = {word for code in code_of(function) for word in code.words}
    taken = {*words, *ordered_variables(function), *function.externs, *reserved}
    fresh: dict[Definition, str] = {}
    returned = {web(each) for each in seen.get(("", 0), ())}
    for each in sorted(dict.fromkeys(map(web, definitions)), key=lambda each: each not in returned):
        name = each[0]
        numbers = itertools.count(1)
        while name in fresh.values() or (name != each[0] and name in taken):
            name = f"{each[0]}_{next(numbers)}"
        fresh[each] = name

    def read(place: tuple[str, int], name: str) -> str:
        arriving = next((each for each in seen[place] if each[0] == name), None) if name in repeated else None
        return name if arriving is None else fresh[web(arriving)]

    def written(place: tuple[str, int], name: str) -> str:
        return fresh[web((name, *place))] if name in repeated else name

    users = {name: each[0] for each, name in fresh.items() if name != each[0]}
    made = (*function.made, *(name for name, user in users.items() if user in function.made))
    return replace(_with_names(function, read, written), made=made), users


def _definitions(function: ir.Function) -> Iterator[Definition]:
    yield from ((name, "", 0) for name in function.parameters)
    for block in function.blocks:
        for index, op in enumerate(block.ops):
            yield from ((name, block.label, index) for name in ir.writes(op))


def _gather(
    function: ir.Function, definitions: list[Definition], decided: Mapping[str, str]
) -> tuple[dict[Definition, Definition], dict[tuple[str, int], Reaching]]:
    """Union-find links of definitions that some use may both see, and the definitions that reach each op.

    An op is known by its block and number, a terminator by the number behind the last op; `("", 0)` has what reaches
    the end of the function as a result.
    """
    own = {each: number for number, each in enumerate(definitions)}
    leader = {each: each for each in definitions}
    seen: dict[tuple[str, int], Reaching] = {}

    def find(each: Definition) -> Definition:
        while leader[each] != each:
            each = leader[each]
        return each

    def unite(reaching: Reaching, extra: Definition | None = None) -> None:
        together = sorted(reaching, key=own.__getitem__) + ([extra] if extra is not None and extra in own else [])
        for each in together[1:]:
            first, second = sorted((find(together[0]), find(each)), key=own.__getitem__)
            leader[second] = first

    def after(op: ir.Op, place: tuple[str, int], reaching: Reaching) -> Reaching:
        made = {(name, *place) for name in ir.writes(op)} & own.keys()
        rebound = {name for name, _, _ in made}
        return frozenset({each for each in reaching if each[0] not in rebound} | made)

    def through(block: ir.Block, reaching: Reaching) -> Reaching:
        for index, op in enumerate(block.ops):
            reaching = after(op, (block.label, index), reaching)
        return reaching

    start = frozenset(each for each in definitions if not each[1])
    entry = {function.entry: start}
    flow = [replace(b, terminator=ir.Jump(decided[b.label])) if b.label in decided else b for b in function.blocks]
    facts = solve(flow, Analysis("forward", entry, frozenset(), frozenset.union, through))
    returned: Reaching = frozenset()
    for block in function.blocks:
        reaching = facts[block.label].start
        for index, node in enumerate((*block.ops, block.terminator)):
            place = (block.label, index)
            seen[place] = reaching
            for name in ir.reads(node):
                extra = (name, *place) if not _is_separable(node) and name in ir.writes(node) else None
                arriving = frozenset(each for each in reaching if each[0] == name)
                unite(arriving, extra)
                if extra in own and not arriving:  # behind a branch that never comes here
                    seen[place] |= {extra}
            if isinstance(node, ir.Return):
                returned |= {each for each in reaching if each[0] in function.results}
            elif index < len(block.ops):
                reaching = after(block.ops[index], place, reaching)
    for result in function.results:
        unite(frozenset(each for each in returned if each[0] == result))
    seen["", 0] = returned
    return leader, seen


def _is_separable(node: ir.Op | ir.Terminator) -> bool:
    """Whether what `node` reads and what it writes under one name may get two."""
    return ir.statement(node).is_separable if isinstance(node, ir.Coded) else not isinstance(node, ir.Store)


# -- renaming ----------------------------------------------------------------------------------------------------------

Renaming = Callable[[tuple[str, int], str], str]


def _with_names(function: ir.Function, read: Renaming, written: Renaming) -> ir.Function:
    """`function` with what each op reads and writes renamed; parameters and results keep their names."""

    def names(place: tuple[str, int], node: ir.Op | ir.Terminator) -> tuple[dict[str, str], dict[str, str]]:
        reads, writes = dict.fromkeys(ir.reads(node)), dict.fromkeys(ir.writes(node))
        return {name: read(place, name) for name in reads}, {name: written(place, name) for name in writes}

    def ops(block: ir.Block) -> Iterator[ir.Op]:
        for index, op in enumerate(block.ops):
            yield renamed(op, *names((block.label, index), op))

    def terminator(block: ir.Block) -> ir.Terminator:
        return renamed(block.terminator, *names((block.label, len(block.ops)), block.terminator))

    blocks = tuple(replace(each, ops=tuple(ops(each)), terminator=terminator(each)) for each in function.blocks)
    return replace(function, blocks=blocks)
