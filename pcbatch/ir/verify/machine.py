"""The verifier of the machine dialect: a mistake in a program is shown by name, not as a wrong answer.

`pcbatch.ir.verify.machine_rules` has the rules for what a program consists of; `machine_block_rules`, for programs in
which these hold, those for what happens inside its blocks. Every rule is a generator of violations, one line of text
each.
"""

from __future__ import annotations

from collections.abc import Callable

from pcbatch.ir.machine import Program
from pcbatch.ir.verify import machine_block_rules, machine_rules
from pcbatch.ir.verify.verifier import IRError, Violations

Stage = tuple[Callable[[Program], Violations], ...]

# A stage may rely on the rules of those before it.
_STAGES: tuple[Stage, ...] = (
    (
        machine_rules.names,
        machine_rules.tables,
        machine_rules.shared,
        machine_rules.pointers,
        machine_rules.places,
        machine_rules.native,
        machine_rules.rows,
        machine_rules.faults,
        machine_block_rules.forks,
    ),
    (
        machine_rules.order,
        machine_block_rules.values,
        machine_block_rules.stores,
        machine_block_rules.stacks,
        machine_block_rules.dead,
        machine_block_rules.deferred,
        machine_block_rules.operands,
        machine_block_rules.statements,
        machine_block_rules.contexts,
    ),
)


def verify_machine(program: Program) -> None:
    """Raise IRError, with every violation, where `program` breaks the rules of the machine dialect."""
    _raise_all(program, _STAGES)


def validate(program: Program, max_steps: int | None = None) -> None:
    """The same, and for a piece without generated code: the machine's own demands before it runs.

    With `max_steps`, every step needs a fault site, too.
    """
    limits: Stage = () if max_steps is None else (machine_rules.steps,)
    _raise_all(program, (*_STAGES, (machine_block_rules.generated, *limits)))


def _raise_all(program: Program, stages: tuple[Stage, ...]) -> None:
    for stage in stages:
        if violations := [violation for rule in stage for violation in rule(program)]:
            raise IRError(violations)
