# SPDX-License-Identifier: Apache-2.0
"""Names the cases of e2e, node and manifests that `bash tests/run.sh` plays: at least one for each promise of README.md.
`bash tests/run.sh all`, or a suite by its name, plays every case.

Run as a program, it holds the table to README.md and to the cases. Exit status 0 when they agree; else a line for each fault.
"""

import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# (a promise: a bold phrase or a heading of README.md; {suite: the functions of its cases}).
PROMISES = (
    ("A node is interrupted", {
        "e2e": ("interrupted_node", "agent_killed", "other_notices", "notices_of_ones_own", "queue_spot"),
        "node": ("spot", "killed_in_phases"),
    }),
    ("A new machine in its place", {
        "e2e": ("successor_ready", "launch_leader_killed", "no_capacity"),
    }),
    ("A machine shuts down or reboots", {
        "node": ("poweroff", "reboot", "two_reboots", "cancelled", "cable_cut", "killed_in_shutdown", "upgraded"),
    }),
    ("A node is deleted", {
        "e2e": ("deleted_node", "leader_killed", "another_machine", "apiserver_away", "budget_holds"),
    }),
    ("Too many at once", {
        "e2e": ("webhook_killed", "webhook_certificate"),
    }),
    ("A node that stays unready", {
        "e2e": ("repair",),
    }),
    ("Others are told", {
        "e2e": ("notified_removal",),
    }),
    ("By hand", {
        "e2e": ("person_drains", "explain_pdb_without_room", "status_command"),
        "node": ("by_hand",),
    }),
    ("Which nodes are not needed", {
        "e2e": ("person_plans",),
    }),
    ("A tour of five minutes", {
        "node": ("tour",),
    }),
    ("Install", {
        "e2e": ("usage", "bad_configuration", "agent_reload", "agent_faces", "coordinator_faces", "sanitized_agent"),
        "node": ("installed",),
        "manifests": ("no_drift", "values", "nonsense", "pods_are_made", "permissions", "agent_drains"),
    }),
    ("To take vesper out again", {
        "node": ("chart_installs", "chart_uninstalled"),
    }),
)


def chosen(suite):
    """The names of that suite's cases in the table, each once, in its order."""
    return list(dict.fromkeys(name for _, suites in PROMISES for name in suites.get(suite, ())))


def faults():
    with open(os.path.join(TOP, "README.md"), encoding="utf-8") as f:
        readme = f.read()
    headings = set(re.findall(r"(?m)^## (.+)$", readme))
    bold = set(re.findall(r"\*\*([^*]+)\*\*", readme))
    done = re.search(r"(?ms)^## What it does$(.*?)^## ", readme)[1]
    promised = set(re.findall(r"\*\*([^*]+)\*\*", done)) | {"A tour of five minutes", "Install", "To take vesper out again"}
    tried = {promise for promise, suites in PROMISES if any(suites.values())}
    for promise in sorted({promise for promise, _ in PROMISES} - bold - headings):
        yield f"README.md does not promise '{promise}'"
    for promise in sorted(promised - tried):
        yield f"README.md promises '{promise}', for which no case is played"
    for suite in sorted({suite for _, suites in PROMISES for suite in suites}):
        listed = subprocess.run([sys.executable, os.path.join(TOP, "tests", suite, "run.py"), "--list"], check=True,
                                stdout=subprocess.PIPE, text=True).stdout
        cases = {line.split()[0] for line in listed.splitlines()}
        for name in chosen(suite):
            if name not in cases:
                yield f"tests/{suite} has no case {name}"


if __name__ == "__main__":
    found = list(faults())
    print("\n".join(found), file=sys.stderr)
    sys.exit(1 if found else 0)
