"""The report on loopback: the same page, which asks now and then whether a run has gone on.

No file is served by its name. There are two addresses, the page and its data, both made from the
given folders; everything else is not found. A request must name this machine as its host, so that
no other site can read the page through a name of its own that leads here. Connections are bounded
in number and in time.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from attnscope.errors import AttnscopeError, UsageError
from attnscope.report.page import as_data, html, policy
from attnscope.report.payload import Request, payload
from attnscope.runs.workspace import PLACES, RESULTS

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MOST_CONNECTIONS = 64
_MOST_SECONDS = 60.0  # of one connection, however slowly its other end reads or writes
# A name or a number, and a port: no user, no second name behind a bracket.
_HOST = re.compile(r"(?:\[([0-9a-fA-F:.]{2,45})\]|([0-9A-Za-z._-]{1,253}))(?::[0-9]{1,5})?")
# Files whose change means news, as patterns inside a folder.
_WATCHED = (
    "units/*/log.jsonl",
    "units/*/done.json",
    "units/*/config.json",
    *RESULTS,
    *(f"{place}/figures/*.svg" for place in PLACES),
    "result.json",
    "figures/*.svg",
    "log.jsonl",
)


class Report:
    """The payload of some folders, made again when their files have changed."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._lock = threading.Lock()
        self._state = ""
        self._value: Any = None

    def current(self) -> tuple[str, Any]:
        """Return the state of the folders, and the payload of that state."""
        with self._lock:
            state = folder_state(self._request.folders)
            if self._value is None or state != self._state:
                self._value, self._state = payload(self._request), state
            return self._state, self._value

    @property
    def state(self) -> str:
        """The state of the folders now; quick."""
        return folder_state(self._request.folders)


def folder_state(folders: Iterable[Path]) -> str:
    """Return a hash of names, sizes and times of the files that a report is made of."""
    seen = []
    for folder in folders:
        for pattern in _WATCHED:
            for path in sorted(folder.glob(pattern)):
                try:
                    about = path.stat()
                except OSError:  # It was replaced at this moment.
                    continue
                seen.append((str(path), about.st_size, about.st_mtime_ns))
    return sha256(repr(seen).encode()).hexdigest()[:24]


class Server(ThreadingHTTPServer):
    """Serves one report.

    Parameters
    ----------
    report
        What is shown.
    host, port
        Where; another interface than loopback must be asked for. Port 0 takes a free one.
    """

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, report: Report, host: str = "127.0.0.1", port: int = 0) -> None:
        self.report, self.host = report, host
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self._open: dict[socket.socket, float] = {}
        if not host.strip():
            raise UsageError("--host is empty; give an address, such as 127.0.0.1 or 0.0.0.0.")
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError, ValueError) as error:
            raise UsageError(
                f"Cannot serve on {host}:{port}: {str(error).rstrip('.')}; choose another port."
            ) from error

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; where too many are at work, wait for one, the slowest ended first."""
        while not self._free.acquire(timeout=0.2):
            self._end_overdue()
        self._open[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection and free its place."""
        super().shutdown_request(request)
        if self._open.pop(request, None) is not None:
            self._free.release()

    def service_actions(self) -> None:
        """End connections that take too long."""
        self._end_overdue()

    def _end_overdue(self) -> None:
        now = time.monotonic()
        for request, begun in list(self._open.items()):
            if now - begun > _MOST_SECONDS:
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Leave a connection that broke off without a word: its other end is gone."""

    @property
    def address(self) -> str:
        """The address to open in a browser."""
        name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://{f'[{name}]' if ':' in name else name}:{self.server_address[1]}/"

    def answers(self, host: str | None) -> bool:
        """Return whether a request's Host header names this machine."""
        match = _HOST.fullmatch(host or "")
        if match is None or (match[1] and not _is_number(match[1])):
            return False
        name = (match[1] or match[2]).lower()
        if name in (*_LOOPBACK, self.host.lower()):
            return True
        # Someone who opened another interface reaches it by its number: a number cannot be
        # pointed elsewhere, as a name can.
        return self.host not in _LOOPBACK and _is_number(name)


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "attnscope"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """Answer with the page, with its data, or with what is wrong."""
        if not self.server.answers(self.headers.get("Host")):
            self._send(403, "text/plain", b"This address is not served here.\n")
            return
        path = self.path.partition("?")[0]
        try:
            if path == "/":
                _, value = self.server.report.current()
                self._send(200, "text/html", html(value, live=True).encode())
            elif path == "/data.json":
                self._data()
            else:
                self._send(404, "text/plain", b"There is nothing here.\n")
        except AttnscopeError as error:
            self._send(500, "text/plain", f"{error}\n".encode("utf8", "replace"))
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:  # Whatever a folder holds, the next request is answered.
            told = f"The report cannot be made ({type(error).__name__}).\n"
            self._send(500, "text/plain", told.encode())

    do_HEAD = do_GET

    def _data(self) -> None:
        if self.headers.get("If-None-Match") == f'"{self.server.report.state}"':
            self._send(304, "application/json", b"")
            return
        state, value = self.server.report.current()
        self._send(200, "application/json", as_data(value).encode(), {"ETag": f'"{state}"'})

    def _send(
        self, status: int, kind: str, body: bytes, more: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Content-Security-Policy": f"{policy(live=True)}; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
            **(more or {}),
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a page that polls would fill the terminal."""


def serve(request: Request, host: str = "127.0.0.1", port: int = 8000) -> Server:
    """Return a server of a report; ``serve_forever`` answers until it is stopped."""
    return Server(Report(request), host, port)
