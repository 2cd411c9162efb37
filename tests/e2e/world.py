# SPDX-License-Identifier: Apache-2.0
"""What every case stands on: one real control plane with kwok and moto, vesper's manifests applied, and
the means to run agents and coordinators in it and to see what they did."""

import contextlib
import itertools
import os
import stat
import subprocess
import threading
import time

from audit import AuditLog
from daemons import LIMIT, TOP, Daemon, program, seconds
from ec2log import Ec2Log
from metadata import Metadata

from apiclient import STRATEGIC_PATCH  # in tests/cluster, whose path daemons.py has set
from cluster import Cluster

POOLS = "/apis/vesper.sh/v1alpha1/nodepools"
CLAIMS = "/apis/vesper.sh/v1alpha1/nodeclaims"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/vesper-system/leases/vesper-coordinator"
BUDGETS = "/apis/vesper.sh/v1alpha1/nodedisruptionbudgets"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MUTATING_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
PDBS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
COORDINATOR = "system:serviceaccount:vesper-system:vesper-coordinator"
FINALIZER = "vesper.sh/termination"
AWS_KEYS = {
    "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_EC2_METADATA_DISABLED": "true"
}

# Answers at once; what it ended stays ended.
_EXEC_PROVIDER = """#!/bin/sh
# Test provider: a machine is there until it was ended.
dir=${0%/*}
read -r request
[ "$1" != list ] || { echo '{"error":{"code":"unsupported"}}'; exit; }
id=$(printf %s "$request" | sed 's/.*"providerID" *: *"\\([^"]*\\)".*/\\1/' | tr -c 'A-Za-z0-9.-' _)
echo "$1 $id" >>"$dir/calls"
[ "$1" != terminate ] || : >"$dir/ended-$id"
if [ -e "$dir/ended-$id" ]; then echo '{"state":"gone"}'; else echo '{"state":"present"}'; fi
"""


class Figures:
    """Measurements of one case, shown below its result."""
    def __init__(self):
        self.shown = []

    def add(self, text):
        self.shown.append(text)

    def at_most(self, what, value, limit, unit):
        """Shows the value, and fails when it is above the limit. The limit must not depend on the speed of the machine."""
        self.add(f"{what}: {value:g} {unit}, at most {limit:g} {unit}")
        assert value <= limit, f"{what}: {value:g} {unit} is above {limit:g} {unit}"


