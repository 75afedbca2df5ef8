# SPDX-License-Identifier: MIT
"""The faults of rtkit-daemon, each by its number: rtgrantd has none of them."""

import os
import re
import signal
import stat
import time

import pytest

import bus as bus_module
import kernel
from agent import ALICE, BOB, CAROL, Client
from bus import KIT, OK, RtkitDaemon, limit_rttime
from daemon import wait_until
from kernel import OTHER, RR
from kit import POLICY, ask_one_after_the_other, bus, knows, make_kit, policy, serve  # noqa: F401
from test_namespace import own_pid_namespace

pytestmark = pytest.mark.skipif(not bus_module.is_here(),
                                reason="no dbus-daemon, polkitd or python3-dbus")


def test_each_has_its_test():
    numbers = {int(number) for name in globals() if name.startswith("test_")
               for number in re.findall(r"_W(\d+)(?=_)", name)}

    assert numbers == set(range(1, 17))


def test_W1_a_user_more_than_fit(serve, make_kit):
    """rtkit-daemon crashes."""
    daemon = serve(policy(ThreadsMax=1))
    first, second = make_kit(), make_kit(BOB)
    assert first.realtime(0, 5) == OK

    for _ in range(5):
        refused = second.realtime(0, 5)
        assert refused.error == "AccessDenied" and "ThreadsMax=" in refused.text
    assert daemon.process.poll() is None
    assert first.realtime(0, 6) == OK

    assert first.high_priority(0, 0) == OK
    assert second.realtime(0, 5) == OK


def test_W14_who_is_refused_takes_no_place(serve, make_kit):
    """rtkit-daemon counts threads and processes before it asks polkit."""
    daemon = serve(policy(ThreadsPerUser=1, ThreadsMax=1))
    kit, refused = make_kit(), make_kit(CAROL)

    for _ in range(5):
        assert kit.realtime(kit.client.thread(), 21).error == "AccessDenied"
        assert refused.realtime(refused.client.thread(), 5).error == "AccessDenied"
    assert daemon.status().n_leases == daemon.status().n_users == 0

    assert kit.realtime(0, 20) == OK


def test_W2_many_requests_do_not_kill_it(serve, make_kit, bus):
    """rtkit-daemon dies of its own RLIMIT_RTTIME after 700 to 2500 requests."""
    daemon = serve(policy(MessageBurst=20000))
    kit = make_kit()

    assert kit.client.run(ask_one_after_the_other, bus.address, 5000) == {"": 5000}

    assert daemon.process.poll() is None


def test_W3_its_end_restores(serve, make_kit):
    daemon = serve()
    kit = make_kit()
    tid = kit.client.thread()
    assert kit.realtime(0, 10) == OK and kit.high_priority(tid, -11) == OK

    daemon.stop()

    assert kit.sched() == kit.sched(tid) == (OTHER, 0, 0, False)


def test_W4_polkit_is_asked_about_the_caller(bus, serve, make_kit):
    """A process outside of any session gains nothing by naming one that is in an active one."""
    bus.write_rules("polkit.addRule(function(a, s) {"
                    ' if (s.user == "nobody") return polkit.Result.YES; });')
    bus.kill()
    bus.start()
    enter = bus.session(ALICE)
    limit = limit_rttime()

    def in_session():
        enter()
        limit()

    serve()
    inside, outside = make_kit(prepare=in_session), make_kit()

    assert inside.realtime(0, 5) == OK  # by the defaults of the actions
    refused = outside.realtime_of(inside.pid, inside.client.thread(), 5)
    assert refused.error == "AccessDenied" and "polkit" in refused.text
    assert inside.realtime_of(outside.pid, 0, 5) == OK


