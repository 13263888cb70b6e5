"""Operations: tried on symbols for the types of what they give, and written where that is a lane's."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pcbatch.errors import CompileError, Diagnostic, MissingError, PieceRefusalError, PlacedError, Span
from pcbatch.installed import OWN, is_installed
from pcbatch.ir import payload
from pcbatch.ir import program as ir
from pcbatch.ir.expressions import Delayed, Expression, Name, call, constant_of, resolved
from pcbatch.ir.types import ConflictError, TensorType, Type, join
from pcbatch.ir.values import fields_of
from pcbatch.lowering.captures.captured import shallow
from pcbatch.lowering.captures.guarded_paths import Place
from pcbatch.reading.core import NeedsBlocksError, RefusedError
from pcbatch.reading.emitter import Template, is_taken_apart, pattern_of, struct_of, why_not_kept
from pcbatch.reading.opaque_calls import FUNCTION, Handed, is_function, leads
from pcbatch.reading.operations import (
    Applied,
    Operation,
    expression_of,
    expressions_of,
    filled,
    held_in,
    key_of,
    lanes_in,
    library,
)
from pcbatch.reading.result_types import ResultTypes
from pcbatch.reading.state import TURNED, laid_anyhow
from pcbatch.reading.values import Host, Lane, Part, Tuple, Value, is_number, plain_number
from pcbatch.reading.variables import Variables
from pcbatch.runtime.backends import pieces

_known_results: dict[Any, tuple[Template, bool]] = {}
"""Results of libraries' operations for operands of some types: the same in every program."""

_result_types = ResultTypes()
MOST_KNOWN = 100_000
ONE_SHAPE = (
    "arrays have the same shape in all lanes: take the largest length, a constant, and mask what is too much; or write "
    "a loop, `for i in range(n)`"
)


