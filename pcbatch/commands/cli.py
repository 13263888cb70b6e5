"""The command line: `pcbatch compile`, `run`, `profile`, `explain`, `export` and `help`.

What can be said without running the user's file is said so: `compile --dump-ir` imports neither the file nor
TensorFlow. Exit codes: 0 done, 1 refused or a lane failed, 2 bad usage.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcbatch.commands.loading import (
    as_arguments,
    as_json,
    entry_name,
    existing,
    file_and_name,
    listed,
    loaded,
    stdout_to_stderr,
)
from pcbatch.errors import PcbatchError, UsageError
from pcbatch.installed import tensorflow_version
from pcbatch.ir import program as ir
from pcbatch.version import __version__

if TYPE_CHECKING:
    from pcbatch.function.batched import Batched
    from pcbatch.runtime.report.run import Run

STAGES = ("cfg", "stack", "optimized", "machine", "llvm", "ptx", "loop")
TRACED = 1000
"""The number of trips that `--trace` shows."""
WALKED = 50
"""The number of block runs of a lane that `--steps` shows, beside the last."""
_COUNTED = {"--trace": TRACED, "--steps": WALKED}
_NUMBER = re.compile(r"-(\d|\.\d|Infinity)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    try:
        given = _parser().parse_args(_arranged(sys.argv[1:] if arguments is None else list(arguments)))
        code = given.action(given)
        sys.stdout.flush()
        return code
    except SystemExit as end:  # argparse: --help, --version, and usage that it refuses
        return int(end.code or 0)
    except BrokenPipeError:  # the reader, such as `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except UsageError as error:
        print(f"pcbatch: {error}", file=sys.stderr)
        return 2
    except PcbatchError as error:
        print(error, file=sys.stderr)
        return 1


EXAMPLES = {
    "compile": (
        "pcbatch compile collatz.py --dump-ir",
        "pcbatch compile collatz.py:collatz --args '[[3, 7, 27]]' -o fast.py",
    ),
    "run": (
        "pcbatch run collatz.py:collatz '[3, 7, 27]'",
        "pcbatch run collatz.py:collatz '[3, 7, 27]' --steps 8 --lane 1",
    ),
    "profile": ("pcbatch profile collatz.py:collatz '[3, 7, 27]' --trace 20",),
    "explain": ("pcbatch explain collatz.py:collatz '[3, 7, 27]'",),
    "export": ("pcbatch export collatz.py:collatz --args '[[3, 7, 27]]' --platforms cpu -o collatz.zip",),
    "help": ("pcbatch help PCB101", "pcbatch help run"),
}
"""An example of each command, as help texts show it."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pcbatch",
        description="Batch single-example Python functions into XLA programs.",
        epilog="Example:\n  pcbatch run collatz.py:collatz '[3, 7, 27]'\n\n"
        "Exit codes: 0 done, 1 the program was refused or a lane failed, 2 bad usage.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, action: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        shown = "\n".join(f"  {each}" for each in EXAMPLES[name])
        added = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=f"Example{'s'[: len(EXAMPLES[name]) - 1]}:\n{shown}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        added.set_defaults(action=action)
        return added

    compile_ = command("compile", _compile, "show or write what a function compiles to")
    compile_.add_argument("file", metavar="FILE.py[:NAME]")
    compile_.add_argument("--entry", metavar="NAME", help="the batched function, if there are several: or FILE.py:NAME")
    compile_.add_argument(
        "--dump-ir",
        choices=STAGES,
        metavar="STAGE",
        help="print the IR: --dump-ir cfg (default), stack, optimized, machine, llvm, loop",
    )
    compile_.add_argument("--dump-ast", action="store_true", help="print the syntax trees of the batched functions")
    compile_.add_argument(
        "--args", metavar="JSON", help="example arguments of a batch, a JSON list: gives types and shapes"
    )
    compile_.add_argument(
        "-o", dest="output", metavar="OUT.py", help="write the module with its batched function compiled"
    )

    run = command("run", _run, "run a function on a batch")
    run.add_argument("--json", action="store_true", help="print one JSON object: values, statuses, faults, counts")
    run.add_argument(
        "--steps",
        type=int,
        nargs="?",
        metavar="N",
        help="run one lane only, by the reference, and print what each block does to its variables and stacks, for the "
        f"first N blocks that run ({WALKED} if no number follows) and the last",
    )
    run.add_argument("--lane", type=int, metavar="LANE", help="which lane --steps shows, from 0 (the default)")
    _add_batch(run)

    profile = command("profile", _profile, "run a function on a batch and show what each line did")
    profile.add_argument(
        "--trace",
        type=int,
        nargs="?",
        metavar="TRIPS",
        help=f"print the schedule too, a line for each step of the first trips ({TRACED} if no number follows)",
    )
    _add_batch(profile)

    _add_batch(
        command(
            "explain",
            _explain,
            "run a function on a batch in several ways, and say what it costs and what would make it faster",
        )
    )

    export = command("export", _export, "write a function as StableHLO, which JAX runs without TensorFlow")
    export.add_argument("target", metavar="FILE.py:NAME")
    export.add_argument(
        "--args",
        required=True,
        metavar="JSON",
        help="example arguments of a batch, a JSON list: gives types and shapes",
    )
    export.add_argument("-o", dest="output", required=True, metavar="PATH", help="the file to write")
    export.add_argument("--lanes", type=int, metavar="N", help="how many lanes, where no argument says so")
    export.add_argument(
        "--platforms",
        default="cpu,cuda",
        metavar="NAMES",
        help="the devices, of cpu, cuda and rocm: cpu,cuda (default)",
    )

    help_ = command("help", _help, "explain an error code, or show the help of a command")
    help_.add_argument("topic", nargs="?", metavar="CODE|COMMAND")
    return parser