def test_W5_who_waits_for_polkit_holds_up_nobody(serve, make_kit, bus):
    serve()
    waiting, other, known = make_kit(), make_kit(BOB), make_kit(BOB)
    assert known.realtime(0, 5) == OK

    bus.hang()
    waiting.start("MakeThreadRealtime", "tu", 0, 5)
    start = time.monotonic()
    assert other.get("MaxRealtimePriority").value == ("i", 20)
    assert known.realtime(0, 5) == OK  # which polkit has allowed before
    assert time.monotonic() - start < 5
    refused = waiting.client.finish()
    assert refused.error == "AccessDenied" and "polkit" in refused.text
    assert time.monotonic() - start < 5
    assert waiting.sched() == (OTHER, 0, 0, False)
    bus.go_on()

    assert wait_until(lambda: waiting.realtime(0, 5) == OK, 10)


def test_polkit_may_take_its_time_at_a_login(serve, make_kit, bus):
    """PipeWire and PulseAudio ask once; polkit has to find out about the new session first."""
    serve()
    waiting = make_kit()
    bus.hang()
    waiting.start("MakeThreadRealtime", "tu", 0, 5)
    time.sleep(1.5)
    bus.go_on()
    waiting.client.finish()
    assert waiting.sched()[:2] == (RR, 5)


def test_W6_all_is_withdrawn_while_others_ask(serve, make_kit, bus):
    """rtkit-daemon's watchdog walks a list that another thread of it changes."""
    daemon = serve(policy(MessageBurst=20000))
    askers, root = [make_kit(), make_kit(BOB)], make_kit(0)

    for asker in askers:
        asker.client.start("run", ask_one_after_the_other, bus.address, 500)
    for _ in range(100):
        assert root.call("ResetKnown") == OK
    for asker in askers:
        assert asker.client.finish() == {"": 500}

    assert root.call("ResetKnown") == OK
    assert daemon.status().n_leases == 0
    assert all(asker.sched()[:2] == (OTHER, 0) for asker in askers)
    assert daemon.process.poll() is None


def test_W7_what_else_runs_as_its_user(bus, serve, make_daemon, make_kit):
    """rtkit-daemon does not start while even a dead predecessor of it is still in the table."""
    before = serve()
    process = before.process
    os.kill(before.pid, signal.SIGKILL)
    wait_until(lambda: kernel.status(before.pid, "State").startswith("Z"), what="a dead process")

    after = make_daemon().start(POLICY, environment=bus.environment)
    try:
        wait_until(lambda: bus_module.owner_of(bus, KIT) == after.pid, what="the name")
        assert make_kit().realtime(0, 5) == OK
    finally:
        before.process = None
        before._forget_admin()
        process.wait()
    after.take_as_base()


def test_W8_without_budget_for_itself(bus, budgetless_group, make_daemon, make_kit):
    def join():
        (budgetless_group / "cgroup.procs").write_text("0")

    daemon = make_daemon().start(POLICY, environment=bus.environment, prepare=join)
    wait_until(lambda: bus_module.owner_of(bus, KIT) == daemon.pid, 10)
    kit = make_kit()
    refused = kit.realtime(0, 5)
    assert refused.error == "AccessDenied" and "cgroup" in refused.text
    assert kit.high_priority(0, -5) == OK
    daemon.take_as_base()


def test_W9_its_log_may_be_a_file(serve, make_kit):
    """rtkit-daemon gives itself a limit of 0 for the size of files, and dies of its first line."""
    daemon = serve()
    log = os.stat(f"/proc/{daemon.pid}/fd/2")
    assert stat.S_ISREG(log.st_mode)

    assert make_kit().realtime(0, 5) == OK

    wait_until(lambda: os.stat(f"/proc/{daemon.pid}/fd/2").st_size > log.st_size, what="a line")
    assert daemon.process.poll() is None


@pytest.mark.skipif(not bus_module.has_rtkit(), reason="no rtkit-daemon")
def test_W10_takes_over_from_rtkit_daemon(bus, make_daemon, make_kit):
    reference = RtkitDaemon(bus)
    try:
        daemon = make_daemon().start(POLICY, environment=bus.environment)
        wait_until(lambda: "somebody else serves" in daemon.log(), what="the line about it")
        assert bus_module.owner_of(bus, KIT) == reference.pid
    finally:
        reference.close()

    wait_until(lambda: bus_module.owner_of(bus, KIT) == daemon.pid, 10)
    assert make_kit().realtime(0, 5) == OK
    daemon.take_as_base()


