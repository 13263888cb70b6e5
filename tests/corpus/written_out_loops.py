"""Loops with a constant number of turns in which something must be known: indices, lengths, keys, sizes, functions."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32",) * 11 + ("int32",)
ORDER = [2, 0, 1]
ROUNDS = 3


@dataclasses.dataclass
class Body:
    """Something that moves."""

    place: Any
    speed: Any


def doubled(x):
    """Taken in where a loop calls it for lanes."""
    return 2.0 * x if x > 0.0 else x


@pcbatch.autobatch
def written_out_loops(x, n):
    powers = []
    for k in range(ROUNDS):
        powers.append(x ** (k + 1))
    total = 0.0
    for k in ORDER:
        total = total * 2.0 + powers[k]
    bodies = [Body(x, 1.0 + i) for i in range(3)]
    steps = n
    while steps > 0:
        for i in range(3):
            for j in range(3):
                if i != j:
                    bodies[i].speed += 0.01 * (bodies[j].place - bodies[i].place)
        for body in bodies:
            body.place += 0.1 * body.speed
            if body.place > 3.0:
                break
        else:
            total += 1.0
        steps -= 1
    stock = {"apples": x, "pears": 2.0 * x}
    for key, value in stock.items():
        if key == "pears" and value > 1.0:
            continue
        total += value
    for key in stock:
        stock[key] *= 1.5
    for key in ("pears", "apples"):
        stock[key] += total
    for size, place in zip((1, 2), bodies, strict=False):
        total += tf.reduce_sum(tf.ones([size]) * place.place)
    for function in (tf.sin, doubled, lambda t: t + 1.0):
        total = function(total)
    rows = []
    for i in range(2):
        row = []
        for j in range(i + 1):
            if j == 0:
                before = x
            row.append(before + i * j)
            before = row[-1]
        rows.append(row)
    for at, power in enumerate(powers):
        if power > 10.0:
            return powers, rows, stock, total, bodies[0], at
        powers[at] = -power
    return powers, rows, stock, total, bodies[0], n


def batch(rng, lanes):
    return rng.uniform(0.5, 3.0, lanes).astype(np.float32), rng.integers(0, 5, lanes, dtype=np.int32)
