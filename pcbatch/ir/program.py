"""The IR: one set of data types, two dialects (Radul et al., MLSys 2020, Figures 2 and 4).

    program    ::= function+                                    the entry function is the first
    function   ::= name, parameters, results, cost?, block+     the entry block is the first
    block      ::= label, sync?, op*, terminator
    op         ::= Primitive  y.. = f(x..)                      a straight-line statement or an explicit operation
                 | Enter y.. = f(x..) | Exit                    where a `with` block begins and ends
                 | Store      a[i..] = v                        rebinds `a` with one element replaced
                 | Call       y.. = g(x..)                      "cfg" only
                 | Push y.. = f(x..) | Pop x.. | Update y.. = f(x..)         "stack" only
    terminator ::= Jump b | Branch x b b | Return | Fault message            both dialects
                 | PushJump b, back to b                                     "stack" only

What f is, and how it is printed, says an op's payload (`pcbatch.ir.payload`): an expression, as Python, or one of

    y = copy x      y = cast x: float32[]     y = truth x     y = constant: 1.5     y = index x: 0     y = field x: n
    y = pack a, b   y = pack a, b: list       a, (b, c) = unpack x          y = choose c, a, b
    y = replace field x, v: n                 y = replace index x, v: 0

What is between an Enter and its Exit happens inside the `with` block: primitives (in "stack" updates too), in the same
block. Every op reads before it writes; an op of several statements there is none.

Everything is frozen; a pass builds new values. Labels are unique in a program (`b0`, `b1`, ... in layout order, which
is the order of the source). In "cfg" a variable belongs to its function; in "stack" names are unique in the whole
program.

What the stack dialect means for one lane: every variable that is pushed has a stack whose newest entry is its *top*;
reading a variable reads its top. `Push v = f(x)` puts a new top above the old one, `Pop v` removes the top, `Update v
= f(x)` replaces it. A `Primitive` in the stack dialect writes temporaries, which do not outlive their block. A block
has its pops first and its pushes last. `PushJump b, back to c` pushes `c` on the lane's stack of program counters and
goes to `b`; `Return` goes to the label that it pops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from pcbatch.errors import Span
from pcbatch.ir.expressions import Expression, free_names, own_names
from pcbatch.ir.operators import print_expression
from pcbatch.ir.payload import (
    Compute,
    Copy,
    Payload,
    expression_of,
    pattern_of,
    print_statement,
    print_targets,
)
from pcbatch.ir.types import Type

Dialect = Literal["cfg", "stack"]
FaultKind = Literal["assert", "raise"]


def _span() -> Span | None:
    """A source span: every op carries one; it takes no part in comparisons."""
    return field(default=None, compare=False, repr=False)


# -- ops ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Primitive:
    """A straight-line statement without batched calls, e.g. code `a, b = b, a % b`: reads `inputs`, assigns `outputs`.

    `inputs` are the operands of `code`; those of a Compute are its variables, each once, in the order in which the
    expression reads them first. Other names in it are free (globals, closures, builtins).
    """

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    code: Payload
    span: Span | None = _span()


@dataclass(frozen=True)
class Enter:
    """The beginning of a `with` block: `code` has its context manager, and the pattern of its target.

    `outputs` are the variables that its target binds. What follows up to the matching Exit is inside it: no pass moves
    an op in or out, nor past an op that is there for its effect.
    """

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    code: Compute
    span: Span | None = _span()


@dataclass(frozen=True)
class Exit:
    """The `with` block that began last ends."""

    span: Span | None = _span()


@dataclass(frozen=True)
class Store:
    """`array[indices..] = value`, operands being variables: rebinds `array` to a copy with some elements replaced.

    There is an index for each leading axis: an integer, or a vector of distinct positions, of which every combination
    is stored to; without an index the whole array. `value` is broadcast to what is replaced.
    """

    array: str
    indices: tuple[str, ...]
    value: str
    span: Span | None = _span()


@dataclass(frozen=True)
class Call:
    """`outputs = call function(arguments)`; one output for each of the callee's results. Only in "cfg"."""

    outputs: tuple[str, ...]
    function: str
    arguments: tuple[str, ...]
    span: Span | None = _span()


