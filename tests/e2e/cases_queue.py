# SPDX-License-Identifier: Apache-2.0
"""The interruption queue: moto's SQS, nodes without an agent."""

import json
import time

from daemons import LIMIT
from sqs import Queue, event
from world import CLAIMS

NODES = 50


def _nodes(world, count):
    """A pool with so many nodes, each with an instance; (node, instance) of each."""
    pool = world.pool(world.unique("queue"))
    instances = world.ec2.create_instances(count)
    names = world.cluster.create_nodes(count, world.unique(pool), instances, {"e2e": pool})
    return list(zip(names, instances))


def _told(world, instances):
    """Those whose claim is being deleted and says why; instance -> the first notice."""
    found = {}
    for claim in world.admin.get(CLAIMS)["items"]:
        instance = claim["spec"].get("providerID", "").rpartition("/")[2]
        text = claim["metadata"].get("annotations", {}).get("vesper.sh/announced")
        if instance in instances and text and "deletionTimestamp" in claim["metadata"]:
            found[instance] = json.loads(text)["notices"][0]
    return found


def _gone_or_told(world, nodes):
    """Those whose claim says so, or whose Node has ended for it."""
    told = _told(world, {i for _, i in nodes})
    left = {c["spec"]["providerID"].rpartition("/")[2] for c in world.admin.get(CLAIMS)["items"]}
    return {i for _, i in nodes if i in told or i not in left}


def _held(world, nodes):
    """Those whose notice the brake of the queue holds."""
    instances = {i for _, i in nodes}
    found = set()
    for claim in world.admin.get(CLAIMS)["items"]:
        instance = claim["spec"].get("providerID", "").rpartition("/")[2]
        text = claim["metadata"].get("annotations", {}).get("vesper.sh/announced")
        if instance in instances and text and all(n.get("state") == "Held" for n in json.loads(text)["notices"]):
            found.add(instance)
    return found


def _let_go(world, nodes):
    """A person says that AWS takes all of them."""
    done = world.ctl("let-go", "--all", "--yes")
    assert done.returncode == 0, (done.stdout, done.stderr)
    world.cluster.wait_for(lambda: len(_gone_or_told(world, nodes)) == len(nodes), LIMIT, "all claims are deleted")


def queue_spot(world, figures):
    """queue: 50 spot notices through the queue alone: ten machines go, the brake holds forty until EC2 or a person confirms them"""
    nodes = _nodes(world, NODES)
    queue = Queue(world.ec2, world.unique("queue"))
    for node, _ in nodes:
        world.cluster.create_pods(node, 1, prefix=node, stop="never")
    with world.coordinators(1, **{"Queue.Url": queue.url}) as (leader, ):
        world.wait_adopted(*[n for n, _ in nodes])
        begin = time.time()
        queue.send(*[queue.spot(i) for _, i in nodes])
        world.cluster.wait_for(lambda: len(_told(world, {i for _, i in nodes})) + len(_held(world, nodes)) == NODES, LIMIT, "all notices are written")
        took = time.time() - begin
        told = _told(world, {i for _, i in nodes})
        assert len(told) == 10, f"{len(told)} claims are deleted"
        for instance, notice in told.items():
            assert notice["kind"] == "spot" and notice["action"] == "terminate", (instance, notice)
            at = time.strptime(notice["deadline"][:19], "%Y-%m-%dT%H:%M:%S")
            ahead = time.mktime(at) - time.timezone - begin
            assert 115 <= ahead <= 125 + took, f"{instance}: its deadline is {ahead:.0f} s ahead"
        world.cluster.wait_for(
            lambda: all("vesper.sh/deadline" in world.get_node(n)["metadata"]["annotations"] for n, i in nodes if i in told), LIMIT,
            "each node tells its deadline")
        held = next(n for n, i in nodes if i not in told)
        world.wait_condition(held, "DrainInProgress")
        explained = world.ctl("explain", held)
        assert f"vesperctl let-go {held}" in explained.stdout, explained
        shown = world.ctl("let-go", held)
        assert shown.returncode == 1 and not world.claims(held)[0]["metadata"].get("deletionTimestamp"), shown
        taken = dict(nodes)[held]
        world.ec2.terminate(taken)
        world.cluster.wait_for(lambda: taken in _gone_or_told(world, nodes), LIMIT, "the claim is deleted that EC2 confirms")
        assert len(_gone_or_told(world, nodes)) == 11, _gone_or_told(world, nodes)
        _let_go(world, nodes)
        world.cluster.wait_for(lambda: queue.left() == 0, LIMIT, "the queue is empty")
        world.wait_event(nodes[0][0], "InterruptionAnnounced")
    figures.add(f"sent -> 10 claims deleted with their deadline, and {NODES - 10} notices held: {took:.2f} s")


