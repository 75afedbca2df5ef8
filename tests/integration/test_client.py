# SPDX-License-Identifier: MIT
"""The library and the programs as people use them: with a broker, without one, and refused."""

import errno
import json
import os
import resource
import subprocess

import pytest

import kernel
from agent import BOB, CAROL
from daemon import wait_until
from kernel import FIFO, OTHER, RR

ABSENT_MS = 50


class Program:
    """tests/tools/promote, a program that uses librtgrant."""

    def __init__(self, programs, socket_path, uid, prefix=(), prepare=None):
        def in_child():
            if prepare:
                prepare()
            kernel.become(uid)

        self.process = subprocess.Popen(
            [*prefix, programs.promote], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd="/", preexec_fn=in_child,
            env={**os.environ, "RTGRANT_SOCKET": socket_path},
        )
        self.pid = self.process.pid

    def promote(self, priority):
        """The result, the reason and the route; and how long it took."""
        return self.tell(priority)

    def tell(self, line):
        print(line, file=self.process.stdin, flush=True)
        result, reason, route, us = self.process.stdout.readline().split()
        return (int(result), reason, route), int(us) / 1000

    def sched(self):
        return kernel.sched_getattr(self.pid)

    def kill(self):
        """Ends it kindly; it has to have kept silent."""
        _, errors = self.process.communicate()
        assert (self.process.returncode, errors) == (0, "")


@pytest.fixture
def program(programs, make_daemon):
    """Starts such programs; they end before the daemons do."""
    started = []

    def start(socket_path, uid=BOB, **values):
        started.append(Program(programs, socket_path, uid, **values))
        return started[-1]

    yield start
    for one in started:
        one.kill()


def limits_of(pid):
    with open(f"/proc/{pid}/limits", encoding="ascii") as file:
        return file.read()


def test_A02_no_broker(program):
    client = program("/nonexistent/socket")
    before = None

    for _ in range(3):
        (result, _, _), ms = client.promote(5)
        before = before or limits_of(client.pid)
        assert result == -errno.EHOSTDOWN
        assert ms < ABSENT_MS
    assert limits_of(client.pid) == before
    assert client.sched() == (OTHER, 0, 0, False)


def test_A02_a_broker_that_was_killed(program, make_daemon):
    daemon = make_daemon().start()
    daemon.kill()
    assert os.path.exists(daemon.socket_path)

    (result, _, _), ms = program(daemon.socket_path).promote(5)

    assert result == -errno.EHOSTDOWN
    assert ms < ABSENT_MS


def test_A16_through_the_broker(program, daemon):
    client = program(daemon.socket_path)

    answer, _ = client.promote(5)

    assert answer == (0, "none", "broker")
    assert client.sched() == (FIFO, 5, 0, True)


def test_A16_by_ones_own_right_first(program, daemon):
    """What root's limits allow needs no broker, and makes no lease."""
    client = program(daemon.socket_path, uid=0)

    answer, _ = client.promote(5)

    assert answer == (0, "none", "direct")
    assert client.sched()[:2] == (FIFO, 5)
    assert daemon.leases() == []


def test_A16_M09_A19_A20_refused_and_running_on(program, daemon):
    client = program(daemon.socket_path)

    for _ in range(3):
        answer, _ = client.promote(50)
        assert answer == (-errno.EPERM, "priority-limit", "broker")
        assert client.sched() == (OTHER, 0, 0, False)
    answer, _ = client.promote(5)
    assert answer == (0, "none", "broker")


def test_A20_refused_by_everything_there_is(program, make_daemon):
    daemon = make_daemon().start({"Role desktop": {"AllowUsers": None}})

    answer, _ = program(daemon.socket_path).promote(5)

    assert answer[:2] == (-errno.EPERM, "not-allowed")


def test_kernels_lacking_rt_rlimits_for_the_library(program, make_daemon, programs):
    without = [programs.with_filter, "--no-rt-rlimits", "--"]
    daemon = make_daemon().start(prefix=without)
    client = program(daemon.socket_path, prefix=without)

    answer, _ = client.promote(12)

    assert answer == (0, "none", "broker")
    assert client.sched() == (FIFO, 12, 0, True)


def test_A16_no_limits_for_the_library(program, daemon):
    def no_limits():
        for limit in (resource.RLIMIT_RTPRIO, resource.RLIMIT_NICE):
            resource.setrlimit(limit, (0, 0))

    answer, _ = program(daemon.socket_path, prepare=no_limits).promote(12)

    assert answer == (0, "none", "broker")


def test_a_broker_that_does_not_answer(program, daemon):
    """The library waits no longer than it says."""
    client = program(daemon.socket_path)

    with daemon.paused():
        (result, _, _), ms = client.promote(5)

    assert result == -errno.ETIMEDOUT
    assert 900 < ms < 5000


# ---- rtgrant ----


def test_run_a_command_at_fifo_50(make_daemon):
    daemon = make_daemon().start({"Role desktop": {"Priority": "1-60"}})

    result = daemon.rtgrant(BOB, "-f", 50, "chrt", "-p", 0)

    assert result.returncode == 0, result.stderr
    assert "SCHED_FIFO|SCHED_RESET_ON_FORK" in result.stdout
    assert "priority: 50" in result.stdout


