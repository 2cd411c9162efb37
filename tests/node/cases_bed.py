# SPDX-License-Identifier: Apache-2.0
"""The package on a node that runs: the agent is there, sees what it needs, and its faces work."""

from node import wait_for
from shutdowns import PATIENCE


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
    wait_for(lambda: "vesper-agent" in node.inhibitors(), 10, "logind lists the agent's inhibitor")
    assert not node.marks(), f"marks on a node that nothing happened to: {node.marks()}"
    # Of this boot: it may have been shut down by a case before.
    bad = [line for line in node.said(since=node.booted) if int(line.get("PRIORITY", 6)) <= 4]
    assert not bad, f"warnings and errors of the agent: {bad}"


def boot_without_api(bed, node, figures):
    """a boot without network does not wait for the API server; when it is there, the agent takes the node up"""
    node.cut_power()
    bed.network.cut(node.name)
    try:
        node.power_on(wait=False)
        wait_for(lambda: node.status("systemctl", "is-active", "multi-user.target")[0] == 0, PATIENCE,
                 lambda: f"multi-user.target is reached; jobs:\n{node.run('systemctl', 'list-jobs')}", 0.1)
        state, status = node.show("vesper-agent", "ActiveState"), node.show("vesper-agent", "StatusText")
        assert state == "active" and "API server" in status, f"vesper-agent is {state}, its status says '{status}'"
        wait_for(lambda: "vesper-agent" in node.inhibitors(), PATIENCE, "logind has the agent's inhibitor")
    finally:
        bed.network.cut(node.name, away=False)
    node.wait_ready()
    node.wait_said("READY", node.booted, PATIENCE)
    figures.add(f"status meanwhile: {status}")


CASES = [installed, boot_without_api]
