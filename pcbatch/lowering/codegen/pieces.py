"""Pieces: straight-line statements of the IR as the text of one pure Python function of one example.

The user's operators become checked, batchable ones: `a // b` is `_ops.floordiv(a, b, site)`.

Python's operators mean too little (`and` calls `bool` on a tensor) or too much (`a[i]` must fault, not abort the
batch) for traced values. The rewriting is purely syntactic; `ops` decides by the operands' types at trace time.
"""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from textwrap import indent
from types import FunctionType
from typing import Any

from pcbatch.errors import Span
from pcbatch.ir import program as ir
from pcbatch.ir.expressions import (
    Apply,
    Attribute,
    Constant,
    Delayed,
    Expression,
    Input,
    Items,
    Name,
    Operator,
    Slice,
    call,
    mapped,
    path_of,
    renamed_free,
    walk,
)
from pcbatch.ir.machine import LaneStatus, Piece
from pcbatch.ir.operators import BINARY, UNARY
from pcbatch.ir.payload import Compute, Pattern, pattern_of
from pcbatch.ir.types import MEMBERS
from pcbatch.lowering.codegen.environment import (
    BUILTINS,
    CHECKED_BUILTINS,
    DIVISION,
    DOMAIN,
    HELPER_DIVISION,
    HELPER_INDEX,
    NEGATIVE_POWER,
    NEGATIVE_SHIFT,
    NO_SITE,
    NOT_IN_LIST,
    OPS,
    OUT_OF_RANGE,
    SHORT_SLICE,
    ZERO_DIVISION,
    Environment,
)

# -- operators ---------------------------------------------------------------------------------------------------------


FAULTS = {
    "/": DIVISION,
    "//": ZERO_DIVISION,
    "%": ZERO_DIVISION,
    "**": NEGATIVE_POWER,
    "<<": NEGATIVE_SHIFT,
    ">>": NEGATIVE_SHIFT,
}
"""The faults of operators that may fail a lane."""
WINDOW = Attribute(Name(OPS), "window")

SiteOfCheck = Callable[[LaneStatus, str], int]
EquivalentOf = Callable[[str], "str | None"]


def no_equivalent(path: str) -> None:
    """Return None, for code that calls none of `math`'s and NumPy's functions."""


