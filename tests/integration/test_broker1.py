# SPDX-License-Identifier: MIT
"""The broker's own interface on the bus."""

import contextlib
import json
import os
import re
import subprocess
import time
import xml.etree.ElementTree as ElementTree

import pytest

import bus as bus_module
import wire
from agent import ALICE, BOB, CAROL, as_user
from broker1 import ERROR, NAME, PATH, Broker1
from daemon import wait_until
from kernel import FIFO, OTHER, RR

pytestmark = pytest.mark.skipif(not bus_module.is_here(), reason="no polkitd or dbus-daemon")

XML = bus_module.ACTIONS / "org.rtgrant.Broker1.xml"
CONF = bus_module.POLICIES / "org.rtgrant.Broker1.conf"

# carol may manage; nobody may be an audio client
RULES = """polkit.addRule(function(action, subject) {
    if (action.id == "org.rtgrant.manage")
        return subject.user == "carol" ? polkit.Result.YES : polkit.Result.NO;
    if (action.id == "org.rtgrant.realtime-high")
        return polkit.Result.NO;
});
"""

POLICY = {
    "Broker": {"Authority": "polkit"},
    "Role audio-client": {"Policy": "fifo", "Priority": "61-75", "ThreadsPerUser": 10,
                          "PolkitAction": "org.rtgrant.realtime-high"},
}


@pytest.fixture
def bus():
    made = bus_module.Bus(RULES, strict=True)
    yield made
    made.close()


def start(make_daemon, bus, policy):
    daemon = make_daemon().start(policy, environment=bus.environment)
    wait_until(lambda: bus_module.has_owner(bus, NAME), 30, "the name on the bus")
    daemon.take_as_base()
    return daemon


@pytest.fixture
def broker(make_daemon, bus):
    return start(make_daemon, bus, POLICY)


@pytest.fixture
def alice(broker, bus):
    return Broker1(bus, broker.client(ALICE))


def interface_of(text):
    """{(kind, name): ((type, direction, name)…)} of the interface in an introspection."""
    root = ElementTree.fromstring(text)
    (interface,) = [one for one in root.iter("interface") if one.get("name") == NAME]
    found = {}
    for member in interface:
        if member.tag is ElementTree.Comment:
            continue
        found[member.tag, member.get("name")] = (
            (member.get("type"), member.get("access")) if member.tag == "property" else
            tuple((arg.get("type"), arg.get("direction") if member.tag == "method" else None,
                   arg.get("name")) for arg in member.iter("arg")))
    return found


def test_the_documentation_is_of_this_interface(alice):
    live = alice.ask("Introspect", interface="org.freedesktop.DBus.Introspectable", signature="",
                     arguments=()).value

    assert interface_of(live) == interface_of(XML.read_text())


def test_the_bus_lets_through_every_method_and_no_other():
    members = {name for kind, name in interface_of(XML.read_text()) if kind == "method"}
    let = re.findall(rf'send_interface="{NAME}"\s+send_member="(\w+)"', CONF.read_text())

    assert sorted(let) == sorted(members)


def test_acquire_update_renew_list_release(alice):
    granted = alice.acquire(priority=7, reason="a test").value

    assert (granted["policy"], granted["priority"], granted["role"]) == ("fifo", 7, "desktop")
    assert granted["previous-policy"] == "other" and granted["reset-on-fork"]
    assert alice.client.sched()[:2] == (FIFO, 7)

    assert alice.ask("Update", {"priority": 9, "policy": "rr"}, granted["id"]).value["updated"] in (
        True, False)
    assert alice.client.sched()[:2] == (RR, 9)
    assert alice.ask("Renew", {}, granted["id"]).value["priority"] == 9

    (lease,), more = alice.ask("List").value
    assert (lease["id"], lease["pid"], lease["reason"]) == (granted["id"], alice.pid, "a test")
    assert (lease["uid"], lease["lifetime"], lease["state"], more) == (
        ALICE, "thread", "in-force", 0)

    assert alice.ask("Release", {}, granted["id"]).value["policy"] == "other"
    assert alice.client.sched()[:2] == (OTHER, 0)


def test_hello_says_who_is_an_administrator(alice, broker, bus):
    bob, carol = (Broker1(bus, broker.client(uid)) for uid in (BOB, CAROL))

    assert not carol.ask("Hello").value["admin"]  # nobody was asked
    assert carol.ask("Hello", {"admin": True}).value["admin"]
    assert carol.ask("Hello").value["admin"]  # known by now
    assert not bob.ask("Hello", {"admin": True}).value["admin"]
    assert not bob.client.hello(flags=wire.HELLO_ADMIN).state & wire.STATE_ADMIN
    assert carol.client.hello(flags=wire.HELLO_ADMIN).state & wire.STATE_ADMIN
    bus.hang()
    try:
        assert not alice.ask("Hello", {"admin": True}).value["admin"]
    finally:
        bus.go_on()


