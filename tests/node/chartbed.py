# SPDX-License-Identifier: Apache-2.0
"""vesper as its chart installs it, by helm, on machines of the bed: coordinators and agents run as pods, from the images that
packaging/container/build.py makes. Ready-made for the cases in cases_chart.py, which use one installation after the other."""

import concurrent.futures
import glob
import json
import os
import re
import shutil
import socketserver
import subprocess
import sys
import threading

import system
from bed import ADDRESS
from cases_tour import Worker
from daemons import TOP, Line, build_directory
from node import is_ready, wait_for
from rendering import CHART, NAMESPACE, Tools
from world import CLAIMS, POOLS

FIRST_NUMBER = 71
NAMES = ("chart-1", "chart-2", "chart-3")
LABEL = {"chart": "yes"}  # of the machines that are this chart's
POOL = "chart"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/vesper-coordinator"
DAEMONSET = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/vesper-agent"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/vesper-coordinator"
PROGRAMS = ("vesper-agent", "vesper-coordinator")
UPGRADE_TAG = "upgraded"  # a second name of the same images
_PROVIDER = "/opt/provider"


class ChartWorker(Worker):
    """A machine as kubeadm leaves it, with what the agent's DaemonSet asks of one in packaging/README.md. Its containers see its
    own boot id."""
    def make(self):
        super().make()
        for name in ("container-boot-id", "container-base-spec"):
            with open(os.path.join(system.FILES, name), encoding="ascii") as f:
                self.write("/usr/local/sbin/" + name, f.read(), 0o755)
        self.write("/etc/systemd/system/containerd.service.d/hook.conf",
                   "[Service]\nExecStartPre=/usr/local/sbin/container-base-spec\n")
        with open(os.path.join(system.FILES, "containerd.toml"), encoding="ascii") as f:
            self.write("/etc/containerd/config.toml", f.read().replace(
                '    runtime_type = "io.containerd.runc.v2"\n',
                '    runtime_type = "io.containerd.runc.v2"\n    base_runtime_spec = "/run/container-base.json"\n'))
        self.write("/etc/systemd/logind.conf.d/50-vesper.conf", "[Login]\nInhibitDelayMaxSec=11min\n")
        return self


class Provider:
    """What files/provider.c asks: the inventory and the power switch of the bed's machines. A machine's end is kept, with what
    its node looked like right before."""
    def __init__(self, chart):
        self.chart = chart
        self.ended = {}  # name: what _look_at() saw, at the first "terminate"
        self.asked = []  # (operation, name)
        self._lock = threading.Lock()
        provider = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                text = self.rfile.read().decode()
                operation, _, request = text.partition("\n")
                self.wfile.write(json.dumps(provider.answer(operation, json.loads(request))).encode())

        self._server = socketserver.ThreadingTCPServer((ADDRESS, 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05, ), daemon=True).start()

    @property
    def port(self):
        return self._server.server_address[1]

    def answer(self, operation, request):
        name = request.get("node", {}).get("name")
        with self._lock:
            self.asked.append((operation, name))
            if operation == "list":
                return {"error": {"code": "unsupported", "message": "the bed keeps no list"}}
            worker = self.chart.workers.get(name)
            if name in self.ended:
                return {"state": "gone"}
            if worker is None or request.get("providerID") != f"exec://{name}":
                return {"state": "unknown", "error": f"{name} with {request.get('providerID')} is no machine of the bed"}
            if operation == "describe":
                return {"state": "present" if worker.is_on() else "off"}
            self.ended[name] = self._look_at(name)
            worker.cut_power()
            return {"state": "gone"}

    def _look_at(self, name):
        """{pod: (its app or program, uid, phase, is it being deleted)} of that node."""
        pods = self.chart.bed.admin.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{name}")["items"]
        return {p["metadata"]["name"]: (_app(p), p["metadata"]["uid"], p["status"]["phase"],
                                        "deletionTimestamp" in p["metadata"]) for p in pods}

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def _container(pod):
    return pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")


def _app(pod):
    labels = pod["metadata"].get("labels", {})
    return labels.get("app.kubernetes.io/name") or labels.get("app")


