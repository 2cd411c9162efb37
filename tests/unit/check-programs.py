#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the built programs as a person or a unit does: options, refusals, and one start and end of each on the fake cluster.

Usage: check-programs.py VESPER-AGENT VESPER-COORDINATOR VESPERCTL FAKE-CLUSTER [-- CLASS.TEST...]
"""

import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import parallel
from parallel import LIMIT

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "cluster"))

import procs  # noqa: E402

AGENT, COORDINATOR, CTL, FAKE = sys.argv[1:5]
# What is usual on this machine is not asked: neither its bus, nor its service manager, nor a person's credential.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name.startswith(("ASAN", "UBSAN", "LSAN", "GCOV", "LLVM", "VESPER_MUTANT"))},
    "PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent", "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent/bus",
    "VESPER_BOOT_ID": "0123456789abcdef0123456789abcdef"
}
WORLD = {
    "objects": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vesper-system"}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"pool": "web"}},
         "spec": {"providerID": "aws:///us-east-1a/i-00000001"}},
    ],
    "instances": [{"id": "i-00000001", "zone": "us-east-1a", "node": "n1"}],
}
NAMESPACE = "/api/v1/namespaces/vesper-system"
POOLS, CLAIMS = ("/apis/vesper.sh/v1alpha1/" + plural for plural in ("nodepools", "nodeclaims"))
POOL = {"apiVersion": "vesper.sh/v1alpha1", "kind": "NodePool", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"pool": "web"}}, "provider": {"identity": "ProviderID"}}}


def run(*command, **environment):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False,
                          env={**ENVIRONMENT, **environment})
    return done.returncode, done.stdout, done.stderr


def wait_for(what, condition):
    deadline = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.02)


def contents(path):
    with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as f:
        return f.read()
    return ""


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


class Options(unittest.TestCase):
    def test_help_and_version(self):
        for program in AGENT, COORDINATOR, CTL:
            for option, words in ("--help", "--version  "), ("--version", os.path.basename(program) + " "):
                with self.subTest(program=program, option=option):
                    code, out, err = run(program, option)
                    self.assertEqual((code, err), (0, ""))
                    self.assertIn(words, out)

    def test_usage(self):
        for command in ((AGENT, "--nonsense"), (AGENT, "nonsense"), (AGENT, "--drain", "--check"),
                        (AGENT, "--notices", "--check"), (AGENT, "-o", "json"), (AGENT, "--notices", "-o", "yaml"),
                        (COORDINATOR, "--nonsense"), (COORDINATOR, "nonsense"),
                        (CTL, "--nonsense"), (CTL,), (CTL, "nonsense"), (CTL, "-o", "xml", "status")):
            with self.subTest(command=command):
                code, out, err = run(*command)
                self.assertEqual((code, out), (2, ""))
                self.assertNotEqual(err, "")

    def test_configuration(self):
        for program in AGENT, COORDINATOR:
            with self.subTest(program=program):
                code, out, _ = run(program, "--set", "Log.Level=warning", "--dump-config")
                self.assertEqual(code, 0)
                self.assertIn("\nLevel=warning\n", out)
                code, _, err = run(program, "--set", "Log.Level=nonsense", "--dump-config")
                self.assertEqual(code, 2)
                self.assertIn("nonsense", err)
                code, _, err = run(program, "--config", "/nonexistent/file.conf", "--dump-config")
                self.assertEqual(code, 2)
                self.assertIn("/nonexistent/file.conf", err)


class Credentials(unittest.TestCase):
    def test_none_or_nonsense(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kubeconfig")
            with open(path, "w", encoding="utf-8") as f:
                f.write("nonsense: [")
            for command in ((AGENT, "--set", "Kubernetes.Kubeconfig=" + path), (CTL, "--kubeconfig", path, "status"),
                            (AGENT, "--set", "Kubernetes.Kubeconfig=" + path, "--release"),
                            (COORDINATOR, "--set", "Kubernetes.Kubeconfig=" + path)):
                with self.subTest(command=command):
                    code, _, err = run(*command)
                    self.assertEqual(code, 1)
                    self.assertIn(path, err)
        self.assertEqual(run(COORDINATOR)[0], 1)
        code, _, err = run(COORDINATOR, KUBERNETES_SERVICE_HOST="127.0.0.1")
        self.assertEqual(code, 1)
        self.assertIn("ServiceAccount", err)
        self.assertEqual(run(CTL, "status")[0], 1)
        self.assertEqual(run(CTL, "status", KUBECONFIG="/a:/b")[0], 1)
        self.assertEqual(run(CTL, "status", KUBERNETES_SERVICE_HOST="127.0.0.1")[0], 1)

    def test_at_its_usual_place(self):
        """~/.kube/config; and what it names is not there."""
        with tempfile.TemporaryDirectory() as home:
            os.mkdir(home + "/.kube")
            with open(home + "/.kube/config", "w", encoding="utf-8") as f:
                f.write("current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
                        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
                        "users: [{name: u, user: {tokenFile: /nonexistent/token}}]\n")
            code, _, err = run(CTL, "status", HOME=home)
            self.assertEqual(code, 1)
            self.assertIn("/nonexistent/token", err)

    def test_completion(self):
        for shell in "bash", "zsh":
            code, out, err = run(CTL, "completion", shell)
            self.assertEqual((code, err), (0, ""))
            self.assertIn("release", out)
            if shutil.which(shell):
                self.assertEqual(subprocess.run([shell, "-n"], input=out, text=True, timeout=LIMIT, check=False).returncode, 0, shell)
        _, script, _ = run(CTL, "completion", "bash")
        for words, expected in ((["vesperctl", "rel"], "release"), (["vesperctl", "release", "--al"], "--all")):
            line = " ".join(f"'{w}'" for w in words)
            code, out, err = run("bash", "-c", f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _vesperctl; "
                                               "echo \"${COMPREPLY[@]}\"")
            self.assertEqual((code, out.strip()), (0, expected), err)
        for words in (), ("fish",):
            self.assertEqual(run(CTL, "completion", *words)[0], 2)

    def test_boot_id(self):
        code, _, err = run(AGENT, VESPER_BOOT_ID="nonsense")
        self.assertEqual(code, 1)
        self.assertIn("VESPER_BOOT_ID", err)

    def test_no_bus(self):
        for verb in "--drain", "--reboot", "--cancel", "--cancel-drain", "--cancel-reboot":
            self.assertEqual(run(AGENT, verb)[0], 1, verb)


class Cluster(unittest.TestCase):
    """Against the fake cluster: what each says when it starts, and that SIGTERM ends it well."""

    def setUp(self):
        self.begin(WORLD)

    def begin(self, world):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(self.path("world.json"), "w", encoding="utf-8") as f:
            json.dump(world, f)
        self.spawn("fake", FAKE, "--dir", self.folder, "--world", self.path("world.json"))
        wait_for("the fake cluster", lambda: os.path.exists(self.path("endpoints.json")))
        self.endpoints = json.loads(contents(self.path("endpoints.json")))

    def path(self, name):
        return os.path.join(self.folder, name)

    def spawn(self, name, *command, **environment):
        with open(self.path(name + ".log"), "wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env={**ENVIRONMENT, **environment})

        def end():
            process.kill()
            process.wait()

        self.addCleanup(end)
        return process

    def agent(self, *more, without=()):
        """without: keys that a file says."""
        return (AGENT, *self.settings({
            "Kubernetes.Kubeconfig": self.path("kubeconfig-node-n1"), "Kubernetes.NodeName": "n1",
            "Metadata.Endpoint": self.endpoints["metadata"]["i-00000001"], "Agent.RuntimeDirectory": self.path("state"),
            "Drain.LoadBalancerWaitSec": "0", "Log.Target": "text"}, without), *more)

    def coordinator(self, *more, without=()):
        return (COORDINATOR, *self.settings({
            "Kubernetes.Kubeconfig": self.path("kubeconfig-admin"), "Provider.Region": "us-east-1",
            "Provider.Endpoint": self.endpoints["ec2"], "Log.Target": "text"}, without), *more)

    @staticmethod
    def settings(values, without):
        return [a for key, value in values.items() if key not in without for a in ("--set", f"{key}={value}")]

    @contextlib.contextmanager
    def playing(self, name, command, words, **environment):
        """While it runs, from when its log says these words; then SIGTERM."""
        process = self.spawn(name, *command, **environment)
        try:
            wait_for(words, lambda: process.poll() is not None or words in contents(self.path(name + ".log")))
            yield
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            code = process.wait(LIMIT)
        log = contents(self.path(name + ".log"))
        self.assertEqual(code, 0, log)
        self.assertIn(words, log)

    def test_agent(self):
        with self.playing("agent", self.agent(), "API server"):
            pass
        code, out, err = run(*self.agent("--check"))
        self.assertIn(code, (3, 4), err)
        self.assertIn("node n1", out)
        code, out, err = run(*self.agent("--release"))
        self.assertEqual(code, 0, err)
        self.assertIn("n1", out)

    def test_notices(self):
        path = self.path("notices.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write('[{"id": "window-17", "kind": "maintenance", "deadline": "2099-01-21T09:00:00Z"}]')
        os.chmod(path, 0o600)
        options = ("--set", "Metadata.Source=none", "--set", "File.Path=" + path,
                   "--set", "Policy.Maintenance=window:0 3 21 1 * UTC/2h before:1day", "--notices")
        code, out, err = run(*self.agent(*options))
        self.assertEqual((code, err), (0, ""), out)
        self.assertIn("maintenance window-17 (file)", out)
        code, out, err = run(*self.agent(*options, "-o", "json"))
        self.assertEqual((code, err), (0, ""), out)
        (notice,) = json.loads(out)["notices"]
        self.assertEqual(notice["plan"], "drain")
        self.assertRegex(notice["begin"], "-01-21T03:00:00Z$")
        os.chmod(path, 0o666)
        code, out, err = run(*self.agent(*options))
        self.assertEqual((code, err), (3, ""), out)
        self.assertIn("others may write it", out)

    def test_report_is_plain(self):
        """No text of the API server moves a terminal's cursor."""
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {"providerID": "aws:///us-\x9b31m/i-00000002"}}
        self.begin({**WORLD, "objects": [node]})
        code, out, err = run(*self.agent("--set", "Metadata.Source=ec2", "--check"))
        self.assertIn(code, (3, 4), err)
        self.assertIn("us-?31m", out)

    @unittest.skipUnless(shutil.which("dbus-daemon"), "no dbus-daemon")
    def test_drain_by_hand(self):
        address = "unix:path=" + self.path("bus")
        self.spawn("dbus", "dbus-daemon", "--session", "--nofork", "--nopidfile", "--address=" + address)
        wait_for("the bus", lambda: os.path.exists(self.path("bus")))
        bus = {"DBUS_SYSTEM_BUS_ADDRESS": address}
        with self.playing("agent", self.agent(), "Node n1", **bus):
            self.assertEqual(run(*self.agent("--drain"), **bus), (0, "", ""))
            self.assertTrue(self.node()["spec"]["unschedulable"])
            code, out, err = run(*self.agent("--check"), **bus)
            self.assertIn(code, (3, 4), err)
            self.assertIn("logind", out)
        self.assertTrue(self.node()["spec"]["unschedulable"])
        code, out, err = run(*self.agent("--release"), **bus)
        self.assertEqual(code, 0, err)
        self.assertNotIn("unschedulable", self.node()["spec"])

    def reloads(self, name, process, rounds):
        """(a change, words of the log after the SIGHUP that follows it), one after the other in the same process."""
        seen = 0
        for change, *words in rounds:
            change()
            process.send_signal(signal.SIGHUP)

            def said(words=words):
                return process.poll() is not None or all(w in contents(self.path(name + ".log"))[seen:] for w in words)

            wait_for(words, said)
            self.assertIsNone(process.poll(), contents(self.path(name + ".log")))
            seen = len(contents(self.path(name + ".log")))

    def writes(self, path, text):
        def write():
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)

        return write

    def test_reload(self):
        """What a daemon takes, what it names, what it keeps; and that it warns of a token that goes over http://."""
        credential, conf = self.path("kubeconfig-copy"), self.path("daemon.conf")
        text = "[Log]\nTarget=text\n"
        head = f"[Kubernetes]\nKubeconfig={credential}\n"
        for name, source, make, words, key, left in (
                ("agent", "kubeconfig-node-n1", self.agent, "Watching over node n1",
                 "[Shutdown]\nRebootPatienceSec={}\n", "[Metadata]\nPollSec=3s\n"),
                ("coordinator", "kubeconfig-admin", self.coordinator, "The view of the cluster is complete",
                 "[Budget]\nRebootSlotSec={}\n", "[Lease]\nName=other\n")):
            with self.subTest(program=name):
                kubeconfig, log = contents(self.path(source)), self.path(name + ".log")
                self.writes(credential, kubeconfig)()
                self.writes(conf, head + text)()
                process = self.spawn(name, *make("--config", conf, without=("Kubernetes.Kubeconfig", "Log.Target")))
                wait_for(words, lambda: process.poll() is not None or words in contents(log))
                self.assertIn("over http://", contents(log))
                self.reloads(name, process, (
                    (lambda: None, "(SIGHUP): it is the same; credential read again: token"),
                    (self.writes(conf, head + key.format("7min") + text), "Sec=7min (was "),
                    (self.writes(conf, head + key.format("soon")), conf + ":4: ", "What was in force stays"),
                    (self.writes(conf, head + key.format("7min") + left + text), "nothing was taken; restart to apply " + left.split()[0]),
                    (self.writes(credential, kubeconfig.replace("http://", "http://other")), "restart to apply its kubeconfig"),
                    (self.writes(credential, "nonsense: ["), "cannot be read again", credential),
                    (self.writes(credential, kubeconfig), "credential read again: token"),
                    (self.writes(conf, head + key.format("8min") + "[Log]\nTarget=json\n"), "[Log] Target=json (was text)"),
                ))
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(LIMIT), 0, contents(log))
                self.assertIn('"msg":"', contents(log), "its last words are no JSON")

    def api(self, path, method="GET", body=None):
        """None: there is no such object."""
        token = contents(self.path("kubeconfig-admin")).partition('token: "')[2].partition('"')[0]
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        question = urllib.request.Request(self.endpoints["api"] + path, method=method,
                                          data=json.dumps(body).encode() if body else None,
                                          headers={"Authorization": "Bearer " + token, "Content-Type": kind})
        try:
            with urllib.request.urlopen(question, timeout=LIMIT) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            if e.code == 404:
                return None
            raise

    def node(self):
        return self.api("/api/v1/nodes/n1")

    def ctl(self, *arguments):
        return run(CTL, "--kubeconfig", self.path("kubeconfig-admin"), *arguments)

    def gives_up(self, came_so_far, *arguments):
        """Runs vesperctl with growing --timeout until came_so_far(output) is true. Returns the last answer."""
        for timeout in (0.5, 2, 8, 32):
            answer = self.ctl(*arguments, f"--timeout={timeout}s")
            if came_so_far(*answer[1:]):
                break
        return answer

    def annotation(self, path, key):
        return self.api(path)["metadata"].get("annotations", {}).get("vesper.sh/" + key)

    def adopt_n1(self):
        self.api(POOLS, "POST", POOL)
        wait_for("n1 to be adopted", lambda: "vesper.sh/termination" in self.node()["metadata"].get("finalizers", []))
        self.assertEqual(self.node()["metadata"]["labels"]["vesper.sh/nodepool"], "web")

    def assert_nothing_is_left(self):
        self.assertEqual([self.api(path)["items"] for path in (POOLS, CLAIMS)], [[], []])
        self.assertIsNone(self.annotation(NAMESPACE, "paused"))

    def assert_n1_is_free(self):
        meta, spec = self.node()["metadata"], self.node()["spec"]
        self.assertEqual(meta.get("finalizers", []), [])
        self.assertEqual([k for part in ("labels", "annotations") for k in meta.get(part, {}) if k.startswith("vesper.sh/")], [])
        self.assertNotIn("unschedulable", spec)
        self.assertEqual(spec.get("taints", []), [])

    # -- the webhook

    def secret(self, name):
        """Its texts; None while it is not whole."""
        found = (self.api(f"{NAMESPACE}/secrets/{name}") or {}).get("data", {})
        return {key: base64.b64decode(text).decode() for key, text in found.items()} if "tls.key" in found else None

    def asked(self, port, ca, body, withheld=False):
        """What the webhook answers, and the certificate that it shows. withheld: the body is announced and not sent."""
        context = ssl.create_default_context(cadata=ca)
        with socket.create_connection(("127.0.0.1", port), LIMIT) as plain, \
                context.wrap_socket(plain, server_hostname="vesper-webhook.vesper-system.svc") as tls:
            text = json.dumps(body).encode()
            tls.sendall(b"POST /admission HTTP/1.1\r\nHost: w\r\nConnection: close\r\nContent-Type: application/json\r\n"
                        b"Content-Length: %d\r\n\r\n" % len(text) + (b"" if withheld else text))
            answer = b""
            while piece := tls.recv(65536):
                answer += piece
            head, _, body = answer.partition(b"\r\n\r\n")
            return head.split()[1], body, tls.getpeercert(binary_form=True)

    def test_webhook(self):
        """With a Secret of its own, which another replica renews meanwhile; then with a person's files."""
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u1", "operation": "DELETE", "resource": {"group": "", "version": "v1", "resource": "nodes"},
            "name": "n1", "userInfo": {"username": "me"}, "oldObject": self.node()}}
        ports = procs.Ports()
        self.addCleanup(ports.release)
        port = ports.take()
        listen = ("--set", f"Webhook.Listen=127.0.0.1:{port}")
        done = "The view of the cluster is complete"
        with self.playing("other", self.coordinator("--set", "Webhook.Listen=127.0.0.1:0", "--set", "Lease.Name=other",
                                                    "--set", "Webhook.CertificateSecret=theirs"), done):
            wait_for("a Secret", lambda: self.secret("theirs"))
        theirs = self.secret("theirs")
        with self.playing("coordinator", self.coordinator(*listen, "--set", "Webhook.CertificateSecret=ours"), done):
            wait_for("a Secret", lambda: self.secret("ours"))
            log = self.path("coordinator.log")
            wait_for("the webhook", lambda: listens(port))
            ours = self.secret("ours")
            status, body, shown = self.asked(port, ours["ca.crt"], review)
            self.assertEqual((status, json.loads(body)["response"]), (b"200", {"uid": "u1", "allowed": True}), body)
            self.assertEqual(self.asked(port, ours["ca.crt"], {})[0], b"400")
            self.api(f"{NAMESPACE}/secrets/ours", "PATCH",
                     {"data": {k: base64.b64encode(v.encode()).decode() for k, v in theirs.items()}})
            wait_for("another certificate", lambda: "shows another certificate" in contents(log))
            self.assertNotEqual(self.asked(port, theirs["ca.crt"], review)[2], shown)
        for name, text in theirs.items():
            self.writes(self.path(name), text)()
        files = (*listen, "--set", "Webhook.CertificateFile=" + self.path("tls.crt"), "--set", "Webhook.KeyFile=")
        with self.playing("coordinator", self.coordinator(*files[:-1], files[-1] + self.path("tls.key")), done):
            wait_for("the webhook", lambda: listens(port))
            self.assertEqual(self.asked(port, theirs["ca.crt"], review)[0], b"200")
        with self.playing("coordinator", self.coordinator(*files[:-1], files[-1] + self.path("tls.key"), "--set",
                                                          "Webhook.ClientCAFile=" + self.path("ca.crt")), done):
            wait_for("the webhook", lambda: listens(port))
            self.assertEqual(self.asked(port, theirs["ca.crt"], review, withheld=True)[0], b"401")
        for key, word in (("ca.key", "is not the key of the certificate"), ("none", "Failed to read")):
            code, _, err = run(*self.coordinator(*files[:-1], files[-1] + self.path(key)))
            self.assertEqual(code, 1)
            self.assertIn(word, err)

    # -- vesperctl

    def test_ctl_asks_the_coordinator(self):
        with self.playing("coordinator", self.coordinator(), "The view of the cluster is complete"):
            self.adopt_n1()
            code, out, err = self.ctl("pause")
            self.assertEqual((code, self.annotation(NAMESPACE, "paused")), (0, "true"), err)
            self.assertIn("No removal is under way", out)
            self.assertEqual(self.ctl("resume")[0], 0)
            self.assertIsNone(self.annotation(NAMESPACE, "paused"))
            code, out, err = self.ctl("pause", "web", "none")
            self.assertEqual((code, self.annotation(POOLS + "/web", "paused")), (1, "true"))
            self.assertIn("there is no NodePool 'none'", err)
            self.assertEqual(self.ctl("resume", "web")[0], 0)

            code, out, err = self.ctl("force", "n1", "--yes")
            self.assertEqual(code, 1)
            self.assertIn("kubectl delete node n1", err)
            self.assertEqual(self.ctl("force", "n1", "--deadline=soon")[0], 2)

            code, out, err = self.ctl("release", "n1", "n2")
            self.assertEqual(code, 1)
            self.assertIn("there is no Node 'n2'", err)
            self.assertIn("Node n1 is released", out)
            self.assertEqual(self.node()["metadata"].get("finalizers", []), [])
            self.assertNotIn("vesper.sh/nodepool", self.node()["metadata"].get("labels", {}))
            self.api("/api/v1/nodes/n1", "PATCH", {"metadata": {"annotations": {"vesper.sh/unmanaged": None}}})
            wait_for("n1 to be adopted again", lambda: self.node()["metadata"].get("finalizers"))

            self.assertEqual(self.ctl("release", "--all")[0], 2)
            code, out, err = self.ctl("release", "--all", "--yes")
            self.assertEqual((code, self.node()["metadata"].get("finalizers", [])), (0, []), err)
            self.assert_nothing_is_left()

            # By a person's claim, which no NodePool's deletion takes along.
            self.api(CLAIMS, "POST", {
                "apiVersion": "vesper.sh/v1alpha1", "kind": "NodeClaim", "metadata": {"name": "own"},
                "spec": {"providerID": self.node()["spec"]["providerID"]}
            })
            wait_for("n1 to be adopted by it", lambda: self.node()["metadata"].get("finalizers"))
            code, out, err = self.ctl("release", "--all", "--yes")
            self.assertEqual((code, self.node()["metadata"].get("finalizers", [])), (0, []), err)
            self.assertIn("adopted by NodeClaim own", out)
            self.assert_nothing_is_left()

    def test_ctl_releases_without_coordinator(self):
        """A node that is being deleted and a claim: nobody serves their finalizers any more."""
        with self.playing("coordinator", self.coordinator(), "The view of the cluster is complete"):
            self.adopt_n1()
            self.assertEqual(self.ctl("pause")[0], 0)
            self.api("/api/v1/nodes/n1", "DELETE")
            code, out, err = self.ctl("release", "--all", "--yes")
            self.assertEqual((code, out), (1, ""))
            self.assertRegex(err, "Node n1 is being deleted, and its removal is paused, .*'vesperctl resume'.*\n.*nothing was changed")
            code, out, err = self.ctl("release", "--all", "--without-coordinator", "--yes")
            self.assertEqual((code, out), (1, ""))
            self.assertRegex(err, "coordinator .* leads: stop all coordinators")
            self.assertEqual(len(self.api(POOLS)["items"]), 1)
        self.assertIn("deletionTimestamp", self.node()["metadata"])
        code, out, err = self.ctl("force", "n1")
        self.assertEqual(code, 1)
        self.assertIn("With --yes", out)
        # Nobody knows yet whether a coordinator leads.
        code, out, err = self.gives_up(lambda out, err: "1 node and 1" in err, "release", "--all", "--yes")
        self.assertEqual((code, out), (1, ""))
        self.assertRegex(err, "gave up, --timeout is over: 1 node and 1 NodeClaim are left")
        self.assertEqual(self.ctl("release", "n1", "--timeout=1s")[0], 2)
        code, out, err = self.ctl("release", "--all", "--yes")
        self.assertEqual(code, 1)
        self.assertIn("no coordinator leads", err)
        code, out, err = self.ctl("release", "--all", "--without-coordinator", "--yes")
        self.assertEqual(code, 0, err)
        self.assertIn("aws:///us-east-1a/i-00000001", out)
        self.assertIsNone(self.node())
        self.assert_nothing_is_left()
        # Where nothing is left nobody has to lead: what never came up can be uninstalled. A pause of an earlier try goes, too.
        self.assertEqual(self.ctl("pause")[0], 0)
        code, out, err = self.ctl("release", "--all", "--yes")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("Nothing of vesper's is left on any node.", out)
        self.assert_nothing_is_left()

    def test_ctl_releases_without_definitions(self):
        """vesper's CustomResourceDefinitions were never installed, or are gone: there are no pools and claims, and what is on Nodes goes."""
        def fault(path, body):
            question = urllib.request.Request(self.endpoints["control"] + path, method="POST", data=json.dumps(body).encode())
            urllib.request.urlopen(question, timeout=LIMIT).close()

        def mark():
            self.api("/api/v1/nodes/n1", "PATCH", {
                "metadata": {"finalizers": ["vesper.sh/termination"], "labels": {"vesper.sh/nodepool": "web"},
                             "annotations": {"vesper.sh/cordoned-by-coordinator": "true", "vesper.sh/deadline": "2027-01-15T08:00:00Z"}},
                "spec": {"unschedulable": True, "taints": [{"key": "vesper.sh/disrupted", "effect": "NoSchedule"}]}})

        for resource in "nodepools", "nodeclaims":
            fault("/fault", {"resource": resource, "status": 404, "plain": True})
        code, out, err = self.ctl("release", "--all", "--yes")  # never installed: nothing is left, nobody has to lead
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(out.count("does not know NodePools and NodeClaims"), 1, out)
        # A coordinator may lead, but never has a whole view.
        with self.playing("coordinator", self.coordinator(), "Leading, as "):
            mark()
            code, out, err = self.ctl("release", "--all", "--yes", f"--timeout={LIMIT}s")
            self.assertEqual((code, err), (0, ""), out)
            self.assertIn("Nothing of vesper's is left on any node.", out)
            self.assert_n1_is_free()
            # It may have begun to end the machine of a node that is being deleted.
            mark()
            self.api("/api/v1/nodes/n1", "DELETE")
            code, out, err = self.gives_up(lambda out, err: "Waiting for" in out, "release", "--all", "--yes")
            self.assertEqual(code, 1)
            self.assertIn("Waiting for node n1, which is being deleted, and its machine aws:///us-east-1a/i-00000001.\n", out)
            self.assertIn("say 'vesperctl release --all --without-coordinator --yes'", out)
            self.assertIn("gave up, --timeout is over: 1 node and 0 NodeClaims are left", err)
            self.assertIn("vesper.sh/termination", self.node()["metadata"]["finalizers"])
        code, out, err = self.ctl("release", "--all", "--yes")
        self.assertEqual(code, 1)
        self.assertIn("1 node and 0 NodeClaims are left.\n", out)
        self.assertIn("Node n1 is being deleted, and no coordinator leads that would end its machine aws:///us-east-1a/i-00000001.\n", err)
        self.assertIn("'vesperctl release --all --without-coordinator --yes' lets what is being deleted go", err)
        code, out, err = self.ctl("release", "--all", "--without-coordinator", "--yes")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("aws:///us-east-1a/i-00000001", out)
        self.assertIsNone(self.node())
        self.assertIsNone(self.annotation(NAMESPACE, "paused"))
        # NodePools alone, of an installation that is half gone: what is there is dealt with as always.
        fault("/fault/clear", {})
        fault("/fault", {"resource": "nodepools", "status": 404, "plain": True})
        fault("/fault", {"resource": "nodeclaims", "status": 403})
        code, out, err = self.ctl("release", "--all", "--yes")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("you may not list nodeclaims", err)

    def test_ctl_and_what_the_queue_told(self):
        """A node of no NodePool that the coordinator drains for its queue: undrain opens it, release --all has all marks taken off."""
        def tell(notice):
            text = json.dumps({"notices": [{"id": notice, "kind": "scale-in", "source": "sqs", "action": "terminate"}]})
            self.api("/api/v1/nodes/n1", "PATCH", {"metadata": {"annotations": {"vesper.sh/announced": text}}})
            wait_for("n1 to be cordoned", lambda: self.node()["spec"].get("unschedulable"))

        with self.playing("coordinator", self.coordinator("--set", "Queue.Unmanaged=drain"), "The view of the cluster is complete"):
            tell("e1")
            code, out, err = self.ctl("undrain", "n1")
            self.assertEqual((code, out), (0, "Node n1 is schedulable again.\n"), err)
            wait_for("its drain to stop", lambda: '"Overruled"' in self.annotation("/api/v1/nodes/n1", "announced"))
            tell("e2")
            code, out, err = self.ctl("release", "--all", "--yes")
            self.assertEqual(code, 0, err)
            self.assertIn("The interruption queue announced something for Node n1", out)
            self.assert_nothing_is_left()
            self.assertNotIn("unschedulable", self.node()["spec"])
            self.assertEqual([k for k in self.node()["metadata"]["annotations"] if k.startswith("vesper.sh/")], ["vesper.sh/unmanaged"])

    def test_ctl_timeline(self):
        """Of a node that is there, then of one of which only a log is left."""
        with self.playing("coordinator", self.coordinator("--set", "Log.Target=json"), "The view of the cluster is complete"):
            self.adopt_n1()
            self.assertEqual(self.ctl("release", "n1")[0], 0)
        self.api("/api/v1/namespaces/default/events", "POST", {
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e1"}, "reason": "Told", "message": "of n1",
            "involvedObject": {"kind": "Node", "name": "n1"}, "firstTimestamp": "2027-01-15T08:00:00Z"})
        log = "--log=" + self.path("coordinator.log")
        code, out, err = self.ctl("timeline", "n1", log, "-o", "json")
        self.assertEqual(code, 0, err)
        sources = {e["source"] for e in json.loads(out)["entries"]}
        self.assertLessEqual({"object", "event", "log"}, sources, out)
        code, out, err = self.ctl("timeline", "n1", "-o", "svg", log)
        self.assertEqual((code, out[:5], out[-7:]), (0, "<svg ", "</svg>\n"), err)
        # Of several: what one of them lacks is said, and of the other everything is told.
        code, out, err = self.ctl("timeline", "nope", "n1", log, "-o", "json")
        self.assertEqual((code, [(t["node"], bool(t["entries"])) for t in json.loads(out)]), (1, [("nope", False), ("n1", True)]), err)
        self.assertEqual(err, "vesperctl: nothing is known of node nope\n")
        code, out, err = self.ctl("timeline", "n1", "nope", log)
        self.assertRegex(out, r"(?s)^Node n1\n.*is managed from now on.*\n\nNode nope\n.*The Node is gone")
        self.assertEqual(self.ctl("timeline", "n1", "nope", log, "-o", "svg")[1].count("The Node is gone"), 1)
        self.api("/api/v1/nodes/n1", "DELETE")
        code, out, err = self.ctl("timeline", "n1", log)
        self.assertEqual(code, 0, err)
        self.assertIn("The Node is gone", out)
        self.assertIn("is managed from now on", out)
        code, out, err = self.ctl("timeline", "n2")
        self.assertEqual(code, 1, out)
        self.assertIn("No log was given", out)
        self.assertEqual(self.ctl("timeline", "n1", "--log=/nonexistent")[0], 1)

    def test_ctl_names_left_out(self):
        """A namespace whose rules are too many to be compared is in the notes of each output."""
        term = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}
        items = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "w1"}, "spec": {},
                  "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]}}]
        for i in range(1200):
            items.append({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{i}", "namespace": "shop", "labels": {"app": f"p{i}"}},
                          "spec": {"nodeName": "w1", "containers": [{"name": "c"}],
                                   "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term] * 64}}},
                          "status": {"phase": "Running" if i == 0 else "Succeeded"}})
        self.writes(self.path("list.json"), json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))()
        kept = ("--snapshot", self.path("list.json"), "--complete")
        said = "Where some pods would go is not simulated: namespace 'shop' has too many rules that bind pods to others. "
        for more in ((), ("--without", "w1"), ("--all-drainable",)):
            code, out, err = run(CTL, "plan", *kept, *more, "-o", "json")
            self.assertEqual((code, err), (3 if more else 0, ""))
            notes = json.loads(out)["snapshot"]["notes"]
            self.assertEqual(len(notes), 1, notes)
            self.assertTrue(notes[0].startswith(said) and notes[0].endswith("vesper(7), PLANNING."), notes)
            self.assertIn("\nNote: " + notes[0] + "\n", run(CTL, "plan", *kept, *more)[1])
            page = run(CTL, "plan", *kept, *more, "-o", "html")[1]
            self.assertIn(notes[0], page.replace("&#39;", "'"))
        code, out, err = run(CTL, "plan", *kept, "--without", "w1")
        self.assertIn("where pod shop/p0 would go is not simulated: its namespace has too many rules that bind pods to others\n", out)

    def test_ctl_plans(self):
        """Two nodes of a pool that consolidates, of which one could go: asked of the cluster, of a file, and of what kubectl prints."""
        def node(name):
            return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": "web"}},
                    "spec": {"providerID": "aws:///us-east-1a/" + name},
                    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
                               "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}

        def pod(name, where):
            return {"apiVersion": "v1", "kind": "Pod",
                    "metadata": {"name": name, "namespace": "default", "ownerReferences": [
                        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "o", "controller": True}]},
                    "spec": {"nodeName": where, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
                    "status": {"phase": "Running"}}

        self.begin({"instances": [{"id": "i-00000001", "zone": "us-east-1a", "node": "w1"}], "objects": [
            node("w1"), node("w2"), pod("p", "w1"), pod("q1", "w2"), pod("q2", "w2"),
            {**POOL, "spec": {**POOL["spec"], "disruption": {"budgets": [], "consolidation": {"policy": "WhenUnderutilized"}}}}]})

        code, out, err = self.ctl("plan", "-o", "json")
        self.assertEqual(code, 0, err)
        plan = json.loads(out)
        self.assertEqual([[n["name"] for n in s["nodes"]] for s in plan["steps"]], [["w1"]], out)
        self.assertEqual(plan["steps"][0]["moves"], [{"pod": "default/p", "from": "w1", "to": "w2"}])
        self.assertEqual([s["name"] for s in plan["staying"]], ["w2"])
        self.assertEqual(plan["snapshot"]["unknown"], [])

        code, text, err = self.ctl("snapshot")
        self.assertEqual(code, 0, err)
        self.writes(self.path("snapshot.json"), text)()
        kept = ("--snapshot", self.path("snapshot.json"))
        code, first, err = run(CTL, "plan", *kept, "-o", "json")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(first)["steps"], plan["steps"])
        self.assertEqual(run(CTL, "plan", *kept, "-o", "json")[1], first)
        code, out, err = run(CTL, "plan", *kept)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"1 +Consolidation \(single-node\) +w1 +web +its 1 pod fits on other nodes")
        heads = [json.loads(t.splitlines()[0]) for t in (text, self.ctl("snapshot")[1])]
        self.assertRegex(heads[0]["fingerprint"], r"^[0-9a-f]{32}$")
        self.assertEqual(heads[0]["fingerprint"], heads[1]["fingerprint"])
        code, text, err = self.ctl("snapshot", "--anonymize")
        self.assertEqual(code, 0, err)
        self.assertNotIn("w1", text)

        code, out, err = run(CTL, "plan", *kept, "--without", "w1,w2")
        self.assertEqual(code, 3, err)
        self.assertIn("These could not go as things are.", out)
        code, out, err = run(CTL, "plan", *kept, "--without", "w1,w2", "--with", "w1:1")
        self.assertEqual(code, 0, err)
        self.assertIn("with-w1-1", out)
        code, out, err = run(CTL, "plan", *kept, "--all-drainable")
        self.assertEqual(code, 0, err)
        self.assertIn("This node could go: w1.", out)
        code, out, err = run(CTL, "plan", *kept, "--upgrade", "web")
        self.assertEqual(code, 0, err)
        self.assertIn("To roll NodePool web", out)

        for kind, name in (("Node", "nodes"), ("Pod", "pods")):
            items = [{"apiVersion": "v1", "kind": kind, **o} for o in self.api("/api/v1/" + name)["items"]]
            self.writes(self.path(name + ".json"), json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))()
        lists = ("--snapshot", self.path("nodes.json"), "--snapshot", self.path("pods.json"))
        code, out, err = run(CTL, "plan", *lists, "--without", "w1")
        self.assertEqual(code, 3, err)
        self.assertIn("SNAPSHOT_INCOMPLETE", out)
        code, out, err = run(CTL, "plan", *lists, "--complete", "--without", "w1")
        self.assertEqual(code, 0, err)

        for words, says in ((("--without", "nope"), "there is no node 'nope'"), (("--upgrade", "nope"), "there is no NodePool 'nope'"),
                            (("--with", "nope:1"), "'nope' is neither a node"), (("--with", "w1:0"), "behind the colon stands how many")):
            code, out, err = run(CTL, "plan", *kept, *words)
            self.assertEqual((code, out), (1, ""), words)
            self.assertIn(says, err)
        self.assertEqual(run(CTL, "plan", *kept, "--without", "w1", "--all-drainable")[0], 2)
        self.assertEqual(run(CTL, "plan", "--complete")[0], 2)
        self.assertEqual(run(CTL, "plan", *kept, *lists)[0], 1)
        self.assertEqual(run(CTL, "plan", "--snapshot", self.path("pods.json"))[0], 1)
        self.assertIn("no snapshot", run(CTL, "plan", "--snapshot", self.path("world.json"))[2])

        code, out, err = self.ctl("explain", "w1", "--simulate")
        self.assertIn(code, (0, 3), err)
        self.assertIn("By itself it would be removed now by Consolidation (single-node)", out)
        self.assertRegex(out, r"default/p +1 of 1")
        # By itself either could go: that pods of w1 would come to w2 only the plan of both says.
        code, out, err = self.ctl("explain", "w2", "--simulate", "-o", "json")
        self.assertIn(code, (0, 3), err)
        self.assertEqual(json.loads(out)["voluntary"]["method"], "Consolidation")
        code, out, err = self.ctl("explain", "w1")
        self.assertNotIn("Consolidation", out)

        code, out, err = run(CTL, "plan", KUBECONFIG=self.path("kubeconfig-node-w1"))
        self.assertEqual((code, out), (1, ""))
        self.assertIn("pods are not known: you may not list pods", err)
        self.assertIn("without nodes and pods nothing can be planned", err)

    def test_coordinator_and_ctl(self):
        admin = self.path("kubeconfig-admin")
        with self.playing("coordinator", self.coordinator(), "The view of the cluster is complete"):
            pass
        code, out, err = run(CTL, "--kubeconfig", admin, "status")
        self.assertEqual(code, 0, err)
        code, out, err = run(CTL, "status", "-o", "json", KUBECONFIG=admin)
        self.assertEqual(code, 0, err)
        json.loads(out)
        code, out, err = run(CTL, "status", KUBECONFIG=self.path("kubeconfig-node-n1"))
        self.assertEqual((code, out), (1, ""))
        self.assertIn("vesperctl: you may not list node", err)
        code, out, err = run(CTL, "status", "n1", KUBECONFIG=admin)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"\nn1 +- +Unmanaged ")
        code, out, err = run(CTL, "status", "nope", KUBECONFIG=admin)
        self.assertEqual((code, out), (1, ""))
        self.assertIn("vesperctl: there is no Node nope", err)


if __name__ == "__main__":
    parallel.main()
