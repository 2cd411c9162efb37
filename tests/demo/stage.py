# SPDX-License-Identifier: Apache-2.0
"""Where the demo plays: on the embedded fake cluster, or on a real control plane. Both are used in the same
way, over the Kubernetes API and with kubeconfigs; only what lies around that API differs."""

import contextlib
import dataclasses
import json
import os
import re
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(TESTS, "e2e"), os.path.join(TESTS, "cluster")]

import apiclient  # noqa: E402
import pki  # noqa: E402
import procs  # noqa: E402
import sqs  # noqa: E402
from daemons import LIMIT, TOP, build_directory, seconds  # noqa: E402

COORDINATOR = "system:serviceaccount:vesper-system:vesper-coordinator"
MANIFESTS = os.path.join(TOP, "packaging", "manifests")
ZONE = "us-east-1a"
REGION = "us-east-1"
QUEUE = "interruptions"


@dataclasses.dataclass
class Call:
    """One request that the API server answered."""
    time: float
    user: str
    verb: str
    resource: str  # "pods/eviction"
    name: str
    status: int


class Stage:
    """directory: where everything of this stage may be written."""

    title = ""

    def __init__(self, directory):
        self.directory = directory
        self.client = None  # an apiclient.Client of an administrator
        self.ec2_endpoint = None
        self.queue_url = None  # of the interruption queue

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def create_nodes(self, names, instances, labels):
        """instances: of EC2, or whole providerIDs."""
        for name, instance in zip(names, instances):
            self.client.create("/api/v1/nodes", _node(name, instance, labels))


def _node(name, instance, labels):
    size = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    ready = {
        "type": "Ready", "status": "True", "reason": "KubeletReady",
        "message": "kubelet is posting ready status"
    }
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {
            "name": name, "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                "test.vesper.sh/kubelet": "kwok", **labels
            }
        }, "spec": {"providerID": instance if "://" in instance else f"aws:///{ZONE}/{instance}"}, "status": {
            "capacity": size, "allocatable": size, "conditions": [ready],
            "addresses": [{"type": "Hostname", "address": name}]
        }
    }


# -- the embedded fake --------------------------------------------------------------------------------------


class FakeStage(Stage):
    title = "the embedded fake cluster (API server, controllers, EC2: one process)"
    n_instances = 5

    def __init__(self, directory):
        super().__init__(directory)
        self._pki = pki.Pki(os.path.join(directory, "pki"))
        self._process = None
        self._endpoints = {}
        self._instances = [f"i-0c0ffee00000000{i:02d}" for i in range(1, self.n_instances + 1)]

    def start(self):
        self._pki.create()
        certificate, key = self._pki.issue("kube-apiserver", names=("DNS:localhost", "IP:127.0.0.1"))
        world = os.path.join(self.directory, "world.json")
        with open(world, "w", encoding="utf-8") as f:
            json.dump(
                {
                    "objects": [{
                        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vesper-system"}
                    }], "instances": [{"id": i, "zone": ZONE, "node": f"node-{n}"}
                                          for n, i in enumerate(self._instances, 1)], "identities": [{
                        "name": "coordinator", "identity": f"CN={COORDINATOR}"
                    }], "queues": [{"name": QUEUE}], "allow": permissions()
                }, f)
        program = os.path.join(build_directory(), "tests", "fake", "fake-cluster")
        with open(os.path.join(self.directory, "fake-cluster.log"), "wb") as log:
            self._process = procs.spawn([
                program, "--dir", self.directory, "--world", world, "--cert", certificate, "--key", key,
                "--ca", self._pki.ca, "--client-ca", self._pki.ca, "--access-key-id", "testing",
                "--secret-access-key", "testing", "--pod-start-msec", "1500"
            ],
                                        stdin=subprocess.DEVNULL,
                                        stdout=log,
                                        stderr=log,
                                        start_new_session=True)
        self._wait_endpoints()
        self.ec2_endpoint = self._endpoints["ec2"]
        self.queue_url = f"{self._endpoints['sqs']}/{sqs.ACCOUNT}/{QUEUE}"
        port = int(self._endpoints["api"].rpartition(":")[2])
        self.client = apiclient.Client(port, self._pki.ca, self._pki.issue("admin", ["system:masters"]))

    def _wait_endpoints(self):
        path = os.path.join(self.directory, "endpoints.json")
        deadline = time.monotonic() + LIMIT
        while not os.path.exists(path):
            if self._process.poll() is not None or time.monotonic() > deadline:
                with open(os.path.join(self.directory, "fake-cluster.log"), encoding="utf-8") as f:
                    raise procs.StartError(f"the fake cluster did not start: {f.read()}")
            time.sleep(0.01)
        with open(path, encoding="utf-8") as f:
            self._endpoints = json.load(f)

    def stop(self):
        if self.client:
            self.client.close()
        if self._process and self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(3)
            self._process.kill()
        if self._process:
            self._process.wait()

    def _control(self, what, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self._endpoints["control"] + what, data=data, timeout=LIMIT) as answer:
            return json.load(answer)

    def send_spot_event(self, instance):
        """As EventBridge does, to the interruption queue."""
        self._control("/cloud/event", {"queue": QUEUE, "kind": "spot", "instance": instance})

    def instances(self):
        return list(self._instances)

    def instance_state(self, instance):
        return self._control("/instances").get(instance, "gone")

    def node_kubeconfig(self, node):
        certificate, key = self._pki.issue(f"system:node:{node}", ["system:nodes"])
        path = os.path.join(self.directory, f"kubeconfig-of-{node}")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"""apiVersion: v1
kind: Config
clusters:
- name: demo
  cluster: {{server: "{self._endpoints['api']}", certificate-authority: "{self._pki.ca}"}}
users: [{{name: node, user: {{client-certificate: "{certificate}", client-key: "{key}"}}}}]
contexts: [{{name: demo, context: {{cluster: demo, user: node}}}}]
current-context: demo
""")
        return path

    def coordinator_kubeconfig(self):
        return os.path.join(self.directory, "kubeconfig-coordinator")

    def admin_kubeconfig(self):
        return os.path.join(self.directory, "kubeconfig-admin")

    def calls(self):
        found = []
        for entry in self._control("/log"):
            resource, name = _resource_of(entry["path"])
            found.append(
                Call(seconds(entry["time"]), entry["user"], entry["verb"] or entry["method"].lower(),
                     resource, name, entry["status"]))
        return found


