"""The verifier: the rules of the IR, per dialect; tests run it after every pass.

First what a program is made of (`pcbatch.ir.verify.rules`), then, where that holds, what happens along its paths
(`pcbatch.ir.verify.path_rules`). Every rule is a generator of violations, one line of text each. The third dialect's
verifier is `pcbatch.ir.verify.machine`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pcbatch.ir.program import Program
from pcbatch.ir.verify import path_rules, rules


class IRError(ValueError):
    """A program breaks rules of the IR: a bug of a pass, never of the user. `violations` lists them all."""

    def __init__(self, violations: Sequence[str]):
        self.violations = tuple(violations)
        super().__init__("\n".join(self.violations))


Stage = tuple[Callable[[Program], rules.Violations], ...]

# A stage may rely on the rules of those before it.
_COMMON: tuple[Stage, ...] = (
    (rules.functions,),
    (rules.labels, rules.dialect, rules.order, rules.contexts, rules.operands, rules.tables),
)
_STAGES: dict[str, tuple[Stage, ...]] = {
    "cfg": (*_COMMON, (path_rules.calls, path_rules.assignment)),
    "stack": (*_COMMON, (path_rules.temporaries, path_rules.storage, path_rules.balance)),
}


def verify(program: Program) -> None:
    """Raise IRError, with every violation, where `program` breaks the rules of its dialect."""
    for stage in _STAGES[program.dialect]:
        if violations := [violation for rule in stage for violation in rule(program)]:
            raise IRError(violations)
