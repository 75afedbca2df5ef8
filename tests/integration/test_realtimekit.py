# SPDX-License-Identifier: MIT
"""RealtimeKit's interface: one table for rtgrantd and rtkit-daemon, then what only we promise."""

import contextlib
import os
import re
import tempfile
import time
import xml.etree.ElementTree
from collections import namedtuple

import pytest

import bus as bus_module
import kernel
from agent import ALICE, BOB, CAROL, NOBODY, Client
from bus import KIT, KIT_PATH, OK, PROPERTIES, Bus, Kit, RtkitDaemon, limit_rttime
from daemon import Daemon, wait_until
from kernel import FIFO, OTHER, RR
from test_namespace import own_pid_namespace

pytestmark = pytest.mark.skipif(not bus_module.is_here(),
                                reason="no dbus-daemon, polkitd or python3-dbus")

# everybody may, but for carol
RULES = """polkit.addRule(function(action, subject) {
    if (action.id.indexOf("org.freedesktop.RealtimeKit1.") == 0)
        return subject.user == "carol" ? polkit.Result.NO : polkit.Result.YES;
});
"""

POLICY = {
    "Broker": {"Authority": "polkit", "RealtimeKitRole": "desktop"},
    "Role desktop": {"AllowUsers": None, "PolkitAction": "org.rtgrant.realtime"},
}


def policy(**broker):
    return {**POLICY, "Broker": {**POLICY["Broker"], **broker}}


# -- the table --

Row = namedtuple("Row", "name act expected rtkit why", defaults=(None, ""))
"""
act(kit)    what a client of alice does, with RLIMIT_RTTIME of 100 and 200 ms; what came of it
expected    of rtgrantd, and of rtkit-daemon unless
rtkit       is what rtkit-daemon does instead, and
why         we do not
"""


def said(reply):
    return reply.error or "ok"


def realtime(thread, priority):
    return lambda kit: (said(kit.realtime(thread, priority)), kit.sched()[:3])


def high_priority(thread, nice):
    return lambda kit: (said(kit.high_priority(thread, nice)), kit.sched()[:3])


def own_thread_by_number(kit):
    tid = kit.client.thread()
    return said(kit.realtime(tid, 7)), kit.sched(tid), kit.sched()[:2]


def own_thread_with_pid(kit):
    tid = kit.client.thread()
    return said(kit.realtime_of(kit.pid, tid, 7)), kit.sched(tid)


def main_thread_with_pid(kit):
    return said(kit.realtime_of(kit.pid, 0, 7)), kit.sched()


def child_with_pid(kit):
    child = kit.client.child()
    return said(kit.realtime_of(child, child, 7)), kernel.sched_getattr(child)


def child_high_priority_with_pid(kit):
    child = kit.client.child()
    return said(kit.high_priority_of(child, 0, -7)), kernel.sched_getattr(child)


def then(*steps):
    """The last of several calls."""

    def act(kit):
        for step in steps:
            result = step(kit)
            assert result[0] == "ok"
        return result

    return act


def over_a_new_connection_each(kit):
    tid = kit.client.thread()
    replies = [kit.realtime(tid, 5, fresh=True), kit.high_priority(0, -5, fresh=True)]
    return [said(reply) for reply in replies], kit.sched(tid)[:2], kit.sched()[2]


def thread_of_nobody(kit):
    return said(kit.realtime(1 << 22, 5))


def thread_of_another_process(kit):
    return said(kit.realtime(kit.client.child(), 5))


def process_of_another_user(kit):
    other = Client(None, BOB, prepare=limit_rttime())
    try:
        return said(kit.realtime_of(other.pid, other.pid, 5)), other.sched()[:2]
    finally:
        other.kill()


def number_too_large(kit):
    return said(kit.realtime_of(2 ** 32 + kit.pid, 2 ** 32 + kit.pid, 5))


def process_minus_one(kit):
    return said(kit.realtime_of(2 ** 32 - 1, 0, 5))


def with_rttime(soft_us, hard_us, act=None):
    def act_of_another(kit):
        other = Kit(kit.bus, Client(None, ALICE, prepare=limit_rttime(soft_us, hard_us)))
        try:
            tid = other.client.thread()  # sleeps, so that no limit hits it
            if act:
                return act(other, tid)
            return said(other.realtime(tid, 5)), other.sched(tid)[:2]
        finally:
            other.client.kill()

    return act_of_another


def high_priority_of_thread(kit, tid):
    return said(kit.high_priority(tid, -5)), kit.sched(tid)[2]


