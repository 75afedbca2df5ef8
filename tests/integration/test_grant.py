# SPDX-License-Identifier: MIT
"""What is granted: policies, priorities, nice, and what the answer says of it."""

import os
import resource

import pytest

import kernel
import wire
from agent import ALICE, BOB, CAROL, NOBODY
from daemon import assert_granted, assert_refused, explain, wait_until
from kernel import BATCH, FIFO, IDLE, OTHER, RR

BOTH = wire.WANT_SCHED | wire.WANT_NICE


@pytest.mark.parametrize("uid", [ALICE, BOB, NOBODY, 4000000000, 4294967294])
def test_S1_own_thread_priority_5(either, uid):
    client = either.start().client(uid)

    answer = client.acquire(policy=FIFO, priority=5)

    assert_granted(answer, FIFO, 5)
    assert (answer.pid, answer.tid) == (client.pid, client.pid)
    assert (answer.previous_policy, answer.previous_priority, answer.previous_nice) == (OTHER, 0, 0)
    assert answer.role == "desktop"
    assert answer.flags == 0


def test_S1_round_robin(daemon):
    assert_granted(daemon.client(NOBODY).acquire(policy=RR, priority=20), RR, 20)


def test_S1_a_thread_of_the_own_process(either):
    client = either.start().client(BOB)
    tid = client.thread()

    assert_granted(client.acquire(tid=tid, priority=7), FIFO, 7)
    assert client.sched(tid) == (FIFO, 7, 0, True)
    assert client.sched() == (OTHER, 0, 0, False)


@pytest.mark.parametrize("priority", [0, 100, 1000, 2**31 - 1, -(2**31), -1])
def test_S2_no_priority_of_the_kernel(daemon, priority):
    client = daemon.client(NOBODY)

    assert_refused(client.acquire(policy=FIFO, priority=priority), "invalid")
    assert client.sched() == (OTHER, 0, 0, False)


@pytest.mark.parametrize("priority", [21, 50, 71, 94, 95, 99])
def test_S2_above_the_limit(daemon, priority):
    client = daemon.client(NOBODY)

    answer = client.acquire(policy=FIFO, priority=priority, role="desktop")

    assert_refused(answer, "priority-limit")
    assert (answer.explanation.asked, answer.explanation.limit) == (priority, 20)
    assert answer.explanation.rule.startswith(f"{daemon.policy_path}:")
    assert str(priority) in answer.explanation.text and "20" in answer.explanation.text
    assert client.sched() == (OTHER, 0, 0, False)


@pytest.mark.parametrize("values", [
    {"policy": OTHER, "priority": 1},
    {"policy": BATCH, "priority": 0},
    {"policy": IDLE, "priority": 0},
    {"policy": kernel.DEADLINE, "priority": 0},
    {"policy": FIFO | 0x40000000, "priority": 5},
    {"policy": 7, "priority": 0},
    {"policy": 2**32 - 1, "priority": 5},
    {"want": wire.WANT_NICE, "nice": -21},
    {"want": wire.WANT_NICE, "nice": 20},
    {"want": wire.WANT_NICE, "nice": -(2**31)},
    {"want": 0},
    {"lifetime": 3},
    {"lifetime": wire.LIFETIME_SECONDS, "lifetime_s": 0},
    {"period_ns": 1000, "computation_ns": 2000, "deadline_ns": 1000},
    {"period_ns": 1000, "computation_ns": 500, "deadline_ns": 2000},
])
def test_S2_what_cannot_be(daemon, values):
    client = daemon.client(ALICE)

    assert_refused(client.acquire(**values), "invalid", "unsupported")
    assert client.sched() == (OTHER, 0, 0, False)
    assert_granted(client.acquire(), FIFO, 5)


RESOURCES = {
    wire.WANT_MEMLOCK: {"memlock_bytes": 4096},
    wire.WANT_CPU_LATENCY: {"cpu_latency_us": 100},
    wire.WANT_IRQ: {"irq_priority": 90, "irq": "irq:1"},
    wire.WANT_BLOCK_QUEUE: {"block_max_sectors_kb": 64, "block": "loop0"},
}


@pytest.mark.parametrize("kind", RESOURCES)
@pytest.mark.parametrize("want", [0, wire.WANT_SCHED])
def test_kinds_that_are_not_in_the_role_are_refused_whole(daemon, want, kind):
    client = daemon.client(ALICE)

    answer = client.acquire(want=want | kind, policy=FIFO, priority=5, **RESOURCES[kind])

    assert_refused(answer, "resource-not-in-role")
    assert client.sched() == (OTHER, 0, 0, False)


