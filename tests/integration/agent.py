# SPDX-License-Identifier: MIT
"""Clients: processes of unprivileged users that talk to the broker.

A test calls methods of Client; they run as methods of Agent in a child process that has given up
root, because the broker believes the kernel, and the kernel goes by the process.
"""

import array
import multiprocessing
import os
import signal
import socket
import threading
import traceback

import kernel
import wire
from kernel import FIFO

ALICE, BOB, CAROL, NOBODY = 64001, 64002, 64003, 65534  # none of them needs a passwd entry

ANSWER_TIMEOUT_S = 30


class Connection:
    """One connection to the broker."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(path)  # waits where the queue of the listener is full
        self.socket.settimeout(ANSWER_TIMEOUT_S)
        self.serial = 0
        self.events = []

    def close(self):
        self.socket.close()

    def send(self, data, fds=()):
        ancillary = []
        if fds:
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        self.socket.sendmsg([data], ancillary)

    def receive(self):
        """The next record; None at the end of the connection."""
        try:
            data = self.socket.recv(2 * wire.RECORD_MAX)
        except ConnectionResetError:
            return None
        return wire.decode(data) if data else None

    def request(self, verb, fds=(), **values):
        """Asks, and returns the answer."""
        self.ask(verb, fds, **values)
        return self.answer()

    def ask(self, verb, fds=(), **values):
        """Only asks; returns when the request is in the broker's hands."""
        self.serial += 1
        self.send(wire.encode(verb, self.serial, **values), fds)

    def answer(self):
        """The answer to what was asked last; events that come between are kept."""
        while True:
            record = self.receive()
            assert record is not None, "the broker closed the connection"
            if record.verb != wire.EVENT:
                assert record.serial == self.serial
                return record
            self.events.append(record)

    def event(self):
        """The next event."""
        if self.events:
            return self.events.pop(0)
        record = self.receive()
        assert record is not None and record.verb == wire.EVENT
        return record

    def hello(self, **values):
        return self.request(wire.HELLO, **values)

    def acquire(self, pidfd=None, **values):
        """FIFO 5 for the own main thread, unless @values say otherwise."""
        self.ask_to_acquire(pidfd, **values)
        return self.answer()

    def ask_to_acquire(self, pidfd=None, **values):
        if "want" not in values:
            values["want"] = wire.WANT_SCHED
            values.setdefault("policy", FIFO)
            values.setdefault("priority", 5 if values["policy"] else 0)
        if pidfd is not None:
            values["flags"] = values.get("flags", 0) | wire.ACQUIRE_PIDFD
        self.ask(wire.ACQUIRE, [] if pidfd is None else [pidfd], **values)

    def update(self, lease, **values):
        values.setdefault("want", wire.WANT_SCHED)
        return self.request(wire.UPDATE, id=lease, **values)

    def renew(self, lease, lifetime_s=0):
        return self.request(wire.RENEW, id=lease, lifetime_s=lifetime_s)

    def release(self, lease):
        return self.request(wire.RELEASE, id=lease)

    def revoke(self, lease):
        return self.request(wire.REVOKE, id=lease)

    def list(self, everybody=False):
        """All pages of the listing; a refusal as it came."""
        leases, after = [], 0
        while True:
            page = self.request(wire.LIST, flags=wire.LIST_ALL if everybody else 0, after=after)
            if page.reason != "none":
                return page
            leases += page.leases
            after = page.next
            if not after:
                return leases

    def watch(self, everybody=False):
        return self.request(wire.WATCH, flags=wire.LIST_ALL if everybody else 0)


