"""Random programs for hypothesis: every op, terminator, type and odd name, with no regard for sense."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cache

from hypothesis import strategies as st

from pcbatch.errors import Span
from pcbatch.ir import payload
from pcbatch.ir import program as ir
from pcbatch.ir.analysis.scope import inputs_and_outputs, scope
from pcbatch.ir.code import Code
from pcbatch.ir.types import StructType, TensorType

# Names that look like words of the IR are names all the same.
NAMES = [
    "n",
    "t0",
    "é",
    "push",
    "pop",
    "update",
    "call",
    "store",
    "branch",
    "jump",
    "fault",
    "code",
    "var",
    "enter",
    "exit",
    "copy",
    "cast",
    "truth",
    "choose",
    "constant",
    "pack",
    "unpack",
    "index",
    "field",
    "made",
]
EXPRESSIONS = ["{a} + {b}", "{a}[{b}]", "free({a}, lambda n: n + {b})", "[n for n in {a} if n]", "'# line 7'"]
STATEMENTS = [
    "{x} = {e}",
    "{x}, {y} = ({e}, {a})",
    "{x} = {y} = {e}",
    "{x}, *{y} = {e}",
    "{x} += {e}",
    "{x}: int = {e}",
    '{x} = f"""{{{a}}}\n  # line 3\n{{{b}}}\n"""',
]
HEADERS = ["with tape({e}) as {x}:\n    pass", "with {a}:\n    pass", "with {a} as ({x}, *{y}):\n    pass"]


@cache
def names() -> st.SearchStrategy[str]:
    return st.sampled_from(NAMES)


@cache
def name_tuples(least: int = 0) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(names(), min_size=least, max_size=3, unique=True).map(tuple)


@cache
def spans() -> st.SearchStrategy[Span | None]:
    return st.none() | st.integers(1, 99).map(lambda line: Span("file.py", line, 0, line, 1))


@st.composite
def codes(draw: st.DrawFn, statements: tuple[str, ...] = tuple(STATEMENTS)) -> Code:
    a, b, x, y = (draw(names()) for _ in range(4))
    expression = draw(st.sampled_from(EXPRESSIONS)).format(a=a, b=b)
    return Code(ast.unparse(ast.parse(draw(st.sampled_from(statements)).format(a=a, b=b, x=x, y=y, e=expression))))


@cache
def patterns() -> st.SearchStrategy[payload.Pattern]:
    return st.recursive(
        st.lists(st.none(), min_size=1, max_size=3).map(tuple),
        lambda inner: st.lists(st.none() | inner, min_size=1, max_size=3).map(tuple),
        max_leaves=3,
    )


@cache
def explicit_ops() -> st.SearchStrategy[tuple[tuple[str, ...], tuple[str, ...], payload.Explicit]]:
    """Outputs, inputs and payload of an explicit operation."""
    one = st.tuples(names())
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([None, True, -0.0])
    keys = st.integers(0, 9) | st.text(max_size=4)
    copying = st.sampled_from([payload.Copy(), payload.Truth()]) | st.builds(payload.Cast, types())
    parts = st.builds(payload.Index, keys) | st.builds(payload.Field, names())
    unpacked = patterns().flatmap(
        lambda pattern: st.tuples(
            st.lists(names(), min_size=payload.targets(pattern), max_size=payload.targets(pattern)).map(tuple),
            one,
            st.just(payload.Unpack(pattern)),
        )
    )
    return st.one_of(
        st.tuples(one, one, copying | parts),
        st.tuples(one, st.just(()), st.builds(payload.Constant, numbers)),
        st.tuples(one, st.tuples(names(), names(), names()), st.just(payload.Choose())),
        st.tuples(one, st.tuples(names(), names()), st.builds(payload.Replace, parts)),
        st.tuples(
            one, st.lists(names(), min_size=1).map(tuple), st.builds(payload.Pack, st.sampled_from(["tuple", "list"]))
        ),
        unpacked,
    )


@cache
def ops() -> st.SearchStrategy[ir.Op]:
    def coded(kind: type[ir.Primitive] | type[ir.Push] | type[ir.Update]) -> st.SearchStrategy[ir.Op]:
        return st.builds(kind, st.just(()), st.just(()), codes(), spans())

    explicit = st.tuples(st.sampled_from([ir.Primitive, ir.Push, ir.Update]), explicit_ops(), spans())
    return st.one_of(
        explicit.map(lambda made: made[0](*made[1], made[2])),
        coded(ir.Primitive),
        st.builds(ir.Enter, st.just(()), st.just(()), codes(tuple(HEADERS)), spans()),
        st.builds(ir.Exit, spans()),
        coded(ir.Push),
        coded(ir.Update),
        st.builds(ir.Store, names(), name_tuples(1), names(), spans()),
        st.builds(ir.Call, name_tuples(), st.sampled_from(["f", "call", "Model.step"]), name_tuples(), spans()),
        st.builds(ir.Pop, name_tuples(1), spans()),
    )


