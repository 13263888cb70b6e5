"""Operations: tried on symbols for the types of what they give, and written where that is a lane's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcbatch.errors import CompileError, PieceRefusalError, Span
from pcbatch.ir import payload
from pcbatch.ir import program as ir
from pcbatch.ir.code import Code
from pcbatch.ir.joins import ConflictError, join
from pcbatch.ir.records import fields_of
from pcbatch.ir.types import StructType, TensorType, Type
from pcbatch.reading.core import Core, NeedsBlocksError, RefusedError
from pcbatch.reading.operations import Operation, filled, held_in, key_of, lanes_in, text_of
from pcbatch.reading.values import (
    Host,
    Lane,
    Tuple,
    Value,
    is_number,
)

_known_results: dict[Any, tuple[Template, bool]] = {}
"""What operations of libraries give for operands of some types: the same in every program."""


MOST_KNOWN = 100_000


class Emission(Core):
    """Operations and assignments."""

    def emit(
        self,
        operation: Operation,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any] | None = None,
        *,
        hint: str = "",
    ) -> Value:
        """What an operation gives for patterns of arguments; its ops are written if it gives anything of a lane's."""
        named = keywords or {}
        template, is_checked = self.tried(operation, arguments, named)
        leaves = [*template.leaves()]
        held = [each.text for pattern in (*arguments, *named.values()) for each in held_in(pattern)]
        if not leaves:
            if template.kind == "host" and template.value is None and held:
                self._effect(operation, arguments, named, held)
            return self.built(template, iter(()))
        texts = [text_of(each, operation.key == "[]") for each in arguments]
        text = operation.written(texts, {name: text_of(each) for name, each in named.items()})
        lanes = [each for pattern in (*arguments, *named.values()) for each in lanes_in(pattern)]
        inputs = tuple(dict.fromkeys([*(each.name for each in lanes if each.name in self.types), *held]))
        if is_checked and self.guard is not None:
            text, inputs = self._guarded(text), tuple(dict.fromkeys((self.guard.name, *inputs)))
        outputs = tuple(self.emitter.fresh(type_, hint or "t") for type_ in leaves)
        lanes = [Lane(name, type_) for name, type_ in zip(outputs, leaves, strict=True)]  # type: ignore[arg-type]
        span = self.span()
        if self.connected is not None:
            self.connected |= dict(zip(outputs, self._results, strict=True))
        if template.type is not None:
            self.emitter.append(ir.Primitive(outputs, inputs, Code(f"{outputs[0]} = {text}"), span))
        elif (target := target_of(template, iter(outputs))) is not None:
            self.emitter.append(ir.Primitive(outputs, inputs, Code(f"{target} = {text}"), span))
        else:
            self._taken_apart(template, lanes, text, inputs, span)
        return self.built(template, iter(lanes))

    def _effect(
        self, operation: Operation, arguments: Sequence[Any], named: Mapping[str, Any], held: Sequence[str]
    ) -> None:
        """Write an operation that is there for what it does to a context manager: `tape.watch(x)`."""
        text = operation.written([*map(text_of, arguments)], {name: text_of(each) for name, each in named.items()})
        lanes = [each for pattern in (*arguments, *named.values()) for each in lanes_in(pattern)]
        inputs = tuple(dict.fromkeys([*(each.name for each in lanes if each.name in self.types), *held]))
        self.emitter.append(ir.Primitive((), inputs, Code(text), self.span()))

    def _guarded(self, text: str) -> str:
        """An operation that may fail only where what is around it counts."""
        assert self.guard is not None
        return f"__guarded__({self.guard.name}, lambda: {text})"

    def tried(
        self, operation: Operation, arguments: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[Template, bool]:
        """What an operation gives for operands of such types, and whether it may fail a lane."""
        key = None
        if self.connected is not None and self.connected_in is not self.emitter.current:
            self.connected = None
        if operation.key is not None and self.connected is None:
            key = self.backend.ops_module, operation.key, key_of(tuple(arguments)), key_of(dict(keywords))
            if key in _known_results:
                return _known_results[key]
        symbol = self._symbol
        window = self.ops.window

        def make() -> Any:
            given = [filled(each, symbol, window) for each in arguments]
            named = {name: filled(each, symbol, window) for name, each in keywords.items()}
            return operation.called(self.ops, given, named)

        try:
            result, is_checked = self.symbols.called(make)
            self._results: list[Any] = []
            template = self.template(result)
        except (RefusedError, NeedsBlocksError, CompileError):
            raise
        except PieceRefusalError as error:
            raise self.refusal(error.code, error.message, error.help) from None
        except Exception as error:
            raise self.failed(error) from None
        if key is not None and len(_known_results) < MOST_KNOWN:
            _known_results[key] = template, is_checked
        return template, is_checked

    def _symbol(self, lane: Lane) -> Any:
        """What stands for a variable while an operation is tried."""
        if self.connected is None:
            return self.symbols.symbol(lane.type)
        _, captured = self.world.operands.get(lane.name, (None, None))
        if captured is not None and self.backend.is_variable(captured):
            return captured
        if lane.name not in self.connected:
            self.connected[lane.name] = self.symbols.symbol(lane.type, own=True)
        return self.connected[lane.name]

    def failed(self, error: Exception) -> RefusedError:
        """The refusal of an operation that raised `error` on symbols."""
        code, message, help = self.backend.failure(error)
        if self.backend.is_size(error):
            return self.no_constant(code, message, help)
        return self.refusal(code, message, help)

    def template(self, result: Any) -> Template:
        """What an operation has given."""
        type_ = self.symbols.type_of(result)
        if type_ is not None:
            self._results.append(result)
            return Template("lane", type_)
        fields = None if isinstance(result, tuple) else fields_of(result)
        if fields is not None:
            return Template(
                "object", items=tuple(map(self.template, fields.values())), keys=tuple(fields), cls=type(result)
            )
        match result:
            case tuple():
                cls = type(result) if hasattr(result, "_fields") else None
                return Template("tuple", items=tuple(map(self.template, result)), cls=cls)
            case list():
                return Template("list", items=tuple(map(self.template, result)))
            case dict():
                return Template("dict", items=tuple(map(self.template, result.values())), keys=tuple(result))
        return Template("host", value=result)

    def built(self, template: Template, lanes: Iterator[Lane]) -> Value:
        """The value that a template stands for."""
        match template.kind:
            case "lane":
                return next(lanes)
            case "tuple":
                return Tuple(tuple(self.built(each, lanes) for each in template.items), template.cls)
            case "list":
                return self.new("list", tuple(self.built(each, lanes) for each in template.items))
            case "dict":
                values = [self.built(each, lanes) for each in template.items]
                return self.new("dict", dict(zip(template.keys, values, strict=True)))
            case "object":
                values = [self.built(each, lanes) for each in template.items]
                return self.new("object", dict(zip(template.keys, values, strict=True)), template.cls)
        return Host(template.value)

    def _taken_apart(
        self, template: Template, lanes: Sequence[Lane], text: str, inputs: tuple[str, ...], span: Span | None
    ) -> None:
        """Write an operation that gives a structure with more than arrays in it, and what is taken out of that."""
        whole = _struct(template)
        if whole is None:
            raise self.refusal("PCB404", "what this gives is no value that a lane can keep")
        name = self.emitter.fresh(whole, "t")
        self.emitter.append(ir.Primitive((name,), inputs, Code(f"{name} = {text}"), span))
        waiting = iter(lanes)

        def take(part: Template, source: str) -> None:
            if part.type is not None:
                return
            for number, (key, item) in enumerate(zip(part.keys or range(len(part.items)), part.items, strict=True)):
                assert part.kind != "host"
                target = next(waiting).name if item.type is not None else self.emitter.fresh(_struct(item), "t")  # type: ignore[arg-type]
                step = (
                    payload.Field(key)
                    if part.kind == "object"
                    else payload.Index(key if part.kind == "dict" else number)
                )
                self.emitter.assign(target, (source,), step, span)
                take(item, target)

        take(template, name)

    def lane(self, value: Value, type_: TensorType | None = None, hint: str = "") -> Lane:
        """`value` as a variable, of exactly `type_` if that is given; refused for what is no number or array."""
        value = self.read(self.known(value))
        own = self.type_of(value)
        if own is None:
            raise self.refusal("PCB404", f"{self.described(value)} stands where a lane has a number")
        wanted = own if type_ is None else type_
        if isinstance(value, Lane) and value.name in self.types and wanted == own:
            return value
        name = self.emitter.fresh(wanted, hint or (value.name if isinstance(value, Lane) else "t"))
        self.give(name, value, wanted)
        return Lane(name, wanted)

    def give(self, name: str, value: Value, type_: TensorType) -> None:
        """Write an assignment of a number or an array to a variable of `type_`."""
        span = self.span()
        value = self.read(self.known(value))
        own = self.type_of(value)
        if isinstance(value, Host) and is_number(value.value) and own == type_:
            is_written = isinstance(value.value, complex) or not np.isfinite(value.value)
            if is_written:
                self.emitter.append(ir.Primitive((name,), (), Code(f"{name} = {text_of(value.value)}"), span))
            else:
                self.emitter.assign(name, (), payload.Constant(value.value), span)
            return
        source = value if isinstance(value, Lane) else self.pattern(value)
        if not isinstance(source, Lane):
            middle = self.emitter.fresh(own or type_, "t")
            self.emitter.append(ir.Primitive((middle,), (), Code(f"{middle} = {text_of(source)}"), span))
            source = Lane(middle, own or type_)
        if source.name not in self.types:  # a shared operand, which is no variable
            if source.type == type_:
                self.emitter.append(ir.Primitive((name,), (), Code(f"{name} = {source.name}"), span))
                return
            middle = self.emitter.fresh(source.type, "t")
            self.emitter.append(ir.Primitive((middle,), (), Code(f"{middle} = {source.name}"), span))
            source = Lane(middle, source.type)
        self.emitter.assign(name, (source.name,), payload.Copy() if source.type == type_ else payload.Cast(type_), span)

    def joined(self, types: Sequence[TensorType]) -> TensorType:
        """The type that holds values of all `types`; ConflictError where there is none."""
        found: Type | None = None
        for each in types:
            found = join(found, each)
        assert isinstance(found, TensorType)
        return found

    def conflict(self, error: ConflictError) -> str:
        """Why types do not meet, in the words of the user's library."""
        return error.told(self.backend.spelling)


@dataclass(frozen=True, eq=False)
class Template:
    """What an operation gives: the types of its arrays inside of tuples, lists and dicts, and what is known now."""

    kind: str
    type: Type | None = None
    items: tuple[Template, ...] = ()
    keys: tuple[Any, ...] = ()
    cls: Any = None
    value: Any = None

    def leaves(self) -> Iterator[Type]:
        """The types of the arrays in it, in order."""
        if self.type is not None:
            yield self.type
        for item in self.items:
            yield from item.leaves()


def target_of(template: Template, names: Iterator[str]) -> str | None:
    """The target of an assignment that takes a structure of arrays apart; None where it holds anything else."""
    if template.type is not None:
        return next(names)
    if template.kind not in ("tuple", "list") or not template.items:
        return None
    parts = [target_of(each, names) for each in template.items]
    if None in parts:
        return None
    return f"({', '.join(map(str, parts))}{',' if len(parts) == 1 else ''})"


def _struct(template: Template) -> Type | None:
    """The type of a structure; None where it holds anything but arrays."""
    if template.type is not None:
        return template.type
    if template.kind == "host":
        return None
    items = [_struct(each) for each in template.items]
    if None in items:
        return None
    kind = template.kind if template.cls is None else template.cls.__name__
    is_named = template.kind == "tuple" and template.cls is not None
    keys = template.cls._fields if is_named else template.keys
    return StructType(kind, tuple(items), tuple(keys), template.cls)  # type: ignore[arg-type]
