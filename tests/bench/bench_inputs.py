# SPDX-License-Identifier: Apache-2.0
"""Measures how long the largest input of each sender blocks the event loop. etcd takes 1.5 MB; a reader with a smaller limit of
its own gets an input of that size."""

import json
import os
import subprocess

from daemons import build_directory


def inputs(context):
    done = subprocess.run([os.path.join(build_directory(), "tests", "unit", "test-input-cost"), "--milliseconds"], capture_output=True,
                          text=True, check=True, timeout=600)
    found = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda i: -i["ms"])
    for i in found[:5]:
        context.bar(i["input"], i["ms"], 100, "ms")
    context.table("the slowest input of each reader", ("input", "KiB", "ms", "MiB while it is read", "KiB kept"),
                  [(i["input"], i["bytes"] / 2**10, i["ms"], i["peak"] / 2**20, i["kept"] / 2**10) for i in found])


BENCHES = [("inputs", "reading the largest input that each sender can make", inputs)]
