"""Pictures, shapes, robots."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import pcbatch


class Vector(NamedTuple):
    x: float
    y: float
    z: float

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other):
        return Vector(self.x - other.x, self.y - other.y, self.z - other.z)

    def __mul__(self, number):
        return Vector(self.x * number, self.y * number, self.z * number)

    def dot(self, other):
        return self.x * other.x + self.y * other.y + self.z * other.z

    def unit(self):
        return self * (1.0 / math.sqrt(self.dot(self)))


@dataclass(frozen=True)
class Sphere:
    centre: Vector
    radius: float
    shine: float

    def hit(self, origin, direction):
        offset = origin - self.centre
        b = offset.dot(direction)
        d = b * b - offset.dot(offset) + self.radius**2
        if d < 0:
            return None
        t = -b - math.sqrt(d)
        return t if t > 1e-3 else None


SCENE = [
    Sphere(Vector(0.0, 0.0, 5.0), 1.0, 0.5),
    Sphere(Vector(1.5, 0.0, 4.0), 0.7, 0.3),
    Sphere(Vector(0.0, -101.0, 5.0), 100.0, 0.2),
]
LIGHT = Vector(1.0, 1.0, -1.0).unit()


def trace(origin, direction, depth):
    nearest, sphere = None, None
    for each in SCENE:
        t = each.hit(origin, direction)
        if t is not None and (nearest is None or t < nearest):
            nearest, sphere = t, each
    if sphere is None:
        return 0.1 + 0.1 * direction.y
    point = origin + direction * nearest
    normal = (point - sphere.centre).unit()
    colour = max(normal.dot(LIGHT), 0.0) * (1.0 - sphere.shine)
    if depth > 0:
        mirrored = direction - normal * (2.0 * normal.dot(direction))
        colour += sphere.shine * trace(point, mirrored, depth - 1)
    return colour


@pcbatch.autobatch
def ray(x, y, depth):
    """The brightness of one pixel of a scene of three spheres, with reflections."""
    return trace(Vector(0.0, 0.0, 0.0), Vector(x, y, 1.0).unit(), depth)


def cross(o, a, b):
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


@pcbatch.autobatch
def convex_hull(points):
    """Andrew's monotone chain: the number of corners, and the area."""
    points = sorted((x, y) for x, y in points)

    def chain(points):
        hull = []
        for p in points:
            while len(hull) >= 2 and cross(hull[-2], hull[-1], p) <= 0:
                hull.pop()
            hull.append(p)
        return hull[:-1]

    hull = chain(points) + chain(points[::-1])
    area = 0.0
    for (x0, y0), (x1, y1) in zip(hull, hull[1:] + hull[:1]):
        area += x0 * y1 - x1 * y0
    return len(hull), area / 2


@dataclass
class Quad:
    x: float
    y: float
    size: float
    points: list
    children: list = None

    def insert(self, p):
        if self.children is None:
            self.points.append(p)
            if len(self.points) > 2 and self.size > 0.2:
                half = self.size / 2
                self.children = [
                    Quad(self.x + dx * half, self.y + dy * half, half, []) for dy in (0, 1) for dx in (0, 1)
                ]
                for q in self.points:
                    self.child_of(q).insert(q)
                self.points = []
        else:
            self.child_of(p).insert(p)

    def child_of(self, p):
        half = self.size / 2
        return self.children[(2 if p[1] >= self.y + half else 0) + (1 if p[0] >= self.x + half else 0)]

    def depth(self):
        if self.children is None:
            return 0
        return 1 + max(child.depth() for child in self.children)


@pcbatch.autobatch
def quadtree(points):
    """Inserts points into a quadtree, and says how deep it is."""
    root = Quad(0.0, 0.0, 1.0, [])
    for x, y in points:
        root.insert((x, y))
    return root.depth()


class PID:
    def __init__(self, kp, ki, kd, limit):
        self.kp, self.ki, self.kd = kp, ki, kd
        self.limit = limit
        self.integral = 0.0
        self.last_error = None

    def __call__(self, error, dt):
        slope = 0.0 if self.last_error is None else (error - self.last_error) / dt
        self.last_error = error
        output = self.kp * error + self.ki * self.integral + self.kd * slope
        clamped = min(max(output, -self.limit), self.limit)
        if clamped == output:
            self.integral += error * dt
        return clamped


@pcbatch.autobatch
def pid(target, gains, steps):
    """A heater under a PID controller with anti-windup."""
    controller = PID(*gains, limit=10.0)
    temperature, overshoot = 20.0, 0.0
    trail = np.zeros(5)
    for step in range(steps):
        power = controller(target - temperature, 0.1)
        temperature += 0.1 * (power - 0.5 * (temperature - 20.0))
        overshoot = max(overshoot, temperature - target)
        trail[step % len(trail)] = temperature
    return temperature, overshoot, trail.mean(), controller.integral


@pcbatch.autobatch
def bresenham(picture, start, end):
    """Draws a line, as far as it is inside of the picture."""
    (x0, y0), (x1, y1) = start, end
    dx, dy = abs(x1 - x0), -abs(y1 - y0)
    sx = 1 if x0 < x1 else -1
    sy = 1 if y0 < y1 else -1
    error = dx + dy
    drawn = 0
    height, width = picture.shape
    while True:
        if 0 <= y0 < height and 0 <= x0 < width:
            picture[y0, x0] += 1
            drawn += 1
        if x0 == x1 and y0 == y1:
            break
        doubled = 2 * error
        if doubled >= dy:
            error += dy
            x0 += sx
        if doubled <= dx:
            error += dx
            y0 += sy
    return picture, drawn


POINTS = np.random.default_rng(6).uniform(size=(4, 6, 2))
PROGRAMS = {
    "ray": (ray, [0.0, 0.3, -0.1, 0.9], [0.0, 0.05, -0.2, 0.9], [2, 3, 1, 0]),
    "convex_hull": (convex_hull, POINTS),
    "quadtree": (quadtree, POINTS),
    "pid": (
        pid,
        [25.0, 30.0, 22.0, 20.0],
        np.array([[2.0, 0.5, 0.1], [5.0, 1.0, 0.0], [1.0, 0.0, 0.0], [3.0, 2.0, 0.2]]),
        [20, 40, 5, 10],
    ),
    "bresenham": (
        bresenham,
        np.zeros((4, 5, 5), dtype=np.int32),
        np.array([[0, 0], [4, 1], [-2, 3], [2, 2]]),
        np.array([[4, 4], [0, 3], [6, 1], [2, 2]]),
    ),
}
