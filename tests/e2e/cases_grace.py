# SPDX-License-Identifier: Apache-2.0
"""What is promised of terminationGracePeriod, sentence by sentence: each row is a function whose docstring is the sentence,
played on nodes of its own. All rows go on at the same time, under one coordinator."""

import concurrent.futures
import time
import traceback

from daemons import LIMIT, seconds
from world import CLAIMS, COORDINATOR, POOLS

PROTECTED = {"vesper.sh/do-not-evict": "true"}
UNITS = "write whole numbers, each with its unit s, m or h"


class Row:
    """A pool with one node, and the pods that its sentence is about. tgp None: unset; pool False: it has no NodePool."""
    def __init__(self, world, name, tgp, pool=True):
        self.world, self.name, self.tgp = world, name, tgp
        if pool:
            world.pool(name, tgp)
        self.node, self.instance = world.node(name)
        self.mark = 0

    def pod(self, name, grace, blocked=True, annotations=None, stop="never"):
        """Its name. It ignores SIGTERM, and a PodDisruptionBudget allows none of it to go."""
        prefix = f"{self.name}-{name}"
        pod = self.world.cluster.create_pods(self.node, 1, prefix=prefix, grace=grace, stop=stop, annotations=annotations)[0]
        self.world.cluster.wait_running(1, self.node)
        if blocked:
            self.world.budget(prefix, prefix, 1)
        return pod

    def get_pod(self, name):
        return self.world.admin.find(f"/api/v1/namespaces/default/pods/{name}")

    def begin(self):
        """Deletes the Node."""
        self.mark = self.world.audit.mark()
        return self.world.delete_node(self.node)

    def claim(self):
        return next(iter(self.world.claims(self.node)), None)

    def deadline(self):
        """T as the claim's status has it, once it has."""
        def told():
            claim = self.claim()
            return claim and claim["status"].get("deadline")

        return seconds(self.world.cluster.wait_for(told, LIMIT, f"the deadline of {self.node}"))

    def deletes(self, pod):
        """The coordinator's own deletions of that pod."""
        return [c for c in self.world.calls(self.mark, COORDINATOR)
                if c.verb == "delete" and c.resource == "pods" and c.name == pod and c.status in (200, 202)]

    def wait_deleted(self, pod, what):
        return self.world.cluster.wait_for(lambda: self.deletes(pod), LIMIT, what)[0]

    def evicted(self):
        return [c for c in self.world.calls(self.mark, COORDINATOR)
                if c.is_eviction and c.name.startswith(self.name) and c.status == 201]

    def remove(self, pod):
        """Removes the pod as a kubelet does when it has ended."""
        self.world.admin.delete(f"/api/v1/namespaces/default/pods/{pod}", {"gracePeriodSeconds": 0})

    def wait_ended(self):
        """When the Node was gone; its instance has been told to end, once."""
        self.world.wait_gone(self.node)
        gone = time.time()
        assert self.world.ec2.state(self.instance) in ("shutting-down", "terminated"), self.instance
        assert len(self.world.ec2log.terminations(self.instance)) == 1, self.instance
        return gone


def rfc3339(at):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


# -- the rows: each makes what it needs, yields while the coordinator adopts, and goes on


def unset(world):
    """Unset, the controller waits for ever for pods to be drained, and says for whom."""
    row = Row(world, "unset", None)
    pod = row.pod("web", 1)
    later = Row(world, "unset-later", "8s")
    later.pod("web", 1)
    yield row
    row.begin()

    def held():
        claim = row.claim()
        return claim and claim["status"].get("blockers") and claim

    claim = world.cluster.wait_for(held, LIMIT, "the claim says who holds it")
    assert claim["status"]["phase"] == "Draining" and "deadline" not in claim["status"], claim["status"]
    assert claim["status"]["blockers"][0]["pod"] == f"default/{pod}", claim["status"]
    # Its budget needs it: once that has stood for a while, and was asked, it is said to hold.
    told = f"{row.node} waits for pod default/{pod} for ever: terminationGracePeriod is unset"
    world.cluster.wait_for(lambda: told in world.ctl("status").stdout, LIMIT, "status says that it waits for ever")
    world.wait_adopted(later.node)
    later.begin()
    later.wait_ended()
    assert "deletionTimestamp" not in row.get_pod(pod)["metadata"] and world.get_node(row.node), "it did not wait"


