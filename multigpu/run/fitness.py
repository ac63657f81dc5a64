"""Is a worker fit for a job? Asked of all of them before it, and of each that joins later."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from tempfile import TemporaryFile

from multigpu import __version__
from multigpu.cluster.engine.workload import Place
from multigpu.cluster.errors import Unfit
from multigpu.cluster.workers import worker
from multigpu.formats.storage.sources import Fingerprint, fingerprint_or_none
from multigpu.kernels.compiled.version import digest


@dataclass(frozen=True)
class Expected:
    """What a job asks of a worker.

    program  version and kernels
    files    inputs by their absolute paths, as they are where the job was started
    folders  where workers write
    gpu      whether it must have one
    """

    program: str
    files: dict[str, Fingerprint] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    gpu: bool = False


@dataclass(frozen=True)
class Fitness:
    """What a worker says of itself. free_bytes: of its device, or of its host."""

    problems: tuple[str, ...]
    gpu: bool
    free_bytes: int


def program() -> str:
    """Version and kernels of this process."""
    return f"{__version__} (kernels {digest()})"


def expected(paths: Sequence[str], folders: Sequence[str] = ()) -> Expected:
    """What follows from the files as they are here."""
    files = {path: found for path in paths if (found := fingerprint_or_none(path))}
    return Expected(program(), files, tuple(folders))


def examine(wanted: Expected, gpu: str | None) -> Fitness:
    """Run on a worker: everything that is wrong with it, at once."""
    device = worker.device_of(gpu)
    return Fitness(tuple(_problems(wanted, device)), device is not None, worker.free(device))


def unanswered(error: Exception) -> Fitness:
    """Of a worker that could not run `examine`."""
    problem = f"cannot be asked; is the same multigpu installed there? ({error})"
    return Fitness((problem,), gpu=False, free_bytes=0)


def require(wanted: Expected | None, place: Place) -> None:
    """Raises Unfit where this worker may not take part; None asks for nothing."""
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
            problems.append(f"{path}: not there")
        elif not here.same_content(there):
            problems.append(f"{path}: not the same file as here")
    return problems + [problem for folder in wanted.folders for problem in _closed(folder)]


def _closed(folder: str) -> Iterator[str]:
    """Tried, because permissions do not tell of file systems that are full or read-only."""
    try:
        with TemporaryFile(dir=folder):
            return
    except OSError as error:
        yield f"{folder}: cannot be written: {error.strerror}"
