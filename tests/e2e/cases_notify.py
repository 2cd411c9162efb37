# SPDX-License-Identifier: Apache-2.0
"""[Notify]: others are told of each phase, by a receiver that is there, or was down for a while."""

import time

from daemons import LIMIT
from receiver import PATH, Receiver

SECRET = b"a key of the test's own"
TOKEN = "b3arer-t0ken"


def _files(world, receiver):
    """The settings of [Notify], each secret in a file of its own."""
    texts = {"url": receiver.url + "\n", "secret": SECRET.decode() + "\n", "headers": f"Authorization: Bearer {TOKEN}\n"}
    paths = {}
    for name, text in texts.items():
        paths[name] = world.path(world.unique(f"notify-{name}"))
        with open(paths[name], "w", encoding="utf-8") as f:
            f.write(text)
    return {"Notify.UrlFile": paths["url"], "Notify.SecretFile": paths["secret"], "Notify.HeadersFile": paths["headers"]}


def _check_secrets(daemon, message):
    """What was a secret came to the receiver, and stands nowhere else."""
    assert message.headers["Authorization"] == f"Bearer {TOKEN}", message.headers
    with open(daemon.log_path, encoding="utf-8") as f:
        log = f.read()
    with open(f"/proc/{daemon.pid}/cmdline", "rb") as f:
        arguments = f.read().decode()
    for secret in (PATH, TOKEN, SECRET.decode()):
        assert secret not in log and secret not in arguments, f"{daemon.name} tells '{secret}'"


def _check_messages(messages, node_uid):
    for m in messages:
        assert m.verifies(SECRET), f"the signature of {m.phase} does not verify: {m.headers}"
        assert m.json["phase"] == m.phase and m.json["key"] == m.headers["Idempotency-Key"], (m.json, m.headers)
        assert m.json["nodeUID"] == node_uid, m.json
    keys = {m.headers["Idempotency-Key"] for m in messages}
    assert len(keys) == len(messages), "two phases have one key"


def notified_interruption(world, figures):
    """others are told of an interruption: in order, signed, and later where the receiver was down"""
    node, _ = world.node(world.unique("told"), "aws:///us-east-1a/i-0123456789abcdef0")
    uid = world.get_node(node)["metadata"]["uid"]
    world.cluster.create_pods(node, 5, prefix=node)
    world.cluster.wait_running(5, node)
    with Receiver() as receiver, world.metadata() as metadata, \
            world.agent(node, metadata, **_files(world, receiver)) as agent:
        agent.wait_line("READY")
        receiver.status = 503
        begin = time.time()
        metadata.interrupt(after=600)
        agent.wait_line("NODE_DRAINED")
        drained = time.time() - begin
        world.cluster.wait_for(lambda: receiver.messages(), LIMIT, "a first try")
        agent.wait_line("NOTIFY_FAILING")
        assert not receiver.phases(node), receiver.phases(node)
        receiver.status = 204
        expected = ["noticed", "cordoned", "draining", "drained"]
        world.cluster.wait_for(lambda: len(receiver.phases(node)) >= len(expected), LIMIT, "all phases are told")
        assert receiver.phases(node) == expected, receiver.phases(node)
        agent.wait_line("NOTIFY_BACK")
        taken = receiver.taken(node)
        _check_messages(taken, uid)
        assert taken[0].json["kind"] == "spot" and taken[0].json["reporter"] == "vesper-agent", taken[0].json
        _check_secrets(agent, taken[0])

        figures.add("the agent starts again: it tells where it goes on, by the key that it had")
        agent.kill()
        agent.start()
        world.cluster.wait_for(lambda: len(receiver.phases(node)) > len(expected), LIMIT, "the phase is told again")
        again = receiver.taken(node)[-1]
        assert again.phase == "drained" and again.headers["Idempotency-Key"] == taken[-1].headers["Idempotency-Key"], again
    figures.add(f"drained {drained:.1f} s after the notice, while the receiver was down")


def notified_removal(world, figures):
    """others are told of a removal, from the deletion of the Node to the end of its machine"""
    pool = world.pool(world.unique("told"))
    node, later = (world.node(pool)[0] for _ in range(2))
    uid = world.get_node(node)["metadata"]["uid"]
    world.cluster.create_pods(node, 2, prefix=node, stop=1)
    world.cluster.wait_running(2, node)
    expected = ["noticed", "cordoned", "draining", "drained", "ended"]
    with Receiver() as receiver, world.coordinators(**_files(world, receiver)) as (leader, _):
        world.wait_adopted(node, later)
        # Any further phase of the first node would arrive before the last phase of the second.
        for name in node, later:
            world.delete_node(name)
            world.wait_gone(name)
            world.cluster.wait_for(lambda n=name: receiver.phases(n)[-1:] == expected[-1:], LIMIT, f"the last phase of {name} is told")
        assert receiver.phases(node) == expected, receiver.phases(node)
        taken = receiver.taken(node)
        _check_messages(taken, uid)
        assert {m.json["reporter"] for m in taken} == {"vesper-coordinator"}, "told by another"
        assert {m.json["kind"] for m in taken} == {"deletion"}, [m.json for m in taken]
        _check_secrets(leader, taken[0])
    figures.add(f"phases: {' '.join(expected)}")


CASES = [notified_interruption, notified_removal]
