"""From functions to a "cfg" program: the entry and every batched function that it reaches through calls."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import gast

from pcbatch.errors import Diagnostic, raise_all
from pcbatch.frontend.check.syntax import check_syntax
from pcbatch.frontend.source.calls import Callees, Report, Resolve, check_uses
from pcbatch.frontend.source.nested import with_nested
from pcbatch.frontend.source.nodes import walk
from pcbatch.frontend.source.scope import is_builtin
from pcbatch.frontend.source.source import FunctionSource
from pcbatch.frontend.translate.aliasing import shared_stores
from pcbatch.frontend.translate.binding import free_names, rebound_receiver, unassigned, unknown_names
from pcbatch.frontend.translate.draft import DraftBlock, relabelled
from pcbatch.frontend.translate.functions import Versions
from pcbatch.frontend.translate.late_reads import late_reads
from pcbatch.frontend.translate.statements import Statements
from pcbatch.frontend.translate.takings import Marked
from pcbatch.frontend.translate.unrolling import Unrolling
from pcbatch.ir.analysis.scope import variables_of
from pcbatch.ir.program import Coded, Function, Op, Program, explicit
from pcbatch.ir.pseudo_builtins import PSEUDO_BUILTINS


@dataclass(frozen=True)
class Built:
    """A program, by the names of its functions where they come from, and what loops are written out."""

    program: Program
    sources: Mapping[str, FunctionSource]
    unrolling: Unrolling = field(default_factory=Unrolling)


def build(entry: FunctionSource, resolve: Resolve, unrolling: Unrolling | None = None) -> Built:
    """The "cfg" program of `entry` and of all batched functions that it calls, directly or not.

    `resolve(source, name)` gives the batched function that a dotted name denotes in the function `source`, else None.
    `unrolling` has what loops are written out, and how many elements they and comprehensions go over, if that is known.
    Functions stand in the order in which calls reach them, breadth first; blocks are numbered through the program.
    Raises NameResolutionError (or UnsupportedSyntaxError) with every fault found in any of the functions.
    """
    unrolling = unrolling or Unrolling()
    found: list[Diagnostic] = []
    names: dict[FunctionSource, str] = {}
    queue: list[FunctionSource] = []
    numbers = itertools.count()
    functions: list[Function] = []

    def name_of(source: FunctionSource) -> str:
        if source not in names:
            candidates = itertools.chain([source.name], map(f"{source.name}_{{}}".format, itertools.count(1)))
            names[source] = next(name for name in candidates if name not in names.values())
            queue.append(source)
        return names[source]

    name_of(entry)
    versions, marked = Versions(), Marked(unrolling.takings, unrolling.methods, unrolling.called)
    sources: dict[str, FunctionSource] = {}
    for each in queue:  # grows while callees are found
        source, faults = with_nested(marked.source(each))
        found += faults
        sources[names[each]] = source
        code = partial(Statements, source, Callees(source, resolve), name_of, versions, unrolling)
        functions.append(_build_function(names[each], code, numbers, found.append))
    shared, checked = shared_stores(functions, sources, unrolling)
    found += shared
    late = [late_reads(function) for function in checked]
    found += [diagnostic for diagnostics, _ in late for diagnostic in diagnostics]
    raise_all(map(unrolling.told, unrolling.left_open(found)))
    return Built(Program("cfg", tuple(_explicit(function) for _, function in late)), sources, unrolling)


def _explicit(function: Function) -> Function:
    """`function` with explicit operations in place of Python where they say the same."""
    variables = frozenset(variables_of(function))

    def op(each: Op) -> Op:
        return explicit(each, variables, function.externs) if isinstance(each, Coded) else each

    blocks = (replace(block, ops=tuple(map(op, block.ops))) for block in function.blocks)
    return replace(function, blocks=tuple(blocks))


def _build_function(
    name: str, make: Callable[[Report], Statements], numbers: itertools.count[int], report: Report
) -> Function:
    """The function that `make` translates; once more where a variable has a value only if a loop makes a turn."""
    found: list[Diagnostic] = []
    code = make(found.append)
    source = code.source
    # Names may have got their meaning since the function was read: `np.random` is known by its import.
    found += check_syntax(source.tree, source.file, source.locals, source.scope, source.receiver)
    check_uses(code.callees, found.append)
    code.function()
    drafts = code.draft.finish()
    missing = unassigned(_finished(name, code, drafts), drafts, source)
    if missing:
        again = make(lambda _: None)
        again.unbound = {each: where.span or source.span for each, where in missing.items()}
        again.function()
        entered = again.draft.finish()
        left = unassigned(_finished(name, again, entered), entered, source)
        if left:
            missing = {each: where for each, where in missing.items() if each in left or each in again.left_out}
        else:
            code, drafts, missing = again, entered, {}
    function = _finished(name, code, drafts, numbers)
    free = free_names(function, frozenset(code.variables))
    defined = {node.name for each in source.tree.body for node in walk(each) if isinstance(node, gast.FunctionDef)}
    known = {*PSEUDO_BUILTINS, source.receiver, *defined}
    unknown = unknown_names(free, drafts, source, known)
    for diagnostic in (*found, *rebound_receiver(source), *missing.values(), *unknown):
        report(diagnostic)
    externs = [each for each in free if each not in PSEUDO_BUILTINS and not is_builtin(source.scope, each)]
    made = tuple(name for name in variables_of(function) if name in code.made)
    return replace(function, externs=tuple(sorted(externs)), made=made)


def _finished(
    name: str, code: Statements, drafts: list[DraftBlock], numbers: itertools.count[int] | None = None
) -> Function:
    """The function of finished blocks, which are numbered if there are `numbers` for them."""
    labels = {draft.label: draft.label if numbers is None else f"b{next(numbers)}" for draft in drafts}
    return Function(
        name=name,
        parameters=tuple(parameter.name for parameter in code.source.parameters),
        results=(code.result,),
        blocks=relabelled(drafts, labels),
        cost=code.source.cost,
        span=code.source.span,
    )
