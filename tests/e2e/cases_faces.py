# SPDX-License-Identifier: Apache-2.0
"""What the daemons serve over HTTP: health, readiness, and metrics that any Prometheus reads."""

import contextlib
import socket
import time

from daemons import LIMIT, procs
from promtext import fetch, page

PODS = 5

AGENT_FAMILIES = {
    "vesper_agent_notices_total": "counter", "vesper_agent_polls_total": "counter",
    "vesper_agent_evictions_total": "counter", "vesper_agent_phase": "gauge",
    "vesper_agent_pods_left": "gauge", "vesper_agent_notice_to_cordon_seconds": "histogram",
    "vesper_agent_notice_to_drained_seconds": "histogram", "vesper_agent_api_errors_total": "counter"
}

COORDINATOR_FAMILIES = {
    "vesper_coordinator_leader": "gauge", "vesper_coordinator_synced": "gauge",
    "vesper_coordinator_nodes": "gauge", "vesper_coordinator_nodeclaims": "gauge",
    "vesper_coordinator_adoptions_total": "counter", "vesper_coordinator_releases_total": "counter",
    "vesper_coordinator_terminations": "gauge", "vesper_coordinator_terminations_started_total": "counter",
    "vesper_coordinator_terminations_finished_total": "counter",
    "vesper_coordinator_termination_duration_seconds": "histogram",
    "vesper_coordinator_termination_tokens": "gauge", "vesper_coordinator_protected_seconds_total": "counter",
    "vesper_coordinator_evictions_total": "counter", "vesper_coordinator_evictions_in_flight": "gauge",
    "vesper_coordinator_evictions_waiting": "gauge", "vesper_coordinator_eviction_window": "gauge",
    "vesper_coordinator_api_requests_total": "counter", "vesper_coordinator_queue_depth": "gauge",
    "vesper_coordinator_orphans": "gauge", "vesper_coordinator_reboots_granted_total": "counter",
    "vesper_coordinator_reboot_slots_held": "gauge", "vesper_coordinator_reboots_waiting": "gauge"
}


@contextlib.contextmanager
def listen_address():
    """An address that nobody else takes meanwhile."""
    ports = procs.Ports()
    try:
        yield f"127.0.0.1:{ports.take()}"
    finally:
        ports.release()


def page_when(base, read, expected):
    """The page, once read(page) is what is expected: a daemon may hear of a thing, and count it, later than we do."""
    deadline = time.monotonic() + LIMIT
    while (found := read(p := page(base))) != expected:
        assert time.monotonic() < deadline, f"expected {expected}, seen {found}"
        time.sleep(0.02)
    return p


def _has(p, families):
    missing = {name: kind for name, kind in families.items() if p.families.get(name) != kind}
    assert not missing, f"families that are missing or of another type: {missing}"


def _health(base):
    assert fetch(base + "/healthz")[::2] == (200, "ok\n"), fetch(base + "/healthz")
    assert fetch(base + "/nothing")[0] == 404, fetch(base + "/nothing")


def _answered_beside_silent_clients(metrics, health):
    """Silent clients connect to both servers, more than either has places: whoever asks is served all the same."""
    with contextlib.ExitStack() as held:
        for address in (metrics, health):
            host, port = address.split(":")
            for _ in range(40):
                held.enter_context(socket.create_connection((host, int(port)), timeout=LIMIT))
        assert fetch(f"http://{health}/metrics")[0] == 404, "whoever may probe reads the metrics"
        for _ in range(10):
            _health(f"http://{health}")
            assert fetch(f"http://{metrics}/metrics")[0] == 200, "the metrics are not served"