def test_hello_policy_and_properties(alice):
    hello = alice.ask("Hello").value
    assert hello["uid"] == ALICE and hello["pid"] == alice.pid and not hello["admin"]
    assert {offer["role"] for offer in hello["offers"]} >= {"desktop", "audio-client"}

    entries, after = [], 0
    while not entries or after:
        page, after = alice.ask("Policy", {"after": after}).value
        entries += page
    assert any(key == "Authority" and value == "polkit" for _, key, value, _ in entries)
    assert len({(section, key) for section, key, _, _ in entries}) == len(entries)

    properties = alice.ask("GetAll", interface="org.freedesktop.DBus.Properties", signature="s",
                           arguments=(NAME,)).value
    assert properties["Version"] == hello["version"] and properties["Leases"] == 0


def test_a_lease_outlives_its_connection_unless_told_otherwise(alice):
    alice.acquire(priority=5)
    alice.leave()
    assert alice.ask("Hello").value["leases"] == 1  # over a new connection
    assert alice.client.sched()[:2] == (FIFO, 5)


def test_a_lease_of_a_connection_ends_with_the_name(alice):
    tid = alice.client.thread()
    alice.acquire(priority=5, lifetime="connection")
    alice.acquire(priority=6, tid=tid)
    alice.leave()

    wait_until(lambda: alice.client.sched()[:2] == (OTHER, 0), 30)
    assert alice.client.sched(tid)[:2] == (FIFO, 6)


WRONG = [
    ({"colour": "red"}, '"colour" is not known here'),
    ({"priority": "5"}, '"priority" must be a number'),
    ({"priority": 1 << 40}, '"priority" is out of range'),
    ({"pid": -1}, '"pid" is out of range'),
    ({"clamp": 1}, '"clamp" must be a boolean'),
    ({"role": 5}, '"role" must be a string'),
    ({"role": "x" * 32}, '"role" is too long'),
    ({"role": ["x"]}, '"role" must be a plain value'),
    ({"policy": "deadline"}, '"policy" is none of the words'),
    ({"\a": 1}, "is not known here"),
]


@pytest.mark.parametrize("options,message", WRONG, ids=[text for _, text in WRONG])
def test_wrong_options_are_named(alice, options, message):
    refused = alice.ask("Acquire", options)

    assert refused.error == "Invalid" and message in refused.message
    assert alice.client.sched()[:2] == (OTHER, 0)


def test_a_wrong_id(alice):
    assert alice.ask("Release", {}, "x" * 32).error == "Invalid"
    assert alice.ask("Release", {}, "0" * 32).error == "NoSuchLease"


def test_reasons_are_errors_of_their_own(alice, broker, bus):
    bob = Broker1(bus, broker.client(BOB))

    refused = alice.acquire(priority=30, role="desktop")
    assert refused.error == "PriorityLimit"
    assert re.search(r"\[.*:\d+\]", refused.message) and "20" in refused.message
    assert alice.acquire(priority=5, pid=bob.pid).error == "NoSuchThread"
    assert alice.acquire(priority=5, role="nowhere").error == "NoSuchRole"
    assert alice.acquire(priority=65, role="audio-client").error == {
        "not-authorized": "NotAuthorized", "no-active-session": "NoActiveSession"}[bus_module.NO]
    assert alice.acquire(priority=5, lifetime="seconds", seconds=1 << 20).error == "LifetimeLimit"


def test_a_place_in_the_band_and_what_it_feeds(alice, broker, bus):
    server = broker.target(BOB)
    assert broker.rtgrant(BOB, "-f", "-p", 12, server.pid).returncode == 0

    assert alice.acquire(relative=0).value["priority"] == 10  # of 1 to 20
    assert alice.acquire(relative=2).value["priority"] == 20
    assert alice.acquire(relative=3).error == "Invalid"
    assert alice.acquire(relative=0, priority=5).error == "Invalid"

    refused = alice.acquire(priority=12, feeds_tid=server.pid)
    assert refused.error == "AboveServer" and f"thread {server.pid}" in refused.message
    assert alice.acquire(priority=11, feeds_tid=server.pid).value["priority"] == 11
    clamped = alice.acquire(priority=15, feeds_tid=server.pid, clamp=True).value
    assert (clamped["priority"], clamped["clamped"], clamped["limit"]) == (11, True, 11)


