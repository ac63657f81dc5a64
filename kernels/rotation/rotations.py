"""Sets of rotations and boxes of shifts: index -> matrix, index -> vector; pure."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

# Of super-Fibonacci spirals: the square root of 2, and the root of x⁴ = x + 4.
PHI = math.sqrt(2)
PSI = 1.533751168755204288118041
PROBES, STARTS, CLIMBS = 1 << 17, 256, 16  # for the covering radius


@dataclass(frozen=True)
class EulerRotations:
    """Rz(γ) Ry(β) Rx(α), each angle 0, p, 2p … < 360°; index = (i_α n + i_β) n + i_γ.

    precision: p in degrees, finite and above 0; taken as the decimal number it prints as, so that
    0.1 is a tenth and divides 360. n = ceil(360 / p).

    Of triples that are the same rotation only the lowest index is evaluated: docs/dock.md
    ("Rotations alone") has the two rules. By the first it has α < 180°, which is the first half of
    all indices. By the second it has α = 0 where 360° is a multiple of p, as it is where 90° is
    one. Where only 270° is (p = 54° or 67.5°), sums of angles do not come round: for one above the
    greatest γ no triple has α = 0, and the lowest index is that with the greatest γ.
    """

    precision: float

    @cached_property
    def step(self) -> Fraction:
        """Degrees from one angle to the next."""
        return Fraction(repr(float(self.precision)))

    @cached_property
    def n(self) -> int:
        """Angles of each axis."""
        return math.ceil(360 / self.step)

    @property
    def count(self) -> int:
        """Rotations, those that repeat others included."""
        return self.n**3

    @property
    def stop(self) -> int:
        """Every rotation from here on repeats one with a lower index."""
        half = 180 / self.step
        return int(half) * self.n**2 if half.denominator == 1 else self.count

    @property
    def locked(self) -> tuple[int, int]:
        """The numbers of 90° and 270° among the angles; n for what is none of them."""
        return self._number_of(90), self._number_of(270)

    @property
    def wrap(self) -> int:
        """Number of γ below which triples at a locked β and an α above 0 repeat others."""
        return self.n if (360 / self.step).denominator == 1 else self.n - 1

    def _number_of(self, degrees: int) -> int:
        number = degrees / self.step
        return int(number) if number.denominator == 1 else self.n

    @cached_property
    def table(self) -> Floats:
        """float64[n, 2]: cosine and sine of the angles, exact at multiples of 90°."""
        return np.array([cos_sin(i * self.step) for i in range(self.n)])

    def _split(self, indices: Indices) -> tuple[Indices, Indices, Indices]:
        rest, gamma = np.divmod(indices, self.n)
        alpha, beta = np.divmod(rest, self.n)
        return alpha, beta, gamma

    def angles(self, indices: Indices) -> Floats:
        """Return float64[k, 3]: α, β, γ in degrees."""
        numbers = np.stack(self._split(indices), axis=-1).astype(np.float64)
        return numbers * float(self.step)

    def is_first(self, indices: Indices) -> NDArray[np.bool_]:
        """Return bool[k]: no lower index is the same rotation."""
        alpha, beta, gamma = self._split(indices)
        repeats = (alpha > 0) & (gamma < self.wrap) & np.isin(beta, self.locked)
        return np.asarray((indices < self.stop) & ~repeats)

    def matrices(self, indices: Indices) -> Floats:
        """Return float64[k, 3, 3]."""
        (ca, sa), (cb, sb), (cc, sc) = (self.table[i].T for i in self._split(indices))
        return _stacked(
            (cb * cc, sa * sb * cc - ca * sc, ca * sb * cc + sa * sc),
            (cb * sc, sa * sb * sc + ca * cc, ca * sb * sc - sa * cc),
            (-sb, sa * cb, ca * cb),
        )


def cos_sin(degrees: Fraction) -> tuple[float, float]:
    quarters, rest = divmod(degrees % 360, 90)
    cosine, sine = math.cos(math.radians(rest)), math.sin(math.radians(rest))
    for _ in range(quarters):
        cosine, sine = -sine, cosine
    return cosine, sine


@dataclass(frozen=True)
class ListedRotations:
    """Rotations by their quaternions.

    quaternions: float64[n, 4] w x y z, n > 0, finite, not 0; they are normalised. Repetitions are
    not looked for.
    """

    quaternions: Floats

    def __post_init__(self) -> None:
        given = np.asarray(self.quaternions, np.float64)
        length = np.sqrt((given * given).sum(axis=1, keepdims=True))
        object.__setattr__(self, "quaternions", np.ascontiguousarray(given / length))

    @property
    def count(self) -> int:
        return len(self.quaternions)

    @property
    def stop(self) -> int:
        return self.count

    def is_first(self, indices: Indices) -> NDArray[np.bool_]:
        return indices < self.stop

    def matrices(self, indices: Indices) -> Floats:
        w, x, y, z = self.quaternions[indices].T
        return _stacked(
            (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
            (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
            (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
        )


Rotations = EulerRotations | ListedRotations


def _stacked(*rows: tuple[Any, Any, Any]) -> Floats:
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def quaternions(matrices: Floats) -> Floats:
    """Return float64[k, 4] w x y z with w >= 0, of rotation matrices float64[k, 3, 3].

    4 q qᵀ can be read off a matrix; its longest column is taken, so that nothing small is divided
    by (Shepperd, Quaternion from rotation matrix, 1978).
    """
    m = matrices.transpose(1, 2, 0)
    xx, yy, zz, one = m[0, 0], m[1, 1], m[2, 2], np.ones(len(matrices))
    wx, wy, wz = m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
    xy, xz, yz = m[0, 1] + m[1, 0], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1]
    columns = np.array(
        [
            [one + xx + yy + zz, wx, wy, wz],
            [wx, one + xx - yy - zz, xy, xz],
            [wy, xy, one - xx + yy - zz, yz],
            [wz, xz, yz, one - xx - yy + zz],
        ]
    )
    lengths = np.sqrt((columns * columns).sum(axis=1))
    each, longest = np.arange(len(matrices)), lengths.argmax(axis=0)
    length = np.where(columns[longest, 0, each] < 0, -1, 1) * lengths[longest, each]
    return np.asarray(columns[longest, :, each] / length[:, None])


def near_uniform(n: int) -> ListedRotations:
    """Return n rotations spread nearly evenly over SO(3), the same ones every time.

    Super-Fibonacci spirals (Alexa, Super-Fibonacci Spirals: Fast, Low-Discrepancy Sampling of
    SO(3), CVPR 2022): made for any n, one formula a rotation, and more even than random,
    Halton or HEALPix-based sets of that size; layered grids (Yershova et al. 2010) exist for
    few n only. `covering_radius` says how far any rotation is from the nearest.
    """
    s = np.arange(n) + 0.5
    inner, outer = np.sqrt(s / n), np.sqrt(1 - s / n)
    first, second = 2 * np.pi * s / PHI, 2 * np.pi * s / PSI
    w, z = outer * np.cos(second), outer * np.sin(second)
    x, y = inner * np.sin(first), inner * np.cos(first)
    return ListedRotations(np.stack([w, x, y, z], axis=1))


def covering_radius(rotations: ListedRotations) -> float:
    """Return how far the rotation that is farthest from the whole set is from it, in degrees.

    Found by climbing from the farthest of many rotations: never too large, and some thousandths too
    small where it was compared with a thousand times as many.
    """
    from multigpu.kernels.rotation.nearest import k_d_tree, nearest_distances

    # A rotation is two quaternions, which are each other's negatives.
    tree = k_d_tree(np.concatenate([rotations.quaternions, -rotations.quaternions]))

    def distance(probes: Floats) -> Floats:
        """Return the distances of quaternions, [..., 4], to the nearest of the set."""
        return nearest_distances(tree, probes.reshape(-1, 4)).reshape(probes.shape[:-1])

    probes = near_uniform(PROBES).quaternions
    far = probes[np.argsort(-distance(probes))[:STARTS]]
    step = rotations.count ** (-1 / 3)
    for _ in range(CLIMBS):
        around = np.concatenate([far[:, None], _turned(far, step)], axis=1)
        far = around[np.arange(len(far)), distance(around).argmax(axis=1)]
        step *= 0.75
    return math.degrees(4 * math.asin(min(distance(far).max() / 2, 1.0)))


def _turned(far: Floats, angle: float) -> Floats:
    """Return float64[k, 14, 4]: quaternions turned further, both ways about axes and diagonals."""
    w, x, y, z = far.T
    about = np.stack([[-x, w, -z, y], [-y, z, w, -x], [-z, -y, x, w]])
    diagonals = np.array([[1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, 1, 1]])
    axes = np.concatenate([np.eye(3), diagonals, -np.eye(3), -diagonals])
    axes = axes / np.sqrt((axes * axes).sum(axis=1, keepdims=True))
    change = np.einsum("da,aqk->kdq", axes, about)
    return np.asarray(math.cos(angle / 2) * far[:, None] + math.sin(angle / 2) * change)


@dataclass(frozen=True)
class Shifts:
    """A box of translations: k · step on each axis, |k| step <= radius; in Å.

    radius: of all axes, or of x, y and z. With n shifts along each axis, index =
    ((i_x n_y) + i_y) n_z + i_z, from the lowest coordinates on; 0 <= radius and 0 < step, all
    finite. The default is the one shift by nothing.
    """

    radius: float | tuple[float, float, float] = 0.0
    step: float = 1.0

    @cached_property
    def sides(self) -> tuple[int, int, int]:
        """Shifts along x, y and z, counted with the decimal numbers that were written."""
        radii = self.radius if isinstance(self.radius, tuple) else (self.radius,) * 3
        step = Fraction(repr(float(self.step)))
        x, y, z = (2 * math.floor(Fraction(repr(float(each))) / step) + 1 for each in radii)
        return x, y, z

    @property
    def count(self) -> int:
        return math.prod(self.sides)

    def vectors(self, indices: Indices) -> Floats:
        """Return float64[k, 3] in Å."""
        rest, z = np.divmod(indices, self.sides[2])
        steps = np.stack([*np.divmod(rest, self.sides[1]), z], axis=-1)
        steps -= np.array(self.sides) // 2
        return steps.astype(np.float64) * float(self.step)