@pytest.mark.parametrize("kind", RESOURCES)
def test_half_a_request_is_refused(daemon, kind):
    client = daemon.client(ALICE)

    assert_refused(client.acquire(want=kind), "invalid")
    assert_refused(client.acquire(want=wire.WANT_NICE, **RESOURCES[kind]), "invalid")
    for name in RESOURCES[kind].keys() - {"irq_priority"}:  # without one: as the role gives
        values = {**RESOURCES[kind], name: None}
        half = {key: value for key, value in values.items() if value is not None}
        assert_refused(client.acquire(want=kind, **half), "invalid")


def test_nice_alone(either):
    client = either.start().client(CAROL)

    answer = client.acquire(want=wire.WANT_NICE, nice=-11)

    assert_granted(answer, OTHER, 0, nice=-11)
    assert answer.previous_nice == 0
    client.release(answer.id)
    assert client.sched() == (OTHER, 0, 0, False)


def test_nice_below_the_limit(daemon):
    client = daemon.client(CAROL)

    answer = client.acquire(want=wire.WANT_NICE, nice=-16)

    assert_refused(answer, "nice-limit")
    assert (answer.explanation.asked, answer.explanation.limit) == (-16, -15)
    assert client.sched() == (OTHER, 0, 0, False)


def test_O07_nice_that_needs_no_privilege_is_not_refused(make_daemon):
    daemon = make_daemon().start({"Role desktop": {"Nice": 0}})

    answer = daemon.client(CAROL).acquire(want=wire.WANT_NICE, nice=5)

    assert_granted(answer, OTHER, 0, nice=5)


def test_priority_and_nice_together(daemon):
    client = daemon.client(ALICE)

    answer = client.acquire(want=BOTH, policy=RR, priority=9, nice=-5)

    assert_granted(answer, RR, 9, nice=-5)
    assert client.release(answer.id).reason == "none"
    assert client.sched() == (OTHER, 0, 0, False)


def test_all_or_nothing(daemon):
    client = daemon.client(ALICE)

    assert_refused(client.acquire(want=BOTH, policy=RR, priority=9, nice=-20), "nice-limit")
    assert client.sched() == (OTHER, 0, 0, False)


def test_K08_too_high_is_refused_or_with_clamp_given_less(daemon):
    client = daemon.client(BOB)

    refusal = client.acquire(policy=FIFO, priority=88)
    assert_refused(refusal, "priority-limit")
    assert client.sched() == (OTHER, 0, 0, False)

    answer = client.acquire(policy=FIFO, priority=88, flags=wire.ACQUIRE_CLAMP)
    assert_granted(answer, FIFO, 20)
    assert answer.flags & wire.ANSWER_CLAMPED


def test_clamp_of_nice(daemon):
    answer = daemon.client(BOB).acquire(want=wire.WANT_NICE, nice=-20, flags=wire.ACQUIRE_CLAMP)

    assert_granted(answer, OTHER, 0, nice=-15)
    assert answer.flags & wire.ANSWER_CLAMPED


def test_what_fits_is_not_clamped(daemon):
    answer = daemon.client(BOB).acquire(priority=20, flags=wire.ACQUIRE_CLAMP)

    assert_granted(answer, FIFO, 20)
    assert not answer.flags & wire.ANSWER_CLAMPED


def test_B07_dry_run_answers_and_changes_nothing(daemon):
    client = daemon.client(BOB)

    answer = client.acquire(priority=15, flags=wire.ACQUIRE_DRY_RUN)
    assert answer.reason == "none", explain(answer)
    assert (answer.policy, answer.priority) == (FIFO, 15)
    assert answer.flags & wire.ANSWER_DRY_RUN
    assert not any(answer.id)

    refusal = client.acquire(priority=50, flags=wire.ACQUIRE_DRY_RUN)
    assert_refused(refusal, "priority-limit")

    assert client.sched() == (OTHER, 0, 0, False)
    assert client.list() == []


def test_dry_run_uses_no_quota(make_daemon):
    daemon = make_daemon().start({"Broker": {"GrantBurst": 1, "GrantRefill": "1h"}})
    client = daemon.client(BOB)

    for _ in range(10):
        assert client.acquire(flags=wire.ACQUIRE_DRY_RUN).reason == "none"
    assert_granted(client.acquire(), FIFO, 5)


