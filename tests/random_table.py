"""Every draw of `pcbatch.random` with every form of its arguments, in every form of program.

`python -m tests.random_table DRAW DRAW/FORM ..` prints what differs from `f.single` in these parts of the table, of all
draws where none is named. Tests run it in a process of its own, as a user does: nothing was traced there before.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
from pcbatch import nuts, random

ONE_OF_EACH = (
    "random.fold_in(key, n)",
    "random.bits(key, 3)",
    "random.uniform(key, minval=a, maxval=a + 2.0)",
    "random.normal(KEY, 3)",
    "random.exponential(key, (2,), tf.float64)",
    "random.gamma(key, a)",
    "random.beta(key, v, 2.0)",
    "random.bernoulli(key, ROW / 4.0)",
    "random.poisson(key, a, (3,))",
    "random.randint(key, 3, -n, n)",
    "random.categorical(key, [0.0, a])",
    "random.choice(key, TABLE, (2,), [0.25, 0.75])",
    "random.permutation(key, v)",
    "random.systematic(key, [0.0, a, 1.0], 5)",
)
DRAWS: dict[str, tuple[str, ...]] = {
    "keys": (
        "random.key(n)",
        "random.key(7)",
        "random.key(COUNTS[0])",
        "random.split(key)",
        "random.split(KEY, 3)",
        "random.fold_in(key, n)",
        "random.fold_in(key, 2 * 3)",
        "random.fold_in(KEY, COUNTS[1])",
        "random.bits(key)",
        "random.bits(key, 3)",
        "random.bits(key, (2, 2), tf.uint64)",
        "random.bits(KEY, (2,), tf.uint8)",
    ),
    "uniform": (
        "random.uniform(key)",
        "random.uniform(KEY, 3)",
        "random.uniform(key, (2, 2), tf.float64)",
        "random.uniform(key, (), tf.bfloat16)",
        "random.uniform(key, minval=a, maxval=a + 2.0)",
        "random.uniform(key, (3,), minval=-v, maxval=v)",
        "random.uniform(key, (3,), minval=-1, maxval=ROW)",
        "random.uniform(KEY, (2, 3), minval=-2.0 * 3.0, maxval=TABLE)",
        "random.uniform(key, 3, tf.float64, minval=tf.cast(a, tf.float64) - 1.0, maxval=WIDE)",
        "random.uniform(key, (), tf.float16, minval=0.5)",
    ),
    "normal": (
        "random.normal(key)",
        "random.normal(KEY, 3)",
        "random.normal(key, (2, 2), tf.float64)",
        "v * random.normal(key, (3,))",
        "random.normal(key, (2,), tf.float16)",
    ),
    "exponential": (
        "random.exponential(key)",
        "random.exponential(KEY, 3)",
        "random.exponential(key, (2,), tf.float64)",
        "random.exponential(key, (3,)) / v",
    ),
    "gamma": (
        "random.gamma(key, a)",
        "random.gamma(key, v)",
        "random.gamma(key, 1 + 2)",
        "random.gamma(KEY, a, (2, 2))",
        "random.gamma(key, TABLE, (2, 3))",
        "random.gamma(KEY, [0.5, 2.0])",
        "random.gamma(key, [a, 2.0])",
        "random.gamma(key, WIDE, dtype=tf.float64)",
        "random.gamma(key, tf.cast(a, tf.float64), 2, tf.float64)",
    ),
    "beta": (
        "random.beta(key, a, 2.0)",
        "random.beta(key, 2, [a, 0.5])",
        "random.beta(KEY, ROW, a)",
        "random.beta(key, WIDE, 1.5, dtype=tf.float64)",
    ),
    "bernoulli": (
        "random.bernoulli(key)",
        "random.bernoulli(key, a / 40.0)",
        "random.bernoulli(key, v / 40.0)",
        "random.bernoulli(key, 0.1 * 3.0, (3,))",
        "random.bernoulli(KEY, 1, 2)",
        "random.bernoulli(key, ROW / 4.0)",
        "random.bernoulli(key, SHARES)",
        "random.bernoulli(key, [0.5, a / 40.0])",
        "random.bernoulli(key, WIDE / 4.0, (2, 3))",
    ),
    "poisson": (
        "random.poisson(key, a)",
        "random.poisson(key, v)",
        "random.poisson(key, 3, (20,))",
        "random.poisson(KEY, 10.0 * 2.0, 3)",
        "random.poisson(KEY, TABLE, (2, 3), tf.int64)",
        "random.poisson(key, [1.0, a])",
        "random.poisson(key, WIDE)",
        "random.poisson(key, tf.cast(a, tf.float64))",
    ),
    "randint": (
        "random.randint(key, (), 1, 7)",
        "random.randint(key, 3, -n, n)",
        "random.randint(KEY, (2,), 0, n)",
        "random.randint(key, (2, 2), -2 * 3, 9)",
        "random.randint(key, (2,), COUNTS, 70)",
        "random.randint(key, 2, 0, [n, 9])",
        "random.randint(key, (), NUMBERS[0], tf.cast(n, tf.int64) * 10**10, tf.int64)",
    ),
    "categorical": (
        "random.categorical(key, v)",
        "random.categorical(key, [0.0, a])",
        "random.categorical(key, [0.0, 1.0, 2.0])",
        "random.categorical(key, ROW, shape=(4,))",
        "random.categorical(KEY, TABLE)",
        "random.categorical(key, TABLE, 0, (2, 3))",
        "random.categorical(key, tf.cast(v, tf.float64), shape=(2,))",
        "random.categorical(key, WIDE)",
    ),
    "choice": (
        "random.choice(key, 5)",
        "random.choice(key, 5, (4,), replace=False)",
        "random.choice(KEY, 2 * 3, 4, p=SHARES6)",
        "random.choice(key, v, (2,))",
        "random.choice(key, v, 2, v)",
        "random.choice(key, ROW, 2, p=v, replace=False)",
        "random.choice(key, TABLE, (2,), [0.25, 0.75])",
        "random.choice(key, [1, 2, n])",
        "random.choice(key, NUMBERS, p=[a, 1.0])",
        "random.choice(key, 3, (2,), WIDE)",
    ),
    "permutation": (
        "random.permutation(key, 5)",
        "random.permutation(KEY, v)",
        "random.permutation(key, TABLE)",
        "random.permutation(key, NUMBERS)",
        "random.permutation(key, [n, 2, 3])",
    ),
    "systematic": (
        "random.systematic(key, v)",
        "random.systematic(key, [0.0, a, 1.0], 5)",
        "random.systematic(KEY, ROW)",
        "random.systematic(key, SHARES, 2 * 3)",
        "random.systematic(key, WIDE, 4)",
    ),
    "one of each": ONE_OF_EACH,
}
"""By name, calls with `key`, `a`, `v`, `n` of a lane (a key, a float32, three of them, an int32), Python's numbers, and
arrays that are captured."""

_CAPTURED = """
import numpy as np
import tensorflow as tf
import pcbatch
from pcbatch import random

