# SPDX-License-Identifier: Apache-2.0
"""`vesperctl explain NODE`: each cause made for real, seen in the API as soon as it stands there, and named first."""

import contextlib
import json
import os
import time

from cases_command import CTL, run
from daemons import LIMIT
from world import BUDGETS, CLAIMS, FINALIZER, PDBS, POOLS

NAMESPACE = "/api/v1/namespaces/vesper-system"

# Answers what stands in the file of that providerID; the machine is there where nothing does.
_COMMAND = """#!/bin/sh
read -r request
id=$(printf %s "$request" | sed 's/.*"providerID" *: *"\\([^"]*\\)".*/\\1/' | tr -c 'A-Za-z0-9.-' _)
echo "$1 $(date +%s.%N)" >>"{folder}/calls-$id"
if [ -e "{folder}/says-$id" ]; then cat "{folder}/says-$id"; else echo '{{"state":"present"}}'; fi
"""


class Scene:
    """A coordinator that leads, and nodes that a pool has adopted."""
    def __init__(self, world, figures, pool, folder):
        self.world, self.figures, self.pool, self.folder = world, figures, pool, folder

    def node(self):
        """Adopted."""
        node, _ = self.world.node(self.pool, f"metal://{self.world.unique('m')}")
        self.world.wait_adopted(node)
        return node

    def _file(self, what, node):
        name = "".join(c if c.isalnum() or c in ".-" else "_" for c in self.world.get_node(node)["spec"]["providerID"])
        return os.path.join(self.folder, f"{what}-{name}")

    def says(self, node, answer):
        """What the cloud answers about it, whatever it is asked."""
        with open(self._file("says", node), "w", encoding="utf-8") as f:
            json.dump(answer, f)

    def asked(self, node, what):
        """When it was first asked that."""
        path = self._file("calls", node)

        def times():
            with open(path, encoding="utf-8") as f:
                return [line.split()[1] for line in f if line.startswith(what)]

        return float(self.world.cluster.wait_for(lambda: os.path.exists(path) and times(), LIMIT, f"{what} of {node}")[0])

    def holds(self, node):
        """A pod that has opted out of drains: its node is removed for as long as anybody likes."""
        return self.world.cluster.create_pods(node, prefix=self.world.unique("batch"),
                                              annotations={"vesper.sh/do-not-evict": "true"})[0]

    def reasons(self, node):
        """What the API says holds it: reasons of blockers and of TerminationBlocked."""
        found = [b["reason"] for c in self.world.claims(node) for b in c["status"].get("blockers", [])]
        condition = self.world.condition(node, "vesper.sh/TerminationBlocked")
        return found + ([condition["reason"]] if condition and condition["status"] == "True" else [])

    def explain(self, node, *more):
        """Exit status, and the answer."""
        done = self.world.ctl("explain", node, "-o", "json", *more)
        assert not done.stderr, done
        return done.returncode, json.loads(done.stdout)

    def told(self, node, reason, begin):
        """Waits until the API tells the reason, and shows how long that took from begin."""
        self.world.cluster.wait_for(lambda: reason in self.reasons(node), LIMIT, f"{reason} of {node}")
        self.figures.add(f"cause -> {reason} in the API: {time.time() - begin:.2f} s")

    def is_held(self, node, reason, name, kind=None, begin=None):
        """Waits until the API tells the reason, and shows how long that took from begin. Checks that explain names it first. Returns
        the cause."""
        if begin is not None:
            self.told(node, reason, begin)
        status, answer = self.explain(node)
        first = next((c for c in answer["causes"] if c["holds"]), None)
        assert status == 3 and answer["held"] and first, (status, answer)
        assert (first["reason"], first["object"]["name"]) == (reason, name), answer
        assert kind is None or first["object"]["kind"] == kind, first
        return first


def _body(cause):
    """Of the `kubectl patch` that would free it."""
    return json.loads(cause["fix"]["command"].split(" -p '")[1].rstrip("'"))


@contextlib.contextmanager
def scene(world, figures, grace=None):
    folder = world.path(world.unique("explain"))
    os.mkdir(folder)
    command = os.path.join(folder, "command")
    with open(command, "w", encoding="utf-8") as f:
        f.write(_COMMAND.format(folder=folder))
    os.chmod(command, 0o700)
    pool = world.pool(world.unique("explain"), grace)
    with world.coordinators(count=1, provider="exec", command=command, **{"Drain.LoadBalancerWaitSec": "0"}):
        yield Scene(world, figures, pool, folder)


def explain_in_service(world, figures):
    """explain: a node that is not being removed, and who manages it; one that is not there; without rights"""
    with scene(world, figures) as s:
        node = s.node()
        begin = time.monotonic()
        status, answer = s.explain(node)
        figures.add(f"explain of a node in service: {(time.monotonic() - begin) * 1000:.0f} ms, process and all")
        assert status == 0 and not answer["held"] and answer["causes"][0]["reason"] == "InService", answer
        assert answer["causes"][0]["object"]["name"] == s.pool and not answer["unknown"], answer
        text = world.ctl("explain", node)
        assert text.returncode == 0 and f"NodePool {s.pool} manages it" in text.stdout, text
        assert world.ctl("explain", "nobody").returncode == 1
        done = run(CTL, "explain", node, "--kubeconfig", world.cluster.kubeconfig("nobody", []))
        assert done.returncode == 1 and f"you may not get Node '{node}'" in done.stderr, done


