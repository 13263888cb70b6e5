"""Source capture, and the allow-list of syntax that a function is checked against when it is decorated."""

from __future__ import annotations

from pcbatch.frontend.module import ModuleSource, read_module
from pcbatch.frontend.source import FunctionSource, Parameter
from pcbatch.frontend.syntax import CODES, read_function

__all__ = ["CODES", "FunctionSource", "ModuleSource", "Parameter", "read_function", "read_module"]
