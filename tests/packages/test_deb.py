# SPDX-License-Identifier: Apache-2.0
"""The .deb packages: the same bytes each time, what lintian says, what they hold, and the life of an installation."""

import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time

from installation import TOP, Installation, project_version, run
from nodeserver import NODE, is_clean

DOC = ["/usr/share/doc/{p}/changelog.gz", "/usr/share/doc/{p}/copyright"]
HOLDS = {
    "vesper-agent": ["/etc/vesper/agent.conf", "/usr/bin/vesper-agent", "/usr/lib/systemd/system/vesper-agent.service",
                     "/usr/lib/systemd/system/vesper-drain.service", "/usr/lib/systemd/system/vesper-reboot.service",
                     "/usr/lib/systemd/system/cri-containerd-.scope.d/50-vesper.conf",
                     "/usr/lib/systemd/system/docker-.scope.d/50-vesper.conf",
                     "/usr/lib/systemd/system/crio-.scope.d/50-vesper.conf", "/usr/lib/systemd/logind.conf.d/50-vesper.conf",
                     "/usr/lib/systemd/catalog/vesper-agent.catalog", "/usr/share/dbus-1/system.d/sh.vesper.Agent1.conf",
                     "/usr/share/man/man5/agent.conf.5.gz", "/usr/share/man/man8/vesper-agent.8.gz"] + DOC,
    "vesper-coordinator": ["/etc/vesper/coordinator.conf", "/usr/bin/vesper-coordinator",
                           "/usr/lib/systemd/system/vesper-coordinator.service", "/usr/lib/sysusers.d/vesper.conf",
                           "/usr/lib/systemd/catalog/vesper-coordinator.catalog",
                           "/usr/share/doc/vesper-coordinator/aws/interruption-queue.yaml",
                           "/usr/share/man/man5/coordinator.conf.5.gz", "/usr/share/man/man8/vesper-coordinator.8.gz"] + DOC,
    "vesper-ctl": ["/usr/bin/kubectl-vesper", "/usr/bin/vesperctl", "/usr/share/bash-completion/completions/vesperctl",
                   "/usr/share/zsh/vendor-completions/_vesperctl", "/usr/share/man/man1/kubectl-vesper.1.gz",
                   "/usr/share/man/man1/vesperctl.1.gz", "/usr/share/man/man7/vesper.7.gz"] + DOC,
}


def build(out, *architecture, **environment):
    done = run("nice", os.path.join(TOP, "packaging", "debian", "build.sh"), out, *architecture, env={**os.environ, **environment})
    assert done.returncode == 0, "packaging/debian/build.sh failed:\n" + "\n".join(done.stdout.splitlines()[-40:])
    return {os.path.basename(p).split("_")[0]: p for p in glob.glob(os.path.join(out, "*.deb"))}


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


