"""Clients of Dask schedulers, and Dask as this program needs it: quiet, with its own settings."""

import contextlib
import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import dask
from distributed import Client

from multigpu.cluster.deploy.deployment import Deployment
from multigpu.cluster.errors import UsageError, first_line
from multigpu.cluster.workers.threads import call_within

logger = logging.getLogger(__name__)

CONNECT_GRACE = 1.0  # seconds
LARGEST_SCHEDULER_FILE = 1 << 20  # bytes
FILE_POLL = 0.05  # seconds
LISTENS = "runs what anybody sends who reaches it, as every user of its machine can: use TLS"
PRIVATE_SCHEMES = ("tls://", "wss://", "inproc://")  # strangers cannot send tasks there
QUIET_LOGGERS = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")
# Messages that Dask keeps of each connection, with all that is in them; by default 1000.
LOGGED_MESSAGES = 10
CLOSE_TIMEOUT = 2.0  # seconds

SETTINGS = {
    "distributed.scheduler.allowed-failures": 0,
    # Tasks wait where there is room; a thief may deadlock with a worker that leaves.
    "distributed.scheduler.work-stealing": False,
    # A nanny starts its worker again. Dask would close it where the worker dies once more, and is
    # just away this long after the first time; by default 15 s.
    "distributed.deploy.lost-worker-timeout": "1 day",
    "distributed.admin.low-level-log-length": LOGGED_MESSAGES,
    "distributed.admin.large-graph-warning-threshold": "1 TB",  # spans may carry their text
}

# A process has one set of settings: they are changed as long as somebody uses them.
_lock = threading.Lock()
_users: set[object] = set()
_changes = contextlib.ExitStack()


@contextmanager
def changed_settings() -> Iterator[None]:
    """Change Dask's settings for the block, or the longest of those at the same time.

    Dask reports lost connections while a cluster closes; what matters arrives as exceptions.
    """
    user = object()
    with _lock:
        if not _users:
            _changes.enter_context(dask.config.set(SETTINGS))
            for dask_logger in map(logging.getLogger, QUIET_LOGGERS):
                _changes.callback(dask_logger.setLevel, dask_logger.level)
                dask_logger.setLevel(logging.CRITICAL)
        _users.add(user)
    try:
        yield
    finally:
        with _lock:
            _users.remove(user)
            if not _users:
                _changes.close()


@contextmanager
def closing_client(client: Any) -> Iterator[Any]:
    """Yield a client, which is closed with the block.

    Where its scheduler does not answer, the connection ends with the process.
    """
    try:
        yield client
    finally:
        with contextlib.suppress(TimeoutError):
            client.close(timeout=CLOSE_TIMEOUT)


@contextmanager
def connected_client(deployment: Deployment) -> Iterator[Any]:
    """Yield a `dask.distributed.Client` of the deployment's scheduler."""
    with changed_settings(), closing_client(_connect(deployment)) as client:
        yield client


def _connect(deployment: Deployment) -> Any:
    """Return a client. Raises UsageError where no scheduler answers, or it may not be used."""
    address, limit = deployment.scheduler, deployment.connect_timeout
    if deployment.scheduler_file:
        address = _address_in(Path(deployment.scheduler_file), limit)
    where = deployment.scheduler or deployment.scheduler_file
    connect = partial(Client, address, timeout=limit, set_as_default=False)
    try:
        return call_within(limit + CONNECT_GRACE, connect)
    except (OSError, TimeoutError) as error:
        reason = first_line(error) if str(error) else "is it tcp:// or tls://?"
        raise UsageError(f"{where}: no scheduler answered within {limit:g} s ({reason})") from error
    except (RuntimeError, TypeError, ValueError) as error:  # the address, or settings of TLS
        cure = "; DASK_CONFIG names the settings of its TLS" if isinstance(error, TypeError) else ""
        raise UsageError(f"{where}: {first_line(error)}{cure}") from error


def _address_in(path: Path, seconds: float) -> str:
    """Return the address in the file of a scheduler. Raises UsageError where there is none."""
    try:
        known = json.loads(_scheduler_file(path, seconds).decode())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path}: this is no scheduler file: no JSON") from error
    address = known.get("address") if isinstance(known, dict) else None
    if not isinstance(address, str):
        raise UsageError(f"{path}: this is no scheduler file: no address")
    return address


def _scheduler_file(path: Path, seconds: float) -> bytes:
    """Return what the file holds, once a scheduler that is starting has written it."""
    deadline = time.monotonic() + seconds
    is_reported = False
    while True:
        with suppress(FileNotFoundError), path.open("rb") as file:
            if content := file.read(LARGEST_SCHEDULER_FILE):
                return content
        if time.monotonic() >= deadline:
            raise UsageError(f"{path}: no scheduler has written this file within {seconds:g} s")
        if not is_reported:
            logger.warning("multigpu: waiting for a scheduler to write %s", path)
            is_reported = True
        time.sleep(FILE_POLL)


def warn_of_listeners(client: Any) -> None:
    """Warn of a scheduler without TLS: Dask runs what it is sent."""
    if not (address := client.scheduler.address).startswith(PRIVATE_SCHEMES):
        logger.warning("multigpu: %s %s (multigpu tls DIR; docs/clusters.md)", address, LISTENS)
