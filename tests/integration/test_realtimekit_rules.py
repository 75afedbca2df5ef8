# SPDX-License-Identifier: MIT
"""What rtgrantd promises to clients of RealtimeKit beyond the table."""

import os
import resource
import subprocess
import threading
import time

import pytest

import bus as bus_module
import kernel
from agent import ALICE, BOB, CAROL, as_user
from bus import Bus, KIT, KIT_PATH, OK, PROPERTIES, limit_rttime
from daemon import wait_until
from kernel import FIFO, OTHER, RR
from kit import POLICY, RULES, bus, make_kit, policy, serve  # noqa: F401
from test_realtimekit import methods

RTKITCTL = "/usr/sbin/rtkitctl"

pytestmark = pytest.mark.skipif(not bus_module.is_here(),
                                reason="no dbus-daemon, polkitd or python3-dbus")


def test_a_grant_outlives_the_connection(serve, make_kit):
    daemon = serve()
    kit = make_kit()

    assert kit.realtime(0, 10) == OK
    kit.leave()
    assert make_kit(BOB).realtime(0, 5) == OK  # whatever the end of the connection brought is over

    assert kit.sched() == (RR, 10, 0, True)
    lease = daemon.lease_of(kit.pid)
    assert (lease.role, lease.uid) == ("desktop", ALICE)
    kit.client.kill()
    wait_until(lambda: daemon.status().n_leases == 1, what="the end of the lease")


def test_a_demotion_is_not_counted(serve, make_kit):
    serve(policy(GrantBurst=1, GrantRefill="1h"))
    kit = make_kit()

    assert kit.realtime(0, 10) == OK

    assert kit.realtime(kit.client.thread(), 10).error == "AccessDenied"
    for _ in range(20):
        assert kit.high_priority(0, 0) == OK


def test_a_demotion_is_for_everybody(serve, make_kit):
    serve()
    kit = make_kit(CAROL)  # whom polkit refuses
    tid = kit.client.thread()
    kernel.sched_setattr(tid, RR, 5, flags=kernel.RESET_ON_FORK)
    kernel.sched_setattr(kit.pid, OTHER, nice=10)

    assert kit.high_priority(tid, 0) == OK
    assert kit.sched(tid)[:3] == (OTHER, 0, 0)
    assert kit.high_priority(tid, 7) == OK
    assert kit.sched(tid)[:3] == (OTHER, 0, 7)
    # what somebody else had made weaker would be stronger by it
    assert kit.high_priority(tid, 6).error == "AccessDenied"
    assert kit.high_priority(0, 0).error == "AccessDenied"
    assert kit.sched()[2] == 10


def test_a_demotion_ends_the_lease(serve, make_kit):
    daemon = serve()
    kit = make_kit()
    assert kit.realtime(0, 10) == OK and kit.high_priority(0, -11) == OK
    assert daemon.status().n_leases == 1

    assert kit.high_priority(0, 0) == OK

    assert daemon.status().n_leases == 0
    assert kit.sched()[:3] == (OTHER, 0, 0)


def test_R33_with_the_bus_policy_that_is_installed(make_daemon, make_kit):
    bus = Bus(RULES, strict=True)
    try:
        daemon = make_daemon().start(POLICY, environment=bus.environment)
        wait_until(lambda: bus_module.owner_of(bus, KIT) == daemon.pid, 10)
        kit, root = make_kit(on=bus), make_kit(0, on=bus)

        assert kit.realtime(0, 5) == OK and kit.high_priority_of(kit.pid, 0, -5) == OK
        assert kit.get("MinNiceLevel").value == ("i", -15)
        assert methods(kit)
        for member in ("ResetKnown", "ResetAll", "Exit", "Suspend", "Resume"):
            assert "Rejected send message" in kit.call(member).text
        assert kit.call("Get", "ss", KIT, "MinNiceLevel", interface=PROPERTIES, path="/") != OK
        assert "Rejected send message" in kit.call("Set", "ssv", KIT, "MinNiceLevel", 0,
                                                   interface=PROPERTIES).text
        assert root.call("ResetKnown") == OK
        daemon.take_as_base()
    finally:
        bus.close()


def test_exit(serve, make_kit):
    daemon = serve()
    kit = make_kit()
    assert kit.realtime(0, 5) == OK

    assert make_kit(0).call("Exit") == OK

    assert daemon.wait() == 0
    assert kit.sched() == (OTHER, 0, 0, False)