def queue_odd(world, figures):
    """queue: repeated, advisory, unknown and unreadable messages; a node that joins after its notice"""
    (node, instance), (other, other_instance) = _nodes(world, 2)
    queue = Queue(world.ec2, world.unique("queue"))
    pool = world.unique("late")
    late = world.ec2.create_instance()
    with world.coordinators(1, **{"Queue.Url": queue.url}) as (leader, ):
        world.wait_adopted(node, other)
        same = queue.spot(instance)
        queue.send(same, same, queue.spot(instance, "stop"), queue.rebalance(other_instance), queue.rebalance("i-0123456789abcdef0"),
                   event("aws.ec2", "EC2 Something New", {}, queue.region), queue.spot(late), "no JSON")
        world.wait_gone(node)
        world.wait_event(other, "NoticeReported")
        world.cluster.wait_for(lambda: queue.left() == 2, LIMIT, "what nobody knows and what nobody can read are left")
        assert world.get_node(other) and not world.get_node(other)["spec"].get("unschedulable")
        world.pool(pool)
        world.cluster.create_nodes(1, pool, [late], {"e2e": pool})
        world.cluster.wait_for(lambda: world.claims(f"{pool}-0"), LIMIT, "it is adopted")
        begin = time.monotonic()
        world.cluster.wait_for(lambda: queue.left() == 1 and _gone_or_told(world, [(pool, late)]), LIMIT, "the node that joined is deleted, too")
        figures.add(f"joined -> its notice acted upon after {time.monotonic() - begin:.1f} s")
        leader.wait_line("QUEUE_POISON")
        assert queue.left() == 1, "what cannot be read was deleted"
        leader.stop()
    assert not world.claims(other) or "deletionTimestamp" not in world.claims(other)[0]["metadata"]


