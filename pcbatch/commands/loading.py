"""The files and arguments given on the command line: how they are read, and the errors of both.

Arguments are JSON, of which records are made where a parameter is annotated with their class.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import difflib
import importlib
import importlib.util
import inspect
import json
import os
import re
import sys
import tokenize
import traceback
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pcbatch.errors import CompileError, PcbatchError, UsageError
from pcbatch.ir.values import field_names, is_record_class
from pcbatch.threads import parse

if TYPE_CHECKING:
    from pcbatch.function.batched import Batched

# -- files -------------------------------------------------------------------------------------------------------------


def file_and_name(target: str) -> tuple[str, str | None]:
    """The parts of FILE.py:NAME; None for a name that is not there."""
    file, _, name = target.rpartition(":")
    return (file, name) if file and all(map(str.isidentifier, name.split("."))) else (target, None)


def existing(file: str) -> Path:
    """The path of a text file that is there; UsageError PCB527 or PCB572 if it is not."""
    path = Path(file)
    if not path.is_file():
        what = f"{file} is a folder" if path.is_dir() else f"there is no file {file}"
        raise UsageError("PCB527", what)
    try:
        with tokenize.open(path) as text:
            text.read()
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise UsageError("PCB572", f"{file} cannot be read: {error}") from None
    return path


def entry_name(path: Path, entry: str | None) -> str:
    """The batched function to compile: the one named, or the only one that no other one calls."""
    from pcbatch.frontend.module import read_module

    module = read_module(str(path))
    if not module.functions:
        raise UsageError("PCB522", f"{path} has no function decorated with pcbatch.autobatch at its top level")
    name = entry if entry is not None else module.default_entry
    if name is None:
        names = ", ".join(module.functions)
        raise UsageError("PCB523", f"{path} has several batched functions; choose one, as {path}:NAME: {names}")
    if name not in module.functions:
        raise UsageError("PCB523", f"{path} has no batched function {name!r}; {_choice(name, module.functions)}")
    return name


def _choice(name: str, known: Iterable[str]) -> str:
    """A hint at names that there are instead of `name`."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"it has {', '.join(known)}{meant}" if known else "it has none"


def refuse_misspelt(path: Path, name: str) -> None:
    """UsageError PCB523 for a name that nothing in the file binds: said without importing it, nor TensorFlow."""
    from pcbatch.frontend.module import read_module

    if path.suffix != ".py":
        return
    try:
        module = read_module(str(path))
    except CompileError:
        return  # whether that matters is for Python to say: it may stand where control never goes
    if not can_bind(path.read_bytes(), name):
        raise UsageError("PCB523", f"{path} has no batched function {name!r}; {_choice(name, module.functions)}")


@contextlib.contextmanager
def loaded(path: Path, name: str) -> Iterator[Batched[..., Any]]:
    """The batched function `name` (or `Class.name`) of the file at `path`, which is imported.

    What lies next to the file can be imported too as long as the function is in use, as when Python runs a script.
    """
    refuse_misspelt(path, name)
    sys.path.insert(0, str(path.parent))
    importlib.invalidate_caches()  # else a file that was just written may not be found
    try:
        yield _batched(path, _import(path), name)
    finally:
        sys.path.remove(str(path.parent))


def _batched(path: Path, module: Any, name: str) -> Batched[..., Any]:
    from pcbatch.function.batched import Batched

    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, Batched):
        return found
    known = [each for each, value in vars(module).items() if isinstance(value, Batched)]
    what = f"{name!r} in {path} is not batched" if found is not None else f"{path} has no batched function {name!r}"
    raise UsageError("PCB523", f"{what}; {_choice(name, known)}")


def _import(path: Path) -> Any:
    """The module of a file, under its own name unless another module has that."""
    name = path.stem
    taken = getattr(sys.modules.get(name), "__file__", None)
    if name in sys.modules and not _same(taken or "", path):
        name = f"_pcbatch_{name}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise UsageError("PCB527", f"{path} is not a Python file: its name must end in .py")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    try:
        with stdout_to_stderr():
            specification.loader.exec_module(module)
    except PcbatchError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        if isinstance(error, SyntaxError) and _same(error.filename or "", path):
            from pcbatch.frontend.module import read_module

            read_module(path)  # says it at the line, with a code
        raise UsageError("PCB525", f"importing {path} failed:\n{_traceback(error, path)}") from error
    return module


def _same(file: str, path: Path) -> bool:
    return bool(file) and Path(file).resolve() == path.resolve()


