# SPDX-License-Identifier: Apache-2.0
"""The .rpm packages: what rpmlint says, what they hold, and the life of an installation, in a root that has no other rpm."""

import glob
import os
import re
import shutil

from installation import TOP, Installation, project_version, run
from nodeserver import NODE, is_clean

HOLDS = {
    "vesper-agent": ["/etc/vesper", "/etc/vesper/agent.conf", "/usr/bin/vesper-agent",
                     "/usr/lib/systemd/system/vesper-agent.service", "/usr/lib/systemd/system/vesper-drain.service", "/usr/lib/systemd/system/vesper-reboot.service",
                     "/usr/lib/systemd/system/cri-containerd-.scope.d/50-vesper.conf",
                     "/usr/lib/systemd/system/docker-.scope.d/50-vesper.conf",
                     "/usr/lib/systemd/system/crio-.scope.d/50-vesper.conf",
                     "/usr/lib/systemd/logind.conf.d/50-vesper.conf", "/usr/lib/systemd/catalog/vesper-agent.catalog",
                     "/usr/share/dbus-1/system.d/sh.vesper.Agent1.conf",
                     "/usr/share/man/man5/agent.conf.5",
                     "/usr/share/man/man8/vesper-agent.8"],
    "vesper-coordinator": ["/etc/vesper", "/etc/vesper/coordinator.conf", "/usr/bin/vesper-coordinator",
                           "/usr/lib/systemd/system/vesper-coordinator.service", "/usr/lib/sysusers.d/vesper.conf",
                           "/usr/lib/systemd/catalog/vesper-coordinator.catalog",
                           "/usr/share/man/man5/coordinator.conf.5", "/usr/share/man/man8/vesper-coordinator.8"],
    "vesper-ctl": ["/usr/bin/kubectl-vesper", "/usr/bin/vesperctl", "/usr/share/bash-completion/completions/vesperctl",
                   "/usr/share/zsh/site-functions/_vesperctl", "/usr/share/man/man1/kubectl-vesper.1",
                   "/usr/share/man/man1/vesperctl.1", "/usr/share/man/man7/vesper.7"],
}


def build(out, release):
    done = run("nice", os.path.join(TOP, "packaging", "rpm", "build.sh"), out, str(release))
    assert done.returncode == 0, "packaging/rpm/build.sh failed:\n" + "\n".join(done.stdout.splitlines()[-40:])
    return {os.path.basename(p).rsplit("-", 2)[0]: p for p in glob.glob(os.path.join(out, "*.rpm"))}


