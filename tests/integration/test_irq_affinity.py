# SPDX-License-Identifier: MIT
"""Which CPUs interrupts are delivered to: this machine's own two, by a role that moves them."""

import os

import pytest

import wire
from agent import ALICE, BOB
from daemon import wait_until
from interrupts import ask, grants, rule
from kernel import FIFO


@pytest.fixture
def movable(lines):
    """The two interrupts, put back afterwards; skips where they cannot be moved by anybody."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one CPU only")
    was = [line.affinity for line in lines]
    yield lines
    for line, cpus in zip(lines, was):
        line.affinity = cpus


def moves(*lines, cpus="1"):
    """Changes to the policy: the desktop role gives these, and moves them."""
    changes = grants(*(line.device for line in lines))
    changes["Role desktop"]["IrqAffinity"] = cpus
    return changes


def test_moved_for_an_ordinary_user_and_put_back_on_release(make_daemon, movable):
    line, other = movable
    before = line.affinity
    client = make_daemon().start(moves(line)).client(ALICE)
    answer = ask(client, line.device)
    assert (answer.reason, answer.flags & wire.ANSWER_NOTED) == ("none", 0)
    assert (line.affinity, other.affinity, line.sched()) == ("1", before, (FIFO, 90))
    assert client.list()[0].state == wire.LEASE_IN_FORCE
    assert client.release(answer.id).reason == "none"
    assert (line.affinity, line.sched()) == (before, line.before)


def test_put_back_when_the_client_is_killed_and_on_revoke(make_daemon, movable):
    before = [line.affinity for line in movable]
    daemon = make_daemon().start(moves(*movable))
    killed, revoked = daemon.client(ALICE), daemon.client(BOB)
    assert ask(killed, movable[0].device).reason == "none"
    answer = ask(revoked, movable[1].device)
    assert [line.affinity for line in movable] == ["1", "1"]
    killed.kill()
    wait_until(lambda: movable[0].affinity == before[0], what="putting the interrupt back")
    assert daemon.admin.revoke(answer.id).reason == "none"
    assert movable[1].affinity == before[1]


def test_put_back_when_the_daemon_stops(make_daemon, movable):
    before = [line.affinity for line in movable]
    daemon = make_daemon().start({**moves(movable[0]),
                                  "Irq second": {**rule(movable[1]), "Affinity": "0"}})
    assert ask(daemon.client(ALICE), movable[0].device).reason == "none"
    assert [line.affinity for line in movable] == ["1", "0"]
    daemon.stop()
    assert [line.affinity for line in movable] == before
    assert not os.path.exists(daemon.state_path + "/irq-lines")


@pytest.mark.parametrize("survives", [True, False])
def test_moved_over_a_crash_and_then_put_back(make_daemon, movable, survives):
    line, before = movable[0], movable[0].affinity
    daemon = make_daemon().start(moves(line))
    client = daemon.client(ALICE)
    assert ask(client, line.device).reason == "none"
    daemon.kill()
    assert line.affinity == "1"
    if not survives:
        client.kill()
    daemon.start(moves(line))
    if survives:
        assert (line.affinity, daemon.status().n_leases) == ("1", 1)
        client.kill()
    wait_until(lambda: line.affinity == before, what="putting the interrupt back")


def test_where_others_moved_it_is_told_and_left(make_daemon, movable):
    line = movable[0]
    client = make_daemon().start(moves(line)).client(ALICE)
    answer = ask(client, line.device)
    line.affinity = "0"
    wait_until(lambda: client.list()[0].state == wire.LEASE_CHANGED, what="noticing it")
    assert line.affinity == "0"
    assert client.release(answer.id).reason == "none"
    assert line.affinity == "0"


def test_a_renewal_moves_it_again(make_daemon, movable):
    line = movable[0]
    client = make_daemon().start(moves(line)).client(ALICE)
    answer = ask(client, line.device)
    line.affinity = "0"
    wait_until(lambda: client.list()[0].state == wire.LEASE_CHANGED, what="noticing it")
    assert client.renew(answer.id).reason == "none"
    assert line.affinity == "1"


def test_a_reload_moves_it_elsewhere(make_daemon, movable):
    line, before = movable[0], movable[0].affinity
    daemon = make_daemon().start(moves(line))
    assert ask(daemon.client(ALICE), line.device).reason == "none"
    daemon.reload(moves(line, cpus="0"))
    assert line.affinity == "0"
    daemon.reload(grants(line.device))
    assert (line.affinity, line.sched()) == (before, (FIFO, 90))


def test_an_interrupt_that_cannot_be_moved_says_so(make_daemon, movable):
    """The grant stands, and so the program starts; who asked for it is told."""
    line, before = movable[0], movable[0].affinity
    daemon = make_daemon().start(moves(line, cpus="999"))
    said = f"interrupt {line.irq} stays where it is: not all of the CPUs 999 are there"
    answer = ask(daemon.client(ALICE), line.device)
    assert (answer.reason, answer.explanation.text) == ("none", said)
    assert answer.flags & wire.ANSWER_NOTED
    assert (line.affinity, line.sched()) == (before, (FIFO, 90))
    result = daemon.rtgrant(BOB, "--role", "desktop", "--irq", f"{line.device}=91", "true")
    assert result.returncode == 0 and said in result.stderr
    assert said in daemon.log()
