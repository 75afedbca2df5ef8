# SPDX-License-Identifier: MIT
"""A restart for an upgrade, SIGUSR2: leases go on, and so do connections where a service manager
keeps them. A stop, SIGTERM, restores all: see test_lifecycle.py."""

import os
import signal
import subprocess

import wire
from agent import ALICE, BOB
from daemon import assert_granted, wait_until
from kernel import FIFO, OTHER


def test_leases_of_threads_and_seconds_go_on(either):
    daemon = either.start()
    client = daemon.client(BOB)
    first, second = daemon.target(BOB), daemon.target(BOB)
    client.acquire(pid=first.pid, tid=first.pid, priority=7)
    client.acquire(pid=second.pid, tid=second.pid, priority=8, lifetime=wire.LIFETIME_SECONDS,
                   lifetime_s=600)
    before = daemon.leases()

    daemon.upgrade()

    assert daemon.leases() == before
    assert first.sched() == (FIFO, 7, 0, True)
    assert second.sched() == (FIFO, 8, 0, True)


def test_a_connection_and_its_leases_go_on(either):
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB)
    lease = client.acquire(pid=target.pid, tid=target.pid, lifetime=wire.LIFETIME_CONNECTION).id

    daemon.upgrade()

    assert target.sched() == (FIFO, 5, 0, True)
    assert [listed.id for listed in client.list()] == [lease]  # on the connection that it had
    assert client.update(lease, policy=FIFO, priority=9).reason == "none"
    client.close()
    wait_until(lambda: target.sched() == (OTHER, 0, 0, False), what="the end with its connection")


def test_a_watch_goes_on_and_tells_of_the_restart(daemon):
    client, other = daemon.client(ALICE), daemon.client(BOB)
    assert client.watch().reason == "none"

    daemon.upgrade()

    event = client.event()
    assert (event.kind, event.reason, event.lease.tid) == (wire.EVENT_RESTARTED, "restart", 0)
    assert_granted(client.acquire(), FIFO, 5)
    assert client.event().kind == wire.EVENT_GRANTED
    assert other.hello().reason == "none"


def test_the_administrator_watches_on_for_everybody(daemon):
    daemon.admin.watch(everybody=True)
    admin, daemon._admin = daemon._admin, None
    client = daemon.client(BOB)

    daemon.upgrade()

    assert admin.event().kind == wire.EVENT_RESTARTED
    client.acquire()
    assert admin.event().lease.uid == BOB
    admin.close()


def test_what_was_asked_meanwhile_is_answered(daemon):
    client = daemon.client(BOB)
    client.hello()
    with daemon.paused():
        os.kill(daemon.pid, signal.SIGUSR2)
        client.ask_to_acquire()

    daemon.process.wait()
    daemon.process = None
    daemon.start()

    assert_granted(client.answer(), FIFO, 5)


def test_a_client_that_died_meanwhile_leaves_nothing(daemon):
    client, target = daemon.client(BOB), daemon.target(BOB)
    client.acquire(pid=target.pid, tid=target.pid, lifetime=wire.LIFETIME_CONNECTION)
    daemon._forget_admin()
    os.kill(daemon.pid, signal.SIGUSR2)
    assert daemon.process.wait() == 0
    client.kill()
    daemon.companions.remove(client)

    daemon.start()

    wait_until(lambda: target.sched() == (OTHER, 0, 0, False), what="the end with its connection")
    assert daemon.status().n_leases == 0


def test_without_a_service_manager_connections_end_and_leases_stay(daemon, make_daemon):
    bare = make_daemon().start(environment={"NOTIFY_SOCKET": ""}, wait=False)
    wait_until(lambda: os.path.exists(bare.socket_path), what="the socket")
    client, bound, lasting = bare.client(BOB), bare.target(BOB), bare.target(BOB)
    client.acquire(pid=bound.pid, tid=bound.pid, lifetime=wire.LIFETIME_CONNECTION)
    client.acquire(pid=lasting.pid, tid=lasting.pid, priority=6)

    os.kill(bare.pid, signal.SIGUSR2)

    assert bare.process.wait() == 0
    bare.process = None
    assert client.receive() is None
    assert bound.sched() == (FIFO, 5, 0, True)
    assert lasting.sched() == (FIFO, 6, 0, True)
    with open(bare.policy_path, encoding="utf-8") as file:
        bare.start(file.read())
    assert {lease.tid for lease in bare.leases()} == {bound.pid, lasting.pid}
    wait_until(lambda: bound.sched() == (OTHER, 0, 0, False), what="the end of what nobody took up")
    (lease,) = bare.leases()
    assert lease.tid == lasting.pid


def test_a_stop_that_comes_along_does_not_undo_it(daemon):
    target, client = daemon.target(BOB), daemon.client(BOB)
    client.acquire(pid=target.pid, tid=target.pid)
    daemon._forget_admin()
    with daemon.paused():
        os.kill(daemon.pid, signal.SIGTERM)
        os.kill(daemon.pid, signal.SIGUSR2)

    assert daemon.process.wait() == 0
    daemon.process = None
    assert target.sched() == (FIFO, 5, 0, True)
    daemon.start()
    daemon.stop()
    assert target.sched() == (OTHER, 0, 0, False)


def test_the_library_goes_on(daemon):
    """rtgrantctl monitor, which was started before, sees what comes after."""
    monitor = subprocess.Popen(
        [daemon.programs.rtgrantctl, "monitor", "--json"], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "RTGRANT_SOCKET": daemon.socket_path}, stdin=subprocess.DEVNULL,
        user=BOB, group=BOB, extra_groups=[], cwd="/")
    try:
        wait_until(lambda: daemon.status().n_connections == 2, what="the monitor")
        client = daemon.client(BOB)
        granted = client.acquire()
        assert granted.reason == "none"
        assert '"granted"' in monitor.stdout.readline()

        daemon.upgrade()

        assert '"restarted"' in monitor.stdout.readline()
        client.release(granted.id)
        assert '"ended"' in monitor.stdout.readline()
    finally:
        monitor.kill()
        monitor.wait()
        monitor.stdout.close()
