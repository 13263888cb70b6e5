"""The call graph in both dialects, its strongly connected components, and which calls may come back to their caller."""

from hypothesis import given
from hypothesis import strategies as st

from pcbatch.ir.analysis.dataflow import call_graph, components, interprocedural_edges, return_sites
from tests.ir import programs
from tests.ir.parser import parse_program

LAYERS = """\
program cfg

function main(n) -> result
b0:
  x = call even(n)
  y = call leaf(n)
  result = call even(x)
  return

function even(n) -> result
b1:
  x = call odd(n)
  result = call leaf(x)
  return

function odd(n) -> result
b2:
  result = call even(n)
  return

function leaf(n) -> result
b3:
  result = n
  return
"""


def test_call_graph():
    assert call_graph(parse_program(LAYERS)) == {
        "main": ("even", "leaf"),
        "even": ("odd", "leaf"),
        "odd": ("even",),
        "leaf": (),
    }
    assert call_graph(parse_program(programs.FIBONACCI_STACK)) == {"fibonacci": ("fibonacci",)}
    assert call_graph(parse_program(programs.PARITY_STACK)) == {"even": ("odd",), "odd": ("even",)}


def test_components_have_callees_first():
    assert components(call_graph(parse_program(LAYERS))) == (("leaf",), ("even", "odd"), ("main",))


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.tuples(*[st.integers(0, n - 1)] * 2)))))
def test_components_are_the_classes_of_mutual_reachability(graph):
    count, edges = graph
    reach = {(i, i) for i in range(count)} | edges
    for k in range(count):  # Warshall
        reach |= {(i, j) for i in range(count) for j in range(count) if (i, k) in reach and (k, j) in reach}
    names = [f"f{i}" for i in range(count)]
    found = components({names[i]: [names[j] for a, j in sorted(edges) if a == i] for i in range(count)})
    classes = {tuple(names[j] for j in range(count) if (i, j) in reach and (j, i) in reach) for i in range(count)}
    assert set(found) == classes
    assert len(found) == len(classes)
    place = {name: index for index, members in enumerate(found) for name in members}
    assert all(place[names[j]] <= place[names[i]] for i, j in edges)


def test_a_long_chain_of_calls_does_not_recurse():
    graph = {f"f{i}": [f"f{i + 1}"] for i in range(20_000)} | {"f20000": ["f0"]}
    (component,) = components(graph)
    assert len(component) == 20_001


def test_where_calls_come_back():
    fibonacci = parse_program(programs.FIBONACCI_STACK)
    assert return_sites(fibonacci) == {"fibonacci": {None, "b3", "b4"}}
    assert interprocedural_edges(fibonacci) == {
        "b0": ("b1", "b2"),
        "b1": ("b3", "b4"),
        "b2": ("b0",),
        "b3": ("b0",),
        "b4": ("b3", "b4"),
    }
    # odd is only ever jumped to: it returns to where even does
    assert return_sites(parse_program(programs.PARITY_STACK)) == {"even": {None}, "odd": {None}}
