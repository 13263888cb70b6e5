"""The expression of an op, as a tree: operators and callables with operands, which are inputs, free names, constants.

    expression ::= Input place                          an input of the op, by its place among these
                 | Name                                 a free name: a global, a built-in, a captured array
                 | Constant                             a number, a string, True, False, None, ...
                 | Apply function arguments keywords    an Operator or an expression, and what it is applied to
                 | Attribute value name
                 | Items kind items keys                a tuple, a list, a set or a dict
                 | Slice start stop step                in an index
                 | Starred value                        in arguments and items
                 | Delayed value                        a function of no arguments: `lambda: value`
                 | Written parts                        what only Python's text says: comprehensions, lambdas, f-strings

Arguments of `if` are the condition and the two values, of `[]` what is indexed and the index. Each variable is one
input, in the order in which the expression first reads it, so that equal expressions do the same with their inputs, and
renaming an op's inputs renames what it reads. What is made before that is known reads names: `resolved`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Input:
    """An input of the op, by its place."""

    place: int


@dataclass(frozen=True, slots=True)
class Name:
    """A name that is none of the op's inputs."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that Python's text has a word for; `text` is that: 1, 1.0 and True differ, and 0.0 and -0.0."""

    value: Any = field(compare=False)
    text: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", "..." if self.value is ... else repr(self.value))


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator, by its symbol: `+` of two operands or of one, `<`, `not`, `and`, `if`, `[]`, ..."""

    symbol: str