def test_A06_the_callers_own_limit_does_not_matter(daemon):
    def no_limit():
        resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))

    limited, other = daemon.client(ALICE, prepare=no_limit), daemon.client(ALICE)

    assert_granted(limited.acquire(priority=12), FIFO, 12)
    assert_granted(other.acquire(priority=12), FIFO, 12)


def test_a_role_by_name(daemon):
    answer = daemon.client(ALICE).acquire(role="studio", priority=65)

    assert_granted(answer, FIFO, 65)
    assert answer.role == "studio"


def test_the_role_that_fits_is_found(daemon):
    answer = daemon.client(ALICE).acquire(priority=65)

    assert_granted(answer, FIFO, 65)
    assert answer.role == "studio"


def test_a_role_that_is_not_the_users(daemon):
    client = daemon.client(BOB)

    assert_refused(client.acquire(role="studio", priority=65), "not-allowed")
    assert_refused(client.acquire(role="nonsense", priority=5), "no-such-role")
    assert_refused(client.acquire(role="studio\x1b[31m", priority=5), "no-such-role")
    assert_refused(daemon.client(ALICE).acquire(role="studio", policy=RR, priority=65),
                   "policy-not-in-role")


def test_hello_tells_what_may_be_had(daemon):
    hello = daemon.client(ALICE).hello()
    offers = {offer.role: offer for offer in hello.offers}

    assert hello.uid == ALICE
    assert hello.kinds & BOTH == BOTH
    assert not hello.state & (wire.STATE_ADMIN | wire.STATE_DEGRADED | wire.STATE_POLICY_BROKEN)
    assert [*offers] == ["desktop", "studio"]
    assert (offers["desktop"].priority_min, offers["desktop"].priority_max) == (1, 20)
    assert offers["desktop"].nice_min == -15
    assert offers["studio"].policies == 1 << FIFO
    assert all(offer.reason == 0 for offer in hello.offers)

    offers = {offer.role: offer for offer in daemon.client(BOB).hello().offers}
    assert offers["desktop"].reason == 0
    assert wire.REASON_WORDS[offers["studio"].reason] == "not-allowed"


def test_hello_counts_what_is_held(daemon):
    client = daemon.client(ALICE)
    client.acquire()
    client.acquire(tid=client.thread())
    daemon.client(BOB).acquire()

    hello = client.hello()

    assert (hello.n_leases, hello.n_leases_own, hello.n_users) == (3, 2, 2)
    assert hello.offers[0].threads_held == 2
    assert hello.n_connections == 2


def test_S16_lowered_by_the_owner_and_raised_again(daemon):
    client = daemon.client(BOB)
    client.acquire(priority=20)

    assert client.sched_setattr(0, FIFO, 10, flags=kernel.RESET_ON_FORK) == 0
    (lease,) = client.list()
    assert (lease.priority, lease.granted_priority) == (10, 20)
    assert lease.state == wire.LEASE_CHANGED

    assert_granted(client.acquire(priority=15), FIFO, 15)
    assert_refused(client.acquire(priority=21), "priority-limit")
    assert client.sched() == (FIFO, 15, 0, True)


def test_I10_asked_again_is_updated_in_place(make_daemon):
    daemon = make_daemon().start({"Broker": {"ThreadsPerUser": 1}})
    client = daemon.client(BOB)

    first = client.acquire(priority=5)
    second = client.acquire(priority=15)

    assert_granted(second, FIFO, 15)
    assert second.flags & wire.ANSWER_UPDATED
    assert second.id == first.id
    assert (second.previous_policy, second.previous_priority) == (FIFO, 5)
    assert client.hello().n_leases == 1
    client.release(second.id)
    assert client.sched() == (OTHER, 0, 0, False)


def test_update_by_its_lease(daemon):
    client = daemon.client(BOB)
    lease = client.acquire(priority=5).id

    answer = client.update(lease, policy=RR, priority=15)
    assert_granted(answer, RR, 15)
    assert answer.id == lease

    assert_refused(client.update(lease, policy=FIFO, priority=50), "priority-limit")
    assert client.sched() == (RR, 15, 0, True)
    answer = client.update(lease, policy=FIFO, priority=50, flags=wire.ACQUIRE_CLAMP)
    assert_granted(answer, FIFO, 20)
    answer = client.update(lease, policy=FIFO, priority=3, flags=wire.ACQUIRE_DRY_RUN)
    assert (answer.reason, answer.priority) == ("none", 3)
    assert client.sched() == (FIFO, 20, 0, True)

    client.release(lease)
    assert client.sched() == (OTHER, 0, 0, False)


