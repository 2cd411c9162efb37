# SPDX-License-Identifier: Apache-2.0
"""Situations that people reported of other projects in public: operators that move their pods when an eviction is asked for, pods that
come back onto a cordoned node, daemons of other API groups, Jobs at a deadline, budgets that cannot be counted."""

import base64
import contextlib
import json
import subprocess

from cases_explain import scene
from daemons import LIMIT, procs, program
from evictionhook import EvictionWebhook
from world import COORDINATOR, PDBS, POOLS, Background, FewestReady, WhenGone

from apiclient import STRATEGIC_PATCH  # in tests/cluster, whose path daemons.py has set

PERSON = "drainer"
NOT_SCALED = "cronjobs.batch does not implement the scale subresource"
PODS = "/api/v1/namespaces/default/pods"


class Drain:
    """`vesperctl drain` of a person, under way: with Drain(world, node) as drain: ... status, text = drain.wait()"""
    def __init__(self, world, node, *options):
        self.world = world
        self._argv = [program("vesperctl"), "drain", node, *options, "--kubeconfig", world.cluster.kubeconfig(PERSON, ["system:masters"])]
        self._path = world.path(f"{world.unique('drain')}.log")
        self._child = None

    def __enter__(self):
        with open(self._path, "wb") as log:
            self._child = procs.spawn(self._argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def __exit__(self, *_):
        self._child.kill()
        self._child.wait()

    @property
    def text(self):
        with open(self._path, encoding="utf-8") as f:
            return f.read()

    def wait_text(self, text):
        self.world.cluster.wait_for(lambda: text in self.text, LIMIT, f"vesperctl drain to say {text}")

    def wait(self):
        """Its exit status, and all that it has printed."""
        return self._child.wait(LIMIT), self.text


@contextlib.contextmanager
def _coordinator(world):
    """Runs a coordinator that leads. Its provider ends machines at once."""
    with world.coordinators(count=1, provider="exec", **{"Drain.LoadBalancerWaitSec": "0"}):
        yield


def _node(world, pool):
    return world.node(pool, f"metal://{world.unique('m')}")[0]


def _evictions(world, mark, user):
    """The user's answered requests for evictions."""
    return [c for c in world.calls(mark, user) if c.is_eviction]


def _wait_evictions(world, mark, user, count):
    world.cluster.wait_for(lambda: len(_evictions(world, mark, user)) >= count, LIMIT, f"{count} evictions by {user}", interval=0.1)


def _explain(world, node):
    """Exit status, and the causes."""
    done = world.ctl("explain", node, "-o", "json")
    assert not done.stderr, done
    return done.returncode, json.loads(done.stdout)["causes"]


def _names(pods):
    return sorted(p["metadata"]["name"] for p in pods)


def _delete(world, pods):
    for name in pods:
        world.admin.request("DELETE", f"{PODS}/{name}")


def _pdb(world, name, **spec):
    """A PodDisruptionBudget of the pods of that app."""
    world.admin.create(PDBS, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
                              "spec": {"selector": {"matchLabels": {"app": name}}, **spec}})


def _pdb_counted(world, name, pods):
    world.cluster.wait_for(lambda: world.admin.get(f"{PDBS}/{name}").get("status", {}).get("expectedPods") == pods, LIMIT,
                           f"PDB {name} to count {pods} pods")


def _owner(world, api_version, kind):
    """Returns the reference of a controller. Its kind is not served, so the garbage collector leaves the pod alone."""
    return {"apiVersion": api_version, "kind": kind, "name": world.unique(kind.lower()), "uid": world.unique("uid"), "controller": True}


def _owned_by(owner):
    """For create_pods(): makes the owner the controller of the pod."""
    def change(pod):
        pod["metadata"]["ownerReferences"] = [owner]

    return change


# -- 01, 02: the request for an eviction starts the move


