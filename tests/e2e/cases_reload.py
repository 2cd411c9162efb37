# SPDX-License-Identifier: Apache-2.0
"""The configuration read again while a daemon runs: on SIGHUP, and where a volume is mounted."""

import contextlib
import os
import signal
import socket

from daemons import LIMIT


@contextlib.contextmanager
def _manager(world, daemon):
    """A service manager's socket: reads what is said to it until that word has come."""
    path = world.path(world.unique("notify"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(path)
        s.settimeout(LIMIT)
        daemon.environment["NOTIFY_SOCKET"] = path

        def until(word):
            while word not in s.recv(4096).decode().splitlines():
                pass

        yield until


def _write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def _reloads(daemon):
    return [line for line in daemon.lines() if line.name in ("CONFIGURATION_RELOADED", "CONFIGURATION_KEPT")]


def _wait_reload(world, daemon, count):
    """The line of the count-th reload."""
    world.cluster.wait_for(lambda: len(_reloads(daemon)) >= count, LIMIT, f"reload {count} of {daemon.name}")
    return _reloads(daemon)[count - 1].text


def _plays(world, daemon, path, begun, takes, leaves, wrong):
    """Three reloads of a daemon that has read the empty file at path: (text of the file, words of the line that follows) each. begun:
    what it has said before the first."""
    with _manager(world, daemon) as until, daemon:
        until("READY=1")
        daemon.wait_line(begun)
        pid = daemon.pid
        for count, (text, words) in enumerate((takes, leaves, wrong), 1):
            _write(path, text)
            os.kill(pid, signal.SIGHUP)
            until("RELOADING=1")
            until("READY=1")
            line = _wait_reload(world, daemon, count)
            for word in words:
                assert word in line, f"reload {count}: '{word}' is not in: {line}"
        refused = [line.text for line in daemon.lines() if line.name == "CONFIGURATION_REFUSED"]
        assert len(refused) == 1 and f"{path}:2:" in refused[0], refused
        assert daemon.alive() and daemon.pid == pid, "it did not live on"


def agent_reload(world, figures):
    """SIGHUP: the agent takes what can be taken, names the rest, keeps all of it when a key is wrong, and tells systemd"""
    node, _ = world.node(world.unique("reload"), "aws:///us-east-1a/i-0123456789abcdef0")
    path = world.path(world.unique("agent.conf"))
    _write(path, "")
    with world.metadata() as metadata:
        daemon = world.agent(node, metadata)
        daemon.argv += ["--config", path]
        _plays(world, daemon, path, "READY",
               ("[Log]\nLevel=debug\n", ["took [Log] Level=debug (was info)", "credential read again: client certificate"]),
               ("[Log]\nLevel=debug\n[Drain]\nLoadBalancerWaitSec=7s\n[Shutdown]\nDrain=no\n",
                ["took [Drain] LoadBalancerWaitSec=7s (was 30s); restart to apply [Shutdown] Drain=no (was yes)"]),
               ("[Drain]\nLoadBalancerWaitSec=never\n", ["not read again", "What was in force stays"]))


def coordinator_reload(world, figures):
    """SIGHUP: the coordinator does the same, and goes on leading"""
    path = world.path(world.unique("coordinator.conf"))
    _write(path, "")
    daemon = world.coordinator("reload")
    daemon.argv += ["--config", path]
    _plays(world, daemon, path, "LEASE_ACQUIRED",
           ("[Log]\nLevel=debug\n", ["took [Log] Level=debug (was info)", "credential read again: "]),
           ("[Log]\nLevel=debug\n[Drain]\nProtected=others\n[Lease]\nName=other\n",
            ["took [Drain] Protected=others (was wait); restart to apply [Lease] Name=other (was vesper-coordinator)"]),
           ("[Budget]\nRebootSlotSec=1s\n", ["not read again", "What was in force stays"]))
    # At its stop it has something to say of the Lease.
    assert [line for line in daemon.lines() if line.get("level") == "debug"], "the level that was taken is not in force"
    names = [line.name for line in daemon.lines()]
    assert "LEASE_ACQUIRED" in names and "LEASE_LOST" not in names, names


def mounted_reload(world, figures):
    """a ConfigMap that is mounted, and changed as the kubelet changes it, is read again within ten seconds"""
    folder = world.path(world.unique("mounted"))
    os.makedirs(folder)

    def mount(version, text):
        os.makedirs(f"{folder}/..{version}")
        _write(f"{folder}/..{version}/coordinator.conf", text)
        os.symlink(f"..{version}", f"{folder}/..data_tmp")
        os.rename(f"{folder}/..data_tmp", f"{folder}/..data")

    mount(1, "")
    os.symlink("..data/coordinator.conf", f"{folder}/coordinator.conf")
    daemon = world.coordinator("mounted")
    daemon.argv += ["--config", f"{folder}/coordinator.conf"]
    with daemon:
        daemon.wait_line("READY")
        mount(2, "[Drain]\nProtected=ignore\n")
        line = _wait_reload(world, daemon, 1)
        assert "(a mounted file changed): took [Drain] Protected=ignore (was wait)" in line, line


CASES = [agent_reload, coordinator_reload, mounted_reload]
