# SPDX-License-Identifier: Apache-2.0
"""One node: a systemd of its own in systemd-nspawn, with containerd and a kubelet that belongs to the bed's control plane."""

import contextlib
import ctypes
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time

import system
from daemons import MESSAGE, procs
from metadata import LIFECYCLE, Metadata

METADATA_ADDRESS = "169.254.169.254"
LIMIT = 300  # Seconds after which a wait fails. This limit only ends a run that hangs: no case measures with it.
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}


def wait_for(condition, what, interval=0.02):
    """Waits until condition() returns something true, and returns that."""
    deadline = time.monotonic() + LIMIT
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what() if callable(what) else what}: not so within {LIMIT} s")
        time.sleep(interval)
    return found


class MachineMetadata(Metadata):
    def scale_in(self):
        """The Auto Scaling group terminates the machine: a notice without a deadline, so that the agent never has to hurry."""
        self.says(LIFECYCLE, "Terminated")

    def calm(self):
        super().calm()
        self.says(LIFECYCLE, None)


class Trace:
    """What the container of one pod has written about itself; times are seconds since 1970, None: not (yet)."""
    def __init__(self, path):
        self.name = os.path.basename(path)
        self.started = self.asked = self.ended = self.last = None
        with open(path, encoding="ascii") as f:
            lines = f.read().splitlines()
        for line in lines:
            stamp, _, what = line.partition(" ")
            try:
                at = float(stamp)
            except ValueError:
                continue  # torn by a power cut
            if what == "start":  # a container that is started anew, after a boot
                self.started, self.asked, self.ended = at, None, None
            elif what == "SIGTERM" and self.asked is None:
                self.asked = at
            elif what == "end":
                self.ended = at
            self.last = at

    @property
    def had(self):
        """Seconds it lived after SIGTERM."""
        return self.last - self.asked if self.asked else None

    def __repr__(self):
        return f"{self.name}: start {self.started}, SIGTERM {self.asked}, had {self.had}, end {self.ended}"


class JournalLine(dict):
    @property
    def time(self):
        return int(self.get("_SOURCE_REALTIME_TIMESTAMP") or self["__REALTIME_TIMESTAMP"]) / 1e6

    @property
    def text(self):
        return self.get("MESSAGE") or ""

    @property
    def name(self):
        """"NODE_CORDONED", or None for a line without an id of ours."""
        return _NAMES.get(self.get("MESSAGE_ID"))

    def __repr__(self):
        return f"{self.time:.3f} {self.get('_COMM', '')}: {self.text}"


_NAMES = {value: name for name, value in MESSAGE.items()}
_EXITED = "98e322203f7a4ed290d09fe03c09fe15"  # systemd: the main process of a unit ended


