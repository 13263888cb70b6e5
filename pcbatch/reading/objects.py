"""Objects: attributes, methods and operators of the user's classes, of arrays and of Python's own."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import gast
import numpy as np

from pcbatch.ir import records
from pcbatch.ir.members import METHODS
from pcbatch.ir.types import TensorType
from pcbatch.reading.arrays import SHAPED, Index, Sliced
from pcbatch.reading.loops import Loops
from pcbatch.reading.operations import GETITEM, Named, Partial, Record, attribute, builtin, method, method_of_held
from pcbatch.reading.places import Place
from pcbatch.reading.sources import is_users, scope_of, tree_of
from pcbatch.reading.state import Cell
from pcbatch.reading.values import (
    NONE,
    Bound,
    Function,
    Host,
    Lane,
    OneOf,
    Ref,
    Super,
    Tuple,
    Undefined,
    Value,
    View,
)
from pcbatch.runtime.backends.tensorflow.bounded import Bounded

LIST_METHODS = frozenset(
    {"append", "extend", "insert", "pop", "clear", "reverse", "copy", "sort", "index", "count", "remove"}
)


class Objects(Loops):
    """Attributes and methods."""

    # -- functions of the user's ---------------------------------------------------------------------------------------

    def function_of(self, live: FunctionType, owner: type | None = None) -> Function | None:
        """A live function as one that can be interpreted; None where its source cannot be had or read."""
        known = self._functions.get((live, owner))
        if known is not None:
            return known
        try:
            tree, file = tree_of(live)
        except (LookupError, SyntaxError, OSError):
            return None
        if not scope_of(tree).is_readable:
            return None
        if owner is None and "__class__" in live.__code__.co_freevars:
            place = live.__code__.co_freevars.index("__class__")
            owner = (live.__closure__ or ())[place].cell_contents
        defaults = tuple(
            self.captured(value, Place("default", live, number, f"default_{number}"))
            for number, value in enumerate(live.__defaults__ or ())
        )
        keyword = {
            name: self.captured(value, Place("default", live, name, f"default_{name}"))
            for name, value in (live.__kwdefaults__ or {}).items()
        }
        found = Function(live.__name__, tree, file, None, live, defaults, keyword, owner)
        self._functions[live, owner] = found
        self.world.note(Place("attribute", live, "__code__", f"{live.__name__}.__code__"), live.__code__)
        return found

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self._functions: dict[Any, Function] = {}

    # -- attributes ----------------------------------------------------------------------------------------------------

    def attribute(self, value: Value, name: str) -> Value:
        """`value.name`."""
        value = self.known(value)
        match value:
            case OneOf():
                return self._of_several(value, name)
            case Ref():
                cell = self.state.cell(value)
                if cell.kind == "object":
                    return self._of_object(value, cell, name)
                if cell.kind in ("list", "dict", "set"):
                    return Bound(name, value)
            case Tuple(items, cls) if cls is not None:
                if name in cls._fields:  # type: ignore[attr-defined]
                    return self.known(items[cls._fields.index(name)])  # type: ignore[attr-defined]
                if name == "_fields":
                    return self.host(cls._fields)  # type: ignore[attr-defined]
                if name in ("_replace", "_asdict", "index", "count"):
                    return Bound(name, value)
                return self.of_class(value, cls, name)
            case Tuple():
                return Bound(name, value)
            case Super(receiver, cls, behind):
                return self.of_class(receiver, cls, name, behind)
            case Function(live=live) if name in ("__name__", "__qualname__") and live is not None:
                return Host(getattr(live, name))
        if self.type_of(value) is not None:
            return self.of_array(value, name)
        if isinstance(value, Host):
            return self._attribute_of_host(value, name)
        self.refuse("PCB401", f"AttributeError: {self.described(value)} has no attribute `{name}`")

    def _attribute_of_host(self, value: Host, name: str) -> Value:
        host = value.value
        if value.place is not None and value.place.kind == "held":
            return Bound(name, value)
        kind = type(host)
        is_users_object = records.is_simple_class(kind) or dataclasses.is_dataclass(kind)
        if not isinstance(host, type | ModuleType) and is_users_object:
            if name not in getattr(host, "__dict__", {}):
                return self.of_class(value, kind, name)
        if isinstance(host, list | dict | set | str) and not isinstance(host, type) and callable(getattr(host, name, None)):
            return Bound(name, value)
        try:
            found = getattr(host, name)
        except AttributeError as error:
            self.refuse("PCB401", f"AttributeError: {error}")
        text = f"{value.path or (value.place.text if value.place else '')}.{name}".lstrip(".")
        if isinstance(host, ModuleType):
            self.world.note(Place("attribute", host, name, text), found)
            known = self.host(found, Place("attribute", host, name, text))
            return Host(found, known.place, text, value.root if value.root is not None else host) if isinstance(known, Host) else known
        if value.place is None and not isinstance(host, type):
            return self.host(found)
        return self.captured(found, Place("attribute", host, name, text))

    def _of_object(self, value: Ref, cell: Cell, name: str) -> Value:
        if name in cell.items:
            return self.known(cell.items[name])
        if name == "__dict__":
            return self.new("dict", dict(cell.items))
        if name == "__class__":
            return Host(cell.cls)
        assert cell.cls is not None
        if cell.cls is Bounded:
            return Bound(name, value)
        return self.of_class(value, cell.cls, name)

    def of_class(self, value: Value, cls: type, name: str, behind: type | None = None) -> Value:
        """What the class of an object has under a name: a method, what a property gives, a value of the class."""
        mro = cls.__mro__ if behind is None else cls.__mro__[cls.__mro__.index(behind) + 1 :]
        for base in mro:
            if name not in vars(base):
                continue
            found = vars(base)[name]
            match found:
                case property(fget=FunctionType() as getter):
                    return self._got(getter, base, value)
                case functools.cached_property(func=FunctionType() as getter):
                    return self._got(getter, base, value)
                case staticmethod(__func__=function):
                    return self.host(function)
                case classmethod(__func__=FunctionType() as function):
                    known = self.function_of(function, base)
                    if known is not None:
                        return Bound(known, Host(cls))
                case FunctionType() if is_users(found) or base.__module__ != "builtins":
                    known = self.function_of(found, base)
                    if known is not None:
                        self.world.note(Place("item", _VarsOf(base), name, f"{base.__name__}.{name}"), found)
                        return Bound(known, value)
                    self.refuse("PCB405", f"`{base.__name__}.{name}` cannot be read", "write it as a plain method")
            if hasattr(found, "__get__") and not isinstance(found, type) and not callable(found):
                break
            if base is object and callable(found):
                break
            batched = self.batched(found)
            if batched is not None and isinstance(value, Host) and batched.receiver is None:
                return self.captured(getattr(value.value, name), Place("attribute", value.value, name, name))
            if batched is not None and isinstance(batched.itself.__wrapped__, staticmethod):
                return Host(found)
            if batched is not None:
                return Bound(Function(name, batched.tree, batched.file, None, batched.live, owner=base, batched=batched), value)
            return self.captured(found, Place("item", _VarsOf(base), name, f"{base.__name__}.{name}"))
        self.refuse("PCB401", f"AttributeError: '{cls.__name__}' object has no attribute '{name}'")

    def batched(self, value: Any) -> Any:
        """What is known of a batched function; see `calls`."""
        raise NotImplementedError

    def _got(self, getter: FunctionType, base: type, value: Value) -> Value:
        known = self.function_of(getter, base)
        if known is None:
            self.refuse("PCB405", f"the property `{getter.__name__}` cannot be read")
        return self.call_user(known, [value], {})

    def call_user(self, function: Function, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """A call of a function of the user's; see `calls`."""
        raise NotImplementedError

    def of_array(self, value: Value, name: str) -> Value:
        """An attribute or a method of an array or a number."""
        if name in METHODS or name in ("swapaxes",):
            return Bound(name, value)
        source = self.pattern(self.read(value))
        if name == "T":
            return self.shaped(value, name, (), self.emit(attribute(name), [source]))
        if name == "real":
            type_ = self.type_of(value)
            if type_ is not None and not type_.dtype.startswith("complex"):
                return value
        found = self.emit(attribute(name), [source])
        if isinstance(found, Host) and callable(found.value) and not isinstance(found.value, type):
            if isinstance(found.value, BuiltinFunctionType | MethodType | FunctionType | functools.partial):
                return Bound(name, value)
        return found

    def _of_several(self, value: OneOf, name: str) -> Value:
        """An attribute of one of several objects."""
        cells = [self.state.cell(each) for each in value.items]
        if all(cell.kind == "object" and name in cell.items for cell in cells):
            return self.taken([self.known(cell.items[name]) for cell in cells], value.index)
        return Bound(name, value)

    # -- setting -------------------------------------------------------------------------------------------------------

    def set_attribute(self, value: Value, name: str, new: Value) -> None:
        """`value.name = new`."""
        value = self.known(value)
        if isinstance(value, OneOf):
            for place, each in enumerate(value.items):
                is_it = self.is_place(value.index, place)
                old = self.attribute(each, name)
                self.set_attribute(each, name, self.chosen(is_it, new, old))
            return
        cell = self.cell(value)
        if cell is None or cell.kind != "object" or not isinstance(value, Ref):
            if isinstance(value, Host) and value.place is not None:
                self.refuse("PCB204", f"`{value.place.text}` is captured, and this changes it for everybody")
            self.refuse("PCB422", f"an attribute of {self.described(value)} cannot be assigned")
        assert cell.cls is not None
        for base in cell.cls.__mro__:
            match vars(base).get(name):
                case property(fset=FunctionType() as setter):
                    known = self.function_of(setter, base)
                    if known is None:
                        self.refuse("PCB405", f"the setter of `{name}` cannot be read")
                    self.call_user(known, [value, new], {})
                    return
                case property():
                    self.refuse("PCB422", f"`{name}` is a property without a setter")
        if dataclasses.is_dataclass(cell.cls) and cell.cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            self.refuse("PCB422", f"`{cell.cls.__name__}` is a frozen dataclass", "write dataclasses.replace(..)")
        self.state.set_cell(value, items={**cell.items, name: new})

    def set_object_item(self, whole: Ref, index: Index, value: Value) -> None:
        cell = self.state.cell(whole)
        if cell.cls is Bounded:
            return self.set_bounded(whole, index, value)
        found = self.method_of(whole, "__setitem__")
        if found is None:
            self.refuse("PCB422", f"{self.described(whole)} has no elements that can be assigned")
        self.call_value(found, [self.index_value(index), value], {})
        return None

    def index_value(self, index: Index) -> Value:
        """An index as a value that `__getitem__` is given."""
        if isinstance(index, Sliced):
            return Host(slice(*(None if each is None else self.constant(each, "a bound") for each in (index.lower, index.upper, index.step))))
        return Tuple(tuple(map(self.index_value, index))) if isinstance(index, tuple) else index  # type: ignore[no-any-return]

    def object_item(self, whole: Ref, index: Index) -> Value:
        if self.state.cell(whole).cls is Bounded:
            return self.bounded_item(whole, index)
        found = self.method_of(whole, "__getitem__")
        if found is None:
            self.refuse("PCB401", f"TypeError: {self.described(whole)} has no elements")
        return self.call_value(found, [self.index_value(index)], {})

    def object_length(self, value: Ref) -> Value:
        cell = self.state.cell(value)
        if cell.cls is Bounded:
            return self.known(cell.items["length"])
        found = self.method_of(value, "__len__")
        if found is None:
            self.refuse("PCB401", f"TypeError: {self.described(value)} has no len()")
        return self.call_value(found, [], {})

    def object_truth(self, value: Ref) -> Host | Lane | None:
        if self.state.cell(value).cls is Bounded:
            return self.truth(self.compare(gast.Gt, self.length(value), Host(0)))
        for name in ("__bool__", "__len__"):
            found = self.method_of(value, name)
            if found is not None:
                return self.truth(self.call_value(found, [], {}))
        return None

    def iterated(self, value: Value) -> list[Value] | None:
        found = self.method_of(value, "__iter__")
        return None if found is None else self.sequence(self.call_value(found, [], {}))

    def method_of(self, value: Value, name: str) -> Value | None:
        cls = None
        if isinstance(value, OneOf):
            cls = self.state.cell(value.items[0]).cls
        elif isinstance(value, Ref) and self.kind(value) == "object":
            cls = self.state.cell(value).cls
        elif isinstance(value, Tuple):
            cls = value.cls
        elif isinstance(value, Host) and records.is_simple_class(type(value.value)):
            cls = type(value.value)
        if cls is None or cls is Bounded:
            return None
        owner = next((base for base in cls.__mro__ if name in vars(base)), object)
        found = vars(owner).get(name)
        if owner is object or owner is tuple or not isinstance(found, FunctionType):
            return None
        if dataclasses.is_dataclass(cls) and found.__code__.co_filename == "<string>":
            return self._of_dataclass(value, name, cls)
        if isinstance(value, OneOf):
            return Bound(name, value)
        known = self.function_of(found, owner)
        return None if known is None else Bound(known, value)

    def _of_dataclass(self, value: Value, name: str, cls: type) -> Value | None:
        """A comparison that the decorator of a dataclass has made: that of the tuples of its fields."""
        return Bound(f"dataclass {name}", value) if name in ("__eq__", "__lt__", "__le__", "__gt__", "__ge__") else None

    def fields_in_order(self, value: Value) -> Tuple:
        """The fields of a dataclass' object that are compared."""
        cell = self.cell(value)
        assert cell is not None and cell.cls is not None
        return Tuple(tuple(cell.items[each.name] for each in dataclasses.fields(cell.cls) if each.compare))

    def is_bounded(self, value: Value) -> bool:
        return isinstance(value, Ref) and self.state.cell(value).cls is Bounded

    # -- bounded lists -------------------------------------------------------------------------------------------------

    def bounded_item(self, whole: Ref, index: Index) -> Value:
        return self.emit(GETITEM, [self.record(whole), self.index_pattern(index)])

    def set_bounded(self, whole: Ref, index: Index, value: Value) -> None:
        found = self.emit(builtin("__stored__"), [self.record(whole), self.pattern(value), self.index_pattern(index)])
        self._become(whole, found)

    def _become(self, whole: Ref, found: Value) -> None:
        cell = self.cell(found)
        assert cell is not None
        self.state.set_cell(whole, items=cell.items)

    def bounded_method(self, whole: Ref, name: str, arguments: Sequence[Value]) -> Value:
        """A method of a bounded list."""
        given = [self.record(whole), name, *map(self.pattern, arguments)]
        if name == "pop":
            found = self.emit(builtin("__taken__"), given)
            assert isinstance(found, Tuple)
            self._become(whole, found.items[1])
            return found.items[0]
        self._become(whole, self.emit(builtin("__changed__"), given))
        return NONE

    # -- as operands ---------------------------------------------------------------------------------------------------

    def record(self, value: Value) -> Any:
        if isinstance(value, Tuple):
            assert value.cls is not None
            names: tuple[str, ...] = value.cls._fields  # type: ignore[attr-defined]
            return Record(self.bound(Host(value.cls)), names, tuple(map(self.pattern, value.items)))
        cell = self.cell(value)
        if cell is None or cell.cls is None:
            self.refuse("PCB404", f"{self.described(value)} goes into an operation")
        items = tuple(self.pattern(each) for each in cell.items.values())
        return Record(self.bound(Host(cell.cls)), tuple(cell.items), items)

    def closure(self, value: Function | Bound) -> Any:
        if isinstance(value, Bound):
            if isinstance(value.function, Function) and isinstance(value.receiver, Host):
                live = value.function.live
                return self.bound(Host(MethodType(live, value.receiver.value), path=value.function.name))
            self.refuse("PCB405", "a method of a lane's object goes into an operation", "write a lambda")
        if value.batched is not None:
            self.refuse("PCB206", "a batched function goes into an operation as a value")
        if value.frame is None:
            return self.bound(Host(value.live, path=value.name))
        return self._closed(value)

    def _closed(self, value: Function) -> Partial:
        """A function that stands in another, with what it reads of that as its first arguments."""
        import ast

        plain: Any = gast.gast_to_ast(value.tree)
        names = [name for name in sorted(scope_of(value.tree).loads) if name not in scope_of(value.tree).locals]
        free: dict[str, Any] = {}
        frame = value.frame
        for name in names:
            outer = frame
            while outer is not None:
                if (outer.number, name) in self.state.names:
                    found = self.state.names[outer.number, name]
                    free[name] = self.pattern(found)
                    break
                outer = outer.function.frame
        root = value
        while root.frame is not None:
            root = root.frame.function
        parameters = [ast.arg(name) for name in free]
        plain.args.posonlyargs = [*parameters, *plain.args.posonlyargs]
        if isinstance(plain, ast.Lambda):
            module: Any = ast.Expression(plain)
            kind = "eval"
        else:
            plain.decorator_list = []
            module, kind = ast.Module([plain], []), "exec"
        outside = {} if root.live is None else _names_around(root.live)
        code = compile(ast.fix_missing_locations(module), value.file, kind)
        if kind == "eval":
            made = eval(code, outside)  # noqa: S307 - the user's own source
        else:
            exec(code, outside)  # noqa: S102 - the user's own source
            made = outside[plain.name]
        key = id(value.tree), tuple(free)
        made = self._made.setdefault(key, self.ops.as_written(made))
        name = value.name if value.name.isidentifier() else "inner"
        return Partial(self.bound(Host(functools.partial)), Named(self.names.bind(name, made), made), tuple(free.values()))

    @functools.cached_property
    def _made(self) -> dict[Any, Any]:
        return {}

    # -- methods of what Python and arrays have --------------------------------------------------------------------------

    def method(self, value: Value, name: str, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """A call of a method that the reader knows."""
        if isinstance(value, Host) and value.place is not None and value.place.kind == "held":
            given = [self.pattern(each) for each in arguments]
            named = {key: self.pattern(each) for key, each in keywords.items()}
            return self.emit(method_of_held(name), [self.bound(value), *given], named)
        if name.startswith("dataclass "):
            op: Any = {"eq": gast.Eq, "lt": gast.Lt, "le": gast.LtE, "gt": gast.Gt, "ge": gast.GtE}[name[12:14]]
            other = self.cell(arguments[0])
            if other is None or other.cls is not self.state.cell(value).cls:  # type: ignore[arg-type]
                return Host(NotImplemented)
            return self.compare(op, self.fields_in_order(value), self.fields_in_order(arguments[0]))
        if isinstance(value, OneOf):
            return self._on_several(value, name, arguments, keywords)
        if self.type_of(value) is not None:
            return self.array_method(value, name, arguments, keywords)
        match value:
            case Ref():
                cell = self.state.cell(value)
                if cell.cls is Bounded:
                    return self.bounded_method(value, name, arguments)
                if cell.kind == "list":
                    return self.list_method(value, name, arguments, keywords)
                if cell.kind == "dict":
                    return self.dict_method(value, name, arguments, keywords)
                if cell.kind == "set":
                    return self._set_method(value, cell, name, arguments)
            case Tuple(items, cls):
                if name == "_replace":
                    assert cls is not None
                    given = dict(zip(cls._fields, items, strict=True)) | keywords  # type: ignore[attr-defined]
                    return Tuple(tuple(given.values()), cls)
                if name == "_asdict":
                    assert cls is not None
                    return self.new("dict", dict(zip(cls._fields, items, strict=True)))  # type: ignore[attr-defined]
                if name in ("index", "count"):
                    return self.list_method(self.new("list", items), name, arguments, keywords)
            case Host(host) if isinstance(host, dict):
                return self.dict_method(value, name, arguments, keywords)
            case Host(host):
                known = [self.constant_text(self.read(each)) if isinstance(host, str) else self.constant(each, "an argument") for each in arguments]
                named = {key: self.constant(each, "an argument") for key, each in keywords.items()}
                if isinstance(host, list) and name in LIST_METHODS - {"copy", "index", "count"}:
                    self.refuse("PCB204", "a captured list is changed here, for everybody", "copy it first: `xs = list(xs)`")
                return self.host(getattr(host, name)(*known, **named))
        self.refuse("PCB401", f"AttributeError: {self.described(value)} has no method `{name}`")

    def _set_method(self, value: Ref, cell: Cell, name: str, arguments: Sequence[Value]) -> Value:
        keys = [self.constant(each, "an element of a set") for each in arguments]
        found = set(cell.items)
        result = getattr(found, name)(*keys)
        self.state.set_cell(value, items=dict.fromkeys(found, NONE))
        if isinstance(result, set):
            return self.new("set", dict.fromkeys(result, NONE))
        return self.host(result)

    def _on_several(
        self, value: OneOf, name: str, arguments: Sequence[Value], keywords: dict[str, Value]
    ) -> Value:
        """A method of one of several objects: what it does to each, where it is that one."""

        def on(place: int) -> Callable[[], Value]:
            return lambda: self.call_value(self.attribute(value.items[place], name), list(arguments), dict(keywords))

        def from_(place: int) -> Value:
            if place == len(value.items) - 1:
                return on(place)()
            return self.fork(self.is_place(value.index, place), [on(place), lambda: from_(place + 1)])

        return from_(0)

    def array_method(
        self, value: Value, name: str, arguments: Sequence[Value], keywords: dict[str, Value]
    ) -> Value:
        """A method of an array."""
        source = self.pattern(self.read(value))
        given = [self.pattern(each) for each in arguments]
        named = {key: self.pattern(each) for key, each in keywords.items()}
        if name == "fill" and len(arguments) == 1:
            type_ = self.type_of(value)
            assert type_ is not None
            self.store_element(value, tuple(Sliced(None, None, None) for _ in type_.shape), arguments[0])
            return NONE
        if name == "sort":
            self.refuse("PCB423", "`sort` of an array in place is not supported", "write `a[:] = np.sort(a)`")
        if name == "astype" and "copy" in named:
            same = self.emit(method(name), [source, *given])
            if named.pop("copy") is False and self.type_of(same) == self.type_of(value):
                return value
            return same
        found = self.emit(method(name), [source, *given], named)
        if name in SHAPED and not named:
            try:
                shape = [self.constant(each, "a shape") for each in arguments]
            except Exception:  # noqa: BLE001 - then it is no view that can be stored through
                return found
            return self.shaped(value, name, shape, found)
        return found


class _VarsOf:
    """The attributes of a class, looked up in that class alone."""

    def __init__(self, cls: type):
        self.cls = cls

    def __getitem__(self, name: str) -> Any:
        return vars(self.cls)[name]


def _names_around(live: FunctionType) -> dict[str, Any]:
    """The globals of a live function, with what its closure has."""
    around = dict(live.__globals__)
    for name, cell in zip(live.__code__.co_freevars, live.__closure__ or (), strict=True):
        try:
            around[name] = cell.cell_contents
        except ValueError:
            continue
    return around


__all__ = ["Objects", "TensorType", "Undefined", "View", "np"]