class Packages(Installation):
    def __init__(self):
        super().__init__()
        self.debs = None

    def deb(self, name):
        assert self.debs, "there is no package to look at: the build failed"
        return self.debs[name]

    # -- the packages --------------------------------------------------------------------------------------

    def test_build(self):
        self.debs = build(os.path.join(self.folder, "first"))
        wanted = sorted(list(HOLDS) + [p + "-dbgsym" for p in HOLDS])
        assert sorted(self.debs) == wanted, f"expected the packages {wanted}, got {sorted(self.debs)}"

    def test_version(self):
        for name in HOLDS:
            found = run("dpkg-deb", "-f", self.deb(name), "Version").stdout.strip()
            assert found == project_version(), f"{name} has version {found}, meson.build says {project_version()}"

    def test_same_bytes(self):
        time.sleep(1.1)  # another second, another folder, another umask, nothing from a compiler cache
        before = os.umask(0o077)
        try:
            again = build(os.path.join(self.folder, "second"), CCACHE_DISABLE="1")
        finally:
            os.umask(before)
        for name, path in sorted(self.debs.items()):
            assert digest(path) == digest(again[name]), f"{name}: built twice, and the bytes differ"

    def test_lintian(self):
        changes = glob.glob(os.path.join(self.folder, "first", "*.changes"))
        assert changes, "no .changes file was built"
        done = run("lintian", "--allow-root", "--fail-on", "error", "--tag-display-limit", "0", changes[0])
        found = [line for line in done.stdout.splitlines() if line[:2] in ("E:", "W:")]
        assert done.returncode == 0 and not [line for line in found if line.startswith("E:")], "\n".join(found) or done.stdout
        for path in glob.glob(os.path.join(TOP, "packaging", "debian", "*lintian-overrides")):
            explained = False
            with open(path, encoding="utf-8") as f:
                for line in f:
                    assert line.startswith("#") or explained or not line.strip(), f"{path}: no word why: {line}"
                    explained = line.startswith("#")

    def test_holds(self):
        owners = {}
        for name, wanted in HOLDS.items():
            listing = run("dpkg-deb", "-c", self.deb(name)).stdout.splitlines()
            found = sorted(line.split()[5].lstrip(".") for line in listing if not line.startswith("d"))
            for path in found:
                assert path not in owners, f"{path} is in {owners[path]} and in {name}"
                owners[path] = name
            missing = sorted(set(p.format(p=name) for p in wanted) - set(found))
            assert not missing, f"{name} lacks {missing}"
            for line in listing:
                mode, owner, path = line.split()[0], line.split()[1], line.split()[5]
                assert owner == "root/root", f"{name}: {path} belongs to {owner}"
                if not line.startswith("l"):
                    allowed = "drwxr-xr-x" if mode[0] == "d" else "-rwxr-xr-x" if path.startswith("./usr/bin/") else "-rw-r--r--"
                    assert mode == allowed, f"{name}: {path} has mode {mode}, expected {allowed}"

    # -- an installation's life ----------------------------------------------------------------------------

    def newer(self, name, changed=None):
        """The package again with a higher version; changed: {path: text appended}."""
        folder = tempfile.mkdtemp(dir=self.folder)
        subprocess.run(["dpkg-deb", "-R", self.deb(name), folder], check=True)
        control = os.path.join(folder, "DEBIAN", "control")
        with open(control, encoding="utf-8") as f:
            text = f.read()
        with open(control, "w", encoding="utf-8") as f:
            f.write(re.sub(r"^(Version: .*)$", r"\1+newer", text, flags=re.M))
        for path, more in (changed or {}).items():
            with open(os.path.join(folder, path.lstrip("/")), "a", encoding="utf-8") as f:
                f.write(more)
        out = os.path.join(folder + ".deb")
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", folder, out], check=True, stdout=subprocess.DEVNULL)
        return out

    def dpkg(self, *arguments):
        """dpkg in the root; a .deb is copied into it."""
        inside = []
        for a in arguments:
            if a.endswith(".deb"):
                shutil.copy(a, self.root.at("tmp"))
                a = "/tmp/" + os.path.basename(a)
            inside.append(a)
        done = self.root.run("dpkg", "--force-confold", *inside)
        assert done.returncode == 0, f"dpkg {' '.join(inside)} failed:\n{done.stdout}"
        return done.stdout

    def test_install_starts_nothing(self):
        self.make_root()
        self.dpkg("-i", self.deb("vesper-agent"), self.deb("vesper-coordinator"), self.deb("vesper-ctl"))
        asked = self.root.asked_of_systemd()
        acts = [line for line in asked if re.search(r"\b(start|restart|try-restart|reload-or-restart|isolate)\b", line)]
        assert not acts, f"installing asked systemd to {acts}"
        for wanted in ("--system daemon-reload", "kill --signal=HUP systemd-logind.service"):
            assert wanted in asked, f"installing did not say '{wanted}' to systemctl, but {asked}"
        self.asked_nothing("installing")
        wants = "etc/systemd/system/multi-user.target.wants/"
        assert self.root.exists(wants + "vesper-agent.service"), "the agent is not enabled for the next boot"
        assert not self.root.exists(wants + "vesper-coordinator.service"), "the coordinator is enabled, unconfigured"
        passwd = self.root.read("etc/passwd")
        assert re.search(r"^vesper-coordinator:.*nologin$", passwd, re.M), f"no user vesper-coordinator in:\n{passwd}"

    def test_programs_run(self):
        self.programs_run()
        for daemon, name in (("vesper-agent", "agent"), ("vesper-coordinator", "coordinator")):
            with_file = self.root.run(daemon, "--dump-config")
            self.root.write("tmp/empty.conf", "")
            without = self.root.run(daemon, "--config", "/tmp/empty.conf", "--dump-config")
            assert with_file.returncode == 0 and with_file.stdout == without.stdout, \
                f"{name}.conf as installed changes something:\n{with_file.stdout}\nversus\n{without.stdout}"

    def test_upgrade_restarts_and_keeps(self):
        own = self.root.read("etc/vesper/agent.conf") + "\n# a person's line\n"
        self.root.write("etc/vesper/agent.conf", own)
        self.root.write("etc/vesper/agent.conf.d/node.conf", f"[Kubernetes]\nNodeName={NODE}\n")
        wants = "etc/systemd/system/multi-user.target.wants/vesper-agent.service"
        os.unlink(self.root.at(wants))  # systemctl disable
        self.root.asked_of_systemd()
        self.root.write("var/lib/vesper-agent/intent.json", "{}")  # of an agent before 0.2
        self.dpkg("-i", self.newer("vesper-agent", {"/etc/vesper/agent.conf": "# of the new version\n"}),
                  self.newer("vesper-coordinator"))
        acts = [line for line in self.root.asked_of_systemd() if "vesper" in line and "is-" not in line]
        assert acts == ["try-restart vesper-agent.service", "try-restart vesper-coordinator.service"], \
            f"an upgrade is to restart what runs, and nothing else; it asked systemd to {acts}"
        self.asked_nothing("the upgrade")
        assert self.root.read("etc/vesper/agent.conf") == own, "the upgrade changed a person's agent.conf"
        assert self.root.exists("etc/vesper/agent.conf.d/node.conf"), "the upgrade took agent.conf.d/node.conf away"
        assert not self.root.exists("var/lib/vesper-agent"), "the upgrade left the folder of agents before 0.2"
        assert not self.root.exists(wants), "the upgrade enabled a service that a person had disabled"

    def test_remove_releases(self):
        assert not self.root.exists("run/vesper-agent"), "something made the agent's folder in /run while no agent ran"
        self.root.write("run/vesper-agent/intent.json", "{}")
        said = self.dpkg("-r", "vesper-agent")
        acts = [line for line in self.root.asked_of_systemd() if "vesper" in line]
        assert acts == ["stop vesper-drain.service vesper-reboot.service vesper-agent.service"], f"removal asked systemd to {acts}"
        assert f"Node {NODE}: vesper's marks were removed, and it is schedulable." in said, f"dpkg said:\n{said}"
        is_clean(self.server.node)
        assert not self.root.exists("usr/bin/vesper-agent"), "the program is there still"
        assert "a person's line" in self.root.read("etc/vesper/agent.conf"), "removal took the configuration away"
        assert self.root.exists("etc/vesper/agent.conf.d/node.conf"), "removal took agent.conf.d away"
        assert self.root.exists("run/vesper-agent/intent.json"), "removal took the intent log away"

    def test_remove_without_api(self):
        self.dpkg("-i", self.deb("vesper-agent"))
        assert "a person's line" in self.root.read("etc/vesper/agent.conf"), "installing again changed a person's agent.conf"
        self.drop_server()
        said = self.dpkg("-r", "vesper-agent")
        assert "kubectl uncordon" in said, f"nothing says what is to be done by hand:\n{said}"

    def test_purge_leaves_nothing(self):
        self.root.write("etc/vesper/coordinator.conf.d/provider.conf", "[Provider]\nName=ec2\n")
        self.dpkg("-P", "vesper-agent", "vesper-coordinator", "vesper-ctl")
        shutil.rmtree(self.root.at("etc/kubernetes"))
        after = self.root.files()
        # Lists of users and their backups are rewritten with the same users; deb-systemd-helper keeps its folders.
        def ours(path):
            return not re.fullmatch(r"etc/((passwd|group|g?shadow|sub[ug]id)-?|\.pwd\.lock)", path) and \
                not path.startswith("var/lib/systemd/deb-systemd-helper-")
        left = [p for p in sorted(after) if p not in self.before and ours(p)]
        changed = [p for p in sorted(after) if p in self.before and after[p] != self.before[p] and ours(p)]
        gone = [p for p in sorted(self.before) if p not in after and ours(p)]
        assert not (left or changed or gone), f"after purge: left {left}, changed {changed}, gone {gone}"
        for path in ("etc/passwd", "etc/group", "etc/shadow"):
            assert "vesper" not in self.root.read(path), f"a user of ours is left in /{path}"
        helper = [p for p in after if "deb-systemd-helper" in p and "vesper" in p]
        assert not helper, f"deb-systemd-helper keeps {helper}"

    CASES = (
        ("the .deb packages are built", "test_build", ()),
        ("their version is the project's", "test_version", ("test_build",)),
        ("built twice, the same bytes", "test_same_bytes", ("test_build",)),
        ("lintian finds no error", "test_lintian", ("test_build",)),
        ("what they hold", "test_holds", ("test_build",)),
        ("installing starts nothing", "test_install_starts_nothing", ("test_build",)),
        ("the installed programs run, the sample configuration changes nothing", "test_programs_run",
         ("test_install_starts_nothing",)),
        ("an upgrade restarts without draining, and keeps what a person set", "test_upgrade_restarts_and_keeps",
         ("test_install_starts_nothing",)),
        ("removal takes our marks off the Node, and keeps the configuration", "test_remove_releases",
         ("test_upgrade_restarts_and_keeps",)),
        ("removal with the API server away says what to do", "test_remove_without_api", ("test_remove_releases",)),
        ("purge leaves nothing", "test_purge_leaves_nothing", ("test_remove_without_api",)),
    )