def explain_pdb_without_room(world, figures):
    """explain: a PDB that has no room now"""
    with scene(world, figures) as s:
        node = s.node()
        world.replicas(s.pool, 3, s.pool, grace=1)
        world.budget(s.pool, s.pool, 2)
        world.delete_node(node)
        # One pod may go, and its successor has no node: from then on there is no room.
        world.cluster.wait_for(lambda: world.admin.get(f"{PDBS}/{s.pool}")["status"]["currentHealthy"] == 2, LIMIT, "one pod to go")
        first = s.is_held(node, "BlockedByPDB", s.pool, "PodDisruptionBudget", time.time())
        assert first["figures"]["healthy"] == first["figures"]["needed"] == 2 and first["figures"]["expected"] == 3, first
        assert "never" not in first["message"] and s.pool in first["fix"]["command"], first


def explain_pdb_that_never_allows(world, figures):
    """explain: a PDB that can never allow one, and that nobody is told to loosen"""
    with scene(world, figures) as s:
        node = s.node()
        world.replicas(s.pool, 1, s.pool, grace=1)
        world.budget(s.pool, s.pool, 1)
        first = s.is_held(node, "PDBNeverAllows", s.pool, "PodDisruptionBudget", world.delete_node(node))
        assert "allows no eviction as it stands" in first["message"] and "its only pod" in first["message"], first
        world.admin.patch(f"{PDBS}/{s.pool}", {"spec": {"minAvailable": 0}})
        world.cluster.wait_for(lambda: "PDBNeverAllows" not in s.reasons(node), LIMIT, "its pod to go")


def explain_several_pdbs(world, figures):
    """explain: a pod that two PDBs match"""
    with scene(world, figures) as s:
        node = s.node()
        world.replicas(s.pool, 2, s.pool, grace=1)
        other = world.unique("other")
        for name in s.pool, other:
            world.budget(name, s.pool, 0)
        begin = world.delete_node(node)
        pods = {p["metadata"]["name"] for p in world.pods_of(s.pool)}
        s.told(node, "SeveralPDBs", begin)
        _, answer = s.explain(node)
        first = answer["causes"][0]
        assert first["reason"] == "SeveralPDBs" and first["object"]["name"] in pods, answer
        assert other in first["message"] and s.pool in first["message"], first


def explain_opt_out(world, figures):
    """explain: a pod that opted out; and the deadline that is far away"""
    with scene(world, figures, grace="1h") as s:
        node = s.node()
        pod = s.holds(node)
        begin = world.delete_node(node)
        first = s.is_held(node, "Protected", pod, "Pod", begin)
        assert first["fix"]["command"] == f"kubectl annotate pod {pod} -n default vesper.sh/do-not-evict-", first
        _, answer = s.explain(node)
        deadline = next(c for c in answer["causes"] if c["reason"] == "Deadline")
        assert not deadline["holds"] and 3500 < deadline["figures"]["secondsLeft"] <= 3600, deadline
        claim = world.claims(node)[0]
        assert claim["status"]["deadline"] in deadline["message"], (claim, deadline)


def explain_foreign_finalizer(world, figures):
    """explain: somebody else's finalizer, once the removal is done"""
    with scene(world, figures) as s:
        node = s.node()
        world.admin.patch(f"/api/v1/nodes/{node}", {"metadata": {"finalizers": ["test.vesper.sh/other", FINALIZER]}})
        s.says(node, {"state": "gone"})
        world.delete_node(node)
        world.cluster.wait_for(lambda: FINALIZER not in world.get_node(node)["metadata"]["finalizers"], LIMIT, "its removal")
        first = s.is_held(node, "ForeignFinalizer", node, "Node")
        assert "test.vesper.sh/other" in first["message"] and "/metadata/finalizers/0" in first["fix"]["command"], first
        world.admin.patch(f"/api/v1/nodes/{node}", _body(first), "application/json-patch+json")
        world.wait_gone(node)


def explain_cloud(world, figures):
    """explain: a cloud that denies, protects, or does not know"""
    answers = {"CloudDenied": {"state": "present", "error": {"code": "denied", "message": "no permission"}},
               "TerminationProtected": {"state": "present", "error": {"code": "protected", "message": "is protected"}},
               "CloudUnknown": {"state": "unknown"}, "CloudUnavailable": {"error": {"code": "throttled", "message": "too many calls"}}}
    with scene(world, figures) as s:
        for reason, answer in answers.items():
            node = s.node()
            s.says(node, answer)
            world.delete_node(node)
            begin = s.asked(node, "describe" if reason == "CloudUnknown" else "terminate")
            first = s.is_held(node, reason, node, "Node", begin)
            assert answer.get("error", {}).get("message", "") in first["message"], first