class Node:
    """number: 1..200, decides its addresses; lower: the layers that it boots from."""
    def __init__(self, bed, number, lower):
        self.bed = bed
        self.number = number
        self.name = f"node-{number}"
        self.address = f"10.250.0.{10 + number}"
        self.lower = lower
        self.folder = os.path.join(bed.folder, self.name)
        self.metadata = None
        self.popen = None
        self.pid1 = None
        self.booted = None  # when it was started, seconds since 1970
        self.began = 0  # when the case began that has it: what was logged before is another's
        self.hangs = 0  # of the bed's own, see stop_hung()
        self.changed = False  # by a case, in a way that the next one must not see
        self._made = False

    # -- life of the machine

    def at(self, path):
        """A path of its own, seen from here; /var/log, /var/lib/containerd and /var/lib/kubelet outlive boots, too."""
        path = path.lstrip("/")
        for inside, outside in (("var/log", "log"), ("var/lib/containerd", "containerd"), ("var/lib/kubelet", "kubelet")):
            if path == inside or path.startswith(inside + "/"):
                return os.path.join(self.folder, outside) + path[len(inside):]
        return os.path.join(self.folder, "root", path)

    def write(self, path, text, mode=0o644):
        os.makedirs(os.path.dirname(self.at(path)), exist_ok=True)
        with open(self.at(path), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self.at(path), mode)

    def make(self):
        """Its disk, network and credential: as a machine that has joined the cluster, and is off."""
        for name in ("root", "containerd", "kubelet", "log/journal", "log/trace"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        system.mount_overlay(self.at("/"), self.lower, os.path.join(self.folder, "upper"), os.path.join(self.folder, "work"))
        cluster = self.bed.cluster
        certificate, key = cluster.certificate(f"system:node:{self.name}",
                                               names=(f"DNS:{self.name}", f"IP:{self.address}", "IP:127.0.0.1"))
        for source, target in ((cluster.ca, "ca.crt"), (certificate, "node.crt"), (key, "node.key")):
            os.makedirs(self.at("/etc/kubernetes/pki"), exist_ok=True)
            shutil.copy(source, self.at("/etc/kubernetes/pki/" + target))
        self.write("/etc/kubernetes/kubelet.conf", _KUBECONFIG.format(server=cluster.url), 0o600)
        self.write("/etc/kubernetes/bed.env", f"NODE_IP={self.address}\nNODE_LABELS=bed={self.name}\n")
        shutil.copy(os.path.join(system.FILES, "kubelet.yaml"), self.at("/var/lib/kubelet/config.yaml"))
        with open(os.path.join(system.FILES, "10-bridge.conflist"), encoding="ascii") as f:
            self.write("/etc/cni/net.d/10-bridge.conflist", f.read().replace("@PODNET@", f"10.250.{self.number}.0/24"))
        self.write("/etc/hostname", self.name + "\n")
        self.bed.network.attach(self.name, self.address, f"10.250.{self.number}.0/24")
        self.metadata = self._serve_metadata()
        self._made = True
        self.bed.machines[self.name] = self
        return self

    def _serve_metadata(self):
        """The metadata service at its real address, which is one per machine: a socket belongs to the network namespace in
        which its thread was when it was made."""
        ours = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        theirs = os.open(f"/run/netns/{self.name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            if _libc.setns(theirs, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
            try:
                return MachineMetadata(f"i-{self.number:017x}", address=(METADATA_ADDRESS, 80))
            finally:
                if _libc.setns(ours, _CLONE_NEWNET):
                    os._exit(70)  # nothing that follows would be where it believes to be
        finally:
            os.close(ours)
            os.close(theirs)

    def power_on(self, wait=True):
        assert not self.is_on(), f"{self.name} is on"
        if not self._made:
            self.make()
        groups = self.bed.cgroups.make(self.name)
        enter = " ".join(f"{g}/cgroup.procs" for g in groups)
        argv = ["systemd-nspawn", "-q", "-D", self.at("/"), "-M", self.name, f"--hostname={self.name}", "--register=no",
                "--keep-unit", "--console=pipe", f"--network-namespace-path=/run/netns/{self.name}",
                "--capability=CAP_NET_ADMIN,CAP_SYSLOG", "--resolv-conf=off", "--timezone=off", "--link-journal=no",
                "--kill-signal=SIGRTMIN+3"]
        argv += [f"--bind={self.at(p)}:{p}" for p in ("/var/lib/containerd", "/var/lib/kubelet", "/var/log")]
        argv.append("/usr/local/sbin/bed-init")
        with open(os.path.join(self.folder, "console.log"), "ab") as log:
            self.booted = time.time()
            self.popen = procs.spawn(["sh", "-c", 'for g in ' + enter + '; do echo $$ >"$g" || exit 1; done; exec "$@"', "sh",
                                      *argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                     env={**_ENVIRONMENT, "SYSTEMD_SECCOMP": "0"})
        self.pid1 = wait_for(self._find_pid1, f"{self.name} has a PID 1")
        if wait:
            self.wait_ready()
        return self

    def _find_pid1(self):
        assert self.popen.poll() is None, f"{self.name} did not start: nspawn ended with {self.popen.returncode}\n" + \
            self.console()
        for pid in _children(self.popen.pid):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                    if f.read().strip() == "systemd":
                        return pid
        return None

    def console(self):
        with open(os.path.join(self.folder, "console.log"), encoding="utf-8", errors="replace") as f:
            return f.read()[-2000:]

    def is_on(self):
        return self.popen is not None and self.popen.poll() is None

    def boot_id(self):
        return self.run("cat", "/proc/sys/kernel/random/boot_id").strip()

    def wait_ready(self):
        """Waits until the Node is Ready by the kubelet of this boot, and until kube-controller-manager has removed its taint."""
        boot = self.boot_id()

        def ready():
            node = self.object()
            return node and node["status"].get("nodeInfo", {}).get("bootID") == boot and \
                self.condition("Ready", node) == "True" and not {"not-ready", "unreachable"} & _taints(node)

        wait_for(ready, lambda: f"{self.name} is Ready; {self.units()}")

    def units(self):
        """For the text of an error: what of the node is not as it should be."""
        with contextlib.suppress(Exception):
            return self.run("systemctl", "list-units", "--all", "--state=failed,activating", "--plain", "--no-legend",
                            check=False)
        return "its systemd does not answer\n" + self.console()

    def wait_off(self, limit=LIMIT):
        """Seconds since 1970 when it was off."""
        try:
            self.popen.wait(limit)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} is not off after {limit} s; jobs:\n" + self._jobs()) from None
        off = time.time()
        self.pid1 = None
        return off

    def _jobs(self):
        with contextlib.suppress(Exception):
            return self.run("systemctl", "list-jobs", check=False)
        return "(its systemd does not answer)"

    def cut_power(self):
        """All processes of it end at once. nspawn must not be killed first: the node would live on."""
        if self.is_on():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid1, signal.SIGKILL)
            self.popen.wait(LIMIT)
        self.pid1 = None

    def destroy(self):
        """The machine, its disk and its Node are no more."""
        self.cut_power()
        if self._made:
            self.metadata.close()
            subprocess.run(["umount", "-l", self.at("/")], check=False)
            self.bed.network.detach(self.name)
            self.bed.cgroups.remove(self.name)
            shutil.rmtree(self.folder, ignore_errors=True)
            self._made = False
            del self.bed.machines[self.name]
        self.bed.admin.request("DELETE", f"/api/v1/nodes/{self.name}")
        for pod in self.pods():
            meta = pod["metadata"]
            self.bed.admin.request("DELETE", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}",
                                   {"gracePeriodSeconds": 0})

    # -- inside

    def _inside(self, command):
        """What waits for the command stays out of the machine's process namespace (sh, as nsenter does not fork). At its end
        systemd stops whatever is in there (SIGSTOP to all), then kills it; an nsenter that forks stops itself with its child, and
        nobody would go on with it: the command would hang, and the killed child stay, which keeps the namespace from ending."""
        assert self.is_on(), f"{self.name} is off"
        return ["nsenter", "-t", str(self.pid1), "-m", "-u", "-i", "-n", "-p", "-C", "--no-fork", "--",
                "sh", "-c", '"$@"; exit $?', "sh", *map(str, command)]

    def entering(self):
        """The beginning of a command line: what follows runs in the machine."""
        return self._inside([])

    def run(self, *command, check=True):
        """What it prints, errors too."""
        status, said = self.status(*command)
        if check:
            assert status == 0, f"{self.name}: {' '.join(map(str, command))}: status {status}\n{said}"
        return said

    def status(self, *command):
        """(exit status, or the negative number of the signal that ended it; what it prints)."""
        done = subprocess.run(self._inside(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, env=_ENVIRONMENT, timeout=LIMIT, check=False)
        return 128 - done.returncode if done.returncode > 128 else done.returncode, done.stdout

    def show(self, unit, prop):
        """A property of a unit, as systemctl shows it."""
        return self.run("systemctl", "show", "-P", prop, unit).strip()

    def main_pid(self, unit):
        """Of that unit's main process, as this machine counts; None while it does not run."""
        inner = self.show(unit, "MainPID")
        if inner == "0":
            return None
        for path in glob.glob("/proc/[0-9]*/status"):
            with contextlib.suppress(OSError):
                with open(path, encoding="ascii", errors="replace") as f:
                    text = f.read()
                if re.search(rf"^NSpid:.*\t{inner}$", text, re.M) and \
                        os.stat(os.path.dirname(path) + "/ns/pid").st_ino == os.stat(f"/proc/{self.pid1}/ns/pid").st_ino:
                    return int(path.split("/")[2])
        return None

    def agent_pid(self):
        return self.main_pid("vesper-agent.service")

    def inhibitors(self):
        """{who: numbers} of the inhibitors that logind lists in its own files. logind gives each inhibitor a number of its own, so
        the same number means that no instant was without it."""
        found = {}
        for path in sorted(glob.glob(f"/proc/{self.pid1}/root/run/systemd/inhibit/*[0-9]")):  # the pipes end in .ref
            with contextlib.suppress(OSError):
                with open(path, encoding="utf-8") as f:
                    fields = dict(line.split("=", 1) for line in f.read().splitlines() if "=" in line)
                if "WHO" in fields:
                    found.setdefault(fields["WHO"], []).append(os.path.basename(path))
        return found

    # -- the journal

    def journal(self, *arguments, since=None):
        """Its lines, oldest first; while the machine is off, too. since: seconds since 1970; without it, since the case began."""
        text = self._journalctl("-o", "json", "--all", *arguments, since=since or self.began)
        return [JournalLine(json.loads(line)) for line in text.splitlines() if line.startswith("{")]

    def _journalctl(self, *arguments, since=None):
        command = ["journalctl", "-q", "--no-pager", "-D", self.at("/var/log/journal"), *arguments]
        if since:
            command.append(f"--since=@{since:.6f}")
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
                              env={**_ENVIRONMENT, "SYSTEMD_CATALOG": self.at("/var/lib/systemd/catalog/database")}, check=False)
        return done.stdout

    def journal_text(self, since=None):
        return self._journalctl("-o", "short-precise", since=since)

    def explained(self, since=None):
        """journalctl -u vesper-agent -x"""
        return self._journalctl("-x", "-o", "short-precise", "-u", "vesper-agent", "-u", "vesper-drain", "-u", "vesper-reboot",
                                since=since)

    def logs(self):
        """{name: text} of the agent, as a unit or in its pod, and of a coordinator in its pod."""
        found = {"vesper-agent": self._journalctl("-o", "short-precise", "-u", "vesper-agent", since=self.began)}
        for path in sorted(glob.glob(self.at("/var/log/pods/vesper-system_*/*/*.log"))):
            with contextlib.suppress(OSError):
                with open(path, encoding="utf-8", errors="replace") as f:
                    found[path.split("/vesper-system_")[1].replace("/", ".").removesuffix(".log")] = f.read()
        return {f"{self.name}.{name}": text for name, text in found.items() if text}

    def said(self, name=None, since=None, **fields):
        """Lines of the agent, of that message id and with these fields."""
        return [
            line for line in self.journal("-u", "vesper-agent", since=since)
            if (name is None or line.name == name) and all(line.get(k) == v for k, v in fields.items())
        ]

    def agent_is_connected(self):
        """Do its watches of its pods and of its Node stand? It tells of each that does, and that does not any more."""
        told = [line.name for line in self.said(since=self.booted, _PID=self.show("vesper-agent.service", "MainPID"))]
        return told.count("API_BACK") - told.count("API_UNREACHABLE") == 2

    def wait_said(self, name, since):
        return wait_for(lambda: self.said(name, since), f"{self.name}'s agent says {name}", 0.1)[0]

    def stopping(self, unit, since):
        """When systemd began to stop that unit."""
        lines = [
            line.time for line in self.journal(f"UNIT={unit}", since=since)
            if line.get("MESSAGE_ID") == "de5b426a63be47a7b6ac3eaac82e2f6f"
        ]
        return lines[0] if lines else None

    def crashes(self, since):
        """How the agent ended that neither a case nor a stop has ended."""
        return [line.text for line in self.journal("UNIT=vesper-agent.service", since=since)
                if line.get("MESSAGE_ID") == _EXITED and line.get("EXIT_CODE") in ("killed", "dumped") and
                line.get("EXIT_STATUS") not in ("9", "15")]

    def stop_hung(self, since):
        """Names of scopes whose stop timed out though nothing was left in them: the bed's own flaw, at most 15 s each. It is
        known by the scope's time-out without a process that systemd would have killed then."""
        lines = self.journal("_PID=1", since=since)
        out = [line["UNIT"] for line in lines if line.get("UNIT", "").endswith(".scope") and "Stopping timed out" in line.text]
        killed = {line.get("UNIT") for line in lines if "Killing process" in line.text}
        return [unit for unit in out if unit not in killed]

    # -- in the cluster

    def object(self):
        return self.bed.admin.find(f"/api/v1/nodes/{self.name}")

    def condition(self, kind, node=None):
        node = node or self.object()
        return next((c["status"] for c in node["status"].get("conditions", []) if c["type"] == kind), None)

    def is_cordoned(self):
        return bool(self.object()["spec"].get("unschedulable"))

    def marks(self):
        """What of ours is on the Node: empty when nothing is."""
        node = self.object()
        meta = node["metadata"]
        found = [k for k in meta.get("annotations", {}) if k.startswith("vesper.sh/")]
        found += [k for k in meta.get("labels", {}) if k == "node.kubernetes.io/exclude-from-external-load-balancers"]
        found += [c["type"] for c in node["status"].get("conditions", []) if c["type"] in (
            "DrainInProgress", "Drained", "MaintenancePlanned", "MaintenanceInProgress", "GracefulNodeShutdownInProgress")]
        # The taint outlives the cordon for a moment: until then the scheduler puts pods elsewhere.
        if node["spec"].get("unschedulable") or "unschedulable" in _taints(node):
            found.append("unschedulable")
        return found

    def wait_clean(self):
        wait_for(lambda: not self.marks(), lambda: f"nothing of ours is left on {self.name}, but {self.marks()}", 0.1)

    def pods(self):
        return self.bed.admin.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{self.name}")["items"]

    def trace(self, pod):
        path = self.at(f"/var/log/trace/{pod}")
        return Trace(path) if os.path.exists(path) else None

    def release_pods(self, names):
        """Ends the containers of these pods of mode "hold", now or at their SIGTERM."""
        for name in names:
            self.write(f"/var/log/trace/{name}.release", "")

    def forget_traces(self):
        for path in glob.glob(self.at("/var/log/trace/*")):
            if not path.endswith(".release"):  # a container of mode "hold" may not have read it yet
                os.unlink(path)

    def create_pods(self, count, prefix, labels=None, **pod):
        """Pods of this very node, without an owner; waits until they run. Their names. pod: as of pod_spec()."""
        names = [f"{self.name}-{prefix}-{i}" for i in range(count)]
        self.bed.admin.bulk(
            ("POST", "/api/v1/namespaces/default/pods",
             {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": prefix, **(labels or {})}},
              "spec": {"nodeName": self.name, **pod_spec(**pod)}}) for name in names)
        self.wait_running(names)
        return names

    def wait_running(self, names):
        def running():
            return sum(p["metadata"]["name"] in names and is_ready(p) for p in self.pods()) == len(names)

        wait_for(running, lambda: f"{len(names)} pods of {self.name} are Ready, of {_phases(self.pods())}", 0.05)


