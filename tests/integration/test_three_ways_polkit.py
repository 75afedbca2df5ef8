# SPDX-License-Identifier: MIT
"""polkit's yes, no and silence on every way in, and what it may do wrong."""

import time

import pytest

import bus as bus_module
import ways
from agent import ALICE, BOB, CAROL
from bus import limit_rttime
from companions import Program, has_gi
from daemon import wait_until
from kernel import FIFO, OTHER
from kit import knows
from ways import (RULES, UNTOUCHED, WAYS, YES, Place, make, of_all, place, policy,  # noqa: F401
                  with_policy)

pytestmark = pytest.mark.skipif(not bus_module.is_here(),
                                reason="no dbus-daemon, polkitd or python3-dbus")


@pytest.fixture
def polkit(place, with_policy):
    """It decides about all, and is there and well before and afterwards."""

    def answers():
        asker = place.client(ways.Socket)
        wait_until(lambda: asker.grant() == YES, what="polkit's answer")
        asker.client.kill()
        place.made.remove(asker.client)

    with_policy(policy(role={"AllowUsers": None}))
    answers()
    yield place.bus
    if place.bus.polkitd.poll() is not None:
        place.bus.start()
    place.bus.go_on()
    answers()


def test_polkit_says_yes(make, polkit):
    asker = make()
    n = len(polkit.asked())

    assert asker.grant_with_patience() == YES
    assert asker.sched() == (FIFO, 5, 0, True)
    assert len(polkit.asked()) > n


def test_polkit_says_no(make, polkit):
    asker = make(CAROL)

    refused = asker.grant_with_patience()

    assert refused.reason == bus_module.NO and "polkit" in refused.words
    assert asker.sched() == UNTOUCHED


def test_polkit_is_gone(make, polkit):
    known, asker = make(), make()
    assert known.grant_with_patience() == YES
    polkit.kill()

    begin = time.monotonic()
    refused = asker.grant()

    assert refused.reason == "authority-unavailable" and "systemctl status polkit" in refused.words
    assert time.monotonic() - begin < 5
    assert asker.sched() == UNTOUCHED
    assert known.grant() == YES  # which it has


def waits(asker, place):
    """Whether its question is on its way."""
    return (place.daemon.status().n_connections > 1 if isinstance(asker, ways.Socket)
            else knows(place.daemon, asker.pid))


def test_S27_polkit_hangs(make, place, polkit):
    known, asker, other = make(), make(), make(BOB)
    assert known.grant_with_patience() == other.grant_with_patience() == YES
    polkit.hang()

    def others_are_served_meanwhile():
        asker.start()
        assert known.grant() == YES and other.grant() == YES
        first = not asker.client.has_finished()
        assert asker.finish().reason == "authority-unavailable"
        return first

    begin = time.monotonic()
    assert others_are_served_meanwhile() or others_are_served_meanwhile()
    assert time.monotonic() - begin < 8
    # what it says now is too late
    polkit.go_on()
    wait_until(lambda: other.grant(6, tid=other.client.thread()) == YES)
    assert asker.sched() == UNTOUCHED


def test_S28_polkit_dies_in_the_middle(make, place, polkit):
    asker = make()
    polkit.hang()
    asker.start()
    wait_until(lambda: waits(asker, place), what="the question")
    polkit.kill()

    assert asker.finish().reason == "authority-unavailable"
    assert asker.sched() == UNTOUCHED


@pytest.mark.parametrize("uid", [CAROL, ALICE], ids=["refused", "allowed"])
def test_S26_gone_up_to_20_ms_after_the_request(make, place, polkit, uid):
    askers, other = [make(uid), make(uid)], make(BOB)
    n_fds = place.daemon.n_fds()

    for asker in askers:
        asker.ask_and_leave(100)
    assert other.grant_with_patience() == YES
    for asker in askers:
        asker.client.finish()

    if uid == CAROL:
        assert [asker.sched() for asker in askers] == [UNTOUCHED, UNTOUCHED]
        assert {lease.uid for lease in place.daemon.leases()} == {BOB}
    place.end_clients()
    wait_until(lambda: place.daemon.n_fds() <= n_fds, what="the end of all descriptors")


