"""What every test may use: the `gpu` marker, the golden data, the settings of hypothesis."""

import gc
import logging
import signal
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import hypothesis
import pytest
from support.golden import GOLDEN
from support.program import Run, main_in_process

from multigpu.cluster.devices.gpus import survey
from multigpu.cluster.devices.memory import cupy_problem

TESTS = Path(__file__).resolve().parent
KINDS = {"unit", "process", "emulated", "golden", "faults"}  # pyproject.toml says what they are
KIND_OF_FOLDER = {
    "bad_input": "process", "faults": "faults", "golden": "golden", "program": "process",
}  # fmt: skip
KIND_OF_FIXTURE = {
    "golden": "golden", "machine": "emulated", "main": "process", "scheduler": "process",
    "two_processes": "process",
}  # fmt: skip

# A first call of a Numba function compiles for seconds: time is pytest-timeout's business.
hypothesis.settings.register_profile("multigpu", deadline=None, print_blob=True)
hypothesis.settings.register_profile("quick", deadline=None, print_blob=True, max_examples=10)
hypothesis.settings.load_profile("multigpu")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-gpu",
        action="store_true",
        help="fail, not skip, the tests marked gpu where there is no CUDA device",
    )
    parser.addoption(
        "--schedules", type=int, default=10, help="random fault schedules to run of each job"
    )
    parser.addoption(
        "--kill-seconds", type=float, default=0, help="seconds for kill points; else a few of them"
    )
    parser.addoption("--mutants", type=int, default=0, help="mutants of each format; else a few")
    parser.addoption("--seed", default="1", help="of the kill points and mutants that are tried")


LONGEST_ID = 40  # bytes


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name long bytes by their parameter: those of gzip hold the time, and processes must agree."""
    return argname if isinstance(val, bytes) and len(val) > LONGEST_ID else None


def pytest_configure() -> None:
    """Ctrl-C reaches what tests start, also where a shell began pytest in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without looking for garbage; what is collected stays, and is not searched later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Give every test the marker of its kind: its own, or that of its folder or of a fixture."""
    for item in items:
        if not KINDS & {marker.name for marker in item.iter_markers()}:
            kinds = [KIND_OF_FIXTURE[name] for name in KIND_OF_FIXTURE if name in item.fixturenames]
            folder = item.path.relative_to(TESTS).parts[0]
            item.add_marker(KIND_OF_FOLDER.get(folder) or [*kinds, "unit"][0])


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") is None:
        return
    reason = why_no_gpu()
    if reason and item.config.getoption("--require-gpu"):
        pytest.fail(f"--require-gpu, but {reason}", pytrace=False)
    if reason:
        pytest.skip(reason)


@cache
def why_no_gpu() -> str:
    """Why the `gpu` tests cannot run; empty where they can. Starts no CUDA in this process."""
    problem = survey().problem
    return f"no GPU: {problem.text}" if problem else cupy_problem()


@pytest.fixture(autouse=True)
def _all_is_said() -> Iterator[None]:
    """What a test with --quiet leaves behind is no matter of the next one."""
    yield
    logging.getLogger("multigpu").setLevel(logging.NOTSET)


@pytest.fixture
def main(capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """The program's real `main` in this process."""
    with main_in_process(capfd) as run:
        yield run


@pytest.fixture
def store(tmp_path: Path) -> Callable[[str, bytes], str]:
    """Writes a file, and the folder that it is in, and tells its path."""

    def write(name: str, content: bytes) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return str(path)

    return write


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of golden data: MULTIGPU_GOLDEN, or ../shared/golden beside the repository."""
    if not GOLDEN.is_dir():
        pytest.skip(f"no golden data at {GOLDEN} (MULTIGPU_GOLDEN says where they are)")
    return GOLDEN


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a scheduler with two worker processes of one thread each."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0",
        memory_limit=0,
    ) as cluster:  # fmt: skip
        yield cluster.scheduler_address