KEY = random.key(5)
ROW = tf.constant([0.5, 2.0, 3.5])
TABLE = np.array([[0.5, 1.0, 3.0], [12.0, 0.25, 30.0]], np.float32)
WIDE = np.array([0.5, 2.0, 1.25])
SHARES = np.array([0.0, 0.25, 1.0], np.float32)
SHARES6 = tf.constant([0.0, 1.0, 2.0, 0.0, 0.5, 1.0])
COUNTS = tf.constant([3, 4])
NUMBERS = np.array([10, -20])
"""

_PROGRAMS = {
    "plain": "def drawn(key, a, v, n):\n    return {draws}",
    "helper": (
        "def helper(key, a, v, n):\n    return {draws}\n\ndef drawn(key, a, v, n):\n    return helper(key, a, v, n)"
    ),
    "loop": (
        "def drawn(key, a, v, n):\n    found = {draws}\n    for i in range(n):\n"
        "        key = random.fold_in(key, i)\n        found = {draws}\n    return found"
    ),
    "branch": (
        "def drawn(key, a, v, n):\n    if a > 2.0:\n        found = {draws}\n    else:\n"
        "        key = random.split(key)[0]\n        found = {draws}\n    return found"
    ),
    "recursion": (
        "@pcbatch.autobatch\ndef called(key, a, v, n):\n    if n <= 1:\n        return {draws}\n"
        "    return called(random.fold_in(key, n), a, v, n - 1)\n\n"
        "def drawn(key, a, v, n):\n    return called(key, a, v, n)"
    ),
    "tape": (
        "def drawn(key, a, v, n):\n    with tf.GradientTape() as tape:\n        tape.watch((a, v))\n"
        "        found = {draws}\n"
        "        parts = [tf.reduce_sum(tf.cast(each, tf.float32)) for each in found]\n"
        "        total = a * tf.add_n(parts) + 0.0 * tf.reduce_sum(v)\n"
        "    return tape.gradient(total, (a, v))"
    ),
}
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    **{source: (source, {}) for source in _PROGRAMS},
    "native": ("loop", {"form": "native"}),
    "lockstep": ("loop", {"form": "lockstep"}),
    "graph": ("loop", {"jit": False}),
    "straight graph": ("plain", {"jit": False}),
    "straight native": ("plain", {"form": "native"}),
    "taped lockstep": ("tape", {"form": "lockstep"}),
    "reference": ("branch", {"backend": "reference"}),
}
"""By name, the program and its options."""
DENSITY = "density"
"""One more, see `in_a_density`."""
NOT_NATIVE = re.compile("no native code is made of (TopKV2|convert of numbers of the dtype bfloat16)")
"""What is said in the native form of draws that sort, and of numbers that are kept as bits there."""
CLOSE = {"gamma": 1e-6, "beta": 1e-6, "one of each": 1e-6}
"""To which relative tolerance float32 numbers of a draw agree between modes; the others agree to the last bit."""
CLOSE_WIDE, CLOSE_GRADIENT = 2e-10, 2e-6
"""The same for float64, and for gradients, which are sums."""
LANES = 4


def arguments() -> tuple[tf.Tensor, ...]:
    """Of four lanes."""
    a = tf.constant([0.25, 1.5, 3.0, 20.0])
    v = tf.constant([[0.5, 1.0, 2.0], [3.0, 0.25, 9.0], [30.0, 12.0, 1.0], [4.0, 8.0, 16.0]])
    return random.keys(11, LANES), a, v, tf.constant([1, 2, 3, 2])


def made(source: str, calls: tuple[str, ...]) -> Any:
    """A function that makes these draws, in a module of its own."""
    text = f"{_CAPTURED}\n\n{_PROGRAMS[source].format(draws='(' + ', '.join(calls) + ',)')}\n"
    path = Path(tempfile.mkdtemp()) / "drawn.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("drawn", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.drawn


def differences(draw: str, form: str, calls: tuple[str, ...] = ()) -> list[str]:
    """What differs between a batch and its lanes one by one, or is refused, a line each."""
    calls, (source, options) = calls or DRAWS[draw], FORMS[form]
    function, lanes = pcbatch.autobatch(made(source, calls), **options), arguments()
    try:
        found = function(*lanes)
    except Exception as error:
        apart = [line for call in calls for line in differences(draw, form, (call,))] if len(calls) > 1 else []
        is_known = form.endswith("native") and NOT_NATIVE.search(str(error)) is not None
        return apart if apart or is_known else [f"{form}: {', '.join(calls)}: {type(error).__name__}: {error}"]
    singles = [function.single(*lane) for lane in zip(*lanes, strict=True)]
    is_gradient = source == "tape"
    names = ("the gradient of a", "the gradient of v") if is_gradient else calls
    return [
        f"{form}: {name}: {each} instead of {wanted}"
        for place, (name, each) in enumerate(zip(names, found, strict=True))
        for wanted in [tf.stack([single[place] for single in singles])]
        if not _agree(each.numpy(), wanted.numpy(), CLOSE_GRADIENT if is_gradient else CLOSE.get(draw, 0.0))
    ]


def _agree(found: np.ndarray, wanted: np.ndarray, close: float) -> bool:
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    close = CLOSE_WIDE if found.dtype == np.float64 else close
    if close:
        return np.allclose(found, wanted, rtol=close, atol=0, equal_nan=True)
    return bool(np.all((found == wanted) | ((found != found) & (wanted != wanted))))


def in_a_density(draw: str) -> list[str]:
    """What differs between a density that draws by a key of its own and one of the same numbers, written down."""
    drawn = made("plain", DRAWS[draw])
    given = (random.key(3), tf.constant(1.5), tf.constant([0.5, 2.0, 3.0]), tf.constant(3))
    numbers = [tf.atan(tf.cast(each, tf.float32)).numpy() for each in drawn(*given)]

    def drawing(x: tf.Tensor) -> tf.Tensor:
        return sum(-0.5 * tf.reduce_mean((x - tf.atan(tf.cast(each, tf.float32))) ** 2) for each in drawn(*given))

    def written_down(x: tf.Tensor) -> tf.Tensor:
        return sum(-0.5 * tf.reduce_mean((x - each) ** 2) for each in numbers)

    options: dict[str, Any] = {"chains": 2, "warmup": 0, "draws": 3, "step_size": 0.1, "adapt": None, "progress": False}
    try:
        found, wanted = (nuts.sample(each, 0.5, **options)["x"] for each in (drawing, written_down))
    except Exception as error:
        return [f"density: {draw}: {type(error).__name__}: {error}"]
    return [] if np.allclose(found, wanted, rtol=1e-4) else [f"density: {draw}: {found} instead of {wanted}"]


def main(parts: list[str]) -> Iterator[str]:
    """What differs in some parts of the table."""
    for part in parts or DRAWS:
        draw, _, form = part.partition("/")
        for each in [form] if form else [*FORMS, DENSITY]:
            yield from in_a_density(draw) if each == DENSITY else differences(draw, each)


if __name__ == "__main__":
    for line in main(sys.argv[1:]):
        print(line, flush=True)
