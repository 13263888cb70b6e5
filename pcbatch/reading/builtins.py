"""Built-in functions of Python's, and pcbatch's own functions, as the reader interprets them."""

from __future__ import annotations

import builtins
import copy
import dataclasses
import functools
import operator
from collections.abc import Callable
from functools import partialmethod
from typing import Any

import gast

from pcbatch.frontend.source import is_text_for
from pcbatch.ir import values
from pcbatch.ir.debugging import ENTRY, number_of
from pcbatch.ir.operators import COMPARISON
from pcbatch.lowering.captures.guarded_paths import Place
from pcbatch.reading.containers import MUTABLE
from pcbatch.reading.core import NeedsConstantError
from pcbatch.reading.folds import Folds
from pcbatch.reading.in_python import CLASSES, power_modulo
from pcbatch.reading.operations import builtin, library
from pcbatch.reading.operators import ROWS
from pcbatch.reading.values import (
    NONE,
    Bound,
    Choice,
    Frame,
    Function,
    Generator,
    Host,
    OneOf,
    Optional,
    Ref,
    Tuple,
    Value,
    is_one_value,
)
from pcbatch.threads import parse

SYNC = ("pcbatch.function.hints", "sync")
DEBUG = ("pcbatch.function.hints", "debug")
MAP = ("pcbatch.runtime.backends.tensorflow.mapping", "map")
BOUNDED = ("pcbatch.runtime.backends.tensorflow.bounded", "bounded")


CONSUMERS = (len, sum, any, all, min, max)
OF_ARRAYS = "ask for what all arrays have, `x.shape` and `x.dtype`, or decide outside of the function"


def _path(value: Any) -> tuple[str, str]:
    return getattr(value, "__module__", "") or "", getattr(value, "__name__", "") or ""


