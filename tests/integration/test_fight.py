# SPDX-License-Identifier: MIT
"""Two users and a user namespace fight for the same broker: only the guilty one is limited."""

import subprocess
import time

import pytest

import wire
from agent import ALICE, BOB, CAROL
from daemon import assert_granted, assert_refused, wait_until
from kernel import FIFO
from test_namespace import subordinate_user

PLACES = 8

FAIR = {"Broker": {"UserNamespaces": "yes", "ThreadsPerUser": PLACES}}


def in_namespace(uid):
    """A user namespace of that user's own, by the programs that anybody has."""
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
            "unshare", "--user", "--map-root-user", "--"]


def as_themselves(uid):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]


def start(daemon, enter, n):
    """@n programs at once that each want a place, and say whether they got one."""
    return [subprocess.Popen(
        [*enter, daemon.programs.rtgrant, "-f", "5", "sh", "-c", "echo got it; read line"],
        env={"RTGRANT_SOCKET": daemon.socket_path, "PATH": "/usr/bin:/bin"}, cwd="/",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(n)]


def got_it(process):
    return process.stdout.readline() == "got it\n"


@pytest.fixture
def crowd():
    made = []
    yield made
    for process in made:
        process.kill()
        process.communicate()


def test_places(make_daemon, crowd):
    """rtgrant, as it is: 24 programs of a namespace against 8 each of two users."""
    daemon = make_daemon().start(FAIR)
    greedy = start(daemon, in_namespace(ALICE), 3 * PLACES)
    bobs = start(daemon, as_themselves(BOB), PLACES)
    carols = start(daemon, as_themselves(CAROL), PLACES)
    crowd += greedy + bobs + carols

    assert all(got_it(process) for process in bobs + carols)
    winners = [process for process in greedy if got_it(process)]
    losers = [process for process in greedy if process not in winners]
    assert len(winners) == PLACES
    assert {process.wait(30) for process in losers} == {3}
    said = losers[0].stderr.read()
    assert f"user {ALICE} has {PLACES} leased threads already" in said, said
    assert sorted(lease.uid for lease in daemon.leases()) == sorted(PLACES * [ALICE, BOB, CAROL])

    # the owner shares them, and so do its subordinate users
    owner, inside = daemon.client(ALICE), daemon.client(0, prepare=subordinate_user)
    assert_refused(owner.acquire(), "threads-per-user")
    assert_refused(inside.acquire(), "threads-per-user")

    # what ends is free at once, for whoever of them asks first
    winners[0].kill()
    wait_until(lambda: len(daemon.leases()) == 3 * PLACES - 1, what="the end of one")
    assert_granted(inside.acquire(), FIFO, 5)
    assert_refused(owner.acquire(), "threads-per-user")


def ask_and_give_back(agent, n):
    """Reasons of @n requests, each a new lease."""
    reasons = {}
    for _ in range(n):
        answer = agent.connection.request(wire.ACQUIRE, want=wire.WANT_SCHED, policy=FIFO,
                                          priority=5)
        reasons[answer.reason] = reasons.get(answer.reason, 0) + 1
        if answer.reason == "none":
            agent.connection.request(wire.RELEASE, id=answer.id)
    return reasons


def test_rate(make_daemon):
    """Of the bucket of grants a namespace has its owner's, and the answer carries the wait."""
    daemon = make_daemon().start({"Broker": {**FAIR["Broker"], "GrantBurst": 10,
                                             "GrantRefill": "1h"}})
    inside = [daemon.client(0, prepare=subordinate_user) for _ in range(3)]
    others = [daemon.client(uid) for uid in (BOB, CAROL)]

    for client in inside + others:
        client.start("run", ask_and_give_back, 10)
    answers = [client.finish() for client in inside + others]

    assert sum(one.get("none", 0) for one in answers[:3]) == 10, answers
    assert sum(one.get("rate", 0) for one in answers[:3]) == 20
    assert answers[3:] == [{"none": 10}, {"none": 10}]
    refused = daemon.client(ALICE).acquire()
    assert_refused(refused, "rate")
    assert 0 < refused.explanation.retry_after_ms <= 3_600_000
    assert f"{refused.explanation.retry_after_ms} ms" in refused.explanation.help


def time_of_answers(agent, n):
    begin = time.monotonic()
    for _ in range(n):
        agent.connection.socket.recv(4096)
    return time.monotonic() - begin


def test_messages(make_daemon, slowness):
    """A namespace that asks as fast as it can is not read; others are, as quickly as before."""
    daemon = make_daemon().start({"Broker": {**FAIR["Broker"], "MessageBurst": 50,
                                             "MessageRefill": "10ms"}})
    flood = [daemon.client(0, prepare=subordinate_user) for _ in range(3)]
    others = [daemon.client(uid) for uid in (BOB, CAROL)]

    for client in flood:
        client.ask_often(500)
    for client in others:
        begin = time.monotonic()
        for priority in range(1, 11):
            assert_granted(client.acquire(priority=priority), FIFO, priority)
        assert time.monotonic() - begin < 0.5 * slowness
    # the flood goes on at the pace of its one bucket: 50 at once, then one every 10 ms
    assert flood[0].run(time_of_answers, 70) > 0.15
