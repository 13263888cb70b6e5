"""One example of a batched function run by the IR's interpreter: the definition of what every other way of running must give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pcbatch.api import Batched
from pcbatch.ir.interpreter import Outcome, interpret
from pcbatch.lowering.evaluate import interpreter_callbacks


def interpret_example(batched: Batched[..., Any], stage: str, *example: Any, **keywords: Any) -> Outcome:
    """Run one example (no lane axis) through the program at `stage`: "cfg", "stack" or "optimized".

    Arguments are passed by position or keyword as to `batched.single`. The outcome's status is the name of a LaneStatus.
    """
    bound = batched.__signature__.bind(*example, **keywords)
    batch = {name: batched.as_batch_of_one(name, value) for name, value in bound.arguments.items()}
    compilation = batched.compilation(**batch)
    bound.apply_defaults()
    values = [batched.as_example(name, value) for name, value in bound.arguments.items()]
    programs = {"cfg": compilation.typed.program, "stack": compilation.stack, "optimized": compilation.optimized}
    program = programs[stage]
    origin = compilation.typed.origin
    evaluate, store = interpreter_callbacks(program, origin, compilation.environment)
    options = compilation.options
    depth = 64 if options.max_depth is None else options.max_depth
    outcome = interpret(program, values, evaluate, store, max_depth=depth, max_steps=options.max_steps)
    if outcome.status != "OK":
        return outcome
    (result,) = program.entry.results
    type_ = next(v.type for v in program.entry.variables if v.name == result)
    assert type_ is not None, "a typed program"
    return replace(outcome, value=compilation.environment.backend.as_type(outcome.value, type_))