def test_update_of_the_timing_alone(daemon):
    client = daemon.client(BOB)
    lease = client.acquire(priority=5).id

    answer = client.update(lease, want=0, period_ns=10**7, computation_ns=10**6, deadline_ns=10**7)

    assert answer.reason == "none", explain(answer)
    (listed,) = client.list()
    assert (listed.period_ns, listed.computation_ns, listed.deadline_ns) == (10**7, 10**6, 10**7)
    assert client.sched() == (FIFO, 5, 0, True)


def test_O02_the_value_was_changed_before(daemon):
    client = daemon.client(CAROL)
    os.setpriority(os.PRIO_PROCESS, client.pid, 7)

    answer = client.acquire(want=wire.WANT_NICE, nice=-3)

    assert_granted(answer, OTHER, 0, nice=-3)
    assert answer.previous_nice == 7
    client.release(answer.id)
    assert client.sched().nice == 7


def test_S15_what_the_owner_can_do_afterwards(daemon):
    client, target = daemon.client(BOB), daemon.target(BOB)
    assert_granted(client.acquire(pid=target.pid, priority=20), FIFO, 20)

    for forbidden in (
        (FIFO, 20, 0, 0),  # without RESET_ON_FORK
        (FIFO, 21, 0, 1),
        (FIFO, 99, 0, 1),
        (RR, 20, 0, 1),
        (kernel.DEADLINE, 0, 0, 1),
        (OTHER, 0, 0, 0),
    ):
        assert target.errno_of("sched", *forbidden) != 0, forbidden
        assert target.sched() == (FIFO, 20, 0, True)
    assert target.errno_of("nice", -5) != 0

    assert target.errno_of("sched", FIFO, 10, 0, 1) == 0
    (lease,) = client.list()
    assert (lease.state, lease.policy, lease.priority) == (wire.LEASE_CHANGED, FIFO, 10)
    assert target.errno_of("sched", FIFO, 11, 0, 1) != 0

    assert target.errno_of("sched", OTHER, 0, 0, 1) == 0
    (lease,) = client.list()
    assert (lease.state, lease.policy, lease.priority) == (wire.LEASE_CHANGED, OTHER, 0)


def test_S15_no_more_in_an_own_user_namespace(daemon):
    client, target = daemon.client(BOB), daemon.target(BOB)
    assert_granted(client.acquire(pid=target.pid, priority=20), FIFO, 20)

    target.tell("unshare-user")

    assert target.errno_of("sched", FIFO, 21, 0, 1) != 0
    assert target.errno_of("sched", FIFO, 20, 0, 0) != 0
    assert target.errno_of("nice", -5) != 0


def test_three_users_at_once(daemon):
    clients = [daemon.client(uid) for uid in (ALICE, BOB, CAROL, NOBODY)]

    for priority, client in enumerate(clients, 10):
        client.start("acquire", priority=priority)
    for priority, client in enumerate(clients, 10):
        assert_granted(client.finish(), FIFO, priority)
        assert client.sched() == (FIFO, priority, 0, True)

    assert daemon.status().n_users == 4
    assert {lease.uid for lease in daemon.leases()} == {ALICE, BOB, CAROL, NOBODY}
    for client in clients:
        assert [lease.uid for lease in client.list()] == [client.uid]


def test_nothing_else_of_the_target_changes(daemon):
    """A22: capabilities, limits, group, session, dumpable."""
    client, target = daemon.client(BOB), daemon.target(BOB)

    def seen():
        with open(f"/proc/{target.pid}/limits", encoding="ascii") as limits:
            with open(f"/proc/{target.pid}/cgroup", encoding="ascii") as cgroup:
                keys = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
                        "Uid", "Gid", "Groups", "Cpus_allowed")
                return (limits.read(), cgroup.read(), os.getsid(target.pid), os.getpgid(target.pid),
                        os.stat(f"/proc/{target.pid}/status").st_uid,
                        [kernel.status(target.pid, key) for key in keys])

    before = seen()
    client.acquire(pid=target.pid)
    assert seen() == before
    wait_until(lambda: target.sched().policy == FIFO)