@dataclass
class Translation:
    """The replacement of an expression's operators and built-ins by calls of `ops`.

    `site(status, message)` numbers a place that may fault. `operands` are the free names of captured arrays. Names in
    `hidden` are no built-ins. `equivalent` says by its path (`np.sqrt`) what of `ops` stands for a function without
    tensors, `may_fail` whether it is a helper in which operators may fail a lane. Operators and attributes are those of
    NumPy's arrays, and indices that are constants are checked like all others.
    """

    site: SiteOfCheck
    operands: Collection[str] = frozenset()
    hidden: Collection[str] = frozenset()
    equivalent: EquivalentOf = field(default=no_equivalent)
    may_fail: Callable[[str], bool] = field(default=lambda path: False)

    def of(self, node: Expression) -> Expression:
        """The expression that stands for `node`."""
        match node:
            case Apply(Operator("[]"), (whole, index)):
                return self._item(whole, index)
            case Apply(Operator(symbol), arguments):
                return self._operator(symbol, tuple(map(self.of, arguments)))
            case Apply():
                return self._call(node)
            case Attribute(value, name):
                found = self.of(value)
                is_value = not (path := path_of(value)) or path.partition(".")[0] in self.operands
                return _ops("member", found, Constant(name)) if name in MEMBERS and is_value else Attribute(found, name)
        return mapped(node, self.of)

    def taken_apart(self, value: Expression, pattern: Pattern) -> Expression:
        """Return an expression of the targets' values: a tensor does not unpack itself while it is traced."""
        is_flat = isinstance(value, Items) and value.kind == "tuple" and not any(pattern)
        return self.of(value) if is_flat else _ops("unpacked", self.of(value), _pattern(pattern))

    def _checked(self, name: str, fault: tuple[LaneStatus, str], *arguments: Expression) -> Apply:
        return _ops(name, *arguments, Constant(self.site(*fault)))

    def _operator(self, symbol: str, given: tuple[Expression, ...]) -> Expression:
        match symbol, given:
            case "if", (condition, true, false):
                return _ops("select", condition, Delayed(true), Delayed(false))
            case "and" | "or", (*others, found):
                for value in reversed(others):
                    found = _ops("both" if symbol == "and" else "either", value, Delayed(found))
                return found
            case _, (value,) if symbol in UNARY and UNARY[symbol].ops:
                return _ops(UNARY[symbol].ops, value)
            case _, (left, right) if symbol in FAULTS:
                return self._checked(BINARY[symbol].ops, FAULTS[symbol], left, right)
            case _, (left, right) if symbol in BINARY and BINARY[symbol].ops:
                return _ops(BINARY[symbol].ops, left, right)
        return Apply(Operator(symbol), given)

    # -- indices -------------------------------------------------------------------------------------------------------

    def _item(self, whole: Expression, index: Expression) -> Expression:
        value, given = self.of(whole), self._index(index)
        if _is_static(index) and not _has_position(index):
            return Apply(Operator("[]"), (value, mapped(index, self.of)))
        is_window = any(isinstance(each, Apply) and each.function == WINDOW for each in walk(given))
        return self._checked("getitem", SHORT_SLICE if is_window else OUT_OF_RANGE, value, given)

    def _index(self, index: Expression) -> Expression:
        """An index as an argument: slices are calls of `slice`, or of `ops.window` if their length is fixed."""
        match index:
            case Slice(lower, upper, step):
                parts = [Constant(None) if each is None else self.of(each) for each in (lower, upper, step)]
                match upper:
                    case Apply(Operator("+"), (start, Constant() as length)) if start == lower:
                        return Apply(WINDOW, (*parts, length))
                return call("slice", *parts)
            case Items("tuple", elements):
                return Items("tuple", tuple(map(self._index, elements)))
        return self.of(index)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _call(self, node: Apply) -> Expression:
        match node:
            case Apply(Attribute(whole, "index" | "count" as name), (given,), ()):
                if name == "index":
                    return self._checked("position", NOT_IN_LIST, self.of(whole), self.of(given))
                return _ops("count", self.of(whole), self.of(given))
        found = mapped(node, self.of)
        assert isinstance(found, Apply)
        path = path_of(node.function)
        if path is None or path.partition(".")[0] in self.operands:
            return found
        if path in BUILTINS and path not in self.hidden:
            return self._builtin(path, found)
        return self._free(path, node, found)

    def _builtin(self, name: str, found: Apply) -> Expression:
        fault = CHECKED_BUILTINS.get(name)
        return self._with_site(Apply(Attribute(Name(OPS), BUILTINS[name]), found.arguments, found.keywords), fault)

    def _free(self, path: str, node: Apply, found: Apply) -> Expression:
        """Return a call of a function of the world, or of the replacement of one that takes no tensors."""
        name = None if path.partition(".")[0] in self.hidden else self.equivalent(path)
        if name is None:
            given = (node.function, *node.arguments, *(value for _, value in node.keywords))
            if any(isinstance(each, Name | Attribute) and self._is_failing(each) for each in given):
                sites = [self.site(*HELPER_DIVISION), self.site(*HELPER_INDEX)]
                if any(site != NO_SITE for site in sites):
                    checking = _ops("checking", found.function, *map(Constant, sites))  # type: ignore[arg-type]
                    return Apply(checking, found.arguments, found.keywords)
            return found
        if name == "without_equivalent":
            return Apply(_ops(name, found.function), found.arguments, found.keywords)  # type: ignore[arg-type]
        module, _, function = name.partition(".")
        fault = DOMAIN if module == "math" else OUT_OF_RANGE if name == "numpy.take" else None
        stands_for = Attribute(Attribute(Name(OPS), module), function)
        return self._with_site(Apply(stands_for, found.arguments, found.keywords), fault)

    def _is_failing(self, node: Expression) -> bool:
        """Return whether this is a helper that may fail a lane, to be called or handed on."""
        path = path_of(node)
        return path is not None and path.partition(".")[0] not in self.hidden and self.may_fail(path)

    def _with_site(self, found: Apply, fault: tuple[LaneStatus, str] | None) -> Apply:
        if fault is None:
            return found
        return Apply(found.function, found.arguments, (*found.keywords, ("site", Constant(self.site(*fault)))))


def _ops(name: str, *arguments: Expression) -> Apply:
    return Apply(Attribute(Name(OPS), name), arguments)


def _pattern(pattern: Pattern) -> Expression:
    """Return the form of targets: None for a name, a tuple of forms for a part that is taken apart again."""
    return Items("tuple", tuple(Constant(None) if part is None else _pattern(part) for part in pattern))


def _is_static(index: Expression) -> bool:
    """Return whether an index is made of constants alone, so that Python's own indexing serves."""
    match index:
        case Constant() | Slice() | Items("tuple"):
            return not any(isinstance(each, Input | Name | Apply | Attribute) for each in walk(index))
    return False


def _has_position(index: Expression) -> bool:
    """Return whether a static index names a position, which may be out of range; slices and keys do not."""
    if isinstance(index, Items):
        return any(map(_has_position, index.items))
    return isinstance(index, Constant) and type(index.value) is int


# -- pieces ------------------------------------------------------------------------------------------------------------


SiteOf = Callable[[int, LaneStatus, str], int]
"""A function from a statement's number in its piece, a check's status and its message, to the fault site."""
_numbers = itertools.count()


@dataclass(frozen=True)
class Statement:
    """One statement of a piece: an op whose expression is translated; None for the end of a `with` block."""

    op: ir.Coded | None
    span: Span | None = None

    @property
    def text(self) -> str:
        """Its text; a `with` block has an empty body."""
        return "" if self.op is None else ir.statement(self.op)

    @property
    def opens(self) -> bool:
        """True for the header of a `with` block, which extends to the statement that closes it."""
        return isinstance(self.op, ir.Enter)

    def renamed(self, names: Mapping[str, str]) -> Statement:
        """The statement with other free names."""
        if self.op is None or not isinstance(self.op.code, Compute):
            return self
        code = replace(self.op.code, expression=renamed_free(self.op.code.expression, names))
        return replace(self, op=replace(self.op, code=code))