def queue_leader_killed(world, figures):
    """queue: the leader is killed in the middle of 50 notices; the next one loses none"""
    nodes = _nodes(world, NODES)
    queue = Queue(world.ec2, world.unique("queue"))
    with world.coordinators(**{"Queue.Url": queue.url}) as (leader, other):
        world.wait_adopted(*[n for n, _ in nodes])
        begin = time.monotonic()
        queue.send(*[queue.spot(i) for _, i in nodes[:NODES // 2]])
        world.cluster.wait_for(lambda: _gone_or_told(world, nodes), LIMIT, "the first claim is told")
        leader.kill()
        before = len(_gone_or_told(world, nodes))
        queue.send(*[queue.spot(i) for _, i in nodes[NODES // 2:]])
        world.cluster.wait_for(lambda: len(_gone_or_told(world, nodes) | _held(world, nodes)) == NODES, LIMIT, "all notices are written")
        figures.add(f"killed after {before} of {NODES}; all written {time.monotonic() - begin:.1f} s after they were sent, {len(_held(world, nodes))} of them held")
        _let_go(world, nodes)
        world.cluster.wait_for(lambda: queue.left() == 0, LIMIT, "the queue is empty")
        assert other.named("LEASE_ACQUIRED")


def _heard(world, node):
    """How far the Node's drain for the queue is; None: there is none."""
    text = world.get_node(node)["metadata"].get("annotations", {}).get("vesper.sh/heard")
    return json.loads(text) if text else None


def _has_phase(world, node, phase):
    return (_heard(world, node) or {}).get("phase") == phase


def _held_by(world, node):
    """Reason and PDB, as vesperctl status says them."""
    rows = json.loads(world.ctl("status", node, "-o", "json").stdout)["nodes"]
    return rows and (rows[0].get("heldBy", {}).get("reason"), rows[0].get("heldBy", {}).get("pdb"))


def queue_unmanaged(world, figures):
    """queue: nodes of no pool, Unmanaged=drain: one is drained and its machine left, one is opened by vesperctl undrain while a PDB holds it"""
    prefix = world.unique("free")
    instances = world.ec2.create_instances(2)
    node, held = world.cluster.create_nodes(2, prefix, instances)
    queue = Queue(world.ec2, world.unique("queue"))
    world.cluster.create_pods(node, 3, prefix=node, stop=1)
    world.cluster.create_pods(held, 1, prefix=held)
    world.cluster.wait_running(4)
    world.budget(held, held, 1)
    with world.coordinators(1, **{"Queue.Url": queue.url, "Queue.Unmanaged": "drain"}):
        begin = time.monotonic()
        queue.send(*[queue.spot(i) for i in instances])
        world.cluster.wait_for(lambda: _has_phase(world, node, "Drained"), LIMIT, "its Node says that it is drained")
        figures.add(f"sent -> a node of no pool is drained after {time.monotonic() - begin:.1f} s")
        assert not world.cluster.pods(node), "pods are left on the drained node"
        found = world.get_node(node)
        assert found["spec"]["unschedulable"] and not found["metadata"].get("finalizers"), found["metadata"]
        assert "vesper.sh/interruption" not in found["metadata"]["annotations"], "that is the agent's"
        world.wait_event(node, "Drained")
        said = world.wait_condition(node, "Drained")
        assert said["reason"] == "VesperCoordinator" and ": 3 evicted" in said["message"], said
        assert (world.condition(node, "DrainInProgress") or {}).get("status") != "True", world.condition(node, "DrainInProgress")
        world.wait_event(held, "DrainBlocked")
        world.wait_condition(held, "DrainInProgress")
        explained = world.ctl("explain", held)
        assert explained.returncode == 3 and f"PodDisruptionBudget default/{held}" in explained.stdout, explained
        assert "drains it for its interruption queue" in explained.stdout, explained.stdout
        assert _held_by(world, held) in (("QueueDrains", None), ("BlockedByPDB", f"default/{held}"), ("PDBNeverAllows", f"default/{held}")), world.ctl("status", held)
        done = world.ctl("undrain", held)
        assert done.returncode == 0 and done.stdout == f"Node {held} is schedulable again.\n", (done.stdout, done.stderr)
        world.cluster.wait_for(lambda: not _heard(world, held), LIMIT, "the drain of the opened node stops")
        said = world.wait_condition(held, "DrainInProgress", "False")
        assert "made it schedulable" in said["message"], said
        world.cluster.wait_for(lambda: queue.left() == 0, LIMIT, "the queue is empty")
    opened = world.get_node(held)
    assert not opened["spec"].get("unschedulable") and "vesper.sh/cordoned-by-coordinator" not in opened["metadata"]["annotations"], opened["metadata"]
    assert len(world.cluster.pods(held)) == 1, "a pod of the opened node was evicted"
    assert not world.claims(node) and not world.claims(held)
    assert [world.ec2.state(i) for i in instances] == ["running", "running"]


def _open(world, node):
    found = world.get_node(node)
    return not found["spec"].get("unschedulable") and not _heard(world, node)


def queue_kept(world, figures):
    """queue: a hibernation, a reboot that is called off, a retirement: drained and kept, opened again; ended when it is near"""
    (stops, first), (reboots, second), (retires, third) = _nodes(world, 3)
    queue = Queue(world.ec2, world.unique("queue"))
    for node in (stops, reboots):
        world.set_boot(node, f"{node}-1")
        world.cluster.create_pods(node, 2, prefix=node, stop=1)
    world.cluster.wait_running(4)
    with world.coordinators(1, **{"Queue.Url": queue.url, "Interruption.BeforeSec": "1min"}):
        world.wait_adopted(stops, reboots, retires)
        queue.send(queue.spot(first, "hibernate"), queue.change(second, "r1", 66), queue.change(third, "r2", 66, code="AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"))
        world.cluster.wait_for(lambda: _has_phase(world, stops, "Drained"), LIMIT, "the node of the instance that hibernates is drained")
        assert "MaintenanceWindow" == world.wait_condition(reboots, "MaintenancePlanned")["reason"]
        claim = world.claims(reboots)[0]["metadata"]
        assert [n["action"] for n in json.loads(claim["annotations"]["vesper.sh/announced"])["notices"]] == ["reboot"], claim
        explained = world.ctl("explain", reboots)
        assert "announced a change of its machine (maintenance, reboot)" in explained.stdout, explained
        for node in (stops, reboots, retires):
            world.wait_event(node, "InterruptionAnnounced")
        # It stops: nothing more is done, and nobody ends it.
        queue.send(queue.state(first, "stopping"))
        world.wait_event(stops, "NoticeReported", "state-change, stopping")
        assert _has_phase(world, stops, "Drained") and not world.cluster.pods(stops)
        world.cluster.wait_for(lambda: _has_phase(world, reboots, "Drained"), LIMIT, "a minute before its reboot the node is drained")
        queue.send(queue.change(second, "r1", 50, status="closed"))
        world.cluster.wait_for(lambda: _open(world, reboots), LIMIT, "called off: the node is open again")
        world.set_boot(stops, f"{stops}-2")
        world.cluster.wait_for(lambda: _open(world, stops), LIMIT, "its machine is back: the node is open again")
        world.cluster.wait_for(lambda: not world.get_node(retires), LIMIT, "the retired one is gone")
        world.cluster.wait_for(lambda: queue.left() == 0, LIMIT, "the queue is empty")
    assert not any("deletionTimestamp" in c["metadata"] for n in (stops, reboots) for c in world.claims(n))
    assert [world.ec2.state(i) for i in (first, second)] == ["running", "running"]


CASES = [queue_kept, queue_spot, queue_odd, queue_leader_killed, queue_unmanaged]