def refused_by_polkit(kit):
    other = Kit(kit.bus, Client(None, CAROL, prepare=limit_rttime()))
    try:
        return said(other.realtime(0, 5)), said(other.high_priority(0, -5)), other.sched()
    finally:
        other.client.kill()


def root_for_a_user(kit):
    root = Kit(kit.bus, Client(None, 0))
    try:
        return said(root.realtime_of(kit.pid, 0, 5)), kit.sched()[:2]
    finally:
        root.client.kill()


def reset_known_by_root(kit):
    root = Kit(kit.bus, Client(None, 0))
    try:
        replies = kit.realtime(0, 5), root.call("ResetKnown")
        return [said(reply) for reply in replies], kit.sched()[:3]
    finally:
        root.client.kill()


def reset_all_by_root(kit):
    root = Kit(kit.bus, Client(None, 0))
    tid, roots = kit.client.thread(), root.client.thread()
    kernel.sched_setattr(tid, FIFO, 3)
    kernel.sched_setattr(roots, FIFO, 3)
    try:
        return said(root.call("ResetAll")), kit.sched(tid)[:3], root.sched(roots)[:2]
    finally:
        root.client.kill()


def methods(kit):
    text = kit.call("Introspect", interface="org.freedesktop.DBus.Introspectable").value
    (interface,) = [each for each in xml.etree.ElementTree.fromstring(text)
                    if each.get("name") == KIT]
    return {method.get("name"): "".join(arg.get("type") for arg in method.findall("arg"))
            for method in interface.findall("method")}


METHODS = {
    "MakeThreadRealtime": "tu", "MakeThreadRealtimeWithPID": "ttu",
    "MakeThreadHighPriority": "ti", "MakeThreadHighPriorityWithPID": "tti",
    "ResetKnown": "", "ResetAll": "", "Exit": "",
}

CONSTANTS = {"RTTimeUSecMax": ("x", 200000), "MaxRealtimePriority": ("i", 20),
             "MinNiceLevel": ("i", -15)}


def get(name, interface=KIT):
    def act(kit):
        reply = kit.get(name, interface)
        return reply.error or reply.value

    return act


def get_all(kit):
    reply = kit.call("GetAll", "s", KIT, interface=PROPERTIES)
    return reply.error or reply.value


def call(member, signature="", *arguments, **values):
    return lambda kit: said(kit.call(member, signature, *arguments, **values))


ONE_ERROR = "what is there and somebody else's is as what is not there"

