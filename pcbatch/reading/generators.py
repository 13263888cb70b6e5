"""Generator functions that are gone over where they are called: a loop's body goes on at each `yield`.

    def walk(n):                for k in walk(n):        while n > 0:
        while n > 0:                total += k               k = n; total += k
            yield n                                          n = n // 2
            n = n // 2

A call makes a frame with the parameters. What goes over it interprets the function's body in that frame, and at each
`yield` the body of the loop, in the frame of the loop: `break` leaves both, `continue` goes on behind the `yield`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import gast

from pcbatch.reading.core import RefusedError
from pcbatch.reading.counters import Loop
from pcbatch.reading.expressions import DEAD
from pcbatch.reading.kinds import Returning
from pcbatch.reading.phis import NeedsTurnsError
from pcbatch.reading.sequences import Sequences
from pcbatch.reading.state import State
from pcbatch.reading.values import (
    NONE,
    Frame,
    Function,
    Generator,
    Host,
    Lane,
    Lazy,
    Ref,
    Tuple,
    Undefined,
    Value,
    is_none,
)

MOST_FRAMES = 24
"""Maximal depth of generators that go over themselves."""
A_LOOP = "go over it in a `for` loop, which may end where each lane ends; or append to a `pcbatch.bounded` list"
Consume = Callable[[Value], None]


@dataclass(frozen=True, eq=False)
class Consumer:
    """The consumer of a generator: its work on each item, and its place."""

    consume: Consume
    loop: Loop
    frames: tuple[Frame, ...]
    file: str
    returning: list[Returning]


class Generators(Sequences):
    """Generator functions."""

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self._consumers: dict[int, Consumer] = {}
        """By the number of the frame of the generator that is gone over."""

    # -- calls ---------------------------------------------------------------------------------------------------------

    def call_user(self, function: Function, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        if not is_generator(function.tree):
            return super().call_user(function, arguments, keywords)
        return self._suspended(function, self.bind(function, arguments, keywords))

    def _suspended(self, function: Function, given: Mapping[str, Value]) -> Generator:
        """A call of a generator function, of which nothing has been done yet."""
        frame = Frame(self.number(), function, self.span(), [True])
        for name, value in given.items():
            self.state.names[frame.number, name] = value
            self.state.places[frame.number, name] = function.tree, function.file
        return Generator(function.tree, frame, NONE)

    # -- `yield` -------------------------------------------------------------------------------------------------------

    def visit_Yield(self, node: Any) -> Value:
        value = NONE if node.value is None else self.expression(node.value)
        if self.is_live:
            self._resume(self._consumer(), value)
        return NONE

    def visit_YieldFrom(self, node: Any) -> Value:
        whole = self.expression(node.value)
        if not self.is_live:
            return DEAD
        consumer = self._consumer()
        self.over(self.refuse_number(whole), node, lambda item: self._resume(consumer, item), lambda: None, [])
        is_function = isinstance(whole, Generator) and isinstance(whole.tree, gast.FunctionDef)
        if not is_function:
            return NONE
        why, help = "what a generator returns is not read here", "write `for each in inner(): yield each`"
        return Undefined("PCB105", why, help=help)

    def _consumer(self) -> Consumer:
        """Return the consumer of the generator that is interpreted."""
        found = self._consumers.get(self.frame.number)
        if found is None:
            raise self.refusal("PCB105", "`yield` stands in a lambda", "write a function with `def`")
        return found

    def _resume(self, consumer: Consumer, value: Value) -> None:
        """Go on with what goes over the generator that is interpreted, until it wants the next item."""
        before = list(self.frames), self.file, self.node
        self.frames[:], self.file = consumer.frames, consumer.file
        self.loops.append(consumer.loop)
        self.returning.append(consumer.returning)
        try:
            consumer.consume(value)
            if consumer.loop.continues:
                self.join([*consumer.loop.continues, *self._here()])
                consumer.loop.continues.clear()
        finally:
            self.loops.pop()
            self.returning.pop()
            self.frames[:], self.file, self.node = before

    def _run(self, value: Generator, consume: Consume, loop: Loop) -> None:
        """Interpret the body of a generator function, with `consume` at each `yield`."""
        function = value.frame.function
        if len(self.frames) > MOST_FRAMES:
            raise self.refusal(
                "PCB312", f"{function.name} calls itself for too long", "let it go over what is known, or write a loop"
            )
        frame = replace(value.frame, span=self.span())
        outer = self._consumers.get(frame.number)
        self._consumers[frame.number] = Consumer(consume, loop, tuple(self.frames), self.file, self.returning[-1])
        file, self.file = self.file, function.file
        self.frames.append(frame)
        self.loops.append(loop)
        self.returning.append([])
        try:
            self.statements(function.tree.body)
        finally:
            found = self.returning.pop()
            self.loops.pop()
            self.frames.pop()
            self.file = file
            if outer is not None:
                self._consumers[frame.number] = outer
        self.join([*((each.block, each.state) for each in found), *self._here()])
        if len(frame.escapes) == 1:  # no function that has been made in it refers to it
            for state in (self.state, *(state for _, state in loop.breaks)):
                _forget(state, frame)

    def _run_expression(self, value: Generator, consume: Consume, loop: Loop) -> None:
        """Interpret the loops of a generator expression, with `consume` at each item."""
        node, around = value.tree, value.frame.function
        scope = Frame(self.number(), Function("comprehension", node, around.file, value.frame))
        consumer = Consumer(consume, loop, tuple(self.frames), self.file, self.returning[-1])
        before = list(self.frames), self.file

        def kept(tests: Sequence[Any], rest: Sequence[Any]) -> None:
            if not tests:
                into(rest, None)
                return
            found = self.condition(tests[0])
            if isinstance(found, Lane):
                self.fork(found, [lambda: kept(tests[1:], rest), lambda: None])
            elif found.value and self.is_live:
                kept(tests[1:], rest)

        def into(generators: Sequence[Any], whole: Value | None) -> None:
            if not generators:
                item = self.expression(node.elt)
                if self.is_live:
                    self._resume(consumer, item)
                return
            each, *rest = generators
            over = self.expression(each.iter) if whole is None else whole
            self.over(over, each, lambda item: self.store(each.target, item), lambda: kept(each.ifs, rest), [])

        self.frames += [value.frame, scope]
        self.file = around.file
        self.loops.append(loop)
        try:
            into(node.generators, value.first)
        finally:
            self.loops.pop()
            self.frames[:], self.file = before
        for state in (self.state, *(state for _, state in loop.breaks)):
            _forget(state, scope)

    def call_next(self, value: Value, default: Value | None = None) -> Value:
        """`next` of a generator of which nobody asks for more."""
        generator = self.known(value)
        if not isinstance(generator, Generator):
            self._refuse_forbidden(next)
        slot, loop = self._slot_of(NONE if default is None else default), Loop(None, self.frame)

        def take(item: Value) -> None:
            self.state.names[slot] = item
            self.break_unless(Host(False), loop)

        self.spend(generator)
        self.drive(generator, take, loop)
        if self.is_live and default is None:
            self.emitter.fault("StopIteration", (), "raise", self.span())
        self.join([*self._here(), *loop.breaks])
        return self.state.names.pop(slot) if self.is_live else DEAD

    # -- what goes over generators -------------------------------------------------------------------------------------

    def over(
        self, whole: Value, node: Any, bind: Callable[[Value], None], body: Callable[[], None], orelse: Sequence[Any]
    ) -> None:
        whole = self._begun_iterator(whole)
        if self._generator_in(whole) is None:
            super().over(whole, node, bind, body, orelse)
            return

        def consume(item: Value) -> None:
            bind(item)
            if self.is_live:
                body()

        loop = Loop(node, self.frame)
        self.spend(whole)
        self.drive(whole, consume, loop)
        if self.is_live and orelse:
            self.statements(orelse)
        if loop.breaks:
            self.join([*self._here(), *loop.breaks])

    def _begun_iterator(self, whole: Value) -> Value:
        """Return the result of an object's `__iter__`, if that is a generator function."""
        found = self.method_of(whole, "__iter__")
        function = getattr(found, "function", None)
        if not isinstance(function, Function) or not is_generator(function.tree):
            return whole
        assert found is not None
        return self.call_value(found, [], {})

    def _generator_in(self, whole: Value) -> Generator | None:
        """The generator that something goes over, one of a function's if there is one; None if there is none."""
        match self.known(whole):
            case Generator() as generator:
                return generator
            case Lazy("enumerate" | "iter", (part, *_)) | Lazy("filter", (_, part)):
                return self._generator_in(part)
            case Lazy("zip", parts) | Lazy("map", (_, *parts)):
                found = [each for part in parts if (each := self._generator_in(part)) is not None]
                return next(filter(_is_functions, found), found[0] if found else None)
        return None

    def drive(self, whole: Value, consume: Consume, loop: Loop) -> None:
        """Do something with each item of a generator, or of what goes over one."""
        match self.known(whole):
            case Generator(gast.FunctionDef()) as function:
                self._run(function, consume, loop)
            case Generator() as expression:
                self._run_expression(expression, consume, loop)
            case Lazy("iter", (part,)):
                self.drive(part, consume, loop)
            case Lazy("enumerate", (part, start)):
                self._numbered(part, start, lambda number, item: consume(Tuple((number, item))), loop)
            case Lazy("map", (function, part)):
                self._with_value(function, part, lambda each, item: consume(self.call_value(each, [item], {})), loop)
            case Lazy("filter", (function, part)):
                self._with_value(function, part, lambda each, item: self._filtered(each, item, consume), loop)
            case Lazy("zip" | "map" as kind, parts):
                self._side_by_side_of(kind, parts, consume, loop)

    def _slot_of(self, value: Value) -> tuple[int, str]:
        slot = (self.frame.number, f" kept {self.number()}")
        self.state.names[slot] = value
        return slot

    def _with_value(self, value: Value, part: Value, consume: Callable[[Value, Value], None], loop: Loop) -> None:
        """Go over a generator with a value beside it, which stays what it is."""
        slot = self._slot_of(value)
        self.drive(part, lambda item: consume(self.state.names[slot], item), loop)
        self.state.names.pop(slot, None)

    def _numbered(self, part: Value, start: Value, consume: Callable[[Value, Value], None], loop: Loop) -> None:
        """Go over a generator with a number beside each item."""
        slot = self._slot_of(start)

        def numbered(item: Value) -> None:
            number = self.state.names[slot]
            self.state.names[slot] = self.binary(gast.Add, number, Host(1))
            consume(number, item)

        self.drive(part, numbered, loop)
        self.state.names.pop(slot, None)

    def _filtered(self, function: Value, item: Value, consume: Consume) -> None:
        """Do something with an item that a function keeps."""
        with self.kept([item]) as row:
            kept = self.truth(item if is_none(function) else self.call_value(function, [item], {}))
            item = row[0]
        if isinstance(kept, Lane):
            self.fork(kept, [lambda: consume(item), lambda: None])
        elif kept.value:
            consume(item)

    def _side_by_side_of(self, kind: str, parts: Sequence[Value], consume: Consume, loop: Loop) -> None:
        """`zip(..)` or `map(function, ..)` of one generator, and of other sequences."""
        known = [self._generator_in(each) for each in parts]
        places = [place for place, each in enumerate(known) if _is_functions(each)]
        if len(places) > 1:
            help = "put what each gives into a list, `for x in g(): xs.append(x)`, and go over the lists"
            raise self.refusal("PCB105", "two generators are gone over side by side", help)
        places = places or [place for place, each in enumerate(known) if each is not None]
        parts = [
            each if own is None or place == places[0] else self.new("list", tuple(self.sequence(each)))
            for place, (each, own) in enumerate(zip(parts, known, strict=True))
        ]
        slot = self._slot_of(Tuple(tuple(parts)))

        def beside(number: Value, item: Value) -> None:
            whole = self.state.names[slot]
            assert isinstance(whole, Tuple)
            items: list[Value] = []
            for place, each in enumerate(whole.items):
                if place == places[0] or (kind == "map" and place == 0):
                    items.append(item if place == places[0] else each)
                    continue
                length = self.lazy_length(each) or self.length(each)
                self.break_unless(self.truth(self.compare(gast.Lt, number, length)), loop)
                if not self.is_live:
                    return
                items.append(self.lazy_item(each, number))
            consume(self.call_value(items[0], items[1:], {}) if kind == "map" else Tuple(tuple(items)))

        self._numbered(parts[places[0]], Host(0), beside, loop)
        self.state.names.pop(slot, None)

    def break_unless(self, holds: Host | Lane, loop: Loop) -> None:
        """Leave a loop where something does not hold."""
        if isinstance(holds, Lane):
            ends = self.ends_of(holds)
            loop.breaks += ends.false
            self.join(ends.true)
        elif not holds.value:
            loop.breaks += self._here()
            self.emitter.enter(None)

    # -- items at once -------------------------------------------------------------------------------------------------

    def sequence(self, value: Value) -> list[Value]:
        return self._collected(value) if _is_functions(self._generator_in(value)) else super().sequence(value)

    def _collected(self, value: Value) -> list[Value]:
        """The items of a generator, which the program makes a list of."""
        slot = self._slot_of(self.new("list", ()))

        def add(item: Value) -> None:
            found = self.known(self.state.names[slot])
            assert isinstance(found, Ref)
            self.change(found, items=(*self.state.cell(found).items, item))

        try:
            self.over(value, None, add, lambda: None, [])
            found = self.state.names.pop(slot) if self.is_live else self.new("list", ())
            return self.sequence(found)
        except NeedsTurnsError:
            pass
        except RefusedError as error:
            if error.diagnostic.code != "PCB301" or not error.diagnostic.message.startswith(
                ("this value", "`a value`")
            ):
                raise
        raise self.no_constant("PCB130", "how many items a generator gives differs by lane", A_LOOP)

    def live(self, whole: Value) -> Iterator[Value]:
        generator = self._generator_in(whole)
        if generator is None or not _is_functions(generator):
            yield from super().live(whole)
            return
        seen = self._seen_by(generator)
        before = dict(self.state.heap)
        items = self._collected(whole)
        if any(self.state.heap.get(number) is not cell for number, cell in before.items()):
            raise self._interleaved("changes something around it")
        names = dict(self.state.names)
        for item in self.each(items):
            if any(self._has_changed_since(names, before, *each) for each in seen):
                raise self._interleaved("reads what is changed meanwhile")
            yield item

    def _seen_by(self, generator: Generator) -> list[tuple[Any, Value]]:
        """Return a generator's reads that others may change: variables by name, objects and arrays by themselves."""
        own = [each for key, each in self.state.names.items() if key[0] == generator.frame.number]
        function = generator.frame.function
        found: list[tuple[Any, Value]] = []
        for name in self.free_names(function):
            slots = ((each.number, name) for each in function.frames)
            found += [(slot, self.state.names[slot]) for slot in slots if slot in self.state.names][:1]
        reached = self.state.reachable(iter([*own, *(value for _, value in found)]))
        return [*found, *((None, each) for each in reached if isinstance(each, Ref | Lane))]

    def _has_changed_since(self, names: dict[Any, Value], heap: dict[int, Any], name: Any, value: Value) -> bool:
        """Tell whether a variable, an object or an array is not what it was."""
        if name is not None:
            return self.state.names.get(name) is not names.get(name)
        if isinstance(value, Ref):
            return self.state.heap.get(value.cell) is not heap.get(value.cell)
        is_stored_into = (self.state.names.get(key) is not each for key, each in names.items() if each is value)
        return isinstance(value, Lane) and bool(value.type.shape) and any(is_stored_into)

    def _interleaved(self, how: str) -> RefusedError:
        return self.refusal("PCB105", f"a generator that is gone over here {how}", "go over it in a `for` loop")


@lru_cache(maxsize=4096)
def is_generator(tree: Any) -> bool:
    """Tell whether a function's tree is that of a generator function."""
    waiting = list(tree.body) if isinstance(tree, gast.FunctionDef) else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, gast.Yield | gast.YieldFrom):
            return True
        if not isinstance(node, gast.FunctionDef | gast.Lambda):
            waiting += gast.iter_child_nodes(node)
    return False


def _is_functions(generator: Generator | None) -> bool:
    """Tell whether a generator is one of a function's."""
    return generator is not None and isinstance(generator.tree, gast.FunctionDef)


def _forget(state: State, frame: Frame) -> None:
    """Forget the variables of a generator that has ended."""
    for name in [each for each in state.names if each[0] == frame.number]:
        del state.names[name]
