"""Random programs of the machine dialect for hypothesis: every part, odd names, with no regard for sense."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from pcbatch.ir import machine as table
from pcbatch.ir import program as ir
from pcbatch.ir.machine import LaneStatus
from pcbatch.ir.types import StructType
from tests.ir.inputs import with_inputs_of_pieces
from tests.ir.strategies import NAMES, computing, name_tuples, names, spans, types

ODD_NAMES = [
    *NAMES,
    "saved",
    "site",
    "sites",
    "shared",
    "tapes",
    "steps",
    "check",
    "literal",
    "piece",
    "function",
]
numbers = st.integers(0, 5)


@cache
def any_names() -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(ODD_NAMES), max_size=3, unique=True).map(tuple)


@cache
def sites() -> st.SearchStrategy[table.FaultSite]:
    message = st.text() | st.sampled_from(['E: "quoted" {}', "E: back\\slash", "E: two\nlines # line 3"])
    return st.builds(table.FaultSite, st.sampled_from(LaneStatus), message, name_tuples(), spans())


@cache
def statements() -> st.SearchStrategy[table.Statement]:
    ops = st.one_of(computing(ir.Primitive), computing(ir.Enter), st.builds(ir.Exit, spans()))
    checks = st.lists(st.none() | numbers, max_size=3).map(tuple)
    return st.builds(table.Statement, ops, checks)


@st.composite
def pieces(draw: st.DrawFn) -> table.Piece:
    body = tuple(draw(st.lists(statements(), max_size=3)))
    known = draw(st.just(table.checked_sites(body)) | st.lists(numbers, max_size=3).map(tuple))
    return table.Piece(
        None,
        draw(any_names()),
        draw(any_names()),
        draw(any_names()),
        known,
        spans=tuple(draw(st.lists(spans(), max_size=2))),
        tapes=draw(st.booleans()),
        statements=body,
        predicate=draw(st.none() | names()),
    )


@cache
def stores() -> st.SearchStrategy[table.Store]:
    return st.builds(table.Store, names(), name_tuples(1), names(), numbers, st.none() | names())


def terminators(blocks: int) -> st.SearchStrategy[table.Terminator]:
    places = st.integers(0, blocks - 1)
    branches = st.builds(table.Branch, names(), places, places)
    return st.one_of(
        st.builds(table.Jump, places | branches, st.booleans()),
        branches,
        st.builds(table.Return),
        st.builds(table.Fault, numbers),
        st.builds(table.PushJump, places | branches, places, numbers),
    )


@st.composite
def blocks(draw: st.DrawFn, label: str, count: int) -> table.Block:
    return table.Block(
        label,
        tuple(draw(st.lists(pieces() | stores(), max_size=3))),
        draw(terminators(count)),
        draw(any_names()),
        tuple(draw(st.lists(st.builds(table.Push, names(), st.none() | names()), max_size=3))),
        draw(st.sampled_from(["", "f", "function", "Model.step", "f.<locals>.<lambda>"])),
        draw(spans()),
        draw(st.integers(-1, 3)),
        draw(st.booleans()),
        draw(st.none() | st.floats(0, exclude_min=True, allow_infinity=False)),
        draw(any_names()),
        draw(st.none() | st.builds(table.Chunks, numbers, st.none() | numbers, st.booleans())),
    )


@st.composite
def programs(draw: st.DrawFn) -> table.Program:
    """A program that means nothing, but whose ops say rightly what they read."""
    labels = draw(st.lists(st.integers(0, 99).map("b{}".format) | st.sampled_from(ODD_NAMES), max_size=3, unique=True))
    kinds = st.sampled_from(["register", "stack", "cached stack"])
    storage = draw(st.dictionaries(names(), kinds, max_size=3))
    shared = draw(any_names())
    program = table.Program(
        draw(st.sampled_from(["f", "function", "Model.step"])),
        draw(any_names()),
        draw(any_names()),
        draw(st.dictionaries(names(), types(), max_size=4)),
        storage,
        tuple(draw(blocks(label, len(labels))) for label in labels),
        tuple(draw(st.lists(sites(), max_size=3))),
        shared,
        {name: draw(types()) for name in shared if draw(st.booleans())},
        draw(st.dictionaries(names(), names(), max_size=3)),
        tuple(draw(st.lists(st.integers(0, len(labels) - 1), max_size=3))) if labels else (),
        structure=draw(st.none() | types().filter(lambda type_: isinstance(type_, StructType))),
    )
    return with_inputs_of_pieces(program)
