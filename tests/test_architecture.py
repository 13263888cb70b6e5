"""The house: rooms from top to bottom. A module imports from its own room and from rooms below it, never in a circle.

Every import counts: inside functions and under TYPE_CHECKING, too.
"""

import ast
from pathlib import Path

import pcbatch

FOLDER = Path(pcbatch.__file__).parent
LEVELS = (
    ("", "__main__", "commands"),
    ("nuts", "nuts.running", "nuts.results", "nuts.adaptation", "nuts.kernel", "nuts.parameters", "nuts.settings"),
    ("random",),
    ("saving", "api", "function"),
    ("frontend", "frontend.translate", "frontend.check", "frontend.source"),
    ("lowering", "lowering.inference", "lowering.codegen", "lowering.captures"),
    ("options", "axes"),
    ("runtime.resume", "runtime.report", "runtime.strategies", "runtime.machine", "runtime.schedules"),
    ("runtime.costs", "runtime.backends", "runtime"),
    ("optimize", "optimize.machine", "optimize.stack", "optimize.cfg"),
    ("ir.verify", "ir.rewrite", "ir.text", "ir.analysis", "ir"),
    ("version", "installed", "errors"),
)
ROOMS = [room for level in LEVELS for room in level]


def name_of(file):
    parts = file.relative_to(FOLDER.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(file): file for file in FOLDER.rglob("*.py")}


def imported(name):
    """The modules of pcbatch that a module imports, anywhere in its text."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} has a relative import"
            paths = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {path if path in MODULES else node.module for path in paths}
    return sorted(found & MODULES.keys() - {name})


def room_of(name):
    """The place of a module's room in the list: that of the longest name that it begins with."""
    path = name.removeprefix("pcbatch").removeprefix(".")
    rooms = [room for room in ROOMS if path == room or (room and path.startswith(f"{room}."))]
    assert rooms, f"{name} is in no room"
    return ROOMS.index(max(rooms, key=len))


IMPORTS = {name: imported(name) for name in MODULES}


def test_arrows_go_down():
    up = [f"{name} -> {other}" for name in IMPORTS for other in IMPORTS[name] if room_of(other) < room_of(name)]
    assert not up, "\n".join(up)


def test_no_circles():
    left = dict(IMPORTS)
    while free := [name for name, others in left.items() if not set(others) & left.keys()]:
        for name in free:
            del left[name]
    assert not left, "in circles, or above them:\n" + "\n".join(sorted(left))