TABLE = [
    Row("realtime-main-thread-by-0", realtime(0, 10), ("ok", (RR, 10, 0))),
    Row("realtime-lowest", realtime(0, 1), ("ok", (RR, 1, 0))),
    Row("realtime-highest", realtime(0, 20), ("ok", (RR, 20, 0))),
    Row("realtime-above-is-not-clamped", realtime(0, 21), ("AccessDenied", (OTHER, 0, 0))),
    Row("realtime-99", realtime(0, 99), ("AccessDenied", (OTHER, 0, 0))),
    Row("realtime-0", realtime(0, 0), ("Failed", (OTHER, 0, 0))),
    Row("realtime-100", realtime(0, 100), ("Failed", (OTHER, 0, 0))),
    Row("realtime-2-to-the-31", realtime(0, 2 ** 31), ("Failed", (OTHER, 0, 0))),
    Row("realtime-2-to-the-32-less-1", realtime(0, 2 ** 32 - 1), ("Failed", (OTHER, 0, 0))),
    Row("realtime-thread-by-number", own_thread_by_number,
        ("ok", (RR, 7, 0, True), (OTHER, 0))),
    Row("realtime-with-pid", own_thread_with_pid, ("ok", (RR, 7, 0, True))),
    Row("realtime-with-pid-main-thread-by-0", main_thread_with_pid, ("ok", (RR, 7, 0, True))),
    Row("realtime-of-another-process", child_with_pid, ("ok", (RR, 7, 0, True))),
    Row("realtime-again", then(realtime(0, 10), realtime(0, 10)), ("ok", (RR, 10, 0))),
    Row("realtime-lower", then(realtime(0, 10), realtime(0, 5)), ("ok", (RR, 5, 0))),
    Row("realtime-higher", then(realtime(0, 5), realtime(0, 10)), ("ok", (RR, 10, 0))),
    Row("high-priority", high_priority(0, -11), ("ok", (OTHER, 0, -11))),
    Row("high-priority-strongest", high_priority(0, -15), ("ok", (OTHER, 0, -15))),
    Row("high-priority-too-strong", high_priority(0, -16), ("AccessDenied", (OTHER, 0, 0))),
    Row("high-priority-minus-20", high_priority(0, -20), ("AccessDenied", (OTHER, 0, 0))),
    Row("high-priority-minus-21", high_priority(0, -21), ("Failed", (OTHER, 0, 0))),
    Row("high-priority-20", high_priority(0, 20), ("Failed", (OTHER, 0, 0))),
    Row("high-priority-0", high_priority(0, 0), ("ok", (OTHER, 0, 0))),
    Row("high-priority-19", high_priority(0, 19), ("ok", (OTHER, 0, 19))),
    Row("high-priority-weaker-and-back", then(high_priority(0, 10), high_priority(0, 0)),
        ("ok", (OTHER, 0, 0))),
    Row("high-priority-of-another-process", child_high_priority_with_pid,
        ("ok", (OTHER, 0, -7, True))),
    Row("high-priority-ends-realtime", then(realtime(0, 10), high_priority(0, -11)),
        ("ok", (OTHER, 0, -11))),
    Row("high-priority-0-ends-realtime", then(realtime(0, 10), high_priority(0, 0)),
        ("ok", (OTHER, 0, 0))),
    Row("high-priority-then-realtime", then(high_priority(0, -11), realtime(0, 10)),
        ("ok", (RR, 10, -11))),
    Row("high-priority-0-ends-both",
        then(high_priority(0, -11), realtime(0, 10), high_priority(0, 0)), ("ok", (OTHER, 0, 0))),
    Row("a-connection-each", over_a_new_connection_each, (["ok", "ok"], (RR, 5), -5)),

    Row("no-such-thread", thread_of_nobody, "Failed"),
    Row("thread-of-another-process", thread_of_another_process, "Failed"),
    Row("process-of-another-user", process_of_another_user, ("Failed", (OTHER, 0)),
        ("AccessDenied", (OTHER, 0)), ONE_ERROR),
    Row("root-for-a-user", root_for_a_user, ("Failed", (OTHER, 0)),
        ("AccessDenied", (OTHER, 0)), ONE_ERROR),
    Row("process-2-to-the-32-and-more", number_too_large, "Failed", "ok",
        "it cuts numbers to 32 bits"),
    Row("process-2-to-the-32-less-1", process_minus_one, "Failed", "ok",
        "it takes it for -1, and that for the caller"),
    Row("process-0", lambda kit: said(kit.realtime_of(0, 0, 5)), "Failed"),

    Row("rttime-unset", with_rttime(-1, -1), ("AccessDenied", (OTHER, 0))),
    Row("rttime-soft-alone", with_rttime(100000, -1), ("AccessDenied", (OTHER, 0))),
    Row("rttime-too-long", with_rttime(100000, 200001), ("AccessDenied", (OTHER, 0))),
    Row("rttime-longest", with_rttime(200000, 200000), ("ok", (RR, 5))),
    Row("rttime-0", with_rttime(0, 0), ("AccessDenied", (OTHER, 0)), ("ok", (RR, 5)),
        "the kernel kills such a thread at its first tick"),
    Row("rttime-soft-0", with_rttime(0, 200000), ("AccessDenied", (OTHER, 0)), ("ok", (RR, 5)),
        "SIGXCPU ends it as well"),
    Row("rttime-too-short", with_rttime(4999, 4999), ("AccessDenied", (OTHER, 0)),
        ("ok", (RR, 5)), "less than a tick of most kernels"),
    Row("rttime-short", with_rttime(5000, 5000), ("ok", (RR, 5))),
    Row("rttime-is-not-for-high-priority", with_rttime(-1, -1, high_priority_of_thread),
        ("ok", -5)),
    Row("polkit-says-no", refused_by_polkit,
        ("AccessDenied", "AccessDenied", (OTHER, 0, 0, False))),

    Row("property-rttime", get("RTTimeUSecMax"), ("x", 200000)),
    Row("property-priority", get("MaxRealtimePriority"), ("i", 20)),
    Row("property-nice", get("MinNiceLevel"), ("i", -15)),
    Row("property-rttime-older-name", get("RTTimeNSecMax"), ("x", 200000), "UnknownProperty",
        "FluidSynth asks for it, and means µs"),
    Row("property-unknown", get("Unknown"), "UnknownProperty"),
    Row("property-of-unknown-interface", get("MinNiceLevel", "org.example"), "UnknownProperty"),
    Row("property-without-interface", get("MinNiceLevel", ""), "UnknownProperty"),
    Row("properties-all", get_all, {**CONSTANTS, "RTTimeNSecMax": ("x", 200000)}, "UnknownMethod",
        "0.13 does not have it, 0.14 does; GDBusProxy asks it first"),
    Row("property-set", call("Set", "ssv", KIT, "MinNiceLevel", 0, interface=PROPERTIES),
        "PropertyReadOnly", "UnknownMethod", "it does not have it"),

    Row("introspection", methods, {**METHODS, "Suspend": "", "Resume": ""}, METHODS,
        "0.13 does not have them, 0.14 does"),
    Row("ping", call("Ping", interface="org.freedesktop.DBus.Peer"), "ok"),
    Row("unknown-method", call("MakeThread"), "UnknownMethod"),
    Row("unknown-interface", call("MakeThreadRealtime", interface="org.example"), "UnknownMethod"),
    Row("unknown-path", call("MakeThreadRealtime", "tu", 0, 5, path="/org/example"),
        "UnknownObject", "UnknownMethod", "the name that there is for this"),
    Row("wrong-types", call("MakeThreadRealtime", "uu", 0, 5), "InvalidArgs"),
    Row("too-few-values", call("MakeThreadRealtime", "t", 0), "InvalidArgs"),
    Row("too-many-values", call("MakeThreadRealtime", "tuu", 0, 5, 5), "InvalidArgs", "ok",
        "it does not look at what comes after"),

    Row("reset-known-by-a-user", call("ResetKnown"), "AccessDenied", "ok",
        "W11: it leaves that to the bus's policy alone"),
    Row("reset-all-by-a-user", call("ResetAll"), "AccessDenied", "ok", "W11"),
    Row("reset-known", reset_known_by_root, (["ok", "ok"], (OTHER, 0, 0))),
    Row("reset-all", reset_all_by_root, ("ok", (OTHER, 0, 0), (FIFO, 3))),
]


