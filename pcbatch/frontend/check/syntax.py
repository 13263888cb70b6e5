"""The allow-list of syntax: a table with a rule for every gast node type.

A rule is `SUPPORTED` (look inside), a `Refusal` (report it) or a function that decides: a method of `Checker`, or one
of those in `blocks`, `loops` and `patterns`. A node type without a rule cannot happen: the tests walk gast's list.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import gast

from pcbatch.errors import Diagnostic
from pcbatch.frontend.check import blocks, loops, patterns, refusals
from pcbatch.frontend.check.checker import SUPPORTED, Checker, Rule
from pcbatch.frontend.source.parsing import PYTHON_2
from pcbatch.frontend.source.scope import Scope


def check_syntax(
    tree: Any, file: str, local_names: Set[str], scope: Scope, receiver: str | None = None
) -> list[Diagnostic]:
    """Every refusal of syntax in the function `tree`, which may be a method of the object named `receiver`."""
    checker = Checker(RULES, file, local_names, scope, receiver)
    checker.function(tree)
    return checker.found


def _same(rule: Rule, *names: str) -> dict[str, Rule]:
    return dict.fromkeys(names, rule)


_RULES: dict[str, Rule] = {
    # Statements.
    **_same(SUPPORTED, "If", "While", "Pass", "Break", "Continue"),
    "Expr": Checker.expression_statement,
    "Assign": Checker.assign,
    "AugAssign": Checker.augmented,
    "AnnAssign": Checker.annotated,
    "For": loops.for_loop,
    "Return": Checker.returns,
    "Assert": Checker.asserts,
    "Raise": Checker.raises,
    **_same(refusals.TRY, "Try", "TryStar", "ExceptHandler"),
    "FunctionDef": Checker.definition,
    "ClassDef": refusals.DEFINITION,
    **_same(refusals.ASYNC, "AsyncFunctionDef", "AsyncFor", "AsyncWith", "Await"),
    **_same(refusals.SCOPE, "Global", "Nonlocal"),
    "Delete": Checker.delete,
    **_same(refusals.IMPORT, "Import", "ImportFrom", "alias"),
    **_same(blocks.with_block, "With"),
    "withitem": SUPPORTED,
    "Match": patterns.match_statement,
    "match_case": patterns.match_case,
    "MatchValue": patterns.value_pattern,
    "MatchOr": patterns.alternatives,
    **_same(SUPPORTED, "MatchAs", "MatchSequence", "MatchSingleton"),
    **_same(refusals.PATTERN, "MatchClass", "MatchMapping", "MatchStar"),
    **_same(refusals.TYPES, "TypeAlias", "TypeVar", "TypeVarTuple", "ParamSpec"),
    # Expressions.
    **_same(
        SUPPORTED, "BoolOp", "IfExp", "List", "Tuple", "Starred", "Subscript", "Slice", "Attribute", "Name", "keyword"
    ),
    "Constant": Checker.constant,
    "UnaryOp": Checker.unary,
    "BinOp": Checker.binary,
    "Compare": Checker.compare,
    "Call": Checker.call,
    "Dict": Checker.dictionary,
    "NamedExpr": Checker.walrus,
    **_same(Checker.inner_scope, "Lambda", "ListComp", "DictComp", "GeneratorExp"),
    "comprehension": Checker.comprehension,
    **_same(refusals.SET, "Set", "SetComp"),
    **_same(refusals.STRING, "JoinedStr", "FormattedValue", "TemplateStr", "Interpolation"),
    **_same(refusals.GENERATOR, "Yield", "YieldFrom"),
    # Operators and contexts.
    **_same(SUPPORTED, "Add", "Sub", "Mult", "Div", "FloorDiv", "Mod", "Pow", "MatMult"),
    **_same(SUPPORTED, "BitAnd", "BitOr", "BitXor", "LShift", "RShift", "Invert", "Not", "UAdd", "USub", "And", "Or"),
    **_same(SUPPORTED, "Eq", "NotEq", "Lt", "LtE", "Gt", "GtE"),
    **_same(SUPPORTED, "Is", "IsNot", "In", "NotIn"),
    **_same(SUPPORTED, "Load", "Store", "Del", "Param", "AugLoad", "AugStore", "arguments"),
    # What can stand around a function, never in it.
    **_same(refusals.DEFINITION, "Module", "Interactive", "Expression", "FunctionType", "TypeIgnore", "type_ignore"),
    **_same(PYTHON_2, "Print", "Exec", "Repr", "Suite"),
}
RULES: dict[type, Rule] = {getattr(gast, name): rule for name, rule in _RULES.items() if hasattr(gast, name)}
