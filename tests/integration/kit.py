# SPDX-License-Identifier: MIT
"""Fixtures for tests that speak to rtgrantd as to RealtimeKit."""

import contextlib
import os

import pytest

import bus as bus_module
from agent import ALICE, NOBODY, Client
from bus import KIT, KIT_PATH, OK, Bus, Kit, limit_rttime
from daemon import wait_until

# everybody may, but for carol
RULES = """polkit.addRule(function(action, subject) {
    if (action.id.indexOf("org.freedesktop.RealtimeKit1.") == 0)
        return subject.user == "carol" ? polkit.Result.NO : polkit.Result.YES;
});
"""

POLICY = {
    "Broker": {"Authority": "polkit", "RealtimeKitRole": "desktop"},
    "Role desktop": {"AllowUsers": None, "PolkitAction": "org.rtgrant.realtime"},
}


def policy(**broker):
    return {**POLICY, "Broker": {**POLICY["Broker"], **broker}}


@pytest.fixture
def bus():
    made = Bus(RULES)
    yield made
    made.close()


@pytest.fixture
def serve(bus, make_daemon):
    """Starts the broker on the bus; who it is then."""

    def start(changes=None, on=None, **values):
        on = on or bus
        daemon = make_daemon().start(changes or POLICY, environment=on.environment, **values)
        wait_until(lambda: bus_module.owner_of(on, KIT) == daemon.pid, 10, "the name on the bus")
        if on.polkitd:
            # with the first answer the broker is connected to polkit for good
            asker = Client(None, NOBODY, prepare=limit_rttime())
            assert Kit(on, asker).realtime(0, 1) == OK
            asker.kill()
        wait_until(lambda: daemon.status().n_leases == 0)
        daemon.take_as_base()
        return daemon

    return start


@pytest.fixture
def make_kit(bus):
    made = []

    def make(uid=ALICE, prepare=limit_rttime(), on=None):
        made.append(Client(None, uid, prepare=prepare))
        return Kit(on or bus, made[-1])

    yield make
    for client in made:
        client.kill()


def ask_one_after_the_other(agent, address, n):
    errors = {}
    for _ in range(n):
        reply = bus_module.speak(agent, address, False, KIT, KIT_PATH, KIT, "MakeThreadRealtime",
                                 "tu", (0, 5), 10)
        errors[reply.error] = errors.get(reply.error, 0) + 1
    return errors


def said(reply):
    return reply.error or "ok"


def knows(daemon, pid):
    """Whether the broker has a pidfd of the process."""
    for fd in os.listdir(f"/proc/{daemon.pid}/fdinfo"):
        with contextlib.suppress(FileNotFoundError):
            with open(f"/proc/{daemon.pid}/fdinfo/{fd}", encoding="ascii") as file:
                if f"\nPid:\t{pid}\n" in file.read():
                    return True
    return False
