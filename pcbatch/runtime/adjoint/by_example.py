"""Gradients by shared operands of each example apart, from one replay: no sum over the lanes is made."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from pcbatch.errors import GradientError
from pcbatch.ir.analysis.activity import has_gradient
from pcbatch.ir.types import leaves
from pcbatch.runtime.adjoint.custom_gradient import check
from pcbatch.runtime.adjoint.reverse import Reverse
from pcbatch.runtime.backends.protocol import Array
from pcbatch.runtime.machine.result_packing import argument_arrays, operand_arrays


def gradients_by_example(
    way: Reverse, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any, wanted: Collection[int]
) -> dict[int, Array | None]:
    """The gradient of the sum of each lane's float results, `[lanes, ...]`, by those leaves of `shared` at `wanted`.

    None where none flows, zeros for lanes that fail. Nobody takes a gradient through it: GradientError PCB604.
    """
    backend, program = way.backend, way.program
    names = [name for name in program.shared for _ in leaves(program.shared_types[name])]
    way = way.planned(sources=(frozenset(), frozenset(names[place] for place in wanted)), by_lane=True)
    flat = [*argument_arrays(program, backend, arguments, lanes), *operand_arrays(program, backend, shared)]
    found: dict[int, Array | None] = {}

    error = GradientError(
        f"PCB604: a gradient of the gradients of {program.name!r} was asked for\n  help: only first derivatives go "
        f"through a batched call; keep the second from flowing there with tf.stop_gradient(...)"
    )

    def refuse(_: Any) -> Any:
        raise error

    def run(arrays: list[Array]) -> tuple[Sequence[Array], Any]:
        check(backend, program.name)
        if isinstance(lanes, int) and lanes == 0:
            every = way.nothing()
        else:
            types = [leaf for name in program.results for leaf in way.layout.leaves(name)]
            seeds = [backend.zeros(lanes, leaf) + 1 if has_gradient(leaf) else None for leaf in types]
            every = way.pulled_back(None, arrays, seeds, lanes)
        of_shared = every[len(every) - len(shared) :]
        found.update((place, of_shared[place]) for place in wanted)
        return [each for each in found.values() if each is not None], refuse

    values = iter(backend.differentiable(run, flat, program.name))
    return {place: None if each is None else next(values) for place, each in found.items()}
