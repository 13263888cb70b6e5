"""Passes over the stack dialect, each a pure function from program to program, one to a file; and their order.

Every pass takes valid IR and returns valid IR that answers alike. `optimize` can show the program after each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pcbatch.ir.program import Program
from pcbatch.optimize.cached_tops import cache_tops
from pcbatch.optimize.folded_copies import fold_copies
from pcbatch.optimize.invariants import share_invariants
from pcbatch.optimize.live_saves import save_only_live
from pcbatch.optimize.pop_push import update_in_place
from pcbatch.optimize.temporaries import find_temporaries

Pass = Callable[[Program], Program]

PASSES: Mapping[str, Pass] = {
    "invariants": share_invariants,
    "live_saves": save_only_live,
    "pop_push": update_in_place,
    "temporaries": find_temporaries,
    "folded_copies": fold_copies,
    "cached_tops": cache_tops,
}
"""All passes by name, in the order in which they run."""


def optimize(
    program: Program,
    passes: Mapping[str, Pass] = PASSES,
    after: Callable[[str, Program], None] = lambda name, program: None,
) -> Program:
    """Run `passes` one after the other; `after(name, program)` sees each result (to print, verify or count)."""
    for name, run in passes.items():
        program = run(program)
        after(name, program)
    return program
