# SPDX-License-Identifier: MIT
"""Declared timing, places in a band, who stays below whom, hints, and less instead of nothing."""

import os

import wire
from agent import ALICE, BOB, CAROL
from daemon import assert_granted, assert_refused
from kernel import FIFO, OTHER, RR

MS = 1_000_000
N_CPUS = os.cpu_count()
SERVER = {
    "Role server": {"Priority": "71-85", "AllowUsers": "*"},
    "Role client": {"Priority": "61-80", "AllowUsers": "*", "Below": "server"},
}


def timing(percent):
    """Of one CPU."""
    return {"period_ns": 10 * MS, "deadline_ns": 10 * MS, "computation_ns": percent * MS // 10}


def declare(client, percent, **values):
    return client.acquire(**timing(percent), **values)


def fill(client, percent):
    """Threads that declare @percent of each CPU; their leases."""
    return [assert_granted(declare(client, percent, tid=client.thread()), FIFO, 5)
            for _ in range(N_CPUS)]


def test_what_is_declared_is_admitted_as_far_as_it_goes(make_daemon):
    daemon = make_daemon().start({"Broker": {"ReserveCPU": "40%"}})
    client, other = daemon.client(BOB), daemon.client(CAROL)
    fill(client, 50)
    tid = client.thread()

    refusal = declare(client, 10 * N_CPUS + 5, tid=tid)

    assert_refused(refusal, "admission")
    assert refusal.explanation.asked - refusal.explanation.limit == 50_000
    assert " 5.0 % too much" in refusal.explanation.text
    assert refusal.explanation.rule.startswith(daemon.policy_path)
    assert client.sched(tid) == (OTHER, 0, 0, False)
    assert_granted(declare(client, 10 * N_CPUS, tid=tid), FIFO, 5)  # to the brim
    assert_refused(declare(other, 1), "admission")  # it is one machine for all users
    assert_granted(other.acquire(), FIFO, 5)  # what is not declared is not counted


def test_a_thread_on_one_CPU_has_the_room_of_that(make_daemon):
    daemon = make_daemon().start({"Broker": {"ReserveCPU": "40%"}})
    client = daemon.client(BOB)
    tid = client.thread()
    client.pin(tid, min(os.sched_getaffinity(0)))

    refusal = declare(client, 61, tid=tid)

    assert_refused(refusal, "admission")
    assert refusal.explanation.limit == 600_000
    assert_granted(declare(client, 60, tid=tid), FIFO, 5)


def test_an_update_declares_anew(make_daemon):
    daemon = make_daemon().start({"Broker": {"ReserveCPU": "40%"}})
    client = daemon.client(BOB)
    fill(client, 50)
    answer = declare(client, 5, tid=client.thread())

    refusal = client.update(answer.id, want=0, **timing(10 * N_CPUS + 1))

    assert_refused(refusal, "admission")
    [lease] = [lease for lease in client.list() if lease.id == answer.id]
    assert lease.computation_ns == 5 * MS // 10  # as before
    assert client.update(answer.id, want=0, **timing(10 * N_CPUS)).reason == "none"
    [lease] = [lease for lease in client.list() if lease.id == answer.id]
    assert lease.computation_ns == N_CPUS * MS


def test_room_is_free_again_with_the_lease(make_daemon):
    daemon = make_daemon().start({"Broker": {"ReserveCPU": "40%"}})
    client, other = daemon.client(BOB), daemon.client(CAROL)
    fill(client, 50)
    answer = declare(client, 10 * N_CPUS, tid=client.thread())
    assert_refused(declare(other, 10), "admission")

    assert client.release(answer.id).reason == "none"

    assert_granted(declare(other, 10), FIFO, 5)


def test_the_share_of_a_role(make_daemon):
    daemon = make_daemon().start({"Role desktop": {"DeclaredCPU": "10%"}})
    client = daemon.client(BOB)
    line = daemon.line_of("DeclaredCPU")

    refusal = declare(client, 10 * N_CPUS + 1)

    assert_refused(refusal, "admission")
    assert refusal.explanation.rule == f"{daemon.policy_path}:{line}"
    assert "DeclaredCPU=" in refusal.explanation.text
    assert_granted(declare(client, 10 * N_CPUS), FIFO, 5)


def place(client, where, **values):
    return client.acquire(flags=wire.ACQUIRE_RELATIVE | values.pop("flags", 0), priority=0,
                          relative=where, **values)


def test_a_place_in_the_band(make_daemon):
    daemon = make_daemon().start(SERVER)
    client = daemon.client(BOB)

    for where, priority in ((-2, 71), (-1, 74), (0, 78), (1, 81), (2, 85)):
        assert_granted(place(client, where, role="server"), FIFO, priority)
    assert_refused(place(client, 3, role="server"), "invalid")
    assert_refused(client.acquire(relative=1), "invalid")


def test_priorities_that_follow_the_period(make_daemon):
    daemon = make_daemon().start({"Role desktop": {"PriorityByPeriod": "yes"}})
    client = daemon.client(BOB)
    periods = (MS, 5 * MS, 20 * MS, 200 * MS)
    asked = [place(client, 0, tid=client.thread(), period_ns=period, deadline_ns=period,
                   computation_ns=MS // 10) for period in periods]

    priorities = [answer.priority for answer in asked]
    assert all(answer.reason == "none" for answer in asked)
    assert priorities == sorted(set(priorities), reverse=True), priorities


def test_a_client_stays_below_the_thread_that_it_feeds(make_daemon):
    daemon = make_daemon().start(SERVER)
    server, client = daemon.client(ALICE), daemon.client(BOB)  # whoever's it is
    assert_granted(server.acquire(role="server", priority=75), FIFO, 75)

    refusal = client.acquire(role="client", priority=75, feeds_tid=server.pid)

    assert_refused(refusal, "above-server")
    assert f"thread {server.pid}" in refusal.explanation.text
    assert "server 71-85" in refusal.explanation.help  # the picture
    clamped = client.acquire(role="client", priority=80, feeds_tid=server.pid,
                             flags=wire.ACQUIRE_CLAMP)
    assert_granted(clamped, FIFO, 74)
    assert clamped.flags & wire.ANSWER_CLAMPED


def test_a_role_stays_below_another(make_daemon):
    daemon = make_daemon().start(SERVER)
    client, other = daemon.client(BOB), daemon.client(CAROL)
    assert_granted(client.acquire(role="server", priority=75, tid=client.thread()), FIFO, 75)

    refusal = client.acquire(role="client", priority=75)

    assert_refused(refusal, "above-server")
    assert refusal.explanation.rule == f"{daemon.policy_path}:{daemon.line_of('Below')}"
    assert_granted(client.acquire(role="client", priority=74), FIFO, 74)
    assert_granted(other.acquire(role="client", priority=75), FIFO, 75)  # another's server


def test_the_picked_role_is_named_with_its_reason(make_daemon):
    daemon = make_daemon().start({
        "Role other": {"Priority": "1-20", "AllowUsers": "*", "Executables": "python3*"},
    })
    client = daemon.client(BOB)

    answer = client.acquire()

    assert_granted(answer, FIFO, 5)
    assert answer.role == "other"
    assert "Executables=" in answer.explanation.text
    assert answer.explanation.rule == f"{daemon.policy_path}:{daemon.line_of('Executables')}"
    assert client.acquire(role="desktop").role == "desktop"  # a hint forces nobody
    daemon.reload({})
    answer = daemon.client(CAROL).acquire()
    assert answer.role == "desktop" and "the first" in answer.explanation.text


def test_a_role_that_is_named_costs_no_words(make_daemon):
    answer = make_daemon().start().client(BOB).acquire(role="desktop")

    assert answer.explanation.text == ""


def or_less(client, **values):
    return client.acquire(flags=wire.ACQUIRE_OR_LESS, **values)


def test_less_instead_of_nothing(make_daemon):
    daemon = make_daemon().start({
        "Role desktop": {"Policy": "rr other"},
        "Role nicer": {"Nice": "-5", "AllowUsers": "64002"},
        "Role studio": {"Nice": "-1"},
    })
    client = daemon.client(BOB)

    answer = or_less(client, role="studio", priority=65)  # not allowed, and not FIFO elsewhere

    assert_granted(answer, RR, 20)
    assert answer.rung == 1
    whole = or_less(daemon.client(ALICE), role="studio", priority=65)
    assert_granted(whole, FIFO, 65)
    assert whole.rung == 0


def test_less_may_be_nice_alone(make_daemon):
    daemon = make_daemon().start({"Role desktop": {"Priority": "none"}})
    client = daemon.client(BOB)

    answer = or_less(client, role="studio", priority=65)

    assert_granted(answer, OTHER, 0, nice=-11)
    assert answer.rung == 2


def test_less_may_be_nothing(make_daemon):
    daemon = make_daemon().start({"Role desktop": {"DenyUsers": "*"}})
    client = daemon.client(BOB)

    answer = or_less(client, role="studio", priority=65)

    assert_refused(answer, "not-allowed")  # the reason of what was asked, not of the last rung
    assert client.sched() == (OTHER, 0, 0, False)


def test_system_users_have_quotas_of_their_own(make_daemon):
    daemon = make_daemon().start({"Broker": {"SystemThreadsPerUser": 1}})
    service, client = daemon.client(2), daemon.client(BOB)
    assert_granted(service.acquire(tid=service.thread()), FIFO, 5)

    refusal = service.acquire()

    assert_refused(refusal, "threads-per-user")
    assert refusal.explanation.rule.endswith(f":{daemon.line_of('SystemThreadsPerUser')}")
    for _ in range(2):
        assert_granted(client.acquire(tid=client.thread()), FIFO, 5)
