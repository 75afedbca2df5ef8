# SPDX-License-Identifier: MIT
"""RLIMIT_RTTIME, by which the kernel kills a process for one thread of it: RTTime= of a role.

Lifting the limit of another process takes CAP_SYS_RESOURCE. Where that is missing the broker says
so; what it does with it is shown by a broker whose limits are kept in files, and for real by a test
on a whole machine.
"""

import os
import signal
import time

import pytest

import kernel
import wire
from agent import ALICE, BOB
from bus import limit_rttime
from daemon import assert_granted, assert_refused, policy_text, wait_until
from kernel import FIFO, OTHER
from limits import UNLIMITED

SECOND = 10**6
OWN = (100_000, 200_000)
LIFTED = (10 * SECOND, 10 * SECOND)


@pytest.fixture
def limits(kept_limits):
    return kept_limits.rttime


@pytest.fixture
def broker(kept_limits, make_daemon):
    # its own limit is what it tries its rights on
    own = limit_rttime(60 * SECOND, 60 * SECOND)
    return kept_limits.keep_for(make_daemon(), prepare=own).start()


def catch(agent):
    signal.signal(signal.SIGXCPU, lambda *_: None)


def become_sleep(agent):
    os.execvp("sleep", ["sleep", "1000"])


def limited(broker, soft=OWN[0], hard=OWN[1], uid=ALICE):
    return broker.client(uid, prepare=limit_rttime(soft, hard))


# ---- supervise ----


def test_it_is_lifted_and_put_back(broker, limits):
    client = limited(broker)

    lease = client.acquire()
    assert_granted(lease, FIFO, 5)
    assert limits(client.pid) == LIFTED
    # it is no part of what the lease says that it gives
    assert [x.granted_want for x in broker.leases()] == [wire.WANT_SCHED]

    client.release(lease.id)
    assert limits(client.pid) == OWN
    assert "rttime is not supervised" not in broker.log()


def test_not_for_nice(broker, limits):
    client = limited(broker)
    lease = client.acquire(want=wire.WANT_NICE, nice=-5)
    assert limits(client.pid) == OWN

    assert client.update(lease.id, policy=FIFO, priority=4).reason == "none"
    assert limits(client.pid) == LIFTED
    assert client.update(lease.id, policy=OTHER, priority=0).reason == "none"
    assert limits(client.pid) == OWN


def test_a_handler_goes_on_being_called(broker, limits):
    """Its soft limit stays, and is set again after the kernel's second, as often as need be."""
    client = limited(broker)
    client.run(catch)
    lease = client.acquire()
    assert limits(client.pid) == (OWN[0], LIFTED[1])

    for n in 1, 3:
        limits.set(client.pid, OWN[0] + n * SECOND, LIFTED[1])  # as the kernel does
        wait_until(lambda: limits(client.pid) == (OWN[0], LIFTED[1]), what="the limit")
    assert broker.lease_of(client.pid).state == 0

    limits.set(client.pid, OWN[0] + SECOND, LIFTED[1])
    client.release(lease.id)
    assert limits(client.pid) == OWN


def test_an_executed_program_has_no_handler(broker, limits):
    client = limited(broker)
    client.run(catch)
    assert_granted(client.acquire(lifetime=wire.LIFETIME_THREAD), FIFO, 5)
    assert limits(client.pid) == (OWN[0], LIFTED[1])

    client.start("run", become_sleep)
    wait_until(lambda: limits(client.pid) == LIFTED, what="the limit of a program without one")


def test_a_handler_that_comes_later(broker, limits):
    """As of a program that was started with its priority."""
    client = limited(broker)
    client.acquire()
    assert limits(client.pid) == LIFTED
    client.run(catch)
    wait_until(lambda: limits(client.pid) == (OWN[0], LIFTED[1]), what="the limit")


@pytest.mark.parametrize("own", [(60 * SECOND, 90 * SECOND), (UNLIMITED, UNLIMITED),
                                 (20 * SECOND, UNLIMITED)])
def test_it_is_never_lowered(broker, limits, own):
    client = limited(broker, *(-1 if n == UNLIMITED else n for n in own))
    lease = client.acquire()
    assert limits(client.pid) == own
    client.release(lease.id)
    assert limits(client.pid) == own


def test_the_last_thread_of_a_process_gives_it_back(broker, limits):
    client = limited(broker)
    first = client.acquire().id
    second = client.acquire(tid=client.thread()).id

    client.release(first)
    assert limits(client.pid) == LIFTED
    client.release(second)
    assert limits(client.pid) == OWN


def test_more_for_a_role_whose_threads_may_run_longer(broker, limits):
    broker.reload({"Role desktop": {"RunMax": "5s"}})
    client = limited(broker)
    client.acquire()
    assert limits(client.pid) == (20 * SECOND, 20 * SECOND)


