"""The house: rooms from top to bottom. A module imports from its own room and from rooms below it, never in a circle.

Every import counts: inside functions and under TYPE_CHECKING, too.
"""

import ast
import functools
from pathlib import Path

import pytest

import pcbatch
from pcbatch.runtime.backends.protocol import Backend

pytestmark = pytest.mark.xdist_group("architecture")  # each module is read once
FOLDER = Path(pcbatch.__file__).parent
LEVELS = (
    ("", "__main__", "commands"),
    ("nuts", "nuts.running", "nuts.results", "nuts.adaptation", "nuts.kernel", "nuts.parameters", "nuts.settings"),
    ("random",),
    ("caching", "device_loops", "exported", "saving", "api", "function", "trees"),
    ("reading",),
    ("single",),
    ("frontend",),
    ("lowering", "lowering.codegen", "lowering.captures"),
    ("options",),
    (
        "runtime.export",
        "runtime.resume",
        "runtime.report",
        "runtime.strategies",
        "runtime.llvm",
        "runtime.adjoint",
        "runtime.machine",
        "runtime.schedules",
    ),
    ("runtime.costs", "runtime.backends", "runtime"),
    ("optimize", "optimize.machine", "optimize.stack", "optimize.cfg"),
    ("runtime.store",),
    ("ir.machine_verifier", "ir.machine_rules", "ir.verifier", "ir.rewrite", "ir.analysis", "ir"),
    ("runtime.costs.device", "version", "installed", "notice", "quiet", "threads", "errors"),
)
ROOMS = [room for level in LEVELS for room in level]


def name_of(file):
    parts = file.relative_to(FOLDER.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(file): file for file in FOLDER.rglob("*.py")}


def imported(name):
    """The modules of pcbatch that a module imports, anywhere in its text."""
    found = set()
    for node in ast.walk(trees()[name]):
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


TENSORFLOW = tuple(f"pcbatch.{room}." for room in ("runtime.backends.tensorflow", "single", "random", "nuts"))
"""The rooms that may know the array library."""
PRIVATE = "pcbatch.runtime.backends.tensorflow.private"
"""The one room that may know its insides."""
QUIET = "pcbatch.commands.loading"
"""Imports it without its chatter, for the command line, and does not use it."""
NAMED_TUPLES = {"_replace", "_fields", "_asdict", "_make"}
"""Documented in spite of the underscore."""


@functools.cache
def trees():
    """What is written in each module."""
    return {name: ast.parse(file.read_text()) for name, file in MODULES.items()}


def modules_of_tensorflow(tree):
    """The modules of TensorFlow's that a text imports, by statement or by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "tensorflow")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tensorflow":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield from (
                str(a.value) for a in node.args if isinstance(a, ast.Constant) and str(a.value).startswith("tensorflow")
            )


def test_tensorflow_is_imported_in_its_rooms_only():
    outside = [name for name in trees() if not f"{name}.".startswith(TENSORFLOW) and name != QUIET]
    assert not {name: found for name in outside if (found := [*modules_of_tensorflow(trees()[name])])}


def test_tensorflows_insides_are_used_in_one_room_only():
    imported = {name: {*modules_of_tensorflow(tree)} - {"tensorflow"} for name, tree in trees().items()}
    assert not {name: found for name, found in imported.items() if found}, "all that is public is in `tf`"
    assert "tensorflow.python" in MODULES[f"{PRIVATE}.lookup"].read_text()
    assert not {
        f"{name}: {ast.unparse(node)}"
        for name, tree in trees().items()
        if f"{name}.".startswith(TENSORFLOW) and not f"{name}.".startswith(f"{PRIVATE}.")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and node.attr not in NAMED_TUPLES
        if node.attr == "__internal__"
        or (not node.attr.endswith("__") and ast.unparse(node.value) not in ("self", "cls"))
    }


@functools.cache
def imports():
    """The modules that each module imports."""
    return {name: imported(name) for name in MODULES}


def test_arrows_go_down():
    up = [f"{name} -> {other}" for name in imports() for other in imports()[name] if room_of(other) < room_of(name)]
    assert not up, "\n".join(up)


def test_no_circles():
    left = dict(imports())
    while free := [name for name, others in left.items() if not set(others) & left.keys()]:
        for name in free:
            del left[name]
    assert not left, "in circles, or above them:\n" + "\n".join(sorted(left))


def test_the_protocol_of_backends_is_small():
    methods = [name for name in dir(Backend) if not name.startswith("_") and callable(getattr(Backend, name))]
    assert len(methods) <= 90, methods
