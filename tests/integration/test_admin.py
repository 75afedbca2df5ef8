# SPDX-License-Identifier: MIT
"""What only the administrator may do, and what everybody is told of what happens."""

import os

import pytest

import kernel
import wire
from agent import ALICE, BOB, CAROL, NOBODY
from daemon import assert_refused, wait_until
from kernel import FIFO, OTHER, RR


@pytest.mark.parametrize("uid", [BOB, NOBODY])
def test_S5_not_for_users(daemon, uid):
    client, other = daemon.client(uid), daemon.client(ALICE)
    lease = other.acquire().id
    own = client.acquire().id

    for answer in (
        client.revoke(lease),
        client.revoke(own),
        client.request(wire.RELOAD),
        client.request(wire.RESTORE_ALL),
        client.list(everybody=True),
        client.watch(everybody=True),
    ):
        assert answer.reason == "admin-only"
    assert client.sched() == other.sched() == (FIFO, 5, 0, True)
    assert not client.hello().state & wire.STATE_ADMIN
    assert daemon.status().state & wire.STATE_ADMIN


def test_users_list_only_their_own(daemon):
    for uid in (ALICE, BOB, CAROL):
        client = daemon.client(uid)
        client.acquire()
        assert [lease.uid for lease in client.list()] == [uid]

    assert sorted(lease.uid for lease in daemon.leases()) == [ALICE, BOB, CAROL]


def test_revoke(daemon):
    client, watcher = daemon.client(BOB), daemon.client(BOB)
    os.setpriority(os.PRIO_PROCESS, client.pid, 3)
    lease = client.acquire().id
    watcher.watch()

    assert daemon.admin.revoke(lease).reason == "none"

    assert client.sched() == (OTHER, 0, 3, False)
    assert client.list() == []
    event = watcher.event()
    assert (event.kind, event.reason) == (wire.EVENT_REVOKED, "revoked")
    assert event.lease.id == lease
    assert daemon.admin.revoke(lease).reason == "no-such-lease"


def test_restore_all(daemon):
    clients = [daemon.client(uid) for uid in (ALICE, BOB, CAROL)]
    for client in clients:
        client.acquire()
        client.acquire(tid=client.thread(), policy=RR, priority=3)

    answer = daemon.admin.request(wire.RESTORE_ALL)

    assert (answer.reason, answer.count) == ("none", 6)
    assert daemon.leases() == []
    assert all(client.sched() == (OTHER, 0, 0, False) for client in clients)


def test_reload_by_the_administrator(daemon):
    client = daemon.client(BOB)
    client.acquire(priority=20)
    daemon.write_policy({"Role desktop": {"Priority": "1-10"}})

    answer = daemon.admin.request(wire.RELOAD)

    assert (answer.reason, answer.count) == ("none", 1)
    assert client.sched() == (FIFO, 10, 0, True)
    assert daemon.status().policy_generation == 2


def test_reload_of_a_broken_file_says_what_is_wrong(daemon):
    daemon.write_policy({"Role desktop": {"Priority": "1-99"}})

    answer = daemon.admin.request(wire.RELOAD)

    assert_refused(answer, "reload-failed")
    assert "1-99" in answer.explanation.text + answer.explanation.rule + answer.explanation.help \
        or f"{daemon.policy_path}:" in answer.explanation.text + answer.explanation.rule
    assert daemon.status().policy_generation == 1


def test_S23_root_of_a_container_is_no_administrator(daemon):
    """uid 0 in a pid namespace of its own, without capabilities."""

    def container():
        kernel.unshare(kernel.CLONE_NEWPID | kernel.CLONE_NEWNS)
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            os._exit(0)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, 9)
        kernel.set_capabilities()

    victim = daemon.client(BOB)
    lease = victim.acquire().id
    fake_root = daemon.client(0, prepare=container)

    assert not fake_root.hello().state & wire.STATE_ADMIN
    for answer in (
        fake_root.revoke(lease),
        fake_root.request(wire.RELOAD),
        fake_root.request(wire.RESTORE_ALL),
        fake_root.list(everybody=True),
        fake_root.watch(everybody=True),
    ):
        assert answer.reason == "admin-only"
    assert victim.sched() == (FIFO, 5, 0, True)


