"""Functions of NumPy, `itertools` and `statistics` that are written in the language: against the ones themselves."""

from __future__ import annotations

import ast
import collections
import functools
import heapq
import itertools
import math
import operator
import statistics

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

LANES = 3
RNG = np.random.default_rng(1)
ARGUMENTS = {
    "a": RNG.normal(size=(LANES, 6)),
    "b": RNG.normal(size=(LANES, 6)),
    "c": RNG.normal(size=(LANES, 6)) > 0,
    "g": RNG.normal(size=(LANES, 2, 6)),
    "i": RNG.integers(0, 5, (LANES, 6)),
    "j": RNG.integers(1, 9, (LANES, 6)),
    "k": RNG.integers(1, 6, LANES),
    "m": RNG.normal(size=(LANES, 3, 3)),
    "n": RNG.integers(1, 6, LANES),
    "x": RNG.normal(size=LANES),
    "y": RNG.normal(size=LANES),
}
NAMES_OF_MODULES = {
    "np": np,
    "math": math,
    "itertools": itertools,
    "functools": functools,
    "collections": collections,
    "statistics": statistics,
    "operator": operator,
    "heapq": heapq,
}
OF_NUMPY = [
    "np.lexsort((a, i))",
    "np.lcm(n, k)",
    "np.gcd(n, k)",
    "np.gcd(i, j)",
    "np.lcm(i, 6)",
    "np.bincount(i, minlength=6)",
    "np.bincount(i, weights=a, minlength=6)",
    "np.histogram(a, bins=4, range=(-2, 2))",
    "np.histogram(a, bins=4)",
    "np.histogram(a, bins=[-2.0, -1.0, 0.0, 2.0])",
    "len(np.argwhere(a > 0))",
    "np.cov(a, b)",
    "np.cov(g)",
    "np.corrcoef(a, b)",
    "np.corrcoef(g)",
    "np.cov(a)",
    "np.percentile(a, 30)",
    "np.quantile(a, 0.25)",
    "np.quantile(a, [0.25, 0.5])",
    "np.polyfit(a, b, 1)",
    "np.unique(i).sum()",
    "np.isin(i, [1, 2])",
    "np.union1d(i, j).sum()",
    "np.outer(a, b)",
    "np.linalg.lstsq(g.T, a, rcond=None)[0]",
    "np.linalg.matrix_rank(m)",
    "np.linalg.slogdet(m)[1]",
    "np.heaviside(x, 0.5)",
    "np.maximum.accumulate(a)",
    "np.minimum.accumulate(a)",
    "np.add.accumulate(a)",
    "np.maximum.reduce(a)",
    "np.add.reduce(a)",
    "np.logical_or.reduce(c)",
    "np.nan_to_num(a)",
    "np.isnan(a)",
    "np.nanmax(a)",
    "np.nanmin(a)",
    "np.nanstd(a)",
    "np.partition(a, 2)[2]",
    "np.argpartition(a, 2)[2]",
    "np.select([a > 0.5, a < -0.5], [a, b], 0.0)",
    "np.piecewise(a, [a < 0, a >= 0], [lambda v: -v, lambda v: v * 2])",
    "np.choose(i[0] % 2, [a, b])",
    "np.take_along_axis(a, np.argsort(a), axis=0)",
    "np.insert(a, 1, x)",
    "np.delete(a, 1)",
    "np.rot90(m)",
    "np.pad(a, 1)",
    'np.pad(m, 1, mode="edge")',
    "np.pad(a, (1, 2), constant_values=5.0)",
    'np.pad(a, 2, mode="wrap")',
    "np.meshgrid(a[:2], b[:3])",
    "np.linspace(0.0, x, 5)",
    "np.geomspace(1.0, 1.0 + abs(x), 4)",
    "np.logspace(0.0, x, 4)",
    "np.zeros_like(np.empty_like(a))",
    "np.fromiter((v * 2 for v in a), dtype=float)",
    "np.reshape(a, (2, 3))",
    "np.apply_along_axis(np.sum, 0, m)",
    "np.vectorize(lambda v: v * 2)(a)",
    "np.fft.fft(a).real",
    "np.fft.rfft(a).imag",
    "np.fft.ifft(np.fft.fft(a)).real",
    "np.ediff1d(a)",
    "np.bitwise_and(i, j)",
    "np.bitwise_xor(i, j)",
    "np.left_shift(i, 1)",
    "np.float_power(np.abs(a), 2)",
    "np.sum(a, where=c)",
    "np.max(a, initial=0.0)",
    "np.nanargmax(a)",
    "np.unravel_index(n, (2, 3))",
    "np.ravel_multi_index((1, n - 1), (3, 6))",
    "np.vander(a[:3])",
    "np.linalg.multi_dot([m, m, m])",
    "np.signbit(a)",
    "np.ldexp(x, 2)",
    "np.modf(x)[0]",
    "np.lib.stride_tricks.sliding_window_view(a, 3)",
    "np.add.outer(a, b)",
    "np.subtract.outer(a, b)",
    "np.multiply.outer(a[:2], b[:2])",
    "np.shape(a)",
    "np.ndim(x) + np.ndim(m)",
    "len(np.unique(i))",
    "len(np.union1d(i, j)), np.intersect1d(i, j).sum(), np.setdiff1d(i, j).sum()",
    "np.argwhere(m > 0).sum(axis=0)",
    "len(np.argwhere(m > 0))",
    "np.linspace(0.0, x, 5, retstep=True)",
    "np.linspace(a, b, 3)",
    "np.linspace(x, y, 4, endpoint=False)",
    "np.linspace(0.0, float(x) * 2.0, 3)",
    "np.vander(a[:3], 2)",
    "np.insert(a, n, x)",
    "np.insert(a, -1, [x, y])",
    "np.insert(m, 1, a[:3], axis=1)",
    "np.insert(m, 1, x, axis=0)",
    "np.delete(m, 1, axis=1)",
    "np.delete(a, n)",
    "np.delete(a, [0, 2])",
    "np.take_along_axis(m, np.argsort(m, axis=1), axis=1)",
    "np.take_along_axis(m, np.argsort(m, axis=0), axis=0)",
    "np.histogram(a, bins=4, range=(-2, 2), density=True)",
    "np.histogram(a, bins=4, weights=b)",
    "np.histogram(i, bins=3)",
    "np.histogram(i, bins=np.arange(7))",
    "np.corrcoef(a, b)[0, 1]",
    "np.corrcoef([a, b])",
    "np.cov(m, rowvar=False)",
    "np.cov(a, b, ddof=0)",
    "np.cov(m, bias=True)",
    "np.polyfit(a, b, 2)",
    "np.polyval(np.polyfit(np.arange(6.0), a, 1), 3.0)",
    "np.lexsort((i, i % 2))",
    "np.lexsort([a, i])",
    "np.gcd(n * 2, 12)",
    "np.gcd(i, 0)",
    "np.gcd.reduce(j)",
    "np.lcm.reduce(j)",
    "np.unravel_index(np.argmax(m), m.shape)",
    "np.isin(i, j)",
    "np.isin(n, [1, 2])",
    "np.apply_along_axis(np.sort, 1, m)",
    "np.apply_along_axis(lambda r: r[0] * 2, 0, m)",
    "np.sum(a, where=c), np.mean(a, where=c | (a > -9)), np.any(a > 1, where=c)",
    "np.max(a, initial=0.5), np.min(a, initial=0.0, where=c)",
    "np.quantile(a, [0.25, 0.5]), np.percentile(a, [10, 90])",
    'np.pad(m, 1, mode="edge"), np.pad(a, 2, mode="wrap")',
    "np.linalg.slogdet(m)",
    "np.bincount(i, minlength=5)",
    "np.bincount(i % 3, weights=a, minlength=3)",
    "np.argmax(np.bincount(i, minlength=6))",
    "np.select([a > 0.5, a < -0.5], [a, b])",
    "np.select([x > 0.5, x < -0.5], [1.0, 2.0], default=3.0)",
    "np.fromiter((v * 2 for v in a), float)",
    'np.meshgrid(a[:2], b[:3], indexing="ij")[0]',
    "np.add.outer(a[:2], b[:3]), np.subtract.outer(a[:2], m), np.maximum.outer(a[:2], b[:2])",
    "np.maximum.accumulate(m, axis=1), np.add.accumulate(a), np.minimum.accumulate(a)",
    "np.partition(a, 2)[:3].sum()",
    "np.nanmax(a), np.nanmin(m, axis=1), np.nanstd(a), np.nanvar(m, axis=0, ddof=1), np.nanargmin(a)",
    "np.modf(a), np.heaviside(a, 0.5), np.ldexp(a, 3), np.signbit(a), np.float_power(np.abs(a), 1.5)",
    "np.left_shift(i, 2), np.right_shift(i, 1), np.bitwise_or(i, 1), np.invert(i)",
    "np.lib.stride_tricks.sliding_window_view(a, 3).mean(axis=1)",
    "np.choose(i % 2, [a, b])",
    "np.piecewise(a, [a < 0, a >= 1], [lambda v: -v, 5.0, 7.0])",
    "np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * 2])",
    "np.ediff1d(m), np.rot90(m), np.rot90(m, 2), np.rot90(m, -1), np.zeros_like(np.empty_like(a))",
    "np.geomspace(1.0, 2.0 + abs(x), 4), np.logspace(0.0, x, 4), np.logspace(0, x, 3, base=2)",
    "np.vectorize(lambda v: v * 2 if v > 0 else 0.0)(a)",
    "np.vectorize(lambda p, q: p * q)(m, a[:3])",
    "np.abs(np.fft.fft(a)) ** 2, np.fft.ifft(np.fft.fft(a)).real, np.fft.irfft(np.fft.rfft(a))",
    "np.fft.fft(m).real, np.fft.rfft(i).imag, np.abs(np.fft.rfft(a))",
    "np.atleast_2d(a), np.atleast_2d(x)",
    "np.shape(m)",
]
OF_PYTHON = [
    "math.remainder(x, 0.3)",
    "[list(p) for p in itertools.permutations([x, y, 1.0])][1]",
    "[p + q for p, q in itertools.combinations(a[:4], 2)]",
    "[p * q for p, q in itertools.product(a[:2], b[:2])]",
    "[p - q for p, q in itertools.pairwise(a)]",
    "list(itertools.accumulate(a)), list(itertools.accumulate(a, max))",
    "list(itertools.chain(a[:2], b[:2]))",
    "list(itertools.chain.from_iterable([a[:2], b[:2]]))",
    "list(itertools.islice(a, 3)), list(itertools.islice(a, 1, 5, 2))",
    "[p for p, q in itertools.zip_longest(a[:2], b[:3], fillvalue=0.0)]",
    "list(itertools.repeat(x, 3))",
    "sum(v for v in itertools.takewhile(lambda v: v < 1, a))",
    "sum(v for v in itertools.dropwhile(lambda v: v < 0, a))",
    "sum(itertools.compress(a, [1, 0, 1, 0, 1, 0]))",
    "sum(itertools.compress(a, c))",
    "sum(v for v in itertools.filterfalse(lambda v: v > 0, a))",
    "sum(itertools.starmap(lambda p, q: p * q, zip(a, b)))",
    "[v for v, _ in zip(itertools.cycle([x, y]), range(5))]",
    "list(itertools.combinations_with_replacement([x, y], 2))[1]",
    "sorted(a, key=functools.cmp_to_key(lambda p, q: -1 if p > q else 1 if p < q else 0))",
    "dict(collections.Counter([1, 1, 2]))[1] + x",
    "statistics.mean(a), statistics.median(a), statistics.stdev(a), statistics.pvariance(a)",
    "statistics.fmean(a), statistics.harmonic_mean(np.abs(a)), statistics.geometric_mean(np.abs(a))",
    "statistics.median_low(a), statistics.median_high(a)",
    "statistics.mode(i)",
    "statistics.quantiles(a, n=4)",
    "statistics.correlation(a, b)",
    "statistics.linear_regression(a, b).slope",
    "statistics.covariance(a, b)",
    "list(heapq.merge(sorted(a), sorted(b)))[0]",
]


