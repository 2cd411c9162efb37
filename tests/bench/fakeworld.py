# SPDX-License-Identifier: Apache-2.0
"""A fake cluster of any size as a process of its own, reached over HTTPS, and our daemons against it."""

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(TESTS, "demo"), os.path.join(TESTS, "e2e"), os.path.join(TESTS, "cluster")]

import apiclient  # noqa: E402
import pki  # noqa: E402
import procs  # noqa: E402
import stage  # noqa: E402
from daemons import Daemon, build_directory  # noqa: E402

ZONE = "us-east-1a"
PODS_PER_NAMESPACE = 500
SQS_ACCOUNT = "123456789012"
AWS_KEYS = {
    "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_EC2_METADATA_DISABLED": "true"
}


def pod_template():
    """A pod as an API server stores it, with what admission, the scheduler and a kubelet wrote: about 4 kB
    of JSON. Of number i: namespace i / per, node i % among."""
    def container(name, port):
        return {
            "name": name, "image": f"registry.example.org/team/{name}:v1.42.7",
            "env": [{"name": "LOG_LEVEL", "value": "info"}],
            "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "volumeMounts": [{"name": "kube-api-access-x7k2p", "readOnly": True,
                                 "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
            "imagePullPolicy": "IfNotPresent"
        }

    def state(name):
        return {
            "name": name, "ready": True, "started": True, "restartCount": 0, "lastState": {},
            "state": {"running": {"startedAt": "2026-11-01T10:00:03Z"}},
            "image": f"registry.example.org/team/{name}:v1.42.7",
            "imageID": f"registry.example.org/team/{name}@sha256:{'5f' * 32}",
            "containerID": f"containerd://{'a9' * 32}"
        }

    def condition(kind):
        return {
            "type": kind, "status": "True", "lastTransitionTime": "2026-11-01T10:00:04Z"
        }

    def managed(manager, fields, subresource=None):
        entry = {
            "manager": manager, "operation": "Update", "apiVersion": "v1", "time": "2026-11-01T10:00:04Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields
        }
        return {**entry, "subresource": subresource} if subresource else entry

    names = ("web", "proxy")
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": "app-7d9c5b8f6d-%i", "namespace": "team-%g", "generateName": "app-7d9c5b8f6d-",
            "creationTimestamp": "2026-11-01T10:00:00Z",
            "labels": {"app": "app", "pod-template-hash": "7d9c5b8f6d", "team": "team-%g", "tier": "backend"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app-7d9c5b8f6d",
                "uid": "8a3c1f8e-6d7c-4a51-9d54-0c0000%g", "controller": True, "blockOwnerDeletion": True
            }], "managedFields": [
                managed("kube-controller-manager", {
                    "f:metadata": {"f:generateName": {}, "f:labels": {".": {}, "f:app": {}}},
                    "f:spec": {"f:containers": {f'k:{{"name":"{n}"}}': {
                        ".": {}, "f:image": {}, "f:name": {}, "f:ports": {}} for n in names},
                               "f:restartPolicy": {}}
                }),
                managed("kubelet", {"f:status": {"f:conditions": {
                    'k:{"type":"Ready"}': {".": {}, "f:status": {}, "f:lastTransitionTime": {}}},
                    "f:containerStatuses": {}, "f:phase": {}, "f:podIP": {}}}, "status")
            ]
        }, "spec": {
            "nodeName": "node-%m", "schedulerName": "default-scheduler", "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst", "serviceAccountName": "app", "serviceAccount": "app", "priority": 0,
            "securityContext": {},
            "terminationGracePeriodSeconds": 30, "containers": [container("web", 8080),
                                                                container("proxy", 9090)],
            "tolerations": [{"key": f"node.kubernetes.io/{k}", "operator": "Exists", "effect": "NoExecute",
                             "tolerationSeconds": 300} for k in ("not-ready", "unreachable")],
            "volumes": [{"name": "kube-api-access-x7k2p", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}]
        }, "status": {
            "phase": "Running", "hostIP": "10.0.0.1", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}],
            "startTime": "2026-11-01T10:00:01Z", "qosClass": "Burstable",
            "conditions": [condition(k) for k in ("Initialized", "Ready", "ContainersReady", "PodScheduled")],
            "containerStatuses": [state(n) for n in names]
        }
    }


