#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The contract of the clouds, in four parts: "fake" and "moto", the cases of aws_cases.py against fake-cluster and
against moto; "confirmations", those of confirmation_cases.py, whose answers of moto the coordinator's own code reads;
"template", those of queue_template.py, for which moto deploys packaging/aws/interruption-queue.yaml.

    run-clouds.py [PART...]

Uses tests/fake/fake-cluster, tests/contract/confirmations and tests/contract/queue-messages in ${VESPER_BUILD:-build}. Prints each case and, as
the last line, "N passed, N failed, N skipped". Where moto is not and cannot be installed, each part is one skip.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP = os.path.dirname(TESTS)
sys.path.insert(0, os.path.join(TESTS, "cluster"))

import ec2moto  # noqa: E402
import procs  # noqa: E402
from cluster import cache_directory  # noqa: E402

BUILD = os.path.abspath(os.environ.get("VESPER_BUILD", os.path.join(TOP, "build")))
CASES = os.path.join(TESTS, "contract", "aws_cases.py")
TEMPLATE_CASES = os.path.join(TESTS, "contract", "queue_template.py")
CONFIRMATION_CASES = os.path.join(TESTS, "contract", "confirmation_cases.py")
CONFIRMATIONS = os.path.join(BUILD, "tests", "contract", "confirmations")
QUEUE_MESSAGES = os.path.join(BUILD, "tests", "contract", "queue-messages")
TEMPLATE = os.path.join(TOP, "packaging", "aws", "interruption-queue.yaml")
KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
WORLD = {
    "objects": [],
    "instances": [{"id": f"i-0000000000000000{n}", "zone": "us-east-1a", "group": "contract"} for n in "abc"],
    "autoscaling": {"replaceMsec": 100, "launchMsec": 100},
    "autoscalingGroups": [
        {"name": "contract", "zones": "us-east-1a", "min": 1, "max": 5},
        {"name": "contract-other", "zones": "us-east-1a", "max": 1,
         "hooks": [{"name": "drain", "heartbeatSec": 300, "abandon": True}]}],
    "queues": [{"name": "contract"}],
}
TIMEOUT = 300


def environment():
    """Nothing of the caller's credentials or proxies."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "TMPDIR", "VESPER_CACHE")}
    return {**kept, "PYTHONUNBUFFERED": "1", "AWS_EC2_METADATA_DISABLED": "true", "NO_PROXY": "*",
            "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}


def start_fake(directory):
    world = os.path.join(directory, "world.json")
    with open(world, "w", encoding="utf-8") as f:
        json.dump(WORLD, f)
    endpoints = os.path.join(directory, "endpoints.json")
    fake = procs.Process("fake-cluster", [
        os.path.join(BUILD, "tests", "fake", "fake-cluster"), "--dir", directory, "--world", world,
        "--access-key-id", KEY, "--secret-access-key", SECRET], os.path.join(directory, "fake.log"), environment())
    fake.start().wait_ready(lambda: os.path.exists(endpoints))
    with open(endpoints, encoding="utf-8") as f:
        return fake, json.load(f)


def start_moto(python, directory):
    port = procs.Ports().take()
    moto = procs.Process("moto", [python, "-m", "moto.server", "-H", "127.0.0.1", "-p", port],
                         os.path.join(directory, "moto.log"), {**environment(), "AWS_DEFAULT_REGION": ec2moto.REGION})
    moto.start().wait_ready(ec2moto.Ec2(port).healthy)
    return moto, {s: f"http://127.0.0.1:{port}" for s in ("autoscaling", "ec2", "sqs")}


def run_cases(name, command):
    """(passed, failed, skipped)"""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT, check=False, env=environment())
    lines = done.stdout.splitlines()
    last = re.fullmatch(r"(\d+) passed, (\d+) failed, (\d+) skipped", lines[-1] if lines else "")
    if not last:
        print(f"FAILED  {name}: ended with status {done.returncode}\n{done.stdout}")
        return 0, 1, 0
    print("\n".join(lines[:-1]))
    return tuple(map(int, last.groups()))


def main():
    procs.exit_on_signals()
    counts = [0, 0, 0]
    try:
        python = ec2moto.find_python(cache_directory())
    except procs.StartError as e:
        print(f"SKIPPED clouds: {e}: there is no boto3 to ask with\n0 passed, 0 failed, 4 skipped")
        return 0
    def moto(directory):
        return start_moto(python, directory)

    parts = {
        "fake": (start_fake, lambda endpoints: [CASES, "fake", json.dumps(endpoints)]),
        "moto": (moto, lambda endpoints: [CASES, "moto", json.dumps(endpoints)]),
        "confirmations": (moto, lambda endpoints: [CONFIRMATION_CASES, CONFIRMATIONS, json.dumps(endpoints)]),
        "template": (moto, lambda endpoints: [TEMPLATE_CASES, TEMPLATE, QUEUE_MESSAGES, endpoints["sqs"]]),
    }
    with tempfile.TemporaryDirectory(prefix="contract-clouds-") as directory:
        for name in sys.argv[1:] or parts:
            start, command = parts[name]
            process, endpoints = start(directory)
            try:
                counts = [a + b for a, b in zip(counts, run_cases(name, [python, *command(endpoints)]))]
            finally:
                process.stop()
    print("%d passed, %d failed, %d skipped" % tuple(counts))
    return 1 if counts[1] else 0


if __name__ == "__main__":
    sys.exit(main())
