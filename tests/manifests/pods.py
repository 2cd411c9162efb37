# SPDX-License-Identifier: Apache-2.0
"""Runs a pod's container as its manifest says, from our image, on a folder that plays the node."""

import json
import os
import re
import shutil
import subprocess
import sys

from daemons import Daemon
from rendering import TESTS, TOP, one, pod_of

sys.path.insert(0, os.path.join(TESTS, "packages"))

from test_image import Image  # noqa: E402

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


class Images:
    """Built once; each container gets its own copy of the root."""
    def __init__(self, directory, build):
        self._directory, self._build, self._made = directory, build, None

    def root(self, name, pod):
        """A root, and what the image says of its program."""
        if not self._made:
            self._made = os.path.join(self._directory, "images")
            subprocess.run([sys.executable, os.path.join(TOP, "packaging", "container", "build.py"), self._build, self._made],
                           check=True, stdout=subprocess.DEVNULL)
        image = Image(os.path.join(self._made, name + ".oci.tar"))
        root = os.path.join(self._directory, f"root-{pod}")
        shutil.rmtree(root, ignore_errors=True)
        image.unpack(root)
        return root, image.config["config"]


def _quantity(text):
    """Bytes of "64Mi"."""
    number, unit = re.fullmatch(r"(\d+)(Ki|Mi|Gi)", text).groups()
    return int(number) << {"Ki": 10, "Mi": 20, "Gi": 30}[unit]


class Pod:
    """objects: what was rendered; kind, name: its workload. host: the folder that plays the node's file system. fields: values of
    the downward API. api: (port, CA file, token), for a pod that mounts its ServiceAccount's token."""
    def __init__(self, bed, objects, kind, name, *, host=None, fields=None, api=None):
        self._spec = pod_of(one(objects, kind, name))
        self._objects, self._host, self._api = objects, host, api
        self._fields = {"metadata.namespace": "vesper-system", **(fields or {})}
        self._name = bed.world.unique(name)
        self.container, = self._spec["containers"]
        image = re.fullmatch(r"(?:.*/)?([^/:]+):[^/:]+", self.container["image"])[1]
        self._root, self._config = bed.images.root(image, self._name)
        self._directory = bed.directory
        self.daemon = self._daemon(image)
        bed.world.daemons.append(self.daemon)

    @property
    def memory_request(self):
        return _quantity(self.container["resources"]["requests"]["memory"])

    def peak_memory(self):
        """Bytes: the most that was resident, pages of libraries included."""
        with open(f"/proc/{self.daemon.pid}/status", encoding="ascii") as f:
            return int(re.search(r"VmHWM:\s+(\d+) kB", f.read())[1]) * 1024

    def capabilities(self):
        with open(f"/proc/{self.daemon.pid}/status", encoding="ascii") as f:
            return {k: int(v, 16) for k, v in re.findall(r"^(Cap\w+):\s+([0-9a-f]+)$", f.read(), re.M)}

    def _daemon(self, name):
        security = {**self._spec["securityContext"], **self.container["securityContext"]}
        assert security["readOnlyRootFilesystem"] and security["capabilities"] == {"drop": ["ALL"]}, security
        assert not security["allowPrivilegeEscalation"], security
        environment = dict(v.split("=", 1) for v in self._config["Env"])
        for variable in self.container.get("env", []):
            environment[variable["name"]] = variable["value"] if "value" in variable else \
                self._fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        mounts = [self._mount(m) for m in self.container.get("volumeMounts", [])]
        if self._api and self._spec.get("automountServiceAccountToken", True):
            port, ca, token = self._api
            environment.update({"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)})
            with open(ca, encoding="utf-8") as f:
                texts = {"ca.crt": f.read(), "token": token, "namespace": self._fields["metadata.namespace"]}
            mounts.append([self._folder("serviceaccount", texts), ACCOUNT, True])
        for source, target, _ in mounts:
            self._make_place(target, os.path.isdir(source))
        arguments = [re.sub(r"\$\((\w+)\)", lambda m: environment[m[1]], a) for a in self.container.get("args", [])]
        os.makedirs(os.path.join(self._root, "proc"), exist_ok=True)
        spec = os.path.join(self._directory, self._name + ".json")
        with open(spec, "w", encoding="utf-8") as f:
            json.dump({"root": self._root, "mounts": mounts, "user": security["runAsUser"], "group": security["runAsGroup"],
                       "argv": self.container.get("command", self._config["Entrypoint"]) + arguments, "env": environment}, f)
        daemon = Daemon(self._name, name, [], self._directory)
        daemon.argv = [sys.executable, os.path.join(TESTS, "manifests", "incontainer.py"), spec]
        return daemon

    def _mount(self, wanted):
        """[from, to, read-only], and what the kubelet would check of it."""
        volume = next(v for v in self._spec["volumes"] if v["name"] == wanted["name"])
        if "configMap" in volume:
            source = self._folder(wanted["name"], one(self._objects, "ConfigMap", volume["configMap"]["name"])["data"])
        else:
            source, kind = self._host + volume["hostPath"]["path"], volume["hostPath"]["type"]
            if kind == "DirectoryOrCreate":
                os.makedirs(source, exist_ok=True)
            right = os.path.isfile(source) if kind == "File" else os.path.isdir(source)
            assert right, f"hostPath type check failed: {volume['hostPath']['path']} is not a {kind}"
        return [source, wanted["mountPath"], wanted.get("readOnly", False)]

    def _folder(self, name, texts):
        path = os.path.join(self._directory, f"{self._name}-{name}")
        os.makedirs(path, exist_ok=True)
        for file, text in texts.items():
            with open(os.path.join(path, file), "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(os.path.join(path, file), 0o644)
        os.chmod(path, 0o755)
        return path

    def _make_place(self, target, folder):
        place = self._root + target
        os.makedirs(place if folder else os.path.dirname(place), exist_ok=True)
        if not folder and not os.path.exists(place):
            with open(place, "w", encoding="utf-8"):
                pass


PLUGIN = "/usr/bin/node-authenticator"
AUTHORITY = "/etc/kubernetes/pki/ca.crt"


def _make_node_with_plugin(folder, certificate, key, ca, url):
    """A kubeconfig that names a program, as EKS's do; this one is static, as aws-iam-authenticator, and prints a certificate."""
    version, path = "client.authentication.k8s.io/v1beta1", "/var/lib/kubelet/kubeconfig"
    printed = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": {
        "clientCertificateData": certificate, "clientKeyData": key}})
    for file, text in ((AUTHORITY, ca), (path, json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "kubelet",
            "clusters": [{"name": "kubernetes", "cluster": {"server": url, "certificate-authority": AUTHORITY}}],
            "contexts": [{"name": "kubelet", "context": {"cluster": "kubernetes", "user": "kubelet"}}],
            "users": [{"name": "kubelet", "user": {"exec": {"apiVersion": version, "command": PLUGIN, "args": ["token"],
                                                            "interactiveMode": "Never"}}}]}))):
        os.makedirs(os.path.dirname(folder + file), exist_ok=True)
        with open(folder + file, "w", encoding="utf-8") as f:
            f.write(text)
    os.makedirs(os.path.dirname(folder + PLUGIN), exist_ok=True)
    source = f"#include <stdio.h>\nint main(void) {{ return puts({json.dumps(printed)}) < 0; }}\n"
    subprocess.run(["gcc", "-x", "c", "-static", "-o", folder + PLUGIN, "-"], input=source, text=True, check=True)
    os.makedirs(folder + "/run/dbus", exist_ok=True)
    return path


