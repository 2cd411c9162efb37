#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays the sample command for provider exec (packaging/examples/kind-nodes) against a docker of its own.

Usage: check-kind-nodes.py TREE
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import parallel

# Containers are lines of a file, as the command asks for them; "broken" has a docker that fails. The file "failing" has the
# beginning of the one call that fails: after it was carried out, if that is "late".
DOCKER = """#!/usr/bin/python3 -IS
import os, sys
here = os.path.dirname(os.path.abspath(__file__))
args = sys.argv[1:]
with open(here + "/calls", "a") as f:
    print(*args, file=f)
if os.path.exists(here + "/broken"):
    sys.exit("Cannot connect to the Docker daemon. Is the docker daemon running?")
with open(here + "/containers") as f:
    lines = f.read().splitlines()
failing = open(here + "/failing").read() if os.path.exists(here + "/failing") else None
fails = failing and " ".join(args).startswith(failing.removeprefix("late "))
if fails and not failing.startswith("late "):
    sys.exit("docker " + failing + " fails")
def known(container):
    found = [l.split("\\t") for l in lines if container in l.split("\\t")[:2]]
    if not found:
        sys.exit("No such container: " + container)
    return found[0][0]
def write(to):
    with open(here + "/containers", "w") as f:
        print(*to, sep="\\n", file=f)
if args[0] == "ps":
    assert args[1:4] == ["--all", "--no-trunc", "--format"], args
    print(*lines, sep="\\n")
elif args[:3] == ["rm", "--force", "--volumes"]:
    known(args[3])
    write([l for l in lines if l.split("\\t")[1] != args[3]])
elif args[0] == "inspect":
    with open(here + "/inspect.json") as f:
        print("[" + f.read() + "]")
elif args[0] == "create":
    name = args[args.index("--name") + 1]
    if any(l.split("\\t")[0] == name for l in lines):
        sys.exit("Conflict. The container name is already in use")
    labels = dict(args[i + 1].split("=", 1) for i, a in enumerate(args) if a == "--label")
    write(lines + ["\\t".join([name, "id-" + name, labels["io.x-k8s.kind.cluster"], labels["io.x-k8s.kind.role"], labels["sh.vesper.op"]])])
elif args[0] == "start":
    known(args[1])
elif args[0] == "exec" and args[2:] == ["cat", "/kind/kubeadm.conf"]:
    print(open(here + "/kubeadm-" + known(args[1])).read(), end="")
elif args[0] == "exec" and args[2:] == ["kubeadm", "token", "create", "--ttl", "15m"]:
    known(args[1])
    print("fresh0.0123456789fresh0")
elif args[:2] == ["exec", "--interactive"]:
    with open(here + "/kubeadm-" + known(args[2]), "w") as f:
        f.write(sys.stdin.read())
elif args[:2] == ["exec", "--detach"]:
    with open(here + "/joined", "a") as f:
        print(known(args[2]), file=f)
else:
    sys.exit("what is that?")
if fails:
    sys.exit("docker " + failing + " fails")
"""
CONTAINERS = """kind-control-plane\tc0\tkind\tcontrol-plane\t
kind-worker\tc1\tkind\tworker\t
kind-worker2\tc2\tkind\tworker\t
other-worker\tc3\tother\tworker\t
kind-database\tc4\t\t\t
"""
# The parts that count of what docker and kind write.
INSPECT = {"Config": {"Image": "kindest/node:v1.34.0", "Env": ["container=docker"], "Volumes": {"/var": {}}},
           "HostConfig": {"Privileged": True, "NetworkMode": "kind", "CgroupnsMode": "private", "Devices": None,
                          "SecurityOpt": ["seccomp=unconfined", "label=disable"], "Binds": ["/lib/modules:/lib/modules:ro"],
                          "Tmpfs": {"/run": "", "/tmp": "size=1g"}, "UsernsMode": "",
                          "RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 1},
                          "PortBindings": {"80/tcp": [{"HostPort": "80"}]}},
           "NetworkSettings": {"Networks": {"kind": {"IPAddress": "172.18.0.9", "GlobalIPv6Address": "fc00::9"}}}}