def _add_batch(command: argparse.ArgumentParser) -> None:
    """Add the arguments that name the function and its arguments."""
    command.add_argument("--lanes", type=int, metavar="N", help="how many lanes, where no argument says so")
    command.add_argument("target", metavar="FILE.py:NAME")
    command.add_argument(
        "args",
        nargs="*",
        metavar="ARG",
        help="one JSON value for each argument, with a leading lane axis; an object for a dataclass or a dict",
    )


def _version() -> str:
    return f"pcbatch {__version__} (Python {platform.python_version()}, TensorFlow {tensorflow_version() or 'none'})"


def _arranged(words: list[str]) -> list[str]:
    """The words as argparse needs them, so that a user may give them in any order.

    `--dump-ir` takes the word after it for its stage unless that is an option or a file, and means cfg without one;
    `--trace` and `--steps` take a number that stands behind them.
    The options of `run`, `profile` and `explain` go first, and what is a number, or stands behind `--`, gets a space in
    front: argparse takes no such word for an option.
    """
    if words[:1] not in (["run"], ["profile"], ["explain"]):
        return _with_stage(words)
    options: list[str] = []
    values: list[str] = []
    rest = deque(words[1:])
    while rest:
        word = rest.popleft()
        if word == "--":
            values += [f" {each}" if each.startswith("-") else each for each in rest]
            break
        if _NUMBER.match(word):
            values.append(f" {word}")
        elif word in _COUNTED:
            options.append(f"{word}={rest.popleft() if rest and rest[0].isdecimal() else _COUNTED[word]}")
        elif word.startswith("-"):
            options += [word, *([rest.popleft()] if rest and word in ("--lanes", "--lane") else [])]
        else:
            values.append(word)
    return [words[0], *options, *values]


def _with_stage(words: list[str]) -> list[str]:
    """`--dump-ir STAGE` and `--dump-ir` as `--dump-ir=STAGE`."""
    arranged: list[str] = []
    rest = iter(words)
    for word in rest:
        if word != "--dump-ir":
            arranged.append(word)
            continue
        after = next(rest, None)
        is_stage = after is not None and not after.startswith("-") and not file_and_name(after)[0].endswith(".py")
        is_stage = is_stage and (after in STAGES or not os.path.exists(str(after)))
        arranged += [f"--dump-ir={after}"] if is_stage else ["--dump-ir=cfg", *([] if after is None else [after])]
    return arranged


# -- compile -----------------------------------------------------------------------------------------------------------


def _compile(given: argparse.Namespace) -> int:
    file, named = (given.file, None) if os.path.exists(given.file) else file_and_name(given.file)
    if named is not None and given.entry not in (None, named):
        raise UsageError("PCB523", f"{given.file} names one function, and --entry {given.entry} another one")
    path = existing(file)
    if given.output is not None and Path(given.output).resolve() == path.resolve():
        raise UsageError("PCB573", f"-o {given.output} would overwrite the file that is compiled")
    name = entry_name(path, named or given.entry)
    if given.args is None:
        _static_program(path, name, "cfg")  # what is refused whatever the arguments are comes before asking for some
    shown = given.dump_ast or given.dump_ir is not None
    if given.output is not None and given.args is None:
        raise UsageError("PCB520", "a compiled module is made for given types and shapes: give --args with -o")
    if given.args is None and not shown:
        raise UsageError(
            "PCB520", "the generated source depends on types and shapes: give example arguments with --args"
        )
    if given.args is None and given.dump_ir in ("machine", "llvm", "ptx", "loop"):
        raise UsageError(
            "PCB520", f"what is executed depends on types and shapes: give --args with --dump-ir={given.dump_ir}"
        )
    if given.dump_ast:
        print(_trees(path, name), end="")
    if given.args is None:
        if given.dump_ir is not None:
            print(_printed(_static_program(path, name, given.dump_ir)), end="")
        return 0
    batch = listed(given.args)
    with loaded(path, name) as batched:
        batch = as_arguments(batched, batch)
        if given.dump_ir is not None:
            print(batched.ir(given.dump_ir, *batch), end="")
        if given.output is not None:
            from pcbatch.commands.module_writer import compiled_module, described

            _write(given.output, compiled_module(path, batched, batch))
            types = described(batched.pipeline(*batch))
            print(f"pcbatch: wrote {given.output}: {name} compiled for {types}", file=sys.stderr)
        elif not shown:
            print(batched.source(*batch), end="")
    return 0


