# SPDX-License-Identifier: Apache-2.0
"""A node is interrupted, and provider "exec" launches a machine in its place."""

import contextlib
import time
import zlib

from daemons import LIMIT
from machines import Machines
from world import POOLS


class Replaced:
    """A pool with one node, which has an agent and, if `held`, a pod that does not end before release()."""
    def __init__(self, world, name, held=False, **disruption):
        self.world = world
        self.machines = Machines(world.directory, world.unique(name))
        self.pool = world.unique(name)
        self.instance = f"i-{zlib.crc32(self.pool.encode()):017x}"
        self.provider_id = f"aws:///us-east-1a/{self.instance}"
        self.node = self.join(self.provider_id)
        self.pods = world.cluster.create_pods(self.node, 1, prefix=self.node, grace=60, stop="never") if held else []
        world.pool(self.pool, provider={"name": "exec"}, disruption={"onInterruption": "Replace", **disruption})
        self.old = None  # name of the node's NodeClaim
        self.agent = None

    def join(self, provider_id):
        return self.world.node(self.pool, provider_id)[0]

    @contextlib.contextmanager
    def coordinators(self, count=1):
        with self.world.coordinators(count, provider="exec", command=self.machines.command) as found:
            self.world.wait_adopted(self.node)
            self.old = self.world.claims(self.node)[0]["metadata"]["name"]
            yield found

    def interrupt(self, stack):
        """The agent receives a spot notice. Returns when that could be seen."""
        metadata = stack.enter_context(self.world.metadata(self.instance))
        self.agent = stack.enter_context(self.world.agent(self.node, metadata))
        self.agent.wait_line("READY")
        metadata.interrupt()
        return time.time()

    def release(self):
        for pod in self.pods:
            self.world.admin.delete(f"/api/v1/namespaces/default/pods/{pod}", {"gracePeriodSeconds": 0})

    def wait_old_gone(self):
        self.world.wait_gone(self.node)
        self.world.cluster.wait_for(lambda: not self.world.claims(self.node), LIMIT, "the end of the NodeClaim")

    def claim(self, attempt=1):
        found = [c for c in self.world.claims()
                 if c["spec"].get("replaces") == [self.old] and c["spec"].get("attempt", 1) == attempt]
        assert len(found) <= 1, found
        return found[0] if found else None

    def wait_claim(self, condition, what, attempt=1):
        """Until that successor is there and condition(claim) is true. Returns it."""
        def holds():
            claim = self.claim(attempt)
            return claim if claim and condition(claim) else None

        return self.world.cluster.wait_for(holds, LIMIT, f"{what}, attempt {attempt}, of {self.node}")

    def wait_launched(self, attempt=1):
        return self.wait_claim(lambda c: "providerID" in c["spec"], "the machine", attempt)

    def wait_initialized(self, attempt=1):
        return self.wait_claim(lambda c: condition(c, "Initialized").get("status") == "True", "a node that takes pods", attempt)


def condition(claim, kind):
    """That condition of the claim, or {}."""
    return next((c for c in claim.get("status", {}).get("conditions", []) if c["type"] == kind), {})


def successor_ready(world, figures):
    """a spot notice: the new machine's node takes pods while the old node still drains; the old machine ends after that"""
    r = Replaced(world, "replaced", held=True)
    with contextlib.ExitStack() as stack:
        leader, = stack.enter_context(r.coordinators())
        noticed = r.interrupt(stack)
        claim = r.wait_launched()
        name, token = claim["metadata"]["name"], claim["status"]["group"]["token"]
        new = r.join(claim["spec"]["providerID"])
        claim = r.wait_initialized()
        assert claim["status"]["phase"] == "Adopted" and claim["status"]["nodeName"] == new, claim
        assert condition(claim, "Launched")["status"] == "True", claim
        assert world.get_node(r.node) and world.cluster.pods(r.node), "the old node did not wait for its pod"
        assert not r.machines.calls("terminate"), "the old machine did not wait for its pod"
        for node, other in ((r.node, name), (new, r.node)):
            world.wait_event(node, "SuccessorReady", other)
        world.wait_event(r.node, "SuccessorAsked", name)
        r.release()
        r.wait_old_gone()
        request, = r.machines.calls("launch")
        assert r.claim()["metadata"]["name"] == name
        assert len(leader.named("SUCCESSOR_ASKED")) == 1
    assert request["opId"] == token and request["like"] == r.provider_id, request
    assert (request["zone"], request["pool"]) == ("us-east-1a", r.pool), request
    assert [c["providerID"] for c in r.machines.calls("terminate")] == [r.provider_id]
    figures.add(f"notice -> launch: {request['time'] - noticed:.2f} s")