def node_template():
    """A node with its status as a kubelet of a cloud keeps it, images left out but for a few."""
    def condition(kind, status):
        return {
            "type": kind, "status": status, "reason": f"Kubelet{kind}", "message": f"kubelet: {kind} {status}",
            "lastHeartbeatTime": "2026-11-01T10:00:00Z", "lastTransitionTime": "2026-11-01T10:00:00Z"
        }

    size = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {
            "name": "node-%i", "labels": {
                "kubernetes.io/hostname": "node-%i", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                "node.kubernetes.io/instance-type": "m7i.4xlarge", "topology.kubernetes.io/zone": ZONE,
                "topology.kubernetes.io/region": ZONE[:-1], "role": "worker"
            }, "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
        }, "spec": {"providerID": f"aws:///{ZONE}/i-00%i"}, "status": {
            "capacity": size, "allocatable": size, "conditions": [
                condition("MemoryPressure", "False"), condition("DiskPressure", "False"),
                condition("PIDPressure", "False"), condition("Ready", "True")
            ], "addresses": [{"type": "InternalIP", "address": "10.0.0.1"},
                             {"type": "Hostname", "address": "node-%i"}],
            "nodeInfo": {"kubeletVersion": "v1.34.4", "osImage": "Debian GNU/Linux 12 (bookworm)",
                         "kernelVersion": "6.1.0", "containerRuntimeVersion": "containerd://2.1.4",
                         "architecture": "amd64", "operatingSystem": "linux", "bootID": "b-%i",
                         "machineID": "m-%i", "systemUUID": "s-%i", "kubeProxyVersion": ""},
            "images": [{"names": [f"registry.example.org/team/image-{n}@sha256:{'5f' * 32}",
                                  f"registry.example.org/team/image-{n}:v1"], "sizeBytes": 123456789}
                       for n in range(10)]
        }
    }


def pod_bytes():
    """Of one as it stands in a list."""
    return len(json.dumps(pod_template(), separators=(",", ":")))


NODE, INSTANCE = "node-000000", "i-00000000"


def one_node_world(pods, keeps_connections=False):
    """A node with its instance and its metadata service, and so many pods on it."""
    node = json.loads(json.dumps(node_template()).replace("%i", "000000"))
    return {
        "objects": [_namespace("team-000000"), node], "instances": [{"id": INSTANCE, "zone": ZONE, "node": NODE, "keepsConnections": keeps_connections}],
        "many": [{"count": pods, "per": PODS_PER_NAMESPACE, "among": 1, "object": pod_template()}]
    }


def _budget():
    return {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "app", "namespace": "team-%i"},
        "spec": {"minAvailable": PODS_PER_NAMESPACE * 3 // 10, "selector": {"matchLabels": {"app": "app"}}}
    }


def pool():
    """A NodePool that selects every node of node_template()."""
    return {
        "apiVersion": "vesper.sh/v1alpha1", "kind": "NodePool", "metadata": {"name": "workers"},
        "spec": {"selector": {"matchLabels": {"role": "worker"}}, "template": {}}
    }


