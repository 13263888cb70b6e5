"""Functions of the program: one specialisation of a user's function for each kinds of arguments, and calls of it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import gast

from pcbatch.ir import program as ir
from pcbatch.ir.types import ConflictError, TensorType
from pcbatch.reading.core import LostError, NeedsBlocksError, NeedsConstantError, RefusedError
from pcbatch.reading.crossing import always
from pcbatch.reading.emitter import Emitter
from pcbatch.reading.kinds import (
    Kind,
    Returning,
    Specialisation,
    StoredError,
    WiderError,
    Widths,
    is_value,
    same_results,
    sites_that_differ,
    size,
)
from pcbatch.reading.phis import advise
from pcbatch.reading.results import Results
from pcbatch.reading.sources import cost_of
from pcbatch.reading.state import GIVEN, OWN, State, array_name, laid_anyhow
from pcbatch.reading.values import NONE, Frame, Function, Host, Lane, Ref, Tuple, Value, View

MOST = 64
"""Maximal number of specialisations of one function in a program."""
ROUNDS = 12
FEW_LEVELS, MANY_LEVELS = 8, 32
"""Of a recursion whose arguments get larger at each level: so many levels are taken for endless."""
OF_FUNCTION = ["emitter", "state", "frames", "loops", "guard", "straight", "returning", "node", "file", "_built"]
"""The reader's findings in one function of the program."""
MOST_NUMBERS = 10_000
"""Arguments of more numbers than this are large: few levels suffice."""


