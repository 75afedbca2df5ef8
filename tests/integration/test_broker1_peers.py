# SPDX-License-Identifier: MIT
"""The broker's own interface and several users: who is asked, who is told, which process is meant."""

import os
import time
from types import SimpleNamespace

import pytest

import broker1
import bus as bus_module
import kernel
from agent import ALICE, BOB, CAROL
from broker1 import ERROR, NAME, PATH, Broker1, bare
from companions import agent_for, has_gi, start  # noqa: F401
from daemon import wait_until
from kernel import FIFO, OTHER

pytestmark = pytest.mark.skipif(not bus_module.is_here() or not has_gi(),
                                reason="no polkitd, dbus-daemon, python3-dbus or python3-gi")

# bob may; alice has to prove that she is alice, and to manage that she is an administrator
RULES = """polkit.addRule(function(action, subject) {
    if (action.id == "org.rtgrant.manage")
        return subject.user == "carol" ? polkit.Result.YES : polkit.Result.AUTH_ADMIN;
    if (action.id.indexOf("org.rtgrant.") == 0)
        return subject.user == "bob" ? polkit.Result.YES : polkit.Result.AUTH_SELF;
});
"""

POLICY = {
    "Broker": {"Authority": "polkit"},
    "Role desktop": {"AllowUsers": None, "PolkitAction": "org.rtgrant.realtime"},
    "Role studio": {"AllowUsers": "*"},
}

STUDIO = {"role": "studio", "priority": 65}


@pytest.fixture
def bus():
    made = bus_module.Bus(RULES, strict=True)
    yield made
    made.close()


@pytest.fixture
def broker(make_daemon, bus):
    daemon = make_daemon().start(POLICY, environment=bus.environment)
    wait_until(lambda: bus_module.owner_of(bus, NAME) == daemon.pid, what="the name on the bus")
    # with the first answer the broker is connected to polkit for good
    asker = Broker1(bus, daemon.client(BOB))
    wait_until(lambda: not asker.acquire(role="desktop", priority=1, dry_run=True).error)
    asker.client.close()
    daemon.take_as_base()
    return daemon


# ---- a client by GIO, which knows the flag, and signals ----


def gio_connection(agent, address):
    from gi.repository import Gio

    if not hasattr(agent, "gio"):
        agent.gio = Gio.DBusConnection.new_for_address_sync(
            address, Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT |
            Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION, None, None)
        agent.gio.set_exit_on_close(False)
    return agent.gio


def gio_variant(value):
    from gi.repository import GLib

    kind = ("b" if isinstance(value, bool) else "x" if isinstance(value, int) and value < 0 else
            "t" if isinstance(value, int) else "s")
    return GLib.Variant(kind, value)


def gio_arguments(id, options):
    from gi.repository import GLib

    options = {key.replace("_", "-"): gio_variant(value) for key, value in options.items()}
    return (GLib.Variant("(a{sv})", (options,)) if id is None else
            GLib.Variant("(sa{sv})", (id, options)))


def gio_call(agent, address, member, id, options, may_ask, wait):
    """(error, message, value); without @wait nothing."""
    from gi.repository import Gio, GLib

    flags = (Gio.DBusCallFlags.ALLOW_INTERACTIVE_AUTHORIZATION if may_ask else
             Gio.DBusCallFlags.NONE)
    call = (NAME, PATH, NAME, member, gio_arguments(id, options), None, flags, 60000, None)
    if not wait:
        gio_connection(agent, address).call(*call, None, None)
        return gio_connection(agent, address).flush_sync(None)
    try:
        value = gio_connection(agent, address).call_sync(*call).unpack()
        return "", "", value[0] if len(value) == 1 else value
    except GLib.Error as error:
        name = Gio.DBusError.get_remote_error(error)
        assert name, error
        return name, error.message, None


def gio_leave(agent):
    agent.gio.close_sync(None)
    del agent.gio


def gio_listen(agent, address):
    """From now on all signals of the interface that reach this client are kept."""
    agent.signals = []
    gio_connection(agent, address).signal_subscribe(
        None, NAME, None, None, None, 0,
        lambda _bus, _sender, _path, _interface, member, arguments:
            agent.signals.append((member, arguments.unpack())))


