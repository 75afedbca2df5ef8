# SPDX-License-Identifier: MIT
"""Threads that take all they can get, each with limits of its own so that the machine survives it."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time

import kernel

CPU = max(os.sched_getaffinity(0))  # where they are kept; the tests themselves may run elsewhere
LIFE_S = 60                         # of CPU time, then the kernel ends it
RUN_S = 20                          # without sleeping, at real-time priority


def spin(_):
    while True:
        pass


def nap(_):
    """95 % and more, but it sleeps before any limit on running without sleep strikes."""
    while True:
        end = time.monotonic() + 0.005
        while time.monotonic() < end:
            pass
        time.sleep(0.0001)


def give_way(_):
    while True:
        os.sched_yield()


def work(share):
    """That much of each 20 ms, on time if it can; its own CPU time counts."""
    next_at = time.monotonic()
    while True:
        end = time.thread_time() + 0.02 * share
        while time.thread_time() < end:
            pass
        next_at = max(next_at + 0.02, time.monotonic())
        time.sleep(max(0, next_at - time.monotonic()))


def bomb(n):
    """Forks @n children, which spin; then it spins itself."""
    parent = os.getpid()
    for _ in range(n):
        with contextlib.suppress(OSError):
            if os.fork() == 0:
                kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(0)  # it was killed before
                resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
                spin(None)
    spin(None)


class Rest(Exception):
    pass


def _rest(number, frame):
    raise Rest


def _live(what, argument):
    while True:
        try:
            what(argument)
        except Rest:
            signal.pause()


def start(agent, what, argument=None, cpu=CPU, rttime_us=(RUN_S * 10**6, RUN_S * 10**6)):
    """In an agent: a child that waits until it is told to begin; its pid."""
    del agent
    ready, done = os.pipe()
    pid = os.fork()
    if pid:
        os.read(ready, 1)
        os.close(ready)
        os.close(done)
        return pid
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_CPU, (LIFE_S, LIFE_S))
        resource.setrlimit(resource.RLIMIT_RTTIME, rttime_us)
        os.sched_setaffinity(0, {cpu})
        signal.signal(signal.SIGUSR1, _rest)
        signal.signal(signal.SIGUSR2, lambda *_: None)
        os.write(done, b"x")
        os.closerange(3, 1024)  # the agent's connection is not its own
        signal.pause()
        _live(what, argument)
    finally:
        os._exit(1)


class Hog:
    """One that has a lease, at work until rest() or kill()."""

    def __init__(self, client, what, argument=None, cpu=CPU, begin=True, **values):
        self.client = client
        self.pid = client.run(start, what, argument, cpu)
        answer = client.acquire(pid=self.pid, **values)
        assert answer.reason == "none", answer.explanation.text
        self.lease = answer.id
        if begin:
            self.begin()

    def begin(self):
        os.kill(self.pid, signal.SIGUSR2)

    def rest(self):
        os.kill(self.pid, signal.SIGUSR1)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def sched(self):
        return kernel.sched_getattr(self.pid)

    def n_switches(self):
        """How often it went to sleep by itself."""
        return int(kernel.status(self.pid, "voluntary_ctxt_switches"))


# Runs now and then for 5 ms of its own time, above what is measured, and says from when to when, ns of
# CLOCK_MONOTONIC; ends by itself in any case.
HOG = """
import ctypes, os, resource, sys, time
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
ctypes.CDLL(None).prctl(15, b"planted-hog", 0, 0, 0)
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
resource.setrlimit(resource.RLIMIT_RTTIME, (500000, 500000))
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
print("ready", flush=True)
while True:
    begin, end = time.monotonic_ns(), time.thread_time_ns() + 5000000
    while time.thread_time_ns() < end:
        pass
    os.write(1, f"{begin} {time.monotonic_ns()}\\n".encode())
    time.sleep(0.05)
"""


class PlantedHog:
    """That on the last CPU, and when it ran."""

    def __init__(self):
        self._process = subprocess.Popen([sys.executable, "-c", HOG, str(CPU)],
                                         stdout=subprocess.PIPE)
        assert self._process.stdout.readline() == b"ready\n"

    def end(self):
        """Returns [(begin, end)]."""
        self._process.kill()
        lines = self._process.stdout.read().decode().splitlines()
        self._process.wait()
        self._process.stdout.close()
        return [tuple(map(int, line.split())) for line in lines]

    def close(self):
        if self._process.returncode is None:
            self.end()


def told_of(report, runs, variant="with"):
    """[(µs that are told of the planted hog, µs that it had by its own account)] for each overrun
    of a report of rtgrant-latency in which it ran most of its 5 ms."""
    found = []
    for row in report["rows"]:
        for overrun in row["overrun_list"] if row["variant"] == variant else []:
            begin = overrun["time_ns"]
            end = begin + 1000 * (report["deadline_us"] + overrun["too_late_us"])
            real = sum(max(0, min(end, last) - max(begin, first)) for first, last in runs) / 1000
            if real < 3000 or overrun["incomplete"]:
                continue
            told = [one["us"] for one in overrun["culprits"] if one["comm"] == "planted-hog"]
            found.append((sum(told), real))
    return found