@dataclass(frozen=True)
class Push:
    """Evaluate `code`, then put its values above the old tops of `outputs`. Only in "stack", after all other ops."""

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    code: Payload
    span: Span | None = _span()


@dataclass(frozen=True)
class Pop:
    """Remove the tops of `variables`. Only in "stack", before all other ops of the block."""

    variables: tuple[str, ...]
    span: Span | None = _span()


@dataclass(frozen=True)
class Update:
    """Evaluate `code`, then replace the tops of `outputs` (a pop and a push in one). Only in "stack"."""

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    code: Payload
    span: Span | None = _span()


Op = Primitive | Enter | Exit | Store | Call | Push | Pop | Update
Coded = Primitive | Enter | Push | Update
"""The ops that have a payload."""


# -- terminators -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Jump:
    """Go to `target`. `turn` marks the back edge of a loop of the source (a turn, as `max_steps` counts)."""

    target: str
    turn: bool = False
    span: Span | None = _span()


@dataclass(frozen=True)
class Branch:
    """Go to `true` or `false` by the scalar bool variable `condition`."""

    condition: str
    true: str
    false: str
    span: Span | None = _span()


@dataclass(frozen=True)
class Return:
    """Leave the function; its result variables hold the results."""

    span: Span | None = _span()


@dataclass(frozen=True)
class Fault:
    """The lane fails. `message` is a `str.format` template with one field for each variable of `arguments`.

    The template starts with the exception's name: `"ValueError: x must be positive, not {}"`.
    """

    message: str
    arguments: tuple[str, ...] = ()
    kind: FaultKind = "raise"
    span: Span | None = _span()


@dataclass(frozen=True)
class PushJump:
    """Push `back` on the stack of program counters and go to `target`, the entry of a function. Only in "stack"."""

    target: str
    back: str
    span: Span | None = _span()


Terminator = Jump | Branch | Return | Fault | PushJump


