# SPDX-License-Identifier: Apache-2.0
"""Random clusters, as Kubernetes objects: what `kubectl get -o json` would print of one.

    draw(seed, place) -> [object...]

The same seed gives the same cluster, as long as place() answers the same. place(objects, pods, way) is kube-scheduler's
own code (oracle.py): each pod is put where that allows it, so that a cluster is one that could have come about. Pods
that fit nowhere are dropped, but for a few that stay pending. Afterwards time passes: pods go, nodes are cordoned, labels
change.
"""

import random

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
RACK = "example.com/rack"
DRIVERS = ("csi.example.com", "local.example.com")
NAMESPACES = {"default": {}, "team-a": {"team": "a", "env": "prod"}, "team-b": {"team": "b", "env": "prod"},
              "kube-system": {}}
TIERS = ("web", "db", "cache")
TASTES = ("selector", "affinity", "toleration", "spread", "podaffinity", "podanti", "ports", "volumes", "init", "extended",
          "preferred", "overhead", "podlevel")
KEYS_OF_NODES = (ZONE, HOST, RACK, "disk", "gen", "pool", "absent")


class Cluster:
    """What has been drawn so far. Draws come from self.random only."""
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.seed = seed
        self.nodes, self.pods, self.others = [], [], []
        self.count = 0
        r = self.random
        self.zones = [f"z{i + 1}" for i in range(r.choice((1, 2, 2, 3, 3, 4)))]
        # Each cluster has a taste of its own: else everything would be in everything, and little would ever fit. In half of
        # them one rule matters: there is room, and what holds pods is that rule.
        self.taste = {name: r.choice((0, 0, 0.1, 0.4, 0.8)) for name in TASTES}
        self.taste["taint"] = r.choice((0, 0.1, 0.3, 0.6))
        self.taste["oddnode"] = r.choice((0, 0.05, 0.15))
        self.theme = r.choice((None, None, None, None, "spread", "spread", "pods", "volumes"))
        if self.theme:
            self.taste.update({name: 0 if r.random() < 0.7 else v for name, v in self.taste.items()})
            self.taste.update({"spread": {"spread": 1, "selector": 0.3, "affinity": 0.2, "taint": 0.4, "toleration": 0.4},
                               "pods": {"podaffinity": 0.7, "podanti": 0.7}, "volumes": {"volumes": 0.8}}[self.theme])

    def chance(self, p):
        return self.random.random() < p

    def likes(self, name):
        return self.chance(self.taste[name])

    def pick(self, *of):
        return self.random.choice(of)

    def some(self, of, most):
        of = list(of)
        return self.random.sample(of, self.random.randint(1, min(most, len(of))))

    def uid(self):
        self.count += 1
        return f"00000000-0000-4000-8000-{self.count:012d}"

    def time(self):
        return f"2026-01-{self.random.randint(1, 28):02d}T{self.random.randint(0, 23):02d}:{self.random.randint(0, 59):02d}:00Z"

    def meta(self, name, namespace=None, labels=None, owner=None):
        m = {"name": name, "uid": self.uid(), "resourceVersion": str(self.count + 100), "creationTimestamp": self.time()}
        if namespace is not None:
            m["namespace"] = namespace
        if labels:
            m["labels"] = dict(labels)
        if owner is not None:
            m["ownerReferences"] = [dict(owner, blockOwnerDeletion=True)]
        return m


# ---- nodes

def node_pools(c):
    return [{
        "name": f"pool-{i}",
        "cpu": c.pick("2", "2", "4", "4", "8", "1930m", "3920m") if not c.theme else "8",
        "memory": c.pick("4Gi", "8Gi", "16Gi", "7900Mi", "8155144Ki") if not c.theme else "32Gi",
        "pods": c.pick("6", "10", "20", "110") if not c.theme else "30",
        "gpu": c.pick("1", "2", "4") if c.likes("extended") else None,
        "taints": [{"key": c.pick("dedicated", "gpu"), "value": c.pick("a", "b"),
                    "effect": c.pick("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")}]
        if c.likes("taint") else [],
    } for i in range(c.random.randint(1, 3))]