def test_declared_timing(alice):
    granted = alice.acquire(priority=5, period_ns=10_000_000, computation_ns=2_000_000,
                            deadline_ns=10_000_000).value

    (lease,), _ = alice.ask("List").value
    assert (lease["period-ns"], lease["computation-ns"]) == (10_000_000, 2_000_000)
    assert alice.ask("Update", {"period-ns": 5_000_000, "computation-ns": 4_000_000,
                                "deadline-ns": 5_000_000}, granted["id"]).error == ""
    tid = alice.client.thread()
    os.sched_setaffinity(tid, {min(os.sched_getaffinity(0))})
    refused = alice.acquire(priority=5, tid=tid, period_ns=1_000_000_000,
                            computation_ns=1_000_000_000, deadline_ns=1_000_000_000)
    assert refused.error == "Admission" and "too much" in refused.message


def test_or_less_names_the_rung(alice):
    # the studio lets in nobody but alice, and gives no more than 70
    assert alice.acquire(priority=5, or_less=True).value["rung"] == "as-asked"
    less = alice.acquire(priority=65, role="audio-client", or_less=True).value
    assert (less["rung"], less["policy"], less["priority"]) == ("rr", "rr", 20)


def test_why_says_which_rules_speak_and_does_nothing(alice):
    steps = alice.ask("Why", {"role": "desktop", "priority": 30}).value

    assert [step["says"] for step in steps][-1] == "priority-limit"
    assert (steps[-1]["asked"], steps[-1]["limit"], steps[-1]["role"]) == (30, 20, "desktop")
    assert re.search(r":\d+$", steps[-1]["rule"]) and steps[0]["says"] == "passed"

    steps = alice.ask("Why", {"role": "audio-client", "priority": 65}).value
    assert "asks-polkit" in [step["says"] for step in steps]
    steps = alice.ask("Why", {"role": "desktop", "priority": 30, "clamp": True}).value
    assert "lowered" in [step["says"] for step in steps]
    assert alice.ask("Why", {"pid": 1, "priority": 5}).error == "NoSuchThread"
    assert alice.ask("Why", {"colour": 1}).error == "Invalid"

    dry = alice.acquire(priority=9, dry_run=True).value
    assert dry["dry-run"] and dry["priority"] == 9 and "the first that allows" in dry["text"]
    assert alice.ask("Hello").value["leases"] == 0
    assert alice.client.sched()[:2] == (OTHER, 0)


def test_others_have_no_hold_on_a_lease(alice, broker, bus):
    bob = Broker1(bus, broker.client(BOB))
    granted = alice.acquire(priority=7).value

    assert bob.ask("Release", {}, granted["id"]).error == "NoSuchLease"
    assert bob.ask("List").value == [[], 0]
    assert bob.ask("List", {"all": True}).error == "AdminOnly"
    assert bob.ask("Watch", {"all": True}).error == "AdminOnly"
    for verb, id in (("Revoke", granted["id"]), ("Reload", None), ("RestoreAll", None)):
        assert bob.ask(verb, {}, id).error == "AdminOnly"
    assert alice.client.sched()[:2] == (FIFO, 7)


def test_a_rule_makes_an_administrator(alice, broker, bus):
    carol = Broker1(bus, broker.client(CAROL))
    granted = alice.acquire(priority=7).value

    (lease,), _ = carol.ask("List", {"all": True}).value
    assert lease["id"] == granted["id"]
    assert carol.ask("Revoke", {}, granted["id"]).value["policy"] == "other"
    assert alice.client.sched()[:2] == (OTHER, 0)

    alice.acquire(priority=7)
    assert carol.ask("RestoreAll").value == {"count": 1}
    assert carol.ask("Reload").value == {"count": 0}


def test_rtgrantctl_of_such_an_administrator(alice, broker, bus, programs):
    def ctl(uid, *arguments):
        return as_user(uid, run_ctl, programs.rtgrantctl, broker.socket_path, arguments)

    granted = alice.acquire(priority=7).value

    assert ctl(BOB, "list", "--all")[0] != 0
    assert ctl(BOB, "revoke", granted["id"])[0] != 0
    assert alice.client.sched()[:2] == (FIFO, 7)

    assert ", an administrator" not in ctl(BOB, "status")[1]
    assert ", an administrator" in ctl(CAROL, "status")[1]
    assert str(alice.pid) in ctl(CAROL, "list", "--all")[1]
    assert ctl(CAROL, "reload")[0] == 0
    assert ctl(CAROL, "revoke", granted["id"])[0] == 0
    assert alice.client.sched()[:2] == (OTHER, 0)

    granted = alice.acquire(priority=7).value
    assert ctl(BOB, "revoke", granted["id"][:8])[0] == 3
    assert ctl(BOB, "revoke", "--user", str(ALICE))[0] == 3
    assert ctl(CAROL, "revoke", granted["id"][:8]) == (0, "1 lease ended\n")
    assert alice.client.sched()[:2] == (OTHER, 0)
    alice.acquire(priority=7)
    assert ctl(CAROL, "revoke", "--user", str(BOB)) == (0, "0 leases ended\n")
    assert ctl(CAROL, "revoke", "--user", str(ALICE)) == (0, "1 lease ended\n")
    assert alice.client.sched()[:2] == (OTHER, 0)


