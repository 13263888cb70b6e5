"""Searches over graphs, boards and grids."""

import heapq
from collections import deque

import numpy as np

import pcbatch


@pcbatch.autobatch
def strong_components(adjacent):
    """Tarjan's algorithm: each node's component, and how many components there are."""
    n = len(adjacent)
    index = np.full(n, -1)
    low = np.zeros(n, dtype=np.int64)
    component = np.full(n, -1)
    on_stack = np.zeros(n, dtype=bool)
    stack = []
    counter = 0
    found = 0

    def visit(v):
        nonlocal counter, found
        index[v] = low[v] = counter
        counter += 1
        stack.append(v)
        on_stack[v] = True
        for w in range(n):
            if not adjacent[v, w]:
                continue
            if index[w] == -1:
                visit(w)
                low[v] = min(low[v], low[w])
            elif on_stack[w]:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            while True:
                w = stack.pop()
                on_stack[w] = False
                component[w] = found
                if w == v:
                    break
            found += 1

    for v in range(n):
        if index[v] == -1:
            visit(v)
    return component, found


@pcbatch.autobatch
def topological_order(adjacent):
    """Kahn's order of the nodes, or where it got stuck because of a cycle."""
    n = adjacent.shape[0]
    incoming = adjacent.sum(axis=0)
    ready = deque(v for v in range(n) if incoming[v] == 0)
    order = []
    while ready:
        v = ready.popleft()
        order.append(v)
        for w in range(n):
            if adjacent[v, w]:
                incoming[w] -= 1
                if incoming[w] == 0:
                    ready.append(w)
    has_cycle = len(order) < n
    code = 0
    for v in order:
        code = code * 10 + v + 1
    return has_cycle, code


class DisjointSets:
    def __init__(self, n):
        self.parent = list(range(n))
        self.size = [1] * n

    def find(self, x):
        if self.parent[x] != x:
            self.parent[x] = self.find(self.parent[x])
        return self.parent[x]

    def union(self, a, b):
        a, b = self.find(a), self.find(b)
        if a == b:
            return False
        if self.size[a] < self.size[b]:
            a, b = b, a
        self.parent[b] = a
        self.size[a] += self.size[b]
        return True


@pcbatch.autobatch
def kruskal(weights):
    """The weight of a minimum spanning tree of a complete graph, and its heaviest edge."""
    n = len(weights)
    edges = [(weights[i, j], i, j) for i in range(n) for j in range(i + 1, n)]
    edges.sort()
    sets = DisjointSets(n)
    total, heaviest = 0.0, 0.0
    for weight, i, j in edges:
        if sets.union(i, j):
            total += weight
            heaviest = max(heaviest, weight)
    return total, heaviest, max(sets.size)


@pcbatch.autobatch
def bipartite_matching(likes):
    """The size of a maximum matching, and who is matched to whom."""
    people, jobs = likes.shape
    holder = [None] * jobs

    def try_to_place(person, seen):
        for job in range(jobs):
            if likes[person, job] and not seen[job]:
                seen[job] = True
                if holder[job] is None or try_to_place(holder[job], seen):
                    holder[job] = person
                    return True
        return False

    matched = sum(try_to_place(person, [False] * jobs) for person in range(people))
    return matched, [-1 if h is None else h for h in holder]


@pcbatch.autobatch
def a_star(walls, goal):
    """The length of the shortest path from the corner, -1 without one, and how many cells were opened."""
    rows, columns = walls.shape
    target = (goal[0], goal[1])

    def estimate(cell):
        return abs(cell[0] - target[0]) + abs(cell[1] - target[1])

    start = (0, 0)
    heap = [(estimate(start), 0, start)]
    best = {start: 0}
    opened = 0
    while heap:
        _, cost, cell = heapq.heappop(heap)
        if cell == target:
            return cost, opened
        if cost > best[cell]:
            continue
        opened += 1
        for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            r, c = cell[0] + dr, cell[1] + dc
            if not (0 <= r < rows and 0 <= c < columns) or walls[r, c]:
                continue
            if cost + 1 < best.get((r, c), 999):
                best[r, c] = cost + 1
                heapq.heappush(heap, (cost + 1 + estimate((r, c)), cost + 1, (r, c)))
    return -1, opened


GRAPHS = np.array(
    [
        [[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1], [0, 0, 0, 0]],
        [[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]],
        [[0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]],
        [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 1, 0]],
    ]
)
WALLS = np.array(
    [
        [[0, 0, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0]],
        [[0, 1, 0, 0], [0, 1, 0, 1], [0, 0, 0, 0]],
        [[0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 1, 0]],
        [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
    ],
    dtype=bool,
)
PROGRAMS = {
    "strong_components": (strong_components, GRAPHS),
    "topological_order": (topological_order, GRAPHS),
    "kruskal": (kruskal, np.random.default_rng(0).uniform(1.0, 9.0, (4, 4, 4))),
    "bipartite_matching": (bipartite_matching, GRAPHS.astype(bool)),
    "a_star": (a_star, WALLS, np.array([[2, 0], [0, 3], [2, 3], [2, 2]])),
}
