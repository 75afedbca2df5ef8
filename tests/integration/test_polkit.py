# SPDX-License-Identifier: MIT
"""Where the policy's lists do not decide, polkit does: the real one, on a private bus."""

import time

import pytest

import bus as bus_module
import wire
from agent import ALICE, BOB, CAROL, NOBODY, Connection
import daemon as daemon_module
from daemon import assert_granted, wait_until
from kernel import FIFO, OTHER

pytestmark = pytest.mark.skipif(not bus_module.is_here(), reason="no polkitd, dbus-daemon or python3-dbus")

# up to 65 for bob and nobody in the studio; nobody else is decided on
RULES = """polkit.addRule(function(action, subject) {
    if (action.id != "org.rtgrant.realtime-high") return undefined;
    if (subject.user == "bob" || subject.user == "nobody")
        return parseInt(action.lookup("priority")) <= 65 ? polkit.Result.YES : polkit.Result.NO;
});
"""

POLICY = {
    "Broker": {"Authority": "polkit"},
    "Role desktop": {"AllowUsers": "64001"},
    "Role studio": {"AllowUsers": "64001", "DenyUsers": "64003",
                    "PolkitAction": "org.rtgrant.realtime-high"},
}


@pytest.fixture
def polkit():
    made = bus_module.Bus(RULES)
    yield made
    made.close()


@pytest.fixture
def broker(make_daemon, polkit):
    daemon = make_daemon().start(POLICY, environment=polkit.environment)
    # with the first answer the broker is connected to polkit for good
    asker = daemon.client(NOBODY)
    asker.acquire(role="studio", priority=61, flags=wire.ACQUIRE_DRY_RUN)
    asker.close()
    wait_until(lambda: daemon.status().n_connections <= 1, 5)
    daemon.take_as_base()
    return daemon


def studio(client, priority, **values):
    return client.acquire(role="studio", priority=priority, **values)


def test_yes_and_no_by_priority(broker, polkit):
    client = broker.client(NOBODY)

    assert_granted(studio(client, 65), FIFO, 65)
    refused = studio(broker.client(NOBODY), 66)

    assert refused.reason == bus_module.NO
    assert "org.rtgrant.realtime-high" in refused.explanation.text
    assert any("role=studio policy=fifo priority=66" in line for line in polkit.asked())


def test_lists_come_before_polkit(broker, polkit):
    n = len(polkit.asked())

    assert_granted(studio(broker.client(ALICE), 70), FIFO, 70)
    assert studio(broker.client(CAROL), 61).reason == "denied"

    assert len(polkit.asked()) == n


def test_nobody_is_asked_what_is_refused_anyway(broker, polkit):
    n = len(polkit.asked())

    assert studio(broker.client(NOBODY), 71).reason == "priority-limit"

    assert len(polkit.asked()) == n


def test_the_answer_is_kept_for_the_same_process(broker, polkit):
    client = broker.client(NOBODY)
    first = studio(client, 62)
    n = len(polkit.asked())

    client.release(first.id)
    assert_granted(studio(client, 62), FIFO, 62)
    assert len(polkit.asked()) == n

    studio(broker.client(NOBODY), 62)
    assert len(polkit.asked()) == n + 1


def test_what_is_held_is_not_asked_for_again(broker, polkit):
    client = broker.client(NOBODY)
    held = studio(client, 64)
    n = len(polkit.asked())

    assert_granted(studio(client, 63), FIFO, 63)
    assert client.renew(held.id).reason == "none"

    assert len(polkit.asked()) == n


def test_new_rules_count_at_once(broker, polkit):
    client = broker.client(NOBODY)
    held = studio(client, 62)
    client.release(held.id)

    polkit.write_rules("")

    wait_until(lambda: studio(client, 62, flags=wire.ACQUIRE_DRY_RUN).reason == bus_module.NO, 10)


def test_A11_polkit_is_gone(broker, polkit):
    client, allowed = broker.client(NOBODY), broker.client(ALICE)
    polkit.kill()

    begin = time.monotonic()
    refused = studio(client, 62)

    assert refused.reason == "authority-unavailable"
    assert time.monotonic() - begin < 5
    assert_granted(studio(allowed, 62), FIFO, 62)
    assert client.sched() == (OTHER, 0, 0, False)
    polkit.start()
    wait_until(lambda: studio(client, 62).reason == "none", 10, "polkit's return")


def test_S27_polkit_hangs(broker, polkit, slowness):
    client, allowed = broker.client(NOBODY), broker.client(ALICE)
    polkit.hang()

    client.start("acquire", role="studio", priority=62)
    begin = time.monotonic()
    for priority in range(61, 71):
        assert_granted(studio(allowed, priority), FIFO, priority)
    others_s = time.monotonic() - begin
    refused = client.finish()

    assert others_s < 0.5 * slowness
    assert refused.reason == "authority-unavailable"
    assert time.monotonic() - begin < 10
    polkit.go_on()
    wait_until(lambda: studio(client, 62).reason == "none", 10, "polkit's answer")


def test_the_bus_is_gone(broker, polkit):
    """GLib would end the process with it."""
    client, allowed = broker.client(NOBODY), broker.client(ALICE)
    polkit.kill_bus()

    wait_until(lambda: studio(client, 62).reason == "authority-unavailable", 5)
    assert_granted(studio(allowed, 62), FIFO, 62)