def _static_program(path: Path, name: str, stage: str) -> ir.Program:
    """The program of a file that is parsed, not imported."""
    from pcbatch.lowering.calls import lower_calls
    from pcbatch.optimize.pipeline import optimize
    from pcbatch.reading.static_module import read_file

    program = read_file(path, name).program
    if stage == "cfg":
        return program
    stack = lower_calls(optimize(program))
    return stack if stage == "stack" else optimize(stack)


def _printed(program: ir.Program) -> str:
    from pcbatch.ir.printer import print_program

    return print_program(program)


def _trees(path: Path, name: str) -> str:
    """The syntax trees, as gast has them, of a function and those that it calls, in the order of the IR."""
    import astunparse

    from pcbatch.reading.static_module import read_file

    sources = read_file(path, name).sources
    return "\n".join(f"{source.span}: {source.qualname}\n{astunparse.dump(source.tree)}\n" for source in sources)


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError("PCB574", f"{file} cannot be written: {error.strerror}") from None


# -- run, profile ------------------------------------------------------------------------------------------------------


def _run(given: argparse.Namespace) -> int:
    if given.steps is not None:
        return _walk(given)
    if given.lane is not None:
        raise UsageError("PCB563", "--lane says which lane --steps shows: give --steps too, or leave --lane away")
    with stdout_to_stderr() if given.json else contextlib.nullcontext():
        run = _ran(given)  # what lanes print is no JSON
    print(json.dumps(run.as_json()) if given.json else run.report(lanes=None))
    return 1 if run.errors else 0


def _profile(given: argparse.Namespace) -> int:
    options = {} if given.trace is None else {"trace": given.trace}
    with _target(given) as (batched, batch, lanes):
        traced = batched.options(**options)
        traced.run(*batch, **lanes)  # this one compiles, the next is measured
        run, stats = traced.run(*batch, **lanes), traced.stats()
    print(run.profile())
    print(f"\nfirst call: traced in {stats.trace_seconds:.3g} s, compiled in {stats.compile_seconds:.3g} s")
    if given.trace:
        print(f"\n{run.trace}")
    for fault in run.errors:
        print(f"\n{fault}")
    return 1 if run.errors else 0


def _explain(given: argparse.Namespace) -> int:
    from pcbatch.function.explaining import explain

    with _target(given) as (batched, batch, lanes):
        print(explain(batched, *batch, **lanes))
    return 0


def _export(given: argparse.Namespace) -> int:
    path, name = _named(given.target)
    batch, platforms = listed(given.args), [each.strip() for each in given.platforms.split(",")]
    lanes = {"lanes": given.lanes} if given.lanes is not None else {}
    with loaded(path, name) as batched:
        batch = as_arguments(batched, batch)
        try:
            batched.export(given.output, *batch, platforms=platforms, **lanes)
        except OSError as error:
            raise UsageError("PCB574", f"{given.output} cannot be written: {error.strerror}") from None
    print(f"pcbatch: wrote {given.output}: {name} for {', '.join(platforms)}", file=sys.stderr)
    return 0


def _help(given: argparse.Namespace) -> int:
    if given.topic is None or given.topic in EXAMPLES:
        return main([*([] if given.topic is None else [given.topic]), "--help"])
    from pcbatch.commands.loading import lesson

    print(lesson(given.topic), end="")
    return 0


def _walk(given: argparse.Namespace) -> int:
    from pcbatch.function.explaining import show_walk

    if given.json:
        raise UsageError("PCB563", "--steps prints text for people: leave --json away")
    if given.steps < 1:
        raise UsageError("PCB563", f"--steps says how many block runs are shown, at least 1, not {given.steps}")
    with _target(given) as (batched, batch, lanes):
        status = show_walk(batched, batch, lanes, lane=given.lane or 0, limit=given.steps, show=print)
    return 1 if status else 0


def _ran(given: argparse.Namespace, **options: Any) -> Run:
    """The run that the command line asks for, under further options."""
    with _target(given) as (batched, batch, lanes):
        return batched.options(**options).run(*batch, **lanes)


@contextlib.contextmanager
def _target(given: argparse.Namespace) -> Iterator[tuple[Batched[..., Any], list[Any], dict[str, int]]]:
    """The function that the command line names, its arguments, and how many lanes if it says so."""
    path, name = _named(given.target)
    batch = [as_json(text.strip(), f"argument {place}") for place, text in enumerate(given.args, 1)]
    lanes = {"lanes": given.lanes} if given.lanes is not None else {}
    with loaded(path, name) as batched:
        yield batched, as_arguments(batched, batch), lanes


def _named(target: str) -> tuple[Path, str]:
    """The file and the function that the command line names."""
    file, name = file_and_name(target)
    if name is None:
        raise UsageError("PCB524", f"{target!r} is not of the form FILE.py:NAME")
    return existing(file), name


if __name__ == "__main__":
    sys.exit(main())
