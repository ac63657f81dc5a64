"""Connections of strangers, which may not take all that the processes of a run can open."""

import asyncio
from contextlib import suppress
from typing import Any

from distributed.comm import registry, tcp

SILENCE = 5.0  # seconds without a handshake, or a request, after which a connection is closed


class Listener(tcp.TLSListener):
    """Listener that does not wait for handshakes for ever."""

    async def _prepare_stream(self, stream: Any, address: str) -> Any:
        with suppress(TimeoutError):
            return await asyncio.wait_for(super()._prepare_stream(stream, address), SILENCE)
        stream.close()
        return None


registry.get_backend("tls")._listener_class = Listener


def dask_setup(server: Any) -> None:
    """Limit the silence of who connects to a status page; nannies have none."""
    if pages := getattr(server, "http_server", None):
        pages.conn_params.header_timeout = SILENCE
