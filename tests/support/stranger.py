"""Another user of the machine, who tries to have a cluster run something for them.

`python stranger.py SCHEDULER PORT...` prints a line for each port and way that worked. It becomes
the user 65534 where it may, so that no file of this one helps it.
"""

import asyncio
import os
import pickle
import sys
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any

from distributed import Client
from distributed.core import connect
from distributed.security import Security

NOBODY = 65534
SCHEMES = ("tcp", "tls")
LIMIT = 3.0  # seconds for each attempt
PAGES = ("info/main/workers.html", "json/identity.json", "api/v1", "health", "metrics", "status")
REFUSED = (OSError, TimeoutError, ValueError)  # the last where one side speaks TLS alone
OPERATIONS = ("run", "run_function")  # of workers and nannies; of schedulers


def main(ports: list[int]) -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    own = Security.temporary()  # credentials, but not those of the cluster
    for found in (*asyncio.run(_called(ports, own)), *_joined(ports[0], own), *_looked_at(ports)):
        print(found)


async def _called(ports: list[int], own: Security) -> list[str]:
    """Return those of `OPERATIONS` that a port carries out."""
    attempts = [
        _call(f"{scheme}://127.0.0.1:{port}", operation, own)
        for port in ports
        for scheme in SCHEMES
        for operation in OPERATIONS
    ]
    return [found for found in await asyncio.gather(*attempts) if found]


async def _call(address: str, operation: str, own: Security) -> str:
    try:
        answer = await asyncio.wait_for(_answer(address, operation, own), LIMIT)
    except REFUSED:
        return ""
    return f"{address} {operation}" if answer and answer["status"] == "OK" else ""


async def _answer(address: str, operation: str, own: Security) -> Any:
    """None where the port has no such operation."""
    credentials = own.get_connection_args("client") if address.startswith("tls") else {}
    function, args, kwargs = map(pickle.dumps, (os.getuid, (), {}))
    comm = await connect(address, **credentials)
    try:
        await comm.write({
            "op": operation, "function": function, "args": args, "kwargs": kwargs, "reply": True,
        })  # fmt: skip
        return await comm.read()
    finally:
        comm.abort()


def _joined(port: int, own: Security) -> Iterator[str]:
    """Return what a client of a scheduler can do."""
    for scheme, security in zip(SCHEMES, (None, own), strict=True):
        address = f"{scheme}://127.0.0.1:{port}"
        try:
            with Client(address, security=security, timeout=LIMIT) as client:
                client.run(os.getuid)
                yield f"{address} Client.run"
                client.run_on_scheduler(os.getuid)
                yield f"{address} Client.run_on_scheduler"
        except REFUSED:
            continue


def _looked_at(ports: list[int]) -> Iterator[str]:
    """Return those of `PAGES` that a port shows."""
    for port in ports:
        for page in PAGES:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=LIMIT):
                    yield f"{port} /{page}"
            except (OSError, HTTPException):
                continue


if __name__ == "__main__":
    main([int(port) for port in sys.argv[1:]])
