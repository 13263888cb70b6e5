"""Random numbers for batched programs: a lane's draws depend on its key alone, never on the batch around it.

A key is a uint32 tensor of shape `[2]`, an ordinary value of a lane: it can be an argument, be kept across loops and
calls, and be saved on stacks. Use a key for one draw, and `split` it to get more:

    @pcbatch.autobatch
    def walk(key, steps):
        x = 0.0
        for _ in range(steps):
            key, now = pcbatch.random.split(key)
            x = x + pcbatch.random.normal(now)
        return x

    walk(pcbatch.random.keys(42, lanes=64), tf.range(64))

Bits come from Threefry-2x32 with 20 rounds (Salmon et al., SC 2011; see `keys.py`). Counters are laid out as in
`jax.random` since JAX 0.5 (`jax_threefry_partitionable`): keys, splits, bits, uniform and Bernoulli draws are equal
to JAX's (but for uniform ones that JAX rounds up to `maxval`), normal and exponential draws and one categorical draw to
rounding. `randint` differs, because JAX's is less
even over wide ranges, and so do several categorical draws from the same logits, which take a search in place of a noise
for each category.

What holds between eager, graph and XLA mode, for any batch size and any lane of the batch (checked on CPUs):

- keys, bits, `randint`, `bernoulli`, `uniform`, `permutation`, and `choice` without weights: the same bits;
- `normal`, `exponential` and `categorical` in float32, float16 and bfloat16: the same bits;
- `systematic`, `choice` with weights, several `categorical` draws and `poisson`: the same unless a random number of 52
  bits lies within rounding of a bound; `gamma` and `beta` likewise, and in float32 the same bits but for a draw in a
  hundred million, whose last bit may differ;
- `normal`, `exponential`, `gamma` and `beta` in float64: the same bits for any batch size within one mode; between
  modes to rounding, for normal draws beyond 4 standard deviations to 2e-10 (the accuracy of XLA's inverse error
  function there);
- `categorical` of float64 logits: the same unless two categories tie within rounding.

Dtypes: float32 unless said otherwise; float64 draws have 52 random bits. Shapes are known when the program is compiled.
Functions for one example; batching is the compiler's business (`tf.vectorized_map` will do as well).

Every function raises TypeError for a key, a dtype or a parameter of the wrong type, and ValueError for a shape that
does not fit and a parameter out of range. In a batched function both are refused at its line (PCB401).
"""

from pcbatch.random.choices import categorical, choice, permutation, systematic
from pcbatch.random.draws import bernoulli, exponential, normal, randint, uniform
from pcbatch.random.keys import bits, fold_in, key, keys, split
from pcbatch.random.rejection import beta, gamma, poisson
from pcbatch.random.seeding import seeded

__all__ = [
    "bernoulli",
    "beta",
    "bits",
    "categorical",
    "choice",
    "exponential",
    "fold_in",
    "gamma",
    "key",
    "keys",
    "normal",
    "permutation",
    "poisson",
    "randint",
    "seeded",
    "split",
    "systematic",
    "uniform",
]
