# SPDX-License-Identifier: Apache-2.0
"""What the three programs say on the command line, and what a person gets for a bad configuration."""

import json
import os
import re
import subprocess

from daemons import LIMIT, program

AGENT, COORDINATOR, CTL = "vesper-agent", "vesper-coordinator", "vesperctl"


def run(name, *arguments, environment=None, timeout=LIMIT):
    """The finished process; a program that goes on running is a failure of the case."""
    return subprocess.run(
        [program(name), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent", **(environment or {})})


def usage(world, figures):
    """--version and --help of all three programs; an unknown option is named and refused"""
    for name in (AGENT, COORDINATOR, CTL):
        done = run(name, "--version")
        assert done.returncode == 0 and re.fullmatch(rf"{name} \d+\.\d+\.\d+\n", done.stdout), done
        done = run(name, "--help")
        assert done.returncode == 0 and "--version" in done.stdout and not done.stderr, done
        assert max(map(len, done.stdout.splitlines())) <= 120, f"{name} --help has lines that are too long"
        for bad in (["--no-such-option"], ["stray", "words"]):
            done = run(name, *bad)
            assert done.returncode == 2, f"{name} {bad}: status {done.returncode}, not 2"
            assert bad[0].lstrip("-") in done.stderr, done.stderr
    figures.add(run(AGENT, "--version").stdout.strip())


_SET = {
    AGENT: {
        "Kubernetes.NodeName": "node-a", "Metadata.PollSec": "7s",
        "Agent.RuntimeDirectory": "/run/else where", "Drain.LoadBalancerWaitSec": "1min 30s",
        "Metrics.Listen": "127.0.0.1:9101", "Log.Level": "debug"
    },
    COORDINATOR: {
        "Lease.Namespace": "elsewhere", "Provider.Name": "exec", "Provider.Command": "/usr/bin/true",
        "Drain.Protected": "others", "Drain.LoadBalancerWaitSec": "30s", "Log.Level": "warning"
    },
}


def dump_config(world, figures):
    """--dump-config shows every key and reads back to the same; drop-ins and --set win in their order"""
    for name, values in _SET.items():
        plain = run(name, "--dump-config")
        assert plain.returncode == 0 and not plain.stderr, plain
        arguments = [a for key, value in values.items() for a in ("--set", f"{key}={value}")]
        first = run(name, *arguments, "--dump-config")
        assert first.returncode == 0, first
        path = world.path(f"{name}.dump.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(first.stdout)
        again = run(name, "--config", path, "--dump-config")
        assert again.stdout == first.stdout and not again.stderr, (first.stdout, again)
        assert first.stdout != plain.stdout

        os.makedirs(f"{path}.d", exist_ok=True)
        for file, level in (("10-a.conf", "error"), ("20-b.conf", "notice")):
            with open(os.path.join(f"{path}.d", file), "w", encoding="utf-8") as f:
                f.write(f"[Log]\nLevel={level}\n")
        assert "\nLevel=notice\n" in run(name, "--config", path, "--dump-config").stdout
        assert "\nLevel=info\n" in run(name, "--config", path, "--set", "Log.Level=info",
                                       "--dump-config").stdout
    figures.add(
        "keys of the agent: "
        f"{len(re.findall('^#? ?[A-Z][A-Za-z]+=', run(AGENT, '--dump-config').stdout, re.M))}"
    )


# What stands in the file, or --set values, and what the message must hold: place, key, value, what would be
# valid.
# Exit status 2: the command line or the configuration by itself is wrong; 1: what it names is.
_BAD_FILES = [
    (AGENT, "[Metadata]\nPollSec=soon\n", ["{file}:2", "[Metadata] PollSec=soon", "1s", "1min"]),
    (AGENT, "[Metadata]\n# a comment\nPollSec=0\n", ["{file}:3", "PollSec=0", "between 1s and 1min"]),
    (AGENT, "[Metadata]\nPollSec=5min\n", ["{file}:2", "PollSec=5min", "between 1s and 1min"]),
    (AGENT, "[Metadata]\nSource=ibm\n", ["{file}:2", "Source=ibm", "ec2", "gce", "azure", "none"]),
    (AGENT, "[Drain]\nLoadBalancerWaitSec=-5\n", ["{file}:2", "LoadBalancerWaitSec=-5", "10min"]),
    (AGENT, "[Log]\nLevel=loud\n", ["{file}:2", "Level=loud", "warning"]),
    (AGENT, "PollSec=2s\n", ["{file}:1", "[SECTION]"]),
    (AGENT, "[Metadata\nPollSec=2s\n", ["{file}:1", "[SECTION]"]),
    (AGENT, "[Metadata]\nPollSec\n", ["{file}:2", "KEY=VALUE"]),
    (COORDINATOR, "[Drain]\n\nProtected=perhaps\n", [
        "{file}:3", "[Drain] Protected=perhaps", "wait", "others", "ignore"
    ]),
    (COORDINATOR, "[Drain]\nLoadBalancerWaitSec=2h\n", ["{file}:2", "LoadBalancerWaitSec=2h", "1h"]),
    (COORDINATOR, "[Provider]\nName=nonsense\n", ["{file}:2", "[Provider] Name=nonsense", "separated by spaces, of ec2, exec"]),
    (COORDINATOR, "[Log]\nTarget=paper\n", ["{file}:2", "Target=paper", "journal"]),
    (COORDINATOR, "[Provider]\nName=ec2\n\x00\n", ["{file}:3"]),
]
_BAD_SETTINGS = [
    # program, --set values, in the message, exit status
    (AGENT, ["Metadata.PollSec=forever"], ["--set", "PollSec=forever", "between 1s and 1min"], 2),
    (AGENT, ["PollSec=2s"], ["--set", "Section.Key=VALUE"], 2),
    (AGENT, ["Metadata.PollSec"], ["--set", "Section.Key=VALUE"], 2),
    (AGENT, ["Metadata.Endpoint=ftp://x",
             "Kubernetes.Kubeconfig={kubeconfig}"], ["Endpoint=ftp://x", "http://169.254.169.254"], 2),
    (AGENT, ["Metrics.Listen=9101", "Kubernetes.Kubeconfig={kubeconfig}"], ["Listen=9101",
                                                                            "127.0.0.1:9101"], 2),
    (AGENT, ["Kubernetes.Kubeconfig=/nonexistent/kubeconfig"], ["/nonexistent/kubeconfig",
                                                                "No such file"], 1),
    (AGENT, ["Kubernetes.Kubeconfig={nonsense}"], ["{nonsense}"], 1),
    (COORDINATOR, ["Provider.Name=gce"], ["--set", "Name=gce", "separated by spaces, of ec2, exec"], 2),
    (COORDINATOR, ["Provider.Name=exec", "Kubernetes.Kubeconfig={kubeconfig}"], ["Command="], 2),
    (COORDINATOR, ["Provider.Name=exec", "Provider.Command=relative",
                   "Kubernetes.Kubeconfig={kubeconfig}"], ["absolute"], 2),
    (COORDINATOR, ["Provider.Name=exec ec2", "Provider.Command=/bin/true"], ["has to be the last", "Name=ec2 exec"], 2),
    (COORDINATOR, [
        "Provider.Region=eu-central-1", "Provider.Endpoint=nowhere", "Kubernetes.Kubeconfig={kubeconfig}"
    ], ["ndpoint"], 1),
    (COORDINATOR, [
        "Metrics.Listen=here", "Provider.Name=exec", "Provider.Command=/usr/bin/true",
        "Kubernetes.Kubeconfig={kubeconfig}"
    ], ["Listen", "here"], 1),
    (COORDINATOR, ["Kubernetes.Kubeconfig=/nonexistent/kubeconfig"], [
        "/nonexistent/kubeconfig", "No such file"
    ], 1),
]


def _check(what, done, expected, status, shown):
    """The refusal: the exit status, and one message that holds all of it."""
    assert done.returncode == status, f"{what}: exit status {done.returncode}, not {status}\n{done.stderr}"
    line = next((text for text in done.stderr.splitlines() if all(e in text for e in expected)), None)
    assert line is not None, f"{what}: no message holds all of {expected}:\n{done.stderr}"
    shown.append(line)


def _message(line):
    """Of a JSON line, which stands where standard error is no terminal."""
    return json.loads(line)["msg"] if line.startswith("{") else line


def bad_configuration(world, figures):
    """bad configuration: refused, with file, line, key and what would be valid"""
    nonsense = world.path("nonsense.yaml")
    with open(nonsense, "w", encoding="utf-8") as f:
        f.write("clusters: [\n")
    names = {"kubeconfig": world.cluster.kubeconfig("system:node:nobody", embed=False), "nonsense": nonsense}
    shown = []
    for i, (name, text, expected) in enumerate(_BAD_FILES):
        path = world.path(f"bad-{i}.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        _check(text, run(name, "--config", path), [e.format(file=path) for e in expected], 2, shown)
    for name, values, expected, status in _BAD_SETTINGS:
        arguments = [a for v in values for a in ("--set", v.format(**names))]
        _check(" ".join(values), run(name, *arguments), [e.format(**names) for e in expected], status, shown)
    _check("a file that is not there", run(AGENT, "--config", "/nonexistent/agent.conf"),
           ["/nonexistent/agent.conf", "No such file"], 2, shown)
    figures.add(f"{len(shown)} refusals; as {_message(shown[1])}")


def unknown_keys(world, figures):
    """unknown keys and sections: a warning with file and line, and the program goes on"""
    path = world.path("unknown.conf")
    with open(path, "w", encoding="utf-8") as f:
        f.write("[Metadata]\nPollSecs=2s\n[Metadta]\nPollSec=3s\n")
    done = run(AGENT, "--config", path, "--dump-config")
    assert done.returncode == 0 and "\nPollSec=2s\n" in done.stdout, done
    assert f"{path}:2" in done.stderr and "PollSecs" in done.stderr, done.stderr
    assert f"{path}:3" in done.stderr and "Metadta" in done.stderr, done.stderr


def status_command(world, figures):
    """vesperctl status: of an empty cluster; and what it says without a credential, or without rights"""
    done = world.ctl("status")
    assert done.returncode == 0, done
    done = world.ctl("status", "-o", "json")
    assert done.returncode == 0 and done.stdout.lstrip().startswith("{"), done
    done = run(CTL, "status", "--kubeconfig", "/nonexistent/kubeconfig")
    assert done.returncode == 1 and "/nonexistent/kubeconfig" in done.stderr, done
    done = run(CTL, "status", "--kubeconfig", world.cluster.kubeconfig("nobody", []))
    assert done.returncode == 1 and "forbidden" in done.stderr.lower(), done
    figures.add(done.stderr.strip().splitlines()[-1])


CASES = [usage, dump_config, bad_configuration, unknown_keys, status_command]