# ---- WATCH ----


def test_watch_tells_of_every_change(daemon):
    client, watcher = daemon.client(BOB), daemon.client(BOB)
    assert watcher.watch().reason == "none"

    lease = client.acquire(priority=5).id
    client.update(lease, policy=RR, priority=6)
    kernel.sched_setattr(client.pid, OTHER)
    events = [watcher.event() for _ in range(3)]
    client.renew(lease)
    client.release(lease)
    while events[-1].kind != wire.EVENT_ENDED:
        events.append(watcher.event())

    assert [event.kind for event in events[:3]] == [
        wire.EVENT_GRANTED, wire.EVENT_UPDATED, wire.EVENT_CHANGED
    ]
    assert all(event.lease.id == lease for event in events)
    assert all(event.n_lost == 0 and event.serial == 0 for event in events)
    assert (events[0].lease.policy, events[0].lease.priority) == (FIFO, 5)
    assert events[2].lease.policy == OTHER
    assert events[-1].reason == "released"
    assert all(event.text for event in events)


@pytest.mark.parametrize("how,kind,reason", [
    ("thread", wire.EVENT_ENDED, "thread-ended"),
    ("connection", wire.EVENT_ENDED, "disconnected"),
    ("seconds", wire.EVENT_ENDED, "expired"),
    ("restore-all", wire.EVENT_REVOKED, "revoked"),
    ("shutdown", wire.EVENT_REVOKED, "shutdown"),
])
def test_watch_says_why_a_lease_ended(daemon, how, kind, reason):
    client, target, watcher = daemon.client(BOB), daemon.target(BOB), daemon.client(BOB)
    watcher.watch()
    lifetime = {"connection": wire.LIFETIME_CONNECTION, "seconds": wire.LIFETIME_SECONDS}.get(how, 0)
    lease = client.acquire(pid=target.pid, lifetime=lifetime, lifetime_s=lifetime == 2).id

    if how == "thread":
        target.kill()
    elif how == "connection":
        client.close()
    elif how == "restore-all":
        daemon.admin.request(wire.RESTORE_ALL)
    elif how == "shutdown":
        daemon.stop()

    assert watcher.event().kind == wire.EVENT_GRANTED
    event = watcher.event()
    assert (event.kind, event.reason, event.lease.id) == (kind, reason, lease)


def test_watch_shows_only_ones_own(daemon):
    watcher, everybody = daemon.client(BOB), daemon.client(0)
    watcher.watch()
    everybody.watch(everybody=True)

    stranger, own = daemon.client(CAROL), daemon.client(BOB)
    stranger.acquire()
    own.acquire()

    assert watcher.event().lease.uid == BOB
    assert everybody.event().lease.uid == CAROL
    assert everybody.event().lease.uid == BOB


def test_a_watcher_that_does_not_read_loses_events_and_nothing_else(daemon):
    lazy, client = daemon.client(BOB), daemon.client(BOB)
    lazy.watch()

    for _ in range(900):  # within the burst of grants, however quick the broker is
        assert client.release(client.acquire().id).reason == "none"

    n_seen = lazy.run(read_events_until_quiet)
    client.acquire()
    event = lazy.event()
    assert 0 < n_seen < 1800
    assert n_seen + event.n_lost == 1800
    wait_until(lambda: lazy.hello().reason == "none")


def read_events_until_quiet(agent):
    """How many came."""
    n = 0
    agent.connection.socket.settimeout(0.3)
    try:
        while True:
            agent.event()
            n += 1
    except TimeoutError:
        agent.connection.socket.settimeout(10)
    return n
