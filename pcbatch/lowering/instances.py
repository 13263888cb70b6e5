"""Instances: functions at one signature each, and the typed program that is put together from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pcbatch.diagnostics import Diagnostic, Span
from pcbatch.ir import program as ir
from pcbatch.ir.relabel import relabel, retarget
from pcbatch.ir.types import Type
from pcbatch.lowering.captures import ordered_variables

Signature = tuple[Type | None, ...]


@dataclass(frozen=True)
class Binding:
    """What is known of a variable: its type (None: nothing yet) and the assignment where that came from."""

    type: Type | None = None
    span: Span | None = None


@dataclass
class Instance:
    """One function at one signature: its variables' types, the instances that it calls, and what is wrong with it."""

    function: ir.Function
    signature: Signature = ()
    bindings: dict[str, Binding] = field(default_factory=dict)
    calls: dict[tuple[str, int], Instance] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def type(self, name: str) -> Type | None:
        """The type of variable `name`, None while it is unknown."""
        binding = self.bindings.get(name)
        return binding.type if binding is not None else None

    @property
    def results(self) -> list[Type | None]:
        """The types of the results."""
        return [self.type(name) for name in self.function.results]


@dataclass(frozen=True)
class Typed:
    """The typed program, and which function of the untyped one each of its functions is an instance of."""

    program: ir.Program
    origin: Mapping[str, str]


def reachable(root: Instance) -> list[Instance]:
    """Instances in the order of their first call, breadth first from `root`, as the frontend orders functions."""
    order = [root]
    for instance in order:  # grows while it is walked
        places = {block.label: place for place, block in enumerate(instance.function.blocks)}
        for key in sorted(instance.calls, key=lambda key: (places[key[0]], key[1])):
            if not any(instance.calls[key] is seen for seen in order):
                order.append(instance.calls[key])
    return order


def assemble(root: Instance) -> Typed:
    """The program of all instances that `root` reaches, functions named and blocks labelled afresh, variables typed."""
    order = reachable(root)
    fresh: dict[int, str] = {}
    for instance in order:
        base, count = instance.function.name, 0
        name = base
        while name in fresh.values():
            count += 1
            name = f"{base}_{count}"
        fresh[id(instance)] = name
    functions = tuple(_function(instance, fresh) for instance in order)
    origin = {fresh[id(instance)]: instance.function.name for instance in order}
    return Typed(relabel(ir.Program("cfg", functions)), origin)


def _function(instance: Instance, fresh: Mapping[int, str]) -> ir.Function:
    name = fresh[id(instance)]

    def callee(label: str, index: int, op: ir.Op) -> ir.Op:
        return replace(op, function=fresh[id(instance.calls[label, index])]) if isinstance(op, ir.Call) else op

    blocks = tuple(
        replace(
            block,
            label=f"{name}.{block.label}",  # apart from the labels of other instances of this function
            ops=tuple(callee(block.label, index, op) for index, op in enumerate(block.ops)),
            terminator=retarget(block.terminator, lambda label: f"{name}.{label}"),
        )
        for block in instance.function.blocks
    )
    variables = tuple(ir.Variable(v, instance.type(v)) for v in ordered_variables(instance.function))
    return replace(instance.function, name=name, blocks=blocks, variables=variables)
