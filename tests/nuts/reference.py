"""The two kernels in plain Python, close to their sources and to nothing of ours but the random bits.

`algorithm_6` is Hoffman and Gelman's (JMLR 2014), `stan` follows Stan's `base_nuts.hpp`: both ends of every tree are
kept, going backwards is going forwards in time with the ends exchanged, and velocities are kept beside momenta. But
points are drawn leaf by leaf, as ours are, and not between sub-trees: the same distribution from other random bits.
"""

import numpy as np

from pcbatch import random

THRESHOLD = 1000.0


class Trajectory:
    """What both need: a density, a metric, a step size, and the random bits that the sampler draws from `key`."""

    def __init__(self, density, inverse_mass, step_size, key, limit, parts):
        self.density = density  # q -> (lp, gradient), NumPy
        self.inverse = np.diag(inverse_mass) if inverse_mass.ndim == 1 else inverse_mass
        self.step_size, self.limit = step_size, limit
        self.keys = random.split(key, parts)
        mass_root = np.linalg.inv(np.linalg.cholesky(self.inverse)).T
        self.p_0 = mass_root @ random.normal(self.keys[0], (len(self.inverse),), "float64").numpy()
        self.uniform = random.uniform(self.keys[1], (limit, 2), "float64").numpy()
        self.leaves = 0
        self.acceptance = 0.0
        self.diverging = False

    def hamiltonian(self, q, p):
        energy = 0.5 * p @ self.inverse @ p - self.density(q)[0]
        return energy if np.isfinite(energy) else np.inf

    def leapfrog(self, q, p, direction):
        step = direction * self.step_size
        p = p + 0.5 * step * self.density(q)[1]
        q = q + step * self.inverse @ p
        p = p + 0.5 * step * self.density(q)[1]
        self.leaves += 1
        return q, p

    def luck_of_node(self, depth):
        """The uniform number of the tree of this depth that the last leaf completed."""
        return float(random.uniform(random.fold_in(self.keys[2], 64 * self.leaves + depth), (), "float64"))

    def luck_of_leaf(self):
        """The uniform number of the last leaf."""
        return float(random.uniform(random.fold_in(self.keys[2], self.leaves - 1), (), "float64"))


def algorithm_6(density, q, inverse_mass, step_size, key, limit):
    """One iteration of the outer loop: `(q, depth, leaves, acceptance, diverging)`."""
    t = Trajectory(density, inverse_mass, step_size, key, limit, parts=4)
    energy_0 = t.hamiltonian(q, t.p_0)
    log_u = -energy_0 - float(random.exponential(t.keys[3], (), "float64"))

    def build_tree(q, p, v, j):
        if j == 0:
            q, p = t.leapfrog(q, p, v)
            joint = -t.hamiltonian(q, p)
            n, s = int(log_u <= joint), int(log_u < THRESHOLD + joint)
            t.acceptance += min(1.0, np.exp(joint + energy_0))
            t.diverging = t.diverging or not s
            return q, p, q, p, q, n, s
        q_minus, p_minus, q_plus, p_plus, q_new, n, s = build_tree(q, p, v, j - 1)
        if s == 1:
            if v == -1:
                q_minus, p_minus, _, _, q_other, n_other, s_other = build_tree(q_minus, p_minus, v, j - 1)
            else:
                _, _, q_plus, p_plus, q_other, n_other, s_other = build_tree(q_plus, p_plus, v, j - 1)
            if t.luck_of_node(j) * (n + n_other) < n_other:
                q_new = q_other
            way = q_plus - q_minus
            s = s_other * int(way @ p_minus >= 0) * int(way @ p_plus >= 0)
            n = n + n_other
        return q_minus, p_minus, q_plus, p_plus, q_new, n, s

    q_minus = q_plus = q_m = q
    p_minus = p_plus = t.p_0
    j, n, s, v = 0, 1, 1, 1
    while s == 1 and j < limit:
        v = -v if t.uniform[j, 0] < 0.5 else v
        if v == -1:
            q_minus, p_minus, _, _, q_new, n_new, s_new = build_tree(q_minus, p_minus, v, j)
        else:
            _, _, q_plus, p_plus, q_new, n_new, s_new = build_tree(q_plus, p_plus, v, j)
        if s_new == 1:
            if t.uniform[j, 1] < min(1.0, n_new / n):
                q_m = q_new
            j += 1
        n = n + n_new
        way = q_plus - q_minus
        s = s_new * int(way @ p_minus >= 0) * int(way @ p_plus >= 0)
    return q_m, j, t.leaves, t.acceptance / t.leaves, t.diverging


def stan(density, q, inverse_mass, step_size, key, limit):
    """One transition of Stan's multinomial sampler: `(q, depth, leaves, acceptance, diverging)`."""
    t = Trajectory(density, inverse_mass, step_size, key, limit, parts=3)
    energy_0 = t.hamiltonian(q, t.p_0)

    def criterion(sharp_minus, sharp_plus, rho):
        return sharp_minus @ rho > 0 and sharp_plus @ rho > 0

    drawn, total = q, -np.inf  # of the leaves of one doubling

    def build_tree(z, v, depth):
        """`(valid, end, rho, (p_begin, sharp_begin), (p_end, sharp_end))`, in order of travel."""
        nonlocal drawn, total
        if depth == 0:
            q, p = t.leapfrog(*z, v)
            energy = t.hamiltonian(q, p)
            t.diverging = t.diverging or energy - energy_0 > THRESHOLD
            t.acceptance += min(1.0, np.exp(energy_0 - energy))
            total = np.logaddexp(total, energy_0 - energy)
            if energy < np.inf and t.luck_of_leaf() < np.exp(energy_0 - energy - total):
                drawn = q
            edge = p, t.inverse @ p
            return not t.diverging, (q, p), p, edge, edge
        valid, z, rho, begin, middle = build_tree(z, v, depth - 1)
        if not valid:
            return valid, z, rho, begin, middle
        valid, z, rho_next, next_, end = build_tree(z, v, depth - 1)
        if not valid:
            return valid, z, rho, begin, end
        valid = (
            criterion(begin[1], end[1], rho + rho_next)
            and criterion(begin[1], next_[1], rho + next_[0])
            and criterion(middle[1], end[1], rho_next + middle[0])
        )
        return valid, z, rho + rho_next, begin, end

    ends = {1: (q, t.p_0), -1: (q, t.p_0)}
    sample, log_weight, rho, depth, v = q, 0.0, t.p_0, 0, 1
    while depth < limit:
        v = -v if t.uniform[depth, 0] < 0.5 else v
        seam, other = ends[v][1], ends[-v][1]
        total = -np.inf
        valid, ends[v], rho_new, (p_next, sharp_next), (_, sharp_end) = build_tree(ends[v], v, depth)
        if not valid:
            break
        if t.uniform[depth, 1] < min(1.0, np.exp(total - log_weight)):
            sample = drawn
        depth += 1
        if not (
            criterion(t.inverse @ other, sharp_end, rho + rho_new)
            and criterion(t.inverse @ other, sharp_next, rho + p_next)
            and criterion(t.inverse @ seam, sharp_end, rho_new + seam)
        ):
            break
        log_weight = np.logaddexp(log_weight, total)
        rho = rho + rho_new
    return sample, depth, t.leaves, t.acceptance / t.leaves, t.diverging
