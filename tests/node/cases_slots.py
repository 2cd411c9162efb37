# SPDX-License-Identifier: Apache-2.0
"""Reboots under a budget: the coordinator grants them one after the other."""

import contextlib
import os
import threading
import time

import system
from daemons import TOP, procs
from node import LIMIT
from shutdowns import Workload



@contextlib.contextmanager
def _coordinator(bed):
    """From its package, with the permissions that it is shipped with."""
    folder = os.path.join(bed.folder, "coordinator")
    os.makedirs(folder)
    system.run("dpkg-deb", "-x", system.package("vesper-coordinator"), folder)
    for name in ("crds", "coordinator/rbac.yaml"):
        bed.cluster.apply(os.path.join(TOP, "packaging", "manifests", name))
    kubeconfig = bed.cluster.service_account("vesper-coordinator", "vesper-system")
    provider = os.path.join(folder, "provider")
    with open(provider, "w", encoding="utf-8") as f:
        f.write('#!/bin/sh\necho \'{"state":"present"}\'\n')
    os.chmod(provider, 0o700)
    settings = {"Kubernetes.Kubeconfig": kubeconfig, "Lease.Identity": "one", "Provider.Name": "exec",
                "Provider.Command": provider, "Budget.MaxConcurrentReboots": "1", "Log.Target": "text"}
    log_path = bed.logs["coordinator"] = os.path.join(folder, "log")
    with open(log_path, "wb") as log:
        child = procs.spawn([os.path.join(folder, "usr/bin/vesper-coordinator")] +
                            [a for k, v in settings.items() for a in ("--set", f"{k}={v}")],
                            stdin=-3, stdout=log, stderr=log, env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"})
        try:
            yield
        finally:
            child.terminate()
            child.wait(LIMIT)


class _Reboot(threading.Thread):
    """Asks for a reboot of the node, and is its firmware: when it has gone down, it is started again."""
    def __init__(self, node):
        super().__init__(daemon=True)
        self.node = node
        self.off = self.ready = self.trouble = None

    def run(self):
        try:
            self.node.run("systemctl", "start", "--no-block", "vesper-reboot")
            self.off = self.node.wait_off(2 * LIMIT)  # this machine may wait for the other one's slot
            self.node.power_on()
            self.ready = time.time()
        except Exception as e:  # pylint: disable=broad-except
            self.trouble = e


def two_reboots(bed, first, second, figures):
    """two nodes ask for a reboot at once, MaxConcurrentReboots=1: one after the other, each drained first, both clean after it"""
    with _coordinator(bed):
        works = [Workload(bed, n) for n in (first, second)]
        since = time.time()
        reboots = [_Reboot(n) for n in (first, second)]
        for r in reboots:
            r.start()
        for r in reboots:
            r.join()
        for r in reboots:
            assert r.trouble is None, f"{r.node.name}: {r.trouble}"
        for r in reboots:
            r.node.wait_clean()
    for work in works:
        work.check_ends()
    begun = {r.node.name: r.node.said("SHUTDOWN_BEGAN", since)[0].time for r in reboots}
    one, other = sorted(reboots, key=lambda r: r.off)
    granted = [r.node.said("REBOOT_GRANTED", since)[0].time for r in (one, other)]
    # The kubelet frees the slot when it reports the new boot as Ready. Its report comes after the boot, and before or after the
    # agent's READY.
    assert one.node.booted < granted[1] < begun[other.node.name], f"{one.node.name} was started again at {one.node.booted:.3f}; " \
        f"{other.node.name} got its grant at {granted[1]:.3f} and began to go down at {begun[other.node.name]:.3f}"
    figures.add(f"granted after {granted[0] - since:.1f} and {granted[1] - since:.1f} s, "
                f"back after {one.ready - since:.1f} and {other.ready - since:.1f} s")


two_reboots.machines = 2
two_reboots.slots = True
CASES = [two_reboots]