class World:
    def __init__(self, directory, moto=True):
        self.world = self  # runner.py reads bed.world
        self.directory = directory
        self.audit = AuditLog(directory)
        self.cluster = Cluster(kwok=True, moto=moto, apiserver_args=self.audit.arguments())
        self.ec2log = None
        self.daemons = []
        self._serial = itertools.count(1)  # cases ask for names in several threads
        self._account = None

    def __enter__(self):
        self.cluster.__enter__()
        try:
            if self.cluster.ec2:
                self.ec2log = Ec2Log(self.cluster.ec2.port)
            self._install()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.ec2log:
            self.ec2log.close()
        self.cluster.stop()

    def _install(self):
        # Not the Deployment: coordinators run here as processes.
        for what in ("crds", os.path.join("coordinator", "rbac.yaml")):
            self.cluster.apply(os.path.join(TOP, "packaging", "manifests", what))
        self.cluster.wait_for(
            lambda: all(self.admin.request("GET", path)[0] == 200 for path in (POOLS, CLAIMS)),
            what="the CRDs are served")
        self._account = self.cluster.service_account("vesper-coordinator", "vesper-system")
        provider = self.path("exec-provider")
        with open(provider, "w", encoding="utf-8") as f:
            f.write(_EXEC_PROVIDER)
        os.chmod(provider, stat.S_IRWXU)

    @property
    def admin(self):
        return self.cluster.client()

    @property
    def ec2(self):
        return self.cluster.ec2

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def unique(self, prefix):
        return f"{prefix}-{next(self._serial)}"

    # -- objects

    def pool(self, name, grace=None, **spec):
        """A NodePool of the nodes labelled e2e=NAME. spec: more fields of its spec."""
        spec = {"selector": {"matchLabels": {"e2e": name}}, **spec}
        if grace:
            spec["template"] = {"terminationGracePeriod": grace}
        self.admin.create(POOLS, {
            "apiVersion": "vesper.sh/v1alpha1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec
        })
        return name

    def node(self, pool, provider_id=None):
        """One Ready node with an instance at moto, unless a providerID is given. Name and instance."""
        instance = self.ec2.create_instance() if provider_id is None else None

        def change(node):
            if provider_id is not None:
                node["spec"]["providerID"] = provider_id

        names = self.cluster.create_nodes(1,
                                          self.unique(pool), [instance] if instance else None, {"e2e": pool},
                                          change=change)
        return names[0], instance

    def nodes(self, pool, count):
        """Names of that many Ready nodes with an instance each."""
        return self.cluster.create_nodes(count, self.unique(pool), self.ec2.create_instances(count), {"e2e": pool})

    def get_node(self, name):
        return self.admin.find(f"/api/v1/nodes/{name}")

    def set_boot(self, node, boot_id):
        """What its kubelet reports after a boot."""
        self.admin.patch(f"/api/v1/nodes/{node}/status", {"status": {"nodeInfo": {"bootID": boot_id}}}, STRATEGIC_PATCH)

    def claims(self, node=None):
        items = self.admin.get(CLAIMS)["items"]
        return [c for c in items if node is None or c.get("status", {}).get("nodeName") == node]

    def wait_adopted(self, *names, timeout=LIMIT):
        def adopted():
            claims = {c.get("status", {}).get("nodeName") for c in self.admin.get(CLAIMS)["items"]}
            return all(FINALIZER in self.get_node(n)["metadata"].get("finalizers", []) for n in names) and \
                claims >= set(names)

        self.cluster.wait_for(adopted, timeout, f"{', '.join(names)} are adopted")

    def condition(self, node, kind):
        """That condition of the node, or None."""
        found = self.get_node(node)
        if found is None:
            return None
        return next((c for c in found["status"].get("conditions", []) if c["type"] == kind), None)

    def wait_condition(self, node, kind, status="True", timeout=LIMIT):
        def is_so():
            found = self.condition(node, kind)
            return found if found and found["status"] == status else None

        return self.cluster.wait_for(is_so, timeout, f"condition {kind}={status} of {node}")

    def wait_gone(self, node, timeout=LIMIT):
        self.cluster.wait_for(lambda: self.get_node(node) is None, timeout, f"the end of {node}")

    def delete_node(self, name):
        """As `kubectl delete node` does, without its waiting. When the answer came, seconds since 1970."""
        self.admin.delete(f"/api/v1/nodes/{name}")
        return time.time()

    def wait_event(self, name, reason, *texts):
        """Waits for an Event of this reason about the object, whose message has all of these texts. Returns it."""
        def found():
            items = self.admin.get(f"/api/v1/events?fieldSelector=involvedObject.name%3D{name}")["items"]
            return next((e for e in items if e["reason"] == reason and all(t in e["message"] for t in texts)), None)

        return self.cluster.wait_for(found, LIMIT, f"Event {reason} of {name} with {texts}")

    def replicas(self, name, count, pool, grace=30):
        """A ReplicaSet whose pods go to nodes of that pool; waits until all are Ready."""
        template = {
            "metadata": {"labels": {"app": name}}, "spec": {
                "containers": [{"name": "main", "image": "test"}], "nodeSelector": {"e2e": pool},
                "terminationGracePeriodSeconds": grace, "enableServiceLinks": False,
                "automountServiceAccountToken": False
            }
        }
        self.admin.create(
            "/apis/apps/v1/namespaces/default/replicasets", {
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": {
                    "replicas": count, "selector": {"matchLabels": {"app": name}}, "template": template
                }
            })
        self.cluster.wait_for(lambda: len(self.ready(name)) == count, LIMIT, f"{count} pods of {name} Ready")

    def daemon_set(self, name, pool):
        self.admin.create(
            "/apis/apps/v1/namespaces/default/daemonsets", {
                "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name}, "spec": {
                    "selector": {"matchLabels": {"app": name}}, "template": {
                        "metadata": {"labels": {"app": name}}, "spec": {
                            "containers": [{"name": "main", "image": "test"}], "nodeSelector": {"e2e": pool},
                            "automountServiceAccountToken": False
                        }
                    }
                }
            })

    def pods_of(self, app):
        return self.admin.get(f"/api/v1/namespaces/default/pods?labelSelector=app%3D{app}")["items"]

    def ready(self, app):
        return [p for p in self.pods_of(app) if is_ready(p)]

    def budget(self, name, app, available, timeout=LIMIT):
        """A PodDisruptionBudget; waits until its controller has counted."""
        self.admin.create(
            PDBS, {
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
                "spec": {"minAvailable": available, "selector": {"matchLabels": {"app": app}}}
            })
        self.cluster.wait_for(lambda: "currentHealthy" in self.admin.get(f"{PDBS}/{name}").get("status", {}),
                              timeout, f"the status of PDB {name}")

    def calls(self, mark, user=None):
        return self.audit.calls(self.cluster, self.admin, mark, user)

    # -- processes

    def agent(self, node, metadata, environment=None, **settings):
        """The agent of that node, with the credential of its kubelet; started by `with` or start()."""
        values = {
            "Kubernetes.Kubeconfig": self.cluster.kubeconfig(f"system:node:{node}", embed=False),
            "Metadata.Source": "ec2", "Metadata.Endpoint": metadata.endpoint, "Metadata.PollSec": "1s",
            "Agent.RuntimeDirectory": self.path(f"state-{node}"), "Log.Target": "json", **settings
        }
        os.makedirs(values["Agent.RuntimeDirectory"], exist_ok=True)
        return self._daemon(f"agent-{node}", "vesper-agent", values, environment or {})

    def coordinator(self, name, provider="ec2", region=None, command=None, **settings):
        values = {
            "Kubernetes.Kubeconfig": self._account, "Lease.Identity": self.unique(name),
            "Provider.Name": provider, "Log.Target": "json", **settings
        }
        if provider == "ec2":
            values["Provider.Endpoint"] = self.ec2log.endpoint
            values["Provider.Region"] = region or self.ec2.region
        else:
            values["Provider.Command"] = command or self.path("exec-provider")
        daemon = self._daemon(f"coordinator-{values['Lease.Identity']}", "vesper-coordinator", values,
                              AWS_KEYS)
        daemon.identity = values["Lease.Identity"] + "_"  # and what each process draws for itself
        return daemon

    def _daemon(self, name, binary, values, environment):
        arguments = [a for key, value in values.items() for a in ("--set", f"{key}={value}")]
        daemon = Daemon(name, binary, arguments, self.directory, environment)
        self.daemons.append(daemon)
        return daemon

    @contextlib.contextmanager
    def coordinators(self, count=2, **settings):
        """So many, one of which leads, and which is returned first."""
        with contextlib.ExitStack() as stack:
            all_of_them = [
                stack.enter_context(self.coordinator(chr(ord("a") + i), **settings)) for i in range(count)
            ]
            leader = self.cluster.wait_for(
                lambda: next((d for d in all_of_them if d.named("LEASE_ACQUIRED")), None), LIMIT, "one leads")
            for d in all_of_them:
                d.wait_line("READY")
            yield [leader] + [d for d in all_of_them if d is not leader]

    @contextlib.contextmanager
    def metadata(self, instance=None):
        with Metadata(instance or "i-0123456789abcdef0") as m:
            yield m

    def ctl(self, *arguments):
        """What vesperctl prints, with the administrator's credential."""
        return subprocess.run([program("vesperctl"), *arguments, "--kubeconfig",
                               self.cluster.kubeconfig()],
                              capture_output=True,
                              text=True,
                              check=False,
                              timeout=LIMIT)

    # -- between cases

    def stop_daemons(self):
        for daemon in self.daemons:
            daemon.stop()
        self.daemons.clear()

    def clean(self):
        """Stops what a case left running, and removes its objects past all finalizers."""
        self.stop_daemons()
        admin = self.admin
        # Who refuses deletions, or makes others, goes before them: a case that failed left it all.
        for path in (WEBHOOKS, MUTATING_WEBHOOKS, BUDGETS, "/apis/batch/v1/namespaces/default/jobs?propagationPolicy=Background",
                     "/apis/batch/v1/namespaces/default/cronjobs",
                     "/apis/apps/v1/namespaces/default/deployments", "/apis/apps/v1/namespaces/default/statefulsets",
                     "/apis/apps/v1/namespaces/default/replicasets",
                     "/apis/apps/v1/namespaces/default/daemonsets", PDBS):
            admin.delete(path)
        for path in (POOLS, CLAIMS, "/api/v1/nodes"):
            for item in admin.get(path)["items"]:
                _remove(admin, path, item)
        for pod in self.cluster.pods():
            admin.request("DELETE", f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}",
                          {"gracePeriodSeconds": 0})
        for instance in self.running_instances():
            with contextlib.suppress(RuntimeError):
                self.ec2.set_termination_protection(instance, False)
                self.ec2.terminate(instance)
        self.cluster.wait_for(lambda: not self.cluster.pods(), LIMIT, "no pod is left")

    def running_instances(self):
        found = []
        if not self.ec2:
            return found
        for item in self.ec2.instances():
            if item.findtext("instanceId") and item.findtext("instanceState/name") in ("pending", "running"):
                found.append(item.findtext("instanceId"))
        return found