def draw_nodes(c):
    pools = node_pools(c)
    count = c.pick(3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 40)
    for i in range(count):
        pool = c.random.choice(pools)
        name = f"n{i + 1:02d}"
        labels = {HOST: name, ZONE: c.random.choice(c.zones), "kubernetes.io/os": "linux", "pool": pool["name"]}
        if c.chance(0.7):
            labels["disk"] = c.pick("ssd", "hdd")
        if c.chance(0.6):
            labels["gen"] = c.pick("1", "2", "3", "4", "10", "old", "0x3", "99999999999999999999")
        if c.chance(0.8):
            labels[RACK] = c.pick("r1", "r2", "r3")
        if c.likes("oddnode"):
            key = c.pick(HOST, ZONE)
            if c.chance(0.5):
                del labels[key]
            else:
                labels[key] = "odd"
        resources = {"cpu": pool["cpu"], "memory": pool["memory"], "pods": pool["pods"],
                     "ephemeral-storage": c.pick("20Gi", "47093746742")}
        if c.chance(0.3):
            resources["hugepages-2Mi"] = c.pick("0", "64Mi")
        if pool["gpu"]:
            resources["example.com/gpu"] = pool["gpu"]
        node = {
            "apiVersion": "v1", "kind": "Node", "metadata": c.meta(name, labels=labels),
            "spec": {"providerID": f"test:///{name}"},
            "status": {"capacity": dict(resources), "allocatable": resources, "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
                 "lastHeartbeatTime": "2026-02-01T00:00:00Z", "lastTransitionTime": "2026-02-01T00:00:00Z"}]},
        }
        taints = [dict(t) for t in pool["taints"]]
        if c.likes("oddnode"):
            taints.append({"key": "special", "effect": c.pick("NoSchedule", "PreferNoSchedule", "NoExecute")})
        if taints:
            node["spec"]["taints"] = taints
        c.nodes.append(node)
    c.pool_names = [p["name"] for p in pools]
    c.gpus = any(p["gpu"] for p in pools)


# ---- parts of a pod

