"""The frontend's error codes, and the refusals of the syntax check: messages and what to write instead, as data."""

from __future__ import annotations

from pcbatch.frontend.source.parsing import Refusal

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


CODES: dict[str, str] = {
    "PCB100": "the source of the function cannot be read",
    "PCB101": "`try`: a lane that fails has a status, it cannot be caught",
    "PCB102": "a class, or a decorated function, inside a batched function",
    "PCB103": "`global`, or `nonlocal` of what is no variable of a batched function",
    "PCB105": "`yield`, `await`, `async`",
    "PCB107": "control flow, a batched call or an element store inside `with`",
    "PCB109": "a loop over what has no items; a range of what are no integers",
    "PCB112": "a `tf.Variable` that is made or changed",
    "PCB113": "`is` with a lane's numbers",
    "PCB114": "a string made from a lane's values outside `assert` and `raise`",
    "PCB116": "`raise` of what is no exception, or was made elsewhere",
    "PCB117": "a number that does not fit into the dtype of what it meets",
    "PCB118": "randomness with hidden state",
    "PCB119": "input, output, clocks: what would happen once, while the program is traced",
    "PCB120": "what depends on how a value is represented: `.numpy()`, `id`, `hash`",
    "PCB121": "`return` without a value",
    "PCB122": "a further decorator under `autobatch`",
    "PCB123": "a type alias or type parameters",
    "PCB124": "a lambda made into a batched function",
    "PCB125": "syntax of Python 2",
    "PCB126": "`pcbatch.sync()` with arguments",
    "PCB127": "`pcbatch.cost` of something that is not a positive number",
    "PCB128": "`pcbatch.cost` of something that only running the file would tell",
    "PCB129": "`range`, `enumerate`, `zip` and `reversed` in combinations that a loop does not take",
    "PCB130": "a list whose length differs by lane, or that has no end",
    "PCB131": "`pcbatch.debug(..)` as a value, or with arguments that do not fit",
    "PCB132": "a forward derivative, inside a batched function, through a batched call",
    "PCB150": "something other than a plain Python function is made into a batched function",
    "PCB151": "a function that does not stand in its file as it is now",
    "PCB152": "a file that is not valid Python",
    "PCB201": "a variable that is not assigned on every path to where it is read",
    "PCB202": "arguments of a batched call that do not fit its parameters",
    "PCB203": "a path through a function that ends without `return`",
    "PCB204": "a store or a change of something that is not a local variable's own",
    "PCB205": "a change of what may be one of several arrays or objects",
    "PCB208": "an unknown name",
    "PCB211": "a call that changes an object that is read later",
}