@dataclass(frozen=True)
class PieceText:
    """A piece before it is compiled: translated statements, inputs and outputs, and the names that stay free."""

    name: str
    reads: tuple[str, ...]
    shared: tuple[str, ...]
    writes: tuple[str, ...]
    statements: tuple[Statement, ...]
    free: tuple[str, ...]

    def source(self) -> str:
        """The function definition; its body has one line for each line of the statements."""
        body = [line for line, _ in self._lines()]
        values = ", ".join(self.writes) + ("," if len(self.writes) == 1 else "")
        parameters = ", ".join((*self.reads, *self.shared))
        return "\n    ".join([f"def {self.name}({parameters}):", *body, f"return ({values})"]) + "\n"

    def spans(self) -> tuple[Span | None, ...]:
        """The user's source of each line of the body."""
        return tuple(span for _, span in self._lines())

    def _lines(self) -> list[tuple[str, Span | None]]:
        """The lines of the body, those inside `with` blocks indented, each with the user's source."""
        each = self.statements
        texts = [statement.text for statement in each]
        lines = _indented([s.opens for s in each], [s.op is None for s in each], texts)
        return [(line, statement.span) for statement, own in zip(each, lines, strict=True) for line in own]


def _indented(opens: Sequence[bool], closes: Sequence[bool], texts: Sequence[str]) -> list[list[str]]:
    """The lines of each statement, where some are headers that open a `with` block and some, without text, close one.

    A header is a `with` statement whose body is `pass`, which stays where the block is empty.
    """
    found: list[list[str]] = []
    depth = 0
    for place, (opening, closing, text) in enumerate(zip(opens, closes, texts, strict=True)):
        depth -= closing
        is_empty = opening and closes[place + 1]
        header = text.removesuffix("\n    pass") if opening and not is_empty else text
        found.append(indent(header, "    " * depth).splitlines())
        depth += opening
    return found


def write_piece(
    name: str,
    statements: Sequence[ir.Primitive | ir.Enter | ir.Exit],
    writes: tuple[str, ...],
    environment: Environment,
    site: SiteOf,
) -> PieceText:
    """The piece that runs `statements` of the user's and gives `writes`.

    Of their free names, those of captured arrays (`environment`) are shared operands.
    """
    operands = environment.operand_types.keys()
    hidden = environment.hidden_builtins
    translated: list[Statement] = []
    read: dict[str, None] = {}
    shared: dict[str, None] = {}
    free: dict[str, None] = {}
    assigned: set[str] = set()
    for number, op in enumerate(statements):
        if isinstance(op, ir.Exit):
            translated.append(Statement(None, op.span))
            continue
        translation = Translation(partial(site, number), operands, hidden, environment.equivalent, environment.may_fail)
        found = translated_op(op, translation)
        translated.append(Statement(found, op.span))
        for each in op.inputs:
            if each not in assigned:
                read[each] = None
        for each in ir.free(found):
            (shared if each in operands else free)[each] = None
        assigned |= set(op.outputs)
    read.update(dict.fromkeys(each for each in writes if each not in assigned))
    while name in free:  # the user's code reads something of that name
        name += "_"
    return PieceText(name, tuple(read), tuple(shared), writes, tuple(translated), tuple(free))


def translated_op(op: ir.Primitive | ir.Enter, translation: Translation) -> ir.Primitive | ir.Enter:
    """An op whose expression is of calls of `ops`."""
    expression, pattern = ir.expression(op), pattern_of(op.code)
    if pattern is None or isinstance(op, ir.Enter):
        return replace(op, code=Compute(translation.of(expression), pattern))
    return replace(op, code=Compute(translation.taken_apart(expression, pattern), pattern))


def execute(source: str, namespace: dict[str, Any]) -> None:
    """Run generated `source` in `namespace`, registered with linecache so that tracebacks show it.

    As long as its functions live, which they do together, having each other as globals.
    """
    file = f"<pcbatch generated {next(_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), namespace)
    for made in namespace.values():
        if isinstance(made, FunctionType) and made.__code__.co_filename == file:
            weakref.finalize(made, linecache.cache.pop, file, None).atexit = False
            break


def bind(free: Sequence[str], environment: Environment) -> dict[str, Any]:
    """The present values of `free` names; names bound to nothing are left out."""
    bound: dict[str, Any] = {}
    for name in free:
        try:
            bound[name] = environment.lookup(name)
        except KeyError:
            continue
    return bound


def compile_piece(text: PieceText, environment: Environment, sites: tuple[int, ...] = ()) -> Piece:
    """An executable piece, its free names bound to their present values."""
    namespace = {**bind(text.free, environment)}
    execute(text.source(), namespace)
    kept = {name: environment.kept[name] for name in text.shared if name in environment.kept}
    function_, spans = namespace[text.name], text.spans()
    return Piece(function_, text.reads, text.writes, text.shared, sites, spans, kept, environment.tapes)