def requirement(c):
    key = c.random.choice(KEYS_OF_NODES)
    values = {ZONE: c.zones, HOST: [n["metadata"]["name"] for n in c.nodes], RACK: ("r1", "r2", "r3"),
              "disk": ("ssd", "hdd"), "gen": ("1", "2", "3", "4", "10"), "pool": c.pool_names, "absent": ("x",)}[key]
    operator = c.pick("In", "In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
    if operator in ("Gt", "Lt"):  # of no negative number: that is no label's value, and kube-scheduler drops the whole term
        return {"key": "gen", "operator": operator, "values": [c.pick("0", "1", "2", "3", "5")]}
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": c.some(values, 3 if key != HOST else 6)}


def node_selector_term(c):
    term = {}
    if c.chance(0.9):
        term["matchExpressions"] = [requirement(c) for _ in range(c.pick(1, 1, 2))]
    if not term or c.chance(0.1):
        term["matchFields"] = [{"key": "metadata.name", "operator": c.pick("In", "NotIn"),
                                "values": [c.random.choice(c.nodes)["metadata"]["name"]]}]
    return term


def pod_selector(c, labels):
    """Of the pod itself, or of others."""
    kind = c.pick("self", "self", "self", "tier", "expression", "app", "all", "none")
    if kind == "self":
        return {"matchLabels": {"app": labels["app"]}}
    if kind == "tier":
        return {"matchLabels": {"tier": c.random.choice(TIERS)}}
    if kind == "app":
        return {"matchLabels": {"app": f"app-{c.random.randint(0, 5)}"}}
    if kind == "expression":
        key = c.pick("tier", "version", "absent")
        operator = c.pick("In", "NotIn", "Exists", "DoesNotExist")
        e = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            e["values"] = c.some({"tier": TIERS, "version": ("v1", "v2"), "absent": ("x",)}[key], 2)
        return {"matchExpressions": [e, {"key": "app", "operator": "In", "values": [labels["app"]]}] if c.chance(0.5) else [e]}
    return {} if kind == "all" else None


def spread_constraint(c, labels):
    t = {"maxSkew": c.pick(1, 1, 1, 2, 3), "topologyKey": c.pick(ZONE, ZONE, HOST, HOST, RACK),
         "whenUnsatisfiable": c.pick("DoNotSchedule", "DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")}
    selector = pod_selector(c, labels) if c.chance(0.4) else {"matchLabels": {"app": labels["app"]}}
    if selector is not None:
        t["labelSelector"] = selector
        if c.chance(0.3):
            # The API server of 1.34 writes these into the selector itself; older ones leave it to the scheduler.
            t["matchLabelKeys"] = ["version"]
            if c.chance(0.5) and "version" in labels:
                t["labelSelector"] = dict(selector, matchExpressions=selector.get("matchExpressions", []) + [
                    {"key": "version", "operator": "In", "values": [labels["version"]]}])
    if t["whenUnsatisfiable"] == "DoNotSchedule" and c.chance(0.25):
        t["minDomains"] = c.pick(1, 2, 3, 5)
    if c.chance(0.5):
        t["nodeAffinityPolicy"] = c.pick("Honor", "Ignore")
    if c.chance(0.5):
        t["nodeTaintsPolicy"] = c.pick("Honor", "Ignore")
    return t


def pod_affinity_term(c, labels):
    t = {"topologyKey": c.pick(ZONE, ZONE, HOST, HOST, RACK)}
    selector = pod_selector(c, labels)
    if selector is not None:
        t["labelSelector"] = selector
        # Here the scheduler never looks at the keys: the API server has merged them.
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            if c.chance(0.1):
                t[field] = ["version"]
                if "version" in labels:
                    t["labelSelector"] = dict(selector, matchExpressions=selector.get("matchExpressions", []) + [
                        {"key": "version", "operator": operator, "values": [labels["version"]]}])
                break
    if c.chance(0.2):
        t["namespaces"] = c.some(NAMESPACES, 2)
    if c.chance(0.2):
        # None that takes a namespace without labels: kube-scheduler 1.34 takes such a one for every namespace, by mistake (its
        # InterPodAffinity forgets in its PreFilter that it has looked the namespaces up).
        t["namespaceSelector"] = c.pick({}, {"matchLabels": {"team": "a"}}, {"matchLabels": {"env": "prod"}},
                                        {"matchExpressions": [{"key": "team", "operator": "Exists"}]})
    return t


def affinity(c, labels):
    a = {}
    if c.likes("affinity"):
        a["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [node_selector_term(c) for _ in range(c.pick(1, 1, 2))]}}
    if c.likes("preferred"):
        a.setdefault("nodeAffinity", {})["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": 10, "preference": node_selector_term(c)}]
        a.setdefault("podAntiAffinity", {})["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": 10, "podAffinityTerm": pod_affinity_term(c, labels)}]
    if c.chance(c.taste["podaffinity"] / 2):
        a.setdefault("podAffinity", {})["requiredDuringSchedulingIgnoredDuringExecution"] = [
            pod_affinity_term(c, labels) for _ in range(c.pick(1, 1, 1, 2))]
    if c.chance(c.taste["podanti"] / 2):
        a.setdefault("podAntiAffinity", {})["requiredDuringSchedulingIgnoredDuringExecution"] = [
            pod_affinity_term(c, labels) for _ in range(c.pick(1, 1, 1, 2))]
    return a


def requests(c, scale=1):
    r = {}
    if c.chance(0.9):
        r["cpu"] = c.pick("10m", "100m", "100m", "250m", "250m", "500m", "1", "1500m") if scale == 1 else c.pick("1", "2")
    if c.chance(0.9):
        r["memory"] = c.pick("64Mi", "128Mi", "256Mi", "512Mi", "1Gi", "500M", "129e6", "123456789", "64500m")
    if c.chance(0.02):
        r["hugepages-2Mi"] = c.pick("0", "2Mi", "64Mi")
    if c.chance(0.1):
        r["ephemeral-storage"] = c.pick("1Gi", "8Gi", "500M")
    return r


