"""The report on loopback: the same page, which asks now and then whether a run has gone on.

No file is served by its name. There are two addresses, the page and its data, both made from the
given folders; everything else is not found. A request must name this machine as its host, so that
no other site can read the page through a name of its own that leads here.
"""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Iterable
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from attnscope.errors import AttnscopeError, UsageError
from attnscope.report.page import as_data, html, policy
from attnscope.report.payload import Request, payload
from attnscope.runs.workspace import PLACES, RESULTS

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
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

    def __init__(self, report: Report, host: str = "127.0.0.1", port: int = 0) -> None:
        self.report, self.host = report, host
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"Cannot serve on {host}:{port}: {error}; choose another port."
            ) from error

    @property
    def address(self) -> str:
        """What to open in a browser."""
        name = "127.0.0.1" if self.host == "0.0.0.0" else self.host
        return f"http://{name}:{self.server_address[1]}/"

    def answers(self, host: str | None) -> bool:
        """Tell whether a request's Host header names this machine."""
        name = _name(host or "")
        if name in (*_LOOPBACK, self.host.lower()):
            return True
        # Someone who opened another interface reaches it by its number: a number cannot be
        # pointed elsewhere, as a name can.
        return self.host not in _LOOPBACK and _is_number(name)


def _name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


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
            self._send(500, "text/plain", f"{error}\n".encode())

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