# -- blocks, functions, programs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """Straight-line code; only the terminator may transfer control.

    At a `sync` block lanes wait for the others (`pcbatch.sync()`): they run it only when no lane can run a block that
    is none. What a lane computes does not depend on it; a pass keeps such a block and where it begins.
    """

    label: str
    ops: tuple[Op, ...]
    terminator: Terminator
    sync: bool = False


StorageKind = Literal["temporary", "register", "stack", "cached stack", "shared", "example", "slot"]


@dataclass(frozen=True)
class Variable:
    """The properties of a variable: its type (typed programs), its storage and the reason of that (stack dialect).

    Storage kinds: "temporary" never leaves its block and is not stored; "register" has a top only; "stack" lives in a
    stack alone, every read and write touching it; "cached stack" keeps its top apart and touches the stack on push and
    pop only; "shared" is one value for all lanes; "example" (in "machine") is one for all lanes of an example;
    "slot" (there, too) lies with another lane, that which has run a forked call.
    """

    name: str
    type: Type | None = None
    storage: StorageKind | None = None
    reason: str = ""


@dataclass(frozen=True)
class Function:
    """A batched function. `externs` are the free names that its code reads, sorted; no builtins, no batched functions.

    `made` are those of its variables whose names are the compiler's and mean nothing to the user, in any order.

    `variables` is empty until types or storage are known; then it lists every variable, in order of first appearance.
    `cost` is what its author says that each row of its blocks costs (`pcbatch.cost`), None where nothing is said.
    """

    name: str
    parameters: tuple[str, ...]
    results: tuple[str, ...]
    blocks: tuple[Block, ...]
    externs: tuple[str, ...] = ()
    variables: tuple[Variable, ...] = ()
    cost: float | None = None
    made: tuple[str, ...] = ()
    span: Span | None = _span()

    @property
    def entry(self) -> str:
        """The label of the entry block."""
        return self.blocks[0].label


@dataclass(frozen=True)
class Program:
    """Functions in one dialect; the first is the entry."""

    dialect: Dialect
    functions: tuple[Function, ...]

    @property
    def entry(self) -> Function:
        """The function that a batch starts in."""
        return self.functions[0]

    def function(self, name: str) -> Function:
        """The function called `name`; KeyError if there is none."""
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)

    def blocks(self) -> Iterator[Block]:
        """All blocks in layout order."""
        for function in self.functions:
            yield from function.blocks


# -- what ops and terminators say about themselves ---------------------------------------------------------------------


def reads(node: Op | Terminator) -> tuple[str, ...]:
    """The variables whose values `node` reads."""
    match node:
        case Primitive(inputs=inputs) | Enter(inputs=inputs) | Push(inputs=inputs) | Update(inputs=inputs):
            return inputs
        case Store(array, indices, value):
            return (array, *indices, value)
        case Call(arguments=arguments) | Fault(arguments=arguments):
            return arguments
        case Branch(condition=condition):
            return (condition,)
        case Exit() | Pop() | Jump() | Return() | PushJump():
            return ()
    raise TypeError(f"not an IR node: {node!r}")


def writes(node: Op | Terminator) -> tuple[str, ...]:
    """The variables that `node` gives new values (for Pop: the tops that it restores)."""
    match node:
        case Primitive(outputs=outputs) | Enter(outputs=outputs) | Push(outputs=outputs) | Update(outputs=outputs):
            return outputs
        case Call(outputs=outputs):
            return outputs
        case Store(array=array):
            return (array,)
        case Pop(variables=variables):
            return variables
        case Exit() | Jump() | Branch() | Return() | Fault() | PushJump():
            return ()
    raise TypeError(f"not an IR node: {node!r}")


def statement(op: Coded) -> str:
    """The Python statement that `op` stands for; of an Enter the header of its `with`, and an empty body."""
    if not isinstance(op, Enter):
        return print_statement(op.code, op.outputs, op.inputs)
    return f"with {header(op)}:\n    pass"


def header(op: Enter) -> str:
    """`tf.GradientTape() as tape`."""
    target = print_targets(op.code.pattern, op.outputs)
    target = f"({target})" if op.code.pattern is not None else target
    return print_expression(op.code.expression, op.inputs) + (f" as {target}" if target else "")


def expression(op: Coded) -> Expression:
    """Return the expression of `op` over its inputs; of an Enter its context manager."""
    return expression_of(op.code, len(op.inputs))


def assigned_value(op: Op) -> Expression | None:
    """The right side of the assignment of a single name that `op` is, None where it is none."""
    if not isinstance(op, Primitive | Push | Update) or len(op.outputs) != 1 or pattern_of(op.code) is not None:
        return None
    return expression(op)


def free(op: Coded) -> tuple[str, ...]:
    """The free names that `op` reads, in the order in which it does."""
    return free_names(op.code.expression) if isinstance(op.code, Compute) else ()


def words(op: Coded) -> frozenset[str]:
    """Every name in `op`, of whatever scope."""
    own = own_names(op.code.expression) if isinstance(op.code, Compute) else frozenset()
    return own.union(op.outputs, op.inputs, free_names(expression(op)))


def is_copy(op: Op) -> bool:
    """Return whether `op` assigns one variable the plain value of another: `y = x`."""
    return isinstance(op, Primitive | Push | Update) and isinstance(op.code, Copy)


def is_identity(op: Op) -> bool:
    """Return whether `op` is `x = x`."""
    return is_copy(op) and writes(op) == reads(op)


def successors(terminator: Terminator) -> tuple[str, ...]:
    """The labels that control may reach next inside the function; for PushJump the place where it comes back."""
    match terminator:
        case Jump(target=target):
            return (target,)
        case Branch(true=true, false=false):
            return (true, false)
        case PushJump(back=back):
            return (back,)
        case Return() | Fault():
            return ()
    raise TypeError(f"not a terminator: {terminator!r}")