def run_rtkitctl(address, option):
    return subprocess.run([RTKITCTL, option], env={"DBUS_SYSTEM_BUS_ADDRESS": address}, check=False,
                          capture_output=True, timeout=30).returncode


@pytest.mark.skipif(not os.path.exists(RTKITCTL), reason="no rtkitctl")
def test_rtkitctl_works_unchanged(serve, make_kit, bus):
    daemon = serve()
    kit = make_kit()
    assert kit.realtime(0, 5) == OK

    for option in ("--reset-known", "--reset-all", "--exit"):
        assert as_user(ALICE, run_rtkitctl, bus.address, option) != 0
    assert kit.sched()[:2] == (RR, 5)

    for option in ("--reset-known", "--reset-all"):
        assert run_rtkitctl(bus.address, option) == 0
    assert kit.sched()[:2] == (OTHER, 0)
    assert kit.realtime(0, 5) == OK
    assert run_rtkitctl(bus.address, "--exit") == 0
    assert daemon.wait() == 0
    assert kit.sched()[:2] == (OTHER, 0)


def connect_as_root_and_leave_it(agent, address):
    """What the bus says of the connection is not true of the process any more."""
    import dbus

    agent.bus = dbus.bus.BusConnection(address)
    kernel.become(ALICE)


def test_R3_the_bus_and_the_kernel_have_to_agree(serve, make_kit, bus):
    serve()
    kit = make_kit(0)
    kit.client.run(connect_as_root_and_leave_it, bus.address)

    for reply in (kit.realtime(0, 5), kit.call("ResetKnown"), kit.call("Exit")):
        assert reply.error == "AccessDenied" and "another user" in reply.text
    assert kit.sched() == (OTHER, 0, 0, False)


def test_a_client_with_a_short_timeout(serve, make_kit):
    """WebKit gives up after 20 ms, which is enough, once polkit is known to say yes."""
    serve()
    kit = make_kit()
    assert kit.realtime(kit.client.thread(), 5) == OK

    # a busy machine may be late now and then, but not most of the time
    replies = [kit.realtime(kit.client.thread(), 5, timeout_s=0.02) for _ in range(20)]
    assert replies.count(OK) >= 5
    assert {reply.error for reply in replies} <= {"", "NoReply"}


def seconds_until_refused(agent, address):
    begin = time.monotonic()
    reply = bus_module.speak(agent, address, False, KIT, KIT_PATH, KIT, "MakeThreadRealtime", "tu",
                             (0, 5), 10)
    assert reply.error == "AccessDenied"
    return time.monotonic() - begin


def ask_then_limit(agent, address):
    replies = []
    asking = threading.Thread(target=lambda: replies.append(bus_module.speak(
        agent, address, False, KIT, KIT_PATH, KIT, "MakeThreadRealtime", "tu", (0, 5), 10)))
    asking.start()
    time.sleep(0.003)
    resource.setrlimit(bus_module.RLIMIT_RTTIME, (100000, 200000))
    asking.join()
    return replies[0]


def test_a_client_that_asks_before_it_has_limited_its_time(serve, make_kit, bus):
    """As PipeWire after 1.6 does."""
    serve()
    without, other = make_kit(prepare=None), make_kit(BOB)
    assert without.client.run(seconds_until_refused, bus.address) >= 0.01

    def is_granted_late():
        late = make_kit(prepare=None)
        late.client.start("run", ask_then_limit, bus.address)
        assert other.realtime(0, 5) == OK
        return late.client.finish() == OK and late.sched()[:2] == (RR, 5)

    assert wait_until(is_granted_late)


def test_the_policy_says_which(serve, make_kit):
    daemon = serve({**policy(RealtimeKitPolicy="fifo", RealtimeKitRTTime="300ms",
                             RealtimeKitRTTimeUnset="accept"),
                    "Role desktop": {**POLICY["Role desktop"], "Priority": "1-10", "Nice": "-5"}})
    kit = make_kit(prepare=limit_rttime(300000, 300000))

    assert kit.get("RTTimeUSecMax").value == ("x", 300000)
    assert kit.get("MaxRealtimePriority").value == ("i", 10)
    assert kit.get("MinNiceLevel").value == ("i", -5)
    assert kit.realtime(0, 10) == OK
    assert kit.sched() == (FIFO, 10, 0, True)
    assert make_kit(prepare=None).realtime(0, 10) == OK
    assert make_kit(prepare=limit_rttime(300000, 300001)).realtime(0, 10).error == "AccessDenied"
    daemon.take_as_base()