class Brokers:
    """Three pods on a node, whose operator has them in a budget of maxUnavailable 0; their successors have another node."""
    def __init__(self, world, name):
        self.world, self.name = world, name
        self.node = _node(world, name)
        world.replicas(name, 3, name)
        _pdb(world, name, maxUnavailable=0)
        _pdb_counted(world, name, 3)
        self.other = _node(world, name)
        self.pods = _names(world.pods_of(name))

    def wait_asked(self, mark, user, status):
        """Each was asked for, was answered so, and is still there."""
        _wait_evictions(self.world, mark, user, 3)
        assert _names(self.world.ready(self.name)) == self.pods
        self.check_asked_once(mark, user, status)

    def check_asked_once(self, mark, user, status):
        calls = _evictions(self.world, mark, user)
        assert sorted(c.name for c in calls) == self.pods and {c.status for c in calls} == {status}, calls

    def move(self):
        """Deletes the pods, as the operator does once it was asked."""
        _delete(self.world, self.pods)


def _operator_moves(world, answer, status, reason, words):
    pool = world.pool(world.unique("broker"))
    ours, by_hand = Brokers(world, pool), Brokers(world, world.unique("broker-by-hand"))
    with EvictionWebhook(world, pool, lambda _: answer) as webhook, _coordinator(world):
        world.wait_adopted(ours.node)
        mark = world.audit.mark()
        world.delete_node(ours.node)
        with Drain(world, by_hand.node) as drain:
            ours.wait_asked(mark, COORDINATOR, status)
            by_hand.wait_asked(mark, PERSON, status)
            assert sorted(webhook.asked(COORDINATOR)) == ours.pods, webhook.asked(COORDINATOR)
            assert sorted(webhook.asked(PERSON)) == by_hand.pods, webhook.asked(PERSON)
            event = world.wait_event(ours.node, "DrainBlocked", reason, *words)
            world.cluster.wait_for(lambda: {b["reason"] for b in world.claims(ours.node)[0]["status"].get("blockers", [])} == {reason},
                                   LIMIT, f"{reason} in the claim of {ours.node}")
            held, causes = _explain(world, ours.node)
            drain.wait_text(reason)
            ours.move()
            by_hand.move()
            drained, text = drain.wait()
        world.wait_gone(ours.node)
    assert held == 3, causes
    assert drained == 0 and f"{by_hand.node}: drained in" in text, text
    for brokers, user in (ours, COORDINATOR), (by_hand, PERSON):
        brokers.check_asked_once(mark, user, status)
    return event["message"], causes


def operator_lets_pass(world, figures):
    """reports, 01: an operator moves a pod when it sees the request for its eviction, and lets that pass: one request for each pod, no advice to loosen the budget"""
    message, causes = _operator_moves(world, {"allowed": True}, 429, "PDBNeverAllows",
                                      ["their webhook sees the request, and they move the pod"])
    figures.add(message)
    first = causes[0]
    assert first["reason"] == "PDBNeverAllows" and "a webhook of theirs sees each request" in first["message"], first
    _check_not_loosened(causes)


def operator_denies(world, figures):
    """reports, 01: an operator moves a pod when it sees the request for its eviction, and denies that: one request for each pod, its words in an Event and explain"""
    words = "the operator will move this pod"
    message, causes = _operator_moves(world, {"allowed": False, "status": {"code": 403, "message": words}}, 403, "EvictionWebhook", [words])
    figures.add(message)
    told = [c for c in causes if c["reason"] == "EvictionWebhook"]
    assert told and words in told[0]["message"], causes
    assert all(c.get("since") for c in causes if c["reason"] == "PDBNeverAllows"), causes
    _check_not_loosened(causes)


def _check_not_loosened(causes):
    """Nothing advises to change the budget."""
    commands = [c["fix"]["command"] for c in causes if c.get("fix", {}).get("command")]
    assert not [c for c in commands if "patch" in c or "delete" in c or "edit" in c], commands