def stored_at(a, b, i):
    found = a.copy()
    np.add.at(found, i, b)
    np.maximum.at(found, i, 0.5)
    return found


def in_order(m):
    return m[np.lexsort((m[:, 1], m[:, 0]))]


def unique_digits(i):
    total = 0
    for each in np.unique(i):
        total = total * 7 + each
    return total


def places(m):
    total = 0
    for row, column in np.argwhere(m > 0):
        total = total * 2 + 3 * row + column
    return total


def line(a):
    slope, intercept = np.polyfit(np.arange(6.0), a, 1)
    return slope * 2 + intercept


NAMED = [stored_at, in_order, unique_digits, places, line]


@pytest.fixture
def define(tmp_path):
    """Make a function that returns an expression, of the arguments that it names."""

    def of(text):
        tree = ast.parse(text, mode="eval")
        bound = {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}
        names = [
            each for each in ARGUMENTS if each in {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - bound
        ]
        path = tmp_path / "written.py"
        path.write_text(f"def written({', '.join(names)}):\n    return {text}\n")
        made = dict(NAMES_OF_MODULES)
        exec(compile(path.read_text(), str(path), "exec"), made)
        return made["written"]

    return of


def _check(program, **options):
    names = program.__code__.co_varnames[: program.__code__.co_argcount]
    rows = [ARGUMENTS[name] for name in names]
    found = [np.asarray(each) for each in tf.nest.flatten(pcbatch.autobatch(program).options(**options)(*rows))]
    for lane in range(LANES):
        expected = tf.nest.flatten(program(*(row[lane].copy() for row in rows)))
        for own, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(own[lane], np.asarray(theirs), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("text", [*OF_NUMPY, *OF_PYTHON])
def test_as_it_is(text, define):
    _check(define(text), form="lockstep", jit=False)


@pytest.mark.parametrize("program", NAMED, ids=lambda each: each.__name__)
@pytest.mark.parametrize("options", [{}, {"form": "native"}, {"form": "lockstep"}], ids=str)
def test_as_it_is_in_all_forms(program, options):
    _check(program, **options)


def counted(i):
    return np.bincount(i)


def bins(a):
    return np.histogram(a, bins="auto")[0]


@pytest.mark.parametrize(("program", "code"), [(counted, "PCB313.*np.bincount"), (bins, "PCB313.*bins")])
def test_a_length_that_differs_by_lane_is_refused(program, code):
    with pytest.raises(pcbatch.CompileError, match=code.replace(".*", "(.|\n)*")) as caught:
        pcbatch.autobatch(program).check(ARGUMENTS[program.__code__.co_varnames[0]])
    assert caught.value.diagnostics[0].span.file == __file__
    assert caught.value.diagnostics[0].help


def of_three(i):
    return np.bincount(i, minlength=3)


def test_an_element_beyond_the_bins_fails_its_lane():
    run = pcbatch.autobatch(of_three).run([[0, 1, 2], [0, 3, 1], [0, -1, 1]])
    assert [bool(each) for each in run.status] == [False, True, True]
    assert "no negative elements" in str(run.errors[1])
