# SPDX-License-Identifier: MIT
"""What polkit may do to the broker: ask a user who never answers, answer nonsense, or too late."""

import time

import pytest

import bus as bus_module
import wire
from agent import ALICE, BOB, Client, Connection
from bus import OK, Bus, Kit, limit_rttime
from companions import agent_for, has_gi, start, start_time  # noqa: F401
from daemon import assert_granted, wait_until
from kernel import FIFO, OTHER

pytestmark = pytest.mark.skipif(not bus_module.is_here() or not has_gi(),
                                reason="no polkitd, dbus-daemon, python3-dbus or python3-gi")

# bob may; alice has to prove that she is alice
RULES = """polkit.addRule(function(action, subject) {
    if (action.id.indexOf("org.rtgrant.") != 0 && action.id.indexOf("org.freedesktop.Rea") != 0)
        return undefined;
    return subject.user == "alice" ? polkit.Result.AUTH_SELF : polkit.Result.YES;
});
"""

# of alice, without a password
CHALLENGED = "not-authorized"

POLICY = {
    "Broker": {"Authority": "polkit", "RealtimeKitRole": "desktop"},
    "Role desktop": {"AllowUsers": None, "PolkitAction": "org.rtgrant.realtime"},
    "Role studio": {"AllowUsers": "0"},
}


@pytest.fixture
def bus(request):
    made = Bus(RULES, polkit=getattr(request, "param", True))
    yield made
    made.close()


@pytest.fixture
def broker(make_daemon, bus):
    daemon = make_daemon().start(POLICY, environment=bus.environment)
    wait_until(lambda: bus_module.owner_of(bus, bus_module.KIT) == daemon.pid)
    if bus.polkitd:
        asker = daemon.client(BOB)
        wait_until(lambda: desktop(asker, flags=wire.ACQUIRE_DRY_RUN).reason == "none")
        asker.close()
    daemon.take_as_base()
    return daemon


def desktop(client, **values):
    return client.acquire(role="desktop", **values)


# ---- a user is asked ----


def test_R17_nobody_is_asked_who_did_not_allow_it(broker, bus, start):
    client = broker.client(ALICE)
    agent = agent_for(start, bus, client, "yes")

    assert desktop(client).reason == CHALLENGED
    assert agent.lines == []


def test_the_user_says_yes(broker, bus, start):
    client = broker.client(ALICE)
    agent = agent_for(start, bus, client, "yes")

    assert_granted(desktop(client, flags=wire.ACQUIRE_MAY_ASK), FIFO, 5)
    assert agent.lines == ["asked"]


def test_the_user_says_no(broker, bus, start):
    client = broker.client(ALICE)
    agent = agent_for(start, bus, client, "no")

    refused = desktop(client, flags=wire.ACQUIRE_MAY_ASK)
    assert (refused.reason, "right one" in refused.explanation.text) == ("not-authorized", True)
    assert agent.lines == ["asked"]
    assert client.sched() == (OTHER, 0, 0, False)


def ask_and_keep_waiting(agent, n):
    """Different questions, each on a connection of its own, none of them waited for."""
    agent.kept = [Connection(agent.path) for _ in range(n)]
    for number, connection in enumerate(agent.kept):
        connection.send(wire.encode(wire.ACQUIRE, 1, role="desktop", want=wire.WANT_SCHED,
                                    policy=FIFO, priority=1 + number,
                                    flags=wire.ACQUIRE_MAY_ASK))


def reasons_so_far(agent, n):
    """Of the first @n answers, on whichever connections they come."""
    import select

    reasons = []
    while len(reasons) < n:
        readable, _, _ = select.select([each.socket for each in agent.kept], [], [], 30)
        assert readable, f"only {reasons}"
        for each in [each for each in agent.kept if each.socket in readable]:
            reasons.append(each.receive().reason)
            agent.kept.remove(each)
            each.close()
    return reasons


def leave_all(agent):
    for connection in agent.kept:
        connection.close()
    agent.kept = []


def test_S29_R18_an_agent_that_never_answers(broker, bus, start):
    """Two questions of a user wait at most; others are served; all is taken back at the end."""
    client, other = broker.client(ALICE), broker.client(BOB)
    agent = agent_for(start, bus, client, "never")

    client.run(ask_and_keep_waiting, 12)
    assert set(client.run(reasons_so_far, 10)) == {"authority-busy"}
    assert_granted(desktop(other), FIFO, 5)
    wait_until(lambda: agent.lines.count("asked") >= 1, what="the question to the user")
    assert agent.lines.count("asked") <= 2
    client.run(leave_all)

    wait_until(lambda: agent.lines.count("cancelled") == agent.lines.count("asked"),
               what="the end of the questions")
    assert client.sched() == (OTHER, 0, 0, False)
    wait_until(lambda: desktop(client).reason == CHALLENGED)