class Machine:
    """A virtual machine: one pod of a kind of its own, under a budget that wants the only one of it."""
    def __init__(self, world, name):
        self.world, self.name, self.owner = world, name, _owner(world, "kubevirt.io/v1", "VirtualMachineInstance")
        self.node, self.other = _node(world, name), _node(world, name)
        self.pod = self._pod(self.node, "a")
        _pdb(world, name, minAvailable=1)
        _pdb_counted(world, name, 1)
        self.twin = None

    def _pod(self, node, suffix):
        pod = self.world.cluster.create_pods(node, prefix=f"{self.name}-{suffix}", labels={"app": self.name},
                                             change=_owned_by(self.owner))[0]
        self.world.cluster.wait_running(1, node)
        return pod

    def move(self):
        """The migration: another pod takes over, and the first one ends."""
        self.twin = self._pod(self.other, "b")
        _delete(self.world, [self.pod])

    def wait_asked(self, mark, user):
        _wait_evictions(self.world, mark, user, 1)
        assert _names(self.world.ready(self.name)) == [self.pod]

    def check(self, mark, user):
        """The first pod was asked for once while its budget had no room, and once more at most; nobody asked for the other."""
        calls = _evictions(self.world, mark, user)
        assert {c.name for c in calls} == {self.pod} and [c.status for c in calls].count(429) == 1 and len(calls) <= 2, calls
        assert _names(self.world.ready(self.name)) == [self.twin]


def live_migration(world, figures):
    """reports, 02: a live migration begins with the request for an eviction: one request, a pod of the machine is Ready all the time, and the node ends"""
    pool = world.pool(world.unique("vm"))
    with contextlib.ExitStack() as stack:
        ours, by_hand = Machine(world, pool), Machine(world, world.unique("vm-by-hand"))
        webhook = stack.enter_context(EvictionWebhook(world, pool, lambda _: {"allowed": True}))
        stack.enter_context(_coordinator(world))
        world.wait_adopted(ours.node)
        watched = [stack.enter_context(FewestReady(world.admin, m.name)) for m in (ours, by_hand)]
        mark = world.audit.mark()
        world.delete_node(ours.node)
        drain = stack.enter_context(Drain(world, by_hand.node))
        ours.wait_asked(mark, COORDINATOR)
        by_hand.wait_asked(mark, PERSON)
        assert (webhook.asked(COORDINATOR), webhook.asked(PERSON)) == ([ours.pod], [by_hand.pod])
        figures.add(world.wait_event(ours.node, "DrainBlocked", "refused the request", "KubeVirt")["message"])
        held, causes = _explain(world, ours.node)
        ours.move()
        by_hand.move()
        drained, text = drain.wait()
        world.wait_gone(ours.node)
        ours.check(mark, COORDINATOR)
        by_hand.check(mark, PERSON)
    first = causes[0]
    assert held == 3 and first["reason"] == "PDBNeverAllows" and "a webhook of theirs sees each request" in first["message"], causes
    _check_not_loosened(causes)
    assert drained == 0, text
    assert [w.fewest for w in watched] == [1, 1], [w.fewest for w in watched]


# -- 03, 04: pods that no cordon keeps away


def _pinned(world, name, node):
    """A ReplicaSet whose template names the node. Its pods take their time to stop: the next one is there before."""
    world.admin.create("/apis/apps/v1/namespaces/default/replicasets", {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name}, "annotations": {"test.vesper.sh/stop": "never"}}, "spec": {
                    "nodeName": node, "containers": [{"name": "main", "image": "test"}], "automountServiceAccountToken": False}}}})
    world.cluster.wait_for(lambda: world.ready(name), LIMIT, f"the pod of {name}")


def _remove_stopped(world, name):
    """Removes the pods that are to stop, as their kubelet does when they have."""
    for pod in world.pods_of(name):
        if "deletionTimestamp" in pod["metadata"]:
            world.admin.request("DELETE", f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})


