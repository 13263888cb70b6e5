"""The passes, each a pure function from program to program, one to a file; and their order.

Every pass takes valid IR and returns valid IR that answers alike. `optimize` runs those of a program's dialect and can
show the program after each of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TypeVar

from pcbatch.ir import machine
from pcbatch.ir.program import Dialect, Program
from pcbatch.ir.rewrite import relabel
from pcbatch.ir.verifier import verify
from pcbatch.optimize.cfg.block_merging import merge_straight_lines
from pcbatch.optimize.cfg.bool_simplification import branch_on_bools
from pcbatch.optimize.cfg.coalescing import coalesce_copies
from pcbatch.optimize.cfg.dead_code import remove_dead_code
from pcbatch.optimize.cfg.if_conversion import convert_branches
from pcbatch.optimize.cfg.jump_threading import thread_jumps
from pcbatch.optimize.cfg.melding import meld_arms
from pcbatch.optimize.cfg.multiple_results import return_multiple_results
from pcbatch.optimize.cfg.speculation import hoist_free_arms
from pcbatch.optimize.machine.block_order import order_blocks
from pcbatch.optimize.machine.check_elimination import Checked, drop_idle_checks
from pcbatch.optimize.machine.dead_writes import mark_dead_writes
from pcbatch.optimize.machine.deferral import defer_turns
from pcbatch.optimize.machine.forks import find_forks
from pcbatch.optimize.machine.hoist_across_turns import compute_early
from pcbatch.optimize.machine.loop_header_duplication import duplicate_headers
from pcbatch.optimize.machine.pointer_sharing import share_pointers
from pcbatch.optimize.machine.shared_parameters import share_parameters
from pcbatch.optimize.stack.caller_saves import save_only_live
from pcbatch.optimize.stack.coalescing import coalesce
from pcbatch.optimize.stack.copy_propagation import propagate_copies
from pcbatch.optimize.stack.copy_sinking import sink_copies
from pcbatch.optimize.stack.invariants import share_invariants
from pcbatch.optimize.stack.pop_push import update_in_place
from pcbatch.optimize.stack.temporaries import find_temporaries
from pcbatch.optimize.stack.top_of_stack_caching import cache_tops

Pass = Callable[[Program], Program]

CFG_PASSES: Mapping[str, Pass] = {
    "multiple_results": return_multiple_results,
    "copies": coalesce_copies,
    "plain_conditions": branch_on_bools,
    "melding": meld_arms,
    "if_conversion": convert_branches,
    "speculation": hoist_free_arms,
    "jump_threading": thread_jumps,
    "dead_code": remove_dead_code,
    "straight_lines": merge_straight_lines,
}
"""The passes over control flow, in their order; they run again for as long as one of them finds something."""

STACK_PASSES: Mapping[str, Pass] = {
    "invariants": share_invariants,
    "caller_saves": save_only_live,
    "pop_push": update_in_place,
    "copy_sinking": sink_copies,
    "coalescing": coalesce,
    "temporaries": find_temporaries,
    "copy_propagation": propagate_copies,
    "top_of_stack_caching": cache_tops,
}
"""The passes over stacks, in their order."""

PASSES: Mapping[Dialect, Mapping[str, Pass]] = {"cfg": CFG_PASSES, "stack": STACK_PASSES}

MachinePass = Callable[[machine.Program], machine.Program]


def machine_passes(
    checked: Checked,
    shared: Collection[str],
    *,
    merging: bool = True,
    forking: Collection[int] | None = (),
    deferring: Collection[int] | None = (),
    limited: bool = False,
) -> Mapping[str, MachinePass]:
    """The passes over machine programs, in their order.

    `checked` says which fault sites of a piece are really checked, `shared` names the parameters that all lanes share.
    Without `merging` every block stays what it is in the source. Calls that can be made at the same time are found
    where groups of them begin in blocks of `forking`, and turns of loops are put off in those of `deferring`; None
    stands for all blocks. Turns may be refused if `limited`.
    """
    forks: dict[str, MachinePass] = {} if forking == () else {"forks": partial(find_forks, only=forking)}
    deferrals: dict[str, MachinePass] = {} if deferring == () else {"deferral": partial(defer_turns, only=deferring)}
    merges: dict[str, MachinePass] = {"loop_header_duplication": duplicate_headers} if merging else {}
    return {
        **forks,
        "idle_checks": partial(drop_idle_checks, checked=checked),
        **deferrals,
        **merges,
        "early_turns": partial(compute_early, limited=limited),
        "dead_writes": mark_dead_writes,
        "shared_parameters": partial(share_parameters, wanted=shared),
        "pointer_sharing": share_pointers,
        "block_order": order_blocks,
    }


def optimize(program: Program, passes: Mapping[str, Pass] | None = None, after: Seen[Program] | None = None) -> Program:
    """Run the `passes` (None: all of the program's dialect); `after(name, program)` sees each result.

    Every round of the passes over control flow leaves fewer blocks or ops, so that they come to an end.
    """
    chosen = PASSES[program.dialect] if passes is None else passes
    while True:
        before = program
        program = run_passes(program, chosen, after if after is not None else verifying(verify))
        if program.dialect == "stack" or program == before:
            return relabel(program)


P = TypeVar("P")
Seen = Callable[[str, P], None]
"""A callback for the program after each pass, by the pass's name."""


def run_passes(program: P, passes: Mapping[str, Callable[[P], P]], after: Seen[P]) -> P:
    """The program after all `passes`, one after the other; `after(name, program)` sees each result."""
    for name, run in passes.items():
        program = run(program)
        after(name, program)
    return program


def verifying(verify: Callable[[P], None]) -> Seen[P]:
    """The observer of programs in the product: none, or the verifier where PCBATCH_VERIFY=1 asks for it."""
    if os.environ.get("PCBATCH_VERIFY", "0") in ("", "0"):
        return lambda name, program: None

    def seen(name: str, program: P) -> None:
        try:
            verify(program)
        except ValueError as error:
            raise AssertionError(
                f"the pass {name} gives a program that breaks the rules of the IR:\n{error}"
            ) from error

    return seen
