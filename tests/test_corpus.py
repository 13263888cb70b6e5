"""Every corpus program in every mode, each lane against `f.single` on that lane's example."""

from __future__ import annotations

import ast
import itertools
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pcbatch import UsageError
from pcbatch.function import executing
from pcbatch.runtime.backends.tensorflow import graphs, xla_cpu
from pcbatch.runtime.costs.device import CPU, GPU
from tests import harness, program_features
from tests.harness import (
    AUTO,
    BATCH,
    CORPUS,
    EITHER,
    GRAPH,
    INTERPRETERS,
    KERNEL,
    LIMITS,
    LOCKSTEP,
    MACHINES,
    MIXED,
    MODES,
    NAMES,
    NATIVE,
    OTHER_STRATEGIES,
    PLAIN,
    REFERENCE,
    REFILL,
    TAPED,
    XLA,
    Lane,
    Mode,
    assert_same,
    check,
    example,
    expected,
    load,
    plain,
    run_python,
)
from tests.pairwise import covering, every_second, parts, sized, small_runs

SIZES = (0, 1, 3)
LENGTHS = (BATCH, 3, BATCH, 1)
"""The sizes that slow runs take in turn, but for none: then nothing is compared."""
FEATURES = program_features.of_corpus()
COSTS = {**dict.fromkeys(GRAPH, 2), **dict.fromkeys(XLA, 3), AUTO: 2}
"""Seconds per run, roughly and relatively: what decides how often a mode comes up in the runs of small batches."""
ONE_BY_ONE = (*REFERENCE, *INTERPRETERS)
"""Modes that run lanes one after another: programs take them in turn."""
IN_TURN = tuple(mode for mode in MODES if mode not in (AUTO, *ONE_BY_ONE))
OFTEN = 15
"""How many programs each of the other modes runs at least."""
DEAREST = (
    "called_objects", "comprehensions", "forward_functions", "inheritance", "keyed_by_calls", "methods_of_classes",
    "none_by_default", "reductions", "written_out_loops",
)  # fmt: skip
"""Programs that take 8 to 14 s to compile in one of the other modes: quickly in those that every program runs in."""
OTHERS = tuple(name for name in NAMES if name not in DEAREST)
SMALL_RUNS = (
    *small_runs(OTHERS, COSTS, *REFERENCE, SIZES),
    *((name, mode, size) for name in DEAREST for mode in REFERENCE for size in SIZES),
)
WITH_GROUPS = (
    "adaptive_simpson", "argument_order", "call_in_store", "called_objects", "comprehensions", "computed_defaults",
    "counted_maps", "fibonacci", "forward_functions", "function_arguments", "hanoi", "helpers", "inheritance",
    "keyed_by_calls", "keyword_default", "many_live", "mapped_calls", "method_calls", "methods_of_classes",
    "mixed_ints", "nested_functions", "none_by_default", "optional_arguments", "optional_values", "raise_fails",
    "static_arguments", "tak", "taken_methods", "tree_sum", "tribonacci", "tuple_call_results",
)  # fmt: skip
"""The programs with calls that can be made at the same time."""
FORKED_UNDER_XLA = ("call_in_store", "fibonacci", "many_live", "tak")
LONG_FORKED = (
    "called_objects", "comprehensions", "counted_maps", "forward_functions", "function_arguments", "helpers",
    "inheritance", "mapped_calls", "methods_of_classes", "mixed_ints", "nested_functions", "optional_arguments",
    "optional_values", "static_arguments",
)  # fmt: skip
"""Those of them that take seconds more to compile with their calls made at the same time."""
UNFORKED_XLA = tuple(name for name in WITH_GROUPS if name not in FORKED_UNDER_XLA)
FORKABLE = (*GRAPH, *XLA, *REFILL, *TAPED)
"""What calls that are made at the same time are crossed with."""
TURNS = tuple(
    (name, replace(mode, forks=name in WITH_GROUPS and name not in (LONG_FORKED if mode in GRAPH else UNFORKED_XLA)))
    for name, mode in zip(OTHERS[::2], itertools.cycle(IN_TURN), strict=False)
)
"""Calls that can be made at the same time are; under XLA in some programs only, as it takes long to compile others."""
QUICK_RUNS = (
    *((name, AUTO) for name in NAMES),
    *zip(NAMES, itertools.cycle(ONE_BY_ONE), strict=False),
    *TURNS,
)
"""Every program as users run it and one lane after another, every second one but the dearest in a further mode."""
_QUICKLY = (*((name, mode, BATCH) for name, mode in QUICK_RUNS), *SMALL_RUNS)
QUICKLY = tuple((name, replace(mode, forks=False), lanes) for name, mode, lanes in _QUICKLY)
LONG_RUNS = sized(covering(NAMES, MODES, FEATURES, [run[:2] for run in QUICKLY if run[2]]), LENGTHS)
"""With the quick runs, each feature of programs meets each mode."""
WITHOUT_NATIVE = frozenset(
    [
        "array_methods",
        "looped_call",
        "own_primitive",
    ]
)
"""Programs that the native form refuses: batched forms, linear equations, what XLA has no code for."""
_STRAIGHT = (
    "assignment_forms boolean_values builtin_numbers conditional_expressions constant_result division_by_zero "
    "elif_chain index_out_of_range numpy_functions rounding row_store self_assignment short_circuit_division "
    "slice_out_of_range store_out_of_range weak_joins"
)
STRAIGHT = _STRAIGHT.split()
"""Programs of one block."""
STRAIGHT_RUNS = tuple(
    (name, EITHER if place % 4 == 3 else PLAIN, (BATCH, 0, 1, 3)[(place + place // 4) % 4])
    for place, name in enumerate(STRAIGHT)
)
OTHER_STRAIGHT_RUNS = tuple(
    run for run in itertools.product(STRAIGHT, (PLAIN, EITHER), (BATCH, *SIZES)) if run not in set(STRAIGHT_RUNS)
)
PLAIN_RUNS = tuple((name, XLA[place % len(XLA)]) for place, name in enumerate(NAMES[::16]))
"""Programs and modes in which nothing is tuned to XLA's CPU compiler; everything that XLA compiles elsewhere is. The
dearest are slow."""
ON_GPU = (AUTO, *(mode for mode in (*REFILL, *TAPED) if mode.schedule == "auto"))
"""The modes that leave the form open, which on a GPU is one without guards."""
FORKED_ON_GPU = tuple(replace(mode, forks=True) for mode in (Mode("xla", "auto"), *ON_GPU[1:]))
_CHUNKS = dict.fromkeys(("gathered", "gathered_sync", "gathered_share", "moved_array", "moved_element"), 0.0)
CARDS = {
    "card": GPU,
    "dear": replace(GPU, guard=0.0, gathered=1e30),
    "chunks": replace(GPU, chunk_shared=2, chunk_least=2, chunk_most=2, **_CHUNKS),
}
"""A GPU, one on which looks cost nothing, so that all pieces are dear, and one on which few rows fill a chunk."""


def others(
    names: Sequence[str], settings: Sequence[Any], quick: Iterable[tuple[str, Any, int]]
) -> tuple[tuple[str, Any, int], ...]:
    """The slow runs of a family of settings: with the quick ones, each setting has batches of no lanes, too.

    In batches that have lanes, each program has one of the settings, and each feature of programs meets each option.
    """
    quick = tuple(quick)
    runs = sized(covering(names, settings, FEATURES, [run[:2] for run in quick if run[2]]), LENGTHS)
    empty = {setting for _, setting, lanes in quick if not lanes}
    rest = [setting for setting in settings if setting not in empty]
    return (*runs, *((names[5 * place % len(names)], setting, 0) for place, setting in enumerate(rest)))


GPU_SETTINGS = tuple(itertools.product(ON_GPU, CARDS))
FORKED_GPU_SETTINGS = tuple(itertools.product(FORKED_ON_GPU, CARDS))
GPU_RUNS = (
    *(
        (name, GPU_SETTINGS[place % len(GPU_SETTINGS)], (BATCH, *SIZES)[(place + place // 4) % 4])
        for place, name in enumerate(OTHERS[2::10])
    ),
    ("fibonacci", FORKED_GPU_SETTINGS[0], BATCH),
    ("tree_sum", FORKED_GPU_SETTINGS[4], 1),
)
"""Some programs as a GPU would run them, run on the CPU."""
FORKED_GPU_RUNS = tuple(
    (name, FORKED_GPU_SETTINGS[place % len(FORKED_GPU_SETTINGS)], LENGTHS[place // 3 % len(LENGTHS)])
    for place, name in enumerate(WITH_GROUPS)
)
LONG_GPU_RUNS = (*others(NAMES, GPU_SETTINGS, GPU_RUNS[:-2]), *FORKED_GPU_RUNS)
STRATEGY_RUNS = tuple(
    (name, OTHER_STRATEGIES[place % len(OTHER_STRATEGIES)], (BATCH, *SIZES)[place // len(OTHER_STRATEGIES) % 4])
    for place, name in enumerate(NAMES[3::8])
)
"""Some programs under the paper's other machines, each of these at each size."""
REFILL_RUNS = tuple(
    (name, REFILL[place % len(REFILL)], (BATCH, *SIZES)[place // len(REFILL) % 4])
    for place, name in enumerate(NAMES[5::16])
)
"""Some programs in pools that are refilled, each of these at each size."""
LONG_REFILL_RUNS = others(NAMES, REFILL, REFILL_RUNS)
LONG_STRATEGY_RUNS = others(NAMES, OTHER_STRATEGIES, STRATEGY_RUNS)
FORKED = tuple(replace(mode, forks=True) for mode in FORKABLE)
QUICK_FORKED_RUNS = tuple((name, mode, BATCH) for name, mode in TURNS if mode.forks)
FORKED_RUNS = others(WITH_GROUPS, FORKED, QUICK_FORKED_RUNS)
_FLOATS = tuple(name for name in NAMES if any(dtype.startswith("float") for dtype in load(name).dtypes))
TAPED_RUNS = tuple(
    (name, TAPED[place % len(TAPED)], (BATCH, *SIZES)[(place + place // 4) % 4]) for place, name in enumerate(_FLOATS)
)
QUICK_TAPED_RUNS = TAPED_RUNS[5::17]
"""Some programs of floats that a gradient tape watches, each way of putting aside in graph mode and under XLA."""
KERNEL_PROGRAMS = (
    "assert_fails", "depth_limit", "fibonacci", "step_limit",
)  # fmt: skip
"""Some as kernels for a GPU: faults, limits, stacks."""
LOCKSTEP_PROGRAMS = ("nested_loops", "short_circuit_index")
"""A loop in a loop, stores, faults."""
MIXED_RUNS = tuple((name, (BATCH, *SIZES)[place % 4]) for place, name in enumerate(NAMES[5::24]))
"""Some programs with native code between blocks in lockstep."""
OTHER_MIXED_RUNS = tuple(
    (name, LENGTHS[place % len(LENGTHS)])
    for place, name in enumerate(NAMES)
    if not any(run[0] == name and run[1] for run in MIXED_RUNS)
)


def test_the_corpus_has_its_size_and_form() -> None:
    programs = [load(name) for name in NAMES]
    assert len(programs) >= 45
    assert sum(program.twin is not None for program in programs) >= 15
    for name in NAMES:
        module = ast.parse((CORPUS / f"{name}.py").read_text())
        batched = [node.name for node in module.body if isinstance(node, ast.FunctionDef) and node.decorator_list]
        assert name in batched, "the static command line finds the entry by the file's name"
        assert ast.get_docstring(module), "a program says what it exercises"


@pytest.mark.parametrize("name", NAMES)
def test_single_agrees_with_the_twin_and_the_stated_status(name: str) -> None:
    program = load(name)
    arguments = program.arguments(BATCH)
    statuses = set()
    for lane, wanted in enumerate(expected(name, BATCH)):
        numbers = plain(example(arguments, lane))
        statuses.add(wanted.status)
        if wanted.status == "OK" and program.twin is not None:
            twin = Lane("OK", program.twin(*numbers))
            assert_same(wanted, twin, program.dtypes, program.twin_tolerance)
        elif wanted.status not in ("OK", *LIMITS):
            assert_same(run_python(program.function.single, example(arguments, lane)), wanted, program.dtypes)
    assert "OK" in statuses
    if program.states_failures:
        assert len(statuses) > 1, "a program that can fail does, in some lanes"


@pytest.mark.parametrize(("name", "mode"), QUICK_RUNS, ids=str)
def test_every_program(name: str, mode: Mode) -> None:
    check(name, mode, BATCH)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode", "lanes"), LONG_RUNS, ids=str)
def test_every_program_in_the_other_modes(name: str, mode: Mode, lanes: int) -> None:
    check(name, mode, lanes)


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [1, BATCH])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_NATIVE])
def test_native_programs(name: str, lanes: int) -> None:
    """Also those that are run in lockstep if nobody says otherwise, having no loops."""
    check(name, NATIVE, lanes)


@pytest.mark.parametrize("name", KERNEL_PROGRAMS)
def test_kernels(name: str) -> None:
    check(name, KERNEL, BATCH)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in (*WITHOUT_NATIVE, *KERNEL_PROGRAMS)])
def test_kernels_of_all_programs(name: str) -> None:
    check(name, KERNEL, (BATCH, *SIZES)[NAMES.index(name) % 4])


@pytest.mark.parametrize("name", sorted(WITHOUT_NATIVE))
def test_programs_without_native_form_are_refused_with_the_reason(name: str) -> None:
    program = load(name)
    with pytest.raises(UsageError, match=r"PCB534: .* cannot run in the native form: .+"):
        program.function.options(form="native").run(*program.arguments(2))


@pytest.mark.parametrize(("name", "mode", "lanes"), STRAIGHT_RUNS, ids=str)
def test_straight_programs(name: str, mode: Mode, lanes: int) -> None:
    """With the machine's loop left away they run as `AUTO` compiles them, too; here without XLA."""
    check(name, mode, lanes)
    (form,) = load(name).function.options(**mode.options).stats().forms
    assert form.startswith("straight, by ")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode", "lanes"), OTHER_STRAIGHT_RUNS, ids=str)
def test_straight_programs_in_the_other_ways(name: str, mode: Mode, lanes: int) -> None:
    check(name, mode, lanes)


@pytest.mark.parametrize(
    ("name", "mode"),
    [pytest.param(*run, marks=pytest.mark.slow if run[0] in DEAREST else ()) for run in PLAIN_RUNS],
    ids=str,
)
def test_programs_that_are_not_tuned(name: str, mode: Mode) -> None:
    with xla_cpu.switched(False):
        check(name, mode, BATCH)


def in_words(value: Any) -> str:
    """A part of a test's name."""
    return "-".join(map(str, value)) if isinstance(value, tuple) else str(value)


def check_on(card: str, name: str, mode: Mode, lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`check` of a program that no other card has compiled."""
    monkeypatch.setattr(executing, "device_of", lambda place: CARDS[card] if place == "GPU" else CPU)
    monkeypatch.delitem(sys.modules, f"tests.corpus.{name}", raising=False)
    monkeypatch.setattr(harness, "load", load.__wrapped__)
    with graphs.targeting("GPU"):
        check(name, mode, lanes)


@pytest.mark.parametrize(("name", "setting", "lanes"), GPU_RUNS, ids=in_words)
def test_programs_in_the_form_for_a_gpu(
    name: str, setting: tuple[Mode, str], lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mode, card = setting
    check_on(card, name, mode, lanes, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "setting", "lanes"), LONG_GPU_RUNS, ids=in_words)
def test_more_programs_in_the_form_for_a_gpu(
    name: str, setting: tuple[Mode, str], lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mode, card = setting
    check_on(card, name, mode, lanes, monkeypatch)


def test_cards_and_modes_come_up_quickly() -> None:
    quick = [setting for _, setting, _ in GPU_RUNS]
    assert {card for _, card in quick} == {*CARDS}
    assert {mode for mode, _ in quick} >= {*ON_GPU}


@pytest.mark.parametrize(("name", "mode", "lanes"), STRATEGY_RUNS, ids=str)
def test_programs_under_other_strategies(name: str, mode: Mode, lanes: int) -> None:
    check(name, mode, lanes)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode", "lanes"), LONG_STRATEGY_RUNS, ids=str)
def test_all_programs_under_other_strategies(name: str, mode: Mode, lanes: int) -> None:
    check(name, mode, lanes)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode", "lanes"), FORKED_RUNS, ids=str)
def test_programs_whose_calls_are_forked(name: str, mode: Mode, lanes: int) -> None:
    check(name, mode, lanes)


@pytest.mark.slow
def test_calls_are_forked_in_these_programs_alone() -> None:
    found = []
    for name in NAMES:
        function = load(name).function.options(form="lockstep", fork=True)
        if function.pipeline(*load(name).arguments(3)).machine.form.endswith("forked"):
            found.append(name)
    assert found == list(WITH_GROUPS)


@pytest.mark.parametrize(("name", "mode", "lanes"), REFILL_RUNS, ids=str)
def test_programs_that_are_refilled(name: str, mode: Mode, lanes: int) -> None:
    check(name, mode, lanes)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode", "lanes"), LONG_REFILL_RUNS, ids=str)
def test_all_programs_refilled(name: str, mode: Mode, lanes: int) -> None:
    check(name, mode, lanes)


@pytest.mark.parametrize(
    ("name", "mode", "lanes"),
    [pytest.param(*run, marks=() if run in QUICK_TAPED_RUNS else pytest.mark.slow) for run in TAPED_RUNS],
    ids=str,
)
def test_programs_that_a_tape_watches(name: str, mode: Mode, lanes: int) -> None:
    check(name, mode, lanes)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in LOCKSTEP_PROGRAMS else pytest.mark.slow) for name in NAMES]
)
def test_programs_in_lockstep(name: str) -> None:
    check(name, LOCKSTEP, BATCH)


@pytest.mark.parametrize(("name", "lanes"), MIXED_RUNS)
def test_mixed_programs(name: str, lanes: int) -> None:
    check(name, MIXED, lanes)
    if lanes:
        (form,) = load(name).function.options(**MIXED.options).stats().forms
        assert form.startswith("mixed: ")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lanes"), OTHER_MIXED_RUNS)
def test_all_mixed_programs(name: str, lanes: int) -> None:
    """All that have blocks of which native code is made."""
    check(name, MIXED, lanes)


@pytest.mark.parametrize(("name", "mode", "lanes"), SMALL_RUNS, ids=lambda value: str(value))
def test_small_batches(name: str, mode: Mode, lanes: int) -> None:
    check(name, mode, lanes)


def test_small_batches_cover_all_pairs() -> None:
    assert {(name, size) for name, _, size in SMALL_RUNS} == set(itertools.product(NAMES, SIZES))
    assert {(mode, size) for _, mode, size in SMALL_RUNS} == set(itertools.product(MACHINES, SIZES))
    compiled = [(name, mode) for name, mode, _ in SMALL_RUNS if mode in COSTS]
    assert [name for name, _ in compiled] == list(OTHERS[::4]), "every fourth one, at one of the sizes"


FAMILIES = {
    "modes": (NAMES, MACHINES, QUICKLY, LONG_RUNS),
    "other strategies": (NAMES, OTHER_STRATEGIES, STRATEGY_RUNS, LONG_STRATEGY_RUNS),
    "refilled": (NAMES, REFILL, REFILL_RUNS, LONG_REFILL_RUNS),
    "on a GPU": (NAMES, GPU_SETTINGS, GPU_RUNS[:-2], LONG_GPU_RUNS),
    "forked": (WITH_GROUPS, FORKED, QUICK_FORKED_RUNS, FORKED_RUNS),
}
"""Programs, settings, quick runs and slow runs of each family of settings."""


@pytest.mark.parametrize("family", FAMILIES)
def test_each_option_meets_every_feature(family: str) -> None:
    """Of the sources, in a batch that has lanes; each program has one of the settings, each option all sizes."""
    names, settings, quick, slow = FAMILIES[family]
    sizes = {(part, lanes) for _, setting, lanes in (*quick, *slow) for part in parts(setting)}
    assert sizes >= {(part, lanes) for setting in settings for part in parts(setting) for lanes in (BATCH, *SIZES)}
    runs = [(name, setting) for name, setting, lanes in (*quick, *slow) if lanes and setting in settings]
    assert {name for name, _ in runs} == {*names}
    assert met_by_option(runs, FEATURES) == met_by_option(itertools.product(names, settings), FEATURES)


def met_by_option(runs: Iterable[tuple[str, Any]], features: Mapping[str, Collection[str]]) -> set[Any]:
    """Pairs of an option of a setting and of a feature of a program that runs so."""
    return {(part, each) for name, setting in runs for part in parts(setting) for each in features[name]}


@pytest.mark.slow
def test_each_option_meets_every_kind_of_instruction() -> None:
    """Of the IR that the programs are lowered to, which has more kinds than their sources show."""
    kinds = {}
    for name in NAMES:
        compilation = load(name).function.pipeline(*load(name).arguments(3))
        kinds[name] = program_features.features(ast.Module([], []), (compilation.cfg, compilation.optimized))
    unmet = {}
    for family, (names, settings, quick, slow) in FAMILIES.items():
        runs = [(name, setting) for name, setting, lanes in (*quick, *slow) if lanes and setting in settings]
        unmet[family] = met_by_option(itertools.product(names, settings), kinds) - met_by_option(runs, kinds)
    assert unmet == {family: set() for family in FAMILIES}


def test_no_run_is_made_twice() -> None:
    assert len(set(QUICK_RUNS)) == len(QUICK_RUNS)


def test_each_way_of_putting_aside_comes_up() -> None:
    assert {mode for _, mode, _ in QUICK_TAPED_RUNS} == set(TAPED)


def test_every_mode_has_programs_enough() -> None:
    counts = Counter(replace(mode, forks=False) for _, mode in QUICK_RUNS)
    assert {mode for mode, count in counts.items() if count >= OFTEN} == set(MODES)


def test_every_second_combination_covers_all_pairs() -> None:
    several = every_second("ab", "xyz", "12")
    assert len(several) == 12
    quick = [combination for combination in several if not hasattr(combination, "marks")]
    for one, other in itertools.combinations(range(3), 2):
        pairs = {(combination[one], combination[other]) for combination in quick}
        assert pairs == set(itertools.product(("ab", "xyz", "12")[one], ("ab", "xyz", "12")[other]))
    slow = [combination.values for combination in several if hasattr(combination, "marks")]
    assert sorted([*quick, *slow]) == sorted(itertools.product("ab", "xyz", "12"))
