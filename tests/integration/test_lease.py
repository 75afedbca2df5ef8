# SPDX-License-Identifier: MIT
"""How long a grant lasts, and what is there when it ends."""

import os
import time

import pytest

import kernel
import wire
from agent import ALICE, BOB, CAROL
from daemon import assert_granted, assert_refused, wait_until
from kernel import BATCH, FIFO, IDLE, OTHER, RR

AT_ONCE_S = 1
BOTH = wire.WANT_SCHED | wire.WANT_NICE


def set_before(client, policy=OTHER, priority=0, nice=0, flags=0):
    """As root: how the thread is found."""
    kernel.sched_setattr(client.pid, policy, priority, nice, flags)
    before = client.sched()
    assert before.policy == policy
    return before


# ---- lifetimes ----


def test_a_lease_of_the_thread_outlives_the_connection(either):
    client = either.start().client(BOB)
    lease = client.acquire(lifetime=wire.LIFETIME_THREAD).id

    client.reconnect()
    wait_until(lambda: either.status().n_connections == 2, what="the end of the first connection")

    (listed,) = client.list()
    assert (listed.id, listed.lifetime) == (lease, wire.LIFETIME_THREAD)
    assert client.sched() == (FIFO, 5, 0, True)
    assert client.release(lease).reason == "none"
    assert client.sched() == (OTHER, 0, 0, False)


def test_a_lease_of_the_connection_ends_with_it(either):
    client = either.start().client(BOB)
    client.acquire(lifetime=wire.LIFETIME_CONNECTION)
    client.acquire(tid=client.thread(), lifetime=wire.LIFETIME_CONNECTION)
    assert client.hello().n_leases_own == 2

    client.reconnect()

    wait_until(lambda: client.sched() == (OTHER, 0, 0, False), AT_ONCE_S)
    assert client.list() == []


def test_a_lease_of_the_connection_ends_with_its_process(either):
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB)
    client.acquire(pid=target.pid, lifetime=wire.LIFETIME_CONNECTION)

    client.kill()

    wait_until(lambda: target.sched() == (OTHER, 0, 0, False), AT_ONCE_S)
    wait_until(lambda: daemon.leases() == [], AT_ONCE_S)


def test_a_lease_for_seconds_ends_by_itself(either):
    client = either.start().client(BOB)
    begin = time.monotonic()

    answer = client.acquire(lifetime=wire.LIFETIME_SECONDS, lifetime_s=1)
    (listed,) = client.list()
    assert listed.lifetime == wire.LIFETIME_SECONDS
    assert 0 < listed.expires_ms - listed.since_ms <= 1000
    assert_granted(answer, FIFO, 5)

    wait_until(lambda: client.sched() == (OTHER, 0, 0, False), 3)
    assert 0.9 < time.monotonic() - begin < 10
    assert client.list() == []


def test_a_lease_for_seconds_is_renewed(daemon):
    client = daemon.client(BOB)
    lease = client.acquire(lifetime=wire.LIFETIME_SECONDS, lifetime_s=1).id
    begin = time.monotonic()

    (first,) = client.list()
    assert client.renew(lease, lifetime_s=2).reason == "none"
    (second,) = client.list()

    assert second.expires_ms - first.expires_ms >= 900
    wait_until(lambda: client.sched().policy == OTHER, 4)
    assert time.monotonic() - begin > 1.9


def test_no_longer_than_the_policy_gives(make_daemon):
    daemon = make_daemon().start({"Role desktop": {"LifetimeMax": "2s"}})
    client = daemon.client(BOB)

    refusal = client.acquire(lifetime=wire.LIFETIME_SECONDS, lifetime_s=3)
    assert_refused(refusal, "lifetime-limit")
    assert (refusal.explanation.asked, refusal.explanation.limit) == (3, 2)

    lease = client.acquire(lifetime=wire.LIFETIME_SECONDS, lifetime_s=2).id
    assert client.renew(lease, lifetime_s=3).reason == "lifetime-limit"
    assert client.renew(lease, lifetime_s=2**32 - 1).reason == "lifetime-limit"
    assert client.sched() == (FIFO, 5, 0, True)


