#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The test cluster tested: what the suites rely on. python3 tests/cluster/test_cluster.py [-v]"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import procs  # noqa: E402
from cluster import ApiError, Cluster, StartError  # noqa: E402

_SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cluster.py")


def running(pid):
    """Whether that process does anything still; a zombie that nobody has reaped does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_until(condition, timeout=20):
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


class WholeCluster(unittest.TestCase):
    """Control plane, kwok and moto, shared by the tests: each uses nodes and pods of its own."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(kwok=True, moto=True, audit=True))
        cls.admin = cls.cluster.client()
        print(f"control plane, kwok and moto up after {cls.cluster.seconds['start']:.1f} s", file=sys.stderr)

    def node(self, name, **arguments):
        return self.cluster.create_nodes(1, prefix=name, **arguments)[0]

    def pod(self, name):
        return self.admin.find(f"/api/v1/namespaces/default/pods/{name}")

    def delete(self, pod, grace=None):
        """Returns the seconds until it was gone."""
        begin = time.monotonic()
        self.admin.delete(f"/api/v1/namespaces/default/pods/{pod}",
                          None if grace is None else {"gracePeriodSeconds": grace})
        self.cluster.wait_for(lambda: self.pod(pod) is None, what=f"the end of {pod}")
        return time.monotonic() - begin

    def test_three_nodes_run_thirty_pods(self):
        begin = time.monotonic()
        nodes = self.cluster.create_nodes(3, prefix="three")
        for name in nodes:
            self.cluster.create_pods(name, 10, prefix=f"on-{name}")
        for name in nodes:
            pods = self.cluster.wait_running(10, node=name, timeout=10)
            self.assertEqual(len(pods), 10)
            self.assertTrue(all(p["status"]["podIP"] for p in pods))
        print(f"3 nodes and 30 pods Running after {time.monotonic() - begin:.2f} s", file=sys.stderr)
        self.assertIn("three-0   Ready", self.cluster.kubectl("get", "nodes", "three-0"))

    def test_scheduler_binds_a_pod(self):
        self.node("free", labels={"pool": "free"})
        self.cluster.create_pods(None, 1, prefix="unbound", change=lambda p: p["spec"].update(
            nodeSelector={"pool": "free"}))
        self.cluster.wait_for(lambda: self.pod("unbound-0000")["status"]["phase"] == "Running",
                              what="the pod runs")
        self.assertEqual(self.pod("unbound-0000")["spec"]["nodeName"], "free-0")

    def test_node_credential_evicts_own_pods_only(self):
        own, other = self.node("own"), self.node("other")
        self.cluster.create_pods(own, 2, prefix="mine")
        self.cluster.create_pods(other, 1, prefix="theirs")
        self.cluster.wait_running(2, node=own)
        node = self.cluster.client(f"system:node:{own}")
        self.assertEqual(node.evict("default", "mine-0000", grace=5)[0], 201)
        self.cluster.wait_pods(lambda pods: len(pods) == 1, node=own, timeout=10)
        self.assertEqual(node.evict("default", "theirs-0000")[0], 403)
        self.assertEqual(node.request("GET", f"/api/v1/nodes/{other}")[0], 403)
        users = {e["verb"] for e in self.cluster.audit_events(f"system:node:{own}")}
        self.assertIn("create", users)

    def test_pod_without_annotation_is_gone_at_once(self):
        self.cluster.create_pods(self.node("quick"), 1, prefix="quick", grace=30)
        self.cluster.wait_running(1, node="quick-0")
        self.assertLess(self.delete("quick-0000"), 2)

    def test_pod_stops_slowly_but_within_its_grace(self):
        node = self.node("slow")
        self.cluster.create_pods(node, 1, prefix="slow", grace=30, stop=1.5)
        self.cluster.create_pods(node, 1, prefix="late", grace=1, stop=20)
        self.cluster.create_pods(node, 1, prefix="cut", grace=30, stop=20)
        self.cluster.wait_running(3, node=node)
        self.assertTrue(1.4 < self.delete("slow-0000") < 4)
        self.assertTrue(0.9 < self.delete("late-0000") < 4)
        # Deleted again with less, as at a deadline: what is left counts.
        self.admin.delete("/api/v1/namespaces/default/pods/cut-0000")
        self.assertTrue(0.9 < self.delete("cut-0000", grace=1) < 4)

    def test_stuck_pod_goes_only_by_force(self):
        self.cluster.create_pods(self.node("stuck"), 1, prefix="stuck", grace=1, stop="never")
        self.cluster.wait_running(1, node="stuck-0")
        self.admin.delete("/api/v1/namespaces/default/pods/stuck-0000")
        time.sleep(2.5)
        self.assertIn("deletionTimestamp", self.pod("stuck-0000")["metadata"])
        self.assertLess(self.delete("stuck-0000", grace=0), 2)

    def test_pod_starts_late(self):
        self.cluster.create_pods(self.node("starting"), 1, prefix="starting", start=1)
        time.sleep(0.4)
        self.assertEqual(self.pod("starting-0000")["status"]["phase"], "Pending")
        self.cluster.wait_running(1, node="starting-0", timeout=10)

    def test_node_becomes_not_ready_and_ready_again(self):
        name = self.node("sick")
        other = {"type": "vesper.sh/Test", "status": "True", "reason": "Test", "message": "stays"}
        self.admin.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [other]}},
                         "application/strategic-merge-patch+json")

        def conditions():
            found = self.admin.get(f"/api/v1/nodes/{name}")["status"]["conditions"]
            return {c["type"]: c["status"] for c in found}

        for value, ready in (("not-ready", "False"), (None, "True")):
            self.admin.patch(f"/api/v1/nodes/{name}", {"metadata": {"annotations": {
                "test.vesper.sh/kubelet": value}}})
            self.cluster.wait_for(lambda: conditions()["Ready"] == ready, 10, f"Ready={ready}")
        self.assertEqual(conditions()["vesper.sh/Test"], "True")

    def test_instance_is_protected_then_terminated(self):
        ec2 = self.cluster.ec2
        instance = ec2.create_instance()
        name = self.node("cloud", instances=[instance])
        self.assertEqual(self.admin.get(f"/api/v1/nodes/{name}")["spec"]["providerID"],
                         f"aws:///us-east-1a/{instance}")
        self.assertEqual(ec2.state(instance), "running")
        ec2.set_termination_protection(instance)
        with self.assertRaisesRegex(RuntimeError, "OperationNotPermitted"):
            ec2.terminate(instance)
        ec2.set_termination_protection(instance, False)
        ec2.terminate(instance)
        self.assertIn(ec2.state(instance), ("shutting-down", "terminated"))

    def test_service_account_may_what_its_rules_say(self):
        path = self.cluster.service_account("reader", "elsewhere", rules=[
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}])

        def kubectl(*arguments):
            return subprocess.run([os.path.join(self.cluster.binaries, "kubectl"), f"--kubeconfig={path}",
                                   *arguments], capture_output=True, text=True, check=False,
                                  env={"HOME": self.cluster.directory})

        who = json.loads(kubectl("auth", "whoami", "-o", "json").stdout)
        self.assertEqual(who["status"]["userInfo"]["username"], "system:serviceaccount:elsewhere:reader")
        self.assertEqual(kubectl("get", "nodes").returncode, 0)
        self.assertIn("forbidden", kubectl("get", "pods").stderr)

    def test_plain_user_and_certificate_files(self):
        path = self.cluster.kubeconfig("jane", ["devs", "a/b"], embed=False)
        with open(path, encoding="utf-8") as f:
            self.assertIn("client-certificate: /", f.read())
        done = self.cluster.client("jane", ["devs", "a/b"]).create(
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
        self.assertEqual(done["status"]["userInfo"]["username"], "jane")
        self.assertLessEqual({"devs", "a/b"}, set(done["status"]["userInfo"]["groups"]))

    def test_budget_refuses(self):
        self.cluster.apply([{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                             "metadata": {"name": "none", "namespace": "default"},
                             "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "held"}}}}])
        self.cluster.create_pods(self.node("held"), 1, prefix="held")
        self.cluster.wait_running(1, node="held-0")
        status, answer = self.admin.evict("default", "held-0000")
        self.assertEqual(status, 429)
        self.assertEqual(answer["details"]["causes"][0]["reason"], "DisruptionBudget")

    def test_thousand_pods_in_bulk(self):
        begin = time.monotonic()
        names = self.cluster.create_pods(self.node("bulk"), 1000, prefix="bulk")
        created = time.monotonic() - begin
        self.cluster.wait_running(1000, node="bulk-0")
        print(f"1,000 pods created in {created:.1f} s, Running after {time.monotonic() - begin:.1f} s",
              file=sys.stderr)
        self.admin.bulk([("DELETE", f"/api/v1/namespaces/default/pods/{n}") for n in names])
        self.cluster.wait_no_pods("bulk-0")


class Life(unittest.TestCase):
    """Starting, stopping and dying."""

    def test_nothing_is_left_after_a_normal_end(self):
        with Cluster(kwok=True) as cluster:
            directory = cluster.directory
            pids = [p.pid for p in cluster.processes.values()]
            self.assertEqual(len(pids), 5)
            self.assertTrue(all(map(running, pids)))
        self.assertFalse(any(map(running, pids)))
        self.assertFalse(os.path.exists(directory))

    def test_contract_cluster_has_no_controllers_but_takes_pods(self):
        with Cluster(controllers=False, scheduler=False) as cluster:
            self.assertEqual(set(cluster.processes), {"etcd", "kube-apiserver"})
            node = cluster.create_nodes(1, kwok=False)[0]
            cluster.create_pods(node, 1)
            self.assertEqual(len(cluster.pods(node)), 1)

    def test_two_at_once(self):
        with Cluster(controllers=False, scheduler=False) as one, \
                Cluster(controllers=False, scheduler=False) as two:
            one.create_nodes(1, prefix="only-here")
            self.assertEqual(two.client().get("/api/v1/nodes")["items"], [])

    def test_apiserver_goes_and_comes_back(self):
        with Cluster(controllers=False, scheduler=False) as cluster:
            cluster.create_nodes(1)
            cluster.stop_process("kube-apiserver")
            with self.assertRaises(OSError):
                cluster.client().request("GET", "/api/v1/nodes")
            cluster.start_process("kube-apiserver")
            self.assertEqual(len(cluster.client().get("/api/v1/nodes")["items"]), 1)

    def test_compacted_past_is_gone(self):
        with Cluster(controllers=False, scheduler=False) as cluster:
            admin = cluster.client()
            cluster.create_nodes(3, kwok=False)
            page = admin.get("/api/v1/nodes?limit=1")["metadata"]
            admin.patch("/api/v1/nodes/node-0", {"metadata": {"labels": {"changed": "yes"}}})
            cluster.compact()
            next_page = f"/api/v1/nodes?limit=1&continue={page['continue']}"
            self.assertEqual(admin.request("GET", next_page)[0], 410)
            event = next(admin.watch("/api/v1/nodes", page["resourceVersion"], 10))
            self.assertEqual((event["type"], event["object"]["code"]), ("ERROR", 410))

    def test_failed_start_shows_the_log_and_leaves_nothing(self):
        cluster = Cluster(apiserver_args=["--no-such-flag"])
        with self.assertRaisesRegex(StartError, "(?s)kube-apiserver: ended with status.*no-such-flag"):
            with cluster:
                self.fail("it started")
        self.assertEqual(cluster.processes, {})
        self.assertFalse(os.path.exists(cluster.directory))

    def test_run_gives_the_commands_status_and_variables(self):
        done = subprocess.run(
            [sys.executable, _SCRIPT, "run", "--no-controllers", "--no-scheduler", "--", "sh", "-c",
             'kubectl create ns seen >&2; test -f "$KUBECONFIG" && echo "$VESPER_CLUSTER_DIR"; exit 7'],
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("namespace/seen created", done.stderr)
        self.assertFalse(os.path.exists(done.stdout.strip()))

    def _up(self, directory):
        up = procs.spawn([sys.executable, _SCRIPT, "up", "--dir", directory, "--no-controllers",
                          "--no-scheduler"], stdout=subprocess.DEVNULL)
        self.addCleanup(lambda: (up.kill(), up.wait()))
        self.assertTrue(wait_until(lambda: os.path.exists(os.path.join(directory, "env"))), "it came up")
        with open(os.path.join(directory, "cluster.json"), encoding="utf-8") as f:
            pids = list(json.load(f)["pids"].values())
        self.assertTrue(pids and all(map(running, pids)))
        return up, pids

    def test_ends_and_kills_leave_no_process(self):
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129),
                               (signal.SIGKILL, -9)):
            with self.subTest(number), tempfile.TemporaryDirectory() as directory:
                up, pids = self._up(directory)
                up.send_signal(number)
                self.assertEqual(up.wait(20), status)
                self.assertTrue(wait_until(lambda: not any(map(running, pids))), "all processes ended")
                if number != signal.SIGKILL:
                    self.assertEqual(os.listdir(directory), ["logs"])

    def test_attached_makes_credentials(self):
        with tempfile.TemporaryDirectory() as directory:
            self._up(directory)
            attached = Cluster.attach(directory)
            attached.create_nodes(1, prefix="seen", kwok=False)
            node = attached.client("system:node:seen-0")
            self.assertEqual(node.get("/api/v1/nodes/seen-0")["metadata"]["name"], "seen-0")
            attached.stop()
            self.assertEqual(node.request("GET", "/readyz")[0], 200, "it is not the one who ends it")
            node.close()

    def test_directory_of_a_killed_owner_is_removed_by_the_next(self):
        script = ("import sys, time; sys.path.insert(0, sys.argv[1]); from cluster import Cluster\n"
                  "with Cluster(controllers=False, scheduler=False) as c: print(c.directory, flush=True); "
                  "time.sleep(600)")
        owner = procs.spawn([sys.executable, "-c", script, os.path.dirname(_SCRIPT)],
                            stdout=subprocess.PIPE, text=True)
        with owner.stdout:
            left = owner.stdout.readline().strip()
        self.assertTrue(os.path.isdir(left))
        owner.kill()
        owner.wait()
        self.assertTrue(os.path.isdir(left))
        with Cluster(controllers=False, scheduler=False):
            self.assertFalse(os.path.exists(left))


if __name__ == "__main__":
    unittest.main()
