# SPDX-License-Identifier: Apache-2.0
"""The EC2 instance metadata service of one instance, version 2 only, on loopback: as strict as the real one
about tokens, and like it ending the connection after each answer (tests/fake/fake-imds.h), with a log of every request."""

import dataclasses
import http.server
import itertools
import json
import secrets
import sys
import threading
import time

_TTL = "X-aws-ec2-metadata-token-ttl-seconds"
_TOKEN = "X-aws-ec2-metadata-token"
NOTICE = "/latest/meta-data/spot/instance-action"
LIFECYCLE = "/latest/meta-data/autoscaling/target-lifecycle-state"
REBALANCE = "/latest/meta-data/events/recommendations/rebalance"
EVENTS = "/latest/meta-data/events/maintenance/scheduled"
BLOCK_END = "/latest/meta-data/tags/instance/vesper.sh:capacity-block-end"
OTHER_FEEDS = (LIFECYCLE, REBALANCE, EVENTS, BLOCK_END)
_PAGE = (
    '<?xml version="1.0" encoding="iso-8859-1"?>\n<!DOCTYPE html PUBLIC '
    '"-//W3C//DTD XHTML 1.0 Transitional//EN"\n'
    '\t"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">\n'
    '<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en" lang="en">\n'
    ' <head>\n  <title>{0} - {1}</title>\n </head>\n <body>\n  <h1>{0} - {1}</h1>\n </body>\n</html>\n')


@dataclasses.dataclass
class Request:
    method: str
    path: str
    status: int
    number: int  # Number of the connection, in order of acceptance.


class _Server(http.server.ThreadingHTTPServer):
    """Numbers the connections in the order in which they come. The threads that serve them may run in any order."""
    def __init__(self, *arguments):
        self.numbers, self._next = {}, itertools.count()
        super().__init__(*arguments)

    def process_request(self, request, client_address):
        self.numbers[client_address] = next(self._next)
        super().process_request(request, client_address)

    def handle_error(self, request, client_address):
        """Silent about a client that has gone, killed by a case perhaps."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Metadata:
    """with Metadata("i-0123", "us-east-1a") as metadata: ... metadata.endpoint ... metadata.interrupt()"""
    def __init__(self, instance, zone="us-east-1a", address=("127.0.0.1", 0)):
        self.instance = instance
        self.zone = zone
        self._requests = []
        self._tokens = {}
        self._action = None
        self._pages = {}
        self._lock = threading.Lock()
        self._server = _Server(address, self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05, ), daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    @property
    def endpoint(self):
        host, port = self._server.server_address[:2]
        return f"http://{host}:{port}"

    def interrupt(self, after=120, action="terminate"):
        """The notice that a real one gives: the machine may be gone so many seconds from now."""
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + after))
        with self._lock:
            self._action = {"action": action, "time": when}

    def says(self, path, body):
        """Of another feed; None: 404."""
        with self._lock:
            self._pages[path] = body

    def event(self, name, code, after):
        """A scheduled event, so many seconds from now; alone."""
        when = time.strftime("%d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + after))
        self.says(EVENTS, json.dumps([{"EventId": name, "Code": code, "State": "active", "NotBefore": when}]))

    def answer_for(self, instance):
        """From now on it is another machine's, and takes none of the tokens that were given."""
        with self._lock:
            self.instance = instance
            self._tokens.clear()

    def calm(self):
        with self._lock:
            self._action = None

    def log(self):
        """The requests in the order of their connections, each of which carries one."""
        with self._lock:
            return sorted(self._requests, key=lambda r: r.number)

    def _answer_and_note(self, number, method, path, headers):
        """Returns status and body. Notes the request before its answer leaves: a client that has an answer finds it in the log."""
        with self._lock:
            status, body = self._answer(method, path, headers)
            self._requests.append(Request(method, path, status, number))
        return status, body

    def _answer(self, method, path, headers):
        """Returns status and body. The caller holds the lock."""
        if path == "/latest/api/token":
            return self._token(method, headers)
        if method != "GET":
            return 405, _PAGE.format(405, "Method Not Allowed")
        ends = self._tokens.get(headers.get(_TOKEN))
        if ends is None or ends < time.monotonic():
            return 401, _PAGE.format(401, "Unauthorized")
        pages = {
            "/latest/meta-data/instance-id": self.instance,
            "/latest/meta-data/placement/availability-zone": self.zone,
            "/latest/meta-data/placement/region": self.zone[:-1],
            "/latest/dynamic/instance-identity/document": json.dumps({
                "instanceId": self.instance, "region": self.zone[:-1], "availabilityZone": self.zone,
                "accountId": "123456789012"
            })
        }
        pages.update({path: body for path, body in self._pages.items() if body is not None})
        if self._action:
            pages[NOTICE] = json.dumps(self._action)
        if path not in pages:
            return 404, _PAGE.format(404, "Not Found")
        return 200, pages[path]

    def _token(self, method, headers):
        if method != "PUT":
            return 405, _PAGE.format(405, "Method Not Allowed")
        if "X-Forwarded-For" in headers:
            return 403, _PAGE.format(403, "Forbidden")
        ttl = headers.get(_TTL, "")
        if not ttl.isdigit() or not 1 <= int(ttl) <= 21600:
            return 400, _PAGE.format(400, "Bad Request")
        token = secrets.token_urlsafe(40) + "=="
        self._tokens[token] = time.monotonic() + int(ttl)
        return 200, token

    def _handler(self):
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            server_version, sys_version = "EC2ws", ""
            disable_nagle_algorithm = True
            wbufsize = -1  # head and body leave in one segment

            def _serve(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                number = self.server.numbers.pop(self.client_address)
                status, body = owner._answer_and_note(number, self.command, self.path, self.headers)
                data = body.encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/plain" if status == 200 else "text/html")
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Connection", "close")
                if self.command == "PUT" and status == 200:
                    self.send_header(_TTL, self.headers[_TTL])
                self.end_headers()
                self.wfile.write(data)
                self.wfile.flush()

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _serve

            def log_message(self, *_):
                pass

        return Handler