def pod_names_its_node(world, figures):
    """reports, 03: a pod whose template names its node comes back after each eviction: the drains end, with one warning that names its controller, and so does the node"""
    with contextlib.ExitStack() as stack:
        s = stack.enter_context(scene(world, figures))
        node = s.node()
        by_hand, noticed = (_node(world, world.unique(name)) for name in ("pinned-by-hand", "pinned-noticed"))
        pinned = {where: world.unique("pinned") for where in (node, by_hand, noticed)}
        for where, name in pinned.items():
            _pinned(world, name, where)
        metadata = stack.enter_context(world.metadata())
        stack.enter_context(world.agent(noticed, metadata)).wait_line("READY")
        mark = world.audit.mark()
        s.says(node, {"state": "unknown"})  # the Node stays for a while
        world.delete_node(node)
        metadata.interrupt()
        drain = stack.enter_context(Drain(world, by_hand, "--timeout=5m"))
        for where in node, noticed:
            event = world.wait_event(where, "PodComesBack", f"ReplicaSet {pinned[where]}", "does not wait for it")
        drain.wait_text(f"ReplicaSet {pinned[by_hand]} were ended there")
        for name in pinned.values():
            _remove_stopped(world, name)
        for where in node, noticed:
            world.wait_condition(where, "Drained")
        status, text = drain.wait()
        world.cluster.wait_for(lambda: all(world.ready(name) for name in pinned.values()), LIMIT, "the pods that stay")
        world.cluster.wait_for(lambda: "CloudUnknown" in s.reasons(node), LIMIT, f"{node} to wait for its machine")
        world.cluster.wait_for(lambda: "PodComesBack" in [c["reason"] for c in _explain(world, node)[1]], LIMIT, f"explain {node} to name the pod that stays")
        causes = _explain(world, node)[1]
        counts = [len([c for c in _evictions(world, mark, user) if c.status == 201])
                  for user in (COORDINATOR, PERSON, f"system:node:{noticed}")]
        events = world.admin.get("/api/v1/events?fieldSelector=reason%3DPodComesBack")["items"]
        s.says(node, {"state": "gone"})
        world.wait_gone(node)
    figures.add(f"evictions by coordinator, vesperctl and agent: {counts}; {event['message']}")
    assert counts == [3] * len(counts), counts
    told = sorted((e["involvedObject"]["name"], e.get("count", 1)) for e in events if e["involvedObject"]["name"] in pinned)
    assert told == sorted([(node, 1), (noticed, 1)]), events
    assert [c["reason"] for c in causes if c["holds"]] == ["CloudUnknown"], causes
    stays = next(c for c in causes if c["reason"] == "PodComesBack")
    assert f"ReplicaSet {pinned[node]} made it again" in stays["message"] and "Take spec.nodeName out" in stays["fix"]["says"], stays
    assert status == 0 and text.count(f"ReplicaSet {pinned[by_hand]} were ended there") == 1, text


class Daemons(Background):
    """Two pods of a node, and the controllers that make each again as soon as it is missing: one of a DaemonSet of another API group,
    which a budget wants, and one of a kind that nobody knows, with the annotation of the Cluster Autoscaler."""
    def __init__(self, world, node):
        super().__init__()
        self.world = world
        owners = {f"{node}-log-agent": _owner(world, "apps.kruise.io/v1alpha1", "DaemonSet"),
                  f"{node}-probe": _owner(world, "example.io/v1alpha1", "Foo")}
        self._bodies = {name: self._body(node, name, owner) for name, owner in owners.items()}
        self.names = list(self._bodies)
        self._bodies[self.names[1]]["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/daemonset-pod": "true"}
        for body in self._bodies.values():
            world.admin.create(PODS, body)
        _pdb(world, self.names[0], minAvailable=1)
        _pdb_counted(world, self.names[0], 1)

    @staticmethod
    def _body(node, name, owner):
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": name, "labels": {"app": name}, "ownerReferences": [owner]}, "spec": {
                "nodeName": node, "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 5,
                "containers": [{"name": "main", "image": "test"}]}}

    def run(self):
        while not self._end.wait(0.05):
            for name, body in self._bodies.items():
                if not self.world.admin.find(f"{PODS}/{name}"):
                    self.world.admin.request("POST", PODS, body)