def _traceback(error: BaseException, path: Path) -> str:
    """Python's own account of `error`, from the user's file on."""
    frames = traceback.TracebackException.from_exception(error)
    own = [place for place, frame in enumerate(frames.stack) if _same(frame.filename, path)]
    frames.stack[:] = frames.stack[own[0] :] if own else []
    frames.__context__ = frames.__cause__ = None
    return "".join(frames.format()).rstrip()


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Redirect output inside, by Python or past it, to standard error: it is no output of a command."""
    streams = {id(each): each for each in (sys.stdout, sys.__stdout__) if each is not None}.values()
    _flush(streams)
    with contextlib.redirect_stdout(sys.stderr):
        try:
            real = os.dup(1)
        except OSError:  # closed
            yield
            return
        with contextlib.suppress(OSError):
            os.dup2(2, 1)
        try:
            yield
        finally:
            _flush(streams)  # of whoever has them by another name
            os.dup2(real, 1)
            os.close(real)


def _flush(streams: Iterable[IO[str]]) -> None:
    for each in streams:
        with contextlib.suppress(OSError, ValueError):
            each.flush()


UNSEEN = {"globals", "vars", "locals", "exec", "eval", "setattr", "__dict__", "__getattr__", "modules"}
"""Names by which a module can bind others that its text does not show."""


def can_bind(text: bytes, name: str) -> bool:
    """Return whether the module of this text can have `name`, or `Class.name`, once imported; True where in doubt."""
    module = parse(text)
    mentioned = {each.id for each in ast.walk(module) if isinstance(each, ast.Name)}
    mentioned |= {each.attr for each in ast.walk(module) if isinstance(each, ast.Attribute)}
    mentioned |= {each.name for each in ast.walk(module) if isinstance(each, ast.FunctionDef)}
    if mentioned & UNSEEN:
        return True
    bound = _bound(module)
    hidden = {each for node in ast.walk(module) if isinstance(node, ast.Global) for each in node.names}
    root, _, rest = name.partition(".")
    if "*" in bound or (root in bound | hidden and not rest):
        return True
    if root not in bound | hidden:
        return False
    owners = [node for node in ast.walk(module) if isinstance(node, ast.ClassDef) and node.name == root]
    is_plain = len(owners) == 1 and root not in hidden and not _is_helped(owners[0]) and "." not in rest
    assigned = {node.attr for node in ast.walk(module) if isinstance(node, ast.Attribute) and _is_store(node)}
    return not is_plain or rest in _bound(owners[0]) | assigned


def _is_helped(owner: ast.ClassDef) -> bool:
    """Return whether a class can have names that its body does not bind."""
    return bool(owner.bases or owner.keywords or owner.decorator_list)


def _is_store(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)


def _bound(node: ast.AST) -> set[str]:
    """The names that the statements of a module's or a class's own body bind; "*" if it imports all of a module."""
    found: set[str] = set()
    for child in _own(node):
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
            case ast.MatchMapping(rest=str(name)):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name.partition(".")[0])
    return found


def _own(node: ast.AST) -> Iterable[ast.AST]:
    """Every node that runs when the body of `node` does."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _own(child)


# -- command arguments -------------------------------------------------------------------------------------------------


def as_json(text: str, what: str) -> Any:
    """Parse a JSON text; UsageError PCB521 if it is none."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError("PCB521", f"{what} is not JSON: {error.msg} at column {error.colno}: {text!r}") from None


def listed(text: str) -> list[Any]:
    """Parse the arguments of `--args`; UsageError PCB521 unless they are a list."""
    batch = as_json(text, "--args")
    if not isinstance(batch, list):
        raise UsageError("PCB521", "--args must be a JSON list with one entry for each argument")
    return batch


def as_arguments(function: Any, batch: Sequence[Any]) -> list[Any]:
    """The arguments that the batched function `function` takes: a dataclass's object for a JSON object, and so on.

    Which class, the annotations of parameters and fields say: `Point`, `Point | None`, `list[Point]`, .. UsageError
    PCB521 where an object does not have its fields.
    """
    names, hints = list(function.__signature__.parameters), _hints(function.function)
    given = [*zip(names, batch, strict=False)]
    made = [_made(value, hints.get(name), f"argument {place}") for place, (name, value) in enumerate(given, 1)]
    return [*made, *batch[len(made) :]]


def _hints(owner: Any) -> Mapping[str, Any]:
    """The annotations of a function or class, names in texts looked up; without those that are not found."""
    try:
        return typing.get_type_hints(owner)
    except Exception:  # annotations are not evaluated otherwise, and may be anything
        found, around = {}, vars(sys.modules[owner.__module__])
        for name, hint in inspect.get_annotations(owner).items():
            with contextlib.suppress(Exception):
                found[name] = eval(hint, around) if isinstance(hint, str) else hint
        return found


def _made(value: Any, hint: Any, what: str) -> Any:
    """The value that the annotation `hint` makes of a JSON value."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if is_record_class(origin):
        return _made(value, origin, what)
    if origin in (typing.Union, types.UnionType):
        return _of_union(value, inner, what)
    if origin in (list, Sequence) and isinstance(value, list):
        return [_made(each, inner[0], f"{what}[{place}]") for place, each in enumerate(value)]
    if origin is tuple and isinstance(value, list) and any(map(_has_record, inner)):
        kinds = [inner[0]] * len(value) if inner[1:] == (...,) else inner
        return tuple(
            _made(each, kind, f"{what}[{n}]") for n, (each, kind) in enumerate(zip(value, kinds, strict=False))
        )
    if origin in (dict, Mapping) and isinstance(value, dict):
        return {key: _made(each, inner[1], f"{what}[{key!r}]") for key, each in value.items()}
    if is_record_class(hint) and field_names(hint) is not None and isinstance(value, dict):
        return _record(value, hint, what)
    return value


