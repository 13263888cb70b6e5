"""Tail calls whose results are of another type: the callee is made to give the caller's, so that it is a jump indeed.

`max_depth` counts calls that are not tail calls, which is a fact of the source. Where a function returns what another
one gives, but as an int32 that elsewhere is a weak number, a conversion would stand behind the call. So that caller
calls an instance of the other whose result is converted where it is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.lowering.inference.instances import Instance
from pcbatch.lowering.inference.static import Binding, Known


def with_equal_results(root: Instance) -> Instance:
    """The instances from `root` on, every tail callee giving results of its caller's types."""
    made: dict[tuple[int, tuple[Known | None, ...]], Instance] = {}

    def widened(instance: Instance, results: tuple[Known | None, ...]) -> Instance:
        key = (id(instance), results)
        if key not in made:
            own = dict(zip(instance.function.results, results, strict=True))
            bindings = {name: Binding(own.get(name, old.known), old.span) for name, old in instance.bindings.items()}
            made[key] = replace(instance, bindings=bindings)
            tails = set(_tail_calls(instance))
            made[key].calls = {
                place: widened(target, results if place in tails else tuple(target.results))
                for place, target in instance.calls.items()
            }
        return made[key]

    return widened(root, tuple(root.results))


def _tail_calls(instance: Instance) -> Iterator[tuple[str, int]]:
    """The places of the instance's tail calls."""
    function = instance.function
    for block in function.blocks:
        call = block.ops[-1] if block.ops and isinstance(block.terminator, ir.Return) else None
        if isinstance(call, ir.Call) and call.outputs == function.results:
            yield block.label, len(block.ops) - 1
