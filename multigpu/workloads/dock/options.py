"""Options of docking, as one frozen object, and the lanes that they take."""

from dataclasses import dataclass
from math import inf
from typing import Literal

from multigpu.cluster.deploy.threads_or_processes import WorkEstimate
from multigpu.errors import UsageError
from multigpu.run.options import MOST, GpuLanes
from multigpu.run.values import check_choice, convert_fields, number, numbers, path_of, whole

Outside = Literal["clamp", "zero", "penalty"]
Fragments = Literal["largest", "skip"]

MOST_ROTATIONS = 100_000_000  # of a list; rotations by angles are not listed
FARTHEST = 1e5  # Å; the limit of `multigpu.kernels.rotation`, which is too heavy to import here
PRECISION, LARGEST_PRECISION = 10.0, 180.0  # degrees
MOST_LANES = 4  # of a GPU; with more, its last chunks take longer
POSE_RATE = 1.2e10  # poses a second on one GPU
LIGAND_BYTES = 2000  # of text, about
LIGAND_SECONDS = 1.25e-5  # that a process takes to read and write a ligand


@dataclass(frozen=True, kw_only=True)
class DockOptions:
    """Options that decide the result of docking: the parameters of `multigpu.dock`."""

    precision: float | None = None
    rotations: int | None = None
    rotation_file: str | None = None
    center: tuple[float, float, float] | None = None
    interpolation: Literal["linear", "nearest"] = "linear"
    outside: Outside | None = None
    top: int = 1
    min_rmsd: float = 1.0
    translations: tuple[float, float] | None = None
    on_error: Literal["skip", "stop"] = "skip"
    allow_flat: bool = False
    fragments: Fragments = "largest"

    def __post_init__(self) -> None:
        check_choice("interpolation", self.interpolation, ("linear", "nearest"))
        if self.outside is not None:
            check_choice("outside", self.outside, ("clamp", "zero", "penalty"))
        check_choice("on_error", self.on_error, ("skip", "stop"))
        check_choice("fragments", self.fragments, ("largest", "skip"))
        check_choice("allow_flat", self.allow_flat, (False, True))
        convert_fields(self, number, "precision", "min_rmsd")
        convert_fields(self, whole, "rotations", "top")
        convert_fields(self, numbers(3), "center")
        convert_fields(self, numbers(2), "translations")
        convert_fields(self, path_of, "rotation_file")
        self._check_rotations()
        self._check_places()

    def _check_rotations(self) -> None:
        if (self.precision, self.rotations, self.rotation_file).count(None) < 2:
            raise UsageError(
                "give one of --precision, --rotations and --rotation-file, not several"
            )
        if self.precision is not None and not 0 < self.precision <= LARGEST_PRECISION:
            raise UsageError(
                f"precision is {self.precision:g}°; it must be above 0 and at most"
                f" {LARGEST_PRECISION:g} (rotations 1 scores the ligand as it lies)"
            )
        if self.rotations is not None and not 1 <= self.rotations <= MOST_ROTATIONS:
            raise UsageError(
                f"rotations is {self.rotations}; it must be 1 to {MOST_ROTATIONS:,}"
                " (use precision for more)"
            )

    def _check_places(self) -> None:
        if self.center is not None and not all(-FARTHEST <= x <= FARTHEST for x in self.center):
            raise UsageError(f"the coordinates of the center must lie within ±{FARTHEST:g} Å")
        if self.top < 1:
            raise UsageError(f"top is {self.top}; it must be 1 or more")
        if not 0 <= self.min_rmsd < inf:
            raise UsageError(f"min_rmsd is {self.min_rmsd:g} Å; it must be 0 or more")
        if self.translations is not None:
            radius, step = self.translations
            shown = f"translations {radius:g},{step:g}"
            if not (0 <= radius <= FARTHEST and 0 < step <= FARTHEST):
                rule = "the radius must be 0 or more, the step above 0"
                raise UsageError(f"{shown}: {rule}, neither beyond {FARTHEST:g} Å")
            if 0 < radius < step:
                raise UsageError(f"{shown}: the radius, which comes first, is less than one step")

    @property
    def step(self) -> float:
        """Degrees between neighbouring angles, where rotations are made of angles."""
        return PRECISION if self.precision is None else self.precision

    def outside_of(self, types: tuple[str, ...]) -> Outside:
        """Return what atoms outside score in a grid that has maps of these atom types."""
        return self.outside or ("penalty" if types else "clamp")

    @property
    def poses(self) -> float:
        """Estimated number of poses of a ligand; a file of rotations counts as one."""
        angles, (radius, step) = 360 / self.step, self.translations or (0.0, 1.0)
        side = 1 + 2 * (radius / step)
        rotations = 1 if self.rotation_file else self.rotations or angles * angles * angles
        return rotations * side * side * side


def docking_lanes(options: DockOptions, text_bytes: int) -> GpuLanes:
    """Return the lanes of docking ligands with `text_bytes` of text.

    One process keeps as many GPUs busy as it reads and writes ligands for.
    """
    computing = options.poses / POSE_RATE
    busy = int(min(MOST, max(1, computing / LIGAND_SECONDS)))
    seconds = text_bytes / LIGAND_BYTES * max(computing, LIGAND_SECONDS)
    return GpuLanes(MOST_LANES, estimate=WorkEstimate(seconds=seconds, gpus_kept_busy=busy))
