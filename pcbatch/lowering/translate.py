"""From the user's operators to checked, batchable ones: `a // b` becomes `_ops.floordiv(a, b, site)`.

Python's operators mean too little (`and` calls `bool` on a tensor) or too much (`a[i]` must fault, not abort the
batch) for traced values. The rewriting is purely syntactic; `ops` decides by the operands' types at trace time.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from pcbatch.ir.code import Scoped
from pcbatch.runtime.status import LaneStatus

BUILTINS = {
    "abs": "absolute",
    "bool": "to_bool",
    "divmod": "divmod_",
    "float": "to_float",
    "int": "to_int",
    "len": "length",
    "max": "maximum",
    "min": "minimum",
    "round": "rounded",
    "__index__": "index",
}
"""Built-in functions of the language and the function of `ops` that stands for each."""

OPS = "_ops"
"""The name by which generated code knows the backend's operations; no user's variable may have it."""

ZERO_DIVISION = (LaneStatus.ARITHMETIC, "ZeroDivisionError: integer division or modulo by zero")
NEGATIVE_POWER = (LaneStatus.ARITHMETIC, "ValueError: a negative power of an integer is not an integer")
OUT_OF_RANGE = (LaneStatus.INDEX, "IndexError: index out of range")

SiteOf = Callable[[LaneStatus, str], int]


def translate(code: str, site: SiteOf, operands: Mapping[str, str], own: frozenset[str]) -> str:
    """`code` with its operators and built-ins replaced by calls of `ops`.

    `site(status, message)` numbers a place that may fault. `operands` maps the text of a captured path (`W`,
    `model.w`) to the name under which it is handed in. Names in `own` (variables, and globals that hide a built-in)
    are no built-ins.
    """
    tree = _Translator(site, operands, own).visit(ast.parse(code))
    return ast.unparse(ast.fix_missing_locations(tree))


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(OPS, ast.Load()), name, ast.Load()), list(arguments), [])


def _thunk(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


class _Translator(Scoped):
    def __init__(self, site: SiteOf, operands: Mapping[str, str], own: frozenset[str]):
        super().__init__()
        self.site = site
        self.operands = operands
        self.own = own
        self.kept = 0  # middle operands of chained comparisons kept so far

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
        if patterns and not isinstance(node.value, ast.Tuple):  # a tensor does not unpack itself while it is traced
            node.value = _call("unpacked", node.value, patterns[0])
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        match node.op:
            case ast.FloorDiv():
                return self._checked("floordiv", ZERO_DIVISION, node.left, node.right)
            case ast.Mod():
                return self._checked("mod", ZERO_DIVISION, node.left, node.right)
            case ast.Pow() if not isinstance(node.right, ast.Constant):
                return self._checked("power", NEGATIVE_POWER, node.left, node.right)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        name = "both" if isinstance(node.op, ast.And) else "either"
        *others, result = node.values
        for value in reversed(others):
            result = _call(name, value, _thunk(result))
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _call("negate", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return _call("select", node.test, _thunk(node.body), _thunk(node.orelse))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        links: list[ast.expr] = []
        left = node.left
        for place, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            last = place == len(node.ops) - 1
            if last or isinstance(right, (ast.Name, ast.Constant)):
                kept = right
            else:  # evaluated once, read twice
                name = f"_middle{self.kept}"
                self.kept += 1
                right = ast.NamedExpr(ast.Name(name, ast.Store()), right)
                kept = ast.Name(name, ast.Load())
            links.append(ast.Compare(left, [op], [right]))
            left = kept
        result = links.pop()
        for link in reversed(links):
            result = _call("both", link, _thunk(result))
        return result

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or _static(node.slice):
            return node
        return self._checked("getitem", OUT_OF_RANGE, node.value, _index(node.slice))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node.func:
            case ast.Name(id=name) if name in BUILTINS and name not in self.own and not self.hidden(name):
                if name == "divmod":
                    return self._checked(BUILTINS[name], ZERO_DIVISION, *node.args)
                node.func = ast.Attribute(ast.Name(OPS, ast.Load()), BUILTINS[name], ast.Load())
        return node


def _root(path: ast.AST) -> str:
    """The name that a path such as `model.w` starts with; nothing for what is no path."""
    while isinstance(path, (ast.Attribute, ast.Subscript)):
        path = path.value
    return path.id if isinstance(path, ast.Name) else ""


def _pattern(target: ast.expr) -> ast.expr:
    """The form of an assignment's target: None for a name, a tuple of forms for a tuple."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return ast.Tuple([_pattern(element) for element in target.elts], ast.Load())
    return ast.Constant(None)


def _static(index: ast.expr) -> bool:
    """Whether an index is made of constants alone, so that Python's own indexing serves."""
    fixed = (ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)
    return all(isinstance(node, fixed) for node in ast.walk(index))


def _index(index: ast.expr) -> ast.expr:
    """An index as an argument: slices written as calls of `slice`."""
    match index:
        case ast.Slice(lower, upper, step):
            parts = [part or ast.Constant(None) for part in (lower, upper, step)]
            return ast.Call(ast.Name("slice", ast.Load()), parts, [])
        case ast.Tuple(elts=elements):
            return ast.Tuple([_index(element) for element in elements], ast.Load())
    return index
