# SPDX-License-Identifier: Apache-2.0
"""What compares, compared: schedcheck has to know each rule, clusters have to be the same again, and a simulation that is
wrong in a known way has to be found out. vesper's own is not asked."""

import collections
import json
import multiprocessing
import time

import clusters
import compare
import oracle
from clusters import HOST, ZONE, name_of

SEEDS = range(1, 41)


# ---- each plugin says no to something, and yes without it

def node(name, zone="z1", **fields):
    labels = dict({HOST: name, ZONE: zone}, **fields.pop("labels", {}))
    spec = {"taints": fields["taints"]} if "taints" in fields else {}
    if fields.get("unschedulable"):
        spec["unschedulable"] = True
    room = dict({"cpu": "4", "memory": "8Gi", "pods": "10"}, **fields.get("room", {}))
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name, "labels": labels}, "spec": spec,
            "status": {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}}


def pod(name, where, cpu="1", labels=None, claims=(), **spec):
    spec["containers"] = [{"name": "c", "resources": {"requests": {"cpu": cpu}}, "ports": spec.pop("ports", [])}]
    if where:
        spec["nodeName"] = where
    spec["volumes"] = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec, "status": {"phase": "Running"},
            "metadata": {"namespace": "default", "name": name, "uid": name, "labels": labels or {"app": "a"},
                         "creationTimestamp": "2026-01-01T00:00:00Z"}}


def bound(name, modes=("ReadWriteOnce",), zone=None, label=None):
    labels = {ZONE: label} if label else {}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": ZONE, "operator": "In", "values": [zone]}]}]}}} if zone else {}
    return [{"apiVersion": "v1", "kind": "PersistentVolumeClaim",
             "metadata": {"namespace": "default", "name": name, "uid": name,
                          "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
             "spec": {"volumeName": "pv-" + name, "accessModes": list(modes), "storageClassName": "s"}},
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-" + name, "labels": labels},
             "spec": dict({"accessModes": list(modes), "csi": {"driver": "d", "volumeHandle": name},
                           "claimRef": {"namespace": "default", "name": name, "uid": name}}, **affinity)}]


def limit(name, count):
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name},
            "spec": {"drivers": [{"name": "d", "nodeID": name, "allocatable": {"count": count}}]}}


def spread(key, **more):
    return [dict({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
                  "labelSelector": {"matchLabels": {"app": "a"}}}, **more)]


def required(kind, key, **labels):
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": key, "labelSelector": {"matchLabels": labels}}]}}


