"""Processes that only import what a run imports and start CUDA.

python startup.py list MODULES.json scan SAMPLES -s SIGNATURES …   run, and list what it loaded
python startup.py only MODULES.json [GPU]    load the same, start CUDA on GPU, do nothing else
"""

import contextlib
import ctypes
import importlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def list_modules(target: Path, arguments: list[str]) -> None:
    """Run the command in this process, then write which modules it loaded, oldest first."""
    from multigpu.cli import cli

    before = set(sys.modules) - {"multigpu", "multigpu.cli", "click"}
    cli.main(arguments, prog_name="multigpu", standalone_mode=False)
    loaded = [name for name in sys.modules if name not in before and name != "__mp_main__"]
    target.write_text(json.dumps(loaded))


def only_start(source: Path, gpu: int | None) -> None:
    """Import modules while CUDA starts in another thread, as in the program."""
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(start_cuda, gpu) if gpu is not None else None
        for name in json.loads(source.read_text()):
            with contextlib.suppress(Exception):  # some exist only while their package loads
                importlib.import_module(name)
        if started is not None:
            started.result()
    os._exit(0)  # as the program ends


def start_cuda(gpu: int) -> None:
    """Make the context of a device, through the driver alone."""
    driver, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    for status in (
        driver.cuInit(0),
        driver.cuDeviceGet(ctypes.byref(device), gpu),
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
    ):
        if status:
            raise RuntimeError(f"CUDA does not start: error {status}")


if __name__ == "__main__":
    action, path, *rest = sys.argv[1:]
    if action == "list":
        list_modules(Path(path), rest)
    else:
        only_start(Path(path), int(rest[0]) if rest else None)
