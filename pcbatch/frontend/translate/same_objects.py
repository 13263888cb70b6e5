"""Facts about which places may hold the same object, and what becomes of them when names are assigned."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence, Set

from pcbatch.frontend.translate.references import ANY, LIMIT, NEW, Path, Place, Reference, Taking

Fact = tuple[Place, Place]
"""Two places, in order, that may hold the same object (and then also the same parts)."""
Facts = frozenset[Fact]
MOST = 1000
"""Facts that are followed where every element store is assumed to be into a list: what is known has under 400."""


class TooManyFactsError(Exception):
    """What is assumed has so many consequences that it takes less time to ask the types."""


@functools.lru_cache(maxsize=1 << 16)
def fact_of(first: Place, second: Place) -> Fact:
    """That two places may hold the same object."""
    return (first, second) if _order(first) <= _order(second) else (second, first)


def _order(place: Place) -> tuple[str, tuple[str, ...]]:
    return place[0], tuple(map(repr, place[1]))


def is_implied(fact: Fact, facts: Facts) -> bool:
    """Whether two places are parts, by the same steps, of what is one object by `facts`, or of one variable."""
    (name, path), (name2, path2) = fact
    while path and path2 and path[-1] == path2[-1]:
        path, path2 = path[:-1], path2[:-1]
        if (name, path) == (name2, path2) or fact_of((name, path), (name2, path2)) in facts:
            return True
    return False


def may_be_inside(place: Place, whole: Place) -> bool:
    """Whether a place may be `whole`, or a part of it: a step that is not known may be any."""
    steps = zip(place[1], whole[1], strict=False)
    return place[0] == whole[0] and len(place[1]) >= len(whole[1]) and all(a == b or ANY in (a, b) for a, b in steps)


def parts_related(name: str, facts: Facts, others: Set[str]) -> Iterator[str]:
    """The parts of variable `name`, as expressions, that may be one object with some part of one of `others`."""
    for fact in facts:
        for (first, path), (second, _) in (fact, fact[::-1]):
            if first == name and second in others:
                known = itertools.takewhile(lambda step: step != ANY, path)
                yield name + "".join(step if isinstance(step, str) else f"[{step}]" for step in known)


def facts_after(rebound: frozenset[str], taken: Sequence[Taking], facts: Facts) -> Facts:
    """What holds after names are rebound to what they take. One that is taken from itself keeps what it was, too."""
    unchanged = {name for name, origin in taken if origin == _whole(name)}
    rebound, taken = rebound - unchanged, [each for each in taken if each[1] != _whole(each[0])]
    kept = {fact for fact in facts if fact[0][0] not in rebound and fact[1][0] not in rebound}
    sources = {source for _, (_, (source, _)) in taken}
    near = [fact for fact in facts if fact[0][0] in sources or fact[1][0] in sources]
    paths: dict[tuple[str, str], list[tuple[Path, Path]]] = {}
    related: dict[str, list[tuple[Path, Place]]] = {name: [((), (name, ()))] for name in sources}
    for first, second in near:
        for (name, path), (other, path2) in ((first, second), (second, first)):
            paths.setdefault((name, other), []).append((path, path2))
            if name in sources:
                related[name].append((path, (other, path2)))
    # Every name that is not rebound keeps what it was.
    for name, (path, (source, inside)) in taken:
        for old, (other, path2) in related[source]:
            if other in rebound or other.startswith(NEW) or (met := _meet(inside, old)) is None:
                continue
            below, onward = met
            places = (name, (*path, *below)[:LIMIT]), (other, (*path2, *onward)[:LIMIT])
            if places[0] != places[1] or ANY in places[0][1]:
                kept.add(fact_of(*places))
    for new, other_new in itertools.product(taken, taken):
        kept.update(_meeting(new, other_new, paths))
    return frozenset(kept)


def _whole(name: str) -> Reference:
    """Where the value of a variable comes from that is taken from itself."""
    return (), (name, ())


def _meeting(
    first: Taking, second: Taking, paths: Mapping[tuple[str, str], Sequence[tuple[Path, Path]]]
) -> Iterator[Fact]:
    """The facts about two new values, from the old facts about the places that they are taken from.

    Of these there are the `paths` to two parts by the two names.

    Of one and the same taking they are what was known of two parts of its source. Where both places are one with a step
    that is not known, they are two elements of it: `[q] * 2`.
    """
    (name, (path, (source, inside))), (name2, (path2, (source2, inside2))) = first, second
    pairs: list[tuple[Path, Path]] = [((), ())] if source == source2 and first is not second else []
    for old, old2 in (*pairs, *paths.get((source, source2), ())):
        if (met := _meet(inside, old)) is None:
            continue
        below, onward = met
        if (met := _meet(inside2, (*old2, *onward))) is None:
            continue
        below2, further = met
        places = ((name, (*path, *below, *further)[:LIMIT]), (name2, (*path2, *below2)[:LIMIT]))
        if places[0] != places[1] or ANY in places[0][1]:
            yield fact_of(*places)


def _meet(first: Path, second: Path) -> tuple[Path, Path] | None:
    """What must be appended to each path so that both lead to the same part; None if they part before."""
    if any(a != b and ANY not in (a, b) for a, b in zip(first, second, strict=False)):
        return None
    return second[len(first) :], first[len(second) :]
