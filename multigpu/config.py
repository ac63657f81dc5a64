"""The options of a run as frozen objects, handed whole from the command to the worker."""

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from math import inf
from numbers import Integral, Real
from typing import Any, Literal

from multigpu.cluster.deploy.threads_or_processes import WorkEstimate
from multigpu.cluster.devices.gpus import Device, select, survey
from multigpu.cluster.engine.plan import MEMORY_FRACTION
from multigpu.cluster.errors import UsageError

logger = logging.getLogger(__name__)

PHRED_OFFSETS = (33, 64)
HIGHEST_QUALITY = 126  # '~', the last quality character
DEFAULT_CHUNK_BYTES = 64 << 20
MOST_ROTATIONS = 100_000_000  # in a list; those of angles are in none
FARTHEST = 1e9  # Å: coordinates, as in `multigpu.kernels.rotation`, which is loaded later
PRECISION = 10.0  # degrees
MOST = 4096  # threads, or processes, of one machine
LONGEST_VALUE = 60  # characters of a wrong value in a message


@dataclass(frozen=True)
class Lanes:
    """How many chunks are in hand on each GPU: some load, some compute, some finish.

    most      where that is useful
    alone     on the only GPU; None: as many as on others
    together  on all GPUs of a machine, unless each had fewer than `least`
    estimate  of the job's work, by which threads or worker processes are chosen
    """

    most: int
    together: int = MOST
    least: int = 1
    estimate: WorkEstimate = field(default_factory=WorkEstimate)
    alone: int | None = None

    def each(self, gpus: int) -> int:
        """How many there are on one of so many GPUs."""
        if gpus == 1 and self.alone is not None:
            return self.alone
        return min(self.most, max(self.least, self.together // gpus))


# Twelve threads read as fast as the memory of a host can be read.
SCAN_LANES = Lanes(6, together=12, least=3)
SCAN_RATE, SCAN_KEPT_BUSY = 2e10, 4  # bytes a second on one GPU; GPUs that one process feeds
DOCKING_LANES = 4  # with more, the last ones on each take longer
POSE_RATE = 1.2e10  # poses a second on one GPU
LIGAND_BYTES, LIGAND_SECONDS = 2000, 1.25e-5  # of text, about; that a process reads and writes it
COMPRESSION = 4  # bytes of text in a byte of a compressed file, about
# Chromosomes: three compute. Worker processes read others meanwhile, call and send them.
COPY_NUMBER_LANES = Lanes(5, alone=3)
COUNTS_RATE, COUNTS_KEPT_BUSY = 1e9, 2  # bytes a second on one GPU; GPUs that one process feeds
NO_LANES = Lanes(0)  # of what CPUs alone do


def scan_lanes(plain_bytes: int) -> Lanes:
    """Return the lanes of a scan of files with so many bytes that are not compressed.

    Compressed ones do not count: to decompress them takes longer than to scan them.
    """
    estimate = WorkEstimate(seconds=plain_bytes / SCAN_RATE, gpus_kept_busy=SCAN_KEPT_BUSY)
    return replace(SCAN_LANES, estimate=estimate)


def copy_number_lanes(size: int) -> Lanes:
    """Return the lanes of calling copy numbers in so many bytes of counts."""
    seconds = size / COUNTS_RATE  # and to read them takes as long
    estimate = WorkEstimate(seconds=seconds, gpus_kept_busy=COUNTS_KEPT_BUSY, reading=seconds)
    return replace(COPY_NUMBER_LANES, estimate=estimate)


def docking_lanes(options: "DockOptions", text_bytes: int) -> Lanes:
    """Return the lanes of docking ligands with so many bytes of text.

    One process keeps as many GPUs busy as it reads and writes ligands for.
    """
    computing = options.poses / POSE_RATE
    busy = int(min(MOST, max(1, computing / LIGAND_SECONDS)))
    seconds = text_bytes / LIGAND_BYTES * max(computing, LIGAND_SECONDS)
    return Lanes(DOCKING_LANES, estimate=WorkEstimate(seconds=seconds, gpus_kept_busy=busy))


@dataclass(frozen=True)
class ScanOptions:
    """What a scan answers; docs/scan.md has the meaning of each.

    max_ambiguous  ambiguous bases that a match may have: an int, or a float below 1, which is a
                   share of its length
    """

    hits: Literal["first", "all"] = "first"
    strand: Literal["forward", "both"] = "forward"
    sample_n: Literal["match", "mismatch"] = "match"
    min_score: float | None = None
    phred_offset: int = 33
    max_ambiguous: int | float | None = None

    def __post_init__(self) -> None:
        for name, choices in (
            ("hits", ("first", "all")),
            ("strand", ("forward", "both")),
            ("sample_n", ("match", "mismatch")),
            ("phred_offset", PHRED_OFFSETS),
        ):
            _check_choice(name, getattr(self, name), choices)
        _convert(self, _number, "min_score")
        if self.min_score is not None and self.min_score != self.min_score:
            raise UsageError("min_score is not a number")
        self._check_min_score()
        self._check_max_ambiguous()

    def _check_min_score(self) -> None:
        """Raises UsageError for a score that no row can have."""
        highest = HIGHEST_QUALITY - self.phred_offset
        if self.min_score is not None and self.min_score > highest:
            raise UsageError(
                f"min score {self.min_score:g}: no score is above {highest}, the highest Phred"
                f" score of qualities from offset {self.phred_offset}"
            )

    def _check_max_ambiguous(self) -> None:
        """Raises UsageError for what is neither a number of bases nor a share of them."""
        value: Any = self.max_ambiguous
        if value is None:
            return
        is_share = isinstance(value, float) and 0 <= value < 1
        is_count = isinstance(value, Integral) and not isinstance(value, bool)
        if is_count and int(value) >= 0:
            object.__setattr__(self, "max_ambiguous", int(value))
        elif not is_share:
            raise UsageError(
                f"max_ambiguous is {_shown(value)}; it must be a whole number of bases,"
                " or a share of the match from 0.0 to below 1"
            )


# ---- values of the right kind: from Python anything may come ----------------------------------


def _check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if not isinstance(value, str | int) or value not in choices:
        allowed = " or ".join(str(choice) for choice in choices)
        raise UsageError(f"{name} is {_shown(value)}; it can be {allowed}")


def _convert(options: object, kind: Callable[[str, Any], object], *names: str) -> None:
    """Gives these options the type they should have; None may stay where it is the default."""
    for name in names:
        value = getattr(options, name)
        if value is not None or getattr(type(options), name) is not None:
            object.__setattr__(options, name, kind(name, value))


def path_of(name: str, value: Any) -> str:
    with suppress(TypeError):
        path = os.fspath(value)
        if isinstance(path, str):
            return path
    raise UsageError(f"{name} is {_shown(value)}; it must be a path")


def text_of(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name} is {_shown(value)}; it must be text")
    return value


def _number(name: str, value: Any) -> float:
    if not isinstance(value, bool) and isinstance(value, Real):
        with suppress(OverflowError):
            return float(value)
    raise UsageError(f"{name} is {_shown(value)}; it must be a number")


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise UsageError(f"{name} is {_shown(value)}; it must be a whole number")
    return int(value)


def _numbers(count: int) -> Callable[[str, Any], tuple[float, ...]]:
    def convert(name: str, value: Any) -> tuple[float, ...]:
        found: tuple[Any, ...] = ()
        with suppress(TypeError):
            found = tuple(value)
        if len(found) != count:
            raise UsageError(f"{name} is {_shown(value)}; it must be {count} numbers")
        return tuple(_number(name, each) for each in found)

    return convert


def _shown(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


# ---- docking ----------------------------------------------------------------------------------


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
        _check_choice("interpolation", self.interpolation, ("linear", "nearest"))
        if self.outside is not None:
            _check_choice("outside", self.outside, ("clamp", "zero", "penalty"))
        _check_choice("on_error", self.on_error, ("skip", "stop"))
        _check_choice("allow_flat", self.allow_flat, (False, True))
        _convert(self, _number, "precision", "min_rmsd")
        _convert(self, _whole, "rotations", "top")
        _convert(self, _numbers(3), "center")
        _convert(self, _numbers(2), "translations")
        _convert(self, path_of, "rotation_file")
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


@dataclass(frozen=True)
class RunOptions:
    """Where and how a job runs; none of it changes a result.

    max_chunk_bytes no chunk is larger; None: as serves the job, 32 MB to 256 MiB
    threads         CPU threads, or chunks in hand per GPU; 0: as many as serve
    processes       worker processes on this machine; 0: as few as possible
    mixed           whether workers without a GPU may help those that have one
    resume          whether to go on with what a run that was stopped has left
    cpu_fallback    whether the CPU does what does not fit on a GPU, or what a broken one leaves
    chunk_timeout   seconds after which a chunk is begun on another worker, too; None: by the others
    worker_timeout  seconds without any worker after which the run fails
    dashboard       whether local clusters serve Dask's status page
    """

    gpus: str = "auto"
    scheduler: str | None = None
    scheduler_file: str | None = None
    connect_timeout: float = 30.0
    memory_fraction: float = MEMORY_FRACTION
    max_chunk_bytes: int | None = None
    threads: int = 0
    processes: int = 0
    mixed: bool = False
    resume: bool = False
    cpu_fallback: bool = True
    chunk_timeout: float | None = None
    worker_timeout: float = 60.0
    dashboard: bool = False

    def __post_init__(self) -> None:
        _convert(self, text_of, "gpus", "scheduler")
        _convert(self, path_of, "scheduler_file")
        _convert(self, _number, "memory_fraction", "connect_timeout", "chunk_timeout")
        _convert(self, _number, "worker_timeout")
        _convert(self, _whole, "max_chunk_bytes", "threads", "processes")
        if not 0 < self.memory_fraction <= 1:
            raise UsageError(f"memory fraction {self.memory_fraction:g}: it lies between 0 and 1")
        if self.max_chunk_bytes is not None and self.max_chunk_bytes < 1:
            raise UsageError(f"chunks of {self.max_chunk_bytes} bytes are not possible")
        for name in ("connect_timeout", "worker_timeout", "chunk_timeout"):
            seconds = getattr(self, name)
            if seconds is not None and not 0 < seconds < inf:
                raise UsageError(f"{name.replace('_', ' ')} {seconds:g}: it must be positive")
        for option, count in (("--threads", self.threads), ("--workers", self.processes)):
            if count < 0:
                raise UsageError(f"{option} {count}: it must be 0 or more")
        if max(self.threads, self.processes) > MOST:
            raise UsageError(f"one machine has no use for more than {MOST:,} threads or processes")
        if "" in (self.scheduler, self.scheduler_file):
            raise UsageError("the scheduler's address, or its file, has no name")
        if self.scheduler and self.scheduler_file:
            raise UsageError("give a scheduler's address or its file, not both")

    def chunk_bytes(self, serves: int = DEFAULT_CHUNK_BYTES) -> int:
        """The most bytes of a chunk, where `serves` is what serves the job."""
        return serves if self.max_chunk_bytes is None else self.max_chunk_bytes

    @property
    def elsewhere(self) -> bool:
        """Whether a running cluster does the work."""
        return bool(self.scheduler or self.scheduler_file)

    def devices(self) -> tuple[Device, ...]:
        """The GPUs of this machine to use. Raises UsageError for one that cannot be used.

        Where the choice is free and CuPy is missing it is the CPU, and that is said.
        """
        if self.elsewhere and self.gpus not in ("auto", "all", "none"):
            raise UsageError(
                f"--gpus {self.gpus}: the workers of a scheduler have their own GPUs;"
                " give --gpus none for their CPUs, or nothing"
            )
        chosen = () if self.elsewhere else select(self.gpus, survey())
        if not chosen:
            return ()
        missing = [name for name in _needed(len(chosen)) if find_spec(name) is None]
        if not missing:
            return chosen
        problem = f"{missing[0]} is not installed: pip install 'multigpu[cu13]' or [cu12]"
        if self.gpus != "auto":
            raise UsageError(f"GPUs cannot be used: {problem}")
        logger.warning("multigpu: using the CPU, because %s", problem)
        return ()


def _needed(devices: int) -> tuple[str, ...]:
    return ("cupy",) if devices == 1 else ("cupy", "dask_cuda")
