"""The refusals of the syntax check: codes, messages and what to write instead, as data."""

from __future__ import annotations

from pcbatch.frontend.source.diagnostic import Refusal

TRY = Refusal(
    "PCB101",
    "`try` is not supported",
    "a lane that fails cannot be caught here",
    "test the condition with `if` beforehand; read a failed lane's status from `f.run(..)`",
)
CLASS = Refusal(
    "PCB102",
    "a class inside a batched function is not supported",
    "defined here",
    "define it outside, next to the batched function",
)
DECORATED = Refusal(
    "PCB102",
    "a function inside a batched function has no decorators",
    "what it does would be lost",
    "leave it away: a function inside a batched function is part of it",
)
SCOPE = Refusal(
    "PCB103",
    "a variable around the batched function cannot be assigned",
    "declared here",
    "return the new value and assign it where the function is called",
)
GENERATOR = Refusal(
    "PCB105",
    "a batched function returns once, and cannot `yield`",
    "suspended here",
    "store the values in an array and return that; a function that is gone over in a batched one may `yield`",
)
ASYNC = Refusal("PCB105", "`async` and `await` are not supported", "here", "write a plain function")
TEMPLATE = Refusal(
    "PCB114",
    "template strings are not supported",
    "made here",
    "use the text as the message of an `assert` or a `raise`",
)
TYPES = Refusal("PCB123", "type aliases and type parameters are not supported", "here", "leave the types out")
COST_VALUE = Refusal(
    "PCB127",
    "a row cannot cost this",
    "not a positive number",
    "say about how many multiply-adds one row takes: `@pcbatch.cost(1000.0)`",
)
COST_LITERAL = Refusal(
    "PCB128",
    "this cost is not a literal, so it is not known without running the file",
    "known only when the file runs",
    "write the number here: `@pcbatch.cost(1000.0)`",
)