class Builtins(Folds):
    """Python's built-in functions."""

    def builtin_of(self, function: Any) -> Callable[..., Value] | None:
        try:
            name, operator_ = _NAMES.get(function), OPERATORS.get(function)
        except TypeError:
            return None
        if operator_ is not None:
            return functools.partial(getattr(self, operator_[0]), operator_[1])
        return None if name is None else getattr(self, f"call_{name}")

    def special(self, function: Value, node: Any) -> Value | None:
        if not isinstance(function, Host):
            return None
        path = _path(function.value)
        if function.value in CONSUMERS and len(node.args) == 1 and isinstance(node.args[0], gast.ListComp):
            return self._of_list(function, node)
        if function.value is bool and len(node.args) == 1 and not isinstance(node.args[0], gast.Starred):
            return self.condition(node.args[0])
        if path == SYNC:
            if node.args or node.keywords:
                raise self.refusal(
                    "PCB126", "`pcbatch.sync()` takes no arguments", "write `pcbatch.sync()`", label="given here"
                )
            block = self.emitter.block()
            block.sync = True
            self.emitter.jump(block, self.span())
            self.emitter.enter(block)
            return NONE
        if path == DEBUG:
            return self._debug(node)
        if path == MAP:
            return self._mapped(function, self.evaluated(node.args), self._keywords(node))
        if path == BOUNDED:
            return self.bounded(function, self.evaluated(node.args), self._keywords(node))
        return None

    def _of_list(self, function: Host, node: Any) -> Value | None:
        """A list that is made, counted or added up, and forgotten: its length may differ by lane."""
        mark = self.mark()
        try:
            self.expression(node.args[0])
            return None
        except NeedsConstantError:
            pass
        finally:
            self.back_to(mark)
        generator = Generator(node.args[0], self.frame, self.expression(node.args[0].generators[0].iter))
        keywords = self._keywords(node)
        if function.value is len:
            return self.consumed(generator, Host(0), lambda count, _: self.binary(gast.Add, count, Host(1)))
        return self.call_value(function, [generator], keywords)

    def _debug(self, node: Any) -> Value:
        text, *values = self.evaluated(node.args) or [NONE]
        is_text = isinstance(text, Host) and isinstance(text.value, str) and is_text_for(text.value, len(values))
        if node.keywords or not is_text:
            raise self.refusal(
                "PCB131",
                "`pcbatch.debug` takes a text that is written there, and values",
                'write a plain string with a field `{}` for each value, or with none: `pcbatch.debug("x = {}", x)`',
                label="these do not fit",
            )
        assert isinstance(text, Host)
        span = self.span()
        number = number_of(text.value, span)
        given = [number, text.value, *map(self.pattern, values)]
        self.emit(builtin(ENTRY), given, hint="entry")
        if self.is_live and not (self.straight or self.contexts):  # a fault behind it leaves the entry whole
            following = self.emitter.block()
            self.emitter.jump(following, span)
            self.emitter.enter(following)
        return NONE

    # -- numbers -------------------------------------------------------------------------------------------------------

    def known_result(self, function: Any, *values: Value) -> Host | None:
        """Return the result of a function of values that are all known and no arrays."""
        values = tuple(self.read(self.known(each)) for each in values)
        if not all(isinstance(each, Host) and not self.is_array(each.value) for each in values):
            return None
        with self.raising(Exception):
            return Host(function(*(each.value for each in values)))  # type: ignore[union-attr]

    def _of_number(self, name: str, *values: Value) -> Value:
        """A function of numbers, which classes may have as a method."""
        if values and (found := self.method_of(values[0], f"__{name}__")) is not None:
            return self.call_value(found, [*values[1:]], {})
        found = self.known_result(getattr(builtins, name), *values)
        return found or self.emit(builtin(name), [self.pattern(each) for each in values])

    call_abs = partialmethod(_of_number, "abs")
    call_float = partialmethod(_of_number, "float")
    call_int = partialmethod(_of_number, "int")

    def call_bool(self, *values: Value) -> Value:
        return self.truth(values[0]) if values else Host(False)

    def call_round(self, value: Value, ndigits: Value | None = None) -> Value:
        return self._of_number("round", *([value] if ndigits is None else [value, ndigits]))

    def call_divmod(self, a: Value, b: Value) -> Value:
        if (found := self.overloaded(a, b, "__divmod__", "__rdivmod__")) is not None:
            return found
        known = self.known_result(divmod, a, b) if not self._is_zero(b) else None
        if known is not None:
            return self.host(known.value)
        return self.emit(builtin("divmod"), [self.pattern(a), self.pattern(b)])

    def _is_zero(self, value: Value) -> bool:
        return isinstance(value, Host) and not value.value

    def call_pow(self, base: Value, exp: Value, mod: Value | None = None) -> Value:
        if mod is None:
            return self.binary(gast.Pow, base, exp)
        known = self.known_result(pow, base, exp, mod)
        return known or self.call_value(Host(power_modulo), [base, exp, mod], {})

    def call_complex(self, *values: Value) -> Value:
        return self.known_result(complex, *values) or self.emit(
            library(complex, "complex", self.backend.equivalent(complex), is_steady=True),
            [self.pattern(each) for each in values],
        )

    def call_len(self, value: Value) -> Value:
        return self.length(value)

    # -- what values are -----------------------------------------------------------------------------------------------

    def call_isinstance(self, value: Value, classes: Value) -> Value:
        value, wanted = self.known(value), self._classes(classes)
        if isinstance(value, Optional):
            of_none = Host(issubclass(type(None), wanted))
            return self.either(
                self.both(value.there, self.truth(self.call_isinstance(value.content, classes))),
                self.both(self.negated(value.there), of_none),
            )
        if isinstance(value, Choice):
            return self.of_words(value, lambda word: self.call_isinstance(word, classes))
        if isinstance(value, OneOf):
            return self.taken([self.call_isinstance(each, classes) for each in value.items], value.index)
        return Host(issubclass(self._class_of(value), wanted))

    def _classes(self, value: Value) -> Any:
        return self.constant(value, "a class")

    def _class_of(self, value: Value) -> type:
        match value:
            case Tuple(_, cls):
                return cls or tuple
            case Ref():
                cell = self.state.cell(value)
                kinds: dict[str, type] = {"list": list, "dict": dict, "set": set}
                if cell.kind in kinds:
                    return kinds[cell.kind]
                if cell.cls is not None:
                    return CLASSES.get(cell.cls, cell.cls)
            case Function():
                return type(lambda: 0)
            case OneOf(items=items):
                classes = {self._class_of(self.known(each)) for each in items}
                if len(classes) == 1:
                    return classes.pop()
                raise self.refusal("PCB120", "what class this has differs by lane", "write isinstance(..)")
            case Host(host) if not self.is_array(host):
                return type(host)
        type_ = self.type_of(value)
        if type_ is not None and not type_.shape:
            if type_.dtype == "bool":
                return bool
            return int if "int" in type_.dtype else complex if "complex" in type_.dtype else float
        raise self.refusal("PCB120", "what class an array has depends on how it is represented", OF_ARRAYS)

    def call_type(self, value: Value) -> Value:
        return Host(self._class_of(self.known(value)))

    def call_callable(self, value: Value) -> Value:
        value = self.known(value)
        if isinstance(value, Optional):
            return self.both(value.there, self.truth(self.call_callable(value.content)))
        is_function = isinstance(value, Function | Bound) or (isinstance(value, Host) and callable(value.value))
        return Host(is_function or self.method_of(value, "__call__") is not None)

    def call_hasattr(self, value: Value, name: Value) -> Value:
        text = self.constant(name, "a name")
        cell = self.cell(self.known(value))
        if cell is not None and cell.kind == "object":
            if text in cell.items:
                self.known(cell.items[text])
            return Host(text in cell.items or hasattr(cell.cls, text))
        if isinstance(value, Host):
            return Host(hasattr(value.value, text))
        raise self.refusal("PCB120", "what attributes a value has depends on how it is represented", OF_ARRAYS)

    def call_getattr(self, value: Value, name: Value, default: Value | None = None) -> Value:
        if default is not None:
            found = self.call_hasattr(value, name)
            assert isinstance(found, Host)
            if not found.value:
                return default
        return self.attribute(value, self.constant(name, "a name"))

    def call_setattr(self, value: Value, name: Value, new: Value) -> Value:
        self.set_attribute(value, self.constant(name, "a name"), new)
        return NONE

    def call_hash(self, value: Value) -> Value:
        if (found := self.known_result(hash, value)) is None:
            raise self.refusal("PCB120", "a hash depends on how a value is represented", "use the number: `x % n`")
        return found

    def call_str(self, value: Value | None = None) -> Value:
        return Host("") if value is None else self._as_text(str, value)

    def _as_text(self, function: Callable[[Any], str], value: Value) -> Value:
        return Host(function(self.constant_text(self.read(self.known(value)))))

    call_repr, call_ascii = partialmethod(_as_text, repr), partialmethod(_as_text, ascii)

    def call_format(self, value: Value, spec: Value | None = None) -> Value:
        known = self.constant_text(self.read(self.known(value)))
        return Host(format(known, "" if spec is None else self.constant(spec, "a format")))

    # -- of modules ----------------------------------------------------------------------------------------------------

    def call_copy(self, value: Value) -> Value:
        """`copy.copy`."""
        value = self.known(value)
        if isinstance(value, Optional):
            return dataclasses.replace(value, content=self.call_copy(value.content))
        if isinstance(value, OneOf):
            return self.taken([self.call_copy(each) for each in value.items], value.index)
        type_ = self.type_of(value)
        if self.is_list(value) or (type_ is not None and type_.shape):
            return self.call_value(self.attribute(value, "copy"), [], {})
        if type_ is not None:
            return self.read(value)
        if isinstance(value, Host):
            return self._opened(value)
        return value if (cell := self.cell(value)) is None else self.new_like(cell)

    def _opened(self, value: Host) -> Value:
        """A list, a dict, a set or an object of the world as one of the program, which may change."""
        host = value.value
        match host:
            case list():
                return self.new_container("list", tuple(self.sequence(value)))
            case dict():
                return self.new_container("dict", self.entries(value))
            case set():
                return self.new("set", dict.fromkeys(host, NONE))
        cls = type(host)
        if not (values.is_simple_class(cls) or dataclasses.is_dataclass(cls)) or isinstance(host, type):
            return value
        return self.new("object", {name: self.attribute(value, name) for name in values.fields_of(host) or ()}, cls)

    def call_deepcopy(self, value: Value) -> Value:
        """`copy.deepcopy`."""
        made, arrays = dict[int, Ref](), list[tuple[Value, Value]]()

        def deep(each: Value) -> Value:
            if self.type_of(each):
                arrays.append(
                    (each, next((c for a, c in arrays if is_one_value(a, each)), None) or self.call_copy(each))
                )
                return arrays[-1][1]
            if isinstance(each, Tuple):
                return dataclasses.replace(each, items=tuple(map(deep, each.items)))
            if isinstance(each, Optional):
                return dataclasses.replace(each, content=deep(each.content))
            if isinstance(each, OneOf):
                return self.taken([deep(self.known(item)) for item in each.items], each.index)
            if isinstance(each, Host):
                own = self._opened(each)
                return each if own is each else deep(own)
            cell = self.cell(each)
            if cell is None or not isinstance(each, Ref):
                return each
            if each.cell not in made:
                made[each.cell] = self.new_like(cell)
                found = cell.with_parts(lambda _, part: deep(part))
                self.state.set_cell(made[each.cell], items=found.items)
            return made[each.cell]

        return deep(self.known(value))

    def call_replace(self, value: Value, **changes: Value) -> Value:
        """`dataclasses.replace`."""
        cell, known = self.cell(self.known(value)), value.value if isinstance(value, Host) else None
        cls: Any = type(known) if cell is None else cell.cls
        if not dataclasses.is_dataclass(cls):
            raise self.refusal("PCB401", "TypeError: replace() takes an object of a dataclass")
        kept = [each.name for each in dataclasses.fields(cls) if each.init and each.name not in changes]
        return self.call_value(Host(cls), [], {**{name: self.attribute(value, name) for name in kept}, **changes})

    def call_reduce(self, function: Value, value: Value, initial: Value | None = None) -> Value:
        """`functools.reduce`."""
        items = self.sequence(value)
        found = items.pop(0) if initial is None else initial
        for item in self.each(items):
            found = self.call_value(function, [found, item], {})
        return found

    def call_partial(self, function: Value, /, *given: Value, **named: Value) -> Value:
        """`functools.partial`: a function that stands in a frame which has what is given already."""
        if isinstance(function, Host) and not self.has_lanes([*given, *named.values()]):
            return self.opaque(Host(functools.partial, path="functools.partial"), [function, *given], named)
        text = "lambda *args, **kwargs: function(*given, *args, **{**named, **kwargs})"
        tree = gast.ast_to_gast(parse(text, mode="eval")).body
        for node in gast.walk(tree):
            gast.copy_location(node, self.node)
        frame = Frame(self.number(), Function("partial", tree, self.file))
        frame.escapes.append(True)
        values = {"function": function, "given": Tuple(given), "named": self.new("dict", named)}
        self.state.names |= {(frame.number, name): value for name, value in values.items()}
        return Function("partial", tree, self.file, frame)

    def call_globals(self) -> Value:
        """The names of the module of the function that is interpreted."""
        names = self.globals_around()
        return Host(names, Place("itself", names, None, "globals()"))

    def call_vars(self, value: Value) -> Value:
        """The attributes of an object."""
        return self.attribute(value, "__dict__")

    def augmented(self, op: type, a: Value, b: Value) -> Value:
        """An augmented assignment as a function of `operator`."""
        if isinstance(a, Host) and isinstance(a.value, MUTABLE):
            raise self.captured_change(a)
        with self.kept([a]) as row:
            return self._augmented(op, a, b) or row[0]

    def call_setitem(self, whole: Value, index: Value, value: Value) -> Value:
        """`operator.setitem`."""
        self.set_item(whole, self.index_of(index), value)
        return NONE

    def call_delitem(self, whole: Value, index: Value) -> Value:
        """`operator.delitem`."""
        self.delete_item(whole, self.index_of(index))
        return NONE


_METHODS = [name.removeprefix("call_") for name in dir(Builtins) if name.startswith("call_")]
_NAMES: dict[Any, str] = {getattr(builtins, name): name for name in _METHODS if hasattr(builtins, name)} | {
    copy.copy: "copy",
    copy.deepcopy: "deepcopy",
    dataclasses.replace: "replace",
    functools.partial: "partial",
    functools.reduce: "reduce",
    operator.setitem: "setitem",
    operator.delitem: "delitem",
}
_ARITHMETIC = {op: row for op, row in ROWS.items() if row.method and row.reflected == f"r{row.method}"}
OPERATORS: dict[Any, tuple[str, type]] = {
    **{row.python: ("binary", op) for op, row in _ARITHMETIC.items()},
    **{row.python: ("compare", op) for op, row in ROWS.items() if row.binds == COMPARISON and row.method},
    **{getattr(operator, f"i{row.method}"): ("augmented", op) for op, row in _ARITHMETIC.items()},
}
"""Functions of `operator`, each with the method for it, and the operator."""
