"""TensorFlow's vectoriser, pfor, as a copy of our own: rules of ours are seen by no one else's conversions.

pfor looks for rules in a registry that is a global of its module, and nested conversions (the body of a loop, of a
conditional, of a function that is called) are started by rules that look there, too. So does all that TensorFlow
vectorises for others, in any thread: `tf.vectorized_map`, `tape.jacobian`. A copy of the module has a registry of its
own, and whatever starts in the copy stays in it.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections import ChainMap
from collections.abc import Callable, MutableMapping
from types import ModuleType, SimpleNamespace
from typing import Any

Converter = Callable[[Any], Any]
"""From the inputs of an operation, as pfor hands them over, to its outputs, wrapped."""


@functools.cache
def copied(register: Callable[[MutableMapping[str, Converter], Any], None]) -> Any:
    """A copy of TensorFlow's pfor module, in whose registry `register(registry, copy)` has put what it wants.

    Operations for which someone else has registered a rule with TensorFlow have it in the copy, too.
    """
    from tensorflow.python.ops.parallel_for import pfor

    tree = ast.parse(inspect.getsource(pfor))
    # A module's statements other than imports, definitions and assignments act on others: this one defines a flag.
    tree.body = [statement for statement in tree.body if not isinstance(statement, ast.Expr)]
    copy: Any = ModuleType(pfor.__name__)
    copy.__file__ = pfor.__file__
    exec(compile(tree, pfor.__file__, "exec"), vars(copy))
    copy.WrappedTensor = pfor.WrappedTensor  # what rules give that belong to operations, or to TensorFlow's registry
    # Pages about a rule that fails: our error says what matters.
    copy.logging = SimpleNamespace(**dict.fromkeys(("debug", "error", "info", "vlog", "warning"), _nothing))
    register(copy._pfor_converter_registry, copy)
    copy._pfor_converter_registry = ChainMap(copy._pfor_converter_registry, pfor._pfor_converter_registry)
    return copy


def _nothing(*arguments: Any) -> None:
    """Log nothing."""
