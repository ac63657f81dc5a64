"""Fitness of workers for a job: asked of all before the job, and of each that joins later."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from tempfile import TemporaryFile

from multigpu import __version__
from multigpu.cluster.devices import memory
from multigpu.cluster.engine.workload import Place
from multigpu.cluster.errors import Unfit
from multigpu.cluster.workers import worker
from multigpu.formats.storage.fingerprints import Fingerprint, fingerprint_or_none
from multigpu.kernels.compiled.version import digest


@dataclass(frozen=True)
class Expected:
    """Requirements of a job, which every worker must meet.

    program  version and kernels of multigpu
    files    fingerprints of the inputs where the job was started, by absolute paths
    folders  folders that workers write to
    gpu      whether a worker must have a GPU
    """

    program: str
    files: dict[str, Fingerprint] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    gpu: bool = False


@dataclass(frozen=True)
class Fitness:
    """Answer of a worker.

    problems    reasons why it cannot take part; none: it is fit
    gpu         whether it has a GPU that can be used
    free_bytes  free memory of its GPU, or of its host
    """

    problems: tuple[str, ...]
    gpu: bool
    free_bytes: int


def program() -> str:
    """Return the version and the kernels of this process, as text."""
    return f"{__version__} (kernels {digest()})"


def expected(paths: Sequence[str], folders: Sequence[str] = ()) -> Expected:
    """Return the requirements of a job with these inputs, as the files are here."""
    files = {path: found for path in paths if (found := fingerprint_or_none(path))}
    return Expected(program(), files, tuple(folders))


def examine(wanted: Expected, gpu: str | None) -> Fitness:
    """Return the fitness of the worker that this runs on, with all its problems at once."""
    device = worker.device_of(gpu)
    return Fitness(tuple(_problems(wanted, device)), device is not None, memory.free_bytes(device))


def require(wanted: Expected | None, place: Place) -> None:
    """Raise Unfit where this worker may not take part; None requires nothing."""
    if wanted is not None and (problems := _problems(wanted, place.gpu)):
        raise Unfit(place.worker, "; ".join(problems))


def _problems(wanted: Expected, device: int | None) -> list[str]:
    problems = []
    if wanted.program != program():
        problems.append(f"runs multigpu {program()} instead of {wanted.program}")
    if wanted.gpu and device is None:
        problems.append("has no GPU that can be used (--mixed lets CPU workers take part)")
    for path, there in wanted.files.items():
        here = fingerprint_or_none(path)
        if here is None:
            problems.append(f"{path}: does not exist there")
        elif not here.same_content(there):
            problems.append(f"{path}: not the same file as here")
    for folder in wanted.folders:
        try:
            # Permissions do not show that a file system is full or read-only.
            TemporaryFile(dir=folder).close()
        except OSError as error:
            problems.append(f"{folder}: cannot be written: {error.strerror}")
    return problems