def container(c, name, scale=1):
    resources = {}
    r = requests(c, scale)
    if r:
        resources["requests"] = r
    if c.gpus and c.likes("extended"):
        resources.setdefault("requests", {})["example.com/gpu"] = "1"
        resources["limits"] = {"example.com/gpu": "1"}
    k = {"name": name, "image": "example.com/image:1", "resources": resources}
    if c.chance(c.taste["ports"] / 2):
        port = {"containerPort": 80, "hostPort": c.pick(8080, 8080, 9090), "protocol": c.pick("TCP", "TCP", "UDP")}
        if c.chance(0.4):  # not "::", which is every address to vesper, as to a kubelet, and one like others to kube-scheduler
            port["hostIP"] = c.pick("0.0.0.0", "127.0.0.1", "10.0.0.5")
        k["ports"] = [port]
    return k


def tolerations(c):
    t = [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
         for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")]
    if c.likes("toleration"):
        one = {"key": c.pick("dedicated", "gpu", "special"), "operator": c.pick("Exists", "Equal")}
        if one["operator"] == "Equal":
            one["value"] = c.pick("a", "b")
        if c.chance(0.7):
            one["effect"] = c.pick("NoSchedule", "NoExecute")
        t.append(one)
    if c.chance(c.taste["toleration"] / 20):
        t.append({"operator": "Exists"})
    return t


def pod_spec(c, labels):
    spec = {"containers": [container(c, f"c{i}") for i in range(c.pick(1, 1, 1, 2))],
            "schedulerName": "default-scheduler", "restartPolicy": "Always", "priority": c.pick(0, 0, 0, 1000, -10),
            "terminationGracePeriodSeconds": 30, "tolerations": tolerations(c)}
    if c.likes("init"):
        spec["initContainers"] = []
        for i in range(c.pick(1, 2, 3)):
            k = container(c, f"i{i}", c.pick(1, 1, 2))
            if c.chance(0.5):
                k["restartPolicy"] = "Always"
            spec["initContainers"].append(k)
    if c.likes("overhead"):
        spec["runtimeClassName"] = "sandboxed"
        spec["overhead"] = {"cpu": "250m", "memory": "120Mi"}
    if c.chance(c.taste["podlevel"] / 3):
        spec["resources"] = {"requests": {"cpu": c.pick("2", "2500m"), "memory": c.pick("2Gi", "3Gi")}}
    if c.likes("selector"):
        spec["nodeSelector"] = c.pick({"disk": "ssd"}, {"pool": c.random.choice(c.pool_names)},
                                      {ZONE: c.random.choice(c.zones)}, {"kubernetes.io/os": "linux"})
    a = affinity(c, labels)
    if a:
        spec["affinity"] = a
    if c.likes("spread"):
        chosen = {}
        for _ in range(c.pick(1, 1, 2)):
            t = spread_constraint(c, labels)
            chosen[t["topologyKey"], t["whenUnsatisfiable"]] = t  # a pair may be there once only
        spec["topologySpreadConstraints"] = list(chosen.values())
    return spec


# ---- volumes

def node_of_volume(c):
    """What a PersistentVolume says of where it can be used."""
    kind = c.pick("zone", "zone", "host", "zones", "anywhere")
    if kind == "anywhere":
        return None
    key = HOST if kind == "host" else ZONE
    values = [n["metadata"]["labels"].get(key, "odd") for n in c.random.sample(c.nodes, 2 if kind == "zones" else 1)]
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": key, "operator": "In", "values": sorted(set(values))}]}]}}


def claim(c, name, namespace, modes):
    """A bound claim and its volume."""
    volume = f"pv-{namespace}-{name}"
    c.others.append({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": dict(c.meta(name, namespace), annotations={"pv.kubernetes.io/bind-completed": "yes",
                                                               "pv.kubernetes.io/bound-by-controller": "yes"}),
        "spec": {"accessModes": modes, "storageClassName": "standard", "volumeName": volume, "volumeMode": "Filesystem",
                 "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound", "accessModes": modes, "capacity": {"storage": "1Gi"}}})
    pv = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": c.meta(volume),
        "spec": {"accessModes": modes, "capacity": {"storage": "1Gi"}, "storageClassName": "standard",
                 "persistentVolumeReclaimPolicy": "Delete", "volumeMode": "Filesystem",
                 "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": namespace, "name": name,
                              "uid": c.others[-1]["metadata"]["uid"]},
                 "csi": {"driver": c.pick(DRIVERS[0], DRIVERS[0], DRIVERS[1]), "volumeHandle": f"vol-{namespace}-{name}"}},
        "status": {"phase": "Bound"}}
    where = node_of_volume(c)
    if where:
        pv["spec"]["nodeAffinity"] = where
    if c.chance(0.15):  # as volumes of older provisioners have it; "__" stands between several zones
        pv["metadata"]["labels"] = {ZONE: "__".join(c.some(c.zones, 2))}
    c.others.append(pv)


