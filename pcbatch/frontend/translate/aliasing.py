"""Element stores and shared arrays: where plain Python would show `a[i] = v` under a second name, it is refused.

Batched arrays are values: a store rebinds one name. Python's are objects: after `b = a` a store shows in both. The two
agree unless another name of the same object is read later. Which names may be the same object says `aliases`.

A batched function takes and gives arrays as values, so its result is new. What another function gives is known when it
is traced: where a store would be wrong if a result were an argument, a check stands behind the call (`apart`).

Whether `o.f[0] = p` goes into an array, which then has a copy of `p`, or into a list, which has `p` itself, is known
when types are inferred. If nothing is wrong in either case, it does not matter. Else the stores are *suspects*: type
inference says which of them are into lists, and the program is built anew with that known. So it is where an attribute
turns out to be a property that gives a part of its object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pcbatch.errors import Diagnostic
from pcbatch.frontend.source.source import FunctionSource
from pcbatch.frontend.translate.alias_refusals import refused
from pcbatch.frontend.translate.aliases import Aliases
from pcbatch.frontend.translate.apart import checked
from pcbatch.frontend.translate.changed_objects import changed_name
from pcbatch.frontend.translate.same_objects import TooManyFactsError
from pcbatch.frontend.translate.unrolling import Unrolling
from pcbatch.ir.method_effects import is_of_effects
from pcbatch.ir.program import Function


def shared_stores(
    functions: Sequence[Function], sources: Mapping[str, FunctionSource], unrolling: Unrolling
) -> tuple[list[Diagnostic], list[Function]]:
    """A diagnostic for each store to an array that may have another name whose value is read later, or is elsewhere.

    Also the functions, with checks behind calls of which it must be known that they give new arrays. The suspects among
    the stores are noted in `unrolling`.
    """
    if not any(changed_name(op) for function in functions for block in function.blocks for op in block.ops):
        return [], list(functions)
    every = [
        Aliases(function, sources[function.name], unrolling.in_place, methods=unrolling.methods)
        for function in functions
    ]
    _summarise(every)
    found: list[Diagnostic] = []
    results: list[Function] = []
    for aliases in every:
        violations = aliases.violations()
        found += [
            refused(each, aliases.function, aliases.source.locals) for each in violations
        ] + aliases.changing_calls()
        results.append(aliases.function if violations else checked(aliases))
    if not found:
        _suspect(every, unrolling)
        if any(aliases.has_changes for aliases in every):
            unrolling.readers.update(span for aliases in every for span in aliases.readers())
    return found, results


def _summarise(every: Sequence[Aliases]) -> None:
    """Find out what each function does to what it is given; a round for each call on the way."""
    if not any(aliases.has_changes for aliases in every):
        return
    while True:
        summaries = {aliases.function.name: aliases.summary() for aliases in every}
        if all(aliases.summaries == summaries for aliases in every):
            return
        for aliases in every:
            aliases.summaries = summaries


def _suspect(every: Sequence[Aliases], unrolling: Unrolling) -> None:
    """Note the stores of which it is not known whether they change objects, if something is wrong where they do.

    Where it has been asked what methods do, something was: what is assumed is the same whatever the answers are.
    """
    undecided = {span for aliases in every for span in aliases.undecided()}
    has_asked = any(is_of_effects(text) for _, text in unrolling.in_place)
    if undecided and (has_asked or _may_be_wrong(every)):
        unrolling.suspects.update(undecided)


def _may_be_wrong(every: Sequence[Aliases]) -> bool:
    """Whether something is wrong where all stores are into lists, or whether that has too many consequences to tell."""
    assumed = [replace(aliases, assumed=True, taken={}, after={}) for aliases in every]
    try:
        _summarise(assumed)
        return any(aliases.violations() or aliases.changing_calls() for aliases in assumed)
    except TooManyFactsError:
        return True