def test_every_lease_ends_with_its_thread(either):
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB)
    tids = {lifetime: target.thread() for lifetime in
            (wire.LIFETIME_THREAD, wire.LIFETIME_CONNECTION, wire.LIFETIME_SECONDS)}
    for lifetime, tid in tids.items():
        client.acquire(pid=target.pid, tid=tid, lifetime=lifetime,
                       lifetime_s=3600 if lifetime == wire.LIFETIME_SECONDS else 0)
    assert len(client.list()) == 3

    for tid in tids.values():
        target.tell("end", tid=tid)

    wait_until(lambda: daemon.status().n_leases == 0, AT_ONCE_S + 2, "the end of the leases")


def test_E06_places_are_free_at_once_when_threads_end(daemon):
    client, target = daemon.client(BOB), daemon.target(BOB)
    tids = [target.thread() for _ in range(25)]
    for tid in tids:
        client.acquire(pid=target.pid, tid=tid)
    assert daemon.status().n_leases == 25

    for tid in tids:
        target.tell("end", tid=tid)

    wait_until(lambda: daemon.status().n_leases == 0, AT_ONCE_S)
    assert client.hello().offers[0].threads_held == 0


def test_a_process_that_ends_with_all_its_threads(either):
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB)
    for tid in [target.thread() for _ in range(10)]:
        client.acquire(pid=target.pid, tid=tid)

    target.kill()

    wait_until(lambda: daemon.status().n_leases == 0, AT_ONCE_S + 2)


def test_a_thread_of_the_others_execs(either):
    """exec(2) ends all threads and gives the leader's number to the one that called it."""
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB)
    tid = target.thread()
    client.acquire(pid=target.pid, tid=tid, priority=7)
    client.acquire(pid=target.pid, priority=6)

    target.exec(daemon.programs.target, tid=tid)

    # The leader's lease stays with its number, the thread's is over; the kernel kept the thread's
    # priority, so that one must not be left behind without a lease.
    def settled():
        leases = daemon.leases()
        in_force = target.sched()
        return len(leases) <= 1 and (bool(leases) or in_force.policy == OTHER)

    wait_until(settled, 5)
    for lease in client.list():
        assert client.release(lease.id).reason == "none"
    client.acquire(pid=target.pid, priority=8)
    (lease,) = client.list()
    client.release(lease.id)
    assert target.sched() == (OTHER, 0, 0, False)


def test_a_leader_that_leaves_before_the_others(either):
    """No descriptor tells, and the kernel goes on granting it whatever is asked."""
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB)
    watching = daemon.client(BOB)
    watching.watch()
    tid = target.thread()
    # not the first one of its process
    other = client.acquire(pid=target.pid, tid=tid, priority=7).id
    mine = client.acquire(pid=target.pid, priority=6).id

    target.tell("end")
    wait_until(lambda: [x.id for x in daemon.leases()] == [other], 10, "the end of its lease")
    while (event := watching.event()).kind != wire.EVENT_ENDED:
        pass
    assert (event.lease.id, event.reason) == (mine, "thread-ended")
    assert target.sched(tid)[:2] == (FIFO, 7)


# ---- release and restore ----


@pytest.mark.parametrize("before", [
    {"nice": 19},
    {"nice": -3},
    {"policy": BATCH, "nice": 4},
    {"policy": IDLE},
    {"policy": IDLE, "nice": 11},
    {"policy": FIFO, "priority": 3},
    {"policy": RR, "priority": 40},
    {"policy": FIFO, "priority": 3, "flags": kernel.RESET_ON_FORK},
    {"flags": kernel.RESET_ON_FORK},
])
@pytest.mark.parametrize("granted", ["fifo", "nice", "both"])
def test_what_was_there_comes_back(either, before, granted):
    client = either.start().client(BOB)
    before = set_before(client, **before)
    values = {
        "fifo": {"want": wire.WANT_SCHED, "policy": FIFO, "priority": 12},
        "nice": {"want": wire.WANT_NICE, "nice": -7},
        "both": {"want": BOTH, "policy": RR, "priority": 12, "nice": -7},
    }[granted]

    answer = client.acquire(**values)
    assert answer.reason == "none"
    assert (answer.previous_policy, answer.previous_priority) == before[:2]
    assert answer.previous_nice == before.nice
    if granted != "nice":
        assert client.sched()[:2] == (values["policy"], 12)

    assert client.release(answer.id).reason == "none"
    assert client.sched() == before