def volume(name):
    return {"name": f"v-{name}", "persistentVolumeClaim": {"claimName": name}}


def draw_storage(c):
    c.others.append({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": c.meta("standard"),
                     "provisioner": DRIVERS[0], "volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Delete"})
    for node in c.nodes:
        if c.chance(0.15):
            continue
        drivers = []
        for driver in DRIVERS:
            if c.chance(0.8):
                drivers.append({"name": driver, "nodeID": node["metadata"]["name"], "topologyKeys": [ZONE]})
                if c.chance(0.8):
                    drivers[-1]["allocatable"] = {"count": c.pick(1, 2, 3, 8)}
        c.others.append({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
                         "metadata": c.meta(node["metadata"]["name"]), "spec": {"drivers": drivers or None}})


# ---- pods

def pod(c, name, namespace, labels, spec, owner):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": c.meta(name, namespace, labels, owner), "spec": spec,
            "status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}], "qosClass": "Burstable"}}


def copy(value):
    if isinstance(value, dict):
        return {k: copy(v) for k, v in value.items()}
    if isinstance(value, list):
        return [copy(v) for v in value]
    return value


def controller(api, kind, name, c):
    return {"apiVersion": api, "kind": kind, "name": name, "uid": c.uid(), "controller": True}


def draw_workload(c, number):
    """The pods of one, not yet on nodes."""
    namespace = c.pick("default", "default", "team-a", "team-a", "team-b")
    name = f"app-{number}"
    kind = c.pick("ReplicaSet", "ReplicaSet", "ReplicaSet", "StatefulSet", "StatefulSet", "Job", "none")
    labels = {"app": name, "tier": c.random.choice(TIERS)}
    if c.chance(0.8):
        labels["version"] = "v1"
    replicas = c.pick(1, 1, 2, 2, 3, 3, 4, 6) if kind != "none" else 1
    spec = pod_spec(c, labels)
    if kind == "Job":
        spec["restartPolicy"] = "Never"
    owner = controller("batch/v1" if kind == "Job" else "apps/v1", kind, name, c) if kind != "none" else None
    claims = kind in ("ReplicaSet", "StatefulSet", "none") and c.likes("volumes")
    if claims and kind != "StatefulSet":
        claim(c, f"shared-{name}", namespace, c.pick(["ReadWriteMany"], ["ReadWriteOnce"], ["ReadWriteOncePod"]))
        spec["volumes"] = [volume(f"shared-{name}")]
    pods = []
    for i in range(replicas):
        one = copy(spec)
        if claims and kind == "StatefulSet":
            claim(c, f"data-{name}-{i}", namespace, ["ReadWriteOnce"])
            one["volumes"] = [volume(f"data-{name}-{i}")]
        if "version" in labels and c.chance(0.25):
            # Another revision: its own template, whose merged selectors name it.
            pods.append(pod(c, f"{name}-{i}", namespace, dict(labels, version="v2"), renamed(one, "v1", "v2"), owner))
        else:
            pods.append(pod(c, f"{name}-{i}", namespace, labels, one, owner))
    return pods


