"""What pcbatch uses of TensorFlow's insides is there; where a part is gone, the rest works on or says what is gone."""

import contextlib
import gc
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.errors import UsageError
from pcbatch.runtime.backends.tensorflow import private, symbols, traces
from pcbatch.runtime.backends.tensorflow.private import graphs, lookup
from tests.pairwise import every_second
from tests.runtime import probes
from tests.runtime.probes import ways

PATHS = [value for name, value in vars(lookup).items() if isinstance(value, str) and value.startswith("tensorflow.")]


@pytest.mark.parametrize("use", probes.USES, ids=lambda use: use.name)
def test_it_is_there(use):
    assert use.check()


def test_ways_are_as_long_whatever_garbage_there_is():
    def way():
        function = tf.function(lambda: 1.0, autograph=False)
        function.me = function  # a cycle: only a collection frees it
        function.get_concrete_function()
        del function
        return [[] for _ in range(20_000)]  # so many new objects that Python looks for garbage

    alone = ways.length(way)
    gc.disable()
    try:
        without = ways.length(way)
    finally:
        gc.enable()
    assert alone == without


def test_probes_name_all():
    found = probes.probes()
    assert [probe.name for probe in found] == [use.name for use in probes.USES]
    assert all(probe.works and probe.lost for probe in found)
    assert len({probe.name for probe in found}) == len(found) >= 15


def forget():
    """Forget what was found when all was there."""
    for known in (private.copy_of_pfor, symbols._refused, symbols._calls):
        known.cache_clear()


@pytest.fixture
def without(monkeypatch):
    """`without(path)` lets a part of TensorFlow be gone."""
    find = lookup.find

    def gone(path):
        assert path in PATHS
        monkeypatch.setattr(lookup, "find", lambda wanted: None if wanted == path else find(wanted))
        forget()

    yield gone
    forget()


def test_the_help_names_the_versions_of_the_project():
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    (wanted,) = re.findall(r'"(tensorflow>=.*)"', project)
    assert f"pip install '{wanted}'" in lookup._HELP


def test_all_parts_are_found():
    assert len(PATHS) == 23
    assert all(lookup.find(path) is not None for path in PATHS)


@pytest.mark.parametrize("path", PATHS)
def test_a_probe_says_what_is_gone(path, without):
    without(path)
    with pytest.warns(RuntimeWarning) if path == lookup.IN_XLA else contextlib.nullcontext():
        assert not all(map(probes.works, probes.USES)), "asked one after the other, up to the first that is gone"


def instead(path, stand_in):
    """Something else in the place of a part of TensorFlow."""
    find = lookup.find
    return lambda patch: patch.setattr(lookup, "find", lambda wanted: stand_in if wanted == path else find(wanted))


def attribute(owner, name, stand_in):
    return lambda patch: patch.setattr(owner, name, stand_in)


def slow_call(concrete, arrays):
    return concrete(*arrays)


def slow_spec(tensor):
    return tensor.dtype, tensor.shape


def slow_operation(graph, kind, inputs, dtypes, attributes):
    return graph.create_op(kind, inputs, dtypes).outputs


EXECUTION = lookup.find(lookup.EXECUTE)
OTHERS = SimpleNamespace(execute=EXECUTION.execute_with_callbacks, quick_execute=EXECUTION.quick_execute)
LONGER = {
    "calls of traced functions": [attribute(private, "call", slow_call)],
    "calls without a look": [attribute(private, "direct", lambda concrete: partial(slow_call, concrete))],
    "calls without a question": [
        instead(lookup.CANCELLING, threading.local),  # 2.22 has an object where 2.21 has None
        instead(lookup.EXECUTE_NOW, lambda handle, device, name, inputs: None),  # of other parameters
        instead(lookup.EXECUTE, OTHERS),
    ],
    "tensors in memory of one's own": [instead(lookup.FROM_DLPACK, None)],
    "dtypes and shapes of tensors": [
        attribute(private, "spec", slow_spec),
        attribute(private, "specs", lambda tensors: tuple(map(slow_spec, tensors))),
    ],
    "tapes asked at once": [instead(lookup.NO_TAPES, None)],
    "operations of ready tensors": [instead(lookup.CREATE, None), attribute(private, "operation", slow_operation)],
    "stand-ins in bodies": [attribute(graphs._body_class(), "_stand_in", lambda *_: None)],
}
"""Longer ways to the same, by the use whose probe notices them."""


@pytest.mark.parametrize(("name", "lengthen"), [(name, each) for name, some in LONGER.items() for each in some])
def test_a_probe_says_that_another_way_is_taken(name, lengthen, monkeypatch):
    (use,) = [use for use in probes.USES if use.name == name]
    lengthen(monkeypatch)
    assert not probes.works(use)
    monkeypatch.setattr(ways, "is_shorter", lambda way, than: True)
    assert probes.works(use), "what it gives is right all the same"


def test_all_that_ask_for_the_way_are_tried_without_it(monkeypatch):
    asked = []
    monkeypatch.setattr(ways, "is_shorter", lambda way, than: asked.append(True) or True)
    assert LONGER.keys() == {use.name for use in probes.USES if (asked.clear(), probes.works(use)) and asked}


def test_a_warm_call_takes_the_quick_way(monkeypatch):
    """From end to end; where somebody may cancel, it enters more of TensorFlow's functions."""

    def length():
        @pcbatch.autobatch(form="lockstep")
        def least(n):
            while n > 3:
                n -= 1
            return n

        assert least(N).numpy().tolist() == [0, 3, 1, 3]
        return min(ways.length(lambda: least(N)) for _ in range(12))  # the first ones find out how to run the others

    quick = length()
    instead(lookup.CANCELLING, threading.local)(monkeypatch)
    assert quick + 10 <= length()


