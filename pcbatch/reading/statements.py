"""Statements."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from types import ModuleType
from typing import Any

import gast

from pcbatch.lowering.captures.guarded_paths import Place
from pcbatch.reading.arrays_in_python import RefusalError
from pcbatch.reading.core import Here, LostError, RefusedError
from pcbatch.reading.expressions import Ends
from pcbatch.reading.matching import Matching
from pcbatch.reading.values import NONE, Function, Host, Ref, Tuple, Value

CONVERSIONS = {-1: "", ord("r"): "!r", ord("s"): "!s", ord("a"): "!a"}


def imported(path: str, around: Mapping[str, Any]) -> Any:
    """Import a module, by a path that may begin with dots, for a function with these globals."""
    return importlib.import_module(path, around.get("__package__"))


class Statements(Matching):
    """Python's statements, but for those that are `at_fault`; modules are what `module_of` gives."""

    # of parts above
    restart: Callable[[], Here | None]
    recover: Callable[[Any, Here | None, LostError | RefusedError], None]

    def __init__(
        self,
        *given: Any,
        at_fault: Collection[Any] = (),
        module_of: Callable[[str, Mapping[str, Any]], Any] = imported,
        **options: Any,
    ):
        super().__init__(*given, **options)
        self.at_fault = at_fault
        self.module_of = module_of

    def statements(self, nodes: Sequence[Any]) -> None:
        for node in nodes:
            if not self.is_live:
                return
            before, self.node = self.node, node
            here = self.restart()
            try:
                if node in self.at_fault:
                    raise LostError
                getattr(self, f"visit_{type(node).__name__}")(node)  # the syntax check has refused all others
            except (LostError, RefusedError) as error:
                self.recover(node, here, error)
            finally:
                self.node = before

    def visit_Pass(self, node: Any) -> None:
        pass

    def visit_Nonlocal(self, node: Any) -> None:
        pass

    def visit_Import(self, node: Any) -> None:
        for each in node.names:
            path = each.name if each.asname else each.name.partition(".")[0]
            self._imported(each.name)
            self.assign(each.asname or path, self._imported(path))

    def visit_ImportFrom(self, node: Any) -> None:
        path = "." * (node.level or 0) + (node.module or "")
        module = self._imported(path)
        for each in node.names:
            if not hasattr(module.value, each.name) and hasattr(module.value, "__path__"):
                self._imported(f"{path}{'' if path.endswith('.') else '.'}{each.name}")
            elif not hasattr(module.value, each.name):
                name = module.value.__name__
                message = f"ImportError: cannot import name '{each.name}' from '{name}'"
                raise self.refusal("PCB208", message, f"see what `{name}` has")
            place = Place("attribute", module.value, each.name, each.name)
            self.assign(each.asname or each.name, self.named(getattr(module.value, each.name), place, each.name))

    def _imported(self, path: str) -> Host:
        """A module, which Python imports when it gets there; here it is imported when the function is read."""
        try:
            module = self.module_of(path, self.globals_around())
        except (ImportError, TypeError) as error:
            raise self.refusal("PCB208", f"{type(error).__name__}: {error}", "write the path of a module") from None
        if isinstance(module, ModuleType) and sys.modules.get(module.__name__) is module:
            self.world.guards.note(Place("item", sys.modules, module.__name__, path), module)
        return Host(module, Place("itself", module, None, path), path, module)

    def visit_Expr(self, node: Any) -> None:
        if not isinstance(node.value, gast.Constant):
            self.expression(node.value)

    def visit_Return(self, node: Any) -> None:
        if node.value is None:
            self.returned(NONE)
        else:
            self.tail(node.value)

    # -- assignments ---------------------------------------------------------------------------------------------------

    def visit_Assign(self, node: Any) -> None:
        value = self._named_by(node.targets[0], node.value)
        *others, last = node.targets
        for target in others:
            with self.kept([value]) as row:
                self.store(target, row[0])
                value = row[0]
        self.store(last, value)

    def visit_AnnAssign(self, node: Any) -> None:
        if node.value is not None:
            value = self._named_by(node.target, node.value)
            if self.is_live:
                self.store(node.target, value)

    def _named_by(self, target: Any, node: Any) -> Value:
        """The value of an expression that goes to a target: names of variables are those of what is computed."""
        if isinstance(target, gast.Name):
            return self.expression(node, target.id)
        is_tuple = isinstance(target, gast.Tuple) and type(node) is gast.Tuple
        if not is_tuple or len(target.elts) != len(node.elts):
            return self.expression(node)
        if any(isinstance(each, gast.Starred) for each in (*target.elts, *node.elts)):
            return self.expression(node)
        with self.kept() as row:
            for name, each in zip(target.elts, node.elts, strict=True):
                row.append(self._named_by(name, each))
            return Tuple(tuple(row))

    def store(self, target: Any, value: Value) -> None:
        if not self.is_live:
            return
        match target:
            case gast.Name(id=name):
                self.assign(name, value)
            case gast.Tuple(elts=targets) | gast.List(elts=targets):
                stars = [place for place, each in enumerate(targets) if isinstance(each, gast.Starred)]
                if self.is_scalar(value):
                    message = "a number cannot be taken apart; an array can, along its first axis"
                    raise self.refusal("PCB401", message, "give the number one name", node=target)
                items = self.unpacked(value, len(targets), stars[0] if stars else None)
                for each, item in zip(targets, self.each(items), strict=True):
                    self.store(each.value if isinstance(each, gast.Starred) else each, item)
            case gast.Attribute(value=whole, attr=name):
                with self.kept([value]) as row:
                    found = self.expression(whole)
                    value = row[0]
                if self.is_live:
                    self.set_attribute(found, name, value)
            case gast.Subscript(value=whole, slice=index):
                with self.kept([value]) as row:
                    row.append(self.expression(whole))
                    at = self.index(index)
                    value, found = row
                if self.is_live:
                    self.set_item(found, at, value)

    def visit_AugAssign(self, node: Any) -> None:
        target = node.target
        at: Any = None
        with self.kept() as row:
            match target:
                case gast.Name(id=name):
                    row.append(self.lookup(name, target))
                case gast.Attribute(value=whole, attr=name):
                    row.append(self.expression(whole))
                    if self.is_live:
                        row.append(self.attribute(row[0], name))
                case gast.Subscript(value=whole, slice=index):
                    row.append(self.expression(whole))
                    at = self.index(index)
                    if self.is_live:
                        row.append(self.item(row[0], at))
            value = self.expression(node.value)
            if not self.is_live:
                return
            self.hint = target.id if isinstance(target, gast.Name) else ""
            found = self._augmented(type(node.op), row[-1], value)
            self.hint = ""
            first, new = row[0], row[-1] if found is None else found
        self._put(target, first, at, new)

    def _put(self, target: Any, whole: Value, at: Any, value: Value) -> None:
        """Give the target of an augmented assignment its value."""
        if not self.is_live:
            return
        match target:
            case gast.Name(id=name):
                self.assign(name, value)
            case gast.Attribute(attr=name):
                self.set_attribute(whole, name, value)
            case _:
                self.set_item(whole, at, value)

    def visit_Delete(self, node: Any) -> None:
        for target in node.targets:
            match target:
                case gast.Name(id=name):
                    self.unbind(name)
                case gast.Subscript(value=whole, slice=index):
                    found = self.expression(whole)
                    self.delete_item(found, self.index(index))
                case gast.Attribute(value=whole, attr=name):
                    found = self.expression(whole)
                    cell = self.cell(found)
                    if isinstance(found, Host):
                        raise self.captured_change(found)
                    if cell is None or name not in cell.items or not isinstance(found, Ref):
                        raise self.refusal("PCB401", f"AttributeError: there is no attribute `{name}` to delete")
                    self.change(found, items={k: v for k, v in cell.items.items() if k != name})

    def visit_FunctionDef(self, node: Any) -> None:
        if node.decorator_list:
            raise self.refusal(
                "PCB122", "a decorator on a function inside of a batched function", "define it outside", node=node
            )
        defaults = tuple(self.evaluated(node.args.defaults))
        names = [each.id for each in node.args.kwonlyargs]
        keyword = {
            name: self.expression(each)
            for name, each in zip(names, node.args.kw_defaults, strict=True)
            if each is not None
        }
        made = Function(node.name, node, self.file, self.frame, None, defaults, keyword)
        self.escape(made)
        self.assign(node.name, made)

    # -- control -------------------------------------------------------------------------------------------------------

    def visit_If(self, node: Any) -> None:
        found = self.decided(node.test)
        if isinstance(found, Ends):
            self.either_way(found, [lambda: self.statements(node.body), lambda: self.statements(node.orelse)])
            return
        if not self.is_live:
            return
        if isinstance(found, Host):
            self.statements(node.body if found.value else node.orelse)
            return
        self.fork(found, [lambda: self.statements(node.body), lambda: self.statements(node.orelse)])

    def visit_While(self, node: Any) -> None:
        self.while_loop(node)

    def visit_For(self, node: Any) -> None:
        self.for_loop(node)

    def visit_Break(self, node: Any) -> None:
        self.loops[-1].breaks += self._here()
        self.emitter.enter(None)

    def visit_Continue(self, node: Any) -> None:
        self.loops[-1].continues += self._here()
        self.emitter.enter(None)

    # -- faults --------------------------------------------------------------------------------------------------------

    def visit_Assert(self, node: Any) -> None:
        found = self.condition(node.test)
        if not self.is_live or (isinstance(found, Host) and found.value):
            return
        if isinstance(found, Host):
            self._fault(AssertionError, [] if node.msg is None else [node.msg], "assert")
            return
        right, wrong = self.emitter.block(), self.emitter.block()
        state = self.state.copy()
        self.emitter.branch(found, right, wrong, self.span())
        self.emitter.enter(wrong)
        self._fault(AssertionError, [] if node.msg is None else [node.msg], "assert")
        self.state = state
        self.state.assume(found.name, True)
        self.emitter.enter(right)

    def visit_Raise(self, node: Any) -> None:
        match node.exc:
            case None:
                self.fail("RuntimeError: No active exception to reraise", [], "raise")
            case gast.Call(func=function, args=arguments, keywords=[]) if self._is_exception(function):
                self._fault(self._error(function), arguments, "raise")
            case other:
                self._raised(self.expression(other), other)

    def _is_exception(self, node: Any) -> bool:
        """Tell whether an expression is a class of exceptions."""
        if not isinstance(node, gast.Name | gast.Attribute):
            return False
        found = self.expression(node)
        return isinstance(found, Host) and isinstance(found.value, type) and issubclass(found.value, BaseException)

    def _error(self, node: Any) -> type:
        found = self.expression(node)
        assert isinstance(found, Host)
        cls: type = found.value
        return cls

    def _raised(self, value: Value, node: Any) -> None:
        """Raise a class of exceptions, or an exception that has been made before."""
        host = value.value if isinstance(value, Host) else None
        if isinstance(host, type) and issubclass(host, BaseException):
            self._fault(host, [], "raise")
            return
        if not isinstance(host, BaseException):
            raise self.refusal(
                "PCB116",
                f"{self.described(value)} is raised, which is no exception",
                'name the exception\'s class: `raise ValueError("..")`',
                node=node,
            )
        text = f"{type(host).__name__}: {host}" if str(host) else type(host).__name__
        self.fail(_plain(text), [], "raise")

    def _fault(self, cls: type, arguments: Sequence[Any], kind: Any) -> None:
        """Fail the lane with an exception of these arguments, which may be numbers of the lane."""
        if cls is RefusalError:
            raise self.no_constant(*(each.value for each in arguments))
        lanes: list[str] = []
        if not arguments:
            self.fail(cls.__name__, lanes, kind)
            return
        if len(arguments) == 1:
            text = self._text(arguments[0], lanes, "!r" if issubclass(cls, KeyError) else "")
        else:
            text = f"({', '.join(self._text(each, lanes, '!r') for each in arguments)})"
        if self.is_live:
            self.fail(f"{cls.__name__}: {text}" if text else cls.__name__, lanes, kind)

    def fail(self, text: str, lanes: Sequence[str], kind: Any) -> None:
        """Fail the lane with a text that has a field for each of some numbers of the lane."""
        self.faults += 1
        self.emitter.fault(text, tuple(lanes), kind, self.span())

    def _text(self, node: Any, lanes: list[str], conversion: str) -> str:
        """An expression as a part of a message, with fields for `lanes`, to which it appends."""
        if not isinstance(node, gast.JoinedStr) or conversion:
            return self._told(self.expression(node), lanes, conversion, "")
        parts = []
        for part in node.values:
            if isinstance(part, gast.Constant):
                parts.append(_plain(part.value))
                continue
            spec = "" if part.format_spec is None else self.constant(self.expression(part.format_spec), "a format")
            parts.append(self._told(self.expression(part.value), lanes, CONVERSIONS[part.conversion], spec))
        return "".join(parts)

    def _told(self, value: Value, lanes: list[str], conversion: str, spec: str) -> str:
        """A value as a part of a message."""
        if not self.is_live:
            return ""
        value = self.read(self.known(value))
        field = f"{{{conversion}{':' + spec if spec else ''}}}"
        if self.type_of(value) is not None and not (isinstance(value, Host) and not self.is_array(value.value)):
            lanes.append(self.lane(value).name)
            return field
        cell = self.cell(value)
        if spec or (cell is not None and cell.kind not in ("list", "dict")):
            return _plain(field.format(self.constant(value, "a part of a message")))
        match value:
            case Tuple(items, None):
                inside = ", ".join(self._told(each, lanes, "!r", "") for each in items)
                return f"({inside}{',' if len(items) == 1 else ''})"
            case Ref() if self.kind(value) == "list":
                return f"[{', '.join(self._told(each, lanes, '!r', '') for each in self.sequence(value))}]"
            case Ref():
                entries = self.entries(value).items()
                inside = ", ".join(f"{_plain(repr(key))}: {self._told(each, lanes, '!r', '')}" for key, each in entries)
                return f"{{{{{inside}}}}}"
        return _plain(field.format(self.constant(value, "a part of a message")))


def _plain(value: object) -> str:
    return str(value).replace("{", "{{").replace("}", "}}")
