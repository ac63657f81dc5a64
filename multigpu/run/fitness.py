"""Fitness of workers for a job: asked of all before the job, and of each that joins later."""

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from tempfile import TemporaryFile
from typing import Any

from multigpu import __version__
from multigpu.cluster.devices import memory
from multigpu.cluster.engine.workload import Place
from multigpu.cluster.errors import Unfit
from multigpu.cluster.workers import worker
from multigpu.cluster.workers.threads import Workers
from multigpu.errors import option
from multigpu.formats.storage.fingerprints import Fingerprint, content_digest, fingerprint_or_none
from multigpu.kernels.compiled import caches
from multigpu.kernels.compiled.caches import digest

Copy = tuple[str, str, Fingerprint]  # a machine, a path, and the file that is there


@dataclass(frozen=True)
class Expected:
    """Requirements of a job, which every worker must meet.

    program  version and kernels of multigpu
    files    fingerprints of the inputs where the job was started, by absolute paths
    folders  folders that workers write to
    gpu      whether a worker must have a GPU
    whole    digests of the whole content of files of which there are copies of another time
    copies   the same of these copies
    """

    program: str
    files: dict[str, Fingerprint] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    gpu: bool = False
    whole: dict[str, str] = field(default_factory=dict)
    copies: dict[Copy, str] = field(default_factory=dict)


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


def compare_copies(workers: Workers, wanted: Expected) -> Expected:
    """Return the requirements with digests of copies of another time, read once a machine."""
    readers = _merged(workers, find_copies, wanted.files)
    digests = _merged(workers, read_copies, readers)
    whole = {path: content_digest(path) for path in {copy[1] for copy in readers}}
    return replace(wanted, whole=whole, copies=digests)


def _merged(
    workers: Workers, function: Callable[..., Any], given: dict[Any, Any]
) -> dict[Any, Any]:
    """Return the answers of all workers that have one, as one; none where nothing is given."""
    answers = workers.everywhere(function, given).values() if given else ()
    return {key: value for one in answers if isinstance(one, dict) for key, value in one.items()}


def find_copies(files: dict[str, Fingerprint]) -> dict[Copy, int]:
    """Return the copies of files here that were written at another time, with this process."""
    found = {path: fingerprint_or_none(path) for path in files}
    return {
        (platform.node(), path, here): os.getpid()
        for path, here in found.items()
        if here and here != files[path] and here.same_content(files[path])
    }


def read_copies(readers: dict[Copy, int]) -> dict[Copy, str]:
    """Return digests of the whole content of the copies that this process is to read."""
    own = platform.node(), os.getpid()
    return {c: content_digest(c[1]) for c, process in readers.items() if (c[0], process) == own}


def examine(wanted: Expected, gpu: str | None) -> Fitness:
    """Return the fitness of the worker that this runs on, with all its problems at once."""
    caches.secure_cupy()  # before it is imported
    device = worker.device_of(gpu)
    return Fitness(tuple(_problems(wanted, device)), device is not None, memory.free_bytes(device))


def require(wanted: Expected | None, place: Place) -> None:
    """Raise Unfit where this worker may not take part; None requires nothing."""
    if wanted is not None and (problems := _problems(wanted, place.gpu)):
        raise Unfit(place.worker, "; ".join(problems))


def _is_same(path: str, here: Fingerprint, wanted: Expected) -> bool:
    """Whether a file here is the one where the job was started."""
    there, whole = wanted.files[path], wanted.whole.get(path)
    if here == there or not here.same_content(there) or whole is None:
        return here == there
    known = wanted.copies.get((platform.node(), path, here))
    return whole == (known or content_digest(path))  # a worker that joins has to read it


def _problems(wanted: Expected, device: int | None) -> list[str]:
    problems = []
    if wanted.program != program():
        problems.append(f"runs multigpu {program()} instead of {wanted.program}")
    if wanted.gpu and device is None:
        problems.append(
            f"has no GPU that can be used ({option('gpus')} none lets CPUs do the work)"
        )
    for path in wanted.files:
        here = fingerprint_or_none(path)
        if here is None:
            problems.append(f"{path}: does not exist there")
        elif not _is_same(path, here, wanted):
            where = f"on {platform.node()}, by size, content or time"
            problems.append(f"{path}: not the same file as here ({where})")
    for folder in wanted.folders:
        try:
            # Permissions do not show that a file system is full or read-only.
            TemporaryFile(dir=folder).close()
        except OSError as error:
            problems.append(f"{folder}: cannot be written: {error.strerror}")
    return problems
