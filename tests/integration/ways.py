# SPDX-License-Identifier: MIT
"""One request on each of the broker's interfaces: what a test asks, and what came of it.

A way is made for one client; grant() asks for SCHED_FIFO, start() and finish() do so without
waiting. Its answer is the same on each: the reason's word, "none" for a yes, and all that was said.
"""

import os
import re
import tempfile
import time
from collections import namedtuple

import pytest

import broker1
import bus as bus_module
import wire
from agent import ALICE, BOB, Client, Connection
from bus import KIT, KIT_PATH, TIMEOUT_S, Bus, limit_rttime
from daemon import Daemon, wait_until
from kernel import FIFO, OTHER

Said = namedtuple("Said", "reason words", defaults=("",))

UNTOUCHED = (OTHER, 0, 0, False)

YES = Said("none")


def in_general(words):
    """Without numbers, which the caller itself may have named, and what the way in has chosen."""
    return re.sub(r"\d+", "N", re.sub(r" \(action [\w.-]+\)| \[.*\]", "", words))


class Way:
    def __init__(self, bus, client):
        self.bus = bus
        self.client = client
        self.pid = client.pid

    def grant(self, priority=5, **values):
        self.start(priority, **values)
        return self.finish()

    def grant_with_patience(self, priority=5, **values):
        """polkitd hangs for some seconds now and then, by itself; not that, but its answer."""
        return wait_until(lambda: (said := self.grant(priority, **values)).reason !=
                          "authority-unavailable" and said, what="polkit's answer")

    def sched(self, tid=None):
        return self.client.sched(tid)

    def ask_and_leave(self, n):
        """Asks on @n connections, each of which is closed up to 20 ms later; without waiting."""
        self.client.start("run", ask_and_leave, n, *self.question)


def over_socket(agent):
    connection = Connection(agent.path)
    connection.send(wire.encode(wire.ACQUIRE, 1, want=wire.WANT_SCHED, policy=FIFO, priority=5,
                                role="desktop"))
    return connection


def over_bus(agent, address, name, path, member, signature, arguments):
    import dbus.lowlevel

    connection = dbus.bus.BusConnection(address)
    message = dbus.lowlevel.MethodCallMessage(name, path, name, member)
    message.append(*arguments, signature=signature)
    connection.send_message(message)
    connection.flush()
    return connection


def ask_and_leave(agent, n, ask, *arguments):
    for i in range(n):
        connection = ask(agent, *arguments)
        time.sleep(0.02 * i / n)
        connection.close()


class Socket(Way):
    question = (over_socket,)

    def start(self, priority=5, pid=0, tid=0, role="desktop"):
        self.client.start("acquire", policy=FIFO, priority=priority, pid=pid, tid=tid, role=role)

    def finish(self):
        answer = self.client.finish()
        why = answer.explanation
        self.lease = answer.id
        return YES if answer.reason == "none" else Said(
            answer.reason, f"{why.text} [{why.rule}]; {why.help}".replace(" []", ""))

    def give_back(self):
        """Of the last grant."""
        assert self.client.release(self.lease).reason == "none"


class Broker1(Way):
    @property
    def question(self):
        return (over_bus, self.bus.address, broker1.NAME, broker1.PATH, "Acquire", "a{sv}",
                [{"policy": "fifo", "priority": 5, "role": "desktop"}])

    def start(self, priority=5, pid=0, tid=0, role="desktop"):
        options = {"policy": "fifo", "priority": priority, "role": role}
        options.update({key: value for key, value in (("pid", pid), ("tid", tid)) if value})
        self._start("Acquire", "a{sv}", options)

    def _start(self, member, signature, *arguments):
        self.client.start("run", broker1.speak, self.bus.address, broker1.NAME, member, signature,
                          arguments, True)

    def finish(self):
        error, message, value = self.client.finish()
        self.lease = value and value.get("id")
        if not error:
            return YES
        word = re.sub(r"(?<=.)([A-Z])", r"-\1", error.removeprefix(broker1.ERROR)).lower()
        return Said(word, message)

    def give_back(self):
        self._start("Release", "sa{sv}", self.lease, {})
        assert self.finish() == YES


