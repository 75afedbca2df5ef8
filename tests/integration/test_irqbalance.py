# SPDX-License-Identifier: MIT
"""Where irqbalance runs it is told to leave alone what was moved, and only as long as that holds."""

import os
import subprocess
import time

import pytest

from agent import ALICE, BOB
from daemon import wait_until
from interrupts import Irqbalance, ask, grants

pytestmark = pytest.mark.skipif(not Irqbalance.PROGRAM, reason="no irqbalance")


@pytest.fixture
def irqbalance(lines):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one CPU only")
    if subprocess.run(["pidof", "irqbalance"], stdout=subprocess.DEVNULL, check=False).returncode == 0:
        pytest.skip("irqbalance runs already")
    was = [line.affinity for line in lines]
    made = Irqbalance(lines)
    yield made
    made.close()
    for line, cpus in zip(lines, was):
        line.affinity = cpus


def moves(*lines):
    changes = grants(*(line.device for line in lines))
    changes["Role desktop"]["IrqAffinity"] = "1"
    return changes


def assert_banned(irqbalance, *lines):
    expected = {line.irq for line in lines}
    wait_until(lambda: irqbalance.banned() == expected, 20, what=f"only {expected} on its list")


def test_it_is_told_and_told_back(make_daemon, irqbalance, lines):
    irqbalance.start()
    daemon = make_daemon().start(moves(*lines))
    alice, bob = daemon.client(ALICE), daemon.client(BOB)
    first, second = ask(alice, lines[0].device), ask(bob, lines[1].device)
    assert_banned(irqbalance, *lines)
    # what it was started with is still on it
    assert irqbalance.ask("setup").count("IRQ") == len(irqbalance.others) + 2
    assert alice.release(first.id).reason == "none"
    assert_banned(irqbalance, lines[1])
    assert bob.release(second.id).reason == "none"
    assert_banned(irqbalance)


def test_it_leaves_them_alone(make_daemon, irqbalance, lines):
    """What it is there for: it moves what it may, and not what was leased."""
    irqbalance.start()
    daemon = make_daemon().start(moves(lines[0]))
    assert ask(daemon.client(ALICE), lines[0].device).reason == "none"
    assert_banned(irqbalance, lines[0])
    time.sleep(5)  # several rounds of its
    assert lines[0].affinity == "1"


def test_one_that_starts_later_is_told_too(make_daemon, irqbalance, lines):
    daemon = make_daemon().start(moves(lines[0]))
    client = daemon.client(ALICE)
    answer = ask(client, lines[0].device)
    irqbalance.start()
    assert_banned(irqbalance, lines[0])
    irqbalance.stop()
    irqbalance.start()
    assert_banned(irqbalance, lines[0])
    assert client.release(answer.id).reason == "none"
    assert_banned(irqbalance)


def test_a_ban_of_an_administrator_stays(make_daemon, irqbalance, lines):
    irqbalance.start()
    irqbalance.ask("settings ban irqs " + " ".join(map(str, [*irqbalance.others, lines[0].irq])))
    daemon = make_daemon().start(moves(*lines))
    client = daemon.client(ALICE)
    answer, other = ask(client, lines[0].device), ask(daemon.client(BOB), lines[1].device)
    assert_banned(irqbalance, *lines)
    assert client.release(answer.id).reason == "none"
    assert daemon.admin.revoke(other.id).reason == "none"
    assert_banned(irqbalance, lines[0])


def test_a_stop_of_the_broker_gives_it_back(make_daemon, irqbalance, lines):
    irqbalance.start()
    daemon = make_daemon().start(moves(lines[0]))
    assert ask(daemon.client(ALICE), lines[0].device).reason == "none"
    assert_banned(irqbalance, lines[0])
    daemon.stop()
    assert_banned(irqbalance)
    assert irqbalance.process.poll() is None


@pytest.mark.parametrize("survives", [True, False])
def test_a_successor_of_a_killed_broker_gives_it_back(make_daemon, irqbalance, lines, survives):
    irqbalance.start()
    daemon = make_daemon().start(moves(lines[0]))
    client = daemon.client(ALICE)
    assert ask(client, lines[0].device).reason == "none"
    assert_banned(irqbalance, lines[0])
    time.sleep(2.5)  # it is read back by then: who is killed before takes irqbalance 1.9.2 along
    daemon.kill()
    if not survives:
        client.kill()
    daemon.start(moves(lines[0]))
    if survives:
        assert_banned(irqbalance, lines[0])
        client.kill()
    assert_banned(irqbalance)
