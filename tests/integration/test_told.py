# SPDX-License-Identifier: MIT
"""What befalls a lease is told once to everybody who watches: over the socket, the bus and the library."""

import json
import os
import subprocess
import threading
import time
from collections import Counter

import pytest

import bus as bus_module
import hogs
import kernel
import wire
from agent import ALICE, BOB
from broker1 import NAME, Broker1
from daemon import wait_until
from hogs import Hog
from kernel import FIFO

LIMITS = {
    "Broker": {"BackOff": "700ms", "BackOffMax": "10s"},
    "Role desktop": {"RunMax": "200ms", "CPUMax": "80%", "CPUWindow": "500ms",
                     "ThreadsPerUser": 200},
}
WORDS = {wire.EVENT_OVER_BUDGET: "over-budget", wire.EVENT_DEMOTED: "demoted",
         wire.EVENT_RESTORED: "restored", wire.EVENT_CHANGED: "changed", wire.EVENT_ENDED: "ended"}
EXPECTED = {"over-budget": {"ran-on", "cpu-share"}, "demoted": {"ran-on", "cpu-share"},
            "restored": {"back-off-over"}, "changed": {"changed-by-others"}, "ended": {"expired"}}


class OnTheBus:
    """The signals of Broker1, as the bus passes them on to a client that asked for them."""

    def __init__(self, bus, client):
        self.process = subprocess.Popen(
            ["busctl", f"--address={bus.address}", "--json=short", "monitor", "--match",
             f"type='signal',interface='{NAME}'"], stdout=subprocess.PIPE, text=True)
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        assert Broker1(bus, client).ask("Watch").error == ""

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def events(self):
        time.sleep(0.3)
        told = [x["payload"]["data"] for x in self.lines if x.get("member") == "LeaseChanged"]
        return [(event, reason, text, lease["pid"]["data"]) for event, reason, text, lease in told]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class ByTheLibrary:
    """rtgrantctl monitor prints what the library's callback is given."""

    def __init__(self, daemon):
        n = daemon.status().n_connections
        self.process = subprocess.Popen(
            [daemon.programs.rtgrantctl, "monitor", "--all", "--json"], stdout=subprocess.PIPE,
            env={**os.environ, "RTGRANT_SOCKET": daemon.socket_path})
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        wait_until(lambda: daemon.status().n_connections > n, what="the monitor")

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def events(self):
        time.sleep(0.3)
        return [(x["event"], x["cause"], x["text"], x["lease"]["pid"]) for x in self.lines]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class OverTheSocket:
    def __init__(self, client):
        self.client = client
        assert client.watch(everybody=True).reason == "none"

    @staticmethod
    def drain(agent):
        agent.connection.socket.settimeout(0.5)
        events = []
        try:
            while True:
                events.append(agent.connection.event())
        except TimeoutError:
            return [(WORDS.get(e.kind, ""), e.reason, e.text, e.lease.pid) for e in events]

    def events(self):
        return self.client.run(self.drain)


def let_it_all_happen(daemon, client=None, uid=BOB):
    """
    The pids of those to whom it happened: a hog of @client's, and of @uid's a thread that others set
    and one whose time ends.
    """
    hog = Hog(client or daemon.client(ALICE), hogs.spin)
    wait_until(lambda: daemon.lease_of(hog.pid).state == 2, what="the demotion")
    hog.rest()
    wait_until(lambda: daemon.lease_of(hog.pid).state == 0, what="its priority")

    other = daemon.client(uid)
    assert other.acquire(lifetime=wire.LIFETIME_THREAD).reason == "none"
    kernel.sched_setattr(other.pid, FIFO, 33)
    wait_until(lambda: daemon.lease_of(other.pid).state == 1, what="the look at it")

    short = daemon.client(uid)
    assert short.acquire(lifetime=wire.LIFETIME_SECONDS, lifetime_s=1).reason == "none"
    wait_until(lambda: not any(x.pid == short.pid for x in daemon.leases()), what="its end")
    return {"over-budget": hog.pid, "demoted": hog.pid, "restored": hog.pid, "changed": other.pid,
            "ended": short.pid}


def check(events, pids):
    told = [event for event in events if event[0] in EXPECTED and event[3] == pids[event[0]]]
    assert Counter(event[0] for event in told) == Counter(list(EXPECTED)), events
    for word, reason, text, _pid in told:
        assert reason in EXPECTED[word]
        if word in ("over-budget", "demoted"):
            assert "ms" in text and "%" in text or "without sleeping" in text  # with figures


def test_over_the_socket_and_by_the_library(make_daemon):
    daemon = make_daemon().start(LIMITS)
    socket = OverTheSocket(daemon.client(0))
    library = ByTheLibrary(daemon)
    try:
        pids = let_it_all_happen(daemon)
        check(socket.events(), pids)
        check(library.events(), pids)
    finally:
        library.close()