def renamed(value, old, new):
    """The template of another revision: what was merged from matchLabelKeys has its value."""
    if isinstance(value, dict):
        if value.get("key") == "version" and value.get("values") == [old]:
            return dict(value, values=[new])
        return {k: renamed(v, old, new) for k, v in value.items()}
    if isinstance(value, list):
        return [renamed(v, old, new) for v in value]
    return value


def draw_daemons(c):
    """Of the pods that belong to a node: those of DaemonSets, which the scheduler places, and static ones, which it does not."""
    for number in range(c.pick(0, 1, 2)):
        owner = controller("apps/v1", "DaemonSet", f"ds-{number}", c)
        labels = {"app": f"ds-{number}", "tier": c.random.choice(TIERS)}
        spec = {"containers": [{"name": "c", "image": "example.com/image:1",
                                "resources": {"requests": {"cpu": "50m", "memory": "50Mi"}}}],
                "schedulerName": "default-scheduler", "tolerations": [{"operator": "Exists"}], "restartPolicy": "Always"}
        if c.likes("podanti") and c.chance(0.3):
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": HOST, "labelSelector": {"matchLabels": {"tier": c.random.choice(TIERS),
                                                                        "app": f"app-{c.random.randint(0, 5)}"}}}]}}
        for node in c.nodes:
            one = copy(spec)
            one.setdefault("affinity", {})["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In",
                                                        "values": [node["metadata"]["name"]]}]}]}}
            yield pod(c, f"ds-{number}-{node['metadata']['name']}", "kube-system", labels, one, owner)


def draw_static(c):
    for node in c.nodes:
        if c.chance(0.2):
            name = node["metadata"]["name"]
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"], "controller": True}
            p = pod(c, f"static-{name}", "kube-system", {"app": "static", "tier": c.random.choice(TIERS)}, {
                "containers": [container(c, "c")], "schedulerName": "default-scheduler", "nodeName": name,
                "tolerations": [{"operator": "Exists", "effect": "NoExecute"}], "restartPolicy": "Always"}, owner)
            p["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"}
            bind(p, name)
            yield p


def bind(p, node):
    p["spec"]["nodeName"] = node
    p["status"] = {"phase": "Running", "qosClass": "Burstable", "startTime": p["metadata"]["creationTimestamp"],
                   "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]}


# ---- time passes

def resize(c, p):
    """In place: the kubelet has not come to what the spec says, or has said that it cannot."""
    p["status"]["containerStatuses"] = []
    for k in p["spec"]["containers"]:
        actual = {name: c.pick(value, {"cpu": "1", "memory": "700Mi"}.get(name, value)) for name, value in
                  k.get("resources", {}).get("requests", {}).items()}
        p["status"]["containerStatuses"].append({"name": k["name"], "ready": True, "restartCount": 0, "image": k["image"],
                                                 "imageID": "x", "resources": {"requests": actual}, "allocatedResources": actual})
    p["status"]["conditions"].append({"type": "PodResizePending", "status": "True", "reason": c.pick("Deferred", "Infeasible")}
                                     if c.chance(0.5) else {"type": "PodResizeInProgress", "status": "True"})


def pass_time(c):
    churn = c.pick(0, 0, 0.1, 0.3, 0.4 if c.theme else 0)
    kept = []
    for p in c.pods:
        owners = p["metadata"].get("ownerReferences", [{}])
        belongs = owners[0].get("kind") in ("DaemonSet", "Node")
        if "nodeName" in p["spec"] and not belongs:
            if c.chance(churn):
                continue
            if c.chance(churn / 4):
                p["metadata"]["deletionTimestamp"] = "2026-02-01T00:00:30Z"
                p["metadata"]["deletionGracePeriodSeconds"] = 30
            if owners[0].get("kind") == "Job" and c.chance(0.3) or c.chance(churn / 8):
                p["status"]["phase"] = c.pick("Succeeded", "Failed")
            if c.chance(churn / 4):
                resize(c, p)
            if c.chance(churn / 40):
                p["spec"]["nodeName"] = "gone"  # its node's object has been deleted, and nobody has collected it yet
        kept.append(p)
    c.pods = kept
    for node in c.nodes:
        if not c.likes("oddnode"):
            continue
        spec, labels = node["spec"], node["metadata"]["labels"]
        what = c.pick("cordon", "taint", "label", "notready", "deleting")
        if what in ("cordon", "deleting"):
            spec["unschedulable"] = True
            spec.setdefault("taints", []).append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule",
                                                  "timeAdded": "2026-02-01T00:00:00Z"})
        if what == "deleting":
            node["metadata"]["deletionTimestamp"] = "2026-02-01T00:00:00Z"
            node["metadata"]["finalizers"] = ["vesper.sh/termination"]
            spec["taints"].append({"key": "vesper.sh/disrupted", "effect": "NoSchedule"})
        elif what == "taint":
            spec.setdefault("taints", []).append({"key": "late", "value": "x", "effect": "NoSchedule"})
        elif what == "label":
            labels[c.pick("disk", RACK)] = "changed"
        elif what == "notready":
            node["status"]["conditions"][0].update(status="Unknown", reason="NodeStatusUnknown")
            spec.setdefault("taints", []).extend([{"key": "node.kubernetes.io/unreachable", "effect": e}
                                                  for e in ("NoSchedule", "NoExecute")])