def agent_faces(world, figures):
    """the agent's metrics and health: well-formed, and moved by a drain as far as it went"""
    node, _ = world.node(world.unique("face"), "aws:///us-east-1a/i-0123456789abcdef0")
    world.cluster.create_pods(node, PODS, prefix=node)
    world.cluster.wait_running(PODS, node)
    expected = {"notices": 1, "evictions": PODS, "drained": 1, "cordons timed": 1, "drains timed": 1}

    def moved(p):
        return {
            "notices": p.value("vesper_agent_notices_total", kind="spot"),
            "evictions": p.value("vesper_agent_evictions_total", answer="Evicted"),
            "drained": p.value("vesper_agent_phase", phase="drained"),
            "cordons timed": p.value("vesper_agent_notice_to_cordon_seconds_count"),
            "drains timed": p.value("vesper_agent_notice_to_drained_seconds_count"),
        }

    with listen_address() as listen, listen_address() as health, world.metadata() as metadata, \
            world.agent(node, metadata, **{"Metrics.Listen": listen, "Health.Listen": health}) as agent:
        base = f"http://{listen}"
        agent.wait_line("READY")
        _health(base)
        _answered_beside_silent_clients(listen, health)
        world.cluster.wait_for(lambda: page(base).value("vesper_agent_polls_total", result="none") > 0, LIMIT,
                               "a look that shows nothing")
        before = page(base)
        _has(before, AGENT_FAMILIES)
        assert before.value("vesper_agent_phase", phase="idle") == 1, "it is not idle"
        metadata.interrupt()
        agent.wait_line("NODE_DRAINED")
        world.wait_condition(node, "Drained")
        after = page_when(base, moved, expected)
    _has(after, AGENT_FAMILIES)
    figures.add(f"{len(after.families)} families, {len(after.samples)} samples; after the drain: {moved(after)}")
    assert before.value("vesper_agent_evictions_total", answer="Evicted") == 0, "evictions before the notice"
    assert after.value("vesper_agent_pods_left") == 0, "pods left after the drain"
    looks = [p.value("vesper_agent_polls_total", result="notice") for p in (before, after)]
    assert looks[0] == 0 < looks[1], f"looks that showed a notice, before and after it: {looks}"


def coordinator_faces(world, figures):
    """the coordinators' metrics, health and readiness: well-formed, and moved by a removal"""
    pool = world.pool(world.unique("face"))
    node, _ = world.node(pool)
    world.cluster.create_pods(node, PODS, prefix=node)
    world.cluster.wait_running(PODS, node)
    name = "vesper_coordinator_"

    def known(p):
        return {key: p.value(name + key) for key in ("nodes", "nodeclaims", "adoptions_total")}

    def moved(p):
        return known(p) | {
            "finished": p.value(name + "terminations_finished_total"),
            "timed": p.value(name + "termination_duration_seconds_count"),
            "evictions": p.value(name + "evictions_total", answer="Evicted"),
        }

    with listen_address() as listen, listen_address() as other, listen_address() as health, \
            world.coordinator("face", **{"Metrics.Listen": listen, "Health.Listen": health}) as leader:
        leader.wait_line("LEASE_ACQUIRED")
        with world.coordinator("face", **{"Metrics.Listen": other}) as standby:
            for daemon, address, words in ((leader, listen, "leading\n"), (standby, other, "standing by\n")):
                daemon.wait_line("READY")
                _health(f"http://{address}")
                assert fetch(f"http://{address}/readyz")[::2] == (200, words), fetch(f"http://{address}/readyz")
            assert fetch(f"http://{health}/readyz")[::2] == (200, "leading\n"), fetch(f"http://{health}/readyz")
            _answered_beside_silent_clients(listen, health)
            world.wait_adopted(node)
            before = page_when(f"http://{listen}", known, {"nodes": 1, "nodeclaims": 1, "adoptions_total": 1})
            world.delete_node(node)
            world.wait_gone(node)
            world.cluster.wait_for(lambda: not world.claims(node), LIMIT, f"the end of {node}'s claim")
            after = page_when(f"http://{listen}", moved, {
                "nodes": 0, "nodeclaims": 0, "adoptions_total": 1, "finished": 1, "timed": 1, "evictions": PODS
            })
            idle = page(f"http://{other}")
    for p in (before, after, idle):
        _has(p, COORDINATOR_FAMILIES)
        assert p.value("vesper_coordinator_synced") == 1, "it says that it is not synced"
    asked = {verb: after.value(name + "api_requests_total", verb=verb) for verb in ("list", "watch", "evict")}
    figures.add(f"{len(after.families)} families, {len(after.samples)} samples; after a removal: {moved(after)}; "
                f"requests: {asked}")
    assert asked["evict"] >= PODS and asked["watch"] >= 6, asked
    assert (after.value(name + "leader"), idle.value(name + "leader")) == (1, 0), "who leads is wrong"
    assert idle.value(name + "evictions_total", answer="Evicted") == 0, "the standby evicted"


CASES = [agent_faces, coordinator_faces]
