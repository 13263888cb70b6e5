"""The rewriting of a function's text for `plain.py`: what tensors do not know becomes calls of functions that do."""

from __future__ import annotations

import ast
import builtins as python
import copy
import itertools
from collections.abc import Callable, Mapping, Set
from types import FunctionType
from typing import Any

from pcbatch.ir.members import MEMBERS
from pcbatch.ir.slices import length_of

STORE = "_pcb_store"
INSIDE = "_pcb_store_inside"
FLAGS = {True: "_pcb_true", False: "_pcb_false"}
CASE = "_pcb_case"
WINDOW = "_pcb_window"
READ = "_pcb_read"
CALL = "_pcb_call"
CALLED = "_pcb_called"
MAPPED = "_pcb_mapped"
OWN = "_pcb_own"
MIDDLE = "_pcb_middle"
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "op_add",
    ast.Sub: "op_sub",
    ast.Mult: "op_mul",
    ast.Div: "op_truediv",
    ast.FloorDiv: "op_floordiv",
    ast.Mod: "op_mod",
    ast.Pow: "op_pow",
    ast.MatMult: "op_matmul",
    ast.LShift: "op_lshift",
    ast.RShift: "op_rshift",
    ast.BitAnd: "op_and_",
    ast.BitOr: "op_or_",
    ast.BitXor: "op_xor",
    ast.Eq: "op_eq",
    ast.NotEq: "op_ne",
    ast.Lt: "op_lt",
    ast.LtE: "op_le",
    ast.Gt: "op_gt",
    ast.GtE: "op_ge",
    ast.In: "op_in",
    ast.NotIn: "op_not_in",
}
"""Operators that tensors lack, or have for fewer pairs of operands, and the names of the functions given for them."""
UNARY: dict[type[ast.AST], str] = {ast.UAdd: "pos", ast.USub: "neg"}
WRITTEN = "as_written"
OTHERS = ("augmented", "member", "read", WRITTEN)
"""What else is given: augmented assignments, attributes of arrays, elements, marks of functions that have help."""


