"""The jobs that are disturbed, and what they give undisturbed."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.harness import Job, run
from support.program import ROOT

# What happens to a job happens in the engine, so docking says little that a scan has not said.
JOBS = ("scan", pytest.param("dock", marks=pytest.mark.slow))
FEW_SCHEDULES = 1


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "schedule" in metafunc.fixturenames:
        schedules = range(metafunc.config.getoption("--schedules"))
        few, rest = schedules[:FEW_SCHEDULES], schedules[FEW_SCHEDULES:]
        slow = [pytest.param(number, marks=pytest.mark.slow) for number in rest]
        metafunc.parametrize("schedule", [*few, *slow])


def simulate(*arguments: object) -> None:
    command = [sys.executable, "-m", "multigpu", "simulate", *map(str, arguments)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120)


def scan_job(folder: Path) -> Job:
    """Some hundred chunks of next to nothing: two seconds, most of them the engine's."""
    signatures, samples = folder / "signatures.fa", folder / "samples.fq"
    lengths = ("--min-length", 20, "--max-length", 60, "--count", 50)
    simulate("signatures", *lengths, "-o", signatures)
    lengths = ("--min-length", 500, "--max-length", 5000, "--clean", 200, "--infected", 900)
    simulate("samples", "--signatures", signatures, *lengths, "-o", samples)
    arguments = ("scan", str(samples), "-s", str(signatures), "--max-chunk-bytes", "15000")
    return Job("scan", arguments, "hits.tsv")


def dock_job(folder: Path) -> Job:
    """Some hundred chunks of one ligand."""
    ligands, pocket = folder / "ligands.sdf", folder / "pocket.npz"
    simulate("ligands", "--count", 400, "-o", ligands)
    simulate("pocket", "--points", 30, "--spacing", 0.75, "-o", pocket)
    search = ("--pocket", str(pocket), "--precision", "15", "--max-chunk-bytes", "1")
    arguments = ("dock", str(ligands), *search, "--scores", "/dev/null")
    return Job("dock", arguments, "poses.sdf")


def cnv_job(folder: Path) -> Job:
    """Three hundred chromosomes; the output is a folder."""
    table = folder / "counts.tsv"
    cohort = ("--regions", 30_000, "--samples", 6, "--chromosomes", 300, "--cnvs", 200)
    simulate("counts", *cohort, "-o", table)
    return Job("cnv", ("cnv", str(table), "--no-report"), "out", under_way=2000)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own; how large it is is said by `resize`."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


MAKERS = {"scan": scan_job, "dock": dock_job, "cnv": cnv_job}


@pytest.fixture(scope="session", params=JOBS)
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Job:
    return MAKERS[request.param](tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def results(job: Job, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the output of a run that nothing happens to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    ended = run(job, folder)
    assert ended.status == 0, ended.err
    found = job.result(folder)
    assert b"".join(found.values()).count(b"\n") > 100
    return found


@pytest.fixture
def undisturbed(job: Job, results: dict[str, bytes]) -> bytes:
    """The bytes of the output of a run that nothing happens to, which is a file."""
    return results[job.output]