@pytest.fixture(scope="module")
def ours(programs, directory):
    bus = Bus(RULES)
    where = tempfile.mkdtemp(dir=directory)
    os.chmod(where, 0o755)
    daemon = Daemon(programs, where)
    try:
        daemon.start(POLICY, environment=bus.environment)
        wait_until(lambda: bus_module.owner_of(bus, KIT) == daemon.pid, 10)
        yield bus
        daemon.take_as_base()
    finally:
        daemon.close()
        bus.close()


@pytest.fixture(scope="module")
def reference():
    bus, daemon = Bus(RULES), None
    try:
        daemon = RtkitDaemon(bus, "--actions-per-burst-max=100000",
                             "--threads-per-user-max=1000", "--processes-per-user-max=1000")
        yield bus
    finally:
        if daemon:
            daemon.close()
        bus.close()


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
@pytest.mark.parametrize("broker", ["rtgrantd", "rtkit-daemon"])
def test_interface(request, broker, row):
    if broker == "rtkit-daemon" and not bus_module.has_rtkit():
        pytest.skip("no rtkit-daemon")
    bus = request.getfixturevalue("ours" if broker == "rtgrantd" else "reference")
    expected = row.expected
    if broker == "rtkit-daemon" and row.rtkit is not None:
        assert row.why and row.rtkit != row.expected
        expected = row.rtkit

    kit = Kit(bus, Client(None, ALICE, prepare=limit_rttime()))
    try:
        assert row.act(kit) == expected
    finally:
        kit.client.kill()


# -- what rtgrantd promises beyond --


@pytest.fixture
def bus():
    made = Bus(RULES)
    yield made
    made.close()


@pytest.fixture
def serve(bus, make_daemon):
    """Starts the broker on the bus; who it is then."""

    def start(changes=None, on=None, **values):
        on = on or bus
        daemon = make_daemon().start(changes or POLICY, environment=on.environment, **values)
        wait_until(lambda: bus_module.owner_of(on, KIT) == daemon.pid, 10, "the name on the bus")
        if on.polkitd:
            # with the first answer the broker is connected to polkit for good
            asker = Client(None, NOBODY, prepare=limit_rttime())
            assert Kit(on, asker).realtime(0, 1) == OK
            asker.kill()
        wait_until(lambda: daemon.status().n_leases == 0)
        daemon.take_as_base()
        return daemon

    return start


@pytest.fixture
def make_kit(bus):
    made = []

    def make(uid=ALICE, prepare=limit_rttime(), on=None):
        made.append(Client(None, uid, prepare=prepare))
        return Kit(on or bus, made[-1])

    yield make
    for client in made:
        client.kill()


def in_words(reply):
    """Without the numbers, which the caller itself has named."""
    return reply.error, re.sub(r"\d+", "N", reply.text)


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


