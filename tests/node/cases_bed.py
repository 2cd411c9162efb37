# SPDX-License-Identifier: Apache-2.0
"""The package on a node that runs: the agent is there, sees what it needs, and its faces work; and what the bed itself does."""

import concurrent.futures
import glob
import os
import signal
import subprocess

from node import wait_for


def installed(bed, node, figures):
    """installed by dpkg: the agent is active after the boot, and --check finds nothing to mend"""
    state = node.show("vesper-agent.service", "ActiveState")
    assert state == "active", f"vesper-agent.service is {state}:\n{node.explained()}"
    failed = node.run("systemctl", "list-units", "--failed", "--plain", "--no-legend")
    assert not failed.strip(), f"failed units: {failed}"
    status, table = node.status("vesper-agent", "--check")
    for line in table.splitlines():
        figures.add(line)
    assert status == 0, f"vesper-agent --check: status {status}, expected 0\n{table}"
    wait_for(lambda: "vesper-agent" in node.inhibitors(), "logind lists the agent's inhibitor")
    assert not node.marks(), f"marks on a node that nothing happened to: {node.marks()}"
    bad = [line for line in node.said(since=node.booted) if int(line.get("PRIORITY", 6)) <= 4]
    assert not bad, f"warnings and errors of the agent: {bad}"


# Its one boot is this case's: whatever an agent had to warn of while another case had the machine, or stopped the API server, is not.
installed.fresh = True


def boot_without_api(bed, node, figures):
    """a boot without network does not wait for the API server; when it is there, the agent takes the node up"""
    node.cut_power()
    bed.network.cut(node.name)
    try:
        node.power_on(wait=False)
        wait_for(lambda: node.status("systemctl", "is-active", "multi-user.target")[0] == 0,
                 lambda: f"multi-user.target is reached; jobs:\n{node.run('systemctl', 'list-jobs')}", 0.1)
        state, status = node.show("vesper-agent", "ActiveState"), node.show("vesper-agent", "StatusText")
        assert state == "active" and "API server" in status, f"vesper-agent is {state}, its status says '{status}'"
        wait_for(lambda: "vesper-agent" in node.inhibitors(), "logind has the agent's inhibitor")
    finally:
        bed.network.cut(node.name, away=False)
    node.wait_ready()
    node.wait_said("READY", node.booted)
    figures.add(f"status meanwhile: {status}")


def _process(*arguments):
    """The pid of what runs so, in whatever machine; None: nothing does."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                if f.read() == b"".join(a.encode() + b"\0" for a in arguments):
                    return int(path.split("/")[2])
        except OSError:
            pass  # it has ended
    return None


def _state(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return f.read().rpartition(") ")[2][0]


def commands(bed, node, figures):
    """the bed: a command in a machine that is stopped and killed, as at the machine's end, has ended, and nothing is left of it"""
    pool = concurrent.futures.ThreadPoolExecutor(1)
    waited = pool.submit(node.status, "sleep", "54321")
    pid = wait_for(lambda: _process("sleep", "54321"), "the command runs")
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: _state(pid) == "T", "it is stopped")
    os.kill(pid, signal.SIGKILL)
    wait_for(waited.done, "the caller of the command gets its result")
    assert waited.result()[0] == -signal.SIGKILL, f"status {waited.result()[0]}, expected {-signal.SIGKILL}"
    pool.shutdown()
    # The run ends nsenter when a command takes too long. The command runs on, and nobody is left to reap it.
    entered = subprocess.Popen([*node.entering(), "sleep", "12345"], stdin=subprocess.DEVNULL)
    pid = wait_for(lambda: _process("sleep", "12345"), "the command runs")
    entered.kill()
    entered.wait()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "somebody reaps it")


CASES = [installed, boot_without_api, commands]
