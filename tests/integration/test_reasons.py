# SPDX-License-Identifier: MIT
"""What RealtimeKit answers with the same four words has a reason and a remedy each, on every way."""

import re

import pytest

import bus as bus_module
from agent import ALICE, BOB, CAROL
from broker1 import Broker1
from bus import OK, Bus, Kit, limit_rttime
from kernel import OTHER
from kit import policy, serve  # noqa: F401
from test_kernel import join

pytestmark = pytest.mark.skipif(not bus_module.is_here(), reason="no polkitd or dbus-daemon")

RULES = """polkit.addRule(function(action, subject) {
    return subject.user == "carol" ? polkit.Result.NO : polkit.Result.YES;
});
"""


@pytest.fixture
def bus():
    made = Bus(RULES)
    yield made
    made.close()


def over_socket(bus, client, priority, pid=0, tid=0):
    answer = client.acquire(role="desktop", priority=priority, pid=pid, tid=tid)
    return "" if answer.reason == "none" else (answer.explanation.text, answer.explanation.help)


def in_parts(message):
    """Of "sentence [file:line]; remedy"; the line is there if a rule decided."""
    text, _, remedy = re.sub(r" \[[^]]+:\d+\]; ", "\n", message).partition("\n")
    return (text, remedy) if remedy else tuple(message.split("; ", 1))


def over_broker1(bus, client, priority, pid=0, tid=0):
    reply = Broker1(bus, client).acquire(role="desktop", policy="rr", priority=priority, pid=pid,
                                         tid=tid)
    return "" if not reply.error else in_parts(reply.message)


def over_realtimekit(bus, client, priority, pid=0, tid=0):
    reply = Kit(bus, client).realtime_of(pid or client.pid, tid or pid or client.pid, priority)
    return "" if reply == OK else in_parts(reply.text)


WAYS = [over_socket, over_broker1, over_realtimekit]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_six_refusals_have_six_reasons_and_remedies(serve, bus, budgetless_group, way):
    daemon = serve(policy(GrantBurst=3, GrantRefill="1h"))

    def client(uid, prepare=limit_rttime()):
        return daemon.client(uid, prepare=prepare)

    def in_the_group():
        limit_rttime()()
        join(budgetless_group)()

    alice, bob = client(ALICE), client(BOB)
    poor = client(ALICE, in_the_group)
    assert [way(bus, bob, 5, tid=bob.thread()) for _ in range(3)] == ["", "", ""]
    said = {
        "priority": way(bus, alice, 21),
        "polkit": way(bus, client(CAROL), 5),
        "uid": way(bus, alice, 5, pid=bob.pid),
        "group": way(bus, poor, 5),
        "window": way(bus, bob, 5, tid=bob.thread()),
    }
    if way is over_realtimekit:  # the others do not ask for a limit that they can do without
        said["rttime"] = way(bus, client(ALICE, None), 5)

    texts = {re.sub(r"\d+", "N", answer[0]) for answer in said.values()}
    remedies = {re.sub(r"\d+", "N", answer[1]) for answer in said.values()}
    assert len(texts) == len(remedies) == len(said), said
    assert all(len(text) > 20 for text in texts | remedies), said
    for name, word in (("priority", "1 to 20"), ("polkit", "polkit"), ("uid", "not yours"),
                       ("group", budgetless_group.name), ("window", "short time")):
        assert word in said[name][0], (name, said[name])
    assert "RLIMIT_RTTIME" in said.get("rttime", ["RLIMIT_RTTIME"])[0]
    assert alice.sched() == poor.sched() == (OTHER, 0, 0, False)
