"""The input, the options and the result of a search for poses."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import accumulate
from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.rotation.rotations import Floats, Indices, Rotations, Shifts

MOST_POSES = 1 << 63
MOST_NODES = 1 << 31  # of one channel, and
MOST_AN_AXIS = 1 << 20
MOST_VALUE, MOST_WEIGHT = 1e25, 1e3  # so that scores are finite in single precision, and so
FARTHEST, FINEST = 1e5, 1e-6  # Å: coordinates and spacing
PENALTY = 1000.0  # score / Å²: AutoDock 4 adds 500 d² to each of two energies of an atom outside
ROUNDING = 1e-9  # Å²: squared distances are known this well, or better


@dataclass(frozen=True)
class Field:
    """The pocket: what an atom scores, by its place.

    Values are C-contiguous, two nodes an axis or more. Raises ValueError for more than 2^20 of
    them, 2^31 nodes or more, an origin beyond ±1e5 Å, a spacing beyond 1e-6 to 1e6 Å, and values
    that are not finite or beyond ±1e25.
    """

    values: NDArray[np.float32]  # float32[channels, nx, ny, nz] at origin + spacing · (ix, iy, iz)
    origin: Floats  # float64[3], Å
    spacing: Floats  # float64[3], Å, above 0
    # trilinear between nodes, or that at floor(f + 0.5) of the place f in units of the spacing
    interpolation: Literal["linear", "nearest"] = "linear"
    # an atom outside the nodes' box scores as at the nearest place in it (clamp), nothing (zero),
    # or less the farther it is from the middle of the box (penalty): its first term is -PENALTY d²
    # with the distance d in Å, the others are nothing
    outside: Literal["clamp", "zero", "penalty"] = "clamp"

    def __post_init__(self) -> None:
        shape = self.shape
        if max(shape) > MOST_AN_AXIS or math.prod(shape) >= MOST_NODES:
            raise ValueError(f"a grid of {shape} nodes; up to 2^20 an axis, fewer than 2^31")
        if not (np.abs(self.origin) <= FARTHEST).all():
            raise ValueError(f"the origin is not finite or beyond ±{FARTHEST:g} Å")
        if not ((self.spacing >= FINEST) & (self.spacing <= 1 / FINEST)).all():
            raise ValueError(f"the spacing is {self.spacing.tolist()}; 1e-6 to 1e6 Å is possible")
        if not max(-self.values.min(), self.values.max()) <= MOST_VALUE:
            raise ValueError("a value of the grid is not finite or beyond ±1e25")

    @property
    def shape(self) -> tuple[int, ...]:
        """(nx, ny, nz)."""
        return self.values.shape[1:]

    @property
    def middle(self) -> Floats:
        """float64[3]: the middle of the nodes' box, in units of the spacing from the origin."""
        return (np.array(self.shape) - 1) * 0.5

    @cached_property
    def highest(self) -> NDArray[np.float32]:
        """float32[channels]: what there is at most, at a place inside or outside."""
        highest: NDArray[np.float32] = self.values.max(axis=(1, 2, 3))
        return highest if self.outside == "clamp" else np.maximum(highest, 0)

    @cached_property
    def largest(self) -> NDArray[np.float32]:
        """float32[channels]: the largest |value|."""
        largest: NDArray[np.float32] = np.maximum(
            self.values.max(axis=(1, 2, 3)), -self.values.min(axis=(1, 2, 3))
        )
        return largest


@dataclass(frozen=True)
class Ligands:
    """Rigid bodies. An atom scores the sum of weight × channel over its terms."""

    positions: Floats  # float64[atoms, 3], Å, as given; ligand after ligand
    offsets: Indices  # int64[n + 1]: ascending, offsets[0] == 0, offsets[-1] == atoms, none empty
    channels: NDArray[np.int32]  # int32[atoms, terms]: of the field, 1 to 3 terms
    weights: Floats  # float64[atoms, terms]: 0 to 1000

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, span: slice) -> "Ligands":
        begin, end, _ = span.indices(len(self))
        if (begin, end) == (0, len(self)):
            return self
        atoms = slice(self.offsets[begin], self.offsets[max(begin, end)])
        offsets = self.offsets[begin : max(begin, end) + 1] - self.offsets[begin]
        return Ligands(self.positions[atoms], offsets, self.channels[atoms], self.weights[atoms])

    @cached_property
    def sizes(self) -> Indices:
        """int64[n]: atoms of each."""
        return np.diff(self.offsets)

    @cached_property
    def centroids(self) -> Floats:
        """float64[n, 3]: the mean of the atoms of each."""
        sums = np.add.reduceat(self.positions, self.offsets[:-1]) if len(self) else np.empty((0, 3))
        return sums / self.sizes[:, None]

    @cached_property
    def relative(self) -> Floats:
        """float64[atoms, 3]: positions relative to the centroid."""
        return self.positions - np.repeat(self.centroids, self.sizes, axis=0)

    @cached_property
    def moments(self) -> Floats:
        """float64[n, 3, 3]: means of the products of the relative coordinates."""
        along = np.ascontiguousarray(self.relative.T)  # NumPy is fast along long rows
        products = along[:, None] * along
        sums = np.add.reduceat(products, self.offsets[:-1], axis=2) if len(self) else products
        return np.ascontiguousarray(np.moveaxis(sums / self.sizes, 2, 0))


