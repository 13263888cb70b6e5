"""Type and shape inference by abstract evaluation over the call graph, to a fixed point (design section 4, "Types").

No types are written by hand: a piece is traced once for each signature of its inputs, by the backend. Variables start
unknown; an unknown operand gives an unknown result unevaluated. Each round recomputes every variable as the join of
all its definitions under the previous round's types, so that a type seen before widening (a weak int that becomes a
float) leaves no trace. The functions of a recursive cycle share one signature each for equal static arguments and the
same parameters given None; others are specialised per signature. A branch that is decided now has one arm: nothing is
inferred for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pcbatch.errors import Diagnostic, Method, Span, raise_all
from pcbatch.ir import program as ir
from pcbatch.ir.analysis.callgraph import call_graph, components
from pcbatch.ir.types import NONE, StructType, TensorType, Type
from pcbatch.lowering.captures.captured import function_variables
from pcbatch.lowering.codegen.builtins import OPS
from pcbatch.lowering.codegen.environment import Environment
from pcbatch.lowering.inference import complaints
from pcbatch.lowering.inference.actions import Actions
from pcbatch.lowering.inference.constants import Candidates, candidates
from pcbatch.lowering.inference.instances import (
    Instance,
    Key,
    Round,
    RoundMode,
    Signature,
    changed_bindings,
    reachable,
    still_decided,
)
from pcbatch.lowering.inference.runs import Failure, Outcome, Run
from pcbatch.lowering.inference.sizes import NOTHING, Numbers, sized_parameters, unfit
from pcbatch.lowering.inference.static import Binding, Known, Static, plain, static_arguments, wanted
from pcbatch.lowering.inference.tail_calls import with_equal_results
from pcbatch.lowering.inference.typed import Typed, assemble
from pcbatch.lowering.inference.webs import Webs, split_function, split_webs

MAX_ROUNDS = 100
ROUNDS_OF_VALUES = 30
"""After so many rounds what is no static value stays none: a branch and what it decides may chase each other."""
FLIPS = 2
"""Rounds in which types that do not settle go round: what does not run in one of these is what is wrong."""
MAX_SPECIALISATIONS = 64
"""How many instances of one function a recursion with changing static arguments may make."""

Version = tuple[ir.Function, Mapping[str, str]]
"""A function with a variable for each web, and the user's names of those that got another."""


def infer(program: ir.Program, environment: Environment, arguments: Signature, numbers: Numbers = NOTHING) -> Typed:
    """The typed program for a call with one example of types `arguments`; raises every type fault found.

    `numbers` are what is known of arguments on which shapes may depend.
    """
    raise_all(
        complaints.reserved(OPS, f.span) for f in program.functions if OPS in {*function_variables(f), *f.externs}
    )
    webs = split_webs(program, frozenset(environment.operand_types))
    raise_all(
        complaints.static_assigned(name, span)
        for function in webs.program.functions
        for name, span in _assigned(function, environment.statics.get(function.name, frozenset()))
    )
    inference = _Inference(program, webs, environment, numbers)
    root = inference.sized_instance(program.entry.name, arguments, numbers.defaults)
    raise_all(diagnostic for instance in reachable(root) for diagnostic in instance.diagnostics)
    return assemble(with_equal_results(root), environment, frozenset(inference.actions.lenient))


def _assigned(function: ir.Function, names: frozenset[str]) -> Iterator[tuple[str, Span | None]]:
    """The places where `names` of a function are assigned."""
    for block in function.blocks:
        for op in block.ops:
            yield from ((name, op.span) for name in ir.writes(op) if name in names)


