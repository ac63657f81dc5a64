"""Dask as this program needs it: quiet, and with settings of its own."""

import contextlib
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask

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
