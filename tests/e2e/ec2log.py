# SPDX-License-Identifier: Apache-2.0
"""What stands between the coordinator and moto: passes every request on and notes what was asked for."""

import dataclasses
import http.client
import http.server
import threading
import time
import urllib.parse


@dataclasses.dataclass
class Ec2Call:
    action: str
    instances: list
    region: str
    status: int
    time: float


class Ec2Log:
    def __init__(self, port):
        self.calls = []
        self._port = port
        self._lock = threading.Lock()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05, ), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def terminations(self, instance):
        """Those that named it, obeyed or not."""
        with self._lock:
            return [c for c in self.calls if c.action == "TerminateInstances" and instance in c.instances]

    def _note(self, headers, body, status):
        form = dict(urllib.parse.parse_qsl(body.decode()))
        scope = headers.get("Authorization", "").partition("Credential=")[2].split("/")
        instances = [v for k, v in form.items() if k.startswith("InstanceId.") or ".Value." in k]
        with self._lock:
            self.calls.append(
                Ec2Call(form.get("Action", ""), instances, scope[2] if len(scope) > 2 else "", status,
                        time.time()))

    def _handler(self):
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                upstream = http.client.HTTPConnection("127.0.0.1", owner._port, timeout=30)
                try:
                    upstream.request("POST", self.path, body,
                                     {k: v
                                      for k, v in self.headers.items() if k.lower() != "connection"})
                    answer = upstream.getresponse()
                    data = answer.read()
                finally:
                    upstream.close()
                owner._note(self.headers, body, answer.status)
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.getheader("Content-Type") or "text/xml")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                self.wfile.flush()

            def log_message(self, *_):
                pass

        return Handler