class Chart:
    """The machines, and the release `vesper` in its namespace, with a NodePool of all of the machines."""
    def __init__(self, bed):
        self.bed = bed
        self.folder = os.path.join(bed.folder, "chart")
        self.workers = {}
        os.makedirs(self.folder)
        try:
            self.tools = Tools(bed.cluster, self.folder)
        except RuntimeError as e:
            raise system.Unavailable(str(e)) from None
        self.provider = Provider(self)
        self._images = self._build_images()
        self._program = self._build_provider()
        self._installed = False

    # -- what it is made of

    def _build_images(self):
        out = os.path.join(self.folder, "images")
        system.run(sys.executable, os.path.join(TOP, "packaging", "container", "build.py"), build_directory(), out)
        return [os.path.join(out, f"{name}.oci.tar") for name in PROGRAMS]

    def _build_provider(self):
        path = os.path.join(self.folder, "provider")
        system.run("gcc", "-O2", "-static", "-Wall", "-Werror", f'-DPROVIDER_ADDRESS="{ADDRESS}"',
                   f"-DPROVIDER_PORT={self.provider.port}", "-o", path, os.path.join(system.FILES, "provider.c"))
        return path

    def _power_on(self, name):
        """A new machine of that name, with both images, and labelled for this chart."""
        worker = ChartWorker(self.bed, FIRST_NUMBER + NAMES.index(name), name)
        self.workers[name] = worker
        worker.make()
        os.makedirs(worker.at(_PROVIDER))
        shutil.copy(self._program, worker.at(_PROVIDER + "/provider"))
        os.chmod(worker.at(_PROVIDER + "/provider"), 0o755)
        worker.power_on()
        for archive in self._images:
            with open(archive, "rb") as f:
                done = subprocess.run([*worker.entering(), "ctr", "-n", "k8s.io", "images", "import", "-"], stdin=f,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            assert done.returncode == 0, f"containerd of {name} does not take {archive}: {done.stdout}"
            image = re.search(r"docker\.io/library/[\w.-]+:[\w.-]+", done.stdout)
            assert image, f"ctr names no image: {done.stdout}"
            worker.run("ctr", "-n", "k8s.io", "images", "tag", image[0], re.sub(r":[^:]*$", ":" + UPGRADE_TAG, image[0]))
        # From now on pods of the chart may come.
        self.bed.admin.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": LABEL}})

    def values(self, tag=None, level="info"):
        """Of a person who has a provider of one's own and machines of EC2, and wants both daemons there and nowhere else."""
        places = {"kubernetes.io/os": "linux", **LABEL}
        return {
            "image": {"tag": tag} if tag else {},
            "coordinator": {
                "config": {"Provider": {"Name": "exec", "Command": _PROVIDER + "/provider"}, "Log": {"Level": level}},
                "nodeSelector": places,
                "extraVolumes": [{"name": "provider", "hostPath": {"path": _PROVIDER, "type": "Directory"}}],
                "extraVolumeMounts": [{"name": "provider", "mountPath": _PROVIDER, "readOnly": True}],
            },
            "agent": {"enabled": True, "distribution": "kubeadm", "nodeSelector": places,
                      "config": {"Metadata": {"Source": "ec2"}, "Log": {"Level": level}}},
        }

    def helm(self, verb, *options, **values):
        path = os.path.join(self.folder, "values.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(self.values(**values), f)
        return self.tools.helm(verb, "vesper", CHART, "--namespace", NAMESPACE, "-f", path, *options)

    def ready(self):
        """All machines on and Ready, and on them all pods of the release; installed first if it is not."""
        absent = [name for name in NAMES if name not in self.workers or not self.workers[name].is_on()]
        for name in absent:
            self._bury(name)
        with concurrent.futures.ThreadPoolExecutor(len(NAMES)) as pool:
            list(pool.map(self._power_on, absent))
        if not self._installed:
            wait_for(lambda: self.bed.admin.find(f"/api/v1/namespaces/{NAMESPACE}") is None,
                     f"namespace {NAMESPACE} of an earlier case is gone")
            self.bed.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}})
            # The case before may have left the CRDs, which the release takes for its own.
            self.helm("install", "--take-ownership")
            wait_for(lambda: self.bed.admin.request("GET", POOLS)[0] == 200, "the API server serves NodePools", 0.1)
            self.bed.admin.create(POOLS, {"apiVersion": "vesper.sh/v1alpha1", "kind": "NodePool", "metadata": {"name": POOL},
                                          "spec": {"selector": {"matchLabels": LABEL}, "provider": {"name": "exec"}}})
            self._installed = True
        self.wait_rolled_out()
        wait_for(lambda: self.claims().keys() == set(NAMES), lambda: f"each machine has a claim, but {self.claims()}\n"
                 + self.said_by_all(), 0.1)
        wait_for(lambda: not any(self.workers[n].marks() for n in NAMES), "no machine is marked", 0.1)
        return self

    def _bury(self, name):
        worker = self.workers.pop(name, None)
        if worker:
            wait_for(lambda: worker.object() is None, f"Node {name} is gone before another of that name comes", 0.1)
            worker.destroy()
        self.provider.ended.pop(name, None)

    def close(self):
        """Nothing of it is left for other cases."""
        if self._installed:
            self.uninstall("--no-hooks")
        admin = self.bed.admin
        for name in list(self.workers):
            # With its finalizer: nobody serves that any more, if something went wrong before.
            admin.request("PATCH", f"/api/v1/nodes/{name}", {"metadata": {"finalizers": None}})
            self.workers.pop(name).destroy()
        for path in (CLAIMS, POOLS):
            status, found = admin.request("GET", path)
            for item in found["items"] if status == 200 else []:
                admin.request("PATCH", f"{path}/{item['metadata']['name']}", {"metadata": {"finalizers": None}})
                admin.request("DELETE", f"{path}/{item['metadata']['name']}")
        admin.request("DELETE", LEASE)
        self.provider.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def uninstall(self, *options):
        self._installed = False
        self.tools.helm("uninstall", "vesper", "--namespace", NAMESPACE, *options)

    # -- what is to be seen

    def pods(self, program=None):
        return [p for p in self.bed.admin.get(PODS)["items"] if program in (None, _app(p))]

    def agent(self, name):
        """The pod of the agent on that machine; None: there is none, or several."""
        found = [p for p in self.pods("vesper-agent")
                 if p["spec"].get("nodeName") == name and "deletionTimestamp" not in p["metadata"]]
        return found[0] if len(found) == 1 else None

    def leader(self):
        """The pod of the coordinator that leads."""
        holder = (self.bed.admin.find(LEASE) or {"spec": {}})["spec"].get("holderIdentity") or ""
        return next((p for p in self.pods("vesper-coordinator") if holder.startswith(p["metadata"]["name"])), None)

    def claims(self):
        """{node: claim}"""
        return {c["status"].get("nodeName"): c for c in self.bed.admin.get(CLAIMS)["items"] if "status" in c}

    def wait_rolled_out(self, nodes=NAMES):
        """Every pod is of the release's newest revision, Ready, and none of an older one is left."""
        def rolled_out():
            deployment, agents = self.bed.admin.get(DEPLOYMENT), self.bed.admin.get(DAEMONSET)
            status, generation = deployment["status"], deployment["metadata"]["generation"]
            coordinators = (status.get("observedGeneration") == generation and
                            all(status.get(k, 0) == deployment["spec"]["replicas"]
                                for k in ("replicas", "updatedReplicas", "readyReplicas")))
            status = agents["status"]
            return coordinators and status.get("observedGeneration") == agents["metadata"]["generation"] and \
                status.get("updatedNumberScheduled") == status["desiredNumberScheduled"] and \
                all((pod := self.agent(n)) and is_ready(pod) for n in nodes)

        wait_for(rolled_out, lambda: f"all pods of the chart are Ready; {self.described()}", 0.1)

    def described(self):
        """For the text of an error."""
        return self.bed.kubectl("-n", NAMESPACE, "get", "pods", "-o", "wide") + \
            self.bed.kubectl("-n", NAMESPACE, "get", "events", "--sort-by=.lastTimestamp")[-2000:] + self.said_by_all()

    def said_by_all(self):
        text = ""
        for name in self.workers:
            for program in PROGRAMS:
                for line in self.said(name, program)[-15:]:
                    text += f"{name} {program}: {line.get('level')} {line.text}\n"
        return text

    def said(self, name, program, message=None, since=0.0, pod=""):
        """What containers of that program have logged on that machine, gone ones too, as far as kubelet and disk keep it."""
        found = []
        for path in sorted(glob.glob(self.workers[name].at(f"/var/log/pods/{NAMESPACE}_{program}-*{pod}*/*/*.log"))):
            with open(path, encoding="utf-8", errors="replace") as f:
                for line in f:
                    text = line.split(" ", 3)[-1]
                    try:
                        found.append(Line(json.loads(text)))
                    except ValueError:
                        found.append(Line(msg=text.strip()))
        return [line for line in found if (message is None or line.name == message) and (line.time or since) >= since]

    def inside(self, name, pod, *command):
        """(exit status, what it prints) of a program of the image, in that pod's container."""
        return self.workers[name].status("ctr", "-n", "k8s.io", "tasks", "exec", "--exec-id", "bed", _container(pod), *command)

    def process(self, name, pod):
        """{field: value} of /proc/PID/status of that pod's container."""
        identity = _container(pod)
        for path in glob.glob("/proc/[0-9]*/cgroup"):
            try:
                with open(path, encoding="ascii") as f:
                    if identity not in f.read():
                        continue
                with open(os.path.dirname(path) + "/status", encoding="ascii") as f:
                    return dict(re.findall(r"^(\w+):\s*(.*)$", f.read(), re.M))
            except OSError:
                continue  # it has ended
        raise AssertionError(f"no process of pod {pod['metadata']['name']} runs on {name}")

    def wait_ended(self, name):
        """Until that machine was ended and its Node is gone. What its node had right before."""
        wait_for(lambda: name in self.provider.ended and self.workers[name].object() is None,
                 lambda: f"the machine of {name} is ended and its Node gone; asked {self.provider.asked[-20:]}\n"
                 + self.described(), 0.1)
        return self.provider.ended[name]


_charts = {}


def chart_of(bed):
    """The bed's one installation, made at the first call, all of it Ready."""
    if bed not in _charts:
        _charts[bed] = Chart(bed)
    return _charts[bed].ready()


def put_away(bed):
    """After the last case of it."""
    if bed in _charts:
        _charts.pop(bed).close()
