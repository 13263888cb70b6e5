"""Names of variables that are unique in a whole program: as the user wrote them wherever that is possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pcbatch.ir import program as ir
from pcbatch.lowering.captures.captured import free_roots, ordered_variables


def unique_names(
    program: ir.Program, reserved: frozenset[str], result_class: Mapping[str, str]
) -> dict[tuple[str, str], str]:
    """`(function, variable) -> unique name`.

    A variable keeps its name unless two functions have it, or some code reads that name as free (or it is `reserved`);
    then it is headed by its function's name. Functions of one `result_class` share the names of their results.
    """
    ordered = {function.name: ordered_variables(function) for function in program.functions}
    count = Counter(name for variables in ordered.values() for name in variables)
    clashing = free_roots(program) | reserved
    clashing |= {name for name, times in count.items() if times > 1}
    taken = set(clashing)
    names: dict[tuple[str, str], str] = {}
    for function in program.functions:
        leader = program.function(result_class[function.name])
        for variable in ordered[function.name]:
            if variable in function.results and leader is not function:
                continue
            name, number = variable, 0
            while name in taken or (name in clashing):
                name = f"{function.name}_{variable}" + (f"_{number}" if number else "")
                number += 1
            taken.add(name)
            names[function.name, variable] = name
    for function in program.functions:
        leader = program.function(result_class[function.name])
        for result, shared in zip(function.results, leader.results, strict=True):
            names[function.name, result] = names[leader.name, shared]
    return names
