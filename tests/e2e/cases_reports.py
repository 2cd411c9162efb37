# SPDX-License-Identifier: Apache-2.0
"""Situations that people reported of other projects in public: operators that move their pods when an eviction is asked for, pods that
come back onto a cordoned node, daemons of other API groups, Jobs at a deadline, budgets that cannot be counted."""

import contextlib
import json
import subprocess

from daemons import LIMIT, procs, program
from evictionhook import EvictionWebhook
from world import COORDINATOR, PDBS, FewestReady

PERSON = "drainer"
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


CASES = [operator_lets_pass, operator_denies, live_migration]
