"""An extension of Griffe, which reads docstrings: `autobatch` has its options as parameters, with types and defaults.

In the source it takes `**options`, whose names, types and defaults the class `Options` has. Its overloads say to type
checkers what readers see at a glance.
"""

from __future__ import annotations

import re
from typing import Any

import griffe


class ExplicitOptions(griffe.Extension):
    """Writes the fields of `Options` into the signature of `autobatch`."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Change the signature once the package is read."""
        if pkg.name != "pcbatch":
            return
        function, options = pkg["api.autobatch"], pkg["options.Options"]
        types = pkg["options.OptionValues"].members
        first = [each for each in function.parameters if each.kind is not griffe.ParameterKind.var_keyword]
        fields = [
            griffe.Parameter(
                name,
                annotation=types[name].annotation if name in types else field.annotation,
                kind=griffe.ParameterKind.keyword_only,
                default=field.value,
            )
            for name, field in options.members.items()
            if field.is_attribute and field.annotation is not None and not field.has_labels("property")
        ]
        function.parameters = griffe.Parameters(*first, *fields)
        function.overloads = None
        function.docstring.value = re.sub(r"^ *\*\*options: .*\n", "", function.docstring.value, flags=re.MULTILINE)