def zero(world):
    """0s instructs the controller to evict all pods by force immediately: budgets and do-not-evict are not asked."""
    row = Row(world, "zero", "0s")
    hour = 3600
    pods = [row.pod("web", hour), row.pod("opted-out", hour, blocked=False, annotations=PROTECTED), row.pod("free", hour, blocked=False)]
    yield row
    row.begin()
    row.wait_ended()  # The Node ends before the pods' grace of an hour.
    for pod in pods:
        calls = row.deletes(pod)
        assert calls, f"{pod} was not deleted"
        assert calls[0].body["gracePeriodSeconds"] <= 1, (pod, calls[0].body)
    assert not row.evicted(), row.evicted()


def of_the_claim_deleted_first(world):
    """The NodeClaim's deletionTimestamp is what counts, not the Node's: here the claim was deleted first, and nobody led."""
    row = Row(world, "of-claim", "1h")
    pod = row.pod("web", 1)
    yield row
    world.admin.delete(f"{CLAIMS}/{row.claim()['metadata']['name']}")
    yield row
    world.cluster.wait_for(lambda: "deletionTimestamp" in world.get_node(row.node)["metadata"], LIMIT, "the Node is deleted, too")
    _check_measured(world, row, 3600)
    row.remove(pod)
    row.wait_ended()


def of_the_claim_deleted_last(world):
    """The NodeClaim's deletionTimestamp is what counts, not the Node's: here the Node was deleted first, and nobody led."""
    row = Row(world, "of-node", "1h")
    pod = row.pod("web", 1)
    yield row
    row.begin()
    yield row
    _check_measured(world, row, 3600)
    row.remove(pod)
    row.wait_ended()


def _check_measured(world, row, tgp):
    deadline = row.deadline()
    claim, node = row.claim()["metadata"], world.get_node(row.node)["metadata"]
    assert claim["deletionTimestamp"] != node["deletionTimestamp"], "both were deleted in the same second"
    assert deadline == seconds(claim["deletionTimestamp"]) + tgp, (deadline, claim)


def grace_longer(world):
    """A pod whose terminationGracePeriodSeconds is greater than the NodeClaim's is deleted as soon as the Node begins disruption."""
    row = Row(world, "longer", "1h")
    pod = row.pod("web", 2 * 3600)
    yield row
    row.begin()
    call = row.wait_deleted(pod, "the deletion, an hour before the deadline")
    assert 3600 - LIMIT <= call.body["gracePeriodSeconds"] <= 3600, call.body
    row.remove(pod)
    row.wait_ended()


def grace_fits(world):
    """A pod is deleted at T = node timeout - its terminationGracePeriodSeconds, whatever its budget or do-not-evict says; the Node
    has an Event that says when it goes, and the pod one that says who deletes it, and why."""
    grace = 20
    row = Row(world, "fits", "30s")
    pods = [row.pod("web", grace), row.pod("opted-out", grace, blocked=False, annotations=PROTECTED)]
    yield row
    row.begin()
    deadline = row.deadline()
    world.wait_event(row.node, "TerminationDeadline", f"Node goes at {rfc3339(deadline)} whatever is left", "terminationGracePeriod")
    warnings = {pod: world.wait_event(pod, "DeletionAtDeadline", f"Node {row.node} is being removed and goes at {rfc3339(deadline)}")
                for pod in pods}
    for pod in pods:
        call = row.wait_deleted(pod, "the deletion that its grace asks for")
        assert seconds(warnings[pod]["metadata"]["creationTimestamp"]) <= call.received, f"{pod} was deleted before it was warned"
        # Not before its time; and not as late as T, where nothing is left of its grace.
        assert -0.1 <= call.received - (deadline - grace) < grace, f"{pod} was deleted {deadline - call.received} s before T"
        world.wait_event(pod, "PodDeletedAtDeadline", f"Node {row.node} goes at {rfc3339(deadline)}", f"a grace of {grace} s")
        row.remove(pod)
    row.wait_ended()


def already_terminating(world):
    """A pod that is terminating already and would outlive T is deleted again, with less grace."""
    row = Row(world, "terminating", "10s")
    pod = row.pod("web", 300, blocked=False)
    yield row
    world.admin.delete(f"/api/v1/namespaces/default/pods/{pod}")
    assert row.get_pod(pod)["metadata"]["deletionGracePeriodSeconds"] == 300
    row.begin()
    call = row.wait_deleted(pod, "the second deletion")
    assert call.body["gracePeriodSeconds"] <= 10, call.body
    row.wait_ended()