PORT = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
IN_Z1 = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z1"]}]}]}}}
# What says no when n1 goes and its pod p is to go to n2; None: nobody. The nodes are n1 and n2.
RULES = [
    (None, "it fits", [node("n1"), node("n2"), pod("p", "n1")]),
    ("NodeUnschedulable", "a cordoned node", [node("n1"), node("n2", unschedulable=True), pod("p", "n1")]),
    ("TaintToleration", "a taint", [node("n1"), node("n2", taints=[{"key": "t", "effect": "NoSchedule"}]), pod("p", "n1")]),
    (None, "a taint that is tolerated", [node("n1"), node("n2", taints=[{"key": "t", "effect": "NoSchedule"}]),
                                         pod("p", "n1", tolerations=[{"key": "t", "operator": "Exists"}])]),
    (None, "a taint that only scores", [node("n1"), node("n2", taints=[{"key": "t", "effect": "PreferNoSchedule"}]), pod("p", "n1")]),
    ("NodeAffinity", "a selector", [node("n1"), node("n2"), pod("p", "n1", nodeSelector={"disk": "ssd"})]),
    ("NodeAffinity", "affinity", [node("n1"), node("n2", "z2"), pod("p", "n1", affinity=IN_Z1)]),
    ("NodePorts", "a host port", [node("n1"), node("n2"), pod("p", "n1", ports=PORT), pod("q", "n2", ports=PORT)]),
    ("NodeResourcesFit", "CPU", [node("n1"), node("n2"), pod("p", "n1", cpu="2"), pod("q", "n2", cpu="3")]),
    ("NodeResourcesFit", "number of pods", [node("n1"), node("n2", room={"pods": "1"}), pod("p", "n1"), pod("q", "n2")]),
    ("VolumeRestrictions", "ReadWriteOncePod", [node("n1"), node("n2"), pod("p", "n1", claims=["v"]), pod("q", "n2", claims=["v"])]
     + bound("v", ["ReadWriteOncePod"])),
    ("NodeVolumeLimits", "attach limit", [node("n1"), node("n2"), limit("n2", 1), pod("p", "n1", claims=["v"]),
                                          pod("q", "n2", claims=["w"])] + bound("v") + bound("w")),
    (None, "the same volume counts once", [node("n1"), node("n2"), limit("n2", 1), pod("p", "n1", claims=["v"]),
                                           pod("q", "n2", claims=["v"])] + bound("v", ["ReadWriteMany"])),
    ("VolumeBinding", "a volume of another zone", [node("n1"), node("n2", "z2"), pod("p", "n1", claims=["v"])] + bound("v", zone="z1")),
    ("VolumeZone", "a zone label of a volume", [node("n1"), node("n2", "z2"), pod("p", "n1", claims=["v"])] + bound("v", label="z1")),
    ("VolumeRestrictions", "a claim that is lost", [node("n1"), node("n2"), pod("p", "n1", claims=["v"])]),
    # n1 is a domain without pods as long as its node is there.
    ("PodTopologySpread", "the ghost's domain", [node("n1"), node("n2"), pod("p", "n1", topologySpreadConstraints=spread(HOST)),
                                                 pod("q", "n2")]),
    (None, "the ghost is tainted", [node("n1"), node("n2"), pod("p", "n1", topologySpreadConstraints=spread(
        HOST, nodeTaintsPolicy="Honor")), pod("q", "n2")]),
    ("PodTopologySpread", "too few domains", [node("n1"), node("n2"), pod("q", "n2"), pod("p", "n1", topologySpreadConstraints=spread(
        ZONE, minDomains=2))]),
    (None, "ScheduleAnyway", [node("n1"), node("n2"), pod("q", "n2"), pod("p", "n1", topologySpreadConstraints=spread(
        HOST, whenUnsatisfiable="ScheduleAnyway"))]),
    ("InterPodAffinity", "affinity to nobody", [node("n1"), node("n2"), pod("p", "n1", affinity=required("podAffinity", ZONE, app="x"))]),
    (None, "affinity to itself", [node("n1"), node("n2"), pod("p", "n1", affinity=required("podAffinity", ZONE, app="a"))]),
    ("InterPodAffinity", "anti-affinity", [node("n1"), node("n2"), pod("q", "n2"), pod("p", "n1", affinity=required(
        "podAntiAffinity", HOST, app="a"))]),
    ("InterPodAffinity", "anti-affinity of the other one", [node("n1"), node("n2"), pod("p", "n1"), pod("q", "n2", affinity=required(
        "podAntiAffinity", ZONE, app="a"))]),
]


def knows_each_rule(asked):
    for plugin, what, objects in RULES:
        asked.load(objects)
        answer = asked.check(["n1"], [{"pod": "default/p", "node": "n2"}])
        assert answer["ok"] == (plugin is None) and answer.get("plugin") == plugin, f"{what}: {answer}"
        placed = asked.can(["n1"], ["default/p"])["ways"]
        assert all(way["placed"] == (plugin is None) for way in placed.values()), f"{what}: {placed}"
    plugins = {plugin for plugin, _, _ in RULES if plugin}
    assert len(plugins) == 11, plugins
    return f"{len(RULES)} clusters, {len(plugins)} plugins"


