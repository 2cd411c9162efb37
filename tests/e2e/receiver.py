# SPDX-License-Identifier: Apache-2.0
"""What [Notify] Url= leads to: an HTTP server on loopback that writes each request down, and is down when told so."""

import dataclasses
import hashlib
import hmac
import http.server
import json
import threading
import time

PATH = "/services/T0/s3cr3t-of-the-path"


@dataclasses.dataclass
class Message:
    status: int  # that it was answered with
    headers: dict
    body: bytes
    time: float

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def phase(self):
        return self.headers["X-Vesper-Phase"]

    def verifies(self, secret):
        """The signature is of this body at this time, and that is now."""
        stamp = self.headers["X-Vesper-Timestamp"]
        expected = hmac.new(secret, stamp.encode() + b"." + self.body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(self.headers["X-Vesper-Signature"], f"sha256={expected}") and abs(int(stamp) - self.time) < 60


class Receiver:
    """with Receiver() as receiver: ... receiver.url ... receiver.taken(node). status: of answers from now on."""
    def __init__(self):
        self.status = 204
        self._messages = []
        self._lock = threading.Lock()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receiver._lock:
                    status = receiver.status if self.path == PATH else 404
                    receiver._messages.append(Message(status, dict(self.headers), body, time.time()))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05, ), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}{PATH}"

    def messages(self):
        with self._lock:
            return list(self._messages)

    def taken(self, node):
        """Those about this node that were answered with 2xx."""
        return [m for m in self.messages() if m.status < 300 and m.json["node"] == node]

    def phases(self, node):
        return [m.phase for m in self.taken(node)]
