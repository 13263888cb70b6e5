"""From the user's operators to checked, batchable ones: `a // b` becomes `_ops.floordiv(a, b, site)`.

Python's operators mean too little (`and` calls `bool` on a tensor) or too much (`a[i]` must fault, not abort the
batch) for traced values. The rewriting is purely syntactic; `ops` decides by the operands' types at trace time.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping

from pcbatch.ir.code import Code, Scoped
from pcbatch.ir.members import MEMBERS
from pcbatch.ir.slices import length_of
from pcbatch.ir.status import LaneStatus
from pcbatch.lowering.codegen.builtins import BUILTINS, MIDDLE, OPS
from pcbatch.lowering.codegen.faults import (
    CHECKED_BUILTINS,
    CHECKED_METHODS,
    DIVISION,
    DOMAIN,
    HELPER_DIVISION,
    HELPER_INDEX,
    NEGATIVE_POWER,
    NEGATIVE_SHIFT,
    NO_SITE,
    NOT_IN_LIST,
    OUT_OF_RANGE,
    SHORT_SLICE,
    ZERO_DIVISION,
)
from pcbatch.lowering.codegen.truth import asked_for_truth, is_bool
from pcbatch.syntax import parse

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.MatMult: "matrix_product",
    ast.BitAnd: "bit_and",
    ast.BitOr: "bit_or",
    ast.BitXor: "bit_xor",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}
"""Operators that are TensorFlow's own where that has them for the operands, and otherwise these functions of `ops`."""

SiteOf = Callable[[LaneStatus, str], int]
EquivalentOf = Callable[[str], "str | None"]


def no_equivalent(path: str) -> None:
    """For code that calls none of `math`'s and NumPy's functions."""


def translate(
    code: Code,
    site: SiteOf,
    operands: Mapping[str, str],
    own: frozenset[str],
    equivalent: EquivalentOf = no_equivalent,
    may_fail: Callable[[str], bool] = lambda path: False,
) -> Code:
    """`code` with its operators and built-ins replaced by calls of `ops`.

    `site(status, message)` numbers a place that may fault. `operands` maps the text of a captured path (`W`,
    `model.w`) to the name under which it is handed in. Names in `own` (variables, and globals that hide a built-in)
    are no built-ins. `equivalent` says by its path (`np.sqrt`) what of `ops` stands for a function without tensors,
    `may_fail` whether it is a helper in which operators may fail a lane. Operators and attributes are those of
    NumPy's arrays, and indices written as numbers are checked like all others.
    """
    tree = parse(code.text)
    asked = asked_for_truth(tree, lambda name: name == "bool" and name not in own)
    translated = _Translator(site, operands, own, equivalent, may_fail, asked).visit(tree)
    return Code(ast.unparse(ast.fix_missing_locations(translated)))


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(OPS, ast.Load()), name, ast.Load()), list(arguments), [])