def test_asking_again_costs_nothing(serve, make_kit, bus):
    serve(policy(GrantBurst=2, GrantRefill="1h"))
    kit = make_kit()
    tids = [kit.client.thread() for _ in range(3)]

    for _ in range(20):
        assert kit.realtime(tids[0], 10) == OK
    assert kit.realtime(tids[1], 10) == OK

    assert kit.realtime(tids[2], 10).error == "AccessDenied"
    assert kit.sched(tids[2]) == (OTHER, 0, 0, False)
    assert kit.high_priority(tids[0], 0) == OK  # a demotion is not counted


def test_refusals_cost_nothing(serve, make_kit):
    daemon = serve(policy(GrantBurst=1, GrantRefill="1h"))
    kit = make_kit()

    for _ in range(20):
        assert kit.realtime(0, 21).error == "AccessDenied"
        assert kit.high_priority(0, -16).error == "AccessDenied"
    assert daemon.status().n_leases == 0  # W14: and nothing is kept of who was refused

    assert kit.realtime(0, 20) == OK


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


def test_R16_one_error_for_all_that_is_not_the_callers(serve, make_kit):
    serve()
    kit, other = make_kit(), make_kit(BOB)
    missing = 1 << 22

    for thread_of in (lambda pid: 0, lambda pid: pid):
        replies = {in_words(kit.realtime_of(pid, thread_of(pid), 5))
                   for pid in (other.pid, missing, 1, os.getpid())}
        assert len(replies) == 1 and replies.pop()[0] == "Failed"
    assert other.sched() == (OTHER, 0, 0, False)


def test_W1_W14_quota_of_users_threads(serve, make_kit):
    daemon = serve(policy(ThreadsPerUser=1))
    kit = make_kit()

    assert kit.realtime(0, 5) == OK
    assert kit.realtime(kit.client.thread(), 5).error == "AccessDenied"
    assert make_kit(BOB).realtime(0, 5) == OK
    assert daemon.status().n_leases == 2


def ask_one_after_the_other(agent, address, n):
    errors = {}
    for _ in range(n):
        reply = bus_module.speak(agent, address, False, KIT, KIT_PATH, KIT, "MakeThreadRealtime",
                                 "tu", (0, 5), 10)
        errors[reply.error] = errors.get(reply.error, 0) + 1
    return errors


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


def test_who_is_gone_before_polkit_answers(serve, make_kit, bus):
    daemon = serve()
    leaving, staying = make_kit(), make_kit(BOB)

    bus.hang()
    leaving.start("MakeThreadRealtime", "tu", 0, 5)
    wait_until(lambda: knows(daemon, leaving.pid), what="the question")
    leaving.client.kill()
    bus.go_on()

    assert wait_until(lambda: staying.realtime(0, 5) == OK, 10)
    assert daemon.status().n_leases == 1


def knows(daemon, pid):
    """Whether the broker has a pidfd of the process."""
    for fd in os.listdir(f"/proc/{daemon.pid}/fdinfo"):
        with contextlib.suppress(FileNotFoundError):
            with open(f"/proc/{daemon.pid}/fdinfo/{fd}", encoding="ascii") as file:
                if f"\nPid:\t{pid}\n" in file.read():
                    return True
    return False


def test_polkit_killed_and_started(serve, make_kit, bus):
    serve()
    bus.kill()

    assert make_kit().realtime(0, 5).error == "AccessDenied"
    bus.start()
    assert wait_until(lambda: make_kit().realtime(0, 5) == OK, 10)


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


def test_exit(serve, make_kit):
    daemon = serve()
    kit = make_kit()
    assert kit.realtime(0, 5) == OK

    assert make_kit(0).call("Exit") == OK

    assert daemon.wait() == 0
    assert kit.sched() == (OTHER, 0, 0, False)


def test_W15_from_a_pid_namespace(serve, make_kit):
    serve()
    kit = make_kit(prepare=own_pid_namespace_with_limit())
    inner = kit.client.thread()

    assert kit.realtime(inner, 5) == OK
    assert kit.realtime(0, 6) == OK
    assert kit.realtime_of(os.getpid(), 0, 5).error == "Failed"


def own_pid_namespace_with_limit():
    enter, limit = own_pid_namespace(), limit_rttime()

    def prepare():
        limit()
        enter()

    return prepare


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


def test_a_client_with_a_short_timeout(serve, make_kit):
    """WebKit gives up after 20 ms."""
    serve()
    kit = make_kit()
    assert kit.realtime(kit.client.thread(), 5) == OK

    for _ in range(20):
        assert kit.realtime(kit.client.thread(), 5, timeout_s=0.02) == OK


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