def launch_leader_killed(world, figures):
    """the leader is killed while it waits for the answer to a launch: the next one finds the machine, and launches no other"""
    r = Replaced(world, "handed")
    with contextlib.ExitStack() as stack:
        leader, standby = stack.enter_context(r.coordinators(2))
        with r.machines.slow():
            r.interrupt(stack)
            world.cluster.wait_for(lambda: r.machines.calls("launch"), LIMIT, "the launch")
            leader.kill()
        # The machine becomes a node while nobody knows that it is there.
        new = r.join(r.machines.launched_id(r.machines.calls("launch")[0]))
        standby.wait_line("LEASE_ACQUIRED")
        claim = r.wait_initialized()
        world.wait_event(new, "SuccessorReady", "takes pods in place of")
        r.wait_old_gone()
        finds, launches = r.machines.calls("find"), r.machines.calls("launch")
    assert finds and {c["opId"] for c in finds + launches} == {claim["status"]["group"]["token"]}, (finds, launches)
    assert condition(claim, "Launched")["status"] == "True" and claim["status"]["nodeName"] == new, claim
    assert len(launches) == 1 and r.machines.launched() == 1, launches
    figures.add(f"the next leader asked {len(finds)} times for the machine of the launch")


def no_capacity(world, figures):
    """the cloud has no machine: Events and the condition LaunchFailing have its words; then it has one, which joins"""
    r, words = Replaced(world, "scarce", held=True), "all racks of this room are full"
    with contextlib.ExitStack() as stack:
        stack.enter_context(r.coordinators())
        with r.machines.answer("noCapacity", words):
            r.interrupt(stack)
            claim = r.wait_claim(lambda c: condition(c, "LaunchFailing").get("status") == "True", "LaunchFailing")
            world.cluster.wait_for(lambda: len(r.machines.calls("launch")) >= 2, LIMIT, "another launch")
            world.wait_event(claim["metadata"]["name"], "NoCapacity", words)
            world.wait_event(r.node, "NoCapacity", claim["metadata"]["name"], words)
        assert condition(claim, "LaunchFailing")["message"] == words and claim["status"]["group"]["answer"] == "noCapacity", claim
        r.join(r.wait_launched()["spec"]["providerID"])
        claim = r.wait_initialized()
        r.release()
        r.wait_old_gone()
    launches = r.machines.calls("launch")
    assert condition(claim, "LaunchFailing")["status"] == "False", claim
    assert len({c["opId"] for c in launches}) == 1 and r.machines.launched() == 1, launches
    figures.add(f"launches until the cloud had a machine: {len(launches)}")


def never_joins(world, figures):
    """a machine that becomes no node within launchTimeout is ended; the next one is launched after that, and joins"""
    r = Replaced(world, "lost", launchTimeout="3s")
    with contextlib.ExitStack() as stack:
        stack.enter_context(r.coordinators())
        r.interrupt(stack)
        lost = r.wait_launched()
        r.wait_claim(lambda c: "deletionTimestamp" in c["metadata"], "the end of the claim")
        world.admin.patch(f"{POOLS}/{r.pool}", {"spec": {"disruption": {"launchTimeout": "15m"}}})
        world.wait_event(lost["metadata"]["name"], "LaunchTimeout", lost["spec"]["providerID"])
        # The claim has no Node: the coordinator ends the machine when that has been so for two minutes.
        r.join(r.wait_launched(2)["spec"]["providerID"])
        r.wait_initialized(2)
        r.wait_old_gone()
        world.cluster.wait_for(lambda: not r.claim(), LIMIT, "the end of the first claim")
    first, second = r.machines.calls("launch")
    ended = r.machines.calls("terminate", providerID=lost["spec"]["providerID"])
    assert len(ended) == 1 and ended[0]["time"] < second["time"], (ended, second)
    assert first["opId"] != second["opId"] and second["like"] == r.provider_id, (first, second)
    figures.add(f"launched {second['time'] - first['time']:.1f} s after the first, which was ended {ended[0]['time'] - first['time']:.1f} s after its launch")


CASES = [successor_ready, launch_leader_killed, no_capacity, never_joins]
