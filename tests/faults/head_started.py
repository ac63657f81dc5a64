"""The program as it runs on several GPUs, where there is none: `python head_started.py scan …`.

Two threads of it begin, slowly; two worker processes are started at once and take over.
"""

import os
import time
from dataclasses import replace
from itertools import count
from typing import Any

import multigpu.run.job
from multigpu.__main__ import run
from multigpu.cluster.workers import head_start, worker

SLOW = float(os.environ.get("SLOW", "0.1"))  # seconds that a chunk takes longer in this process,
LATE, SLOWER = range(60, 80), 0.5  # and some of them, where workers are long in coming

deployment, part = multigpu.run.job.deployment, worker._part
chunks = count()


def several(*arguments: Any) -> Any:
    return replace(deployment(*arguments), threads=4, processes=2, head_start=1)


def slow(*arguments: Any) -> Any:
    time.sleep(SLOWER if next(chunks) in LATE else SLOW)
    return part(*arguments)


if __name__ == "__main__":  # worker processes import it, too
    multigpu.run.job.deployment, worker._part = several, slow
    head_start.ALONE = head_start.WORTH = 0.0
    run()