def made(jit=True):
    """A batched function of its own: it reads, draws, calls a tf.function, and fails in a lane."""
    doubled = tf.function(lambda x: x * 2.0)
    table = tf.constant(np.arange(2**18, dtype=np.float32))

    @pcbatch.autobatch(jit=jit)
    def program(n, x):
        total = 0.0
        while n > 0:
            total += doubled(x) + table[n] + tf.reduce_max(tf.stack([x, total]))
            n -= 1
        assert total < 1000.0, "too much"
        return total

    return program


N, X = np.array([0, 3, 1, 50], np.int32), np.array([1.0, 2.0, np.nan, 100.0], np.float32)


def check(program):
    run = program.run(N, X)
    assert run.status.tolist() == [0, 0, 1, 1]
    np.testing.assert_array_equal(run.value[:2], [0.0, 53.0])


WORKS_WITHOUT = (
    lookup.UPDATE_SLICE, lookup.SLICE, lookup.MODULE, lookup.RECORD, lookup.NO_ORDER, lookup.FUNCTION,
    lookup.CONTEXT,
)  # fmt: skip


@pytest.mark.parametrize("jit", [True, False])
def test_it_works_where_all_is_there(jit):
    check(made(jit))


@pytest.mark.parametrize(("path", "jit"), every_second(WORKS_WITHOUT, [True, False]))
def test_it_works_on(path, jit, without):
    without(path)
    check(made(jit))


@pytest.mark.parametrize("jit", [True, False])
def test_it_says_that_it_does_not_know_of_xla(jit, without):
    """NaN is kept in a maximum all the same."""
    without(lookup.IN_XLA)
    with pytest.warns(RuntimeWarning, match="taken to run without XLA"):
        check(made(jit))


@pytest.mark.parametrize("path", [lookup.FUNC_GRAPH, lookup.PFOR, lookup.DEFINITIONS])
def test_it_says_what_is_missing(path, without):
    without(path)
    with pytest.raises(UsageError, match=f"PCB580: pcbatch needs {path}, which TensorFlow {tf.__version__}"):
        made().options(form="lockstep").run(N, X)  # natively nothing is vectorised


def test_a_primitive_says_what_is_missing(without):
    without(lookup.RECORD)

    @pcbatch.primitive(batched=lambda x: x * 3.0)
    def tripled(x):
        return x * 3.0

    @pcbatch.autobatch
    def program(x):
        return tripled(x)

    with pytest.raises(UsageError, match=r"PCB580.*tensorflow\.python\.eager\.record"):
        program(X)


def test_functions_of_a_graph(monkeypatch):
    """A graph that has none needs no list of them."""

    class Graph:
        def __init__(self, graph):
            self.as_graph_def = graph.as_graph_def

    with_function, result = probes.graphs._calling()
    private.share_functions(Graph(private.new_graph("empty")), None)
    with pytest.raises(UsageError, match="PCB580"):
        private.share_functions(Graph(with_function), None)
    assert private.body_of(Graph(with_function), result.op.get_attr("f").name) is None


def test_stacks_of_programs_name_the_users_calls_and_none_of_pcbatchs():
    """XLA keeps those of all operations of a program for good."""

    def helper():
        return tf.zeros(3) + 1.0

    with private.new_graph("any").as_default():
        stack = traces.remembering(helper).op.traceback
    files = [call.filename for call in stack]
    assert any(call.name == "helper" for call in stack)
    assert not any(file.startswith(str(Path(pcbatch.__file__).parent)) for file in files)
    assert sum(file.startswith(str(Path(tf.__file__).parent)) for file in files) <= 2
    with private.short_stacks() as outer, private.short_stacks() as inner:
        assert outer.internal_set is inner.internal_set, "each stack keeps it"


def test_direct_calls_are_seen_by_those_who_want_to_see_them(monkeypatch):
    """Whoever replaces TensorFlow's way to execute, sets options of functions or cancels, is heeded."""
    concrete = tf.function(lambda x: x + 1.0, autograph=False).get_concrete_function(tf.constant(1.0))
    direct = private.direct(concrete)
    given = [tf.constant(2.0)]
    assert float(direct(given)[0]) == 3.0
    execution, context = lookup.find(lookup.EXECUTE), lookup.find(lookup.CONTEXT)()
    seen = []

    def spy(*args, **kwargs):
        seen.append("executed")
        return execution.quick_execute(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(execution, "execute", spy)
        assert float(direct(given)[0]) == 3.0
    assert seen == ["executed"]
    options = type(context.function_call_options)
    as_attrs = options.as_attrs
    monkeypatch.setattr(options, "as_attrs", lambda each: seen.append("asked") or as_attrs(each))
    for soft in (False, True):
        tf.config.set_soft_device_placement(soft)
        assert float(direct(given)[0]) == float(direct(given)[0]) == 3.0
    assert seen == ["executed", "asked", "asked"]
    managers = pytest.importorskip("tensorflow.python.eager.cancellation")
    manager = managers.CancellationManager()
    with managers.CancellationManagerContext(manager):
        assert float(direct(given)[0]) == 3.0


def test_direct_calls_of_several_threads():
    concrete = tf.function(lambda x: x * 2.0, autograph=False).get_concrete_function(tf.constant(1.0))
    direct = private.direct(concrete)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda i: float(direct([tf.constant(float(i))])[0]), range(200)))
    assert found == [2.0 * i for i in range(200)]
