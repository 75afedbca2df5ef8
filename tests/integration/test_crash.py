# SPDX-License-Identifier: MIT
"""kill -9 at random moments under load: what the kernel has is always what the books say.

RTGRANT_SOAK=1 (./dev test soak) kills 500 times, else 25.
"""

import collections
import contextlib
import multiprocessing
import os
import random
import signal
import struct
import time

import pytest

import agent
import kernel
import wire
from agent import ALICE, BOB
from daemon import PATIENCE_S, policy_text, wait_until

KILLS = 500 if os.environ.get("RTGRANT_SOAK") else 25
PROCESSES = 6  # of each user
LATENCY_DEVICE = "/dev/cpu_dma_latency"
BASE = kernel.Sched(kernel.OTHER, 0, 0, False)

# What can be leased: how it is asked for, with a random number, and who can have it here.
Kind = collections.namedtuple("Kind", "want values")
KINDS = [
    Kind(wire.WANT_SCHED, lambda n: {"policy": kernel.FIFO, "priority": 1 + n % 20}),
    Kind(wire.WANT_SCHED, lambda n: {"policy": kernel.RR, "priority": 1 + n % 20}),
    Kind(wire.WANT_NICE, lambda n: {"nice": -1 - n % 15}),
    Kind(wire.WANT_SCHED | wire.WANT_NICE,
         lambda n: {"policy": kernel.FIFO, "priority": 1 + n % 20, "nice": -1 - n % 15}),
    Kind(wire.WANT_CPU_LATENCY, lambda n: {"cpu_latency_us": 10 + n % 100}),
    Kind(wire.WANT_MEMLOCK, lambda n: {"memlock_bytes": (1 + n % 16) << 20}),
]
ROLE = {"CpuLatency": "10us", "Memlock": "64M"}


class Load:
    """A user's process that asks, changes, gives back and ends, with threads that end too."""

    def __init__(self, daemon, uid, seed):
        self.path, self.uid, self.seed = daemon.socket_path, uid, seed
        self.may_run, self.idle = multiprocessing.Event(), multiprocessing.Event()
        self.children = multiprocessing.Array("i", PROCESSES)
        self.done = multiprocessing.Value("L", 0)
        self.process = multiprocessing.get_context("fork").Process(target=self._run, daemon=True)
        self.process.start()

    def kill(self):
        for pid in self.children:
            with contextlib.suppress(ProcessLookupError):
                if pid > 0:
                    os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()

    def rest(self):
        """Until it asks for nothing any more."""
        self.may_run.clear()
        assert self.idle.wait(PATIENCE_S)

    def go_on(self):
        self.idle.clear()
        self.may_run.set()

    # -- in its process --

    def _run(self):
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        kernel.become(self.uid)
        chance = random.Random(self.seed)
        connection, leases = None, {}
        for place in range(PROCESSES):
            self._replace(place)
        while True:
            if not self.may_run.is_set():
                self.idle.set()
                self.may_run.wait()
            try:
                connection = connection or agent.Connection(self.path)
                self._step(connection, chance, leases)
                with self.done.get_lock():
                    self.done.value += 1
            except (OSError, AssertionError):  # the broker was killed
                connection = connection and connection.close()
                time.sleep(0.001)

    def _replace(self, place):
        if self.children[place]:
            os.kill(self.children[place], signal.SIGKILL)
            os.waitpid(self.children[place], 0)
        pid = os.fork()
        if pid == 0:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            while True:
                signal.pause()
        self.children[place] = pid

    def _step(self, connection, chance, leases):
        place = chance.randrange(PROCESSES)
        pid, what = self.children[place], chance.random()
        if what < 0.05:
            self._replace(place)
        elif what < 0.3 and pid in leases:
            connection.release(leases.pop(pid))
        else:
            kind = chance.choice(KINDS)
            lifetime = chance.choice([
                {"lifetime": wire.LIFETIME_THREAD}, {"lifetime": wire.LIFETIME_CONNECTION},
                {"lifetime": wire.LIFETIME_SECONDS, "lifetime_s": chance.choice([1, 600])}])
            answer = connection.acquire(pid=pid, tid=pid, want=kind.want, role="desktop",
                                        **kind.values(chance.randrange(1000)), **lifetime)
            if answer.reason == "none":
                leases[pid] = answer.id


def cpu_latency():
    """In force for the machine; None where it has none."""
    if not os.path.exists(LATENCY_DEVICE):
        return None
    fd = os.open(LATENCY_DEVICE, os.O_RDONLY)
    try:
        return struct.unpack("i", os.pread(fd, 4, 0))[0]
    finally:
        os.close(fd)


def memlock(pid):
    with open(f"/proc/{pid}/limits", encoding="ascii") as file:
        (line,) = [line for line in file if line.startswith("Max locked memory")]
    return line.split()[3]


def differences(daemon, loads, usual):
    """Where the kernel and the books differ; [] if nowhere."""
    leases = {lease.tid: lease for lease in daemon.leases()}
    found = []
    for pid in [pid for load in loads for pid in load.children]:
        lease, now = leases.pop(pid, None), kernel.sched_getattr(pid)
        wanted = BASE._asdict()
        if lease and lease.granted_want & wire.WANT_SCHED:
            wanted |= {"policy": lease.granted_policy, "priority": lease.granted_priority,
                       "reset_on_fork": True}
        if lease and lease.granted_want & wire.WANT_NICE:
            wanted |= {"nice": lease.granted_nice, "reset_on_fork": True}
        if now != kernel.Sched(**wanted):
            found.append((pid, now, wanted))
        if lease and lease.state != wire.LEASE_IN_FORCE:
            found.append((pid, lease))
        if memlock(pid) != usual["memlock"] and not (lease and lease.memlock_bytes):
            found.append((pid, "memlock", memlock(pid)))
        if lease and lease.cpu_latency_us:
            usual = {**usual, "latency": min(usual["latency"], lease.cpu_latency_us)}
    found += [(tid, "has a lease but is no more") for tid in leases]
    if cpu_latency() != usual["latency"]:
        found.append(("cpu latency", cpu_latency(), usual["latency"]))
    return found


def settle(daemon, loads, usual):
    """What still differs when there was time enough for what ended just now to be seen."""
    end = time.monotonic() + PATIENCE_S
    while found := differences(daemon, loads, usual):
        if time.monotonic() > end:
            break
        time.sleep(0.01)
    return found


@pytest.fixture
def loads(daemon):
    made = [Load(daemon, uid, seed) for seed, uid in enumerate((ALICE, BOB))]
    yield made
    for load in made:
        load.kill()


def test_killed_at_any_moment_the_kernel_has_what_the_books_say(daemon, loads):
    policy = policy_text({"Role desktop": ROLE})
    usual = {"latency": cpu_latency(), "memlock": memlock(os.getpid())}
    daemon.reload(policy)
    chance = random.Random(1)

    for kills in range(KILLS):
        for load in loads:
            load.go_on()
        done = [load.done.value for load in loads]
        wait_until(lambda: all(load.done.value > n for load, n in zip(loads, done)), what="the load")
        time.sleep(chance.uniform(0, 0.03))
        daemon.kill()
        for load in loads:
            load.rest()
        daemon.start(policy)
        found = settle(daemon, loads, usual)
        assert not found, f"after kill {kills}"

    print(f"{KILLS} kills, {sum(load.done.value for load in loads)} requests")
    daemon.stop()
    for load in loads:
        for pid in load.children:
            assert kernel.sched_getattr(pid) == BASE
            assert memlock(pid) == usual["memlock"]
    assert cpu_latency() == usual["latency"]
