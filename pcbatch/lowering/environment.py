"""What lowering must know of the world outside the IR: namespaces, captured operands and the backend's rules."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pcbatch.ir.types import Type
from pcbatch.lowering.captures import Captured, Namespace
from pcbatch.lowering.translate import BUILTINS, OPS
from pcbatch.runtime.backends.protocol import Backend


@dataclass(frozen=True)
class Environment:
    """Everything that gives the names in a program's code their meaning.

    `namespaces` are by function name of the cfg program; `operand_types` by operand name.
    """

    backend: Backend
    namespaces: Mapping[str, Namespace]
    captured: Captured
    operand_types: Mapping[str, Type] = field(default_factory=dict)

    def lookup(self, function: str, name: str) -> Any:
        """The value of free `name` in `function`'s code; KeyError where it is bound to nothing."""
        if name == OPS:
            return importlib.import_module(self.backend.ops_module)
        return self.namespaces[function][name]

    def operands(self, function: str) -> Mapping[str, str]:
        """Captured path to operand name, for `function`."""
        return self.captured.operands.get(function, {})

    def hidden_builtins(self, function: str) -> frozenset[str]:
        """Built-ins of the language that mean something else in `function`."""
        return frozenset(name for name in BUILTINS if self.namespaces[function].hides(name))