class Agent:
    """What a client does, in its own process. It has one connection from the start."""

    def __init__(self, path):
        self.path = path
        self.connection = Connection(path) if path else None
        self.sleepers = {}

    def __getattr__(self, name):
        return getattr(self.connection, name)

    def reconnect(self):
        self.connection.close()
        self.connection = Connection(self.path)

    def try_connect(self, wait_s=ANSWER_TIMEOUT_S):
        """What the broker says to another connection before anything was sent; None: it waits."""
        other = Connection(self.path)
        other.socket.settimeout(wait_s)
        try:
            return other.receive()
        except TimeoutError:
            return None
        finally:
            other.close()

    def ask_often(self, n):
        """As many requests as the socket takes, up to @n, without reading one answer."""
        self.connection.socket.setblocking(False)
        try:
            for _ in range(n):
                self.connection.ask(wire.ACQUIRE, want=wire.WANT_SCHED, policy=FIFO, priority=1)
        except BlockingIOError:
            pass
        self.connection.socket.settimeout(ANSWER_TIMEOUT_S)

    def thread(self, name="sleeper"):
        """A new thread that sleeps; its id."""
        born, end = threading.Event(), threading.Event()

        def sleep():
            kernel.prctl(kernel.PR_SET_NAME, name.encode())
            born.set()
            end.wait()

        sleeper = threading.Thread(target=sleep, daemon=True)
        sleeper.start()
        born.wait()
        self.sleepers[sleeper.native_id] = sleeper, end
        return sleeper.native_id

    def pin(self, tid, cpu):
        os.sched_setaffinity(tid, {cpu})

    def end_thread(self, tid):
        sleeper, end = self.sleepers.pop(tid)
        end.set()
        sleeper.join()

    def child(self):
        """A forked child that sleeps as long as its parent lives."""
        ready, done = os.pipe()
        pid = os.fork()
        if pid == 0:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            os.write(done, b"x")
            while True:
                signal.pause()
        os.read(ready, 1)
        os.close(ready)
        os.close(done)
        return pid

    def acquire_by_pidfd(self, pid, thread=False, **values):
        fd = kernel.pidfd_open(pid, os.O_EXCL if thread else 0)
        try:
            return self.connection.acquire(pidfd=fd, **values)
        finally:
            os.close(fd)

    def sched_setattr(self, *arguments, **values):
        """The errno, 0 if the kernel did it."""
        try:
            kernel.sched_setattr(*arguments, **values)
        except OSError as error:
            return error.errno
        return 0

    def setpriority(self, tid, nice):
        try:
            os.setpriority(os.PRIO_PROCESS, tid, nice)
        except OSError as error:
            return error.errno
        return 0

    def run(self, function, *arguments, **values):
        """Calls a function of a test module as function(agent, …)."""
        return function(self, *arguments, **values)


def _serve(pipe, uid, groups, path, prepare):
    """The life of the child."""
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd > 2 and fd != pipe.fileno():
                try:
                    os.close(fd)
                except OSError:
                    pass  # the listing's own
        if prepare:
            prepare()
        if uid != 0:
            kernel.become(uid, groups)
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        agent = Agent(path)
        pipe.send(("value", os.getpid()))
    except BaseException:
        pipe.send(("error", traceback.format_exc()))
        return

    while True:
        try:
            name, arguments, values = pipe.recv()
        except EOFError:
            return
        try:
            reply = "value", getattr(agent, name)(*arguments, **values)
        except BaseException:
            reply = "error", traceback.format_exc()
        pipe.send(reply)


class Client:
    """The handle of an Agent. Calls are answered with what the Agent's method returned."""

    def __init__(self, path, uid, groups=(), prepare=None):
        """@prepare runs in the child while it is root still."""
        self.uid = uid
        self._pipe, theirs = multiprocessing.Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _serve(theirs, uid, groups, path, prepare)
            finally:
                os._exit(0)
        theirs.close()
        try:
            self.inner_pid = self._receive()  # as the client sees itself
        except BaseException:
            self.kill()
            raise

    def _receive(self):
        kind, value = self._pipe.recv()
        if kind == "error":
            raise AssertionError(f"in the client of uid {self.uid}:\n{value}")
        return value

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*arguments, **values):
            self.start(name, *arguments, **values)
            return self._receive()

        return call

    def start(self, name, *arguments, **values):
        """Calls without waiting; finish() has the result."""
        self._pipe.send((name, arguments, values))

    def finish(self):
        return self._receive()

    def has_finished(self):
        return self._pipe.poll()

    def sched(self, tid=None):
        """What is in force, as root sees it."""
        return kernel.sched_getattr(tid or self.pid)

    def kill(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
        self._pipe.close()


def as_user(uid, function, *arguments, groups=()):
    """Calls function(…) in a child of that uid, and returns its result."""
    pipe, theirs = multiprocessing.Pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if uid != 0:
                kernel.become(uid, groups)
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # setuid(2) would undo it
            theirs.send(("value", function(*arguments)))
        except BaseException:
            theirs.send(("error", traceback.format_exc()))
        finally:
            os._exit(0)
    theirs.close()
    try:
        kind, value = pipe.recv()
    finally:
        os.waitpid(pid, 0)
        pipe.close()
    if kind == "error":
        raise AssertionError(f"as uid {uid}:\n{value}")
    return value