def foreign_daemons(world, figures):
    """reports, 04: daemons of other API groups, by their owner or by an annotation: they stay, nobody waits for them, and a node with nothing else is empty"""
    pool, by_hand = world.pool(world.unique("daemons")), world.unique("daemons-by-hand")
    going, drained, empty = _node(world, pool), _node(world, by_hand), _node(world, pool)
    with contextlib.ExitStack() as stack:
        made = {node: stack.enter_context(Daemons(world, node)) for node in (going, drained, empty)}
        moves = {node: world.cluster.create_pods(node, 3, prefix=f"{node}-web", stop=1) for node in (going, drained)}
        for node in moves:
            world.cluster.wait_running(5, node)
        stays = _uids(world, made[drained], made[empty])
        stack.enter_context(_coordinator(world))
        world.wait_adopted(going, empty)
        _check_planned(world, pool, going, moves[going], empty)
        mark = world.audit.mark()
        gone = WhenGone(world.admin, going)
        world.delete_node(going)
        drain = stack.enter_context(Drain(world, drained))
        gone.wait()
        status, text = drain.wait()
        assert _uids(world, made[drained], made[empty]) == stays, "a daemon was ended"
        calls = world.calls(mark)
    evicted = {user: sorted(c.name for c in calls if c.user == user and c.is_eviction) for user in (COORDINATOR, PERSON)}
    assert evicted == {COORDINATOR: moves[going], PERSON: moves[drained]}, evicted
    assert not [c for c in calls if c.user in evicted and c.verb == "delete" and c.resource == "pods"], calls
    assert status == 0, text


def _uids(world, *daemons):
    """The uid of each of these that is there and not on its way out."""
    names = [name for d in daemons for name in d.names]
    return {p["metadata"]["name"]: p["metadata"]["uid"] for p in world.cluster.pods()
            if p["metadata"]["name"] in names and "deletionTimestamp" not in p["metadata"]}


def _check_planned(world, pool, going, moves, empty):
    """A node with nothing but daemons is empty; of another one they do not move."""
    world.admin.patch(f"{POOLS}/{pool}", {"spec": {"disruption": {"emptyAfter": "1s", "budgets": []}}})

    def planned():
        plan = json.loads(world.ctl("plan", "-o", "json").stdout)
        return [n["name"] for s in plan["steps"] if s["method"] == "Emptiness" for n in s["nodes"]]

    world.cluster.wait_for(lambda: planned() == [empty], LIMIT, f"the plan to have {empty} alone go, since it is empty", interval=0.1)
    without = json.loads(world.ctl("plan", "--without", going, "-o", "json").stdout)
    assert without["fits"] and sorted(m["pod"] for m in without["moves"]) == [f"default/{m}" for m in moves], without


# -- 05: a deadline and a Job

GRACE = 60  # seconds, of the Jobs' pods. Deadlines are a little more than that away, so that a slow machine has a minute.


