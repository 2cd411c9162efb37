#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes control plane on loopback, for tests.

etcd, kube-apiserver, kube-controller-manager and kube-scheduler on random ports of 127.0.0.1, with kwok as
the life of nodes and pods and moto as EC2 where wanted. Several can run at once; all processes are gone when
their owner is. As a module:

    with Cluster(kwok=True, moto=True) as cluster:
        nodes = cluster.create_nodes(3)
        cluster.create_pods(nodes[0], 30)
        cluster.wait_running(30)
        node = cluster.client("system:node:" + nodes[0], ["system:nodes"])
        status, answer = node.evict("default", "pod-0000")

As a command:

    cluster.py run [--kwok] [--moto] -- COMMAND...    run COMMAND with KUBECONFIG and so on; its exit status
    cluster.py up --dir DIR [--kwok] [--moto]         until SIGTERM; DIR/env sets the same variables
    cluster.py kubeconfig USER [GROUP...]             while one runs: the path of a kubeconfig for that user
    cluster.py service-account NAMESPACE NAME [--role CLUSTERROLE]    ... for that ServiceAccount
    cluster.py nodes COUNT | pods NODE COUNT | instances COUNT        ... make some, print their names

Those that need a running cluster take it from --dir or $VESPER_CLUSTER_DIR.
"""

import argparse
import base64
import contextlib
import copy
import fcntl
import json
import os
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import apiclient  # noqa: E402
import ec2moto  # noqa: E402
import pki  # noqa: E402
import procs  # noqa: E402
from apiclient import ApiError  # noqa: E402,F401  (for those who import us)
from procs import StartError  # noqa: E402,F401

STAGES = os.path.join(HERE, "stages")
KWOK_LABEL = "test.vesper.sh/kubelet"
# Each node has a kubelet of its own: so many pods may begin or end at the same time. With fewer the last of 3,000 evicted pods
# waits for kwok, long after it was evicted.
KUBELETS_AT_ONCE = 200
_TEMPORARY = "vesper-cluster-"


def cache_directory():
    cache = os.environ.get("VESPER_CACHE")
    if not cache:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        cache = os.path.join(home, "vesper-tests")
    return cache


def build():
    """The directory of the control plane's binaries, built first when they are not there."""
    done = subprocess.run([os.path.join(HERE, "build.sh")], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise StartError(f"the control plane could not be built (build.sh: {done.returncode})")
    return done.stdout.strip()


class Cluster:
    """One control plane. All arguments are optional:

    directory      where everything lies; default a temporary one. It is removed at the end, unless keep
    controllers    run kube-controller-manager; without it the default ServiceAccount is still made
    scheduler      run kube-scheduler
    kwok, moto     start these too; as start_kwok(), start_moto() later, but beside the control plane
    audit          log every request, for audit_events()
    address        where others reach the API server, too (default: on loopback alone); kubeconfigs name it
    apiserver_port where it listens (default: a free port); for a network that is the caller's own
    apiserver_args, controllers_args    more flags for kube-apiserver, kube-controller-manager
    """

    def __init__(self, directory=None, *, controllers=True, scheduler=True, kwok=False, moto=False,
                 audit=False, keep=False, address=None, apiserver_port=None, apiserver_args=(), controllers_args=()):
        self._wanted = {"controllers": controllers, "scheduler": scheduler, "kwok": kwok, "moto": moto}
        self._audit = audit
        self._keep = keep
        self._address = address or "127.0.0.1"
        self._apiserver_port = apiserver_port
        self._apiserver_args = list(apiserver_args)
        self._controllers_args = list(controllers_args)
        self._made_directory = directory is None
        self.directory = os.path.abspath(directory) if directory else None
        self.processes = {}
        self.binaries = None
        self.ports = {}
        self.ec2 = None
        self.seconds = {}
        self._ports = procs.Ports()
        self._clients = {}
        self._lock = None
        self._forget_at_exit = None
        self._pki = None

    # -- life

    def __enter__(self):
        procs.exit_on_signals()
        self._forget_at_exit = procs.at_exit(self.stop)
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        begin = time.monotonic()
        self.binaries = build()
        self.seconds["build"] = time.monotonic() - begin

        begin = time.monotonic()
        self._make_directory()
        if self._wanted["moto"]:
            self._launch_moto()
        self._pki = pki.Pki(self._path("pki"))
        self._pki.create()
        for name in ("etcd", "etcd-peer", "apiserver", "controllers", "scheduler"):
            self.ports[name] = self._ports.take()
        if self._apiserver_port:
            self.ports["apiserver"] = self._apiserver_port
        self._launch_etcd()
        self._launch_apiserver()
        self._save()
        self.seconds["apiserver"] = time.monotonic() - begin

        if self._wanted["controllers"]:
            self._launch_controllers()
        if self._wanted["scheduler"]:
            self._launch_scheduler()
        if self._wanted["kwok"]:
            self.start_kwok()
        self._ready_controllers()
        if self._wanted["moto"]:
            self._ready_moto()
        self._save()
        self.seconds["start"] = time.monotonic() - begin

    def stop(self):
        """Ends every process and removes the directory. Can be called twice."""
        with procs.signals_blocked():
            for process in self.processes.values():
                process.kill()
            for process in self.processes.values():
                process.wait()
            self.processes.clear()
            for client in self._clients.values():
                client.close()
            self._clients.clear()
            self._ports.release()
            if self._lock:
                if self._keep:
                    os.unlink(self._path("lock"))
                else:
                    self._remove_directory()
                os.close(self._lock)
                self._lock = None
            if self._forget_at_exit:
                self._forget_at_exit()
                self._forget_at_exit = None

    def _make_directory(self):
        if self._made_directory:
            _remove_orphans()
            self.directory = tempfile.mkdtemp(prefix=_TEMPORARY)
        else:
            os.makedirs(self.directory, exist_ok=True)
        # Who holds this lock owns the directory; one that nobody holds was left behind by a killed process.
        self._lock = os.open(self._path("lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            self._lock = None
            raise StartError(f"another cluster runs in {self.directory}") from None
        for name in ("etcd", "apiserver-certs"):
            shutil.rmtree(self._path(name), ignore_errors=True)
        for name in ("logs", "kubeconfigs"):
            os.makedirs(self._path(name), exist_ok=True)

    def _remove_directory(self):
        if self._made_directory:
            shutil.rmtree(self.directory, ignore_errors=True)
            return
        # Not ours alone: only what we put there, and the logs stay for who named the place.
        for name in ("etcd", "pki", "kubeconfigs", "kubectl-cache"):
            shutil.rmtree(self._path(name), ignore_errors=True)
        for name in ("cluster.json", "env", "stages.yaml", "audit.yaml", "lock"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(name))

    def _path(self, *names):
        return os.path.join(self.directory, *names)

    def _write(self, name, text):
        """Whole or not at all, since others may wait for it."""
        path = self._path(name)
        temporary = f"{path}.{os.getpid()}.{threading.get_ident()}"
        fd = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(temporary, path)
        return path

    def _save(self):
        self._write("cluster.json", json.dumps({
            "ports": self.ports, "binaries": self.binaries,
            "pids": {name: p.pid for name, p in self.processes.items()}}))

    @classmethod
    def attach(cls, directory):
        """A running cluster of another process: to talk to it, not to end it."""
        self = cls(directory)
        with open(self._path("cluster.json"), encoding="utf-8") as f:
            state = json.load(f)
        self.ports, self.binaries = state["ports"], state["binaries"]
        self._pki = pki.Pki(self._path("pki"))
        if "moto" in self.ports:
            self.ec2 = ec2moto.Ec2(self.ports["moto"])
        return self

    # -- processes

    def _launch(self, name, *argv, program=None, env=None):
        """Starts it without waiting; program is its path when it is none of build.sh's."""
        clean = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.directory,
                 "TMPDIR": tempfile.gettempdir(), "LANG": "C.UTF-8", **(env or {})}
        program = program or os.path.join(self.binaries, name)
        process = procs.Process(name, [program, *argv], self._path("logs", f"{name}.log"), clean)
        self.processes[name] = process
        return process.start()

    def _launch_etcd(self):
        client = f"http://127.0.0.1:{self.ports['etcd']}"
        peer = f"http://127.0.0.1:{self.ports['etcd-peer']}"
        self._launch("etcd", "--name=test", f"--data-dir={self._path('etcd')}", "--unsafe-no-fsync",
                     f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
                     f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
                     f"--initial-cluster=test={peer}", "--log-level=warn",
                     "--quota-backend-bytes=4294967296").wait_ready(
            lambda: _http_ok(f"{client}/readyz"))

    def _launch_apiserver(self):
        certificate, key = self._server_certificate()
        extra = []
        if self._audit:
            policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
                      "rules": [{"level": "Metadata"}]}
            extra = [f"--audit-policy-file={self._write('audit.yaml', json.dumps(policy))}",
                     f"--audit-log-path={self._path('logs', 'audit.log')}"]
        self._launch(
            "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.ports['etcd']}",
            f"--bind-address={'127.0.0.1' if self._address == '127.0.0.1' else '0.0.0.0'}",
            f"--advertise-address={self._address}",
            f"--secure-port={self.ports['apiserver']}",
            f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}",
            f"--client-ca-file={self._pki.ca}",
            "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
            f"--service-account-key-file={self._pki.account_public}",
            f"--service-account-signing-key-file={self._pki.account_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none",
            "--allow-privileged=true", *extra, *self._apiserver_args)
        self.wait_apiserver()

    def wait_apiserver(self, timeout=300):
        admin = self.client()
        self.processes["kube-apiserver"].wait_ready(
            lambda: admin.request("GET", "/readyz")[0] == 200, timeout)

    def _server_certificate(self):
        return self._pki.issue("kube-apiserver", names=(
            "DNS:localhost", "DNS:kubernetes", "DNS:kubernetes.default", "DNS:kubernetes.default.svc",
            "IP:10.96.0.1", *{f"IP:{a}": None for a in ("127.0.0.1", self._address)}))

    def _controller(self, name, port, *arguments):
        """What controller-manager and scheduler have in common."""
        certificate, key = self._server_certificate()
        self._launch(name, f"--kubeconfig={self.kubeconfig('system:' + name)}", "--leader-elect=false",
                     "--bind-address=127.0.0.1", f"--secure-port={port}", f"--tls-cert-file={certificate}",
                     f"--tls-private-key-file={key}", *arguments,
                     # The default of 20 a second alone makes the start take 6 s.
                     "--kube-api-qps=1000", "--kube-api-burst=2000")

    def _launch_controllers(self):
        self._controller("kube-controller-manager", self.ports["controllers"],
                         "--use-service-account-credentials",
                         # kwok renews no Leases of nodes (when told to, it forgets pods that come early):
                         # after 50 s every node would be taken for dead.
                         "--node-monitor-grace-period=24h",
                         f"--service-account-private-key-file={self._pki.account_key}",
                         f"--root-ca-file={self._pki.ca}", *self._controllers_args)

    def _launch_scheduler(self):
        self._controller("kube-scheduler", self.ports["scheduler"])

    def _ready_controllers(self):
        admin = self.client()
        account = "/api/v1/namespaces/default/serviceaccounts"
        if self._wanted["controllers"]:
            # Made by a controller: that it is there says that they work, and pods can be created.
            self.processes["kube-controller-manager"].wait_ready(lambda: admin.find(f"{account}/default"))
        else:
            admin.create(account, {"apiVersion": "v1", "kind": "ServiceAccount",
                                   "metadata": {"name": "default"}})
        if self._wanted["scheduler"]:
            url = f"https://127.0.0.1:{self.ports['scheduler']}/readyz"
            self.processes["kube-scheduler"].wait_ready(lambda: _http_ok(url, self._pki.ca))

    def start_kwok(self, stages=None):
        """kwok manages the nodes that carry the label test.vesper.sh/kubelet=kwok. stages: YAML files in
        place of those in stages/. Returns at once: nodes and pods show when it works."""
        stages = stages or sorted(os.path.join(STAGES, f) for f in os.listdir(STAGES) if f.endswith(".yaml"))
        settings = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": {
            "podPlayStageParallelism": KUBELETS_AT_ONCE, "nodePlayStageParallelism": 16, "nodeLeaseParallelism": 8}}
        documents = [json.dumps(settings)]
        for stage in stages:
            with open(stage, encoding="utf-8") as f:
                documents.append(f.read())
        self._launch("kwok", "--config=" + self._write("stages.yaml", "\n---\n".join(documents)),
                     f"--kubeconfig={self.kubeconfig('test:kwok', ['system:masters'])}",
                     f"--manage-nodes-with-label-selector={KWOK_LABEL}=kwok", "--cidr=10.0.0.0/8",
                     "--node-ip=127.0.0.1")

    def start_moto(self, **env):
        """EC2 on loopback; returns its Ec2. env: moto's own settings, as INITIAL_NO_AUTH_ACTION_COUNT."""
        self._launch_moto(env)
        self._ready_moto()
        self._save()
        return self.ec2

    def _launch_moto(self, env=None):
        self.ports["moto"] = self._ports.take()
        self._launch("moto", "-m", "moto.server", "-H", "127.0.0.1", "-p", self.ports["moto"],
                     program=ec2moto.find_python(cache_directory()),
                     env={"AWS_DEFAULT_REGION": ec2moto.REGION, "PYTHONUNBUFFERED": "1", **(env or {})})

    def _ready_moto(self):
        self.ec2 = ec2moto.Ec2(self.ports["moto"])
        self.processes["moto"].wait_ready(self.ec2.healthy)

    def stop_process(self, name):
        """Kills one ("kube-apiserver", "kwok", ...); start_process() brings it back on the same port."""
        self.processes[name].stop()

    def start_process(self, name):
        self.processes[name].start()
        if name == "kube-apiserver":
            self.wait_apiserver()
        self._save()

    # -- identities

    def kubeconfig(self, user="admin", groups=None, embed=True):
        """The path of a kubeconfig with a client certificate for that user, made at the first call.

        admin is in system:masters, and system:node:X in system:nodes, unless groups says otherwise. embed:
        the certificate's data in the file, else paths.
        """
        groups = _groups_of(user) if groups is None else list(groups)
        certificate, key = self._pki.issue(user, groups)
        if embed:
            lines = [f"client-certificate-data: {_base64_of(certificate)}",
                     f"client-key-data: {_base64_of(key)}"]
        else:
            lines = [f"client-certificate: {certificate}", f"client-key: {key}"]
        name = os.path.basename(certificate)[:-len(".crt")] + ("" if embed else ".files")
        return self._write_kubeconfig(name, user, lines, embed)

    def _write_kubeconfig(self, name, user, user_lines, embed=True):
        ca = f"certificate-authority-data: {_base64_of(self._pki.ca)}" if embed else \
            f"certificate-authority: {self._pki.ca}"
        indented = "\n".join(f"    {line}" for line in user_lines)
        return self._write(f"kubeconfigs/{name}.yaml", f"""apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: {self.url}
    {ca}
users:
- name: "{user}"
  user:
{indented}
contexts:
- name: test
  context:
    cluster: test
    user: "{user}"
current-context: test
""")

    def client(self, user="admin", groups=None):
        """An apiclient.Client of that user, shared by all who ask for it."""
        groups = _groups_of(user) if groups is None else list(groups)
        key = (user, tuple(groups))
        if key not in self._clients:
            self._clients[key] = apiclient.Client(self.ports["apiserver"], self._pki.ca,
                                                  self._pki.issue(user, groups))
        return self._clients[key]

    def service_account(self, name, namespace="default", rules=(), cluster_role=None):
        """A ServiceAccount and what it needs to be used; the path of its kubeconfig, a token file beside it.

        rules: of a ClusterRole that is made for it; cluster_role: an existing one to bind it to. What exists
        already is left as it is.
        """
        admin = self.client()
        meta = {"name": name, "namespace": namespace}
        self._ensure("/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": namespace}})
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self._ensure(accounts, {"kind": "ServiceAccount", "metadata": meta})
        roles = [cluster_role] if cluster_role else []
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        if rules:
            roles.append(f"test:{namespace}:{name}")
            self._ensure(f"{rbac}/clusterroles",
                         {"kind": "ClusterRole", "metadata": {"name": roles[-1]}, "rules": list(rules)})
        for role in roles:
            self._ensure(f"{rbac}/clusterrolebindings", {
                "kind": "ClusterRoleBinding", "metadata": {"name": f"test:{namespace}:{name}:{role}"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", **meta}]})
        token = admin.create(f"{accounts}/{name}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": 86400}})
        path = self._write(f"kubeconfigs/{namespace}.{name}.token", token["status"]["token"])
        return self._write_kubeconfig(f"{namespace}.{name}", f"{namespace}:{name}", [f"tokenFile: {path}"])

    def _ensure(self, path, body):
        group = path.removeprefix("/apis/").split("/")
        version = "v1" if path.startswith("/api/") else f"{group[0]}/{group[1]}"
        status, answer = self.client().request("POST", path, {"apiVersion": version, **body})
        if status not in (201, 409):
            raise ApiError("POST", path, status, answer)

    # -- using it

    @property
    def url(self):
        return f"https://{self._address}:{self.ports['apiserver']}"

    @property
    def ca(self):
        """The path of the certificate that signed all others."""
        return self._pki.ca

    def certificate(self, user, groups=None, names=()):
        """The paths of certificate and key of that user; good for a server, too, with names as pki.issue has them."""
        return self._pki.issue(user, _groups_of(user) if groups is None else list(groups), names)

    def environment(self):
        """What `run` and `up` export."""
        variables = {
            "KUBECONFIG": self.kubeconfig(), "VESPER_CLUSTER_DIR": self.directory,
            "VESPER_CLUSTER_BIN": self.binaries, "VESPER_APISERVER_URL": self.url,
            "VESPER_APISERVER_PORT": str(self.ports["apiserver"]),
            "VESPER_ETCD_PORT": str(self.ports["etcd"])}
        if self.ec2:
            variables.update({
                "VESPER_MOTO_ENDPOINT": self.ec2.endpoint, "AWS_ENDPOINT_URL": self.ec2.endpoint,
                "AWS_REGION": self.ec2.region, "AWS_DEFAULT_REGION": self.ec2.region,
                "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"})
        return variables

    def kubectl(self, *arguments, stdin=None, user="admin", check=True):
        """What kubectl prints; its status must be 0 unless check is false, which gives the whole process."""
        done = subprocess.run(
            [os.path.join(self.binaries, "kubectl"), *map(str, arguments)], input=stdin, text=True,
            capture_output=True, check=False,
            env={"PATH": os.environ.get("PATH", ""), "HOME": self.directory,
                 "KUBECONFIG": self.kubeconfig(user), "KUBECACHEDIR": self._path("kubectl-cache")})
        if not check:
            return done
        if done.returncode:
            raise RuntimeError(f"kubectl {shlex.join(map(str, arguments))}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, what):
        """A file or directory of manifests, one object as a dict, or a list of these."""
        if isinstance(what, (str, os.PathLike)):
            return self.kubectl("apply", "--server-side", "-f", what)
        objects = what if isinstance(what, list) else [what]
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        return self.kubectl("apply", "--server-side", "-f", "-", stdin=text)

    def create_nodes(self, count=1, prefix="node", instances=None, labels=None, kwok=True, change=None):
        """Nodes that are Ready from the start; their names. instances: ids for the providerID, in their
        order, which get the tag vesper.sh/node. change: called with each Node before it is sent."""
        names, calls = [], []
        for i in range(count):
            name = f"{prefix}-{i}"
            instance = instances[i] if instances else None
            node = _node(name, instance, {**(labels or {}), **({KWOK_LABEL: "kwok"} if kwok else {})})
            if change:
                change(node)
            if instance:
                self.ec2.tag_node(instance, name)
            names.append(name)
            calls.append(("POST", "/api/v1/nodes", node))
        self.client().bulk(calls)
        return names

    def create_pods(self, node, count=1, *, prefix="pod", namespace="default", labels=None, annotations=None,
                    grace=30, stop=None, start=None, change=None, connections=16):
        """Pods bound to that node (None: the scheduler chooses), without an owner; their names. stop, start:
        as in stages/pod.yaml. change: called with each Pod before it is sent."""
        annotations = dict(annotations or {})
        if stop is not None:
            annotations["test.vesper.sh/stop"] = str(stop)
        if start is not None:
            annotations["test.vesper.sh/start"] = str(start)
        template = {"apiVersion": "v1", "kind": "Pod",
                    "metadata": {"labels": dict(labels or {"app": prefix}), "annotations": annotations},
                    "spec": {"containers": [{"name": "main", "image": "test"}], "enableServiceLinks": False,
                             "terminationGracePeriodSeconds": grace, "automountServiceAccountToken": False}}
        if node:
            template["spec"]["nodeName"] = node
        names, calls = [], []
        for i in range(count):
            pod = copy.deepcopy(template)
            pod["metadata"]["name"] = f"{prefix}-{i:04d}"
            if change:
                change(pod)
            names.append(pod["metadata"]["name"])
            calls.append(("POST", f"/api/v1/namespaces/{namespace}/pods", pod))
        self.client().bulk(calls, connections)
        return names

    def pods(self, node=None):
        return self.client().get("/api/v1/pods" + _on_node(node))["items"]

    def wait_pods(self, condition, node=None, timeout=180, what="the condition on pods"):
        """Until condition(pods, of that node or all) is true, woken by a watch. Returns them."""
        return self.client().wait_list("/api/v1/pods" + _on_node(node), condition, timeout, what)

    def wait_running(self, count, node=None, timeout=180):
        def runs(pod):
            return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]

        deadline = time.monotonic() + timeout
        while True:
            patience = min(10.0, max(0.1, deadline - time.monotonic()))
            try:
                return self.wait_pods(lambda pods: sum(map(runs, pods)) >= count, node, patience,
                                      f"{count} pods Running")
            except TimeoutError:
                if time.monotonic() >= deadline:
                    raise
            # kwok now and then forgets a pod that comes in the moment in which it takes up a node; any
            # change of the pod brings it back.
            for pod in self.pods(node):
                if not runs(pod):
                    meta = pod["metadata"]
                    self.client().patch(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}",
                                        {"metadata": {"annotations": {"test.vesper.sh/seen": str(deadline)}}})

    def wait_no_pods(self, node=None, timeout=180):
        return self.wait_pods(lambda pods: not pods, node, timeout, "no pods")

    def wait_for(self, condition, timeout=120, what="the condition", interval=0.02):
        """Until condition() returns something true, asked again and again. Returns it."""
        deadline = time.monotonic() + timeout
        while not (result := condition()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} did not hold after {timeout} s")
            time.sleep(interval)
        return result

    def compact(self, revision=None):
        """Compacts etcd, up to now by default, and starts the API server again, which would otherwise go on
        answering from its memory: continue tokens and watches from before get 410."""
        if revision is None:
            revision = int(self.client().get("/api/v1/namespaces?limit=1")["metadata"]["resourceVersion"])
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports['etcd']}/v3/kv/compaction",
                                         json.dumps({"revision": revision, "physical": True}).encode())
        self.stop_process("kube-apiserver")
        with urllib.request.urlopen(request, timeout=30) as response:
            response.read()
        self.start_process("kube-apiserver")
        return revision

    def audit_events(self, user=None):
        """The API server's audit log, if it keeps one; of one user, if named."""
        with open(self._path("logs", "audit.log"), encoding="utf-8") as f:
            events = [json.loads(line) for line in f if line.endswith("\n")]
        return [e for e in events if user is None or e["user"]["username"] == user]