def refuses_nonsense(asked):
    asked.load([node("n1"), node("n2"), pod("p", "n1")])
    for fields in ({"ask": "check", "placements": [{"pod": "default/x", "node": "n2"}]},
                   {"ask": "check", "placements": [{"pod": "default/p", "node": "n3"}]},
                   {"ask": "check", "placements": [{"pod": "default/p", "node": "n2"}] * 2},
                   {"ask": "check", "remove": ["n3"]}, {"ask": "can", "ways": ["luck"], "pods": ["default/p"]}, {"ask": "sing"},
                   {"ask": "load", "objects": {"pods": [pod("p", "n1"), pod("p", "n1")]}}):
        try:
            answer = asked.ask(**fields)
        except oracle.OracleError:
            continue
        raise AssertionError(f"{fields}: {answer}")
    asked.load([node("n1"), node("n2"), pod("p", "n1")])
    assert not asked.check(["n1"], [{"pod": "default/p", "node": "n1"}])["ok"], "a pod goes back to the node that goes"
    return "said"


def same_again(asked):
    """A seed gives the same cluster; asking changes nothing; what the scheduler places it also accepts, and nothing else."""
    counts = collections.Counter()
    for seed in SEEDS:
        objects = clusters.draw(seed, asked.place)
        assert objects == clusters.draw(seed, asked.place), f"seed {seed} gives two clusters"
        asked.load(objects)
        pods = [o for o in objects if o["kind"] == "Pod" and compare.moves(o)]
        names = sorted(o["metadata"]["name"] for o in objects if o["kind"] == "Node")
        for name in names:
            moving = compare.placing_order(p for p in pods if p["spec"].get("nodeName") == name)
            ways = asked.can([name], moving, ways=("first", "free", f"random:{seed}"))["ways"]
            assert asked.can([name], moving, ways=("first", "free", f"random:{seed}"))["ways"] == ways, f"seed {seed}, {name}"
            for way in ways.values():
                off = [u["pod"] for u in way["unplaced"]]
                answer = asked.check([name], way["placements"], off)
                assert answer["ok"], f"seed {seed}, {name}: {answer}"
                counts["places"] += len(way["placements"])
                for refused in way["unplaced"]:
                    for other in names:
                        last = {"pod": refused["pod"], "node": other}
                        answer = asked.check([name], way["placements"] + [last], set(off) - {refused["pod"]})
                        assert not answer["ok"], f"seed {seed}, {name}: {refused['pod']} was not placed on {other}"
                        counts["refusals"] += 1
    assert counts["places"] > 1000 and counts["refusals"] > 1000, counts
    return ", ".join(f"{n} {what}" for what, n in counts.items())


# ---- simulations that are right, and wrong in a known way

class StandIn:
    """Judges by schedcheck, of the cluster as `change` makes it."""
    def __init__(self, asked, change=lambda o: None, spoil=lambda answer: answer):
        self.oracle, self.change, self.spoil = asked, change, spoil

    def judge(self, objects):
        objects = json.loads(json.dumps(objects))
        for o in objects:
            self.change(o)
        here = compare.Comparison(self.oracle, Silent(objects), objects)
        self.oracle.load(here.objects)
        return [self.spoil(self.one(here, name)) for name in sorted(here.nodes)]

    def one(self, here, name):
        own = {name_of(p) for p in here.moving(name)}
        remove = here.removed_with(name)
        pods = compare.placing_order(here.moving(name) + [p for p in here.competing if p["spec"].get("nodeName") != name])
        ways = self.oracle.can(remove, pods, exclude=[n for n in here.unusable if n not in remove])["ways"]
        competitors = [p for p in pods if p not in own]
        for way in ways.values():
            left = [u for u in way["unplaced"] if u["pod"] in own]
            if left:
                return {"node": name, "verdict": "no", "code": "NOT_PLACED", "packed": False, "unplaced": left,
                        "placements": way["placements"], "competitors": competitors}
        return {"node": name, "verdict": "yes", "placements": ways["first"]["placements"], "competitors": competitors}