def gio_signals(agent):
    from gi.repository import GLib

    while GLib.MainContext.default().iteration(False):
        pass
    return agent.signals


class Gio1:
    def __init__(self, bus, client):
        self.bus = bus
        self.client = client
        self.pid = client.pid

    def ask(self, member, options=None, id=None, may_ask=False, wait=True):
        reply = self.client.run(gio_call, self.bus.address, member, id, options or {}, may_ask,
                                wait)
        if wait:
            error, message, value = reply
            return SimpleNamespace(error=error.removeprefix(ERROR), message=message, value=value)

    def acquire(self, may_ask=False, wait=True, **options):
        return self.ask("Acquire", options, may_ask=may_ask, wait=wait)

    def listen(self):
        self.client.run(gio_listen, self.bus.address)

    def signals(self):
        """(event, reason, lease's id) of those so far."""
        signals = self.client.run(gio_signals)
        assert {member for member, _ in signals} <= {"LeaseChanged"}
        return [(event, reason, lease["id"]) for _, (event, reason, _text, lease) in signals]

    def leave(self):
        self.client.run(gio_leave)


@pytest.fixture
def make(broker, bus):
    return lambda uid: Gio1(bus, broker.client(uid))


# ---- a user is asked ----


def test_nobody_is_asked_who_did_not_allow_it(make, bus, start):
    alice = make(ALICE)
    agent = agent_for(start, bus, alice, "yes")

    assert alice.acquire(role="desktop", priority=5).error == {
        "not-authorized": "NotAuthorized", "no-active-session": "NoActiveSession"}[bus_module.NO]
    assert agent.lines == []
    assert alice.client.sched()[:2] == (OTHER, 0)


@pytest.mark.parametrize("how", [{"may_ask": True}, {"interactive": True}],
                         ids=["by-the-flag-of-the-message", "by-the-option"])
def test_the_user_says_yes(make, bus, start, how):
    alice = make(ALICE)
    agent = agent_for(start, bus, alice, "yes")

    granted = alice.acquire(role="desktop", priority=5, **how)

    assert granted.error == "" and granted.value["priority"] == 5
    assert agent.lines == ["asked"]
    assert alice.client.sched()[:2] == (FIFO, 5)
    raised = alice.ask("Update", {"priority": 9, **({"interactive": True} if "interactive" in how
                                                    else {})},
                       granted.value["id"], may_ask="may_ask" in how)
    assert raised.value["priority"] == 9
    assert alice.client.sched()[:2] == (FIFO, 9)


def test_the_user_says_no(make, bus, start):
    alice = make(ALICE)
    agent = agent_for(start, bus, alice, "no")

    assert alice.acquire(role="desktop", priority=5, may_ask=True).error in (
        "NotAuthorized", "NoActiveSession")
    assert agent.lines == ["asked"]
    assert alice.client.sched()[:2] == (OTHER, 0)


def test_who_leaves_the_bus_takes_the_question_along(make, bus, start):
    """And others are served while somebody does not answer."""
    alice, bob = make(ALICE), make(BOB)
    agent = agent_for(start, bus, alice, "never")

    alice.acquire(role="desktop", priority=5, may_ask=True, wait=False)
    wait_until(lambda: agent.lines == ["asked"], what="the question to the user")
    begin = time.monotonic()
    assert bob.acquire(role="desktop", priority=6).value["priority"] == 6
    assert time.monotonic() - begin < 2
    alice.leave()

    wait_until(lambda: "cancelled" in agent.lines, what="the end of the question")
    assert alice.client.sched()[:2] == (OTHER, 0)


def test_an_administrator_proves_it(make, bus, start):
    alice, bob = make(ALICE), make(BOB)
    lease = bob.acquire(role="desktop", priority=6).value["id"]
    agent = agent_for(start, bus, alice, "yes")

    assert alice.ask("Revoke", {}, lease).error == "AdminOnly"
    assert agent.lines == [] and bob.client.sched()[:2] == (FIFO, 6)
    assert alice.ask("Revoke", {}, lease, may_ask=True).error == ""
    assert agent.lines == ["asked"] and bob.client.sched()[:2] == (OTHER, 0)