def test_S26_gone_before_the_answer(make, place, polkit):
    leaving, other = make(), make(BOB)
    polkit.hang()
    leaving.start()
    wait_until(lambda: waits(leaving, place), what="the question")
    leaving.client.kill()
    place.made.remove(leaving.client)
    polkit.go_on()

    wait_until(lambda: other.grant() == YES, what="polkit's answer")
    assert [lease.uid for lease in place.daemon.leases()] == [BOB]


def test_S31_a_user_beyond_what_an_int_holds(make, polkit):
    """polkit's own numbers of users are signed."""
    asker, other = make(bus_module.DAVE), make(CAROL)

    assert asker.grant_with_patience() == YES
    assert other.grant_with_patience().reason == bus_module.NO
    assert asker.sched() == (FIFO, 5, 0, True)


def test_S32_by_the_actions_own_defaults_a_session_is_needed(make, place, polkit):
    """A service or cron job has none."""
    enter, limit = polkit.session(ALICE), limit_rttime()

    def in_session():
        enter()
        limit()

    polkit.write_rules("")
    try:
        wait_until(lambda: make().grant().reason == bus_module.NO, what="the end of the rules")
        assert make(prepare=in_session).grant_with_patience() == YES
    finally:
        polkit.write_rules(RULES)


# ---- something else in polkit's place ----


@pytest.fixture(scope="module")
def without_polkit(programs, directory):
    made = Place(programs, directory, polkit=False)
    made.daemon.reload(policy(role={"AllowUsers": None}))
    yield made
    made.close()


@pytest.fixture
def answering(without_polkit):
    """Starts one that answers in a way of its own."""
    if not has_gi():
        pytest.skip("no python3-gi")
    started = []

    def start(mode):
        started.append(Program(without_polkit.bus, "nonsense_polkit.py", mode))
        return without_polkit, started[-1]

    yield start
    without_polkit.end_clients()
    for each in started:
        each.close()


@pytest.mark.parametrize("mode", ["error", "nothing", "text", "half", "challenge"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_S28_R19_nonsense_is_no(answering, way, mode):
    place, polkit = answering(mode)
    asker = place.client(way)
    reason = "not-authorized" if mode == "challenge" else "authority-unavailable"

    wait_until(lambda: asker.grant().reason == reason and polkit.lines, what="the question")

    assert asker.sched() == UNTOUCHED
    assert place.daemon.leases() == []


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_S28_polkits_yes_comes_after_the_end(answering, way):
    """When it is told that nobody wants to know any more."""
    place, polkit = answering("late")
    asker = place.client(way)

    def is_asked_in_vain():
        assert asker.grant().reason == "authority-unavailable"
        return any(line.startswith("asked") for line in polkit.lines)

    wait_until(is_asked_in_vain, what="a question")
    wait_until(lambda: "cancelled" in polkit.lines, what="the end of the question")
    assert asker.grant(priority=21).reason == "priority-limit"  # it has been round since
    assert asker.sched() == UNTOUCHED
    assert place.daemon.leases() == []


# ---- the rules that are shipped as examples ----

BANDS = {
    "Role desktop": {"AllowUsers": None, "PolkitAction": "org.rtgrant.realtime-high"},
    "Role audio-client": {"Policy": "fifo", "Priority": "61-75", "ThreadsPerUser": 100,
                          "PolkitAction": "org.rtgrant.realtime-high"},
}


def test_the_example_for_group_realtime(make, place, with_policy):
    """Up to 70, to its members, as audio clients: and nothing else."""
    place.bus.write_rules((bus_module.ACTIONS / "50-rtgrant-by-request.rules").read_text())

    def try_as(uid, role, priority):
        asker = make(uid)
        reason = asker.grant_with_patience(priority, role=role).reason
        assert asker.sched()[:2] == ((FIFO, priority) if reason == "none" else (OTHER, 0))
        return reason

    try:
        with_policy({**policy({"RealtimeKitRole": "audio-client"}), **BANDS})
        wait_until(lambda: try_as(BOB, "audio-client", 70) == "none", what="the new rules")
        assert try_as(BOB, "audio-client", 61) == "none"
        assert try_as(BOB, "audio-client", 71) == bus_module.NO
        assert try_as(BOB, "audio-client", 76) == "priority-limit"
        assert try_as(ALICE, "audio-client", 61) == bus_module.NO
        with_policy({**policy({"RealtimeKitRole": "desktop"}), **BANDS})
        assert try_as(BOB, "desktop", 10) == bus_module.NO
    finally:
        place.bus.write_rules(RULES)
