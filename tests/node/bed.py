# SPDX-License-Identifier: Apache-2.0
"""What every case stands on: a control plane and a bridge in this process's own namespaces, and nodes that can be made there.

run.py has put this process into namespaces of its own for network, mounts and processes: what is made here ends with it, in
whatever way it ends. Only empty cgroups and a temporary folder outlive it; who started it removes those."""

import contextlib
import os
import subprocess
import threading

import system
from audit import AuditLog
from node import Node, is_ready, pod_spec, wait_for

from apiclient import Client
from cluster import Cluster

ADDRESS = "10.250.0.1"
SERVICE_ADDRESS = "10.96.0.1"  # of Service "kubernetes", which every pod is told
CGROUPS = "/sys/fs/cgroup"
HARBOR = 100  # the number of the node to which evicted pods go


def ip(*arguments):
    system.run("ip", *arguments)


class Network:
    """A bridge with this process's address, and a namespace per node."""
    def __init__(self):
        os.makedirs("/run/netns", exist_ok=True)
        system.run("mount", "-t", "tmpfs", "tmpfs", "/run/netns")
        ip("link", "set", "lo", "up")
        # Of its own: else it has its lowest port's, and with that machine goes the address by which the others know it.
        ip("link", "add", "bed0", "address", "02:76:65:73:70:01", "type", "bridge")
        ip("addr", "add", ADDRESS + "/16", "dev", "bed0")
        ip("link", "set", "bed0", "up")
        # No kube-proxy runs here. Of the network of Services two ways are wanted: from pods to the API server, which has the address
        # and port of its Service itself, and from the API server to a webhook's Service, where it looks up the pods behind it.
        ip("addr", "add", SERVICE_ADDRESS + "/32", "dev", "lo")
        with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="ascii") as f:
            f.write("1")  # of this namespace: pods reach those of other nodes

    def attach(self, name, address, pods):
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "addr", "add", "169.254.169.254/32", "dev", "lo")
        ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", "v" + name, "netns", str(os.getpid()))
        ip("link", "set", "v" + name, "master", "bed0", "up")
        ip("-n", name, "addr", "add", address + "/16", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        ip("-n", name, "route", "add", "default", "via", ADDRESS)
        ip("route", "replace", pods, "via", address)

    def detach(self, name):
        with contextlib.suppress(RuntimeError):
            ip("link", "del", "v" + name)
            ip("netns", "del", name)

    def cut(self, name, away=True):
        """The cable of that node."""
        ip("link", "set", "v" + name, "down" if away else "up")


class Cgroups:
    """A cgroup of its own for each node in every hierarchy: the root of the node's cgroup namespace."""
    def __init__(self, name):
        self.name = name
        self.hierarchies = hierarchies()

    def make(self, node):
        """A node that is started over the empty groups of its last boot has a kubelet that looks for containers there for 20
        seconds: so they are removed first."""
        self.remove(node)
        made = []
        for top in self.hierarchies:
            path = os.path.join(top, self.name, node)
            os.makedirs(path, exist_ok=True)
            if os.path.exists(os.path.join(path, "cpuset.cpus")):
                for f in ("cpuset.cpus", "cpuset.mems"):
                    with open(os.path.join(top, f), encoding="ascii") as source:
                        value = source.read()
                    for folder in (os.path.dirname(path), path):
                        with open(os.path.join(folder, f), "w", encoding="ascii") as target:
                            target.write(value)
                with open(os.path.join(path, "cgroup.clone_children"), "w", encoding="ascii") as target:
                    target.write("1")
            made.append(path)
        return made

    def remove(self, node=""):
        for top in self.hierarchies:
            remove_cgroup(os.path.join(top, self.name, node).rstrip("/"))


def hierarchies():
    return [p for p in (os.path.join(CGROUPS, n) for n in sorted(os.listdir(CGROUPS)))
            if os.path.exists(os.path.join(p, "cgroup.procs")) and not os.path.islink(p)]


def remove_cgroup(path):
    """It and what is below; whatever is busy stays."""
    for folder, _, _ in os.walk(path, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


class Bed:
    """folder: a place for all of it; name: of its cgroups."""
    def __init__(self, folder, name):
        self.folder = folder
        self.cgroups = Cgroups(name)
        self.network = self.layers = self.cluster = self.audit = None
        self.nodes = {}  # number -> Node that cases share
        self.machines = {}  # name -> Node, every machine of this bed
        self.logs = {}  # name: path, of coordinators that run beside the machines
        self._lock = threading.Lock()
        self._local = threading.local()
        self._harbor_lock = threading.Lock()

    def __enter__(self):
        self.network = Network()
        self.audit = AuditLog(self.folder)
        self.cluster = Cluster(address=ADDRESS, apiserver_port=443,
                               apiserver_args=[*self.audit.arguments(), "--enable-aggregator-routing=true"],
                               controllers_args=["--node-monitor-grace-period=40s"])
        self.layers = system.Layers(self.folder)
        self.cluster.__enter__()
        return self

    def __exit__(self, *_):
        for node in self.nodes.values():
            node.cut_power()
        self.cluster.stop()

    @property
    def admin(self):
        """A client of this thread's own: one that several use closes connections that are another's."""
        if not hasattr(self._local, "admin"):
            self._local.admin = Client(self.cluster.ports["apiserver"], self.cluster.ca, self.cluster.certificate("admin"))
        return self._local.admin

    def node(self, number, layers="vesper", fresh=False):
        """That node, on and Ready. It is made anew if it is to be fresh, if a case has changed it, or for other layers."""
        with self._lock:
            node, lower = self.nodes.get(number), getattr(self.layers, layers)
            if node is not None and (fresh or node.changed or node.lower is not lower):
                node.destroy()
                node = None
            if node is None:
                node = self.nodes[number] = Node(self, number, lower)
        if not node.is_on():
            node.changed = True  # if power_on() fails, the next case gets a new machine
            node.power_on()
            node.changed = False
        return node

    def harbor(self):
        """The node without our package where evicted pods go."""
        with self._harbor_lock:
            return self.node(HARBOR, layers="bed")

    def discard(self, node):
        node.destroy()
        self.nodes.pop(node.number, None)

    def kubectl(self, *arguments):
        return self.cluster.kubectl(*arguments)

    def replicas(self, name, count, node, available=None, **pod):
        """A ReplicaSet whose pods run on that node, and else in the harbor; with available, a budget. Waits until they are
        Ready, all on the node."""
        nodes = [{"weight": 100, "preference": {"matchExpressions": [{"key": "bed", "operator": "In", "values": [node.name]}]}}]
        places = [{"matchExpressions": [{"key": "bed", "operator": "In", "values": [node.name, self.harbor().name]}]}]
        spec = pod_spec(**pod)
        spec["affinity"] = {"nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": nodes,
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": places}}}
        if available is not None:
            self.admin.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
                "spec": {"minAvailable": available, "selector": {"matchLabels": {"app": name}}}})
        self.admin.create("/apis/apps/v1/namespaces/default/replicasets", {
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": {
                "replicas": count, "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": spec}}})

        def there():
            pods = self.pods_of(name)
            assert all(p["spec"].get("nodeName") in (None, node.name) for p in pods), f"pods of {name} were scheduled elsewhere"
            return sum(map(is_ready, pods)) == count

        wait_for(there, f"{count} pods of {name} are Ready on {node.name}", 0.05)
        if available is not None:
            path = f"/apis/policy/v1/namespaces/default/poddisruptionbudgets/{name}"
            wait_for(lambda: self.admin.get(path).get("status", {}).get("currentHealthy") == count, f"the budget {name} "
                     f"counts {count} healthy pods")
        return [p["metadata"]["name"] for p in self.pods_of(name)]

    def pods_of(self, app):
        return self.admin.get(f"/api/v1/namespaces/default/pods?labelSelector=app%3D{app}")["items"]

    def calls(self, node, mark):
        """Returns the calls that vesper-agent made with this node's credential since the mark."""
        return [c for c in self.calls_of(f"system:node:{node.name}", mark)
                if c.event.get("userAgent", "").startswith("vesper-agent")]

    def calls_of(self, user, mark):
        return self.audit.calls(self.cluster, self.admin, mark, user)

    def remove_workloads(self, prefix):
        """Objects of a case: all whose names begin so."""
        admin = self.admin
        for path in ("/apis/apps/v1/namespaces/default/replicasets", "/apis/apps/v1/namespaces/default/daemonsets",
                     "/apis/policy/v1/namespaces/default/poddisruptionbudgets", "/api/v1/namespaces/default/pods"):
            for item in admin.get(path)["items"]:
                if item["metadata"]["name"].startswith(prefix):
                    admin.request("DELETE", f"{path}/{item['metadata']['name']}",
                                  {"gracePeriodSeconds": 0} if path.endswith("/pods") else None)


def namespaces_work():
    """None, or why this machine cannot make them."""
    done = subprocess.run(["unshare", "-n", "-m", "-p", "-f", "--mount-proc", "sh", "-c",
                           "ip link add bed0 type bridge && mount -t tmpfs tmpfs /run"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return None if done.returncode == 0 else done.stdout.strip() or f"unshare: status {done.returncode}"
