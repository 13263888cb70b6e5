"""The command line: `pcbatch compile`, `pcbatch run`.

What can be said without running the user's file is said so: `compile --dump-ir` imports neither the file nor
TensorFlow. Exit codes: 0 done, 1 refused or a lane failed, 2 bad usage.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcbatch.diagnostics import CompileError, PcbatchError, UsageError
from pcbatch.ir import program as ir

if TYPE_CHECKING:
    from pcbatch.api import Batched

STAGES = ("cfg", "stack", "optimized")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = _parser()
    given = parser.parse_args(_with_stage(sys.argv[1:] if arguments is None else arguments))
    try:
        return given.action(given)
    except UsageError as error:
        print(f"pcbatch: {error}", file=sys.stderr)
        return 2
    except PcbatchError as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pcbatch", description="Batch single-example Python functions into XLA programs."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    compile_ = commands.add_parser("compile", help="show or write what a function compiles to")
    compile_.add_argument("file", metavar="FILE.py")
    compile_.add_argument(
        "--entry", metavar="NAME", help="the batched function to compile (needed if there are several)"
    )
    compile_.add_argument(
        "--dump-ir", choices=STAGES, metavar="STAGE", help="print the IR: cfg (default), stack, optimized"
    )
    compile_.add_argument(
        "--args", metavar="JSON", help="example arguments of a batch, a JSON list: gives types and shapes"
    )
    compile_.add_argument(
        "-o", dest="output", metavar="OUT.py", help="write the module with its batched function compiled"
    )
    compile_.set_defaults(action=_compile)

    run = commands.add_parser("run", help="run a function on a batch")
    run.add_argument("target", metavar="FILE.py:NAME")
    run.add_argument(
        "args", nargs="*", metavar="ARG", help="one JSON value for each argument, with a leading lane axis"
    )
    run.set_defaults(action=_run)
    return parser


def _with_stage(arguments: Sequence[str]) -> list[str]:
    """`--dump-ir` without a stage means cfg; written out, so that the word after it is not taken for one."""
    return ["--dump-ir=cfg" if word == "--dump-ir" else word for word in arguments]


# -- compile -----------------------------------------------------------------------------------------------------------


def _compile(given: argparse.Namespace) -> int:
    path = _existing(given.file)
    if given.args is None and given.output is None:
        if given.dump_ir is not None:
            from pcbatch.ir.printer import print_program

            print(print_program(_static_program(path, given.entry, given.dump_ir)), end="")
            return 0
        raise UsageError(
            "PCB520", "the generated source depends on types and shapes: give example arguments with --args"
        )
    if given.args is None:
        raise UsageError("PCB520", "a compiled module is made for given types and shapes: give --args with -o")
    batched = _load(path, _entry_name(path, given.entry))
    batch = _json(given.args, "--args")
    if not isinstance(batch, list):
        raise UsageError("PCB521", "--args must be a JSON list with one entry for each argument")
    if given.dump_ir is not None:
        print(batched.ir(given.dump_ir, *batch), end="")
    elif given.output is None:
        print(batched.source(*batch), end="")
    if given.output is not None:
        from pcbatch.modulewriter import compiled_module

        Path(given.output).write_text(compiled_module(path, batched, batch), encoding="utf-8")
    return 0


def _static_program(path: Path, entry: str | None, stage: str) -> ir.Program:
    """The program of a file that is parsed, not imported."""
    from pcbatch.frontend import build, read_module
    from pcbatch.lowering.calls import lower_calls
    from pcbatch.optimize import optimize

    module = read_module(str(path))
    program = build(module.functions[_entry_name(path, entry)], module.resolve).program
    if stage == "cfg":
        return program
    return lower_calls(program) if stage == "stack" else optimize(lower_calls(program))


def _entry_name(path: Path, entry: str | None) -> str:
    """The batched function to compile: the one named, or the only one that no other one calls."""
    from pcbatch.frontend import read_module

    module = read_module(str(path))
    if not module.functions:
        raise UsageError("PCB522", f"{path} has no function decorated with pcbatch.autobatch at its top level")
    name = entry if entry is not None else module.default_entry
    if name is None:
        raise UsageError(
            "PCB523", f"{path} has several batched functions; choose one with --entry: {_names(module.functions)}"
        )
    if name not in module.functions:
        raise UsageError("PCB523", f"{path} has no batched function {name!r}; it has {_names(module.functions)}")
    return name


def _names(functions: Any) -> str:
    return ", ".join(functions)


# -- run ---------------------------------------------------------------------------------------------------------------


def _run(given: argparse.Namespace) -> int:
    file, separator, name = given.target.rpartition(":")
    if not separator or not name:
        raise UsageError("PCB524", f"{given.target!r} is not of the form FILE.py:NAME")
    batched = _load(_existing(file), name)
    run = batched.run(*(_json(text, f"argument {place}") for place, text in enumerate(given.args, 1)))
    print(run.report())
    return 1 if run.errors else 0


def _load(path: Path, name: str) -> Batched[..., Any]:
    """The batched function `name` of the module at `path`, which is imported."""
    from pcbatch.api import Batched

    _start_tensorflow_quietly()
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent))
    try:
        specification.loader.exec_module(module)
    except CompileError:
        raise
    except Exception as error:
        raise UsageError("PCB525", f"importing {path} failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.parent))
    found = getattr(module, name, None)
    if not isinstance(found, Batched):
        raise UsageError("PCB526", f"{path} has no batched function {name!r}")
    return found


def _start_tensorflow_quietly() -> None:
    """Import TensorFlow without its start-up chatter, which goes past Python to the process's standard error."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    real = os.dup(2)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        importlib.import_module("tensorflow")
    finally:
        os.dup2(real, 2)
        os.close(real)


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError("PCB521", f"{what} is not JSON: {error.msg} at column {error.colno}: {text!r}") from None


def _existing(file: str) -> Path:
    path = Path(file)
    if not path.is_file():
        raise UsageError("PCB527", f"there is no file {file}")
    return path


if __name__ == "__main__":
    sys.exit(main())
