#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what systemd, logind, the journal and D-Bus read against what it has to be.

Usage: check-units.py TREE

The catalogue has exactly the events of log-catalog.h; units pass systemd-analyze (where it is there: verify without a word,
exposure at most 1.6); drop-ins order what they are to order.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.dom.minidom

EXPOSURE_MAX = 16  # tenths
FIELDS = {"NODE", "NODECLAIM", "NOTICE_ID", "NOTICE_KIND", "PHASE", "DEADLINE", "POD", "PDB"}
failures = []


def check(good, message):
    if not good:
        failures.append(message)


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def check_catalog(tree):
    header = read(tree, "shared/log/log-catalog.h")
    events = {i: name for name, i in re.findall(r'#define (MESSAGE_\w+) "([0-9a-f]{32})"', header)}
    catalog = read(tree, "systemd/vesper.catalog")
    entries = re.split(r"^-- ", catalog, flags=re.M)[1:]
    seen = {}
    for entry in entries:
        head, _, body = entry.partition("\n\n")
        message_id = head.split("\n")[0].strip()
        seen[message_id] = body
        name = events.get(message_id, message_id)
        check(message_id in events, f"catalogue: {message_id} is no event of log-catalog.h")
        check(re.search(r"^Subject: \S", head, re.M), f"catalogue: {name} has no Subject:")
        check(re.search(r"^Defined-By: vesper$", head, re.M), f"catalogue: {name} has no Defined-By: vesper")
        check(len(body.strip()) > 30, f"catalogue: {name} says {body.strip()!r}, expected what it means and what to do")
        for field in re.findall(r"@(\w+)@", entry):
            check(field in FIELDS, f"catalogue: {name} uses @{field}@, which no line carries")
    for message_id, name in events.items():
        check(message_id in seen, f"catalogue: {name} ({message_id}) has no entry")
    check(len(entries) == len(seen), "catalogue: an event has two entries")


def check_what_catalog_says(tree):
    """An entry holds for each line that carries its id."""
    catalog = read(tree, "systemd/vesper.catalog")
    bodies = {e.split("\n")[0].strip(): " ".join(e.split()) for e in re.split(r"^-- ", catalog, flags=re.M)[1:]}
    ids = {name: i for name, i in re.findall(r'#define (MESSAGE_\w+) "([0-9a-f]{32})"', read(tree, "shared/log/log-catalog.h"))}
    reasons = re.findall(r'\[BLOCKED_BY_(?:TERMINATION_|CLOUD_|MACHINE_|IDENTITY_)\w+\] = "(\w+)"',
                         read(tree, "coordinator/termination/blocked-by.c"))
    check(len(reasons) >= 7, f"blocked-by.c has only {reasons} of the machine and its cloud")
    for name, words in (("MESSAGE_POD_EVICTION_BLOCKED", ["PodDisruptionBudget", "do-not-evict", "--drain --force"]),
                        ("MESSAGE_TERMINATION_BLOCKED", reasons),
                        ("MESSAGE_REBOOT_WITHDRAWN", ["opted out", "cordon for it is taken off", "--force"])):
        for word in words:
            check(word in bodies[ids[name]], f"catalogue: {name} does not speak of {word}")


def check_removal(tree):
    """What a package's removal stops, and what it tells to take off by hand if it could not."""
    for path in ("packaging/debian/vesper-agent.prerm", "packaging/rpm/vesper.spec"):
        text = read(tree, path)
        for word in ("vesper-drain.service vesper-reboot.service vesper-agent.service", "kubectl uncordon NODE",
                     "vesper.sh/cordoned-by-agent-", "vesper.sh/interruption-", "vesper.sh/shutdown-request-",
                     "node.kubernetes.io/exclude-from-external-load-balancers-"):
            check(word in text, f"{path} has no {word}")


def compile_catalog(tree):
    if not shutil.which("journalctl"):
        return
    with tempfile.TemporaryDirectory(prefix="vesper-catalog-") as root:
        os.makedirs(root + "/usr/lib/systemd/catalog")
        os.makedirs(root + "/var/lib/systemd/catalog")
        rules = read(tree, "systemd/meson.build")
        # One package after the other is installed.
        for name in ("vesper-agent.catalog", "vesper-coordinator.catalog"):
            check(f"'{name}'" in rules, f"no package installs the catalogue as {name}")
            shutil.copy(tree + "/systemd/vesper.catalog", f"{root}/usr/lib/systemd/catalog/{name}")
            r = subprocess.run(["journalctl", "--update-catalog", "--root=" + root], capture_output=True, text=True)
            check(r.returncode == 0 and not r.stderr, f"journalctl --update-catalog: exit {r.returncode}, said {r.stderr!r}")
            r = subprocess.run(["journalctl", "--dump-catalog", "--root=" + root], capture_output=True, text=True)
            bodies = r.stdout.count("\nThe agent delays it no longer;")
            check(bodies == 1, f"with {name} an entry's text is shown {bodies} times")


def check_warnings(tree):
    """What a terminationGracePeriod does stands wherever somebody may look who sets one: all three warnings."""
    for path in ("packaging/man/vesper-coordinator.8.in", "packaging/helm/vesper/templates/NOTES.txt"):
        text = " ".join(re.sub(r"^\.\w+ ?", "", read(tree, path), flags=re.M).replace("\\-", "-").split())
        for words in ("terminationGracePeriod", "immutable", "all nodes of the pool", "is longer", "as soon as", "drain",
                      "PodDisruptionBudgets", "before the period is over"):
            check(words in text, f"{path} does not say '{words}' of terminationGracePeriod")
    check("replaces all nodes of the pool" in " ".join(read(tree, "packaging/manifests/crds/nodepools.yaml").split()),
          "the CRD does not say what a change of terminationGracePeriod does")