KUBEADM = """apiVersion: kubeadm.k8s.io/v1beta3
kind: JoinConfiguration
nodeRegistration:
  kubeletExtraArgs:
    node-ip: "172.18.0.3"
    provider-id: "kind://docker/kind/kind-worker"
    node-labels: "pool=tour,a=kind-worker2"
discovery:
  bootstrapToken:
    apiServerEndpoint: "kind-control-plane:6443"
    token: "abcdef.0123456789abcdef"
"""
LIKE = "kind://docker/kind/kind-worker"
COMMAND = None


class Sample(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="kind-nodes-")
        self.addCleanup(self._folder.cleanup)
        self.path = self._folder.name
        self.write("docker", DOCKER)
        os.chmod(self.file("docker"), 0o755)
        self.write("containers", CONTAINERS)
        with open(COMMAND, encoding="utf-8") as f:
            self.write("kind-nodes", f.read())
        os.chmod(self.file("kind-nodes"), 0o755)
        self.write("inspect.json", json.dumps(INSPECT))
        self.write("kubeadm-kind-worker", KUBEADM)
        self.write("kubeadm-kind-worker2", KUBEADM.replace("kind-worker", "kind-worker2").replace("kind-worker22", "kind-worker"))

    def file(self, name):
        return os.path.join(self.path, name)

    def write(self, name, text):
        with open(self.file(name), "w", encoding="utf-8") as f:
            f.write(text)

    def read(self, name):
        with open(self.file(name), encoding="utf-8") as f:
            return f.read()

    def names(self):
        return [line.split("\t")[0] for line in self.read("containers").splitlines()]

    def run_command(self, op, text):
        # In the environment that vesper gives it. An isolated python starts faster.
        return subprocess.run(["/usr/bin/python3", "-IS", self.file("kind-nodes"), op], input=text, capture_output=True, text=True, check=False,
                              timeout=60, env={"PATH": f"{self.path}:/usr/bin:/bin", "LANG": "C.UTF-8"})

    def ask(self, op, node, provider_id=None, **more):
        request = {"version": 1, "op": op, "providerID": provider_id or f"kind://docker/kind/{node}", **more}
        if node is not None:
            request["node"] = {"name": node, "systemUUID": "u", "addresses": []}
        done = self.run_command(op, json.dumps(request))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refused(self, code, *asked, **more):
        for op in ("describe", "terminate"):
            said = self.ask(op, *asked, **more)
            self.assertEqual(said["error"]["code"], code, said)
            self.assertNotIn("state", said)
        self.assertEqual(self.read("containers"), CONTAINERS)

    def test_to_its_end(self):
        self.assertEqual(self.ask("describe", "kind-worker"), {"state": "present"})
        done = subprocess.run([self.file("kind-nodes"), "describe"], input="{}", capture_output=True, text=True, check=False,
                              timeout=60)
        self.assertIn("none of version 1", done.stderr)  # it runs as a program, too
        self.assertEqual(self.ask("terminate", "kind-worker", opId="terminate-1", pool="p"), {"state": "gone"})
        self.assertNotIn("kind-worker", self.names())
        self.assertEqual(self.ask("describe", "kind-worker"), {"state": "gone"})
        self.assertEqual(self.ask("terminate", "kind-worker", opId="terminate-1"), {"state": "gone"})
        self.assertEqual(len(self.names()), 4)
        self.assertEqual([c for c in self.read("calls").splitlines() if c.startswith("rm")], ["rm --force --volumes c1"])

    def test_list(self):
        done = self.run_command("list", json.dumps({"version": 1, "op": "list"}))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), {"instances": [
            {"providerID": f"kind://docker/kind/{name}", "state": "present"}
            for name in ("kind-control-plane", "kind-worker", "kind-worker2")]})
        self.write("broken", "")
        done = self.run_command("list", json.dumps({"version": 1, "op": "list"}))
        self.assertEqual((done.returncode, done.stdout), (75, ""), done)

    def test_without_provider_id(self):
        self.assertEqual(self.ask("terminate", "kind-worker2", "exec://kind-worker2"), {"state": "gone"})
        self.assertNotIn("kind-worker2", self.names())

    def test_another_cluster(self):
        self.refused("invalid", "other-worker")
        self.write("kind-nodes.json", json.dumps({"cluster": "other"}))
        self.assertEqual(self.ask("describe", "other-worker", "kind://docker/other/other-worker"), {"state": "present"})
        self.refused("invalid", "kind-worker")

    def test_no_kind_node(self):
        self.refused("invalid", "kind-database")

    def test_names_another(self):
        self.refused("invalid", "kind-worker", "kind://docker/kind/kind-worker2")
        self.refused("invalid", "kind-worker", "exec://kind-worker2")
        self.refused("invalid", "kind-worker", "kind://docker/other/kind-worker")
        self.refused("invalid", "kind-worker", "aws:///z/i-1")
        self.refused("invalid", None)
        for name in ("--all", "", "kind worker", "Kind-Worker", "a\nb", "-x"):
            self.refused("invalid", name, f"exec://{name}")

    def test_control_plane(self):
        self.assertEqual(self.ask("describe", "kind-control-plane"), {"state": "present"})
        self.assertEqual(self.ask("terminate", "kind-control-plane")["error"]["code"], "protected")
        self.assertEqual(self.read("containers"), CONTAINERS)

    def test_wrong_host(self):
        self.write("containers", "other-worker\tc3\tother\tworker\t\n")
        for op in ("describe", "terminate"):
            said = self.ask(op, "kind-worker")
            self.assertEqual(said["state"], "unknown", said)
            self.assertIn("is this its host", said["error"])
        self.write("containers", "")
        self.assertEqual(self.ask("describe", "kind-worker")["state"], "unknown")

    def test_docker_fails(self):
        self.write("broken", "")
        for op in ("describe", "terminate"):
            done = self.run_command(op, json.dumps({"version": 1, "providerID": "exec://kind-worker",
                                                    "node": {"name": "kind-worker"}}))
            self.assertEqual((done.returncode, done.stdout), (75, ""), done)
            self.assertIn("Cannot connect", done.stderr.splitlines()[-1])

    def test_no_such_operation(self):
        for op in ("reboot", "leave", "hook"):
            done = self.run_command(op, json.dumps({"version": 1, "op": op, "opId": "r", "providerID": "exec://kind-worker",
                                                    "node": {"name": "kind-worker"}}))
            self.assertEqual((done.returncode, done.stdout), (64, ""), done)
            self.assertIn("no other operation", done.stderr)
        self.assertFalse(os.path.exists(self.file("calls")))

    def ask_op(self, op, **request):
        done = self.run_command(op, json.dumps({"version": 1, "op": op, **request}))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def launched(self, op_id, like=LIKE):
        said = self.ask_op("launch", opId=op_id, like=like, pool="p")
        self.assertEqual(said["launch"], "accepted", said)
        self.assertTrue(said["providerID"].startswith("kind://docker/kind/kind-worker-"), said)
        return said["providerID"]

    def calls(self, beginning):
        return [c for c in self.read("calls").splitlines() if c.startswith(beginning)]

    def test_launch(self):
        provider_id = self.launched("op-1")
        name = provider_id.rpartition("/")[2]
        self.assertEqual(self.calls("create"), [
            f"create --name {name} --hostname {name} --tty --init=false --network kind --label io.x-k8s.kind.cluster=kind "
            "--label io.x-k8s.kind.role=worker --label sh.vesper.op=op-1 --privileged --cgroupns=private --restart=on-failure:1 "
            "--security-opt seccomp=unconfined --security-opt label=disable --volume /lib/modules:/lib/modules:ro --volume /var "
            "--env container=docker --tmpfs /run --tmpfs /tmp:size=1g kindest/node:v1.34.0"])
        self.assertEqual(self.read(f"kubeadm-{name}"), KUBEADM.replace("kind/kind-worker", f"kind/{name}")
                         .replace("172.18.0.3", "172.18.0.9").replace("abcdef.0123456789abcdef", "fresh0.0123456789fresh0"))
        self.assertEqual(self.read("joined"), f"{name}\n")
        # Its node and all operations of a machine.
        self.assertEqual(self.ask("describe", name, provider_id), {"state": "present"})
        self.assertIn({"providerID": provider_id, "state": "present"}, self.ask_op("list")["instances"])
        self.assertEqual(self.ask("terminate", name, provider_id), {"state": "gone"})
        self.assertEqual(self.ask_op("find", opId="op-1"), {"providerID": None})

    def test_launch_twice_is_once(self):
        first = self.launched("op-1")
        self.assertEqual(self.launched("op-1"), first)
        self.assertEqual(len(self.calls("create")), 1)
        second = self.launched("op-2")
        self.assertNotEqual(second, first)
        self.assertEqual(len(self.calls("create")), 2)
        self.assertEqual(len(self.names()), 7)
        for op_id, provider_id in (("op-1", first), ("op-2", second), ("op-3", None)):
            self.assertEqual(self.ask_op("find", opId=op_id), {"providerID": provider_id})

    def test_launch_like(self):
        for like, first in (("exec://kind-worker2", "c2"), ("kind://docker/kind/kind-worker9", "c1"),
                            ("kind://docker/kind/kind-control-plane", "c1"), ("kind://docker/other/other-worker", "c1")):
            self.write("calls", "")
            self.write("containers", CONTAINERS)
            self.launched("op-1", like)
            self.assertEqual(self.calls("inspect")[0], f"inspect {first}", like)
        self.write("containers", CONTAINERS)  # the model does not run: another one
        self.write("failing", "exec c1 cat")
        self.launched("op-2")
        self.write("containers", "kind-control-plane\tc0\tkind\tcontrol-plane\t\n")
        said = self.ask_op("launch", opId="op-3", like=LIKE)
        self.assertEqual(said["launch"], "refused", said)

    def test_launch_addresses(self):
        for old, new in (('node-ip: "172.18.0.3,fc00::3"', 'node-ip: "172.18.0.9,fc00::9"'),
                         ('- name: node-ip\n      value: "172.18.0.3"', '- name: node-ip\n      value: "172.18.0.9"')):
            self.write("containers", CONTAINERS)
            self.write("kubeadm-kind-worker", KUBEADM.replace('node-ip: "172.18.0.3"', old))
            name = self.launched("op-1").rpartition("/")[2]
            self.assertIn(new, self.read(f"kubeadm-{name}"))

    def test_launch_fails_before_the_container(self):
        for failing in ("ps", "exec c0 kubeadm token"):
            self.write("failing", failing)
            done = self.run_command("launch", json.dumps({"version": 1, "opId": "op-1", "like": LIKE}))
            self.assertEqual((done.returncode, done.stdout), (75, ""), done)
            self.assertIn("fails", done.stderr)
        self.assertEqual(self.read("containers"), CONTAINERS)

    def test_launch_fails_half_way(self):
        for failing in ("create", "late create", "start", "exec --interactive", "exec --detach"):
            self.write("containers", CONTAINERS)
            self.write("calls", "")
            self.write("joined", "")
            self.write("failing", failing)
            said = self.ask_op("launch", opId="op-1", like=LIKE)
            self.assertEqual(said, {"launch": "unknown", "error": f"docker {failing} fails"})
            found = self.ask_op("find", opId="op-1")["providerID"]
            self.assertEqual(found is None, failing == "create", failing)
            self.assertEqual(self.read("joined"), "")
            if found:  # the container is there: no failure means that nothing was launched
                self.write("failing", "exec c0 kubeadm token")
                self.assertEqual(self.ask_op("launch", opId="op-1", like=LIKE)["launch"], "unknown")
            os.unlink(self.file("failing"))
            self.assertEqual(found or self.launched("op-1"), self.launched("op-1"))
            self.assertEqual(len(self.calls("create")), 2 if failing == "create" else 1, failing)
            self.assertEqual(len(self.names()), 6)
            self.assertNotEqual(self.read("joined"), "")

    def test_launch_at_the_maximum(self):
        self.write("kind-nodes.json", json.dumps({"cluster": "kind", "max": 3}))
        self.launched("op-1")
        said = self.ask_op("launch", opId="op-2", like=LIKE)
        self.assertEqual(said["launch"], "noCapacity", said)
        self.launched("op-1")  # the maximum is not asked about what is there
        self.assertEqual(len(self.calls("create")), 1)

    def test_launch_request(self):
        for op, op_id in (("launch", None), ("launch", ""), ("launch", 7), ("find", "a b"), ("find", "a\tb"), ("launch", "a\n"),
                          ("find", "x" * 201)):
            self.assertEqual(self.ask_op(op, opId=op_id, like=LIKE)["error"]["code"], "invalid", op_id)
        self.assertFalse(os.path.exists(self.file("calls")))

    def test_find(self):
        self.assertEqual(self.ask_op("find", opId="op-1"), {"providerID": None})
        # The wrong host is no answer, nor is a docker that fails.
        self.write("containers", "other-worker\tc3\tother\tworker\top-1\n")
        for op in ("find", "launch"):
            self.assertEqual(list(self.ask_op(op, opId="op-1")), ["error"])
        self.write("broken", "")
        done = self.run_command("find", json.dumps({"version": 1, "opId": "op-1"}))
        self.assertEqual((done.returncode, done.stdout), (75, ""), done)

    def test_never_joined(self):
        provider_id = self.launched("op-1")
        self.assertEqual(self.ask_op("describe", providerID=provider_id), {"state": "present"})
        said = self.ask("terminate", "kind-worker", provider_id)  # the Node of another machine
        self.assertEqual(said["error"]["code"], "invalid", said)
        self.assertEqual(self.ask_op("terminate", providerID=provider_id), {"state": "gone"})
        self.assertEqual(self.ask_op("terminate", providerID=provider_id), {"state": "gone"})
        # A container of such a name that no launch has created, and those of other names.
        self.write("containers", CONTAINERS + "kind-worker-0123456789\tc5\tkind\tworker\t\n")
        for name in ("kind-worker-0123456789", "kind-worker", "kind-worker-012345678", "kind-database"):
            said = self.ask_op("terminate", providerID=f"kind://docker/kind/{name}")
            self.assertEqual(said["error"]["code"], "invalid", name)
        self.assertEqual(len(self.names()), 6)

    def test_end(self):
        self.write("kind-nodes.json", json.dumps({"cluster": "kind", "min": 2}))
        said = self.ask("end", "kind-worker", opId="e", shrink=True)
        self.assertEqual(said["error"]["code"], "atMinimum", said)
        self.assertEqual(self.read("containers"), CONTAINERS)
        self.assertEqual(self.ask("end", "kind-control-plane", opId="e", shrink=True)["error"]["code"], "protected")
        self.assertEqual(self.ask("end", "kind-worker", opId="e", shrink=False), {"state": "gone"})
        self.assertNotIn("kind-worker", self.names())
        # What has gone makes nothing smaller.
        self.assertEqual(self.ask("end", "kind-worker", opId="e", shrink=True), {"state": "gone"})
        os.unlink(self.file("kind-nodes.json"))
        self.assertEqual(self.ask("end", "kind-worker2", opId="e", shrink=True), {"state": "gone"})
        self.assertEqual(len(self.names()), 3)

    def test_group(self):
        self.assertEqual(self.ask("group", "kind-worker"), {"group": None})
        for limits in ({"min": 0}, {"max": 5}, {"min": 1, "max": 5}):
            self.write("kind-nodes.json", json.dumps({"cluster": "kind", **limits}))
            self.assertEqual(self.ask("group", "kind-worker"), {"group": {"name": "kind", "size": 2, **limits}})
        for name in ("kind-control-plane", "kind-worker9"):
            self.assertEqual(self.ask("group", name), {"group": None})

    def test_no_request(self):
        for op, text in (("describe", ""), ("describe", "{"), ("describe", "[]"), ("describe", '{"version": 2}'),
                         ("launch", "{}"), ("launch", "{"), ("--help", "")):
            done = self.run_command(op, text)
            self.assertNotIn(done.returncode, (0, 75), (op, text, done))
            self.assertFalse(done.stdout)
            self.assertTrue(done.stderr.strip())
        self.assertEqual(self.read("containers"), CONTAINERS)


if __name__ == "__main__":
    COMMAND = os.path.join(sys.argv.pop(1), "packaging", "examples", "kind-nodes")
    parallel.main()