class _Inference:
    def __init__(self, original: ir.Program, webs: Webs, environment: Environment, numbers: Numbers):
        self.numbers = numbers
        self.originals = {function.name: function for function in original.functions}
        self.program = webs.program
        self.users = webs.users
        self.reserved = frozenset(environment.operand_types)
        self.statics = environment.statics
        self.actions = Actions(environment)
        self.cycle_of = {name: cycle for cycle in components(call_graph(self.program)) for name in cycle}
        self.wanted: dict[int, frozenset[str]] = {}
        self.candidates: dict[int, Candidates] = {}
        self.instances: dict[tuple[str, Signature], Instance] = {}

    def instance(self, name: str, signature: Signature) -> Instance:
        """The instance of function `name` at `signature`, inferred together with the cycle that it belongs to."""
        if (name, signature) not in self.instances:
            function = self.program.function(name)
            given = dict(zip(function.parameters, signature, strict=True))
            static = self.statics.get(name, ())
            statics = {n: s for n, s in given.items() if isinstance(s, Static) and n in static}
            empty = empty_parameters({n: s for n, s in given.items() if n not in static})
            self.instances[name, signature] = self._settled(name, signature, statics, empty)
        return self.instances[name, signature]

    def sized_instance(self, name: str, signature: Signature, values: Mapping[str, Static]) -> Instance:
        """The same; parameters on which shapes depend have their `values`, where these are known."""
        plainly = self.instance(name, signature)
        parameters = self.program.function(name).parameters
        sized = sized_parameters(plainly) & values.keys()
        if not sized:
            return plainly
        pairs = zip(parameters, signature, strict=True)
        return self.instance(name, tuple(values[each] if each in sized else known for each, known in pairs))

    # -- the fixed point -----------------------------------------------------------------------------------------------

    def _settled(
        self, name: str, signature: Signature, statics: Mapping[str, Static], empty: frozenset[str]
    ) -> Instance:
        """An instance, settled; where something is wrong, once more without what goes through dead arms only.

        After `if w is None: w = 1` there is no None. Arms are taken for dead, and webs split accordingly; the answer
        counts if the branches, which read what reaches them then, are decided in the same way.
        """
        versions: dict[Key, Version] = {}
        assumed: dict[Key, dict[str, str]] = {}
        best: Instance | None = None
        while True:
            entry = Instance(
                *self._version(versions, (name, tuple(statics.values()), empty)), signature, statics, empty
            )
            members = self._settle(entry, versions)
            holds = all(still_decided(each, assumed.get(key, {})) for key, each in members.items())
            best = entry if holds or best is None else best
            decided = {key: each.decided for key, each in members.items() if each.decided}
            if not holds or decided == assumed or not any(each.diagnostics for each in members.values()):
                return best
            assumed = decided
            versions = {
                key: split_function(self.originals[key[0]], self.reserved, arms) for key, arms in decided.items()
            }

    def _wanted(self, function: ir.Function) -> frozenset[str]:
        """The variables whose static values should be found; `function` is in `actions` for good."""
        if id(function) not in self.wanted:
            self.wanted[id(function)] = wanted(function, self.statics, self.program)
        return self.wanted[id(function)]

    def _candidates(self, function: ir.Function) -> Candidates:
        """The variables of `function`, which is in `actions` for good, that may be constants."""
        if id(function) not in self.candidates:
            self.candidates[id(function)] = candidates(function)
        return self.candidates[id(function)]

    def _version(self, versions: Mapping[Key, Version], key: Key) -> Version:
        """The function of an instance, and the user's names of its variables."""
        return versions.get(key) or (self.program.function(key[0]), self.users[key[0]])

    def _settle(self, entry: Instance, versions: Mapping[Key, Version]) -> dict[Key, Instance]:
        """Rounds until no type changes, then one more that reports; gives the members of the cycle of `entry`."""
        members: dict[Key, Instance] = {entry.key: entry}
        before: dict[Key, Mapping[str, Binding]] = {}
        count = 0
        while True:
            widens = count >= ROUNDS_OF_VALUES
            self._round(members, entry, versions, RoundMode(report=False, widens=widens))
            now = {key: instance.bindings for key, instance in members.items()}
            changed = next(changed_bindings(before, now), None)
            if changed is None:
                break
            count += 1
            if count >= MAX_ROUNDS + len(members) - 1:  # what a member gives may take a round to its caller
                for _ in range(FLIPS):
                    self._round(members, entry, versions, RoundMode(report=True, widens=widens))
                if not any(each.diagnostics for each in members.values()):
                    user = entry.users.get(changed[0], changed[0])
                    quotient = complaints.quotient(entry.function, changed[0], entry.users)
                    entry.diagnostics.append(complaints.unsettled(user, *changed[1:], quotient))
                return members
            before = now
        self._round(members, entry, versions, RoundMode(report=True, widens=widens))
        if not any(each.diagnostics for member in members.values() for each in reachable(member)):
            for instance in members.values():
                instance.diagnostics += self._never_returning(instance)
        return members

    def _round(
        self, members: dict[Key, Instance], entry: Instance, versions: Mapping[Key, Version], mode: RoundMode
    ) -> None:
        """Recompute all bindings of a cycle under the present ones; `members` grows by what is called anew."""
        rounds: dict[Key, Round] = {}

        def round_of(key: Key) -> Round:
            if key not in rounds:
                rounds[key] = Round(members[key], mode, self.actions.environment.backend.spelling)
            return rounds[key]

        function = entry.function
        for parameter, known in zip(function.parameters, entry.signature, strict=True):
            round_of(entry.key).bind(parameter, known, function.span)
        done: list[Key] = []
        while pending := [key for key in members if key not in done]:
            for key in pending:
                done.append(key)
                self._through(round_of(key), lambda key: self._member(members, key, versions, round_of))
        for key, each in rounds.items():
            members[key].bindings = each.new

    def _member(
        self,
        members: dict[Key, Instance],
        key: Key,
        versions: Mapping[Key, Version],
        round_of: Callable[[Key], Round],
    ) -> Round | None:
        """The round of a member of the cycle, made now if it is met for the first time; None if there are too many."""
        name, values, empty = key
        if key not in members:
            if values and sum(name == other for other, *_ in members) >= MAX_SPECIALISATIONS:
                return None
            function, users = self._version(versions, key)
            static = [parameter for parameter in function.parameters if parameter in self.statics.get(name, ())]
            members[key] = Instance(function, users, statics=dict(zip(static, values, strict=True)), empty=empty)
            for parameter, value in members[key].statics.items():
                round_of(key).bind(parameter, value, function.span)
        return round_of(key)

    # -- one round through one instance --------------------------------------------------------------------------------

    def _through(self, mine: Round, member: Callable[[Key], Round | None]) -> None:
        """Act on the blocks that control may reach, decided branches having one arm."""
        function = mine.instance.function
        blocks = self.actions.of(function, mine.instance.users, self._wanted(function), self._candidates(function))
        mine.instance.calls = {}
        mine.instance.bound = {}
        mine.instance.sized = {}
        mine.instance.varied = {}
        mine.instance.assigned = {}
        mine.instance.part_stores = {}
        mine.instance.decided = {}
        reached = {function.entry}
        done: set[str] = set()
        while reached - done:
            for block, actions in blocks:
                if block.label in reached - done:
                    done.add(block.label)
                    for index, action in actions:
                        self._act(mine, (block.label, index), action, member)
                    reached |= set(self._onward(mine, block))
        mine.instance.reached = frozenset(reached)

    def _onward(self, mine: Round, block: ir.Block) -> tuple[str, ...]:
        """Where control may go from the end of `block`."""
        terminator = block.terminator
        if isinstance(terminator, ir.Fault):
            for name in terminator.arguments:
                self._plain(mine, name, terminator.span)
        if isinstance(terminator, ir.Return):
            for name in mine.instance.function.results:
                self._plain(mine, name, terminator.span)
        if not isinstance(terminator, ir.Branch):
            return ir.successors(terminator)
        condition = mine.known(terminator.condition)
        if isinstance(condition, Static) and isinstance(condition.value, bool):
            mine.instance.decided[block.label] = terminator.true if condition.value else terminator.false
            return (mine.instance.decided[block.label],)
        if condition not in (None, TensorType("bool")):
            mine.complain(complaints.condition(condition, terminator.span, mine.spelling))
        undecided = condition is None and terminator.condition in self._wanted(mine.instance.function)
        return () if undecided else ir.successors(terminator)

    def _act(self, mine: Round, place: tuple[str, int], action: object, member: Callable[[Key], Round | None]) -> None:
        match action:
            case Run(text=text, spans=spans):
                inputs = tuple(mine.known(variable) for variable in text.reads)
                if None in inputs:
                    return
                outcome = self.actions.trace(action, inputs, mine.fixed)  # type: ignore[arg-type]
                self._note_sizes(mine, action, outcome)
                if isinstance(outcome, Failure):
                    return
                mine.complain(*outcome.asked)
                mine.instance.assigned[place] = dict(zip(text.writes, map(plain, outcome.known), strict=True))
                mine.instance.bound[place] = outcome.bound
                for variable, known in zip(text.writes, outcome.known, strict=True):
                    mine.bind(variable, known, spans[variable])
            case ir.Store(array=array) as store if isinstance(mine.known(array), StructType):
                self._store_part(mine, place, store)
            case ir.Store(indices=()) as store:
                self._store_part(mine, place, store)
            case ir.Store(indices=(index,)) as store if _is_mask(plain(mine.known(index))):
                self._store_part(mine, place, store)
            case ir.Store(array=array, span=span) as store:
                mine.bind(array, mine.known(array), span)
                types = {name: self._plain(mine, name, span) for name in ir.reads(store)}
                mine.complain(*complaints.store(store, types.__getitem__, mine.instance.function, mine.spelling))
            case ir.Call() as call:
                self._call(mine, place, call, member)

    def _store_part(self, mine: Round, place: tuple[str, int], store: ir.Store) -> None:
        """`xs[i] = v` of a list, a dict or a bounded list, `a[mask] = v`, `a[()] = v`: no stores, but statements."""
        function = mine.instance.function
        known = {name: mine.known(name) for name in ir.reads(store)}
        op, run = self.actions.part_store(function, mine.instance.users, place[0], store, known)
        self._act(mine, place, run, lambda key: None)
        mine.instance.part_stores[place] = op

    def _note_sizes(self, mine: Round, run: Run, outcome: Outcome | Failure) -> None:
        """Note on which variables shapes depend in a run, and complain of it, or of what else is wrong."""
        instance, failed = mine.instance, isinstance(outcome, Failure)
        found = outcome.error.diagnostics if isinstance(outcome, Failure) else ()
        if any(each.wants is not None for each in found):
            mine.complain(*found)
            return
        for name in sorted(outcome.sized):
            instance.sized[name] = run.place(name)
        shared = self.numbers.may_be_shared(instance.function, is_entry=instance.function == self.program.entry)
        wrong = outcome.sized if failed else outcome.sized - shared if self.numbers.fixed else ()
        of_list = any(each.trait == "untraced" for each in found)  # that it is Python's: arrays take any number there
        mine.complain(*(unfit(instance, name, of_list=of_list) for name in sorted(wrong)))
        if not outcome.sized:
            mine.complain(*found)

    def _call(self, mine: Round, place: tuple[str, int], call: ir.Call, member: Callable[[Key], Round | None]) -> None:
        static = static_arguments(call, self.statics, self.program)
        values = {parameter: mine.known(given) for parameter, given in static.items()}
        parameters = self.program.function(call.function).parameters
        given = dict(zip(parameters, call.arguments, strict=True))
        known = {p: mine.known(given[p]) for p in parameters}
        types = {p: self._argument(mine, given[p], call.span) if p not in values else known[p] for p in parameters}
        if None in values.values():
            return
        method = self.actions.environment.methods.get(call.function)
        if method is not None and not _has_method(types[parameters[0]], method):
            mine.complain(complaints.other_method(method, given[parameters[0]], types[parameters[0]], call.span))
            return
        for parameter, value in values.items():
            why = _unusable(value)
            if why:
                mine.complain(complaints.not_static(call.function, parameter, why, call.span))
                return
        if call.function in self.cycle_of[mine.instance.function.name]:
            fixed = tuple(value for value in values.values() if isinstance(value, Static))
            key = (call.function, fixed, empty_parameters({p: t for p, t in types.items() if p not in values}))
            callee = member(key)
            if callee is None:
                mine.complain(complaints.too_many(call.function, tuple(values), MAX_SPECIALISATIONS, call.span))
                return
            for parameter, type_ in types.items():
                value = known[parameter]
                callee.bind(parameter, value if isinstance(value, Static) else type_, call.span)
            target = callee.instance
        elif None in types.values():
            return
        else:
            numbers = {p: k for p, k in known.items() if p not in values and isinstance(k, Static)}
            target = self.sized_instance(call.function, tuple(types.values()), numbers)
        for parameter in sized_parameters(target) - values.keys():
            mine.instance.sized.setdefault(given[parameter], call.span)
        mine.instance.calls[place] = target
        for output, result in zip(call.outputs, target.results, strict=True):
            mine.bind(output, result, call.span)

    def _argument(self, mine: Round, name: str, span: Span | None) -> Known | None:
        """What a call hands over: a type, or the very value of what is none of a lane's, a text or a function."""
        known = mine.known(name)
        if isinstance(known, Static) and plain(known) is None and not _unusable(known):
            return known
        return self._plain(mine, name, span)

    def _plain(self, mine: Round, name: str, span: Span | None) -> Type | None:
        """The type of a variable that must be a lane's value here."""
        known = mine.known(name)
        if known is not None and plain(known) is None:
            user = mine.instance.users.get(name, name)
            mine.complain(complaints.not_kept(user, known, span))
        return plain(known)

    def _never_returning(self, instance: Instance) -> Iterator[Diagnostic]:
        """That the instance never returns, where its results stayed unknown though nothing else is wrong with it."""
        if None in instance.results:
            unknown = (
                op.span
                for block in instance.function.blocks
                if block.label in instance.reached
                for op in block.ops
                if isinstance(op, ir.Call) and any(instance.known(output) is None for output in op.outputs)
            )
            yield complaints.never_returns(instance.function.name, next(unknown, instance.function.span))


def empty_parameters(given: Mapping[str, Known | None]) -> frozenset[str]:
    """The parameters that are given None: a fact of each call, by which functions of a cycle are specialised, too."""
    return frozenset(name for name, known in given.items() if known is not None and plain(known) == NONE)


def _has_method(known: Known | None, method: Method) -> bool:
    """Whether a value is an object whose method or property of that name this is; what is not known yet may be one."""
    if known is None:
        return True
    cls = known.constructor if isinstance(known, StructType) else None
    is_behind = cls is not None and (method.behind is None or method.behind in cls.__mro__)
    return cls is not None and is_behind and Method.of(cls, method.name, method.behind) == method


def _unusable(value: Known | None) -> str:
    """Why `value` cannot be a static argument, "" if it can."""
    if not isinstance(value, Static):
        return f"is {value}, a value that lanes compute" if value is not None else ""
    try:
        hash(value)
    except TypeError as error:
        return f"cannot be hashed: {error}"
    return ""


def _is_mask(type_: Type | None) -> bool:
    """Whether an index of this type is an array of bools."""
    return isinstance(type_, TensorType) and type_.dtype == "bool" and bool(type_.shape)
