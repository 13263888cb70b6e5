"""What lowering must know of the world outside the IR: namespaces, captured operands and the backend's rules."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pcbatch.errors import Method, Span
from pcbatch.ir.machine import Kept
from pcbatch.ir.types import Type
from pcbatch.lowering.captures.captured import Captured, Namespace
from pcbatch.lowering.codegen.builtins import BUILTINS, OPS
from pcbatch.lowering.codegen.failing import may_fail
from pcbatch.runtime.backends.protocol import Backend


@dataclass(frozen=True)
class Environment:
    """Everything that gives the names in a program's code their meaning.

    `namespaces` and `statics`, the names of static parameters, are by function name of the cfg program, `operand_types`
    by operand name, and so is what the program has `kept` of captured arrays. `lenient` are the statements in which a
    literal index is out of range, or an operator or an attribute is one that NumPy's arrays have. `tapes` says whether
    the user's code may take gradients.
    """

    backend: Backend
    namespaces: Mapping[str, Namespace]
    captured: Captured
    operand_types: Mapping[str, Type] = field(default_factory=dict)
    statics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    lenient: frozenset[Span] = frozenset()
    kept: Mapping[str, Kept] = field(default_factory=dict)
    tapes: bool = False
    augmented: Mapping[Span, str] = field(default_factory=dict)
    """Augmented assignments, with the methods by which they would change lists and the like."""
    methods: Mapping[str, Method] = field(default_factory=dict)
    """The functions of the program that are methods of what they are given first."""
    suspects: frozenset[Span] = frozenset()
    """Element stores of which it is asked whether they are into lists."""
    readers: frozenset[Span] = frozenset()
    """Statements of which it is asked whether their attributes are properties that give parts of objects."""
    in_place: frozenset[tuple[Span, str]] = frozenset()
    """What is known of that already."""

    def lookup(self, function: str, name: str) -> Any:
        """The value of free `name` in `function`'s code; KeyError where it is bound to nothing."""
        if name == OPS:
            return importlib.import_module(self.backend.ops_module)
        return self.namespaces[function][name]

    def operands(self, function: str) -> Mapping[str, str]:
        """Captured path to operand name, for `function`."""
        return self.captured.operands.get(function, {})

    def equivalent(self, function: str, path: str) -> str | None:
        """What in `ops` stands for the function that the free `path` (`np.sqrt`) denotes in `function`, if any."""
        try:
            return self.backend.equivalent(self.namespaces[function].path(path))
        except (KeyError, AttributeError):
            return None

    def may_fail(self, function: str, path: str) -> bool:
        """Whether the free `path` (`helper`, `model.energy`) denotes a helper in `function` that may fail a lane."""
        try:
            return may_fail(self.namespaces[function].path(path))
        except (KeyError, AttributeError):
            return False

    def hidden_builtins(self, function: str) -> frozenset[str]:
        """Built-ins of the language that mean something else in `function`."""
        return frozenset(name for name in BUILTINS if self.namespaces[function].hides(name))

    def specialised(
        self, origin: Mapping[str, str], values: Mapping[str, Mapping[str, Any]], lenient: frozenset[Span]
    ) -> Environment:
        """The environment of instances: `origin` has the function of each, `values` what its static parameters are."""
        namespaces = {name: self.namespaces[of].with_values(values[name]) for name, of in origin.items()}
        operands = {name: self.operands(of) for name, of in origin.items()}
        return replace(self, namespaces=namespaces, captured=replace(self.captured, operands=operands), lenient=lenient)
