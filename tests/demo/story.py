#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vesper's main job, played: a person asks which node could go; maintenance announced to one node; a spot notice on another, which gets a successor; one that only a queue tells of; a node
deleted, the leader killed meanwhile; a further one refused by a budget of nodes until that has gone; the maintenance cancelled.

story.py [--real]     called by tests/demo.sh; the programs are taken from VESPER_BUILD (default: build/)
"""

import contextlib
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from narrator import ClusterTeller, LogTeller, Narrator, Screen, is_ready  # noqa: E402
from stage import COORDINATOR, REGION, FakeStage, RealStage  # noqa: E402

from cluster import StartError  # noqa: E402
from daemons import LIMIT, Daemon, procs, program, temporary_directory  # noqa: E402
from machines import Machines  # noqa: E402
from metadata import EVENTS, Metadata  # noqa: E402

POOLS = "/apis/vesper.sh/v1alpha1/nodepools"
CLAIMS = "/apis/vesper.sh/v1alpha1/nodeclaims"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
PODS = "/api/v1/namespaces/default/pods"
PDBS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
NODE_BUDGETS = "/apis/vesper.sh/v1alpha1/nodedisruptionbudgets"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/vesper-system/leases/vesper-coordinator"
FINALIZER = "vesper.sh/termination"
POOL_LABEL = "vesper.sh/nodepool"
OPT_OUT = "vesper.sh/do-not-evict"

# How many pods of which set each node gets. The pods of "batch" belong to no set: they do not come back.
NODES = {
    "node-1": {"web": 3, "db": 1, "batch": 1}, "node-2": {"web": 4, "db": 0, "batch": 1},
    "node-3": {"web": 2, "db": 2, "batch": 1}, "node-4": {"web": 1, "db": 1, "batch": 1},
    "node-5": {"web": 2, "db": 0, "batch": 1}
}
ALL_PODS = sum(n for wanted in NODES.values() for n in wanted.values())
MAINTAINED, SPOT, DELETED, SECOND, QUEUED = NODES
SUCCESSOR = "node-6"
EVENT = "instance-event-0d59937288b749b32"
EVENT_AHEAD_SEC = 3 * 3600  # beyond the hour from which on [Policy] Maintenance= has the node drained
BUDGETS = {"web": 10, "db": 4}
STOP_SEC = 1
BOOT_SEC = 1


def wait(condition, what):
    deadline = time.monotonic() + LIMIT
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {LIMIT} s")
        time.sleep(0.02)
    return result


class Demo:
    def __init__(self, stage, directory, screen):
        self.stage = stage
        self.client = stage.client
        self.directory = directory
        self.machines = Machines(directory, "my-machines")
        self.screen = screen
        self._reserved = procs.Ports()
        self.ports = {letter: self._reserved.take() for letter in "AB"}  # of the webhooks
        self.metadata = {}
        self.agents = {}
        self.coordinators = {}
        self.cluster = None  # a ClusterTeller
        self.logs = None  # a LogTeller
        self.notes = {}  # what the closing words need: times by name

    # -- the cluster

    def build_cluster(self):
        for name, available in BUDGETS.items():
            self._create_set(name, available)
        for (node, wanted), instance in zip(NODES.items(), self.stage.instances()):
            self.stage.create_nodes([node], [instance], _labels(node))
            self._wait_ready(node)
            self._create_pod("batch", node)
            for name in BUDGETS:
                self._grow(name, wanted[name], node)
            self._open(node, False)
        for node in NODES:
            self._open(node, True)
        wait(lambda: sum(map(is_ready, self._pods())) == ALL_PODS, f"{ALL_PODS} pods run")
        wait(
            lambda: all(
                self._allowed(n) == sum(w[n] for w in NODES.values()) - a for n, a in BUDGETS.items()),
            "the budgets are counted")

    def _create_set(self, name, available):
        self.client.create(
            SETS, {
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": {
                    "replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": _template(name)
                }
            })
        self.client.create(
            PDBS, {
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
                "spec": {"minAvailable": available, "selector": {"matchLabels": {"app": name}}}
            })

    def _create_pod(self, name, node):
        pod = _template(name)
        pod["metadata"]["name"] = f"{name}-{node[-1]}"
        pod["spec"]["nodeName"] = node
        self.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", **pod})

    def _grow(self, name, count, node):
        """More pods of that set; the scheduler has but this node to put them on."""
        have = self.client.get(f"{SETS}/{name}")["spec"]["replicas"]
        self.client.patch(f"{SETS}/{name}", {"spec": {"replicas": have + count}})
        wait(lambda: sum(p["spec"].get("nodeName") == node for p in self._pods(name)) == count,
             f"{count} pods of {name} on {node}")

    def _open(self, node, is_open):
        self.client.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None if is_open else True}})

    def _wait_ready(self, node):
        def ready():
            found = self.client.get(f"/api/v1/nodes/{node}")
            taints = [t["key"] for t in found["spec"].get("taints", [])]
            return "node.kubernetes.io/not-ready" not in taints and any(
                c["type"] == "Ready" and c["status"] == "True"
                for c in found["status"].get("conditions", []))

        wait(ready, f"{node} is Ready")

    def _pods(self, app=None):
        items = self.client.get(PODS)["items"]
        return [p for p in items if app is None or p["metadata"].get("labels", {}).get("app") == app]

    def _pods_on(self, node):
        return [p for p in self._pods() if p["spec"].get("nodeName") == node]

    def _allowed(self, name):
        return self.client.get(f"{PDBS}/{name}").get("status", {}).get("disruptionsAllowed")

    # -- vesper

    def start_vesper(self, stack):
        for name, spec in (("workers", {}), ("spot", {"provider": {"name": "exec"}, "disruption": {"onInterruption": "Replace"}})):
            self.client.create(
                POOLS, {
                    "apiVersion": "vesper.sh/v1alpha1", "kind": "NodePool", "metadata": {"name": name},
                    "spec": {"selector": {"matchLabels": {"pool": name}}, **spec}
                })
        for node, instance in zip(NODES, self.stage.instances()):
            if node == QUEUED:
                continue
            self.metadata[node] = stack.enter_context(Metadata(instance))
            if node == MAINTAINED:  # its agent looks for events when it starts, and then each minute
                self.notes["before"] = self._of_maintained()
                self.metadata[node].event(EVENT, "system-reboot", EVENT_AHEAD_SEC)
            self.agents[node] = stack.enter_context(self._agent(node))
        for letter in "AB":
            self.coordinators[letter] = stack.enter_context(self._coordinator(letter))
            if letter == "A":
                self.coordinators["A"].wait_line("LEASE_ACQUIRED")
        for agent in self.agents.values():
            agent.wait_line("READY")
        self.coordinators["B"].wait_line("READY")
        wait(self._all_adopted, "the nodes are adopted")
        self._bound_nodes()

    def _bound_nodes(self):
        """One worker at a time: a budget of nodes, and the webhook by which the API server asks about each deletion."""
        self.client.create(
            NODE_BUDGETS, {
                "apiVersion": "vesper.sh/v1alpha1", "kind": "NodeDisruptionBudget", "metadata": {"name": "workers"},
                "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"role": "worker"}}}
            })
        self.client.create(
            WEBHOOKS, {
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "vesper-nodes"}, "webhooks": [{
                    "name": f"{letter.lower()}.nodes.vesper.sh", "failurePolicy": "Ignore", "sideEffects": "NoneOnDryRun",
                    "timeoutSeconds": 3, "admissionReviewVersions": ["v1"],
                    "clientConfig": {"url": f"https://127.0.0.1:{port}/admission"},
                    "rules": [{"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"]}]
                } for letter, port in self.ports.items()]
            })
        wait(
            lambda: all("caBundle" in w["clientConfig"]
                        for w in self.client.get(f"{WEBHOOKS}/vesper-nodes")["webhooks"]),
            "the webhook's CA is known")
        wait(lambda: self.client.get(f"{NODE_BUDGETS}/workers").get("status", {}).get("disruptionsAllowed") == 1,
             "the budget of nodes is counted")
        time.sleep(1)  # the API server reads its configuration of webhooks anew

    def _all_adopted(self):
        claims = {c.get("status", {}).get("nodeName") for c in self.client.get(CLAIMS)["items"]}
        return claims >= set(NODES) and all(FINALIZER in n["metadata"].get("finalizers", [])
                                            for n in self.client.get("/api/v1/nodes")["items"])

    def _agent(self, node):
        state = os.path.join(self.directory, f"state-{node}")
        os.mkdir(state)
        return Daemon(
            f"agent-{node}", "vesper-agent",
            _settings({
                "Kubernetes.Kubeconfig": self.stage.node_kubeconfig(node), "Agent.RuntimeDirectory": state,
                "Metadata.Source": "ec2", "Metadata.Endpoint": self.metadata[node].endpoint, "Log.Target": "json"
            }), self.directory)

    def _coordinator(self, letter):
        return Daemon(
            f"coordinator-{letter}", "vesper-coordinator",
            _settings({
                "Kubernetes.Kubeconfig": self.stage.coordinator_kubeconfig(),
                "Lease.Identity": f"coordinator-{letter}", "Provider.Name": "ec2 exec",
                "Provider.Command": self.machines.command,
                "Webhook.Listen": f"127.0.0.1:{self.ports[letter]}", "Webhook.CertificateSecret": "vesper-webhook",
                "Webhook.Names": "127.0.0.1",
                "Provider.Endpoint": self.stage.ec2_endpoint, "Provider.Region": REGION, "Queue.Url": self.stage.queue_url, "Log.Target": "json"
            }), self.directory, {
                "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing",
                "AWS_EC2_METADATA_DISABLED": "true"
            })

    def tellers(self):
        return {
            **{f"agent {n}": d
               for n, d in self.agents.items()},
            **{f"coordinator {n}": d
               for n, d in self.coordinators.items()}
        }

    # -- the story

    def question(self, narrator):
        """A plan before and after one pod opts out of evictions; it is asked of the cluster alone, and changes nothing."""
        pod = f"batch-{QUEUED[-1]}"
        before = self._ask_plan(narrator, QUEUED, 0)
        self._write(f"plan-without-{QUEUED}.html", self._vesperctl("plan", "--without", QUEUED, "-o", "html"))
        assert f"This node could go: {QUEUED}" in before, before
        narrator.say("you", f"kubectl annotate pod {pod} {OPT_OUT}=true     (this pod is not to be evicted)")
        self.client.patch(f"{PODS}/{pod}", {"metadata": {"annotations": {OPT_OUT: "true"}}})
        after = self._ask_plan(narrator, QUEUED, 3)
        assert "POD_OPT_OUT" in after and f"pod default/{pod} has opted out" in after, after
        narrator.say("you", f"kubectl annotate pod {pod} {OPT_OUT}-     (it may be evicted again)")
        self.client.patch(f"{PODS}/{pod}", {"metadata": {"annotations": {OPT_OUT: None}}})
        narrator.flush()

    def _ask_plan(self, narrator, node, status):
        answer = self._vesperctl("plan", "--without", node, status=status)
        head, places, rest = answer.partition("\nWhere pods would find a place:\n")
        if status != 0 and places:
            answer = f"{head}\n(Where pods would find a place: as above.)\n\n{rest.splitlines()[-1]}\n"
        narrator.say("you", f"vesperctl plan --without {node}\n{answer}")
        return answer

    def maintenance(self, narrator):
        narrator.say("EC2", f"scheduled event at the metadata service of {MAINTAINED}: {EVENT}, system-reboot in 3 hours")
        wait(lambda: self._condition("MaintenancePlanned") == "True", f"{MAINTAINED} has a plan")
        narrator.say("cluster", f"{MAINTAINED} has the condition MaintenancePlanned, and stays in service")
        narrator.flush()

    def _of_maintained(self):
        """What of that node has to be as before once the event is cancelled: its spec, names of its labels and annotations. """
        node = self.client.get(f"/api/v1/nodes/{MAINTAINED}")
        labels, annotations = (set(node["metadata"].get(what, {})) for what in ("labels", "annotations"))
        return node["spec"], labels - {POOL_LABEL}, annotations  # adoption puts that one there

    def _condition(self, kind):
        node = self.client.get(f"/api/v1/nodes/{MAINTAINED}")
        return next((c["status"] for c in node["status"]["conditions"] if c["type"] == kind), None)

    def cancellation(self, narrator):
        """Its agent looks for events once a minute; the acts between have taken most of that."""
        narrator.say("EC2", f"{EVENT} is cancelled: the metadata service of {MAINTAINED} shows no event any more")
        self.metadata[MAINTAINED].says(EVENTS, "[]")
        wait(lambda: self._condition("MaintenancePlanned") != "True", f"the plan for {MAINTAINED} is gone")
        left = self._condition("MaintenancePlanned")
        narrator.say("cluster", f"{MAINTAINED}: MaintenancePlanned is {left or 'gone'}; it was in service all the time")
        after = self._of_maintained()
        assert after == self.notes["before"], f"{MAINTAINED} is not as before: {self.notes['before']}, now {after}"
        assert not any(n == MAINTAINED for n in self.cluster.evicted.values()), "a pod was evicted there"
        narrator.flush()

    def queued(self, narrator):
        instance = self.stage.instances()[list(NODES).index(QUEUED)]
        narrator.say("EC2", f"spot interruption of {instance} ({QUEUED}), by EventBridge to the interruption queue")
        self.notes["queued"] = time.time()
        self.stage.send_spot_event(instance)
        wait(lambda: self.client.find(f"/api/v1/nodes/{QUEUED}") is None, f"{QUEUED} is gone")
        self.notes["queued gone"] = time.time()
        narrator.flush()

    def interruption(self, narrator):
        narrator.say("EC2", f"spot notice at the metadata service of {SPOT}: its machine ends in 120 s")
        self.notes["notice"] = time.time()
        self.metadata[SPOT].interrupt(120)
        self._join_successor(narrator)
        self.notes["spot drained"] = self.agents[SPOT].wait_line("NODE_DRAINED").time
        wait(lambda: self.client.find(f"/api/v1/nodes/{SPOT}") is None, f"{SPOT} is gone")
        self.notes["spot gone"] = time.time()
        narrator.flush()

    def _join_successor(self, narrator):
        """The kubelet of the machine that the command launches registers its Node."""
        request = wait(lambda: self.machines.calls("launch"), "a launch")[0]
        self.notes["launch"] = request["time"]
        narrator.say("command", f"launches a machine like {request['like']}, as {self.machines.launched_id(request)}", request["time"])
        time.sleep(BOOT_SEC)
        self.stage.create_nodes([SUCCESSOR], [self.machines.launched_id(request)], _labels(SPOT))
        self.notes["successor"] = self.coordinators["A"].wait_line("SUCCESSOR_READY").time

    def deletion(self, narrator):
        leader, other = self.coordinators["A"], self.coordinators["B"]
        narrator.say("you", f"vesperctl plan --without {DELETED}\n" + self._plan_without(DELETED))
        narrator.say("you", f"kubectl delete node {DELETED}")
        self.client.delete(f"/api/v1/nodes/{DELETED}")
        self.notes["deleted"] = time.time()
        leader.wait_line("POD_EVICTION_BLOCKED")
        wait(self._only_held_left, f"all but the pods of db have left {DELETED}")
        narrator.say("you", "vesperctl status\n" + self._vesperctl("status"))
        narrator.say("you", f"vesperctl explain {DELETED}\n" + self._vesperctl("explain", DELETED, status=3))
        self._refused(narrator)
        narrator.say("you",
                     "kubectl scale replicaset db --replicas=5     (so the budget db gets room for one)")
        before = len(self._going("db"))
        self.client.patch(f"{SETS}/db", {"spec": {"replicas": 5}})
        wait(lambda: len(self._going("db")) > before, "a pod of db is evicted")
        leader.kill()
        self.notes["killed"] = time.time()
        narrator.say("you",
                     f"kill -9 {leader.pid}     (coordinator A, which leads, in the middle of the drain)")
        narrator.say(
            "story",
            "nobody leads now; the other coordinator may take over when the Lease (15 s) has run out")
        self.notes["takeover"] = other.wait_line("LEASE_ACQUIRED").time
        wait(lambda: self.client.find(f"/api/v1/nodes/{DELETED}") is None, f"{DELETED} is gone")
        self.notes["node gone"] = time.time()
        wait(
            lambda: all(
                c.get("status", {}).get("nodeName") != DELETED for c in self.client.get(CLAIMS)["items"]),
            "its NodeClaim is gone")
        narrator.flush()

    def _refused(self, narrator):
        status, answer = self.client.request("DELETE", f"/api/v1/nodes/{SECOND}")
        assert status == 429, f"the deletion of {SECOND} was answered {status}: {answer}"
        narrator.say("you", f"kubectl delete node {SECOND}\nError from server (TooManyRequests): {answer['message']}")

    def second(self, narrator):
        narrator.say("you", f"kubectl delete node {SECOND}     (again)")
        self.client.delete(f"/api/v1/nodes/{SECOND}")
        self.notes["second deleted"] = time.time()
        wait(lambda: self.client.find(f"/api/v1/nodes/{SECOND}") is None, f"{SECOND} is gone")
        self.notes["second gone"] = time.time()
        narrator.flush()

    def _plan_without(self, node):
        """Pods that have just been moved may not all run yet: a moment that is over soon."""
        wait(lambda: all(map(is_ready, self._pods())), "all pods run")
        return self._vesperctl("plan", "--without", node, status=3)

    def _vesperctl(self, *words, status=0):
        done = subprocess.run([program("vesperctl"), *words, "--kubeconfig", self.stage.admin_kubeconfig()],
                              capture_output=True,
                              text=True,
                              check=False,
                              timeout=LIMIT)
        assert done.returncode == status, done
        return done.stdout

    def _only_held_left(self):
        pods = self._pods_on(DELETED)
        return pods and all(p["metadata"]["labels"]["app"] == "db" for p in pods)

    def _going(self, app):
        return [n for n, node in list(self.cluster.evicted.items()) if n.startswith(app) and node == DELETED]

    # -- the end

    def closing(self):
        calls = self.stage.calls()
        self.screen.heading("What was evicted when, and what held it")
        self._evictions(calls)
        self.screen.heading("Calls to the API server since vesper was started, by whom (without watches)")
        self._calls(calls)
        self.screen.heading("In the end")
        self._ending(calls)
        self._picture()

    def _picture(self):
        """The timeline of all nodes of the play, out of the logs: of most of them Node and NodeClaim are gone."""
        logs = [f"--log={daemon.log_path}" for daemon in (*self.coordinators.values(), *self.agents.values())]
        picture = subprocess.run(
            [program("vesperctl"), "--kubeconfig", self.stage.admin_kubeconfig(), "timeline", *NODES, "-o", "svg", *logs],
            capture_output=True, text=True, check=True, timeout=LIMIT).stdout
        self._write("nodes.svg", picture)
        self.screen.plain(f"\nWhat happened to the nodes, as a picture for a report: {self._path('nodes.svg')}\n"
                          f"    vesperctl timeline {' '.join(NODES)} --log=... -o svg\n"
                          f"The plan of the first act, as a page for a browser: {self._path(f'plan-without-{QUEUED}.html')}\n"
                          f"    vesperctl plan --without {QUEUED} -o html")

    def _path(self, name):
        """In the build folder."""
        return os.path.relpath(os.path.join(os.path.dirname(os.path.dirname(program("vesperctl"))), name))

    def _write(self, name, text):
        with open(self._path(name), "w", encoding="utf-8") as f:
            f.write(text)

    def _evictions(self, calls):
        row = "{:<12} {:<8} {:>10} {:>9}  {:<14} {}".format
        self.screen.plain(row("POD", "NODE", "EVICTED", "GONE", "BY", "HELD BY"))
        obeyed = {c.name: c for c in calls if c.resource == "pods/eviction" and c.status == 201}
        for pod, call in sorted(obeyed.items(), key=lambda item: item[1].time):
            gone = self.cluster.gone.get(pod)
            self.screen.plain(
                row(pod, self.cluster.evicted.get(pod, "?"), f"{call.time - self.screen.begin:.3f}",
                    f"{gone - self.screen.begin:.3f}" if gone else "-", _who(call.user),
                    self._held(pod, call, calls)))
        refused = [c for c in calls if c.resource == "pods/eviction" and c.status == 429]
        self.screen.plain(f"\nevictions obeyed: {len(obeyed)}; refused by a budget: {len(refused)}" + (
            f" ({', '.join(sorted({_who(c.user) for c in refused}))}: an agent cannot see budgets)"
            if refused else ""))

    def _held(self, pod, call, calls):
        """By which budget and for how long: as the claim's status, the agent's log or refusals show."""
        known = [self.cluster.held[pod]] if pod in self.cluster.held else []
        known += [(b.time, b.get("pdb", "").split("/")[-1]) for b in self.logs.blocked
                  if b.get("pod", "").split("/")[-1] == pod]
        known += [(c.time, pod.split("-")[0]) for c in calls
                  if c.resource == "pods/eviction" and c.name == pod and c.status == 429]
        if not known or min(known)[0] > call.time:
            return "-"
        since, budget = min(known)
        return f"budget {budget}, {call.time - since:.1f} s"

    def _calls(self, calls):
        counted = {}
        for call in calls:
            who = _who(call.user)
            if who and call.verb != "watch":
                key = (who, call.verb, call.resource, "ok" if call.status < 400 else str(call.status))
                counted[key] = counted.get(key, 0) + 1
        row = "{:<14} {:<8} {:<31} {:>6} {:>7}".format
        self.screen.plain(row("WHO", "VERB", "WHAT", "ANSWER", "COUNT"))
        for (who, verb, resource, status), count in sorted(counted.items()):
            if who != "agent of others":
                self.screen.plain(row(who, verb, resource, status, count))
        others = sum(n for key, n in counted.items() if key[0] == "agent of others")
        self.screen.plain(row("other agents", "", "(three nodes without a spot notice)", "", others))

    def _ending(self, calls):
        states = {n: self.stage.instance_state(i) for n, i in zip(NODES, self.stage.instances())}
        states[SPOT] = "ended" if self.machines.calls("terminate") else "running"
        left = sorted(n["metadata"]["name"] for n in self.client.get("/api/v1/nodes")["items"])
        claims = len(self.client.get(CLAIMS)["items"])
        notes = self.notes
        say = self.screen.plain
        say(f"{SPOT}: notice -> drained in {notes['spot drained'] - notes['notice']:.1f} s of the "
            "120 s that EC2 gave; its machine ended, its node gone after "
            f"{notes['spot gone'] - notes['notice']:.1f} s.")
        say(f"{SUCCESSOR}, in its place: notice -> launch {notes['launch'] - notes['notice']:.1f} s; it took pods "
            f"{notes['spot gone'] - notes['successor']:.1f} s before {SPOT} was gone.")
        say(f"{QUEUED}, which has no agent: message -> node gone in {notes['queued gone'] - notes['queued']:.1f} s.")
        say(f"{DELETED}: deleted -> gone in {notes['node gone'] - notes['deleted']:.1f} s, of which "
            f"{notes['takeover'] - notes['killed']:.1f} s without a leader; "
            f"its instance is {states[DELETED]}"
            + (" (which it cannot come back from)." if states[DELETED] == "shutting-down" else "."))
        say(f"{SECOND}: refused by the NodeDisruptionBudget while {DELETED} was leaving; then deleted -> gone in "
            f"{notes['second gone'] - notes['second deleted']:.1f} s.")
        say(f"{MAINTAINED}: maintenance announced and cancelled; spec, labels and annotations as before, none of its pods evicted.")
        say(f"Nodes left: {', '.join(left)}. NodeClaims left: {claims}. Machines: " +
            ", ".join(f"{n} {s}" for n, s in states.items()) + ".")
        say(f"Pods running: {sum(map(is_ready, self._pods()))} "
            f"(the {len(NODES)} of batch belong to no set: those that "
            "were evicted do not come back).")


def _who(user):
    if user == COORDINATOR:
        return "coordinators"
    if user == f"system:node:{SPOT}":
        return f"agent {SPOT}"
    return "agent of others" if user.startswith("system:node:node-") else None


def _template(app):
    return {
        "metadata": {
            "labels": {"app": app}, "annotations": {
                "fake.vesper.sh/stop-seconds": str(STOP_SEC), "test.vesper.sh/stop": str(STOP_SEC),
                "test.vesper.sh/start": "1"
            }
        }, "spec": {
            "containers": [{"name": "main", "image": "demo", "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}}}],
            "terminationGracePeriodSeconds": 30,
            "automountServiceAccountToken": False, "enableServiceLinks": False
        }
    }


def _labels(node):
    return {"role": "worker", "pool": "spot" if node == SPOT else "workers"}


def _settings(values):
    return [a for key, value in values.items() for a in ("--set", f"{key}={value}")]


def play(stage, directory, screen):
    with contextlib.ExitStack() as stack:
        demo = Demo(stage, directory, screen)
        demo.build_cluster()
        screen.plain(f"{len(NODES)} nodes, {ALL_PODS} pods:")
        for node, wanted in NODES.items():
            pods = ", ".join(f"{n} of {name}" for name, n in wanted.items() if n)
            screen.plain(f"    {node}   {pods}")
        screen.plain(
            "Budgets (PodDisruptionBudgets): of web's 12 pods 10 must be available, of db's 4 pods all 4.\n"
            "A NodeDisruptionBudget: of the workers one may be unavailable at a time.")
        demo.start_vesper(stack)
        screen.plain(
            f"vesper runs: an agent on each node but {QUEUED}, coordinators A (leads) and B (stands by). Each node is adopted: it has a\n"
            "NodeClaim, and a finalizer that holds it until its machine has ended.\n"
            f"{SPOT} belongs to the NodePool \"spot\": a command of the user launches and ends its machines (provider exec), and an\n"
            "interrupted machine gets a successor (onInterruption: Replace). The other machines are EC2's.")

        screen.begin = time.time()
        try:
            with Narrator(screen) as narrator, ClusterTeller(narrator, stage.client) as demo.cluster, \
                    LogTeller(narrator, demo.tellers()) as demo.logs:
                screen.heading(f"1. Could {QUEUED} go? A plan, and the same plan once a pod is not to be evicted")
                demo.question(narrator)
                screen.heading(f"2. EC2 announces a reboot of {MAINTAINED}: its agent plans for it")
                demo.maintenance(narrator)
                screen.heading(f"3. {SPOT} is interrupted: its agent drains it, a coordinator has a new machine launched")
                demo.interruption(narrator)
                screen.heading(f"4. {QUEUED} has no agent: a queue tells the coordinators that it is interrupted")
                demo.queued(narrator)
                screen.heading(
                    f"5. {DELETED} is deleted, a budget holds it, and the leader is killed in the middle")
                demo.deletion(narrator)
                screen.heading(f"6. {SECOND} is deleted again: {DELETED} has gone, so the budget of nodes has room")
                demo.second(narrator)
                screen.heading(f"7. EC2 cancels the reboot of {MAINTAINED}: the plan goes (its agent looks for events each minute)")
                demo.cancellation(narrator)
        except Exception:
            for daemon in demo.tellers().values():
                print(daemon.tail(15), file=sys.stderr)
            raise
        demo.closing()


def main():
    procs.exit_on_signals()
    unknown = [a for a in sys.argv[1:] if a != "--real"]
    if unknown:
        print(__doc__, file=sys.stderr)
        return 2
    screen = Screen()
    begin = time.monotonic()
    try:
        with temporary_directory("vesper-demo") as directory:
            kind = RealStage if "--real" in sys.argv else FakeStage
            screen.plain(f"The stage: {kind.title}")
            with kind(directory) as stage:
                play(stage, directory, screen)
    except (StartError, TimeoutError, AssertionError) as e:
        print(f"\nThe demo could not be played to its end: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    screen.plain(
        f"\nPlayed in {time.monotonic() - begin:.0f} s. Everything that was started has been stopped.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
