"""Objects: attributes, methods and operators of the user's classes, of arrays and of Python's own."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from pcbatch.errors import Note
from pcbatch.frontend.nodes import span_of
from pcbatch.installed import is_users_class
from pcbatch.ir import values
from pcbatch.ir.types import METHODS
from pcbatch.lowering.captures.guarded_paths import MISSING, Place
from pcbatch.reading.core import RefusedError
from pcbatch.reading.loops import Loops
from pcbatch.reading.operations import attribute
from pcbatch.reading.sources import (
    has_setter,
    is_set_by_descriptor,
    is_slot,
    is_users,
    tree_of,
    unreadable,
    unreadable_in,
)
from pcbatch.reading.state import Cell
from pcbatch.reading.values import (
    NONE,
    Attributes,
    Bound,
    Choice,
    Function,
    Host,
    Lane,
    Lazy,
    OneOf,
    Part,
    Ref,
    Super,
    Tuple,
    Value,
)
from pcbatch.reading.views import Index, Sliced


class Objects(Loops):
    """Attributes and methods."""

    # of parts above
    call_type: Callable[[Value], Value]
    batched: Callable[[Any], Any]
    call_user: Callable[[Function, Sequence[Value], dict[str, Value]], Value]

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
        if unreadable_in(tree) is not None:
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
        self.world.guards.note(Place("attribute", live, "__code__", f"{live.__name__}.__code__"), live.__code__)
        return found

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self._functions: dict[Any, Function] = {}

    # -- attributes ----------------------------------------------------------------------------------------------------

    def attribute(self, value: Value, name: str) -> Value:
        """`value.name`."""
        value = self.there(value, f"AttributeError: 'NoneType' object has no attribute '{name}'")
        match value:
            case Choice():
                if (method := self.method_of(value, name)) is not None:
                    return method
                return self.of_words(value, lambda word: self.attribute(word, name))
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
            case Lazy("ragged" | "masked") if name in ("shape", "ndim", "size", "dtype"):
                return self.of_part(value, name)
            case Tuple() | Lazy("ragged" | "masked" | "filtered"):
                return Bound(name, value)
            case Super(receiver, cls, behind):
                return self.of_class(receiver, cls, name, behind)
            case Function(live=live) if name in ("__name__", "__qualname__") and live is not None:
                return Host(getattr(live, name))
        if isinstance(value, Part) or self.type_of(value) is not None:
            return self.of_array(value, name)
        if isinstance(value, Host):
            return self._attribute_of_host(value, name)
        raise self.refusal("PCB401", f"AttributeError: {self.described(value)} has no attribute `{name}`")

    def _attribute_of_host(self, value: Host, name: str) -> Value:
        host = value.value
        if value.place is not None and value.place.kind == "held":
            return Bound(name, value)
        kind = type(host)
        is_users_object = values.is_simple_class(kind) or dataclasses.is_dataclass(kind)
        is_own = name in getattr(host, "__dict__", {}) or name in ("__dict__", "__class__") or is_slot(kind, name)
        if is_users_object and not isinstance(host, type | ModuleType):
            self.world.guards.note(Place("attribute", host, "__class__", f"{kind.__name__}.__class__"), kind)
        if is_users_object and not is_own and not isinstance(host, type | ModuleType):
            if hasattr(host, "__dict__"):
                self.world.guards.note(Place("item", vars(host), name, f"{kind.__name__}.{name}"), MISSING)
            return self.of_class(value, kind, name)
        if isinstance(host, list | dict | set | str) and callable(getattr(host, name, None)):
            return Bound(name, value)
        if name == "__dict__" and isinstance(getattr(host, "__dict__", None), dict):
            return Host(vars(host), Place("itself", vars(host), None, f"{value.path}.__dict__"))
        with self.raising(AttributeError):
            found = getattr(host, name)
        text = f"{value.path or (value.place.text if value.place else '')}.{name}".lstrip(".")
        if isinstance(host, ModuleType):
            self.world.guards.note(Place("attribute", host, name, text), found)
            known = self.host(found, Place("attribute", host, name, text))
            return (
                Host(found, known.place, text, value.root if value.root is not None else host)
                if isinstance(known, Host)
                else known
            )
        return self.captured(found, Place("attribute", host, name, text))

    def _of_object(self, value: Ref, cell: Cell, name: str) -> Value:
        if name in cell.items and not is_set_by_descriptor(cell.cls, name):
            return self.known(cell.items[name])
        if name == "__dict__":
            return Attributes(value.cell)
        if name == "__class__":
            return self.call_type(value)
        assert cell.cls is not None
        return self.of_class(value, cell.cls, name)

    def of_class(self, value: Value, cls: type, name: str, behind: type | None = None) -> Value:
        """Return the member of an object's class with a name: a method, a property's value, a value of the class."""
        base, found = self.member(cls, name, behind)
        place = Place("class", base, name, f"{base.__name__}.{name}")
        match found:
            case property(fget=FunctionType() as getter):
                return self._got(getter, base, value)
            case functools.cached_property(func=FunctionType() as getter):
                return self._kept_in(value, name, self._got(getter, base, value))
            case staticmethod(__func__=function):
                return self.host(function)
            case classmethod(__func__=FunctionType() as function):
                known = self.function_of(function, base)
                if known is not None:
                    return Bound(known, Host(cls))
            case FunctionType() if is_users(found) or base.__module__ != "builtins":
                known = self.function_of(found, base)
                if known is not None:
                    return Bound(known, value)
                raise self.unreadable(found, f"`{base.__name__}.{name}`")
        descriptor = getattr(type(found), "__get__", None)
        if isinstance(descriptor, FunctionType) and is_users(descriptor):
            return self._got(descriptor, type(found), Host(found, place), value, Host(cls))
        is_data = hasattr(found, "__get__") and not isinstance(found, type) and not callable(found)
        if found is MISSING or is_data or (base is object and callable(found)):
            whose = "super" if behind is not None else cls.__name__
            raise self.refusal("PCB401", f"AttributeError: '{whose}' object has no attribute '{name}'")
        batched = self.batched(found)
        if batched is None:
            return self.captured(found, place)
        if isinstance(value, Host) and batched.receiver is None:
            return self.captured(getattr(value.value, name), Place("attribute", value.value, name, name))
        if isinstance(batched.itself.__wrapped__, staticmethod):
            return Host(found)
        return Bound(Function(name, batched.tree, batched.file, None, batched.live, owner=base, batched=batched), value)

    def _kept_in(self, value: Value, name: str, found: Value) -> Value:
        """Return what a cached property gives, which is an attribute of its object from then on."""
        cell = self.cell(value)
        if isinstance(value, Ref) and cell is not None and cell.kind == "object":
            self.state.set_cell(value, items={**cell.items, name: found})
        return found

    def member(self, cls: type, name: str, behind: type | None = None) -> tuple[type, Any]:
        """Return a class' member, perhaps behind one of its bases, and the base that has it; MISSING if none."""
        for base in cls.__mro__ if behind is None else cls.__mro__[cls.__mro__.index(behind) + 1 :]:
            found = vars(base).get(name, MISSING)
            if is_users_class(base):
                self.world.guards.note(Place("class", base, name, f"{base.__name__}.{name}"), found)
            if found is not MISSING:
                return base, found
        return object, MISSING

    def class_value(self, cls: type, name: str) -> Value | None:
        base, found = self.member(cls, name)
        if found is MISSING or hasattr(found, "__get__"):
            return None
        return self.captured(found, Place("class", base, name, f"{base.__name__}.{name}"))

    def _got(self, getter: FunctionType, base: type, *given: Value) -> Value:
        known = self.function_of(getter, base)
        if known is None:
            raise self.unreadable(getter, f"the property `{getter.__name__}`")
        return self.call_user(known, [*given], {})

    def unreadable(self, function: Any, what: str) -> RefusedError:
        """The refusal of a function of the user's that has to be read, at what cannot be read in it."""
        found = unreadable(function)
        if found is None:
            return self.refusal("PCB405", f"{what} cannot be read: it has no source", "define it in a file")
        node, refusal, file = found
        call = self.span()
        notes = () if call is None else (Note(call, f"{what} is used here"),)
        return RefusedError(dataclasses.replace(refusal.at(span_of(node, file)), notes=notes))

    def of_array(self, value: Value, name: str) -> Value:
        """An attribute or a method of an array or a number."""
        if name in METHODS or name == "swapaxes" or (name in ("fill", "sort") and not self.is_scalar(value)):
            return Bound(name, value)
        self.refuse_method(name)
        source = self.pattern(self.read(value))
        if name == "T":
            return self.shaped(value, name, lambda array: array.T, self.emit(attribute(name), [source]))
        if name == "real":
            type_ = self.type_of(value)
            if type_ is not None and not type_.dtype.startswith("complex"):
                return value
        found = self.emit(attribute(name), [source])
        is_method = isinstance(found, Host) and isinstance(
            found.value, BuiltinFunctionType | MethodType | FunctionType | functools.partial
        )
        return Bound(name, value) if is_method else found

    def _of_several(self, value: OneOf, name: str) -> Value:
        """An attribute of one of several objects."""
        items = [self.known(each) for each in value.items]
        if all(self._has_own(each, name) for each in items):
            return self.taken([self.attribute(each, name) for each in items], value.index)
        if any(self._has_method(each, name) for each in items):
            return Bound(name, value)
        return self.on_each(value, lambda item: self.attribute(item, name))

    def _has_own(self, value: Value, name: str) -> bool:
        """Tell whether an object has an attribute itself."""
        cell = self.cell(value)
        if cell is not None:
            return cell.kind == "object" and name in cell.items
        return isinstance(value, Host) and name in getattr(value.value, "__dict__", {})

    def _has_method(self, value: Value, name: str) -> bool:
        """Tell whether an object has a method of a name."""
        cell = self.cell(value)
        if cell is not None and cell.kind != "object":
            return True
        cls = cell.cls if cell is not None else type(value.value) if isinstance(value, Host) else None
        if cls is None or self._has_own(value, name):
            return False
        _, found = self.member(cls, name)
        return callable(found) or isinstance(found, staticmethod | classmethod)

    def is_fixed(self, value: Value) -> bool:
        if not isinstance(value, Host):
            return isinstance(value, Function)
        kind = type(value.value)
        return callable(value.value) or values.is_simple_class(kind) or dataclasses.is_dataclass(kind)

    # -- setting -------------------------------------------------------------------------------------------------------

    def set_attribute(self, value: Value, name: str, new: Value) -> None:
        """`value.name = new`."""
        value = self.there(value, f"AttributeError: 'NoneType' object has no attribute '{name}'")
        if isinstance(value, OneOf):
            self._set_in_one(value, name, new)
            return
        cell = self.cell(value)
        if cell is None or cell.kind != "object" or not isinstance(value, Ref):
            is_object = isinstance(value, Host) and is_users_class(type(value.value))
            if isinstance(value, Host) and (is_object or hasattr(value.value, "__dict__")):
                raise self.captured_change(value)
            help = "only objects of classes have attributes that can be assigned"
            if isinstance(value, Tuple) and value.cls is not None:
                help = f"make a new one: `p = p._replace({name}=..)`"
            elif cell is not None and cell.kind == "dict":
                help = f'an entry of a dict is assigned by its key: `d["{name}"] = v`'
            raise self.refusal("PCB422", f"an attribute of {self.described(value)} cannot be assigned", help)
        assert cell.cls is not None
        base, found = self.member(cell.cls, name)
        match found:
            case property(fset=FunctionType() as setter):
                known = self.function_of(setter, base)
                if known is None:
                    raise self.unreadable(setter, f"the setter of `{name}`")
                self.call_user(known, [value, new], {})
                return
            case property():
                raise self.refusal("PCB422", f"`{name}` is a property without a setter")
        if is_set_by_descriptor(cell.cls, name):
            known = self.function_of(type(found).__set__, type(found))
            if known is None:
                raise self.unreadable(type(found).__set__, f"the setter of `{name}`")
            self.call_user(known, [Host(found, Place("class", base, name, f"{base.__name__}.{name}")), value, new], {})
            return
        if dataclasses.is_dataclass(cell.cls) and cell.cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            raise self.refusal(
                "PCB422", f"`{cell.cls.__name__}` is a frozen dataclass", "write dataclasses.replace(..)"
            )
        self.change(value, items={**cell.items, name: new})

    def _set_in_one(self, value: OneOf, name: str, new: Value) -> None:
        """`value.name = new` of one of several objects."""
        cells = [self.state.cell(each) for each in value.items]
        if not all(name in cell.items and not has_setter(cell.cls, name) for cell in cells):

            def set_in(each: Value) -> Value:
                self.set_attribute(each, name, new)
                return NONE

            self.on_each(value, set_in)
            return
        for place, (each, cell) in enumerate(zip(value.items, cells, strict=True)):
            self.set_attribute(each, name, self.chosen(self.is_place(value.index, place), new, cell.items[name]))

    def set_object_item(self, whole: Ref, index: Index, value: Value) -> None:
        found = self.method_of(whole, "__setitem__")
        if found is None:
            raise self.refusal("PCB422", f"{self.described(whole)} has no elements that can be assigned")
        self.call_value(found, [self.index_value(index), value], {})

    def index_value(self, index: Index) -> Value:
        """An index as a value that `__getitem__` is given."""
        if isinstance(index, Sliced):
            return Host(self.known_slice(index))
        return Tuple(tuple(map(self.index_value, index))) if isinstance(index, tuple) else index

    def object_item(self, whole: Ref, index: Index) -> Value:
        found = self.method_of(whole, "__getitem__")
        if found is None:
            raise self.refusal("PCB401", f"TypeError: {self.described(whole)} has no elements")
        return self.call_value(found, [self.index_value(index)], {})

    def object_length(self, value: Ref) -> Value:
        found = self.method_of(value, "__len__")
        if found is None:
            raise self.refusal("PCB401", f"TypeError: {self.described(value)} has no len()")
        return self.call_value(found, [], {})

    def object_truth(self, value: Ref) -> Host | Lane | None:
        for name in ("__bool__", "__len__"):
            found = self.method_of(value, name)
            if found is not None:
                return self.truth(self.call_value(found, [], {}))
        return None

    def is_true(self, value: Value) -> bool:
        is_container = self.kind(value) in ("list", "dict", "set")
        return not is_container and all(self.method_of(value, name) is None for name in ("__bool__", "__len__"))

    def iterated(self, value: Value) -> list[Value] | None:
        found = self.method_of(value, "__iter__")
        return None if found is None else self.sequence(self.call_value(found, [], {}))

    def method_of(self, value: Value, name: str) -> Value | None:
        cls = None
        if isinstance(value, OneOf):
            return self._method_of_several(value, name)
        if isinstance(value, Ref) and self.kind(value) == "object":
            cls = self.state.cell(value).cls
        elif isinstance(value, Tuple):
            cls = value.cls
        elif isinstance(value, Host) and values.is_simple_class(type(value.value)):
            cls = type(value.value)
        elif isinstance(value, Choice):
            classes = {type(self.word(number).value) for number in value.words}
            cls = classes.pop() if len(classes) == 1 else None
        if cls is None:
            return None
        owner, found = self.member(cls, name)
        if owner in (object, tuple) or owner.__module__ == "enum" or not isinstance(found, FunctionType):
            return None
        if dataclasses.is_dataclass(cls) and found.__code__.co_filename == "<string>":
            return self._of_dataclass(value, name, cls)
        known = self.function_of(found, owner)
        return None if known is None else Bound(known, value)

    def _method_of_several(self, value: OneOf, name: str) -> Value | None:
        found = [self.method_of(self.known(each), name) for each in value.items]
        return None if None in found else Bound(name, value)

    def _of_dataclass(self, value: Value, name: str, cls: type) -> Value | None:
        """A comparison that the decorator of a dataclass has made: that of the tuples of its fields."""
        return Bound(f"dataclass {name}", value) if name in ("__eq__", "__lt__", "__le__", "__gt__", "__ge__") else None

    def fields_in_order(self, value: Value) -> Tuple:
        """The fields of a dataclass' object that are compared."""
        cell = self.cell(value)
        assert cell is not None and cell.cls is not None
        return Tuple(tuple(cell.items[each.name] for each in dataclasses.fields(cell.cls) if each.compare))