def energy_channels(
    maps: NDArray[np.float32], electrostatics: NDArray[np.float32], desolvation: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return AutoGrid's maps as channels: score = −(map + q·electrostatics + |q|·desolvation).

    maps: float32[types, nx, ny, nz], the others float32[nx, ny, nz]. The sign of a charge chooses
    a channel, which leaves an atom two terms instead of three, both of positive weight: the map of
    its type, and −(desolvation ± electrostatics) with the weight |q|. Returns
    float32[types + 2, nx, ny, nz].
    """
    wide = desolvation.astype(np.float64)
    both = np.stack([wide + electrostatics, wide - electrostatics]).astype(np.float32)
    return np.concatenate([-maps, -both])


def energy_terms(
    types: NDArray[np.int32], charges: Floats, n_types: int
) -> tuple[NDArray[np.int32], Floats]:
    """Return channels and weights for `energy_channels`. types: int32[atoms], charges: in e."""
    charged = np.where(charges < 0, n_types + 1, n_types)
    channels = np.stack([types, charged], axis=1).astype(np.int32)
    return channels, np.stack([np.ones(len(types)), np.abs(charges)], axis=1)


@dataclass(frozen=True)
class PoseSearch:
    """Poses that are tried, and how many of them are returned.

    A pose is a rotation about the centroid and a shift: x' = R (x − c) + t + s; its index is
    rotation · shifts + shift. t is `center`, or else the centroid c. The highest float64 score
    wins, the lowest index among equals; then, up to `top` poses, the best of those that are not
    closer than `min_rmsd` Å (over all atoms as numbered) to one that was taken. Rounding aside:
    poses exactly `min_rmsd` apart are apart.

    Raises ValueError for 2^63 poses or more.
    """

    rotations: Rotations
    shifts: Shifts = field(default_factory=Shifts)
    center: tuple[float, float, float] | None = None
    top: int = 1
    min_rmsd: float = 0.0

    def __post_init__(self) -> None:
        if self.count >= MOST_POSES:
            raise ValueError(f"10^{math.log10(self.count):.0f} poses; fewer than 2^63 are possible")

    @property
    def count(self) -> int:
        """Poses, those that repeat others included."""
        return self.rotations.count * self.shifts.count

    @property
    def stop(self) -> int:
        """Every pose from here on repeats one with a lower index: the end of the largest span."""
        return self.rotations.stop * self.shifts.count

    @property
    def min_squared(self) -> float:
        """Å²: poses are too close whose squared distance is below; negative: none are."""
        return self.min_rmsd**2 - ROUNDING

    def placements(self, poses: Indices) -> tuple[Floats, Floats]:
        """Return rotation matrices float64[k, 3, 3] and shifts float64[k, 3] of poses."""
        rotations, shifts = np.divmod(poses, self.shifts.count)
        return self.rotations.matrices(rotations), self.shifts.vectors(shifts)

    def targets(self, ligands: Ligands) -> Floats:
        """Return float64[n, 3]: where each centroid goes, before the shift."""
        if self.center is None:
            return ligands.centroids
        return np.tile(np.array(self.center, np.float64), (len(ligands), 1))


@dataclass(frozen=True)
class _Found:
    """Rows for poses, ordered by ligand, then best first."""

    ligand: Indices  # int64[k]: index into the ligands, or of the body
    pose: Indices  # int64[k]: index of `PoseSearch`
    score: Floats  # float64[k]: computed in double precision

    def __len__(self) -> int:
        return len(self.pose)

    def moved(self, ligands: int) -> Self:
        """Return the same with numbers of ligands that are higher by `ligands`."""
        return replace(self, ligand=self.ligand + ligands)

    def take(self, rows: Indices | slice) -> Self:
        """Return some of them, in the order of their numbers `rows`, int64[n]."""
        return type(self)(**{name: column[rows] for name, column in vars(self).items()})

    @classmethod
    def chained(cls, parts: Sequence[Self]) -> Self:
        """Return all of one part or more, one part after the other."""
        columns = {
            each.name: np.concatenate([getattr(part, each.name) for part in parts])
            for each in fields(cls)
        }
        return cls(**columns)


class Poses(_Found):
    """Poses that were found."""

    @classmethod
    def none(cls) -> "Poses":
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))

    @classmethod
    def joined(cls, parts: Sequence["Poses"]) -> "Poses":
        """Return all poses of the parts, in the order of this class."""
        found = cls.chained([cls.none(), *parts])
        return found.take(np.lexsort((found.pose, -found.score, found.ligand)))

    def winners(self) -> "Poses":
        """Return the first of each ligand; of joined spans of poses: the best pose of them all."""
        return self.take(np.flatnonzero(np.diff(self.ligand, prepend=-1)))


@dataclass(frozen=True, kw_only=True)
class Placements(_Found):
    """Rigid placements of bodies: x' = matrix (x − c) + place, with c the centroid of the body.

    pose       int64[k]          index of `PoseSearch` where it began
    """

    unrefined: Floats  # float64[k]: score of the pose where it began
    matrix: Floats  # float64[k, 3, 3]: rotation
    place: Floats  # float64[k, 3]: where the centroid is, Å

    @classmethod
    def of(cls, bodies: Ligands, search: PoseSearch, poses: Poses) -> "Placements":
        """Return the placements of poses, in their order."""
        matrix, shifts = search.placements(poses.pose)
        return cls(
            ligand=poses.ligand,
            pose=poses.pose,
            score=poses.score,
            unrefined=poses.score,
            matrix=matrix,
            place=search.targets(bodies)[poses.ligand] + shifts,
        )

    @classmethod
    def joined(cls, parts: Sequence["Placements"], bodies: Sequence[int]) -> "Placements":
        """Return all of several parts, one after the other.

        bodies: how many each part has, by which those of the parts after it are renumbered
        """
        ahead = accumulate(bodies, initial=0)
        return cls.chained([part.moved(k) for k, part in zip(ahead, parts, strict=False)])


class PoseFinder(Protocol):
    """The `PoseSearcher` of a backend, for one field and one set of poses."""

    def best(self, ligands: Ligands, span: range | None = None) -> Poses:
        """Return the best poses of each ligand in a span of poses; None: of all poses."""


class BandFinder(Protocol):
    """The `BandSearcher` of a backend, for one field, one set of poses and the width of a band."""

    def best(self, bodies: Ligands, ligand_of: Indices) -> Poses:
        """Return the poses of each ligand that score at most `width` less than its best pose.

        ligand_of: int64[bodies], ascending: the ligand of each body; its bodies share one band

        The best first (of equals the lower body, then the lower pose), without those closer than
        `min_rmsd` to one that was taken, of whichever body, and no more than `top` of a ligand.
        """


class PoseRefiner(Protocol):
    """The `Refiner` of a backend, for one field."""

    def refine(self, bodies: Ligands, found: Placements) -> Placements:
        """Return the placements moved uphill to a local maximum of the score, in their order."""


def atoms_of(ligands: Ligands, poses: Poses | Placements) -> Indices:
    """Return int64[atoms]: the atoms of each pose's ligand, pose after pose."""
    sizes = ligands.sizes[poses.ligand]
    ahead = ligands.offsets[poses.ligand] - (np.cumsum(sizes) - sizes)
    return np.asarray(np.repeat(ahead, sizes) + np.arange(sizes.sum()))


def placed(ligands: Ligands, found: Placements) -> Floats:
    """Return float64[atoms, 3]: where the atoms of each placement are, one after the other; Å."""
    sizes = ligands.sizes[found.ligand]
    x, y, z = ligands.relative[atoms_of(ligands, found)].T
    out = np.empty((len(x), 3))
    for axis in range(3):
        a, b, c = (np.repeat(found.matrix[:, axis, k], sizes) for k in range(3))
        out[:, axis] = a * x + b * y + c * z + np.repeat(found.place[:, axis], sizes)
    return out


def sum_of(terms: Floats) -> Floats:
    """Return float64 sums over the last axis, added from the first to the last."""
    return np.asarray(np.cumsum(terms, axis=-1)[..., -1])


def split(span: range, most: int) -> Iterator[range]:
    """Yield consecutive parts of at most `most` poses."""
    for begin in range(span.start, span.stop, most):
        yield range(begin, min(begin + most, span.stop))
