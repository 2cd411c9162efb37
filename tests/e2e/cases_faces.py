# SPDX-License-Identifier: Apache-2.0
"""What the daemons serve over HTTP: health, readiness, and metrics that any Prometheus reads."""

import socket

from promtext import fetch, page

PODS = 5

AGENT_FAMILIES = {
    "vesper_agent_notices_total": "counter", "vesper_agent_looks_total": "counter",
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
    "vesper_coordinator_orphans": "gauge"
}


def _listen():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{s.getsockname()[1]}"


def _has(p, families):
    missing = {name: kind for name, kind in families.items() if p.families.get(name) != kind}
    assert not missing, f"families that are missing or of another type: {missing}"


def _health(base):
    assert fetch(base + "/healthz")[::2] == (200, "ok\n"), fetch(base + "/healthz")
    assert fetch(base + "/nothing")[0] == 404, fetch(base + "/nothing")


def agent_faces(world, figures):
    """the agent's metrics and health: well-formed, and moved by a drain as far as it went"""
    node, _ = world.node(world.unique("face"), "aws:///us-east-1a/i-0123456789abcdef0")
    world.cluster.create_pods(node, PODS, prefix=node)
    world.cluster.wait_running(PODS, node)
    listen = _listen()
    base = f"http://{listen}"
    with world.metadata() as metadata, world.agent(node, metadata, **{"Metrics.Listen": listen}) as agent:
        agent.wait_line("READY")
        _health(base)
        world.cluster.wait_for(lambda: page(base).value("vesper_agent_looks_total", result="none") > 0, 10,
                               "a look that shows nothing")
        before = page(base)
        _has(before, AGENT_FAMILIES)
        assert before.value("vesper_agent_phase", phase="idle") == 1, "it is not idle"
        metadata.interrupt()
        agent.wait_line("NODE_DRAINED")
        world.wait_condition(node, "Drained")
        after = page(base)
    _has(after, AGENT_FAMILIES)
    moved = {
        "notices": after.value("vesper_agent_notices_total", kind="spot"),
        "evictions": after.value("vesper_agent_evictions_total", answer="Evicted"),
        "drained": after.value("vesper_agent_phase", phase="drained"),
        "cordons timed": after.value("vesper_agent_notice_to_cordon_seconds_count"),
        "drains timed": after.value("vesper_agent_notice_to_drained_seconds_count"),
    }
    figures.add(f"{len(after.families)} families, {len(after.samples)} samples; after the drain: {moved}")
    assert moved == {"notices": 1, "evictions": PODS, "drained": 1, "cordons timed": 1, "drains timed": 1}, moved
    assert before.value("vesper_agent_evictions_total", answer="Evicted") == 0, "evictions before the notice"
    assert after.value("vesper_agent_pods_left") == 0, "pods left after the drain"
    looks = [p.value("vesper_agent_looks_total", result="notice") for p in (before, after)]
    assert looks[0] == 0 < looks[1], f"looks that showed a notice, before and after it: {looks}"


def coordinator_faces(world, figures):
    """the coordinators' metrics, health and readiness: well-formed, and moved by a removal"""
    pool = world.pool(world.unique("face"))
    node, _ = world.node(pool)
    world.cluster.create_pods(node, PODS, prefix=node)
    world.cluster.wait_running(PODS, node)
    listen, other = _listen(), _listen()
    with world.coordinator("face", **{"Metrics.Listen": listen}) as leader:
        leader.wait_line("LEASE_ACQUIRED", 40)
        with world.coordinator("face", **{"Metrics.Listen": other}) as standby:
            for daemon, address, words in ((leader, listen, "leading\n"), (standby, other, "standing by\n")):
                daemon.wait_line("READY")
                _health(f"http://{address}")
                assert fetch(f"http://{address}/readyz")[::2] == (200, words), fetch(f"http://{address}/readyz")
            world.wait_adopted(node)
            before = page(f"http://{listen}")
            world.delete_node(node)
            world.wait_gone(node)
            world.cluster.wait_for(lambda: not world.claims(node), 20, f"the end of {node}'s claim")
            after, idle = page(f"http://{listen}"), page(f"http://{other}")
    for p in (before, after, idle):
        _has(p, COORDINATOR_FAMILIES)
        assert p.value("vesper_coordinator_synced") == 1, "it says that it is not synced"
    name = "vesper_coordinator_"
    moved = {
        "finished": after.value(name + "terminations_finished_total"),
        "timed": after.value(name + "termination_duration_seconds_count"),
        "evictions": after.value(name + "evictions_total", answer="Evicted"),
        "nodes": after.value(name + "nodes") - before.value(name + "nodes"),
        "claims": after.value(name + "nodeclaims") - before.value(name + "nodeclaims"),
    }
    asked = {verb: after.value(name + "api_requests_total", verb=verb) for verb in ("list", "watch", "evict")}
    figures.add(f"{len(after.families)} families, {len(after.samples)} samples; after a removal: {moved}; "
                f"requests: {asked}")
    assert moved == {"finished": 1, "timed": 1, "evictions": PODS, "nodes": -1, "claims": -1}, moved
    assert asked["evict"] >= PODS and asked["watch"] >= 6, asked
    assert before.value(name + "adoptions_total") == 1, "the adoption was not counted"
    assert (after.value(name + "leader"), idle.value(name + "leader")) == (1, 0), "who leads is wrong"
    assert idle.value(name + "evictions_total", answer="Evicted") == 0, "the standby evicted"


CASES = [agent_faces, coordinator_faces]
