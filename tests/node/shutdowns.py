# SPDX-License-Identifier: Apache-2.0
"""A shutdown of one node with pods on it, watched from outside; and what has to be true of any."""

import itertools
import time

from node import wait_for
from world import FewestReady

_serial = itertools.count(1)
HOLD_GRACE = 300  # seconds: the case releases the pods long before


class Workload:
    """Pods of a node:
    - `count` pods that end stop_msec after SIGTERM, or, with hold, after release(), so that a case can act while the node
      is certainly being drained;
    - one that the kubelet has to kill after its grace;
    - with budget two more, of which one may go at a time."""
    def __init__(self, bed, node, stop_msec=1000, count=2, deaf_grace=2, budget=False, hold=False):
        tag = f"w{next(_serial)}"
        self.node = node
        ends = {"mode": "hold", "grace": HOLD_GRACE} if hold else {"stop_msec": stop_msec}
        self.names = node.create_pods(count, tag, **ends)
        self.deaf = node.create_pods(1, tag + "-deaf", mode="deaf", grace=deaf_grace) if deaf_grace else []
        self.deaf_grace = deaf_grace
        self.names += self.deaf
        self.fewest = None
        if budget:
            app = f"{node.name}-{tag}-budget"
            self.names += bed.replicas(app, 2, node, available=1, stop_msec=500)
            self.fewest = FewestReady(bed.admin, app)
            self.fewest.start()

    def release(self):
        self.node.release_pods(self.names)

    def traces(self):
        found = {}
        for name in self.names:
            found[name] = self.node.trace(name)
            assert found[name], f"{name} has written nothing"
        return found

    def check_ends(self, before=None):
        """Each container ended by itself, or was killed after its grace; and before the units of `before` were stopped."""
        for name, trace in self.traces().items():
            assert trace.asked, f"{name} never saw SIGTERM: {trace}"
            if name in self.deaf:
                # Half of the grace: on a busy machine the container may get SIGTERM late. Without a grace it is killed at once.
                assert trace.had >= self.deaf_grace / 2, \
                    f"{name} was killed {trace.had:.2f} s after SIGTERM, its grace is {self.deaf_grace} s"
            else:
                assert trace.ended, f"{name} was killed before it ended by itself: {trace}"
            for unit, at in (before or {}).items():
                assert at, f"the journal does not say when {unit} was stopped"
                assert trace.last <= at, f"{name} lived until {trace.last:.3f}, {unit} was stopped at {at:.3f}"

    def end_watch(self):
        """The fewest pods of the budget that were Ready at once."""
        if self.fewest is None:
            return None
        self.fewest.__exit__()
        return self.fewest.fewest


class Shutdown:
    """The node is told by tell() to go down, and did; then check() holds what has to be true, and back() boots it."""
    def __init__(self, bed, node, tell, workload):
        self.bed, self.node, self.workload = bed, node, workload
        self.mark = bed.audit.mark()
        self.began = time.time()
        tell()
        self.off = self._wait_down()
        self.status = node.popen.returncode
        node.hangs += len(node.stop_hung(self.began))

    def _wait_down(self):
        return self.node.wait_off()

    @property
    def seconds(self):
        return self.off - self.began

    def calls(self):
        return self.bed.calls(self.node, self.mark)

    def check(self, drained=True):
        said = [line.name for line in self.node.said(since=self.began) if line.name]
        for name in ("SHUTDOWN_BEGAN", "SHUTDOWN_LET_GO") + (("NODE_DRAINED", ) if drained else ()):
            assert said.count(name) == 1, f"the agent said {name} {said.count(name)} times, expected once: {said}"
        units = {u: self.node.stopping(u, self.began) for u in ("kubelet.service", "containerd.service")}
        self.workload.check_ends(before=units)
        self._check_calls()
        fewest = self.workload.end_watch()
        assert fewest is None or fewest >= 1, f"{fewest} pods of the budget were Ready at once, minAvailable is 1"

    def _check_calls(self):
        calls = self.calls()
        cordons = [c for c in calls if c.verb == "patch" and c.resource == "nodes" and c.status == 200 and
                   c.body.get("spec", {}).get("unschedulable") is True]
        assert len(cordons) == 1, f"cordons: {cordons}"
        evicted = {c.name: c for c in calls if c.is_eviction and c.status == 201}
        for name, trace in self.workload.traces().items():
            assert name in evicted, f"{name} was not evicted; evicted: {sorted(evicted)}"
            call = evicted[name]
            assert cordons[0].received <= call.received, f"{name} was evicted before the cordon"
            assert call.received <= trace.asked, \
                f"{name} got SIGTERM {call.received - trace.asked:.3f} s before its eviction was asked for"

    def back(self):
        """Switched on again: schedulable, and nothing of ours on it."""
        self.node.power_on()
        self.node.wait_clean()
        return self


class SoftShutdown(Shutdown):
    """Only what runs on the kernel goes down, and comes again by itself: check(), then back()."""
    def __init__(self, bed, node, *rest):
        self._kubelet = node.show("kubelet.service", "InvocationID")
        super().__init__(bed, node, *rest)

    def _wait_down(self):
        def another_kubelet():
            # Nobody answers in between.
            code, said = self.node.status("systemctl", "show", "-P", "InvocationID", "kubelet.service")
            return code == 0 and said.strip() not in ("", self._kubelet)

        wait_for(another_kubelet, f"another kubelet runs on {self.node.name}")
        return self.node.stopping("kubelet.service", self.began)

    def back(self):
        self.node.wait_clean()
        return self