@contextlib.contextmanager
def monitor_of(uid, program, path):
    """Yields what gives the lines since the last time."""
    process = subprocess.Popen([program, "monitor", "--json"], stdout=subprocess.PIPE, text=True,
                               user=uid, group=uid, extra_groups=[],
                               env={"RTGRANT_SOCKET": path, "PATH": "/usr/bin"})
    os.set_blocking(process.stdout.fileno(), False)
    try:
        yield process.stdout.readlines
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_rtgrantctl_monitor_of_such_an_administrator(alice, broker, programs, bus):
    bob = Broker1(bus, broker.client(BOB))

    def make_events():
        for each in (alice, bob):
            each.ask("Release", {}, each.acquire(priority=7).value["id"])

    for uid, wanted in ((BOB, {BOB}), (CAROL, {ALICE, BOB})):
        seen = set()
        with monitor_of(uid, programs.rtgrantctl, broker.socket_path) as lines:
            while not seen:  # it has to begin to watch first
                make_events()
                seen |= {json.loads(line)["lease"]["uid"] for line in lines()}
            make_events()
            time.sleep(0.2)
            seen |= {json.loads(line)["lease"]["uid"] for line in lines()}
        assert seen == wanted


def test_the_example_in_the_documentation(broker, bus):
    example = bus_module.ACTIONS.parents[1] / "docs" / "examples" / "promote.py"

    text = as_user(ALICE, run_example, example.read_text(), bus.address)

    assert text == "fifo 10\n"


def run_example(text, address):
    done = subprocess.run(["/usr/bin/python3", "-c", text], capture_output=True, text=True,
                          timeout=60, env={"DBUS_SYSTEM_BUS_ADDRESS": address})
    return done.stdout + done.stderr


def run_ctl(program, path, arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60,
                          env={"RTGRANT_SOCKET": path, "PATH": "/usr/bin"})
    return done.returncode, done.stdout + done.stderr


def test_without_polkit_nobody_becomes_an_administrator(alice, broker, bus):
    bus.kill()

    assert Broker1(bus, broker.client(CAROL)).ask("RestoreAll").error in (
        "AuthorityUnavailable", "AdminOnly")


def test_who_watches_is_limited(broker, bus):
    client = broker.client(ALICE)

    assert client.run(watch_often, bus.address, 40).count(ERROR + "ConnectionsPerUser") == 8
    # with the names the rights to watch come back
    wait_until(lambda: client.run(watch_often, bus.address, 1) == [""], 30)


def watch_often(agent, address, n):
    """The errors of Watch, over as many connections at a time."""
    import dbus

    connections, errors = [], []
    for _ in range(n):
        connections.append(dbus.bus.BusConnection(address))
        try:
            connections[-1].call_blocking(NAME, PATH, NAME, "Watch", "a{sv}", ({},), timeout=60)
            errors.append("")
        except dbus.DBusException as error:
            errors.append(error.get_dbus_name())
    for connection in connections:
        connection.close()
    return errors


def forge(agent, address, name):
    """What the bus would say if that name had gone, said by somebody else."""
    import dbus.lowlevel

    connection = dbus.bus.BusConnection(address)
    message = dbus.lowlevel.SignalMessage("/org/freedesktop/DBus", "org.freedesktop.DBus",
                                          "NameOwnerChanged")
    message.set_destination(NAME)
    message.append(name, name, "", signature="sss")
    connection.send_message(message)
    connection.flush()
    connection.close()


def unique_name(agent):
    return str(agent.broker1.get_unique_name())


def test_only_the_bus_says_who_is_gone(broker, alice, bus):
    assert alice.acquire(role="desktop", policy="fifo", priority=7, lifetime="connection").error == ""

    broker.client(BOB).run(forge, bus.address, alice.client.run(unique_name))
    assert alice.ask("List").error == ""  # a round trip behind it
    assert alice.client.sched()[:2] == (FIFO, 7)