def ask_on_many(agent, n):
    """Asks on @n connections at once; the reasons."""
    connections = [Connection(agent.path) for _ in range(n)]
    for number, connection in enumerate(connections):
        # different questions, so that none is another's answer
        connection.send(wire.encode(wire.ACQUIRE, 1, role="studio", want=wire.WANT_SCHED, policy=FIFO,
                                    priority=61 + number % 5, flags=wire.ACQUIRE_DRY_RUN))
    return [connection.receive().reason for connection in connections]


def test_R18_many_questions_while_polkit_hangs(broker, polkit):
    client, other = broker.client(NOBODY), broker.client(ALICE)
    polkit.hang()

    client.start("run", ask_on_many, 90)
    begin = time.monotonic()
    assert_granted(studio(other, 61), FIFO, 61)
    assert time.monotonic() - begin < 5
    reasons = client.finish()

    assert time.monotonic() - begin < 4
    assert set(reasons) <= {"authority-busy", "authority-unavailable"}
    assert reasons.count("authority-busy") > 0
    polkit.go_on()


def leave_at_once(agent, n):
    """Asks and is gone before the answer."""
    for _ in range(n):
        connection = Connection(agent.path)
        connection.send(wire.encode(wire.ACQUIRE, 1, role="studio", want=wire.WANT_SCHED, policy=FIFO,
                                    priority=66))
        connection.close()


def test_S26_gone_before_the_answer(broker, polkit):
    client = broker.client(NOBODY)

    client.run(leave_at_once, 100)

    wait_until(lambda: broker.leases() == [], 5)
    assert client.sched() == (OTHER, 0, 0, False)
    wait_until(lambda: studio(client, 62).reason == "none", 5)


def test_a_reload_while_polkit_thinks(broker, polkit):
    """What it then says was about another policy."""
    client = broker.client(NOBODY)
    polkit.hang()
    client.start("acquire", role="studio", priority=65)
    wait_until(lambda: broker.status().n_connections > 1, 5)
    broker.write_policy({**POLICY, "Role studio": {**POLICY["Role studio"], "Priority": "61-63"}})
    assert broker.admin.request(wire.RELOAD).reason == "none"
    polkit.go_on()

    # the latter if the reload came before the question
    assert client.finish().reason in ("authority-unavailable", "priority-limit")
    assert client.sched() == (OTHER, 0, 0, False)


def test_what_one_could_get_is_told_without_asking(broker, polkit):
    n = len(polkit.asked())

    offers = {offer.role: offer.reason for offer in broker.client(NOBODY).hello().offers}

    assert offers["studio"] in ("needs-authorization", 32)
    assert len(polkit.asked()) == n


# ---- what comes beside scheduling has actions of its own ----

LATENCY_RULES = RULES + """polkit.addRule(function(action, subject) {
    if (action.id == "org.rtgrant.cpu-latency" && subject.user == "nobody") return polkit.Result.YES;
    if (action.id.indexOf("org.rtgrant.") == 0 && action.id != "org.rtgrant.realtime-high")
        return polkit.Result.NO;
});
"""
RESOURCES = {"CpuLatency": "10us", "BlockQueue": "4-64"}


def resources(broker, polkit):
    changed = {**POLICY, "Role studio": {**POLICY["Role studio"], **RESOURCES}}
    broker.reload(daemon_module.policy_text(changed))
    polkit.write_rules(LATENCY_RULES)


def test_each_kind_is_asked_about(broker, polkit):
    resources(broker, polkit)
    client = broker.client(NOBODY)
    both = wire.WANT_SCHED | wire.WANT_CPU_LATENCY

    granted = wait_until(
        lambda: (answer := client.acquire(want=both, policy=FIFO, priority=62, role="studio",
                                          cpu_latency_us=500)).reason == "none" and answer, 10)

    assert_granted(granted, FIFO, 62)
    assert granted.cpu_latency_us == 500
    asked = "\n".join(polkit.asked())
    assert "org.rtgrant.realtime-high" in asked and "org.rtgrant.cpu-latency" in asked


def test_a_kind_that_polkit_does_not_give_refuses_the_whole(broker, polkit):
    resources(broker, polkit)
    client = broker.client(NOBODY)
    wants = {
        "want": wire.WANT_SCHED | wire.WANT_CPU_LATENCY | wire.WANT_BLOCK_QUEUE,
        "policy": FIFO, "priority": 62, "role": "studio",
        "cpu_latency_us": 500, "block": "loop0", "block_max_sectors_kb": 32,
    }

    refused = wait_until(lambda: (answer := client.acquire(**wants)) and
                         "org.rtgrant.block-queue" in answer.explanation.text and answer, 10)

    assert refused.reason == "not-authorized"
    assert client.sched() == (OTHER, 0, 0, False)
    assert client.list() == []

    clamped = client.acquire(**wants, flags=wire.ACQUIRE_CLAMP)
    assert clamped.reason == "none" and clamped.flags & wire.ANSWER_CLAMPED
    assert clamped.granted_want == wire.WANT_SCHED | wire.WANT_CPU_LATENCY


def test_lists_decide_about_each_kind_too(broker, polkit):
    resources(broker, polkit)
    client = broker.client(ALICE)
    n = len(polkit.asked())

    answer = client.acquire(want=wire.WANT_CPU_LATENCY, role="studio", cpu_latency_us=400)

    assert (answer.reason, answer.cpu_latency_us) == ("none", 400)
    assert len(polkit.asked()) == n