class Job:
    """A Job that has no second try, but does not count disruptions; its pod is on a node, under a budget that wants it. The case plays
    its kubelet: the container ends with 143."""
    def __init__(self, world, name):
        self.world, self.name = world, name
        self.node = _node(world, name)
        self._path = "/apis/batch/v1/namespaces/default/jobs"
        world.admin.create(self._path, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
            "backoffLimit": 0, "podFailurePolicy": {"rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]},
            "template": {"metadata": {"labels": {"app": name}, "annotations": {"test.vesper.sh/stop": "never"}}, "spec": {
                "restartPolicy": "Never", "nodeSelector": {"e2e": name}, "terminationGracePeriodSeconds": GRACE,
                "containers": [{"name": "main", "image": "test"}], "automountServiceAccountToken": False}}}})
        world.cluster.wait_for(lambda: world.ready(name), LIMIT, f"the pod of {name}")
        self.pod = _names(world.ready(name))[0]
        _pdb(world, name, minAvailable=1)
        _pdb_counted(world, name, 1)

    def end(self):
        """Waits until the pod is to stop, and has it stop. Returns the condition that it had then."""
        path = f"{PODS}/{self.pod}"
        pod = self.world.cluster.wait_for(lambda: (lambda p: "deletionTimestamp" in p["metadata"] and p)(self.world.admin.get(path)), LIMIT,
                                          f"the end of {self.pod}")
        ended = {"name": "main", "image": "test", "imageID": "", "ready": False, "restartCount": 0,
                 "state": {"terminated": {"exitCode": 143, "reason": "Error"}}}
        self.world.admin.patch(f"{path}/status", {"status": {"phase": "Failed", "containerStatuses": [ended]}}, STRATEGIC_PATCH)
        self.world.admin.delete(path, {"gracePeriodSeconds": 0})
        return next((c for c in pod["status"]["conditions"] if c["type"] == "DisruptionTarget"), None)

    def wait_decided(self):
        """Waits until the Job has made another pod or has failed. Returns the types of its conditions that are true."""
        _node(self.world, self.name)

        def decided():
            job = self.world.admin.get(f"{self._path}/{self.name}")
            found = [c["type"] for c in job["status"].get("conditions", []) if c["status"] == "True"]
            return (found, ) if found or set(_names(self.world.ready(self.name))) - {self.pod} else None

        return self.world.cluster.wait_for(decided, LIMIT, f"Job {self.name} to go on")[0]

    def writes(self, calls, user):
        """The user's writes to the pod, in their order: verb, resource, status."""
        return [(c.verb, c.resource, c.status) for c in calls if c.user == user and c.name == self.pod and c.resource.startswith("pods")
                and c.is_write]


def job_at_a_deadline(world, figures):
    """reports, 05: pods of Jobs that a deadline ends: condition DisruptionTarget comes first, from the coordinator, vesperctl and the agent, and the Jobs go on"""
    pool = world.pool(world.unique("job"), grace=f"{GRACE + 6}s")
    by_hand, noticed = world.unique("job-by-hand"), world.unique("job-noticed")
    with contextlib.ExitStack() as stack:
        jobs = [Job(world, pool), Job(world, by_hand), Job(world, noticed)]
        stack.enter_context(_coordinator(world))
        metadata = stack.enter_context(world.metadata())
        stack.enter_context(world.agent(jobs[2].node, metadata)).wait_line("READY")
        world.wait_adopted(jobs[0].node)
        mark = world.audit.mark()
        world.delete_node(jobs[0].node)
        drain = stack.enter_context(Drain(world, jobs[1].node, f"--deadline={GRACE + 6}s"))
        metadata.interrupt(after=GRACE + 10)
        marks = [job.end() for job in jobs]
        decided = [job.wait_decided() for job in jobs]
        status, text = drain.wait()
        world.wait_gone(jobs[0].node)
        calls = world.calls(mark)
    writes = [job.writes(calls, user) for job, user in zip(jobs, (COORDINATOR, PERSON, f"system:node:{jobs[2].node}"))]
    figures.add(f"{marks[0]['reason']}: {marks[0]['message']}")
    assert [m and (m["status"], m["reason"]) for m in marks] == [("True", "DeletionByVesper")] * 3, marks
    for written in writes:
        assert written[-2:] == [("patch", "pods/status", 200), ("delete", "pods", 200)], written
        assert set(written[:-2]) <= {("create", "pods/eviction", 429)}, written
    assert decided == [[]] * 3, decided
    assert status == 0, text