def test_what_its_owner_sets_is_its_own(broker, limits):
    """Left alone, until it asks for something again; and what was set last is what comes back."""
    client = limited(broker)
    lease = client.acquire().id
    limits.set(client.pid, 50_000, 150_000)
    time.sleep(3)  # the broker looks every two seconds
    assert limits(client.pid) == (50_000, 150_000)
    assert broker.lease_of(client.pid).state == 0

    other = client.acquire(tid=client.thread()).id
    assert limits(client.pid) == LIFTED
    client.release(other)
    client.release(lease)
    assert limits(client.pid) == (50_000, 150_000)


def test_no_more_than_before_is_left_to_who_lowered_it(broker, limits):
    client = limited(broker)
    lease = client.acquire().id
    limits.set(client.pid, 5 * SECOND, 5 * SECOND)
    client.release(lease)
    assert limits(client.pid) == OWN


def test_a_reload_puts_it_back(broker, limits):
    client = limited(broker)
    client.acquire()
    broker.reload({"Role desktop": {"RTTime": "keep"}})
    assert limits(client.pid) == OWN
    broker.reload({"Role desktop": {"RTTime": "supervise"}})
    assert limits(client.pid) == LIFTED


def test_a_successor_knows_what_was_there(broker, limits):
    client = limited(broker)
    assert_granted(client.acquire(lifetime=wire.LIFETIME_THREAD), FIFO, 5)
    broker.kill()
    assert limits(client.pid) == LIFTED

    broker.start()
    assert len(broker.leases()) == 1
    assert limits(client.pid) == LIFTED
    broker.stop()
    assert limits(client.pid) == OWN


def test_a_refused_grant_changes_nothing(broker, limits):
    client = limited(broker)
    assert_refused(client.acquire(priority=94), "priority-limit")
    assert limits(client.pid) == OWN


@pytest.mark.skipif(int(kernel.status("self", "CapEff"), 16) & 1 << 24,
                    reason="this machine has CAP_SYS_RESOURCE")
def test_without_the_capability_it_says_so_once_and_goes_on(daemon, limits):
    client = limited(daemon)
    for _ in range(3):
        lease = client.acquire()
        assert_granted(lease, FIFO, 5)
        client.release(lease.id)
    assert limits.real(client.pid) == OWN
    assert daemon.log().count("rttime is not supervised here") == 1


# ---- require, keep, and what kills at once ----


def test_keep(make_daemon, broker, limits):
    broker.reload({"Role desktop": {"RTTime": "keep"}})
    client = limited(broker)
    assert_granted(client.acquire(), FIFO, 5)
    assert limits(client.pid) == OWN


@pytest.mark.parametrize("own, reason", [
    ((-1, -1), "rttime"), ((100_000, 200_001), "rttime"), ((200_000, 200_000), "none"),
    ((4_999, 200_000), "rttime-lethal")])
def test_require_is_realtimekits_rule(make_daemon, own, reason):
    daemon = make_daemon().start({"Role desktop": {"RTTime": "require"}})
    client = limited(daemon, *own)
    answer = client.acquire()
    assert answer.reason == reason
    assert client.acquire(flags=wire.ACQUIRE_DRY_RUN).reason == reason
    # not real-time, not its business
    assert client.acquire(want=wire.WANT_NICE, nice=-3).reason == "none"
    if reason == "rttime":
        assert answer.explanation.rule == f"{daemon.policy_path}:{daemon.line_of('RTTime')}"
        assert_refused(client.update(daemon.lease_of(client.pid).id, policy=FIFO, priority=3), reason)


def test_require_goes_by_what_the_program_has_set(broker, limits):
    """A limit that was lifted for another role does not count as the program's."""
    broker.reload(policy_text({}) + "[Role strict]\nAllowUsers=*\nPriority=1-9\nRTTime=require\n")
    client = limited(broker)
    assert_granted(client.acquire(role="desktop"), FIFO, 5)
    assert limits(client.pid) == LIFTED
    assert_granted(client.acquire(role="strict", tid=client.thread()), FIFO, 5)


@pytest.mark.parametrize("handling", ["supervise", "keep", "require"])
@pytest.mark.parametrize("own", [(0, 0), (1000, 1000), (3000, 200_000)])
def test_a_limit_that_kills_at_once_is_refused(make_daemon, own, handling):
    daemon = make_daemon().start({"Role desktop": {"RTTime": handling}})
    client = limited(daemon, *own)

    answer = client.acquire()
    assert_refused(answer, "rttime-lethal")
    assert "kill" in answer.explanation.text and "setrlimit" in answer.explanation.help
    assert client.sched().policy == OTHER
    # it lives, and somebody else is none the worse
    assert client.hello().reason == "none"
    assert_granted(limited(daemon, uid=BOB).acquire(), FIFO, 5)
