"""Methods that call those of the classes they inherit from, `super().f(x)`, of objects that are made for each lane."""

import numpy as np

import pcbatch

DTYPES = ("float32", "float32", "int32", "float32")


class Body:
    def __init__(self, mass):
        self.mass = mass
        self.pushes = 0

    def pushed(self, force):
        self.pushes += 1
        if force > self.mass:
            return force / self.mass
        return 0.0

    def slowed(self, v):
        if v < 0.25:
            return v
        return self.slowed(0.5 * v)

    def drag(self, v):
        return 0.5 * v

    def settled(self, v):
        while v > 1.0:
            v -= self.drag(v) + 0.125
        return v

    @property
    def weight(self):
        return 9.75 * self.mass if self.mass > 1.0 else 9.75


class Damped(Body):
    def pushed(self, force):
        return 0.5 * super().pushed(force)

    def drag(self, v):
        return 0.25 * v


class Engine(Damped):
    def __init__(self, mass, fuel):
        super().__init__(mass)
        self.fuel = fuel

    def pushed(self, force):
        if self.fuel > 0.5:
            self.fuel -= 0.25 * super().pushed(force)
            return super(Damped, self).pushed(self.fuel + force)
        return force

    def slowed(self, v):
        y = super().slowed(0.75 * v)
        self.pushes += 10
        return y

    def settled(self, v):
        return super().settled(super().settled(v) + 2.0) + super().drag(v)

    @property
    def weight(self):
        return super().weight + self.fuel


KEPT = Engine(1.5, 2.0)


def moved(body, v):
    return body.pushed(v) + body.settled(v)


@pcbatch.autobatch
def inheritance(x, n):
    engine, damped = Engine(x + 0.5, 1.0), Damped(1.5)
    y = x
    for _ in range(n):
        y += engine.pushed(y + 1.0)
        damped.pushed(y)
    z = engine.slowed(y) + engine.settled(4.0 * x) + engine.weight
    pair = [Engine(x, 2.0), Engine(1.0, 0.75)]
    z += pair[n % 2].pushed(2.0)
    return z + engine.fuel, moved(Damped(x), y), engine.pushes + 100 * damped.pushes, KEPT.settled(y) + KEPT.weight


def batch(rng, lanes):
    return 0.5 + 2.0 * rng.random(lanes).astype(np.float32), rng.integers(0, 4, lanes, dtype=np.int32)
