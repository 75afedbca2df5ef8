# SPDX-License-Identifier: MIT
"""Kernels, groups and sandboxes that refuse: each cause is told apart, and what works goes on."""

import json
import os
import time
import subprocess

import pytest

import kernel
import wire
from agent import ALICE, BOB, CAROL
from daemon import assert_granted, assert_refused, wait_until
from kernel import FIFO, OTHER, RR


def join(group):
    def prepare():
        (group / "cgroup.procs").write_text(str(os.getpid()))

    return prepare


# ---- RT_GROUP_SCHED ----


@pytest.mark.parametrize("uid", [BOB, 0])
def test_S43_C01_A05_the_group_has_no_budget(daemon, budgetless_group, uid):
    client = daemon.client(uid, prepare=join(budgetless_group))

    answer = client.acquire()

    assert_refused(answer, "kernel-rt-group")
    assert budgetless_group.name in answer.explanation.text + answer.explanation.help
    assert "nice" in answer.explanation.help
    assert client.sched() == (OTHER, 0, 0, False)
    assert client.list() == []
    assert_granted(client.acquire(want=wire.WANT_NICE, nice=-11), OTHER, 0, nice=-11)


def test_C01_all_or_nothing(daemon, budgetless_group):
    client = daemon.client(BOB, prepare=join(budgetless_group))

    answer = client.acquire(want=wire.WANT_SCHED | wire.WANT_NICE, policy=RR, priority=5, nice=-5)

    assert_refused(answer, "kernel-rt-group")
    assert client.sched() == (OTHER, 0, 0, False)


def test_S43_no_storm_of_retries(daemon, budgetless_group):
    client = daemon.client(BOB, prepare=join(budgetless_group))
    client.acquire()
    cpu_ns, n_lines = kernel.cpu_ns(daemon.pid), daemon.log().count("\n")

    for _ in range(100):
        assert client.acquire().reason == "kernel-rt-group"

    assert kernel.cpu_ns(daemon.pid) - cpu_ns < 1e9
    assert daemon.log().count("\n") - n_lines <= 20


def test_C01_others_are_served(daemon, budgetless_group):
    poor, other = daemon.client(BOB, prepare=join(budgetless_group)), daemon.client(CAROL)

    assert_refused(poor.acquire(), "kernel-rt-group")
    assert_granted(other.acquire(), FIFO, 5)


def test_C06_C14_the_daemon_itself_has_no_budget(make_daemon, budgetless_group):
    """It starts, says so once, gives nice, and refuses real-time with a reason of its own."""
    daemon = make_daemon().start(prepare=join(budgetless_group))
    client = daemon.client(BOB)

    assert client.hello().state & wire.STATE_DEGRADED
    answer = client.acquire()
    assert_refused(answer, "degraded")
    assert client.sched() == (OTHER, 0, 0, False)
    assert_granted(client.acquire(want=wire.WANT_NICE, nice=-11), OTHER, 0, nice=-11)
    lines = [line for line in daemon.log().splitlines() if "real-time" in line]
    assert len(lines) == 1 and budgetless_group.name in lines[0]


def test_C14_what_needs_no_budget_of_the_daemon_is_served(make_daemon, budgetless_group, lines):
    """Interrupt threads are none of its group; why says what is missing, until it is there."""
    daemon = make_daemon().start(
        {"Irq first": {"Device": lines[0].device, "Priority": 90},
         "Role desktop": {"IrqPriority": "86-94", "IrqDevices": lines[1].device}},
        prepare=join(budgetless_group))
    client = daemon.client(BOB)
    assert lines[0].sched() == (FIFO, 90)
    assert client.acquire(want=wire.WANT_IRQ, irq=lines[1].device, role="desktop",
                          irq_priority=88).reason == "none"
    assert lines[1].sched() == (FIFO, 88)

    said = json.loads(daemon.rtgrantctl(BOB, "why", "-f", 5, "--json").stdout)
    assert (said["verdict"], said["refusal"]["reason"]) == ("no", "degraded")
    assert budgetless_group.name in said["refusal"]["text"] and said["remedy"]
    status = json.loads(daemon.rtgrantctl(BOB, "status", "--json").stdout)
    assert status["degraded"] is True
    less = daemon.rtgrant(BOB, "--json", "-f", "--or-less", "-p", 5, daemon.target(BOB).pid)
    assert json.loads(less.stdout)["rung"] == "nice"

    # an administrator gives it one: no restart is needed
    (budgetless_group / "cpu.rt_runtime_us").write_text("100000")
    assert_granted(client.acquire(), FIFO, 5)
    assert not client.hello().state & wire.STATE_DEGRADED
    client.kill()
    wait_until(lambda: daemon.status().n_leases <= 1)
    daemon.stop()


# ---- capabilities and filters on the daemon ----

WITHOUT_SYS_NICE = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-all", "--"]


def test_L11_the_daemon_without_cap_sys_nice(make_daemon):
    daemon = make_daemon().start(prefix=WITHOUT_SYS_NICE)
    client = daemon.client(BOB)

    assert_refused(client.acquire(), "kernel-capability", "degraded")
    assert client.hello().state & wire.STATE_DEGRADED
    answer = client.acquire(want=wire.WANT_NICE, nice=-5)
    assert_refused(answer, "kernel-capability")
    assert "CAP_SYS_NICE" in answer.explanation.text + answer.explanation.help
    assert client.sched() == (OTHER, 0, 0, False)
    assert "CAP_SYS_NICE" in daemon.log()


