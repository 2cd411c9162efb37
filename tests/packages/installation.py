# SPDX-License-Identifier: Apache-2.0
"""What the cases of .deb and of .rpm share: built packages in a folder, and one root that lives through installation, upgrade and
removal, beside a kubelet's credential for a Node that has our marks."""

import os
import re
import shutil
import subprocess
import tempfile

import debroot
from nodeserver import NodeServer

TOP = os.path.dirname(debroot.TESTS)
PROGRAMS = ("vesper-agent", "vesper-coordinator", "vesperctl", "kubectl-vesper")


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, **options)


def project_version():
    with open(os.path.join(TOP, "meson.build"), encoding="utf-8") as f:
        return re.search(r"^  version : '([^']+)'", f.read(), re.M).group(1)


class Installation:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="vesper-packages-")
        self.root = self.server = self.before = None

    def close(self):
        self.drop_server()
        shutil.rmtree(self.folder, ignore_errors=True)

    def drop_server(self):
        """From here on the API server does not answer."""
        if self.server:
            self.server.stop()
            self.server = None

    def make_root(self):
        self.root = debroot.Root(self.folder)
        probe = self.root.run("true")
        if probe.returncode != 0:
            raise debroot.Unavailable("this machine lets us mount nothing: " + probe.stdout.strip())
        self.before = self.root.files()
        self.server = NodeServer()
        self.root.write("etc/kubernetes/kubelet.conf", self.server.kubeconfig(), 0o600)

    def asked_nothing(self, what):
        assert self.server.requests == [], f"{what} asked the API server: {self.server.requests}"

    def programs_run(self):
        for program in PROGRAMS:
            done = self.root.run(program, "--version")
            assert done.returncode == 0 and project_version() in done.stdout, \
                f"{program} --version: {done.returncode}, {done.stdout}"