class Emission(Variables):
    """Operations and assignments."""

    def emit(
        self,
        operation: Operation,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any] | None = None,
        *,
        hint: str = "",
    ) -> Value:
        """Try an operation on patterns of arguments; write its ops if its result is a lane's."""
        named = keywords or {}
        return self.written(operation, arguments, named, *self.tried(operation, arguments, named), hint=hint)

    def emit_numpys(self, function: Any, arguments: Sequence[Any]) -> Value:
        """A function of NumPy's that is none of the user's calls, on patterns of arguments."""
        name = self.bound(Host(function, path=function.__name__)).text
        return self.emit(library(function, name, self.backend.equivalent(function), is_steady=True), arguments)

    def written(
        self,
        operation: Operation,
        arguments: Sequence[Any],
        named: Mapping[str, Any],
        template: Template,
        is_checked: bool,
        *,
        hint: str = "",
    ) -> Value:
        """Return what an operation gives that has been tried; see `emit`."""
        if template.has_parts():
            applied = Applied(self.ops, operation, tuple(arguments), dict(named))
            return self._in_parts(applied, template, is_checked)
        leaves = [*template.leaves()]
        held = [each.text for pattern in (*arguments, *named.values()) for each in held_in(pattern)]
        if not leaves:
            if template.kind == "host" and template.value is None and held:
                self._effect(operation, arguments, named, held)
            return self.built(template, iter(()))
        code, inputs = self._computing(operation.made(*expressions_of(operation, arguments, named)), held, is_checked)
        outputs = tuple(self.emitter.fresh(type_, hint or self.hint) for type_ in leaves)
        lanes = [*map(Lane, outputs, leaves)]  # type: ignore[arg-type]
        if any(each.startswith(TURNED) for name in inputs for each in self.state.origins.get(name, ())):
            self.state.origins |= laid_anyhow(each for each in lanes if each.type.shape[1:])
        span = self.span()
        if self.connected is not None:
            self.connected |= dict(zip(outputs, self._results, strict=True))
        if is_taken_apart(template):
            payload_ = payload.Compute(code, pattern_of(template))
            self.emitter.append(ir.Primitive(outputs, inputs, payload_, span))
        else:
            self._taken_apart(template, lanes, payload.Compute(code), inputs, span)
        return self.built(template, iter(lanes))

    def _in_parts(self, applied: Applied, template: Template, is_checked: bool) -> Value:
        """Compute each part of an operation's result by itself where no variable can hold some part."""
        held = [each.text for each in held_in(applied)]

        def of(part: Template, path: tuple[tuple[str, Any], ...]) -> Value:
            here = replace(applied, path=path)
            if part.kind == "part":
                return Part(here, part.value, is_function=part.value is FUNCTION)
            if part.kind == "lane":
                assert isinstance(part.type, TensorType)
                code, inputs = self._computing(here.expression(), held, is_checked)
                lane = Lane(self.emitter.fresh(part.type), part.type)
                self.emitter.assign(lane.name, inputs, payload.Compute(code), self.span())
                return lane
            kind = "attribute" if part.kind == "object" else "item"
            steps = [(kind, key) for key in (part.keys or range(len(part.items)))]
            parts = [of(item, (*path, step)) for item, step in zip(part.items, steps, strict=True)]
            return self.whole(part, parts)

        return of(template, ())

    def _effect(
        self, operation: Operation, arguments: Sequence[Any], named: Mapping[str, Any], held: Sequence[str]
    ) -> None:
        """Write an operation that is there for what it does to a context manager: `tape.watch(x)`."""
        code, inputs = self._computing(operation.made(*expressions_of(operation, arguments, named)), held, False)
        self.emitter.append(ir.Primitive((), inputs, payload.Compute(code), self.span()))

    def _computing(self, code: Expression, held: Sequence[str], is_checked: bool) -> tuple[Expression, tuple[str, ...]]:
        """An expression of inputs, and these: the variables that an operation reads, and what contexts have given.

        One that may fail does so only where what is around it counts.
        """
        if is_checked and self.guard is not None:
            code = call("__guarded__", Name(self.guard.name), Delayed(code))
        return resolved(code, self.types.keys() | held if held else self.types)

    def tried(
        self,
        operation: Operation,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
        handed: Handed | None = None,
        values: Sequence[Value] = (),
        *,
        is_manager: bool = False,
    ) -> tuple[Template, bool]:
        """Return what an operation gives for operands of such types, and whether it may fail a lane.

        `handed` notes what of the `values` of its operands may be changed, or given back. A context manager may hold
        values of a lane's, for nothing but a `with` statement gets it.
        """
        key = None
        if self.connected is not None and self.connected_in is not self.emitter.current:
            self.connected = None
        if operation.key is not None and self.connected is None and handed is None:
            key = self.backend.ops_module, operation.key, key_of(tuple(arguments)), key_of(dict(keywords))
            if key in _known_results:
                return _known_results[key]
            found = None if keywords else _result_types.of(self.backend.ops_module, operation.key, arguments)
            if found is not None:
                _known_results[key] = Template("lane", found[0]), found[1]
                return _known_results[key]
        known = self._symbol if handed is None or self.connected is not None else self._own_symbol
        window = self.ops.window
        given_symbols: list[Any] = []

        def symbol(lane: Lane) -> Any:
            given_symbols.append(known(lane))
            return given_symbols[-1]

        def make() -> Any:
            given = [filled(each, symbol, window) for each in arguments]
            named = {name: filled(each, symbol, window) for name, each in keywords.items()}
            if handed is None:
                return operation.called(self.ops, given, named)
            for value, each in zip(values, (*given, *named.values()), strict=True):
                handed.note(value, each)
            result = operation.called(self.ops, given, named)
            handed.check()
            return result

        try:
            with pieces.by(self._depends_on):
                result, is_checked = self.symbols.called(make)
            self._results: list[Any] = []
            template = Template("host", value=result) if is_manager else self.template(result, handed)
            self._tried_on = given_symbols
            if template.has_parts():
                self._refuse_sizes([*arguments, *keywords.values()])
        except (RefusedError, NeedsBlocksError, CompileError, MissingError):
            raise
        except PieceRefusalError as error:
            raise self._refused_by(error) from None
        except Exception as error:
            raise self.failed(error, [*arguments, *keywords.values()]) from None
        if key is not None and len(_known_results) < MOST_KNOWN:
            _known_results[key] = template, is_checked
            _result_types.note(self.backend.ops_module, operation.key, arguments, template.type, is_checked)
        return template, is_checked

    def way_to(self, template: Template) -> Any:
        """A hashable key of what the operation that was tried last has given, by what that is made of."""
        hosts: list[Any] = []

        def structure(part: Template) -> Any:
            if part.kind == "host":
                hosts.append(part.value)
            return part.kind, part.type, part.keys, part.cls, *map(structure, part.items)

        return structure(template), shallow(tuple(hosts)), self.symbols.made_of(self._results, self._tried_on)

    def _depends_on(self, state: pieces.State) -> None:
        """The program depends on something that an operation reads, or a batched function that is one captures."""
        self.beside += getattr(getattr(state, "__self__", None), "captured", [])
        place = Place("computed", state, None, "a state")
        self.world.guards.note(place, place.read(), by_elements=True)

    def _symbol(self, lane: Lane) -> Any:
        """Return the symbol for a variable while an operation is tried."""
        if self.connected is None:
            return self.symbols.symbol(lane.type)
        captured = self.world.operands.get(lane.name)
        if captured is not None and self.backend.is_variable(captured.value):
            return captured.value
        if lane.name not in self.connected:
            self.connected[lane.name] = self.symbols.symbol(lane.type, own=True)
        return self.connected[lane.name]

    def _own_symbol(self, lane: Lane) -> Any:
        """Return what stands for a variable, and for no other of its type."""
        return self.symbols.symbol(lane.type, own=True)

    def failed(self, error: Exception, arguments: Sequence[Any] = ()) -> RefusedError:
        """The refusal of an operation that raised `error` on symbols."""
        if isinstance(error, PlacedError):
            return RefusedError(Diagnostic("PCB401", error.message, error.span))
        if isinstance(error, RecursionError) and _depth(error) < sys.getrecursionlimit() // 2:
            raise error  # it is not the operation that is nested so deep, but the calls around it
        if not self.backend.is_size(error):
            return self._refused_by(error)
        self._refuse_sizes(arguments)
        return self.no_constant(*self.backend.failure(error))

    def _refused_by(self, error: Exception) -> RefusedError:
        """A refusal at what is interpreted; if that is pcbatch's own code, at the line of the user's that it calls."""
        notes, here = _in_helper(error), self.span()
        if notes and here is not None and here.file.startswith(OWN):
            code, message, help = self.backend.failure(error, handed=True)
            return RefusedError(Diagnostic(code, message, notes[0][0], "", help))
        code, message, help = self.backend.failure(error)
        return self.refusal(code, message, help, notes=notes)

    def _refuse_sizes(self, arguments: Sequence[Any]) -> None:
        """Refuse an operation that gives an array of no known shape where a lane's number may be its size."""
        sizes = [each for pattern in arguments for each in lanes_in(pattern) if _is_int(each)]
        if sizes:
            name = self.users_name(lambda value: value in sizes, "a number")
            message = f"{name} is used as a size, and differs from lane to lane"
            raise self.no_constant("PCB313", message, self.if_static(sizes, ONE_SHAPE))

    def template(self, result: Any, handed: Handed | None = None) -> Template:
        """Return what an operation has given, which may be what was handed to it."""
        found = self._template(result, handed)
        same = None if handed is None else handed.same_as(result)
        return found if same is None else replace(found, same=same)

    def _template(self, result: Any, handed: Handed | None) -> Template:
        why = self.symbols.why_part(result)
        if why is not None:
            return Template("part", value=self.backend.failure(why))
        type_ = self.symbols.type_of(result)
        if type_ is not None:
            self._results.append(result)
            return Template("lane", type_)

        def of(part: Any) -> Template:
            return self.template(part, handed)

        fields = None if isinstance(result, tuple) else fields_of(result)
        if fields is not None:
            return Template("object", items=tuple(map(of, fields.values())), keys=tuple(fields), cls=type(result))
        match result:
            case tuple():
                cls = type(result) if hasattr(result, "_fields") else None
                return Template("tuple", items=tuple(map(of, result)), cls=cls)
            case list():
                return Template("list", items=tuple(map(of, result)))
            case dict():
                return Template("dict", items=tuple(map(of, result.values())), keys=tuple(result))
        if leads(result, lambda value: self.symbols.type_of(value) is not None):
            if is_function(result):
                return Template("part", value=FUNCTION)
            raise self.refusal(*why_not_kept(result))
        return Template("host", value=self.unwritten(result))

    def unwritten(self, result: Any) -> Any:
        """An object that an operation has given; refused if lanes are to write to it, by and by."""
        if self.symbols.is_written(result):
            raise self.refusal(*why_not_kept(result))
        return result

    def built(self, template: Template, lanes: Iterator[Lane], hosts: Iterator[Value] | None = None) -> Value:
        """The value that a template stands for; `hosts` stand for what is known in it."""
        if template.same is not None:
            for _ in template.leaves():
                next(lanes)
            return template.same
        if template.kind == "lane":
            return next(lanes)
        if template.kind == "host":
            return Host(template.value) if hosts is None else next(hosts)
        return self.whole(template, [self.built(each, lanes, hosts) for each in template.items])

    def whole(self, template: Template, parts: Sequence[Value]) -> Value:
        """The structure that a template stands for, of its parts."""
        match template.kind:
            case "tuple":
                return Tuple(tuple(parts), template.cls)
            case "list":
                return self.new("list", tuple(parts))
            case "dict":
                return self.new("dict", dict(zip(template.keys, parts, strict=True)))
            case "object":
                return self.new("object", dict(zip(template.keys, parts, strict=True)), template.cls)
        return Host(template.value)

    def _taken_apart(
        self,
        template: Template,
        lanes: Sequence[Lane],
        code: payload.Compute,
        inputs: tuple[str, ...],
        span: Span | None,
    ) -> None:
        """Write an operation that gives a structure with more than arrays in it, and what is taken out of that."""
        whole = struct_of(template)
        if whole is None:
            raise self.refusal("PCB404", "what this gives is no value that a lane can keep")
        name = self.emitter.fresh(whole)
        self.emitter.assign(name, inputs, code, span)
        waiting = iter(lanes)

        def take(part: Template, source: str) -> None:
            if part.type is not None:
                return
            for number, (key, item) in enumerate(zip(part.keys or range(len(part.items)), part.items, strict=True)):
                assert part.kind != "host"
                target = next(waiting).name if item.type is not None else self.emitter.fresh(struct_of(item))  # type: ignore[arg-type]
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
        value = self.read(self.there(value))
        own = self.type_of(value)
        if isinstance(value, Part):
            raise self.no_constant(*value.why)
        if own is None:
            raise self.refusal("PCB404", f"{self.described(value)} stands where a lane has a number")
        wanted = own if type_ is None else type_
        if isinstance(value, Lane) and value.name in self.types and wanted == own:
            return value
        name = self.emitter.fresh(wanted, hint or (self.names.hint(value.name) if isinstance(value, Lane) else ""))
        self.give(name, value, wanted)
        return Lane(name, wanted)

    def give(self, name: str, value: Value, type_: TensorType) -> None:
        """Write an assignment of a number or an array to a variable of `type_`."""
        span = self.span()
        value = self.read(self.there(value))
        own = self.type_of(value)
        if isinstance(value, Host) and is_number(value.value) and own == type_:
            number = plain_number(value.value)
            if isinstance(number, complex) or not np.isfinite(number):
                self.emitter.assign(name, (), payload.Compute(constant_of(number)), span)
            else:
                self.emitter.assign(name, (), payload.Constant(number), span)
            return
        source = value if isinstance(value, Lane) else self.pattern(value)
        if not isinstance(source, Lane):
            middle = self.emitter.fresh(own or type_)
            if isinstance(value, Host) and is_number(value.value) and own is not None:
                self.give(middle, value, own)
            else:
                code, inputs = resolved(expression_of(source), self.types)
                self.emitter.assign(middle, inputs, payload.Compute(code), span)
            source = Lane(middle, own or type_)
        if source.name not in self.types:  # a shared operand, which is no variable
            if source.type == type_:
                self.emitter.assign(name, (), payload.Compute(Name(source.name)), span)
                return
            middle = self.emitter.fresh(source.type)
            self.emitter.assign(middle, (), payload.Compute(Name(source.name)), span)
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
        """Return the reason why types do not meet, in the words of the user's library."""
        return error.told(self.backend.spelling)


def _is_int(lane: Lane) -> bool:
    """Tell whether a variable is a whole number."""
    return not lane.type.shape and lane.type.dtype.startswith(("int", "uint"))


def _is_generated(file: str) -> bool:
    """Tell whether a file has code that is pcbatch's, or was made of the user's."""
    return file.startswith((OWN, "<")) or os.path.basename(file).startswith("__autograph_generated_file")


def _depth(error: Exception) -> int:
    """Tell how many calls an exception has come through."""
    return sum(1 for _ in traceback.walk_tb(error.__traceback__))


def _in_helper(error: Exception) -> list[tuple[Span, str]]:
    """The line of a function of the user's that was called and not interpreted, where that raised an error."""
    users = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not is_installed(frame.f_code.co_filename) and not _is_generated(frame.f_code.co_filename)
    ]
    last = [(frame.f_code, line) for frame, line in users[-1:]]
    return [(Span.of_line(code.co_filename, line), f"this is in the helper `{code.co_name}`") for code, line in last]