def _thunk(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


class _Translator(Scoped):
    def __init__(
        self,
        site: SiteOf,
        operands: Mapping[str, str],
        own: frozenset[str],
        equivalent: EquivalentOf,
        may_fail: Callable[[str], bool],
        asked: frozenset[int],
    ):
        super().__init__()
        self.equivalent = equivalent
        self.may_fail = may_fail
        self.site = site
        self.operands = operands
        self.own = own
        self.asked = asked
        self.kept = 0  # middle operands of chained comparisons kept so far
        self.iterables = 0  # how many iterables of comprehensions are around: Python takes no `:=` there

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load):
            name = self.operands.get(ast.unparse(node))
            if name is not None and not self.hidden(_root(node)):
                return ast.Name(name, ast.Load())
        return super().visit(node)

    def _checked(self, name: str, fault: tuple[LaneStatus, str], *arguments: ast.expr) -> ast.Call:
        return _call(name, *arguments, ast.Constant(self.site(*fault)))

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        patterns = [_pattern(t) for t in node.targets if isinstance(t, (ast.Tuple, ast.List))]
        flat = isinstance(node.value, ast.Tuple) and not any(_nested(pattern) for pattern in patterns)
        if patterns and not flat:  # a tensor does not unpack itself while it is traced
            node.value = _call("unpacked", node.value, patterns[0])
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        match node.op:
            case ast.Mult():
                return _call("multiply", node.left, node.right)
            case ast.Div():
                return self._checked("divide", DIVISION, node.left, node.right)
            case ast.LShift():
                return self._checked("left_shift", NEGATIVE_SHIFT, node.left, node.right)
            case ast.RShift():
                return self._checked("right_shift", NEGATIVE_SHIFT, node.left, node.right)
            case ast.FloorDiv():
                return self._checked("floordiv", ZERO_DIVISION, node.left, node.right)
            case ast.Mod():
                return self._checked("mod", ZERO_DIVISION, node.left, node.right)
            case ast.Pow():
                return self._checked("power", NEGATIVE_POWER, node.left, node.right)
            case other if type(other) in OPERATORS:
                return _call(OPERATORS[type(other)], node.left, node.right)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        given = self._as_truths(node, node.values)
        self.generic_visit(node)
        name = "both" if isinstance(node.op, ast.And) else "either"
        *others, result = given(node.values)
        for value in reversed(others):
            result = _call(name, value, _thunk(result))
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        match node.op:
            case ast.Not():
                return _call("negate", node.operand)
            case ast.UAdd():
                return _call("positive", node.operand)
            case ast.USub():
                return _call("negative", node.operand)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        root = _root(node)
        is_value = not root or root in self.own or root in self.operands.values() or self.hidden(root)
        if node.attr in MEMBERS and isinstance(node.ctx, ast.Load) and is_value:
            return _call("member", node.value, ast.Constant(node.attr))
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        given = self._as_truths(node, [node.body, node.orelse])
        self.generic_visit(node)
        return _call("select", node.test, *map(_thunk, given([node.body, node.orelse])))

    def _as_truths(self, node: ast.expr, operands: list[ast.expr]) -> Callable[[list[ast.expr]], list[ast.expr]]:
        """What makes bools of the translated `operands` of a choice, as far as they are none, if its truth is asked."""
        if id(node) not in self.asked:
            return lambda translated: translated
        known = [id(each) in self.asked or is_bool(each, self._is_builtin) for each in operands]
        return lambda translated: [
            each if is_known else _call("to_bool", each) for each, is_known in zip(translated, known, strict=True)
        ]

    def _is_builtin(self, name: str) -> bool:
        return name not in self.own and not self.hidden(name)

    def visit_iterable(self, node: ast.expr) -> ast.expr:
        self.iterables += 1
        result = super().visit_iterable(node)
        self.iterables -= 1
        return result

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return self._comparison(node.left, node.ops[0], node.comparators[0])
        if self.iterables:
            return self._chain_of_lambdas(node.left, list(zip(node.ops, node.comparators, strict=True)))
        links: list[ast.expr] = []
        left = node.left
        for place, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            last = place == len(node.ops) - 1
            if last or isinstance(right, (ast.Name, ast.Constant)):
                kept = right
            else:  # evaluated once, read twice
                name = f"{MIDDLE}{self.kept}"
                self.kept += 1
                right = ast.NamedExpr(ast.Name(name, ast.Store()), right)
                kept = ast.Name(name, ast.Load())
            links.append(self._comparison(left, op, right))
            left = kept
        result = links.pop()
        for link in reversed(links):
            result = _call("both", link, _thunk(result))
        return result

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
        if isinstance(op, (ast.In, ast.NotIn)):
            return _call("contains" if isinstance(op, ast.In) else "lacks", left, right)
        if type(op) in OPERATORS:
            return _call(OPERATORS[type(op)], left, right)
        return ast.Compare(left, [op], [right])

    def _chain_of_lambdas(self, left: ast.expr, links: list[tuple[ast.cmpop, ast.expr]]) -> ast.expr:
        """A chained comparison without `:=`: `(lambda a, b: both(a < b, lambda: b < c))(x, y)`."""
        (op, right), *others = links
        if not others:
            return self._comparison(left, op, right)
        names = [f"{MIDDLE}{self.kept}", f"{MIDDLE}{self.kept + 1}"]
        self.kept += 2
        low, high = (ast.Name(name, ast.Load()) for name in names)
        body = _call("both", self._comparison(low, op, high), _thunk(self._chain_of_lambdas(high, others)))
        parameters = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
        return ast.Call(ast.Lambda(parameters, body), [left, right], [])

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = _call("spread", node.value)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        super().visit_Lambda(node)
        return _call("as_written", node)

    def visit_Slice(self, node: ast.Slice) -> ast.AST:
        """How long the slice is is seen from the operators that its bounds are written with."""
        length = length_of(node.lower, node.upper)
        if length is not None:
            node.lasting = self.visit(copy.deepcopy(length))  # type: ignore[attr-defined]
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        if _static(node.slice) and not _has_position(node.slice):
            return node
        index = _index(node.slice)
        fault = SHORT_SLICE if any(_is_window(part) for part in ast.walk(index)) else OUT_OF_RANGE
        return self._checked("getitem", fault, node.value, index)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node.func:
            case ast.Name(id=name) if name in BUILTINS and name not in self.own and not self.hidden(name):
                node.func = ast.Attribute(ast.Name(OPS, ast.Load()), BUILTINS[name], ast.Load())
                if name in CHECKED_BUILTINS:
                    node.keywords.append(self._site(CHECKED_BUILTINS[name]))
                if name in ("__changed__", "__taken__") and node.args[1].value in CHECKED_METHODS:  # type: ignore[attr-defined]
                    node.keywords.append(self._site(CHECKED_METHODS[node.args[1].value]))  # type: ignore[attr-defined]
            case ast.Attribute(value=whole, attr="index" | "count" as name) if _is_search(node):
                if name == "index":
                    return self._checked("position", NOT_IN_LIST, whole, *node.args)
                return _call("count", whole, *node.args)
            case ast.Name() | ast.Attribute() if (root := _root(node.func)) and not self.hidden(root):
                self._equivalent(node)
        return node

    def _equivalent(self, node: ast.Call) -> None:
        """Call what stands for a function that takes no tensors, if the call is of one."""
        path = ast.unparse(node.func)
        name = None if _root(node.func) in self.own else self.equivalent(path)
        if name is None:
            given = [node.func, *node.args, *(keyword.value for keyword in node.keywords)]
            if any(map(self._is_failing, given)):
                sites = [self.site(*HELPER_DIVISION), self.site(*HELPER_INDEX)]
                if any(site != NO_SITE for site in sites):
                    node.func = _call("checking", node.func, *map(ast.Constant, sites))
            return
        if name == "without_equivalent":
            node.func = _call(name, node.func)
            return
        module, _, function = name.partition(".")
        node.func = ast.Attribute(ast.Attribute(ast.Name(OPS, ast.Load()), module, ast.Load()), function, ast.Load())
        if module == "math":
            node.keywords.append(self._site(DOMAIN))
        if name == "numpy.take":
            node.keywords.append(self._site(OUT_OF_RANGE))

    def _is_failing(self, node: ast.expr) -> bool:
        """Whether this is a helper that may fail a lane, to be called or handed on."""
        root = _root(node)
        return bool(root) and root not in self.own and not self.hidden(root) and self.may_fail(ast.unparse(node))

    def _site(self, fault: tuple[LaneStatus, str]) -> ast.keyword:
        return ast.keyword("site", ast.Constant(self.site(*fault)))