def pod_spec(stop_msec=0, grace=30, mode="term"):
    """After SIGTERM the container runs on for stop_msec; with mode "hold" until release_pods(); with "deaf" until it is killed."""
    return {
        "terminationGracePeriodSeconds": grace, "enableServiceLinks": False, "automountServiceAccountToken": False,
        "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
        "volumes": [{"name": "trace", "hostPath": {"path": "/var/log/trace"}}],
        "containers": [{
            "name": "main", "image": system.IMAGE, "imagePullPolicy": "Never",
            "command": ["/payload"], "args": [mode, str(stop_msec)],
            "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "volumeMounts": [{"name": "trace", "mountPath": "/trace"}]
        }]
    }


def is_ready(pod):
    return "deletionTimestamp" not in pod["metadata"] and any(c["type"] == "Ready" and c["status"] == "True"
                                                              for c in pod["status"].get("conditions", []))


def _taints(node):
    """The names of Kubernetes' own taints of a Node."""
    return {t["key"].removeprefix("node.kubernetes.io/") for t in node["spec"].get("taints", [])}


def _phases(pods):
    return [(p["metadata"]["name"], p["status"].get("phase")) for p in pods]


def _children(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return list(map(int, f.read().split()))
    return []


_KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{{name: bed, cluster: {{server: "{server}", certificate-authority: /etc/kubernetes/pki/ca.crt}}}}]
users: [{{name: node, user: {{client-certificate: /etc/kubernetes/pki/node.crt, client-key: /etc/kubernetes/pki/node.key}}}}]
contexts: [{{name: bed, context: {{cluster: bed, user: node}}}}]
current-context: bed
"""
