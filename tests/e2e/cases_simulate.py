# SPDX-License-Identifier: Apache-2.0
"""The scheduling simulation, held to what happens: nodes of which it says that they may go are drained, and the cluster's own
scheduler, which decides by its scores and in the order in which pods come to it, has to find a seat for each pod; and a node
that it says may not go is drained as well, and leaves pods that are on no node.

tests/scheduler compares the rules, with kube-scheduler's code and a state that stands still. Here the controllers, the
scheduler's queue and the drain itself are real ones, and everything moves.
"""

import collections
import json
import os
import random
import sys
import time

from daemons import LIMIT, TOP, build_directory

sys.path.append(os.path.join(TOP, "tests", "scheduler"))

from compare import Tool, moves  # noqa: E402

ZONE, HOST, ROW = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.com/row"
KINDS = "nodes,pods,namespaces,persistentvolumes,persistentvolumeclaims,storageclasses,csinodes"
APPS = "/apis/apps/v1/namespaces/default"
# How many nodes go of each cluster, which has room for that. A yes speaks of two schedulers, one that packs and one that spreads, to which
# the biggest pods come first. Where the last seats are given away, what happens may depend on the order in which the pods really come.
DRAINS = 2

# Of each cluster: its seed, and what keeps one pod from all nodes but the one that it is on (see _holder()).
CLUSTERS = ((7, "selector"), (11, "anti-affinity"), (12, "size"), (16, "taint"), (17, "spread"))


# ---- a cluster

def _draw_nodes(r, pool, hold):
    """A function that makes what create_nodes() sends into this cluster's, and how many there are."""
    count = r.randint(7, 8)
    tainted = set(r.sample(range(count), count - 6))
    held = set(r.sample(sorted(set(range(count)) - tainted), 2 if hold == "anti-affinity" else 1))
    if hold == "taint":
        held.add(min(tainted))
    numbers = iter(range(count))

    def change(node):
        i = next(numbers)
        labels = node["metadata"]["labels"]
        labels.update({ZONE: f"zone-{'abc'[i % 3]}", ROW: f"row-{'abc'[i % 3]}", "disk": r.choice(("ssd", "ssd", "hdd"))})
        memory = "16Gi"
        if i in held:
            labels.update({"held": pool, ROW: "row-held"})
            memory = "48Gi" if hold == "size" else memory
        if i in tainted:
            node["spec"]["taints"] = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]
        size = {"cpu": "4", "memory": memory, "pods": str(r.choice((12, 14, 16)))}
        node["status"].update(capacity=size, allocatable=dict(size))

    return change, count


def _of_itself(app, **more):
    return dict(more, labelSelector={"matchLabels": {"app": app}})


def _plain(r, app, spec):
    """Nothing but requests."""
    return r.randint(2, 5)


def _spread(r, app, spec):
    spec["topologySpreadConstraints"] = [_of_itself(app, maxSkew=1, topologyKey=ZONE, whenUnsatisfiable="DoNotSchedule")]
    return r.randint(3, 6)


def _keep_apart(app, spec):
    """No two on one node."""
    spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_of_itself(app, topologyKey=HOST)]}}


def _apart(r, app, spec):
    _keep_apart(app, spec)
    return r.randint(2, 3)


def _selector(r, app, spec):
    spec["nodeSelector"] = {"disk": "ssd"}
    return r.randint(2, 4)


def _toleration(r, app, spec):
    spec["tolerations"] = [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]
    return r.randint(3, 5)


def _holder(hold, pool, app, spec):
    """One pod, or one of several, that finds no seat but on the node where it is."""
    if hold == "size":
        spec["containers"][0]["resources"]["requests"]["memory"] = "24Gi"
        return 1
    if hold == "spread":  # a node that is drained still counts as a place that has none
        spec["topologySpreadConstraints"] = [_of_itself(app, maxSkew=1, topologyKey=ROW, whenUnsatisfiable="DoNotSchedule")]
        return 4
    spec["nodeSelector"] = {"held": pool}
    if hold == "anti-affinity":
        _keep_apart(app, spec)
        return 2  # as many as such nodes
    return 1


def _workload(r, kind, app, replicas, spec):
    body = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": app}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": app}},
        "template": {"metadata": {"labels": {"app": app}}, "spec": spec}}}
    if kind == "StatefulSet":
        body["spec"].update(serviceName=app, podManagementPolicy=r.choice(("Parallel", "OrderedReady")))
    return body


