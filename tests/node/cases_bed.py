# SPDX-License-Identifier: Apache-2.0
"""The package on a node that runs: the agent is there, sees what it needs, and its faces work."""

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
    wait_for(lambda: "vesper-agent" in node.inhibitors(), 10, "logind lists the agent's inhibitor")
    assert not node.marks(), f"marks on a node that nothing happened to: {node.marks()}"
    bad = [line for line in node.said() if int(line.get("PRIORITY", 6)) <= 4]
    assert not bad, f"warnings and errors of the agent: {bad}"


CASES = [installed]
