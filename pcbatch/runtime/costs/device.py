"""Measurements of machines, by kind of device: the numbers that would differ on another one.

Work is in the unit of `estimate`, a multiply-add or an element; a microsecond of one CPU core is about 4000. What is
reckoned with these numbers need be right to a factor of two.

Not here is what no machine was asked for. What if-conversion and loop-header duplication may copy (`optimize`,
`lowering`) is decided for a program's text, below all that knows of devices. When the schedule "adaptive" takes a block
for expensive was chosen on simulated programs, in prices of this page. The limits in `random` keep LLVM from a pattern
on which it never ends. How long a slice of a resumable run takes is a promise to the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

KIB = 1024


@dataclass(frozen=True)
class Device:
    """The measurements of one kind of device; each field has a CPU's: two cores of a server, TensorFlow 2.21."""

    kind: str = "cpu"
    """"cpu" or "gpu"."""

    guard: float = 4_000.0
    """Work: to look whether a block runs, in every trip. CPU: 0.6 to 1.3 us. GPU: the host waits 20 to 50 us for the
    answer, in which, by estimate, the card would do 1e9."""
    trip: float = 12_000.0
    """Work: a turn of the machine's loop, counting the waiting lanes. CPU: 3 us."""
    execution: float = 12_000.0
    """Work: to run a block, whatever it computes: program counters, masks, stack pointers. CPU: 3 us."""
    called: float = 200_000.0
    """Work of a lane in a run of a batched function that a piece calls, and again in its gradient. It is what the run
    costs by itself, spread over the usual lanes. CPU: 1 to 3 ms, of the likelihood of a tree of 5 to 30 nodes."""
    usual_lanes: int = 64
    """Number of lanes to assume while it is not known."""

    gathered: float = 1_000_000.0
    """Work that a run of a block on one gathered lane must save against a run for all. CPU: 10 to 250 us, several times
    what listing the lanes costs (5 us for 64, 46 for 4096) and a chunk besides (1 us)."""
    gathered_sync: float = 4_000_000.0
    """The same at a block where lanes wait for each other, of a whole run's last part (`gathered_tail`)."""
    gathered_tail: float = 0.03
    """The part of a run in which few lanes are left at a block where they wait for each other. Samplers: 0.03 to 0.1;
    chunks for the last of 64 chains of an expensive density (27 us a row) compile in 1 s and save 0.15 s in 250
    draws."""
    gathered_share: float = 0.02
    """Share of the most expensive block's cost for all lanes that gathering must save: a smaller gain is lost beside
    it."""
    chunk_work: float = 2.0**18
    """Work of a chunk from which on it has rows enough: beside that its own 1 us is little."""
    chunk_shared: int = 8
    """The fewest rows of a chunk that are multiplied by something that all lanes share. From 4 rows on a row costs the
    same, of 256 x 640 1.7 us of 4 rows and 1.5 of 64; of 512 x 1024, 9.4, 6.5, 7.0 and 5.2 us of 4, 8, 16 and 64. So
    what counts is that few rows are left over: 64 trees or sentences take 0.89 to 0.93 times as long in chunks of 8."""
    chunk_least: int = 4
    """The fewest rows of other chunks."""
    chunk_most: int = 32
    """The most rows of a chunk. 512 of 2048 lanes at a product of 64 x 64 take 92, 76, 71 and 77 us in chunks of 8, 16,
    32 and 64. Where a row's work fills a smaller chunk, chunks run in pairs: 64 large TreeLSTMs take 0.95 of it."""
    chunk_share: float = 0.8
    """The part of a batch from which on all lanes are computed at once, not in chunks. The same four take 0.8, 0.9, 1.0
    and 1.1 times as long from 0.9 on as from 0.6 on; at 0.75 they lie between these."""
    deferred_least: int = 32
    """The fewest rows of a chunk of turns that are put off."""
    deferred_most: int = 256
    """The most rows of such a chunk."""
    deferred_work: float = 2.0**21
    """Work of such a chunk from which on it has rows enough: what more rows give need not fit the core's cache."""
    masked_element: float = 4.0
    """Work: to keep an element from being written for lanes that take no part: it is read and written, too."""
    moved_array: float = 100.0
    """Work: to gather one array's row and scatter it back, whatever its size."""
    moved_element: float = 4.0
    """Work: the same for each element."""

    trips_together: int = 0
    """Number of trips in which all blocks run, whoever waits, before the host looks whether there is to be another. It
    is 0 where all blocks have guards. The last trips may find no lane that waits. Of Fibonacci (10,000 lanes) and
    insertion sort (4,096 x 32) guards take 1.9 and 5.6 times as long on a GPU. A CPU's guards cost less than the blocks
    that they keep from running. The number was not measured on a card."""

    quantile: float = 30.0
    """Work: an element of the normal distribution's quantiles (`erfinv`, `ndtri`) in float32, by a polynomial."""
    quantile_double: float = 200.0
    """Work: the same in float64, a call for each number."""

    idle_most: int = 64
    """Minimal number of lanes that a program is compiled for, once called for two numbers of examples. It applies if
    idle ones cost next to nothing."""
    idle_least: int = 8
    """The same in any case, if their arrays are small. TreeLSTM of 128 cells: 2, 3 and 5 examples in 8 lanes take 1.5,
    1.6 and 1.4 times as long as alone, 0.1 to 0.2 ms more; to compile it takes more than a second."""
    idle_share: float = 0.25
    """Cost allowed for idle lanes, as a share of a trip's cost in which all blocks run and no rows."""
    idle_elements: int = 2**16
    """Maximal number of elements copied for idle lanes: at 5 GB a second, 50 us."""
    room_share: float = 2.0
    """A program that is compiled for up to so many times the lanes of a call runs it, rather than a new one. The same
    cells, of 64 lanes: 48, 40, 32, 24 and 16 examples take 1.1, 1.2, 1.1, 1.2 and 1.6 times as long as alone; 16 of 24
    1.3 times."""

    first_capacity: int = 32
    """Initial capacity of stacks, in live calls."""
    refilled: int = 16
    """Free lanes take examples that wait once one lane of so many is free."""
    spread: int = 16
    """Initial number of lanes for each example in a run whose calls are forked."""
    enough_lanes: float = 1.25
    """Ratio, of a lane for each call to the lanes of a run in which calls waited, up to which the next run has as few.
    58 small TreeLSTMs take 1.02 of the time with 928 lanes in place of 1,052, a training step 1.03; another number of
    lanes is compiled anew (10 s). Large ones with 3,712 for 5,262 make 1.2 times the trips."""
    least_bytes: int = 1024 * KIB
    """Bytes of lanes with which such a run begins, however few examples there are, unless these are many lanes. It goes
    on with more where they are too few, and each number of them is compiled anew (6 s for a tree's cell)."""
    least_lanes: int = 1024
    """Maximal number of lanes with which such a run begins."""
    lane_bytes: int = 256 * 1024 * KIB
    """Bytes of all lanes up to which such runs take more of them."""
    expensive_chunk: int = 16
    """Number of rows of an expensive block that are computed at a time, where calls are forked and lanes come there
    behind a join, level by level."""
    expensive_chunk_of_ends: int = 32
    """The same of an expensive block that lies behind no join, to which all lanes come first. 64 small TreeLSTMs take
    0.96 of the time with 32 in place of 16, a training step 0.98; with 64 1.0 and 1.0 (a busy machine)."""
    cheap_chunk: int = 32
    """The same of other blocks. With 32 in place of 128, beside a run without forks in the same process: 16 small and
    large TreeLSTMs of 128 cells take 0.83 and 0.96 of the time, 64 small ones 0.94 (a busy machine)."""
    forked_few: int = 8
    """Number of examples, on `least_lanes` lanes at most, up to which chunks have fewer rows where calls are forked;
    not in deterministic runs."""
    expensive_chunk_of_few: int = 4
    """Number of rows of an expensive block then. One, 4 and 8 large TreeLSTMs take 0.76, 0.9 and 0.92 of the time with
    4 in place of 16; 16 of them 1.14."""
    cheap_chunk_of_few: int = 16
    """The same of other blocks: one large TreeLSTM takes 0.8 of the time with 16 in place of 128."""
    growth: int = 4
    """Factor by which stacks grow. Each size is compiled anew (1 to 3 s), so few sizes: from 32 to 8192 there are
    five."""

    split_read: int = 512 * KIB
    """Bytes from which on XLA's CPU compiler splits a loop that reads them: two threads' worth of its `L2 Cache size`.
    64 lanes that read one element of 10,000 each take 2 to 9 us by threads, 0.3 without."""
    long_row: int = 1024
    """Numbers of a lane from which on its row is gathered as XLA likes. A BiLSTM whose second loop reads all states of
    the first, 64 x 256 numbers, takes 0.73 and 0.24 times as long so, at 64 and 256 sentences."""
    split_copy: int = 1024 * KIB
    """Bytes from which on XLA's CPU runtime splits a copy between threads: 4 us even where nothing moves."""
    copied: int = 32 * KIB
    """Bytes from which on copying an array in the idle arm of a conditional costs more than a loop of one turn."""
    few_copied: int = 2
    """Maximal number of arrays, computed anew, that may be copied if they are small."""
    tallied: int = 2**12
    """Lanes times labels from which on a sum by segments is faster than a product. 4096 lanes, 40 labels: 27 us instead
    of 440; below, segments save compiling only (512 lanes, 21 labels: 0.19 s, for 0.2 us a time)."""
    written_at_once: int = 3
    """Number of short writes at the end of a block that wait for the same one. Of more than eight kernels that could
    run, XLA hands half to another thread, and a block has others, too."""
    short_write: int = 64 * KIB
    """Bytes of the largest array that is written faster than another thread takes it over."""
    few_rows: int = 32
    """Number of rows up to which their product with a matrix as it lies in memory is faster than with its transpose.
    From 64 on both take equally long."""

    expensive_gradients: float = 1e7
    """Work of the gradients of all chains of a sampler from which on XLA uses all cores for them. Logistic regressions
    on two cores: 4e6 (64 chains, 1,000 x 25) is 1.25 times as fast in two groups, 3e7 (8 chains, 10,000 x 100) half as
    fast."""
    dense_entry: float = 12.0
    """Work of a sampler's gradient, for each entry of a dense metric, from which on one is learned. A leaf costs 0.5 to
    1.3 us more with 5 to 10 numbers, 6 work for each entry with 44 to 80. Effective sizes of a gradient are 1.0 to 1.2
    times those of a diagonal where parameters are hardly correlated, 7 to 28 times in regressions."""
    dense_largest: int = 200
    """Maximal number of parameters for it: each chain's window of the warm-up has two such matrices."""
    quartered: int = 512
    """Numbers of a row from which on they are summed in four parts, in lockstep. Gradients of a logistic regression of
    1,000 x 25 take 0.95 to 0.97 of the time so at 64 chains; eight and twenty parts gain no more."""
    native_sum: int = 32
    """Numbers of one lane from which on their sum is a product with ones in native code. It is added up several at a
    time. The sampler takes 0.91 of the time so with two sums of 100 numbers in each leaf, 1.04 with two of 9 and 10."""
    native_split: float = 0.001
    """CPU seconds of a native run from which on cores share it: a thread takes up to 0.1 ms to begin, and 0.5 ms of
    Collatz on two take 0.1 ms more CPU time."""
    native_part_seconds: float = 0.0001
    """CPU seconds of a part of it: to take another part costs 5 us."""
    native_chunk: float = 0.05
    """Seconds after which a native run returns to Python for a moment. Half a second of n-queens, and of one long lane,
    in such chunks takes 0.8 and 1.05 times the CPU time of one chunk: within the noise."""
    native_pace: float = 1e9
    """Work of a second of native code, for the first chunk, of which nothing is known yet. Not measured: a quarter of
    what a core does otherwise, as it is better to begin with too little."""
    native_visit: int = 2**22
    """Steps of all lanes together between two trips of the machine, so that these come 0.1 s apart. There are fewer
    where a step may do more work than `native_pace` has for it."""
    native_least: int = 2**10
    """Number of these steps that each lane may make in any case."""
    native_among: float = 2.5e6
    """Work of a row in lockstep up to which native code runs among such rows. It saves 0.5 to 2 us for each of them in
    samplers and trees: of products, of which a core does 1e5 a microsecond, 2% or more."""
    native_seldom: float = 50_000.0
    """Work of a row up to which a block is native that lanes come to seldom. Others in lockstep run more often, and
    it does much to few numbers. 100 to 400 normal numbers or exponentials before 8 or 40 products of 32,000
    multiply-adds: 0.48 to 0.96 of the time with 8 lanes, 0.70 to 0.92 with 64, 0.89 to 0.99 with 512, 0.91 to 1.03
    with all in step."""
    native_few: int = 1024
    """Number of elements that counts as few: 12,000 in `tanh` take 0.91 to 1.07 of the time, a sum of them up to
    1.5."""
    native_work: float = 20_000.0
    """Work of a row up to which a block is cheap: the native form is for programs of cheap blocks only. A loop of a
    product and a sum of 10,000 numbers takes half the time of lockstep at 64 lanes, one of `tanh` as long."""
    native_shared: float = 4_000.0
    """The same of a sampler's gradient with a product by shared data, from `shared_rows` chains on. Of native code's
    time the mixed form takes 1.0 at 1,700 (46 x 7, 64 chains), 0.82 at 6,600 (195 x 5, 64 chains; 0.87 of 8 chains) and
    0.58 at 12,700 (434 x 4, 64 chains)."""
    shared_rows: int = 8
    """Minimal number of rows for which a product by shared data is clearly cheaper than one for each."""

    compiled_convolution: float = 1.1
    """Factor between XLA's code for a convolution and TensorFlow's own kernels, or its gradient with respect to images,
    for kernels that all lanes share. 64 lanes, 28 x 28 and 14 x 14 places, 32 and 128 channels: 1.04 to 1.3."""
    compiled_to_kernel: float = 2.2
    """The same of its gradient with respect to its kernel, as products (`rules`). 32 and 128 channels: 2.2 to 2.3."""
    compiled_volume: float = 11.0
    """The same of a convolution in three dimensions and its gradients. 11 to 12."""
    compiled_by_channel: float = 30.0
    """The same of a convolution by channel and its gradient with respect to images. 28 to 58."""
    compiled_own_kernel: float = 0.2
    """The same of a convolution with a kernel that is each lane's own, its gradient with respect to images included.
    That is 0.2; without it, 1.15."""
    compiled_sort: float = 3.0
    """The same of the largest of some numbers, and of sorts. 1,000 numbers: 2.2 to 6.9."""
    compiled_product: float = 0.75
    """The same of a product. A layer of 768 0.75 to 0.93, two of 768 x 3,072 0.56 to 0.61, 256 x 256 by lane 0.77."""
    uncompiled: float = 6_000.0
    """Work of a row that TensorFlow's own kernels must save: twenty of them take 0.1 ms for 64 lanes to begin."""
    compared: int = 256 * KIB
    """Bytes of a captured NumPy array up to which a call compares its elements with those that the last call had. 4,000
    bytes: 0.2 us instead of 24 to make an array of them; 256,000: 31 instead of 85; a million: 106 instead of 93."""

    tape_batches: int = 8
    """Minimal room of a block's tape, in whole batches of rows, in a segment of a taped run. A segment costs a call of
    a compiled program in each direction, 0.1 ms, and fresh tapes."""
    tape_rows: int = 4096
    """Number of further rows, if these are not too large: a few lanes would have many short segments else."""
    tape_least: int = 64
    """Number of further rows in any case. A training step of one TreeLSTM of 128 cells with 2 to 15 leaves takes 8.4 to
    3.1 ms with 4096 to no rows more; of 64 with 2 to 100 leaves, in one to five segments, 55 to 71 ms."""
    tape_bytes: int = 16 * 1024 * KIB
    """Maximal size of these rows in bytes, in one array: fresh zeros are written at 5 GB a second."""
    tape_log: int = 4096
    """Number of block runs that a segment logs, of eight bytes each."""
    tape_beginnings: int = 8
    """Minimal number of segments' beginnings that `tape="replay"` keeps, and more up to `tape_bytes` together."""
    tape_beginnings_most: int = 256
    """Maximal number of these beginnings."""
    pulled: int = 1024
    """Number of a tape's wide rows whose gradients by shared operands are computed together. Where fewer are left a
    quarter of them is, and half of them where rows are not wide. Products of `[rows, 384]` and `[rows, 1024]` run at
    150, 161, 187, 192 and 200 GFLOP/s with 256, 512, 1024, 2048 and 3584 rows."""
    pulled_short: int = 96
    """Number of such rows on tapes of less than four times `pulled`, where rows are not wide. What counts there is that
    few are left over. Products of `[rows, 256]` and `[rows, 640]` take 5.2 to 4.8 us a row with 64 to 512 rows (one
    thread)."""
    pulled_wide: int = 4096
    """Bytes of a row's deltas from which on it is wide. To compile two sizes takes a TreeLSTM of 128 cells (2,560) 1.2
    of 8.2 s more for 2% of a training step, an LSTM of 256 cells (4,096) 0.3 of 5 s for 6%."""

    cached_numbers: int = 2**15
    """Number of elements that a sampler's diagnostics process together. They are few enough to stay in a cache of the
    CPU's, which computes them on any device, many enough for small runs to be fast."""

    not_measured: frozenset[str] = frozenset()
    """The fields that nobody has measured on such a device: they read as the CPU's."""