def test_a_filter_on_the_daemon(make_daemon, programs):
    daemon = make_daemon().start(prefix=[programs.with_filter, "--no-sched", "--"])
    client = daemon.client(BOB)

    assert_refused(client.acquire(), "kernel-seccomp", "degraded")
    assert_refused(client.acquire(want=wire.WANT_NICE, nice=-5), "kernel-seccomp")
    assert client.sched() == (OTHER, 0, 0, False)


def test_L11_cap_sys_nice_is_all_it_needs(make_daemon):
    """As a hardened unit runs it: real-time and nice for other users, and nothing else."""
    daemon = make_daemon().start(
        prefix=["setpriv", "--bounding-set=-all,+sys_nice", "--inh-caps=-all", "--"])
    client, target = daemon.client(BOB), daemon.target(CAROL)

    answer = client.acquire(want=wire.WANT_SCHED | wire.WANT_NICE, policy=RR, priority=9, nice=-9)

    assert_granted(answer, RR, 9, nice=-9)
    assert_granted(daemon.client(CAROL).acquire(pid=target.pid), FIFO, 5)


# ---- kernels without the limits of real-time ----


def test_kernels_lacking_rt_rlimits(make_daemon, programs):
    """The main job with a kernel that knows none of RLIMIT_RTPRIO, RLIMIT_RTTIME, RLIMIT_NICE."""
    without = [programs.with_filter, "--no-rt-rlimits", "--"]
    daemon = make_daemon().start(prefix=without)

    for uid in (ALICE, BOB, CAROL):
        client = daemon.client(uid)
        answer = client.acquire(want=wire.WANT_SCHED | wire.WANT_NICE, policy=FIFO, priority=12,
                                nice=-6)
        assert_granted(answer, FIFO, 12, nice=-6)
        client.release(answer.id)
        assert client.sched() == (OTHER, 0, 0, False)


def test_kernels_lacking_rt_rlimits_for_the_client(make_daemon, programs):
    daemon = make_daemon().start(prefix=[programs.with_filter, "--no-rt-rlimits", "--"])

    result = daemon.rtgrant(BOB, "--no-rt-rlimits", "--", programs.rtgrant, "-f", 12,
                            "chrt", "-p", 0, program="with_filter")

    assert result.returncode == 0, result.stderr
    assert "SCHED_FIFO|SCHED_RESET_ON_FORK" in result.stdout
    assert "priority: 12" in result.stdout


# ---- old kernels ----


def test_G06_an_old_kernel_is_announced(make_daemon, programs):
    daemon = make_daemon().start(prefix=[programs.with_filter, "--old-kernel", "--"])

    assert daemon.status().state & wire.STATE_OLD_KERNEL
    assert_granted(daemon.client(BOB).acquire(), FIFO, 5)


def test_G06_a_thread_number_used_again_on_an_old_kernel(make_daemon, programs):
    """Its lease ends with the first thread, though another has its number now."""
    daemon = make_daemon().start(prefix=[programs.with_filter, "--old-kernel", "--"])
    client, target = daemon.client(BOB), daemon.target(BOB)
    tid = target.thread()
    client.acquire(pid=target.pid, tid=tid)
    time.sleep(0.05)  # start times, all that tells the two apart here, count ticks of 10 ms
    with daemon.paused():
        target.tell("end", tid=tid)
        reused = reuse(target, tid)

    wait_until(lambda: daemon.leases() == [], 5, "the end of the lease")
    assert target.sched(reused) == (OTHER, 0, 0, False)


def reuse(target, tid):
    """A new thread of @target that has the number @tid."""
    with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
        file.write(str(tid - 1))
    for _ in range(20):
        born = target.thread()
        if born == tid:
            return born
        target.tell("end", tid=born)
        with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
            file.write(str(tid - 1))
    return pytest.skip("the number was taken by another process")


# ---- the filters themselves: without them the tests above would prove nothing ----

PROBE = """
import ctypes, fcntl, os, resource, socket
libc = ctypes.CDLL(None, use_errno=True)
def errno_of(call):
    try:
        result = call()
    except OSError as error:
        return error.errno
    except ValueError:
        return 22
    return ctypes.get_errno() if result == -1 else 0
pidfd = libc.syscall(434, os.getpid(), 0)
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
print(errno_of(lambda: libc.syscall(434, os.getpid(), os.O_EXCL)),
      errno_of(lambda: fcntl.ioctl(pidfd, 0xC040FF0B, bytearray(b"\\3" + bytes(63)))),
      errno_of(lambda: one.getsockopt(socket.SOL_SOCKET, 77, 4)),
      errno_of(lambda: resource.getrlimit(resource.RLIMIT_RTPRIO)),
      errno_of(lambda: resource.setrlimit(resource.RLIMIT_RTTIME, (1000, 1000))),
      errno_of(lambda: resource.getrlimit(resource.RLIMIT_NOFILE)),
      errno_of(lambda: os.setpriority(os.PRIO_PROCESS, 0, 1)),
      errno_of(lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))))
"""
EINVAL, EPERM, ENOTTY, ENOPROTOOPT = 22, 1, 25, 92


@pytest.mark.parametrize("option,expected", [
    ("--old-kernel", [EINVAL, ENOTTY, ENOPROTOOPT, 0, 0, 0, 0, 0]),
    ("--no-rt-rlimits", [0, 0, 0, EINVAL, EINVAL, 0, 0, 0]),
    ("--no-sched", [0, 0, 0, 0, 0, 0, EPERM, EPERM]),
])
def test_with_filter(programs, option, expected):
    def probe(prefix):
        result = subprocess.run([*prefix, "/usr/bin/python3", "-c", PROBE], capture_output=True,
                                text=True, check=True)
        return [int(word) for word in result.stdout.split()]

    filtered, unfiltered = probe([programs.with_filter, option, "--"]), probe([])

    assert [error or other for error, other in zip(expected, unfiltered)] == filtered
