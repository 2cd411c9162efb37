# SPDX-License-Identifier: Apache-2.0
"""The tour of README.md, played as it stands there on machines of the bed: its commands are taken from between its two
markers. kind and docker are small commands of our own here, which do to the bed's machines what those do to containers."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import system
from daemons import build_directory
from node import Node, wait_for

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORKERS = ("kind-worker", "kind-worker2")
FIRST_NUMBER = 61
# What is not played as it stands, each with its reason.
INSTEAD = {
    "bash tests/setup.sh packages && meson setup build && ninja -C build": "true  # the programs of this test run are built",
    "--image=registry.k8s.io/pause:3.9": f"--image={system.IMAGE}  # the bed's machines reach no registry",
}

_KIND = """#!{python}
import json, os, shutil, subprocess, sys
bed = json.load(open(os.path.dirname(os.path.abspath(__file__)) + "/bed.json"))
told = sys.argv[1:]
if told[:2] == ["create", "cluster"]:
    assert open(told[told.index("--config") + 1]).read().count("role: worker") == len(bed["machines"])
    shutil.copy(bed["kubeconfig"], told[told.index("--kubeconfig") + 1])
elif told[:2] == ["load", "image-archive"]:
    for machine in bed["machines"].values():
        with open(told[2], "rb") as archive:
            subprocess.run([*machine["enter"], "ctr", "-n", "k8s.io", "images", "import", "-"], stdin=archive, check=True)
elif told[:2] != ["delete", "cluster"]:
    sys.exit(f"kind {{told}}: not known here")
"""
# A container is a machine; removed, its power is cut.
_DOCKER = """#!{python}
import json, os, signal, sys
here = os.path.dirname(os.path.abspath(__file__))
bed = json.load(open(here + "/bed.json"))
gone = {{n for n in bed["machines"] if os.path.exists(f"{{here}}/gone.{{n}}")}}
there = [n for n in bed["machines"] if n not in gone]
if sys.argv[1:] == ["ps"]:
    print("CONTAINER ID   NAMES", *(f"id-{{n}}   {{n}}" for n in there), sep="\\n")
elif sys.argv[1:4] == ["ps", "--all", "--no-trunc"]:
    print(*(f"{{n}}\\tid-{{n}}\\tkind\\tworker\\t" for n in there), sep="\\n")
elif sys.argv[1:4] == ["rm", "--force", "--volumes"]:
    name = sys.argv[4].removeprefix("id-")
    assert name in there, sys.argv
    os.kill(bed["machines"][name]["pid1"], signal.SIGKILL)
    open(f"{{here}}/gone.{{name}}", "w").close()
else:
    sys.exit(f"docker {{sys.argv[1:]}}: not known here")