def test_W11_R33_administration_is_for_root(serve, make_kit):
    """On a bus that lets everybody send everything."""
    daemon = serve()
    kit = make_kit()
    assert kit.realtime(0, 5) == OK

    for member in ("ResetKnown", "ResetAll", "Exit", "Suspend", "Resume"):
        assert kit.call(member).error == "AccessDenied"

    assert kit.sched() == (RR, 5, 0, True)
    assert daemon.process.poll() is None


def test_W12_suspend_and_resume(serve, make_kit):
    daemon = serve()
    kit, root = make_kit(), make_kit(0)
    tid = kit.client.thread()
    over_socket = daemon.client(ALICE)
    assert kit.realtime(0, 5) == OK
    assert kit.realtime(tid, 5) == OK and kit.high_priority(tid, -3) == OK

    assert root.call("Suspend") == OK
    assert kit.sched()[:3] == kit.sched(tid)[:3] == (OTHER, 0, 0)
    assert kit.realtime(0, 5).error == "AccessDenied"
    assert kit.high_priority(0, -5).error == "AccessDenied"
    assert kit.high_priority(0, 5) == OK

    assert root.call("Resume") == OK
    assert kit.sched()[:3] == (OTHER, 0, 5)
    assert kit.sched(tid)[:3] == (OTHER, 0, 0)  # nothing stale comes back
    assert kit.realtime(0, 5) == OK
    over_socket.close()


def test_W13_its_log_says_who_and_what(serve, make_kit):
    """rtkit-daemon loses user database, time zone and the way to the log by its chroot(2).

    Here the user is a number on purpose: a name may have to be asked from the network.
    """
    daemon = serve()
    kit = make_kit()

    assert kit.realtime(0, 5) == OK

    line = wait_until(lambda: next((each for each in daemon.log().splitlines()
                                    if f"process {kit.pid}" in each), None), what="its line")
    for word in (f"user {ALICE}", f"thread {kit.pid}", "SCHED_RR 5", "role desktop", "granted"):
        assert word in line
    assert os.readlink(f"/proc/{daemon.pid}/root") == "/"


def own_pid_namespace_with_limit():
    enter, limit = own_pid_namespace(), limit_rttime()

    def prepare():
        limit()
        enter()

    return prepare


def test_W15_from_a_pid_namespace(serve, make_kit):
    serve()
    kit = make_kit(prepare=own_pid_namespace_with_limit())
    inner = kit.client.thread()

    assert kit.realtime(inner, 5) == OK
    assert kit.realtime(0, 6) == OK
    assert kit.realtime_of(os.getpid(), 0, 5).error == "Failed"


def take_number(pid, uid):
    """A process of @uid whose id is @pid, which is free; None if others were quicker each time."""
    for _ in range(200):
        with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
            file.write(str(pid - 1))
        client = Client(None, uid)
        if client.pid == pid:
            return client
        client.kill()
    return None


def test_W16_who_has_the_number_now_is_let_be(serve, make_kit, bus):
    """rtkit-daemon takes the priority of whoever has the number of a thread that is gone."""
    daemon = serve()
    kit, gone, other = make_kit(), make_kit(), make_kit(BOB)
    number = gone.pid
    bus.hang()
    kit.start("MakeThreadRealtimeWithPID", "ttu", number, 0, 5)
    wait_until(lambda: knows(daemon, kit.pid), what="the question")
    assert other.get("MinNiceLevel").value == ("i", -15)  # by now it has been looked at
    gone.client.kill()

    other = take_number(number, BOB)
    bus.go_on()
    try:
        if other:
            kernel.sched_setattr(number, RR, 3)
        assert kit.client.finish() != OK
        if not other:
            pytest.skip("the number was never free for us")
        assert other.sched()[:2] == (RR, 3)
    finally:
        if other:
            other.kill()