class Functions(Results):
    """Specialisations."""

    def __init__(self, *given: Any, widths: Widths, **options: Any):
        super().__init__(*given, **options)
        self.widths = widths
        self.containers = widths.containers
        self.specialisations: dict[Any, Specialisation] = {}
        self._by_value: set[Any] = set()
        """Trees of functions that are called by the values of constants, not by their types alone."""

    def call_of_program(
        self,
        function: Function,
        given: Mapping[str, Value],
        statics: frozenset[str],
        cost: float | None = None,
        *,
        is_by_value: bool = False,
    ) -> Value:
        """A call of a function that is a part of the program, with values for all its parameters.

        What it changes of its caller's objects, it hands back, unless its arguments are values to it.
        """
        if self.straight:
            raise NeedsBlocksError
        self._refuse_on_a_tape(function)
        self.refuse_inside("a batched call")
        cost = cost_of(function.live) if cost is None else cost
        constants = frozenset(n for n, v in given.items() if self._is_constant_number(v))
        if function.tree in self._by_value:
            statics |= constants
        mark = self.mark()
        try:
            return self._called(function, given, statics, cost, is_by_value)
        except RefusedError as error:
            if constants <= statics or error.is_final:
                raise
            first = error
        self.back_to(mark)
        self._by_value.add(function.tree)
        try:
            return self._called(function, given, statics | constants, cost, is_by_value)
        except (RefusedError, RecursionError) as error:
            if isinstance(first, NeedsConstantError):
                raise
            self._by_value.discard(function.tree)
            first.is_final = not isinstance(error, NeedsConstantError)
            raise first from None

    def _is_constant_number(self, value: Value) -> bool:
        found = self.read(value)
        return isinstance(found, Host) and self.type_of(found) is not None and not self.is_fresh(found)

    def is_on_a_tape(self) -> bool:
        """Tell whether a gradient is taken around what is interpreted."""
        return any(self.backend.takes_gradients(type(each)) for each in self.contexts)

    def _refuse_on_a_tape(self, function: Function) -> None:
        """Refuse a gradient through a call that is no piece."""
        if self.is_on_a_tape():
            raise self.refusal(
                "PCB132",
                f"a forward derivative inside a batched function cannot go through `{function.name}`",
                "use a gradient tape, or make what is differentiated one piece: a plain function with tf.where for "
                "`if` and tf.while_loop(.., maximum_iterations=n) for a loop",
                label="called on an accumulator here",
            )

    def _called(
        self,
        function: Function,
        given: Mapping[str, Value],
        statics: frozenset[str],
        cost: float | None,
        is_by_value: bool,
    ) -> Value:
        leaves: list[Value] = []
        seen: dict[Any, Any] = {}
        self._is_apart = is_by_value
        kinds: dict[str, Kind] = {}
        for name, value in given.items():
            stays = self.is_taped if name not in statics else always
            kinds[name] = self.kind_of(value, leaves, seen, stays)
        if function.frame is not None:
            kinds["@"] = self.kind_of(function, leaves, seen)
        is_by_value = is_by_value or all(map(is_value, kinds.values()))
        spec = self._specialisation(function, kinds, cost, is_by_value)
        result = self._result(spec)
        if spec.is_incomplete and spec.is_done:
            raise LostError
        if result is None:
            self.emitter.fault("this call does not come back", (), "raise", self.span())
            return NONE
        objects: list[Any] = [Ref(key) if isinstance(key, int) else None for key in seen]
        self._refuse_twice(function, spec.stored, leaves)
        owned: dict[int, Ref] = {}
        arrays = [self._owned(leaves[number], owned) for number in spec.stored]
        types = [type_ for kind in spec.kinds.values() for type_ in kind.leaves()]
        arguments = tuple(self.lane(value, type_).name for value, type_ in zip(leaves, types, strict=True))
        outputs = [Lane(self.emitter.fresh(type_, self.hint), type_) for type_ in result.leaves()]
        self.emitter.append(ir.Call(tuple(each.name for each in outputs), spec.name, arguments, self.span()))
        self.state.origins |= laid_anyhow(outputs)
        if is_by_value:
            value = self.made_of(result, iter(outputs), objects[:])
            self.outdate(spec, function.name, objects, leaves)
            return value
        for number, array in zip(spec.stored, arrays, strict=True):
            leaves[number] = array
        self._given_leaves = leaves
        for number, others in spec.shared.items():
            theirs = [self.shares(leaves[k]) if k >= 0 else {outputs[-1 - k].name} for k in others]
            self.state.origins[outputs[number].name] = self.state.origins[outputs[number].name].union(*theirs)
        return self._handed_back(spec, function, result, outputs, objects, arrays)

    def _refuse_twice(self, function: Function, stored: Sequence[int], leaves: Sequence[Value]) -> None:
        """Refuse a call that stores into an array that it is given twice: there it would be two."""
        for number in stored:
            mine = self.shares(leaves[number])
            for other, value in enumerate(leaves):
                type_ = self.type_of(value)
                is_array = type_ is not None and bool(type_.shape)
                if other != number and is_array and not mine.isdisjoint(self.shares(value)):
                    what = f"{function.name} stores into an array that it is given twice, or may be"
                    error = self.refusal("PCB205", what, "hand the array over once, or a copy of it: `a.copy()`")
                    error.is_final = True
                    raise error

    def _owned(self, array: Value, owned: dict[int, Ref]) -> Value:
        """An array that a call has stored into, as an object, and the array of a view; each known one is owned once."""
        match array:
            case Lane():
                return self.own(array)
            case Host() if self.is_fresh(array):
                if id(array) not in owned:
                    owned[id(array)] = self.own_of_host(array)
                return owned[id(array)]
            case View(base=base):
                return replace(array, base=self._owned(base, owned))
        return array

    def is_callers(self, ref: Ref) -> bool:
        return self._built is not None and not self._built.is_by_value and ref in self._built.given

    def _handed_back(
        self,
        spec: Specialisation,
        function: Function,
        result: Kind,
        outputs: Sequence[Lane],
        objects: list[Any],
        arrays: Sequence[Value],
    ) -> Value:
        """Return a call's result, after making its changes of its caller's objects here."""
        whole = self.made_of(result, iter(outputs), objects)
        assert isinstance(whole, Tuple)
        value, *rest = whole.items
        for array, new in zip(arrays, rest, strict=False):
            self.write(array, new)
        rest = rest[len(arrays) :]
        for number, parts in zip(spec.changed, rest, strict=False):
            assert isinstance(parts, Tuple)
            target = objects[number]
            cell = self.state.cell(target)
            kind = result.items[1 + len(arrays) + spec.changed.index(number)]
            keys = kind.keys
            items = dict(zip(keys, parts.items, strict=True)) if isinstance(cell.items, dict) else parts.items
            self.change(target, items=items, version=cell.version + 1)
        for name, new in zip(spec.bound, rest[len(spec.changed) :], strict=True):
            number = next(each.number for each in function.frames if (each.number, name) in self.state.names)
            self.state.names[number, name] = new
        return value

    def _specialisation(
        self, function: Function, kinds: dict[str, Kind], cost: float | None, is_by_value: bool = True
    ) -> Specialisation:
        identity = id(function.tree), id(function.live), function.owner, is_by_value
        loose = (identity, *((name, kind.key(exact=False)) for name, kind in kinds.items()))
        exact = (identity, *((name, kind.key(exact=True)) for name, kind in kinds.items()))
        for key in (loose, exact):
            spec = self.specialisations.get(key)
            types = [type_ for kind in kinds.values() for type_ in kind.leaves()]
            if spec is None:
                known = self.widths.types.get(key)
                if known is not None:
                    try:
                        types = [self.joined([a, b]) for a, b in zip(types, known, strict=True)]
                    except ConflictError:
                        continue
                    waiting = iter(types)
                    kinds = {name: kind.with_leaves(waiting) for name, kind in kinds.items()}
                return self._begun(key, function, kinds, cost, is_by_value)
            own = [type_ for kind in spec.kinds.values() for type_ in kind.leaves()]
            try:
                wider = [self.joined([a, b]) for a, b in zip(own, types, strict=True)]
            except ConflictError:
                continue
            if wider == own:
                return spec
            if spec.number == 0 and any(a != b and not a.weak for a, b in zip(own, wider, strict=True)):
                continue  # what the batch has is of its type; weak numbers are made of any
            self.widths.types[key] = wider
            raise WiderError
        return self.specialisations[exact]

    def _begun(
        self, key: Any, function: Function, kinds: dict[str, Kind], cost: float | None, is_by_value: bool
    ) -> Specialisation:
        same = [each for each in self.specialisations.values() if each.function.tree is function.tree]
        self._refuse_growth(function, kinds, [each.kinds for each in same if each.is_busy])
        if len(same) >= MOST:
            raise self.refusal(
                "PCB312",
                f"{function.name} is called with ever other static arguments or shapes: more than {MOST} kinds",
                "take a static argument that differs at each call out of `static_argnames`; give arrays one shape",
            )
        span = self.span(function.tree) if self.file == function.file else None
        spec = Specialisation(len(self.specialisations), function, kinds, span, cost=cost, is_by_value=is_by_value)
        taken = {each.name for each in self.specialisations.values()}
        base = function.name if function.name.isidentifier() else "inner"
        numbered = (base if k == 0 else f"{base}_{k}" for k in itertools.count())
        spec.name = next(name for name in numbered if name not in taken)
        self.specialisations[key] = spec
        return spec

    def _refuse_growth(self, function: Function, kinds: dict[str, Kind], around: Sequence[dict[str, Kind]]) -> None:
        """Refuse a recursion whose arguments get larger at each level, for ever, for all that is known."""
        known = _hosts(kinds)
        sizes = [*(sum(map(size, each.values())) for each in around if _hosts(each) == known)]
        sizes.append(sum(map(size, kinds.values())))
        levels = FEW_LEVELS if sizes[-1] > MOST_NUMBERS else MANY_LEVELS
        if len(sizes) > levels and all(a < b for a, b in itertools.pairwise(sizes[-levels:])):
            error = self.refusal(
                "PCB304",
                f"at each level of its recursion {function.name} is given more than at the one before",
                "let the arguments have the same types at each level; what grows is a static argument, or an array of "
                "fixed length and a count",
            )
            before = around[-1] if around else kinds
            error.wants = tuple(
                site for name in kinds if name in before for site in sites_that_differ(before[name], kinds[name])
            )
            raise error

    def _result(self, spec: Specialisation) -> Kind | None:
        if spec.is_busy or spec.is_done:
            spec.asked = True
            return spec.result
        spec.is_busy = True
        try:
            others = set(self.specialisations)
            for _ in range(ROUNDS):
                before, spec.asked = spec.result, False
                changes = self.changes(spec)
                for key, each in self.specialisations.items():
                    if key not in others and not each.is_busy:
                        each.is_done = False  # it was read for what was known of this one then
                try:
                    self._build(spec)
                except StoredError as error:
                    if error.spec is not spec:
                        raise
                    spec.result = None
                    continue
                if changes != self.changes(spec) and (spec.asked or not spec.is_by_value):
                    spec.result = None
                    continue
                if not spec.asked or same_results(before, spec.result):
                    break
            else:
                raise self.refusal("PCB304", f"what {spec.function.name} gives does not settle")
        except BaseException:
            self.specialisations = {key: each for key, each in self.specialisations.items() if each is not spec}
            raise
        finally:
            spec.is_busy = False
        spec.is_done = True
        return spec.result

    def _build(self, spec: Specialisation) -> None:
        """Interpret the body of a function of the program."""
        kept = {name: getattr(self, name) for name in OF_FUNCTION}
        self._built = spec
        self.emitter = spec.emitter = Emitter(spec.name, self.bindings)
        self.state, self.frames, self.loops, self.returning = State(), [], [], []
        self.guard, self.straight = None, 0
        try:
            self.file, self.node = spec.function.file, spec.function.tree
            self.emitter.enter(self.emitter.block())
            given = self.parameters_of(spec)
            if kept["_built"] is not None:  # callers may hand over any part of an array
                self.state.origins |= laid_anyhow(map(Lane, spec.lanes, map(self.types.get, spec.lanes)))  # type: ignore[arg-type]
            self.hand_back(spec, self._body(spec, given))
        except RefusedError as error:
            advise(error, self.state)
            raise
        finally:
            vars(self).update(kept)

    def parameters_of(self, spec: Specialisation) -> dict[str, Value]:
        """The values of a specialisation's parameters."""
        lanes: list[Lane] = []
        for name, kind in spec.kinds.items():
            for type_ in kind.leaves():
                lanes.append(Lane(self.emitter.fresh(type_, name), type_))
        spec.parameters = spec.lanes = tuple(each.name for each in lanes)
        values: list[Value] = list(lanes)
        spec.arrays = []
        for number in spec.stored:
            ref = self.new("array", (lanes[number],))
            spec.arrays.append(ref)
            self.state.names[array_name(number)] = ref
            values[number] = ref
        waiting, made = iter(values), []  # type: ignore[var-annotated]
        found = {name: self.made_of(kind, waiting, made) for name, kind in spec.kinds.items()}
        spec.given = made
        beginning = OWN if spec.is_by_value else GIVEN
        for number, each in enumerate(made):
            self.state.names[0, f"{beginning}{number}"] = each  # whatever happens to the parameters
        spec.before = {each.cell: self.state.cell(each) for each in made if isinstance(each, Ref)}
        around = found.get("@")
        spec.frame = around.frame if isinstance(around, Function) else None
        spec.names = {n: v for n, v in self.state.names.items() if spec.frame is not None and n[0] == spec.frame.number}
        return found

    def _body(self, spec: Specialisation, given: dict[str, Value]) -> list[Returning]:
        function = spec.function
        around = given.pop("@", None)
        if isinstance(around, Function):
            function = around
        return self.ran(function, given)

    def ran(self, function: Function, given: Mapping[str, Value]) -> list[Returning]:
        """Interpret a function's body in a frame of its own: all that it gives back."""
        frame = Frame(self.number(), function, self.span())
        file, self.file = self.file, function.file
        places = {each.id: each for each in gast.walk(function.tree.args) if isinstance(each, gast.Name)}
        for name, value in given.items():
            self.state.names[frame.number, name] = value
            self.state.places[frame.number, name] = places.get(name, function.tree), function.file
        self.frames.append(frame)
        self.returning.append([])
        try:
            if isinstance(function.tree, gast.Lambda):
                self.tail(function.tree.body)
            else:
                self.statements(function.tree.body)
                if self.is_live:
                    self.node = function.tree.body[-1]
                    self.returned(NONE, is_end=True)
        finally:
            self.frames.pop()
            self.file = file
            found = self.returning.pop()
        self._left = frame
        return found

    def giving(self, name: str, types: Sequence[TensorType]) -> Specialisation:
        """The specialisation of this name with results of these types."""
        spec = next(each for each in self.specialisations.values() if each.name == name)
        key = spec, *types
        found = self.specialisations.get(key)
        if found is None:
            assert spec.result is not None
            found = self._begun(key, spec.function, spec.kinds, spec.cost, spec.is_by_value)
            found.gives = tuple(types)
            found.result = spec.result.with_leaves(iter(types))
        self._result(found)
        return found


def _hosts(kinds: dict[str, Kind]) -> dict[str, Any]:
    """The arguments that are known now."""
    return {name: kind.key(exact=True) for name, kind in kinds.items() if kind.form == "host"}