@pytest.mark.skipif(not bus_module.is_here(), reason="no polkitd or dbus-daemon")
def test_on_the_bus(make_daemon):
    bus, signals = bus_module.Bus(polkit=False), None
    try:
        daemon = make_daemon().start(LIMITS, environment=bus.environment)
        wait_until(lambda: bus_module.has_owner(bus, NAME), 30, "the name on the bus")
        daemon.take_as_base()
        client = daemon.client(ALICE)
        signals = OnTheBus(bus, client)
        pids = let_it_all_happen(daemon, client, ALICE)
        check(signals.events(), pids)
    finally:
        if signals:
            signals.close()
        bus.close()


# ---- until when ----


def test_status_shows_until_when_there_is_nothing_new(make_daemon):
    daemon = make_daemon().start({**LIMITS, "Broker": {"BackOff": "20s"}})
    hog = Hog(daemon.client(ALICE), hogs.spin)
    wait_until(lambda: daemon.lease_of(hog.pid).state == 2, what="the demotion")
    hog.rest()

    text = daemon.rtgrantctl(ALICE, "status").stdout
    status = json.loads(daemon.rtgrantctl(ALICE, "status", "--json").stdout)
    assert "no new real-time priority for you until " in text
    assert 10_000 < status["back_off_ms"] <= 20_000 and status["users_in_back_off"] == 1
    assert status["back_off_until"]
    other = daemon.rtgrantctl(BOB, "status").stdout
    assert "for you until" not in other and "for 1 user" in other
    assert json.loads(daemon.rtgrantctl(BOB, "status", "--json").stdout)["back_off_ms"] == 0


# ---- the log ----


def threads(agent, n):
    given = []
    for _ in range(n):
        tid = agent.thread()
        assert agent.acquire(tid=tid, want=wire.WANT_NICE, nice=-5).reason == "none"
        given.append(tid)
    return given


def test_the_log_has_so_many_lines_of_a_user(make_daemon):
    daemon = make_daemon().start({**LIMITS, "Broker": {"GrantBurst": 1000}})
    client, other = daemon.client(ALICE), daemon.client(BOB)
    tids = client.run(threads, 120)
    bobs = other.run(threads, 2)

    for tid in tids + bobs:
        os.setpriority(os.PRIO_PROCESS, tid, 7)
    wait_until(lambda: all(x.state == 1 for x in daemon.leases()), what="the look at all")
    lines = [line for line in daemon.log().splitlines() if "other values than granted" in line]
    of_alice = [line for line in lines if f"user {ALICE}" in line]
    assert 32 <= len(of_alice) < 50
    assert len(lines) == len(of_alice) + 2  # somebody else's are not among those left out

    client.release(daemon.leases()[0].id)
    time.sleep(2.1)
    assert client.acquire(tid=client.thread(), want=wire.WANT_NICE, nice=-4).reason == "none"
    assert "events before were not logged)" in daemon.log()


# ---- another cgroup ----


@pytest.fixture
def cgroup():
    """One of version 2 that nobody is in, and where its processes go in the end."""
    for root in "/sys/fs/cgroup/unified", "/sys/fs/cgroup":
        if os.path.exists(f"{root}/cgroup.procs") and os.path.exists(f"{root}/cgroup.controllers"):
            made = f"{root}/rtgrant-test-{os.getpid()}"
            os.mkdir(made)
            yield made
            with open(f"{made}/cgroup.procs", encoding="ascii") as file:
                for pid in file.read().split():
                    move(pid, root)
            os.rmdir(made)
            return
    pytest.skip("no cgroups of version 2")


def move(pid, cgroup):
    with open(f"{cgroup}/cgroup.procs", "w", encoding="ascii") as file:
        file.write(str(pid))


def test_who_is_moved_to_another_cgroup_is_told(daemon, cgroup):
    client = daemon.client(ALICE)
    watching = OverTheSocket(daemon.client(0))
    lease = client.acquire()
    assert lease.reason == "none"
    if daemon.status().state & wire.STATE_OLD_KERNEL:
        pytest.skip("an old kernel tells nothing of it")

    move(client.pid, cgroup)
    wait_until(lambda: "moved to the cgroup" in daemon.log(), what="the look at it")
    time.sleep(2.5)  # and not said again
    events = [event for event in watching.events() if event[0] == "changed"]
    assert [(event[1], event[3]) for event in events] == [("changed-by-others", client.pid)]
    assert os.path.basename(cgroup) in events[0][2]
    # it goes on
    assert client.sched()[:2] == (FIFO, 5)
    assert [(x.id, x.state) for x in daemon.leases()] == [(lease.id, 0)]
