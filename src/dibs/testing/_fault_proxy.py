"""A proxy in front of a real object store that loses, delays and makes up answers, by seed.

It speaks just enough HTTP/1.1 to see where a request and its answer end. What it did is counted, so that a test can
say that nothing was proven by nothing going wrong.
"""

from __future__ import annotations

import http.client
import random
import socket
import threading
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

__all__ = ["FAULTS", "FaultProxy"]

#: what can go wrong with a request. Those that write may have written, or may write later, or may not
FAULTS = ("drop_answer", "drop_request", "late", "status", "stall", "cut", "flip")
_STATUS = (409, 429, 500, 503)
_WRITES = ("PUT", "DELETE", "POST")
_BODY = b"<?xml version='1.0'?><Error><Code>%s</Code><Message>made up on the way</Message></Error>"
_CODES = {409: b"ConditionalRequestConflict", 429: b"TooManyRequests", 500: b"InternalError", 503: b"SlowDown"}


class FaultProxy:
    """``with FaultProxy(endpoint, seed, chances) as proxy: ... proxy.endpoint``; ``faults`` counts what it did.

    ``chances``: fault -> probability per request. ``late_s``: how late a late write lands, at most; ``stall_s``: how
    long a stalled answer waits before it is dropped. "flip" changes a bit of what is PUT. An answer of 500 or 503
    follows the write half of the time.
    """

    def __init__(
        self,
        endpoint: str,
        seed: int,
        chances: Mapping[str, float],
        *,
        late_s: float = 0.5,
        stall_s: float = 3.0,
    ) -> None:
        self.target = urlsplit(endpoint).netloc
        self.chances = {fault: chances.get(fault, 0.0) for fault in FAULTS}
        self.late_s, self.stall_s = late_s, stall_s
        self.faults: Counter[str] = Counter()
        self._rng, self._lock = random.Random(seed), threading.Lock()
        self._late: list[threading.Timer] = []
        self._closing = threading.Event()
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FaultProxy:
        threading.Thread(target=self._server.serve_forever, name="fault-proxy", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self.land_all()

    def land_all(self) -> None:
        """Wait until every late write has landed."""
        while self._late:
            self._late.pop().join()

    def draw(self) -> tuple[str, float]:
        """What happens to the next request, and a number in [0, 1) for how."""
        with self._lock:
            word, how = self._rng.random(), self._rng.random()
            for fault, chance in self.chances.items():
                if word < chance:
                    self.faults[fault] += 1
                    return fault, how
                word -= chance
            self.faults["none"] += 1
            return "", how

    def later(self, seconds: float, call: Any) -> None:
        """Do it in a while, whoever hung up."""
        timer = threading.Timer(seconds, call)
        timer.daemon = True
        with self._lock:
            self._late.append(timer)
        timer.start()

    def wait(self, seconds: float) -> None:
        self._closing.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no trouble of the proxy's."""


class _Handler(BaseHTTPRequestHandler):
    owner: FaultProxy
    protocol_version = "HTTP/1.1"

    def _any(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        fault, how = self.owner.draw()
        writes = self.command in _WRITES
        if fault == "late" and not writes:
            fault = "drop_request"
        if fault == "drop_request":
            return self._hang_up()
        if fault == "late":
            self.owner.later(how * self.owner.late_s, lambda: self._unheard(body))
            return self._hang_up()
        if fault == "status":
            status = _STATUS[int(how * 2 * len(_STATUS)) % len(_STATUS)]
            if writes and status >= 500 and how >= 0.5:
                self._unheard(body)
            return self._answer(status, [("Content-Type", "application/xml")], _BODY % _CODES[status])
        if fault == "flip" and body and self.command == "PUT":
            at = int(how * len(body))
            body = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        try:
            status, headers, data = self._forward(body)
        except (OSError, http.client.HTTPException):
            return self._hang_up()
        if fault == "stall":
            self.owner.wait(self.owner.stall_s)
        if fault in ("drop_answer", "stall"):
            return self._hang_up()
        return self._answer(status, headers, data, cut=int(how * len(data)) if fault == "cut" else None)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _any

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.owner.target, timeout=60)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "expect"):
                    connection.putheader(name, value)  # the host, too: it is signed
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _unheard(self, body: bytes) -> None:
        try:
            self._forward(body)
        except (OSError, http.client.HTTPException):
            pass

    def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes, cut: int | None = None) -> None:
        head = self.command == "HEAD"
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        length = (
            next((value for name, value in headers if name.lower() == "content-length"), "0") if head else len(data)
        )
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if not head:
            self.wfile.write(data if cut is None else data[:cut])
        if cut is not None:
            self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        try:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def log_message(self, format: str, *args: Any) -> None:
        return
