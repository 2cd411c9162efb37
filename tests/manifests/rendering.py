# SPDX-License-Identifier: Apache-2.0
"""What helm and kustomize make of packaging/: objects as dicts."""

import configparser
import copy
import json
import os
import re
import subprocess

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP = os.path.dirname(TESTS)
MANIFESTS = os.path.join(TOP, "packaging", "manifests")
CHART = os.path.join(TOP, "packaging", "helm", "vesper")
NAMESPACE = "vesper-system"
DISTRIBUTIONS = ("kubeadm", "k3s", "rke2", "aks")
# What only the one or the other adds to objects.
_HELM_LABELS = ("helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/instance")
_HELM_ANNOTATIONS = ("helm.sh/resource-policy", "checksum/config")
_HASHED = re.compile(r"(vesper-(?:agent|coordinator)-conf)-[a-z0-9]{10}")


class Refused(Exception):
    """helm said no; the message is what it said."""


class Tools:
    """helm, as build.sh makes it, and the kubectl of that cluster."""
    def __init__(self, cluster, directory):
        self._cluster = cluster
        done = subprocess.run([os.path.join(TESTS, "manifests", "build.sh")], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"helm could not be built (tests/manifests/build.sh: {done.returncode})")
        self._program = done.stdout.strip()
        self._environment = {"PATH": "/usr/bin:/bin", "HOME": directory, "KUBECONFIG": cluster.kubeconfig(),
                             "HELM_CACHE_HOME": os.path.join(directory, "helm-cache"),
                             "HELM_CONFIG_HOME": os.path.join(directory, "helm-config"),
                             "HELM_DATA_HOME": os.path.join(directory, "helm-data")}

    def helm(self, *arguments, stdin=None):
        """What it prints. Refused: it failed."""
        done = subprocess.run([self._program, *arguments], input=stdin, capture_output=True, text=True, check=False,
                              env=self._environment, timeout=600)
        if done.returncode:
            raise Refused(done.stderr)
        return done.stdout

    def template(self, *values, namespace=NAMESPACE):
        """As YAML. values: what --set-json takes, or paths of values files."""
        given = [a for v in values for a in (("-f", v) if v.startswith("/") else ("--set-json", v))]
        return self.helm("template", "vesper", CHART, "--namespace", namespace, "--kube-version", "1.34", *given)

    def kustomize(self, folder="."):
        return self._cluster.kubectl("kustomize", os.path.join(MANIFESTS, folder))

    def objects(self, text):
        """YAML documents as dicts. kubectl reads them; the API server is asked for nothing but which kinds there are."""
        printed = self._cluster.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-", stdin=text)
        decoder, found, at = json.JSONDecoder(), [], 0
        while at < len(printed):
            value, at = decoder.raw_decode(printed, at)
            found += value["items"] if value["kind"] == "List" else [value]
            while at < len(printed) and printed[at].isspace():
                at += 1
        return found


def one(objects, kind, name=None):
    found = [o for o in objects if o["kind"] == kind and name in (None, o["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} objects are {kind} {name or ''}, one is expected"
    return found[0]


def is_hook(o):
    return "helm.sh/hook" in o["metadata"].get("annotations", {})


def configuration(text):
    """{section: {key: value}} of one of our configuration files."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read_string(text)
    return {s: dict(parser[s]) for s in parser.sections()}


def _without(meta, field, names):
    kept = {k: v for k, v in (meta.get(field) or {}).items() if k not in names}
    meta.pop(field, None)
    if kept:
        meta[field] = kept


def normal(objects):
    """{(kind, name): object}, without what helm or kustomize alone put there: marks of the tool, the hash in a ConfigMap's name or
    beside it. helm makes no Namespace, with which goes what the coordinators write; so the release owns that. kustomize has no hooks."""
    found = {}
    for original in objects:
        if original["kind"] in ("Namespace", "Lease", "Secret") or is_hook(original):
            continue
        # The hash stands in the name, and where a pod refers to it.
        o = json.loads(_HASHED.sub(r"\1", json.dumps(original)))
        for meta in (o["metadata"], o.get("spec", {}).get("template", {}).get("metadata", {})):
            _without(meta, "labels", _HELM_LABELS)
            _without(meta, "annotations", _HELM_ANNOTATIONS)
            meta.pop("creationTimestamp", None)
        if o["kind"] == "ConfigMap":
            o["data"] = {name: configuration(text) for name, text in o["data"].items()}
        found[o["kind"], o["metadata"]["name"]] = o
    return found


def same(a, b):
    """Two sets of normal() objects: the lines in which they differ, for people."""
    lines = [f"only in the first: {k}" for k in sorted(a.keys() - b.keys())]
    lines += [f"only in the second: {k}" for k in sorted(b.keys() - a.keys())]
    for key in sorted(a.keys() & b.keys()):
        lines += [f"{key[0]} {key[1]}: {line}" for line in _differences(a[key], b[key])]
    return lines


def _differences(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            yield from _differences(a.get(key), b.get(key), f"{path}.{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            yield from _differences(x, y, f"{path}[{i}]")
    elif a != b or isinstance(a, bool) != isinstance(b, bool):
        yield f"{path} is {json.dumps(a)} and {json.dumps(b)}"


def pod_of(workload):
    """A copy of its template's spec."""
    return copy.deepcopy(workload["spec"]["template"]["spec"])
