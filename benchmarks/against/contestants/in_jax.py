"""JAX, in four ways that the variant names.

"vmap": `jax.vmap` of the task with its loops as they are; "one loop": a loop over `jax.vmap` of one turn, while any
lane goes on, so that no inner loop waits for its slowest lane and no array is masked as a whole; "map": `jax.lax.map`,
lane after lane. With "cores" after the name the lanes are shared among one device for each core. Flags hold for a whole
process and come with it (`crew`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from benchmarks.against.contestants import jax_tasks
from benchmarks.against.contestants.jax_tasks import Loop
from benchmarks.against.contestants.worker import Call, Job, serve

jax.config.update("jax_enable_x64", True)
Task = Callable[..., Loop]


def whole(task: Task, *arguments: jax.Array) -> jax.Array:
    """The task for one lane."""
    loop = task(*arguments)
    return loop.end(lax.while_loop(loop.going, loop.turn, loop.start))


def one_loop(task: Task, *arguments: jax.Array) -> jax.Array:
    """The task for all lanes: scalars of a lane that has ended stay, its arrays are the turn's business."""

    def of(part: str) -> Callable[[Any], Any]:
        return lambda state: jax.vmap(lambda given, state: getattr(task(*given), part)(state))(arguments, state)

    def turn(state: Any) -> Any:
        going = of("going")(state)
        keep = functools.partial(jnp.where, going)
        return jax.tree.map(lambda old, new: keep(new, old) if new.ndim == 1 else new, state, of("turn")(state))

    start = jax.vmap(lambda *given: task(*given).start)(*arguments)
    return of("end")(lax.while_loop(lambda state: of("going")(state).any(), turn, start))


def prepare(job: Job) -> Call:
    """A compiled call on the batch, which lies on the devices."""
    way, _, cores = job.variant.partition(", ")
    arguments = job.arguments()
    if way == "one loop":
        task = getattr(jax_tasks, f"{job.task}_flat", getattr(jax_tasks, job.task))
        function = functools.partial(one_loop, task)
    else:
        task = functools.partial(whole, getattr(jax_tasks, job.task))
        function = jax.vmap(task) if way == "vmap" else lambda *batch: lax.map(lambda lane: task(*lane), batch)
    given: Any = [jnp.asarray(array) for array in arguments]
    if cores:
        mesh = Mesh(jax.devices()[: math.gcd(job.lanes, jax.device_count())], ("lanes",))
        split = PartitionSpec("lanes")
        function = jax.shard_map(function, mesh=mesh, in_specs=split, out_specs=split, check_vma=False)
        given = jax.device_put(given, NamedSharding(mesh, split))
    compiled = jax.jit(function)
    return lambda: np.asarray(compiled(*given))


if __name__ == "__main__":
    serve(prepare)