CPU = Device()

MEASURED = tuple(field.name for field in fields(Device) if field.name not in ("kind", "not_measured"))


def like_the_cpu(kind: str, entries: Mapping[str, Any]) -> Device:
    """A device of which `entries` (every one of `MEASURED`) were measured, or, where None, not: they are the CPU's."""
    if entries.keys() != set(MEASURED):
        raise ValueError(f"a device has the entries {', '.join(MEASURED)}")
    known = {name: value for name, value in entries.items() if value is not None}
    return replace(CPU, kind=kind, not_measured=frozenset(entries.keys() - known.keys()), **known)


GPU = like_the_cpu(
    "gpu",
    {
        **dict.fromkeys(MEASURED),
        "gathered": 1e9,
        "gathered_sync": 1e9,
        "guard": 1e9,
        "trips_together": 16,
        "chunk_work": 1e9,
        "chunk_shared": 128,
        "chunk_least": 128,
        "chunk_most": 4096,
    },
)
"""Measurements of an NVIDIA H200, TensorFlow 2.21 (docs/gpu.md); the rest reads as the CPU's. What is tuned to XLA's
CPU compiler is off there.

A run of a block takes 20 to 50 us there, whatever is in it. In chunks, as on a CPU, a sampler's call (10,000 x 100, 64
chains, 2.6e8 of work in a gradient of all) took 152 ms, on all lanes 20, with blocks merged, too; 1,024 small TreeLSTMs
of 128 cells took 214 and 91: beside other programs. More work than that was not measured, nor were chunks of more rows:
theirs are multiples of the 128 that the card's 132 processors take one each, up to the work that covers a look."""


def device_of(place: str) -> Device:
    """Return the measurements for programs for "CPU" or "GPU"."""
    return GPU if place == "GPU" else CPU
