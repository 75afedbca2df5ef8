# SPDX-License-Identifier: MIT
"""What a granted thread hands on, and what it does not."""

import subprocess
import time

import pytest

import kernel
from agent import BOB, CAROL
from daemon import assert_granted
from kernel import FIFO, OTHER, RR

NORMAL = (OTHER, 0, 0, False)
BOMBER = 64004  # has so many processes that it should be nobody else


@pytest.fixture
def granted(daemon):
    """A program whose main thread has FIFO 20."""
    client, target = daemon.client(BOB), daemon.target(BOB)
    assert_granted(client.acquire(pid=target.pid, priority=20), FIFO, 20)
    target.client = client
    return target


def test_S14_fork(granted):
    assert kernel.sched_getattr(granted.fork()) == NORMAL
    assert granted.sched() == (FIFO, 20, 0, True)


def test_S14_vfork(granted):
    assert granted.tell("vfork") == ["0", "0", "0"]


def test_S14_I04_threads(granted):
    assert granted.sched(granted.thread()) == NORMAL


def test_S14_io_uring(granted):
    error = granted.errno_of("io-uring")
    if error:
        pytest.skip(f"this kernel has no io_uring for users: errno {error}")

    others = [tid for tid in kernel.threads(granted.pid) if tid != granted.pid]

    assert others
    assert all(kernel.sched_getattr(tid).policy == OTHER for tid in others)


def test_S14_a_better_nice_is_not_handed_on(daemon):
    client, target = daemon.client(BOB), daemon.target(BOB)
    client.acquire(pid=target.pid, want=2, nice=-10)

    assert kernel.sched_getattr(target.fork()) == NORMAL


def test_S14_I12_a_fork_bomb(daemon):
    """500 spinning children of a granted thread; meanwhile another user is answered."""
    client, bomb, other = daemon.client(BOMBER), daemon.target(BOMBER), daemon.client(CAROL)
    assert_granted(client.acquire(pid=bomb.pid, priority=20), FIFO, 20)
    delays = []

    bomb.write("bomb", 500)
    for priority in range(1, 21):
        begin = time.monotonic()
        assert other.acquire(priority=priority).reason == "none"
        delays.append(time.monotonic() - begin)
    n, n_realtime = map(int, bomb.reply())

    assert max(delays) < 5
    assert n == 500
    assert n_realtime == 0


def test_I01_the_plain_call_is_refused_and_the_one_with_the_flag_is_not(granted):
    assert granted.errno_of("sched", FIFO, 20, 0, 0) == 1
    assert granted.errno_of("sched", FIFO, 20, 0, kernel.RESET_ON_FORK) == 0
    assert granted.errno_of("sched", FIFO, 19, 0, kernel.RESET_ON_FORK) == 0
    assert granted.errno_of("sched", OTHER, 0, 0, kernel.RESET_ON_FORK) == 0


def test_I04_every_thread_asks_for_itself(daemon):
    client, target = daemon.client(BOB), daemon.target(BOB)
    assert_granted(client.acquire(pid=target.pid, policy=RR, priority=10), RR, 10)
    tids = [target.thread() for _ in range(3)]
    assert all(target.sched(tid) == NORMAL for tid in tids)

    for tid in tids:
        assert_granted(client.acquire(pid=target.pid, tid=tid, policy=RR, priority=10), RR, 10)
    assert len(client.list()) == 4


def test_I04_all_threads_by_the_program(daemon):
    target = daemon.target(BOB)
    tids = [target.pid, *(target.thread() for _ in range(3))]

    result = daemon.rtgrant(BOB, "-a", "-v", "-r", "-p", 10, target.pid)

    assert result.returncode == 0, result.stderr
    assert all(target.sched(tid) == (RR, 10, 0, True) for tid in tids)
    assert all(str(tid) in result.stdout for tid in tids)


def test_I08_no_capability_leaks(granted):
    """Neither to the program nor to its children; a sandbox tool still starts."""
    sets = ("CapInh", "CapPrm", "CapEff", "CapAmb")
    child = granted.fork()

    for pid in (granted.pid, child):
        assert all(int(kernel.status(pid, key), 16) == 0 for key in sets)
    result = subprocess.run(
        ["setpriv", f"--reuid={BOB}", f"--regid={BOB}", "--clear-groups", "unshare", "--user", "true"],
        capture_output=True, text=True, check=False,
    )
    assert result.returncode == 0, result.stderr


def test_plain_exec_keeps_the_priority_and_its_flag(granted, daemon):
    granted.exec(daemon.programs.target)

    assert granted.sched() == (FIFO, 20, 0, True)
    assert kernel.sched_getattr(granted.fork()) == NORMAL