def promise(c):
    """Nodes to pending pods, wherever kube-scheduler has preempted for them. Drawn apart: the rest of a seed's cluster is as it was."""
    drawn = random.Random(f"promises of {c.seed}")
    if drawn.random() < 0.5:
        return
    for p in c.pods:
        if "nodeName" not in p["spec"] and "deletionTimestamp" not in p["metadata"] and drawn.random() < 0.7:
            p["status"]["nominatedNodeName"] = drawn.choice(c.nodes)["metadata"]["name"]


def name_of(o):
    m = o["metadata"]
    return f"{m['namespace']}/{m['name']}" if "namespace" in m else m["name"]


def capacity(c):
    """In pods of the usual size (two of them a core), roughly."""
    return sum({"1930m": 2, "3920m": 4}.get(n["status"]["allocatable"]["cpu"]) or int(n["status"]["allocatable"]["cpu"])
               for n in c.nodes) * 2


def draw(seed, place):
    c = Cluster(seed)
    draw_nodes(c)
    draw_storage(c)
    for namespace, labels in NAMESPACES.items():
        c.others.append({"apiVersion": "v1", "kind": "Namespace", "metadata": c.meta(
            namespace, labels=dict(labels, **{"kubernetes.io/metadata.name": namespace})), "status": {"phase": "Active"}})
    c.pods.extend(draw_static(c))
    waiting = list(draw_daemons(c))
    fullness = c.pick(0.3, 0.5, 0.8, 1.2, 2)  # the last: until nothing more fits
    workloads = []
    goal = min(max(3, int(capacity(c) * fullness)), 4 * len(c.nodes) if c.theme else 150)
    while sum(map(len, workloads)) < goal:
        workloads.append(draw_workload(c, len(workloads)))
    c.random.shuffle(workloads)
    for pods in workloads:
        waiting.extend(pods)
    way = c.pick("free", "free", "random:%d" % seed, "first")
    placed = place(c.nodes + c.pods + waiting + c.others, [name_of(p) for p in waiting], way)
    pending = c.pick(0, 0, 1, 3)
    for p in waiting:
        node = placed.get(name_of(p))
        if node is not None:
            bind(p, node)
        elif pending > 0 and p["metadata"].get("ownerReferences", [{}])[0].get("kind") != "DaemonSet":
            pending -= 1
        else:
            continue
        c.pods.append(p)
    pass_time(c)
    promise(c)
    return c.nodes + c.pods + c.others