def at_the_end(world):
    """Once the terminationGracePeriod is exceeded, the node is removed from the cloud provider, whatever is left on it."""
    row = Row(world, "at-end", "15s")
    pod = row.pod("stuck", 1)
    yield row
    row.begin()
    deadline = row.deadline()
    gone = row.wait_ended()
    world.wait_event(row.node, "DeadlinePassed", pod)
    assert gone >= deadline - 0.1, gone - deadline


def by_hand(world):
    """A cluster-admin ends it prematurely: kubectl delete node, then kubectl drain --grace-period=0 --disable-eviction=true."""
    row = Row(world, "by-hand", None)
    pods = [row.pod("web", 60), row.pod("opted-out", 60, blocked=False, annotations=PROTECTED)]
    yield row
    row.begin()
    world.cluster.wait_for(lambda: row.claim()["status"].get("blockers"), LIMIT, "the claim says who holds it")
    world.cluster.kubectl("drain", row.node, "--grace-period=0", "--disable-eviction=true", "--force")
    row.wait_ended()
    assert not any(row.deletes(pod) for pod in pods) and not row.evicted()


def template_changed(world):
    """A NodePool's template may change: claims that exist keep what they were made with, new ones get the new value."""
    row = Row(world, "template", "1h")
    yield row
    world.admin.patch(f"{POOLS}/{row.name}", {"spec": {"template": {"terminationGracePeriod": "7s"}}})
    node, _ = world.node(row.name)
    world.wait_adopted(node)
    assert row.claim()["spec"]["terminationGracePeriod"] == "1h"
    assert world.claims(node)[0]["spec"]["terminationGracePeriod"] == "7s"


def no_pool(world):
    """Users of NodeClaims without NodePools take advantage of it, too: deleting such a claim removes its Node within its own."""
    row = Row(world, "no-pool", None, pool=False)
    row.pod("stuck", 1)
    _standalone(world, row, "no-pool", "15s")
    yield row
    _standalone(world, row, "no-pool-twin", "0s")
    _wait_refused(world, "no-pool-twin", "ClaimsConflict")
    world.admin.delete(f"{CLAIMS}/no-pool-twin")
    world.cluster.wait_for(lambda: world.admin.find(f"{CLAIMS}/no-pool-twin") is None, LIMIT, "the end of the twin")
    claim = world.admin.get(f"{CLAIMS}/no-pool")
    assert claim["status"]["phase"] == "Adopted" and claim["status"]["identity"]["method"], claim
    row.mark = world.audit.mark()
    deleted = world.admin.delete(f"{CLAIMS}/no-pool")
    deadline = row.deadline()
    assert deadline == seconds(deleted["metadata"]["deletionTimestamp"]) + 15, (deadline, deleted)
    gone = row.wait_ended()
    assert gone >= deadline - 0.1, gone - deadline


def pool_goes_first(world):
    """A claim of a machine that a NodePool has adopted is not acted on, and says so; deleting it ends nothing."""
    row = Row(world, "pool-first", None)
    yield row
    _standalone(world, row, "latecomer", "0s")
    _wait_refused(world, "latecomer", "ClaimOfPool")
    world.wait_event("latecomer", "NotAdopted", "NodePool pool-first")
    said = world.ctl("status").stdout
    assert any(line.startswith("(latecomer)") and "NotAdopted" in line for line in said.splitlines()), said
    world.admin.delete(f"{CLAIMS}/latecomer")
    world.cluster.wait_for(lambda: world.admin.find(f"{CLAIMS}/latecomer") is None, LIMIT, "the end of the claim that came late")
    # When the coordinator refuses the next claim, it has handled the end of this one.
    _standalone(world, row, "later-still", "0s")
    _wait_refused(world, "later-still", "ClaimOfPool")
    assert "deletionTimestamp" not in world.get_node(row.node)["metadata"] and row.claim()


def _standalone(world, row, name, tgp):
    world.admin.create(CLAIMS, {
        "apiVersion": "vesper.sh/v1alpha1", "kind": "NodeClaim", "metadata": {"name": name},
        "spec": {"providerID": world.get_node(row.node)["spec"]["providerID"], "terminationGracePeriod": tgp}
    })


def _wait_refused(world, name, reason):
    def refused():
        status = world.admin.get(f"{CLAIMS}/{name}").get("status", {})
        return any(c["type"] == "vesper.sh/NotAdopted" and c["status"] == "True" and c["reason"] == reason
                   for c in status.get("conditions", []))

    world.cluster.wait_for(refused, LIMIT, f"{name} says {reason}")


