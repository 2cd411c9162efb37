#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Suite e2e: the real programs against a real control plane.

    tests/e2e/run.py                  plays every case
    tests/e2e/run.py NAME...          plays these cases; a part of a name or of a sentence stands for all cases that have it
    tests/e2e/run.py --promises       plays the cases that tests/promises.py names
    tests/e2e/run.py --list           prints the name and the sentence of each case
    VESPER_BUILD=DIR                  folder of the built programs (default: build/)

Prints the figures of each case and, last, "N passed, N failed, N skipped". The logs of a case that fails are kept in
VESPER_BUILD/failed/e2e/NAME, which the next run removes.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cases_checked  # noqa: E402
import cases_cluster  # noqa: E402
import cases_command  # noqa: E402
import cases_ctl  # noqa: E402
import cases_explain  # noqa: E402
import cases_faces  # noqa: E402
import cases_grace  # noqa: E402
import cases_launch  # noqa: E402
import cases_node  # noqa: E402
import cases_notify  # noqa: E402
import cases_outlook  # noqa: E402
import cases_queue  # noqa: E402
import cases_reboot  # noqa: E402
import cases_reload  # noqa: E402
import cases_reports  # noqa: E402
import cases_simulate  # noqa: E402
from runner import Suite  # noqa: E402
from world import World  # noqa: E402

CASES = cases_command.CASES + cases_ctl.CASES + cases_node.CASES + cases_cluster.CASES + cases_queue.CASES + cases_reboot.CASES + \
    cases_reload.CASES + cases_faces.CASES + cases_grace.CASES + cases_explain.CASES + cases_notify.CASES + cases_checked.CASES + \
    cases_simulate.CASES + cases_outlook.CASES + cases_reports.CASES + cases_launch.CASES

if __name__ == "__main__":
    sys.exit(Suite("e2e", CASES, World).main(__doc__))
