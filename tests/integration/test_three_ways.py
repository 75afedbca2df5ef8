# SPDX-License-Identifier: MIT
"""The same on every way in: the socket, org.rtgrant.Broker1 and RealtimeKit's interface."""

import os
import time

import pytest

import bus as bus_module
import kernel
import ways
from agent import ALICE, BOB, CAROL
from bus import limit_rttime
from companions import Program, has_gi
from daemon import wait_until
from kernel import BATCH, FIFO, OTHER
from kit import knows
from ways import (RULES, UNTOUCHED, WAYS, YES, Place, in_general, of_all, place, policy,  # noqa: F401
                  with_policy)

pytestmark = pytest.mark.skipif(not bus_module.is_here(),
                                reason="no dbus-daemon, polkitd or python3-dbus")

@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def make(request, place):
    """Makes clients of one way."""
    return lambda *arguments, **values: place.client(request.param, *arguments, **values)


# ---- grants ----


def test_own_main_thread(make, place):
    asker = make()

    assert asker.grant(7) == YES
    assert asker.sched() == (FIFO, 7, 0, True)
    lease = place.daemon.lease_of(asker.pid)
    assert (lease.uid, lease.role, lease.priority) == (ALICE, "desktop", 7)


def test_own_thread(make):
    asker = make()
    tid = asker.client.thread()

    assert asker.grant(7, tid=tid) == YES
    assert asker.sched(tid) == (FIFO, 7, 0, True)
    assert asker.sched() == UNTOUCHED


def test_thread_of_another_process_of_the_user(make):
    asker, other = make(), make()
    tid = other.client.thread()

    assert asker.grant(7, pid=other.pid, tid=tid) == YES
    assert asker.grant(8, pid=other.pid) == YES
    assert (other.sched(tid), other.sched()) == ((FIFO, 7, 0, True), (FIFO, 8, 0, True))
    assert asker.sched() == UNTOUCHED


def test_children_do_not_inherit(make):
    asker = make()
    assert asker.grant(7) == YES

    child = asker.client.child()

    assert kernel.sched_getattr(child) == UNTOUCHED


def test_highest_and_lowest(make):
    asker = make()

    for priority in (1, 20, 10):
        assert asker.grant(priority) == YES
        assert asker.sched() == (FIFO, priority, 0, True)


# ---- ends ----


def test_the_end_of_the_thread_ends_the_lease(make, place):
    asker = make()
    tid = asker.client.thread()
    assert asker.grant(tid=tid) == YES and place.daemon.status().n_leases == 1

    asker.client.end_thread(tid)

    wait_until(lambda: place.daemon.status().n_leases == 0, what="the end of the lease")


def test_given_back(make, place):
    asker = make()
    assert asker.grant() == YES

    asker.give_back()

    assert asker.sched()[:3] == (OTHER, 0, 0)
    assert place.daemon.status().n_leases == 0


def test_what_was_there_comes_back(make, place):
    asker = make()
    kernel.sched_setattr(asker.pid, BATCH, nice=5)
    assert asker.grant() == YES

    lease = place.daemon.lease_of(asker.pid)
    assert place.daemon.admin.revoke(lease.id).reason == "none"

    assert asker.sched() == (BATCH, 0, 5, False)


# ---- refusals ----


@pytest.mark.parametrize("priority", [21, 50, 99])
def test_too_high(make, priority):
    asker = make()

    refused = asker.grant(priority)

    assert refused.reason == "priority-limit"
    assert f"asked for SCHED_FIFO {priority}" in refused.words and "1 to 20" in refused.words
    assert asker.sched() == UNTOUCHED


@pytest.mark.parametrize("priority", [0, 100, 2 ** 31 - 1])
def test_no_priority_at_all(make, priority):
    asker = make()

    assert asker.grant(priority).reason == "invalid"
    assert asker.sched() == UNTOUCHED


def kernel_thread():
    return next(int(pid) for pid in os.listdir("/proc")
                if pid.isdigit() and kernel.status(pid, "PPid") == "2")


def test_R16_what_is_not_the_callers_is_as_if_not_there(make, place):
    """Another user's, root's, init, the broker, a kernel thread, nobody's: word for word."""
    asker, other = make(), make(BOB)
    others = [other.pid, os.getpid(), 1, place.daemon.pid, kernel_thread(), 1 << 22]
    before = [kernel.sched_getattr(pid) for pid in others[:-1]]

    said = {(asker.grant(pid=pid).reason, in_general(asker.grant(pid=pid).words))
            for pid in others}
    by_thread = {(asker.grant(pid=pid, tid=pid).reason,
                  in_general(asker.grant(pid=pid, tid=pid).words)) for pid in others}

    assert len(said) == len(by_thread) == 1
    assert said.pop()[0] == by_thread.pop()[0] == "no-such-thread"
    assert [kernel.sched_getattr(pid) for pid in others[:-1]] == before


def test_thread_of_a_process_that_it_is_not_in(make):
    asker, other = make(), make()
    stranger = other.client.thread()

    assert asker.grant(tid=stranger).reason == "no-such-thread"
    assert asker.grant(pid=asker.pid, tid=stranger).reason == "no-such-thread"
    assert asker.grant(pid=stranger).reason == "no-such-thread"  # no process, though a thread
    assert other.sched(stranger) == UNTOUCHED


