# SPDX-License-Identifier: Apache-2.0
"""Between a daemon and the server that it asks: passes bytes on, and knows when certain ones were passed to the daemon. Or late:
as a server that is not on the same machine."""

import contextlib
import socket
import threading
import time
import urllib.parse


class Relay:
    """with Relay(URL, b"instance-action") as relay: ... relay.endpoint ... relay.told: when an answer with these
    bytes was first passed on, seconds since 1970; read right before it was, so that what follows is not measured too short.
    late_sec: each answer is held for so long."""
    def __init__(self, upstream, marker=None, late_sec=0):
        parts = urllib.parse.urlsplit(upstream)
        self._upstream = (parts.hostname, parts.port)
        self._marker = marker
        self._late_sec = late_sec
        self.told = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def endpoint(self):
        host, port = self._listener.getsockname()
        return f"http://{host}:{port}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                far = socket.create_connection(self._upstream)
                for s in (near, far):
                    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for pump in ((near, far, None), (far, near, self._note)):
                    threading.Thread(target=_pump, args=pump, daemon=True).start()

    def _note(self, answer):
        """answer: the last bytes of all that came on this connection, as the marker may come in two pieces."""
        if self._late_sec:
            time.sleep(self._late_sec)
        if self._marker and self.told is None and self._marker in answer:
            self.told = time.time()


def _pump(source, target, note):
    before = b""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if note:
                note(before + data)
                before = data[-64:]
            target.sendall(data)
    for s in (source, target):
        with contextlib.suppress(OSError):
            s.shutdown(socket.SHUT_WR if s is target else socket.SHUT_RD)
    if note:  # the answering side has ended: so may both
        for s in (source, target):
            s.close()
