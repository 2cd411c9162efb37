# SPDX-License-Identifier: Apache-2.0
"""One cluster, judged by vesper's simulation and by kube-scheduler's own code.

vesper says for each node whether its pods would find seats elsewhere if it went, and where. What can be wrong with that:

    constraint   vesper says yes, and kube-scheduler does not let a pod onto the node that vesper names
    left-out     vesper says yes, and names no seat for a pod that would lose its own; or seats one that nobody moves
    needless     vesper says no, and where all others are as vesper says, kube-scheduler knows a node for that pod
    packing      vesper says no, and kube-scheduler would place all of them, in the same order: no rule is wrong, luck may be.
                 Counted, not an error

Answers with another code than NOT_PLACED are not about seats, and are not looked at.

Pods that are pending, or on nodes that are leaving already, compete for the same seats. Where vesper does not say which of them it
has placed where ("competitors": those that it has thought of; their seats are among "placements"), its state is not known:
then both are asked about the cluster without them.

A pod that a node was promised to (status.nominatedNodeName) has its room there, whoever else comes: kube-scheduler, too, places nobody
of its priority or a lower one where both would not fit. So to kube-scheduler's code it is bound already.
"""

import collections
import json
import os
import subprocess
import tempfile
import time

from clusters import name_of

ERRORS = ("constraint", "left-out", "needless", "crash")
Finding = collections.namedtuple("Finding", "kind node rule text")


def owner_kinds(pod):
    return {(o["apiVersion"].split("/")[0], o["kind"]) for o in pod["metadata"].get("ownerReferences", ())}


def moves(pod):
    """Does the pod, or the one that comes after it, need a seat elsewhere when its node goes?"""
    owners = owner_kinds(pod)
    if pod["status"].get("phase") in ("Succeeded", "Failed") or ("apps", "DaemonSet") in owners or ("v1", "Node") in owners:
        return False
    return "deletionTimestamp" not in pod["metadata"] or ("apps", "StatefulSet") in owners


def is_resizing(pod):
    return pod.get("status", {}).get("phase") not in ("Succeeded", "Failed") and any(c["type"] in ("PodResizePending", "PodResizeInProgress") and c["status"] == "True"
               for c in pod.get("status", {}).get("conditions", ()))


def claims_of(pod):
    return [f"{pod['metadata']['namespace']}/{v['persistentVolumeClaim']['claimName']}" for v in pod["spec"].get("volumes", ())
            if "persistentVolumeClaim" in v]


def is_destination(node):
    """Whether vesper would place anything on it at all: kube-scheduler knows only its taints."""
    ready = any(x["type"] == "Ready" and x["status"] == "True" for x in node["status"].get("conditions", ()))
    return ready and not node["spec"].get("unschedulable") and "deletionTimestamp" not in node["metadata"]


def quantity(text):
    for suffix, factor in (("Ki", 2**10), ("Mi", 2**20), ("Gi", 2**30), ("m", 1e-3), ("k", 1e3), ("M", 1e6), ("G", 1e9)):
        if text.endswith(suffix):
            return float(text[:-len(suffix)]) * factor
    return float(text)


def request(pod, resource):
    """Roughly: it only orders the pods."""
    def of(k):
        return quantity(k.get("resources", {}).get("requests", {}).get(resource, "0"))
    spec = pod["spec"]
    if resource in spec.get("resources", {}).get("requests", {}):
        return of(spec)
    inits = spec.get("initContainers", [])
    sidecars = [k for k in inits if k.get("restartPolicy") == "Always"]
    return max([sum(map(of, spec["containers"] + sidecars))] + [of(k) for k in inits])


def placing_order(pods):
    return [name_of(p) for p in sorted(pods, key=lambda p: (-request(p, "cpu"), -request(p, "memory"),
                                                           p["metadata"]["creationTimestamp"], p["metadata"]["uid"]))]


def as_promised(objects):
    """As kube-scheduler would have it soon. A node that takes no pods keeps no promise."""
    takes = {name_of(o) for o in objects if o["kind"] == "Node" and is_destination(o)}
    return [dict(o, spec=dict(o["spec"], nodeName=o["status"]["nominatedNodeName"]))
            if o["kind"] == "Pod" and o.get("status", {}).get("nominatedNodeName") in takes and "nodeName" not in o["spec"] and "deletionTimestamp" not in o["metadata"]
            else o for o in objects]