def test_S49_root_asks_for_a_user(make):
    """As a service that passes on what users ask of it: it can have nothing for them."""
    root, user = make(0), make()

    assert root.grant(pid=user.pid).reason == "no-such-thread"
    assert root.grant(pid=user.pid, tid=user.client.thread()).reason == "no-such-thread"
    assert user.sched() == UNTOUCHED


def test_thread_that_is_dead(make):
    asker = make()
    tid = asker.client.thread()
    asker.client.end_thread(tid)

    assert asker.grant(tid=tid).reason == "no-such-thread"


WRONG = [2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 63, 2 ** 64 - 1]


@pytest.mark.parametrize("number", [*WRONG, "2^32+own"])
def test_S6_numbers_that_no_thread_has(make, place, number):
    asker = make()
    if number == "2^32+own":
        number = 2 ** 32 + asker.pid
    of_broker = kernel.sched_getattr(place.daemon.pid)

    for values in ({"tid": number}, {"pid": number}, {"pid": asker.pid, "tid": number},
                   {"pid": number, "tid": asker.pid}, {"pid": number, "tid": number}):
        assert asker.grant(**values).reason in ("no-such-thread", "invalid"), values
    assert asker.sched() == UNTOUCHED
    assert kernel.sched_getattr(place.daemon.pid) == of_broker


# ---- budgets ----


def test_asking_again_costs_nothing(make, with_policy, place):
    with_policy(policy({"GrantBurst": 2, "GrantRefill": "1h"}))
    asker = make()
    tids = [asker.client.thread() for _ in range(3)]

    assert [asker.grant(tid=tids[0]) for _ in range(20)] == [YES] * 20
    assert asker.grant(tid=tids[1]) == YES

    assert place.daemon.status().n_leases == 2
    assert asker.grant(tid=tids[2]).reason == "rate"
    assert asker.sched(tids[2]) == UNTOUCHED


def test_refusals_cost_nothing(make, with_policy, place):
    with_policy(policy({"GrantBurst": 1, "GrantRefill": "1h"}))
    asker, refused = make(), make(CAROL)

    for _ in range(20):
        assert asker.grant(21).reason == "priority-limit"
        assert refused.grant().reason in (bus_module.NO, "authority-unavailable")
    assert place.daemon.status().n_leases == 0

    assert asker.grant() == YES


def test_quota_of_one_user_is_nobody_elses(make, with_policy):
    with_policy(policy({"ThreadsPerUser": 2}))
    asker, second, other = make(), make(), make(BOB)
    tid = asker.client.thread()
    assert asker.grant(tid=tid) == YES and second.grant() == YES

    refused = asker.grant()
    assert refused.reason == "threads-per-user" and "ThreadsPerUser=" in refused.words
    assert asker.sched() == UNTOUCHED
    assert other.grant() == YES

    asker.client.end_thread(tid)
    wait_until(lambda: asker.grant() == YES, what="the place that is free")


def test_two_users_at_once(make, place):
    askers = [make(), make(BOB)]
    tids = [[asker.client.thread() for _ in range(10)] for asker in askers]

    for i in range(10):
        for asker, own in zip(askers, tids):
            asker.start(1 + i, tid=own[i])
        assert [asker.finish() for asker in askers] == [YES, YES]
        for asker, own in zip(askers, tids):
            assert asker.sched(own[i]) == (FIFO, 1 + i, 0, True)

    held = {(lease.uid, lease.tid) for lease in place.daemon.leases()}
    assert held == {(uid, tid) for uid, own in zip((ALICE, BOB), tids) for tid in own}
    # and neither has the other's
    for asker, own in zip(askers, reversed(tids)):
        assert asker.grant(pid=askers[1 - askers.index(asker)].pid,
                           tid=own[0]).reason == "no-such-thread"


# ---- polkit ----


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
    polkit.start()
    wait_until(lambda: asker.grant() == YES, what="polkit's return")


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


@pytest.fixture(scope="module")
def with_late_polkit(programs, directory):
    """One that answers only when it is told that nobody wants to know any more."""
    if not has_gi():
        pytest.skip("no python3-gi")
    place = Place(programs, directory, polkit=False)
    late = Program(place.bus, "nonsense_polkit.py", "late")
    yield place, late
    late.close()
    place.close()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_S28_polkits_yes_comes_after_the_end(with_late_polkit, way):
    place, late = with_late_polkit
    place.daemon.reload(policy(role={"AllowUsers": None}))
    asker = place.client(way)

    def is_asked_in_vain():
        n = len(late.lines)
        assert asker.grant().reason == "authority-unavailable"
        return any(line.startswith("asked") for line in late.lines[n:]) and n

    n = wait_until(lambda: is_asked_in_vain() is not False, what="a question")
    wait_until(lambda: "cancelled" in late.lines[n:], what="the end of the question")
    assert asker.grant(priority=21).reason == "priority-limit"  # it has been round since
    assert asker.sched() == UNTOUCHED
    assert place.daemon.leases() == []
    place.end_clients()


# ---- the rules that are shipped as examples ----

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
