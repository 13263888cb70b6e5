"""Names of their own for values that share a variable's name, but not its storage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import scope


class FreshNames:
    """Gives out names that mean nothing in `program`, nor are those of captured arrays (`x_1` may stand for `x[1]`)."""

    def __init__(self, program: ir.Program):
        self.taken = set(scope(program, program.entry))
        for block in program.blocks():
            for op in block.ops:
                if isinstance(op, ir.Coded):
                    self.taken |= ir.words(op)
        self.own: dict[str, str] = {}

    def name(self, name: str) -> str:
        """The name for a value that went by `name`."""
        if name not in self.own:
            own = f"{name}_"
            while own in self.taken:
                own += "_"
            self.taken.add(own)
            self.own[name] = own
        return self.own[name]

    def listed(self, program: ir.Program) -> ir.Program:
        """`program` with the names given out in its tables of variables, each as a register behind its user's name."""

        def entries(variable: ir.Variable) -> Iterator[ir.Variable]:
            yield variable
            if variable.name in self.own:
                yield ir.Variable(self.own[variable.name], variable.type, "register")

        functions = (
            replace(
                function,
                variables=tuple(each for v in function.variables for each in entries(v)),
                made=(*function.made, *(self.own[name] for name in function.made if name in self.own)),
            )
            for function in program.functions
        )
        return replace(program, functions=tuple(functions))
