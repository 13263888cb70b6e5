"""Programs that were written from the documentation alone: each lane against the undecorated function."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.errors import CompileError

FOLDER = Path(__file__).parent / "programs_of_newcomers"
NAMES = {
    "finance": ["asian_option", "bootstrap", "forest", "heston", "stop_loss"],
    "games": ["board_walk", "elevators", "grundy", "tic_tac_toe", "vending"],
    "geometry": ["bresenham", "convex_hull", "pid", "quadtree", "ray"],
    "graphs": ["a_star", "bipartite_matching", "kruskal", "strong_components", "topological_order"],
    "sequences": ["coin_change", "heap_sort", "longest_increasing", "merge_sort", "radix_sort"],
    "shops": ["auction", "bank", "hospital", "inventory", "order_matching"],
    "solvers": ["annealing", "backward_euler", "brent", "fehlberg", "nelder_mead"],
    "statistics_and_biology": [
        "chinese_restaurant",
        "gated_kalman",
        "hmm_smoothing",
        "ising",
        "phylogeny",
        "sir_with_vaccination",
    ],
    "texts": ["cyk", "huffman", "json_depth", "lz78", "morse"],
}
REFUSED = {
    "quadtree": ("PCB301", "a tree that grows by lane: lists of children inside of objects inside of lists"),
}
QUICK = {
    "bank",
    "bipartite_matching",
    "board_walk",
    "brent",
    "bresenham",
    "elevators",
    "fehlberg",
    "forest",
    "gated_kalman",
    "grundy",
    "heap_sort",
    "hmm_smoothing",
    "json_depth",
    "lz78",
    "merge_sort",
    "morse",
    "nelder_mead",
    "phylogeny",
    "pid",
    "quadtree",
    "sir_with_vaccination",
    "strong_components",
    "tic_tac_toe",
    "topological_order",
    "vending",
}
"""Those that compile in a second or so."""


class Numpys:
    """`pcbatch.random`, whose draws are NumPy's."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(pcbatch.random, name)
        return lambda *given, **named: tf.nest.map_structure(lambda each: np.asarray(each)[()], found(*given, **named))


def loaded(theme: str, is_plain: bool, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of programs; with `is_plain` its functions are what they are without their decorators."""
    spec = importlib.util.spec_from_file_location(theme, FOLDER / f"{theme}.py")
    module = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as patch:
        if is_plain:
            patch.setattr(pcbatch, "autobatch", lambda function: function)
        spec.loader.exec_module(module)
    if is_plain and hasattr(module, "random"):
        module.random = Numpys()
    return module


def examples(arguments: list[Any]) -> list[list[Any]]:
    """The arguments of each lane: numbers of Python's, and arrays."""
    is_wide = any(isinstance(each, np.ndarray) and each.dtype == np.float64 for each in arguments)

    def lane(argument: Any, i: int) -> Any:
        found = np.asarray(argument)[i] if not isinstance(argument, list) else argument[i]
        if isinstance(found, float) and not is_wide:  # as a batch takes it
            return float(np.float32(found))
        return found.copy() if isinstance(found, np.ndarray) else found

    return [[lane(each, i) for each in arguments] for i in range(4)]


def assert_same(found: Any, wanted: Any, lane: int, where: str) -> None:
    """The lane's part of a result, of the same structure, dtypes apart."""
    if isinstance(found, pcbatch.Bounded):
        length = int(found.length[lane])
        assert length == len(wanted), where
        for k, each in enumerate(wanted):
            row = tf.nest.map_structure(lambda items, k=k: np.asarray(items)[:, k], found.items)
            assert_same(row, each, lane, f"{where}[{k}]")
    elif isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), where
        for key in wanted:
            assert_same(found[key], wanted[key], lane, f"{where}[{key!r}]")
    elif isinstance(wanted, tuple | list):
        assert len(found) == len(wanted), where
        for k, each in enumerate(wanted):
            assert_same(found[k], each, lane, f"{where}[{k}]")
    else:
        own, other = np.asarray(found)[lane], np.asarray(wanted)
        assert own.shape == other.shape, where
        assert (own.dtype.kind == "f") == (other.dtype.kind == "f"), where
        np.testing.assert_allclose(own.astype(float), other.astype(float), rtol=2e-4, atol=1e-4, err_msg=where)


CASES = [
    pytest.param(theme, name, id=name, marks=[] if name in QUICK else [pytest.mark.slow])
    for theme, names in NAMES.items()
    for name in names
]


def quadtree_of_lists(points):
    """`quadtree` as its refusal says: one list for each field, and nodes by number."""
    x, y, size, level, first = [0.0], [0.0], [1.0], [0], [-1]
    leaf = [0] * len(points)

    def child(node, p):
        half = size[node] / 2
        return first[node] + (2 if p[1] >= y[node] + half else 0) + (1 if p[0] >= x[node] + half else 0)

    for i, p in enumerate(points):
        node = 0
        while True:
            while first[node] >= 0:
                node = child(node, p)
            leaf[i] = node
            if sum(leaf[k] == node for k in range(i + 1)) <= 2 or size[node] <= 0.2:
                break
            first[node] = len(x)
            half = size[node] / 2
            for dy in (0, 1):
                for dx in (0, 1):
                    x.append(x[node] + dx * half)
                    y.append(y[node] + dy * half)
                    size.append(half)
                    level.append(level[node] + 1)
                    first.append(-1)
            for k in range(i + 1):
                if leaf[k] == node:
                    leaf[k] = child(node, points[k])
    return max(level)


@pytest.mark.slow
def test_the_advice_on_a_tree_that_grows_works(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, points = loaded("geometry", True, monkeypatch).PROGRAMS["quadtree"]
    found = pcbatch.autobatch(quadtree_of_lists)(points)
    assert found.numpy().tolist() == [plain(each) for each in points]


@pytest.mark.parametrize(("theme", "name"), CASES)
def test_each_lane_is_what_python_gives(theme: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batched, *arguments = loaded(theme, False, monkeypatch).PROGRAMS[name]
    if name in REFUSED:
        code, _ = REFUSED[name]
        with pytest.raises(CompileError, match=code) as caught:
            batched(*arguments)
        assert "one list for each of its fields" in caught.value.diagnostics[0].help
        return
    plain = loaded(theme, True, monkeypatch).PROGRAMS[name][0]
    run = batched.run(*arguments)
    failed = {each.lane for each in run.errors}
    for lane, example in enumerate(examples(arguments)):
        try:
            wanted = plain(*example)
        except (ValueError, IndexError, KeyError, ZeroDivisionError):
            assert lane in failed
            continue
        assert lane not in failed, run.errors
        assert_same(run.value, wanted, lane, f"{name}, lane {lane}: ")


def test_every_program_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    themes = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
    assert themes == sorted(NAMES)
    for theme in themes:
        assert sorted(loaded(theme, True, monkeypatch).PROGRAMS) == NAMES[theme]
    assert QUICK | REFUSED.keys() <= {name for names in NAMES.values() for name in names}