def _node(name, instance, labels):
    zone = ec2moto.REGION + "a"
    size = {"cpu": "16", "memory": "64Gi", "pods": "500"}
    node = {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/region": ec2moto.REGION, "topology.kubernetes.io/zone": zone,
                **labels}},
            "spec": {},
            "status": {"capacity": size, "allocatable": size,
                       "addresses": [{"type": "InternalIP", "address": "127.0.0.1"},
                                     {"type": "Hostname", "address": name}],
                       "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
                                       "message": "kubelet is posting ready status",
                                       "lastHeartbeatTime": _now(), "lastTransitionTime": _now()}],
                       "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux", "machineID": "",
                                    "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "test",
                                    "containerRuntimeVersion": "kwok://0", "kubeletVersion": "v1.34.4",
                                    "kubeProxyVersion": ""}}}
    if instance:
        node["spec"]["providerID"] = f"aws:///{zone}/{instance}"
    return node


def _now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _on_node(node):
    return f"?fieldSelector=spec.nodeName%3D{node}" if node else ""


def _groups_of(user):
    if user == "admin":
        return ["system:masters"]
    return ["system:nodes"] if user.startswith("system:node:") else []


def _base64_of(path):
    with open(path, "rb") as f:
        return base64.b64encode(f.read()).decode()