def _draw_workloads(r, pool, hold):
    """One of each taste, then more, until there are 25 to 32 pods."""
    tastes, found, pods, goal = [None, _spread, _apart, _selector, _toleration, _plain], [], 0, r.randint(25, 32)
    while tastes or pods < goal:
        taste = tastes.pop(0) if tastes else r.choice((_spread, _apart, _selector, _toleration, _plain))
        holds = not found
        app = f"{pool}-{'holder' if holds else taste.__name__.strip('_')}-{len(found)}"
        spec = {"containers": [{"name": "main", "image": "test", "resources": {"requests": {
            "cpu": r.choice(("250m", "300m", "400m", "500m")), "memory": r.choice(("512Mi", "1Gi", "2Gi"))}}}],
                "terminationGracePeriodSeconds": 5, "enableServiceLinks": False, "automountServiceAccountToken": False}
        replicas = _holder(hold, pool, app, spec) if holds else taste(r, app, spec)
        found.append(_workload(r, ("Deployment", "StatefulSet")[len(found) % 2], app, replicas, spec))
        pods += replicas
    return found


# ---- what happens

class Drained:
    """One cluster on the control plane, and the simulation beside it."""
    def __init__(self, world, seed, hold):
        self.world, self.pool, r = world, world.unique("seats"), random.Random(seed)
        self.tool = Tool([os.path.join(build_directory(), "tests", "simulate", "simulate-nodes")])
        change, count = _draw_nodes(r, self.pool, hold)
        self.nodes = world.cluster.create_nodes(count, self.pool, change=change)
        workloads = _draw_workloads(r, self.pool, hold)
        self.holder = workloads[0]["metadata"]["name"]
        self.replicas = {}
        for some in (workloads[:1], workloads[1:]):  # the one node of the holder's pod must not be full when that comes
            self.replicas |= {w["metadata"]["name"]: w["spec"]["replicas"] for w in some}
            world.admin.bulk([("POST", f"{APPS}/{w['kind'].lower()}s", w) for w in some])
            self.wait_bound("at first")

    def everything(self):
        """What a person would give the tool: `kubectl get -o json`."""
        return json.loads(self.world.cluster.kubectl("get", KINDS, "-A", "-o", "json"))["items"]

    def ask(self):
        """All objects, node -> what the simulation says, node -> its pods that move."""
        objects = self.everything()
        there = collections.defaultdict(list)
        for o in objects:
            if o["kind"] == "Pod" and moves(o):
                there[o["spec"].get("nodeName")].append(o)
        answers = {a["node"]: a for a in self.tool.judge(objects)}
        assert sorted(answers) == sorted(self.nodes), answers
        return objects, answers, there

    def has_no_seat(self, node, pod, objects, there):
        """Whether the simulation finds no seat for that pod even if all others that leave the node went nowhere: then it has to stay
        without, since all that these can do is to take a seat. Only its siblings could even out a spread, and there are none."""
        app = pod["metadata"]["labels"]["app"]
        if "topologySpreadConstraints" in pod["spec"] and sum(p["metadata"]["labels"]["app"] == app for p in there) > 1:
            return False
        gone = {p["metadata"]["uid"] for p in there} - {pod["metadata"]["uid"]}
        answer = next(a for a in self.tool.judge([o for o in objects if o["metadata"]["uid"] not in gone]) if a["node"] == node)
        return answer["verdict"] == "no" and answer["code"] == "NOT_PLACED"

    def missing(self, pods):
        """app -> how many of its pods are on no node."""
        bound = collections.Counter(p["metadata"]["labels"]["app"] for p in pods
                                    if "nodeName" in p["spec"] and "deletionTimestamp" not in p["metadata"])
        return {app: n - bound[app] for app, n in self.replicas.items() if bound[app] < n}

    def wait_bound(self, when):
        try:
            self.world.cluster.wait_pods(lambda pods: not self.missing(pods) and len(pods) == sum(self.replicas.values()), None,
                                         LIMIT)
        except TimeoutError:
            pods = self.world.cluster.pods()
            raise AssertionError(f"{when}: not on a node: {self.missing(pods)}; {_words(pods)}") from None
        # Not all run yet, and a pod that is drained before it does is none of this case's matters.
        self.world.cluster.wait_running(sum(self.replicas.values()), timeout=LIMIT)

    def wait_scheduler(self):
        """Waits until the scheduler has placed two pods that are created now. The end of the first one is a reason for the scheduler to
        try each pod without a node again."""
        path = "/api/v1/namespaces/default/pods"
        for i in range(2):
            name = self.world.cluster.create_pods(None, prefix=f"{self.pool}-any-{i}")[0]
            self.world.cluster.wait_for(lambda n=name: "nodeName" in self.world.admin.get(f"{path}/{n}")["spec"], LIMIT, f"{name} on a node")
            self.world.admin.delete(f"{path}/{name}", {"gracePeriodSeconds": 0})

    def plan_says(self, node, status):
        """vesperctl asks the same simulation, of what it reads from the API server itself."""
        done = self.world.ctl("plan", "--without", node)
        assert done.returncode == status, f"of {node}, {status} expected: {done}"

    def drain(self, node):
        done = self.world.ctl("drain", node)
        assert done.returncode == 0, done

    def goes(self):
        """Drains the node with most pods of those that may go. How many they were, and how long it took until their successors were
        bound."""
        _, answers, there = self.ask()
        cordoned = {n for n in self.nodes if self.world.get_node(n)["spec"].get("unschedulable")}
        may = [n for n in self.nodes if answers[n]["verdict"] == "yes" and n not in cordoned and there[n]]
        assert may, f"no node with pods may go: {_verdicts(answers)}"
        node = max(may, key=lambda n: (len(there[n]), n))
        self.plan_says(node, 0)
        begin = time.monotonic()
        self.drain(node)
        self.wait_bound(f"{node}, which may go, was drained ({answers[node]['placements']})")
        return len(there[node]), time.monotonic() - begin

    def stays(self):
        """Drains the node that the holder's pod is on, which may not go, and opens it again. How many pods were without a node
        meanwhile, why by the simulation, and by the scheduler."""
        objects, answers, there = self.ask()
        node, pod = next((n, p) for n in self.nodes for p in there[n] if p["metadata"]["labels"]["app"] == self.holder and
                         "held" in self.world.get_node(n)["metadata"]["labels"])
        reasons = {u["pod"]: u["reasons"] for u in answers[node]["unplaced"]}.get(f"default/{pod['metadata']['name']}")
        assert answers[node]["verdict"] == "no" and reasons, f"{self.holder} has a seat elsewhere if {node} goes: {answers[node]}"
        assert self.has_no_seat(node, pod, objects, there[node]), f"{self.holder} might have found a seat: {answers[node]}"
        self.plan_says(node, 3)
        self.drain(node)

        def refused(pods):
            return [p for p in pods if p["metadata"]["labels"]["app"] == self.holder and _unschedulable(p)]

        self.world.cluster.wait_pods(refused, None, LIMIT, f"the scheduler's refusal of {pod['metadata']['name']}'s successor")
        self.wait_scheduler()
        pods = self.world.cluster.pods()
        missing = self.missing(pods)
        assert missing.get(self.holder) == 1, f"{node} may not go, but all pods of {self.holder} are on nodes: {missing}"
        words = _words(refused(pods))
        assert self.world.ctl("undrain", node).returncode == 0
        self.wait_bound(f"{node} was opened again")
        return sum(missing.values()), reasons, words