def make_node(folder, distribution, name, cluster):
    """What that distribution has of a kubelet's credential, in a folder that plays the node's file system."""
    certificate, key = cluster.node_certificate(name)
    with open(cluster.ca, encoding="utf-8") as f:
        ca = f.read()
    if distribution == "other":
        return _make_node_with_plugin(folder, certificate, key, ca, cluster.url)
    rancher = f"/var/lib/rancher/{distribution}/agent"
    pki = "/var/lib/kubelet/pki"
    if distribution in ("k3s", "rke2"):
        files = {f"{rancher}/server-ca.crt": ca, f"{rancher}/client-kubelet.crt": certificate,
                 f"{rancher}/client-kubelet.key": key}
        path, user = f"{rancher}/kubelet.kubeconfig", (f"{rancher}/client-kubelet.crt", f"{rancher}/client-kubelet.key")
        authority = f"{rancher}/server-ca.crt"
    else:
        # The kubelet's own rotation: a link to the file of the day.
        files = {f"{pki}/kubelet-client-2026-11-21-10-00-00.pem": certificate + key}
        path = "/etc/kubernetes/kubelet.conf" if distribution == "kubeadm" else "/var/lib/kubelet/kubeconfig"
        user = (f"{pki}/kubelet-client-current.pem", ) * 2
        authority = "/etc/kubernetes/pki/ca.crt" if distribution == "kubeadm" else "/etc/kubernetes/certs/ca.crt"
        if distribution == "aks":
            files[authority] = ca
    trust = {"certificate-authority": authority} if authority in files else {"certificate-authority-data": cluster.ca_data()}
    files[path] = json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "default",
        "clusters": [{"name": "default", "cluster": {"server": cluster.url, **trust}}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "users": [{"name": "default", "user": {"client-certificate": user[0], "client-key": user[1]}}]})
    for file, text in files.items():
        os.makedirs(os.path.dirname(folder + file), exist_ok=True)
        with open(os.open(folder + file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
            f.write(text)
    if distribution not in ("k3s", "rke2"):
        os.symlink(f"{pki}/kubelet-client-2026-11-21-10-00-00.pem", f"{folder}{pki}/kubelet-client-current.pem")
    os.makedirs(folder + "/run/dbus", exist_ok=True)
    return path
