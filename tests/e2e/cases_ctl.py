# SPDX-License-Identifier: Apache-2.0
"""vesperctl drain and undrain, with the credential of a person who may do just that."""

import json
import os
import pty
import select
import signal
import subprocess
import termios
import time

from daemons import LIMIT, procs, program
from world import PDBS, POOLS, TOP, FewestReady

PERSON = "jane"
PODS = 15
AVAILABLE = 12
MARK = "vesper.sh/cordoned-by-vesperctl"


def _person(world):
    """The kubeconfig of somebody bound to what packaging has for operators."""
    world.cluster.apply(os.path.join(TOP, "packaging", "manifests", "coordinator", "people.yaml"))
    for role in ("vesper-viewer", "vesper-operator"):
        path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        name = f"{role}-{PERSON}"
        if not world.admin.find(f"{path}/{name}"):
            world.admin.create(path, {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": PERSON}]
            })
    return world.cluster.kubeconfig(PERSON, [])


def _begin(kubeconfig, *arguments):
    return subprocess.Popen([program("vesperctl"), *arguments, "--kubeconfig", kubeconfig], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _run(kubeconfig, *arguments):
    """Status, standard output, standard error."""
    child = _begin(kubeconfig, *arguments)
    try:
        out, err = child.communicate(timeout=LIMIT)
    finally:
        child.kill()
    return child.returncode, out, err


def _full_node(world, name):
    """A node with 30 pods of two ReplicaSets, each with its budget; and another where they may go. A pool for each, as
    labels only: nothing of vesper manages them."""
    node, _ = world.node(name, provider_id="")
    for app in (f"{name}-a", f"{name}-b"):
        world.replicas(app, PODS, name)
        world.budget(app, app, AVAILABLE)
    world.node(name, provider_id="")
    assert sum(p["spec"]["nodeName"] == node for a in "ab" for p in world.pods_of(f"{name}-{a}")) == 2 * PODS
    return node


def _evictions(calls):
    return [c for c in calls if c.is_eviction]


def person_drains(world, figures):
    """vesperctl drain: 30 pods behind two PDBs go, none refused; dry run before, undrain after; roles of people.yaml"""
    person, name = _person(world), world.unique("hand")
    node = _full_node(world, name)
    status, out, err = _run(person, "drain", node, "--dry-run", "-o", "json")
    assert status == 0 and not err, (status, out, err)
    assert [p["verdict"] for p in json.loads(out)[0]["pods"]] == ["Evicted"] * 2 * PODS, out
    assert "unschedulable" not in world.get_node(node)["spec"], "a dry run has cordoned"

    mark = world.audit.mark()
    with FewestReady(world.admin, f"{name}-a") as a, FewestReady(world.admin, f"{name}-b") as b:
        begin = time.monotonic()
        status, out, err = _run(person, "drain", node)
        took = time.monotonic() - begin
    assert status == 0 and not err, (status, out, err)
    assert f"{node}: drained in " in out and f"{2 * PODS} pods were ended" in out, out
    calls = _evictions(world.calls(mark, PERSON))
    figures.add(f"{2 * PODS} pods moved in {took:.1f} s, fewest Ready of {PODS}: {a.fewest}, {b.fewest} (minAvailable "
                f"{AVAILABLE}); evictions sent {len(calls)}, refused {sum(c.status != 201 for c in calls)}")
    assert len(calls) == 2 * PODS and all(c.status == 201 for c in calls), [c.status for c in calls]
    assert min(a.fewest, b.fewest) >= AVAILABLE, "a PodDisruptionBudget was broken"
    found = world.get_node(node)
    assert found["spec"]["unschedulable"] and MARK in found["metadata"]["annotations"], found["metadata"]

    status, out, err = _run(person, "undrain", node)
    assert status == 0 and out == f"Node {node} is schedulable again.\n", (status, out, err)
    found = world.get_node(node)
    assert "unschedulable" not in found["spec"] and MARK not in found["metadata"].get("annotations", {}), found


def person_is_interrupted(world, figures):
    """vesperctl drain and Ctrl-C while a PDB holds: it says what stays; a cordon of kubectl's is not opened"""
    person, name = _person(world), world.unique("held")
    node, _ = world.node(name, provider_id="")
    world.replicas(name, 3, name)
    world.budget(name, name, 3)
    mark = world.audit.mark()
    child = _begin(person, "drain", node)
    try:
        line = ""
        # The PDB needs all of them: each is asked for once.
        while "PDBNeverAllows" not in line:
            assert select.select([child.stdout], [], [], LIMIT)[0], f"nothing more comes after {line}"
            line = child.stdout.readline()
            assert line, child.stderr.read()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=LIMIT)
    finally:
        child.kill()
    assert child.returncode == 130, (child.returncode, out, err)
    assert err == f"node {node} stays cordoned; 3 pods are left; 'vesperctl undrain {node}' opens it\n", err
    asked = [c.name for c in _evictions(world.calls(mark, PERSON))]
    assert len(asked) == len(set(asked)) <= 3, asked
    figures.add(line.strip())
    assert _run(person, "undrain", node)[0] == 0

    world.admin.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
    status, _, err = _run(person, "undrain", node)
    assert status == 1 and "cordoned by somebody who left no mark" in err, (status, err)
    assert world.get_node(node)["spec"]["unschedulable"]
    assert _run(person, "undrain", node, "--yes")[0] == 0
    assert "unschedulable" not in world.get_node(node)["spec"]


REDRAW = "\x1b[1A\r\x1b[J"


