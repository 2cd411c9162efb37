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

# Containers are lines of a file, as the command asks for them; "broken" has a docker that fails.
DOCKER = """#!/usr/bin/python3
import os, sys
here = os.path.dirname(os.path.abspath(__file__))
with open(here + "/calls", "a") as f:
    print(*sys.argv[1:], file=f)
if os.path.exists(here + "/broken"):
    sys.exit("Cannot connect to the Docker daemon. Is the docker daemon running?")
with open(here + "/containers") as f:
    lines = f.read().splitlines()
if sys.argv[1] == "ps":
    assert sys.argv[2:4] == ["--all", "--no-trunc"] and sys.argv[4] == "--format", sys.argv
    print(*lines, sep="\\n")
elif sys.argv[1:4] == ["rm", "--force", "--volumes"]:
    left = [l for l in lines if l.split("\\t")[1] != sys.argv[4]]
    assert len(left) == len(lines) - 1, sys.argv
    with open(here + "/containers", "w") as f:
        print(*left, sep="\\n", file=f)
else:
    sys.exit("what is that?")
"""
CONTAINERS = """kind-control-plane\tc0\tkind\tcontrol-plane
kind-worker\tc1\tkind\tworker
kind-worker2\tc2\tkind\tworker
other-worker\tc3\tother\tworker
kind-database\tc4\t\t
"""
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
        # As vesper runs it: an environment of three names.
        return subprocess.run([self.file("kind-nodes"), op], input=text, capture_output=True, text=True, check=False,
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
        self.write("containers", "other-worker\tc3\tother\tworker\n")
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

    def test_reboot(self):
        done = self.run_command("reboot", json.dumps({"version": 1, "op": "reboot", "opId": "r", "providerID": "exec://kind-worker",
                                                      "node": {"name": "kind-worker"}}))
        self.assertEqual((done.returncode, json.loads(done.stdout)["error"]["code"]), (0, "unsupported"), done)

    def test_no_request(self):
        for op, text in (("describe", ""), ("describe", "{"), ("describe", "[]"), ("describe", '{"version": 2}'),
                         ("launch", "{}"), ("--help", "")):
            done = self.run_command(op, text)
            self.assertNotIn(done.returncode, (0, 75), (op, text, done))
            self.assertFalse(done.stdout)
            self.assertTrue(done.stderr.strip())
        self.assertEqual(self.read("containers"), CONTAINERS)


if __name__ == "__main__":
    COMMAND = os.path.join(sys.argv.pop(1), "packaging", "examples", "kind-nodes")
    unittest.main()
