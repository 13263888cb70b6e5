"""Statements about lists, sets, dicts and deques whose length differs by lane, None in some lanes, generators, copies.

The numbers of elements are not known when a program is written, so what is read from a list is guarded, mostly.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.programs.control import Control
from tests.programs.writer import NUMBER, ROW, WHOLE, Function, Grown, List, Object, Type, Variable

POINT = Object("Point")
USES = {
    "number": "v",
    "pair": "v[0] + 2.0 * v[1]",
    "row": "1.0 * v.sum() + v[0]",
    "list": "sum(v) + 3.0 * len(v)",
    "point": "v.x + 2.0 * v.y",
}
"""The number that stands for an element `v` of each kind."""
LIBRARY = {
    **{
        f"digest_{of}": f"def digest_{of}(xs):\n    t = 16.0 * len(xs)\n    for i, v in enumerate(xs):\n"
        f"        t += (i + 1.0) * ({use})\n    return t\n"
        for of, use in USES.items()
    },
    "grow": "def grow(xs, e):\n    xs.append(e)\n    return len(xs)\n",
    "more": "def more(xs, n, e):\n    if n > 0:\n        xs.append(e)\n        more(xs, n - 1, e)\n    return xs\n",
    "spare": "def spare(xs, e):\n    if len(xs) > 2:\n        xs.pop()\n        return xs[:]\n    xs.insert(0, e)\n"
    "    return xs\n",
    "upto": "def upto(n, v):\n    i = 0\n    while i < n:\n        yield v + i\n        i += 1\n",
    "both": "def both(n, v):\n    yield v\n    yield from upto(n, v)\n    yield -v\n",
    "noted": "def noted(n, xs):\n    for i in range(n):\n        xs.append(1.0 * i)\n        yield len(xs) + 0.5\n",
}
NEEDS = {"both": "upto"}


class Lengths(Control):
    """Writes them."""

    # -- lists ---------------------------------------------------------------------------------------------------------

    def call_in(self, name: str, arguments: str) -> str:
        """A call of a function of the library."""
        for each in (NEEDS.get(name), name):
            if each and not any(known == each for known, *_ in self.module.functions):
                self.module.functions.append((each, Function((), None), LIBRARY[each]))
        return f"{name}({arguments})"

    def grown(self, of: str = "") -> list[tuple[str, str]]:
        """The lists in scope whose length differs by lane, with the kinds of their elements."""
        found = [(each.name, each.type.of) for each in self.scope if isinstance(each.type, Grown)]
        return [each for each in found if not of or each[1] == of]

    def an_element(self, of: str) -> str:
        """A new element, which may have another name."""
        match of:
            case "number":
                return self.number(0)
            case "pair":
                return f"({self.number(0)}, {self.number(0)})"
            case "list":
                return f"[{self.number(0)}]"
            case "row":
                return self.value(ROW, shared=self.chance(2))
        return self.value(POINT, shared=self.chance(2))

    def count(self) -> str:
        """A number of turns of a loop: as many as the lane says."""
        return self.pick([*self.leading_to(WHOLE), "2"])

    def a_grown(self, of: str) -> str:
        """A list whose length differs by lane: one in scope, or a new one."""
        found = self.grown(of)
        if found and not self.chance(2):
            return self.pick(found)[0]
        name, i, e = self.module.fresh("xs"), self.module.fresh("i"), self.an_element(of)
        rows = self.leading_to(ROW)
        forms: list[list[str]] = [
            [f"{name} = []", f"for {i} in range({self.count()}):", f"    {name}.append({e})"],
            [f"{name} = [{e}]", f"while len({name}) < {self.count()}:", f"    {name}.append({self.an_element(of)})"],
            [f"{name} = [{e}]", f"if {self.condition()}:", f"    {name}.append({self.an_element(of)})"],
        ]
        if of == "number":
            forms += [[f"{name} = [1.0 * {i} for {i} in range({self.count()})]"]]
            forms += [[f"{name} = [{i} for {i} in {row} if {i} > 0.0]"] for row in rows[:1]]
            forms += [[f"{name} = [*{self.generated()}]"]] if self.has("generators") else []
        for line in self.pick(forms):
            self.line(line)
        self.scope.append(Variable(name, Grown(of)))
        return name

    def grown_list(self) -> None:
        """A list whose length differs by lane changes, is read, gets a second name or gives another list."""
        of = self.pick(["number", "number", *USES])
        name, use = self.a_grown(of), USES[of]
        v, t = self.module.fresh("v"), self.a_number()
        used = use.replace("v", v)
        place = self.pick(["-1", "0", f"{self.count()} % len({name})", f"len({name}) // 2"])
        e = self.an_element(of)
        forms: list[list[str]] = [
            [f"if {self.condition()}:", f"    {name}.append({e})"],
            [
                f"for {v} in range({self.count()}):",
                f"    {name}.append({e})",
                f"    if {self.condition()}:",
                "        break",
            ],
            [f"{name}.{self.pick(['reverse()', f'insert(0, {e})', f'extend({name})', f'insert(1, {e})'])}"],
            [f"if {self.condition()}:", f"    {name}.clear()"],
            [f"if len({name}) > 1:", f"    {name}.append({name}.pop(0))"],
            [f"if {name}:", f"    {v} = {name}.pop({self.pick(['', '0', '-1'])})", f"    {t} += {used}"],
            [
                f"while len({name}) > {self.pick(['1', '2', self.count()])}:",
                f"    {v} = {name}.pop()",
                f"    {t} -= {used}",
            ],
            [f"if {name}:", f"    {v} = {name}[{place}]", f"    {t} = {t} * 0.5 + {used}"],
            [f"if {name}:", f"    {name}[{place}] = {e}"],
            [f"for {v} in {name}:", f"    {t} += {used}", f"    if {t} > {self.number(0)}:", "        break"],
            [f"{t} += {self.call_in('grow', f'{name}, {e}')} - len({name})"],
            [f"{self.call_in('more', f'{name}, {self.count()}, {e}')}.append({self.an_element(of)})"],
            [
                f"{v} = {self.call_in('spare', f'{name}, {e}')}",
                f"{v}.append({self.an_element(of)})",
                f"{t} += len({v})",
            ],
            [f"{v} = {name}[{self.count()}]", f"{t} += {used}"],
        ]
        if of == "number":
            forms += [
                [f"{t} = {self.pick(['sum', 'len', 'any'])}({name}) + 0.5"],
                [f"{t} = {self.pick(['max', 'min'])}({name}, default={self.number(0)})"],
                [f"{name}.sort()"],
                [f"if {self.number(0)} in {name}:", f"    {t} += {name}.count({self.number(0)})"],
                [f"{t} = sum([{v} * 0.5 for {v} in {name} if {v} < {self.number(0)}])"],
                [f"if {name}:", f"    {name}[{place}] += {self.number(0)}"],
                [f"if len({name}) > 1:", f"    {name}[0] += {name}.pop()"],
                [f"if len({name}) > 1:", f"    {t} = {name}.pop() - {name}.pop() * len({name})"],
                [f"{name} += [{self.number(0)}] * 2"],
            ]
        else:
            change = {"row": "[1] = ", "list": ".append", "point": ".x += "}.get(of, "")
            number = self.number(0)
            changed = f"{change}({number})" if of == "list" else f"{change}{number}"
            if change:
                forms += [
                    [f"for {v} in {name}:", f"    {v}{changed}"],
                    [f"if {name}:", f"    {name}[{place}]{changed}"],
                    [f"if {name}:", f"    {v} = {name}[{place}]", f"    {v}{changed}"],
                ] * 2
        for line in self.pick(forms):
            self.line(line)
        if self.chance(3):
            self.another(name, of)

    def another(self, name: str, of: str) -> None:
        """Another list, or another name of one, and a change of one of them."""
        others = [each for each, _ in self.grown(of)]
        if len(others) > 1 and self.own(name) and self.may_rebind() and self.chance(4):
            with self.block(f"if {self.condition()}:"):
                self.line(f"{name} = {self.pick(others)}")
        else:
            forms = ["{}", "{}[1:]", "{}[:-1]", "{}[::-1]", "{}.copy()", "list({})", "{} + {}", "sorted({})", "{}[:2]"]
            if of != "number":
                forms.remove("sorted({})")
            made = self.pick(forms).format(name, name)
            name = self.module.fresh("xs")
            self.line(f"{name} = {made}")
            self.scope.append(Variable(name, Grown(of)))
        self.line(f"{name}.append({self.an_element(of)})")

    def a_number(self) -> str:
        """The name of a number that may be assigned."""
        names = [each for each in self.leading_to(NUMBER, storable=True) if each.isidentifier()]
        return self.pick(names) if names else self.new(NUMBER, self.number(0))

    def digests(self) -> list[str]:
        """A number for each list in scope, by which its elements and their order show."""
        return [self.call_in(f"digest_{of}", name) for name, of in self.grown()[:6]]

    # -- other containers ----------------------------------------------------------------------------------------------

    def collected(self) -> None:
        """A set, a dict or a deque whose length differs by lane, made and used."""
        name, i, t = self.module.fresh("c"), self.module.fresh("i"), self.a_number()
        key = self.pick([f"{i} % 2", f"{i} * {i} % 3", f"{self.count()} - {i}", f"{i}"])
        loop = f"for {i} in range({self.count()} + {self.draw(0, 2)}):"
        number = self.number(0)
        forms: list[list[str]] = [
            [f"{name} = set()", loop, f"    {name}.add({key})", f"{t} += len({name}) + 0.5 * sum({name})"],
            [
                f"{name} = {{{self.count()}}}",
                loop,
                f"    if {key} in {name}:",
                f"        {t} += 1.0",
                f"    {name}.{self.pick(['add', 'discard'])}({key})",
                f"{t} += max({name}, default=-1)",
            ],
            [
                f"{name} = {{}}",
                loop,
                f"    {name}[{key}] = {name}.get({key}, {number}) + 1.0",
                f"for {i} in {name}:",
                f"    {t} += {name}[{i}] * ({i} + 1)",
            ],
            [
                f"{name} = {{}}",
                loop,
                f"    {name}.setdefault({key}, []).append({number})",
                f"{t} += sum(len({i}) for {i} in {name}.values()) + 0.25 * len({name})",
            ],
            [
                f"{name} = collections.defaultdict(float)",
                loop,
                f"    {name}[{key}] += {number}",
                f"for {i}, {t} in {name}.items():",
                f"    {t} += {i}",
            ],
            [
                f"{name} = collections.deque([{number}])",
                loop,
                f"    {name}.{self.pick(['append', 'appendleft'])}({i} + 0.5)",
                f"    if {self.condition()}:",
                f"        {t} -= {name}.{self.pick(['popleft', 'pop'])}()",
                f"{t} += len({name}) + sum({name})",
            ],
        ]
        for line in self.pick(forms):
            self.line(line)

    # -- None ----------------------------------------------------------------------------------------------------------

    def absent(self) -> None:
        """A name that is None in some lanes, asked about, used, and changed where it is something."""
        type_: Type = self.pick([NUMBER, ROW, POINT])
        name, t, i = self.module.fresh("w"), self.a_number(), self.module.fresh("i")
        value = self.value(type_, shared=True)
        begin = self.pick(
            [
                [f"{name} = None", f"if {self.condition()}:", f"    {name} = {value}"],
                [f"{name} = {value} if {self.condition()} else None"],
                [f"{name} = None", f"for {i} in range({self.count()}):", f"    {name} = {value}"],
                [f"{name} = {value}", f"if {self.condition()}:", f"    {name} = None"],
            ]
        )
        use = {NUMBER: name, ROW: f"{name}[1]", POINT: f"{name}.x"}[type_]
        change = f"{use} {self.pick(['=', '+='])} {self.number(0)}"
        end = self.pick(
            [
                [f"if {name} is not None:", f"    {change}", f"    {t} += {use}"],
                [f"{t} = {self.number(0)} if {name} is None else {use} + 1.0"],
                [f"if {name} is None:", f"    {name} = {self.value(type_, shared=False)}", change, f"{t} += {use}"],
                [f"if {name} is None or {use} > {self.number(0)}:", f"    {t} += 4.0"],
                [f"while {name} is not None:", f"    {t} += {use}", f"    {name} = None"],
            ]
        )
        for line in [*begin, *end]:
            self.line(line)

    # -- generators ----------------------------------------------------------------------------------------------------

    def generated(self) -> str:
        """A generator that gives numbers."""
        name = self.pick(["upto", "upto", "both"])
        return self.call_in(name, f"{self.count()}, {self.number(0)}")

    def generator(self) -> None:
        """The items of a generator, used at once, in a loop, or one by one."""
        t, v, one = self.a_number(), self.module.fresh("v"), self.generated()
        forms: list[list[str]] = [
            [f"{t} = {self.pick(['sum', 'any', 'all'])}({one}) + 0.5"],
            [f"{t} = {self.pick(['max', 'min'])}({one}, default=9.0)"],
            [f"for {v} in {one}:", f"    if {v} > {self.number(0)}:", "        break", f"    {t} += {v}"],
            [f"{v} = {one}", f"{t} += next({v}, 5.0)"],
            [f"for {v}, {t} in zip({one}, range(3)):", f"    {t} += {v}"],
            [f"{t} = sum({v} * 0.5 for {v} in {one} if {v} < {self.number(0)})"],
        ]
        lists = self.grown("number")
        if lists:
            name = self.pick(lists)[0]
            inner = self.call_in("noted", f"{self.count()}, {name}")
            forms += [
                [
                    f"for {v} in {inner}:",
                    f"    if {v} > {self.count()} + 1:",
                    "        break",
                    f"    {t} += len({name})",
                ],
                [f"{t} = sum({inner}) - len({name})"],
            ] * 2
        for line in self.pick(forms):
            self.line(line)

    # -- copies, keys, turns -------------------------------------------------------------------------------------------

    def copied(self) -> None:
        """A copy, shallow or deep, of what has names, and a store into one of the two."""
        self.module.copies = True
        type_: Type = self.pick([ROW, POINT, List(ROW, 2, fixed=True), List(POINT, 2, fixed=True), Object("Grid")])
        if isinstance(type_, List):
            source = self.new(type_, self.made(type_))
        else:
            source = self.pick(self.leading_to(type_) or [self.new(type_, self.made(type_))])
        name = self.new(type_, f"copy.{self.pick(['copy', 'deepcopy'])}({source})")
        match type_:
            case List(of, _):
                self.store(f"{self.pick([name, source])}[{self.draw(0, 1)}]", of)
            case Object("Grid"):
                self.store(f"{self.pick([name, source])}.m", ROW)
            case _:
                self.store(self.pick([name, source]), type_)

    def keyed(self) -> None:
        """Objects or arrays by a key that is the lane's, and a change of the one that is found."""
        type_: Type = self.pick([POINT, POINT, NUMBER])
        parts = [self.part(type_) for _ in range(2)]
        name, key = self.module.fresh("d"), f"{self.count()} % 2"
        self.line(f"{name} = {{0: {parts[0]}, 1: {parts[1]}}}")
        if type_ == NUMBER:
            self.line(f"{name}[{key}] += {self.number(0)}")
            self.new(NUMBER, f"{name}[0] - 2.0 * {name}[1]")
        elif self.chance(5):
            self.line(f"{name}[{key}].x += {self.number(0)}")
        else:
            self.line(f"{self.new(POINT, f'{name}[{key}]')}.x = {self.number(0)}")

    def turned(self) -> None:
        """Another array or object under a name after a turn of a loop; then a store through it or another name."""
        type_: Type = self.pick([ROW, ROW, POINT])
        while len(self.leading_to(type_)) < 2:
            self.new(type_, self.made(type_))
        own = [each for each in self.leading_to(type_, storable=True) if each.isidentifier()]
        place = self.pick(own) if own else self.new(type_, self.pick(self.leading_to(type_)))
        i, other = self.module.fresh("i"), self.pick(self.leading_to(type_))
        heads = [f"for {i} in range({self.count()}):", f"while {self.a_number()} > 1.0:"]
        head = self.pick(heads)
        with self.block(head):
            if head.startswith("while"):
                self.line(f"{head.split()[1]} -= 1.0")
            if self.chance(4):
                self.store(self.pick([place, other]), type_)
            if self.chance(3):
                self.line(f"if {self.condition()}:")
                self.line(f"    {self.pick(['break', 'continue'])}")
            forms = [
                f"{place} = {other}",
                f"{place} = {self.value(type_, shared=True)}",
                f"{place} = {self.made(type_)}",
            ]
            if other in own and other != place:
                forms += [f"{place}, {other} = {other}, {place}"] * 2
            self.line(self.pick(forms))
            if self.chance(2):
                self.store(self.pick([place, other]), type_)
        if self.chance(7):
            self.store(self.pick([place, place, other]), type_)

    def of_lengths(self) -> dict[str, Callable[[], object]]:
        """The kinds of statements that are here."""
        return {
            "grown lists": self.grown_list,
            "grown sets and dicts": self.collected,
            "None": self.absent,
            "generators": self.generator,
            "copies": self.copied,
            "keys": self.keyed,
            "turns": self.turned,
        }