def _of_union(value: Any, kinds: Sequence[Any], what: str) -> Any:
    """The value as the first of several annotations that it fits has it."""
    faults = []
    for kind in (kind for kind in kinds if _has_record(kind)):
        try:
            found = _made(value, kind, what)
        except UsageError as error:
            faults.append(error)
            continue
        if found is not value:
            return found
    if faults:
        raise faults[0]
    return value


def _has_record(hint: Any) -> bool:
    """Return whether a class of records stands in an annotation."""
    return (
        is_record_class(hint)
        or is_record_class(typing.get_origin(hint))
        or any(map(_has_record, typing.get_args(hint)))
    )


def _record(value: Mapping[str, Any], cls: Any, what: str) -> Any:
    """An object of a dataclass or a named tuple, made as its author would: by a call with its fields."""
    known = (
        [each.name for each in dataclasses.fields(cls) if each.init] if dataclasses.is_dataclass(cls) else cls._fields
    )
    unknown = [name for name in value if name not in known]
    if unknown:
        raise UsageError("PCB521", f"{what}: {cls.__name__} has no field {unknown[0]!r}; it has {', '.join(known)}")
    hints = _hints(cls)
    fields = {name: _made(each, hints.get(name), f"{what}.{name}") for name, each in value.items()}
    try:
        return cls(**fields)
    except PcbatchError:
        raise
    except Exception as error:
        raise UsageError(
            "PCB521", f"{what}: no {cls.__name__} can be made of {json.dumps(value)}: {type(error).__name__}: {error}"
        ) from None


# -- lessons -----------------------------------------------------------------------------------------------------------
# Sections of docs/errors.md, as `pcbatch help PCB101` prints them.

CODE = re.compile(r"(?:PCB)?(\d{3})", re.IGNORECASE)


def page() -> Path:
    """The page: in the package, where that is installed, else beside it."""
    package = Path(__file__).parents[1]
    places = package / "errors.md", package.parent / "docs" / "errors.md"
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise UsageError("PCB578", "this installation has no page of errors")
    return found


def lesson(code: str) -> str:
    """The page's section on a code, `PCB101`: why, a program that fails, one that works; UsageError PCB578."""
    match = CODE.fullmatch(code)
    sections = dict(_sections(page().read_text(encoding="utf-8")))
    wanted = f"PCB{match[1]}" if match is not None else code
    if wanted not in sections:
        near = difflib.get_close_matches(wanted, sections, n=3, cutoff=0.8)
        meant = f"; near it are {', '.join(sorted(near))}" if near else ""
        raise UsageError("PCB578", f"there is no code {wanted!r}{meant}; codes are three digits, as in PCB101")
    return sections[wanted]


def _sections(text: str) -> list[tuple[str, str]]:
    """The code of each section and its text, blocks of code indented in place of their fences."""
    found = []
    for each in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        body = re.sub(r"^```\w+\n(.*?)^```$", _indented, each, flags=re.MULTILINE | re.DOTALL)
        found.append((each.partition(":")[0], body.rstrip() + "\n"))
    return found


def _indented(block: re.Match[str]) -> str:
    return re.sub(r"^(?=.)", "    ", block[1], flags=re.MULTILINE).rstrip("\n")
