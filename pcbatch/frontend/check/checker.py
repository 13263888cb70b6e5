"""The walk of the syntax check, and the rules for constructs that need a closer look than their node type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from typing import Any

import gast

from pcbatch.errors import Diagnostic
from pcbatch.frontend.check import refusals
from pcbatch.frontend.check.banned import METHODS, ban_on, gives_dtype
from pcbatch.frontend.source.changes import called_part, is_one_part, root_of, steps_of, takes
from pcbatch.frontend.source.hints import is_debug, is_sync, is_text
from pcbatch.frontend.source.nested import own_names
from pcbatch.frontend.source.nodes import assigned_in, dotted, evaluated_around, span_of, target_leaves, unparse
from pcbatch.frontend.source.refusal import Refusal
from pcbatch.frontend.source.scope import Scope, is_builtin

INT32_MAX = 2**31 - 1

SUPPORTED = None
Rule = Refusal | Callable[["Checker", Any], None] | None


class Checker:
    """One walk over one function, by the `rules`; `found` collects what is refused."""

    def __init__(
        self, rules: Mapping[type, Rule], file: str, local_names: Set[str], scope: Scope, receiver: str | None = None
    ):
        self.rules = rules
        self.file = file
        self.local_names = local_names
        self.scope = scope
        self.receiver = receiver
        self.contexts: Set[str] = frozenset()  # what `with` blocks bind: tapes and the like
        self.inner = 0  # how many lambdas and comprehensions are around
        self.found: list[Diagnostic] = []
        self.tree: Any = None

    def refuse(self, node: Any, refusal: Refusal) -> None:
        """Report `refusal` at `node`."""
        self.found.append(refusal.at(span_of(node, self.file)))

    def function(self, tree: Any) -> None:
        """Check a whole definition: kind, parameters, body."""
        self.tree = tree
        if isinstance(tree, gast.AsyncFunctionDef):
            self.refuse(tree, refusals.ASYNC)
        if tree.args.kwarg is not None:
            self.refuse(tree.args.kwarg, refusals.STAR_PARAMETER)
        for parameter in getattr(tree, "type_params", None) or []:
            self.visit(parameter)
        self.contexts = _contexts_in(tree)
        self.all(tree.body)

    def definition(self, node: Any) -> None:
        """A function inside the function, whose variables are its own."""
        for decorator in node.decorator_list:
            self.refuse(decorator, refusals.DECORATED)
        inside = Checker(self.rules, self.file, self.local_names | own_names(node), self.scope, self.receiver)
        inside.function(node)
        self.all(evaluated_around(node))
        self.found += inside.found

    def all(self, nodes: list[Any]) -> None:
        """Check several nodes in order."""
        for node in nodes:
            self.visit(node)

    def visit(self, node: Any) -> None:
        """Apply the rule for `node`."""
        rule = self.rules[type(node)]
        if isinstance(rule, Refusal):
            self.refuse(node, rule)
            self.all(_statements_in(node))
        elif rule is SUPPORTED:
            self.all(list(gast.iter_child_nodes(node)))
        else:
            rule(self, node)

    # -- rules that look closer ---------------------------------------------------------------------------------

    def expression_statement(self, node: Any) -> None:
        """A docstring or another constant is nothing; all else would be lost."""
        value = node.value
        if isinstance(value, gast.Constant):
            return
        if isinstance(value, gast.Yield | gast.YieldFrom | gast.Await):
            self.visit(value)
        elif isinstance(value, gast.Call) and is_sync(value, self.local_names, self.scope):
            for argument in (*value.args, *value.keywords):
                self.refuse(argument, refusals.SYNC_ARGUMENTS)
        elif isinstance(value, gast.Call) and is_debug(value, self.local_names, self.scope):
            self._debug(value)
        elif isinstance(value, gast.Call) and self._changes(value):
            self.all([*steps_of(value.func.value), *value.args, *(each.value for each in value.keywords)])
        elif isinstance(value, gast.Call) and self._banned(value, discarded=True):
            pass
        else:
            self.refuse(node, self._discarded(value))

    def _discarded(self, value: Any) -> Refusal:
        """A call that may be thought to change an array in place says what to write."""
        name = dotted(value.func) if isinstance(value, gast.Call) else None
        given = [each.id for each in value.args if isinstance(each, gast.Name)] if name is not None else []
        arrays = [each for each in given if each in self.local_names]
        if not arrays:
            return refusals.DISCARDED
        help_ = (
            f"if `{name}` is to change `{arrays[0]}`, let it return it, arrays being values: "
            f"`{arrays[0]} = {unparse(value)}`; else remove the statement"
        )
        return replace(refusals.DISCARDED, help=help_)

    def _debug(self, node: Any) -> None:
        """Check `pcbatch.debug(text, x, ..)`."""
        text, *values = node.args or [node]
        if node.keywords or any(isinstance(each, gast.Starred) for each in values) or not is_text(text, len(values)):
            self.refuse(node, refusals.DEBUG_ARGUMENTS)
        self.all(values)

    def assign(self, node: Any) -> None:
        """Check value, then targets."""
        self.visit(node.value)
        leaves = [leaf for target in node.targets for leaf in target_leaves(target)]
        starred = next((leaf for leaf in leaves if isinstance(leaf, gast.Starred)), None)
        if starred is not None and any(isinstance(leaf, gast.Subscript | gast.Attribute) for leaf in leaves):
            self.refuse(starred, refusals.STARRED_STORE)
        for target in node.targets:
            self.target(target)

    def augmented(self, node: Any) -> None:
        """As `assign`, for `a += 1`."""
        self.visit(node.value)
        self.target(node.target)

    def annotated(self, node: Any) -> None:
        """As `assign`; the annotation itself means nothing here."""
        if node.value is not None:
            self.visit(node.value)
        self.target(node.target)

    def target(self, node: Any) -> None:
        """Names, tuples of targets, and elements and attributes of local variables can be assigned."""
        match node:
            case gast.Name() | gast.Starred(value=gast.Name()):
                pass
            case gast.Tuple(elts=parts) | gast.List(elts=parts):
                for part in parts:
                    self.target(part)
            case gast.Subscript() | gast.Attribute() if (wrong := self._wrong_path(node.value)) is not None:
                self.refuse(node, wrong)
            case gast.Subscript(slice=index):
                indices = index.elts if isinstance(index, gast.Tuple) else [index]
                whole = isinstance(index, gast.Constant) and index.value is Ellipsis
                bad = None if whole or _is_key(index) else next((i for i in indices if not self._is_index(i)), None)
                if bad is not None:
                    self.refuse(node, refusals.STORE_INDEX)
                self.all([*steps_of(node.value), *(each for each in indices if each is not bad)])
            case gast.Starred(value=inner):
                self.target(inner)
            case gast.Attribute():
                self.all(steps_of(node.value))
            case _:
                self.visit(node)

    def _wrong_path(self, part: Any) -> Refusal | None:
        """Why no part of `part` can be assigned; None for a path from a name."""
        root = root_of(part)
        if root is None or any(not is_one_part(step) for step in steps_of(part)):
            return refusals.STORE_NESTED
        return refusals.STORE_RECEIVER if root == self.receiver else None

    def _changes(self, node: Any) -> bool:
        """Whether the Call `node` calls a method of a local variable, or of a part of one, which may change it."""
        part = called_part(node)
        if part is None:
            return False
        root = root_of(part)
        is_local = root in self.local_names and root != self.receiver and root not in self.contexts
        is_known = node.func.attr not in METHODS or takes(node)
        return is_local and is_known and all(map(is_one_part, steps_of(part)))

    def delete(self, node: Any) -> None:
        """Entries of dicts and lists can be deleted, names and attributes cannot."""
        for target in node.targets:
            if not isinstance(target, gast.Subscript) or not is_one_part(target):
                self.refuse(node, refusals.DELETE)
                return
            wrong = self._wrong_path(target.value)
            if wrong is not None:
                self.refuse(node, wrong)
            self.all(steps_of(target))

    @staticmethod
    def _is_index(node: Any) -> bool:
        if isinstance(node, gast.Constant):
            return isinstance(node.value, int) and not isinstance(node.value, bool)
        return not isinstance(node, gast.Starred)

    def returns(self, node: Any) -> None:
        """A value must come back."""
        if node.value is None or (isinstance(node.value, gast.Constant) and node.value.value is None):
            help_ = refusals.gives_back(self.tree, self.tree.name) or refusals.RETURN_NOTHING.help
            self.refuse(node, replace(refusals.RETURN_NOTHING, help=help_))
        else:
            self.visit(node.value)

    def asserts(self, node: Any) -> None:
        """Condition and message."""
        self.visit(node.test)
        if node.msg is not None:
            self._message(node.msg)

    def raises(self, node: Any) -> None:
        """`raise Error`, `raise Error(message)`."""
        error, arguments = node.exc, []
        if isinstance(error, gast.Call):
            arguments = error.args
            if error.keywords or len(arguments) > 1 or any(isinstance(a, gast.Starred) for a in arguments):
                self.refuse(node, refusals.RAISE_ARGUMENTS)
                return
            error = error.func
        root = error
        while isinstance(root, gast.Attribute):
            root = root.value
        if not isinstance(root, gast.Name) or root.id in self.local_names:
            self.refuse(node, refusals.RAISE_FORM)
            return
        if node.cause is not None:
            self.refuse(node.cause, refusals.RAISE_CAUSE)
        for argument in arguments:
            self._message(argument)

    def _message(self, node: Any) -> None:
        """The text of a fault: a string, an f-string with plain fields, or a value."""
        if not isinstance(node, gast.JoinedStr):
            self.visit(node)
            return
        for part in node.values:
            if isinstance(part, gast.FormattedValue):
                self.visit(part.value)
                spec = part.format_spec.values if part.format_spec is not None else []
                if not all(isinstance(each, gast.Constant) for each in spec):
                    self.refuse(node, refusals.FORMAT_SPEC)

    def constant(self, node: Any) -> None:
        """Numbers must fit."""
        value = node.value
        if isinstance(value, int) and value > INT32_MAX:
            self.refuse(node, refusals.INT32)

    def unary(self, node: Any) -> None:
        """-2147483648 is a literal that fits, though 2147483648 does not."""
        operand = node.operand
        smallest = isinstance(operand, gast.Constant) and operand.value == INT32_MAX + 1
        if not (isinstance(node.op, gast.USub) and smallest and isinstance(operand.value, int)):
            self.visit(operand)

    def binary(self, node: Any) -> None:
        """`"%d" % n` is string formatting; everything else is arithmetic."""
        left = node.left
        if isinstance(node.op, gast.Mod) and (
            isinstance(left, gast.JoinedStr)
            or (isinstance(left, gast.Constant) and isinstance(left.value, str | bytes))
        ):
            self.refuse(node, refusals.STRING)
        else:
            self.all([left, node.right])

    def compare(self, node: Any) -> None:
        """Numbers are compared by value only; whether something is None is known at compile time."""
        for op, right in zip(node.ops, node.comparators, strict=True):
            is_none = isinstance(right, gast.Constant) and right.value is None
            if isinstance(op, gast.Is | gast.IsNot) and not is_none:
                self.refuse(node, refusals.IDENTITY)
                break
        self.all([node.left, *node.comparators])

    def call(self, node: Any) -> None:
        """Look the called name up in the bans."""
        if is_sync(node, self.local_names, self.scope):
            self.refuse(node, refusals.SYNC_VALUE)
            return
        if is_debug(node, self.local_names, self.scope):
            self.refuse(node, refusals.DEBUG_VALUE)
            return
        if not (takes(node) and not self.inner and self._changes(node)) and self._banned(node):
            return
        self.visit(node.func)
        is_wide = node.args and _is_integer(node.args[0]) and gives_dtype(node, self.local_names, self.scope)
        self.all(node.args[1:] if is_wide else node.args)
        for keyword in node.keywords:
            self.visit(keyword.value)

    def _banned(self, node: Any, *, discarded: bool = False) -> bool:
        ban = ban_on(node, self.local_names, self.scope, discarded=discarded, receiver=self.receiver)
        if ban is not None:
            name = unparse(node.func)
            self.refuse(node, Refusal(ban.code, f"`{name}(..)` {ban.why}", f"`{name}` is called here", ban.help))
        return ban is not None

    def dictionary(self, node: Any) -> None:
        """Keys and values; `{**other}` has no key."""
        self.all([each for pair in zip(node.keys, node.values, strict=True) for each in pair if each is not None])

    def walrus(self, node: Any) -> None:
        """An assignment inside a lambda or comprehension has a scope of its own or leaks from it."""
        if self.inner:
            self.refuse(node, refusals.INNER_WALRUS)
        else:
            self.visit(node.value)

    def inner_scope(self, node: Any) -> None:
        """A lambda or a comprehension."""
        self.inner += 1
        if isinstance(node, gast.Lambda):
            self.all([*evaluated_around(node), node.body])
        else:
            self.all(list(gast.iter_child_nodes(node)))
        self.inner -= 1

    def comprehension(self, node: Any) -> None:
        """One `for` of a comprehension."""
        if node.is_async:
            self.refuse(node.target, refusals.ASYNC)
        self.all([node.iter, *node.ifs])

    def is_builtin_name(self, name: str) -> bool:
        return name not in self.local_names and is_builtin(self.scope, name)


def _contexts_in(tree: Any) -> frozenset[str]:
    """The names that the `with` blocks of a function bind."""
    blocks = (node for node in gast.walk(tree) if isinstance(node, gast.With))
    return assigned_in([each.optional_vars for node in blocks for each in node.items if each.optional_vars is not None])


def _is_key(index: Any) -> bool:
    return isinstance(index, gast.Constant) and isinstance(index.value, str)


def _statements_in(node: Any) -> list[Any]:
    """The statements inside a refused block, which are checked all the same; definitions have scopes of their own."""
    match node:
        case gast.Try() | gast.TryStar():
            handlers = [statement for handler in node.handlers for statement in handler.body]
            return [*node.body, *handlers, *node.orelse, *node.finalbody]
        case gast.AsyncWith():
            return list(node.body)
        case gast.AsyncFor():
            return [*node.body, *node.orelse]
    return []


def _is_integer(node: Any) -> bool:
    """Whether `node` is an integer that is written out."""
    value = node.operand if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.USub) else node
    return isinstance(value, gast.Constant) and isinstance(value.value, int)
