# SPDX-License-Identifier: MIT
"""RealtimeKit's interface while polkit or the bus goes, hangs or comes back, and under floods."""

import os
import time

import pytest

import bus as bus_module
from agent import ALICE, BOB
from bus import Bus, KIT, KIT_PATH, OK
from daemon import wait_until
from kernel import RR
from kit import ask_one_after_the_other, bus, make_kit, policy, serve  # noqa: F401

pytestmark = pytest.mark.skipif(not bus_module.is_here(),
                                reason="no dbus-daemon, polkitd or python3-dbus")


def test_without_polkit(make_daemon, make_kit):
    bus = Bus(polkit=False)
    try:
        daemon = make_daemon().start(policy(), environment=bus.environment)
        wait_until(lambda: bus_module.owner_of(bus, KIT) == daemon.pid, 10)
        daemon.take_as_base()
        kit = make_kit(on=bus)
        assert kit.realtime(0, 5).error == "AccessDenied"
        assert kit.high_priority(0, -5).error == "AccessDenied"
        assert kit.high_priority(0, 5) == OK
        kit.client.kill()

        daemon.reload({**policy(Authority="static"), "Role desktop": {"AllowUsers": ALICE}})
        allowed = make_kit(on=bus)
        assert allowed.realtime(0, 5) == OK
        assert make_kit(BOB, on=bus).realtime(0, 5).error == "AccessDenied"
    finally:
        bus.close()


def test_too_many_messages_are_refused(serve, make_kit, bus):
    serve(policy(MessageBurst=50, MessageRefill="1s"))

    errors = make_kit().client.run(ask_one_after_the_other, bus.address, 200)

    assert errors[""] >= 50 and errors["LimitsExceeded"] >= 100
    assert make_kit(BOB).realtime(0, 5) == OK


def ask_over_many_connections(agent, address, n):
    """All of them open at a time."""
    import dbus

    connections = [dbus.bus.BusConnection(address) for _ in range(n)]
    for _ in range(2):
        for connection in connections:
            connection.call_blocking(KIT, KIT_PATH, KIT, "MakeThreadRealtime", "tu", (0, 5))
    agent.kept = connections
    return [connection.get_unique_name() for connection in connections]


def test_more_senders_than_are_remembered(serve, make_kit, bus):
    daemon = serve()
    kits = [make_kit(), make_kit(BOB)]

    for kit in kits:
        assert len(set(kit.client.run(ask_over_many_connections, bus.address, 200))) == 200

    assert daemon.n_fds() < 320


def test_the_bus_goes_and_comes_back(serve, make_kit, bus):
    daemon = serve()
    kit = make_kit()
    over_socket = daemon.client(ALICE)
    assert kit.realtime(0, 10) == OK

    bus.kill_bus()
    wait_until(lambda: "the system bus is gone" in daemon.log(), what="the line about it")
    assert kit.sched() == (RR, 10, 0, True)
    assert over_socket.hello().uid == ALICE
    assert daemon.lease_of(kit.pid)

    os.unlink(f"{bus.directory}/bus")
    bus.kill()
    bus.start_bus()
    bus.start()
    wait_until(lambda: bus_module.owner_of(bus, KIT) == daemon.pid, 20, "the name on the new bus")
    again = make_kit()
    assert wait_until(lambda: again.realtime(0, 5) == OK, 20, "a grant")
    over_socket.close()
    daemon.take_as_base()


def pester(agent, address, n):
    """Calls of every wrong kind, by names that are gone before the answer."""
    import dbus.lowlevel

    wrong = [
        (KIT, "MakeThreadRealtime", "s", ["now"]),
        (KIT, "MakeThreadRealtime", "tttttttt", [2 ** 64 - 1] * 8),
        (KIT, "MakeThreadRealtime", "tu", [2 ** 64 - 1, 2 ** 32 - 1]),
        (KIT, "MakeThreadRealtimeWithPID", "ttu", [2 ** 63, 2 ** 63, 5]),
        (KIT, "MakeThreadHighPriorityWithPID", "tti", [2 ** 32, 0, -2 ** 31]),
        (KIT, "MakeThreadHighPriority", "aay", [[b"x" * 1000] * 100]),
        (KIT, "ResetAll", "", []),
        (KIT, "x" * 255, "", []),
        ("org.freedesktop.DBus.Properties", "Set", "ssv", [KIT, "MinNiceLevel", -20]),
        ("org.freedesktop.DBus.Properties", "GetAll", "s", ["x" * 10000]),
        ("org.freedesktop.DBus.Introspectable", "Introspect", "", []),
    ]
    for _ in range(n):
        connection = dbus.bus.BusConnection(address)
        for interface, member, signature, values in wrong:
            message = dbus.lowlevel.MethodCallMessage(KIT, KIT_PATH, interface, member)
            message.append(*values, signature=signature)
            connection.send_message(message)
        connection.flush()
        connection.close()


def median_s(kit):
    took = []
    for _ in range(21):
        begin = time.monotonic()
        assert kit.get("MinNiceLevel").value == ("i", -15)
        assert kit.realtime(0, 5) == OK
        took.append(time.monotonic() - begin)
    return sorted(took)[10]


def test_a_hostile_user_holds_up_nobody_else(serve, make_kit, bus, slowness):
    daemon = serve()
    hostile, other = make_kit(), make_kit(BOB)
    quiet_s = median_s(other)

    hostile.client.start("run", pester, bus.address, 200)
    beside_s = median_s(other)
    hostile.client.finish()

    # the two share the machine and the bus daemon, so it may take longer, but not without bounds
    assert beside_s < 50 * quiet_s + 0.05 * slowness
    assert daemon.process.poll() is None
    assert [lease.uid for lease in daemon.leases()] == [BOB]
    wait_until(lambda: hostile.realtime(0, 5) == OK, what="that it is served again")
