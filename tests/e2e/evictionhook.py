# SPDX-License-Identifier: Apache-2.0
"""An admission webhook on pods/eviction, as operators have one: an HTTPS server on loopback that writes each review down, and
answers it as the case says."""

import base64
import dataclasses
import http.server
import json
import ssl
import threading

from daemons import LIMIT
from world import MUTATING_WEBHOOKS, WEBHOOKS


@dataclasses.dataclass
class Review:
    pod: str
    user: str
    is_dry_run: bool


class EvictionWebhook:
    """with EvictionWebhook(world, name, answer) as webhook: ... webhook.asked(user)

    answer: called with each Review; returns the response without its uid. mutates: whether the response may have a patch."""
    def __init__(self, world, name, answer, mutates=False):
        self.world, self.name, self.mutates = world, name, mutates
        self._reviews = []
        self._lock = threading.Lock()
        webhook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
                review = Review(request["name"], request["userInfo"]["username"], request["dryRun"])
                with webhook._lock:
                    webhook._reviews.append(review)
                body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                                   "response": {"uid": request["uid"]} | answer(review)}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*world.cluster.certificate("eviction-webhook", names=("IP:127.0.0.1",)))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.05, ), daemon=True).start()

    def __enter__(self):
        try:
            self._register()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.world.admin.request("DELETE", self._path)
        self._server.shutdown()
        self._server.server_close()

    @property
    def _path(self):
        return f"{MUTATING_WEBHOOKS if self.mutates else WEBHOOKS}/{self.name}"

    def asked(self, user):
        """The pods of that user's evictions, dry runs left out, in the order of the reviews."""
        with self._lock:
            return [r.pod for r in self._reviews if r.user == user and not r.is_dry_run]

    def _has_seen(self, pod):
        with self._lock:
            return any(r.pod == pod for r in self._reviews)

    def _register(self):
        """Waits until the API server calls the webhook: it takes a configuration up some time after it has stored it."""
        with open(self.world.cluster.ca, "rb") as f:
            ca = base64.b64encode(f.read()).decode()
        self.world.admin.create(self._path.rpartition("/")[0], {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration" if self.mutates else "ValidatingWebhookConfiguration", "metadata": {"name": self.name},
            "webhooks": [{
                "name": f"{self.name}.example.com", "failurePolicy": "Ignore", "sideEffects": "NoneOnDryRun", "timeoutSeconds": 10,
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": f"https://127.0.0.1:{self._server.server_address[1]}/", "caBundle": ca},
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/eviction"]}]}]})
        # The scheduler does not place this pod, and a dry run does not end it.
        probe = self.world.cluster.create_pods(None, prefix=f"{self.name}-probe",
                                               change=lambda pod: pod["spec"].update(schedulerName="nobody"))[0]
        pods = "/api/v1/namespaces/default/pods"

        def is_called():
            # Another change mends a configuration that the API server has read too early (cases_cluster.py, _register()).
            self.world.admin.patch(self._path, {"metadata": {"annotations": {"e2e-read": self.world.unique(self.name)}}})
            self.world.admin.request("POST", f"{pods}/{probe}/eviction?dryRun=All", {
                "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": probe, "namespace": "default"}})
            return self._has_seen(probe)

        self.world.cluster.wait_for(is_called, LIMIT, "the API server calls the webhook", interval=0.1)
        self.world.admin.delete(f"{pods}/{probe}", {"gracePeriodSeconds": 0})