def _verdicts(answers):
    return {n: a["verdict"] for n, a in answers.items()}


def _condition(pod):
    return next((c for c in pod["status"].get("conditions", ()) if c["type"] == "PodScheduled"), {})


def _unschedulable(pod):
    return "nodeName" not in pod["spec"] and _condition(pod).get("reason") == "Unschedulable"


def _words(pods):
    """What the scheduler says of those it has refused a node, but for what it thinks of preemption."""
    return "; ".join(f"{p['metadata']['name']}: {_condition(p)['message'].split('. ')[0]}" for p in pods if _unschedulable(p))


def real_drains(world, figures):
    """clusters drained for real: all pods of nodes that may go find seats, and one of a node that may not stays without"""
    for seed, hold in CLUSTERS:
        begin = time.monotonic()
        c = Drained(world, seed, hold)
        verdicts = list(_verdicts(c.ask()[1]).values())
        made = time.monotonic() - begin
        moved = [c.goes() for _ in range(DRAINS)]
        left, reasons, words = c.stays()
        figures.add(f"seed {seed}, held by {hold}: {len(c.nodes)} nodes, {sum(c.replicas.values())} pods; {verdicts.count('yes')} nodes "
                    f"may go; pods moved: {' and '.join(f'{n} in {sec:.1f} s' for n, sec in moved)}; then {left} stayed without a node")
        figures.add(f"  vesper: {json.dumps(reasons)}; kube-scheduler: {words} ({made:.1f} + {time.monotonic() - begin - made:.1f} s)")
        world.clean()


CASES = [real_drains]
