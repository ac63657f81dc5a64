"""Many Dask workers of one thread, forked from one process, which has loaded what they need.

`python -m tests.support.many_workers SCHEDULER_FILE COUNT HOST FOLDER SECONDS` ends when all of
them have, as on SIGTERM, which it hands on; each then leaves as `dask worker` does. A chunk takes
SECONDS longer than it would.
"""

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import dask
from distributed import Worker

import multigpu
from multigpu.workloads.scan import work as scan

# What a worker does while it waits, fifty to a hundred times a second, in which a hundred of them
# keep two cores busy.
SELDOM = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
}


async def run_worker(file: str, host: str, folder: str) -> None:
    async with Worker(
        scheduler_file=file, nthreads=1, host=host, local_directory=folder, memory_limit=0,
        dashboard_address=f"{host}:0",
    ) as worker:  # fmt: skip
        leave = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave.set)
        finished = asyncio.ensure_future(worker.finished())
        leaving = asyncio.ensure_future(leave.wait())
        await asyncio.wait([finished, leaving], return_when="FIRST_COMPLETED")
        await worker.close(reason="SIGTERM")


def load(folder: str) -> None:
    """Scan once, so that each worker has all functions."""
    samples, signatures = Path(folder, "one.fastq"), Path(folder, "one.fasta")
    samples.write_text("@r\nACGTACGTAC\n+\nIIIIIIIIII\n")
    signatures.write_text(">s\nCGTAC\n")
    assert multigpu.scan(samples, signatures, gpus="none", threads=1).to_table().num_rows == 1


def slow_down(seconds: float) -> None:
    read = scan.SpanReader.read

    def read_later(reader: scan.SpanReader, span: Any) -> Any:
        time.sleep(seconds)
        return read(reader, span)

    scan.SpanReader.read = read_later


def main(file: str, count: int, host: str, folder: str, seconds: float) -> None:
    load(folder)
    slow_down(seconds)
    dask.config.set(SELDOM)
    children = []
    for _ in range(count):
        if child := os.fork():
            children.append(child)
        else:
            asyncio.run(run_worker(file, host, folder))
            os._exit(0)

    def hand_on(*_: object) -> None:
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)

    signal.signal(signal.SIGTERM, hand_on)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], float(sys.argv[5]))