def test_the_lease_is_the_threads_and_outlives_the_program(daemon):
    target = daemon.target(BOB)

    result = daemon.rtgrant(BOB, "-f", "-p", 7, target.pid)

    assert result.returncode == 0, result.stderr
    assert target.sched() == (FIFO, 7, 0, True)
    assert daemon.lease_of(target.pid).uid == BOB
    assert daemon.rtgrant(BOB, "-o", "-p", 0, target.pid).returncode == 0
    assert target.sched() == (OTHER, 0, 0, False)
    assert daemon.leases() == []


def test_N02_without_a_policy_it_is_round_robin_as_with_chrt(daemon):
    result = daemon.rtgrant(BOB, 9, "chrt", "-p", 0)

    assert result.returncode == 0, result.stderr
    assert "SCHED_RR|SCHED_RESET_ON_FORK" in result.stdout

    result = daemon.rtgrant(BOB, 100, "true")
    assert result.returncode == 1
    assert "1" in result.stderr and "99" in result.stderr


@pytest.mark.parametrize("arguments", [
    ["-p", "-f", "9", "PID"],
    ["-f", "-p", "9", "PID"],
    ["-f", "9", "-p", "PID"],
    ["-p", "9", "PID", "-f"],
    ["--fifo", "--pid", "9", "PID"],
])
def test_N03_options_in_any_order(daemon, arguments):
    target = daemon.target(BOB)

    result = daemon.rtgrant(BOB, *[word.replace("PID", str(target.pid)) for word in arguments])

    assert result.returncode == 0, result.stderr
    assert target.sched() == (FIFO, 9, 0, True)


def test_N03_a_missing_priority(daemon):
    target = daemon.target(BOB)

    result = daemon.rtgrant(BOB, "-f", "-p", target.pid)

    assert result.returncode == 2
    assert result.stderr
    assert target.sched() == (OTHER, 0, 0, False)


def test_N07_the_message_names_the_thread_and_the_reason(daemon):
    target = daemon.target(BOB)
    tid = target.thread("my-synth")

    result = daemon.rtgrant(BOB, "-f", "-p", 88, tid)

    assert result.returncode == 3
    assert str(tid) in result.stderr and "my-synth" in result.stderr
    assert "88" in result.stderr and "20" in result.stderr
    assert daemon.policy_path in result.stderr
    assert "pid 0" not in result.stderr


def test_no_broker_for_the_program(make_daemon):
    daemon = make_daemon()

    result = daemon.rtgrant(BOB, "-f", 5, "true")

    assert result.returncode == 4
    assert result.stderr


# ---- rtgrantctl ----


def test_list_as_a_table_and_as_json(daemon):
    client = daemon.client(BOB)
    os.setpriority(os.PRIO_PROCESS, client.pid, 2)
    client.acquire(policy=RR, priority=9, reason="a synth")

    table = daemon.rtgrantctl(BOB, "list")
    assert table.returncode == 0, table.stderr
    assert str(client.pid) in table.stdout

    (lease,) = json.loads(daemon.rtgrantctl(BOB, "list", "--json").stdout)
    assert {*lease} >= {"id", "uid", "user", "pid", "tid", "comm", "role", "policy", "priority",
                        "nice", "state", "since", "expires", "reason", "transport"}
    assert (lease["uid"], lease["pid"], lease["tid"]) == (BOB, client.pid, client.pid)
    assert (lease["role"], lease["priority"], lease["reason"]) == ("desktop", 9, "a synth")

    assert json.loads(daemon.rtgrantctl(CAROL, "list", "--json").stdout) == []


def test_status(daemon):
    result = daemon.rtgrantctl(BOB, "status")
    assert result.returncode == 0, result.stderr
    assert "desktop" in result.stdout

    assert json.loads(daemon.rtgrantctl(BOB, "status", "--json").stdout)


def test_why(daemon):
    client = daemon.client(BOB)

    result = daemon.rtgrantctl(BOB, "why", "-f", 88)

    assert result.returncode == 3
    assert "88" in result.stdout + result.stderr
    assert client.list() == []


def test_revoke_by_the_administrator_only(daemon):
    client = daemon.client(BOB)
    client.acquire()
    (lease,) = json.loads(daemon.rtgrantctl(BOB, "list", "--json").stdout)

    assert daemon.rtgrantctl(CAROL, "revoke", lease["id"]).returncode == 3
    assert client.sched().policy == FIFO
    assert daemon.rtgrantctl(0, "revoke", lease["id"]).returncode == 0
    wait_until(lambda: client.sched() == (OTHER, 0, 0, False))

def test_the_library_goes_on_with_the_successor(daemon, program):
    holder = program(daemon.socket_path)
    assert holder.tell("hold 7")[0] == (0, "none", "broker")
    daemon.kill()
    assert holder.tell("reconnect")[0][0] == -errno.EHOSTDOWN
    assert holder.sched() == (FIFO, 7, 0, True)
    daemon.start()

    assert holder.tell("reconnect")[0][0] == 1  # lease that goes on

    assert holder.sched() == (FIFO, 7, 0, True)
    assert not daemon.lease_of(holder.pid).expires_ms
