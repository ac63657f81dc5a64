"""What docking answers, as one frozen object."""

from dataclasses import dataclass
from math import inf
from typing import Literal

from multigpu.cluster.deploy.threads_or_processes import WorkEstimate
from multigpu.errors import UsageError
from multigpu.run.options import MOST, Lanes
from multigpu.run.values import check_choice, convert_fields, number, numbers, path_of, whole

MOST_ROTATIONS = 100_000_000  # in a list; those of angles are in none
FARTHEST = 1e9  # Å: coordinates, as in `multigpu.kernels.rotation`, which is loaded later
PRECISION = 10.0  # degrees
DOCKING_LANES = 4  # with more, the last ones on each take longer
POSE_RATE = 1.2e10  # poses a second on one GPU
LIGAND_BYTES, LIGAND_SECONDS = 2000, 1.25e-5  # of text, about; that a process reads and writes it
COMPRESSION = 4  # bytes of text in a byte of a compressed file, about


@dataclass(frozen=True)
class DockOptions:
    """What docking answers; docs/dock.md has the meaning of each.

    precision      degrees from one angle to the next; None: PRECISION, if rotations are by angles
    rotations      so many, spread evenly, instead; or
    rotation_file  those of a file, instead
    center         where the centroid goes, Å; None: it stays where it is
    outside        what atoms outside of the grid score; None: "penalty" in maps of AutoGrid, which
                   are energies, "clamp" in other grids
    top            poses of each ligand, apart by at least `min_rmsd` Å
    translations   radius and step of the cube of shifts around the centre, Å
    on_error       what happens to a ligand that cannot be docked
    allow_flat     whether drawings in two dimensions are docked as they are
    """

    precision: float | None = None
    rotations: int | None = None
    rotation_file: str | None = None
    center: tuple[float, float, float] | None = None
    interpolation: Literal["linear", "nearest"] = "linear"
    outside: Literal["clamp", "zero", "penalty"] | None = None
    top: int = 1
    min_rmsd: float = 1.0
    translations: tuple[float, float] | None = None
    on_error: Literal["skip", "stop"] = "skip"
    allow_flat: bool = False

    def __post_init__(self) -> None:
        check_choice("interpolation", self.interpolation, ("linear", "nearest"))
        if self.outside is not None:
            check_choice("outside", self.outside, ("clamp", "zero", "penalty"))
        check_choice("on_error", self.on_error, ("skip", "stop"))
        check_choice("allow_flat", self.allow_flat, (False, True))
        convert_fields(self, number, "precision", "min_rmsd")
        convert_fields(self, whole, "rotations", "top")
        convert_fields(self, numbers(3), "center")
        convert_fields(self, numbers(2), "translations")
        convert_fields(self, path_of, "rotation_file")
        self._check()

    def _check(self) -> None:
        """Raises UsageError for values that make no sense."""
        if self.precision is not None and not 0 < self.precision < inf:
            raise UsageError(f"precision {self.precision:g}: the degrees must be above 0")
        if self.precision is not None and (self.rotations, self.rotation_file) != (None, None):
            raise UsageError("give a precision, or a number or a file of rotations, not both")
        if self.rotations is not None and self.rotations < 1:
            raise UsageError(f"{self.rotations} rotations: there must be at least one")
        if self.rotations is not None and self.rotations > MOST_ROTATIONS:
            raise UsageError(f"rotations are at most {MOST_ROTATIONS:,}: try --precision")
        if self.rotations is not None and self.rotation_file is not None:
            raise UsageError("give a number of rotations or a file of them, not both")
        if self.center is not None and not all(-FARTHEST <= x <= FARTHEST for x in self.center):
            raise UsageError(f"the center is no place: coordinates lie within ±{FARTHEST:g} Å")
        if self.top < 1:
            raise UsageError(f"top {self.top}: at least one pose is written")
        if not 0 <= self.min_rmsd < inf:
            raise UsageError(f"min RMSD {self.min_rmsd:g} Å: it must not be negative")
        if self.translations is not None:
            radius, step = self.translations
            if not (0 <= radius < inf and 0 < step < inf):
                raise UsageError(f"translations {radius:g},{step:g}: a radius and a step above 0")
            if 0 < radius < step:
                raise UsageError(
                    f"translations {radius:g},{step:g}: the radius, which comes first, has no step"
                )

    @property
    def step(self) -> float:
        """Degrees from one angle to the next, if rotations are by angles."""
        return PRECISION if self.precision is None else self.precision

    def outside_of(self, types: tuple[str, ...]) -> Literal["clamp", "zero", "penalty"]:
        """What atoms outside of a grid score that has maps of these types of atoms."""
        return self.outside or ("penalty" if types else "clamp")

    @property
    def poses(self) -> float:
        """About how many are tried of each ligand; a file of rotations is taken for one."""
        angles, (radius, step) = 360 / self.step, self.translations or (0.0, 1.0)
        side = 1 + 2 * (radius / step)
        rotations = 1 if self.rotation_file else self.rotations or angles * angles * angles
        return rotations * side * side * side


def docking_lanes(options: DockOptions, text_bytes: int) -> Lanes:
    """Return the lanes of docking ligands with `text_bytes` of text.

    One process keeps as many GPUs busy as it reads and writes ligands for.
    """
    computing = options.poses / POSE_RATE
    busy = int(min(MOST, max(1, computing / LIGAND_SECONDS)))
    seconds = text_bytes / LIGAND_BYTES * max(computing, LIGAND_SECONDS)
    return Lanes(DOCKING_LANES, estimate=WorkEstimate(seconds=seconds, gpus_kept_busy=busy))
