"""A server on this machine that does as it is told, well or badly."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Behaviour = Callable[["Handler"], None]


@dataclass
class Server:
    """Behaviours by path, and the requests that came: path and range."""

    address: str
    behaviours: dict[str, Behaviour]
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    #: Set when the test is over: what waits for it stops waiting.
    over: threading.Event = field(default_factory=threading.Event)


class Handler(BaseHTTPRequestHandler):
    """Calls the behaviour of the path. The names are those that the base class looks for."""

    told: Server

    def do_GET(self) -> None:
        self.told.requests.append((self.path, self.headers.get("Range")))
        self.close_connection = True
        with suppress(BrokenPipeError, ConnectionResetError):  # the client had enough
            self.told.behaviours[self.path](self)

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing."""

    def begin(self) -> int:
        """The first byte that is asked for."""
        asked = self.headers.get("Range")
        return int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0

    def answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


@contextmanager
def serving(behaviours: dict[str, Behaviour]) -> Iterator[Server]:
    kind = type("Told", (Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as http:
        server = Server(f"http://127.0.0.1:{http.server_address[1]}", behaviours)
        kind.told = server
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            http.shutdown()
            thread.join()


def whole(content: bytes, ranges: bool = True, at_most: int | None = None, **headers: str) -> Behaviour:
    """Gives the file, from the byte that is asked for if ``ranges``, and breaks off after ``at_most`` bytes."""

    def behave(handler: Handler) -> None:
        begin = handler.begin() if ranges else 0
        if begin >= len(content):
            handler.answer(416, {"Content-Range": f"bytes */{len(content)}"})
            return
        given = {"Content-Length": str(len(content) - begin), **headers}
        if begin:
            given["Content-Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        handler.answer(206 if begin else 200, given, content[begin:][:at_most])

    return behave


def fixed(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    """Gives this answer, whatever is asked."""
    return lambda handler: handler.answer(
        status, {name.replace("_", "-"): value for name, value in headers.items()}, body
    )


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """One after the other; the last one for ever."""
    left = list(behaviours)

    def behave(handler: Handler) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(handler)

    return behave


def stalling(content: bytes, after: int) -> Behaviour:
    """Gives the beginning, then nothing more, without an end."""

    def behave(handler: Handler) -> None:
        handler.answer(200, {"Content-Length": str(len(content))}, content[:after])
        handler.told.over.wait(10)

    return behave


def silent(handler: Handler) -> None:
    """Takes the request and never answers."""
    handler.told.over.wait(10)


def trickling(content: bytes, pause: float) -> Behaviour:
    """One byte at a time."""

    def behave(handler: Handler) -> None:
        handler.answer(200, {"Content-Length": str(len(content))})
        for byte in content:
            if handler.told.over.wait(pause):
                return
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()

    return behave
