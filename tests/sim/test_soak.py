#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""soak.py with a program in sim-random's place that plays nothing: which worlds have their turn, and where the next run
goes on."""

import contextlib
import io
import os
import stat
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import soak  # noqa: E402

# As sim-random tells it; of the worlds of --reboots seed 3 shows something.
PROGRAM = """#!/bin/sh
code=0
case "$1" in
--reboots) shift; [ "$2" = 1 ] && { echo "seed 3: things happen: slots: two at once"; code=1; } ;;
--events | --notices | --queue | --repairs | --launches) shift ;;
esac
[ "$1" = --seeds ] || exit 2
echo "seeds $2.. by 2: 100 worlds, $code violations, 1.0 virtual hours, 10 steps, 5 requests, 2 evictions, 0.1 s, 1 seeds/s"
exit $code
"""


class SoakTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program, self.log = os.path.join(folder.name, "sim-random"), os.path.join(folder.name, "soak.log")
        with open(self.program, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        os.chmod(self.program, os.stat(self.program).st_mode | stat.S_IXUSR)

    def soak(self, n_ranges, *arguments):
        """One run that has time for so many ranges: its exit status and the log's lines of ranges."""
        ticks = iter([0.0] + [t for i in range(n_ranges) for t in (i, i, i + 0.5)] + [n_ranges])
        with mock.patch.object(soak.time, "monotonic", lambda: next(ticks)), \
                mock.patch.object(sys, "argv", ["soak.py", self.program, self.log, str(n_ranges), *arguments]), \
                contextlib.redirect_stdout(io.StringIO()):
            code = soak.main()
        return code, [line.partition(":")[0] for line in soak.read(self.log).splitlines() if "seeds " in line]

    def test_turns(self):
        code, lines = self.soak(8)
        self.assertEqual(lines, ["seeds 1..200", "reboots, seeds 1..200", "events, seeds 1..200", "notices, seeds 1..200",
                                 "queue, seeds 1..200", "repairs, seeds 1..200", "launches, seeds 1..200",
                                 "seeds 201..400"])
        self.assertEqual(code, 1)
        self.assertIn("reboots, seed 3: things happen: slots: two at once\n", soak.read(self.log))
        self.assertIn("reboots, seeds 1..200: 200 worlds, 1 violations, 2.0 virtual hours, 20 steps", soak.read(self.log))

    def test_goes_on(self):
        self.soak(1)
        self.assertEqual(self.soak(1)[1][1:], ["reboots, seeds 1..200"])
        self.assertEqual(self.soak(5)[1][2:], ["events, seeds 1..200", "notices, seeds 1..200", "queue, seeds 1..200",
                                              "repairs, seeds 1..200", "launches, seeds 1..200"])
        code, lines = self.soak(2)
        self.assertEqual(lines[7:], ["seeds 201..400", "reboots, seeds 201..400"])
        self.assertEqual(code, 0)

    def test_log_of_one_kind(self):
        with open(self.log, "w", encoding="utf-8") as f:
            f.write("seeds 9001..9200: 200 worlds\n")
        lines = self.soak(7)[1]
        self.assertEqual([lines[1], lines[7]], ["reboots, seeds 1..200", "seeds 9201..9400"])

    def test_from_seed(self):
        self.soak(2)
        self.assertEqual(self.soak(2, "5001")[1][2:], ["seeds 5001..5200", "reboots, seeds 5001..5200"])


if __name__ == "__main__":
    unittest.main()