@dataclass(frozen=True, slots=True)
class Apply:
    """The application of a function to arguments; a keyword without a name is `**value`."""

    function: Operator | Expression
    arguments: tuple[Expression, ...]
    keywords: tuple[tuple[str | None, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a value."""

    value: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Items:
    """A tuple, a list, a set, or a dict with as many keys; a key of None is `**value`."""

    kind: str
    items: tuple[Expression, ...]
    keys: tuple[Expression | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Slice:
    """`start:stop:step` in an index."""

    start: Expression | None = None
    stop: Expression | None = None
    step: Expression | None = None


@dataclass(frozen=True, slots=True)
class Starred:
    """`*value` among arguments or items."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Delayed:
    """`lambda: value`: an expression that is evaluated by its receiver, or not at all."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Inner:
    """A variable of a text's own, by its number; it goes by its name, or by one like it that nothing else has."""

    number: int
    name: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Written:
    """Python's text, with the parts that it reads in place; one that is not `closed` gets parentheses inside others.

    It is in programs without types only: nothing looks into it.
    """

    parts: tuple[str | Input | Name | Inner, ...]
    is_closed: bool = True


Expression = Input | Name | Constant | Apply | Attribute | Items | Slice | Starred | Delayed | Written


def constant_of(value: Any) -> Expression:
    """A number or another constant, infinities and NaN among them, as one of Python's own classes."""
    classes: tuple[Any, ...] = (bool, int, float, complex)
    value = next((cls(value) for cls in classes if isinstance(value, cls)), value)
    if isinstance(value, float) and not math.isfinite(value):
        return call("float", Constant(str(value)))
    if isinstance(value, complex):
        is_finite = math.isfinite(value.real) and math.isfinite(value.imag)
        if not is_finite or repr(ast.literal_eval(repr(value))) != repr(value):  # -0.0 - 2j is no sum of its parts
            return call("complex", constant_of(value.real), constant_of(value.imag))
    return Constant(value)


def operation(symbol: str, *arguments: Expression) -> Apply:
    """Apply an operator."""
    return Apply(Operator(symbol), arguments)


def call(name: str, *arguments: Expression) -> Apply:
    """A call of a free name."""
    return Apply(Name(name), arguments)


def dotted(path: str) -> Name | Attribute:
    """A free name and attributes behind it, `np.linalg.norm`."""
    root, *attributes = path.split(".")
    found: Name | Attribute = Name(root)
    for each in attributes:
        found = Attribute(found, each)
    return found


def path_of(expression: Operator | Expression) -> str | None:
    """`np.linalg.norm` for a free name with attributes behind it; None for all else."""
    match expression:
        case Name(name):
            return name
        case Attribute(value, name):
            root = path_of(value)
            return None if root is None else f"{root}.{name}"
    return None


# -- walks -------------------------------------------------------------------------------------------------------------


def parts_of(expression: Expression) -> Iterator[Expression]:
    """The expressions right inside of one, in the order in which they are evaluated."""
    match expression:
        case Apply(function, arguments, keywords):
            if not isinstance(function, Operator):
                yield function
            yield from arguments
            for _, value in keywords:
                yield value
        case Attribute(value) | Starred(value) | Delayed(value):
            yield value
        case Items("dict", items, keys):
            for key, value in zip(keys, items, strict=True):
                if key is not None:
                    yield key
                yield value
        case Items(_, items):
            yield from items
        case Slice(start, stop, step):
            yield from (each for each in (start, stop, step) if each is not None)
        case Written(parts):
            yield from (each for each in parts if isinstance(each, Input | Name))


def walk(expression: Expression) -> Iterator[Expression]:
    """An expression and all those inside of it, in the order in which they are evaluated."""
    yield expression
    for each in parts_of(expression):
        yield from walk(each)


def mapped(expression: Expression, function: Callable[[Expression], Expression]) -> Expression:
    """Return an expression with each of its parts replaced by `function` of it."""
    match expression:
        case Apply(of, arguments, keywords):
            return Apply(
                of if isinstance(of, Operator) else function(of),
                tuple(map(function, arguments)),
                tuple((name, function(value)) for name, value in keywords),
            )
        case Attribute(value) | Starred(value) | Delayed(value):
            return replace(expression, value=function(value))
        case Items(kind, items, keys):
            pairs = zip(keys, items, strict=True) if kind == "dict" else ((None, item) for item in items)
            made = [(None if key is None else function(key), function(item)) for key, item in pairs]
            return Items(kind, tuple(item for _, item in made), tuple(key for key, _ in made) if kind == "dict" else ())
        case Slice(start, stop, step):
            return Slice(*(None if each is None else function(each) for each in (start, stop, step)))
        case Written(parts):
            filled = (function(each) if isinstance(each, Input | Name) else each for each in parts)
            return replace(expression, parts=tuple(filled))  # type: ignore[arg-type]
    return expression


# -- names and inputs --------------------------------------------------------------------------------------------------


def resolved(expression: Expression, variables: Collection[str]) -> tuple[Expression, Names]:
    """An expression whose names that are `variables` are inputs, and these; it has had none."""
    places: dict[str, int] = {}

    def resolve(part: Expression) -> Expression:
        if isinstance(part, Name):
            return Input(places.setdefault(part.name, len(places))) if part.name in variables else part
        return part if isinstance(part, Constant) else mapped(part, resolve)

    return resolve(expression), tuple(places)


def filled(expression: Expression, inputs: Sequence[Expression]) -> Expression:
    """An expression with others in the place of its inputs."""

    def fill(part: Expression) -> Expression:
        if isinstance(part, Input):
            return inputs[part.place]
        return part if isinstance(part, Constant | Name) else mapped(part, fill)

    return fill(expression)


def merged(expression: Expression, inputs: Names) -> tuple[Expression, Names]:
    """An expression and its inputs, of which some may have become the same."""
    distinct = tuple(dict.fromkeys(inputs))
    if len(distinct) == len(inputs):
        return expression, inputs
    return filled(expression, [Input(distinct.index(name)) for name in inputs]), distinct


def renamed_free(expression: Expression, names: Mapping[str, str]) -> Expression:
    """An expression that reads other free names."""

    def rename(part: Expression) -> Expression:
        if isinstance(part, Name):
            return Name(names.get(part.name, part.name))
        return part if isinstance(part, Constant | Input) else mapped(part, rename)

    return rename(expression)


def free_names(expression: Expression) -> Names:
    """The names that an expression reads beside its inputs, in the order in which it does."""
    return tuple(dict.fromkeys(each.name for each in walk(expression) if isinstance(each, Name)))


def inputs_read(expression: Expression) -> tuple[int, ...]:
    """The places of the inputs that an expression reads, in the order in which it does."""
    return tuple(dict.fromkeys(each.place for each in walk(expression) if isinstance(each, Input)))


def own_names(expression: Expression) -> frozenset[str]:
    """The names of variables that texts in an expression have for themselves."""
    texts = (each for each in walk(expression) if isinstance(each, Written))
    return frozenset(part.name for text in texts for part in text.parts if isinstance(part, Inner))
