# SPDX-License-Identifier: MIT
"""rtgrantctl top: what the threads of leases use."""

import contextlib
import json
import os
import pty
import signal
import subprocess

import kernel
from agent import ALICE, BOB
from daemon import wait_until


def as_json(daemon, uid, *arguments, **values):
    result = daemon.rtgrantctl(uid, "top", "--json", *arguments, **values)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_it_says_what_a_thread_used(daemon):
    client, target = daemon.client(BOB), daemon.target(BOB)
    answer = client.acquire(pid=target.pid, tid=target.pid, period_ns=10_000_000,
                            computation_ns=1_000_000, deadline_ns=10_000_000)
    assert answer.reason == "none"

    before = kernel.status(target.pid, "voluntary_ctxt_switches")
    (row,) = as_json(daemon, BOB)

    assert (row["pid"], row["tid"], row["granted_priority"]) == (target.pid, target.pid, 5)
    assert row["cpu_percent"] < 50  # it sleeps
    assert row["budget_percent"] == 10
    assert 0 < row["cpu_ns"] <= kernel.cpu_ns(target.pid)
    assert row["voluntary_switches"] == int(before)
    assert row["involuntary_switches"] >= 0
    assert row["last_event"] is None


def test_it_sees_a_busy_thread(daemon):
    """Busy at nice -1, and no real-time: nobody else has to wait for it."""
    spinner = subprocess.Popen(["/bin/sh", "-c", "ulimit -t 60; while :; do :; done"], user=BOB, group=BOB,
                               extra_groups=[])
    try:
        wait_until(lambda: kernel.status(spinner.pid, "Name") == "sh", what="the shell")
        assert daemon.rtgrant(BOB, "--nice", -1, "-p", spinner.pid).returncode == 0
        (row,) = as_json(daemon, BOB)
        assert row["cpu_percent"] > 1
    finally:
        spinner.kill()
        spinner.wait()


def test_everybody_sees_their_own_and_the_administrator_all(daemon):
    for uid in (ALICE, BOB):
        assert daemon.client(uid).acquire().reason == "none"

    assert [row["uid"] for row in as_json(daemon, BOB)] == [BOB]
    assert sorted(row["uid"] for row in as_json(daemon, 0)) == [ALICE, BOB]
    refused = daemon.rtgrantctl(BOB, "top", "--all", "--once")
    assert refused.returncode == 3


def test_the_table(daemon):
    target = daemon.target(BOB)
    nothing = daemon.rtgrantctl(BOB, "top", "--once")
    assert nothing.returncode == 0 and "no leases" in nothing.stdout
    daemon.client(BOB).acquire(pid=target.pid, tid=target.pid)

    result = daemon.rtgrantctl(BOB, "top")  # no terminal: once

    assert result.returncode == 0
    head, row = result.stdout.splitlines()
    assert all(word in head for word in ("CPU", "BUDGET", "SLEPT", "LAST EVENT"))
    assert str(target.pid) in row and "SCHED_FIFO 5" in row and "%" in row


def test_hidden_threads_cannot_be_told(daemon):
    """hidepid=2, and an administrator without the right to look all the same."""
    daemon.client(BOB).acquire()
    hide = ("mount -t proc -o hidepid=2,gid=64999 proc /proc && "
            "exec setpriv --bounding-set=-sys_ptrace -- \"$@\"")

    def top(*arguments):
        result = subprocess.run(
            ["unshare", "--mount", "sh", "-c", hide, "sh", daemon.programs.rtgrantctl, "top", *arguments],
            env={**os.environ, "RTGRANT_SOCKET": daemon.socket_path}, stdout=subprocess.PIPE,
            text=True, check=True)
        return result.stdout

    (row,) = json.loads(top("--json"))
    assert [row[key] for key in ("cpu_percent", "cpu_ns", "voluntary_switches")] == [None] * 3
    assert "cannot tell" in top("--once")


def test_on_a_terminal_until_q(daemon):
    daemon.client(BOB).acquire()
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    process = subprocess.Popen(
        [daemon.programs.rtgrantctl, "top"], stdin=slave, stdout=slave, stderr=slave,
        user=BOB, group=BOB, extra_groups=[], cwd="/",
        env={**os.environ, "RTGRANT_SOCKET": daemon.socket_path, "TERM": "xterm"})
    os.close(slave)
    seen = b""

    def shows(n):
        nonlocal seen
        with contextlib.suppress(BlockingIOError):
            seen += os.read(master, 65536)
        return seen.count(b"SCHED_FIFO 5") >= n

    try:
        wait_until(lambda: shows(2), what="two tables")
        os.write(master, b"q")
        assert process.wait(30) == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(master)
