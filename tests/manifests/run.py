#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Suite manifests: packaging/manifests and packaging/helm, rendered, compared, applied to a real API server, and run.

    tests/manifests/run.py                  plays every case; the arguments are those of tests/e2e/run.py
    VESPER_BUILD=DIR                        folder of the built programs (default: build/)

Prints the figures of each case and, last, "N passed, N failed, N skipped". The logs of a case that fails are kept in
VESPER_BUILD/failed/manifests/NAME, which the next run removes.
"""

import base64
import contextlib
import http.client
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

from daemons import LIMIT, build_directory  # noqa: E402
from rendering import MANIFESTS, NAMESPACE, Tools  # noqa: E402
from runner import Suite  # noqa: E402
from world import CLAIMS, POOLS, World  # noqa: E402
import apiclient  # noqa: E402  (tests/cluster)
import cases_applied  # noqa: E402
import cases_rendered  # noqa: E402
from pods import Images, Pod, make_node  # noqa: E402

CASES = cases_rendered.CASES + cases_applied.CASES


class Bed:
    """One real control plane with kwok and moto, the CRDs and roles of packaging/manifests in it, and helm."""
    def __init__(self, world, directory):
        self.world, self.directory = world, directory
        self.cluster = world.cluster
        self.tools = Tools(self.cluster, directory)
        self.images = Images(directory, build_directory())

    @property
    def admin(self):
        return self.cluster.client()

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def clean(self):
        """Stops what a case left running. Later cases use the objects that were applied."""
        self.world.stop_daemons()

    def wait_served(self):
        self.cluster.wait_for(lambda: all(self.admin.request("GET", p)[0] == 200 for p in (POOLS, CLAIMS)), LIMIT,
                              "the CRDs are served")

    def remove_all(self):
        """What kustomize applied, or helm kept: as if nothing had ever been installed."""
        self.cluster.kubectl("delete", "--ignore-not-found", "--wait=true", "-k", os.path.join(MANIFESTS, "agent-kubeadm"))

    def token(self, account):
        answer = self.admin.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}})
        return answer["status"]["token"]

    def account_client(self, account):
        return apiclient.Client(self.cluster.ports["apiserver"], self.cluster.ca, token=self.token(account))

    def port(self):
        return self.cluster._ports.take()

    def probe(self, port, *paths):
        """As a kubelet does."""
        for path in paths:
            def answers(path=path):
                try:
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
                    connection.request("GET", path)
                    return connection.getresponse().status == 200
                except OSError:
                    return False

            self.cluster.wait_for(answers, LIMIT, f"GET {path} answers 200")

    def agent_pods(self):
        return self.admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app.kubernetes.io%2Fname%3Dvesper-agent")["items"]

    # What make_node() asks of a cluster.
    @property
    def ca(self):
        return self.cluster.ca

    @property
    def url(self):
        return self.cluster.url

    def ca_data(self):
        with open(self.cluster.ca, "rb") as f:
            return base64.b64encode(f.read()).decode()

    def node_certificate(self, node):
        texts = []
        for path in self.cluster._pki.issue(f"system:node:{node}", ["system:nodes"]):
            with open(path, encoding="utf-8") as f:
                texts.append(f.read())
        return texts

    def agent(self, distribution, node, metadata, during, credential=None):
        """Runs that node's agent as its pod says while during(pod) does; the folder that played the node. credential: for distribution
        "other", the value of that name."""
        host = os.path.join(self.directory, f"host-{node}")
        make_node(host, distribution, node, self)
        source = '"Source": "none"' if metadata == "none" else f'"Endpoint": "{metadata}", "PollSec": "1s"'
        objects = self.tools.objects(self.tools.template(
            f'agent={{"enabled": true, "distribution": "{distribution}", "config": {{"Metadata": {{{source}}}, '
            f'"Metrics": {{"Listen": "127.0.0.1:{self.port()}"}}, "Health": {{"Listen": "127.0.0.1:{self.port()}"}}}}, "credential": {json.dumps(credential or [])}}}'))
        pod = Pod(self, objects, "DaemonSet", "vesper-agent", host=host, fields={"spec.nodeName": node})
        with pod.daemon:
            during(pod)
            assert "livenessProbe" not in pod.container, "whoever is on the node could have the agent killed by it"
            probe = pod.container["readinessProbe"]["httpGet"]
            self.probe(probe["port"], probe["path"])
        return host


def needs_root(case):
    return "only root can change its root" if case in cases_applied.ROOT and os.geteuid() != 0 else None


@contextlib.contextmanager
def make_bed(directory):
    with World(directory) as world:
        yield Bed(world, directory)


if __name__ == "__main__":
    sys.exit(Suite("manifests", CASES, make_bed, needs_root).main(__doc__))
