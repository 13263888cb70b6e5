"""What a program gives for one example before and after each pass, in the interpreters of its three dialects."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from pcbatch.lowering.calls import lower_calls
from pcbatch.lowering.codegen.emit import checked_sites
from pcbatch.optimize.pipeline import machine_passes, optimize, run_passes
from tests.ir.evaluation import interpreter_callbacks
from tests.ir.interpreter import Outcome, interpret
from tests.ir.machine_interpreter import interpret_machine


def outcomes(function: Any, batch: list[Any], example: list[Any]) -> Iterator[tuple[str, Outcome]]:
    """The name of each stage or pass with what the program then gives for `example`, of the types of `batch`."""
    stages = function.pipeline(*batch)
    environment = stages.environment
    arguments = [function.as_example(*each) for each in zip(function.__signature__.parameters, example, strict=True)]
    programs = [("typed", stages.cfg)]
    cfg = optimize(stages.cfg, after=lambda *seen: programs.append(seen))
    programs.append(("calls", lower_calls(cfg)))
    optimize(programs[-1][1], after=lambda *seen: programs.append(seen))
    machine = [("machine", stages.lowered)]
    passes = machine_passes(partial(checked_sites, environment=environment), shared=())
    run_passes(stages.lowered, passes, lambda *seen: machine.append(seen))
    for run, seen in ((interpret, programs), (interpret_machine, machine)):
        for name, program in seen:
            evaluate, store = interpreter_callbacks(program, environment)
            yield name, run(program, arguments, evaluate, store)