class Packages(Installation):
    def __init__(self):
        super().__init__()
        self.rpms = None

    def rpm(self, *arguments):
        """rpm on the root, where no other package is known to it."""
        alone = [] if arguments[0] == "-q" else ["--nodeps"]
        done = self.root.run_outside("rpm", "--root", self.root.path, *alone, *arguments)
        assert done.returncode == 0, f"rpm {' '.join(arguments)} failed:\n{done.stdout}"
        return done.stdout

    # -- the packages --------------------------------------------------------------------------------------

    def test_build(self):
        self.rpms = build(os.path.join(self.folder, "first"), 1)
        # Where rpm splits symbols off there are more.
        assert set(HOLDS) <= set(self.rpms), f"expected {sorted(HOLDS)}, got {sorted(self.rpms)}"

    def test_version(self):
        for name in HOLDS:
            found = run("rpm", "-qp", "--queryformat", "%{VERSION}", self.rpms[name]).stdout
            assert found == project_version(), f"{name} has version {found}, meson.build says {project_version()}"

    def test_rpmlint(self):
        config = os.path.join(TOP, "packaging", "rpm", "rpmlint.toml")
        done = run("rpmlint", "-c", config, os.path.join(TOP, "packaging", "rpm", "vesper.spec"),
                   *(self.rpms[n] for n in sorted(HOLDS)))
        last = done.stdout.strip().splitlines()[-1]
        assert " 0 errors, 0 warnings" in last and "3 packages" in last, done.stdout
        with open(config, encoding="utf-8") as f:
            lines = f.read().split("Filters = [")[1].splitlines()
        for before, line in zip(lines, lines[1:]):
            assert not line.strip().startswith('"') or before.strip().startswith("#"), f"a filter without a word why: {line}"

    def test_holds(self):
        for name, wanted in HOLDS.items():
            listing = run("rpm", "-qplv", self.rpms[name]).stdout.splitlines()
            found = {}
            for line in listing:
                mode, owner, group, path = line.split()[0], line.split()[2], line.split()[3], line.split()[8]
                found[re.sub(r"(/man/.*)\.(gz|bz2|xz|zst)$", r"\1", path)] = mode
                assert (owner, group) == ("root", "root"), f"{name}: {path} belongs to {owner}:{group}"
                allowed = {"d": "drwxr-xr-x", "l": "lrwxrwxrwx"}.get(
                    mode[0], "-rwxr-xr-x" if path.startswith("/usr/bin/") else "-rw-r--r--")
                assert mode == allowed, f"{name}: {path} has mode {mode}, expected {allowed}"
            missing = sorted(set(wanted) - set(found))
            assert not missing, f"{name} lacks {missing}"
            config = run("rpm", "-qp", "--configfiles", self.rpms[name]).stdout.split()
            assert config == [p for p in wanted if p.endswith(".conf") and p.startswith("/etc")], \
                f"configuration files of {name}: {config}"

    def test_scriptlets(self):
        """That they do so is seen below; that there is no other, and none that starts or drains something, here."""
        wanted = {"vesper-agent": ["postinstall", "preuninstall", "postuninstall"],
                  "vesper-coordinator": ["postinstall", "preuninstall", "postuninstall"], "vesper-ctl": []}
        for name, kinds in wanted.items():
            scripts = run("rpm", "-qp", "--scripts", self.rpms[name]).stdout
            found = re.findall(r"^(\w+) (?:scriptlet|program)", scripts, re.M)
            assert found == kinds, f"{name} has the scriptlets {found}, expected {kinds}:\n{scripts}"
            lines = [line for line in scripts.splitlines() if not line.startswith("#")]
            starts = [line for line in lines if re.search(r"\bsystemctl\b.*\b(start|restart|isolate)\b|enable --now", line) and
                      "try-restart" not in line]
            assert not starts, f"{name} starts something: {starts}"
            drains = [line for line in lines if "vesper-drain" in line and "disable --now" not in line]
            assert not drains, f"{name} does more about vesper-drain than to stop it: {drains}"

    # -- an installation's life ----------------------------------------------------------------------------

    def test_install_starts_nothing(self):
        self.make_root()
        self.rpm("-i", *(self.rpms[n] for n in sorted(HOLDS)))
        asked = self.root.asked_of_systemd()
        wanted = ["--no-reload preset vesper-agent.service", "--no-reload preset vesper-coordinator.service",
                  "kill --signal=HUP systemd-logind.service"]
        assert sorted(asked) == wanted, f"installing asked systemd to {asked}, expected {wanted}"
        self.asked_nothing("installing")
        assert "\nvesper-coordinator:" in self.root.read("etc/passwd"), "there is no user vesper-coordinator"

    def test_programs_run(self):
        self.programs_run()

    def test_upgrade_restarts_and_keeps(self):
        newer = build(os.path.join(self.folder, "second"), 2)
        own = self.root.read("etc/vesper/agent.conf") + "\n# a person's line\n"
        self.root.write("etc/vesper/agent.conf", own)
        self.root.write("etc/vesper/agent.conf.d/node.conf", f"[Kubernetes]\nNodeName={NODE}\n")
        self.rpm("-U", *(newer[n] for n in sorted(HOLDS)))
        asked = sorted(self.root.asked_of_systemd())
        wanted = ["kill --signal=HUP systemd-logind.service", "try-restart vesper-agent.service",
                  "try-restart vesper-coordinator.service"]
        assert asked == wanted, f"an upgrade is to restart what runs, and nothing else; it asked systemd to {asked}"
        self.asked_nothing("the upgrade")
        assert self.root.read("etc/vesper/agent.conf") == own, "the upgrade changed a person's agent.conf"
        found = self.rpm("-q", "--queryformat", "%{RELEASE} ", "vesper-agent").split(".")[0].strip()
        assert found == "2", f"release {found} is installed, expected 2"

    def test_remove_releases(self):
        said = self.rpm("-e", "vesper-agent")
        asked = self.root.asked_of_systemd()
        assert asked == ["--no-reload disable --now vesper-drain.service vesper-reboot.service vesper-agent.service"], f"removal asked systemd to {asked}"
        assert f"Node {NODE}: vesper's marks were removed, and it is schedulable." in said, f"rpm said:\n{said}"
        is_clean(self.server.node)
        self.rpm("-e", "vesper-coordinator", "vesper-ctl")
        shutil.rmtree(self.root.at("etc/kubernetes"))
        left = sorted(p for p in self.root.files() if p not in self.before and "vesper" in p and "var/lib/rpm" not in p)
        assert left == ["etc/vesper", "etc/vesper/agent.conf.d", "etc/vesper/agent.conf.d/node.conf",
                        "etc/vesper/agent.conf.rpmsave"], f"after removal there are {left}: expected what a person set, alone"

    CASES = (
        ("the .rpm packages are built", "test_build", ()),
        ("rpm: their version is the project's", "test_version", ("test_build",)),
        ("rpmlint finds nothing", "test_rpmlint", ("test_build",)),
        ("rpm: what they hold", "test_holds", ("test_build",)),
        ("rpm: their scriptlets start and drain nothing", "test_scriptlets", ("test_build",)),
        ("rpm: installing starts nothing", "test_install_starts_nothing", ("test_build",)),
        ("rpm: the installed programs run", "test_programs_run", ("test_install_starts_nothing",)),
        ("rpm: an upgrade restarts without draining, and keeps what a person set", "test_upgrade_restarts_and_keeps",
         ("test_install_starts_nothing",)),
        ("rpm: removal takes our marks off the Node and leaves what a person set", "test_remove_releases",
         ("test_upgrade_restarts_and_keeps",)),
    )