def _remove(admin, path, item):
    name = item["metadata"]["name"]
    if item["metadata"].get("finalizers"):
        admin.request("PATCH", f"{path}/{name}", {"metadata": {"finalizers": None}})
    admin.request("DELETE", f"{path}/{name}")


def is_ready(pod):
    return "deletionTimestamp" not in pod["metadata"] and any(c["type"] == "Ready" and c["status"] == "True"
                                                              for c in pod["status"].get("conditions", []))


class Background(threading.Thread):
    """A thread that runs within a with statement; run() returns soon after `_end` is set."""
    def __init__(self):
        super().__init__(daemon=True)
        self._end = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self.join(LIMIT)


class FewestReady(Background):
    """Watches the pods of an app; `fewest` is the smallest number that was Ready at once."""
    def __init__(self, client, app):
        super().__init__()
        self._client = client
        self._path = f"/api/v1/namespaces/default/pods?labelSelector=app%3D{app}"
        self._list()
        self.fewest = sum(self._pods.values())

    def _list(self):
        listed = self._client.get(self._path)
        self._pods = {p["metadata"]["name"]: is_ready(p) for p in listed["items"]}
        self._version = listed["metadata"]["resourceVersion"]

    def run(self):
        while not self._end.is_set():
            with contextlib.suppress(OSError):  # the next watch goes on from the same version
                self._follow()

    def _follow(self):
        for event in self._client.watch(self._path, self._version, 1):
            if event["type"] == "ERROR":
                self._list()
                self.fewest = min(self.fewest, sum(self._pods.values()))
                return
            meta = event["object"]["metadata"]
            self._version = meta["resourceVersion"]
            if event["type"] == "BOOKMARK":
                continue
            self._pods[meta["name"]] = event["type"] != "DELETED" and is_ready(event["object"])
            self.fewest = min(self.fewest, sum(self._pods.values()))


class WhenGone(threading.Thread):
    """Watches one node; `time` is when the watch said that it is gone."""
    def __init__(self, client, name):
        super().__init__(daemon=True)
        self._client = client
        self._path = f"/api/v1/nodes?fieldSelector=metadata.name%3D{name}"
        self._version = client.get(self._path)["metadata"]["resourceVersion"]
        self.time = None
        self.start()

    def run(self):
        for event in self._client.watch(self._path, self._version, LIMIT):
            if event["type"] == "DELETED":
                self.time = time.time()
                return

    def wait(self, timeout=LIMIT):
        self.join(timeout)
        assert self.time is not None, "the node did not go"
        return self.time


def answered_at(calls):
    return max(c.answered for c in calls)


__all__ = ["World", "Figures", "FewestReady", "WhenGone", "answered_at", "is_ready", "seconds"]
