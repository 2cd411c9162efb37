#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each verb of vesperctl, on the fake cluster: that help and manual page have all of it, and what a person is told who has no cluster,
no permission, or the wrong name.

Usage: check-verbs.py SOURCE VESPERCTL FAKE-CLUSTER MANUAL-PAGE [-- CLASS.TEST...]
"""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

import parallel
from parallel import LIMIT

SOURCE, CTL, FAKE, PAGE = sys.argv[1:5]
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name.startswith(("ASAN", "UBSAN", "LSAN", "GCOV", "LLVM", "VESPER_MUTANT"))},
    "PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent"}
# Whom a person is: what of packaging/manifests/coordinator/people.yaml is bound to each. jane has nothing, and root may do all.
PEOPLE = {"jane": [], "vera": ["vesper-viewer"], "otto": ["vesper-viewer", "vesper-operator"], "root": []}
# Each way to ask for something, with NODE for a name. reads: the viewer's role is enough. absent: what is said when there is
# nothing of that name; None: no name was given.
ASKED = [
    # verb, arguments, reads, absent
    ("status", [], True, None),
    ("status", ["NODE"], True, "there is no Node nope"),
    ("explain", ["NODE"], True, "there is no node 'nope', and no NodeClaim of it"),
    ("plan", [], True, None),
    ("plan", ["--without", "NODE"], True, "there is no node 'nope'"),
    ("snapshot", [], True, None),
    ("timeline", ["NODE"], True, "nothing is known of node nope"),
    ("drain", ["NODE"], False, "there is no Node 'nope'"),
    ("drain", ["NODE", "--dry-run"], False, "there is no Node 'nope'"),
    ("drain", ["NODE", "-o", "json"], False, "there is no Node 'nope'"),
    ("undrain", ["NODE"], False, "there is no Node 'nope'"),
    ("pause", [], False, None),
    ("pause", ["NODE"], False, "there is no NodePool 'nope'"),
    ("resume", [], False, None),
    ("resume", ["NODE"], False, "there is no NodePool 'nope'"),
    ("release", ["NODE"], False, "there is no Node 'nope'"),
    ("release", ["--all", "--yes"], False, None),
    ("force", ["NODE"], False, "there is no node 'nope', and no NodeClaim of it"),
    ("let-go", ["NODE"], False, "there is no Node nope"),
    ("let-go", ["--all"], False, None),
]
# Options with which a verb ends by itself in a cluster without a coordinator, for class Hostile. Other verbs end without any.
ENDS = {"drain": ["--timeout=2s"], "release": ["--timeout=2s"]}
# Options that have a verb print other things, for class Hostile.
BESIDES = [("release", ["--all", "--yes", "--without-coordinator", "--timeout=30s"]), ("explain", ["NODE", "--simulate"]),
           ("force", ["NODE", "--yes"]), ("let-go", ["NODE", "--yes"]), ("let-go", ["--all", "--yes"]), ("undrain", ["NODE", "--yes"]), ("plan", ["--upgrade=here"])]
# Verbs that print texts of others in evil_world(). The others print names only.
QUOTING = ["explain", "let-go", "release", "snapshot", "status", "timeline"]
POOL = {"apiVersion": "vesper.sh/v1alpha1", "kind": "NodePool", "metadata": {"name": "here"},
        "spec": {"selector": {"matchLabels": {"pool": "here"}}}}


def rules():
    """{role: [(verbs, group, resources, names)]}, as the file has them."""
    with open(os.path.join(SOURCE, "packaging", "manifests", "coordinator", "people.yaml"), encoding="utf-8") as f:
        documents = f.read().split("\n---\n")
    found = {}
    for text in documents:
        rows = re.findall(r'^- \{apiGroups: \[(.*?)\], resources: \[(.*?)\],(?: resourceNames: \[(.*?)\],)? verbs: \[(.*?)\]\}$', text, re.M)
        assert len(rows) == text.count("apiGroups"), f"a rule of people.yaml is not read: {text}"
        found[re.search(r"^metadata: \{name: (.*)\}$", text, re.M)[1]] = [
            (verbs.split(", "), group.strip('"'), resources.split(", "), names.split(", ") if names else None)
            for group, resources, names, verbs in rows]
    return found


ROLES = rules()


def world():
    allow = [{"subject": who, "verbs": ",".join(verbs), "group": group, "resources": ",".join(resources),
              **({"names": ",".join(names)} if names else {})}
             for who, roles in PEOPLE.items() for role in roles for verbs, group, resources, names in ROLES[role]]
    allow.append({"subject": "helpers", "verbs": "list", "group": "", "resources": "nodes"})
    return {"objects": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vesper-system"}},
                        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "here"}}, POOL],
            "identities": [{"name": who, "identity": f"CN={who}" + (",O=system:masters" if who == "root" else "")} for who in PEOPLE],
            "allow": allow}


def commands(name):
    """(command line, is the viewer's role enough, what is said when there is nothing of that name)"""
    return [([verb, *(name if a == "NODE" else a for a in arguments)], reads, absent) for verb, arguments, reads, absent in ASKED]


def ctl(*arguments, **environment):
    """Exit status, standard output, standard error."""
    done = subprocess.run([CTL, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False,
                          env={**ENVIRONMENT, **environment})
    return done.returncode, done.stdout, done.stderr


def verbs():
    listed = ctl("--help")[1].partition("\nCommands:\n")[2].partition("\n\n")[0]
    return re.findall(r"^  ([a-z-]+) ", listed, re.M)


class Help(unittest.TestCase):
    def test_every_verb_is_asked(self):
        self.assertEqual({verb for verb, *_ in ASKED}, set(verbs()))

    def test_help(self):
        for verb in verbs():
            with self.subTest(verb=verb):
                code, out, err = ctl(verb, "--help")
                self.assertEqual((code, err), (0, ""))
                self.assertIn("\nExit status:\n", out)
                self.assertRegex(" ".join(out.split()), r"(Needs: |Reads ).*\.")
                example = out.partition("\nExample:\n")[2].splitlines()[0].strip()
                words = shlex.split(example.partition(" > ")[0])
                self.assertEqual(words[:2], ["vesperctl", verb])
                # Its options are this verb's.
                self.assertEqual(ctl(*words[1:], "--help")[0], 0, example)

    def test_manual_page(self):
        with open(PAGE, encoding="utf-8") as f:
            page = f.read().replace("\\-", "-").replace("\\(aq", "'")
        for verb in verbs():
            with self.subTest(verb=verb):
                out = ctl(verb, "--help")[1]
                section = page.partition(f"\n.SS {verb}")[2].partition("\n.SS ")[0]
                self.assertIn(out.partition("\nExample:\n")[2].splitlines()[0].strip(), section)
                besides = " ".join(out.partition("\nExit status:\n")[2].partition("\n\n")[0].split()).partition("not valid; ")[2]
                if besides:
                    self.assertIn("Exit status besides: " + besides, section)
        self.assertIn("\n.SH \"EXIT STATUS\"\n", page)


class OnFake(unittest.TestCase):
    def start(self, cluster):
        """Starts a fake cluster with these objects. self.folder then has its credentials."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(self.path("world.json"), "w", encoding="utf-8") as f:
            json.dump(cluster, f)
        fake = subprocess.Popen([FAKE, "--dir", self.folder, "--world", self.path("world.json")], env=ENVIRONMENT,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

        def end():
            fake.kill()
            fake.wait()

        self.addCleanup(end)
        deadline = time.monotonic() + LIMIT
        while not os.path.exists(self.path("endpoints.json")):
            self.assertIsNone(fake.poll(), "the fake cluster has ended")
            self.assertLess(time.monotonic(), deadline, "the fake cluster does not start")
            time.sleep(0.02)

    def path(self, name):
        return os.path.join(self.folder, name)

    def by(self, who, *arguments):
        return ctl(*arguments, "--kubeconfig", self.path(f"kubeconfig-{who}"))


class Said(OnFake):
    """On the fake cluster."""

    def setUp(self):
        self.start(world())

    def assert_complains(self, answer, *words):
        """Status 1; on standard error a sentence with our name before it, which has these words."""
        code, out, err = answer
        self.assertEqual(code, 1, out + err)
        found = [line for line in err.splitlines() if all(w in line for w in words)]
        self.assertTrue(found, f"no line has {words}:\n{err}\nstandard output:\n{out}")
        self.assertTrue(all(line.startswith("vesperctl: ") for line in err.splitlines()), err)

    def test_no_cluster(self):
        with open(self.path("kubeconfig-gone"), "w", encoding="utf-8") as f:
            json.dump({"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
                       "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}], "users": [{"name": "u", "user": {}}]}, f)
        for command, _, _ in commands("here"):
            with self.subTest(command=command):
                self.assert_complains(self.by("gone", *command), "the API server does not answer: ", "127.0.0.1", "--context")
                self.assert_complains(ctl(*command), "No credential for the API server", "--kubeconfig", "KUBECONFIG")
                self.assert_complains(ctl(*command, "--kubeconfig=" + self.path("none")), self.path("none"), "No such file")
                self.assert_complains(self.by("root", *command, "--context=none"), "there is no context 'none'")

    def test_force_of_a_node_that_is_not_managed(self):
        self.assert_complains(self.by("root", "force", "here"), "no NodeClaim names node here: vesper does not manage it", "vesperctl explain here")

    def test_let_go(self):
        """let-go shows what is held, and changes nothing before --yes; then it lets go of what it has shown, and of nothing that comes later."""
        claims, node = "/apis/vesper.sh/v1alpha1/nodeclaims", "/api/v1/nodes/other"
        notice = {"id": "i", "kind": "spot", "source": "s", "action": "terminate", "deadline": "2027-01-15T08:02:00Z", "state": "Held"}
        annotations = [{"vesper.sh/announced": json.dumps({"notices": [{**notice, "received": at}]})}
                       for at in ("2027-01-15T08:00:00Z", "2027-01-15T08:00:01Z")]

        def let_go(path):
            return self.api("GET", path)["metadata"].get("annotations", {}).get("vesper.sh/let-go")

        self.assertEqual(self.by("otto", "let-go", "--all")[:2], (0, "No notice waits to be let go.\n"))
        self.assertEqual(self.by("otto", "let-go", "here")[:2], (0, "Node here: the brake of the interruption queue holds nothing of it.\n"))
        for arguments in [], ["--all", "here"]:
            code, out, err = self.by("otto", "let-go", *arguments)
            self.assertEqual((code, out), (2, ""))
            self.assertIn("needs names of nodes, or --all", err)
        self.api("PATCH", "/api/v1/nodes/here", {"spec": {"providerID": "aws:///a/i-1"}, "metadata": {"finalizers": ["vesper.sh/termination"]}})
        self.api("POST", claims, {"apiVersion": "vesper.sh/v1alpha1", "kind": "NodeClaim", "metadata": {"name": "c", "annotations": annotations[0]},
                                  "spec": {"providerID": "aws:///a/i-1"}})
        self.api("POST", "/api/v1/nodes", {"metadata": {"name": "other", "annotations": annotations[1]}})
        held = ("Node here (machine aws:///a/i-1): the interruption queue announced the end of its machine (spot, terminate) by 2027-01-15T08:02:00Z, "
                "received at 2027-01-15T08:00:00Z. Once it is let go, vesper deletes its NodeClaim, ")
        code, out, err = self.by("vera", "let-go", "here")
        self.assertEqual((code, err), (1, "vesperctl: nothing was changed. To do it: vesperctl let-go here --yes\n"))
        self.assertIn(held, out)
        code, out, err = self.by("vera", "let-go", "--all")
        self.assertEqual((code, err), (1, "vesperctl: nothing was changed. To do it: vesperctl let-go --all --yes\n"))
        self.assertIn("\nNode other: ", out)
        self.assertEqual((let_go(claims + "/c"), let_go(node)), (None, None))
        self.assert_complains(self.by("vera", "let-go", "here", "--yes"), "you may not ", "ClusterRole vesper-operator")
        code, out, err = self.by("otto", "let-go", "here", "--yes")
        self.assertEqual((code, err), (0, ""))
        self.assertIn(held, out)
        self.assertIn("The held notices of Node here count as confirmed. 'vesperctl explain here' shows what follows.", out)
        self.assertIn("No coordinator leads: nothing happens until one does.", out)
        self.assertEqual((let_go(claims + "/c"), let_go(node)), ("2027-01-15T08:00:00Z", None))
        # The coordinator has not acted yet.
        code, out, err = self.by("otto", "let-go", "here", "--yes")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("somebody has let it go already", out)
        self.assertEqual(self.by("otto", "let-go", "--all", "--yes")[0], 0)
        self.assertEqual(let_go(node), "2027-01-15T08:00:01Z")
        self.api("PATCH", claims + "/c", {"metadata": {"annotations": annotations[1]}})
        self.assertEqual(self.by("otto", "let-go", "--all")[0], 1)
        self.assertIn("Held: 2 nodes, because ", self.by("vera", "status")[1])

    def api(self, method, path, body=None):
        with open(self.path("endpoints.json"), encoding="utf-8") as f:
            server = json.load(f)["api"]
        with open(self.path("kubeconfig-root"), encoding="utf-8") as f:
            token = re.search(r'"?token"?: *"?([\w-]+)', f.read())[1]
        request = urllib.request.Request(server + path, method=method, data=json.dumps(body).encode() if body else None, headers={
            "Authorization": "Bearer " + token, "Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"})
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            return json.load(answer)

    def lead(self):
        """Somebody holds the Lease, and renews it until the test is over."""
        leases = "/apis/coordination.k8s.io/v1/namespaces/vesper-system/leases"
        spec = {"holderIdentity": "pod_0", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
        self.api("POST", leases, {"metadata": {"name": "vesper-coordinator"}, "spec": spec})
        over = threading.Event()

        def renew():
            while not over.wait(0.2):
                self.api("PATCH", leases + "/vesper-coordinator", {"spec": {"renewTime": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + (
                    ".%06dZ" % (time.time_ns() // 1000 % 1000000))}})

        thread = threading.Thread(target=renew)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(over.set)

    def annotations(self):
        return self.api("GET", "/api/v1/namespaces/vesper-system")["metadata"].get("annotations", {})

    def test_release_that_is_killed(self):
        """status names who set a pause; a later release takes it over; resume lifts it."""
        self.lead()
        # Nobody lets go of it: no release comes to its end.
        self.api("PATCH", "/apis/vesper.sh/v1alpha1/nodepools/here", {"metadata": {"finalizers": ["vesper.sh/termination"]}})
        before = ""
        for said in None, "Removals were paused already, set by ":
            command = [CTL, "release", "--all", "--yes", "--kubeconfig", self.path("kubeconfig-root")]
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=ENVIRONMENT, text=True) as release:
                line = release.stdout.readline() if said else ""
                deadline = time.monotonic() + LIMIT
                while self.annotations().get("vesper.sh/paused-by", before) == before:
                    self.assertLess(time.monotonic(), deadline, "release does not pause removals")
                    time.sleep(0.05)
                release.kill()
            if said:
                self.assertIn(said, line)
                self.assertIn("'vesperctl release --all'", line)
                self.assertIn("takes the pause over", line)
            before = self.annotations()["vesper.sh/paused-by"]
        code, out, err = self.by("vera", "status")
        self.assertEqual((code, err), (0, ""))
        (line,) = [line for line in out.splitlines() if line.startswith("Paused: ")]
        self.assertRegex(line, r"no removal of a node begins, set by \S+@\S+ with 'vesperctl release --all' at 20.*Z, [0-9]+[smhd] ago\. "
                               r"If that release does not run any more, 'vesperctl resume' lifts the pause\.")
        self.assertEqual(json.loads(self.by("vera", "status", "-o", "json")[1])["paused"], json.loads(before))
        self.assertEqual(self.by("otto", "resume")[0], 0)
        self.assertEqual(self.annotations(), {})
        self.assertNotIn("Paused", self.by("vera", "status")[1])

    def test_pods_left_alone(self):
        """explain names pods that a drain leaves alone though they may be neither static pods nor daemon pods; of the others it says nothing."""
        owner = {"controller": True, "uid": "u"}
        node = {**owner, "apiVersion": "v1", "kind": "Node", "name": "here", "uid": self.api("GET", "/api/v1/nodes/here")["metadata"]["uid"]}
        there = self.api("POST", "/apis/apps/v1/namespaces/default/daemonsets", {"metadata": {"name": "there"}, "spec": {
            "selector": {"matchLabels": {"app": "d"}}, "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [
                {"name": "c", "image": "i"}]}}}})
        daemon = {**owner, "apiVersion": "apps/v1", "kind": "DaemonSet"}
        for name, owned, annotations in (("mirror", node, {"kubernetes.io/config.mirror": "x"}), ("owned", node, {}),
                                         ("daemon", {**daemon, "name": "there", "uid": there["metadata"]["uid"]}, {}),
                                         ("lost", {**daemon, "name": "gone", "uid": there["metadata"]["uid"]}, {}), ("namesake", {**daemon, "name": "there"}, {}),
                                         ("kruise", {**daemon, "apiVersion": "apps.kruise.io/v1", "name": "k"}, {})):
            # The finalizer keeps it when the garbage collector finds no owner.
            self.api("POST", "/api/v1/namespaces/default/pods", {"metadata": {
                "name": name, "ownerReferences": [owned], "annotations": annotations, "finalizers": ["example.com/kept"]},
                "spec": {"nodeName": "here", "containers": [{"name": "c", "image": "i"}]}})
        code, out, err = self.by("vera", "explain", "here", "-o", "json")
        self.assertEqual((code, err), (0, ""))
        value = json.loads(out)
        said = {c["object"]["name"]: c for c in value["causes"] if c["reason"] == "PodLeftAlone"}
        self.assertEqual(set(said), {"owned", "lost", "namesake", "kruise"})
        self.assertFalse(any(c["holds"] for c in said.values()))
        self.assertIn("its owner is a Node, as that of a static pod, but it lacks the annotation kubernetes.io/config.mirror", said["owned"]["message"])
        self.assertIn("DaemonSet gone, and no DaemonSet of that name and uid exists", said["lost"]["message"])
        self.assertIn("DaemonSet there, and no DaemonSet of that name and uid exists", said["namesake"]["message"])
        self.assertIn("DaemonSet k of apps.kruise.io/v1, which vesper does not check", said["kruise"]["message"])
        self.assertEqual(said["owned"]["fix"]["command"], "kubectl delete pod owned -n default")

    def test_pause_of_nobody(self):
        """A pause that kubectl or an older vesperctl set names nobody; a newer vesperctl adds its user; resume lifts it."""
        self.api("PATCH", "/api/v1/namespaces/vesper-system", {"metadata": {"annotations": {"vesper.sh/paused": "true"}}})
        self.assertIn("Paused: no removal of a node begins. 'vesperctl resume' lifts the pause.\n", self.by("vera", "status")[1])
        self.assertEqual(json.loads(self.by("vera", "status", "-o", "json")[1])["paused"], {})
        self.assertEqual(self.by("otto", "pause")[0], 0)
        self.assertIn("with 'vesperctl pause' at ", self.by("vera", "status")[1])
        self.assertEqual(self.by("otto", "resume")[0], 0)
        self.assertEqual(self.annotations(), {})

    def test_no_permission(self):
        """The permission is named as RBAC has it, and the role of ours that gives it does so."""
        for command, _, _ in commands("here"):
            with self.subTest(command=command):
                answer = self.by("jane", *command)
                self.assert_complains(answer, "you may not ", 'User "jane" cannot')
                group, resource, verb, role = re.search(
                    r'a role with \{apiGroups: \["(.*?)"\], resources: \[(.*?)\], verbs: \[(.*?)\]\} would allow it, as vesper\'s '
                    r'ClusterRole (\S+) does', answer[2]).groups()
                for v in verb.split(", "):
                    self.assertTrue(any(v in verbs and group == g and resource in resources for verbs, g, resources, _ in ROLES[role]),
                                    f"ClusterRole {role} has nothing with {v} of {resource} in group '{group}'")

    def test_roles_are_enough(self):
        for command, reads, _ in commands("here"):
            with self.subTest(command=command):
                # Of this node there is nothing that some would write.
                writes = not reads and command[0] not in ("undrain", "force", "let-go") and "--all" not in command and "--dry-run" not in command
                if writes:
                    self.assert_complains(self.by("vera", *command), "you may not ", "ClusterRole vesper-operator")
                for who in ("vera", "otto") if reads else ("otto", ):
                    _, out, err = self.by(who, *command)
                    self.assertNotIn("may not", out + err, who)
                self.by("otto", "undrain", "here")

    def test_no_such_node(self):
        for command, _, absent in commands("nope"):
            with self.subTest(command=command):
                if absent:
                    self.assert_complains(self.by("root", *command), absent)

    def test_as_another(self):
        """--as, as kubectl has it."""
        self.assertEqual(self.by("root", "status", "--as=vera")[0], 0)
        self.assert_complains(self.by("root", "pause", "--as=vera"), 'User "vera" cannot patch', "ClusterRole vesper-operator")
        self.assert_complains(self.by("vera", "status", "--as=root"), "you may not act as another (--as)", "resources: [users]",
                              "verbs: [impersonate]")
        self.assert_complains(self.by("root", "status", "--as=jane", "--as-uid=7"), 'User "jane" cannot list resource "nodes"')
        code, out, err = self.by("root", "status", "--as=jane", "--as-group=a", "--as-group=helpers")
        self.assertEqual(code, 0, err)
        self.assertIn('User "jane" cannot list resource "nodeclaims"', out)
        for wrong in (["--as-group=a"], ["--as-uid=7"], ["--as="], ["--as=a\nb"], ["--as=a", *["--as-group=g"] * 17]):
            code, out, err = self.by("root", "status", *wrong)
            self.assertEqual((code, out), (2, ""), wrong)
            self.assertIn("--as-group", err)

    def test_files_and_contexts(self):
        """KUBECONFIG as kubectl takes it: several files, of which one may be missing; the context that is asked for."""
        with open(self.path("endpoints.json"), encoding="utf-8") as f:
            server = json.load(f)["api"]
        tokens = {}
        for who in "jane", "root":
            with open(self.path(f"kubeconfig-{who}"), encoding="utf-8") as f:
                tokens[who] = re.search(r'"?token"?: *"?([\w-]+)', f.read())[1]
        for name, config in (
                ("clusters", {"clusters": [{"name": "here", "cluster": {"server": server}}], "current-context": "nobody"}),
                ("users", {"users": [{"name": who, "user": {"token": token}} for who, token in tokens.items()]}),
                ("contexts", {"contexts": [{"name": "all", "context": {"cluster": "here", "user": "root"}},
                                           {"name": "nobody", "context": {"cluster": "here", "user": "jane"}}],
                              "current-context": "all"})):
            with open(self.path(name), "w", encoding="utf-8") as f:
                json.dump(config, f)
        files = ":".join(self.path(n) for n in ("none", "clusters", "users", "contexts"))
        self.assert_complains(ctl("status", KUBECONFIG=files), 'User "jane" cannot')
        self.assertEqual(ctl("status", "--context=all", KUBECONFIG=files)[0], 0)
        # A file that is named wins over all of them.
        self.assertEqual(ctl("status", "--kubeconfig", self.path("kubeconfig-root"), KUBECONFIG=files)[0], 0)
        # Parts of a context, as kubectl's options of these names.
        self.assertEqual(ctl("status", "--user=root", KUBECONFIG=files)[0], 0)
        self.assert_complains(ctl("status", "--context=all", "--user=jane", KUBECONFIG=files), 'User "jane" cannot')
        self.assert_complains(ctl("status", "--cluster=none", KUBECONFIG=files), "there is no cluster 'none'")
        self.assertEqual(ctl("status", "--context=all", "-s", server + "/", KUBECONFIG=files)[0], 0)
        for other in (["-s", "http://127.0.0.1:1"], ["--server=http://127.0.0.1:1"]):
            self.assert_complains(ctl("status", "--context=all", *other, KUBECONFIG=files), "the API server does not answer: ", "127.0.0.1")
            self.assert_complains(ctl("status", *other), "the API server does not answer: ", "127.0.0.1")
        self.assert_complains(ctl("status", "--server=127.0.0.1:1"), "server is no http:// or https:// address")
        # A name needs a file that has it.
        self.assert_complains(ctl("status", "--user=root", "-s", server), "No credential for the API server")

    def test_request_timeout(self):
        """Of a server that takes connections and says nothing."""
        with socket.create_server(("127.0.0.1", 0)) as mute:
            begin = time.monotonic()
            self.assert_complains(ctl("status", "-s", f"http://127.0.0.1:{mute.getsockname()[1]}", "--request-timeout=300ms"),
                                  "the API server does not answer")
            self.assertLess(time.monotonic() - begin, 30, "each call of status waits for 30 s without it")
        self.assertEqual(self.by("root", "status", "--request-timeout=0")[0], 0)
        code, _, err = self.by("root", "status", "--request-timeout=soon")
        self.assertEqual(code, 2)
        self.assertIn("--request-timeout=soon", err)

    def test_secrets_are_not_taken(self):
        for words in (["--token=abc123"], ["--token", "abc123"], ["--password=abc123"], ["--password", "abc123"]):
            for line in ([*words, "status"], ["status", *words]):
                code, out, err = self.by("root", *line)
                self.assertEqual((code, out), (2, ""), line)
                self.assertIn("is not taken", err)
                self.assertNotIn("abc123", err)

    def test_forms(self):
        """-o yaml and json are the same data; what is no such form is refused with those that are."""
        for command in (["status"], ["status", "here"], ["explain", "here"], ["timeline", "here"], ["drain", "here", "--dry-run"]):
            with self.subTest(command=command):
                code, out, err = self.by("root", *command, "-o", "json")
                self.assertEqual((code, err), (0, ""))
                value = json.loads(out)
                code, out, err = self.by("root", *command, "-o", "yaml")
                self.assertEqual((code, err), (0, ""))
                keys = set(re.findall(r'^[ -]*"?([A-Za-z]+)"?:', out, re.M))
                self.assertEqual(keys, keys_of(value), out)
                code, _, err = self.by("root", *command, "-o", "xml")
                self.assertEqual(code, 2)
                self.assertIn("table, json, yaml", err)


# A text that sets the title of a terminal, colours it (by a control character of two bytes), turns the direction of reading, and
# begins a line.
EVIL = "\x1b]0;title\x07\u009b31m\u202e\u200f\u2066\x7f\r\nEVIL"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
STEADY = {"apiVersion", "kind", "name", "namespace", "uid", "nodeName", "type", "status", "time", "lastTransitionTime", "deletionTimestamp",
          "firstTimestamp", "lastTimestamp", "startTime", "phase", "operator", "effect", "maxUnavailable", "minAvailable", "renewTime",
          "finalizers", "restartPolicy", "deletionPolicy", "cpu", "memory", "pods", "since", "deadline", "until", "matchLabels", "metadata.labels",
          "storage", "accessModes", "state", "received", "vesper.sh/paused", "vesper.sh/do-not-evict"}


def evil(value, key=""):
    """The object with EVIL at the end of each text that the API server does not check; JSON in an annotation likewise."""
    if isinstance(value, dict):
        return {k: v if k in STEADY and not isinstance(v, (dict, list)) or k == "finalizers" or f"{key}.{k}" in STEADY or k == "matchLabels"
                else evil(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [evil(v, key) for v in value]
    if isinstance(value, str) and value.startswith("{"):
        return json.dumps(evil(json.loads(value)), ensure_ascii=False)
    return value + EVIL if isinstance(value, str) and key not in STEADY else value


def node_of(name, deleted=False, **annotations):
    then = "2026-01-01T00:00:00Z"
    meta = {"name": name, "uid": "uid-" + name, "annotations": {"note": "", **annotations}, "labels": {"pool": "here"}}
    if deleted:
        meta |= {"deletionTimestamp": then, "finalizers": ["vesper.sh/termination"]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta,
            "spec": {"providerID": "aws:///a/i-" + name, "unschedulable": True,
                     "taints": [{"key": "t", "value": "v", "effect": "NoSchedule"}, {"key": "vesper.sh/disrupted", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": t, "status": "True", "reason": r, "message": "m", "lastTransitionTime": then}
                                      for t, r in (("Ready", "KubeletReady"), ("DrainInProgress", "VesperCoordinator"), ("Broken", "why"),
                                                   ("MaintenancePlanned", "AdminRequested"), ("vesper.sh/TerminationBlocked", "Cloud"))],
                       "volumesAttached": [{"name": "kubernetes.io/csi/d^v", "devicePath": ""}], "volumesInUse": ["kubernetes.io/csi/d^v"],
                       "nodeInfo": {"bootID": "b", "kubeletVersion": "v1.30.0", "osImage": "o"},
                       "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}, "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
                       "addresses": [{"type": "Hostname", "address": "h"}]}}


def pod_of(node, name, owner=None, **annotations):
    then = "2026-01-01T00:00:00Z"
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"{name}-{node}", "namespace": "default", "uid": f"{name}-{node}", "labels": {"app": name}, "annotations": annotations,
                         **({"ownerReferences": [{"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "u", "controller": True}]} if owner else {})},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}], "priorityClassName": "p", "terminationGracePeriodSeconds": 1},
            "status": {"phase": "Running", "message": "m", "reason": "r", "startTime": then,
                       "conditions": [{"type": "Ready", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": then}]}}


def evil_world():
    """Three nodes, one in service, one that is being deleted and one that is interrupted, with all that vesper writes about them."""
    then = "2026-01-01T00:00:00Z"
    notice = json.dumps({"id": "i", "kind": "spot", "source": "s", "action": "terminate", "deadline": then, "phase": "Draining", "podsLeft": 3,
                         "blockedBy": [{"pod": "default/web", "reason": "PodDisruptionBudget", "detail": "web"}]})
    paused = json.dumps({"by": "b", "command": "c", "since": then})
    cordoned = json.dumps({"bootID": "b", "why": "because"})
    nodes = [node_of("here", **{"vesper.sh/cordoned-by-vesperctl": cordoned, "vesper.sh/do-not-consolidate": "true"}),
             node_of("going", deleted=True, **{"vesper.sh/cordoned-by-coordinator": cordoned}),
             node_of("told", **{"vesper.sh/interruption": notice, "vesper.sh/heard": notice, "vesper.sh/cordoned-by-agent": cordoned,
                                "vesper.sh/shutdown-request": cordoned})]
    conditions = [{"type": t, "status": "True", "reason": "r", "message": "m", "lastTransitionTime": then}
                  for t in ("Drained", "VolumesDetached", "vesper.sh/NotAdopted", "vesper.sh/NodeAbsent", "vesper.sh/IdentityProved", "Invalid",
                            "Consolidatable", "Drifted", "Empty", "Expired", "Paused", "DisruptionAllowed", "InstanceTerminating")]
    objects = list(nodes)
    for n in ("here", "going", "told"):
        meta = {"name": n, "uid": "claim-" + n, "finalizers": ["vesper.sh/termination"], "annotations": {"vesper.sh/announced": json.dumps(
            {"notices": [{"id": "i", "kind": "spot", "source": "s", "action": "terminate", "deadline": then},
                         {"id": "j", "kind": "spot", "source": "s", "action": "terminate", "deadline": then, "received": then, "state": "Held"}]})}}
        if n == "going":
            meta["deletionTimestamp"] = then
        objects.append({"apiVersion": "vesper.sh/v1alpha1", "kind": "NodeClaim", "metadata": meta, "spec": {"nodePool": "here"} if n != "told" else {},
                        "status": {"nodeName": n, "nodeUID": "uid-" + n, "providerID": "aws:///a/i-" + n, "phase": "Draining", "podsLeft": 2,
                                   "lastCloudError": "e", "conditions": [c for c in conditions if n == "going" or "NotAdopted" not in c["type"]],
                                   "blockers": [{"pod": "default/web-" + n, "reason": "PodDisruptionBudget", "pdb": "default/web", "message": "m",
                                                 "since": then}]}})
        objects += [pod_of(n, "web", "ReplicaSet"), pod_of(n, "kept", None, **{"vesper.sh/do-not-evict": "true"}), pod_of(n, "bare"),
                    pod_of(n, "odd", "Strange"), pod_of(n, "daemon", "DaemonSet"), pod_of(n, "mirror", "Node")]
        objects.append({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e-" + n, "namespace": "default"}, "reason": "r", "message": "m",
                        "type": "Warning", "count": 1, "firstTimestamp": then, "lastTimestamp": then, "source": {"component": "c", "host": "h"},
                        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": n, "uid": "uid-" + n}})
    objects += [
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "default"},
         "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
         "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
                    "conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "m", "lastTransitionTime": then}]}},
        {"apiVersion": "vesper.sh/v1alpha1", "kind": "NodeDisruptionBudget", "metadata": {"name": "all"},
         "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"pool": "here"}}},
         "status": {"conditions": conditions, "disruptedNodes": [{"name": "told", "uid": "uid-told", "time": then, "kind": "DELETE", "holder": "h"}]}},
        {"apiVersion": "vesper.sh/v1alpha1", "kind": "NodePool", "metadata": {"name": "here", "finalizers": ["vesper.sh/termination"],
                                                                             "annotations": {"vesper.sh/paused": "true", "vesper.sh/paused-by": paused}},
         "spec": {"selector": {"matchLabels": {"pool": "here"}}}, "status": {"conditions": conditions}},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "o", "namespace": "default", "uid": "u"}, "spec": {
            "replicas": 0, "selector": {"matchLabels": {"app": "none"}}}},
    ]
    objects = [evil(o) for o in objects]
    objects += [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vesper-system", "annotations": evil(
        {"vesper.sh/paused": "true", "vesper.sh/paused-by": paused})}},
                {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "vesper-coordinator", "namespace": "vesper-system"},
                 "spec": {"holderIdentity": "pod_" + EVIL, "leaseDurationSeconds": 1, "renewTime": "2026-01-01T00:00:00.000000Z"}}]
    return {"objects": objects, "identities": world()["identities"]}


def keys_of(value):
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


class Hostile(OnFake):
    """In a cluster whose every text holds control characters. There is a test for each verb of ASKED, which has all verbs."""

    def ask(self, verb, arguments, node, form):
        """Runs one command in a new cluster. Returns the number of texts of the cluster that the command printed."""
        self.start(evil_world())
        line = [verb, *(node if a == "NODE" else a for a in arguments), *(ENDS.get(verb, []) if "--timeout=30s" not in arguments else []), *form]
        with self.subTest(line=line):
            done = subprocess.run([CTL, *line, "--kubeconfig", self.path("kubeconfig-root")], stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=LIMIT, check=False, env=ENVIRONMENT)
            for which, text in ("standard output", done.stdout), ("standard error", done.stderr):
                text = text.decode("utf-8")
                found = CONTROL.search(text)
                if found:
                    self.fail(f"{which} has {found[0]!r}: {text[max(found.start() - 200, 0):found.end() + 60]!r}")
                self.assertNotRegex(text, "(?m)^ *EVIL", f"{which} has a line that the cluster began")
            if form == ["-o", "json"] and done.stdout:
                json.loads(done.stdout)
            return (done.stdout + done.stderr).count(b"EVIL")

    def ask_all(self, verb):
        """Runs the verb with each of its arguments, on each kind of node, in each form that the verb knows."""
        known = re.search(r"it is one of: (.*)", ctl(verb, "-o", "no-form")[2])
        forms = known[1].split(", ") if known else [None]
        seen = 0
        for _, arguments in [(v, a) for v, a, *_ in ASKED + BESIDES if v == verb]:
            for form in forms if "-o" not in arguments else [None]:
                for node in ("here", "going", "told") if "NODE" in arguments else ("here",):
                    seen += self.ask(verb, arguments, node, ["-o", form] if form else []) or 0
        if verb in QUOTING:
            self.assertGreater(seen, 0, f"{verb} printed no text of the cluster: the test shows nothing")


for _verb in sorted({verb for verb, *_ in ASKED}):
    setattr(Hostile, "test_" + _verb, lambda self, verb=_verb: self.ask_all(verb))


if __name__ == "__main__":
    parallel.main()
