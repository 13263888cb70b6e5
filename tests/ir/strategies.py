"""Random programs for hypothesis: every op, terminator, type and odd name, with no regard for sense."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from hypothesis import strategies as st

from pcbatch.errors import Span
from pcbatch.ir import payload
from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import scope
from pcbatch.ir.expression_parser import parse_expression
from pcbatch.ir.expressions import (
    Apply,
    Attribute,
    Constant,
    Delayed,
    Expression,
    Items,
    Name,
    Slice,
    Starred,
    operation,
)
from pcbatch.ir.operators import BINARY, UNARY
from pcbatch.ir.types import StructType, TensorType
from tests.ir.inputs import with_inputs

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


@cache
def names() -> st.SearchStrategy[str]:
    return st.sampled_from(NAMES)


@cache
def name_tuples(least: int = 0) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(names(), min_size=least, max_size=3, unique=True).map(tuple)


@cache
def spans() -> st.SearchStrategy[Span | None]:
    return st.none() | st.integers(1, 99).map(lambda line: Span("file.py", line, 0, line, 1))


@cache
def constants() -> st.SearchStrategy[Constant]:
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    odd = st.sampled_from([None, True, -0.0, "# line 7", "a\nb", 2j, -1 + 2j, ..., b"x"])
    return st.builds(Constant, numbers | odd)


@cache
def expressions() -> st.SearchStrategy[Expression]:
    """Expressions of free names, each as Python would read it."""

    def larger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        some = st.lists(inner, max_size=2).map(tuple)
        starred = st.builds(Starred, inner)
        bounds = st.none() | inner
        slices = st.builds(Slice, bounds, bounds, bounds)
        indices = inner | slices | st.lists(inner | slices, min_size=1, max_size=2).map(lambda i: Items("tuple", (*i,)))
        negatives = inner.filter(lambda each: not (isinstance(each, Constant) and type(each.value) is not bool))
        keywords = st.lists(st.tuples(names() | st.none(), inner), max_size=2, unique_by=lambda pair: pair[0])
        return st.one_of(
            st.builds(operation, st.sampled_from(sorted(BINARY.keys() - {"+", "-"})), inner, inner),
            st.builds(operation, st.sampled_from("+-"), inner, inner.filter(_is_no_complex)),
            st.builds(operation, st.sampled_from(sorted(UNARY)), negatives),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: operation("and", *parts)),
            st.builds(operation, st.just("or"), inner, inner),
            st.builds(operation, st.just("if"), inner, inner, inner),
            st.builds(operation, st.just("[]"), inner, indices),
            st.builds(Apply, inner, st.lists(inner | starred, max_size=2).map(tuple), keywords.map(_ordered)),
            st.builds(Attribute, inner, names()),
            st.builds(Items, st.sampled_from(["tuple", "list"]), st.lists(inner | starred, max_size=2).map(tuple)),
            st.builds(Items, st.just("set"), st.lists(inner, min_size=1, max_size=2).map(tuple)),
            some.map(lambda items: Items("dict", items, tuple(Constant(str(at)) for at in range(len(items))))),
            st.builds(Delayed, inner),
        )

    written = st.sampled_from(TEXTS).map(parse_expression)
    return st.recursive(st.builds(Name, names()) | constants() | written, larger, max_leaves=5)


TEXTS = ["[v for v in n if v]", "lambda w, *z: w + n", "f'{n}: {push!r}'", "{v: w for v in n for w in v}", "a < n < b"]


def _is_no_complex(expression: Expression) -> bool:
    return not (isinstance(expression, Constant) and isinstance(expression.value, complex))


def _ordered(keywords: list[tuple[str | None, Expression]]) -> tuple[tuple[str | None, Expression], ...]:
    return tuple(sorted(keywords, key=lambda pair: pair[0] is None))


@st.composite
def computing(draw: st.DrawFn, kind: type[ir.Coded]) -> ir.Op:
    """An op that computes something, whose inputs are free names as yet."""
    pattern = draw(st.none() | patterns())
    count = 1 if pattern is None else payload.targets(pattern)
    outputs = tuple(draw(st.lists(names(), min_size=count, max_size=count)))
    expression = draw(expressions())
    if kind is ir.Enter or (pattern is None and kind is not ir.Push and draw(st.booleans())):
        expression = Apply(Name(draw(names())), (expression,))
        outputs = outputs if kind is ir.Enter else ()
    return kind(outputs, (), payload.Compute(expression, pattern), draw(spans()))


@cache
def patterns() -> st.SearchStrategy[payload.Pattern]:
    return st.recursive(
        st.lists(st.none(), min_size=1, max_size=3).map(tuple),
        lambda inner: st.lists(st.none() | inner, min_size=1, max_size=3).map(tuple),
        max_leaves=3,
    )


@cache
def explicit_ops() -> st.SearchStrategy[tuple[tuple[str, ...], tuple[str, ...], payload.Payload]]:
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
    explicit = st.tuples(st.sampled_from([ir.Primitive, ir.Push, ir.Update]), explicit_ops(), spans())
    return st.one_of(
        explicit.map(lambda made: made[0](*made[1], made[2])),
        computing(ir.Primitive),
        computing(ir.Enter),
        st.builds(ir.Exit, spans()),
        computing(ir.Push),
        computing(ir.Update),
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
    """A program that means nothing, but whose ops say rightly what they read."""
    dialect = draw(st.sampled_from(["cfg", "stack"]))
    bare = ir.Program(dialect, tuple(draw(st.lists(functions(), min_size=1, max_size=2))))
    every = [scope(bare, function) for function in bare.functions]
    functions_ = zip(bare.functions, every, strict=True)
    return replace(bare, functions=tuple(_function(function, variables) for function, variables in functions_))


def _function(function: ir.Function, variables: frozenset[str]) -> ir.Function:
    blocks = (replace(b, ops=tuple(with_inputs(op, variables) for op in b.ops)) for b in function.blocks)
    return replace(function, blocks=tuple(blocks))
