"""The machine's stacks against Python lists: random blocks, random masks, every kind of storage."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcbatch.ir.machine import Block, FaultSite, Jump, LaneStatus, Program, Push, Store
from pcbatch.ir.types import TensorType
from pcbatch.runtime.machine.admission import first_state
from pcbatch.runtime.machine.blocks import BlockRunner
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.state import Layout, Limits
from pcbatch.runtime.machine.values import Rows
from tests.runtime.libraries import Library, ints, library_named
from tests.runtime.tables import INT, stored

LANES, CAPACITY, WIDTH = 4, 3, 2

ACTIONS = {
    "push": Block("push", (), Jump(0), pushes=(Push("x"),)),
    "push_another": Block("push_another", (), Jump(0), pushes=(Push("x", "y"),)),
    "pop": Block("pop", (), Jump(0), pops=("x",)),
    "exchange": Block("exchange", (), Jump(0), pops=("x",), pushes=(Push("x", "y"),)),
    "push_twice": Block("push_twice", (), Jump(0), pushes=(Push("x", "y"), Push("x"))),
    "store": Block("store", (Store("x", ("i",), "v", 0),), Jump(0)),
    "store_and_push": Block("store_and_push", (Store("x", ("i",), "v", 0),), Jump(0), pushes=(Push("x"),)),
    "pop_and_store": Block("pop_and_store", (Store("x", ("i",), "v", 0),), Jump(0), pops=("x",)),
}


def program(dtype, storage):
    """One block for each action, on a variable `x` with a stack and registers `y`, `i` and `v`."""
    vector, scalar = TensorType(dtype, (WIDTH,)), TensorType(dtype)
    types = {"x": vector, "y": vector, "v": scalar, "i": INT}
    site = FaultSite(LaneStatus.INDEX, "IndexError")
    kinds = {"x": "cached stack", "y": "register", "v": "register", "i": "register"}
    table = Program("stacks", ("x",), ("x",), types, kinds, tuple(ACTIONS.values()), (site,))
    return stored(table, storage)


@cache
def machinery(library: Library, dtype, storage):
    """The layout, and for each action a compiled function from state to state."""
    layout = Layout(program(dtype, storage))
    always = library.backend.constant(0) == 0

    def runner(number):
        block = BlockRunner(Context(library.backend, layout, Limits(CAPACITY, None)), number)

        def run(state):
            return block.run(state, {}, Rows.of_all(library.backend, block.ready(state, always)))

        return library.backend.compile(run, jit=False)

    return layout, [runner(number) for number in range(len(ACTIONS))]


class Model:
    """One lane: a list whose last element is the top."""

    def __init__(self, top):
        self.entries = [top]

    def act(self, action, y, i, v):
        """What the block means for this lane; False if it cannot run, or if it fails."""
        block = ACTIONS[action]
        depth = len(self.entries) - 1
        if depth < len(block.pops) or depth - len(block.pops) + len(block.pushes) > CAPACITY:
            return
        stores = bool(block.body)
        if stores and not -WIDTH <= i < WIDTH:
            return
        for _ in block.pops:
            self.entries.pop()
        before = self.entries.pop()
        after = before.copy()
        if stores:
            after[i] = v
        self.entries += [before if push.saved is None else y for push in block.pushes]
        self.entries.append(after)


def turns():
    """A list of turns; in each, every lane takes one action or none, with operands of its own."""
    lane = st.tuples(
        st.sampled_from([None, *ACTIONS]), st.integers(0, 1), st.integers(-WIDTH - 1, WIDTH), st.integers(0, 1)
    )
    return st.lists(st.lists(lane, min_size=LANES, max_size=LANES), min_size=1, max_size=12)


@pytest.mark.parametrize("storage", ["cached stack", "stack"])
@pytest.mark.parametrize("dtype", ["float32", "bool"])
@settings(max_examples=75)
@given(turns=turns())
def test_stacks_behave_as_lists(dtype, storage, turns):
    """After every turn each lane's top and everything below it is what a Python list holds."""
    _act_as_lists(library_named("numpy"), dtype, storage, turns)


