# SPDX-License-Identifier: Apache-2.0
"""An API server that knows one Node: GET, and merge and condition patches of it; writes down what it was asked."""

import http.server
import json
import threading


NODE = "n1"
KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "%s"}}]
users: [{name: u, user: {token: none}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


def marked_node():
    """A Node with all that the agent leaves on it, and something that is not its own."""
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": NODE, "uid": "u1", "resourceVersion": "10",
                         "labels": {"node.kubernetes.io/exclude-from-external-load-balancers": "vesper", "role": "worker"},
                         "annotations": {"vesper.sh/cordoned-by-agent": '{"bootID":"b","why":"test"}',
                                         "vesper.sh/interruption": "{}", "own": "stays"}},
            "spec": {"unschedulable": True},
            "status": {"conditions": [{"type": "Drained", "status": "True", "reason": "VesperAgent", "message": "m"},
                                      {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "m"}]}}


def is_clean(node):
    """Asserts that of marked_node() only what is not the agent's is left."""
    meta, conditions = node["metadata"], [c["type"] for c in node["status"]["conditions"]]
    assert not node["spec"].get("unschedulable"), f"the node is cordoned still: {node['spec']}"
    assert meta["annotations"] == {"own": "stays"}, f"annotations: {meta['annotations']}"
    assert meta["labels"] == {"role": "worker"}, f"labels: {meta['labels']}"
    assert conditions == ["Ready"], f"conditions: {conditions}"


def merge(into, patch):
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict):
            merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


class NodeServer:
    def __init__(self):
        self.node = marked_node()
        self.requests = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self, status, body):
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def handle_one(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.requests.append(f"{self.command} {self.path}")
                path = "/api/v1/nodes/" + outer.node["metadata"]["name"]
                if self.path.split("?")[0] not in (path, path + "/status"):
                    self.answer(404, {"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound",
                                      "message": "not here"})
                    return
                if self.command == "PATCH":
                    outer.patch(json.loads(body))
                self.answer(200, outer.node)

            do_GET = do_PATCH = do_POST = do_DELETE = do_PUT = handle_one

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def address(self):
        return "http://127.0.0.1:%d" % self.server.server_address[1]

    def kubeconfig(self):
        return KUBECONFIG % self.address

    def patch(self, patch):
        for condition in patch.get("status", {}).pop("conditions", []):
            if condition.get("$patch") == "delete":
                conditions = self.node["status"]["conditions"]
                conditions[:] = [c for c in conditions if c["type"] != condition["type"]]
        merge(self.node, patch)
        self.node["metadata"]["resourceVersion"] = str(int(self.node["metadata"]["resourceVersion"]) + 1)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