class Ghostless(StandIn):
    """Takes the node out of the cluster, as if its object were gone before its pods are placed."""
    def one(self, here, name):
        own = {name_of(p) for p in here.moving(name)}
        rest = []
        for o in here.objects:
            if o["kind"] == "Pod" and name_of(o) in own:
                o = dict(o, spec={k: v for k, v in o["spec"].items() if k != "nodeName"})
            if name_of(o) != name and o.get("spec", {}).get("nodeName") != name:
                rest.append(o)
        self.oracle.load(rest)
        leaving = [n for n in here.removed_with(name) if n != name]
        pods = compare.placing_order(here.moving(name) + [p for p in here.competing if p["spec"].get("nodeName") != name])
        way = self.oracle.can(leaving, pods, ("first",), exclude=[n for n in here.unusable if n not in leaving + [name]])["ways"]["first"]
        if own & {u["pod"] for u in way["unplaced"]}:
            return {"node": name, "verdict": "no", "code": "SILENT", "competitors": []}
        return {"node": name, "verdict": "yes", "placements": way["placements"], "competitors": [p for p in pods if p not in own]}


class Silent:
    """Refuses each node for a reason that nobody compares."""
    def __init__(self, objects):
        self.nodes = sorted(name_of(o) for o in objects if o["kind"] == "Node")

    def judge(self, _):
        return [{"node": n, "verdict": "no", "code": "SILENT", "competitors": []} for n in self.nodes]


def forget(kind, *path):
    def change(o):
        at = o
        for step in path[:-1]:
            at = at.get(step, {})
        if o["kind"] == kind:
            at.pop(path[-1], None)
    return change


def forget_requests(o):
    for k in o["spec"].get("containers", []) + o["spec"].get("initContainers", []) if o["kind"] == "Pod" else []:
        k.pop("resources", None)


def forget_ports(o):
    for k in o["spec"].get("containers", []) if o["kind"] == "Pod" else []:
        k.pop("ports", None)


def each(o, *kinds):
    """The spread constraints of a pod, or its required terms of that kind of affinity."""
    if o["kind"] != "Pod":
        return []
    if kinds == ("spread",):
        return o["spec"].get("topologySpreadConstraints", [])
    terms = []
    for kind in kinds:
        terms += o["spec"].get("affinity", {}).get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution", [])
    return terms


def forget_of(field, *kinds):
    def change(o):
        for t in each(o, *kinds):
            t.pop(field, None)
    return change


def forget_keys(o):
    for t in each(o, "spread"):
        if t.get("labelSelector") and t.pop("matchLabelKeys", None):
            rest = [e for e in t["labelSelector"].get("matchExpressions", []) if e["key"] != "version"]
            t["labelSelector"] = dict(t["labelSelector"], matchExpressions=rest)


def no_sidecars(o):
    for k in o["spec"].get("initContainers", []) if o["kind"] == "Pod" else []:
        k.pop("restartPolicy", None)


def all_sidecars(o):
    for k in o["spec"].get("initContainers", []) if o["kind"] == "Pod" else []:
        k["restartPolicy"] = "Always"


def forget_expressions(*operators):
    def change(o):
        required = o["spec"].get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution") \
            if o["kind"] == "Pod" else None
        for term in required["nodeSelectorTerms"] if required else []:
            if "matchExpressions" in term:
                term["matchExpressions"] = [e for e in term["matchExpressions"] if e["operator"] not in operators] or [
                    {"key": HOST, "operator": "Exists"}]
    return change


def forget_fields(o):
    if o["kind"] == "Pod" and o["spec"].get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution"):
        for term in o["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]:
            if term.pop("matchFields", None):
                term.setdefault("matchExpressions", [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}])