@cache
def labels() -> st.SearchStrategy[str]:
    return st.integers(0, 99).map("b{}".format) | names()


@cache
def terminators() -> st.SearchStrategy[ir.Terminator]:
    message = st.text() | st.sampled_from(['E: "quoted" {}', "E: back\\slash", "E: two\nlines # line 3"])
    return st.one_of(
        st.builds(ir.Jump, labels(), st.booleans(), spans()),
        st.builds(ir.Branch, names(), labels(), labels(), spans()),
        st.builds(ir.Return, spans()),
        st.builds(ir.Fault, message, name_tuples(), st.sampled_from(["assert", "raise"]), spans()),
        st.builds(ir.PushJump, labels(), labels(), spans()),
    )


@cache
def types() -> st.SearchStrategy[TensorType | StructType]:
    shapes = st.lists(st.integers(0, 400), max_size=3).map(tuple)
    tensors = st.builds(TensorType, st.sampled_from(["int32", "float32", "bool"]), shapes) | st.sampled_from(
        [TensorType("int32", (), True), TensorType("float32", (), True)]
    )

    def structures(items: st.SearchStrategy[TensorType | StructType]) -> st.SearchStrategy[StructType]:
        plain = st.builds(StructType, st.sampled_from(["tuple", "list"]), st.lists(items, max_size=3).map(tuple))
        keys = st.text(max_size=4) | names()
        entries = st.dictionaries(keys, items, max_size=3)
        fields = st.dictionaries(names(), items, max_size=3)
        return st.one_of(
            plain,
            entries.map(lambda d: StructType("dict", tuple(d.values()), tuple(d))),
            fields.map(lambda d: StructType("f.<locals>.State", tuple(d.values()), tuple(d))),
        )

    return st.recursive(tensors, structures, max_leaves=6)


@cache
def variables() -> st.SearchStrategy[ir.Variable]:
    storage = st.sampled_from([None, "temporary", "register", "stack", "cached stack", "shared"])
    reasons = st.lists(st.sampled_from(["read", "--", "after", "# line 4", "b0,"]), max_size=4).map(" ".join)
    return st.builds(ir.Variable, names(), st.none() | types(), storage, reasons)


@cache
def functions() -> st.SearchStrategy[ir.Function]:
    blocks = st.builds(ir.Block, labels(), st.lists(ops(), max_size=3).map(tuple), terminators(), st.booleans())
    return st.builds(
        ir.Function,
        st.sampled_from(["f", "function", "Model.step"]),
        name_tuples(),
        name_tuples(),
        st.lists(blocks, min_size=1, max_size=3).map(tuple),
        name_tuples(),
        st.lists(variables(), max_size=2).map(tuple),
        st.none() | st.floats(0, exclude_min=True, allow_infinity=False),
        name_tuples(),
        spans(),
    )


@st.composite
def programs(draw: st.DrawFn) -> ir.Program:
    """A program that means nothing, but whose ops say rightly what their code reads and assigns."""
    dialect = draw(st.sampled_from(["cfg", "stack"]))
    bare = ir.Program(dialect, tuple(draw(st.lists(functions(), min_size=1, max_size=2))))
    assigned = _with_operands(bare, frozenset())  # outputs first: they are variables, which inputs depend on
    every = [scope(assigned, function) for function in assigned.functions]
    return replace(
        assigned,
        functions=tuple(_function(f, variables) for f, variables in zip(assigned.functions, every, strict=True)),
    )


def _with_operands(program: ir.Program, variables: frozenset[str]) -> ir.Program:
    return replace(program, functions=tuple(_function(function, variables) for function in program.functions))


def _function(function: ir.Function, variables: frozenset[str]) -> ir.Function:
    def op(op: ir.Op) -> ir.Op:
        if isinstance(op, ir.Coded) and isinstance(op.code, Code):
            inputs, outputs = inputs_and_outputs(op.code, variables)
            return replace(op, inputs=inputs, outputs=outputs)
        return op

    return replace(function, blocks=tuple(replace(b, ops=tuple(map(op, b.ops))) for b in function.blocks))