def _read_terminal(master, redraws=None):
    """Reads the terminal until that many redraws have come; None: until no process has it open."""
    out = b""
    while redraws is None or out.count(REDRAW.encode()) < redraws:
        assert redraws is None or select.select([master], [], [], LIMIT)[0], f"nothing more comes after {out}"
        try:
            out += os.read(master, 65536)
        except OSError:
            break
    return out.decode()


def person_at_a_terminal(world, figures):
    """vesperctl drain on a terminal: a line that is rewritten in place; what Ctrl-C has it say is not erased"""
    person, name = _person(world), world.unique("term")
    node, _ = world.node(name, provider_id="")
    world.replicas(name, 2, name)
    world.budget(name, name, 2)
    master, slave = pty.openpty()
    os.set_inheritable(slave, True)
    termios.tcsetwinsize(slave, (24, 60))
    with procs.spawn([program("vesperctl"), "drain", node, "--kubeconfig", person], stdin=slave, stdout=slave,
                     stderr=slave) as child:
        os.close(slave)
        out = _read_terminal(master, redraws=2)
        child.send_signal(signal.SIGINT)
        out += _read_terminal(master)
        assert child.wait(LIMIT) == 130, out
    os.close(master)
    *drawn, said = out.split(REDRAW)
    figures.add(f"drawn {len(drawn)} times; {said.strip()}")
    assert len(drawn) >= 2 and all(len(line.rstrip()) < 60 for line in drawn), drawn
    assert said == f"node {node} stays cordoned; 2 pods are left; 'vesperctl undrain {node}' opens it\r\n", out


def person_as_another(world, figures):
    """vesperctl --as: a person who may impersonate has another's permissions; one who may not is told which permission that takes"""
    person, name = _person(world), world.unique("as")
    node, _ = world.node(name, provider_id="")
    admin = world.cluster.kubeconfig()
    status, _, err = _run(admin, "undrain", node, "--as", PERSON)
    assert status == 0, (status, err)
    status, _, err = _run(admin, "undrain", node, "--as", "nobody", "--as-group", "system:authenticated")
    assert status == 1 and "you may not get Node" in err and 'User "nobody"' in err and "ClusterRole vesper-viewer" in err, (status, err)
    status, _, err = _run(person, "status", "--as", "nobody")
    assert status == 1 and "you may not act as another (--as)" in err and "resources: [users], verbs: [impersonate]" in err, (status, err)
    status, _, err = _run(admin, "status", "--as", PERSON, "--as-uid", "7")
    assert status == 0, (status, err)
    status, _, err = _run(admin, "status", "--as", "nobody", "--as-group", "system:masters")
    assert status == 0, (status, err)
    figures.add(err.strip() or "status as a member of system:masters")


def person_plans(world, figures):
    """vesperctl plan, snapshot, explain --simulate as a viewer: a node could go; drained, its pods run where there was room"""
    person, name = _person(world), world.unique("spare")
    nodes = [world.node(name, provider_id="")[0] for _ in range(3)]
    # a new node is tainted as not Ready for a moment, and a plan would rightly say of it that it is not initialized
    world.cluster.wait_for(lambda: not any(world.get_node(n)["spec"].get("taints") for n in nodes), LIMIT,
                           f"the nodes of {name} to lose the taints of new nodes")
    world.pool(name)
    world.admin.patch(f"{POOLS}/{name}", {"spec": {"disruption": {
        "budgets": [], "consolidation": {"policy": "WhenUnderutilized"}}}})
    world.replicas(name, 6, name)
    world.budget(name, name, 5)
    world.cluster.wait_for(lambda: world.admin.get(f"{PDBS}/{name}")["status"].get("disruptionsAllowed") == 1, LIMIT,
                           f"PDB {name} to allow one eviction")

    status, out, err = _run(person, "plan", "-o", "json")
    assert status == 0 and not err, (status, out, err)
    plan = json.loads(out)
    assert not plan["snapshot"]["unknown"], "vesper-viewer may not read what a plan is made of"
    going = [n["name"] for s in plan["steps"] for n in s["nodes"]]
    kept = {s["name"]: s["lacks"].get("Consolidation") for s in plan["staying"] if s["name"] in nodes}
    assert going and set(going) < set(nodes), (going, kept)
    moves = [m for s in plan["steps"] for m in s["moves"]]
    on_them = {f"default/{p['metadata']['name']}" for p in world.pods_of(name) if p["spec"]["nodeName"] in going}
    assert {m["pod"] for m in moves} == on_them and not {m["to"] for m in moves} & set(going), moves
    drain = plan["steps"][-1]["drain"]
    assert (drain["pods"], drain["waves"]) == (len(moves), len(moves)), drain  # its budget lets one go at a time
    figures.add(f"{len(going)} of {len(nodes)} nodes, {len(moves)} moves")

    status, text, err = _run(person, "snapshot")
    assert status == 0 and not err, err
    path = os.path.join(world.directory, f"{name}.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    again = subprocess.run([program("vesperctl"), "plan", "--snapshot", path, "-o", "json"], capture_output=True, text=True,
                           check=True, timeout=LIMIT, env={"PATH": os.environ["PATH"]})
    assert json.loads(again.stdout)["steps"] == plan["steps"], again.stdout

    status, out, err = _run(person, "explain", going[0], "--simulate", "-o", "json")
    assert status in (0, 3) and json.loads(out)["voluntary"]["wouldGo"], (status, out, err)

    # What was planned can be done: nothing of it has no place.
    for node in going:
        status, out, err = _run(person, "drain", node)
        assert status == 0, (status, out, err)
    world.cluster.wait_for(lambda: len(world.ready(name)) == 6, LIMIT, "all of them to be Ready again")
    assert not {p["spec"]["nodeName"] for p in world.ready(name)} & set(going)


CASES = [person_as_another, person_drains, person_is_interrupted, person_at_a_terminal, person_plans]
