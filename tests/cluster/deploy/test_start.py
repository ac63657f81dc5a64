"""Workers that start while something else is done."""

import os
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from multigpu.cluster.deploy.deployment import Deployment
from multigpu.cluster.deploy.start import start_workers

pytestmark = pytest.mark.process

TWO = Deployment(threads=2, processes=2)


def test_dask__still_has_what_it_does_not_promise() -> None:
    """Nannies, by which what hangs is killed; what the scheduler is asked; no stealing."""
    from distributed import Nanny

    with start_workers(TWO) as pending:
        found = pending.wait()
        processes = set(found.everywhere(os.getpid).values())
        here = [nanny for nanny in Nanny._instances if nanny.pid in processes]
        assert len(here) == 2
        assert all("/multigpu-" in nanny.local_directory for nanny in here)
        scheduler = found._client.cluster.scheduler  # type: ignore[attr-defined]
        asked = {
            "processing", "who_has", "ncores_running", "identity", "retire_workers",
            "unregister_worker_plugin",
        }  # fmt: skip
        assert asked <= scheduler.handlers.keys()
        assert "stealing" not in scheduler.extensions
        assert set(found.everywhere(limit_of_memory).values()) == {None}


def limit_of_memory(dask_worker: Any) -> Any:
    """None: Dask looks at no memory, so it neither pauses nor spills."""
    return dask_worker.memory_manager.memory_limit


def test_worker_processes__that_nobody_waits_for_end_with_the_block(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(tmp_path))
        before = set(psutil.Process().children(recursive=True))
        with start_workers(TWO):
            pass
        while any(thread.name.startswith("workers") for thread in threading.enumerate()):
            time.sleep(0.05)  # what was started ends by itself
        started = set(psutil.Process().children(recursive=True)) - before
        workers = [process for process in started if "spawn_main" in str(process.cmdline())]
        assert psutil.wait_procs(workers, timeout=10)[1] == []
        assert list(tmp_path.iterdir()) == []