def _http_ok(url, ca=None):
    """True for 200; otherwise OSError, of which urllib's errors are."""
    context = ssl.create_default_context(cafile=ca) if ca else None
    with urllib.request.urlopen(url, timeout=5, context=context) as response:
        return response.status == 200


def _remove_orphans():
    """Temporary directories whose owner was killed: nobody holds their lock."""
    parent = tempfile.gettempdir()
    for name in os.listdir(parent):
        directory = os.path.join(parent, name)
        if not name.startswith(_TEMPORARY):
            continue
        try:
            if os.stat(directory).st_uid != os.getuid():
                continue
            lock = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(lock)


# -- the command


def _command_up(options):
    with Cluster(options.dir, **_parts(options)) as cluster:
        text = "".join(f"export {k}={shlex.quote(v)}\n" for k, v in sorted(cluster.environment().items()))
        path = cluster._write("env", text)
        print(f"up after {cluster.seconds['start']:.1f} s; variables in {path}", flush=True)
        while True:
            signal.pause()


def _command_run(options):
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        sys.exit("run: no command given")
    with Cluster(options.dir, **_parts(options)) as cluster:
        env = {**os.environ, **cluster.environment()}
        env["PATH"] = cluster.binaries + os.pathsep + env.get("PATH", "")
        try:
            child = procs.spawn(command, dies_by=signal.SIGTERM, env=env)
        except OSError as e:
            print(f"{command[0]}: {e.strerror}", file=sys.stderr)
            return 127
        try:
            status = child.wait()
        except BaseException:
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            raise
    return status if status >= 0 else 128 - status


