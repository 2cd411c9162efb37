# SPDX-License-Identifier: Apache-2.0
"""A small Kubernetes API client for tests: one keep-alive connection per thread, JSON in and out."""

import concurrent.futures
import http.client
import json
import ssl
import threading
import time

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class ApiError(Exception):
    """An answer that is no success. status: the HTTP code; body: the Status object, or text."""

    def __init__(self, method, path, status, body):
        message = body.get("message", body) if isinstance(body, dict) else body
        super().__init__(f"{method} {path}: {status}: {message}")
        self.status = status
        self.body = body


class Client:
    """certificate: the paths (certificate, key), or None; token: a bearer token, or None."""

    def __init__(self, port, ca, certificate=None, token=None, timeout=60):
        self._port = port
        self._timeout = timeout
        self._token = token
        self._context = ssl.create_default_context(cafile=ca)
        if certificate:
            self._context.load_cert_chain(*certificate)
        self._local = threading.local()
        self._open = []

    def close(self):
        """Closes its connections; it can still be used, and opens new ones."""
        while self._open:
            self._open.pop().close()
        self._local = threading.local()

    def _connect(self, timeout):
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=self._context,
                                                 timeout=timeout)
        connection.connect()
        return connection

    def _headers(self, content_type):
        headers = {"Accept": "application/json"}
        if content_type:
            headers["Content-Type"] = content_type
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        return headers

    def request(self, method, path, body=None, content_type=None):
        """Returns (HTTP status, parsed body or text). Raises OSError only when there was no answer."""
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            content_type = content_type or (MERGE_PATCH if method == "PATCH" else "application/json")

        while True:
            connection = getattr(self._local, "connection", None)
            reused = connection is not None
            if not reused:
                connection = self._local.connection = self._connect(self._timeout)
                self._open.append(connection)
            try:
                connection.request(method, path, body=data, headers=self._headers(content_type))
                response = connection.getresponse()
                raw = response.read()
                break
            except (http.client.HTTPException, OSError) as e:
                self._drop(connection)
                # A connection that the server had closed in the meantime: once more, on a new one.
                if reused and isinstance(e, (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError)):
                    continue
                raise ConnectionError(f"{method} {path}: {e!r}") from e

        if response.will_close:
            self._drop(connection)
        if "json" in (response.getheader("Content-Type") or ""):
            return response.status, json.loads(raw)
        return response.status, raw.decode(errors="replace")

    def _drop(self, connection):
        connection.close()
        if connection in self._open:
            self._open.remove(connection)
        self._local.connection = None

    def call(self, method, path, body=None, content_type=None):
        """The parsed body of a 2xx answer; anything else raises ApiError."""
        status, answer = self.request(method, path, body, content_type)
        if not 200 <= status < 300:
            raise ApiError(method, path, status, answer)
        return answer

    def get(self, path):
        return self.call("GET", path)

    def find(self, path):
        """As get(), but None for 404."""
        status, answer = self.request("GET", path)
        if status == 404:
            return None
        if status != 200:
            raise ApiError("GET", path, status, answer)
        return answer

    def create(self, path, body):
        return self.call("POST", path, body)

    def patch(self, path, body, content_type=MERGE_PATCH):
        return self.call("PATCH", path, body, content_type)

    def delete(self, path, body=None):
        return self.call("DELETE", path, body)

    def evict(self, namespace, pod, grace=None, uid=None):
        """Returns (HTTP status, body): a refusal is an answer that tests look at."""
        options = {}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        return self.request("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction", {
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace}, "deleteOptions": options})

    def bulk(self, calls, connections=16):
        """Many calls (method, path, body) at once over so many connections; the answers in their order.
        Raises the first ApiError after all are done."""
        calls = list(calls)
        own = set()  # other threads have connections, too
        with concurrent.futures.ThreadPoolExecutor(min(connections, max(1, len(calls)))) as pool:
            futures = [pool.submit(self._call_and_keep, own, *c) for c in calls]
        for connection in own & set(self._open):
            connection.close()
            self._open.remove(connection)
        return [f.result() for f in futures]

    def _call_and_keep(self, own, method, path, body=None, content_type=None):
        try:
            return self.call(method, path, body, content_type)
        finally:
            own.add(getattr(self._local, "connection", None))

    def watch(self, path, resource_version, timeout=60):
        """Yields the events of a watch, as they come, for so many seconds."""
        joint = "&" if "?" in path else "?"
        deadline = time.monotonic() + timeout
        connection = self._connect(max(timeout, self._timeout))
        try:
            connection.request("GET", f"{path}{joint}watch=1&allowWatchBookmarks=true"
                               f"&resourceVersion={resource_version}&timeoutSeconds={int(timeout) + 1}",
                               headers=self._headers(None))
            response = connection.getresponse()
            if response.status != 200:
                raise ApiError("GET", path, response.status, response.read().decode(errors="replace"))
            while (left := deadline - time.monotonic()) > 0:
                connection.sock.settimeout(left)
                try:
                    line = response.readline()
                except TimeoutError:
                    return
                if not line:
                    return
                yield json.loads(line)
        finally:
            connection.close()

    def wait_list(self, path, condition, timeout=60, what="the condition"):
        """Until condition(objects of that list) is true, woken by a watch. Returns the objects."""
        deadline = time.monotonic() + timeout
        objects = {}
        while True:
            listed = self.get(path)
            objects = {o["metadata"]["uid"]: o for o in listed["items"]}
            if condition(list(objects.values())):
                return list(objects.values())
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{what} did not hold after {timeout} s; "
                                   f"{len(objects)} objects in {path}")
            for event in self.watch(path, listed["metadata"]["resourceVersion"], left):
                if event["type"] == "ERROR":
                    break
                if event["type"] == "BOOKMARK":
                    continue
                uid = event["object"]["metadata"]["uid"]
                if event["type"] == "DELETED":
                    objects.pop(uid, None)
                else:
                    objects[uid] = event["object"]
                if condition(list(objects.values())):
                    return list(objects.values())
