# SPDX-License-Identifier: MIT
"""RealtimeKit's interface: one table for rtgrantd and rtkit-daemon."""

import os
import tempfile
import xml.etree.ElementTree
from collections import namedtuple

import pytest

import bus as bus_module
import kernel
from agent import ALICE, BOB, CAROL, Client
from bus import Bus, KIT, Kit, PROPERTIES, RtkitDaemon, limit_rttime
from daemon import Daemon, wait_until
from kernel import FIFO, OTHER, RR
from kit import POLICY, RULES, said

pytestmark = pytest.mark.skipif(not bus_module.is_here(),
                                reason="no dbus-daemon, polkitd or python3-dbus")

Row = namedtuple("Row", "name act expected rtkit why", defaults=(None, ""))
"""
act(kit)    what a client of alice does, with RLIMIT_RTTIME of 100 and 200 ms; what came of it
expected    of rtgrantd, and of rtkit-daemon unless
rtkit       is what rtkit-daemon does instead, and
why         we do not
"""


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