# -- 07: a budget that cannot be counted


class Stores:
    """Pods of one budget on a node, whose controller is of a kind without the scale subresource."""
    def __init__(self, world, name):
        self.world, self.name = world, name
        self.node = _node(world, name)
        # CronJob stands for the kinds of operators, which kube-controller-manager knows only half a minute after their CRD was made.
        owner = world.admin.create("/apis/batch/v1/namespaces/default/cronjobs", {
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": {
                "schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": {"template": {"spec": {
                    "restartPolicy": "Never", "containers": [{"name": "main", "image": "test"}]}}}}}})
        self._owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": owner["metadata"]["uid"], "controller": True}
        self.pods = []

    def add_pods(self, count):
        self.pods = self.world.cluster.create_pods(self.node, count, prefix=f"{self.name}-store", labels={"app": self.name},
                                                   change=_owned_by(self._owner))
        self.world.cluster.wait_running(count, self.node)

    def set_budget(self, **spec):
        self.world.admin.patch(f"{PDBS}/{self.name}", {"spec": {"minAvailable": None, "maxUnavailable": None, **spec}})

    def wait_failed(self):
        """Waits until kube-controller-manager says that it cannot count."""
        def failed():
            conditions = self.world.admin.get(f"{PDBS}/{self.name}").get("status", {}).get("conditions", [])
            return any(c["type"] == "DisruptionAllowed" and (c["reason"], c["message"]) == ("SyncFailed", NOT_SCALED) for c in conditions)

        self.world.cluster.wait_for(failed, LIMIT, f"SyncFailed of PDB {self.name}")

    def check_told(self):
        """Waits until an Event and the claim have the reason. explain says first that no replicas help, and what does."""
        self.world.wait_event(self.node, "DrainBlocked", "PDBSyncFailed", NOT_SCALED, "a minAvailable that is a number")
        self.world.cluster.wait_for(lambda: {b["reason"] for b in self.world.claims(self.node)[0]["status"].get("blockers", [])} ==
                                    {"PDBSyncFailed"}, LIMIT, f"PDBSyncFailed in the claim of {self.node}")
        held, causes = _explain(self.world, self.node)
        first = causes[0]
        assert held == 3 and (first["reason"], first["object"]["name"]) == ("PDBSyncFailed", self.name), causes
        assert f"SyncFailed: {NOT_SCALED}." in first["message"] and first["figures"]["pods"] == len(self.pods), first
        assert "more replicas do not help" in first["fix"]["says"] and "a minAvailable that is a number" in first["fix"]["says"], first
        assert not [c for c in causes if c["reason"] in ("BlockedByPDB", "PDBNotObserved", "PDBNeverAllows")], causes
        return first["message"]


def _never_counted(world, name):
    """A budget that could never be counted."""
    stores = Stores(world, name)
    stores.add_pods(3)
    _pdb(world, name, maxUnavailable=1)
    return stores


def _counted_once(world, name):
    """A budget that was counted, and then changed."""
    stores = Stores(world, name)
    stores.add_pods(3)
    _pdb(world, name, minAvailable=3)
    _pdb_counted(world, name, 3)
    stores.set_budget(maxUnavailable=1)
    return stores


def _joined_by_one(world, name):
    """A budget that was counted, until another pod came."""
    stores, elsewhere = Stores(world, name), world.unique("elsewhere")
    _node(world, elsewhere)
    world.replicas(name, 3, elsewhere)
    _pdb(world, name, maxUnavailable=1)
    _pdb_counted(world, name, 3)
    stores.add_pods(1)
    return stores