def copy_units(tree, folder):
    """Where binaries and man pages are not installed, verify would speak of nothing else."""
    names = [n for n in sorted(os.listdir(tree + "/systemd")) if n.endswith(".service")]
    for name in names:
        text = read(tree, "systemd", name)
        text = re.sub(r"^(Exec\w+=)/usr/bin/vesper-\w+", r"\1/bin/true", text, flags=re.M)
        text = re.sub(r"^Documentation=man:.*\n", "", text, flags=re.M)
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    return names


def check_units(tree):
    if not shutil.which("systemd-analyze"):
        print("no systemd-analyze here: units are not verified")
        return
    with tempfile.TemporaryDirectory(prefix="vesper-units-") as folder:
        names = copy_units(tree, folder)
        paths = [os.path.join(folder, n) for n in names]
        r = subprocess.run(["systemd-analyze", "verify", "--recursive-errors=no", *paths], capture_output=True, text=True)
        said = [line for line in r.stderr.splitlines() if folder in line or "vesper" in line]
        check(r.returncode == 0 and not said, f"systemd-analyze verify: exit {r.returncode}, expected 0 and silence: {said}")
        for path in paths:
            r = subprocess.run(["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", path],
                               capture_output=True, text=True)
            level = re.search(r"exposure level for \S+ ([0-9.]+)", r.stdout)
            check(r.returncode == 0, f"systemd-analyze security {os.path.basename(path)}: "
                                     f"{level.group(1) if level else r.stderr}, expected at most {EXPOSURE_MAX / 10}")


def settings(text):
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def check_what_counts(tree):
    """What the agent relies on, and a change of a unit could break in silence."""
    agent = settings(read(tree, "systemd/vesper-agent.service"))
    for line in ("Type=notify", "NotifyAccess=main", "FileDescriptorStoreMax=1", "RuntimeDirectory=vesper-agent",
                 "RuntimeDirectoryPreserve=yes", "CPUWeight=1000", "Environment=VESPER_BOOT_ID=%b"):
        check(line in agent, f"vesper-agent.service has no {line}")
    for name in ("agent", "coordinator"):
        unit = settings(read(tree, f"systemd/vesper-{name}.service"))
        check("ExecReload=kill -HUP $MAINPID" in unit, f"vesper-{name}.service cannot be reloaded")
        check("Type=notify" in unit, f"vesper-{name}.service does not hear that a reload is done")
        check("StartLimitIntervalSec=0" in unit, f"vesper-{name}.service is given up after some failures")
        check("LimitCORE=0" in unit, f"vesper-{name}.service leaves its credential in a core file")
        check(f"Documentation=man:vesper-{name}(8)" in unit, f"vesper-{name}.service names no manual")
    for line in agent:
        check(not line.startswith(("BindsTo=", "PartOf=", "ExecStop=")), f"vesper-agent.service has {line}")
    after = " ".join(line for line in agent if line.startswith("After="))
    for unit in ("containerd", "crio", "docker", "cri-docker", "kubelet", "k3s", "k3s-agent", "rke2-server", "rke2-agent", "dbus",
                 "systemd-logind"):
        check(unit + ".service" in after.replace("=", " ").split(),
              f"vesper-agent.service is not After={unit}.service: it would stop too late")
    check("network.target" in after.replace("=", " ").split(),
          "vesper-agent.service is not After=network.target: it may lose its network")
    wanted = [line for line in agent if line.startswith(("Wants=", "Requires=")) and "network-online" in line]
    check(not wanted, f"vesper-agent.service has {wanted}: a boot waits for the network because of us")
    for name, verb in (("drain", "--cancel-drain"), ("reboot", "--cancel-reboot")):
        unit = settings(read(tree, f"systemd/vesper-{name}.service"))
        # ExecStop= is not run for what is stopped while it starts, and both may wait for hours then.
        for line in (f"ExecStart=/usr/bin/vesper-agent --{name}", f"ExecStopPost=/usr/bin/vesper-agent {verb}",
                     "TimeoutStartSec=infinity", "NotifyAccess=main", "Wants=vesper-agent.service"):
            check(line in unit, f"vesper-{name}.service has no {line}")
        undoing = [line for line in unit if line.startswith("ExecStop")]
        check(len(undoing) == 1, f"vesper-{name}.service has {undoing}: it undoes its own and nothing else")
    scope = settings(read(tree, "systemd/container-scope.conf"))
    check(scope == ["[Unit]", "Before=vesper-agent.service"], f"container-scope.conf says {scope}")
    rules = read(tree, "systemd/meson.build")
    for runtime in ("cri-containerd", "crio", "docker"):
        check(f"'lib/systemd/system/{runtime}-.scope.d'" in rules, f"no drop-in is installed for the scopes {runtime}-ID.scope")
    logind = settings(read(tree, "systemd/logind.conf"))
    check(logind == ["[Login]", "InhibitDelayMaxSec=10min"], f"logind.conf says {logind}; MaxSec= is 10min by default")
    policy = xml.dom.minidom.parseString(read(tree, "systemd/sh.vesper.Agent1.conf"))
    owners = [a.parentNode.getAttribute("user") for a in policy.getElementsByTagName("allow") if a.getAttribute("own")]
    check(owners == ["root"], f"sh.vesper.Agent1.conf lets {owners} own the name, expected root alone")


def main():
    tree = sys.argv[1]
    check_catalog(tree)
    check_what_catalog_says(tree)
    check_removal(tree)
    compile_catalog(tree)
    check_warnings(tree)
    check_units(tree)
    check_what_counts(tree)
    for f in failures:
        print("FAILED:", f)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
