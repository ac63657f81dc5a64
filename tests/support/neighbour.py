"""A neighbour on the same GPU: another process that holds its memory.

with neighbour("turns", 300):  # 300 MB are left beside what CUDA takes of each process
    ...

It runs as a program of its own: `python neighbour.py MODE LEAVE`.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

HELD, FREE = 0.25, 0.15  # seconds of a turn


@contextmanager
def neighbour(mode: str, leave: int) -> Iterator[None]:
    """Let another process hold all but `leave` MB of the first GPU: "static", or in "turns"."""
    command = [sys.executable, str(Path(__file__).resolve()), mode, str(leave)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield
        finally:
            process.kill()


def main(mode: str, leave: int) -> None:
    import cupy
    import pynvml

    def free() -> int:
        return int(pynvml.nvmlDeviceGetMemoryInfo(gpu).free)

    def hold(size: int) -> Any:
        with suppress(cupy.cuda.runtime.CUDARuntimeError):  # others took some meanwhile
            return cupy.cuda.Memory(size) if size > 0 else None

    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    before = free()
    cupy.cuda.runtime.memGetInfo()
    left = before - free() + leave * 1_000_000  # another context has the size of this one
    held = hold(free() - left)
    print("ready", flush=True)
    while True:
        time.sleep(HELD)
        if mode == "turns":
            held = None
            time.sleep(FREE)
            held = hold(free() - left)
        assert held is None or held.size


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
