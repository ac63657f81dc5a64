"""What commands that run a job share."""

import logging
import sys
import threading
from pathlib import Path
from typing import Any

from cluster import context
from cluster.devices import Device
from multigpu.config import RunOptions
from multigpu.errors import UsageError


def begin(values: dict[str, Any], running: RunOptions) -> tuple[Device, ...]:
    """The GPUs to use; the context of a single one comes up while the input is looked at."""
    if values["quiet"]:
        logging.getLogger("multigpu").setLevel(logging.ERROR)
    devices = running.devices()
    if len(devices) == 1 and not running.processes:
        threading.Thread(target=context.start, args=(devices[0].uuid,), daemon=True).start()
    return devices


def is_shown(values: dict[str, Any]) -> bool:
    """Whether progress is shown: when asked for, else on a terminal."""
    if values["quiet"] or values["progress"] is False:
        return False
    return values["progress"] is True or sys.stderr.isatty()


def keep_inputs(inputs: list[str], *outputs: str | None) -> None:
    """Raises UsageError where an output would replace an input, or another output."""
    kept = {str(Path(path).resolve()) for path in inputs}
    for path in outputs:
        if path is None or path == "-" or (Path(path).exists() and not Path(path).is_file()):
            continue  # nothing is replaced
        place = str(Path(path).resolve())
        if place in kept:
            raise UsageError(f"{path} is named twice: it would be replaced")
        kept.add(place)