def _namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def many_world(nodes, pods, with_pool=True):
    """That many of each, one PodDisruptionBudget in each namespace; with_pool: and a NodePool that has
    all the nodes."""
    namespaces = -(-pods // PODS_PER_NAMESPACE)
    return {
        "objects": [_namespace("vesper-system")] + ([pool()] if with_pool else []), "manyInstances": {
            "count": nodes, "zone": ZONE, "node": "node-"
        }, "many": [{"count": nodes, "object": node_template()},
                    {"count": namespaces, "object": _namespace("team-%i")},
                    {"count": namespaces, "object": _budget()},
                    {"count": pods, "per": PODS_PER_NAMESPACE, "among": nodes,
                     "object": pod_template()}]
    }


class FakeWorld:
    """with FakeWorld(directory, world) as fake: ... What lies in `world` is fake-cluster's to say."""
    def __init__(self, directory, world, options=()):
        os.makedirs(directory, exist_ok=True)
        self.directory = directory
        self.load_seconds = None
        self.client = None
        self.api = self.ca = None
        self.person = None  # certificate and key of somebody who may do everything
        self._world = {
            "identities": [{"name": "coordinator", "identity": f"CN={stage.COORDINATOR}"}],
            "allow": stage.permissions(), **world
        }
        self._options = list(options)
        self._pki = pki.Pki(os.path.join(directory, "pki"))
        self._process = None
        self._endpoints = {}

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.client:
            self.client.close()
        if self._process:
            self._process.kill()  # it holds gigabytes, and nothing to save
            self._process.wait()

    @property
    def pid(self):
        return self._process.pid

    def _start(self):
        self._pki.create()
        certificate, key = self._pki.issue("kube-apiserver", names=("DNS:localhost", "IP:127.0.0.1"))
        path, log_path = self.path("world.json"), self.path("fake-cluster.log")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(self._world, f)
        begin = time.monotonic()
        with open(log_path, "wb") as log:
            self._process = procs.spawn([
                os.path.join(build_directory(), "tests", "fake", "fake-cluster"), "--dir", self.directory,
                "--world", path, "--cert", certificate, "--key", key, "--ca", self._pki.ca, "--client-ca",
                self._pki.ca, "--access-key-id", "testing", "--secret-access-key", "testing", *self._options
            ], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self._wait_endpoints(log_path)
        self.load_seconds = time.monotonic() - begin
        self.api = self._endpoints["api"]
        self.ca, self.person = self._pki.ca, self._pki.issue("admin", ["system:masters"])
        self.client = apiclient.Client(int(self.api.rpartition(":")[2]), self.ca, self.person)

    def _wait_endpoints(self, log_path):
        deadline = time.monotonic() + 180
        while not os.path.exists(self.path("endpoints.json")):
            if self._process.poll() is not None or time.monotonic() > deadline:
                with open(log_path, encoding="utf-8", errors="replace") as f:
                    raise procs.StartError(f"the fake cluster did not start: {f.read()[-2000:]}")
            time.sleep(0.01)
        with open(self.path("endpoints.json"), encoding="utf-8") as f:
            self._endpoints = json.load(f)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def issue(self, common_name, names=()):
        """Paths of a certificate by this world's CA, and of its key."""
        return self._pki.issue(common_name, names=names)

    def metadata_endpoint(self, instance):
        return self._endpoints["metadata"][instance]

    def control(self, what, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self._endpoints["control"] + what, data=data, timeout=60) as answer:
            return json.load(answer)

    @property
    def control_endpoint(self):
        return self._endpoints["control"]

    def queue_url(self, name):
        """Of one of the world's "queues"."""
        return f"{self._endpoints['sqs']}/{SQS_ACCOUNT}/{name}"

    def queue_left(self, name):
        """Messages that are in it, received or not."""
        return self.control("/cloud/queue", {"queue": name})["messages"]

    def counters(self):
        """"create pods/eviction 201" -> how many, since the last reset."""
        return self.control("/counters")

    def reset_counters(self):
        self.control("/log/reset", {})

    def reads(self, user):
        """Paths of what that user has read since the last reset, with their queries."""
        return [e["path"] + ("?" + e["query"] if e["query"] else "") for e in self.control("/log")
                if e["method"] == "get" and e["user"] == user]

    def count(self, what, status=None):
        """Answered requests whose counter begins with `what`."""
        return sum(n for key, n in self.counters().items()
                   if key.startswith(what + " ") and (status is None or key.endswith(f" {status}")))

    def delete_bare(self, paths, connections):
        """By a client that does nothing else, so many at once; seconds from the first request to the last answer."""
        certificate, key = self._pki.issue("admin", ["system:masters"])
        done = subprocess.run([os.path.join(build_directory(), "tests", "bench", "evict-limit"), "--server", self._endpoints["api"],
                               "--ca", self._pki.ca, "--cert", certificate, "--key", key, "--connections", str(connections),
                               "--streams", "1", "--http1"], input="".join(f"{p}\n" for p in paths), capture_output=True, text=True,
                              check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        assert result["deleted"] == len(paths) and result["failed"] == 0, result
        return result["seconds"]

    def coordinator(self, name, **settings):
        return self._daemon(name, "vesper-coordinator", {
            "Kubernetes.Kubeconfig": self.path("kubeconfig-coordinator"), "Lease.Identity": name,
            "Provider.Name": "ec2", "Provider.Endpoint": self._endpoints["ec2"],
            "Provider.Region": ZONE[:-1], "Log.Target": "json", **settings
        }, AWS_KEYS)

    def agent(self, node, endpoint, **settings):
        state = self.path(f"state-{node}")
        os.makedirs(state, exist_ok=True)
        return self._daemon(f"agent-{node}", "vesper-agent", {
            "Kubernetes.Kubeconfig": self.path(f"kubeconfig-node-{node}"), "Kubernetes.NodeName": node, "Metadata.Source": "ec2", "Metadata.Endpoint": endpoint,
            "Metadata.PollSec": "1s", "Agent.RuntimeDirectory": state, "Log.Target": "json", **settings
        }, {})

    def _daemon(self, name, binary, values, environment):
        arguments = [a for key, value in values.items() for a in ("--set", f"{key}={value}")]
        return Daemon(name, binary, arguments, self.directory, environment)


def wait(what, condition, timeout, interval=0.02):
    """The first true answer; a TimeoutError that says what did not come."""
    deadline = time.monotonic() + timeout
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout} s")
        time.sleep(interval)


@contextlib.contextmanager
def leading(fake, count=1, **settings):
    """So many coordinators, synced; the first leads before the others are started."""
    with contextlib.ExitStack() as stack:
        daemons = []
        for i in range(count):
            d = stack.enter_context(fake.coordinator(f"c{i}", **settings))
            d.wait_line("READY", 120)
            if i == 0:
                d.wait_line("LEASE_ACQUIRED", 60)
            daemons.append(d)
        yield daemons
