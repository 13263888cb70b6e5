"""Element stores and shared arrays: where plain Python would show `a[i] = v` under a second name, it is refused.

Batched arrays are values: a store rebinds one name. Python's are objects: after `b = a` a store shows in both. The two
agree unless another name of the same object is read later. Which names may be the same object is found by a forward
analysis whose facts are pairs of *places*: a variable and a path into it, such as `t` and `(0,)` for `t[0]`. Pairs,
rather than sets of objects for each variable, keep `a, b = b, a` in a loop apart.

A batched function takes and gives arrays as values, so its result is new. What another function gives is known when it
is traced: where a store would be wrong if a result were an argument, a check stands behind the call (`__apart__`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pcbatch.errors import Diagnostic, Note
from pcbatch.frontend.source.source import FunctionSource
from pcbatch.frontend.translate.possible_names import PossibleNames, Spot
from pcbatch.frontend.translate.references import (
    NEW,
    KindOf,
    Taking,
    assignments,
    free_arguments,
    kind_of_calls,
)
from pcbatch.frontend.translate.same_objects import Facts, facts_after, places_related
from pcbatch.ir.analysis.dataflow import Analysis, live_after_each_op, liveness, solve
from pcbatch.ir.code import Code
from pcbatch.ir.program import Block, Coded, Enter, Function, Op, Primitive, Store, reads, writes

APART = "__apart__"
"""The pseudo-builtin `__apart__((b,), (a,))`, which refuses a `b` that is, or has for a part, what `a` is or has."""


def shared_stores(
    functions: Sequence[Function], sources: Mapping[str, FunctionSource]
) -> tuple[list[Diagnostic], list[Function]]:
    """A diagnostic for each store to an array that may have another name whose value is read later, or is elsewhere.

    Also the functions, with checks behind calls of which it must be known that they give new arrays.
    """
    if not any(isinstance(op, Store) for function in functions for block in function.blocks for op in block.ops):
        return [], list(functions)
    found: list[Diagnostic] = []
    checked: list[Function] = []
    for function in functions:
        aliases = _Aliases(function, sources[function.name])
        violations = aliases.violations()
        found += [aliases.refusal(*each) for each in violations]
        checked.append(function if violations else aliases.checked())
    return found, checked


@dataclass
class _Aliases:
    """Which names of one function may be one object."""

    function: Function
    source: FunctionSource
    taken: dict[Code, tuple[Taking, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        written = {name for block in self.function.blocks for op in block.ops for name in writes(op)}
        self.variables = frozenset({*self.function.parameters, *written})
        self.kind_of: KindOf = kind_of_calls(self.source.scope, self.variables.__contains__)
        self.live = {
            block.label: live_after_each_op(block, facts[block.label].end)
            for facts in [liveness(self.function)]
            for block in self.function.blocks
        }

    # -- what is asked -------------------------------------------------------------------------------------------------

    def violations(self) -> list[tuple[Store, tuple[str, ...]]]:
        """Stores to arrays that have other names, with these: of variables that are read later, or of free names."""
        found = []
        for block, at, facts in self._before_each_op():
            op = block.ops[at]
            if isinstance(op, Store):
                related = {name for name, _ in places_related((op.array, ()), facts) if not name.startswith(NEW)}
                others = related & self.live[block.label][at] | related - self.variables
                found += [(op, tuple(sorted(others - {op.array})))] if others - {op.array} else []
        return found

    def checked(self) -> Function:
        """The function with a check behind each call that must give something new for its stores to be right."""
        possible = PossibleNames(self.function, self.kind_of, self.live)
        spots = possible.calls_to_check()
        blocks = {block.label: block for block in self.function.blocks}
        checks = {(label, at): self._check(blocks[label], at, possible.related((label, at))) for label, at in spots}
        return with_ops_behind(self.function, checks)

    # -- the effect of ops ---------------------------------------------------------------------------------------------

    def _solved(self) -> dict[str, Facts]:
        """What holds at the start of each block."""
        nothing: Facts = frozenset()

        def through(block: Block, facts: Facts) -> Facts:
            return self._through_block(block, facts)

        analysis = Analysis("forward", {}, nothing, frozenset.union, through)
        return {label: facts.start for label, facts in solve(self.function.blocks, analysis).items()}

    def _before_each_op(self) -> Iterator[tuple[Block, int, Facts]]:
        start = self._solved()
        for block in self.function.blocks:
            facts = start[block.label]
            for at, op in enumerate(block.ops):
                yield block, at, facts
                facts = self._through(op, facts)

    def _through_block(self, block: Block, facts: Facts) -> Facts:
        for op in block.ops:
            facts = self._through(op, facts)
        return facts

    def _through(self, op: Op, facts: Facts) -> Facts:
        """What holds after `op`: a Store changes an object, and names none."""
        match op:
            case Store():
                return facts
            case Primitive(code=code) | Enter(code=code):
                if code not in self.taken:
                    self.taken[code] = assignments(code, self.kind_of)
                return facts_after(frozenset(code.writes), self.taken[code], facts)
        return facts_after(frozenset(writes(op)), (), facts)

    # -- what is said --------------------------------------------------------------------------------------------------

    def _check(self, block: Block, at: int, related: frozenset[str]) -> tuple[Primitive, ...]:
        """The check behind op `at` of `block`: what it assigns is nothing that it read, or that is read later."""
        op = block.ops[at]
        others = (related & self.live[block.label][at] | set(reads(op))) & self.variables - set(writes(op))
        assert isinstance(op, Coded)
        given = [*sorted(others), *free_arguments(op.code, self.variables)]
        if not given and len(writes(op)) == 1:
            return ()
        code = Code(f"{APART}({_tuple(writes(op))}, {_tuple(given)})")
        return (Primitive((), tuple(name for name in code.reads if name in self.variables), code, op.span),)

    def refusal(self, store: Store, others: Sequence[str]) -> Diagnostic:
        """Why a store is refused."""
        function, user_names = self.function, self.source.locals
        elsewhere = [name for name in others if name not in self.variables]
        if elsewhere:
            return Diagnostic(
                "PCB204",
                f"an element of `{store.array}` is assigned, which may be the same array as `{elsewhere[0]}`",
                store.span,
                "this belongs to another scope",
                f"copy it first, `own = tf.identity({elsewhere[0]})`, and return the result",
            )
        ops = [op for block in function.blocks for op in block.ops]
        spans = [op.span for op in ops if not isinstance(op, Store) and {*others, store.array} & set(writes(op))]
        earlier = [span for span in spans if span is not None and store.span is not None and span < store.span]
        listed = ", ".join(f"`{other}`" for other in others if other in user_names)
        if not listed:
            return Diagnostic(
                "PCB205",
                f"`{store.array}` is changed here, while a loop goes over it",
                store.span,
                "Python would show the change to the loop too",
                f"loop over a copy, `for x in tf.identity({store.array}):`, or over the positions, `range(len(..))`",
                tuple(Note(span, "the loop") for span in earlier[-1:]),
            )
        return Diagnostic(
            "PCB205",
            f"`{store.array}` is changed here, and the same array may be read later as {listed}",
            store.span,
            f"Python would show the change in {listed} too",
            "copy the array where it gets its second name, `b = tf.identity(a)`, or use one name only",
            tuple(Note(span, "a second name may come from here") for span in earlier[-1:]),
        )


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' * (len(names) == 1)})"


def with_ops_behind(function: Function, more: Mapping[Spot, Sequence[Op]]) -> Function:
    """`function` with more ops behind some of its ops."""
    blocks = (
        replace(
            block,
            ops=tuple(each for at, op in enumerate(block.ops) for each in (op, *more.get((block.label, at), ()))),
        )
        for block in function.blocks
    )
    return replace(function, blocks=tuple(blocks))