class Mangled(ast.NodeTransformer):
    """Private names, `__name`, as Python has them in the body of a class; the copy stands in none."""

    def __init__(self, function: FunctionType) -> None:
        *_, owner, _name = ("<locals>", *function.__qualname__.split("."))
        self.prefix = "" if owner == "<locals>" else f"_{owner.lstrip('_')}"

    def _name(self, name: str) -> str:
        is_private = name.startswith("__") and not name.endswith("__") and len(self.prefix) > 1
        return f"{self.prefix}{name}" if is_private else name

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._name(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        self.generic_visit(node)
        node.attr = self._name(node.attr)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._name(node.arg)
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        self.generic_visit(node)
        node.arg = node.arg and self._name(node.arg)
        return node


class Helped(ast.NodeTransformer):
    """Rewrites assignments with subscripts among their targets, calls of helped built-ins, and of batched functions."""

    def __init__(
        self, helped: Set[str], calls: Mapping[str, str], is_as_called: Callable[[ast.expr], bool], file: str
    ) -> None:
        self.helped, self.calls, self.is_as_called, self.file = helped, calls, is_as_called, file
        self.numbers = itertools.count()
        self.cases: dict[str, int | float] = {}  # the numbers of patterns, by what stands for them
        self.own: list[frozenset[str]] = []  # the variables of each function that is around
        self.inner = 0  # how many lambdas and comprehensions are around

    def visit_Name(self, node: ast.Name) -> ast.Name:
        is_helped = node.id in self.helped and not isinstance(getattr(python, node.id, None), type)
        name = alias(node.id) if is_helped else node.id  # `int` is a type where it is not called
        return ast.copy_location(ast.Name(name, node.ctx), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(func=ast.Attribute(attr="counted"), args=[ast.ListComp() as listed, count]):
                return self._map(node, listed, count)
        name = self.calls.get(ast.unparse(node.func)) if isinstance(node.func, ast.Name | ast.Attribute) else None
        if name is not None:
            node.func = ast.copy_location(ast.Name(name, ast.Load()), node.func)
            return self.generic_visit(node)  # type: ignore[return-value]
        called = node.func.id if isinstance(node.func, ast.Name) else ""
        is_helped = called in self.helped or called in ("super", WINDOW, "slice")
        as_called = is_helped or self.is_as_called(node.func)
        if called in self.helped:
            node.func = ast.copy_location(ast.Name(alias(called), ast.Load()), node.func)
        self.generic_visit(node)
        if not as_called:
            node.func = _call(CALLED, node.func, node.func)
        return node

    def _map(self, node: ast.Call, listed: ast.ListComp, count: ast.expr) -> ast.expr:
        """A call of `pcbatch.map` with a count, as `source.mapping` has it: of a function, arrays and the count."""
        (generator,) = listed.generators
        over = generator.iter
        zipped = isinstance(generator.target, ast.Tuple) and isinstance(over, ast.Call)
        names = [leaf.id for leaf in ast.walk(generator.target) if isinstance(leaf, ast.Name)]
        arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
        function = ast.Lambda(arguments, listed.elt)
        arrays = over.args if zipped and isinstance(over, ast.Call) else [over]
        numbers = (self.file, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        place = ast.Tuple([ast.Constant(number) for number in numbers], ast.Load())
        made = _call(MAPPED, node, function, place, ast.Tuple(arrays, ast.Load()), count)
        return self.generic_visit(ast.fix_missing_locations(made))  # type: ignore[return-value]

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        is_known = self.is_as_called(node)
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or node.attr not in MEMBERS or is_known:
            return node
        return _call(alias("member"), node, node.value, ast.Constant(node.attr))

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if not isinstance(node.ctx, ast.Load):
            return self._path(node)
        has_window = any(map(_is_window, _parts(node.slice)))
        index = self.visit(_index(node.slice))
        node.value = self.visit(node.value)
        if _is_fixed(node.slice):
            return node
        return _call(READ if has_window else alias("read"), node, node.value, index)

    def _path(self, node: ast.expr) -> ast.expr:
        """What is assigned to, with help in its indices alone."""
        if isinstance(node, ast.Subscript):
            node.slice = self.visit(_index(node.slice))
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node.value = self._path(node.value)
            return node
        return self.visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        name = UNARY.get(type(node.op))
        return node if name is None or _is_fixed(node.operand) else _call(alias(name), node, node.operand)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if _is_fixed(node.left) and _is_fixed(node.right):
            return node
        return _call(alias(OPERATORS[type(node.op)]), node, node.left, node.right)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if any(type(op) not in OPERATORS for op in node.ops) or (self.inner and len(node.ops) > 1):
            return node
        left = node.left
        links: list[ast.expr] = []
        for op, right in zip(node.ops, node.comparators, strict=True):
            kept = right
            if right is not node.comparators[-1] and not isinstance(right, (ast.Name, ast.Constant)):
                name = f"{MIDDLE}{next(self.numbers)}"
                right = ast.NamedExpr(ast.Name(name, ast.Store()), right)
                kept = ast.Name(name, ast.Load())
            links.append(_call(alias(OPERATORS[type(op)]), node, left, right))
            left = kept
        whole = links[0] if len(links) == 1 else ast.BoolOp(ast.And(), links)
        return ast.fix_missing_locations(ast.copy_location(whole, node))

    def _inside(self, node: Any) -> Any:
        """A scope of its own, in which `:=` may not stand, or assigns elsewhere."""
        self.inner += 1
        node = self.generic_visit(node)
        self.inner -= 1
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _inside

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        node = self._inside(node)
        return _call(alias(WRITTEN), node, node) if _has_help(node) else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.own.append(_variables(node))
        self.generic_visit(node)
        self.own.pop()
        if self.own and _has_help(node):
            mark = ast.copy_location(ast.Name(alias(WRITTEN), ast.Load()), node)
            node.decorator_list.append(mark)
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        if not any(map(_stores, node.targets)):
            return node
        one_by_one: list[ast.stmt] = []  # from left to right: an index may be what stands before it
        targets = [self._target(target, one_by_one) for target in node.targets]
        return [ast.copy_location(ast.Assign(targets, node.value), node), *one_by_one]

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target, name = node.target, OPERATORS[type(node.op)]
        old: Any = copy.deepcopy(target)
        old.ctx = ast.Load()
        if isinstance(target, ast.Subscript):  # the arguments of the store come before the old and the new value
            self._evaluated_once(target, old, _may_act)
        else:  # the target comes last, and the new value may assign what an index reads
            self._evaluated_once(old, target, lambda index: not isinstance(index, ast.Constant))
        old = self.visit(old)
        self.generic_visit(node)
        if isinstance(target, ast.Subscript):
            return self._store(target.value, target.slice, _call(alias(name), node, old, node.value), node)
        new = _call(alias("augmented"), node, ast.Constant(name), old, node.value)
        return ast.fix_missing_locations(ast.copy_location(ast.Assign([target], new), node))

    def _evaluated_once(self, first: Any, again: Any, differs: Callable[[ast.expr], bool]) -> None:
        """Let `again`, a copy of the path `first`, take those indices from it whose second evaluation `differs`."""
        while isinstance(first, (ast.Attribute, ast.Subscript)):
            if isinstance(first, ast.Subscript):
                first.slice, again.slice = self._named(first.slice, again.slice, differs)
            first, again = first.value, again.value

    def _named(self, index: Any, again: Any, differs: Callable[[ast.expr], bool]) -> tuple[ast.expr, ast.expr]:
        """An index that gives such values a name, and its copy that has them by this name."""
        if isinstance(index, ast.Tuple):
            pairs = [self._named(*both, differs) for both in zip(index.elts, again.elts, strict=True)]
            index.elts, again.elts = map(list, zip(*pairs, strict=True)) if pairs else ([], [])
        elif isinstance(index, ast.Slice):
            for field in ("lower", "upper", "step"):
                if getattr(index, field) is not None:
                    pair = self._named(getattr(index, field), getattr(again, field), differs)
                    setattr(index, field, pair[0])
                    setattr(again, field, pair[1])
        elif differs(index):
            name = f"{MIDDLE}{next(self.numbers)}"
            value = ast.copy_location(ast.NamedExpr(ast.Name(name, ast.Store()), index), index)
            return ast.fix_missing_locations(value), ast.copy_location(ast.Name(name, ast.Load()), again)
        return index, again

    def visit_MatchSingleton(self, node: ast.MatchSingleton) -> ast.pattern:
        if node.value is None:
            return node
        return ast.copy_location(ast.MatchClass(ast.Name(FLAGS[node.value], ast.Load()), [], [], []), node)

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.AST:
        """`case 1:`, which a bool may be: numbers are compared as `==` compares them here."""
        match node.value:
            case ast.Constant(value=int() | float()) | ast.UnaryOp(operand=ast.Constant(value=int() | float())):
                name = f"{CASE}{len(self.cases)}"
                self.cases[name] = ast.literal_eval(node.value)
                return ast.copy_location(ast.MatchClass(ast.Name(name, ast.Load()), [], [], []), node)
        return self.generic_visit(node)

    def _target(self, target: ast.expr, one_by_one: list[ast.stmt]) -> ast.expr:
        """What takes the value of `target` first; `one_by_one` gets what assigns it from there."""
        if isinstance(target, (ast.Tuple, ast.List)):
            target.elts = [self._target(element, one_by_one) for element in target.elts]
            return target
        name = f"_pcb_value{next(self.numbers)}"
        value = ast.Name(name, ast.Load())
        if isinstance(target, ast.Subscript):
            one_by_one.append(self._store(target.value, target.slice, value, target))
        else:
            assigned = ast.copy_location(ast.Assign([target], value), target)
            one_by_one.append(ast.fix_missing_locations(assigned))
        return ast.copy_location(ast.Name(name, ast.Store()), target)

    def _store(self, array: ast.expr, index: ast.expr, value: ast.expr, place: ast.AST) -> ast.stmt:
        """The store of `value`: a new value of the variable that has the array.

        What a helper stores into what is no variable of its own is stored there, as it is written.
        """
        root = array
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        if not isinstance(root, ast.Name) or root.id not in self.own[-1]:
            target = ast.Subscript(array, index, ast.Store())
            return ast.fix_missing_locations(ast.copy_location(ast.Assign([target], value), place))
        steps: list[ast.expr] = []
        while isinstance(array, (ast.Attribute, ast.Subscript)):
            is_field = isinstance(array, ast.Attribute)
            key: ast.expr = ast.Constant(array.attr) if isinstance(array, ast.Attribute) else array.slice
            steps.insert(0, ast.Tuple([key, ast.Constant(is_field)], ast.Load()))
            array = array.value
        given = [ast.List(steps, ast.Load())] if steps else []
        whole = ast.Name(root.id, ast.Load())
        call = _call(INSIDE if steps else STORE, place, whole, *given, _index(index), value)
        statement = ast.Assign([ast.Name(root.id, ast.Store())], call)
        return ast.fix_missing_locations(ast.copy_location(statement, place))


def _call(name: str, place: ast.AST, *arguments: ast.expr) -> ast.Call:
    call = ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
    return ast.fix_missing_locations(ast.copy_location(call, place))


def _variables(function: ast.FunctionDef) -> frozenset[str]:
    """The variables of a function: what it assigns, but for those of the functions inside it."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    found = {each.arg for each in every if each is not None}
    around: set[str] = set()
    pending: list[ast.AST] = [*function.body]
    while pending:
        node = pending.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
                continue
            case ast.Lambda():
                continue
            case ast.comprehension(iter=over, ifs=ifs):
                pending += [over, *ifs]
                continue
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                around.update(names)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                found.add(name)
            case ast.ExceptHandler(name=str(name)):
                found.add(name)
        pending += ast.iter_child_nodes(node)
    return frozenset(found - around)


def _has_help(node: ast.AST) -> bool:
    """Whether something in a function stands for what the user wrote, so that its source is another one's."""
    return any(isinstance(each, ast.Name) and each.id.startswith("_pcb_") for each in ast.walk(node))


def _stores(target: ast.expr) -> bool:
    """Whether an element of something is assigned to in a target."""
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return any(map(_stores, parts))
    return isinstance(target, ast.Subscript)


def _parts(index: ast.expr) -> list[ast.expr]:
    return index.elts if isinstance(index, ast.Tuple) else [index]


def _may_act(node: ast.expr) -> bool:
    """Whether to evaluate an expression twice may differ from doing so once."""
    return any(isinstance(each, (ast.Call, ast.NamedExpr)) for each in ast.walk(node))


def _is_fixed(node: ast.expr) -> bool:
    """Whether a part of an expression is made of literals alone."""
    fixed = (ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)
    return all(isinstance(each, fixed) for each in ast.walk(node)) and not any(map(_is_window, _parts(node)))


def _is_window(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and length_of(part.lower, part.upper) is not None


def _index(index: ast.expr) -> ast.expr:
    """An index as an argument: slices as calls of `Window`, or of `slice` where their length is not fixed."""
    match index:
        case ast.Slice(lower, upper, step):
            bounds = [bound or ast.Constant(None) for bound in (lower, upper)]
            length = length_of(lower, upper)
            if length is not None:
                return _call(WINDOW, index, *bounds, step or ast.Constant(1), length)
            return _call("slice", index, *bounds, step or ast.Constant(None))
        case ast.Tuple(elts=parts):
            return ast.copy_location(ast.Tuple([_index(part) for part in parts], ast.Load()), index)
    return index


def alias(name: str) -> str:
    """The name in the copy of what is given for a built-in."""
    return f"_pcb_{name}"
