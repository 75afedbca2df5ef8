#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
What real-time hogs do to others, and how long: beside rtgrantd, and beside rtkit-daemon.

    hogs.py BUILD-DIR [PART-OF-A-NAME]       as root; prints a table

Each hog has limits of its own, and ends after 6 s at the latest. An innocent thread of another user,
of lower priority, works a tenth of the time on the same CPU. A third user, above all of them, asks the
daemon something all the time.
"""

import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

build = os.path.realpath(sys.argv[1]) if len(sys.argv) in (2, 3) else sys.exit(__doc__)
only = sys.argv[2] if len(sys.argv) == 3 else ""
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
sys.dont_write_bytecode = True
os.environ["RTGRANT_BUILD"] = build

import bus as bus_module  # noqa: E402
import daemon as daemon_module  # noqa: E402
import hogs  # noqa: E402
import kernel  # noqa: E402
from agent import ALICE, BOB, CAROL, Client  # noqa: E402

LENGTH_S = 6
PERIOD_S = 0.02                 # of hogs.work()
REAL_TIME = (kernel.FIFO, kernel.RR)
INNOCENT, HOG, ASKER = 3, 10, 20

CPUS = sorted(os.sched_getaffinity(0))
HOGS = {
    "a spinner": [(hogs.spin, None, hogs.CPU)],
    "95 % and sleeps of 100 us": [(hogs.nap, None, hogs.CPU)],
    "one that yields": [(hogs.give_way, None, hogs.CPU)],
    "a spinner on each CPU": [(hogs.spin, None, cpu) for cpu in CPUS],
    "twenty of 7 %": [(hogs.work, 0.07, hogs.CPU)] * 20,
    "a fork bomb of 30": [(hogs.bomb, 30, hogs.CPU)],
}

# Budgets as shipped; the rest so that no quota is met.
POLICY = {"Broker": {"BackOff": "20s", "GrantBurst": 1000, "MessageBurst": 1000000,
                     "MessageRefill": "1us"}, "Role desktop": {"ThreadsPerUser": 100}}


class Ours:
    """rtgrantd, asked over its socket."""

    name = "rtgrantd"
    rttime_us = hogs.RUN_S * 10**6, hogs.RUN_S * 10**6  # nobody has to have one

    def __init__(self, directory):
        programs = SimpleNamespace(rtgrantd=f"{build}/broker/rtgrantd")
        self.daemon = daemon_module.Daemon(programs, directory)
        self.daemon.start(POLICY)

    def client(self, uid):
        return self.daemon.client(uid)

    def promote(self, client, pid, priority):
        answer = client.acquire(pid=pid, priority=priority)
        assert answer.reason == "none", answer.explanation.text

    def start_asking(self, client, seconds):
        client.start("run", ask_broker, seconds)

    def close(self):
        self.daemon.kill()
        for companion in self.daemon.companions:
            companion.kill()


class Theirs:
    """rtkit-daemon as installed, asked over a private bus; sessions are all let in by polkit."""

    name = "rtkit-daemon"
    rttime_us = 150_000, 200_000  # what its clients set

    def __init__(self, directory):
        del directory
        self.bus = bus_module.Bus("polkit.addRule(function() { return polkit.Result.YES; });")
        self.rtkit = bus_module.RtkitDaemon(
            self.bus, "--processes-per-user-max=100", "--threads-per-user-max=100",
            "--actions-per-burst-max=1000")
        self.clients = []

    def client(self, uid):
        self.clients.append(Client(None, uid, prepare=bus_module.limit_rttime(*self.rttime_us)))
        return self.clients[-1]

    def promote(self, client, pid, priority):
        reply = bus_module.Kit(self.bus, client).realtime_of(pid, pid, priority)
        assert not reply.error, reply

    def start_asking(self, client, seconds):
        client.start("run", ask_rtkit, self.bus.address, seconds)

    def close(self):
        for client in self.clients:
            client.kill()
        self.rtkit.close()
        self.bus.close()


def timed(seconds, ask):
    """How long each answer took, in ms."""
    end, times = time.monotonic() + seconds, []
    while time.monotonic() < end:
        began = time.monotonic()
        ask()
        times.append((time.monotonic() - began) * 1000)
        time.sleep(0.002)
    return times


def ask_broker(agent, seconds):
    return timed(seconds, agent.connection.hello)


def ask_rtkit(agent, address, seconds):
    del agent
    import dbus

    connection = dbus.bus.BusConnection(address)
    return timed(seconds, lambda: connection.call_blocking(
        bus_module.KIT, bus_module.KIT_PATH, bus_module.PROPERTIES, "Get", "ss",
        (bus_module.KIT, "RTTimeUSecMax"), timeout=30))


def is_real_time(pid):
    """None if it is dead."""
    try:
        if kernel.status(pid, "State").startswith("Z"):
            return None
        return kernel.sched_getattr(pid).policy in REAL_TIME
    except OSError:
        return None


def switches(pid):
    return int(kernel.status(pid, "voluntary_ctxt_switches"))


def begin(side, client, what, argument, cpu, priority):
    pid = client.run(hogs.start, what, argument, cpu, side.rttime_us)
    side.promote(client, pid, priority)
    return pid


def watch(pids, until):
    """{pid: (seconds, what became of it)} of those that are real-time no more."""
    began, fate = time.monotonic(), {}
    while time.monotonic() < until:
        for pid in pids:
            now = is_real_time(pid) if pid not in fate else True
            if now is not True:
                fate[pid] = time.monotonic() - began, "killed" if now is None else "demoted"
        time.sleep(0.005)
    return fate


def measure(side, what):
    culprit, innocent, asker = (side.client(uid) for uid in (ALICE, BOB, CAROL))
    work = begin(side, innocent, hogs.work, 0.1, hogs.CPU, INNOCENT)
    pids = [begin(side, culprit, *one, HOG) for one in what]
    side.promote(asker, asker.pid, ASKER)
    os.kill(work, signal.SIGUSR2)
    time.sleep(1)

    before, began = switches(work), time.monotonic()
    side.start_asking(asker, LENGTH_S)
    for pid in pids:
        os.kill(pid, signal.SIGUSR2)
    fate = watch(pids, began + LENGTH_S)
    try:
        lost = (time.monotonic() - began) / PERIOD_S - (switches(work) - before)
        lost_text = f"{max(0, lost) / (LENGTH_S / PERIOD_S):.0%}"
    except (OSError, ValueError, TypeError, AttributeError):
        lost_text = "dead"
    kept = {True: "kept", False: "lost", None: "dead"}[is_real_time(work)]
    for pid in [*pids, work]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    times = sorted(asker.finish())

    if fate:
        words = sorted({word for _, word in fate.values()})
        first = min(seconds for seconds, _ in fate.values())
        last = max(seconds for seconds, _ in fate.values())
        seen = f"{first:.2f} s" if last - first < 0.1 else f"{first:.2f}-{last:.2f} s"
        seen = f"{len(fate)} of {len(pids)} {' and '.join(words)} after {seen}"
    else:
        seen = f"none of {len(pids)} within {LENGTH_S} s"
    return (seen, f"{times[len(times) * 99 // 100]:.1f} ms" if times else "-",
            f"{times[-1]:.1f} ms" if times else "-", kept, lost_text)


def main():
    # the table itself comes after all of them
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(98))
    sides = [Ours] + ([Theirs] if bus_module.is_here() and bus_module.has_rtkit() else [])
    rows = [("hog", "daemon", "what became of it", "p99", "max", "innocent", "lost")]
    for name, what in HOGS.items():
        for make in sides if only in name else []:
            with tempfile.TemporaryDirectory(prefix="rtgrant-hogs-") as directory:
                os.chmod(directory, 0o755)
                side = make(directory)
                try:
                    rows.append((name, side.name, *measure(side, what)))
                finally:
                    side.close()
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


main()
