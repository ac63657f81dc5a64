"""A web server on the loopback that knows ranges, or not, and fails as it is told."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Web:
    """Files of a server by their names, and how it answers.

    ranges  whether it sends pieces
    faults  what happens to the next answers that have content: a status, "cut", "slow", or a
            function, which is called before the answer
    pieces  begin of every piece that was asked for
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.version, self.ranges = "1", True
        self.faults: deque[object] = deque()
        self.pieces: list[int] = []
        self.url = ""

    def fault(self) -> object:
        fault = self.faults.popleft() if self.faults else None
        if callable(fault):
            fault()
        return fault


def _handler(web: Web) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_HEAD(self) -> None:
            self.answer(None)

        def do_GET(self) -> None:
            self.answer(web.fault())

        def answer(self, fault: object) -> None:
            content = web.files.get(self.path[1:])
            status = fault if isinstance(fault, int) else 200 if content is not None else 404
            if content is None or status != 200:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            begin, end = 0, len(content)
            asked = self.headers.get("Range", "") if web.ranges else ""
            if asked:
                first, _, last = asked.removeprefix("bytes=").partition("-")
                begin, end = int(first), min(end, int(last) + 1)
                web.pieces.append(begin)
            self.send_response(206 if asked else 200)
            if asked:
                self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(content)}")
            self.send_header("ETag", f'"{web.version}"')
            self.send_header("Content-Length", str(end - begin))
            self.end_headers()
            if self.command == "HEAD":
                return
            if fault == "slow":
                time.sleep(0.3)
            if fault == "cut":
                end = begin + (end - begin) // 2
                self.close_connection = True
            self.wfile.write(content[begin:end])

    return Handler


@contextmanager
def served() -> Iterator[Web]:
    """Yield a server that answers as long as the block runs."""
    web = Web()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(web)) as server:
        server.daemon_threads = True
        web.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield web
        server.shutdown()