def test_release_says_what_is_in_force_now(daemon):
    client = daemon.client(BOB)
    set_before(client, nice=5)
    lease = client.acquire(policy=RR, priority=9).id

    answer = client.release(lease)

    assert (answer.policy, answer.priority, answer.nice) == (OTHER, 0, 5)
    assert (answer.previous_policy, answer.previous_priority) == (RR, 9)


def test_N06_back_to_normal_resets_class_and_nice_together(daemon):
    client = daemon.client(BOB)
    lease = client.acquire(want=BOTH, policy=FIFO, priority=9, nice=-10).id
    assert client.sched() == (FIFO, 9, -10, True)

    client.release(lease)

    assert client.sched() == (OTHER, 0, 0, False)


def test_update_does_not_change_what_comes_back(daemon):
    client = daemon.client(BOB)
    before = set_before(client, policy=BATCH, nice=6)
    lease = client.acquire(priority=3).id
    client.update(lease, policy=RR, priority=8)
    client.acquire(want=BOTH, policy=FIFO, priority=4, nice=-2)

    client.release(lease)

    assert client.sched() == before


def test_restore_leaves_alone_what_is_not_ours_any_more(daemon):
    client = daemon.client(BOB)
    lease = client.acquire(priority=9).id
    kernel.sched_setattr(client.pid, RR, 33)

    client.release(lease)

    assert client.sched() == (RR, 33, 0, False)


def test_restore_leaves_alone_what_the_owner_lowered(daemon):
    client = daemon.client(BOB)
    lease = client.acquire(priority=9).id
    assert client.sched_setattr(0, BATCH, flags=kernel.RESET_ON_FORK) == 0

    client.release(lease)

    assert client.sched().policy == BATCH


def test_restore_is_never_better_than_the_owner_made_it(daemon):
    """U23: nice +5 while real-time stays, though sched_getattr does not show it then."""
    client = daemon.client(BOB)
    lease = client.acquire(priority=9).id
    assert client.setpriority(0, 5) == 0

    client.release(lease)

    assert client.sched()[:3] == (OTHER, 0, 5)


def test_restore_of_nice_is_never_better_than_the_owner_made_it(daemon):
    client = daemon.client(BOB)
    lease = client.acquire(want=wire.WANT_NICE, nice=-10).id
    assert client.setpriority(0, 5) == 0

    client.release(lease)

    assert client.sched()[:3] == (OTHER, 0, 5)


def test_autogroup_is_not_touched(daemon):
    client, target = daemon.client(BOB), daemon.target(BOB, start_new_session=True)
    path = f"/proc/{target.pid}/autogroup"
    if not os.path.exists(path):
        pytest.skip("this kernel has no autogroup")

    def autogroup():
        with open(path, encoding="ascii") as file:
            return file.read()

    before = autogroup()
    lease = client.acquire(pid=target.pid, want=BOTH, policy=FIFO, priority=4, nice=-5).id
    assert autogroup() == before
    client.release(lease)
    assert autogroup() == before


def test_a_lease_is_released_once(daemon):
    client = daemon.client(BOB)
    lease = client.acquire().id

    assert client.release(lease).reason == "none"
    assert client.release(lease).reason == "no-such-lease"
    assert client.renew(lease).reason == "no-such-lease"
    assert client.update(lease, policy=FIFO, priority=3).reason == "no-such-lease"