ROWS = [unset, zero, of_the_claim_deleted_first, of_the_claim_deleted_last, grace_longer, grace_fits, already_terminating,
        at_the_end, by_hand, template_changed, no_pool, pool_goes_first]
LEADERLESS = (of_the_claim_deleted_first, of_the_claim_deleted_last)


def _server_time(world):
    """The second of the API server's clock, as it would write it into an object."""
    made = world.admin.create("/api/v1/namespaces?dryRun=All", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "now"}})
    return made["metadata"]["creationTimestamp"]


def _end(row):
    for _ in row:
        raise AssertionError("a row yielded too often")


def grace_sentences(world, figures):
    """terminationGracePeriod: each sentence that is promised of it, on nodes of its own"""
    rows = {make: make(world) for make in ROWS}
    beds = [next(row) for row in rows.values()]
    with world.coordinator("first") as first:
        first.wait_line("LEASE_ACQUIRED")
        world.wait_adopted(*(bed.node for bed in beds))
        first.stop()
    for make in LEADERLESS:
        next(rows[make])
    # The second half of such a removal begins in another second of the server's clock.
    begun = _server_time(world)
    world.cluster.wait_for(lambda: _server_time(world) > begun, LIMIT, "the next second")
    with world.coordinator("grace") as leader:
        leader.wait_line("LEASE_ACQUIRED")
        with concurrent.futures.ThreadPoolExecutor(len(rows)) as together:
            played = {make: together.submit(_end, row) for make, row in rows.items()}
        failed = 0
        for make, future in played.items():
            trouble = future.exception()
            failed += trouble is not None
            sentence = " ".join(make.__doc__.split())
            figures.add(f"{'FAILED' if trouble else 'ok'}  {make.__name__}: {sentence}")
            for line in traceback.format_exception(trouble)[-3:] if trouble else ():
                figures.add(f"  {line.strip()}")
    assert not failed, f"{failed} of {len(rows)} sentences do not hold"


# -- what the API server refuses


def _claim(tgp, **more):
    return CLAIMS, {
        "apiVersion": "vesper.sh/v1alpha1", "kind": "NodeClaim", "metadata": {"name": "refused"},
        "spec": {"providerID": "aws:///us-east-1a/i-0", "terminationGracePeriod": tgp, **more}
    }


def _pool(tgp):
    return POOLS, {
        "apiVersion": "vesper.sh/v1alpha1", "kind": "NodePool", "metadata": {"name": "refused"},
        "spec": {"selector": {"matchLabels": {"e2e": "refused"}}, "template": {"terminationGracePeriod": tgp}}
    }


def grace_refused(world, figures):
    """terminationGracePeriod: what is no duration, or would change a claim, is refused with a text that says what to write"""
    admin = world.admin
    for make in (_claim, _pool):
        for tgp in ("0", "30", "-5s", "soon", "1.5h", "1d", "", "10S", " 5s"):
            path, body = make(tgp)
            status, answer = admin.request("POST", path, body)
            assert status == 422 and UNITS in answer["message"], (tgp, status, answer)
        for tgp in ("0s", "90s", "1h30m", "24h"):
            path, body = make(tgp)
            admin.create(path, body)
            admin.delete(f"{path}/refused")
    changes = (
        ({"terminationGracePeriod": "2h"}, "terminationGracePeriod is immutable"),
        ({"terminationGracePeriod": None}, "terminationGracePeriod is immutable"),
        ({"nodePool": "another"}, "nodePool is neither added to a claim nor taken away"),
        ({"providerID": "aws:///us-east-1a/i-1"}, "providerID is immutable"),
    )
    path, body = _claim("1h")
    admin.create(path, body)
    for change, text in changes:
        status, answer = admin.request("PATCH", f"{path}/refused", {"spec": change})
        assert status == 422 and text in answer["message"], (change, status, answer)
    admin.delete(f"{path}/refused")
    path, body = _claim("1h", nodePool="some")
    admin.create(path, body)
    status, answer = admin.request("PATCH", f"{path}/refused", {"spec": {"nodePool": None}})
    assert status == 422 and changes[2][1] in answer["message"], (status, answer)
    admin.delete(f"{path}/refused")
    figures.add("9 texts refused, 4 taken, of claim and pool; no part of a claim's identity changes")


CASES = [grace_refused, grace_sentences]