@pytest.mark.parametrize(("dtype", "storage"), [("float32", "stack"), ("bool", "cached stack")])
@settings(max_examples=25)
@given(turns=turns())
def test_stacks_behave_as_lists_in_a_graph(dtype, storage, turns):
    """The same of TensorFlow's scatters and gathers."""
    _act_as_lists(library_named("tensorflow"), dtype, storage, turns)


def _act_as_lists(library, dtype, storage, turns):
    layout, runners = machinery(library, dtype, storage)
    first = np.array([[lane % 2, 1] for lane in range(LANES)]).astype(dtype)
    inputs = {"input x 0": library.backend.array(first, dtype)}
    state = first_state(library.backend, layout, Pool.of(LANES), inputs, CAPACITY)
    models = [Model(row) for row in first]
    names = list(ACTIONS)
    for turn in turns:
        actions = [_possible(model, action) for model, (action, _, _, _) in zip(models, turn, strict=True)]
        y = np.array([[number, 1 - number] for _, number, _, _ in turn]).astype(dtype)
        i = np.array([number for _, _, number, _ in turn], np.int32)
        v = np.array([number for _, _, _, number in turn]).astype(dtype)
        places = [names.index(action) if action else len(names) for action in actions]
        given = {"top y 0": (y, dtype), "top i 0": (i, "int32"), "top v 0": (v, dtype)}
        state |= {key: library.backend.array(*each) for key, each in given.items()}
        # All lanes' blocks run for all lanes, one block after the other; a lane must feel its own only.
        for number in sorted(set(places) - {len(names)}):
            state["pc"] = library.backend.array(places, "int32")
            updates, moving = runners[number](state)
            assert not np.any(np.asarray(moving) & (np.array(places) != number))
            state |= updates
        state["fault"] = library.backend.zeros(LANES, INT)
        for lane, (model, action) in enumerate(zip(models, actions, strict=True)):
            if action:
                model.act(action, y[lane], i[lane], v[lane])
        _compare(library, layout, state, models)


def _possible(model, action):
    """The action, or None for a pop from an empty stack, which no program does."""
    return action if action and len(model.entries) > len(ACTIONS[action].pops) else None


def _compare(library, layout, state, models):
    pointer = np.asarray(state["pointer x"])
    top = np.asarray(layout.read(library.backend, state, "x")[0])
    stack = np.asarray(state["stack x 0"])
    for lane, model in enumerate(models):
        assert pointer[lane] == len(model.entries) - 1
        np.testing.assert_array_equal(top[lane], model.entries[-1])
        below = stack[lane, : pointer[lane]].astype(model.entries[-1].dtype)
        np.testing.assert_array_equal(below, np.reshape(model.entries[:-1], below.shape))


@pytest.mark.parametrize("name", ["numpy", "tensorflow"])
@settings(max_examples=50)
@given(
    mask=st.lists(st.booleans(), min_size=3, max_size=3),
    places=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), min_size=3, max_size=3),
)
def test_masked_store_and_load(name, mask, places):
    """Elements of a `[lanes, 2, 4]` array, written where the mask holds, read everywhere."""
    array = np.arange(24.0, dtype=np.float32).reshape(3, 2, 4)
    backend = library_named(name).backend
    rows, columns = (backend.array(ints(*numbers), "int32") for numbers in zip(*places, strict=True))
    value = backend.array([100.0, 200.0, 300.0], "float32")
    given = backend.array(array, "float32")
    result = backend.masked_store(given, [rows, columns], backend.array(mask, "bool"), value)
    np.testing.assert_array_equal(given, array)  # arrays never change
    expected = array.copy()
    for lane, (row, column) in enumerate(places):
        if mask[lane]:
            expected[lane, row, column] = value[lane]
    np.testing.assert_array_equal(result, expected)
    loaded = backend.load(result, [rows, columns])
    np.testing.assert_array_equal(loaded, [expected[lane, row, column] for lane, (row, column) in enumerate(places)])
    np.testing.assert_array_equal(
        backend.load(result, [rows]), [expected[lane, row] for lane, (row, _) in enumerate(places)]
    )