def test_a_lease_is_of_no_use_to_others(daemon):
    owner, stranger = daemon.client(BOB), daemon.client(CAROL)
    lease = owner.acquire().id
    missing = stranger.release(b"\1" * 16)

    for answer in (stranger.release(lease), stranger.renew(lease),
                   stranger.update(lease, policy=FIFO, priority=1)):
        assert_refused(answer, "no-such-lease")
        assert answer.explanation.text == missing.explanation.text
    assert owner.sched() == (FIFO, 5, 0, True)
    assert stranger.list() == []


def test_a_lease_is_of_use_to_another_connection_of_its_user(daemon):
    one, other = daemon.client(BOB), daemon.client(BOB)
    lease = one.acquire().id

    assert [listed.id for listed in other.list()] == [lease]
    assert other.release(lease).reason == "none"
    assert one.sched() == (OTHER, 0, 0, False)


def test_ids_are_not_guessable(daemon):
    client = daemon.client(BOB)
    ids = {client.acquire(tid=client.thread()).id for _ in range(50)}

    assert len(ids) == 50
    assert all(len({lease[i] for lease in ids}) > 20 for i in range(16))


# ---- the truth ----


def test_A01_O05_changed_by_others_is_shown(either):
    client = either.start().client(BOB)
    tids = [client.thread() for _ in range(6)]
    for tid in tids:
        assert_granted(client.acquire(tid=tid, policy=RR, priority=10), RR, 10)

    for tid in tids[:3]:
        kernel.sched_setattr(tid, OTHER)

    leases = {lease.tid: lease for lease in client.list()}
    for tid in tids[:3]:
        assert leases[tid].state == wire.LEASE_CHANGED
        assert (leases[tid].policy, leases[tid].granted_policy) == (OTHER, RR)
    for tid in tids[3:]:
        assert leases[tid].state == wire.LEASE_IN_FORCE
        assert (leases[tid].policy, leases[tid].priority) == (RR, 10)


def test_A01_nice_changed_by_others_is_shown(daemon):
    client = daemon.client(BOB)
    client.acquire(want=wire.WANT_NICE, nice=-10)
    os.setpriority(os.PRIO_PROCESS, client.pid, 3)

    (lease,) = client.list()

    assert (lease.state, lease.nice, lease.granted_nice) == (wire.LEASE_CHANGED, 3, -10)


def test_F05_renew_puts_a_lease_in_force_again(daemon):
    client = daemon.client(BOB)
    lease = client.acquire(priority=11).id
    kernel.sched_setattr(client.pid, OTHER)

    assert_granted(client.renew(lease), FIFO, 11)
    assert_granted(client.renew(lease), FIFO, 11)
    (listed,) = client.list()
    assert listed.state == wire.LEASE_IN_FORCE
    client.release(lease)
    assert client.sched() == (OTHER, 0, 0, False)


def test_what_a_lease_says_of_itself(daemon):
    client, target = daemon.client(ALICE), daemon.target(ALICE)
    tid = target.thread("jack-client")
    before_ms = time.time() * 1000

    client.acquire(pid=target.pid, tid=tid, want=BOTH, policy=FIFO, priority=65, nice=0,
                   role="studio", reason="a synth", period_ns=5_000_000, computation_ns=1_000_000,
                   deadline_ns=5_000_000)

    (lease,) = client.list()
    assert (lease.uid, lease.pid, lease.tid, lease.comm) == (ALICE, target.pid, tid, "jack-client")
    assert (lease.role, lease.reason) == ("studio", "a synth")
    assert (lease.granted_want, lease.transport, lease.expires_ms) == (BOTH, 0, 0)
    assert lease.period_ns == lease.deadline_ns == 5 * lease.computation_ns == 5_000_000
    assert before_ms - 1 <= lease.since_ms <= time.time() * 1000 + 1


def test_a_long_listing_comes_in_pages(daemon):
    client = daemon.client(BOB)
    tids = {client.thread() for _ in range(3 * wire.LEASES_MAX + 1)}
    for tid in tids:
        client.acquire(tid=tid)

    leases = client.list()

    assert {lease.tid for lease in leases} == tids
    assert len(leases) == len(tids)
