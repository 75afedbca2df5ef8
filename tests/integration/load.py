# SPDX-License-Identifier: MIT
"""Load: users' processes that ask for all kinds of leases, at random, as fast as they can."""

import collections
import contextlib
import multiprocessing
import os
import random
import signal
import time

import agent
import kernel
import wire
from daemon import PATIENCE_S

PROCESSES = 6  # of each user

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


class Load:
    """A user's process that asks and gives back, for processes that end too.

    @wild: they execute and fork too, and the user changes, renews, lists, watches and disconnects.
    """

    def __init__(self, daemon, uid, seed, wild=False, kinds=KINDS):
        self.kinds = kinds
        self.path, self.uid, self.seed, self.wild = daemon.socket_path, uid, seed, wild
        self.may_run, self.idle = multiprocessing.Event(), multiprocessing.Event()
        self.children = multiprocessing.Array("i", PROCESSES)
        self.done = multiprocessing.Value("L", 0)
        self.broken = multiprocessing.Value("L", 0)  # connections that ended unasked
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
        kernel.become(self.uid)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # setuid(2) would undo it
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
                if self.wild and chance.random() < 0.3:
                    connection = self._wild_step(connection, chance, leases)
                else:
                    self._step(connection, chance, leases)
                with self.done.get_lock():
                    self.done.value += 1
            except (OSError, AssertionError):  # the broker was killed
                self.broken.value += 1
                connection = connection and connection.close()
                time.sleep(0.001)

    def _replace(self, place):
        if self.children[place]:
            os.kill(self.children[place], signal.SIGKILL)
            os.waitpid(self.children[place], 0)
        pid = os.fork()
        if pid == 0:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.signal(signal.SIGUSR1, lambda *_: os.execv("/bin/sleep", ["sleep", "600"]))
            signal.signal(signal.SIGUSR2, lambda *_: os.fork() or os._exit(0))
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
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
            kind = chance.choice(self.kinds)
            lifetime = chance.choice([
                {"lifetime": wire.LIFETIME_THREAD}, {"lifetime": wire.LIFETIME_CONNECTION},
                {"lifetime": wire.LIFETIME_SECONDS, "lifetime_s": chance.choice([1, 600])}])
            answer = connection.acquire(pid=pid, tid=pid, want=kind.want, role="desktop",
                                        **kind.values(chance.randrange(1000)), **lifetime)
            if answer.reason == "none":
                leases[pid] = answer.id

    def _wild_step(self, connection, chance, leases):
        pid, what = chance.choice(list(self.children)), chance.random()
        if what < 0.02:
            os.kill(pid, signal.SIGUSR1)  # executes; the second time it ends
        elif what < 0.05:
            os.kill(pid, signal.SIGUSR2)  # forks; of a program that was executed, the end
        elif what < 0.1:
            connection.close()
            return None
        elif what < 0.15:
            assert connection.watch().reason == "none"
        elif what < 0.2:
            assert isinstance(connection.list(), list)
        elif what < 0.25:
            connection.send(bytes(chance.randrange(1, 64)))  # nonsense, after which it hangs up
            assert connection.receive() is None or not connection.close()
            return None
        elif what < 0.6 and pid in leases:
            connection.update(leases[pid], policy=kernel.RR, priority=chance.randrange(1, 30))
        elif pid in leases:
            connection.renew(leases[pid])
        else:
            connection.hello()
        return connection