def test_S29_after_25_s_the_users_yes_is_for_nothing(plain_build, broker, bus, start):
    """The agent gives it when it is told that the question is taken back."""
    client, second, other = broker.client(ALICE), broker.client(ALICE), broker.client(BOB)
    agent = agent_for(start, bus, client, "late")

    begin = time.monotonic()
    client.start("acquire", role="desktop", flags=wire.ACQUIRE_MAY_ASK)
    wait_until(lambda: "asked" in agent.lines, what="the question to the user")
    assert_granted(desktop(other), FIFO, 5)  # nobody waits for that but who asked
    assert desktop(second).reason == CHALLENGED
    assert not client.has_finished()
    refused = client.finish()

    assert (refused.reason, "in time" in refused.explanation.text) == ("not-authorized", True)
    assert "polkit cannot be asked" not in broker.log()  # it is well
    assert 24 < time.monotonic() - begin < 29
    wait_until(lambda: "answered" in agent.lines, what="the late answer")
    assert desktop(second).reason == CHALLENGED
    assert client.sched() == (OTHER, 0, 0, False)
    assert [lease.uid for lease in broker.leases()] == [BOB]


def test_R17_RealtimeKit_never_asks_a_user(broker, bus, start):
    kit = Kit(bus, Client(None, ALICE, prepare=limit_rttime()))
    try:
        agent = agent_for(start, bus, kit, "yes")
        assert kit.realtime(0, 5).error == "AccessDenied"
        assert agent.lines == []
    finally:
        kit.client.kill()


# ---- polkit answers as it should not ----

no_polkit = pytest.mark.parametrize("bus", [False], indirect=True, ids=["without-polkitd"])


@no_polkit
def test_S28_an_answer_that_comes_too_late(broker, bus, start):
    polkit = start(bus, "nonsense_polkit.py", "late")
    client = broker.client(ALICE)

    wait_until(lambda: desktop(client).reason == "authority-unavailable" and polkit.lines)
    wait_until(lambda: "cancelled" in polkit.lines, what="the end of the question")
    leaving = broker.client(BOB)
    n = len(polkit.lines)
    leaving.start("acquire", role="desktop")
    wait_until(lambda: any(line.startswith("asked") for line in polkit.lines[n:]))
    leaving.kill()
    wait_until(lambda: "cancelled" in polkit.lines[n:])

    # by now it has said yes to both
    assert client.sched() == (OTHER, 0, 0, False)
    assert broker.leases() == []
    broker.companions.remove(leaving)


@no_polkit
def test_a_reload_that_asks_polkit_no_more(broker, bus, start):
    """Who waits for its answer gets one at once, and nothing is left of the question."""
    polkit = start(bus, "nonsense_polkit.py", "late")
    client = broker.client(ALICE)
    client.start("acquire", role="desktop", flags=wire.ACQUIRE_MAY_ASK)
    wait_until(lambda: any(line.startswith("asked") for line in polkit.lines), what="the question")

    begin = time.monotonic()
    broker.reload({**POLICY, "Broker": {"Authority": "static"}})
    refused = client.finish()

    assert time.monotonic() - begin < 15  # the question itself would have had 25 s
    assert refused.reason in ("authority-unavailable", "not-allowed")
    wait_until(lambda: "cancelled" in polkit.lines, what="the end of the question")
    assert client.sched() == (OTHER, 0, 0, False)
    assert broker.leases() == []


@no_polkit
def test_S30_who_polkit_is_asked_about(broker, bus, start):
    polkit = start(bus, "nonsense_polkit.py", "yes")
    client = broker.client(ALICE)

    granted = wait_until(lambda: (answer := desktop(client)).reason == "none" and answer)

    assert_granted(granted, FIFO, 5)
    line = (f"asked unix-process pid=u:{client.pid} start-time=t:{start_time(client.pid)} "
            f"uid=i:{ALICE}")
    wait_until(lambda: line in polkit.lines, what="the line about the question")

    kit = Kit(bus, Client(None, BOB, prepare=limit_rttime()))
    try:
        assert wait_until(lambda: kit.realtime(0, 5) == OK)
    finally:
        kit.client.kill()
    wait_until(lambda: any(line.startswith("asked system-bus-name name=s::")
                           for line in polkit.lines), what="the line about the question")


def test_S31_users_beyond_what_an_int_holds(broker):
    """polkit's numbers are signed; nobody has such an entry in the user database."""
    for uid in (4000000000, 4294967294):
        assert_granted(desktop(broker.client(uid)), FIFO, 5)
        assert desktop(broker.client(ALICE)).reason == CHALLENGED


def test_two_users_at_once(broker, bus):
    """Each gets its own answer, also where they ask the same in the same moment."""
    first, second = broker.client(ALICE), broker.client(BOB)
    for _ in range(20):
        first.start("acquire", role="desktop", flags=wire.ACQUIRE_DRY_RUN)
        second.start("acquire", role="desktop", flags=wire.ACQUIRE_DRY_RUN)
        assert first.finish().reason == CHALLENGED
        assert second.finish().reason == "none"
        bus.write_rules(RULES)  # so that no answer is remembered for ever
        time.sleep(0.01)
