# SPDX-License-Identifier: MIT
"""The system calls that Python lacks, and what the tests ask the kernel behind the broker's back."""

import ctypes
import os
import struct
from collections import namedtuple

OTHER, FIFO, RR, BATCH, IDLE, DEADLINE = 0, 1, 2, 3, 5, 6
RESET_ON_FORK = 1
KEEP_POLICY = 8
KEEP_PARAMS = 16

SYS_SCHED_SETATTR = 314 if os.uname().machine == "x86_64" else 274
SYS_SCHED_GETATTR = 315 if os.uname().machine == "x86_64" else 275
SYS_PIDFD_OPEN = 434

CLONE_NEWNS = 0x20000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_SET_KEEPCAPS = 8

CAP_SETUID, CAP_NET_RAW, CAP_SYS_NICE = 7, 13, 23

libc = ctypes.CDLL(None, use_errno=True)

Sched = namedtuple("Sched", "policy priority nice reset_on_fork")


def check(result):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def sched_getattr(tid):
    """What is in force for the thread; `nice` is its static one, also while it is real-time."""
    attributes = ctypes.create_string_buffer(48)
    check(libc.syscall(SYS_SCHED_GETATTR, tid, attributes, 48, 0))
    _, policy, flags, nice, priority = struct.unpack_from("=IIQiI", attributes.raw)
    return Sched(policy, priority, os.getpriority(os.PRIO_PROCESS, tid), bool(flags & RESET_ON_FORK))


def sched_setattr(tid, policy, priority=0, nice=0, flags=0, timing_ns=(0, 0, 0)):
    data = struct.pack("=IIQiIQQQ", 48, policy, flags, nice, priority, *timing_ns)
    check(libc.syscall(SYS_SCHED_SETATTR, tid, data, 0))


def slice_ns(tid):
    """How long a thread that is not real-time may run at a time; 0 before Linux 6.12."""
    attributes = ctypes.create_string_buffer(48)
    check(libc.syscall(SYS_SCHED_GETATTR, tid, attributes, 48, 0))
    return struct.unpack_from("=Q", attributes.raw, 24)[0]


def pidfd_open(pid, flags=0):
    return check(libc.syscall(SYS_PIDFD_OPEN, pid, flags))


def prctl(option, value):
    check(libc.prctl(option, ctypes.c_ulong(value) if isinstance(value, int) else value, 0, 0, 0))


def unshare(flags):
    check(libc.unshare(flags))


def mount(source, where, kind, flags=0, data=None):
    encode = [text.encode() if text is not None else None for text in (source, where, kind, data)]
    check(libc.mount(encode[0], encode[1], encode[2], ctypes.c_ulong(flags), encode[3]))


def umount(where):
    check(libc.umount2(where.encode(), 2))


def become(uid, groups=()):
    """Gives up root for good; no passwd entry is needed."""
    os.setgroups(groups)
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    prctl(PR_SET_DUMPABLE, 1)  # as a program that the user started


def set_capabilities(*numbers):
    """Keeps these capabilities, permitted and effective, and no others."""
    bits = sum(1 << number for number in numbers)
    low, high = bits & 0xFFFFFFFF, bits >> 32
    header = struct.pack("=Ii", 0x20080522, 0)
    check(libc.capset(header, struct.pack("=6I", low, low, 0, high, high, 0)))


def threads(pid):
    return {int(tid) for tid in os.listdir(f"/proc/{pid}/task")}


def status(pid, key, tid=None):
    """A line of /proc/PID/status."""
    path = f"/proc/{pid}/task/{tid}/status" if tid else f"/proc/{pid}/status"
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name == key:
                return value.strip()
    raise KeyError(key)


def cpu_ns(pid):
    """CPU time that all threads of a process used."""
    total = 0
    for tid in threads(pid):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


def wake_ups(pid):
    """How often the threads of a process were switched away from: 0 more means it slept."""
    return sum(
        int(status(pid, key, tid))
        for tid in threads(pid)
        for key in ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")
    )


def rss_kb(pid):
    return int(status(pid, "VmRSS").split()[0])
