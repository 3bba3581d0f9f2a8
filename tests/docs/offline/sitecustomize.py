"""Refuse connections that leave this machine; on the path of the processes that pages start."""

import socket

_LOCAL = {"127.0.0.1", "localhost", "::1", "", None}
_connect, _getaddrinfo = socket.socket.connect, socket.getaddrinfo


def _refuse_connect(self, address):
    if self.family != socket.AF_UNIX and address[0] not in _LOCAL:
        raise OSError(f"the documentation asked for a network: {address}")
    return _connect(self, address)


def _refuse_lookup(host, *rest, **options):
    if host not in _LOCAL:
        raise OSError(f"the documentation asked for a network: {host}")
    return _getaddrinfo(host, *rest, **options)


socket.socket.connect = _refuse_connect
socket.getaddrinfo = _refuse_lookup
