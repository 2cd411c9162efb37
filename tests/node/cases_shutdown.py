# SPDX-License-Identifier: Apache-2.0
"""The machine goes down: whoever told it, its node is drained first."""

import os
import signal

from shutdowns import Shutdown, SoftShutdown, Workload

POWERED_OFF, REBOOTED = 0, 133  # what nspawn ends with


def poweroff(bed, node, figures):
    """systemctl poweroff: cordoned, evicted within budgets, each container with its grace, then off; clean after the boot"""
    work = Workload(bed, node, count=3, stop_msec=2000, deaf_grace=3, budget=True)
    down = Shutdown(bed, node, lambda: node.run("systemctl", "poweroff"), work)
    down.check()
    assert down.status == POWERED_OFF, f"nspawn ended with {down.status}"
    figures.add(f"off after {down.seconds:.1f} s; pods had " +
                " ".join(f"{t.had:.1f}" for t in work.traces().values()) + " s after SIGTERM")
    down.back()
    node.wait_said("NODE_UNCORDONED", down.off)  # the API may show it before the journal does
    undone = node.said("NODE_UNCORDONED", down.off)
    assert len(undone) == 1, f"expected one line that the node is schedulable again, found {undone}"
    why = [line.text for line in node.said(since=down.off) if "the machine has booted since" in line.text]
    assert why, f"the agent was to see that the machine has booted since:\n{node.explained(down.off)}"


def _trigger(name, sentence, tell, status):
    def case(bed, node, figures):
        down = Shutdown(bed, node, lambda: tell(node), Workload(bed, node))
        down.check()
        assert down.status == status, f"nspawn ended with {down.status}, expected {status}"
        down.back()
        figures.add(f"down after {down.seconds:.1f} s")

    case.__name__, case.__doc__ = name, sentence + ": drained first, and clean after the boot"
    return case


def _command(*command):
    def tell(node):
        code, said = node.status(*command)
        # It may have been ended itself by what it asked for.
        assert code <= 0 or not node.is_on() or "stopping" in node.status("systemctl", "is-system-running")[1], \
            f"{' '.join(command)}: status {code}: {said}"

    return tell


def _signal(number):
    return lambda node: os.kill(node.pid1, number)


def soft_reboot(bed, node, figures):
    """systemctl soft-reboot (a newer systemd): drained first; schedulable again though the kernel has the same boot id"""
    # No pod is tried on it afterwards: what nspawn has mounted into the machine, the kubelet's configuration too, is gone then.
    boot = node.boot_id()
    down = SoftShutdown(bed, node, lambda: node.run("systemctl", "soft-reboot"), Workload(bed, node))
    down.check()
    assert node.boot_id() == boot, "this was no soft-reboot"
    down.back()
    figures.add(node.run("systemctl", "--version").splitlines()[0])


soft_reboot.layers = "newer"


def forced(bed, node, figures):
    """systemctl --force poweroff: not drained (documented); clean after the boot all the same"""
    work = Workload(bed, node, deaf_grace=0)
    down = Shutdown(bed, node, lambda: node.status("systemctl", "--force", "poweroff"), work)
    calls = [c for c in down.calls() if c.is_write]
    assert not calls, f"the agent wrote: {calls}"
    down.back()


CASES = [
    poweroff,
    _trigger("reboot", "systemctl reboot", _command("systemctl", "reboot"), REBOOTED),
    _trigger("halt", "systemctl halt", _command("systemctl", "halt"), POWERED_OFF),
    _trigger("kexec", "kexec.target", _command("systemctl", "start", "--no-block", "--job-mode=replace-irreversibly",
                                                "kexec.target"), REBOOTED),
    _trigger("shutdown_now", "shutdown now", _command("shutdown", "now"), POWERED_OFF),
    _trigger("shutdown_reboot", "shutdown -r now", _command("shutdown", "-r", "now"), REBOOTED),
    _trigger("start_poweroff", "systemctl start poweroff.target", _command("systemctl", "start", "--no-block",
                                                                            "--job-mode=replace-irreversibly",
                                                                            "poweroff.target"), POWERED_OFF),
    _trigger("isolate_reboot", "systemctl isolate reboot.target", _command("systemctl", "isolate", "--no-block",
                                                                            "reboot.target"), REBOOTED),
    _trigger("sigrtmin_4", "SIGRTMIN+4 to PID 1", _signal(signal.SIGRTMIN + 4), POWERED_OFF),
    _trigger("sigrtmin_5", "SIGRTMIN+5 to PID 1", _signal(signal.SIGRTMIN + 5), REBOOTED),
    _trigger("ctrl_alt_del", "Ctrl-Alt-Del (SIGINT to PID 1)", _signal(signal.SIGINT), REBOOTED),
    soft_reboot,
    forced,
]