class Tool:
    """simulate-nodes: a file with a List in, a line of JSON per node out."""
    def __init__(self, command):
        self.command = command

    def judge(self, objects):
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as f:
            # Not json.dump(): that encodes in Python, and was a third of our time.
            f.write(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}, separators=(",", ":")))
            f.flush()
            done = subprocess.run(self.command + [f.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  check=False, timeout=60)
        if done.returncode != 0:
            raise ToolError(f"{os.path.basename(self.command[0])} ended with status {done.returncode}: {done.stderr.strip()[-1500:]}")
        return [json.loads(line) for line in done.stdout.splitlines()]


class ToolError(Exception):
    pass


class Comparison:
    """Of one cluster. `findings` is what was wrong, `counts` what was asked and answered."""
    def __init__(self, oracle, tool, objects):
        self.oracle = oracle
        self.findings, self.counts = [], collections.Counter(clusters=1)
        self.see(as_promised(objects))
        try:
            answers = tool.judge(objects)
            if self.competing and not all("competitors" in a for a in answers):
                gone = {name_of(p) for p in self.competing}
                objects = [o for o in objects if o["kind"] != "Pod" or name_of(o) not in gone]
                self.see(as_promised(objects))
                answers = tool.judge(objects)
        except (ToolError, OSError, subprocess.TimeoutExpired, ValueError) as e:
            self.found("crash", "", "", str(e))
            return
        oracle.load(self.objects)
        if [a.get("node") for a in answers] != sorted(self.nodes):
            self.found("crash", "", "", f"not each node is answered for, in the order of their names: {[a.get('node') for a in answers]}")
            return
        for answer in answers:
            self.counts["nodes"] += 1
            if answer["verdict"] == "yes":
                self.counts["yes"] += 1
                self.compare_yes(answer["node"], answer)
            elif answer["code"] == "NOT_PLACED":
                self.counts["no"] += 1
                self.compare_no(answer["node"], answer)
            else:
                self.counts["other"] += 1

    def see(self, objects):
        self.objects = objects
        self.nodes = {name_of(o): o for o in objects if o["kind"] == "Node"}
        self.pods = {name_of(o): o for o in objects if o["kind"] == "Pod"}
        # vesper leaves alone nodes on which a pod is being resized: how much room there is is about to change.
        resizing = {p["spec"].get("nodeName") for p in self.pods.values() if is_resizing(p)}
        self.unusable = [name for name, node in self.nodes.items() if not is_destination(node) or name in resizing]
        # Of a claim for one pod alone that several mount: which of them gets it, when the one that has it goes, is open.
        alone = {name_of(o) for o in objects if o["kind"] == "PersistentVolumeClaim" and "ReadWriteOncePod" in o["spec"]["accessModes"]}
        mounted = collections.Counter(c for p in self.pods.values() for c in claims_of(p))
        self.contested = {name for name, p in self.pods.items() if any(c in alone and mounted[c] > 1 for c in claims_of(p))}
        self.competing = [p for p in self.pods.values() if moves(p) and (
            "nodeName" not in p["spec"] or "deletionTimestamp" in self.nodes.get(p["spec"]["nodeName"], {}).get("metadata", ()))]

    def found(self, kind, node, rule, text):
        self.counts[kind] += 1
        self.findings.append(Finding(kind, node, rule, text))

    def moving(self, node):
        return [p for p in self.pods.values() if p["spec"].get("nodeName") == node and moves(p)]

    def removed_with(self, node):
        """The nodes that go: this one, and those that are on their way already."""
        return [node] + [n for n, o in self.nodes.items() if n != node and "deletionTimestamp" in o["metadata"]]

    def compare_yes(self, node, answer):
        placements = answer["placements"]
        seated = [p["pod"] for p in placements]
        needed = {name_of(p) for p in self.moving(node)}
        allowed = needed | set(answer.get("competitors", ()))
        wrong = [f"{p} has no seat" for p in sorted(needed - set(seated))]
        wrong += [f"{p} need not move" for p in sorted(set(seated) - allowed)]
        wrong += [f"{p} competes for nothing" for p in sorted(allowed - needed - {name_of(p) for p in self.competing})]
        wrong += [f"{p} has two seats" for p in sorted(set(seated)) if seated.count(p) > 1]
        if wrong:
            self.found("left-out", node, "", "; ".join(wrong))
            return
        got = self.oracle.check(self.removed_with(node), placements, allowed - set(seated))
        if not got["ok"]:
            self.refused(node, got, "")

    def refused(self, node, got, where):
        self.found("constraint", node, f"{got.get('plugin', '')}: {got['reason']}", f"{got['pod']} may not be on {got['node']}{where}")

    def compare_no(self, node, answer):
        remove = self.removed_with(node)
        exclude = [n for n in self.unusable if n not in remove]
        own = {name_of(p) for p in self.moving(node)}
        gone = own | set(answer.get("competitors", ()))
        needless = False
        # Those without a seat, and the seats of the others, are of one try to place them.
        for one in answer["unplaced"] if not answer.get("packed") else ():
            pod = one["pod"]
            got = self.oracle.can(remove, [pod], ("first",), answer["placements"], exclude,
                                  gone - {pod} - {p["pod"] for p in answer["placements"]})
            if not got["ok"]:
                self.refused(node, got, " (of a no)")
                return
            if got["ways"]["first"]["placed"] and pod not in self.contested:
                seat = got["ways"]["first"]["placements"][0]["node"]
                self.found("needless", node, ", ".join(sorted(set(one["reasons"]) - {"not a destination"})),
                           f"{pod} could be on {seat}; vesper: {json.dumps(one['reasons'])}")
                needless = True
        if needless:
            return
        competing = [self.pods[p] for p in gone - own]
        ways = self.oracle.can(remove, placing_order(self.moving(node) + competing), exclude=exclude)["ways"]
        needed = own | {one["pod"] for one in answer["unplaced"]}  # who has a seat now, and waits for it, must not lose it either
        if all(not needed & {u["pod"] for u in way["unplaced"]} for way in ways.values()):
            if answer.get("packed") and answer.get("spread"):
                self.counts["order"] += 1  # only where pods come in an unlucky order, which neither of these ways is
                return
            self.found("packing", node, "", f"of {[u['pod'] for u in answer['unplaced']]}; first: {seats(ways['first'])}")


def seats(way):
    return ", ".join(f"{p['pod']} on {p['node']}" for p in way["placements"])


# ---- as small as it can be

def same(finding, other):
    """The same mistake, as far as can be seen: of a needless no, what other nodes say beside it is not known apart."""
    if finding.kind != other.kind:
        return False
    if finding.kind == "needless":
        return set(other.rule.split(", ")) <= set(finding.rule.split(", "))
    return finding.rule == other.rule


# What is taken out of an object, one after the other, while it still fails.
PARTS = {
    "Pod": [("metadata", "labels"), ("metadata", "ownerReferences"), ("metadata", "deletionTimestamp"),
            ("metadata", "deletionGracePeriodSeconds"), ("metadata", "annotations")] + [("spec", k) for k in (
                "affinity", "topologySpreadConstraints", "tolerations", "nodeSelector", "volumes", "initContainers", "overhead",
                "resources", "priority", "runtimeClassName", "terminationGracePeriodSeconds", "restartPolicy")],
    "Node": [("spec", "taints"), ("spec", "unschedulable"), ("spec", "providerID"), ("status", "capacity"),
             ("metadata", "deletionTimestamp"), ("metadata", "finalizers")],
}


def shrink(objects, fails, seconds=60):
    """The objects without what is not needed for fails(objects). Time bounds it: each try asks both sides."""
    end = time.monotonic() + seconds

    def holds(trial):
        if time.monotonic() > end:
            return False
        # A pod whose node is left out goes with it.
        there = {name_of(o) for o in trial if o["kind"] == "Node"}
        before = {name_of(o) for o in objects if o["kind"] == "Node"}
        trial = [o for o in trial if o["kind"] != "Pod" or o["spec"].get("nodeName") not in before - there]
        return trial if there and fails(trial) else None

    size = max(1, len(objects) // 2)
    while size >= 1:
        at = 0
        while at < len(objects):
            smaller = holds(objects[:at] + objects[at + size:])
            if smaller:
                objects = smaller
            else:
                at += size
        size = size // 2 if size > 1 else 0
    for i, o in enumerate(objects):
        for path in PARTS.get(o["kind"], ()):
            objects = without(objects, i, path, holds)
        if o["kind"] == "Pod":
            for where in ("containers", "initContainers"):
                for n in range(len(objects[i]["spec"].get(where, [])) - 1, -1, -1):
                    if where == "initContainers" or n > 0:
                        objects = without(objects, i, ("spec", where, n), holds)
            for n in range(len(objects[i]["spec"].get("topologySpreadConstraints", [])) - 1, -1, -1):
                objects = without(objects, i, ("spec", "topologySpreadConstraints", n), holds)
            for n in range(len(objects[i]["spec"]["containers"])):
                objects = without(objects, i, ("spec", "containers", n, "resources"), holds)
                objects = without(objects, i, ("spec", "containers", n, "ports"), holds)
            for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity"):
                for word in ("required", "preferred"):
                    objects = without(objects, i, ("spec", "affinity", kind, word + "DuringSchedulingIgnoredDuringExecution"), holds)
                objects = without(objects, i, ("spec", "affinity", kind), holds)
        if o["kind"] == "Node":
            for key in sorted(objects[i]["metadata"].get("labels", {})):
                objects = without(objects, i, ("metadata", "labels", key), holds)
            for n in range(len(objects[i]["spec"].get("taints", [])) - 1, -1, -1):
                objects = without(objects, i, ("spec", "taints", n), holds)
    return objects


def without(objects, i, path, holds):
    """The objects without that part of the i-th, if it is there and is not needed."""
    changed = json.loads(json.dumps(objects[i]))
    at = changed
    try:
        for step in path[:-1]:
            at = at[step]
        del at[path[-1]]
    except (KeyError, IndexError):
        return objects
    smaller = objects[:i] + [changed] + objects[i + 1:]
    held = holds(smaller)
    return held if held and len(held) == len(objects) else objects