def uncounted_budget(world, figures):
    """reports, 07: a budget that cannot be counted, from its beginning, after a change, or since a pod came: told in the words of its condition, and a number frees the node"""
    ours = [make(world, world.pool(world.unique("store"))) for make in (_never_counted, _counted_once, _joined_by_one)]
    by_hand = _never_counted(world, world.unique("store-by-hand"))
    for stores in *ours, by_hand:
        stores.wait_failed()
    with _coordinator(world):
        world.wait_adopted(*(s.node for s in ours))
        mark = world.audit.mark()
        for stores in ours:
            world.delete_node(stores.node)
        with Drain(world, by_hand.node) as drain:
            figures.add(" / ".join([stores.check_told() for stores in ours]))
            drain.wait_text(f"PDBSyncFailed {by_hand.name}")
            drain.wait_text(NOT_SCALED)
            _wait_evictions(world, mark, PERSON, 3)
            asked = {user: _evictions(world, mark, user) for user in (COORDINATOR, PERSON)}
            for stores in *ours, by_hand:
                stores.set_budget(minAvailable=0)
            status, text = drain.wait()
        for stores in ours:
            world.wait_gone(stores.node)
    assert {c.status for calls in asked.values() for c in calls} == {429}, asked
    assert sorted(c.name for c in asked[COORDINATOR]) == sorted(p for s in ours for p in s.pods), asked
    assert sorted(c.name for c in asked[PERSON]) == by_hand.pods, asked
    assert status == 0, text


# -- 14: evictions that a webhook makes dry runs


def eviction_made_a_dry_run(world, figures):
    """reports, 14: a webhook makes evictions dry runs: each pod is asked for once, and claim, Event and explain say that nothing happened"""
    pool, by_hand = world.pool(world.unique("graceful")), world.unique("graceful-by-hand")
    patch = base64.b64encode(json.dumps([{"op": "add", "path": "/deleteOptions", "value": {"dryRun": ["All"]}}]).encode()).decode()
    answer = {"allowed": True, "patchType": "JSONPatch", "patch": patch}
    nodes = {}
    for name in pool, by_hand:
        nodes[name] = _node(world, name)
        world.replicas(name, 3, name)
        _pdb(world, name, maxUnavailable=1)
        _pdb_counted(world, name, 3)
        _node(world, name)
    pods = {name: _names(world.pods_of(name)) for name in nodes}
    with EvictionWebhook(world, pool, lambda _: answer, mutates=True), _coordinator(world):
        world.wait_adopted(nodes[pool])
        mark = world.audit.mark()
        world.delete_node(nodes[pool])
        with Drain(world, nodes[by_hand]) as drain:
            world.cluster.wait_for(lambda: [b["reason"] for b in world.claims(nodes[pool])[0]["status"].get("blockers", [])] ==
                                   ["EvictionWithoutEffect"] * 3, LIMIT, "EvictionWithoutEffect in the claim")
            event = world.wait_event(nodes[pool], "DrainBlocked", "EvictionWithoutEffect")
            held, causes = _explain(world, nodes[pool])
            drain.wait_text("EvictionWithoutEffect")
            _wait_evictions(world, mark, PERSON, 3)
            for name, names in pods.items():
                assert _names(world.ready(name)) == names
                _delete(world, names)
            status, text = drain.wait()
        world.wait_gone(nodes[pool])
        calls = {name: _evictions(world, mark, user) for name, user in ((pool, COORDINATOR), (by_hand, PERSON))}
    figures.add(event["message"])
    told = {c["object"]["name"]: c["fix"]["says"] for c in causes if c["holds"] and c["reason"] == "EvictionWithoutEffect"}
    assert held == 3 and sorted(told) == pods[pool] and all("accepted and nothing happened" in says for says in told.values()), causes
    for name, found in calls.items():
        assert sorted(c.name for c in found) == pods[name] and {c.status for c in found} == {201}, found
    assert status == 0, text


CASES = [operator_lets_pass, operator_denies, live_migration, pod_names_its_node, foreign_daemons, job_at_a_deadline, uncounted_budget,
         eviction_made_a_dry_run]