class RealtimeKit(Way):
    """The role is not the caller's to name, nor is the policy: the broker's own policy says both."""

    @property
    def question(self):
        return (over_bus, self.bus.address, KIT, KIT_PATH, "MakeThreadRealtime", "tu", [0, 5])

    def start(self, priority=5, pid=0, tid=0, role=None):
        if pid:
            self._start("MakeThreadRealtimeWithPID", "ttu", pid, tid, priority)
        else:
            self._start("MakeThreadRealtime", "tu", tid, priority)
        self.thread = tid

    def _start(self, member, signature, *arguments):
        self.client.start("run", bus_module.speak, self.bus.address, False, KIT, KIT_PATH, KIT,
                          member, signature, arguments, TIMEOUT_S)

    def finish(self):
        reply = self.client.finish()
        if not reply.error:
            return YES
        # of errors by name its clients know these
        assert reply.error in ("AccessDenied", "Failed", "NoMemory"), reply
        word, _, words = reply.text.partition(": ")
        return Said(word, words)

    def give_back(self):
        """As its clients do."""
        self._start("MakeThreadHighPriority", "ti", self.thread, 0)
        assert self.finish() == YES


class RtkitDaemon(RealtimeKit):
    """The reference, which says no reason."""

    def finish(self):
        reply = self.client.finish()
        return Said(f"{reply.error}: {reply.text}") if reply.error else YES


WAYS = [Socket, Broker1, RealtimeKit]


# alice and bob may, carol may not
ALLOWED = f"{ALICE} {BOB}"
RULES = """polkit.addRule(function(action, subject) {
    if (action.id.indexOf("org.rtgrant.") != 0 && action.id.indexOf("org.freedesktop.Rea") != 0)
        return undefined;
    return subject.user == "carol" ? polkit.Result.NO : polkit.Result.YES;
});
"""

POLICY = {
    "Broker": {"Authority": "polkit", "RealtimeKitRole": "desktop", "RealtimeKitPolicy": "fifo"},
    "Role desktop": {"AllowUsers": ALLOWED, "PolkitAction": "org.rtgrant.realtime"},
    "Role studio": None,
}


def policy(broker=None, role=None, **others):
    return {**POLICY, "Broker": {**POLICY["Broker"], **(broker or {})},
            "Role desktop": {**POLICY["Role desktop"], **(role or {})}, **others}


class Place:
    """A bus with a broker on it; @values: how that is started."""

    def __init__(self, programs, directory, polkit=True, **values):
        self.bus = Bus(RULES, polkit=polkit)
        where = tempfile.mkdtemp(dir=directory)
        os.chmod(where, 0o755)
        self.daemon = Daemon(programs, where)
        self.made = []
        try:
            self.daemon.start(POLICY, environment=self.bus.environment, **values)
            wait_until(lambda: bus_module.owner_of(self.bus, bus_module.KIT) == self.daemon.pid,
                       what="the name on the bus")
        except BaseException:
            self.close()
            raise

    def client(self, way, uid=ALICE, prepare=limit_rttime()):
        client = Client(self.daemon.socket_path if way is Socket else None, uid,
                        prepare=prepare)
        self.made.append(client)
        return way(self.bus, client)

    def end_clients(self):
        while self.made:
            self.made.pop().kill()
        wait_until(lambda: self.daemon.status().n_leases == 0, what="the end of all leases")

    def close(self):
        for client in self.made:
            client.kill()
        self.daemon.take_as_base()
        self.daemon.close()
        self.bus.close()


@pytest.fixture(scope="module")
def of_all(programs, directory):
    place = Place(programs, directory)
    yield place
    place.close()


@pytest.fixture
def place(of_all):
    yield of_all
    of_all.end_clients()


@pytest.fixture
def with_policy(place):
    """Another policy for the time of a test."""
    yield place.daemon.reload
    place.end_clients()
    place.daemon.reload(POLICY)


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def make(request, place):
    """Makes clients of one way."""
    return lambda *arguments, **values: place.client(request.param, *arguments, **values)