def first_term_only(o):
    if o["kind"] == "Pod" and o["spec"].get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution"):
        del o["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][1:]


def each_port(change_port):
    def change(o):
        for k in o["spec"]["containers"] + o["spec"].get("initContainers", []) if o["kind"] == "Pod" else []:
            for port in k.get("ports", []):
                change_port(port)
    return change


def bind_all(o):
    for t in each(o, "spread"):
        t["whenUnsatisfiable"] = "DoNotSchedule"


def prefer_all(o):
    a = o["spec"].get("affinity", {}).get("nodeAffinity", {}) if o["kind"] == "Pod" else {}
    for p in a.pop("preferredDuringSchedulingIgnoredDuringExecution", []):
        a.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": [p["preference"]]})


def more_needed(o):
    for k in o["spec"]["containers"] if o["kind"] == "Pod" else []:
        k.setdefault("resources", {}).setdefault("requests", {})["memory"] = "1500Mi"


def taint_all(o):
    if o["kind"] == "Node":
        o["spec"].setdefault("taints", []).append({"key": "made-up", "effect": "NoSchedule"})


def leave_out(answer):
    return dict(answer, placements=answer["placements"][1:]) if answer["verdict"] == "yes" else answer


# What the stand-in does wrong, and what has to be found of it ("": either of both).
WRONG = [
    ("no taints", forget("Node", "spec", "taints"), "constraint", "TaintToleration"),
    ("no node affinity", forget("Pod", "spec", "affinity", "nodeAffinity"), "constraint", "NodeAffinity"),
    ("no nodeSelector", forget("Pod", "spec", "nodeSelector"), "constraint", "NodeAffinity"),
    ("no pod affinity", forget("Pod", "spec", "affinity", "podAffinity"), "constraint", "InterPodAffinity"),
    ("no anti-affinity", forget("Pod", "spec", "affinity", "podAntiAffinity"), "constraint", "InterPodAffinity"),
    ("no spread", forget("Pod", "spec", "topologySpreadConstraints"), "constraint", "PodTopologySpread"),
    ("no requests", forget_requests, "constraint", "NodeResourcesFit"),
    ("no overhead", forget("Pod", "spec", "overhead"), "constraint", "NodeResourcesFit"),
    ("no promises", forget("Pod", "status", "nominatedNodeName"), "left-out", ""),
    ("no init containers", forget("Pod", "spec", "initContainers"), "constraint", "NodeResourcesFit"),
    ("no host ports", forget_ports, "constraint", "NodePorts"),
    ("no volumes' places", forget("PersistentVolume", "spec", "nodeAffinity"), "constraint", "VolumeBinding"),
    ("no volumes' zone labels", forget("PersistentVolume", "metadata", "labels"), "constraint", "VolumeZone"),
    ("no attach limits", forget("CSINode", "spec", "drivers"), "constraint", "NodeVolumeLimits"),
    ("no nodeAffinityPolicy", forget_of("nodeAffinityPolicy", "spread"), "constraint", "PodTopologySpread"),
    ("no nodeTaintsPolicy", forget_of("nodeTaintsPolicy", "spread"), "needless", "PodTopologySpread"),
    ("no minDomains", forget_of("minDomains", "spread"), "constraint", "PodTopologySpread"),
    ("no matchLabelKeys of a spread", forget_keys, "", "PodTopologySpread"),
    ("no namespaces of anti-affinity", forget_of("namespaces", "podAntiAffinity"), "constraint", "InterPodAffinity"),
    ("no namespaceSelector of anti-affinity", forget_of("namespaceSelector", "podAntiAffinity"), "constraint", "InterPodAffinity"),
    ("no namespaceSelector of affinity", forget_of("namespaceSelector", "podAffinity"), "needless", "InterPodAffinity"),
    ("no sidecars", no_sidecars, "constraint", "NodeResourcesFit"),
    ("no init containers but sidecars", all_sidecars, "needless", "NodeResourcesFit"),
    ("no requests of a pod as a whole", forget("Pod", "spec", "resources"), "constraint", "NodeResourcesFit"),
    ("no Gt and Lt", forget_expressions("Gt", "Lt"), "constraint", "NodeAffinity"),
    ("no NotIn and DoesNotExist", forget_expressions("NotIn", "DoesNotExist"), "constraint", "NodeAffinity"),
    ("no matchFields", forget_fields, "constraint", "NodeAffinity"),
    ("only the first term of node affinity", first_term_only, "needless", "NodeAffinity"),
    ("no hostIP", each_port(lambda port: port.pop("hostIP", None)), "needless", "NodePorts"),
    ("no protocol", each_port(lambda port: port.update(protocol="TCP")), "needless", "NodePorts"),
    ("no difference between spread constraints", bind_all, "needless", "PodTopologySpread"),
    ("no preference that is not a must", prefer_all, "needless", "NodeAffinity"),
    ("larger pods than there are", more_needed, "needless", ""),
    ("a taint that is not there", taint_all, "needless", "TaintToleration"),
]


def right_is_right(asked):
    total = collections.Counter()
    for seed in SEEDS:
        compared = compare.Comparison(asked, StandIn(asked), clusters.draw(seed, asked.place))
        assert not [f for f in compared.findings if f.kind != "packing"], f"seed {seed}: {compared.findings}"
        total.update(compared.counts)
    assert total["yes"] > 100 and total["no"] > 50, total
    return ", ".join(f"{n} {what}" for what, n in total.items())


def wrong_is_found(asked, kind, rule, *args, maker=StandIn):
    for seed in range(1, 250):
        objects = clusters.draw(seed, asked.place)
        tool = maker(asked, *args)
        for finding in compare.Comparison(asked, tool, objects).findings:
            if kind in ("", finding.kind) and finding.kind != "packing" and finding.rule.startswith(rule):
                small = compare.shrink(objects, lambda trial: any(
                    compare.same(finding, f) for f in compare.Comparison(asked, tool, trial).findings))
                assert len(small) <= 12 or len(small) < len(objects) / 4, f"{len(small)} of {len(objects)} objects are left: {small}"
                return f"seed {seed}, made small: {len(small)} of {len(objects)} objects"
    raise AssertionError(f"no seed shows it ({kind}, {rule})")


def crash_is_found(asked):
    objects = clusters.draw(1, asked.place)
    for command in (["false"], ["true"], ["echo", "{"], ["/nowhere/simulate-nodes"]):
        findings = compare.Comparison(asked, compare.Tool(command), objects).findings
        assert [f.kind for f in findings] == ["crash"], f"{command}: {findings}"
    return "found"


def run(path, jobs):
    passed = failed = 0
    checks = [("schedcheck knows each rule", knows_each_rule), ("schedcheck refuses nonsense", refuses_nonsense),
              ("the same again", same_again), ("a right simulation", right_is_right), ("a tool that crashes", crash_is_found)]
    checks += [(f"a simulation that knows {what}", lambda asked, change=change, k=kind, r=rule: wrong_is_found(
        asked, k, r, change)) for what, change, kind, rule in WRONG]
    checks.append(("a simulation that leaves pods out", lambda asked: wrong_is_found(
        asked, "left-out", "", lambda o: None, leave_out)))
    checks.append(("a simulation that knows no ghosts", lambda asked: wrong_is_found(
        asked, "constraint", "PodTopologySpread", maker=Ghostless)))
    started = time.monotonic()
    with multiprocessing.Pool(jobs, initializer=begin, initargs=(path, checks)) as pool:
        for good, line in pool.imap(play, range(len(checks))):
            passed, failed = passed + good, failed + (not good)
            print(line, flush=True)
    print(f"in {time.monotonic() - started:.0f} s")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


def begin(path, checks):
    play.oracle, play.checks = oracle.Oracle(path), checks


def play(number):
    name, check = play.checks[number]
    try:
        return True, f"ok      scheduler: {name} ({check(play.oracle)})"
    except (AssertionError, oracle.OracleError) as e:
        return False, f"FAILED  scheduler: {name}: {str(e)[:3000]}"
