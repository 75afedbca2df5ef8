# SPDX-License-Identifier: MIT
"""The machine sleeps and wakes up: what logind says of it, and what the guard sees by itself."""

import os
import time

import pytest

import bus as bus_module
import hogs
import kernel
import wire
from agent import ALICE, BOB
from broker1 import NAME
from daemon import wait_until
from hogs import Hog
from kernel import FIFO

LOGIND = "org.freedesktop.login1"
SOON_S = 0.6  # a look at all leases is due every two seconds anyway

need_bus = pytest.mark.skipif(not bus_module.is_here(), reason="no polkitd or dbus-daemon")


def send_prepare(connection, begins, destination=None):
    import dbus.lowlevel

    message = dbus.lowlevel.SignalMessage("/org/freedesktop/login1", f"{LOGIND}.Manager",
                                          "PrepareForSleep")
    if destination:
        message.set_destination(destination)
    message.append(begins, signature="b")
    connection.send_message(message)
    connection.flush()


class Logind:
    """As far as sleep goes."""

    def __init__(self, bus):
        import dbus

        self.connection = dbus.bus.BusConnection(bus.address)
        assert self.connection.request_name(LOGIND) == 1

    def prepare(self, begins):
        send_prepare(self.connection, begins)

    def close(self):
        self.connection.close()


def forge(agent, address):
    import dbus

    connection = dbus.bus.BusConnection(address)
    send_prepare(connection, False)
    send_prepare(connection, False, destination=NAME)
    connection.call_blocking("org.freedesktop.DBus", "/org/freedesktop/DBus",
                             "org.freedesktop.DBus", "GetId", "", ())
    connection.close()


@pytest.fixture
def bus():
    made = bus_module.Bus(polkit=False)
    yield made
    made.close()


@pytest.fixture
def broker(make_daemon, bus):
    daemon = make_daemon().start(environment=bus.environment)
    wait_until(lambda: bus_module.has_owner(bus, NAME), 30, "the name on the bus")
    daemon.take_as_base()
    return daemon


@pytest.fixture
def logind(bus):
    made = Logind(bus)
    yield made
    made.close()


def seconds_to_notice(client, watching, act):
    """How long after act() it is told that the thread has other values."""
    lease = client.acquire(want=wire.WANT_NICE, nice=-5)
    assert lease.reason == "none"
    time.sleep(0.1)
    os.setpriority(os.PRIO_PROCESS, client.pid, 5)
    began = time.monotonic()
    act()
    while watching.event().kind != wire.EVENT_CHANGED:
        pass
    elapsed = time.monotonic() - began
    client.release(lease.id)
    return elapsed


@need_bus
def test_all_is_looked_at_when_it_is_over(broker, logind):
    client, watching = broker.client(ALICE), broker.client(ALICE)
    watching.watch()

    for _ in range(4):
        logind.prepare(True)
        assert seconds_to_notice(client, watching, lambda: logind.prepare(False)) < SOON_S
    assert broker.log().count("the machine is awake again") == 4


@need_bus
def test_a_logind_that_comes_later(broker, bus):
    for n in 1, 2:
        logind = Logind(bus)
        logind.prepare(False)
        wait_until(lambda: broker.log().count("the machine is awake again") == n, what="the signal")
        logind.close()
        wait_until(lambda: not bus_module.has_owner(bus, LOGIND), what="its end")


@need_bus
@pytest.mark.parametrize("there", [True, False])
def test_nobody_else_can_say_so(broker, bus, there):
    """A hog could begin anew with the guard whenever it likes."""
    logind = Logind(bus) if there else None
    try:
        broker.client(BOB).run(forge, bus.address)
        time.sleep(0.5)
        assert "awake" not in broker.log()
    finally:
        if logind:
            logind.close()


def test_the_guard_sees_it_without_logind(daemon):
    client, watching = daemon.client(ALICE), daemon.client(ALICE)
    watching.watch()
    rt = Hog(daemon.client(BOB), hogs.work, 0.1)

    def stand_still():
        with daemon.paused():
            time.sleep(3)

    for _ in range(2):
        assert seconds_to_notice(client, watching, stand_still) < 3 + SOON_S
    assert rt.sched().policy == FIFO
    assert kernel.sched_getattr(rt.pid)[:2] == (FIFO, 5)