# ---- who is told ----


def test_events_reach_the_holder_and_administrators_and_nobody_else(make):
    """Whatever others have the bus match: the signals go to unique names."""
    alice, again, bob, carol = make(ALICE), make(ALICE), make(BOB), make(CAROL)
    for each in (alice, again, bob, carol):
        each.listen()
    assert bob.ask("Watch", {"all": True}).error == "AdminOnly"
    assert bob.ask("Watch").error == again.ask("Watch").error == ""
    assert carol.ask("Watch", {"all": True}).error == ""

    lease = alice.acquire(lifetime="connection", **STUDIO).value["id"]
    assert carol.ask("Revoke", {}, lease).error == ""
    others = bob.acquire(role="desktop", priority=6).value["id"]
    assert bob.ask("Release", {}, others).error == ""

    hers = [("granted", "none", lease), ("revoked", "revoked", lease)]
    his = [("granted", "none", others), ("ended", "released", others)]
    wait_until(lambda: len(carol.signals()) == 4, what="the administrator's events")
    assert carol.signals() == hers + his
    assert again.signals() == hers          # she watches
    assert alice.signals() == hers[1:]      # she holds one by her name, and watches nothing
    assert bob.signals() == his


# ---- which process is meant ----


def inode_of(agent, pid, thread):
    fd = kernel.pidfd_open(pid, os.O_EXCL if thread else 0)
    try:
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)


def test_the_inode_of_a_pidfd_says_which_process_is_meant(make):
    alice, other = make(ALICE), make(ALICE)
    third = make(ALICE)
    tid = other.client.thread()

    def inode(pid, thread=False):
        return alice.client.run(inode_of, pid, thread)

    def acquire(**values):
        return alice.acquire(pid=other.pid, **STUDIO, **values)

    for wrong in (inode(third.pid), inode(alice.pid), 1, 2**63, 2**64 - 1):
        assert acquire(pidfd_inode=wrong).error == "NoSuchThread"
        assert acquire(tid=tid, pidfd_inode=wrong).error == "NoSuchThread"
    assert acquire(pidfd_inode=inode(tid, thread=True)).error == "NoSuchThread"
    assert other.client.sched()[:2] == other.client.sched(tid)[:2] == (OTHER, 0)

    assert acquire(pidfd_inode=inode(other.pid)).value["pid"] == other.pid
    assert other.client.sched()[:2] == (FIFO, 65)
    assert acquire(tid=tid, pidfd_inode=inode(other.pid)).value["tid"] == tid
    assert acquire(tid=tid, pidfd_inode=inode(tid, thread=True)).value["tid"] == tid
    assert other.client.sched(tid)[:2] == (FIFO, 65)
    assert alice.acquire(pidfd_inode=inode(alice.pid), **STUDIO).value["pid"] == alice.pid


def test_an_inode_is_no_way_to_others_processes(make):
    alice, bob = make(ALICE), make(BOB)

    inode = alice.client.run(inode_of, bob.pid, False)

    assert alice.acquire(pid=bob.pid, pidfd_inode=inode, **STUDIO).error == "NoSuchThread"
    assert bob.client.sched()[:2] == (OTHER, 0)


def test_before_6_9_inodes_tell_nothing(make_daemon, bus, programs):
    daemon = make_daemon().start(POLICY, environment=bus.environment,
                                 prefix=[programs.with_filter, "--old-kernel", "--"])
    wait_until(lambda: bus_module.owner_of(bus, NAME) == daemon.pid, what="the name on the bus")
    alice = Broker1(bus, daemon.client(ALICE))
    inode = alice.client.run(inode_of, alice.pid, False)

    assert alice.acquire(pidfd_inode=inode, **STUDIO).error == "Unsupported"
    assert alice.client.sched()[:2] == (OTHER, 0)
    assert alice.acquire(**STUDIO).value["priority"] == 65