"""


class Worker(Node):
    """As kind makes a node: without our package, its credential where kubeadm has it, with a providerID."""
    def __init__(self, bed, number, name):
        super().__init__(bed, number, bed.layers.bed)
        self.name = name
        self.folder = os.path.join(bed.folder, name)

    def make(self):
        super().make()
        shutil.copytree(self.at("/etc/kubernetes/pki"), self.at("/var/lib/kubelet/pki"))
        path = self.at("/etc/kubernetes/kubelet.conf")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace("/etc/kubernetes/pki/", "/var/lib/kubelet/pki/"))
        return self


def steps():
    """The commands of the tour: one text for each stretch of indented lines."""
    with open(os.path.join(TOP, "README.md"), encoding="utf-8") as f:
        tour = f.read().split("<!-- tour -->")[1].split("<!-- end of the tour -->")[0]
    found = [re.sub(r"^    ", "", block, flags=re.M) for block in re.findall(r"(?:^    .*\n)+", tour, re.M)]
    assert len(found) >= 5, f"README.md has {len(found)} stretches of commands between the markers of the tour"
    return found


class Shell:
    """One bash for all steps, as the reader has one; a step's output is returned."""
    def __init__(self, folder, environment):
        self.path = os.path.join(folder, "said")
        self._log = open(self.path, "w+", encoding="utf-8")
        self._popen = subprocess.Popen(["bash", "-m"], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=self._log,
                                       stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self._n = 0

    def play(self, text):
        """Fails unless each command of it ends with status 0."""
        self._n += 1
        begin, mark = os.fstat(self._log.fileno()).st_size, f"=== step {self._n} ended with"
        commands = "trap 'tour_failed=$BASH_COMMAND' ERR; tour_failed=\n" + text + \
            f"\nprintf '\\n{mark} %s\\n' \"${{tour_failed:-success}}\"\n"
        self._popen.stdin.write(commands)
        self._popen.stdin.flush()

        def said():
            assert self._popen.poll() is None, "the shell has ended"
            with open(self.path, encoding="utf-8", errors="replace") as f:
                f.seek(begin)
                out = f.read()
            return out if re.search(f"^{mark} .*$", out, re.M) else None

        out = wait_for(said, lambda: f"step {self._n} ends:\n{text}\n{self.tail()}", 0.1)
        end = re.search(f"^{mark} (.*)$", out, re.M)[1]
        assert end == "success", f"'{end}' failed:\n{out}"
        return out

    def tail(self):
        with open(self.path, encoding="utf-8", errors="replace") as f:
            return f.read()[-3000:]

    def close(self):
        """Ends the shell and its jobs: a coordinator that is left would lead in the next case."""
        self._popen.stdin.close()
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with contextlib.suppress(ProcessLookupError):
                if os.getsid(pid) == self._popen.pid:
                    os.kill(pid, signal.SIGKILL)
        self._popen.wait()
        self._log.close()


def _prepare(bed, machines, folder):
    """A folder that looks like the tree, with kind and docker of ours; the environment to be there."""
    for name, target in (("packaging", os.path.join(TOP, "packaging")), ("tests", os.path.join(TOP, "tests")),
                         ("build", build_directory())):
        os.symlink(target, os.path.join(folder, name))
    shims = os.path.join(folder, "shims")
    os.mkdir(shims)
    for name, text in (("kind", _KIND), ("docker", _DOCKER)):
        path = os.path.join(shims, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.format(python=sys.executable))
        os.chmod(path, 0o755)
    os.symlink(os.path.join(bed.cluster.binaries, "kubectl"), os.path.join(shims, "kubectl"))
    with open(os.path.join(shims, "bed.json"), "w", encoding="utf-8") as f:
        json.dump({"kubeconfig": bed.cluster.kubeconfig("admin"),
                   "machines": {m.name: {"pid1": m.pid1, "enter": m.entering()} for m in machines}}, f)
    return {"PATH": f"{shims}:{os.environ['PATH']}", "HOME": folder, "LANG": "C.UTF-8"}


def _delete_all(bed):
    """Deletes the machines and the objects of the tour."""
    bed.logs.pop("tour", None)
    for name in WORKERS:
        if name in bed.machines:
            bed.machines[name].destroy()
    for path in ("/apis/apps/v1/namespaces/default/deployments/web", "/apis/vesper.sh/v1alpha1/nodepools/tour",
                 "/api/v1/namespaces/vesper-system"):
        bed.admin.request("DELETE", path)
    bed.remove_workloads("web-")


def tour(bed, figures):
    """README.md's tour: an agent on each node from an image archive, a NodePool, a node that is deleted, and its machine gone"""
    machines = [Worker(bed, FIRST_NUMBER + i, name) for i, name in enumerate(WORKERS)]
    folder = os.path.join(bed.folder, "tour")
    os.makedirs(folder)
    for m in machines:
        m.power_on()
        bed.admin.patch(f"/api/v1/nodes/{m.name}", {"spec": {"providerID": f"kind://docker/kind/{m.name}"}})
    with contextlib.closing(Shell(folder, _prepare(bed, machines, folder))) as shell:
        bed.logs["tour"] = shell.path  # the coordinator is a job of this shell
        _play(bed, machines, shell, figures)


def _play(bed, machines, shell, figures):
    admin = bed.admin
    first, agents, pool, delete, end = steps()
    for text, instead in INSTEAD.items():
        assert text in first + pool, f"README.md's tour does not say '{text}' any more"
        figures.add(f"not played: {text.split(' && ')[0]}: {instead.split('# ')[1]}")
        first, pool = first.replace(text, instead.split("  #")[0]), pool.replace(text, instead.split("  #")[0])
    shell.play(first)
    shell.play(agents)
    pods = admin.get("/api/v1/namespaces/vesper-system/pods")["items"]
    assert {p["spec"]["nodeName"] for p in pods} >= set(WORKERS), f"agents do not run on all nodes: {pods}"
    shell.play(pool)
    wait_for(lambda: len(admin.get("/apis/vesper.sh/v1alpha1/nodeclaims")["items"]) == 1, "one node has a claim")
    on_worker = [p for p in admin.get("/api/v1/namespaces/default/pods?labelSelector=app%3Dweb")["items"]
                 if p["spec"]["nodeName"] == WORKERS[0]]
    assert on_worker, "no pod of web runs on kind-worker: nothing is to be seen"
    out = shell.play(delete)
    machines[0].wait_off()
    assert machines[1].is_on(), "the machine of kind-worker2 has ended"
    assert admin.find(f"/api/v1/nodes/{WORKERS[0]}") is None, "Node kind-worker is still there"
    assert "id-kind-worker2" in out and "id-kind-worker\n" not in out.replace("   ", "\n"), out
    left = [p["metadata"]["name"] for p in admin.get("/api/v1/namespaces/default/pods")["items"]
            if p["spec"].get("nodeName") == WORKERS[0] and p["status"]["phase"] in ("Pending", "Running")]
    assert not left, f"pods on kind-worker: {left}\n{out}"
    assert "Drained" in out, f"no Event tells of the drain:\n{out}"
    wait_for(lambda: not admin.get("/apis/vesper.sh/v1alpha1/nodeclaims")["items"], "its claim is gone")
    figures.add(f"{len(on_worker)} pods were moved, {len(pods)} agents ran")
    shell.play(end)


tour.machines = 0
tour.alone = True
tour.bed = "pods"
tour.put_away = _delete_all

CASES = [tour]
