# SPDX-License-Identifier: MIT
"""What a disk gets besides, by the role of who holds its queue: fewer requests, another scheduler."""


import pytest

import wire
from agent import ALICE, BOB
from daemon import wait_until

QUEUE = wire.WANT_BLOCK_QUEUE


class Attributes:
    """Of the queue of a disk."""

    def __init__(self, disk):
        self.queue = disk.queue.parent
        self.schedulers = (self.queue / "scheduler").read_text().replace("[", "").replace("]", "").split()
        self.before = self()

    def __call__(self):
        text = (self.queue / "scheduler").read_text()
        return (int((self.queue / "max_sectors_kb").read_text()),
                int((self.queue / "nr_requests").read_text()), text[text.index("[") + 1:text.index("]")])


@pytest.fixture
def queue(disk):
    made = Attributes(disk)
    if made.before[2] != "none" or "mq-deadline" not in made.schedulers:
        pytest.skip("loop devices have no mq-deadline here")
    yield made
    (made.queue / "scheduler").write_text("none")


def role(**keys):
    return {"Role desktop": {"BlockQueue": "16-512", **keys},
            "Role studio": {"BlockQueue": "16-512", "BlockRequests": "16", "AllowUsers": "*"}}


ALL = role(BlockRequests="32", BlockScheduler="mq-deadline")


def ask(client, disk, kb=64, in_role="desktop"):
    return client.acquire(want=QUEUE, block=disk.name, block_max_sectors_kb=kb, role=in_role)


def test_all_three_come_and_go(make_daemon, disk, queue):
    client = make_daemon().start(ALL).client(ALICE)
    answer = ask(client, disk)
    assert (answer.reason, answer.flags & wire.ANSWER_NOTED) == ("none", 0)
    assert queue() == (64, 32, "mq-deadline")
    assert client.list()[0].state == wire.LEASE_IN_FORCE
    assert client.release(answer.id).reason == "none"
    assert queue() == queue.before


def test_the_least_number_of_two_roles(make_daemon, disk, queue):
    daemon = make_daemon().start(ALL)
    alice, bob = daemon.client(ALICE), daemon.client(BOB)
    first, second = ask(alice, disk), ask(bob, disk, 128, "studio")
    assert queue() == (64, 16, "mq-deadline")
    assert bob.release(second.id).reason == "none"
    assert queue() == (64, 32, "mq-deadline")
    second = ask(bob, disk, 128, "studio")
    assert alice.release(first.id).reason == "none"
    assert queue() == (128, 16, "none")
    assert bob.release(second.id).reason == "none"
    assert queue() == queue.before


@pytest.mark.parametrize("end", ["client", "daemon", "both"])
def test_every_end_puts_all_back(make_daemon, disk, queue, end):
    daemon = make_daemon().start(ALL)
    client = daemon.client(ALICE)
    assert ask(client, disk).reason == "none"
    if end == "client":
        client.kill()
        wait_until(lambda: queue() == queue.before)
    elif end == "daemon":
        daemon.stop()
    else:
        daemon.kill()
        assert queue() == (64, 32, "mq-deadline")
        client.kill()
        daemon.start(ALL)
    assert queue() == queue.before


def test_kept_over_a_crash(make_daemon, disk, queue):
    daemon = make_daemon().start(ALL)
    client = daemon.client(ALICE)
    assert ask(client, disk).reason == "none"
    daemon.kill()
    daemon.start(ALL)
    assert (queue(), daemon.leases()[0].state) == ((64, 32, "mq-deadline"), wire.LEASE_IN_FORCE)
    client.kill()
    wait_until(lambda: queue() == queue.before)


def test_what_others_set_stays(make_daemon, disk, queue):
    client = make_daemon().start(ALL).client(ALICE)
    answer = ask(client, disk)
    (queue.queue / "nr_requests").write_text("48")
    wait_until(lambda: client.list()[0].state == wire.LEASE_CHANGED)
    (queue.queue / "max_sectors_kb").write_text("100")
    assert client.release(answer.id).reason == "none"
    assert (queue()[0], queue()[2]) == (100, "none")


def test_more_requests_than_there_are_is_never_set(make_daemon, disk, queue):
    client = make_daemon().start(role(BlockRequests="60000")).client(ALICE)
    assert ask(client, disk).reason == "none"
    assert queue() == (64, *queue.before[1:])


def test_a_scheduler_that_the_disk_cannot_have_is_said(make_daemon, disk, queue):
    client = make_daemon().start(role(BlockScheduler="no-such-one")).client(ALICE)
    answer = ask(client, disk)
    assert (answer.reason, answer.explanation.text) == \
        ("none", f"disk {disk.name} keeps its scheduler: it cannot have no-such-one")
    assert answer.flags & wire.ANSWER_NOTED
    assert (queue(), client.list()[0].state) == ((64, *queue.before[1:]), wire.LEASE_IN_FORCE)


def test_a_reload_changes_and_takes_them(make_daemon, disk, queue):
    daemon = make_daemon().start(ALL)
    assert ask(daemon.client(ALICE), disk).reason == "none"
    daemon.reload(role(BlockRequests="20"))
    assert queue() == (64, 20, "none")
    daemon.reload(role())
    assert queue() == (64, *queue.before[1:])