def _parts(options):
    return {"kwok": options.kwok, "moto": options.moto, "audit": options.audit, "keep": options.keep,
            "controllers": not options.no_controllers, "scheduler": not options.no_scheduler}


def _attached(options):
    directory = options.dir or os.environ.get("VESPER_CLUSTER_DIR")
    if not directory:
        sys.exit("no cluster: give --dir or set VESPER_CLUSTER_DIR")
    return Cluster.attach(directory)


def _command_kubeconfig(options):
    print(_attached(options).kubeconfig(options.user, options.groups or None, embed=not options.files))


def _command_service_account(options):
    print(_attached(options).service_account(options.name, options.namespace, cluster_role=options.role))


def _command_nodes(options):
    print("\n".join(_attached(options).create_nodes(options.count, options.prefix,
                                                    options.instances or None)))


def _command_pods(options):
    print("\n".join(_attached(options).create_pods(options.node, options.count, prefix=options.prefix,
                                                   grace=options.grace, stop=options.stop)))


def _command_instances(options):
    print("\n".join(_attached(options).ec2.create_instances(options.count)))


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name, function, text):
        sub = commands.add_parser(name, help=text)
        sub.set_defaults(function=function)
        sub.add_argument("--dir", help="directory of the cluster")
        return sub

    for name, function, text in (("up", _command_up, "run a cluster until SIGTERM"),
                                 ("run", _command_run, "run a command with a cluster of its own")):
        sub = command(name, function, text)
        for part in ("kwok", "moto", "audit", "keep", "no-controllers", "no-scheduler"):
            sub.add_argument(f"--{part}", action="store_true")
        if name == "run":
            sub.add_argument("command", nargs=argparse.REMAINDER)
        else:
            sub._option_string_actions["--dir"].required = True

    sub = command("kubeconfig", _command_kubeconfig, "make a kubeconfig for a user")
    sub.add_argument("--files", action="store_true", help="paths of certificates, not their data")
    sub.add_argument("user")
    sub.add_argument("groups", nargs="*")
    sub = command("service-account", _command_service_account, "make a ServiceAccount's kubeconfig")
    sub.add_argument("namespace")
    sub.add_argument("name")
    sub.add_argument("--role", help="ClusterRole to bind it to")
    sub = command("nodes", _command_nodes, "make nodes")
    sub.add_argument("count", type=int)
    sub.add_argument("--prefix", default="node")
    sub.add_argument("--instances", nargs="*", help="EC2 instance ids for their providerID")
    sub = command("pods", _command_pods, "make pods on a node")
    sub.add_argument("node")
    sub.add_argument("count", type=int)
    sub.add_argument("--prefix", default="pod")
    sub.add_argument("--grace", type=int, default=30)
    sub.add_argument("--stop", help="seconds, or never: see stages/pod.yaml")
    sub = command("instances", _command_instances, "run EC2 instances at moto")
    sub.add_argument("count", type=int)
    return parser.parse_args()


def main():
    procs.exit_on_signals()
    options = _arguments()
    try:
        return options.function(options)
    except (StartError, ApiError) as e:
        print(e, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
