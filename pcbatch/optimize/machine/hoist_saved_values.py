"""Values that were saved before a group of calls begins, brought to where its first block can hand them over.

    b2: push k; ..; pushjump b0, back to b3     b2: (as before)
    b3: ..; pushjump b0, back to b4       -->   b3: pop k; k_1 = k; ..; push k = k_1; pushjump b0, back to b4
    b4: pop k; n = n - k; pushjump b0, ..       b4: (as before)

Without that the call in b4 could not be made together with the one in b3: what it is given lies on a stack.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from pcbatch.ir.machine import Program, Push
from pcbatch.optimize.machine.join_blocks import copies


def lifted(
    program: Program,
    first: int,
    variables: Collection[str],
    live: Sequence[frozenset[str]],
    fresh: Callable[[str], str],
) -> Program | None:
    """The program whose block number `first` takes `variables` off their stacks at its start, and saves them again.

    None where there are none, or where the tops of some are in use: what may be read (`live`) in a block or behind it.
    """
    block = program.blocks[first]
    for name in variables:
        if name in live[first] or name in block.pops or program.storage.get(name) != "cached stack":
            return None
    if not variables:
        return None
    kept = {name: fresh(name) for name in sorted(variables)}
    block = replace(
        block,
        pops=(*block.pops, *kept),
        body=(*copies(block, [(name, variable) for variable, name in kept.items()]), *block.body),
        pushes=(*(Push(variable, name) for variable, name in kept.items()), *block.pushes),
    )
    blocks = (*program.blocks[:first], block, *program.blocks[first + 1 :])
    types = {**program.types, **{name: program.types[variable] for variable, name in kept.items()}}
    return replace(program, blocks=blocks, types=types)