def permissions():
    """packaging/manifests/coordinator/rbac.yaml in the fake's words; its rules stand on one line each."""
    with open(os.path.join(MANIFESTS, "coordinator", "rbac.yaml"), encoding="utf-8") as f:
        rules = re.findall(r"^- \{apiGroups: \[(.*?)\], resources: \[(.*?)\],.*?verbs: \[(.*?)\]", f.read(),
                           re.M)
    assert rules, "rbac.yaml has no rule that could be read"
    return [{
        "subject": COORDINATOR, "group": group.strip('"'), "resources": resources.replace(" ", ""),
        "verbs": verbs.replace(" ", "")
    } for group, resources, verbs in rules]


def _resource_of(path):
    """("pods/eviction", "web-1") of /api/v1/namespaces/default/pods/web-1/eviction."""
    parts = path.strip("/").split("/")
    if parts[0] not in ("api", "apis"):
        return path, ""
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if len(parts) > 2 and parts[0] == "namespaces":
        parts = parts[2:]
    resource = "/".join(parts[:1] + parts[2:3])
    return resource, parts[1] if len(parts) > 1 else ""


# -- a real control plane -----------------------------------------------------------------------------------


class RealStage(Stage):
    title = "a real kube-apiserver, etcd, controller-manager and scheduler; kwok as kubelets, moto as EC2"
    n_instances = 5

    def __init__(self, directory):
        super().__init__(directory)
        from audit import AuditLog
        from cluster import Cluster
        self._audit = AuditLog(directory)
        self._cluster = Cluster(kwok=True, moto=True, apiserver_args=self._audit.arguments())
        self._instances = []
        self._account = None
        self._queue = None

    def start(self):
        self._cluster.__enter__()
        try:
            # Not the Deployment: coordinators run here as processes.
            for what in ("crds", os.path.join("coordinator", "rbac.yaml")):
                self._cluster.apply(os.path.join(MANIFESTS, what))
            self.client = self._cluster.client()
            self._cluster.wait_for(self._serves_ours, what="NodePools and NodeClaims are served")
            self._account = self._cluster.service_account("vesper-coordinator", "vesper-system")
            self._instances = self._cluster.ec2.create_instances(self.n_instances)
            self.ec2_endpoint = self._cluster.ec2.endpoint
            self._queue = sqs.Queue(self._cluster.ec2, QUEUE)
            self.queue_url = self._queue.url
        except BaseException:
            self.stop()
            raise

    def _serves_ours(self):
        return all(
            self.client.request("GET", f"/apis/vesper.sh/v1alpha1/{kind}")[0] == 200
            for kind in ("nodepools", "nodeclaims"))

    def stop(self):
        self._cluster.stop()

    def create_nodes(self, names, instances, labels):
        for name, instance in zip(names, instances):
            if "://" not in instance:
                self._cluster.ec2.tag_node(instance, name)
        super().create_nodes(names, instances, labels)

    def instances(self):
        return list(self._instances)

    def instance_state(self, instance):
        return self._cluster.ec2.state(instance) or "gone"

    def send_spot_event(self, instance):
        self._queue.send(self._queue.spot(instance))

    def node_kubeconfig(self, node):
        return self._cluster.kubeconfig(f"system:node:{node}", embed=False)

    def coordinator_kubeconfig(self):
        return self._account

    def admin_kubeconfig(self):
        return self._cluster.kubeconfig()

    def calls(self):
        return [
            Call(c.received, c.user, c.verb, c.resource or c.path, c.name, c.status)
            for c in self._audit.since(0)
        ]
