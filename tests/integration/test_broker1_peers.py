# SPDX-License-Identifier: MIT
"""The broker's own interface and several users: who is asked, who is told, which process is meant."""

import os
import time

import pytest

import bus as bus_module
import kernel
from agent import ALICE, BOB, CAROL
from broker1 import NAME, Broker1, Gio1
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


@pytest.fixture
def make(broker, bus):
    return lambda uid: Gio1(bus, broker.client(uid))


# ---- a user is asked ----


def test_nobody_is_asked_who_did_not_allow_it(make, bus, start):
    alice = make(ALICE)
    agent = agent_for(start, bus, alice, "yes")

    assert alice.acquire(role="desktop", priority=5).error == "NotAuthorized"
    assert agent.lines == []
    assert alice.client.sched()[:2] == (OTHER, 0)


@pytest.mark.parametrize("how", [{"may_ask": True}, {"interactive": True}],
                         ids=["by-the-flag-of-the-message", "by-the-option"])
def test_the_user_says_yes(make, bus, start, how):
    alice = make(ALICE)
    agent = agent_for(start, bus, alice, "yes")

    granted = alice.acquire(role="desktop", priority=5, **how)

    assert granted.error == "" and granted.value["priority"] == 5
    wait_until(lambda: agent.lines == ["asked"], what="one question to the user")
    assert alice.client.sched()[:2] == (FIFO, 5)
    raised = alice.ask("Update", {"priority": 9, **({"interactive": True} if "interactive" in how
                                                    else {})},
                       granted.value["id"], may_ask="may_ask" in how)
    assert raised.value["priority"] == 9
    assert alice.client.sched()[:2] == (FIFO, 9)


def test_the_user_says_no(make, bus, start):
    alice = make(ALICE)
    agent = agent_for(start, bus, alice, "no")

    assert alice.acquire(role="desktop", priority=5, may_ask=True).error == "NotAuthorized"
    wait_until(lambda: agent.lines == ["asked"], what="one question to the user")
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

    def told(client):
        return [(event, reason, of["id"]) for event, reason, of in client.signals()]

    hers = [("granted", "none", lease), ("revoked", "revoked", lease)]
    his = [("granted", "none", others), ("ended", "released", others)]
    wait_until(lambda: len(carol.signals()) == 4, what="the administrator's events")
    assert told(carol) == hers + his
    assert told(again) == hers          # she watches
    assert told(alice) == hers[1:]      # she holds one by her name, and watches nothing
    assert told(bob) == his


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
