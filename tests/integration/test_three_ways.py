# SPDX-License-Identifier: MIT
"""The same on every way in: the socket, org.rtgrant.Broker1 and RealtimeKit's interface."""

import os

import pytest

import bus as bus_module
import kernel
from agent import ALICE, BOB, CAROL
from daemon import wait_until
from kernel import BATCH, FIFO, OTHER
from ways import (UNTOUCHED, YES, in_general, make, of_all, place, policy,  # noqa: F401
                  with_policy)

pytestmark = pytest.mark.skipif(not bus_module.is_here(),
                                reason="no dbus-daemon, polkitd or python3-dbus")


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
