"""Calls refused by name: what would silently run once while the program is traced, or differ by representation.

Names are judged by where they come from (`import numpy as np`, `from random import random`), not by their spelling.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

import gast

from pcbatch.frontend.source.nodes import dotted
from pcbatch.frontend.source.scope import Origin, Scope


@dataclass(frozen=True)
class Ban:
    """Why a call is refused and what to write instead."""

    code: str
    why: str
    help: str


_DRAW = Ban(
    "PCB118",
    "draws from hidden state, which would happen once for the whole batch",
    "draw with `pcbatch.random` from a key that the function is given: `x = pcbatch.random.normal(key)`",
)
_STATELESS = Ban(
    "PCB118",
    "has no rule for a seed per lane",
    "draw with `pcbatch.random` from a key that the function is given: `x = pcbatch.random.normal(key)`",
)
_CLOCK = Ban(
    "PCB119",
    "reads a clock, which would happen once, while the program is traced",
    "measure outside, around the batched call",
)
_INPUT = Ban(
    "PCB119",
    "reads from outside, which would happen once, while the program is traced",
    "read before the batched call and pass the value as an argument",
)
_OUTPUT = Ban(
    "PCB119",
    "writes something, which would happen once, while the program is traced",
    'return the value, or let each lane print it: `pcbatch.debug("x = {}", x)`',
)
_ASSERT = Ban(
    "PCB119",
    "checks the whole batch and vanishes under XLA",
    "write `assert condition, message`: it fails the lane",
)
_VARIABLE = Ban(
    "PCB112",
    "changes a variable, which would happen for the whole batch",
    "return the new value and assign it outside the batched call",
)
_NUMPY = Ban("PCB120", "asks for a concrete value while lanes have none", "use the tensor itself")
_KIND = Ban(
    "PCB120",
    "depends on how a lane value is represented, not on the value",
    "decide outside and pass the outcome by a closure or a further function",
)
_TEXT = Ban("PCB120", "makes a string, which no lane can hold", "keep the number; text is for `assert` and `raise`")
_NAMESPACE = Ban("PCB120", "works on names, which batched code does not keep", "pass values as arguments")
_SUPER = Ban(
    "PCB120",
    "is known as `super().f(..)` alone, in methods that are not batched themselves and not in functions inside them",
    "call the method by its class, `Base.f(self, ..)`, or in a method that is not batched, and call that",
)
_LOOP = Ban("PCB119", "keeps its place in hidden state", "loop with `while` or `for .. in range(..)`")
_MUTATE = Ban(
    "PCB112",
    "changes an object in place",
    "call it in a statement on a variable of the function, `xs.append(v)`, `x = xs.pop()`; of anything else make a new "
    "value, `xs = [*xs, v]`, `d = {**d, key: v}`",
)

_SET = Ban("PCB112", "makes a set, which no lane can hold", "take an array of bools, `seen = tf.zeros([n], tf.bool)`")

_GRADIENTS = Ban(
    "PCB120",
    "works in graphs alone, not on one example",
    "take the gradient on a tape: `with tf.GradientTape() as tape:` and tape.gradient(y, x)",
)

BUILTINS: dict[str, Ban] = {
    "print": _OUTPUT,
    "open": _INPUT,
    "input": _INPUT,
    "breakpoint": _OUTPUT,
    **dict.fromkeys(("isinstance", "type", "id", "hash", "hasattr"), _KIND),
    **dict.fromkeys(("str", "repr", "format", "ascii"), _TEXT),
    **dict.fromkeys(
        ("eval", "exec", "compile", "globals", "locals", "vars", "setattr", "delattr", "__import__"),
        _NAMESPACE,
    ),
    "super": _SUPER,
    **dict.fromkeys(("iter", "next"), _LOOP),
    **dict.fromkeys(("set", "frozenset"), _SET),
    "bytearray": _MUTATE,
}

# By the dotted path of what is called; an entry covers everything that starts with it. The first that fits counts.
PATHS: dict[str, Ban] = {
    "tensorflow.random.stateless_": _STATELESS,
    "tensorflow.python.ops.stateless_random_ops.": _STATELESS,
    "tensorflow.nn.experimental.stateless_dropout": _STATELESS,
    "random.": _DRAW,
    "secrets.": _DRAW,
    "uuid.": _DRAW,
    "numpy.random.": _DRAW,
    "tensorflow.random.": _DRAW,
    "tensorflow.python.ops.random_ops.": _DRAW,
    "tensorflow.nn.dropout": _DRAW,
    "tensorflow.keras.random.": _DRAW,
    "keras.random.": _DRAW,
    "tensorflow.image.random_": _DRAW,
    "time.": _CLOCK,
    "datetime.": _CLOCK,
    "tensorflow.timestamp": _CLOCK,
    "tensorflow.print": _OUTPUT,
    "tensorflow.summary.": _OUTPUT,
    "tensorflow.io.write_": _OUTPUT,
    "logging.": _OUTPUT,
    "sys.stdout.": _OUTPUT,
    "sys.stderr.": _OUTPUT,
    "warnings.warn": _OUTPUT,
    "tensorflow.io.read_": _INPUT,
    "tensorflow.debugging.assert_": _ASSERT,
    "tensorflow.debugging.Assert": _ASSERT,
    "tensorflow.debugging.check_numerics": _ASSERT,
    "tensorflow.Assert": _ASSERT,
    "tensorflow.assert_": _ASSERT,
    "tensorflow.Variable": _VARIABLE,
    "tensorflow.gradients": _GRADIENTS,
    "tensorflow.hessians": _GRADIENTS,
}

# Methods of anything that is not a module.
METHODS: dict[str, Ban] = {
    **dict.fromkeys(("assign", "assign_add", "assign_sub", "scatter_update", "scatter_nd_update"), _VARIABLE),
    "numpy": _NUMPY,
    "format": _TEXT,
    **dict.fromkeys(("pop", "popitem", "setdefault"), _MUTATE),
}
# The same, where the value is not used: what they are called for is a change in place.
MUTATORS = frozenset({"add", "append", "clear", "discard", "extend", "insert", "remove", "reverse", "sort", "update"})


DTYPES = frozenset({"numpy.float64", "numpy.int64", "numpy.uint32", "numpy.uint64"})
"""What makes a number of a dtype that holds more than int32 does."""
WITH_DTYPE = frozenset({"tensorflow.cast", "tensorflow.constant", "tensorflow.convert_to_tensor"})
"""What takes a number and a dtype."""


def ban_on(
    node: Any, local_names: Set[str], scope: Scope, *, discarded: bool = False, receiver: str | None = None
) -> Ban | None:
    """The ban on the call `node`, if there is one; `discarded` if nothing is done with its value.

    Methods of the `receiver` are the user's own, however they are called; those of its attributes may be an array's.
    """
    path = dotted(node.func)
    root, _, rest = (path or "").partition(".")
    if root and root == receiver and "." not in rest:
        return None
    origin = None if path is None or root in local_names else scope.origin(root)
    if origin is not None:
        if not rest and origin.path == f"builtins.{root}":
            return BUILTINS.get(root)
        full = _full(origin, rest)
        for prefix, ban in PATHS.items():
            if full.startswith(prefix):
                return ban
    in_module = origin is not None and origin.module
    unknown = path is not None and root not in local_names and origin is None
    if isinstance(node.func, gast.Attribute) and not in_module and not unknown:
        return _MUTATE if discarded and node.func.attr in MUTATORS else METHODS.get(node.func.attr)
    return None


def _full(origin: Origin, rest: str) -> str:
    return (f"{origin.path}.{rest}" if rest else origin.path).replace("tensorflow._api.v2.", "tensorflow.")


def gives_dtype(node: Any, local_names: Set[str], scope: Scope) -> bool:
    """Whether the call `node` makes a number of its first argument with a dtype that is written there."""
    path = dotted(node.func)
    root, _, rest = (path or "").partition(".")
    origin = None if path is None or root in local_names else scope.origin(root)
    if origin is None:
        return False
    has_dtype = len(node.args) > 1 or any(each.arg == "dtype" for each in node.keywords)
    return _full(origin, rest) in (WITH_DTYPE if has_dtype else DTYPES)