def _is_search(node: ast.Call) -> bool:
    """Whether a call has the arguments of `xs.index(v)`; of what that is called is known when it runs."""
    return len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred)


def _root(path: ast.AST) -> str:
    """The name that a path such as `model.w` starts with; nothing for what is no path."""
    while isinstance(path, (ast.Attribute, ast.Subscript)):
        path = path.value
    return path.id if isinstance(path, ast.Name) else ""


def _pattern(target: ast.expr) -> ast.expr:
    """The form of an assignment's target: None for a name, ... for a starred one, a tuple of forms for a tuple."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return ast.Tuple([_pattern(element) for element in target.elts], ast.Load())
    return ast.Constant(... if isinstance(target, ast.Starred) else None)


def _nested(pattern: ast.expr) -> bool:
    return isinstance(pattern, ast.Tuple) and any(isinstance(part, ast.Tuple) for part in pattern.elts)


def _static(index: ast.expr) -> bool:
    """Whether an index is made of constants alone, so that Python's own indexing serves."""
    fixed = (ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)
    return all(isinstance(node, fixed) for node in ast.walk(index))


def _has_position(index: ast.expr) -> bool:
    """Whether a static index names a position, which may be out of range; slices may not, and keys are no positions."""
    if isinstance(index, ast.Tuple):
        return any(map(_has_position, index.elts))
    constant = index.operand if isinstance(index, ast.UnaryOp) else index
    return isinstance(constant, ast.Constant) and type(constant.value) is int


def _index(index: ast.expr) -> ast.expr:
    """An index as an argument: slices written as calls of `slice`, or of `ops.window` if their length is fixed."""
    match index:
        case ast.Slice(lower, upper, step):
            length = getattr(index, "lasting", None) or length_of(lower, upper)
            parts = [part or ast.Constant(None) for part in (lower, upper, step)]
            if length is not None:
                return _call("window", *parts, length)
            return ast.Call(ast.Name("slice", ast.Load()), parts, [])
        case ast.Tuple(elts=elements):
            return ast.Tuple([_index(element) for element in elements], ast.Load())
    return index


def _is_window(node: ast.AST) -> bool:
    """Whether `node` is a call that `_index` made for a slice of fixed length."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="window")):
            return name == OPS
    return False