def pool_comes_to_rest(world, figures):
    """a NodePool says when it has come to rest, which of its removals is held, and when it has come to rest again"""
    with scene(world, figures) as s:
        def status():
            pool = world.admin.get(f"{POOLS}/{s.pool}")
            found = pool.get("status", {})
            assert found.get("observedGeneration") in (None, pool["metadata"]["generation"])
            said = {c["type"]: c for c in found.get("conditions", [])}
            return [found.get(k) for k in ("nodes", "removing", "blocked")], said.get("Ready", {}), said.get("Progressing", {})

        def comes_to(counts, ready, reason, what):
            def holds():
                now, r, p = status()
                return (now, r.get("status"), r.get("reason"), p.get("status")) == \
                    (counts, ready, reason, "True" if counts[1] else "False") and r
            return world.cluster.wait_for(holds, LIMIT, what)

        one = s.node()
        world.replicas(s.pool, 1, s.pool, grace=1)  # nowhere else to go
        world.budget(s.pool, s.pool, 1)
        other = s.node()
        comes_to([2, 0, 0], "True", "Idle", "both are adopted")
        world.delete_node(one)
        comes_to([2, 1, 0], "False", "Removing", "its removal goes on")
        begin = time.monotonic()
        ready = comes_to([2, 1, 1], "False", "Blocked", "its removal is held")
        figures.add(f"held for {time.monotonic() - begin:.0f} s when the pool says so")
        assert one in ready["message"] and f"default/{s.pool}" in ready["message"] and "PDBNeverAllows" in ready["message"], ready
        s.says(other, {"state": "terminating"})
        world.delete_node(other)  # is not held up by it
        world.wait_gone(other)
        comes_to([1, 1, 1], "False", "Blocked", "the other one has gone")
        s.says(one, {"state": "terminating"})
        world.admin.delete(f"{PDBS}/{s.pool}")
        world.wait_gone(one)
        comes_to([0, 0, 0], "True", "Idle", "it has come to rest")


def explain_budget_of_nodes(world, figures):
    """explain: a NodeDisruptionBudget that another node uses up"""
    with scene(world, figures) as s:
        one, other = s.node(), s.node()
        s.holds(one)
        world.admin.create(BUDGETS, {"apiVersion": "vesper.sh/v1alpha1", "kind": "NodeDisruptionBudget", "metadata": {"name": s.pool},
                                     "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"e2e": s.pool}}}})
        try:
            world.cluster.wait_for(lambda: world.admin.get(f"{BUDGETS}/{s.pool}").get("status", {}).get("disruptionsAllowed") == 1,
                                   LIMIT, "the status of the budget")
            world.delete_node(one)
            s.told(one, "Protected", time.time())
            first = s.is_held(other, "WaitingForBudget", s.pool, "NodeDisruptionBudget", world.delete_node(other))
            assert one in first["message"] and first["figures"]["allowed"] == 0, first
            assert '"maxUnavailable":2' in first["fix"]["command"], first
        finally:
            world.admin.delete(f"{BUDGETS}/{s.pool}")


def explain_paused(world, figures):
    """explain: a NodePool that is paused, then all of them"""
    with scene(world, figures) as s:
        world.admin.patch(f"{POOLS}/{s.pool}", {"metadata": {"annotations": {"vesper.sh/paused": "true"}}})
        node = s.node()
        world.cluster.wait_for(lambda: _is_paused(world, s.pool), LIMIT, "the pool's condition Paused")
        first = s.is_held(node, "Paused", s.pool, "NodePool", world.delete_node(node))
        assert first["fix"]["command"] == f"vesperctl resume {s.pool}", first
        world.admin.patch(NAMESPACE, {"metadata": {"annotations": {"vesper.sh/paused": "true"}}})
        try:
            first = s.is_held(node, "Paused", "vesper-system", "Namespace")
            assert first["fix"]["command"] == "vesperctl resume", first
        finally:
            world.admin.patch(NAMESPACE, {"metadata": {"annotations": {"vesper.sh/paused": None}}})


def _is_paused(world, pool):
    conditions = world.admin.get(f"{POOLS}/{pool}").get("status", {}).get("conditions", [])
    return any(c["type"] == "Paused" and c["status"] == "True" for c in conditions)


def explain_no_leader(world, figures):
    """explain: nobody leads; it comes before the pod that would hold it next"""
    with scene(world, figures) as s:
        node = s.node()
        s.holds(node)
    world.delete_node(node)
    first = s.is_held(node, "NoLeader", "vesper-coordinator", "Lease")
    assert "No coordinator leads" in first["message"], first
    _, answer = s.explain(node)
    assert [c["reason"] for c in answer["causes"] if c["holds"]] == ["NoLeader", "Protected"], answer
    world.admin.patch(f"{CLAIMS}/{world.claims(node)[0]['metadata']['name']}", {"metadata": {"finalizers": None}})


CASES = [
    explain_in_service, explain_pdb_without_room, explain_pdb_that_never_allows, explain_several_pdbs, explain_opt_out,
    explain_foreign_finalizer, explain_cloud, pool_comes_to_rest, explain_budget_of_nodes, explain_paused, explain_no_leader
]
